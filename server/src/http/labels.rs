//! Labels: metadata, reprint; files: GET /api/v1/labels/{trackingNumber}/download, and the capability link.

use axum::{
    Extension,
    extract::{Path, RawQuery, Request, State, rejection::PathRejection},
    http::{HeaderName, header},
    response::{IntoResponse, Response},
};
use parcelo::{FaultCode, FieldFault, LabelFormat, header as names};
use sha2::{Digest, Sha256};

use super::{Api, Refused, answer, body, gate::RequestId};
use crate::{
    core::Refusal,
    service::{Answer, Caller, Keyed, LabelFile},
};

pub(super) async fn metadata(
    State(api): State<Api>,
    Extension(caller): Extension<Caller>,
    Extension(id): Extension<RequestId>,
    path: Result<Path<String>, PathRejection>,
) -> Result<Response, Refused> {
    let metadata = api.service.label_metadata(&caller, &body::parameter(path)).await?;
    Ok(answer::data(metadata, id))
}

pub(super) async fn reprint(
    State(api): State<Api>,
    Extension(caller): Extension<Caller>,
    Extension(id): Extension<RequestId>,
    path: Result<Path<String>, PathRejection>,
    request: Request,
) -> Result<Answer, Refused> {
    let key = body::header_text(request.headers(), names::IDEMPOTENCY_KEY);
    let body = body::json_object(request).await?;
    let request = Keyed { body: &body, header_key: key.as_deref(), request_id: &id.0 };
    Ok(api.service.reprint_label(&caller, &body::parameter(path), request).await?)
}

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

pub(super) fn response(file: LabelFile) -> Response {
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

pub(super) fn etag(bytes: &[u8]) -> String {
    let hash = Sha256::digest(bytes);
    let hex: Vec<_> = hash.iter().take(16).map(|byte| format!("{byte:02x}")).collect();
    format!("\"{}\"", hex.concat())
}
