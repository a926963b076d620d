//! Starting a mock server: what can be chosen, and what it is made of.

use std::{
    net::SocketAddr,
    sync::{Arc, atomic::AtomicBool},
};

use axum::{
    extract::Request,
    middleware::{Next, from_fn},
    response::Response,
};
use parcelo::{Environment, rules::Destinations};

use super::{Clock, MockServer, control, exchange::Desk, pace::MovableClock};
use crate::{
    domain::{Secrets, Site, legacy::Era, site::local_url, webhooks::Allowance},
    http::{Stop, host_from_headers},
    ids::Ids,
    service::{Limits, Service, Settings, called_at},
    store::Store,
    webhook::Dispatcher,
};

/// How many requests are remembered.
const LOG: usize = 10_000;

/// How a [`MockServer`] is to be started.
#[derive(Debug, Clone)]
pub struct Builder {
    clock: Clock,
    seed: u64,
    log: usize,
    base_url: Option<String>,
    limits: Option<bool>,
    verifies: bool,
}

impl Builder {
    pub(super) fn new() -> Self {
        let clock = Clock::frozen("2026-01-05T08:00:00Z");
        Self { clock, seed: 0, log: LOG, base_url: None, limits: None, verifies: false }
    }

    /// Sets the clock.
    #[must_use]
    pub fn clock(self, clock: Clock) -> Self {
        Self { clock, ..self }
    }

    /// Sets the seed, from which ids, tracking numbers and keys follow.
    #[must_use]
    pub fn seed(self, seed: u64) -> Self {
        Self { seed, ..self }
    }

    /// Sets how many requests are remembered, the newest; 0 is none. 10,000 unless set.
    #[must_use]
    pub fn request_log(self, most: usize) -> Self {
        Self { log: most, ..self }
    }

    /// Sets the address that stands in answers and on labels, in the place of the server's own with
    /// its changing port: with it, answers are the same in every run, byte by byte.
    #[must_use]
    pub fn base_url(self, address: &str) -> Self {
        Self { base_url: Some(address.trim_end_matches('/').to_owned()), ..self }
    }

    /// Sets whether keys and addresses are held to the service's limits of requests a second; unless
    /// set, they are where the clock runs. A limit of a key's own always holds.
    #[must_use]
    pub fn rate_limits(self, enforced: bool) -> Self {
        Self { limits: Some(enforced), ..self }
    }

    /// Calls [`MockServer::verify`] when the server is dropped, unless the test fails already.
    #[must_use]
    pub fn verify_on_drop(self) -> Self {
        Self { verifies: true, ..self }
    }

    /// Starts the server.
    ///
    /// # Panics
    ///
    /// When no port of `127.0.0.1` can be listened on.
    pub async fn start(self) -> MockServer {
        let address = SocketAddr::from(([127, 0, 0, 1], 0));
        #[expect(clippy::expect_used, reason = "a test cannot go on; documented")]
        let socket =
            tokio::net::TcpListener::bind(address).await.expect("a free port on 127.0.0.1");
        #[expect(clippy::expect_used, reason = "a bound socket has an address")]
        let url = format!("http://{}", socket.local_addr().expect("a bound socket has an address"));
        let server = self.on(url);
        let routes = server.routes();
        server.run(socket, routes);
        server
    }

    /// Starts the server on an address of the caller's choice, with controls under `/__mock/` for
    /// programs in any language. It stops with the process. Unless [`Builder::base_url`] was set, the
    /// links in an answer lead to the host that its request named.
    ///
    /// Errors when the address cannot be listened on.
    pub async fn start_controlled(self, address: SocketAddr) -> std::io::Result<Arc<MockServer>> {
        let socket = tokio::net::TcpListener::bind(address).await?;
        let is_named = self.base_url.is_some();
        let server = Arc::new(self.on(local_url(socket.local_addr()?)));
        let routes = control::beside(server.routes(), Arc::clone(&server));
        let routes = if is_named { routes } else { routes.layer(from_fn(as_called)) };
        server.run(socket, routes);
        Ok(server)
    }

    fn on(self, url: String) -> MockServer {
        let ids = Arc::new(Ids::seeded(self.seed));
        let clock = Arc::new(MovableClock::from(&self.clock));
        let base_url = self.base_url.as_ref().unwrap_or(&url);
        let site = |environment| Site {
            environment,
            base_url: base_url.clone(),
            labels_host: format!("{base_url}/files"),
        };
        #[expect(clippy::expect_used, reason = "SQLite opens a database in memory")]
        let store = Store::memory(ids.array()).expect("a store in memory");
        let settings = Settings {
            production: site(Environment::Production),
            sandbox: site(Environment::Sandbox),
            destinations: Destinations::All,
            limits: Limits { enforced: self.limits.unwrap_or(clock.runs()), ..Limits::default() },
            secrets: Secrets::derive(&store.secret()),
            webhooks: Allowance { sandbox_loopback: true, ..Allowance::default() },
            trusted_proxies: Vec::new(),
            legacy: Era::default(),
        };
        let now: Arc<dyn crate::clock::Clock> = clock.clone();
        let desk = Arc::new(Desk::new(self.seed, self.log, clock.clone()));
        let service = Arc::new(Service::new(store, now, Arc::clone(&ids), settings));
        // One message at a time: the inbox gets them in the same order in every run.
        let dispatcher = Arc::new(Dispatcher::new(Arc::clone(&service), 1));
        let (stop, sends, verifies) = (Stop::default(), AtomicBool::default(), self.verifies);
        MockServer { service, dispatcher, ids, clock, desk, url, stop, sends, verifies }
    }
}

/// Lets links lead to the host that was called: nobody but the caller knows what this server's is.
async fn as_called(request: Request, next: Next) -> Response {
    match host_from_headers(request.headers()) {
        Some(host) => called_at(format!("http://{host}"), next.run(request)).await,
        None => next.run(request).await,
    }
}
