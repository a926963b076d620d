//! Submitting and reading manifests.

use parcelo_types::{
    IdempotencyKey, ManifestRequest, Operation,
    model::{Manifest, ManifestId},
};

use super::{Call, Client, Reply, request::UnsentRequest};

/// Submitting and reading manifests; from [`Client::manifests`].
#[derive(Debug, Clone)]
pub struct Manifests {
    client: Client,
}

impl Client {
    /// Returns the calls for manifests, which list the parcels under an air waybill.
    pub fn manifests(&self) -> Manifests {
        Manifests { client: self.clone() }
    }
}

impl Manifests {
    /// Submits a manifest of 1-500 parcels: all of them, or none.
    ///
    /// The same parcels under the same air waybill are always the same manifest, so sending the request again
    /// is safe at any time. A request without an idempotency key gets one that is derived from its content.
    ///
    /// Errors: `Conflict` when parcels were rejected
    /// ([`ErrorBody::rejected_parcels`](crate::model::ErrorBody::rejected_parcels) lists them), or when the air
    /// waybill has a manifest with other parcels; `Validation`, and those of every call.
    ///
    /// ```
    #[doc = include_str!("example.txt")]
    /// # client.orders().create(&order).await?; // SB-SUCCESS-0001
    /// use parcelo::{Awb, IdempotencyKey, ManifestRequest, TrackingNumber};
    ///
    /// let numbers = [TrackingNumber::parse("SB-SUCCESS-0001")?];
    /// let key = IdempotencyKey::derive("flights", "EK213 2026-01-10");
    /// let request = ManifestRequest::new(key, Awb::parse("176-12345675")?, &numbers)
    ///     .with_flight_number("EK213");
    /// let manifest = client.manifests().submit(&request).await?;
    /// println!("{}: {} kg", manifest.manifest_id, manifest.total_weight_kg);
    /// # Ok(())
    /// # }
    /// ```
    pub fn submit(&self, request: &ManifestRequest) -> Call<Reply<Manifest>> {
        let key = request.idempotency_key.clone().unwrap_or_else(|| derive_key(request));
        let mut request = request.clone();
        request.idempotency_key = Some(key.clone());
        let unsent = UnsentRequest::new(&self.client, Operation::SubmitManifest)
            .idempotency_key(&key)
            .json_body(&request);
        Call::enveloped(&self.client, unsent)
    }

    /// Reads a manifest by its id, `man_…`.
    ///
    /// Errors: `NotFound`, and those of every call.
    ///
    /// ```
    #[doc = include_str!("example.txt")]
    /// # client.orders().create(&order).await?; // SB-SUCCESS-0001
    /// # let numbers = [parcelo::TrackingNumber::parse("SB-SUCCESS-0001")?];
    /// # let key = parcelo::IdempotencyKey::random();
    /// # let awb = parcelo::Awb::parse("176-12345675")?;
    /// # let request = parcelo::ManifestRequest::new(key, awb, &numbers);
    /// # let id = client.manifests().submit(&request).await?.manifest_id.clone();
    /// let manifest = client.manifests().get(&id).await?; // man_01KEBQ5R8T…
    /// println!("{}: {:?}", manifest.awb_number, manifest.tracking_numbers);
    /// # Ok(())
    /// # }
    /// ```
    pub fn get(&self, manifest_id: &ManifestId) -> Call<Reply<Manifest>> {
        let operation = Operation::GetManifest;
        let request = UnsentRequest::with_parameter(&self.client, operation, manifest_id.as_str());
        Call::enveloped(&self.client, Ok(request))
    }
}

/// Returns the key of a request that has none: the same request always gets the same key, in every process.
fn derive_key(request: &ManifestRequest) -> IdempotencyKey {
    // A request that cannot be serialised is refused before it is sent.
    let content = serde_json::to_string(request).unwrap_or_default();
    IdempotencyKey::derive("manifest", &content)
}
