//! The client: one call is one future, retried where that is safe, with typed responses and errors.
//!
//! [`ClientBuilder`] makes a [`Client`], whose methods return a handle for each resource
//! ([`Orders`], [`Tracking`], [`Labels`]). Every method returns a [`Call`] with its request, and `execute` makes
//! its attempts: `limiter` decides when each may go, `retry` whether there is another one, and a
//! [`Transport`] sends them. Rules about orders are in `rules`.

mod address;
mod attempt;
mod attempt_error;
mod body;
mod builder;
mod call;
mod call_state;
mod clock;
mod download;
mod endpoint;
mod error;
mod error_conversions;
mod execute;
#[cfg(feature = "hyper")]
mod hyper_errors;
mod journal;
mod json;
mod key_limits;
mod labels;
mod limiter;
mod manifests;
mod next_step;
mod orders;
mod outcome;
mod pacer;
mod parcels;
mod raw;
mod reply;
mod request;
#[cfg(feature = "reqwest")]
mod reqwest_transport;
mod response;
mod retry;
mod retry_after;
mod retry_budget;
mod retry_settings;
mod sandbox;
mod seconds;
mod ship;
mod spans;
mod stop_reason;
mod stream;
mod temp_file;
mod timeouts;
mod tracking;
mod transport;

use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use url::Url;

pub use attempt::Attempt;
pub use builder::ClientBuilder;
pub use call::Call;
pub use download::{LabelDownload, LabelStream};
#[cfg(feature = "blocking")]
pub(crate) use error::Texts;
pub use error::{Error, ErrorKind};
pub use journal::{Entry, Journal, JournalError, JournalFile};
pub use labels::Labels;
pub use manifests::Manifests;
pub use next_step::{IfAbsent, NextStep};
pub use orders::Orders;
pub use outcome::Outcome;
pub use pacer::RateLimit;
pub use parcels::{ListParcels, Page, Parcels};
pub use raw::RawResponse;
pub use reply::{Reply, ReplyMeta};
#[cfg(feature = "reqwest")]
pub use reqwest_transport::Reqwest;
pub use response::RateLimitStatus;
pub use retry::FailureClass;
pub use retry_settings::Retry;
pub use sandbox::Sandbox;
#[cfg(feature = "test-util")]
pub(crate) use ship::{NOT_SAVED, stays_open};
pub use ship::{Resume, Ship, Shipped};
pub use stop_reason::StopReason;
pub use stream::{CreateMany, ItemStream};
pub use timeouts::Timeouts;
pub use tracking::{GetTracking, TrackBatch, Tracking};
pub use transport::{BodyStream, Phase, ResponseFuture, Transport, TransportError};

use attempt::Observer;
use builder::{Headers, KeyProvider};
use clock::Clocks;
use endpoint::Endpoint;
use key_limits::{KeyLimitTable, KeyLimits};
use parcelo_types::{ApiKey, Environment, Language, Operation, model::Health};
use request::UnsentRequest;
use retry::RetryPolicy;

/// A client of the service.
///
/// Cloning is cheap; clones share connections, the budget for retries, and the rate limiter. It needs a tokio
/// runtime with the timer enabled.
///
/// ```
#[doc = include_str!("example.txt")]
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
    identity: Arc<Identity>,
    settings: Settings,
}

/// The settings that may differ between clones.
#[derive(Debug, Clone, Default)]
struct Settings {
    timeouts: Timeouts,
    retry: Retry,
    rate_limit: RateLimit,
    key_provider: Option<KeyProvider>,
}

/// The API key and the language of a client.
struct Identity {
    environment: Environment,
    language: Language,
    headers: Headers,
    limits: Arc<KeyLimits>,
}

/// The state that all clients of a transport share.
struct Shared {
    endpoint: Endpoint,
    label_hosts: Vec<String>,
    transport: Arc<dyn Transport>,
    observer: Option<Observer>,
    retry_policy: Mutex<RetryPolicy>,
    key_limits: KeyLimitTable,
    clocks: Clocks,
}

impl Client {
    /// Returns a client for the key in `PARCELO_API_KEY` and the service at `PARCELO_BASE_URL`.
    ///
    /// Errors (`Config`) when one of them is missing or invalid; the text says which, and never shows its
    /// value.
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

    /// Returns a builder of a client for a key: address, language, timeouts, retries, rate limit.
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

    /// Checks the key and returns its name, countries and environment.
    ///
    /// Errors: `Authentication` when the key is invalid, and those of every call.
    ///
    /// ```
    #[doc = include_str!("example.txt")]
    /// let health = client.health().await?;
    /// println!("{} may ship to {:?}", health.key_name, health.allowed_countries);
    /// # assert_eq!(health.allowed_countries, ["*"]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn health(&self) -> Call<Reply<Health>> {
        Call::json(self, Ok(UnsentRequest::new(self, Operation::Health)))
    }

    /// Returns the address of the service.
    pub fn base_url(&self) -> &Url {
        &self.shared.endpoint.base_url
    }

    /// Returns the language of texts for people, such as names of statuses.
    pub fn language(&self) -> Language {
        self.identity.language
    }

    /// Returns the environment that the key belongs to.
    pub fn environment(&self) -> Environment {
        self.identity.environment
    }

    /// Returns the same client with different retry settings.
    ///
    /// It shares connections, budget and rate limiter with this one. So do the clients of the next two methods.
    ///
    /// ```
    #[doc = include_str!("example.txt")]
    /// use parcelo::Retry;
    ///
    /// let created = client.with_retry(Retry::none()).orders().create(&order).await?;
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn with_retry(&self, retry: Retry) -> Self {
        self.with(Settings { retry, ..self.settings.clone() })
    }

    /// Returns the same client with different timeouts. The timeout for connecting stays as it was built.
    ///
    /// ```
    #[doc = include_str!("example.txt")]
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
        self.with(Settings { timeouts, ..self.settings.clone() })
    }

    /// Returns the same client with different rate limit settings.
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
        self.with(Settings { rate_limit, ..self.settings.clone() })
    }

    /// Returns a client that sends with another API key, for a program that ships for several shops. It shares the
    /// connections with this one, and the rate limiter and the budget for retries with all such clients of its key: up
    /// to 1,000 keys are remembered, and those that were not used for the longest time go first.
    ///
    /// An order that may have been sent with another API key is another order for this one: see
    /// [`Orders::find`](crate::calls::Orders::find).
    ///
    /// Errors (`Config`) when the key must not be sent to this address, as for
    /// [`build`](crate::ClientBuilder::build).
    ///
    /// ```
    #[doc = include_str!("example.txt")]
    /// # let key_of_shop = server.key().name("shop 7").issue();
    /// let shop = client.with_key(&key_of_shop)?;
    /// println!("{}", shop.health().await?.key_name);
    /// # assert_eq!(shop.health().await?.key_name, "shop 7");
    /// # Ok(())
    /// # }
    /// ```
    pub fn with_key(&self, key: &ApiKey) -> Result<Self, Error> {
        // A key that is set counts, and no longer that of the provider.
        let same = self.with(Settings { key_provider: None, ..self.settings.clone() });
        if self.identity.headers.api_key() == key.secret().as_bytes() {
            return Ok(same);
        }
        self.shared.endpoint.check_key(key)?;
        let identity = Identity {
            environment: key.environment(),
            language: self.identity.language,
            headers: self.identity.headers.with_key(key)?,
            limits: self.shared.key_limits.get(key),
        };
        Ok(Self { identity: Arc::new(identity), ..same })
    }

    /// Returns the same client for texts in another language. It shares everything else with this one.
    ///
    /// ```
    #[doc = include_str!("example.txt")]
    /// # let number = client.orders().create(&order).await?.into_inner().parcel.tracking_number;
    /// use parcelo::Language;
    ///
    /// let spanish = client.with_language(Language::Es);
    /// println!("{}", spanish.tracking().get(&number).await?.status_name);
    /// # assert_eq!(spanish.tracking().get(&number).await?.status_name, "Etiqueta generada");
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn with_language(&self, language: Language) -> Self {
        let identity = Identity {
            environment: self.identity.environment,
            language,
            headers: self.identity.headers.with_language(language),
            limits: Arc::clone(&self.identity.limits),
        };
        Self { identity: Arc::new(identity), ..self.clone() }
    }

    /// Returns the client with the API key of this moment, for all that must be sent with one key.
    fn with_current_key(self) -> Result<Self, Error> {
        match &self.settings.key_provider {
            Some(provider) => self.with_key(&provider.read()?),
            None => Ok(self),
        }
    }

    fn with(&self, settings: Settings) -> Self {
        Self { settings, ..self.clone() }
    }

    fn retry_policy(&self) -> MutexGuard<'_, RetryPolicy> {
        // It is plain numbers, which stay valid after a panic elsewhere.
        self.shared.retry_policy.lock().unwrap_or_else(PoisonError::into_inner)
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
