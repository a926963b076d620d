//! Submitting and reading manifests.

use super::Client;
use crate::{
    client::{Error, Reply},
    model::{Manifest, ManifestId, ManifestRequest},
};

/// Manifests: [`Client::manifests`].
#[derive(Debug, Clone, Copy)]
pub struct Manifests<'a> {
    client: &'a Client,
}

impl Client {
    /// Manifests: the parcels under an air waybill.
    pub fn manifests(&self) -> Manifests<'_> {
        Manifests { client: self }
    }
}

impl Manifests<'_> {
    /// Submits a manifest of 1-500 parcels: all of them, or none; see
    /// [`Manifests::submit`](crate::client::Manifests::submit).
    ///
    /// ```
    /// # use parcelo_server::mock::MockServer;
    /// use parcelo::{Awb, IdempotencyKey, ManifestRequest};
    ///
    /// # let runtime = tokio::runtime::Runtime::new()?;
    /// # let server = runtime.block_on(MockServer::start());
    /// # let client = server.in_memory_builder(&server.key().issue()).build_blocking()?;
    /// # let order = serde_json::from_str(parcelo_server::mock::sample::ORDER)?;
    /// # let numbers = [client.orders().create(&order)?.into_inner().parcel.tracking_number];
    /// let key = IdempotencyKey::derive("flights", "EK213 2026-01-10");
    /// let request = ManifestRequest::new(key, Awb::parse("176-12345675")?, &numbers);
    /// let manifest = client.manifests().submit(&request)?;
    /// let known = client.manifests().get(&manifest.manifest_id)?;
    /// assert_eq!(known.tracking_numbers, numbers);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn submit(self, request: &ManifestRequest) -> Result<Reply<Manifest>, Error> {
        self.client.driver.call(self.client.inner.manifests().submit(request))
    }

    /// Reads a manifest by its id, `man_…`: [`Manifests::get`](crate::calls::Manifests::get).
    pub fn get(self, manifest_id: &ManifestId) -> Result<Reply<Manifest>, Error> {
        self.client.driver.call(self.client.inner.manifests().get(manifest_id))
    }
}
