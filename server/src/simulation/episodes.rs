//! A run from its beginning to its end: busy episodes in which things go wrong, the days between them, and at last a
//! time in which nothing goes wrong, after which everything must be settled.

use std::{sync::Arc, time::Duration};

use fastrand::Rng;
use http::StatusCode;
use parcelo::{Client, CountryCode};
use serde_json::Value;
use tokio::time::sleep;

use super::{
    clients::{Worker, client},
    options::Options,
    receivers::Receivers,
    servers::{Fleet, StoreFaults},
    world::{Shipper, World},
};
use crate::{
    clock::Millis,
    domain::{
        Countries,
        credentials::CarrierScope,
        webhooks::{AllowedHosts, DisabledBy, Kinds},
    },
    service::{EndpointRequest, NewKeyRequest},
    store::{EventsToReplay, disturbed::disturb_by},
};

const HOUR: Duration = Duration::from_secs(3_600);
const DAY: Duration = Duration::from_secs(86_400);
/// How often the store is looked through while things go wrong.
const AUDIT_EVERY: Duration = Duration::from_secs(10);
/// The longest pause between two attempts at a delivery, and the next one, which succeeds.
pub(super) const SETTLED_AFTER: Duration = Duration::from_secs(3 * 86_400);
/// Held events are replayed up to this age.
pub(super) const REPLAYED: i64 = 29 * 24 * Millis::HOUR;

struct Run {
    world: Arc<World>,
    fleet: Arc<Fleet>,
    clients: Vec<Client>,
    rng: Rng,
}

/// Does what follows from the options.
pub(super) async fn run(options: Options) -> Arc<World> {
    let world = Arc::new(World::new(options));
    let receivers = Receivers::new(&world);
    let fleet = Fleet::new(Arc::clone(&world), receivers);
    for place in 0..options.servers {
        fleet.start(place).await;
    }
    set_up(&fleet).await;
    let clients: Vec<_> = (0..options.tenants).map(|shipper| client(&fleet, shipper)).collect();
    let rng = world.random("run", 0);
    let mut run = Run { world: Arc::clone(&world), fleet, clients, rng };
    run.all().await;
    disturb_by(None);
    for place in 0..options.servers {
        run.fleet.crash(place);
    }
    world
}

/// The shippers with their keys and webhooks, and a carrier.
async fn set_up(fleet: &Fleet) {
    let (service, world) = (fleet.service(), &fleet.world);
    let (now, environment) = (service.now(), world.options.environment());
    for number in 0..world.options.tenants {
        let request = NewKeyRequest {
            account: format!("shop-{number}"),
            environment,
            name: "Simulated".to_owned(),
            // The first ships to one country only.
            countries: if number == 0 {
                Countries::Only(vec![CountryCode::EC])
            } else {
                Countries::All
            },
            ip_list: Vec::new(),
            rate_limit: None,
        };
        let (key, record) = service
            .issuer(crate::domain::audit::Actor::Server)
            .issue_api_key(request, now)
            .await
            .unwrap();
        let tenant = record.scope.tenant;
        let url = format!("https://shop-{number}.example/parcelo");
        let kinds = if number == 1 { "parcel.created" } else { "parcel.voided" };
        let kinds = Kinds::named([kinds]).unwrap();
        let request = EndpointRequest { tenant, url, kinds, reach: AllowedHosts::Everywhere };
        let endpoint =
            service.endpoints(crate::domain::audit::Actor::Server).set(request, now).await.unwrap();
        // Long enough to stand in no random id or signature: a tag of four letters did, in one of 10,000 seeds.
        let tag = format!("zqx{number}xqw");
        let shipper = Shipper { tenant, key, tag, webhook: endpoint.secret };
        world.facts().shippers.push(shipper);
    }
    let name = "Carrier".to_owned();
    let issued = service
        .issuer(crate::domain::audit::Actor::Server)
        .issue::<CarrierScope>(name, environment, now)
        .await;
    issued.unwrap().0.secret().clone_into(&mut world.facts().carrier);
}

impl Run {
    async fn all(&mut self) {
        let workers = self.world.options.workers;
        let worker = |number: usize| {
            let shipper = number % self.world.options.tenants;
            Worker::new(&self.fleet, self.clients[shipper].clone(), (shipper, number))
        };
        let mut workers: Vec<_> = (0..workers).map(worker).collect();
        for _ in 0..self.world.options.episodes {
            workers = self.episode(workers).await;
            if self.world.is_over() {
                return;
            }
            self.between().await;
            if self.world.is_over() {
                return;
            }
        }
        self.settle().await;
    }

    /// A busy time. Its faults are over when it is.
    async fn episode(&mut self, workers: Vec<Worker>) -> Vec<Worker> {
        self.world.set_calm(false);
        disturb_by(Some(Arc::new(StoreFaults::new(&self.world))));
        let tasks: Vec<_> = workers.into_iter().map(|worker| tokio::spawn(worker.work())).collect();
        let trouble = tokio::spawn(trouble(Arc::clone(&self.fleet), self.rng.fork()));
        while !self.world.is_over() && !tasks.iter().all(tokio::task::JoinHandle::is_finished) {
            sleep(AUDIT_EVERY).await;
            self.world.audit();
        }
        if self.world.is_over() {
            trouble.abort();
            tasks.iter().for_each(tokio::task::JoinHandle::abort);
            return Vec::new();
        }
        trouble.await.unwrap();
        disturb_by(None);
        self.fleet.drained().await;
        self.world.audit();
        let mut workers = Vec::new();
        for task in tasks {
            match task.await {
                Ok(worker) => workers.push(worker),
                Err(error) => self.world.violated("panic", error.to_string()),
            }
        }
        workers
    }

    /// The time until the next episode.
    async fn between(&mut self) {
        self.world.set_calm(self.rng.bool());
        self.fleet.set_idle(true);
        if !self.world.options.production && self.rng.u32(..3) == 0 {
            self.reset().await;
        }
        self.retry_expired().await;
        let days = self.rng.u32(..20);
        self.world.step(&format!("{days} days pass"));
        sleep(DAY * days + HOUR).await;
        self.world.audit();
        self.world.audit_schedule();
        self.turn_on().await;
        self.fleet.set_idle(false);
    }

    /// Sends an order again shortly before its key expires, and shortly after.
    async fn retry_expired(&mut self) {
        let shipper = self.rng.usize(..self.world.options.tenants);
        let given = repeatable(&self.world, shipper);
        let Some((order, not_before, not_after)) = self.rng.choice(given) else { return };
        self.sleep_until(not_before.plus(24 * Millis::HOUR - 30 * Millis::MINUTE)).await;
        let status = self.fleet.ask(shipper, &order).await;
        self.world
            .check(status == Some(StatusCode::OK), "key-expired-early", || format!("{status:?}"));
        self.sleep_until(not_after.plus(24 * Millis::HOUR + 20 * Millis::MINUTE)).await;
        let status = self.fleet.ask(shipper, &order).await;
        self.world
            .check(status == Some(StatusCode::CREATED), "key-outlives", || format!("{status:?}"));
    }

    async fn sleep_until(&self, moment: Millis) {
        let left = u64::try_from(moment.0 - self.world.clocks.wall().0).unwrap_or_default();
        sleep(Duration::from_millis(left)).await;
    }

    /// Empties a sandbox; the network may lose that, too.
    async fn reset(&mut self) {
        let shipper = self.rng.usize(..self.world.options.tenants);
        // What a proxy has doubled comes before it, or makes a parcel again.
        sleep(Duration::from_secs(60)).await;
        let given: Vec<_> =
            (0..self.world.options.tenants).map(|of| repeatable(&self.world, of).pop()).collect();
        for order in self.world.facts().orders.values_mut() {
            order.may_be_reset |= order.shipper == shipper;
        }
        let call = self.world.next_call();
        let client = self.clients[shipper].clone();
        let done = super::calls::CALL.scope(call, client.sandbox().reset()).await;
        self.fleet.drained().await;
        // A copy of the request may still be on its way.
        sleep(Duration::from_secs(60)).await;
        self.world.facts().answers.forget(shipper);
        self.world.step(&format!("reset of {shipper}: {}", done.is_ok()));
        if done.is_ok() {
            let tenant = self.world.facts().shippers[shipper].tenant;
            let left = self.world.store.creations().await.unwrap_or_default();
            let left = left.iter().filter(|parcel| parcel.tenant == tenant).count();
            self.world.check(left == 0, "reset-left-some", || format!("{left} of {shipper}"));
            self.repeat_after_reset(shipper, &given).await;
        }
    }

    /// The keys of the sandbox that was emptied are free, and those of the others are not.
    async fn repeat_after_reset(&self, emptied: usize, given: &[Option<(Value, Millis, Millis)>]) {
        for (shipper, given) in given.iter().enumerate() {
            let Some((order, _, _)) = given else { continue };
            let status = self.fleet.ask(shipper, order).await;
            let (expected, name) = if shipper == emptied {
                (StatusCode::CREATED, "reset-left-some")
            } else {
                (StatusCode::OK, "other-tenant")
            };
            self.world.check(status == Some(expected), name, || {
                format!("shipper {shipper}'s key after the reset of {emptied}: {status:?}")
            });
        }
    }

    /// An operator turns on every webhook that is off, and has sent what was missed.
    async fn turn_on(&self) {
        let (service, shippers) = (self.fleet.service(), self.world.facts().shippers.clone());
        // What is being sent at this moment is sent again.
        self.world.disturbed();
        for (number, shipper) in shippers.iter().enumerate() {
            let Ok(endpoint) =
                service.endpoints(crate::domain::audit::Actor::Server).find(shipper.tenant).await
            else {
                continue;
            };
            self.check_gone(number, endpoint.disabled);
            {
                let deliveries = &mut self.world.facts().deliveries;
                deliveries.gone.remove(&number);
                if endpoint.disabled.is_some() {
                    deliveries.was_off.insert(number, true);
                }
            }
            let now = service.now();
            self.world.facts().deliveries.was_replayed = true;
            let missed = EventsToReplay::MissedSince(now.plus(-REPLAYED));
            let _ =
                service.endpoints(crate::domain::audit::Actor::Server).enable(shipper.tenant).await;
            let _ = service
                .endpoints(crate::domain::audit::Actor::Server)
                .replay(shipper.tenant, missed, now)
                .await;
        }
    }

    /// An endpoint is off for good only if it has said so in an answer that counts.
    fn check_gone(&self, shipper: usize, disabled: Option<DisabledBy>) {
        let now = self.world.clocks.elapsed();
        let said = {
            let mut facts = self.world.facts();
            let said = facts.deliveries.may_be_gone.get(&shipper).copied();
            // An answer of just now may not have been written down.
            let is_over = |said: Duration| now >= said + Duration::from_secs(300);
            facts.deliveries.may_be_gone.retain(|of, said| *of != shipper || !is_over(*said));
            said
        };
        let is_right = disabled != Some(DisabledBy::Gone) || said.is_some();
        self.world.check(is_right, "late-answer-decides", || format!("endpoint of {shipper}"));
    }

    /// From here on nothing goes wrong: everything must come to its end.
    async fn settle(&mut self) {
        self.world.set_calm(true);
        disturb_by(None);
        self.turn_on().await;
        self.fleet.set_idle(true);
        sleep(SETTLED_AFTER).await;
        self.world.audit();
        self.world.audit_settled();
    }
}

/// What happens to all servers in an episode: one thing after the other, so that none hides what another would show.
async fn trouble(fleet: Arc<Fleet>, mut rng: Rng) {
    let options = fleet.world.options;
    let mut all = vec![0; options.crashes as usize];
    all.extend(vec![1; options.jumps as usize]);
    all.extend(vec![2; options.outages as usize]);
    rng.shuffle(&mut all);
    for what in all {
        sleep(Duration::from_millis(rng.u64(..15_000))).await;
        if fleet.world.is_over() {
            return;
        }
        match what {
            0 => {
                let place = rng.usize(..options.servers);
                fleet.crash(place);
                sleep(Duration::from_millis(rng.u64(..20_000))).await;
                fleet.start(place).await;
            }
            1 => jump(&fleet, &mut rng).await,
            _ => {
                fleet.cut_off(true);
                sleep(Duration::from_secs(rng.u64(20..90))).await;
                fleet.cut_off(false);
            }
        }
    }
}

/// The clock jumps, and is set right before anyone believes it. Meanwhile keys are as they were.
async fn jump(fleet: &Fleet, rng: &mut Rng) {
    let all = if rng.bool() { 25..40 } else { -20..25 };
    let millis = rng.i64(all.start * Millis::HOUR..all.end * Millis::HOUR);
    for by in [millis, -millis] {
        fleet.world.step(&format!("the clock jumps by {by}"));
        fleet.world.disturbed();
        fleet.world.facts().answers.jumps += 1;
        fleet.world.clocks.jump(by);
        sleep(Duration::from_secs(rng.u64(1..60))).await;
        for shipper in 0..fleet.world.options.tenants {
            if let Some((order, _, _)) = rng.choice(repeatable(&fleet.world, shipper)) {
                // What is wrong with the answer is seen where it leaves the server.
                let _ = fleet.ask(shipper, &order).await;
            }
        }
    }
}

/// Orders under keys that have hours left, and which the service gave a number: such a number is another each time.
fn repeatable(world: &World, shipper: usize) -> Vec<(Value, Millis, Millis)> {
    let now = world.clocks.unjumped();
    let given = world.facts().answers.creations(shipper).into_iter();
    let is_young = |from: Millis| from.0 + 20 * Millis::HOUR > now.0;
    given.filter(|(order, from, _)| order["trackingNumber"].is_null() && is_young(*from)).collect()
}
