//! The handlers of the legacy operations. Each translates its request, calls the service as `/api/v1` does, and
//! translates the response.

use askama::Template;
use axum::{
    Extension,
    extract::{Path, RawQuery, Request, State, rejection::PathRejection},
    http::HeaderMap,
    response::{IntoResponse, Response},
};
use parcelo_domain::{
    Refusal,
    legacy::{self, MAX_NUMBERS},
    to_body,
};
use parcelo_types::{
    ErrorCode, LabelFormat,
    model::{FaultCode, FieldFault},
};
use serde_json::json;

use crate::{
    http::{
        Api, HttpRefusal, body, docs, labels,
        response::{self, RequestId},
    },
    service::{Caller, KeyedRequest, WriteResponse},
};

/// Creates an order from a flat legacy request.
pub(super) async fn create(
    State(api): State<Api>,
    Extension(caller): Extension<Caller>,
    request: Request,
) -> Result<Response, HttpRefusal> {
    let key = body::idempotency_key(request.headers());
    let body = body::json_object(request).await?;
    let caller_key = key.or_else(|| legacy::idempotency_key_from_reference(&body));
    let key = caller_key.clone().unwrap_or_else(|| api.service.new_idempotency_key());
    let order = legacy::to_order(&body);
    let created = api.service.create_order(&caller, &order, Some(&key)).await;
    let created = created.map_err(|refusal| refusal_without_key(caller_key.as_deref(), refusal))?;
    let (WriteResponse::Created(body) | WriteResponse::Done(body) | WriteResponse::Replayed(body)) =
        &created;
    let order = serde_json::from_slice(body).map_err(|_| ErrorCode::InternalError)?;
    let body = to_body(&legacy::to_legacy_order(&order));
    let translated = match created {
        WriteResponse::Created(_) => WriteResponse::Created(body),
        WriteResponse::Done(_) => WriteResponse::Done(body),
        WriteResponse::Replayed(_) => WriteResponse::Replayed(body),
    };
    Ok(translated.into_response())
}

/// Voids an order.
pub(super) async fn cancel(
    State(api): State<Api>,
    Extension(caller): Extension<Caller>,
    id: RequestId,
    path: Result<Path<String>, PathRejection>,
    headers: HeaderMap,
) -> Result<Response, HttpRefusal> {
    let number = body::path_parameter(path);
    let caller_key = body::idempotency_key(&headers);
    let key = caller_key.clone().unwrap_or_else(|| api.service.new_idempotency_key());
    parcelo_types::TrackingNumber::parse(&number).map_err(|_| ErrorCode::ParcelNotFound)?;
    let body = json!({ "trackingNumbers": [number] });
    let request = KeyedRequest { body: &body, header_key: Some(&key), request_id: &id.0 };
    let voided = api.service.void_orders(&caller, request).await;
    voided.map_err(|refusal| refusal_without_key(caller_key.as_deref(), refusal))?;
    Ok(response::json_ok(&json!({ "ok": true, "tracking_number": number, "status": "VOIDED" })))
}

/// Replaces the advice to repeat a request with its key if the caller gave no key.
fn refusal_without_key(caller_key: Option<&str>, refusal: Refusal) -> Refusal {
    match caller_key {
        None if refusal.code == ErrorCode::IdempotencyInProgress => Refusal::outcome_unknown(),
        _ => refusal,
    }
}

/// Returns the tracking records of up to twenty numbers in the query.
pub(super) async fn track(
    State(api): State<Api>,
    Extension(caller): Extension<Caller>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Result<Response, HttpRefusal> {
    let list = body::query_parameter(query.as_deref(), "number").unwrap_or_default();
    let numbers: Vec<_> =
        list.split(',').map(str::trim).filter(|number| !number.is_empty()).collect();
    if numbers.is_empty() || numbers.len() > MAX_NUMBERS {
        return Err(Refusal::invalid(&[count_fault()]).into());
    }
    let request = json!({ "trackingNumbers": numbers, "includeHistory": true });
    let batch =
        api.service.track_batch(&caller, &request, body::preferred_language(&headers)).await?;
    Ok(response::json_ok(&legacy::to_legacy_tracking(&batch)))
}

/// Downloads a label; the extension of the file name selects the format.
pub(super) async fn label(
    State(api): State<Api>,
    Extension(caller): Extension<Caller>,
    path: Result<Path<String>, PathRejection>,
    headers: HeaderMap,
) -> Result<Response, HttpRefusal> {
    let file = body::path_parameter(path);
    let (number, extension) = file.rsplit_once('.').ok_or(ErrorCode::NotFound)?;
    let format = LabelFormat::parse(extension).map_err(|_| ErrorCode::NotFound)?;
    let label = api.service.draw_caller_label(&caller, number, format).await?;
    labels::file_response("label", label, &headers)
}

/// Handles GET /docs/migration: the guide to the new API, in both languages.
pub(in crate::http) async fn migration() -> Result<Response, HttpRefusal> {
    Ok(docs::html_page(response::render(&Migration { fields: legacy::FIELDS })?))
}

#[derive(Template)]
#[template(path = "legacy/migration.html")]
struct Migration {
    fields: &'static [(&'static str, &'static str)],
}

fn count_fault() -> FieldFault {
    FieldFault::new(
        "number",
        FaultCode::OutOfRange,
        (
            format!("number names 1-{MAX_NUMBERS} tracking numbers, separated by commas."),
            format!("number indica de 1 a {MAX_NUMBERS} números de rastreo, separados por comas."),
        ),
    )
}
