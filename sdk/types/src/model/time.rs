//! Serialization of times as RFC 3339 in UTC with milliseconds and `Z`. Used as `#[serde(with = "time")]`.

use chrono::{DateTime, FixedOffset, SecondsFormat, Utc};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Formats a time as in JSON: `2026-01-10T15:05:00.000Z`.
pub fn to_text(time: DateTime<Utc>) -> String {
    time.to_rfc3339_opts(SecondsFormat::Millis, true)
}

/// Serializes a time as [`to_text`] formats it.
pub fn serialize<S: Serializer>(time: &DateTime<Utc>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&to_text(*time))
}

/// Serializes a time in its own offset, as chrono does, but the text at once: chrono has the serializer escape each of
/// its parts.
pub(super) fn serialize_with_offset<S: Serializer>(
    time: &DateTime<FixedOffset>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&time.to_rfc3339_opts(SecondsFormat::AutoSi, true))
}

/// Serializes a time that may be absent.
#[expect(clippy::ref_option, reason = "serde gives a reference to the field")]
pub(super) fn serialize_option<S: Serializer>(
    time: &Option<DateTime<Utc>>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    time.map(to_text).serialize(serializer)
}

pub(super) fn deserialize<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<DateTime<Utc>, D::Error> {
    DateTime::deserialize(deserializer)
}
