//! The smaller requests: void, manifest, reprint, tracking batch, labels (docs/api.md). Their unknown fields are
//! ignored.
//!
//! A tracking number in a list only has to be a string: an unknown one has an error of its own in the response. Only a
//! malformed request is rejected as a whole.

use std::collections::HashSet;

use chrono::NaiveDate;

use super::{
    Rejected,
    field_types::Text,
    fields::{Fields, Kind::Leaf},
    idempotency_key,
    reader::{Object, validate},
    texts::{FaultText, faults},
};
use crate::model::{
    Awb, BatchTrackingRequest, LabelBatchRequest, LabelFormat, ManifestRequest, ReprintRequest,
    VoidRequest, json::Body,
};

const NUMBERS: &str = "trackingNumbers";
/// Maximum number of parcels in a void, a tracking batch or a batch of labels (docs/api.md; the spec has no limit).
pub(crate) const MAX_TRACKING_NUMBERS: usize = 100;
/// Maximum number of parcels in a manifest (docs/api.md; the spec has no limit), all of which are in one transaction.
pub(crate) const MAX_MANIFEST_PARCELS: usize = 500;

const VOID: Fields = Fields(&[(idempotency_key::FIELD, Leaf), (NUMBERS, Leaf), ("reason", Leaf)]);

const REPRINT: Fields = Fields(&[(idempotency_key::FIELD, Leaf), ("reason", Leaf)]);

const BATCH: Fields = Fields(&[(NUMBERS, Leaf), ("includeHistory", Leaf)]);

const LABELS: Fields = Fields(&[(NUMBERS, Leaf), ("format", Leaf)]);

const MANIFEST: Fields = Fields(&[
    (idempotency_key::FIELD, Leaf),
    ("awbNumber", Leaf),
    (NUMBERS, Leaf),
    ("flightNumber", Leaf),
    ("departureDate", Leaf),
    ("originAirport", Leaf),
    ("destinationAirport", Leaf),
    ("reference", Leaf),
]);

/// Checks a request to void 1-100 orders, each number once; `header` is `X-Idempotency-Key`
/// (docs/api.md, Void orders).
///
/// ```
/// use parcelo_types::internal::check_void;
/// let body = serde_json::json!({"trackingNumbers": ["SB-SUCCESS-0001", "sb-success-0001"]});
/// let rejected = check_void(&body, Some("void-2026-01-10")).unwrap_err();
/// assert_eq!(rejected.faults[0].field, "trackingNumbers[1]"); // the same number twice
/// ```
pub fn check_void<'a>(
    body: impl Into<Body<'a>>,
    header: Option<&str>,
) -> Result<VoidRequest, Rejected> {
    let checked = validate(body, &VOID, |void| {
        let idempotency_key = idempotency_key::read_required(void, header);
        let tracking_numbers = read_unique_numbers(void, MAX_TRACKING_NUMBERS);
        let reason = void.text("reason", Text::NOTE).optional().map(str::to_owned);
        Some(VoidRequest {
            idempotency_key: idempotency_key?,
            tracking_numbers: tracking_numbers?,
            reason,
        })
    });
    checked.map(|accepted| accepted.value)
}

/// Checks a request to submit a manifest of 1-500 parcels; `header` is `X-Idempotency-Key`
/// (docs/api.md, Submit and read manifests).
///
/// ```
/// use parcelo_types::internal::check_manifest;
/// let numbers = ["SB-SUCCESS-0001"];
/// let body = serde_json::json!({"awbNumber": "176-12345676", "trackingNumbers": numbers});
/// let rejected = check_manifest(&body, None).unwrap_err();
/// assert_eq!(rejected.faults[0].field, "awbNumber"); // its last digit is wrong
/// ```
pub fn check_manifest<'a>(
    body: impl Into<Body<'a>>,
    header: Option<&str>,
) -> Result<ManifestRequest, Rejected> {
    let checked = validate(body, &MANIFEST, |manifest| {
        let idempotency_key = idempotency_key::read_optional(manifest, header);
        let awb_number = manifest.text("awbNumber", Text::CODE).and_then(parse_awb).required();
        let tracking_numbers = read_unique_numbers(manifest, MAX_MANIFEST_PARCELS);
        let flight =
            manifest.text("flightNumber", Text::DATA).and_then(parse_flight_number).optional();
        let departure = manifest.text("departureDate", Text::DATA).and_then(parse_date).optional();
        let origin = manifest.text("originAirport", Text::DATA).and_then(parse_airport).optional();
        let destination =
            manifest.text("destinationAirport", Text::DATA).and_then(parse_airport).optional();
        let reference = manifest.text("reference", Text::REFERENCE).optional();
        Some(ManifestRequest {
            idempotency_key: idempotency_key.ok()?,
            awb_number: awb_number?,
            tracking_numbers: tracking_numbers?,
            flight_number: flight.map(str::to_owned),
            departure_date: departure,
            origin_airport: origin.map(str::to_owned),
            destination_airport: destination.map(str::to_owned),
            reference: reference.map(str::to_owned),
        })
    });
    checked.map(|accepted| accepted.value)
}

/// Checks a request to reprint a label; `header` is `X-Idempotency-Key` (docs/api.md, Reprint a label).
///
/// ```
/// use parcelo_types::internal::check_reprint;
/// let body = serde_json::json!({"idempotencyKey": "reprint-0001", "reason": "Label torn"});
/// assert_eq!(check_reprint(&body, None)?.reason.as_deref(), Some("Label torn"));
/// # Ok::<(), parcelo::rules::Rejected>(())
/// ```
pub fn check_reprint<'a>(
    body: impl Into<Body<'a>>,
    header: Option<&str>,
) -> Result<ReprintRequest, Rejected> {
    let checked = validate(body, &REPRINT, |reprint| {
        let idempotency_key = idempotency_key::read_required(reprint, header);
        let reason = reprint.text("reason", Text::NOTE).optional().map(str::to_owned);
        Some(ReprintRequest { idempotency_key: idempotency_key?, reason })
    });
    checked.map(|accepted| accepted.value)
}

/// Checks a request to track 1-100 parcels; a number may be repeated (docs/api.md, Track many
/// parcels).
///
/// ```
/// use parcelo_types::internal::check_batch;
/// let rejected = check_batch(&serde_json::json!({"trackingNumbers": []})).unwrap_err();
/// assert_eq!(rejected.to_string(), "the request breaks the rules: trackingNumbers TOO_SHORT");
/// ```
pub fn check_batch<'a>(body: impl Into<Body<'a>>) -> Result<BatchTrackingRequest, Rejected> {
    let checked = validate(body, &BATCH, |batch| {
        let tracking_numbers = read_numbers(batch, MAX_TRACKING_NUMBERS);
        let include_history = batch.boolean("includeHistory").optional().unwrap_or_default();
        Some(BatchTrackingRequest { tracking_numbers: tracking_numbers?, include_history })
    });
    checked.map(|accepted| accepted.value)
}

/// Checks a request for the labels of 1-100 parcels as one file, each number once (docs/api.md, Download many labels).
///
/// ```
/// use parcelo_types::internal::check_label_batch;
/// let body = serde_json::json!({"trackingNumbers": ["SB-SUCCESS-0001"], "format": "PNG"});
/// let rejected = check_label_batch(&body).unwrap_err();
/// assert_eq!(rejected.faults[0].field, "format"); // a PNG has one label
/// ```
pub fn check_label_batch<'a>(body: impl Into<Body<'a>>) -> Result<LabelBatchRequest, Rejected> {
    let checked = validate(body, &LABELS, |labels| {
        let tracking_numbers = read_unique_numbers(labels, MAX_TRACKING_NUMBERS);
        let format = labels.text("format", Text::CODE).and_then(parse_batch_format).optional();
        Some(LabelBatchRequest {
            tracking_numbers: tracking_numbers?,
            format: format.unwrap_or_default(),
        })
    });
    checked.map(|accepted| accepted.value)
}

/// Parses the format of a file with many labels: any except PNG, which has room for one.
fn parse_batch_format(name: &str) -> Result<LabelFormat, FaultText> {
    let format = LabelFormat::parse(name).ok().filter(|format| *format != LabelFormat::Png);
    format.ok_or(faults::MANY_LABELS)
}

/// Returns the tracking numbers without repetition; tracking numbers are compared without case.
fn read_unique_numbers(request: &Object<'_>, max: usize) -> Option<Vec<String>> {
    let numbers = read_numbers(request, max)?;
    let mut seen = HashSet::new();
    for (i, number) in numbers.iter().enumerate() {
        let path = format!("{NUMBERS}[{i}]");
        if number.is_empty() {
            request.fault_at(&path, faults::REQUIRED);
        } else if !seen.insert(number.to_ascii_uppercase()) {
            request.fault_at(&path, faults::DUPLICATE);
        }
    }
    Some(numbers)
}

/// Returns the tracking numbers as received, blank ones as an empty text; `None` if one is not a string.
fn read_numbers(request: &Object<'_>, max: usize) -> Option<Vec<String>> {
    let list = request.list(NUMBERS, max).required()?;
    if list.is_empty() {
        request.fault_at(NUMBERS, faults::too_few(NUMBERS));
        return None;
    }
    let numbers: Vec<_> =
        list.texts(Text::LOOKUP_NUMBER).map(|number| number.into_result().ok()).collect();
    numbers.into_iter().map(|number| Some(number?.unwrap_or_default().to_owned())).collect()
}

/// Parses an air waybill number. If only its check digit is wrong, the fault names the right one.
fn parse_awb(number: &str) -> Result<Awb, FaultText> {
    let expected = || Awb::expected_check_digit(number);
    Awb::parse(number).map_err(|_| expected().map_or(faults::AWB, faults::awb_check_digit))
}

/// Parses a flight number: an airline's two characters (IATA) and 1-4 digits.
fn parse_flight_number(number: &str) -> Result<&str, FaultText> {
    let fits = number.split_at_checked(2).is_some_and(|(airline, flight)| {
        airline.bytes().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit())
            && (1..=4).contains(&flight.len())
            && flight.bytes().all(|b| b.is_ascii_digit())
    });
    if fits { Ok(number) } else { Err(faults::FLIGHT_NUMBER) }
}

/// Parses a date. The length is checked, because chrono also accepts `2026-1-1`.
fn parse_date(day: &str) -> Result<NaiveDate, FaultText> {
    let date = NaiveDate::parse_from_str(day, "%Y-%m-%d").ok();
    date.filter(|_| day.len() == 10).ok_or(faults::DATE)
}

/// Parses an airport's three letters (IATA).
fn parse_airport(code: &str) -> Result<&str, FaultText> {
    let fits = code.len() == 3 && code.bytes().all(|b| b.is_ascii_alphabetic());
    if fits { Ok(code) } else { Err(faults::AIRPORT) }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::rules::tests::faults_of;

    fn manifest(change: impl FnOnce(&mut Value)) -> Value {
        let mut body = json!({"awbNumber": "17612345675", "trackingNumbers": ["EC7K2M9QX4T8WD0"],
            "flightNumber": "EK213", "departureDate": "2026-01-11", "originAirport": "MIA",
            "destinationAirport": "UIO", "reference": " PO-77 "});
        change(&mut body);
        body
    }

    #[test]
    fn valid_requests_are_parsed_and_trimmed() {
        let key = json!({"idempotencyKey": "void-0001", "trackingNumbers": ["a", "B"], "reason": " x\ny "});
        let void = check_void(&key, None).unwrap();
        assert_eq!((void.tracking_numbers.len(), void.reason.as_deref()), (2, Some("x\ny")));
        let read = check_manifest(&manifest(|_| ()), None).unwrap();
        assert_eq!(
            (read.awb_number.as_str(), read.reference.as_deref()),
            ("176-12345675", Some("PO-77"))
        );
        let hyphenated = manifest(|body| body["awbNumber"] = json!("020-81140743"));
        assert_eq!(check_manifest(&hyphenated, None).unwrap().awb_number.as_str(), "020-81140743");
        assert_eq!(read.idempotency_key, None);
        assert!(
            check_manifest(&manifest(|_| ()), Some("man-00001")).unwrap().idempotency_key.is_some()
        );
        assert!(check_reprint(&json!({}), Some("reprint-1")).is_ok());
        let batch = check_batch(&json!({"trackingNumbers": ["a", "a", ""], "unknown": 1})).unwrap();
        assert_eq!(
            (batch.tracking_numbers, batch.include_history),
            (vec!["a".into(), "a".into(), String::new()], false)
        );
    }

    #[test]
    fn every_fault_of_a_manifest_has_its_path_and_code() {
        let many: Vec<String> = (0..501).map(|i| format!("number-{i}")).collect();
        let table = [
            ("awbNumber", json!(null), "awbNumber REQUIRED"),
            ("awbNumber", json!("176-12345676"), "awbNumber INVALID_FORMAT"),
            ("awbNumber", json!(" 176-12345675"), "awbNumber INVALID_FORMAT"),
            ("awbNumber", json!("176-12345675\n"), "awbNumber INVALID_FORMAT"),
            ("awbNumber", json!(" "), "awbNumber REQUIRED"),
            ("awbNumber", json!("176--12345675"), "awbNumber INVALID_FORMAT"),
            ("awbNumber", json!("17-612345675"), "awbNumber INVALID_FORMAT"),
            ("awbNumber", json!("ABC-12345675"), "awbNumber INVALID_FORMAT"),
            ("awbNumber", json!("１76-12345675"), "awbNumber INVALID_FORMAT"),
            ("trackingNumbers", json!(null), "trackingNumbers REQUIRED"),
            ("trackingNumbers", json!([]), "trackingNumbers TOO_SHORT"),
            ("trackingNumbers", json!(many), "trackingNumbers TOO_LONG"),
            ("trackingNumbers", json!("a"), "trackingNumbers INVALID_FORMAT"),
            ("trackingNumbers", json!(["a", 7]), "trackingNumbers[1] INVALID_FORMAT"),
            ("trackingNumbers", json!(["a", " "]), "trackingNumbers[1] REQUIRED"),
            ("trackingNumbers", json!(["ab", "c", "AB"]), "trackingNumbers[2] DUPLICATE"),
            ("flightNumber", json!("ek213"), "flightNumber INVALID_FORMAT"),
            ("flightNumber", json!("EK21345"), "flightNumber INVALID_FORMAT"),
            ("departureDate", json!("2026-02-30"), "departureDate INVALID_FORMAT"),
            ("departureDate", json!("2026-1-1"), "departureDate INVALID_FORMAT"),
            ("originAirport", json!("MIAM"), "originAirport INVALID_FORMAT"),
            ("destinationAirport", json!("U1O"), "destinationAirport INVALID_FORMAT"),
            ("reference", json!("x".repeat(101)), "reference TOO_LONG"),
            ("idempotencyKey", json!("short"), "idempotencyKey TOO_SHORT"),
        ];
        for (field, value, expected) in table {
            let body = manifest(|body| body[field] = value.clone());
            assert_eq!(faults_of(check_manifest(&body, None)), [expected], "{field} {value}");
        }
    }

    #[test]
    fn a_label_batch_is_one_pdf_or_zpl_with_each_number_once() {
        let request = |format: Value| json!({"trackingNumbers": ["ab", "c"], "format": format});
        for (format, read) in [
            (json!(null), LabelFormat::Pdf),
            (json!("PDF"), LabelFormat::Pdf),
            (json!("zpl"), LabelFormat::Zpl),
        ] {
            assert_eq!(check_label_batch(&request(format)).unwrap().format, read);
        }
        let hundred_one: Vec<String> = (0..101).map(|i| format!("number-{i}")).collect();
        let table = [
            (request(json!("PNG")), "format UNKNOWN_VALUE"),
            (request(json!("GIF")), "format UNKNOWN_VALUE"),
            (request(json!(1)), "format INVALID_FORMAT"),
            (json!({}), "trackingNumbers REQUIRED"),
            (json!({"trackingNumbers": []}), "trackingNumbers TOO_SHORT"),
            (json!({"trackingNumbers": hundred_one}), "trackingNumbers TOO_LONG"),
            (json!({"trackingNumbers": ["ab", "AB"]}), "trackingNumbers[1] DUPLICATE"),
            (json!({"trackingNumbers": ["ab", " "]}), "trackingNumbers[1] REQUIRED"),
        ];
        for (body, fault) in table {
            assert_eq!(faults_of(check_label_batch(&body)), [fault], "{body}");
        }
    }

    #[test]
    fn faults_of_voids_batches_and_reprints_are_reported() {
        let hundred_one: Vec<String> = (0..101).map(|i| format!("number-{i}")).collect();
        let void = json!({"trackingNumbers": hundred_one, "reason": "x".repeat(256)});
        let expected = ["idempotencyKey REQUIRED", "trackingNumbers TOO_LONG", "reason TOO_LONG"];
        assert_eq!(faults_of(check_void(&void, None)), expected);
        let batch = json!({"trackingNumbers": hundred_one, "includeHistory": "true"});
        let found = faults_of(check_batch(&batch));
        assert_eq!(found.len(), 2, "{found:?}");
        let listed = check_reprint(&json!([]), Some("key-00001"));
        assert_eq!(faults_of(listed), ["body MALFORMED_JSON"]);
        assert_eq!(faults_of(check_reprint(&json!({}), None)), ["idempotencyKey REQUIRED"]);
    }
}
