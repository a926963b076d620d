//! The sandbox.

use super::{Client, Error, Reply, call::Call};
use crate::{Operation, SandboxReset};

/// The sandbox as a whole: [`Client::sandbox`].
#[derive(Debug, Clone, Copy)]
pub struct Sandbox<'a> {
    client: &'a Client,
}

impl Client {
    /// The sandbox as a whole.
    pub fn sandbox(&self) -> Sandbox<'_> {
        Sandbox { client: self }
    }
}

impl Sandbox<'_> {
    /// Deletes all orders, manifests and tracking data of the caller's sandbox, for good.
    ///
    /// A call that may have been executed is not repeated: what was made since would be deleted too.
    ///
    /// Errors: `Forbidden` with a live key, and those of every call.
    ///
    /// ```no_run
    /// # async fn example(client: parcelo::Client) -> Result<(), parcelo::Error> {
    /// let reset = client.sandbox().reset().await?;
    /// println!("{} parcels deleted", reset.deleted.parcels);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn reset(self) -> Result<Reply<SandboxReset>, Error> {
        self.client.data(Call::new(Operation::ResetSandbox)).await
    }
}
