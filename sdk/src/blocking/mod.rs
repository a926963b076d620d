//! The client for programs without `async`: each method blocks until its response has arrived.
//!
//! Every method calls the one of the same name in [`parcelo::Client`](crate::client::Client) or its handles and
//! waits for it. Settings, retries, errors and guarantees are the same.
//!
//! ```
//! use parcelo::{Client, LabelFormat};
//! # use parcelo_server::mock::MockServer;
//!
//! # let runtime = tokio::runtime::Runtime::new()?;
//! # let server = runtime.block_on(MockServer::start());
//! # let (key, address) = (server.key().issue(), server.url());
//! # let order = serde_json::from_str(parcelo_server::mock::sample::ORDER)?;
//! // Or parcelo::blocking::Client::from_env()?, with PARCELO_API_KEY and PARCELO_BASE_URL.
//! let client = Client::builder(key).base_url(address)?.build_blocking()?;
//! let created = client.orders().create(&order)?;
//! let number = &created.parcel.tracking_number;
//! let label = client.labels().download(number, LabelFormat::Pdf).bytes()?;
//! assert!(label.starts_with(b"%PDF"));
//! println!("{number} is {}", client.tracking().get(number).send()?.status);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A client has a separate thread, which ends with its last clone. It also works inside a tokio runtime, but blocks the
//! thread that calls it: prefer [`parcelo::Client`](crate::client::Client) there.

mod calls;
mod driver;
mod iter;

use std::fmt;

use parcelo_types::{Environment, Language};
use url::Url;

pub use calls::{LabelDownload, Labels, Manifests, Orders, Parcels, Request, Sandbox, Tracking};
pub use iter::{CreateMany, ItemIter, LabelReader};

use crate::client::{self, ClientBuilder, Error};
use driver::{Driver, FromAsync};

/// A client of the service, for one API key, whose methods block.
///
/// Cloning is cheap; clones share connections, the budget for retries, and the rate limiter.
#[derive(Clone)]
pub struct Client {
    inner: client::Client,
    driver: Driver,
}

impl ClientBuilder {
    /// Builds the client as [`build`](ClientBuilder::build) does, for a program without `async`.
    pub fn build_blocking(self) -> Result<Client, Error> {
        let driver = Driver::start()?;
        Ok(Client { inner: self.build()?, driver })
    }
}

impl Client {
    /// Returns a client for the key in `PARCELO_API_KEY` and the service at `PARCELO_BASE_URL`.
    ///
    /// Errors (`Config`) when one of them is missing or invalid.
    pub fn from_env() -> Result<Self, Error> {
        ClientBuilder::from_env()?.build_blocking()
    }

    /// Returns the address of the service.
    pub fn base_url(&self) -> &Url {
        self.inner.base_url()
    }

    /// Returns the language of texts for people.
    pub fn language(&self) -> Language {
        self.inner.language()
    }

    /// Returns the environment that the key belongs to.
    pub fn environment(&self) -> Environment {
        self.inner.environment()
    }
}

impl FromAsync<'_, client::Client> for Client {
    fn from_async(inner: client::Client, driver: &Driver) -> Self {
        Self { inner, driver: driver.clone() }
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}
