//! Clients, two for each order, that send concurrent calls to all servers and record each call with its answer.

use std::{
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};

use fastrand::Rng;
use reqwest::Client;
use serde_json::Value;

use crate::{
    linearizability::Record,
    model::{Answer, Call, Status},
    requests::{Account, Reply, Request},
    stepped_clock::{SteppedClock, now_millis},
};

/// Number of calls that each of the two clients of an order makes.
const CALLS_PER_CLIENT: usize = 6;
/// Maximum number of attempts of a call.
const MAX_ATTEMPTS: u32 = 4;
/// Milliseconds by which the carriers' clocks are ahead, so that a scan is later than any date of the servers. The
/// service accepts up to five minutes, and no call takes the remaining one.
const CARRIER_CLOCK_AHEAD_MILLIS: u64 = 240_000;

pub(crate) type OrderRecord = Record<Call, Answer>;

/// The state that all clients share.
pub(crate) struct Clients {
    http: Client,
    servers: Vec<Upstream>,
    pub(crate) accounts: Vec<Account>,
    /// The clock of the only server, if it is stepped.
    clock: Option<Arc<SteppedClock>>,
    /// The next moment of a logical clock that orders calls and answers.
    next_moment: AtomicU64,
    /// A counter from which idempotency keys and air waybills are made.
    serial: AtomicU64,
    newest_scan: AtomicU64,
    pub(crate) counts: Counts,
}

/// A server, and the number of calls that are waiting for its answer.
struct Upstream {
    address: String,
    waiting: AtomicUsize,
}

/// The numbers of acknowledged calls of each kind, and of attempts without an answer.
#[derive(Default)]
pub(crate) struct Counts {
    pub(crate) creates: AtomicU64,
    pub(crate) voids: AtomicU64,
    pub(crate) reprints: AtomicU64,
    pub(crate) manifests: AtomicU64,
    pub(crate) scans: AtomicU64,
    pub(crate) repeats: AtomicU64,
    pub(crate) without_answer: AtomicU64,
}

impl Counts {
    /// Returns the number of acknowledged calls that changed something.
    pub(crate) fn writes(&self) -> u64 {
        [&self.creates, &self.voids, &self.reprints, &self.manifests, &self.scans]
            .map(|count| count.load(Ordering::Relaxed))
            .iter()
            .sum()
    }

    fn add(&self, call: Call, answer: Answer) {
        let count = match call {
            Call::Create if !answer.is_acknowledged_write() => &self.repeats,
            _ if !answer.is_acknowledged_write() => return,
            Call::Create => &self.creates,
            Call::Void => &self.voids,
            Call::Reprint => &self.reprints,
            Call::Manifest => &self.manifests,
            Call::Scan { .. } => &self.scans,
            Call::Track => return,
        };
        count.fetch_add(1, Ordering::Relaxed);
    }
}

/// An order, and the calls made on it.
pub(crate) struct OrderHistory {
    pub(crate) serial: u64,
    pub(crate) number: OnceLock<String>,
    records: Mutex<Vec<OrderRecord>>,
}

impl OrderHistory {
    /// Returns an order with this tracking number, if a client knows it.
    pub(crate) fn new(serial: u64, number: Option<String>) -> Self {
        let number = number.map_or_else(OnceLock::new, OnceLock::from);
        Self { serial, number, records: Mutex::default() }
    }

    pub(crate) fn key(serial: u64) -> String {
        format!("torture-{serial:010}")
    }

    pub(crate) fn into_parts(self) -> (u64, Option<String>, Vec<OrderRecord>) {
        let records = self.records.into_inner().unwrap_or_else(PoisonError::into_inner);
        (self.serial, self.number.into_inner(), records)
    }

    fn records(&self) -> MutexGuard<'_, Vec<OrderRecord>> {
        self.records.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Clients {
    pub(crate) fn new(
        addresses: Vec<String>,
        accounts: Vec<Account>,
        clock: Option<Arc<SteppedClock>>,
    ) -> Self {
        let http = Client::builder().timeout(Duration::from_secs(12)).tcp_nodelay(true);
        let upstream = |address| Upstream { address, waiting: AtomicUsize::new(0) };
        Self {
            http: http.build().expect("a client"),
            servers: addresses.into_iter().map(upstream).collect(),
            accounts,
            clock,
            next_moment: AtomicU64::new(0),
            serial: AtomicU64::new(0),
            newest_scan: AtomicU64::new(0),
            counts: Counts::default(),
        }
    }

    /// Creates an order, and runs two clients on it until both have made their calls.
    pub(crate) async fn work_on_new_order(&self, random: &mut Rng) -> OrderHistory {
        let order = OrderHistory::new(self.serial.fetch_add(1, Ordering::Relaxed), None);
        let (mut one, mut other) = (random.fork(), random.fork());
        tokio::join!(self.run_client(&order, &mut one), self.run_client(&order, &mut other));
        order
    }

    async fn run_client(&self, order: &OrderHistory, random: &mut Rng) {
        for _ in 0..CALLS_PER_CLIENT {
            let call = match order.number.get() {
                None => Call::Create,
                Some(_) => match random.u8(..32) {
                    0..3 => Call::Create,
                    3 => Call::Void,
                    4..6 => Call::Manifest,
                    6..16 => self.next_scan(random),
                    16..28 => Call::Reprint,
                    _ => Call::Track,
                },
            };
            self.call(order, call, random).await;
        }
    }

    /// Returns a scan of the parcel by a carrier, later than all earlier scans.
    fn next_scan(&self, random: &mut Rng) -> Call {
        let reported =
            Status::REPORTED_BY_CARRIERS[random.usize(..Status::REPORTED_BY_CARRIERS.len())];
        if self.clock.is_some() {
            return Call::Scan { reported, at: None };
        }
        let now = now_millis() + CARRIER_CLOCK_AHEAD_MILLIS;
        let newest = self.newest_scan.fetch_max(now, Ordering::SeqCst);
        let at =
            if newest < now { now } else { self.newest_scan.fetch_add(1, Ordering::SeqCst) + 1 };
        Call::Scan { reported, at: Some(at) }
    }

    /// Makes a call, repeating it until it is answered or out of attempts, and records it.
    pub(crate) async fn call(
        &self,
        order: &OrderHistory,
        call: Call,
        random: &mut Rng,
    ) -> Option<Answer> {
        let serial = self.serial.fetch_add(1, Ordering::Relaxed);
        let started = self.take_moment();
        let mut unanswered = 0;
        let reply = loop {
            if let Some(reply) = self.attempt(order, (call, serial), random).await {
                break Some(reply);
            }
            unanswered += 1;
            self.counts.without_answer.fetch_add(1, Ordering::Relaxed);
            // Unanswered creations are repeated later, as separate calls.
            if unanswered == MAX_ATTEMPTS || call == Call::Create {
                break None;
            }
        };
        let answer = reply.map(|reply| {
            if let Some(number) = reply.number {
                let _known = order.number.set(number);
            }
            reply.answer
        });
        if let Some(answer) = answer {
            self.counts.add(call, answer);
        }
        let mut records = order.records();
        // The refusal shows that no earlier attempt has been executed so far. One may still be on its way, so the call
        // is recorded as unanswered too.
        if unanswered > 0 && matches!(answer, Some(Answer::Refused | Answer::TooEarly)) {
            records.push(Record { call, started, answered: None });
        }
        let answered = answer.map(|answer| (self.take_moment(), answer));
        records.push(Record { call, started, answered });
        answer
    }

    async fn attempt(
        &self,
        order: &OrderHistory,
        (call, serial): (Call, u64),
        random: &mut Rng,
    ) -> Option<Reply> {
        // Load balancing: of two random servers, the one with fewer waiting calls is taken, so that a frozen server
        // does not attract all calls.
        let [one, other] = [(); 2].map(|()| &self.servers[random.usize(..self.servers.len())]);
        let waiting = |upstream: &Upstream| upstream.waiting.load(Ordering::Relaxed);
        let upstream = if waiting(one) <= waiting(other) { one } else { other };
        let scanned_at = match (call, &self.clock) {
            (Call::Scan { at: Some(at), .. }, _) => at,
            (_, Some(clock)) => clock.now_millis(),
            _ => 0,
        };
        let key = OrderHistory::key(order.serial);
        let number = order.number.get().map_or("", String::as_str);
        let request = Request { call, order: &key, number, serial, scanned_at };
        upstream.waiting.fetch_add(1, Ordering::Relaxed);
        let response = self.send(&request, &upstream.address, order.serial).await;
        if response.is_none() {
            // A server that is down refuses at once, and would get most attempts. Wait about as long as another server
            // takes to answer.
            tokio::time::sleep(Duration::from_millis(random.u64(20..200))).await;
        }
        upstream.waiting.fetch_sub(1, Ordering::Relaxed);
        response
    }

    async fn send(&self, request: &Request<'_>, address: &str, serial: u64) -> Option<Reply> {
        let response =
            request.build(&self.http, address, self.account(serial)).send().await.ok()?;
        let status = response.status().as_u16();
        request.parse_reply(status, &response.bytes().await.ok()?)
    }

    /// Returns the account to which the order with this serial number belongs.
    pub(crate) fn account(&self, serial: u64) -> &Account {
        &self.accounts[serial as usize % self.accounts.len()]
    }

    /// Returns the tracking history of an order's parcel, or `None` without an answer.
    pub(crate) async fn fetch_history(&self, order: &OrderHistory) -> Option<Value> {
        let number = order.number.get()?;
        let request = Request { call: Call::Track, order: "", number, serial: 0, scanned_at: 0 };
        let account = self.account(order.serial);
        let response =
            request.build(&self.http, &self.servers[0].address, account).send().await.ok()?;
        let bytes = response.error_for_status().ok()?.bytes().await.ok()?;
        serde_json::from_slice(&bytes).ok()
    }

    /// Returns the number of parcels that the service lists, in all accounts together.
    pub(crate) async fn count_parcels(&self) -> u64 {
        let mut parcels = 0;
        for account in &self.accounts {
            let url = format!("{}/api/v1/parcels?limit=1", self.servers[0].address);
            let answer = self.http.get(url).header("X-API-Key", &account.key).send().await;
            let bytes = answer.expect("servers that answer").bytes().await.expect("a whole answer");
            let body: Value = serde_json::from_slice(&bytes).expect("the service answers JSON");
            parcels += body["meta"]["total"].as_u64().unwrap_or_else(|| panic!("no total: {body}"));
        }
        parcels
    }

    fn take_moment(&self) -> u64 {
        self.next_moment.fetch_add(1, Ordering::SeqCst)
    }
}
