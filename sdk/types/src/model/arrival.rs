//! The forecast of a parcel's arrival (docs/api.md, Arrival).

use chrono::NaiveDate;
use serde::{Deserialize, Serialize};

use super::macros::wire_enum;

wire_enum! {
    /// The kind of forecast.
    ArrivalKind [doc(hidden)] {
        /// The parcel is expected by the end of this day.
        Expected = "EXPECTED",
        /// The parcel is with the driver and arrives today.
        Today = "TODAY",
        /// The parcel was expected on this day, which has passed.
        Delayed = "DELAYED",
        /// The parcel was delivered on this day.
        Delivered = "DELIVERED",
    }
}

/// The forecast of a parcel's arrival, at the time of the response. It is absent for a parcel that is held, missed,
/// returning or void, because no day can be promised.
///
/// ```
/// use parcelo::model::{Arrival, ArrivalKind};
///
/// let arrival: Arrival = serde_json::from_str(r#"{"kind": "DELAYED", "date": "2026-01-13"}"#)?;
/// assert_eq!(arrival.kind, ArrivalKind::Delayed);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "utoipa", derive(utoipa::ToSchema))]
#[cfg_attr(
    feature = "utoipa",
    schema(description = "The forecast of a parcel's arrival, at the time of the response.")
)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Arrival {
    /// The kind of forecast.
    pub kind: ArrivalKind,
    /// The day at the destination.
    pub date: NaiveDate,
}

#[doc(hidden)]
impl Arrival {
    /// Returns a forecast for a day at the destination.
    pub fn new(kind: ArrivalKind, date: NaiveDate) -> Self {
        Self { kind, date }
    }
}
