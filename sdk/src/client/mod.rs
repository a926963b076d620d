//! The client: one call is one future, retried where that is safe, with typed answers and errors.
//!
//! [`Client`] is made by [`ClientBuilder`]; its methods hand out one small handle for each resource
//! ([`Orders`], [`Tracking`], [`Labels`]). Every method makes a `Call` of an operation, and its `Course`
//! leads it through its attempts: `limiter` decides when each may go, `retry` whether there is another
//! one, and a [`Transport`] carries them. Rules about orders are not decided here: see `rules`.

mod attempt;
mod body;
mod budget;
mod builder;
mod call;
mod clock;
mod course;
mod download;
mod error;
mod error_from;
mod failure;
mod file;
mod headers;
mod hint;
mod http_settings;
mod labels;
mod layer;
mod limiter;
mod manifests;
mod many;
mod orders;
mod parcels;
mod proxy;
mod raw;
mod reply;
mod retry;
mod sandbox;
mod seconds;
mod send;
mod socket;
mod timeouts;
mod tracking;
mod transport;
mod turn;

use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use url::Url;

pub use attempt::Attempt;
pub use builder::ClientBuilder;
pub use download::{LabelDownload, LabelStream};
pub use error::{Error, ErrorKind};
pub use labels::Labels;
pub use manifests::Manifests;
pub use many::{CreateMany, Items};
pub use orders::Orders;
pub use parcels::{ListParcels, Page, Parcels};
pub use raw::RawAnswer;
pub use reply::{Outcome, RateLimitStatus, Reply, ReplyMeta};
pub use retry::{FailureClass, Retry, StopReason};
pub use sandbox::Sandbox;
pub use timeouts::Timeouts;
pub use tracking::{GetTracking, TrackBatch, Tracking};
pub use transport::{BodyStream, Phase, Transport, TransportError};
pub use turn::RateLimit;

use crate::model::{ApiKey, Environment, Health, Language, Operation};
use attempt::Observer;
use call::Call;
use clock::Clocks;
use failure::Failure;
use headers::Headers;
use retry::Decider;
use turn::Line;

/// A client of the service, for one API key.
///
/// Cloning is cheap; clones share connections, the budget for retries, and their turns under the rate
/// limit. It runs on a tokio runtime with its timer enabled.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = parcelo_server::mock::MockServer::start().await;
/// # let client = server.client(&server.key().issue());
/// # let order: parcelo::OrderRequest = serde_json::from_str(parcelo_server::mock::sample::ORDER)?;
/// # let folder = tempfile::tempdir()?;
/// use parcelo::{Client, LabelFormat};
///
/// # #[cfg(any())]
/// let client = Client::from_env()?;
/// let created = client.orders().create(&order).await?;
/// let number = &created.parcel.tracking_number;
/// client.labels().download(number, LabelFormat::Pdf).save_in(&folder).await?;
/// println!("{}", client.tracking().get(number).await?.status_name);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Client {
    shared: Arc<Shared>,
    settings: Settings,
}

/// What may differ from call to call.
#[derive(Debug, Clone, Copy, Default)]
struct Settings {
    timeouts: Timeouts,
    retry: Retry,
    rate_limit: RateLimit,
}

/// What a client and its clones have together.
struct Shared {
    base_url: Url,
    environment: Environment,
    language: Language,
    headers: Headers,
    labels_hosts: Vec<String>,
    transport: Arc<dyn Transport>,
    observer: Option<Observer>,
    decider: Mutex<Decider>,
    line: Line,
    clocks: Clocks,
}

impl Client {
    /// A client for the key in `PARCELO_API_KEY` and the service at `PARCELO_BASE_URL`.
    ///
    /// Errors (`Config`) when one of them is missing or wrong; the text says which, and never what it
    /// holds.
    ///
    /// ```
    /// use parcelo::{Client, ErrorKind};
    ///
    /// # if std::env::var_os("PARCELO_API_KEY").is_none() {
    /// let error = Client::from_env().unwrap_err();
    /// assert_eq!(error.kind(), ErrorKind::Config);
    /// assert_eq!(error.to_string(), "PARCELO_API_KEY is not set.");
    /// # }
    /// ```
    pub fn from_env() -> Result<Self, Error> {
        ClientBuilder::from_env()?.build()
    }

    /// A builder of a client for a key: address, language, time-outs, retries, pacing.
    ///
    /// ```
    /// # use parcelo::{ApiKey, Environment};
    /// use parcelo::{Client, RateLimit};
    ///
    /// # let text = ApiKey::from_random(Environment::Sandbox, &[7; 32]).secret().to_owned();
    /// let key = ApiKey::parse(&text)?; // pk_test_…
    /// let client = Client::builder(key)
    ///     .base_url("https://sandbox.parcelo.example")?
    ///     .rate_limit(RateLimit::adaptive().fail_fast())
    ///     .build()?;
    /// # Ok::<(), parcelo::Error>(())
    /// ```
    pub fn builder(key: ApiKey) -> ClientBuilder {
        ClientBuilder::new(key)
    }

    /// Checks the key: its name, its countries, its environment.
    ///
    /// Errors: `Authentication` when the key is wrong, and those of every call.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = parcelo_server::mock::MockServer::start().await;
    /// # let client = server.client(&server.key().issue());
    /// let health = client.health().await?;
    /// println!("{} may ship to {:?}", health.key_name, health.allowed_countries);
    /// # assert_eq!(health.allowed_countries, ["*"]);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn health(&self) -> Result<Reply<Health>, Error> {
        self.json(Call::new(Operation::Health)).await
    }

    /// Where the service is.
    pub fn base_url(&self) -> &Url {
        &self.shared.base_url
    }

    /// The language of texts for people.
    pub fn language(&self) -> Language {
        self.shared.language
    }

    /// The environment that the key belongs to.
    pub fn environment(&self) -> Environment {
        self.shared.environment
    }

    /// The same client with other rules for trying again.
    ///
    /// It shares connections, budget and turns with this one, and so do the next two.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = parcelo_server::mock::MockServer::start().await;
    /// # let client = server.client(&server.key().issue());
    /// # let order: parcelo::OrderRequest = serde_json::from_str(parcelo_server::mock::sample::ORDER)?;
    /// use parcelo::Retry;
    ///
    /// let created = client.with_retry(Retry::none()).orders().create(&order).await?;
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn with_retry(&self, retry: Retry) -> Self {
        self.with(Settings { retry, ..self.settings })
    }

    /// The same client with other timeouts; that for connecting stays what it was.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = parcelo_server::mock::MockServer::start().await;
    /// # let client = server.client(&server.key().issue());
    /// use std::time::Duration;
    ///
    /// use parcelo::Timeouts;
    ///
    /// let hasty = client.with_timeouts(Timeouts::default().total(Duration::from_secs(5)));
    /// hasty.health().await?;
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn with_timeouts(&self, timeouts: Timeouts) -> Self {
        self.with(Settings { timeouts, ..self.settings })
    }

    /// The same client with another way of keeping to the rate limit.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = parcelo_server::mock::MockServer::start().await;
    /// # let client = server.client(&server.key().rate_limit(1).issue());
    /// use parcelo::RateLimit;
    /// use parcelo::calls::StopReason;
    ///
    /// let impatient = client.with_rate_limit(RateLimit::adaptive().fail_fast());
    /// impatient.health().await?;
    /// let error = impatient.health().await.unwrap_err(); // the key has one request a second
    /// assert_eq!(error.stop_reason(), Some(StopReason::RateLimit));
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn with_rate_limit(&self, rate_limit: RateLimit) -> Self {
        self.with(Settings { rate_limit, ..self.settings })
    }

    fn with(&self, settings: Settings) -> Self {
        Self { shared: Arc::clone(&self.shared), settings }
    }

    fn headers(&self) -> &Headers {
        &self.shared.headers
    }

    fn timeouts(&self) -> Timeouts {
        self.settings.timeouts
    }

    fn retry(&self) -> Retry {
        self.settings.retry
    }

    fn rate_limit(&self) -> RateLimit {
        self.settings.rate_limit
    }

    fn labels_hosts(&self) -> &[String] {
        &self.shared.labels_hosts
    }

    fn transport(&self) -> &dyn Transport {
        &*self.shared.transport
    }

    fn observer(&self) -> Option<&Observer> {
        self.shared.observer.as_ref()
    }

    fn line(&self) -> &Line {
        &self.shared.line
    }

    fn decider(&self) -> MutexGuard<'_, Decider> {
        // It is plain numbers, as good after a panic as before.
        self.shared.decider.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn clocks(&self) -> &Clocks {
        &self.shared.clocks
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client")
            .field("base_url", &self.base_url().as_str())
            .field("environment", &self.environment())
            .finish_non_exhaustive()
    }
}
