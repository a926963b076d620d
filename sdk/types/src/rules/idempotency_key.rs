//! The idempotency key of a write: in the body, in the header, or the same in both
//! (spec: Idempotency; docs/api.md, Idempotency).

use std::cell::RefCell;

use super::{
    field_types::{Text, is_blank},
    reader::{AlreadyReported, Object},
    texts::{FaultText, faults},
    validation::Report,
};
use crate::model::{
    FieldFault, IdempotencyKey,
    json::{Body, Members},
};

/// The result of reading the idempotency key of a request.
#[derive(Debug, Clone, PartialEq)]
pub enum KeyReading {
    /// Neither the body nor the header has a key.
    Missing,
    /// A valid key.
    Key(IdempotencyKey),
    /// An invalid key.
    Faulty(FieldFault),
}

/// The name of the body's field. Faults of the header are reported under it too, since the header stands in for the
/// field.
pub(crate) const FIELD: &str = "idempotencyKey";

/// Reads the key from the body's `idempotencyKey` and the header `X-Idempotency-Key`. Either is enough, and two
/// different keys are a fault. Several headers, which arrive here as one text with commas, are a fault too.
///
/// ```
/// use parcelo_types::internal::{KeyReading, read_key};
/// use serde_json::json;
/// let body = json!({"idempotencyKey": "order-0001"});
/// assert_eq!(read_key(&body, None), read_key(&json!({}), Some("order-0001")));
/// assert!(matches!(read_key(&body, Some("order-0002")), KeyReading::Faulty(_)));
/// ```
pub fn read_key<'a>(body: impl Into<Body<'a>>, header: Option<&str>) -> KeyReading {
    let (body, no_members) = (body.into(), Members::new());
    let report = RefCell::<Report>::default();
    let request = Object::from_members(body.as_object().unwrap_or(&no_members), &report);
    let key = read_optional(&request, header);
    match (key, report.take().faults.pop()) {
        (_, Some(fault)) => KeyReading::Faulty(fault),
        (Ok(Some(key)), None) => KeyReading::Key(key),
        (Ok(None) | Err(AlreadyReported), None) => KeyReading::Missing,
    }
}

/// Reads the key of a request for which it is optional, such as a manifest.
pub(crate) fn read_optional(
    request: &Object<'_>,
    header: Option<&str>,
) -> Result<Option<IdempotencyKey>, AlreadyReported> {
    let agree = |key| match non_blank(header) {
        Some(other) if other != key => Err(faults::KEY_MISMATCH),
        Some(_) | None => parse_key(key),
    };
    let given = request.text(FIELD, Text::CODE).and_then(agree);
    match non_blank(header) {
        Some(alone) if given.is_absent() => {
            reject_several(alone).and_then(parse_key).map(Some).map_err(|fault| {
                given.fault(fault);
                AlreadyReported
            })
        }
        Some(_) | None => given.into_result(),
    }
}

/// Reads the key of a request for which it is required.
pub(crate) fn read_required(request: &Object<'_>, header: Option<&str>) -> Option<IdempotencyKey> {
    let key = read_optional(request, header).ok()?;
    if key.is_none() {
        request.fault_at(FIELD, faults::KEY_REQUIRED);
    }
    key
}

fn non_blank(header: Option<&str>) -> Option<&str> {
    header.filter(|key| !is_blank(key))
}

/// Returns the key in a header. Several headers arrive joined by commas, which no key contains.
fn reject_several(header: &str) -> Result<&str, FaultText> {
    if header.contains(',') { Err(faults::KEY_MISMATCH) } else { Ok(header) }
}

fn parse_key(key: &str) -> Result<IdempotencyKey, FaultText> {
    IdempotencyKey::parse(key).map_err(|_| match key.chars().count() {
        0..IdempotencyKey::MIN => faults::too_short(IdempotencyKey::MIN),
        IdempotencyKey::MIN..=IdempotencyKey::MAX => faults::KEY_CHARACTERS,
        _ => faults::too_long(IdempotencyKey::MAX),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::model::FaultCode;

    #[test]
    fn the_key_is_read_from_header_body_or_both() {
        let table = [
            (json!({FIELD: "order-0001"}), None),
            (json!({FIELD: "order-0001"}), Some("order-0001")),
            (json!({FIELD: "order-0001"}), Some("  ")),
            (json!({}), Some("order-0001")),
            (json!({FIELD: null}), Some("order-0001")),
            (json!({FIELD: " "}), Some("order-0001")),
            (json!([]), Some("order-0001")),
        ];
        let key = KeyReading::Key(IdempotencyKey::parse("order-0001").unwrap());
        for (body, header) in table {
            assert_eq!(read_key(&body, header), key, "{body} {header:?}");
        }
    }

    #[test]
    fn a_null_empty_or_absent_key_is_missing() {
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
            (json!({}), Some(" order-0001 "), FaultCode::InvalidFormat),
            (json!({}), Some("order-0001,order-0002"), FaultCode::Mismatch),
        ];
        for (body, header, code) in table {
            let KeyReading::Faulty(fault) = read_key(&body, header) else { panic!("{body}") };
            assert_eq!((fault.field.as_str(), fault.code), (FIELD, code), "{body}");
        }
    }
}
