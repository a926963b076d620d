//! The servers: they start, do what falls due, and end in the middle of it. What they share is the store.

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use axum::Router;
use bytes::Bytes;
use fastrand::Rng;
use http::{Request, StatusCode};
use http_body_util::BodyExt;
use parcelo::{model::header, rules::Destinations, transport::Phase};
use serde_json::Value;
use tokio::{
    task::{AbortHandle, JoinHandle},
    time::sleep,
};
use tower::ServiceExt;

use super::{
    answers::{Answer, Asked},
    network::to_routes,
    receivers::Receivers,
    world::World,
};
use crate::{
    domain::{
        Secrets, Site,
        legacy::Era,
        webhooks::{Allowance, IN_FLIGHT},
    },
    http::{Api, router},
    ids::Ids,
    service::{Limits, Service, Settings},
    store::disturbed::{Disturb, Disturbance, Fault},
    webhook::Dispatcher,
};

/// How often a busy server looks for what is due.
const TICK: Duration = Duration::from_millis(500);
/// The same while days pass and hardly anything is.
const IDLE_TICK: Duration = Duration::from_secs(6 * 3_600);
/// How long a lease of an event lasts.
const LEASE: Duration = Duration::from_secs(60);
/// How often it purges.
const PURGE_EVERY: Duration = Duration::from_secs(20);

/// All servers.
#[derive(Debug)]
pub(super) struct Fleet {
    pub(super) world: Arc<World>,
    receivers: Arc<Receivers>,
    places: Mutex<Vec<Option<Arc<Running>>>>,
    started: AtomicU64,
    is_idle: Arc<AtomicBool>,
    is_cut_off: AtomicBool,
}

/// A server that runs.
#[derive(Debug)]
struct Running {
    number: u64,
    service: Arc<Service>,
    routes: Router,
    tasks: Mutex<Vec<AbortHandle>>,
}

/// Ends a task with its connection.
struct Connection<T>(JoinHandle<T>);

impl<T> Drop for Connection<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Fleet {
    pub(super) fn new(world: Arc<World>, receivers: Arc<Receivers>) -> Arc<Self> {
        let places = Mutex::new((0..world.options.servers).map(|_| None).collect());
        let (is_idle, is_cut_off) = (Arc::default(), AtomicBool::new(false));
        Arc::new(Self { world, receivers, places, started: AtomicU64::new(0), is_idle, is_cut_off })
    }

    pub(super) fn is_cut_off(&self) -> bool {
        self.is_cut_off.load(Ordering::Relaxed)
    }

    /// Whether all requests are lost on their way.
    pub(super) fn cut_off(&self, is_cut_off: bool) {
        self.world.step(&format!("cut off: {is_cut_off}"));
        self.is_cut_off.store(is_cut_off, Ordering::Relaxed);
    }

    /// Whether days are to pass.
    pub(super) fn set_idle(&self, is_idle: bool) {
        self.is_idle.store(is_idle, Ordering::Relaxed);
    }

    fn running(&self, place: usize) -> Option<Arc<Running>> {
        self.places.lock().unwrap_or_else(PoisonError::into_inner).get(place).cloned().flatten()
    }

    /// A service for what an operator does.
    pub(super) fn service(&self) -> Arc<Service> {
        let places = self.places.lock().unwrap_or_else(PoisonError::into_inner);
        let running = places.iter().flatten().next();
        running.map(|running| Arc::clone(&running.service)).unwrap()
    }

    /// Starts a server.
    pub(super) async fn start(&self, place: usize) {
        let number = self.started.fetch_add(1, Ordering::Relaxed);
        self.world.step(&format!("server {number} starts"));
        let service = Arc::new(self.new_service(number));
        if self.world.options.servers == 1 {
            // As a server of a file does. Another one's leases are its own.
            let _ = service.end_leases().await;
        }
        let _ = service.bring_deliveries_forward().await;
        let api = Api {
            service: Arc::clone(&service),
            environment: self.world.options.environment(),
            ready: Arc::new(AtomicBool::new(true)),
        };
        let receivers = Arc::clone(&self.receivers);
        let dispatcher = Dispatcher::over(receivers, Arc::clone(&service), IN_FLIGHT);
        let running = Arc::new(Running {
            number,
            service: Arc::clone(&service),
            routes: router(api),
            tasks: Mutex::default(),
        });
        let jobs = [
            tokio::spawn(run_jobs(self.pace(), Arc::clone(&service))).abort_handle(),
            tokio::spawn(send_webhooks(self.pace(), service, dispatcher)).abort_handle(),
        ];
        running.tasks.lock().unwrap_or_else(PoisonError::into_inner).extend(jobs);
        self.places.lock().unwrap_or_else(PoisonError::into_inner)[place] = Some(running);
    }

    fn pace(&self) -> Pace {
        Pace { world: Arc::clone(&self.world), is_idle: Arc::clone(&self.is_idle) }
    }

    fn new_service(&self, number: u64) -> Service {
        let world = &self.world;
        let site = |environment| Site {
            environment,
            base_url: Some("https://parcelo.example".to_owned()),
            labels_base_url: "https://parcelo.example/files".to_owned(),
        };
        let limit = world.options.limit;
        let settings = Settings {
            production: site(parcelo::Environment::Production),
            sandbox: site(parcelo::Environment::Sandbox),
            destinations: Destinations::All,
            limits: Limits { production: limit, sandbox: limit, ..Limits::default() },
            secrets: Secrets::derive(&world.store.secret()),
            webhooks: Allowance::default(),
            trusted_proxies: Vec::new(),
            legacy: Era::default(),
        };
        let ids = Ids::seeded(world.random("ids", usize::try_from(number).unwrap()).u64(..));
        let clock = Arc::new(world.clocks.guarded());
        Service::new(world.store.clone(), clock, Arc::new(ids), settings)
    }

    /// Ends a server as a crash does: nothing that it was doing goes on.
    pub(super) fn crash(&self, place: usize) {
        let running = self.places.lock().unwrap_or_else(PoisonError::into_inner)[place].take();
        let Some(running) = running else { return };
        self.world.step(&format!("server {} is gone", running.number));
        self.world.disturbed();
        for task in running.tasks.lock().unwrap_or_else(PoisonError::into_inner).drain(..) {
            task.abort();
        }
    }

    /// Lets a server answer a request.
    pub(super) async fn handle(
        &self,
        place: usize,
        request: &Request<Bytes>,
        call: u64,
    ) -> Result<Answer, Phase> {
        let running = self.running(place).ok_or(Phase::NotSent)?;
        let asked = self.asked(&running, request, call);
        let (world, routes, request) =
            (Arc::clone(&self.world), running.routes.clone(), to_routes(request));
        self.world.asked(&asked);
        let handled = tokio::spawn(async move {
            let Ok(response) = routes.oneshot(request).await;
            let (head, body) = response.into_parts();
            let body = body.collect().await.unwrap().to_bytes();
            let answer = Answer { status: head.status, headers: head.headers, body };
            world.answered(&asked, &answer);
            answer
        });
        {
            let mut tasks = running.tasks.lock().unwrap_or_else(PoisonError::into_inner);
            tasks.retain(|task| !task.is_finished());
            tasks.push(handled.abort_handle());
        }
        let _begun = Begun(Arc::clone(&self.world));
        let mut connection = Connection(handled);
        match (&mut connection.0).await {
            Ok(answer) => Ok(answer),
            Err(error) => {
                self.world.check(!error.is_panic(), "panic", || error.to_string());
                Err(Phase::MaybeSent)
            }
        }
    }

    /// Sends an order once more past the SDK, which may know that its key has expired.
    pub(super) async fn ask(&self, shipper: usize, order: &Value) -> Option<StatusCode> {
        let key = self.world.facts().shippers[shipper].key.secret().to_owned();
        let request = Request::post("https://parcelo.example/api/v1/orders/create")
            .header(header::API_KEY, key)
            .header("content-type", "application/json");
        let request = request.body(Bytes::from(order.to_string())).unwrap();
        let call = self.world.next_call();
        self.handle(0, &request, call).await.ok().map(|answer| answer.status)
    }

    /// A carrier reports scans to a server; whether it does so again is its own choice.
    pub(super) async fn report(&self, place: usize, body: &Value) {
        let key = self.world.facts().carrier.clone();
        let request = Request::post("https://parcelo.example/carrier/v1/events")
            .header(header::CARRIER_KEY, key)
            .header("content-type", "application/json");
        let request = request.body(Bytes::from(body.to_string())).unwrap();
        let _ = self.handle(place, &request, 0).await;
    }

    /// Waits until no request is being handled any more.
    pub(super) async fn drained(&self) {
        while self.world.facts().in_flight > 0 {
            sleep(TICK).await;
        }
    }

    fn asked(&self, running: &Running, request: &Request<Bytes>, call: u64) -> Asked {
        let facts = self.world.facts();
        let key = request.headers().get(header::API_KEY).and_then(|key| key.to_str().ok());
        let shipper = facts.shippers.iter().position(|it| Some(it.key.secret()) == key);
        let body: Value = serde_json::from_slice(request.body()).unwrap_or_default();
        let jumps = facts.answers.jumps;
        drop(facts);
        Asked {
            shipper,
            call,
            method: request.method().clone(),
            path: request.uri().path().to_owned(),
            key: body["idempotencyKey"].as_str().map(str::to_owned),
            body,
            server: running.number,
            now: running.service.now(),
            expiry: running.service.expiry(),
            jumps,
        }
    }
}

/// A request that is being handled.
struct Begun(Arc<World>);

impl Drop for Begun {
    fn drop(&mut self) {
        self.0.facts().in_flight -= 1;
    }
}

/// How long a server rests between two looks.
struct Pace {
    world: Arc<World>,
    is_idle: Arc<AtomicBool>,
}

impl Pace {
    /// Rests until the next look; while days pass, until something is due.
    async fn rest(&self, service: &Service) {
        if !self.is_idle.load(Ordering::Relaxed) {
            return sleep(TICK).await;
        }
        let now = self.world.clocks.wall();
        let (step, delivery) = (service.next_due().await, service.next_delivery().await);
        let due = [step.ok().flatten(), delivery.ok().flatten()].into_iter().flatten().min();
        // What is due already was looked at just now; its moment comes again after a lease at the latest.
        let until = due.map_or(IDLE_TICK, |due| {
            u64::try_from(due.0 - now.0).map_or(LEASE, Duration::from_millis)
        });
        sleep(until.clamp(TICK, IDLE_TICK)).await;
    }
}

/// What a server does beside answering, as `process::upkeep` does.
async fn run_jobs(pace: Pace, service: Arc<Service>) {
    let mut purged = None;
    loop {
        let _ = service.watch_clock().await;
        let _ = service.take_due_steps().await;
        let _ = service.tend_search().await;
        let now = pace.world.clocks.elapsed();
        if purged.is_none_or(|purged| now >= purged + PURGE_EVERY) {
            purged = Some(now);
            let _ = service.keep_key_uses().await;
            let _ = service.keep_legacy_uses().await;
            let _ = service.store().resume_resets().await;
            service.purge().await;
        }
        pace.rest(&service).await;
    }
}

/// Sends what is due. Not by `Dispatcher::run`, whose choice between what is ready is not the seed's.
async fn send_webhooks(pace: Pace, service: Arc<Service>, dispatcher: Dispatcher) {
    loop {
        let _ = dispatcher.deliver_due().await;
        service.release_stranded().await;
        pace.rest(&service).await;
    }
}

/// What goes wrong in the store.
pub(super) struct StoreFaults {
    world: Arc<World>,
    rng: Mutex<Rng>,
}

impl StoreFaults {
    pub(super) fn new(world: &Arc<World>) -> Self {
        Self { world: Arc::clone(world), rng: Mutex::new(world.random("store", 0)) }
    }
}

impl Disturb for StoreFaults {
    fn disturb(&self, method: &'static str) -> Disturbance {
        // They wait for a notification, or ask nothing of a database.
        if matches!(method, "outbox_changed" | "next_parcel_row" | "truncate_log") {
            return Disturbance::default();
        }
        let mut rng = self.rng.lock().unwrap_or_else(PoisonError::into_inner);
        let options = &self.world.options;
        let mut pause = || match rng.u32(..1_000) {
            drawn if drawn * 50 < options.stalls => Duration::from_millis(rng.u64(1_000..4_000)),
            drawn if drawn < options.stalls => Duration::from_millis(rng.u64(1..30)),
            _ => Duration::ZERO,
        };
        let (before, after) = (pause(), pause());
        let faults = [Fault::NotDone, Fault::AnswerLost, Fault::NoAnswer];
        let fault = (rng.u32(..1_000) < options.store).then(|| faults[rng.usize(..3)]);
        if fault.is_some() {
            self.world.disturbed();
        }
        Disturbance { before, after, fault }
    }
}
