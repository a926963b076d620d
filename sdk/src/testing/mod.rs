//! Tests of an integrator's own code without a socket and without the service: a transport that responds from a script,
//! a service whose responses get lost, every end that the creation of an order can have, and responses and errors as
//! the client returns them.
//!
//! To test against the service itself, use the `MockServer` of the crate `parcelo-server`. This module needs no other
//! crate. Its functions panic where a test's own constant is wrong.
//!
//! # A handler never ships twice
//!
//! [`call_ends`] lists the ends of a call that leave open, settle or rule out that the order was created, and
//! [`FaultyService`] lets creations end in these ways. Here is a wrong handler that is found out, and a right one that
//! passes:
//!
//! ```
//! use parcelo::testing::{self, CallEnd, FaultyService};
//! use parcelo::{Client, IdempotencyKey, NextStep, OrderRequest};
//!
//! /// Sends the order again after an error, each time as a new one.
//! async fn wrong(client: Client, mut order: OrderRequest) {
//!     for _ in 0..5 {
//!         let Err(_) = client.orders().create(&order).await else { return };
//!         order.idempotency_key = IdempotencyKey::random();
//!     }
//! }
//!
//! /// Sends the order again only if the error says so, and leaves everything else to a person.
//! async fn right(client: Client, order: OrderRequest) {
//!     for _ in 0..5 {
//!         let Err(error) = client.orders().create(&order).await else { return };
//!         let NextStep::Resend { after } = error.next_step() else { return };
//!         tokio::time::sleep(after).await;
//!     }
//! }
//!
//! /// Returns the first end of a call after which the handler ships the order twice.
//! async fn double_shipment(handler: impl AsyncFn(Client, OrderRequest)) -> Option<CallEnd> {
//!     for end in testing::call_ends() {
//!         let service = FaultyService::new([end.clone()]);
//!         handler(service.client(), testing::order()).await;
//!         if service.parcels() > 1 {
//!             return Some(end);
//!         }
//!     }
//!     None
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() {
//! tokio::time::pause(); // no test waits
//! assert!(double_shipment(wrong).await.is_some());
//! assert!(double_shipment(right).await.is_none());
//! # }
//! ```
//!
//! With the feature `proptest`, [`CallEnd`] is `Arbitrary`, so that a handler can be tried with any sequence of ends:
//!
//! ```
//! use parcelo::testing::{self, CallEnd, FaultyService};
//! use proptest::prelude::*;
//! # async fn handle(client: parcelo::Client, order: parcelo::OrderRequest) {
//! #     let _ = client.orders().create(&order).await;
//! # }
//!
//! proptest!(|(ends: Vec<CallEnd>)| {
//!     let mut runtime = tokio::runtime::Builder::new_current_thread();
//!     let runtime = runtime.enable_time().start_paused(true).build()?;
//!     let service = FaultyService::new(ends);
//!     runtime.block_on(handle(service.client(), testing::order()));
//!     prop_assert!(service.parcels() <= 1);
//! });
//! ```

mod call_end;
mod errors;
mod faulty_service;
mod kill_points;
mod responses;
mod scripted_transport;

use parcelo_types::{ApiKey, OrderRequest};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::{Client, ClientBuilder};

pub use call_end::{CallEnd, Execution, call_ends};
pub use errors::{error, error_after, left_open};
pub use faulty_service::FaultyService;
pub use kill_points::{Violation, kill_points};
pub use responses::{created_order, parcel_summary, reply, shipped, tracking_record};
pub use scripted_transport::{Piece, ScriptedTransport, Step};

/// Returns a sandbox key that the service does not know.
#[expect(
    clippy::expect_used,
    clippy::missing_panics_doc,
    reason = "the text is this one, and a test covers it"
)]
pub fn api_key() -> ApiKey {
    ApiKey::parse("pk_test_dummy").expect("a key")
}

/// Returns a valid order from Miami to Quito with the external id `1001`. It has the same idempotency key each time.
///
/// ```
/// use parcelo::IdempotencyKey;
/// use parcelo::testing::order;
///
/// let other = order().with_idempotency_key(IdempotencyKey::derive("test", "1002"));
/// assert_ne!(other.with_external_order_id("1002"), order());
/// ```
pub fn order() -> OrderRequest {
    from_json(json!({
        "idempotencyKey": "order-1001",
        "externalOrderId": "1001",
        "sender": {"fullName": "Ana Ruiz", "phone": "+13055550100",
            "address": {"line1": "8400 NW 25th St", "city": "Miami", "state": "FL", "country": "US"}},
        "receiver": {"fullName": "Luis Paredes", "phone": "+593991234567",
            "idType": "cedula", "nationalId": "1714307103",
            "address": {"line1": "Av. Amazonas N34-451", "city": "Quito", "province": "Pichincha",
                "country": "EC"}},
        "parcelDetails": {"weightKg": 1.25, "declaredValue": 45.5},
        "products": [{"description": "Cotton shirt", "quantity": 2, "unitFobValue": 22.75,
            "hsCode": "610910"}]
    }))
}

fn build(builder: ClientBuilder) -> Client {
    #[expect(clippy::expect_used, reason = "a key and a transport are all that it needs")]
    builder.build().expect("a client")
}

/// Reads a constant of this module as the client reads a response.
fn from_json<T: DeserializeOwned>(json: Value) -> T {
    #[expect(clippy::expect_used, reason = "the values are constants, and a test covers each")]
    serde_json::from_value(json).expect("a value of this type")
}

#[cfg(test)]
mod tests {
    use parcelo_types::rules::{Destinations, OrderContext, check_order};

    use super::*;

    #[test]
    fn the_order_keeps_the_rules() {
        let body = serde_json::to_value(order()).unwrap();
        let accepted = check_order(&body, &OrderContext::new(&Destinations::All)).unwrap();
        assert_eq!((accepted.value, accepted.warnings), (order(), vec![]));
    }

    #[test]
    fn the_key_belongs_to_the_sandbox() {
        assert_eq!(api_key().environment(), parcelo_types::Environment::Sandbox);
    }
}
