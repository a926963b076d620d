//! The client for programs without `async`: each method blocks until its answer is there.
//!
//! Every method calls the one of the same name in [`parcelo::Client`](crate::client::Client) or its handles and
//! waits for it. Settings, retries, errors and guarantees are the same.
//!
//! ```
//! use parcelo::{Client, LabelFormat, TrackingNumber};
//! # use parcelo_server::mock::MockServer;
//!
//! # let runtime = tokio::runtime::Runtime::new()?;
//! # let server = runtime.block_on(MockServer::start());
//! # let (key, address) = (server.key().issue(), server.url());
//! # let order = serde_json::from_str(parcelo_server::mock::sample::ORDER)?;
//! let client = Client::builder(key).base_url(address)?.build_blocking()?;
//! let created = client.orders().create(&order)?;
//! let number = &created.parcel.tracking_number;
//! let label = client.labels().download(number, LabelFormat::Pdf).bytes()?;
//! assert!(label.starts_with(b"%PDF"));
//! println!("{number} is {}", client.tracking().get(number).send()?.status);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A client has a thread of its own, which ends with its last clone. It also works inside a tokio runtime, but
//! blocks the thread on which it is called: prefer [`parcelo::Client`](crate::client::Client) there.

mod driver;
mod iter;
mod labels;
mod manifests;
mod orders;
mod parcels;
mod request;
mod sandbox;
mod tracking;

use std::fmt;

use serde::de::DeserializeOwned;
use url::Url;

pub use iter::{CreateMany, ItemIter};
pub use labels::{LabelDownload, LabelReader, Labels};
pub use manifests::Manifests;
pub use orders::Orders;
pub use parcels::Parcels;
pub use request::Request;
pub use sandbox::Sandbox;
pub use tracking::Tracking;

use crate::{
    client,
    client::{ClientBuilder, Error, RateLimit, Reply, Retry, Timeouts},
    model::{Environment, Health, Language},
};
use driver::Driver;

/// A client of the service, for one API key, whose methods block.
///
/// Cloning is cheap; clones share connections, the budget for retries, and the rate limiter.
///
/// ```no_run
/// # fn example(order: parcelo::OrderRequest) -> Result<(), parcelo::Error> {
/// use parcelo::LabelFormat;
/// use parcelo::blocking::Client;
///
/// let client = Client::from_env()?;
/// let created = client.orders().create(&order)?;
/// let number = &created.parcel.tracking_number;
/// client.labels().download(number, LabelFormat::Pdf).save_to("label.pdf")?;
/// println!("{}", client.tracking().get(number).send()?.status_name);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Client {
    inner: client::Client,
    driver: Driver,
}

impl ClientBuilder {
    /// Builds the client as [`build`](ClientBuilder::build) does, for a program without `async`.
    ///
    /// ```
    /// # use parcelo::{ApiKey, Environment};
    /// use parcelo::{Client, Retry};
    ///
    /// # let key = ApiKey::from_random(Environment::Sandbox, &[7; 32]);
    /// let builder = Client::builder(key).base_url("http://127.0.0.1:8081")?;
    /// let client = builder.retry(Retry::none()).build_blocking()?;
    /// assert_eq!(client.environment(), Environment::Sandbox);
    /// # Ok::<(), parcelo::Error>(())
    /// ```
    pub fn build_blocking(self) -> Result<Client, Error> {
        let driver = Driver::start()?;
        Ok(Client { inner: self.build()?, driver })
    }
}

impl Client {
    /// A client for the key in `PARCELO_API_KEY` and the service at `PARCELO_BASE_URL`.
    ///
    /// Errors (`Config`) when one of them is missing or invalid.
    pub fn from_env() -> Result<Self, Error> {
        ClientBuilder::from_env()?.build_blocking()
    }

    /// Checks the key and returns its name, countries and environment.
    ///
    /// Errors: `Authentication` when the key is invalid, and those of every call.
    ///
    /// ```
    /// # use parcelo_server::mock::MockServer;
    /// # let runtime = tokio::runtime::Runtime::new()?;
    /// # let server = runtime.block_on(MockServer::start());
    /// # let client = server.in_memory_builder(&server.key().issue()).build_blocking()?;
    /// let health = client.health()?;
    /// println!("{} may ship to {:?}", health.key_name, health.allowed_countries);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn health(&self) -> Result<Reply<Health>, Error> {
        self.driver.call(self.inner.health())
    }

    /// Reads a path of the service that this version has no method for, as a type of your own:
    /// [`parcelo::Client::get`](crate::client::Client::get).
    ///
    /// ```
    /// # use parcelo_server::mock::MockServer;
    /// # let runtime = tokio::runtime::Runtime::new()?;
    /// # let server = runtime.block_on(MockServer::start());
    /// # let client = server.in_memory_builder(&server.key().issue()).build_blocking()?;
    /// let health = client.get::<serde_json::Value>("/api/v1/health")?;
    /// assert_eq!(health["status"], "ok");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn get<T: DeserializeOwned>(&self, path: &str) -> Result<Reply<T>, Error> {
        self.driver.call(self.inner.get(path))
    }

    /// Where the service is.
    pub fn base_url(&self) -> &Url {
        self.inner.base_url()
    }

    /// The language of texts for people.
    pub fn language(&self) -> Language {
        self.inner.language()
    }

    /// The environment that the key belongs to.
    pub fn environment(&self) -> Environment {
        self.inner.environment()
    }

    /// The same client with other settings for retries.
    ///
    /// It shares everything else with this one, including the thread. So do the clients of the next two methods.
    ///
    /// ```
    /// # use parcelo_server::mock::MockServer;
    /// use parcelo::Retry;
    ///
    /// # let runtime = tokio::runtime::Runtime::new()?;
    /// # let server = runtime.block_on(MockServer::start());
    /// # let client = server.in_memory_builder(&server.key().issue()).build_blocking()?;
    /// let health = client.with_retry(Retry::none()).health()?;
    /// assert_eq!(health.meta().attempts, 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn with_retry(&self, retry: Retry) -> Self {
        self.with(self.inner.with_retry(retry))
    }

    /// The same client with other timeouts. The timeout for connecting stays as it was built.
    #[must_use]
    pub fn with_timeouts(&self, timeouts: Timeouts) -> Self {
        self.with(self.inner.with_timeouts(timeouts))
    }

    /// The same client with another way to keep to the rate limit.
    #[must_use]
    pub fn with_rate_limit(&self, rate_limit: RateLimit) -> Self {
        self.with(self.inner.with_rate_limit(rate_limit))
    }

    fn with(&self, client: client::Client) -> Self {
        Self { inner: client, driver: self.driver.clone() }
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}
