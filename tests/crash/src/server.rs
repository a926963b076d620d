//! The real service on a database file, in this process and without sockets.

use std::{
    fmt::Debug,
    path::Path,
    pin::pin,
    sync::{Arc, atomic::AtomicBool},
    time::Duration,
};

use axum::{
    Router,
    body::Body,
    http::{Request, header::CONTENT_TYPE},
};
use futures_util::future::{Either, join_all, select};
use http_body_util::BodyExt as _;
use parcelo::Environment;
use parcelo_server::internals::{
    Actor, AllowedHosts, Api, AttemptResult, DeliverySlots, EndpointRequest, EndpointResponse, Ids,
    Limits, ManualClock, Millis, NewKeyRequest, Secrets, Service, Settings, Store,
    WebhookAllowance, WebhookEventKinds, router,
};
use tokio::runtime::{Builder, Runtime};
use tower::ServiceExt as _;

/// The time at which each service starts. Ids are derived from it, so the order of index entries depends on it too.
const START: Millis = Millis(1_795_000_000_000);

/// A service with a single-threaded runtime; the store has its own threads.
pub struct Server {
    runtime: Runtime,
    service: Arc<Service>,
    clock: Arc<ManualClock>,
    routes: Router,
}

/// A response of the API.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApiResponse {
    pub status: u16,
    pub body: Vec<u8>,
}

impl ApiResponse {
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

/// A POST request to the API.
#[derive(Debug, Clone)]
pub struct ApiRequest {
    pub path: String,
    pub body: String,
}

impl Server {
    /// Opens the service as the server program does, with ids from a seed. A new database gets its secret from the seed
    /// too, so the loss of a database's secret is noticed.
    pub fn open(file: &Path, seed: u64) -> Result<Self, String> {
        let runtime = Builder::new_current_thread().enable_time().build().unwrap();
        let store = Store::open(file, [seed as u8; 32]).map_err(|error| error.to_string())?;
        let (clock, ids) = (Arc::new(ManualClock::at(START)), Arc::new(Ids::seeded(seed)));
        let settings = settings(Secrets::derive(&store.secret()));
        let service = Arc::new(Service::new(store, Arc::clone(&clock) as _, ids, settings));
        let ready = Arc::new(AtomicBool::new(true));
        let api = Api { service: Arc::clone(&service), environment: Environment::Sandbox, ready };
        let server = Self { runtime, service, clock, routes: router(api) };
        match server.finish_previous_work() {
            Ok(()) => Ok(server),
            Err(error) => {
                // A process would end here; this one waits until the store's threads have ended.
                server.close();
                Err(error)
            }
        }
    }

    /// Finishes the work that an earlier server left incomplete.
    fn finish_previous_work(&self) -> Result<(), String> {
        self.runtime.block_on(async {
            let ended = self.service.end_leases().await.map_err(debug_text);
            ended.and(self.service.store().resume_resets().await.map_err(debug_text))
        })
    }

    /// Issues an API key, and sets up a webhook endpoint for several kinds of events.
    pub fn set_up(&self) -> Result<String, String> {
        let key = NewKeyRequest::unrestricted("default", Environment::Sandbox, "Crashes");
        self.runtime.block_on(async {
            let now = self.service.now();
            let issued = self.service.issuer(Actor::Server).issue_api_key(key, now).await;
            let (key, record) = issued.map_err(debug_text)?;
            let endpoint = EndpointRequest {
                tenant: record.scope.tenant,
                url: "http://127.0.0.1:9/".to_owned(),
                kinds: WebhookEventKinds::from_codes([
                    "parcel.created",
                    "parcel.voided",
                    "manifest.submitted",
                ])
                .unwrap(),
                allowed_hosts: AllowedHosts::PublicAndLoopback,
            };
            self.service.endpoints(Actor::Server).set(endpoint, now).await.map_err(debug_text)?;
            Ok(key.secret().to_owned())
        })
    }

    /// Sends requests together while the writer pauses, so that they share one commit.
    pub fn send(&self, api_requests: &[ApiRequest], api_key: &str) -> Vec<ApiResponse> {
        self.runtime.block_on(async {
            let pause = self.service.store().pause_writes().await;
            let mut responses =
                pin!(join_all(api_requests.iter().map(|request| self.send_one(request, api_key))));
            // After this many turns each request is in the writer's queue, or all have been answered without it.
            for _ in api_requests {
                let turn = pin!(tokio::task::yield_now());
                if let Either::Left((responses, _)) = select(&mut responses, turn).await {
                    return responses;
                }
            }
            drop(pause);
            responses.await
        })
    }

    async fn send_one(&self, api_request: &ApiRequest, api_key: &str) -> ApiResponse {
        let request = Request::post(&api_request.path).header("x-api-key", api_key);
        let request = request.header(CONTENT_TYPE, "application/json");
        let request = request.body(Body::from(api_request.body.clone())).unwrap();
        let response = self.routes.clone().oneshot(request).await.unwrap();
        let status = response.status().as_u16();
        let body = response.into_body().collect().await.unwrap().to_bytes().to_vec();
        ApiResponse { status, body }
    }

    /// Takes the steps that are due this many milliseconds after the start. A step that fails is taken the next time.
    pub fn take_steps(&self, millis: i64) {
        self.clock.set(START.plus(millis));
        let _ = self.runtime.block_on(self.service.take_due_steps());
    }

    /// Leases the webhook events that are due, and settles at most `limit` of them as delivered.
    pub fn deliver(&self, limit: usize) {
        self.runtime.block_on(async {
            let leased = self.service.lease_deliveries(&DeliverySlots::new(10)).await;
            for event in leased.into_iter().flatten().take(limit) {
                let Ok(Some(delivery)) = self.service.prepare_delivery(event).await else { return };
                let response =
                    EndpointResponse { status: 204, retry_after: None, body_prefix: Vec::new() };
                let at = self.service.now();
                let result = AttemptResult { at, millis: 1, response: Ok(response) };
                let _ = self.service.settle_delivery(delivery, result).await;
            }
        });
    }

    /// Waits until `is_done` returns `true`, while the store works in the background.
    pub fn wait_until(&self, is_done: impl Fn() -> bool) {
        self.runtime.block_on(async {
            while !is_done() {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        });
    }

    pub fn close(self) {
        self.runtime.block_on(self.service.store().clone().close());
    }
}

fn debug_text(error: impl Debug) -> String {
    format!("{error:?}")
}

fn settings(secrets: Secrets) -> Settings {
    Settings {
        limits: Limits { enforced: false, ..Limits::default() },
        webhooks: WebhookAllowance { sandbox_loopback: true, ..WebhookAllowance::default() },
        ..Settings::new("http://127.0.0.1", secrets)
    }
}
