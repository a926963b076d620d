//! The real service on a file, in this process and without sockets.

use std::{
    path::Path,
    sync::{Arc, OnceLock, atomic::AtomicBool},
};

use axum::{
    Router,
    body::Body,
    http::{Request, header::CONTENT_TYPE},
};
use futures_util::future::join_all;
use http_body_util::BodyExt as _;
use parcelo::{Environment, rules::Destinations};
use parcelo_server::internals::{
    Actor, Allowance, AllowedHosts, Api, AttemptResult, CarrierScope, Clock as _, Countries,
    DeliverySlots, EndpointAnswer, EndpointRequest, Ids, Kinds, LegacySchedule, Limits,
    ManualClock, Millis, NewKeyRequest, Secrets, Service, Settings, Site, Store, SystemClock,
    router,
};
use tokio::runtime::Runtime;
use tower::ServiceExt as _;

/// The time at which each service starts. Ids derive from it, and with them the order of index entries, so a recording
/// is the same only with the same start. The default is at most six hours ago: the binary has the machine's clock, and
/// idempotency keys live for a day.
static START: OnceLock<Millis> = OnceLock::new();
const DEFAULT_START_EVERY: i64 = 6 * Millis::HOUR;

/// Sets the start, or the default one, and returns it.
pub fn set_start(given: Option<i64>) -> i64 {
    let now = SystemClock.now().0;
    START.get_or_init(|| Millis(given.unwrap_or(now - now % DEFAULT_START_EVERY))).0
}

fn start() -> Millis {
    Millis(set_start(None))
}

/// Returns the moment this many milliseconds after the start, as the API writes it.
pub fn time(after: i64) -> String {
    start().plus(after).to_utc().to_rfc3339()
}

/// A service, with a runtime of one thread beside the store's own.
pub struct EmbeddedServer {
    pub runtime: Runtime,
    pub service: Arc<Service>,
    clock: Arc<ManualClock>,
    routes: Router,
}

/// An answer of the API.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    pub status: u16,
    pub body: Vec<u8>,
}

/// A request of the API that can be repeated.
#[derive(Debug, Clone)]
pub struct Post {
    pub path: String,
    /// The header with the kind of key that the request needs.
    pub header: &'static str,
    pub body: String,
}

/// The keys to the service.
#[derive(Debug, Clone, Default)]
pub struct Keys {
    pub api: String,
    pub carrier: String,
}

impl Keys {
    pub fn for_header(&self, header: &str) -> &str {
        if header == "x-api-key" { &self.api } else { &self.carrier }
    }
}

impl EmbeddedServer {
    /// Opens the service as a server does, with ids from a seed. A new database gets its secret from the seed too, so
    /// that a database which has lost its secret is noticed.
    pub fn open(file: &Path, seed: u64) -> Result<Self, String> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let store = Store::open(file, [seed as u8; 32]).map_err(|error| error.to_string())?;
        let (clock, ids) = (Arc::new(ManualClock::at(start())), Arc::new(Ids::seeded(seed)));
        let settings = settings(Secrets::derive(&store.secret()));
        let service = Arc::new(Service::new(store, Arc::clone(&clock) as _, ids, settings));
        let ready = Arc::new(AtomicBool::new(true));
        let api = Api { service: Arc::clone(&service), environment: Environment::Sandbox, ready };
        let server = Self { runtime, service, clock, routes: router(api) };
        match server.finish_previous() {
            Ok(()) => Ok(server),
            Err(error) => {
                // A process would end here; this one waits until the store's threads have ended.
                server.close();
                Err(error)
            }
        }
    }

    /// Finishes the work that an earlier server left incomplete.
    fn finish_previous(&self) -> Result<(), String> {
        self.runtime.block_on(async {
            let ended = self.service.end_leases().await.map_err(|error| format!("{error:?}"));
            let resumed = self.service.store().resume_resets().await;
            ended.and(resumed.map_err(|error| error.to_string()))
        })
    }

    pub fn set_clock(&self, after: i64) {
        self.clock.set(start().plus(after));
    }

    /// Issues an API key and a carrier key, and sets up an endpoint for every kind of event.
    pub fn set_up(&self) -> Result<Keys, String> {
        self.runtime.block_on(async {
            let now = self.service.now();
            let (key, record) = self
                .service
                .issuer(Actor::Server)
                .issue_api_key(new_key(), now)
                .await
                .map_err(|error| format!("{error:?}"))?;
            let (carrier, _) = self
                .service
                .issuer(Actor::Server)
                .issue::<CarrierScope>("Carrier".to_owned(), Environment::Sandbox, now)
                .await
                .map_err(|error| format!("{error:?}"))?;
            let names = ["parcel.created", "parcel.voided", "manifest.submitted"];
            let kinds = Kinds::from_codes(names).unwrap();
            let url = "http://127.0.0.1:9/".to_owned();
            let tenant = record.scope.tenant;
            let endpoint = EndpointRequest {
                tenant,
                url,
                kinds,
                allowed_hosts: AllowedHosts::PublicAndLoopback,
            };
            let set = self.service.endpoints(Actor::Server).set(endpoint, now).await;
            set.map_err(|error| format!("{error:?}"))?;
            Ok(Keys { api: key.secret().to_owned(), carrier: carrier.secret().to_owned() })
        })
    }

    pub fn send(&self, post: &Post, keys: &Keys) -> Answer {
        self.runtime.block_on(ask(self.routes.clone(), post, keys.for_header(post.header)))
    }

    /// Sends requests together while the writer pauses, so that they share one commit.
    pub fn send_together(&self, posts: &[Post], keys: &Keys) -> Vec<Answer> {
        self.runtime.block_on(async {
            let pause = self.service.store().pause_writes().await;
            let requests = posts
                .iter()
                .map(|post| ask(self.routes.clone(), post, keys.for_header(post.header)));
            let mut requests = std::pin::pin!(join_all(requests));
            // After this many turns each request is in the writer's queue.
            for _ in 0..posts.len() {
                let turn = std::pin::pin!(tokio::task::yield_now());
                let _ = futures_util::future::select(&mut requests, turn).await;
            }
            drop(pause);
            requests.await
        })
    }

    /// Takes the steps that are due by then.
    pub fn take_steps(&self, after: i64) {
        self.set_clock(after);
        // A step that fails is taken the next time.
        let _ = self.runtime.block_on(self.service.take_due_steps());
    }

    /// Leases the events that are due and settles the first of them as delivered.
    pub fn deliver(&self, limit: usize) {
        self.runtime.block_on(async {
            let Ok(events) = self.service.lease_deliveries(&DeliverySlots::new(10)).await else {
                return;
            };
            for event in events.into_iter().take(limit) {
                let Ok(Some(delivery)) = self.service.prepare_delivery(event).await else { return };
                let answer =
                    EndpointAnswer { status: 204, retry_after: None, body_prefix: Vec::new() };
                let outcome =
                    AttemptResult { at: self.service.now(), millis: 1, answer: Ok(answer) };
                let _ = self.service.settle_delivery(delivery, outcome).await;
            }
        });
    }

    /// Waits until no reset is under way.
    pub fn finish_resets(&self, is_finished: impl Fn() -> bool) {
        self.runtime.block_on(async {
            while !is_finished() {
                tokio::time::sleep(std::time::Duration::from_millis(1)).await;
            }
        });
    }

    pub fn close(self) {
        self.runtime.block_on(self.service.store().clone().close());
    }
}

async fn ask(routes: Router, post: &Post, key: &str) -> Answer {
    let request = Request::post(&post.path).header(post.header, key);
    let request = request.header(CONTENT_TYPE, "application/json");
    let answer =
        routes.oneshot(request.body(Body::from(post.body.clone())).unwrap()).await.unwrap();
    let status = answer.status().as_u16();
    let body = answer.into_body().collect().await.unwrap().to_bytes().to_vec();
    Answer { status, body }
}

fn new_key() -> NewKeyRequest {
    NewKeyRequest {
        account: "default".to_owned(),
        environment: Environment::Sandbox,
        name: "Crashes".to_owned(),
        countries: Countries::All,
        ip_list: Vec::new(),
        rate_limit: None,
    }
}

fn settings(secrets: Secrets) -> Settings {
    let site = |environment| Site {
        environment,
        base_url: Some("http://127.0.0.1".to_owned()),
        labels_base_url: "http://127.0.0.1/files".to_owned(),
    };
    Settings {
        production: site(Environment::Production),
        sandbox: site(Environment::Sandbox),
        destinations: Destinations::All,
        limits: Limits { enforced: false, ..Limits::default() },
        secrets,
        webhooks: Allowance { sandbox_loopback: true, ..Allowance::default() },
        trusted_proxies: Vec::new(),
        database_options: None,
        legacy: LegacySchedule::default(),
    }
}
