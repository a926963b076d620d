//! Manifests.

use super::{Client, Error, Reply, call::Call};
use crate::{IdempotencyKey, Manifest, ManifestRequest, Operation};

/// Manifests: [`Client::manifests`].
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
    /// Submits a manifest of 1-500 parcels: all of them, or none.
    ///
    /// The same parcels under the same air waybill are one manifest for ever, so that trying again is
    /// always safe. A request that was read without an idempotency key is sent with one that follows
    /// from all that it says.
    ///
    /// Errors: `Conflict` when parcels were rejected, which
    /// [`ErrorBody::rejected_parcels`](crate::ErrorBody::rejected_parcels) names, or when the air
    /// waybill has a manifest of other parcels; `Validation`, and those of every call.
    ///
    /// ```no_run
    /// # async fn example(client: parcelo::Client) -> Result<(), parcelo::Error> {
    /// use parcelo::{Awb, IdempotencyKey, ManifestRequest, TrackingNumber};
    ///
    /// let numbers = [TrackingNumber::parse("SB-SUCCESS-0001")?];
    /// let key = IdempotencyKey::derive("flights", "EK213 2026-01-10");
    /// let mut request = ManifestRequest::new(key, Awb::parse("176-12345675")?, &numbers);
    /// request.flight_number = Some("EK213".to_owned());
    /// let manifest = client.manifests().submit(&request).await?;
    /// println!("{}: {} parcels, {} kg", manifest.manifest_id, manifest.parcel_count, manifest.total_weight_kg);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn submit(self, request: &ManifestRequest) -> Result<Reply<Manifest>, Error> {
        let key = request.idempotency_key.clone().unwrap_or_else(|| key_of(request));
        let request = ManifestRequest { idempotency_key: Some(key.clone()), ..request.clone() };
        let call = Call::new(Operation::SubmitManifest).keyed(&key).body(&request)?;
        self.client.data(call).await
    }

    /// Reads a manifest by its id, `man_…`.
    ///
    /// Errors: `NotFound`, and those of every call.
    ///
    /// ```no_run
    /// # async fn example(client: parcelo::Client) -> Result<(), parcelo::Error> {
    /// let manifest = client.manifests().get("man_01KEBQ5R8T0000000000000000").await?;
    /// println!("{}: {:?}", manifest.awb_number, manifest.tracking_numbers);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn get(self, manifest_id: &str) -> Result<Reply<Manifest>, Error> {
        self.client.data(Call::new(Operation::GetManifest).parameter(manifest_id)).await
    }
}

/// The key of a request that has none: the same request always has the same one.
fn key_of(request: &ManifestRequest) -> IdempotencyKey {
    // What cannot be written is refused before it is sent.
    let said = serde_json::to_string(request).unwrap_or_default();
    IdempotencyKey::derive("manifest", &said)
}
