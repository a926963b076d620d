//! A carrier's request, 1-100 scans, and its response (docs/api.md, Carrier events). Unknown fields are ignored.
//!
//! A fault in any event rejects the whole request. An unknown parcel, or a status that its state machine does not
//! allow, is an error of that event only.

use chrono::{DateTime, FixedOffset, TimeDelta, Utc};
use parcelo_types::{
    ParcelStatus,
    internal::{
        FaultText, Fields,
        Kind::{Leaf, Nested},
        Object, Text, parse_status, validate, wire_enum,
    },
    model::ItemError,
    rules::Rejected,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::faults;

/// A carrier's request with 1-100 events (docs/api.md, Carrier events).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "utoipa", derive(utoipa::ToSchema))]
pub struct CarrierEvents {
    /// The events, in any order.
    pub events: Vec<CarrierEvent>,
}

/// One scan of a parcel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "utoipa", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct CarrierEvent {
    /// The carrier's own id of the event. Sending an event again with the same id has no effect.
    pub event_id: String,
    /// The number of the parcel. An unknown number is an error of this event only.
    pub tracking_number: String,
    /// The status that the scan shows.
    pub status: ParcelStatus,
    /// The time of the event, with its offset from UTC: not before 1970, and at most 5 minutes in the future.
    pub occurred_at: DateTime<FixedOffset>,
    /// The place of the event.
    pub location: String,
    /// Further details.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The carrier's own status code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub carrier_code: Option<String>,
}

wire_enum! {
    /// The outcome of a carrier's event.
    CarrierOutcome {
        /// The event changed the parcel's status.
        Applied = "APPLIED",
        /// The event was added to the history, and changed nothing else.
        Recorded = "RECORDED",
        /// The carrier has sent the event before.
        Duplicate = "DUPLICATE",
        /// The event was rejected, for the reason in `error`.
        Rejected = "REJECTED",
    }
}

/// The response to a carrier: one result for each event.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "utoipa", derive(utoipa::ToSchema))]
pub struct CarrierResults {
    /// Numbers of events by outcome.
    pub summary: CarrierSummary,
    /// The results, in the order of the request.
    pub results: Vec<CarrierResult>,
}

/// Numbers of a carrier's events by outcome.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "utoipa", derive(utoipa::ToSchema))]
pub struct CarrierSummary {
    /// Number of events in the request.
    pub received: u32,
    /// Number of events that changed a status.
    pub applied: u32,
    /// Number of events that were only added to a history.
    pub recorded: u32,
    /// Number of events that had been sent before.
    pub duplicates: u32,
    /// Number of rejected events.
    pub rejected: u32,
}

/// The result for one event.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "utoipa", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct CarrierResult {
    /// The carrier's id of the event.
    pub event_id: String,
    /// The number of the parcel.
    pub tracking_number: String,
    /// The outcome of the event.
    pub outcome: CarrierOutcome,
    /// The reason why the event was rejected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ItemError>,
}

const EVENTS: &str = "events";
/// Maximum number of scans in one request (docs/api.md, Carrier events).
pub(crate) const MAX_EVENTS: usize = 100;
/// Maximum time by which a scan may be later than the service's clock; later ones are refused.
const MAX_CLOCK_LEAD: TimeDelta = TimeDelta::minutes(5);
/// The carrier's id of an event: long enough for a UUID, a ULID or a hash in hexadecimal digits.
pub(crate) const EVENT_ID: Text = Text::CODE.with_max(100);
/// The carrier's own status code, kept as received.
pub(crate) const CARRIER_CODE: Text = Text::DATA.with_max(100);

const EVENT: Fields = Fields(&[
    ("eventId", Leaf),
    ("trackingNumber", Leaf),
    ("status", Leaf),
    ("occurredAt", Leaf),
    ("location", Leaf),
    ("description", Leaf),
    ("carrierCode", Leaf),
]);

const BODY: Fields = Fields(&[(EVENTS, Nested(&EVENT))]);

/// Checks a carrier's request of 1-100 scans at the time `now`: no scan may be more than 5 minutes later
/// (docs/api.md, Carrier events).
///
/// ```
/// use parcelo_wire::check_carrier_events;
/// let body = serde_json::json!({ "events": [{
///     "eventId": "scan-0001", "trackingNumber": "SB-SUCCESS-0001", "status": "IN_TRANSIT",
///     "occurredAt": "2026-01-10T10:05:00-05:00", "location": "Quito, EC",
/// }] });
/// let at = |now: &str| check_carrier_events(&body, now.parse().unwrap());
/// assert!(at("2026-01-10T15:00:00Z").is_ok());
/// assert_eq!(at("2026-01-10T14:59:59Z").unwrap_err().faults[0].field, "events[0].occurredAt");
/// ```
pub fn check_carrier_events(body: &Value, now: DateTime<Utc>) -> Result<CarrierEvents, Rejected> {
    let checked = validate(body, &BODY, |request| {
        let events = request.list(EVENTS, MAX_EVENTS).required()?;
        if events.is_empty() {
            request.fault_at(EVENTS, faults::too_few(EVENTS));
        }
        let parsed: Vec<_> = events.objects().map(|each| parse_event(&each?, now)).collect();
        Some(CarrierEvents { events: parsed.into_iter().collect::<Option<_>>()? })
    });
    checked.map(|accepted| accepted.value)
}

/// Parses one scan; `None` if it has a fault.
fn parse_event(event: &Object<'_>, now: DateTime<Utc>) -> Option<CarrierEvent> {
    let event_id = event.text("eventId", EVENT_ID).required();
    let tracking_number = event.text("trackingNumber", Text::LOOKUP_NUMBER).required();
    let status = event.text("status", Text::CODE.with_max(255)).and_then(parse_status).required();
    let occurred_at =
        event.text("occurredAt", Text::DATA).and_then(|text| parse_occurred_at(text, now));
    let occurred_at = occurred_at.required();
    let location = event.text("location", Text::DATA).required();
    let description = event.text("description", Text::NOTE).optional();
    let carrier_code = event.text("carrierCode", CARRIER_CODE).optional();
    Some(CarrierEvent {
        event_id: event_id?.to_owned(),
        tracking_number: tracking_number?.to_owned(),
        status: status?,
        occurred_at: occurred_at?,
        location: location?.to_owned(),
        description: description.map(str::to_owned),
        carrier_code: carrier_code.map(str::to_owned),
    })
}

/// Parses a time with its offset from UTC, from 1970 to [`MAX_CLOCK_LEAD`] after `now`.
fn parse_occurred_at(text: &str, now: DateTime<Utc>) -> Result<DateTime<FixedOffset>, FaultText> {
    let time = DateTime::parse_from_rfc3339(text).map_err(|_| faults::TIME_WITH_OFFSET)?;
    match time.to_utc() {
        utc if utc - now > MAX_CLOCK_LEAD => Err(faults::TOO_FAR_AHEAD),
        // The offset can move a time of the year 0 into the year -1 of UTC, which RFC 3339 cannot express.
        utc if utc < DateTime::UNIX_EPOCH => Err(faults::TOO_LONG_AGO),
        _ => Ok(time),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn now() -> DateTime<Utc> {
        "2026-01-10T15:00:00Z".parse().unwrap()
    }

    fn scan(id: usize) -> Value {
        json!({"eventId": format!("evt-{id}"), "trackingNumber": "EC7K2M9QX4T8WD0",
            "status": "IN_TRANSIT", "occurredAt": "2026-01-10T09:55:00-05:00", "location": " Miami, US "})
    }

    fn faults_of(body: &Value) -> Vec<String> {
        crate::tests::faults_of(check_carrier_events(body, now()))
    }

    #[test]
    fn a_valid_request_is_parsed_in_its_order() {
        let body = json!({"events": (0..100).map(scan).collect::<Vec<_>>(), "unknown": 1});
        let events = check_carrier_events(&body, now()).unwrap().events;
        assert_eq!(events.len(), 100);
        assert_eq!(
            (events[7].event_id.as_str(), events[7].location.as_str()),
            ("evt-7", "Miami, US")
        );
        assert_eq!(events[0].status, ParcelStatus::InTransit);
        assert_eq!(events[0].occurred_at, now() - TimeDelta::minutes(5));
        assert_eq!((&events[0].description, &events[0].carrier_code), (&None, &None));
    }

    #[test]
    fn the_list_has_1_to_100_events() {
        let many: Vec<_> = (0..101).map(scan).collect();
        let table = [
            (json!({}), "events REQUIRED"),
            (json!({"events": null}), "events REQUIRED"),
            (json!({"events": []}), "events TOO_SHORT"),
            (json!({"events": many}), "events TOO_LONG"),
            (json!({"events": {}}), "events INVALID_FORMAT"),
            (json!({"events": [7]}), "events[0] INVALID_FORMAT"),
            (json!([]), "body MALFORMED_JSON"),
        ];
        for (body, fault) in table {
            assert_eq!(faults_of(&body), [fault]);
        }
    }

    #[test]
    fn a_fault_in_an_event_is_reported_with_its_path() {
        let table = [
            ("eventId", json!(null), "REQUIRED"),
            ("eventId", json!(" "), "REQUIRED"),
            ("eventId", json!("x".repeat(101)), "TOO_LONG"),
            ("eventId", json!(7), "INVALID_FORMAT"),
            ("trackingNumber", json!(null), "REQUIRED"),
            ("status", json!(null), "REQUIRED"),
            ("status", json!("LOST_AT_SEA"), "UNKNOWN_VALUE"),
            ("status", json!("in_transit"), "UNKNOWN_VALUE"),
            ("occurredAt", json!(null), "REQUIRED"),
            ("occurredAt", json!("2026-01-10T15:00:00"), "INVALID_FORMAT"),
            ("occurredAt", json!("2026-01-10"), "INVALID_FORMAT"),
            ("occurredAt", json!("2026-02-30T15:00:00Z"), "INVALID_FORMAT"),
            ("occurredAt", json!(1_768_057_500), "INVALID_FORMAT"),
            ("occurredAt", json!("2026-01-10T15:05:00.001Z"), "OUT_OF_RANGE"),
            ("occurredAt", json!("2026-01-10T15:00:00-01:00"), "OUT_OF_RANGE"),
            ("occurredAt", json!("0000-01-01T00:00:00+05:00"), "OUT_OF_RANGE"),
            ("occurredAt", json!("1970-01-01T00:00:00+00:01"), "OUT_OF_RANGE"),
            ("location", json!(null), "REQUIRED"),
            ("location", json!("x".repeat(256)), "TOO_LONG"),
            ("location", json!("Miami\u{0}"), "INVALID_FORMAT"),
            ("description", json!("x".repeat(256)), "TOO_LONG"),
            ("carrierCode", json!("x".repeat(101)), "TOO_LONG"),
        ];
        for (field, value, code) in table {
            let mut wrong = scan(3);
            wrong[field] = value.clone();
            let body = json!({"events": [scan(0), scan(1), scan(2), wrong]});
            assert_eq!(faults_of(&body), [format!("events[3].{field} {code}")], "{value}");
        }
    }

    #[test]
    fn times_from_1970_to_five_minutes_ahead_are_valid() {
        for time in [
            "2026-01-10T15:05:00Z",
            "2026-01-10T10:05:00.000-05:00",
            "1999-12-31T23:59:59+14:00",
            "1970-01-01T00:00:00Z",
        ] {
            let mut ahead = scan(0);
            ahead["occurredAt"] = json!(time);
            assert_eq!(faults_of(&json!({"events": [ahead]})), [""; 0], "{time}");
        }
    }
}
