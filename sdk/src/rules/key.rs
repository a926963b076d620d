//! The idempotency key of a write: in the body, in the header, or the same in both
//! (spec: Idempotency; api: 5).

use std::cell::RefCell;

use serde_json::Value;

use super::{
    reader::{Object, Report, Text},
    texts::{Wrong, faults},
};
use crate::model::{FieldFault, IdempotencyKey};

/// What a write names itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeyReading {
    /// Neither the body nor the header has a key.
    Missing,
    /// The key.
    Key(IdempotencyKey),
    /// There is one, and it cannot be used.
    Faulty(FieldFault),
}

/// The body's field, and in faults the header's too.
pub(crate) const FIELD: &str = "idempotencyKey";

/// Reads the key from the body's `idempotencyKey` and the header `X-Idempotency-Key`: either stands
/// in for the other, and two different ones are a fault.
///
/// ```
/// use parcelo::rules::{KeyReading, read_key};
/// use serde_json::json;
/// let body = json!({"idempotencyKey": "order-0001"});
/// assert_eq!(read_key(&body, None), read_key(&json!({}), Some("order-0001")));
/// assert!(matches!(read_key(&body, Some("order-0002")), KeyReading::Faulty(_)));
/// ```
pub fn read_key(body: &Value, header: Option<&str>) -> KeyReading {
    let report = RefCell::default();
    let key = match Object::body(body, &report) {
        Some(body) => in_body(&body, header),
        None => None,
    };
    let Report { faults, .. } = report.into_inner();
    match (key, faults.into_iter().find(|fault| fault.field == FIELD)) {
        (_, Some(fault)) => KeyReading::Faulty(fault),
        (Some(key), None) => KeyReading::Key(key),
        (None, None) => alone(header),
    }
}

fn in_body(body: &Object<'_>, header: Option<&str>) -> Option<IdempotencyKey> {
    let agree = |key| match present(header) {
        Some(other) if other != key => Err(faults::key_mismatch()),
        Some(_) | None => parse(key),
    };
    body.text(FIELD, Text::CODE).then(agree).optional()
}

fn alone(header: Option<&str>) -> KeyReading {
    match present(header).map(parse) {
        None => KeyReading::Missing,
        Some(Ok(key)) => KeyReading::Key(key),
        Some(Err(wrong)) => KeyReading::Faulty(wrong.at(FIELD)),
    }
}

fn present(header: Option<&str>) -> Option<&str> {
    header.map(str::trim).filter(|key| !key.is_empty())
}

fn parse(key: &str) -> Result<IdempotencyKey, Wrong> {
    IdempotencyKey::parse(key).map_err(|_| match key.chars().count() {
        0..IdempotencyKey::MIN => faults::too_short(IdempotencyKey::MIN),
        IdempotencyKey::MIN..=IdempotencyKey::MAX => faults::key_characters(),
        _ => faults::too_long(IdempotencyKey::MAX),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::model::FaultCode;

    #[test]
    fn either_spelling_or_both_alike() {
        let table = [
            (json!({FIELD: "order-0001"}), None),
            (json!({FIELD: "order-0001"}), Some("order-0001")),
            (json!({FIELD: "order-0001"}), Some("  ")),
            (json!({}), Some("order-0001")),
            (json!({FIELD: null}), Some(" order-0001 ")),
            (json!({FIELD: " "}), Some("order-0001")),
            (json!([]), Some("order-0001")),
        ];
        let key = KeyReading::Key(IdempotencyKey::parse("order-0001").unwrap());
        for (body, header) in table {
            assert_eq!(read_key(&body, header), key, "{body} {header:?}");
        }
    }

    #[test]
    fn no_key_is_missing() {
        for body in [json!({}), json!({FIELD: null}), json!({FIELD: ""}), json!(7)] {
            assert_eq!(read_key(&body, None), KeyReading::Missing, "{body}");
            assert_eq!(read_key(&body, Some("")), KeyReading::Missing, "{body}");
        }
    }

    #[test]
    fn a_bad_key_is_a_fault_of_its_field() {
        let table = [
            (json!({FIELD: "order-0001"}), Some("order-0002"), FaultCode::Mismatch),
            (json!({FIELD: "short"}), None, FaultCode::TooShort),
            (json!({FIELD: "k".repeat(65)}), None, FaultCode::TooLong),
            (json!({FIELD: "ñandú-0001"}), None, FaultCode::InvalidFormat),
            (json!({FIELD: " order-0001"}), None, FaultCode::InvalidFormat),
            (json!({FIELD: 12_345_678}), Some("order-0001"), FaultCode::InvalidFormat),
            (json!({}), Some("no spaces please"), FaultCode::InvalidFormat),
        ];
        for (body, header, code) in table {
            let KeyReading::Faulty(fault) = read_key(&body, header) else { panic!("{body}") };
            assert_eq!((fault.field.as_str(), fault.code), (FIELD, code), "{body}");
        }
    }
}
