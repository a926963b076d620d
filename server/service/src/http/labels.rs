//! Labels: metadata, reprints, and files by GET /api/v1/labels/{trackingNumber}/download, by capability link and by
//! POST /api/v1/labels/batch. Invoices: GET /api/v1/parcels/{trackingNumber}/invoice.

use axum::{
    Extension,
    extract::{Path, RawQuery, Request, State, rejection::PathRejection},
    http::{HeaderMap, HeaderName, StatusCode, header},
    response::{IntoResponse, Response},
};
use parcelo_domain::Refusal;
use parcelo_types::{
    ErrorCode, LabelFormat,
    model::{FaultCode, FieldFault},
};

use super::{
    Api, HttpRefusal, body,
    precondition::{self, Precondition},
    response::{self, RequestId},
};
use crate::service::{Caller, KeyedRequest, LabelBatch, LabelFile, WriteResponse};

/// Handles GET /api/v1/labels/{trackingNumber}.
pub(super) async fn metadata(
    State(api): State<Api>,
    Extension(caller): Extension<Caller>,
    id: RequestId,
    path: Result<Path<String>, PathRejection>,
) -> Result<Response, HttpRefusal> {
    let metadata = api.service.label_metadata(&caller, &body::path_parameter(path)).await?;
    Ok(response::enveloped(metadata, id))
}

/// Handles POST /api/v1/labels/{trackingNumber}/reprint.
pub(super) async fn reprint(
    State(api): State<Api>,
    Extension(caller): Extension<Caller>,
    id: RequestId,
    path: Result<Path<String>, PathRejection>,
    request: Request,
) -> Result<WriteResponse, HttpRefusal> {
    let key = body::idempotency_key(request.headers());
    let body = body::json_object(request).await?;
    let request = KeyedRequest { body: &body, header_key: key.as_deref(), request_id: &id.0 };
    Ok(api.service.reprint_label(&caller, &body::path_parameter(path), request).await?)
}

/// Handles GET /api/v1/labels/{trackingNumber}/download.
pub(super) async fn download(
    State(api): State<Api>,
    Extension(caller): Extension<Caller>,
    path: Result<Path<String>, PathRejection>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Result<Response, HttpRefusal> {
    let format = parse_format(body::query_parameter(query.as_deref(), "format"))?;
    let number = body::path_parameter(path);
    let label = api.service.draw_caller_label(&caller, &number, format).await?;
    file_response("label", label, &headers)
}

/// Handles POST /api/v1/labels/batch.
pub(super) async fn batch(
    State(api): State<Api>,
    Extension(caller): Extension<Caller>,
    request: Request,
) -> Result<Response, HttpRefusal> {
    let body = body::json_object(request).await?;
    let labels = api.service.draw_label_batch(&caller, &body).await?;
    Ok(batch_response(labels, "labels"))
}

/// Returns a batch of labels as a file to save.
pub fn batch_response(LabelBatch { format, bytes }: LabelBatch, name: &str) -> Response {
    let disposition = format!("attachment; filename=\"{name}.{}\"", format.extension());
    let file = response::file(format.content_type(), disposition, bytes);
    ([(header::CACHE_CONTROL, "private, no-store")], file).into_response()
}

/// Handles GET of a label file behind a capability link.
pub(super) async fn download_linked(
    State(api): State<Api>,
    path: Result<Path<String>, PathRejection>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Result<Response, HttpRefusal> {
    let signature = body::query_parameter(query.as_deref(), "sig").unwrap_or_default();
    let file = api
        .service
        .draw_linked_label(api.environment, &body::path_parameter(path), &signature)
        .await?;
    file_response("label", file, &headers)
}

/// Handles GET /api/v1/parcels/{trackingNumber}/invoice.
pub(super) async fn invoice(
    State(api): State<Api>,
    Extension(caller): Extension<Caller>,
    path: Result<Path<String>, PathRejection>,
    headers: HeaderMap,
) -> Result<Response, HttpRefusal> {
    let invoice = api.service.draw_caller_invoice(&caller, &body::path_parameter(path)).await?;
    file_response("invoice", invoice, &headers)
}

fn parse_format(text: Option<String>) -> Result<LabelFormat, Refusal> {
    let Some(text) = text else { return Ok(LabelFormat::default()) };
    LabelFormat::parse(&text).map_err(|_| {
        Refusal::invalid(&[FieldFault::new(
            "format",
            FaultCode::UnknownValue,
            ("format is PDF, ZPL or PNG.", "format es PDF, ZPL o PNG."),
        )])
    })
}

/// Returns a file whose name begins with its kind, unless the caller has it already or wants another version of it.
pub(super) fn file_response(
    kind: &str,
    file: LabelFile,
    headers: &HeaderMap,
) -> Result<Response, HttpRefusal> {
    let LabelFile { number, format, bytes } = file;
    let etag = precondition::etag(&bytes);
    let about = [
        (header::ETAG, etag.clone()),
        (header::CACHE_CONTROL, "private, no-store".to_owned()),
        (HeaderName::from_static("x-robots-tag"), "noindex".to_owned()),
    ];
    let disposition = format!("attachment; filename=\"{kind}-{number}.{}\"", format.extension());
    match Precondition::for_tag(headers, &etag) {
        Precondition::Met => {
            Ok((about, response::file(format.content_type(), disposition, bytes)).into_response())
        }
        Precondition::Unchanged => Ok((StatusCode::NOT_MODIFIED, about).into_response()),
        Precondition::Failed => Err(ErrorCode::PreconditionFailed.into()),
    }
}

/// The description of these calls for the OpenAPI document.
#[cfg(test)]
pub(super) mod description {
    use parcelo_types::{
        ErrorCode::{
            LabelNotFound, LabelNotReprintable, LabelVoided, LabelsRejected, ParcelNotFound,
            PreconditionFailed, ValidationFailed,
        },
        LabelFormat, Operation, ReprintRequest,
        internal::LabelBatchRequest,
        model::LabelMetadata,
    };
    use serde_json::json;

    use crate::http::openapi::{
        call::Call,
        operation_doc::{QueryParameter, ResponseDoc, reference},
    };

    pub(in crate::http) fn calls() -> Vec<Call> {
        let label = ResponseDoc::data::<LabelMetadata>("200", "The label as it is now.");
        vec![
            Call::new(Operation::GetLabel, "Read a label's metadata")
                .with_data::<LabelMetadata>("200", "What is known about the label.")
                .with_refusals(&[ParcelNotFound, LabelNotFound]),
            Call::new(Operation::DownloadLabel, "Download a label file")
                .query(&[QueryParameter(
                    "format",
                    "The file's format, in any case; PDF when absent.",
                    reference::<LabelFormat>,
                )])
                .with_response(ResponseDoc::file("The label.", &LabelFormat::ALL))
                .with_response(ResponseDoc::not_modified())
                .with_refusals(&[
                    ValidationFailed,
                    ParcelNotFound,
                    LabelNotFound,
                    LabelVoided,
                    PreconditionFailed,
                ]),
            Call::new(Operation::BatchLabels, "Download up to 100 labels as one file")
                .with_body::<LabelBatchRequest>(
                    json!({ "trackingNumbers": ["SB-SUCCESS-0001"], "format": "PDF" }),
                )
                .with_response(ResponseDoc::labels("The labels, in the order of their numbers."))
                .with_refusals(&[LabelsRejected]),
            Call::new(Operation::DownloadInvoice, "Download a commercial invoice")
                .with_response(ResponseDoc::file(
                    "The invoice: every item of the order.",
                    &[LabelFormat::Pdf],
                ))
                .with_response(ResponseDoc::not_modified())
                .with_refusals(&[ParcelNotFound, LabelNotFound, LabelVoided, PreconditionFailed]),
            Call::new(Operation::ReprintLabel, "Reprint a label")
                .with_body::<ReprintRequest>(
                    json!({ "idempotencyKey": "reprint-0001", "reason": "Label damaged" }),
                )
                .with_response(label.with_replay_header())
                .with_refusals(&[ParcelNotFound, LabelNotFound, LabelVoided, LabelNotReprintable]),
        ]
    }
}
