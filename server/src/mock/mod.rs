//! The real service in a test: in memory, on a free port, with a clock to move.
//!
//! Not an imitation: the same rules, the same store, the same HTTP. It stops when it is dropped.

mod at_once;
mod builder;
mod carrier;
#[cfg(feature = "sdk")]
mod client;
mod clock;
mod control;
#[cfg(test)]
mod determinism;
mod exactly_once;
mod exchange;
mod expect;
mod faults;
#[cfg(feature = "sdk")]
mod in_memory;
mod inbox;
mod journey;
mod key;
mod line;
mod log;
mod order;
mod order_names;
mod pace;
mod plan;
mod record;
mod reply;
mod requests;
#[cfg(feature = "wiremock")]
mod responder;
mod seed;
mod selection;
mod snapshot;
mod spoil;
mod status;
mod times;
mod verify;

use std::sync::{Arc, atomic::AtomicBool};

use axum::Router;
use parcelo::Environment;

pub use builder::Builder;
#[cfg(feature = "server")]
pub(crate) use clock::read_time;
pub use clock::{Clock, ClockControl};
#[cfg(test)]
#[cfg(feature = "server")]
pub(crate) use control::document as controls;
pub use faults::{Fault, Faults};
pub use inbox::{Inbox, InboxBuilder, NotReceived, Received};
pub use journey::NotReached;
pub use key::KeyBuilder;
pub use log::{Body, Recorded};
pub use reply::Reply;
pub use requests::Requests;
#[cfg(feature = "wiremock")]
pub use responder::Responder;
pub use snapshot::Snapshot;
pub use status::NotPut;
pub use times::Times;

pub use crate::{domain::sample, service::Fired};
use crate::{
    http::{Api, Listener, Stop},
    ids::Ids,
    service::Service,
    webhook::Dispatcher,
};

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
    /// Whether webhooks are being sent.
    sends: AtomicBool,
    verifies: bool,
}

impl MockServer {
    /// A server to be set up: its clock is frozen at 2026-01-05 08:00 UTC and its seed is 0
    /// unless said otherwise.
    pub fn builder() -> Builder {
        Builder::new()
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

    /// The service without a socket, for `tower`'s `oneshot` or to be nested in another router;
    /// requests are logged and meet planned faults.
    pub fn routes(&self) -> Router {
        exchange::routes(self.api(), Arc::clone(&self.desk))
    }

    fn run(&self, socket: tokio::net::TcpListener, routes: Router) {
        drop(Listener::start_on::<line::BreakableLine>(socket, routes, self.stop.clone()));
        let (service, clock) = (Arc::clone(&self.service), Arc::clone(&self.clock));
        tokio::spawn(tick(service, clock, self.stop.clone()));
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
    /// # let order: parcelo::OrderRequest = serde_json::from_str(parcelo_server::mock::sample::ORDER)?;
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

impl Drop for MockServer {
    fn drop(&mut self) {
        self.stop.now();
        // A test that fails already has its reason, and a second panic would end the process.
        match self.verifies {
            _ if std::thread::panicking() => {}
            true => self.verify(),
            false => verify::verify_expectations(self),
        }
    }
}

/// Does what falls due while the clock runs.
async fn tick(service: Arc<Service>, clock: Arc<pace::MovableClock>, stop: Stop) {
    loop {
        tokio::select! {
            () = clock.beat() => {}
            () = stop.requested() => return,
        }
        let _turn = clock.turn().await;
        if clock.runs() {
            // A failure is logged where it happened, and the next tick tries again.
            let _ = service.take_due_steps().await;
            let _ = service.purge_sandboxes().await;
        }
    }
}
