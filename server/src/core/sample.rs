//! A small order that keeps every rule: for the first curl line, and as the document's example.

use serde_json::Value;

/// The order as one line of JSON.
pub const ORDER: &str = r#"{"idempotencyKey":"first-order-0001","trackingNumber":"SB-SUCCESS-0001","sender":{"fullName":"Ana Ruiz","phone":"+13055550100","address":{"line1":"8400 NW 25th St","city":"Miami","state":"FL","zipCode":"33122","country":"US"}},"receiver":{"fullName":"Luis Paredes","phone":"+593991234567","nationalId":"1714307103","idType":"cedula","address":{"line1":"Av. Amazonas N34-451","city":"Quito","province":"Pichincha","zipCode":"170515","country":"EC"}},"parcelDetails":{"weightKg":1.25,"declaredValue":45.50},"customsInfo":{"description":"Cotton shirts","hsCode":"610910"}}"#;

/// The order as a value.
pub fn order() -> Value {
    serde_json::from_str(ORDER).unwrap_or_default()
}
