//! Readers of a request's JSON body, query and path, in the order of checks (docs/api.md, Order of checks).

use std::borrow::Cow;

use axum::{
    extract::{Path, Request, rejection::PathRejection},
    http::{
        HeaderMap, HeaderName,
        header::{self, AsHeaderName},
    },
};
use parcelo_domain::Refusal;
use parcelo_types::{
    ErrorCode, Language,
    internal::{self, header as names, json::Json},
    model::{FaultCode, FieldFault},
};
use serde_json::{Value, json};
use url::form_urlencoded;

use super::request_body::{BodyError, MAX_BODY_BYTES, read_body};

/// Reads the JSON object in a request's body.
pub async fn json_object(request: Request) -> Result<Value, Refusal> {
    let bytes = json_bytes(request).await?;
    internal::parse_body(&bytes).map_err(|fault| Refusal::invalid(&[fault]))
}

/// Reads the JSON object in a body of any content type, or an empty object if there is no body. It is for calls that
/// are made by hand, for example with curl.
pub async fn json_object_of_any_type(request: Request) -> Result<Value, Refusal> {
    let bytes = read_body(request.into_body(), MAX_BODY_BYTES).await?;
    if bytes.is_empty() {
        return Ok(json!({}));
    }
    internal::parse_body(&bytes).map_err(|fault| Refusal::invalid(&[fault]))
}

/// Reads the body of a request whose content type is JSON.
pub(super) async fn json_bytes(request: Request) -> Result<Vec<u8>, Refusal> {
    let (parts, body) = request.into_parts();
    let bytes = read_body(body, MAX_BODY_BYTES).await?;
    let is_json = has_content_type(&parts.headers, "application/json");
    if is_json { Ok(bytes) } else { Err(ErrorCode::UnsupportedMediaType.into()) }
}

/// Parses the JSON object in a body; its texts borrow from the bytes.
pub(super) fn parse_borrowed_object(bytes: &[u8]) -> Result<Json<'_>, Refusal> {
    internal::parse_json(bytes).map_err(|fault| Refusal::invalid(&[fault]))
}

impl From<BodyError> for Refusal {
    fn from(error: BodyError) -> Self {
        match error {
            BodyError::TooLarge => ErrorCode::PayloadTooLarge.into(),
            BodyError::Incomplete => Self::invalid(&[incomplete_body_fault()]),
        }
    }
}

/// Returns the fault of an incomplete body. Only a proxy in between can still read this response.
fn incomplete_body_fault() -> FieldFault {
    FieldFault::new(
        "body",
        FaultCode::MalformedJson,
        (
            "The body ended before it was complete; send it again.",
            "El cuerpo llegó incompleto; envíelo de nuevo.",
        ),
    )
}

/// Returns `true` if the body has this content type, whatever its parameters are.
pub fn has_content_type(headers: &HeaderMap, expected: &str) -> bool {
    let content_type = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let kind = content_type.unwrap_or_default().split(';').next().unwrap_or_default();
    kind.trim().eq_ignore_ascii_case(expected)
}

/// Returns the language that `Accept-Language` prefers.
pub fn preferred_language(headers: &HeaderMap) -> Language {
    let Some(languages) = header_text(headers, header::ACCEPT_LANGUAGE) else {
        return Language::default();
    };
    Language::from_header(&languages)
}

/// Returns the idempotency key in `X-Idempotency-Key`, or in `Idempotency-Key` as the IETF's draft defines it: with or
/// without quotes, where spaces inside the quotes are part of the key. Two different keys are joined with a comma,
/// which makes an invalid key.
pub fn idempotency_key(headers: &HeaderMap) -> Option<String> {
    let custom = header_text(headers, const { HeaderName::from_static(names::IDEMPOTENCY_KEY) });
    let standard =
        header_text(headers, const { HeaderName::from_static(names::STANDARD_IDEMPOTENCY_KEY) });
    let custom = custom.map(|key| key.trim().to_owned()).filter(|key| !key.is_empty());
    let standard = standard.map(|key| strip_quotes(key.trim()).to_owned());
    match (custom, standard.filter(|key| !key.is_empty())) {
        (Some(one), Some(other)) if one != other => Some(format!("{one},{other}")),
        (one, other) => one.or(other),
    }
}

/// Returns a text without its surrounding quotes, if it has them.
fn strip_quotes(text: &str) -> &str {
    let inner = text.strip_prefix('"').and_then(|text| text.strip_suffix('"'));
    inner.unwrap_or(text)
}

/// Returns a header's text. Values of a repeated header are joined with commas, as HTTP defines. For a key, the result
/// is invalid, so that none of several keys is chosen silently.
pub fn header_text(headers: &HeaderMap, name: impl AsHeaderName) -> Option<Cow<'_, str>> {
    let values = headers.get_all(name).iter();
    let mut texts = values.map(|value| String::from_utf8_lossy(value.as_bytes()));
    let first = texts.next()?;
    Some(texts.fold(first, |all, next| Cow::Owned(format!("{all},{next}"))))
}

/// Returns a query parameter; the last one if it is repeated.
pub fn query_parameter(query: Option<&str>, name: &str) -> Option<String> {
    let pairs = form_urlencoded::parse(query.unwrap_or_default().as_bytes());
    pairs.filter(|(key, _)| key == name).last().map(|(_, value)| value.into_owned())
}

/// Returns the path's parameter. A parameter that is not UTF-8 becomes empty, which matches nothing.
pub fn path_parameter(path: Result<Path<String>, PathRejection>) -> String {
    path.map(|Path(text)| text).unwrap_or_default()
}

/// Returns the environment with this code.
pub fn parse_environment(code: &str) -> Option<parcelo_types::Environment> {
    parcelo_types::Environment::ALL.into_iter().find(|environment| environment.code() == code)
}

/// Returns a query parameter that must be true or false; false if it is absent.
pub(super) fn parse_bool(text: Option<&str>, name: &str) -> Result<bool, FieldFault> {
    match text {
        None | Some("false") => Ok(false),
        Some("true") => Ok(true),
        Some(_) => Err(FieldFault::new(
            name,
            FaultCode::InvalidFormat,
            (format!("{name} is true or false."), format!("{name} es true o false.")),
        )),
    }
}
