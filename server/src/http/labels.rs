//! Labels: metadata, reprint; files: GET /api/v1/labels/{trackingNumber}/download, and the capability link.

use axum::{
    Extension,
    extract::{Path, RawQuery, Request, State, rejection::PathRejection},
    http::{HeaderMap, HeaderName, StatusCode, header},
    response::{IntoResponse, Response},
};
use parcelo::{ErrorCode, FaultCode, FieldFault, LabelFormat};
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
    let key = body::idempotency_key(request.headers());
    let body = body::json_object(request).await?;
    let request = Keyed { body: &body, header_key: key.as_deref(), request_id: &id.0 };
    Ok(api.service.reprint_label(&caller, &body::parameter(path), request).await?)
}

pub(super) async fn download(
    State(api): State<Api>,
    Extension(caller): Extension<Caller>,
    path: Result<Path<String>, PathRejection>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Result<Response, Refused> {
    let format = format_of(body::query(query.as_deref(), "format"))?;
    response(api.service.label(&caller, &body::parameter(path), format)?, &headers)
}

pub(super) async fn linked(
    State(api): State<Api>,
    path: Result<Path<String>, PathRejection>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Result<Response, Refused> {
    let signature = body::query(query.as_deref(), "sig").unwrap_or_default();
    let file = api.service.linked_label(api.environment, &body::parameter(path), &signature)?;
    response(file, &headers)
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

/// A label's file, unless the caller has it already, or wants another version of it.
pub(super) fn response(file: LabelFile, asked: &HeaderMap) -> Result<Response, Refused> {
    let LabelFile { number, format, bytes } = file;
    let etag = etag(&bytes);
    let about = [
        (header::ETAG, etag.clone()),
        (header::CACHE_CONTROL, "private, no-store".to_owned()),
        (HeaderName::from_static("x-robots-tag"), "noindex".to_owned()),
    ];
    let file = [
        (header::CONTENT_TYPE, format.content_type().to_owned()),
        (header::CONTENT_DISPOSITION, disposition(number.as_str(), format)),
    ];
    match Precondition::of(asked, &etag) {
        Precondition::Met => Ok((about, file, bytes).into_response()),
        Precondition::Unchanged => Ok((StatusCode::NOT_MODIFIED, about).into_response()),
        Precondition::Failed => Err(ErrorCode::PreconditionFailed.into()),
    }
}

/// What `If-Match` and `If-None-Match` ask for (RFC 9110, 13).
enum Precondition {
    Met,
    Unchanged,
    Failed,
}

impl Precondition {
    fn of(asked: &HeaderMap, etag: &str) -> Self {
        let named = |name: &HeaderName| body::header_text(asked, name.as_str());
        let is_it = |tag: &str| tag == "*" || tag == etag;
        // A comma never parts one of our tags: what stands between two is one of them, or none.
        let tags =
            |list: &str| list.split(',').map(|tag| tag.trim().to_owned()).collect::<Vec<_>>();
        // A weak tag says that two files may stand for each other, not that they are the same.
        let is_met =
            named(&header::IF_MATCH).is_none_or(|list| tags(&list).iter().any(|tag| is_it(tag)));
        let is_known = |tag: &String| is_it(tag.strip_prefix("W/").unwrap_or(tag));
        match named(&header::IF_NONE_MATCH) {
            _ if !is_met => Self::Failed,
            Some(list) if tags(&list).iter().any(is_known) => Self::Unchanged,
            Some(_) | None => Self::Met,
        }
    }
}

fn disposition(number: &str, format: LabelFormat) -> String {
    format!("attachment; filename=\"label-{number}.{}\"", format.extension())
}

fn etag(bytes: &[u8]) -> String {
    let hash = Sha256::digest(bytes);
    let hex: Vec<_> = hash.iter().take(16).map(|byte| format!("{byte:02x}")).collect();
    format!("\"{}\"", hex.concat())
}
