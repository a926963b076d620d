//! Valid orders for tests, and seed parcels, which are created like any other.

use std::sync::Arc;

use parcelo_domain::sample;
use parcelo_types::{CountryCode, IdempotencyKey, Language, OrderRequest, TrackingNumber};
use serde_json::{Value, json};

use super::MockServer;
use crate::service::{Caller, WriteResponse};

/// Receivers in the countries with special rules, which are also those of the seed parcels in turn.
const RECEIVERS: [(CountryCode, &str); 3] = [
    (
        CountryCode::EC,
        r#"{"fullName":"Luis Paredes","phone":"+593991234567","nationalId":"1714307103","idType":"cedula","address":{"line1":"Av. Amazonas N34-451","city":"Quito","province":"Pichincha","zipCode":"170515","country":"EC"}}"#,
    ),
    (
        CountryCode::MX,
        r#"{"fullName":"Marta Solís","phone":"+523312345678","nationalId":"GODE561231GR8","address":{"line1":"Av. Vallarta 1020","city":"Guadalajara","province":"Jalisco","zipCode":"44100","country":"MX"}}"#,
    ),
    (
        CountryCode::CO,
        r#"{"fullName":"Sara Gómez","phone":"+573001234567","nationalId":"1020304050","idType":"cedula","address":{"line1":"Cra. 43A 1-50","city":"Medellín","province":"Antioquia","zipCode":"050021","country":"CO"}}"#,
    ),
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
        Self::order_to(CountryCode::EC, number)
    }

    /// Returns a valid order like [`MockServer::order`], to a receiver in this country. Where the country's post
    /// requires a postal code or a state, the service warns that it is missing, except in Ecuador, Mexico and Colombia.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use parcelo::{CountryCode, ParcelStatus};
    /// use parcelo_server::mock::MockServer;
    ///
    /// let server = MockServer::start().await;
    /// let client = server.client(&server.key().countries(["CO"]).issue());
    /// let order = MockServer::order_to(CountryCode::CO, "SB-VOIDED-0001");
    /// let created = client.orders().create(&order).await?;
    /// let number = &created.parcel.tracking_number;
    /// server.put_status(number, ParcelStatus::Voided).await?; // or ManifestSubmitted, Delivered
    /// assert_eq!(client.tracking().get(number).await?.status, ParcelStatus::Voided);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Panics
    ///
    /// If it is not a tracking number, as for [`MockServer::order`].
    #[track_caller]
    pub fn order_to(country: CountryCode, number: &str) -> OrderRequest {
        match TrackingNumber::parse(number) {
            Ok(number) => Self::sample_order(country, number),
            #[expect(clippy::panic, reason = "a test's own constant is wrong; documented")]
            Err(error) => panic!("{number:?} is {error}, such as SB-SUCCESS-0001"),
        }
    }

    #[expect(clippy::expect_used, reason = "the samples are valid, as a test shows")]
    pub(super) fn sample_order(country: CountryCode, number: TrackingNumber) -> OrderRequest {
        let mut order: OrderRequest = serde_json::from_str(sample::ORDER).expect("an order");
        order.receiver = serde_json::from_value(sample_receiver(country)).expect("a receiver");
        order.idempotency_key = IdempotencyKey::parse(&format!("order-{number}")).expect("a key");
        order.tracking_number = Some(number);
        order
    }

    /// Issues a key of the account `default`, and returns its caller.
    pub(super) fn seed_caller(&self) -> Caller {
        let (_, key) = self.key().name("Seed").issue_with_record();
        Caller { key: Arc::new(key), trace: None }
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
        let caller = self.seed_caller();
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
    let country = RECEIVERS.get((index - 1) % RECEIVERS.len()).map(|(country, _)| *country);
    let mut order = sample::order();
    if let Some(order) = order.as_object_mut() {
        order.remove("trackingNumber");
        order.insert("idempotencyKey".to_owned(), json!(format!("seed-{index:05}")));
        order.insert("externalOrderId".to_owned(), json!(format!("SEED-{index:05}")));
        let receiver = sample_receiver(country.unwrap_or(CountryCode::EC));
        order.insert("receiver".to_owned(), receiver);
    }
    order
}

/// Returns a valid receiver in a country.
fn sample_receiver(country: CountryCode) -> Value {
    if let Some((_, receiver)) = RECEIVERS.iter().find(|(special, _)| *special == country) {
        return serde_json::from_str(receiver).unwrap_or_default();
    }
    json!({
        "fullName": "Rosa Díaz",
        "phone": format!("+{} 55501234", country.calling_code()),
        "address": { "line1": "1 Main Square", "city": country.name(Language::En), "country": country },
    })
}

fn created_number(response: WriteResponse) -> Option<TrackingNumber> {
    TrackingNumber::parse(json_of(response).pointer("/parcel/trackingNumber")?.as_str()?).ok()
}

fn json_of(response: WriteResponse) -> Value {
    let (WriteResponse::Created(body) | WriteResponse::Done(body) | WriteResponse::Replayed(body)) =
        response;
    serde_json::from_slice(&body).unwrap_or_default()
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
    async fn the_order_to_every_country_is_accepted() {
        let server = MockServer::start().await;
        let caller = server.seed_caller();
        for country in CountryCode::all() {
            let order = MockServer::order_to(country, &format!("SB-NORMAL-{country}"));
            let order = serde_json::to_value(&order).unwrap();
            let created = server.service.create_order(&caller, &order, None).await.unwrap();
            let body = json_of(created);
            let warnings = body["warnings"].as_array().map_or(0, Vec::len);
            let is_special = RECEIVERS.iter().any(|(special, _)| *special == country);
            assert!(!is_special || warnings == 0, "{country}: {body}");
        }
    }

    #[tokio::test]
    #[should_panic(
        expected = "\"Ecuador\" is not a country code: expected an assigned ISO 3166-1 code"
    )]
    async fn an_unknown_country_is_quoted_with_what_is_expected() {
        let _ = MockServer::start().await.key().countries(["EC", "Ecuador"]);
    }
}
