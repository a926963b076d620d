//! The controls' requests. They are parsed strictly, so that a misspelt member is an error instead of having no effect.

use std::time::Duration;

use axum::extract::Request;
use chrono::{DateTime, Utc};
use parcelo_domain::{
    Refusal,
    credentials::{DEFAULT_OVERLAP_SECONDS, MAX_OVERLAP_SECONDS},
};
use parcelo_types::{
    ApiKey, Environment, Operation, ParcelStatus, TrackingNumber, rules::Destinations,
};
use parcelo_wire::{KeyRequest, check_key};
use serde::Deserialize;
use serde_json::{Value, json};
use url::form_urlencoded;

use super::refusals::{invalid_body, invalid_field, invalid_key};
#[cfg(test)]
use super::schemas;
use crate::{
    http::json_object_of_any_type,
    mock::{
        MockServer, Requests,
        clock::{add_duration, try_parse_time},
        key::DEFAULT_NAME,
    },
};

/// A move of the clock; its parts are executed in the order `set`, `advance`, `until`, `mode`.
#[derive(Deserialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub(super) struct ClockMove {
    #[cfg_attr(test, schema(schema_with = schemas::seconds_or_duration))]
    pub(super) advance: Option<Value>,
    /// Sets it to a time in the years 0 to 9999.
    #[cfg_attr(test, schema(format = DateTime, example = "2026-01-05T09:00:00Z"))]
    pub(super) set: Option<String>,
    /// Advances it until a parcel has a status, from step to step of its simulated journey.
    pub(super) until: Option<Until>,
    /// The mode of the clock from then on.
    pub(super) mode: Option<ClockMode>,
}

/// A parcel and the status to reach.
#[derive(Deserialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Until {
    pub(super) tracking_number: TrackingNumber,
    pub(super) status: ParcelStatus,
}

/// The mode of a clock.
#[derive(Deserialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
#[serde(rename_all = "lowercase")]
pub(super) enum ClockMode {
    Frozen,
    Ticking,
    System,
}

/// An API key to create; by default of the account `default` and for every country.
#[derive(Deserialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct WantedKey {
    account: Option<String>,
    name: Option<String>,
    /// Codes of supported countries, or `*` alone.
    #[cfg_attr(test, schema(value_type = Option<Vec<String>>))]
    allowed_countries: Option<Value>,
    /// Its limit of requests a second.
    #[cfg_attr(test, schema(format = Int64, maximum = 4_294_967_295u64))]
    pub(super) rate_limit: Option<u32>,
}

/// An API key that gets a new secret.
#[derive(Deserialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub(super) struct KeyToRotate {
    /// The key's present secret.
    pub(super) key: String,
    #[cfg_attr(test, schema(schema_with = schemas::seconds_or_duration_of_overlap))]
    overlap: Option<Value>,
}

/// The status to change a parcel to.
#[derive(Deserialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub(super) struct WantedStatus {
    pub(super) status: ParcelStatus,
}

/// Parses a control's body; `what` names the body in error messages.
pub(super) async fn read_body<T: for<'de> Deserialize<'de>>(
    request: Request,
    what: &str,
) -> Result<T, Refusal> {
    let body = json_object_of_any_type(request).await?;
    serde_json::from_value(body).map_err(|error| {
        let spanish =
            "el cuerpo no es el de este control: revise los nombres y valores de sus campos";
        invalid_body(&format!("{what}: {error}"), spanish)
    })
}

impl ClockMove {
    /// Refuses a request that moves nothing, because it must be a mistake.
    pub(super) fn check(&self) -> Result<(), Refusal> {
        let moves = self.advance.is_some() || self.set.is_some() || self.until.is_some();
        if moves || self.mode.is_some() {
            return Ok(());
        }
        Err(invalid_body(
            "give at least one of advance, set, until and mode",
            "indique al menos uno de advance, set, until y mode",
        ))
    }

    /// Returns the time to set.
    pub(super) fn target_time(&self) -> Result<Option<DateTime<Utc>>, Refusal> {
        let Some(text) = &self.set else { return Ok(None) };
        try_parse_time(text).map(Some).ok_or_else(|| {
            invalid_body(
                "set must be a time in the years 0 to 9999, such as 2026-01-05T08:00:00Z",
                "set debe ser una hora de los años 0 a 9999, como 2026-01-05T08:00:00Z",
            )
        })
    }

    /// Returns the duration by which to advance the clock from `from`.
    pub(super) fn advance_duration(
        &self,
        from: DateTime<Utc>,
    ) -> Result<Option<Duration>, Refusal> {
        let Some(advance) = &self.advance else { return Ok(None) };
        let by = parse_duration("advance", advance)?;
        add_duration(from, by).map(|_| Some(by)).ok_or_else(|| {
            invalid_body(
                "advance must not lead beyond the year 9999",
                "advance no debe pasar del año 9999",
            )
        })
    }
}

impl KeyToRotate {
    /// Returns the time for which the old secret keeps working.
    pub(super) fn overlap(&self) -> Result<Duration, Refusal> {
        let default = Duration::from_secs(DEFAULT_OVERLAP_SECONDS.into());
        let overlap =
            self.overlap.as_ref().map(|value| parse_duration("overlap", value)).transpose()?;
        let overlap = overlap.unwrap_or(default);
        if overlap.as_secs_f64() > f64::from(MAX_OVERLAP_SECONDS) {
            return Err(invalid_field(
                "overlap",
                "overlap must be at most 7 days",
                "overlap debe ser de 7 días como máximo",
            ));
        }
        Ok(overlap)
    }
}

impl WantedKey {
    /// Returns the key as the admin API would create it, checked by the same rules.
    pub(super) fn check(&self, destinations: &Destinations) -> Result<KeyRequest, Refusal> {
        let every = json!(["*"]);
        let body = json!({
            "name": self.name.as_deref().unwrap_or(DEFAULT_NAME),
            "environment": Environment::Sandbox.code(),
            "allowedCountries": self.allowed_countries.as_ref().unwrap_or(&every),
            "account": self.account,
        });
        check_key(&body, destinations).map_err(|rejected| Refusal::invalid(&rejected.faults))
    }
}

/// Returns the requests that a query selects; all without one.
pub(super) fn select_requests<'a>(
    server: &'a MockServer,
    query: Option<&str>,
) -> Result<Requests<'a>, Refusal> {
    let (mut requests, mut seen) = (server.requests(), Vec::new());
    for (name, value) in form_urlencoded::parse(query.unwrap_or_default().as_bytes()) {
        let is_new = !seen.contains(&name);
        requests = match &*name {
            "operation" if is_new => requests.of(parse_operation(&value)?),
            "order" if is_new && !value.is_empty() => requests.for_order(&value),
            "key" if is_new => requests.with_key(&parse_key(&value)?),
            "header" if is_new => with_header(requests, &value)?,
            "body" if is_new => with_body(requests, &value)?,
            _ => {
                let en =
                    "the parameters are operation, order, key, header and body, each at most once";
                let es = "los parámetros son operation, order, key, header y body, cada uno una vez como máximo";
                return Err(invalid_field(&name, en, es));
            }
        };
        seen.push(name);
    }
    Ok(requests)
}

/// Selects the requests with a header, given as `name:value`.
fn with_header<'a>(requests: Requests<'a>, condition: &str) -> Result<Requests<'a>, Refusal> {
    let (name, value) = condition.split_once(':').ok_or_else(|| {
        let en = "header must be a name and a value, such as user-agent:shop/2.1";
        invalid_field(
            "header",
            en,
            "header debe ser un nombre y un valor, como user-agent:shop/2.1",
        )
    })?;
    Ok(requests.with_header(name.trim(), value.trim()))
}

/// Selects the requests whose JSON has a value, by a JSON pointer and the value's text: `/receiver/fullName=Ana`.
fn with_body<'a>(requests: Requests<'a>, condition: &str) -> Result<Requests<'a>, Refusal> {
    let split = condition.split_once('=').filter(|(pointer, _)| pointer.starts_with('/'));
    let (pointer, expected) = split.ok_or_else(|| {
        invalid_field(
            "body",
            "body must be a JSON pointer and a value, such as /receiver/fullName=Ana",
            "body debe ser un puntero JSON y un valor, como /receiver/fullName=Ana",
        )
    })?;
    let (pointer, expected) = (pointer.to_owned(), expected.to_owned());
    Ok(requests.matching(move |request| {
        let body = request.request.json();
        body.as_ref().and_then(|body| body.pointer(&pointer)).is_some_and(|value| match value {
            Value::String(text) => *text == expected,
            other => serde_json::to_string(other).is_ok_and(|text| text == expected),
        })
    }))
}

/// Parses an API key, which must be complete.
pub(super) fn parse_key(text: &str) -> Result<ApiKey, Refusal> {
    let complete = ApiKey::parse(text).ok().filter(|key| !key.looks_mistyped());
    complete.ok_or_else(invalid_key)
}

/// Refuses a status that no parcel can have.
pub(super) fn check_status(status: &ParcelStatus) -> Result<(), Refusal> {
    if ParcelStatus::KNOWN.contains(status) {
        return Ok(());
    }
    let known: Vec<_> = ParcelStatus::KNOWN.iter().map(ParcelStatus::code).collect();
    let known = known.join(", ");
    Err(invalid_field(
        "status",
        &format!("status must be one of {known}"),
        &format!("status debe ser uno de {known}"),
    ))
}

/// Returns the operation with this name.
pub(super) fn parse_operation(name: &str) -> Result<Operation, Refusal> {
    let found = Operation::ALL.iter().find(|operation| operation.name() == name);
    found.copied().ok_or_else(|| {
        let names: Vec<_> = Operation::ALL.iter().map(|operation| operation.name()).collect();
        let names = names.join(", ");
        invalid_field(
            "operation",
            &format!("operation must be one of {names}"),
            &format!("operation debe ser una de {names}"),
        )
    })
}

/// The forms that [`parse_duration`] accepts, in English and Spanish.
const DURATION_FORMS: [&str; 2] = [
    "a number of seconds from 0, or a duration of weeks, days, hours, minutes and seconds such as \
     \"P1W\", \"P1DT2H\", \"PT5M\" or \"PT1.5S\"; months and years vary in length",
    "un número de segundos desde 0, o una duración en semanas, días, horas, minutos y segundos como \
     \"P1W\", \"P1DT2H\", \"PT5M\" o \"PT1.5S\"; los meses y los años varían",
];

/// Parses seconds as a number, or an ISO 8601 duration of weeks and smaller units, whose last part may have decimals:
/// `P1DT2H30M5.5S`.
fn parse_duration(field: &str, value: &Value) -> Result<Duration, Refusal> {
    let seconds = match value {
        Value::Number(seconds) => seconds.as_f64(),
        Value::String(text) => parse_iso_seconds(text),
        _ => None,
    };
    let duration = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    let [en, es] = DURATION_FORMS;
    duration.ok_or_else(|| {
        invalid_field(field, &format!("{field} must be {en}"), &format!("{field} debe ser {es}"))
    })
}

fn parse_iso_seconds(text: &str) -> Option<f64> {
    let (days, rest) = text.strip_prefix('P')?.split_once('T').unwrap_or((text.get(1..)?, ""));
    let (mut total, mut is_last) = (0.0, false);
    for (part, units) in [
        (days, &[('W', 604_800.0), ('D', 86_400.0)][..]),
        (rest, &[('H', 3_600.0), ('M', 60.0), ('S', 1.0)]),
    ] {
        let mut part = part;
        for (unit, seconds) in units {
            if let Some((number, after)) = part.split_once(*unit) {
                if is_last {
                    return None;
                }
                is_last = number.contains(['.', ',']);
                total += parse_decimal(number)? * seconds;
                part = after;
            }
        }
        part.is_empty().then_some(())?;
    }
    text.ends_with(['W', 'D', 'H', 'M', 'S']).then_some(total)
}

/// Parses digits, optionally with decimals after a point or a comma, the two decimal signs of ISO 8601.
fn parse_decimal(text: &str) -> Option<f64> {
    let (whole, fraction) = text.split_once(['.', ',']).unwrap_or((text, "0"));
    let are_digits =
        |digits: &str| !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
    (are_digits(whole) && are_digits(fraction)).then_some(())?;
    format!("{whole}.{fraction}").parse().ok()
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
            (json!("P1W"), Some(7 * 86_400)),
            (json!("P1W1DT1S"), Some(8 * 86_400 + 1)),
            (json!("PT1.5H"), Some(5_400)),
            (json!("PT0,5H"), Some(1_800)),
            (json!("P0.5D"), Some(43_200)),
            (json!("PT1M90.9S"), Some(150)),
            (json!("PT4294967296S"), Some(4_294_967_296)),
            (json!("PT1.5H5M"), None),
            (json!("P1.5DT1H"), None),
            (json!("PT1.S"), None),
            (json!("PT.5S"), None),
            (json!("PT1.5.5S"), None),
            (json!("PT1e3S"), None),
            (json!("P1D1W"), None),
            (json!("P1Y"), None),
            (json!("PTinfS"), None),
            (json!(format!("PT{}S", "9".repeat(400))), None),
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
        let parsed = |given: &Value| parse_duration("advance", given).ok();
        assert_eq!(parsed(&json!("PT1.5S")), Some(Duration::from_millis(1_500)));
        for (given, seconds) in table {
            assert_eq!(parsed(&given).map(|one| one.as_secs()), seconds, "{given}");
        }
    }

    #[test]
    fn a_clock_stays_within_four_digit_years() {
        let moved = |advance: Value, set: &str| {
            let request = ClockMove {
                advance: Some(advance),
                set: Some(set.to_owned()),
                until: None,
                mode: None,
            };
            request.target_time().is_ok_and(|to| request.advance_duration(to.unwrap()).is_ok())
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
