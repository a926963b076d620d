//! The closure that returns the current API key, for programs whose secrets are rotated while they run.

use std::{error, fmt, sync::Arc};

use parcelo_types::ApiKey;

use super::{ClientBuilder, Error, Settings, Texts};

type BoxError = Box<dyn error::Error + Send + Sync>;

/// The closure that returns the API key of each call.
#[derive(Clone)]
pub(in crate::client) struct KeyProvider(Arc<dyn Fn() -> Result<ApiKey, BoxError> + Send + Sync>);

impl KeyProvider {
    /// Returns the present key.
    pub(in crate::client) fn read(&self) -> Result<ApiKey, Error> {
        const NO_KEY: Texts = (
            "The API key could not be read from its provider.",
            "No se pudo obtener la clave de API de su proveedor.",
        );
        (self.0)().map_err(|error| Error::config(NO_KEY).with_source(error))
    }
}

impl fmt::Debug for KeyProvider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KeyProvider")
    }
}

impl ClientBuilder {
    /// Reads the API key from `read` at the start of each call, for an API key whose secret is rotated while the program
    /// runs. The key with which the builder was made is not sent; it says which environment the client has.
    ///
    /// A call has one key for all its attempts, also after a 401, and so has a shipment
    /// ([`Orders::ship`](crate::calls::Orders::ship)): to the service, a write that is repeated with another API key is
    /// another write. So return secrets of one and the same API key; for several, see [`Client::with_key`]. A call that
    /// consists of several requests, such as a list, reads the key for each of them.
    ///
    /// `read` should be quick, so read from memory what another task keeps current. If it fails, the call ends before
    /// anything is sent with an error (`Config`) whose source is that of `read`. So does a key that
    /// [`build`](Self::build) would refuse.
    ///
    /// ```
    /// # use parcelo::{ApiKey, Environment};
    /// # let key = ApiKey::from_random(Environment::Sandbox, &[7; 32]);
    /// use std::sync::{Arc, RwLock};
    ///
    /// use parcelo::Client;
    ///
    /// let current = Arc::new(RwLock::new(key.clone())); // another task writes to it
    /// let read = move || match current.read() {
    ///     Ok(key) => Ok(key.clone()),
    ///     Err(_) => Err("the task that reads the secret has panicked"),
    /// };
    /// let client = Client::builder(key)
    ///     .base_url("https://sandbox.parcelo.example")?
    ///     .key_provider(read)
    ///     .build()?;
    /// # Ok::<(), parcelo::Error>(())
    /// ```
    ///
    /// [`Client::with_key`]: crate::Client::with_key
    pub fn key_provider<E>(
        self,
        read: impl Fn() -> Result<ApiKey, E> + Send + Sync + 'static,
    ) -> Self
    where
        E: Into<Box<dyn error::Error + Send + Sync>>,
    {
        let provider = KeyProvider(Arc::new(move || read().map_err(Into::into)));
        let settings = Settings { key_provider: Some(provider), ..self.settings };
        Self { settings, ..self }
    }
}
