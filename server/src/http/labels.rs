//! Labels: metadata, reprint; files: GET /api/v1/labels/{trackingNumber}/download, and the capability link.

use axum::{
    Extension,
    extract::{Path, RawQuery, Request, State, rejection::PathRejection},
    http::{HeaderMap, HeaderName, StatusCode, header},
    response::{IntoResponse, Response},
};
use parcelo::{
    ErrorCode, LabelFormat,
    model::{FaultCode, FieldFault},
};

use super::{
    Api, Refused,
    answer::{self, RequestId},
    body,
    precondition::{self, Precondition},
};
use crate::{
    domain::Refusal,
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
        Refusal::invalid(&[FieldFault::new(
            "format",
            FaultCode::UnknownValue,
            ("format is PDF, ZPL or PNG.", "format es PDF, ZPL o PNG."),
        )])
    })
}

/// A label's file, unless the caller has it already, or wants another version of it.
pub(super) fn response(file: LabelFile, asked: &HeaderMap) -> Result<Response, Refused> {
    let LabelFile { number, format, bytes } = file;
    let etag = precondition::etag(&bytes);
    let about = [
        (header::ETAG, etag.clone()),
        (header::CACHE_CONTROL, "private, no-store".to_owned()),
        (HeaderName::from_static("x-robots-tag"), "noindex".to_owned()),
    ];
    let file = [
        (header::CONTENT_TYPE, format.content_type().to_owned()),
        (header::CONTENT_DISPOSITION, disposition(number.as_str(), format)),
    ];
    match Precondition::for_tag(asked, &etag) {
        Precondition::Met => Ok((about, file, bytes).into_response()),
        Precondition::Unchanged => Ok((StatusCode::NOT_MODIFIED, about).into_response()),
        Precondition::Failed => Err(ErrorCode::PreconditionFailed.into()),
    }
}

fn disposition(number: &str, format: LabelFormat) -> String {
    format!("attachment; filename=\"label-{number}.{}\"", format.extension())
}
