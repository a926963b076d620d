//! Configures and starts a mock server.

use std::{
    net::{IpAddr, SocketAddr},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use axum::{
    extract::Request,
    middleware::{Next, from_fn},
    response::Response,
};
use parcelo_domain::{Secrets, site::local_url, webhooks::WebhookAllowance};
use parcelo_store::Store;
use parcelo_system::ids::Ids;
use parcelo_types::Environment;

use super::{
    Clock, MockServer, Scenario, ScenarioError, bind_free_port,
    control::{self, WebhookReceiver},
    expect_stored,
    fault_layer::Recorder,
    mails::MailInbox,
    movable_clock::MovableClock,
    receivers::Receivers,
    webhook_chaos::ChaosDispatcher,
};
use crate::{
    http::{Stop, host_from_headers},
    mail::{MailSender, SandboxRecipients},
    service::{Service, Settings, with_base_url},
};

/// Default number of requests that the log keeps.
const DEFAULT_LOG_RECORDS: usize = 10_000;

/// Configures a [`MockServer`]; [`Builder::start`] starts it.
#[derive(Debug, Clone)]
pub struct Builder {
    clock: Clock,
    seed: u64,
    log_records: usize,
    base_url: Option<String>,
    limits: Option<bool>,
    verifies_on_drop: bool,
    environment: Environment,
    #[cfg(feature = "tls")]
    tls: bool,
    scenario: Option<Scenario>,
    #[cfg(feature = "postgres")]
    postgres: Option<parcelo_store::Address>,
}

impl Builder {
    pub(super) fn new() -> Self {
        let clock = Clock::frozen("2026-01-05T08:00:00Z");
        Self {
            clock,
            seed: 0,
            log_records: DEFAULT_LOG_RECORDS,
            base_url: None,
            limits: None,
            verifies_on_drop: false,
            environment: Environment::Sandbox,
            #[cfg(feature = "tls")]
            tls: false,
            scenario: None,
            #[cfg(feature = "postgres")]
            postgres: None,
        }
    }

    /// Sets the clock.
    #[must_use]
    pub fn clock(self, clock: Clock) -> Self {
        Self { clock, ..self }
    }

    /// Sets the seed of ids, tracking numbers and keys.
    #[must_use]
    pub fn seed(self, seed: u64) -> Self {
        Self { seed, ..self }
    }

    /// Sets how many of the newest requests the log keeps: 10,000 by default, 0 for none.
    #[must_use]
    pub fn request_log(self, max: usize) -> Self {
        Self { log_records: max, ..self }
    }

    /// Sets the base URL used in responses and on labels. The server's own has a different port in every run; with a
    /// fixed one, responses are the same in every run, byte for byte.
    #[must_use]
    pub fn base_url(self, address: &str) -> Self {
        Self { base_url: Some(address.trim_end_matches('/').to_owned()), ..self }
    }

    /// Sets whether the service's rate limits of keys and addresses apply; by default they do if the clock runs. The
    /// rate limit of a single key always applies.
    #[must_use]
    pub fn rate_limits(self, enforced: bool) -> Self {
        Self { limits: Some(enforced), ..self }
    }

    /// Calls [`MockServer::verify`] when the server is dropped, unless the test is failing already.
    #[must_use]
    pub fn verify_on_drop(self) -> Self {
        Self { verifies_on_drop: true, ..self }
    }

    /// Makes it production instead of the sandbox: its keys start with `pk_live_` and generated tracking numbers with
    /// the country's code, and no parcel moves by itself: [`MockServer::put_status`] reports events as a carrier
    /// does. The service chooses the numbers there: set the `tracking_number` of an order to `None`. Webhooks may be sent to this machine nevertheless. As in production, a reset deletes no data.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use parcelo::ParcelStatus;
    /// use parcelo_server::mock::MockServer;
    ///
    /// let server = MockServer::builder().production().start().await;
    /// let number = server.seed_parcels(1).await.remove(0);
    /// assert!(number.as_str().starts_with("EC"));
    /// server.put_status(&number, ParcelStatus::Delivered).await?;
    /// assert!(server.key().issue().secret().starts_with("pk_live_"));
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn production(self) -> Self {
        Self { environment: Environment::Production, ..self }
    }

    /// Serves https instead of http, with a [certificate](MockServer::certificate_pem) that is made at the start, for
    /// `127.0.0.1` and `localhost`. Clients that offer HTTP/2 (ALPN) get it; there, a fault that ends a connection ends
    /// only the request's stream.
    #[cfg(feature = "tls")]
    #[must_use]
    pub fn tls(self) -> Self {
        Self { tls: true, ..self }
    }

    /// Makes the calls of a [`Scenario`] before the server is ready, and sets the clock if the scenario has one.
    #[must_use]
    pub fn scenario(self, scenario: Scenario) -> Self {
        let clock = scenario.clock().unwrap_or(self.clock);
        Self { clock, scenario: Some(scenario), ..self }
    }

    /// Keeps the data in an empty PostgreSQL database, for this repository's tests of the whole service on that engine.
    /// Snapshots work only in memory.
    #[cfg(feature = "postgres")]
    #[doc(hidden)]
    #[must_use]
    pub fn postgres(self, address: parcelo_store::Address) -> Self {
        Self { postgres: Some(address), ..self }
    }

    #[cfg_attr(not(feature = "postgres"), expect(clippy::unused_async, reason = "memory is there"))]
    async fn create_store(&self, fresh_secret: [u8; 32]) -> Store {
        #[cfg(feature = "postgres")]
        #[expect(clippy::expect_used, reason = "a test cannot go on")]
        if let Some(address) = &self.postgres {
            return Store::connect(address.clone(), fresh_secret).await.expect("a database");
        }
        #[expect(clippy::expect_used, reason = "SQLite opens a database in memory")]
        Store::memory(fresh_secret).expect("a store in memory")
    }

    /// Starts the server.
    ///
    /// # Panics
    ///
    /// If no port of `127.0.0.1` can be bound, or a call of the scenario is refused.
    pub async fn start(self) -> MockServer {
        let (socket, url) = bind_free_port().await;
        #[expect(clippy::panic, reason = "a test's own constant is wrong; documented")]
        let server = match self.build_with_scenario(url).await {
            Ok((server, _receiver)) => server,
            Err(error) => panic!("the scenario is refused: {error}"),
        };
        let routes = server.routes();
        server.serve_on(socket, routes);
        server
    }

    /// Starts the server on this address, with controls under `/__mock/` for programs in any language. It stops with
    /// the process. Unless [`Builder::base_url`] was set, links in a response use the host of its request.
    ///
    /// Errors if the address cannot be bound, or with a [`ScenarioError`] if a call of the scenario is refused.
    pub async fn start_controlled(self, address: SocketAddr) -> std::io::Result<Arc<MockServer>> {
        self.start_beside(address).await.map(|(server, _)| server)
    }

    /// Starts a server as [`Builder::start_controlled`] does, and returns its port too.
    pub(super) async fn start_beside(
        self,
        address: SocketAddr,
    ) -> std::io::Result<(Arc<MockServer>, u16)> {
        let socket = tokio::net::TcpListener::bind(address).await?;
        let bound = socket.local_addr()?;
        let has_base_url = self.base_url.is_some();
        let further = start_further(Self { base_url: None, ..self.clone() }, address.ip());
        let built = self.build_with_scenario(local_url(bound)).await;
        let (server, receiver) = built.map_err(std::io::Error::other)?;
        let server = Arc::new(server);
        let routes = control::add_to(server.routes(), (Arc::clone(&server), receiver), further);
        // Over TLS the certificate has the names that can be called.
        let is_fixed = has_base_url || server.url().starts_with("https:");
        let routes = if is_fixed { routes } else { routes.layer(from_fn(link_to_called_host)) };
        server.serve_on(socket, routes);
        Ok((server, bound.port()))
    }

    /// Builds the server, makes the calls of its scenario, and returns the receiver of webhooks that they chose.
    async fn build_with_scenario(
        mut self,
        url: String,
    ) -> Result<(MockServer, Option<WebhookReceiver>), ScenarioError> {
        // A server with half a scenario is dropped, and must not be checked then.
        let verifies_on_drop = std::mem::take(&mut self.verifies_on_drop);
        let scenario = self.scenario.take();
        let mut server = self.build(url).await;
        let mut receiver = None;
        if let Some(scenario) = scenario {
            let applied = Box::pin(scenario.apply(&server)).await;
            let result = applied.inspect_err(|_| server.faults().clear())?;
            (server.scenario_keys, receiver) = (result.keys, result.receiver);
        }
        server.verifies_on_drop = verifies_on_drop;
        Ok((server, receiver))
    }

    async fn build(self, url: String) -> MockServer {
        #[cfg(feature = "tls")]
        let url = if self.tls { url.replacen("http:", "https:", 1) } else { url };
        let ids = Arc::new(Ids::seeded(self.seed));
        let clock = Arc::new(MovableClock::new(&self.clock));
        let base_url = self.base_url.as_ref().unwrap_or(&url);
        let store = self.create_store(ids.array()).await;
        let mut settings = Settings::new(base_url, Secrets::derive(&store.secret()));
        settings.limits.enforced = self.limits.unwrap_or(clock.is_running());
        // A test's receivers are on this machine, or are peers with private addresses in a network of containers.
        settings.webhooks = WebhookAllowance { private: true, sandbox_loopback: true };
        let now: Arc<dyn parcelo_system::clock::Clock> = clock.clone();
        let recorder = Arc::new(Recorder::new(self.seed, self.log_records, clock.clone()));
        let service = Arc::new(Service::new(store, now, Arc::clone(&ids), settings));
        let dispatcher = Arc::new(ChaosDispatcher::new(&service, self.seed));
        let (mail_inbox, mail_sender) = create_mail_inbox(&service).await;
        let (stop, sends_webhooks) = (Stop::default(), AtomicBool::default());
        let verifies_on_drop = self.verifies_on_drop;
        MockServer {
            service,
            dispatcher,
            mail_sender,
            mail_inbox,
            ids,
            clock,
            recorder,
            url,
            stop,
            receivers: Receivers::default(),
            sends_webhooks,
            verifies_on_drop,
            environment: self.environment,
            own_runtime: None,
            #[cfg(feature = "tls")]
            tls: self.tls.then(super::tls::Tls::generate),
            scenario_keys: Vec::new(),
        }
    }
}

/// Returns the function that starts further servers on this address, with the settings of the first. Each has a seed of
/// its own, so that the first keys of two servers differ and a request to the wrong server is refused.
fn start_further(builder: Builder, ip: IpAddr) -> control::StartServer {
    let next_seed = AtomicU64::new(builder.seed.wrapping_add(1));
    Arc::new(move |seed, clock, scenario| {
        let mut builder = builder.clone();
        if let Some(scenario) = scenario {
            builder = builder.scenario(scenario);
        }
        builder.seed = seed.unwrap_or_else(|| next_seed.fetch_add(1, Ordering::Relaxed));
        builder.clock = clock.unwrap_or(builder.clock);
        Box::pin(builder.start_beside((ip, 0).into()))
    })
}

/// Creates the inbox of e-mails and the sender that fills it, one at a time so that they are in the same order in
/// every run.
async fn create_mail_inbox(service: &Arc<Service>) -> (Arc<MailInbox>, Arc<MailSender>) {
    let inbox = Arc::new(MailInbox::default());
    expect_stored(service.enable_mails(parcelo_domain::Millis(0)).await);
    let transport = Arc::clone(&inbox);
    let everyone = SandboxRecipients::Any;
    let sender = MailSender::new(Arc::clone(service), transport, everyone, 1);
    (inbox, Arc::new(sender))
}

/// Makes links use the host that was called: in a container, only the caller knows the server's address.
async fn link_to_called_host(request: Request, next: Next) -> Response {
    match host_from_headers(request.headers()) {
        Some(host) => with_base_url(format!("http://{host}"), next.run(request)).await,
        None => next.run(request).await,
    }
}
