//! Resetting the sandbox.

use parcelo_types::{Operation, model::SandboxReset};

use super::{Call, Client, Reply, request::UnsentRequest};

/// The sandbox; from [`Client::sandbox`].
#[derive(Debug, Clone)]
pub struct Sandbox {
    client: Client,
}

impl Client {
    /// Returns the calls for the sandbox, which can be reset.
    pub fn sandbox(&self) -> Sandbox {
        Sandbox { client: self.clone() }
    }
}

impl Sandbox {
    /// Deletes all orders, manifests and tracking data of the account's sandbox, irrevocably.
    ///
    /// A call that may have been executed is not retried: it would also delete data created since.
    ///
    /// Errors: `Forbidden` with a live key, and those of every call.
    ///
    /// ```
    #[doc = include_str!("example.txt")]
    /// # client.orders().create(&order).await?; // SB-SUCCESS-0001
    /// let reset = client.sandbox().reset().await?;
    /// assert_eq!(reset.deleted.parcels, 1);
    /// # Ok(())
    /// # }
    /// ```
    pub fn reset(&self) -> Call<Reply<SandboxReset>> {
        let request = UnsentRequest::new(&self.client, Operation::ResetSandbox);
        Call::enveloped(&self.client, Ok(request))
    }
}
