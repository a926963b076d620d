//! Small valid requests for the first curl command and the examples in the OpenAPI document, and the author of changes
//! in tests.

use serde_json::{Value, json};

use crate::{
    Millis,
    audit::{Actor, Author},
};

/// The author of changes in tests that are not about the audit log.
pub static TEST_AUTHOR: Author = Actor::Server.at(Millis(0));

/// The order as one line of JSON.
pub const ORDER: &str = r#"{"idempotencyKey":"first-order-0001","trackingNumber":"SB-SUCCESS-0001","sender":{"fullName":"Ana Ruiz","phone":"+13055550100","address":{"line1":"8400 NW 25th St","city":"Miami","state":"FL","zipCode":"33122","country":"US"}},"receiver":{"fullName":"Luis Paredes","phone":"+593991234567","nationalId":"1714307103","idType":"cedula","address":{"line1":"Av. Amazonas N34-451","city":"Quito","province":"Pichincha","zipCode":"170515","country":"EC"}},"parcelDetails":{"weightKg":1.25,"declaredValue":45.50},"customsInfo":{"description":"Cotton shirts","hsCode":"610910"}}"#;

/// Returns the order as a value.
pub fn order() -> Value {
    serde_json::from_str(ORDER).unwrap_or_default()
}

/// Returns a manifest of that order's parcel.
pub fn manifest() -> Value {
    json!({
        "idempotencyKey": "man-2026-01-10-A",
        "awbNumber": "176-12345675",
        "trackingNumbers": ["SB-SUCCESS-0001"],
        "flightNumber": "EK213",
        "departureDate": "2026-01-11",
        "originAirport": "MIA",
        "destinationAirport": "UIO",
        "reference": "PO-77",
    })
}

/// Returns a carrier's request about that order's parcel.
pub fn carrier_events() -> Value {
    json!({ "events": [{
        "eventId": "scan-0001",
        "trackingNumber": "SB-SUCCESS-0001",
        "status": "IN_TRANSIT",
        "occurredAt": "2026-01-10T10:05:00-05:00",
        "location": "Quito, EC",
    }] })
}

#[cfg(test)]
mod tests {
    use parcelo_types::{Environment, internal::check_manifest, rules};
    use parcelo_wire::check_carrier_events;

    use super::*;

    #[test]
    fn every_example_is_accepted() {
        let context = rules::OrderContext::new(&rules::Destinations::All)
            .with_environment(Environment::Sandbox);
        assert_eq!(rules::check_order(&order(), &context).unwrap().warnings, []);
        assert!(check_manifest(&manifest(), None).is_ok());
        let now = Millis(1_768_057_500_000).to_utc();
        assert_eq!(check_carrier_events(&carrier_events(), now).unwrap().events.len(), 1);
    }
}
