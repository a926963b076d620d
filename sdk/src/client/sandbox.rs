//! The sandbox.

use super::{Client, Error, Reply, call::Call};
use crate::{Operation, SandboxReset};

/// Works on the sandbox as a whole; see [`Client::sandbox`].
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
    /// Deletes all orders, manifests and tracking data of the caller's sandbox, for good. A call
    /// that fails is never repeated by the client. A live key is refused.
    pub async fn reset(self) -> Result<Reply<SandboxReset>, Error> {
        self.client.data(Call::new(Operation::ResetSandbox)).await
    }
}
