//! Serialization of times as RFC 3339 in UTC with milliseconds and `Z`. Used as `#[serde(with = "time")]`.

use chrono::{DateTime, SecondsFormat, Utc};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Formats a time as in JSON: `2026-01-10T15:05:00.000Z`.
pub fn to_text(time: DateTime<Utc>) -> String {
    time.to_rfc3339_opts(SecondsFormat::Millis, true)
}

/// Serializes a time, or one that may be absent.
pub(super) fn serialize<S: Serializer>(
    time: &(impl Into<Option<DateTime<Utc>>> + Copy),
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let time: Option<DateTime<Utc>> = (*time).into();
    time.map(to_text).serialize(serializer)
}

pub(super) fn deserialize<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<DateTime<Utc>, D::Error> {
    DateTime::deserialize(deserializer)
}
