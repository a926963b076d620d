//! Label files: GET /api/v1/labels/{trackingNumber}/download, and the capability link.

use axum::{
    Extension,
    extract::{Path, RawQuery, State, rejection::PathRejection},
    http::{HeaderName, header},
    response::{IntoResponse, Response},
};
use parcelo::{FaultCode, FieldFault, LabelFormat};
use sha2::{Digest, Sha256};

use super::{Api, Refused, body};
use crate::{
    core::Refusal,
    service::{Caller, LabelFile},
};

pub(super) async fn download(
    State(api): State<Api>,
    Extension(caller): Extension<Caller>,
    path: Result<Path<String>, PathRejection>,
    RawQuery(query): RawQuery,
) -> Result<Response, Refused> {
    let format = format_of(body::query(query.as_deref(), "format"))?;
    let file = api.service.label(&caller, &body::parameter(path), format)?;
    Ok(response(file))
}

pub(super) async fn linked(
    State(api): State<Api>,
    path: Result<Path<String>, PathRejection>,
    RawQuery(query): RawQuery,
) -> Result<Response, Refused> {
    let signature = body::query(query.as_deref(), "sig").unwrap_or_default();
    let file = api.service.linked_label(api.environment, &body::parameter(path), &signature)?;
    Ok(response(file))
}

fn format_of(given: Option<String>) -> Result<LabelFormat, Refusal> {
    let Some(text) = given else { return Ok(LabelFormat::default()) };
    LabelFormat::parse(&text).map_err(|_| {
        Refusal::invalid(&[FieldFault {
            field: "format".to_owned(),
            code: FaultCode::UnknownValue,
            message: "format is PDF, ZPL or PNG.".to_owned(),
            message_es: "format es PDF, ZPL o PNG.".to_owned(),
            suggestion: None,
        }])
    })
}

fn response(file: LabelFile) -> Response {
    let LabelFile { number, format, bytes } = file;
    let headers = [
        (header::CONTENT_TYPE, format.content_type().to_owned()),
        (header::CONTENT_DISPOSITION, disposition(number.as_str(), format)),
        (header::ETAG, etag(&bytes)),
        (header::CACHE_CONTROL, "private, no-store".to_owned()),
        (HeaderName::from_static("x-robots-tag"), "noindex".to_owned()),
    ];
    (headers, bytes).into_response()
}

fn disposition(number: &str, format: LabelFormat) -> String {
    format!("attachment; filename=\"label-{number}.{}\"", format.extension())
}

fn etag(bytes: &[u8]) -> String {
    let hash = Sha256::digest(bytes);
    let hex: Vec<_> = hash.iter().take(16).map(|byte| format!("{byte:02x}")).collect();
    format!("\"{}\"", hex.concat())
}
