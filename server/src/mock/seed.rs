//! Parcels to begin with: valid orders, created as any other.

use std::sync::Arc;

use parcelo::TrackingNumber;
use serde_json::{Value, json};

use super::MockServer;
use crate::{
    domain::sample,
    service::{Answer, Caller},
};

/// To whom the orders go, one after the other: Ecuador, Mexico, Colombia.
const RECEIVERS: [&str; 3] = [
    r#"{"fullName":"Luis Paredes","phone":"+593991234567","nationalId":"1714307103","idType":"cedula","address":{"line1":"Av. Amazonas N34-451","city":"Quito","province":"Pichincha","zipCode":"170515","country":"EC"}}"#,
    r#"{"fullName":"Marta Solís","phone":"+523312345678","nationalId":"GODE561231GR8","address":{"line1":"Av. Vallarta 1020","city":"Guadalajara","province":"Jalisco","zipCode":"44100","country":"MX"}}"#,
    r#"{"fullName":"Sara Gómez","phone":"+573001234567","nationalId":"1020304050","idType":"cedula","address":{"line1":"Cra. 43A 1-50","city":"Medellín","province":"Antioquia","zipCode":"050021","country":"CO"}}"#,
];

impl MockServer {
    /// Creates `n` parcels of the account `default`, to Ecuador, Mexico and Colombia in turn, with
    /// external order ids `SEED-00001` and so on; they are on no simulated journey. Answers with
    /// their tracking numbers.
    ///
    /// ```
    /// # #[cfg(feature = "sdk")]
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
    /// # #[cfg(not(feature = "sdk"))]
    /// # fn main() {}
    /// ```
    ///
    /// # Panics
    ///
    /// Never: the orders keep every rule.
    pub async fn seed_parcels(&self, n: usize) -> Vec<TrackingNumber> {
        let (_, key) = self.key().name("Seed").make();
        let caller = Caller { key: Arc::new(key) };
        let mut numbers = Vec::with_capacity(n);
        for place in 1..=n {
            let created = self.service.create_order(&caller, &order(place), None).await;
            #[expect(clippy::expect_used, reason = "the orders keep every rule, as a test shows")]
            numbers.push(created.ok().and_then(number).expect("the orders keep every rule"));
        }
        numbers
    }
}

fn order(place: usize) -> Value {
    let receiver = RECEIVERS.get((place - 1) % RECEIVERS.len()).copied().unwrap_or_default();
    let mut order = sample::order();
    if let Some(order) = order.as_object_mut() {
        order.remove("trackingNumber");
        order.insert("idempotencyKey".to_owned(), json!(format!("seed-{place:05}")));
        order.insert("externalOrderId".to_owned(), json!(format!("SEED-{place:05}")));
        order.insert("receiver".to_owned(), serde_json::from_str(receiver).unwrap_or_default());
    }
    order
}

fn number(answer: Answer) -> Option<TrackingNumber> {
    let (Answer::Created(body) | Answer::Done(body) | Answer::Replayed(body)) = answer;
    let body: Value = serde_json::from_slice(&body).ok()?;
    TrackingNumber::parse(body.pointer("/parcel/trackingNumber")?.as_str()?).ok()
}
