//! Resetting the sandbox.

use super::Client;
use crate::{
    client::{Error, Reply},
    model::SandboxReset,
};

/// The sandbox: [`Client::sandbox`].
#[derive(Debug, Clone, Copy)]
pub struct Sandbox<'a> {
    client: &'a Client,
}

impl Client {
    /// The sandbox: reset it.
    pub fn sandbox(&self) -> Sandbox<'_> {
        Sandbox { client: self }
    }
}

impl Sandbox<'_> {
    /// Deletes all data of the account's sandbox, irrevocably: [`Sandbox::reset`](crate::client::Sandbox::reset).
    ///
    /// ```
    /// # use parcelo_server::mock::MockServer;
    /// # let runtime = tokio::runtime::Runtime::new()?;
    /// # let server = runtime.block_on(MockServer::start());
    /// # let client = server.in_memory_builder(&server.key().issue()).build_blocking()?;
    /// let reset = client.sandbox().reset()?;
    /// println!("{} parcels deleted", reset.deleted.parcels);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn reset(self) -> Result<Reply<SandboxReset>, Error> {
        self.client.driver.call(self.client.inner.sandbox().reset())
    }
}
