//! Recording of a service in use: the changes to its files, the requests with their responses, and the facts that
//! clients rely on.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use rusqlite::Connection;

use crate::{
    disk::{Disk, Event, Expectations, Image, RecordedRun},
    facts::Reader,
    server::{ApiRequest, ApiResponse, Server},
    syscalls::{self, Fault},
};

pub const DATABASE: &str = "parcelo.db";
const CREATE_PATH: &str = "/api/v1/orders/create";
/// The body of an order. `KEY` stands for its idempotency key, and `NUMBER` for the member with its tracking number, if
/// it has one.
const ORDER_TEMPLATE: &str = r#"{"idempotencyKey":"KEY",NUMBER"sender":{"fullName":"Ana Ruiz","phone":"+13055550100","address":{"line1":"8400 NW 25th St","city":"Miami","state":"FL","zipCode":"33122","country":"US"}},"receiver":{"fullName":"Luis Paredes","phone":"+593991234567","nationalId":"1714307103","idType":"cedula","address":{"line1":"Av. Amazonas N34-451","city":"Quito","province":"Pichincha","zipCode":"170515","country":"EC"}},"parcelDetails":{"weightKg":1.25,"declaredValue":45.50},"customsInfo":{"description":"Cotton shirts","hsCode":"610910"}}"#;

/// A service that is being recorded.
pub struct Recording {
    folder: PathBuf,
    base: Image,
    server: Option<Server>,
    requests: Vec<(ApiRequest, Option<ApiResponse>)>,
    api_key: String,
    expected: Expectations,
    seed: u64,
    /// `true` if system calls are made to fail, so that requests may fail too. The replayed log may then differ from
    /// the files, because it discards the writes whose sync failed.
    may_fail: bool,
}

impl Recording {
    /// Starts a recording on the files in the folder, which count as durable.
    pub fn start(folder: &Path, fault: Option<Fault>, expected: Expectations) -> Self {
        let recording = Self {
            folder: folder.to_owned(),
            base: syscalls::start(folder, fault),
            server: None,
            requests: Vec::new(),
            api_key: String::new(),
            expected,
            seed: 1,
            may_fail: fault.is_some(),
        };
        recording.mark();
        recording
    }

    /// Starts a recording on the files that a crash of an earlier run has left in the folder.
    pub fn after(run: &RecordedRun, expected: &Expectations, folder: &Path) -> Self {
        let mut recording = Self::start(folder, None, expected.clone());
        (recording.requests, recording.api_key) = (run.requests.clone(), run.api_key.clone());
        recording
    }

    /// Discards the log so far. The files count as durable from here on.
    pub fn restart_log(&mut self) {
        self.base = syscalls::start(&self.folder, None);
        self.mark();
    }

    pub fn file(&self) -> PathBuf {
        self.folder.join(DATABASE)
    }

    fn server(&self) -> &Server {
        self.server.as_ref().unwrap()
    }

    /// Starts the service. Returns `false` if it does not start, which is allowed only if system calls are made to
    /// fail.
    pub fn open(&mut self) -> bool {
        self.seed += 1;
        match Server::open(&self.file(), self.seed) {
            Ok(server) => self.server = Some(server),
            Err(error) => assert!(self.may_fail, "{error}"),
        }
        self.server.is_some()
    }

    pub fn close(&mut self) {
        if let Some(server) = self.server.take() {
            server.close();
        }
    }

    /// Ends the recording, and checks that replaying the log reproduces the files, which shows that it is complete.
    pub fn finish(mut self) -> RecordedRun {
        self.close();
        let (events, calls) = syscalls::stop();
        let Self { folder, base, requests, api_key, may_fail, .. } = self;
        let run = RecordedRun { base, events, requests, api_key, calls };
        let replayed = Disk::after(&run, run.events.len()).complete_image();
        assert!(may_fail || replayed == syscalls::read_folder(&folder), "the log lacks a change");
        run
    }

    /// Adds the current expectations to the log.
    fn mark(&self) {
        syscalls::log(Event::Mark(self.expected.clone()));
    }

    /// Records the responses, and then the facts, in separate marks. Reading the facts takes time, in which a write
    /// that was acknowledged before its commit would be committed.
    fn record_facts(&mut self) {
        self.mark();
        if !self.may_fail {
            let facts = Reader::open(&self.file()).and_then(|reader| reader.facts());
            self.expected.facts = Arc::new(facts.unwrap());
            self.mark();
        }
    }

    /// Issues an API key and sets up a webhook endpoint. Returns `false` if a failing system call prevented this.
    pub fn set_up(&mut self) -> bool {
        match self.server().set_up() {
            Ok(api_key) => self.api_key = api_key,
            Err(error) => {
                assert!(self.may_fail, "{error}");
                return false;
            }
        }
        self.expected.is_set_up = true;
        self.record_facts();
        true
    }

    /// Sends a new request and records its response.
    pub fn post(&mut self, path: &str, body: String) {
        self.requests.push((ApiRequest { path: path.to_owned(), body }, None));
        self.send(self.requests.len() - 1..self.requests.len());
    }

    /// Creates this many orders in one commit.
    pub fn create(&mut self, count: usize) {
        let first = self.requests.len();
        self.requests.extend((first..first + count).map(|number| (order_request(number), None)));
        self.send(first..first + count);
    }

    /// Sends requests of the run, which share one commit. If the response is an error, the request may have been
    /// executed or not.
    pub fn send(&mut self, indexes: impl Iterator<Item = usize> + Clone) {
        self.expected.requests.extend(indexes.clone().map(|index| (index, false)));
        self.mark();
        let api_requests: Vec<_> =
            indexes.clone().map(|index| self.requests[index].0.clone()).collect();
        let responses = self.server().send(&api_requests, &self.api_key);
        for (index, response) in indexes.zip(responses) {
            if response.status < 300 {
                self.expected.requests.insert(index, true);
                self.requests[index].1 = Some(response);
            } else {
                let is_service_error = matches!(response.status, 409 | 500..);
                assert!(self.may_fail && is_service_error, "{}", response.text());
            }
        }
        self.record_facts();
    }

    /// Runs a task that is not a request. Its effects are durable once it returns.
    pub fn run_task(&mut self, task: impl FnOnce(&Server)) {
        task(self.server());
        self.record_facts();
    }

    /// Resets the sandbox, and waits until the store has erased the rows.
    pub fn reset(&mut self) {
        self.expected.is_resetting = true;
        self.mark();
        let request = ApiRequest { path: "/api/v1/sandbox/reset".to_owned(), body: String::new() };
        let response = &self.server().send(&[request], &self.api_key)[0];
        assert_eq!(response.status, 200, "{}", response.text());
        self.expected = self.expected.after_reset();
        self.mark();
        let file = self.file();
        let is_erased = || Reader::open(&file).is_ok_and(|reader| reader.are_resets_erased());
        self.server().wait_until(is_erased);
        self.record_facts();
    }

    /// Checkpoints the write-ahead log from another connection, as a backup does.
    pub fn checkpoint(&self, mode: &str) {
        let checkpoint = format!("PRAGMA wal_checkpoint({mode})");
        let db = Connection::open(self.file());
        let done = db.and_then(|db| db.query_row(&checkpoint, [], |_| Ok(())));
        assert!(self.may_fail || done.is_ok(), "{done:?}");
    }

    /// Checks that there is a fact of each kind, so that the workload has had its intended effects.
    pub fn assert_facts(&self, kinds: &[&str]) {
        for kind in kinds {
            let mut facts = self.expected.facts.iter();
            assert!(facts.any(|fact| fact.starts_with(kind)), "no {kind}");
        }
    }

    /// Returns the tracking numbers of the parcels created so far.
    pub fn tracking_numbers(&self) -> Vec<String> {
        let responses = self.requests.iter().filter_map(|(_, response)| response.as_ref());
        let tracking_numbers = responses.filter_map(|response| {
            let body: serde_json::Value = serde_json::from_slice(&response.body).ok()?;
            Some(body["parcel"]["trackingNumber"].as_str()?.to_owned())
        });
        tracking_numbers.collect()
    }
}

/// Returns the request that creates the order with this number, which has its own idempotency key. Every third order
/// requests a tracking number; the service generates the others.
pub fn order_request(number: usize) -> ApiRequest {
    let tracking_number = match number % 3 {
        0 => format!(r#""trackingNumber":"SB-NORMAL-{number:06}","#),
        _ => String::new(),
    };
    let body = ORDER_TEMPLATE
        .replace("KEY", &format!("order-{number:06}"))
        .replace("NUMBER", &tracking_number);
    ApiRequest { path: CREATE_PATH.to_owned(), body }
}

impl ApiRequest {
    /// Returns `true` if the request creates a parcel.
    pub fn is_create(&self) -> bool {
        self.path == CREATE_PATH
    }
}

/// Replaces the files of a folder with those of an image. A file of the same name keeps its inode, because the store
/// never closes a database file that it has opened.
pub fn write_image(folder: &Path, image: &Image) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if !image.iter().any(|(name, _)| path.ends_with(name)) {
            fs::remove_file(path).unwrap();
        }
    }
    for (name, bytes) in image {
        fs::write(folder.join(name), bytes).unwrap();
    }
}
