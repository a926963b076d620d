//! The order: the request that creates it, and the response (spec: Order request, Parcel).
//!
//! These types carry an order; whether it keeps the rules is decided by [`crate::rules`].
//! `Debug` of the order, the sender, the receiver and their addresses shows no personal data.

use chrono::{DateTime, Utc};
use rust_decimal::Decimal;
use serde::{Deserialize, Serialize};

use super::{
    CountryCode, CurrencyCode, CustomsInfo, IdempotencyKey, LabelLink, ParcelId, ParcelStatus,
    Product, TrackingNumber, Warning, decimal, lenient, macros::setters, macros::wire_enum, time,
};

/// A request to create an order (docs/api.md, Create an order): [`OrderRequest::builder`] makes one that
/// keeps the rules, and one that was read from JSON is checked by the server.
///
/// Read from JSON alone, its key has no history, and is sent even if it is older than 24 hours;
/// [`Saved`](super::Saved) reads the history too.
///
/// `Debug` shows its numbers and countries, and nothing personal.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(
    feature = "utoipa",
    derive(utoipa::ToSchema),
    schema(description = "A request to create an order.")
)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct OrderRequest {
    /// The caller's name for this write: within 24 hours, the same key, sent with the same API key, never creates a
    /// second parcel.
    #[cfg_attr(feature = "utoipa", schema(value_type = Option<IdempotencyKey>))]
    pub idempotency_key: IdempotencyKey,
    /// The caller's own tracking number; if it is absent, the service generates one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tracking_number: Option<TrackingNumber>,
    /// The order's id in the caller's system, at most 100 characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub external_order_id: Option<String>,
    /// The customer's reference, at most 100 characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub customer_reference: Option<String>,
    /// The sender.
    pub sender: Sender,
    /// The receiver.
    pub receiver: Receiver,
    /// The weight, size and value.
    pub parcel_details: ParcelDetails,
    /// The customs declaration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub customs_info: Option<CustomsInfo>,
    /// The line items, at most 500.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "utoipa", schema(value_type = Option<Vec<Product>>))]
    pub products: Vec<Product>,
}

/// The sender of a parcel (docs/api.md, Fields and their rules). `Debug` shows the country only.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(
    feature = "utoipa",
    derive(utoipa::ToSchema),
    schema(description = "Who sends the parcel.")
)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Sender {
    /// The full name, at most 255 characters.
    pub full_name: String,
    /// The company, at most 255 characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub company_name: Option<String>,
    /// The telephone number with country code, 7-15 digits after the `+`: `+1 305 555 0100`.
    pub phone: String,
    /// The e-mail address for notifications.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub email: Option<String>,
    /// The address that the parcel comes from.
    pub address: SenderAddress,
}

/// The address that a parcel comes from.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "utoipa", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct SenderAddress {
    /// The street and number.
    pub line1: String,
    /// The second line, such as a suite or floor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line2: Option<String>,
    /// The city.
    pub city: String,
    /// The state or province, for US and CA.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
    /// The postal code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zip_code: Option<String>,
    /// The country.
    pub country: CountryCode,
}

wire_enum! {
    /// The kind of a national id.
    IdType {
        /// A person's id card (Ecuador, Colombia).
        Cedula = "cedula",
        /// A tax number (Ecuador).
        Ruc = "ruc",
        /// A passport.
        Passport = "passport",
        /// A person's id card (elsewhere).
        Dni = "dni",
    }
}

/// The receiver of a parcel (docs/api.md, Country rules). `Debug` shows the country only.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(
    feature = "utoipa",
    derive(utoipa::ToSchema),
    schema(description = "Who receives the parcel; what must be given depends on the country.")
)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Receiver {
    /// The full name, at most 255 characters.
    pub full_name: String,
    /// The company, at most 255 characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub company_name: Option<String>,
    /// The telephone number with country code, 7-15 digits after the `+`: `+593 99 123 4567`.
    pub phone: String,
    /// The e-mail address for tracking notifications.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub email: Option<String>,
    /// The national id; required in Ecuador and Colombia.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub national_id: Option<String>,
    /// The kind of the national id; if it is absent, it is inferred from the length, with a warning.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id_type: Option<IdType>,
    /// The address that the parcel goes to.
    pub address: ReceiverAddress,
}

/// The address that a parcel goes to.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "utoipa", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ReceiverAddress {
    /// The street and number.
    pub line1: String,
    /// The second line, such as a flat, floor or building.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line2: Option<String>,
    /// The city.
    pub city: String,
    /// The province, state or department; required in Ecuador and Mexico.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub province: Option<String>,
    /// The postal code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zip_code: Option<String>,
    /// The country.
    pub country: CountryCode,
    /// The notes for the driver, at most 500 characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delivery_instructions: Option<String>,
}

/// Weight, size and value of a parcel. Decimals are exact: `19.99` is 19.99.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "utoipa", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ParcelDetails {
    /// The weight in pounds; pounds or kilograms are required.
    #[serde(default, with = "decimal::option", skip_serializing_if = "Option::is_none")]
    pub weight_lbs: Option<Decimal>,
    /// The weight in kilograms; kilograms or pounds are required.
    #[serde(default, with = "decimal::option", skip_serializing_if = "Option::is_none")]
    pub weight_kg: Option<Decimal>,
    /// The length in centimetres.
    #[serde(default, with = "decimal::option", skip_serializing_if = "Option::is_none")]
    pub length_cm: Option<Decimal>,
    /// The width in centimetres.
    #[serde(default, with = "decimal::option", skip_serializing_if = "Option::is_none")]
    pub width_cm: Option<Decimal>,
    /// The height in centimetres.
    #[serde(default, with = "decimal::option", skip_serializing_if = "Option::is_none")]
    pub height_cm: Option<Decimal>,
    /// The value declared to customs, in `currency`; at least the sum of the products.
    #[serde(with = "decimal")]
    pub declared_value: Decimal,
    /// The currency of all amounts in the order (ISO 4217); USD by default.
    #[serde(default)]
    #[cfg_attr(feature = "utoipa", schema(value_type = Option<CurrencyCode>))]
    pub currency: CurrencyCode,
}

impl ParcelDetails {
    /// Kilograms in one pound, exactly.
    #[doc(hidden)]
    pub const KG_PER_LB: Decimal = Decimal::from_parts(45_359_237, 0, 0, false, 8);

    /// Returns the weight in kilograms, whichever unit it was given in, rounded to a gram; `None` without a weight,
    /// which no accepted order lacks.
    ///
    /// ```
    /// # use parcelo::ParcelDetails;
    /// let json = r#"{"weightLbs": 3, "declaredValue": 20}"#;
    /// let details: ParcelDetails = serde_json::from_str(json)?;
    /// assert_eq!(details.kilograms().unwrap().to_string(), "1.361");
    /// # Ok::<(), serde_json::Error>(())
    /// ```
    pub fn kilograms(&self) -> Option<Decimal> {
        let kg = match (self.weight_kg, self.weight_lbs) {
            (Some(kg), _) => kg,
            (None, Some(lbs)) => lbs.checked_mul(Self::KG_PER_LB)?,
            (None, None) => return None,
        };
        Some(kg.round_dp(3))
    }
}

/// The parcel of an order.
///
/// It exists even if other fields of the response cannot be read, so only its tracking number must be readable. If
/// another field cannot be read, `id` is empty, `status` is `Unknown`, and `label_url` and `created_at` are `None`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(
    feature = "utoipa",
    derive(utoipa::ToSchema),
    schema(description = "The parcel that an order became.")
)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Parcel {
    /// The parcel's id, `par_…`.
    #[serde(default = "Parcel::without_id")]
    #[cfg_attr(feature = "utoipa", schema(value_type = String, required = true))]
    pub id: ParcelId,
    /// The tracking number of the parcel.
    pub tracking_number: TrackingNumber,
    /// The status of the parcel; `LABEL_GENERATED` after creation.
    #[serde(default = "Parcel::without_status", deserialize_with = "lenient::word")]
    #[cfg_attr(feature = "utoipa", schema(required = true))]
    pub status: ParcelStatus,
    /// The URL of the label file. Anyone who has it can download the label.
    #[serde(default, deserialize_with = "lenient::option")]
    #[cfg_attr(feature = "utoipa", schema(value_type = String, required = true))]
    pub label_url: Option<LabelLink>,
    /// Time of creation.
    #[serde(
        default,
        deserialize_with = "lenient::option",
        serialize_with = "time::serialize_option"
    )]
    #[cfg_attr(feature = "utoipa", schema(value_type = DateTime<Utc>, required = true))]
    pub created_at: Option<DateTime<Utc>>,
}

#[doc(hidden)]
impl Parcel {
    fn without_id() -> ParcelId {
        ParcelId::unchecked("")
    }

    fn without_status() -> ParcelStatus {
        ParcelStatus::Unknown(String::new())
    }

    /// Returns a parcel with its label.
    pub fn new(
        id: ParcelId,
        tracking_number: TrackingNumber,
        label_url: impl Into<LabelLink>,
    ) -> Self {
        Self {
            id,
            tracking_number,
            status: ParcelStatus::LabelGenerated,
            label_url: Some(label_url.into()),
            created_at: None,
        }
    }

    setters! {
        /// Sets the status.
        with_status(status: ParcelStatus);
        /// Sets the time of creation.
        with_created_at(created_at: some DateTime<Utc>);
    }
}

/// The response to a creation: `{"success": true, "parcel": {…}, "warnings": […]}`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "utoipa", derive(utoipa::ToSchema))]
#[non_exhaustive]
pub struct CreatedOrder {
    /// Always true.
    #[doc(hidden)]
    pub success: bool,
    /// The parcel.
    pub parcel: Parcel,
    /// Warnings about the order, which did not prevent it; omitted from the JSON if there are none.
    #[serde(default, deserialize_with = "lenient::texts", skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<Warning>,
}

#[doc(hidden)]
impl CreatedOrder {
    /// Returns the response to an order without warnings.
    pub fn new(parcel: Parcel) -> Self {
        Self { success: true, parcel, warnings: Vec::new() }
    }

    setters! {
        /// Sets the warnings.
        with_warnings(warnings: Vec<Warning>);
    }
}

impl std::fmt::Debug for OrderRequest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OrderRequest")
            .field("idempotency_key", &self.idempotency_key)
            .field("tracking_number", &self.tracking_number)
            .field("from", &self.sender.address.country)
            .field("to", &self.receiver.address.country)
            .field("products", &self.products.len())
            .finish_non_exhaustive()
    }
}

/// Implements a `Debug` that shows the country of a value and no personal data.
macro_rules! private_debug {
    ($($name:ident => $($path:ident).+;)+) => {$(
        impl std::fmt::Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.debug_struct(stringify!($name))
                    .field("country", &self.$($path).+)
                    .finish_non_exhaustive()
            }
        }
    )+};
}

private_debug! {
    Sender => address.country;
    SenderAddress => country;
    Receiver => address.country;
    ReceiverAddress => country;
}

#[cfg(test)]
mod tests {
    use super::*;

    const ORDER: &str = r#"{"idempotencyKey":"order-0001","sender":{"fullName":"CANARY","phone":"+13055550100",
        "address":{"line1":"CANARY","city":"Miami","state":"FL","zipCode":"33101","country":"US"}},
        "receiver":{"fullName":"CANARY","phone":"CANARY","nationalId":"CANARY","idType":"cedula",
        "address":{"line1":"CANARY","city":"Quito","province":"Pichincha","country":"EC"}},
        "parcelDetails":{"weightLbs":3,"declaredValue":19.99},
        "products":[{"description":"Shirt","quantity":1,"unitFobValue":19.99}]}"#;

    #[test]
    fn an_order_survives_a_round_trip() {
        let order: OrderRequest = serde_json::from_str(ORDER).unwrap();
        let again: OrderRequest =
            serde_json::from_value(serde_json::to_value(&order).unwrap()).unwrap();
        assert_eq!(order, again);
        assert_eq!(order.parcel_details.currency, CurrencyCode::USD);
        assert_eq!(order.parcel_details.kilograms(), Some(Decimal::new(1361, 3)));
    }

    #[test]
    fn debug_output_has_no_personal_data() {
        let order: OrderRequest = serde_json::from_str(ORDER).unwrap();
        let shown =
            format!("{order:?}{:?}{:?}{:?}", order.sender, order.receiver, order.receiver.address);
        assert!(!shown.contains("CANARY") && shown.contains("EC"), "{shown}");
    }
}
