//! Successful responses, as a stub of an integrator's own trait returns them.

use chrono::{DateTime, Utc};
use parcelo_types::{
    Language, ParcelStatus, TrackingNumber,
    model::{CreatedOrder, ParcelSummary, TrackingRecord},
};
use serde_json::json;

use super::from_json;
use crate::{Outcome, Reply, calls::Shipped};

/// The time of all responses here.
const TIME: DateTime<Utc> = DateTime::UNIX_EPOCH;

/// Returns the response to the creation of an order. Change its fields as your test needs them.
///
/// Every response of the service implements `Deserialize`, so those without a function here can be read from JSON.
///
/// ```
/// use parcelo::TrackingNumber;
/// use parcelo::testing::created_order;
///
/// let mut created = created_order(&TrackingNumber::parse("SB-SUCCESS-0001")?);
/// created.parcel.label_url = None;
/// # Ok::<(), parcelo::InvalidValue>(())
/// ```
pub fn created_order(number: &TrackingNumber) -> CreatedOrder {
    from_json(json!({"success": true, "parcel": {"id": format!("par_{number}"),
        "trackingNumber": number, "status": ParcelStatus::LabelGenerated,
        "labelUrl": "http://localhost/label", "createdAt": TIME}}))
}

/// Returns the result of [`Orders::ship`](crate::calls::Orders::ship) for an order that was created.
///
/// ```
/// use parcelo::TrackingNumber;
/// use parcelo::testing::shipped;
///
/// let number = TrackingNumber::parse("SB-SUCCESS-0001")?;
/// assert_eq!(shipped(&number).tracking_number, number);
/// # Ok::<(), parcelo::InvalidValue>(())
/// ```
pub fn shipped(number: &TrackingNumber) -> Shipped {
    let created = reply(created_order(number), Outcome::Created);
    Shipped { tracking_number: number.clone(), created: Some(created) }
}

/// Returns the tracking record of a parcel in a status, without a history.
pub fn tracking_record(number: &TrackingNumber, status: &ParcelStatus) -> TrackingRecord {
    from_json(json!({"trackingNumber": number, "status": status,
        "statusName": status.name(Language::En), "estimatedDelivery": TIME}))
}

/// Returns a parcel as lists and [`Orders::find`](crate::calls::Orders::find) return it.
pub fn parcel_summary(number: &TrackingNumber, status: &ParcelStatus) -> ParcelSummary {
    from_json(json!({"id": format!("par_{number}"), "trackingNumber": number, "status": status,
        "statusName": status.name(Language::En), "destinationCountry": "EC",
        "createdAt": TIME, "updatedAt": TIME}))
}

/// Returns a successful response with a value, after one attempt and without headers.
///
/// ```
/// use parcelo::testing::{reply, tracking_record};
/// use parcelo::{Outcome, ParcelStatus, TrackingNumber};
///
/// let number = TrackingNumber::parse("SB-SUCCESS-0001")?;
/// let reply = reply(tracking_record(&number, &ParcelStatus::Delivered), Outcome::Created);
/// assert_eq!((&reply.status, reply.meta().attempts), (&ParcelStatus::Delivered, 1));
/// # Ok::<(), parcelo::InvalidValue>(())
/// ```
pub fn reply<T>(value: T, outcome: Outcome) -> Reply<T> {
    Reply::for_tests(value, outcome)
}
