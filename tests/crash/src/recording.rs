//! A service whose files are recorded while it is used: requests, their answers, and the facts that clients rely on.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use rusqlite::Connection;

use crate::{
    disk::{Disk, Event, Facts, FileId, Image, Kept, Mark},
    facts::{self, Reader},
    server::{Answer, EmbeddedServer, Keys, Post},
    syscalls::{self, Calls, Fault},
};

pub const DATABASE: &str = "parcelo.db";
const CREATE: &str = "/api/v1/orders/create";
const ORDER: &str = r#"{"idempotencyKey":"KEY",NUMBER"sender":{"fullName":"Ana Ruiz","phone":"+13055550100","address":{"line1":"8400 NW 25th St","city":"Miami","state":"FL","zipCode":"33122","country":"US"}},"receiver":{"fullName":"Luis Paredes","phone":"+593991234567","nationalId":"1714307103","idType":"cedula","address":{"line1":"Av. Amazonas N34-451","city":"Quito","province":"Pichincha","zipCode":"170515","country":"EC"}},"parcelDetails":{"weightKg":1.25,"declaredValue":45.50},"customsInfo":{"description":"Cotton shirts","hsCode":"610910"}}"#;

/// A finished recording: the files before it, everything that happened to them, and every request.
pub struct Run {
    pub name: String,
    pub base: Image,
    pub events: Vec<Event>,
    pub requests: Vec<SentRequest>,
    pub keys: Keys,
    /// The expectations before the recording began.
    pub before: Expected,
    pub calls: Calls,
}

/// The facts and answers that clients rely on at one moment.
#[derive(Debug, Clone, Default)]
pub struct Expected {
    /// The requests that were sent, as indexes into `requests`. `acknowledged` has those that were answered.
    pub sent: Vec<usize>,
    pub acknowledged: Vec<usize>,
    pub facts: Arc<Facts>,
    /// The number of parcels before the first of these requests.
    pub parcels: usize,
    /// A reset was sent but not answered.
    pub is_resetting: bool,
    /// Keys and endpoint were set up.
    pub has_keys: bool,
}

/// A request of a run.

#[derive(Debug, Clone)]
pub struct SentRequest {
    pub what: RequestKind,
    pub answer: Option<Answer>,
}

#[derive(Debug, Clone)]
pub enum RequestKind {
    /// A request with an idempotency key. It is repeated on each image.
    Post(Post),
    Reset,
    /// Keys and an endpoint.
    SetUp,
    /// A task that cannot be repeated: only its facts are compared.
    Job,
}

impl Expected {
    /// Returns the expectations after a reset.
    pub fn reset(&self) -> Self {
        Self { has_keys: self.has_keys, ..Self::default() }
    }

    /// Takes the next mark into account.
    pub fn observe(&mut self, mark: &Mark, requests: &[SentRequest]) {
        match mark {
            Mark::Sent(at) => {
                self.is_resetting = matches!(requests[*at].what, RequestKind::Reset);
                self.sent.push(*at);
            }
            Mark::Acknowledged(at) => match requests[*at].what {
                RequestKind::Reset => *self = self.reset(),
                RequestKind::SetUp => self.has_keys = true,
                RequestKind::Post(_) | RequestKind::Job => self.acknowledged.push(*at),
            },
            Mark::Facts(facts) => self.facts = Arc::clone(facts),
        }
    }
}

impl Run {
    /// Returns the index of the first event that changes the database file itself.
    pub fn first_move(&self) -> usize {
        let file = self.base.iter().position(|(name, _)| name == DATABASE).map(|at| at as FileId);
        let is_move = |event: &Event| event.file() == file;
        self.events.iter().position(is_move).unwrap_or(0)
    }

    /// Checks that replaying the log gives the files as they are: no write has bypassed it.
    pub fn assert_complete(&self, folder: &Path) {
        let mut disk = Disk::new(&self.base, &self.events);
        while disk.advance() {}
        let all = vec![Kept::All; disk.pending().len()];
        let (logged, found) = (disk.image(&all), syscalls::read_folder(folder));
        let names = |image: &Image| {
            image.iter().map(|(name, bytes)| (name.clone(), bytes.len())).collect::<Vec<_>>()
        };
        assert_eq!(
            names(&logged),
            names(&found),
            "{}: the log lacks a file or a length",
            self.name
        );
        assert!(logged == found, "{}: the log lacks a write", self.name);
    }
}

/// A service that is being recorded.
pub struct Recording {
    name: String,
    folder: PathBuf,
    base: Image,
    server: Option<EmbeddedServer>,
    requests: Vec<SentRequest>,
    keys: Keys,
    before: Expected,
    orders: usize,
    seed: u64,
    /// Set if system calls fail, so that requests may fail too.
    may_fail: bool,
    /// Set if each answer is recorded with the facts of its moment.
    pub keeps_facts: bool,
}

impl Recording {
    /// Starts a recording on the files in the folder, which count as durable.
    pub fn start(name: &str, folder: &Path, fault: Option<Fault>) -> Self {
        let base = syscalls::read_folder(folder);
        syscalls::start(folder, fault);
        Self {
            name: name.to_owned(),
            folder: folder.to_owned(),
            base,
            server: None,
            requests: Vec::new(),
            keys: Keys::default(),
            before: Expected::default(),
            orders: 0,
            seed: 1,
            may_fail: fault.is_some(),
            keeps_facts: fault.is_none(),
        }
    }

    /// Continues another run; `before` is the durable part of it.
    pub fn after(mut self, run: &Run, before: Expected) -> Self {
        (self.requests, self.keys) = (run.requests.clone(), run.keys.clone());
        self.orders = 100_000;
        self.expecting(before)
    }

    /// Sets the expectations that are durable already.
    pub fn expecting(self, before: Expected) -> Self {
        Self { before, ..self }
    }

    pub fn file(&self) -> PathBuf {
        self.folder.join(DATABASE)
    }

    fn server(&self) -> &EmbeddedServer {
        self.server.as_ref().unwrap()
    }

    /// Starts the service. Returns `false` if it refuses, which is allowed only when a call fails.
    pub fn open(&mut self) -> bool {
        self.seed += 1;
        match EmbeddedServer::open(&self.file(), self.seed) {
            Ok(server) => self.server = Some(server),
            Err(error) => assert!(self.may_fail, "{}: {error}", self.name),
        }
        self.server.is_some()
    }

    pub fn close(&mut self) {
        if let Some(server) = self.server.take() {
            server.close();
        }
    }

    /// Ends the recording.
    pub fn finish(mut self) -> Run {
        self.close();
        let (events, calls) = syscalls::stop();
        let Self { name, folder, base, requests, keys, before, .. } = self;
        let run = Run { name, base, events, requests, keys, before, calls };
        run.assert_complete(&folder);
        run
    }

    fn begin(&mut self, what: RequestKind) -> usize {
        self.requests.push(SentRequest { what, answer: None });
        let at = self.requests.len() - 1;
        syscalls::mark(Mark::Sent(at));
        at
    }

    fn keep_facts(&self) {
        if self.keeps_facts {
            syscalls::mark(Mark::Facts(facts::read(&self.file())));
        }
    }

    /// Sends one request.
    pub fn post(&mut self, post: &Post) {
        let at = self.begin(RequestKind::Post(post.clone()));
        let answer = self.server().send(post, &self.keys);
        self.take(at, answer);
        self.keep_facts();
    }

    /// Sends an earlier request again.
    pub fn repeat(&mut self, at: usize) {
        let RequestKind::Post(post) = self.requests[at].what.clone() else { return };
        let answer = self.server().send(&post, &self.keys);
        self.take(at, answer);
        self.keep_facts();
    }

    /// Sends requests that share one commit.
    fn together(&mut self, posts: &[Post]) {
        let sent: Vec<_> =
            posts.iter().map(|post| self.begin(RequestKind::Post(post.clone()))).collect();
        let answers = self.server().send_together(posts, &self.keys);
        for (at, answer) in sent.into_iter().zip(answers) {
            self.take(at, answer);
        }
        self.keep_facts();
    }

    /// Records an answer. An error leaves open whether the request was executed.
    fn take(&mut self, at: usize, answer: Answer) {
        if answer.status < 300 {
            syscalls::mark(Mark::Acknowledged(at));
            self.requests[at].answer = Some(answer);
            return;
        }
        let body = String::from_utf8_lossy(&answer.body);
        let is_error_of_service = matches!(answer.status, 409 | 500..);
        assert!(self.may_fail && is_error_of_service, "{}: {} {body}", self.name, answer.status);
    }

    /// Runs a task that is not a request. Its effects are durable once it returns.
    pub fn job(&mut self, job: impl FnOnce(&EmbeddedServer)) {
        let at = self.begin(RequestKind::Job);
        job(self.server());
        syscalls::mark(Mark::Acknowledged(at));
        self.keep_facts();
    }

    /// Sends a request that would get another answer if it were repeated.
    pub fn post_without_key(&mut self, post: &Post) {
        let keys = self.keys.clone();
        self.job(|server| {
            let answer = server.send(post, &keys);
            assert_eq!(answer.status, 200, "{}", String::from_utf8_lossy(&answer.body));
        });
    }

    /// Issues keys and sets up an endpoint. Returns `false` if a failing call prevented it.
    pub fn set_up(&mut self) -> bool {
        let at = self.begin(RequestKind::SetUp);
        match self.server().set_up() {
            Ok(keys) => self.keys = keys,
            Err(error) => {
                assert!(self.may_fail, "{error}");
                return false;
            }
        }
        syscalls::mark(Mark::Acknowledged(at));
        self.keep_facts();
        true
    }

    pub fn reset(&mut self) {
        let at = self.begin(RequestKind::Reset);
        let header = "x-api-key";
        let post = Post { path: "/api/v1/sandbox/reset".to_owned(), header, body: String::new() };
        let answer = self.server().send(&post, &self.keys);
        assert!(self.may_fail || answer.status == 200, "{answer:?}");
        if self.may_fail {
            return;
        }
        syscalls::mark(Mark::Acknowledged(at));
        let file = self.file();
        self.server().finish_resets(|| Reader::open(&file).is_ok_and(|reader| reader.is_reset()));
        self.keep_facts();
    }

    /// Checks that the workload has had its intended effects.
    pub fn assert_facts(&self, kinds: &[&str]) {
        let found = facts::read(&self.file());
        for kind in kinds {
            assert!(found.iter().any(|fact| fact.starts_with(kind)), "{}: no {kind}", self.name);
        }
    }

    /// Checkpoints the log from another connection, as a backup does.
    pub fn checkpoint(&mut self, mode: &str) {
        let Ok(db) = Connection::open(self.file()) else { return };
        let _ = db.query_row(&format!("PRAGMA wal_checkpoint({mode})"), [], |_| Ok(()));
    }

    /// Creates this many orders in one commit.
    pub fn create(&mut self, count: usize) {
        let orders: Vec<_> = (0..count).map(|_| self.order()).collect();
        match &orders[..] {
            [order] => self.post(order),
            orders => self.together(orders),
        }
    }

    /// Returns a new order. Every third has a tracking number given by the caller; the others are generated.
    fn order(&mut self) -> Post {
        self.orders += 1;
        order(self.orders)
    }

    /// Returns the tracking number of one of the parcels created so far.
    pub fn number(&self, at: usize) -> String {
        let answers = self.requests.iter().filter_map(|sent| sent.answer.as_ref());
        let numbers = answers.filter_map(|answer| {
            let body: serde_json::Value = serde_json::from_slice(&answer.body).ok()?;
            Some(body["parcel"]["trackingNumber"].as_str()?.to_owned())
        });
        numbers.clone().nth(at % numbers.count().max(1)).unwrap_or_default()
    }
}

/// Returns an order under a separate idempotency key.
pub fn order(number: usize) -> Post {
    let given = match number % 3 {
        0 => format!(r#""trackingNumber":"SB-NORMAL-{number:06}","#),
        _ => String::new(),
    };
    let body = ORDER.replace("KEY", &format!("order-{number:06}")).replace("NUMBER", &given);
    Post { path: CREATE.to_owned(), header: "x-api-key", body }
}

impl RequestKind {
    /// Returns whether the request makes a parcel.
    pub fn creates(&self) -> bool {
        matches!(self, Self::Post(post) if post.creates())
    }
}

impl Post {
    pub fn creates(&self) -> bool {
        self.path == CREATE
    }
}

/// Writes an image into a folder. The database keeps its inode, because the store never closes a file that it has
/// opened.
pub fn put(folder: &Path, image: &Image) {
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
