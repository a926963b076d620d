//! Tracking numbers, and requests to void orders, submit a manifest or reprint a label, validated with the service's
//! rules before anything is sent.

use std::path::Path;

use parcelo::{
    Awb, IdempotencyKey, Language, ManifestRequest, ReprintRequest, TrackingNumber, VoidRequest,
    model::{FaultCode, FieldFault, ManifestId},
    rules::Rejected,
};
use parcelo_types::internal::{check_manifest, check_reprint, check_void};
use serde_json::{Value, json};

use crate::{
    args::{Submit, Write},
    failure::Failure,
    input::{self, Source},
    sanitize::without_keys,
    texts::{self, Message},
};

/// The ID or the air waybill of a manifest.
#[derive(Debug)]
pub(crate) enum ManifestName {
    Id(ManifestId),
    Awb(Awb),
}

/// Returns the tracking numbers as typed; `-` is replaced by those on standard input, and a file by those in it.
pub(crate) fn from_arguments(arguments: Vec<String>) -> Result<Vec<String>, Failure> {
    let mut typed = Vec::new();
    for argument in arguments {
        let source = Source::from_argument(Path::new(&argument));
        // No tracking number has a dot or a slash.
        let is_file = argument.contains(['.', '/', '\\']) && Path::new(&argument).is_file();
        if !source.is_stdin() && !is_file {
            typed.push(argument);
            continue;
        }
        let text = source.read_text()?;
        if input::is_table(&text) || text.trim_start().starts_with(['{', '[']) {
            return Err(Failure::usage(texts::TABLE_OF_NUMBERS, texts::NUMBERS_COLUMN));
        }
        typed.extend(strip_lines(input::lines(&text)));
    }
    Ok(typed)
}

/// Removes a heading line, and the quotation marks that lines from CSV files have.
fn strip_lines(lines: Vec<String>) -> impl Iterator<Item = String> {
    let unquoted = lines.into_iter().map(|line| line.trim_matches('"').to_owned());
    unquoted.enumerate().filter(|(at, line)| *at > 0 || !is_heading(line)).map(|(_, line)| line)
}

/// Returns `true` for the heading of a column of tracking numbers.
fn is_heading(line: &str) -> bool {
    let shown = [Language::En, Language::Es].map(|language| texts::TRACKING_NUMBER.pick(language));
    let names = ["trackingNumber", "tracking_number"].into_iter().chain(shown);
    let folded = line.to_lowercase();
    names.map(str::to_lowercase).any(|name| name == folded)
}

/// Parses all numbers. The failure names all that are invalid.
pub(crate) fn parse_numbers(typed: &[String]) -> Result<Vec<TrackingNumber>, Failure> {
    let numbers = typed.iter().filter_map(|text| TrackingNumber::parse(text).ok()).collect();
    ensure_no_faults(numbers, faults(typed), texts::INVALID_NUMBERS)
}

/// Parses one number.
pub(crate) fn parse_number(typed: &str) -> Result<TrackingNumber, Failure> {
    TrackingNumber::parse(typed).map_err(|_| {
        Failure::invalid(
            texts::INVALID_NUMBERS,
            vec![invalid_number("trackingNumber".into(), typed)],
        )
    })
}

/// Parses the ID or the air waybill of a manifest.
pub(crate) fn parse_manifest_name(typed: &str) -> Result<ManifestName, Failure> {
    // The format of an ID is not specified beyond its prefix, so the service decides.
    if typed.starts_with("man_") {
        return Ok(ManifestName::Id(ManifestId::unchecked(typed)));
    }
    if let Ok(awb) = Awb::parse(typed) {
        return Ok(ManifestName::Awb(awb));
    }
    let message = texts::MANIFEST_FORM.with(&[("value", &without_keys(typed))]);
    let fault = fault("manifestId".into(), FaultCode::InvalidFormat, &message);
    Err(Failure::invalid(texts::INVALID_MANIFEST_ID, vec![fault]))
}

pub(crate) fn void_request(numbers: &[String], write: &Write) -> Result<VoidRequest, Failure> {
    let body = json!({"trackingNumbers": numbers, "reason": write.reason,
        "idempotencyKey": idempotency_key(write)});
    checked(check_void(&body, None), faults(numbers))
}

pub(crate) fn reprint_request(write: &Write) -> Result<ReprintRequest, Failure> {
    let body = json!({"reason": write.reason, "idempotencyKey": idempotency_key(write)});
    checked(check_reprint(&body, None), Vec::new())
}

pub(crate) fn manifest_request(
    numbers: &[String],
    submit: &Submit,
) -> Result<ManifestRequest, Failure> {
    let Submit { numbers: _, awb, flight, departure, from, to, reference } = submit;
    let key = IdempotencyKey::random();
    let body = json!({"idempotencyKey": key, "awbNumber": awb, "trackingNumbers": numbers, "flightNumber": flight,
        "departureDate": departure, "originAirport": from, "destinationAirport": to,
        "reference": reference});
    checked(check_manifest(&body, None), faults(numbers))
}

/// Returns the idempotency key from the option, or a new one.
fn idempotency_key(write: &Write) -> Value {
    match &write.idempotency_key {
        Some(key) => json!(key),
        None => json!(IdempotencyKey::random()),
    }
}

/// Returns the request, if it is valid. Faults of its numbers replace those of the rules, which would show only the
/// index.
fn checked<T>(request: Result<T, Rejected>, faults: Vec<FieldFault>) -> Result<T, Failure> {
    match request {
        Ok(request) => ensure_no_faults(request, faults, texts::INVALID_NUMBERS),
        Err(rejected) => {
            let known: Vec<_> = faults.iter().map(|fault| fault.field.clone()).collect();
            let others = rejected.faults.into_iter().filter(|fault| !known.contains(&fault.field));
            let faults = faults.into_iter().chain(others).collect();
            Err(Failure::invalid(texts::INVALID_REQUEST, faults))
        }
    }
}

fn ensure_no_faults<T>(
    value: T,
    faults: Vec<FieldFault>,
    message: texts::Text,
) -> Result<T, Failure> {
    if faults.is_empty() { Ok(value) } else { Err(Failure::invalid(message, faults)) }
}

/// Returns a fault for each invalid number, or one if there are no numbers.
fn faults(typed: &[String]) -> Vec<FieldFault> {
    if typed.is_empty() {
        return vec![fault(
            "trackingNumbers".into(),
            FaultCode::Required,
            &texts::NO_NUMBERS.into(),
        )];
    }
    let wrong = typed.iter().enumerate().filter(|(_, text)| TrackingNumber::parse(text).is_err());
    wrong.map(|(index, text)| invalid_number(format!("trackingNumbers[{index}]"), text)).collect()
}

fn invalid_number(field: String, text: &str) -> FieldFault {
    let message = texts::NUMBER_FORM.with(&[("value", &without_keys(text))]);
    fault(field, FaultCode::InvalidFormat, &message)
}

fn fault(field: String, code: FaultCode, message: &Message) -> FieldFault {
    FieldFault::new(field, code, (message.en.clone(), message.es.clone()))
}
