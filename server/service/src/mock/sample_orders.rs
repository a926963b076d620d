//! Valid orders for tests, and seed parcels, which are created like any other.

use std::sync::Arc;

use parcelo_domain::sample;
use parcelo_types::{IdempotencyKey, OrderRequest, TrackingNumber};
use serde_json::{Value, json};

use super::MockServer;
use crate::service::{Caller, WriteResponse};

/// The receivers of the orders in turn: Ecuador, Mexico, Colombia.
const RECEIVERS: [&str; 3] = [
    r#"{"fullName":"Luis Paredes","phone":"+593991234567","nationalId":"1714307103","idType":"cedula","address":{"line1":"Av. Amazonas N34-451","city":"Quito","province":"Pichincha","zipCode":"170515","country":"EC"}}"#,
    r#"{"fullName":"Marta Solís","phone":"+523312345678","nationalId":"GODE561231GR8","address":{"line1":"Av. Vallarta 1020","city":"Guadalajara","province":"Jalisco","zipCode":"44100","country":"MX"}}"#,
    r#"{"fullName":"Sara Gómez","phone":"+573001234567","nationalId":"1020304050","idType":"cedula","address":{"line1":"Cra. 43A 1-50","city":"Medellín","province":"Antioquia","zipCode":"050021","country":"CO"}}"#,
];

impl MockServer {
    /// Returns a valid order with this tracking number: Miami to Quito, with `order-` and the number as its idempotency
    /// key. The number's prefix selects the parcel's simulated journey: `SB-SUCCESS-`, `SB-FAIL-`, `SB-CUSTOMS-`,
    /// `SB-RTS-` (docs/api.md, Sandbox). A parcel with any other number keeps its status until
    /// [`MockServer::put_status`] changes it.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use parcelo::ParcelStatus;
    /// use parcelo_server::mock::MockServer;
    ///
    /// let server = MockServer::start().await;
    /// let client = server.client(&server.key().issue());
    /// let created = client.orders().create(&MockServer::order("SB-SUCCESS-0001")).await?;
    /// let number = &created.parcel.tracking_number;
    /// server.clock().advance_until(number, ParcelStatus::Delivered).await?;
    /// assert_eq!(client.tracking().get(number).await?.status, ParcelStatus::Delivered);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Panics
    ///
    /// If it is not a tracking number: 10-30 letters, digits and hyphens. The message quotes the text.
    #[track_caller]
    pub fn order(number: &str) -> OrderRequest {
        match TrackingNumber::parse(number) {
            Ok(number) => Self::sample_order(number),
            #[expect(clippy::panic, reason = "a test's own constant is wrong; documented")]
            Err(error) => panic!("{number:?} is {error}, such as SB-SUCCESS-0001"),
        }
    }

    pub(super) fn sample_order(number: TrackingNumber) -> OrderRequest {
        #[expect(clippy::expect_used, reason = "the sample is a valid order, as a test shows")]
        let mut order: OrderRequest = serde_json::from_str(sample::ORDER).expect("an order");
        #[expect(
            clippy::expect_used,
            reason = "a number has at most 30 letters, digits and hyphens"
        )]
        let key = IdempotencyKey::parse(&format!("order-{number}")).expect("a key");
        order.idempotency_key = key;
        order.tracking_number = Some(number);
        order
    }

    /// Creates `n` parcels of the account `default`, to Ecuador, Mexico and Colombia in turn, with the external order
    /// ids `SEED-00001` and so on, without a simulated journey. Returns their tracking numbers.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), parcelo::Error> {
    /// use parcelo::ParcelStatus;
    /// use parcelo_server::mock::MockServer;
    ///
    /// let server = MockServer::start().await;
    /// let numbers = server.seed_parcels(40).await;
    /// let client = server.client(&server.key().issue());
    /// let parcel = client.tracking().get(&numbers[39]).await?;
    /// assert_eq!(parcel.status, ParcelStatus::LabelGenerated);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Panics
    ///
    /// Never: the orders are valid.
    pub async fn seed_parcels(&self, n: usize) -> Vec<TrackingNumber> {
        let (_, key) = self.key().name("Seed").issue_with_record();
        let caller = Caller { key: Arc::new(key) };
        let mut numbers = Vec::with_capacity(n);
        for index in 1..=n {
            let created = self.service.create_order(&caller, &seed_order(index), None).await;
            #[expect(clippy::expect_used, reason = "the orders are valid, as a test shows")]
            numbers.push(created.ok().and_then(created_number).expect("a valid order"));
        }
        numbers
    }
}

fn seed_order(index: usize) -> Value {
    let receiver = RECEIVERS.get((index - 1) % RECEIVERS.len()).copied().unwrap_or_default();
    let mut order = sample::order();
    if let Some(order) = order.as_object_mut() {
        order.remove("trackingNumber");
        order.insert("idempotencyKey".to_owned(), json!(format!("seed-{index:05}")));
        order.insert("externalOrderId".to_owned(), json!(format!("SEED-{index:05}")));
        order.insert("receiver".to_owned(), serde_json::from_str(receiver).unwrap_or_default());
    }
    order
}

fn created_number(response: WriteResponse) -> Option<TrackingNumber> {
    let (WriteResponse::Created(body) | WriteResponse::Done(body) | WriteResponse::Replayed(body)) =
        response;
    let body: Value = serde_json::from_slice(&body).ok()?;
    TrackingNumber::parse(body.pointer("/parcel/trackingNumber")?.as_str()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[should_panic(
        expected = "\"SB-NOPE-1\" is not a tracking number: expected 10-30 letters, digits and hyphens"
    )]
    fn a_malformed_number_is_quoted_with_what_is_expected() {
        let _ = MockServer::order("SB-NOPE-1");
    }

    #[tokio::test]
    #[should_panic(
        expected = "\"Ecuador\" is not a country code: expected an assigned ISO 3166-1 code"
    )]
    async fn an_unknown_country_is_quoted_with_what_is_expected() {
        let _ = MockServer::start().await.key().countries(["EC", "Ecuador"]);
    }
}
