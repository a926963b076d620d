//! The client: one call is one future, retried where that is safe, with typed answers and errors.
//!
//! [`Client`] is made by [`ClientBuilder`]; its methods hand out one small handle for each resource
//! ([`Orders`], [`Tracking`], [`Labels`]). Every method makes a `Call` of an operation, `send` makes
//! its attempts, `retry` decides about the next one, and a [`Transport`] carries them. Rules about
//! orders are not decided here: see `rules`.

mod body;
mod builder;
mod call;
mod clock;
mod error;
mod failure;
mod hint;
mod labels;
mod manifests;
mod orders;
mod parcels;
mod reply;
mod retry;
mod sandbox;
mod send;
mod socket;
mod timeouts;
mod tracking;
mod transport;

use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError},
};

use fastrand::Rng;
use http::HeaderMap;
use url::Url;

pub use builder::ClientBuilder;
pub use error::{Error, ErrorKind};
pub use labels::{LabelDownload, LabelStream, Labels};
pub use manifests::Manifests;
pub use orders::Orders;
pub use parcels::{ListParcels, Page, Parcels};
pub use reply::{Outcome, RateLimitStatus, Reply, ReplyMeta};
pub use retry::{Retry, StopReason};
pub use sandbox::Sandbox;
pub use timeouts::Timeouts;
pub use tracking::{GetTracking, TrackBatch, Tracking};
pub use transport::{BodyStream, Phase, Transport, TransportError};

use crate::{ApiKey, Environment, Health, Language, Operation};
use call::Call;
use failure::Failure;
use retry::{Decision, Failed};

/// A client of the service, for one API key.
///
/// Cloning is cheap; clones share connections. It runs on a tokio runtime with its timer enabled.
///
/// ```no_run
/// # async fn example(order: parcelo::OrderRequest) -> Result<(), parcelo::Error> {
/// use parcelo::{Client, LabelFormat};
///
/// let client = Client::from_env()?;
/// let created = client.orders().create(&order).await?;
/// let number = &created.parcel.tracking_number;
/// client.labels().download(number, LabelFormat::Pdf).save_to("label.pdf").await?;
/// println!("{}", client.tracking().get(number).await?.status_name);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Client(Arc<Inner>);

struct Inner {
    base_url: Url,
    environment: Environment,
    language: Language,
    headers: HeaderMap,
    timeouts: Timeouts,
    retry: Retry,
    transport: Arc<dyn Transport>,
    rng: Mutex<Rng>,
}

impl Client {
    /// A client for the key in `PARCELO_API_KEY` and the service at `PARCELO_BASE_URL`.
    ///
    /// Errors (`Config`) when one of them is missing or wrong.
    pub fn from_env() -> Result<Self, Error> {
        ClientBuilder::from_variables(|name| std::env::var(name))?.build()
    }

    /// A builder of a client for a key.
    pub fn builder(key: ApiKey) -> ClientBuilder {
        ClientBuilder::new(key)
    }

    fn new(inner: Inner) -> Self {
        Self(Arc::new(inner))
    }

    /// Checks the key: its name, its countries, its environment.
    ///
    /// Errors: `Authentication` when the key is wrong, and those of every call.
    ///
    /// ```no_run
    /// # async fn example(client: parcelo::Client) -> Result<(), parcelo::Error> {
    /// let health = client.health().await?;
    /// println!("{} may ship to {:?}", health.key_name, health.allowed_countries);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn health(&self) -> Result<Reply<Health>, Error> {
        self.json(Call::new(Operation::Health)).await
    }

    /// Where the service is.
    pub fn base_url(&self) -> &Url {
        &self.0.base_url
    }

    /// The language of texts for people.
    pub fn language(&self) -> Language {
        self.0.language
    }

    /// The environment that the key belongs to.
    pub fn environment(&self) -> Environment {
        self.0.environment
    }

    fn headers(&self) -> &HeaderMap {
        &self.0.headers
    }

    fn timeouts(&self) -> Timeouts {
        self.0.timeouts
    }

    fn transport(&self) -> &dyn Transport {
        &*self.0.transport
    }

    fn decide(&self, failed: &Failed) -> Decision {
        retry::decide(self.0.retry, failed, &mut self.rng())
    }

    fn random(&self) -> u64 {
        self.rng().u64(..)
    }

    fn rng(&self) -> std::sync::MutexGuard<'_, Rng> {
        // A generator is as good after a panic as before.
        self.0.rng.lock().unwrap_or_else(PoisonError::into_inner)
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
