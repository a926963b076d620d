//! What the command line asks the service for, checked by the service's own rules before anything
//! is sent: tracking numbers, and the requests to void, to submit a manifest, to reprint a label.

use parcelo::{
    IdempotencyKey, ManifestRequest, ReprintRequest, TrackingNumber, VoidRequest,
    model::{FaultCode, FieldFault, ManifestId},
    rules::{Rejected, check_manifest, check_reprint, check_void},
};
use serde_json::{Value, json};

use crate::{
    args::{Submit, Write},
    failure::Failure,
    input::{self, Source},
    sanitize::without_keys,
    texts::{self, Message},
};

/// The tracking numbers as they were typed, those on standard input in the place of a `-`.
pub(crate) fn typed(arguments: Vec<String>) -> Result<Vec<String>, Failure> {
    let mut typed = Vec::new();
    for argument in arguments {
        if argument == "-" {
            typed.extend(input::lines(&Source::Stdin.read()?));
        } else {
            typed.push(argument);
        }
    }
    Ok(typed)
}

/// All numbers, or all that are none.
pub(crate) fn numbers(typed: &[String]) -> Result<Vec<TrackingNumber>, Failure> {
    let numbers = typed.iter().filter_map(|text| TrackingNumber::parse(text).ok()).collect();
    settled(numbers, faults(typed), texts::INVALID_NUMBERS)
}

/// One number.
pub(crate) fn number(typed: &str) -> Result<TrackingNumber, Failure> {
    TrackingNumber::parse(typed).map_err(|_| {
        Failure::invalid(texts::INVALID_NUMBERS, vec![no_number("trackingNumber".into(), typed)])
    })
}

/// The id of a manifest; an air waybill or a tracking number is none.
pub(crate) fn manifest_id(typed: &str) -> Result<ManifestId, Failure> {
    // Whether there is one, whatever the id looks like, is for the service to say.
    if typed.starts_with("man_") {
        return Ok(ManifestId::unchecked(typed));
    }
    let said = texts::MANIFEST_FORM.with(&[("value", &without_keys(typed))]);
    let fault = fault("manifestId".into(), FaultCode::InvalidFormat, &said);
    Err(Failure::invalid(texts::INVALID_MANIFEST_ID, vec![fault]))
}

pub(crate) fn void(numbers: &[String], write: &Write) -> Result<VoidRequest, Failure> {
    let body = json!({"trackingNumbers": numbers, "reason": write.reason,
        "idempotencyKey": key(write)});
    checked(check_void(&body, None), faults(numbers))
}

pub(crate) fn reprint(write: &Write) -> Result<ReprintRequest, Failure> {
    let body = json!({"reason": write.reason, "idempotencyKey": key(write)});
    checked(check_reprint(&body, None), Vec::new())
}

pub(crate) fn manifest(numbers: &[String], submit: &Submit) -> Result<ManifestRequest, Failure> {
    let Submit { numbers: _, awb, flight, departure, from, to, reference } = submit;
    let key = IdempotencyKey::random();
    let body = json!({"idempotencyKey": key, "awbNumber": awb, "trackingNumbers": numbers, "flightNumber": flight,
        "departureDate": departure, "originAirport": from, "destinationAirport": to,
        "reference": reference});
    checked(check_manifest(&body, None), faults(numbers))
}

/// The key that was given, else a fresh one, which is shown so that it can be given next time.
fn key(write: &Write) -> Value {
    match &write.idempotency_key {
        Some(key) => json!(key),
        None => json!(IdempotencyKey::random()),
    }
}

/// The request, if it keeps the rules and each of its numbers has the form of one.
fn checked<T>(request: Result<T, Rejected>, faults: Vec<FieldFault>) -> Result<T, Failure> {
    match request {
        Ok(request) => settled(request, faults, texts::INVALID_NUMBERS),
        Err(rejected) => {
            let told: Vec<_> = faults.iter().map(|fault| fault.field.clone()).collect();
            let others = rejected.faults.into_iter().filter(|fault| !told.contains(&fault.field));
            let faults = faults.into_iter().chain(others).collect();
            Err(Failure::invalid(texts::INVALID_REQUEST, faults))
        }
    }
}

fn settled<T>(value: T, faults: Vec<FieldFault>, message: texts::Text) -> Result<T, Failure> {
    if faults.is_empty() { Ok(value) } else { Err(Failure::invalid(message, faults)) }
}

/// What is wrong with the numbers: there are none, or some have not the form of one.
fn faults(typed: &[String]) -> Vec<FieldFault> {
    if typed.is_empty() {
        return vec![fault(
            "trackingNumbers".into(),
            FaultCode::Required,
            &texts::NO_NUMBERS.into(),
        )];
    }
    let wrong = typed.iter().enumerate().filter(|(_, text)| TrackingNumber::parse(text).is_err());
    wrong.map(|(place, text)| no_number(format!("trackingNumbers[{place}]"), text)).collect()
}

fn no_number(field: String, text: &str) -> FieldFault {
    let said = texts::NUMBER_FORM.with(&[("value", &without_keys(text))]);
    fault(field, FaultCode::InvalidFormat, &said)
}

fn fault(field: String, code: FaultCode, said: &Message) -> FieldFault {
    FieldFault::new(field, code, (said.en.clone(), said.es.clone()))
}
