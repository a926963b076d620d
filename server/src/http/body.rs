//! Reading a request: its JSON body, its query, its path, in the order in which faults are reported
//! (docs/api.md, Order of checks).

use axum::{
    extract::{Path, Request, rejection::PathRejection},
    http::{HeaderMap, header},
};
use parcelo::{
    ErrorCode, Language,
    model::{FaultCode, FieldFault, header as names, json::Json},
    rules,
};
use serde_json::{Value, json};
use url::form_urlencoded;

use super::request_body::{BodyError, MAX_BODY_BYTES, read_body};
use crate::domain::Refusal;

/// The JSON object in a request's body.
pub(super) async fn json_object(request: Request) -> Result<Value, Refusal> {
    let bytes = json_bytes(request).await?;
    rules::parse_body(&bytes).map_err(|fault| Refusal::invalid(&[fault]))
}

/// The same, whatever the content type, and an empty object if there is no body: for calls made by hand.
pub(crate) async fn any_json_object(request: Request) -> Result<Value, Refusal> {
    let bytes = read_body(request.into_body(), MAX_BODY_BYTES).await?;
    if bytes.is_empty() {
        return Ok(json!({}));
    }
    rules::parse_body(&bytes).map_err(|fault| Refusal::invalid(&[fault]))
}

/// The body of a request that says that it is JSON.
pub(super) async fn json_bytes(request: Request) -> Result<Vec<u8>, Refusal> {
    let (parts, body) = request.into_parts();
    let bytes = read_body(body, MAX_BODY_BYTES).await?;
    if is_json(&parts.headers) { Ok(bytes) } else { Err(ErrorCode::UnsupportedMediaType.into()) }
}

/// The JSON object in such a body; its texts borrow from it.
pub(super) fn borrowed_object(bytes: &[u8]) -> Result<Json<'_>, Refusal> {
    rules::parse_json(bytes).map_err(|fault| Refusal::invalid(&[fault]))
}

impl From<BodyError> for Refusal {
    fn from(unread: BodyError) -> Self {
        match unread {
            BodyError::TooLarge => ErrorCode::PayloadTooLarge.into(),
            BodyError::Incomplete => Self::invalid(&[broken_off()]),
        }
    }
}

/// Only a proxy in between can still read this answer.
fn broken_off() -> FieldFault {
    FieldFault::new(
        "body",
        FaultCode::MalformedJson,
        (
            "The body ended before it was complete; send it again.",
            "El cuerpo llegó incompleto; envíelo de nuevo.",
        ),
    )
}

fn is_json(headers: &HeaderMap) -> bool {
    let given = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let kind = given.unwrap_or_default().split(';').next().unwrap_or_default();
    kind.trim().eq_ignore_ascii_case("application/json")
}

/// The language that the caller wants.
pub(super) fn language(headers: &HeaderMap) -> Language {
    let languages = header_text(headers, header::ACCEPT_LANGUAGE.as_str());
    Language::from_header(&languages.unwrap_or_default())
}

/// The idempotency key: `X-Idempotency-Key`, or `Idempotency-Key` as the IETF's draft has it, in
/// quotes or without; blanks inside the quotes are its own. Two that differ are one text with a comma
/// between, which no key has.
pub(crate) fn idempotency_key(headers: &HeaderMap) -> Option<String> {
    let own = header_text(headers, names::IDEMPOTENCY_KEY);
    let standard = header_text(headers, names::STANDARD_IDEMPOTENCY_KEY);
    let own = own.map(|key| key.trim().to_owned()).filter(|key| !key.is_empty());
    let standard = standard.map(|key| unquoted(key.trim()).to_owned());
    match (own, standard.filter(|key| !key.is_empty())) {
        (Some(one), Some(other)) if one != other => Some(format!("{one},{other}")),
        (one, other) => one.or(other),
    }
}

/// What stands between the quotes of a text in quotes.
fn unquoted(text: &str) -> &str {
    let inner = text.strip_prefix('"').and_then(|text| text.strip_suffix('"'));
    inner.unwrap_or(text)
}

/// A header's text. Given more than once, it is one text with commas in between, as HTTP has it:
/// no key, so that none of them is chosen in silence.
pub(super) fn header_text(headers: &HeaderMap, name: &str) -> Option<String> {
    let values = headers.get_all(name).iter();
    let texts: Vec<_> = values.map(|value| String::from_utf8_lossy(value.as_bytes())).collect();
    (!texts.is_empty()).then(|| texts.join(","))
}

/// A query parameter; the last one counts when it is given twice.
pub(crate) fn query(query: Option<&str>, name: &str) -> Option<String> {
    let pairs = form_urlencoded::parse(query.unwrap_or_default().as_bytes());
    pairs.filter(|(key, _)| key == name).last().map(|(_, value)| value.into_owned())
}

/// The path's parameter; one that is not text becomes an empty one, which nothing has.
pub(crate) fn parameter(path: Result<Path<String>, PathRejection>) -> String {
    path.map(|Path(text)| text).unwrap_or_default()
}

/// A query parameter that is true or false; false when it is not given.
pub(super) fn flag(given: Option<&str>, name: &str) -> Result<bool, FieldFault> {
    match given {
        None | Some("false") => Ok(false),
        Some("true") => Ok(true),
        Some(_) => Err(FieldFault::new(
            name,
            FaultCode::InvalidFormat,
            (format!("{name} is true or false."), format!("{name} es true o false.")),
        )),
    }
}
