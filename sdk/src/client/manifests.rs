//! Manifests.

use super::{Client, Error, Reply, call::Call};
use crate::{IdempotencyKey, Manifest, ManifestRequest, Operation};

/// Submits and reads manifests; see [`Client::manifests`].
#[derive(Debug, Clone, Copy)]
pub struct Manifests<'a> {
    client: &'a Client,
}

impl Client {
    /// Manifests: parcels under an air waybill.
    pub fn manifests(&self) -> Manifests<'_> {
        Manifests { client: self }
    }
}

impl Manifests<'_> {
    /// Submits a manifest of 1-500 parcels: all of them, or none (docs/api.md, Manifests).
    ///
    /// A request without an idempotency key gets one, so that trying again is always safe.
    pub async fn submit(self, request: &ManifestRequest) -> Result<Reply<Manifest>, Error> {
        let mut request = request.clone();
        let key = request.idempotency_key.get_or_insert_with(IdempotencyKey::random).clone();
        let call = Call::new(Operation::SubmitManifest).keyed(&key).body(&request)?;
        self.client.data(call).await
    }

    /// Reads a manifest by its id, `man_…`.
    pub async fn get(self, manifest_id: &str) -> Result<Reply<Manifest>, Error> {
        self.client.data(Call::new(Operation::GetManifest).parameter(manifest_id)).await
    }
}
