//! What shippers and a carrier do: programs on the SDK that create, repeat, void, reprint, submit and read.

use std::{sync::Arc, time::Duration};

use fastrand::Rng;
use parcelo::{
    Client, Error, ErrorCode, ErrorKind, IdempotencyKey, LabelFormat, ManifestRequest,
    OrderRequest, ReprintRequest, TrackingNumber, VoidRequest, calls::StopReason,
};
use serde_json::json;
use tokio::time::sleep;

use super::{calls::CALL, network::Network, refused::some_awb, servers::Fleet, world::World};
use crate::{
    clock::Millis,
    domain::{sample, scenario::SCENARIOS},
};

/// A key that was made so long ago has expired, though the clock was 40 hours ahead then.
const TOO_LATE: i64 = 72 * Millis::HOUR;
/// What the place of a carrier's scan begins with.
pub(super) const SCANNED_AT: &str = "Depot ";

/// A program that works for one shipper, at the same time as others.
pub(super) struct Worker {
    pub(super) world: Arc<World>,
    fleet: Arc<Fleet>,
    pub(super) client: Client,
    pub(super) shipper: usize,
    name: String,
    /// What its idempotency keys begin with, and also those of other shippers.
    keys: String,
    pub(super) rng: Rng,
    /// What it has created, and knows of.
    pub(super) numbers: Vec<(String, TrackingNumber)>,
    /// The orders, with keys that remember when they were first sent.
    orders: Vec<OrderRequest>,
    made: usize,
    /// From which on they were created in this episode: their keys have not expired.
    pub(super) fresh_from: usize,
}

/// A client of a shipper's. Clones share its limits.
pub(super) fn client(fleet: &Arc<Fleet>, shipper: usize) -> Client {
    let world = Arc::clone(&fleet.world);
    let key = world.facts().shippers[shipper].key.clone();
    let clocks = world.clocks.clone();
    let builder = Client::builder(key).base_url("https://parcelo.example").unwrap();
    let builder = builder.wall_clock(move || clocks.wall().to_utc());
    let builder = builder.transport(Network::new(fleet, shipper));
    let builder = if shipper.is_multiple_of(2) {
        builder
    } else {
        builder.rate_limit(parcelo::RateLimit::off())
    };
    builder.build().unwrap()
}

impl Worker {
    pub(super) fn new(
        fleet: &Arc<Fleet>,
        client: Client,
        (shipper, number): (usize, usize),
    ) -> Self {
        let world = Arc::clone(&fleet.world);
        let rng = world.random("worker", number);
        let name = format!("{}{number:02}", world.facts().shippers[shipper].tag);
        let keys = format!("key-{:02}", number / world.options.tenants);
        let (fleet, numbers) = (Arc::clone(fleet), Vec::new());
        Self {
            world,
            fleet,
            client,
            shipper,
            name,
            keys,
            rng,
            numbers,
            orders: Vec::new(),
            made: 0,
            fresh_from: 0,
        }
    }

    /// Works for one episode.
    pub(super) async fn work(mut self) -> Self {
        self.fresh_from = self.numbers.len();
        for _ in 0..self.world.options.operations {
            if self.world.is_over() {
                break;
            }
            self.operate().await;
            let most = if self.fleet.is_cut_off() { 300 } else { 4_000 };
            let pause = if self.rng.u32(..4) == 0 { 0 } else { self.rng.u64(..most) };
            sleep(Duration::from_millis(pause)).await;
        }
        if self.fleet.is_cut_off() {
            self.hammer().await;
        }
        self
    }

    /// Calls on and on while nothing gets through, which the budget for retries is for.
    async fn hammer(&mut self) {
        while self.fleet.is_cut_off() && !self.world.is_over() {
            let call = self.world.next_call();
            let client = self.client.clone();
            let _failed = CALL.scope(call, client.health()).await;
            sleep(Duration::from_millis(self.rng.u64(..200))).await;
        }
    }

    async fn operate(&mut self) {
        match self.rng.u32(..100) {
            0..38 => self.create(false).await,
            38..48 => self.create(true).await,
            48..51 => self.correct().await,
            51..53 => self.reuse_key().await,
            53..56 => self.take_number().await,
            56..60 => self.repeat().await,
            60..66 => self.void().await,
            66..70 => self.reprint().await,
            70..76 => self.submit().await,
            76..86 => self.track().await,
            86..90 => self.list().await,
            90..95 => self.read_another().await,
            95..97 => self.print_twice().await,
            _ => self.report().await,
        }
    }

    /// An id that no other has.
    fn id(&mut self) -> String {
        self.made += 1;
        format!("{}-{:04}", self.name, self.made)
    }

    /// The idempotency key that goes with it. Another shipper has the same, which must not matter.
    pub(super) fn key_of(&self, id: &str) -> IdempotencyKey {
        let number = id.rsplit('-').next().unwrap_or_default();
        IdempotencyKey::parse(&format!("{}-{number}", self.keys)).unwrap()
    }

    pub(super) fn key(&mut self) -> IdempotencyKey {
        let id = self.id();
        self.key_of(&id)
    }

    pub(super) fn order(&mut self) -> OrderRequest {
        let id = self.id();
        let mut order: OrderRequest = serde_json::from_value(sample::order()).unwrap();
        order.idempotency_key = self.key_of(&id);
        order.tracking_number = None;
        if !self.world.options.production && self.rng.bool() {
            let prefix = SCENARIOS[self.rng.usize(..SCENARIOS.len())].prefix;
            order.tracking_number = TrackingNumber::parse(&format!("{prefix}{id}")).ok();
        }
        order.external_order_id = Some(id);
        order
    }

    /// Creates an order; while it is not known whether it was, it is sent again. `twice` sends it twice at once.
    async fn create(&mut self, twice: bool) {
        let order = self.order();
        self.create_order(order, twice).await;
    }

    pub(super) async fn create_order(&mut self, order: OrderRequest, twice: bool) {
        let id = order.external_order_id.clone().unwrap();
        {
            let mut facts = self.world.facts();
            let fact = facts.orders.entry(id.clone()).or_default();
            (fact.shipper, fact.parcels) = (self.shipper, 1);
        }
        if twice {
            // Another process has the same key, and knows nothing of this one.
            let mut other = order.clone();
            other.idempotency_key = IdempotencyKey::parse(order.idempotency_key.as_str()).unwrap();
            tokio::join!(self.create_once(&order), self.create_once(&other));
        }
        for _ in 0..4 {
            if self.create_once(&order).await || self.world.is_over() {
                break;
            }
            sleep(Duration::from_secs(self.rng.u64(..10))).await;
        }
        let number = self.world.facts().orders[&id].acknowledged.clone();
        if let Some(number) = number {
            self.numbers.push((id, TrackingNumber::parse(&number).unwrap()));
            self.orders.push(order);
        }
    }

    /// Whether it is known what came of it.
    async fn create_once(&self, order: &OrderRequest) -> bool {
        let (call, id) = (self.world.next_call(), order.external_order_id.clone().unwrap());
        self.world.facts().orders.get_mut(&id).unwrap().open_calls += 1;
        let created = CALL.scope(call, self.client.orders().create(order)).await;
        {
            let mut facts = self.world.facts();
            let fact = facts.orders.get_mut(&id).unwrap();
            fact.open_calls -= 1;
            fact.may_exist |= created.as_ref().err().is_none_or(Error::may_have_executed);
        }
        match created {
            Ok(created) => {
                let number = created.parcel.tracking_number.to_string();
                let before = {
                    let mut facts = self.world.facts();
                    facts.orders.get_mut(&id).unwrap().acknowledged.replace(number.clone())
                };
                let is_same = before.as_ref().is_none_or(|before| *before == number);
                self.world
                    .check(is_same, "answers-differ", || format!("{id}: {before:?}, {number}"));
                true
            }
            Err(error) => {
                self.failed(call, &error);
                let is_settled =
                    matches!(error.kind(), ErrorKind::Validation | ErrorKind::Conflict);
                is_settled && !error.may_have_executed()
            }
        }
    }

    /// What every error of a call must be true about.
    pub(super) fn failed(&self, call: u64, error: &Error) {
        self.world.step(&format!("call {call} failed: {:?} {:?}", error.kind(), error.code()));
        let was_executed = self.world.facts().answers.executed.contains(&call);
        self.world.check(
            !was_executed || error.may_have_executed(),
            "not-executed-but-was",
            || format!("call {call}: {error}"),
        );
        let attempts = self.world.attempts(call);
        self.world.check(attempts == error.attempts(), "attempts-miscounted", || {
            format!("call {call}: {attempts} and {}", error.attempts())
        });
        let is_early = error.known_code() == Some(ErrorCode::IdempotencyInProgress)
            && error.stop_reason() == Some(StopReason::Permanent);
        self.world.check(!is_early, "in-progress-final", || format!("call {call}: {error}"));
    }

    fn some_number(&mut self) -> Option<(String, TrackingNumber)> {
        let most = self.numbers.len();
        (most > 0).then(|| self.numbers[self.rng.usize(..most)].clone())
    }

    /// Sends an order once more: in time, from another process; and too late, which the client refuses.
    async fn repeat(&mut self) {
        let most = self.orders.len();
        if most == 0 {
            return;
        }
        let place = self.rng.usize(..most);
        let mut order = self.orders[place].clone();
        if place >= self.fresh_from {
            order.idempotency_key = IdempotencyKey::parse(order.idempotency_key.as_str()).unwrap();
            let _ = self.create_once(&order).await;
            return;
        }
        let made_at = self.world.facts().orders[&self.numbers[place].0].made_at;
        if self.world.clocks.unjumped().0 < made_at.0 + TOO_LATE {
            return;
        }
        let call = self.world.next_call();
        let sent = CALL.scope(call, self.client.orders().create(&order)).await;
        let is_refused = sent.is_err_and(|error| error.kind() == ErrorKind::KeyExpired);
        let is_unsent = self.world.attempts(call) == 0;
        self.world
            .check(is_refused && is_unsent, "expired-key-sent", || self.numbers[place].0.clone());
    }

    async fn void(&mut self) {
        let mut picked: Vec<_> =
            (0..self.rng.usize(1..=3)).filter_map(|_| self.some_number()).collect();
        picked.sort();
        picked.dedup();
        if picked.is_empty() {
            return;
        }
        let request = VoidRequest::new(self.key(), picked.iter().map(|(_, number)| number));
        for _ in 0..3 {
            let call = self.world.next_call();
            match CALL.scope(call, self.client.orders().void(&request)).await {
                Ok(voided) => {
                    let results = voided.results.iter().flatten().filter(|result| result.voided);
                    let voided: Vec<_> = results.map(|it| it.tracking_number.clone()).collect();
                    let done = picked.iter().filter(|(_, number)| {
                        voided.iter().any(|voided| voided.as_str() == number.as_str())
                    });
                    for (id, number) in done {
                        self.world.facts().orders.entry(id.clone()).or_default().voided = true;
                        self.print_voided(number).await;
                    }
                    return;
                }
                Err(error) => self.failed(call, &error),
            }
        }
    }

    /// Prints a parcel's label again, two clerks at the same time: each print is another version.
    async fn reprint(&mut self) {
        let Some((id, number)) = self.some_number() else { return };
        let [first, second] = [self.key(), self.key()].map(ReprintRequest::new);
        if self.rng.bool() {
            self.reprint_once((&id, &number), &first).await;
        } else {
            let first = self.reprint_once((&id, &number), &first);
            tokio::join!(first, self.reprint_once((&id, &number), &second));
        }
    }

    async fn reprint_once(&self, (id, number): (&str, &TrackingNumber), request: &ReprintRequest) {
        for _ in 0..3 {
            let call = self.world.next_call();
            match CALL.scope(call, self.client.labels().reprint(number, request)).await {
                Ok(label) => {
                    let is_new = {
                        let mut facts = self.world.facts();
                        let order = facts.orders.entry(id.to_owned()).or_default();
                        order.reprints.insert(label.version)
                    };
                    self.world.check(is_new, "write-undone", || {
                        format!("two reprints of {id} are version {}", label.version)
                    });
                    return;
                }
                Err(error) => self.failed(call, &error),
            }
        }
    }

    async fn submit(&mut self) {
        let picked: Vec<_> =
            (0..self.rng.usize(1..=3)).filter_map(|_| self.some_number()).collect();
        if picked.is_empty() {
            return;
        }
        let awb = some_awb(&mut self.rng);
        let key = self.key();
        let mut numbers: Vec<_> = picked.iter().map(|(_, number)| number.clone()).collect();
        numbers.sort();
        numbers.dedup();
        let request = ManifestRequest::new(key, awb.clone(), &numbers);
        for _ in 0..3 {
            let call = self.world.next_call();
            match CALL.scope(call, self.client.manifests().submit(&request)).await {
                Ok(_) => return self.submitted(&picked, awb.as_str()),
                Err(error) => self.failed(call, &error),
            }
        }
    }

    fn submitted(&self, picked: &[(String, TrackingNumber)], awb: &str) {
        for (id, _) in picked {
            let before = {
                let mut facts = self.world.facts();
                facts.orders.entry(id.clone()).or_default().manifest.replace(awb.to_owned())
            };
            let is_once = before.as_ref().is_none_or(|before| before == awb);
            self.world.check(is_once, "manifest-twice", || format!("{id}: {before:?}, {awb}"));
        }
    }

    async fn track(&mut self) {
        let Some((id, number)) = self.some_number() else { return };
        let call = self.world.next_call();
        let tracking = self.client.tracking().get(&number).history(true);
        match CALL.scope(call, async { tracking.await }).await {
            Ok(record) => {
                let history = record.history.iter().flatten().flatten();
                let seen = history.map(|entry| {
                    (
                        entry.sequence.unwrap_or_default(),
                        format!("{:?} {}", entry.status, entry.location),
                    )
                });
                self.world.saw_history(number.as_str(), seen.collect());
            }
            Err(error) => self.missing(&id, &error),
        }
    }

    /// What was acknowledged is found, unless it was deleted since.
    fn missing(&self, id: &str, error: &Error) {
        let may_be_deleted = self.world.may_be_deleted(id);
        let is_missing = error.known_code() == Some(ErrorCode::ParcelNotFound);
        self.world.check(!is_missing || may_be_deleted, "acknowledged-lost", || id.to_owned());
    }

    async fn list(&mut self) {
        let call = self.world.next_call();
        let list = self.client.parcels().list().limit(20);
        if let Err(error) = CALL.scope(call, async { list.await }).await {
            self.failed(call, &error);
        }
    }

    /// A label is the same bytes each time.
    async fn print_twice(&mut self) {
        let Some((id, number)) = self.some_number() else { return };
        let mut printed = Vec::new();
        for _ in 0..2 {
            let reprints = self.world.facts().orders[&id].reprints.len();
            let call = self.world.next_call();
            let label = self.client.labels().download(&number, LabelFormat::Zpl).bytes();
            if let Ok(label) = CALL.scope(call, label).await {
                printed.push((reprints, label));
            }
        }
        // A reprint that was not heard of, or a manifest, changes what is printed.
        if let [(before, first), (after, second)] = printed.as_slice()
            && before == after
            && first.len() != second.len()
        {
            self.world.step("a label has changed");
        }
    }

    /// A carrier reports a scan of any parcel, and again when it does not hear.
    async fn report(&mut self) {
        let Some((_, number)) = self.some_number() else { return };
        let statuses = [
            "PICKED_UP",
            "CUSTOMS_CLEARANCE",
            "CUSTOMS_HOLD",
            "IN_TRANSIT",
            "OUT_FOR_DELIVERY",
            "DELIVERY_ATTEMPTED",
            "DELIVERED",
            "RETURN_TO_SENDER",
        ];
        // As they come; or to the door, and then one that must not move it any more.
        let scans: Vec<_> = if self.rng.bool() {
            ["IN_TRANSIT", "DELIVERED", "IN_TRANSIT"].map(|status| (status, 0)).to_vec()
        } else {
            let rng = &mut self.rng;
            let count = rng.usize(1..=4);
            (0..count).map(|_| (statuses[rng.usize(..8)], rng.i64(..600_000))).collect()
        };
        for (status, ago) in scans {
            sleep(Duration::from_millis(10)).await;
            let at = self.world.clocks.wall().plus(-ago).to_utc().to_rfc3339();
            // The place is another for each scan, so that one that is taken twice is seen.
            let event = self.id();
            let place = format!("{SCANNED_AT}{event}, EC");
            let event = json!({ "eventId": event, "trackingNumber": number.as_str(),
                "status": status, "occurredAt": at, "location": place });
            let body = json!({ "events": [event] });
            let mut server = || self.rng.usize(..self.world.options.servers);
            let (one, other) = (server(), server());
            tokio::join!(self.fleet.report(one, &body), self.fleet.report(other, &body));
        }
    }
}
