//! The mock server: the service embedded in a test, in memory, on a free port, with a clock that the test moves.
//!
//! It is the real service, not an imitation: validation, store and HTTP are the same code. It stops when it is dropped.

mod breakable_stream;
mod builder;
#[cfg(feature = "sdk")]
mod client;
mod clock;
mod clock_control;
mod control;
mod corruption;
#[cfg(test)]
mod determinism;
mod exactly_once;
mod expect;
mod fault_layer;
mod fault_plan;
mod faults;
mod inbox;
mod journey;
mod key;
mod key_mask;
mod log;
mod mails;
mod movable_clock;
mod order_names;
mod own_thread;
mod receivers;
mod recorded_request;
mod reply;
mod request_capture;
mod requests;
#[cfg(feature = "wiremock")]
mod responder;
mod sample_orders;
mod selection;
mod snapshot;
mod snapshot_file;
mod status;
mod sync;
mod times;
#[cfg(feature = "tls")]
mod tls;
mod verify;
mod webhook_chaos;
mod webhooks;

use std::{
    fmt,
    sync::{Arc, atomic::AtomicBool},
};

use axum::Router;
use parcelo_domain::Millis;
use parcelo_system::ids::Ids;
use parcelo_types::{ApiKey, Environment};
use tokio::{net::TcpListener, runtime::Handle};

pub use builder::Builder;
pub use clock::Clock;
pub use clock_control::ClockControl;
#[cfg(test)]
pub use control::document as controls;
pub use control::{Scenario, ScenarioError};
pub use faults::{Fault, Faults};
pub use inbox::{Inbox, InboxBuilder, InboxTimeout, Received};
pub use journey::AdvanceError;
pub use key::KeyBuilder;
pub use mails::ReceivedMail;
pub use recorded_request::{Body, RecordedRequest};
pub use reply::Reply;
pub use requests::Requests;
#[cfg(feature = "wiremock")]
pub use responder::Responder;
pub use snapshot::{Snapshot, SnapshotError};
pub use status::SetStatusError;
pub use times::Times;
pub use webhook_chaos::WebhookDelivery;
pub use webhooks::Webhooks;

pub use crate::service::Fired;
use crate::{
    http::{Api, Listener, Stop},
    mail::MailSender,
    service::Service,
};
pub use parcelo_domain::sample;

/// An embedded server on `127.0.0.1` and a free port: the sandbox, unless [`Builder::production`] says otherwise.
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
    dispatcher: Arc<webhook_chaos::ChaosDispatcher>,
    mail_sender: Arc<MailSender>,
    mail_inbox: Arc<mails::MailInbox>,
    ids: Arc<Ids>,
    clock: Arc<movable_clock::MovableClock>,
    recorder: Arc<fault_layer::Recorder>,
    url: String,
    stop: Stop,
    receivers: receivers::Receivers,
    /// `true` once the task that sends webhooks was started.
    sends_webhooks: AtomicBool,
    verifies_on_drop: bool,
    environment: Environment,
    /// The runtime of a server that [`Builder::start_blocking`] started.
    own_runtime: Option<Handle>,
    #[cfg(feature = "tls")]
    tls: Option<tls::Tls>,
    scenario_keys: Vec<ApiKey>,
}

impl MockServer {
    /// Configures a server. By default its clock is frozen at 2026-01-05 08:00 UTC, and its seed is 0.
    pub fn builder() -> Builder {
        Builder::new()
    }

    /// Starts a server with the defaults of [`MockServer::builder`].
    pub async fn start() -> Self {
        Self::builder().start().await
    }

    /// Returns the API that the routes serve.
    #[doc(hidden)]
    pub fn api(&self) -> Api {
        let ready = Arc::new(AtomicBool::new(true));
        Api { service: Arc::clone(&self.service), environment: self.environment, ready }
    }

    /// Returns the service as a router, for `tower`'s `oneshot` or for nesting in another router. Requests are logged
    /// and get planned faults.
    pub fn routes(&self) -> Router {
        fault_layer::routes(self.api(), Arc::clone(&self.recorder))
    }

    fn serve_on(&self, socket: TcpListener, routes: Router) {
        let (service, mail_sender) = (Arc::clone(&self.service), Arc::clone(&self.mail_sender));
        tokio::spawn(run_ticker(service, mail_sender, Arc::clone(&self.clock), self.stop.clone()));
        #[cfg(feature = "tls")]
        if let Some(tls) = &self.tls {
            tls.listen(socket, routes, self.stop.clone());
            return;
        }
        // Dropping the listener detaches its task, which ends with `stop`.
        drop(Listener::start_on::<breakable_stream::BreakableStream>(
            socket,
            routes,
            self.stop.clone(),
        ));
    }

    /// Stops listening; its tasks end.
    fn stop(&self) {
        self.stop.now();
    }

    /// Returns the base URL of its API.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Configures a new API key, by default for every country.
    pub fn key(&self) -> KeyBuilder<'_> {
        KeyBuilder::new(self)
    }

    /// Returns the keys of its [`Scenario`], in the scenario's order.
    pub fn scenario_keys(&self) -> &[ApiKey] {
        &self.scenario_keys
    }

    /// Configures a receiver of this server's webhooks.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use std::time::Duration;
    /// # use parcelo::ParcelStatus;
    /// # let server = parcelo_server::mock::MockServer::start().await;
    /// # let order: parcelo::OrderRequest = serde_json::from_str(parcelo_server::mock::sample::ORDER)?;
    /// let inbox = server.webhook_inbox().reply([503, 503, 200]).start().await;
    /// let client = server.client(&server.key().issue());
    /// client.orders().create(&order).await?; // its number selects the journey SB-SUCCESS-
    /// server.clock().advance(Duration::from_secs(25 * 60)).await;
    /// let arrived = inbox.wait_for(|e| e.new_status == ParcelStatus::Delivered).await?;
    /// assert_eq!(arrived.sequence, Some(6));
    /// assert_eq!(inbox.deliveries().len(), 5 + 2); // two got 503, and were sent again
    /// # Ok(())
    /// # }
    /// ```
    pub fn webhook_inbox(&self) -> InboxBuilder<'_> {
        InboxBuilder::new(self)
    }

    /// Returns a handle that moves the clock.
    pub fn clock(&self) -> ClockControl<'_> {
        ClockControl(self)
    }
}

impl Drop for MockServer {
    fn drop(&mut self) {
        self.stop();
        // A test that is failing already reports its own reason; a second panic would abort the process.
        if std::thread::panicking() {
            return;
        }
        if self.verifies_on_drop {
            self.verify();
        } else {
            // Otherwise only what the test explicitly expected is checked.
            verify::fail_with(&expect::offences(self));
        }
    }
}

/// Executes the work that falls due while the clock runs, at each tick. On an idle server a tick reads nothing: a suite
/// may have started hundreds for its workers.
async fn run_ticker(
    service: Arc<Service>,
    mail_sender: Arc<MailSender>,
    clock: Arc<movable_clock::MovableClock>,
    stop: Stop,
) {
    loop {
        tokio::select! {
            () = clock.wait_for_tick() => {}
            () = stop.requested() => return,
        }
        let mut due_work = clock.lock_due_work().await;
        let (store, started) = (service.store(), service.now());
        if !clock.is_running() || !due_work.may_exist(started, store.stats().changes) {
            continue;
        }
        // A failure is logged where it happens, and the next tick tries again.
        let _ = service.take_due_steps().await;
        let _ = mail_sender.send_due().await;
        let _ = service.purge_sandboxes().await;
        // Counted after the writes of this tick, and before the reads, which then see everyone else's. What fell due
        // after the start of this tick is the next thing, so the next tick looks again.
        let writes = store.stats().changes;
        let due = (store.next_due(started).await, store.next_mail().await);
        if let (Ok(step), Ok(mail)) = due {
            // Old data falls due too, but no one waits for its deletion to the minute.
            let next_purge = service.now().plus(Millis::HOUR);
            let next = [step, mail].into_iter().flatten().fold(next_purge, Millis::min);
            due_work.set_idle(next, writes);
        }
    }
}

/// Binds a free port of `127.0.0.1`, and returns its URL too.
///
/// # Panics
///
/// If no port can be bound.
async fn bind_free_port() -> (TcpListener, String) {
    #[expect(clippy::expect_used, reason = "a test cannot go on; documented")]
    let socket = TcpListener::bind(("127.0.0.1", 0)).await.expect("a free port on 127.0.0.1");
    #[expect(clippy::expect_used, reason = "a bound socket has an address")]
    let address = socket.local_addr().expect("a bound socket has an address");
    (socket, format!("http://{address}"))
}

/// Returns the result of a call of the server's own store.
#[track_caller]
fn expect_stored<T, E: fmt::Debug>(result: Result<T, E>) -> T {
    #[expect(clippy::expect_used, reason = "a store in memory does not fail")]
    result.expect("the store responds")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn an_idle_server_reads_nothing() {
        let clock = Clock::ticking("2026-01-05T08:00:00Z");
        let server = MockServer::builder().clock(clock).start().await;
        let reads = || server.service.store().stats().reads;
        tokio::time::sleep(Duration::from_secs(10)).await;
        let before = reads();
        tokio::time::sleep(Duration::from_secs(600)).await;
        assert_eq!(reads(), before);
    }
}
