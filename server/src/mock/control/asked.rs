//! What the controls take: the bodies of their requests, read strictly, for a control that is
//! misspelt must not look like one that did nothing.

use std::time::Duration;

use axum::extract::Request;
use chrono::{DateTime, Datelike, TimeDelta, Utc};
use parcelo::{CountryCode, ErrorCode, FaultCode, FieldFault, Operation, ParcelStatus};
use serde::Deserialize;
use serde_json::Value;
use utoipa::{
    ToSchema,
    openapi::{
        RefOr,
        schema::{ArrayBuilder, ObjectBuilder, OneOfBuilder, Schema, SchemaType, Type},
    },
};

use crate::{core::Refusal, http::json_object};

/// How the clock is to be moved: `set` first, `mode` last.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ClockMove {
    #[schema(schema_with = seconds_or_duration)]
    pub(super) advance: Option<Value>,
    /// To a time, in the years 0 to 9999.
    #[schema(format = DateTime, example = "2026-01-05T09:00:00Z")]
    pub(super) set: Option<String>,
    /// How it goes on.
    pub(super) mode: Option<ClockMode>,
}

/// Whether time passes by itself.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum ClockMode {
    Frozen,
    Ticking,
    System,
}

/// A fault, and the requests that meet it: all, unless told otherwise.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct PlannedFault {
    #[schema(schema_with = operations)]
    pub(super) operation: Option<String>,
    /// Only this request, counted from 1.
    #[schema(format = Int64, minimum = 1, maximum = 4_294_967_295u64)]
    pub(super) nth: Option<u32>,
    /// Only so many requests.
    #[schema(format = Int64, minimum = 1, maximum = 4_294_967_295u64)]
    pub(super) first: Option<u32>,
    /// Each request with this probability.
    #[schema(minimum = 0, maximum = 1)]
    pub(super) probability: Option<f64>,
    /// Only requests with this API key.
    pub(super) key: Option<String>,
    /// Whether it happens after the operation was carried out.
    #[serde(default)]
    pub(super) after_commit: bool,
    /// What happens.
    pub(super) fault: FaultKind,
    /// Of a latency, of each piece of a slow body, until a 429 may be tried again.
    #[serde(default)]
    #[schema(minimum = 0)]
    pub(super) seconds: f64,
    #[schema(schema_with = error_codes)]
    pub(super) code: Option<String>,
}

/// What happens to a request.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) enum FaultKind {
    Latency,
    Error,
    RateLimited,
    Close,
    Reset,
    TruncatedBody,
    SlowBody,
    MalformedJson,
}

/// A key of an account of its own choosing, for every country unless told otherwise.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct WantedKey {
    pub(super) account: Option<String>,
    pub(super) name: Option<String>,
    pub(super) allowed_countries: Option<Vec<CountryCode>>,
    /// Requests a second.
    #[schema(format = Int64, maximum = 4_294_967_295u64)]
    pub(super) rate_limit: Option<u32>,
}

/// The status that a parcel is to be in.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct WantedStatus {
    pub(super) status: ParcelStatus,
}

/// How the inbox answers.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct WantedInbox {
    /// The statuses of its first answers; 200 after them.
    #[serde(default)]
    #[schema(schema_with = statuses)]
    pub(super) reply: Vec<u16>,
}

/// What a control takes; `what` it is says the refusal.
pub(super) async fn read<T: for<'de> Deserialize<'de>>(
    request: Request,
    what: &str,
) -> Result<T, Refusal> {
    let body = json_object(request).await?;
    serde_json::from_value(body).map_err(|error| wrong(&format!("{what}: {error}")))
}

pub(super) fn wrong(message: &str) -> Refusal {
    Refusal::invalid(&[FieldFault {
        field: "body".to_owned(),
        code: FaultCode::InvalidFormat,
        message: message.to_owned(),
        message_es: format!("El control no se entiende ({message})."),
        suggestion: None,
    }])
}

pub(super) fn no_code() -> Refusal {
    wrong("code is an error's, such as SERVICE_UNAVAILABLE")
}

impl ClockMove {
    /// The time to be set.
    pub(super) fn to(&self) -> Result<Option<DateTime<Utc>>, Refusal> {
        let Some(text) = &self.set else { return Ok(None) };
        let parsed = DateTime::parse_from_rfc3339(text).ok().map(|time| time.to_utc());
        let time = parsed.filter(|time| (0..=9_999).contains(&time.year()));
        time.map(Some).ok_or_else(|| {
            wrong("set is a time such as 2026-01-05T08:00:00Z, in the years 0 to 9999")
        })
    }

    /// By how much the clock, which then shows `from`, is to be moved.
    pub(super) fn by(&self, from: DateTime<Utc>) -> Result<Option<Duration>, Refusal> {
        let Some(given) = &self.advance else { return Ok(None) };
        let by = duration(given)?;
        let end = TimeDelta::from_std(by).ok().and_then(|by| from.checked_add_signed(by));
        match end {
            Some(end) if end.year() <= 9_999 => Ok(Some(by)),
            _ => Err(wrong("advance leads beyond the year 9999")),
        }
    }
}

impl PlannedFault {
    /// What cannot be, though its form is right.
    pub(super) fn check(&self) -> Result<(), Refusal> {
        if self.nth == Some(0) || self.first == Some(0) {
            return Err(wrong("nth and first count from 1"));
        }
        if self.probability.is_some_and(|one| !(0.0..=1.0).contains(&one)) {
            return Err(wrong("probability is a number from 0 to 1"));
        }
        Ok(())
    }

    /// How long it takes.
    pub(super) fn seconds(&self) -> Result<Duration, Refusal> {
        let seconds = Duration::try_from_secs_f64(self.seconds);
        seconds.map_err(|_| wrong("seconds is a number, not below 0"))
    }

    /// The error that is answered, for those that have one.
    pub(super) fn code(&self) -> Result<Option<ErrorCode>, Refusal> {
        let Some(code) = &self.code else { return Ok(None) };
        let known = ErrorCode::known(code).map(Some);
        known.ok_or_else(no_code)
    }
}

impl WantedInbox {
    pub(super) fn check(&self) -> Result<(), Refusal> {
        let is_status = |status: &u16| (STATUSES.0..=STATUSES.1).contains(status);
        if self.reply.iter().all(is_status) {
            return Ok(());
        }
        Err(wrong("reply is a list of statuses of final answers, 200 to 999"))
    }
}

/// The operation with a name.
pub(super) fn operation(name: &str) -> Result<Operation, Refusal> {
    let found = Operation::ALL.iter().find(|operation| operation.name() == name);
    found.copied().ok_or_else(|| {
        let names: Vec<_> = Operation::ALL.iter().map(|operation| operation.name()).collect();
        wrong(&format!("operation is one of {}", names.join(", ")))
    })
}

/// Seconds as a number, or an ISO 8601 duration of days and less: `P1DT2H30M5S`.
fn duration(given: &Value) -> Result<Duration, Refusal> {
    let read = match given {
        Value::Number(seconds) => seconds.as_f64(),
        Value::String(text) => iso_seconds(text),
        _ => None,
    };
    let read = read.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    read.ok_or_else(|| wrong("advance is seconds, or a duration such as \"PT5M\", not below 0"))
}

fn iso_seconds(text: &str) -> Option<f64> {
    let (days, rest) = text.strip_prefix('P')?.split_once('T').unwrap_or((text.get(1..)?, ""));
    let mut total = 0.0;
    for (part, units) in
        [(days, &[('D', 86_400.0)][..]), (rest, &[('H', 3_600.0), ('M', 60.0), ('S', 1.0)])]
    {
        let mut part = part;
        for (unit, seconds) in units {
            if let Some((number, after)) = part.split_once(*unit) {
                let digits = Some(number).filter(|number| !number.starts_with('+'))?;
                total += digits.parse::<u32>().map(f64::from).ok()? * seconds;
                part = after;
            }
        }
        part.is_empty().then_some(())?;
    }
    text.ends_with(['D', 'H', 'M', 'S']).then_some(total)
}

/// The statuses of answers that end an exchange.
const STATUSES: (u16, u16) = (200, 999);
/// What [`iso_seconds`] reads.
const DURATION: &str = "^P(?=.)([0-9]+D)?(T(?=.)([0-9]+H)?([0-9]+M)?([0-9]+S)?)?$";

/// The names of operations.
pub(super) fn operation_names() -> ObjectBuilder {
    let names = Operation::ALL.iter().map(|operation| operation.name());
    text().enum_values(Some(names))
}

fn operations() -> RefOr<Schema> {
    or_null("Only requests of this operation.", [operation_names()])
}

fn error_codes() -> RefOr<Schema> {
    let codes = ErrorCode::ALL.iter().map(|code| code.code());
    or_null("Of an error.", [text().enum_values(Some(codes))])
}

fn seconds_or_duration() -> RefOr<Schema> {
    let seconds = ObjectBuilder::new().schema_type(SchemaType::from(Type::Number));
    let duration = text().pattern(Some(DURATION)).examples(["PT5M", "P30D"]);
    let about = "Ahead by seconds, or by a duration of days and less.";
    or_null(about, [seconds.minimum(Some(0)), duration])
}

/// What may be left out may be null as well.
fn or_null(about: &str, kinds: impl IntoIterator<Item = ObjectBuilder>) -> RefOr<Schema> {
    let null = ObjectBuilder::new().schema_type(SchemaType::from(Type::Null));
    let kinds = kinds.into_iter().chain([null]);
    kinds.fold(OneOfBuilder::new().description(Some(about)), OneOfBuilder::item).into()
}

fn text() -> ObjectBuilder {
    ObjectBuilder::new().schema_type(SchemaType::from(Type::String))
}

fn statuses() -> RefOr<Schema> {
    let status = ObjectBuilder::new().schema_type(SchemaType::from(Type::Integer));
    let status = status.minimum(Some(STATUSES.0)).maximum(Some(STATUSES.1));
    ArrayBuilder::new().items(status).into()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_duration_is_seconds_or_iso_8601() {
        let table = [
            (json!(300), Some(300)),
            (json!("PT5M"), Some(300)),
            (json!("P1DT2H30M5S"), Some(86_400 + 9_005)),
            (json!("P30D"), Some(30 * 86_400)),
            (json!(0), Some(0)),
            (json!(-1), None),
            (json!("5M"), None),
            (json!("PT"), None),
            (json!("P"), None),
            (json!("PT5X"), None),
            (json!("PT5S5M"), None),
            (json!("PT-5M"), None),
            (json!("PT+5M"), None),
            (json!("P1DT"), None),
            (json!("P1M"), None),
            (json!(null), None),
            (json!(1e300), None),
        ];
        for (given, seconds) in table {
            assert_eq!(duration(&given).ok().map(|one| one.as_secs()), seconds, "{given}");
        }
    }

    #[test]
    fn a_clock_stays_where_times_have_four_digits() {
        let moved = |advance: Value, set: &str| {
            let asked = ClockMove { advance: Some(advance), set: Some(set.to_owned()), mode: None };
            asked.to().is_ok_and(|to| asked.by(to.unwrap()).is_ok())
        };
        let table = [
            (json!(1), "2026-01-05T08:00:00Z", true),
            (json!(1), "9999-12-31T23:59:58Z", true),
            (json!(1), "9999-12-31T23:59:59Z", false),
            (json!(0), "9999-12-31T23:59:59-01:00", false),
            (json!(0), "0000-01-01T00:00:00+01:00", false),
            (json!(1e18), "2026-01-05T08:00:00Z", false),
            (json!(0), "yesterday", false),
        ];
        for (advance, set, expected) in table {
            assert_eq!(moved(advance.clone(), set), expected, "{advance} {set}");
        }
    }
}
