//! The real service in a test: in memory, on a free port, with a clock to move.
//!
//! Not an imitation: the same rules, the same store, the same HTTP. It stops when it is dropped.

mod carrier;
#[cfg(feature = "sdk")]
mod client;
mod clock;
mod exchange;
mod faults;
#[cfg(feature = "sdk")]
mod in_memory;
mod inbox;
mod key;
mod line;
mod log;
mod pace;
mod plan;
mod record;
mod requests;
#[cfg(feature = "wiremock")]
mod responder;
mod spoil;

use std::{
    net::SocketAddr,
    sync::{Arc, atomic::AtomicBool},
};

use axum::Router;
use parcelo::{Environment, rules::Destinations};

pub use clock::{Clock, ClockControl};
pub use faults::{Fault, Faults};
pub use inbox::{Inbox, InboxBuilder, NotReceived, Received, Reply};
pub use key::KeyBuilder;
pub use log::{Body, Recorded};
pub use requests::Requests;
#[cfg(feature = "wiremock")]
pub use responder::Responder;

pub use crate::service::Fired;
use crate::{
    core::{Secrets, Site, legacy::Era},
    http::{Api, Listener, Stop},
    ids::Ids,
    service::{Limits, Service, Settings},
    store::Store,
    webhook::Dispatcher,
};

/// How many requests are remembered.
const LOG: usize = 10_000;

/// The service, embedded: the sandbox, on `127.0.0.1` and a free port.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// use parcelo_server::mock::{Clock, MockServer};
///
/// let server = MockServer::builder().clock(Clock::frozen("2026-01-05T08:00:00Z")).seed(42).start().await;
/// let key = server.key().countries(["EC", "CO"]).issue();
/// assert!(key.secret().starts_with("pk_test_"));
/// assert!(server.url().starts_with("http://127.0.0.1:"));
/// # }
/// ```
#[derive(Debug)]
pub struct MockServer {
    service: Arc<Service>,
    dispatcher: Arc<Dispatcher>,
    ids: Arc<Ids>,
    clock: Arc<pace::MovableClock>,
    desk: Arc<exchange::Desk>,
    url: String,
    stop: Stop,
}

/// How a [`MockServer`] is to be started.
#[derive(Debug, Clone)]
pub struct Builder {
    clock: Clock,
    seed: u64,
    log: usize,
}

impl MockServer {
    /// A server to be set up: its clock is frozen at 2026-01-05 08:00 UTC and its seed is 0
    /// unless said otherwise.
    pub fn builder() -> Builder {
        Builder { clock: Clock::frozen("2026-01-05T08:00:00Z"), seed: 0, log: LOG }
    }

    /// Starts a server as [`MockServer::builder`] sets it up.
    pub async fn start() -> Self {
        Self::builder().start().await
    }

    /// What the HTTP shell serves.
    pub(crate) fn api(&self) -> Api {
        let ready = Arc::new(AtomicBool::new(true));
        Api { service: Arc::clone(&self.service), environment: Environment::Sandbox, ready }
    }

    /// The service as its carriers serve it.
    fn routes(&self) -> Router {
        exchange::routes(self.api(), Arc::clone(&self.desk))
    }

    /// The address of its API.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// A new API key: for every country unless said otherwise.
    pub fn key(&self) -> KeyBuilder<'_> {
        KeyBuilder::new(self)
    }

    /// A receiver of this server's webhooks, to be set up.
    ///
    /// ```
    /// # #[cfg(feature = "sdk")]
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use std::time::Duration;
    /// # use parcelo::ParcelStatus;
    /// # let server = parcelo_server::mock::MockServer::start().await;
    /// # let order: parcelo::OrderRequest = serde_json::from_str(parcelo_server::core::sample::ORDER)?;
    /// let inbox = server.webhook_inbox().reply([503, 503, 200]).start().await;
    /// let client = server.client(&server.key().issue());
    /// client.orders().create(&order).await?; // a parcel of the journey SB-SUCCESS-
    /// server.clock().advance(Duration::from_secs(25 * 60)).await;
    /// let arrived = inbox.wait_for(|e| e.new_status == ParcelStatus::Delivered).await?;
    /// assert_eq!(arrived.sequence, Some(6));
    /// assert_eq!(inbox.deliveries().len(), 5 + 2); // two were refused, and came again
    /// # Ok(())
    /// # }
    /// # #[cfg(not(feature = "sdk"))]
    /// # fn main() {}
    /// ```
    pub fn webhook_inbox(&self) -> InboxBuilder<'_> {
        InboxBuilder::new(self)
    }

    /// The clock, to be moved.
    pub fn clock(&self) -> ClockControl<'_> {
        ClockControl::new(self)
    }
}

impl Builder {
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
        let stop = server.stop.clone();
        drop(Listener::start_on::<line::BreakableLine>(socket, server.routes(), stop));
        let (service, clock) = (Arc::clone(&server.service), Arc::clone(&server.clock));
        tokio::spawn(tick(service, clock, server.stop.clone()));
        server
    }

    fn on(self, url: String) -> MockServer {
        let ids = Arc::new(Ids::seeded(self.seed));
        let clock = Arc::new(pace::MovableClock::from(&self.clock));
        let site = |environment| Site {
            environment,
            base_url: url.clone(),
            labels_host: format!("{url}/files"),
        };
        #[expect(clippy::expect_used, reason = "SQLite opens a database in memory")]
        let store = Store::memory(ids.array()).expect("a store in memory");
        let settings = Settings {
            production: site(Environment::Production),
            sandbox: site(Environment::Sandbox),
            destinations: Destinations::All,
            limits: Limits { enforced: clock.runs(), ..Limits::default() },
            secrets: Secrets::derive(&store.secret()),
            webhooks_allow_private: false,
            trusted_proxies: Vec::new(),
            legacy: Era::default(),
        };
        let now: Arc<dyn crate::clock::Clock> = clock.clone();
        let desk = Arc::new(exchange::Desk::new(self.seed, self.log, clock.clone()));
        let service = Arc::new(Service::new(store, now, Arc::clone(&ids), settings));
        // One message at a time: the inbox gets them in the same order in every run.
        let dispatcher = Arc::new(Dispatcher::new(Arc::clone(&service), 1));
        MockServer { service, dispatcher, ids, clock, desk, url, stop: Stop::default() }
    }
}

impl Drop for MockServer {
    fn drop(&mut self) {
        self.stop.now();
    }
}

/// Does what falls due while the clock runs.
async fn tick(service: Arc<Service>, clock: Arc<pace::MovableClock>, stop: Stop) {
    loop {
        tokio::select! {
            () = clock.beat() => {}
            () = stop.told() => return,
        }
        let _turn = clock.turn().await;
        if clock.runs() {
            // A failure is logged where it happened, and the next tick tries again.
            let _ = service.take_due_steps().await;
            let _ = service.purge_sandboxes().await;
        }
    }
}
