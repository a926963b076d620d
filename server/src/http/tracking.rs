//! Tracking: GET /api/v1/tracking/{trackingNumber} and POST /api/v1/tracking/batch.

use axum::{
    Extension,
    extract::{Path, RawQuery, Request, State, rejection::PathRejection},
    http::HeaderMap,
    response::Response,
};

use super::{
    Api, HttpRefusal,
    answer::{self, RequestId},
    body,
};
use crate::service::Caller;

const HISTORY: &str = "includeHistory";

pub(super) async fn get(
    State(api): State<Api>,
    Extension(caller): Extension<Caller>,
    path: Result<Path<String>, PathRejection>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Result<Response, HttpRefusal> {
    let number = body::parameter(path);
    let text = body::query(query.as_deref(), HISTORY);
    let with_history = body::parse_bool(text.as_deref(), HISTORY);
    let language = body::language(&headers);
    let record = api.service.track(&caller, &number, with_history, language).await?;
    Ok(answer::json_ok(&record))
}

pub(super) async fn batch(
    State(api): State<Api>,
    Extension(caller): Extension<Caller>,
    Extension(id): Extension<RequestId>,
    request: Request,
) -> Result<Response, HttpRefusal> {
    let language = body::language(request.headers());
    let body = body::json_object(request).await?;
    Ok(answer::enveloped(api.service.track_batch(&caller, &body, language).await?, id))
}

/// The description for the OpenAPI document.
#[cfg(test)]
pub(super) mod description {
    use parcelo::{
        ErrorCode::{ParcelNotFound, ValidationFailed},
        Operation,
        model::{BatchTracking, BatchTrackingRequest, TrackingRecord},
    };
    use serde_json::json;
    use utoipa::PartialSchema;

    use crate::http::openapi::{
        call::Call,
        operation_doc::{Answer, Query},
    };

    pub(in crate::http) fn calls() -> Vec<Call<Operation>> {
        vec![
            Call::new(Operation::GetTracking, "Track one parcel")
                .query(&[Query {
                    name: super::HISTORY,
                    about: "Whether the answer has the parcel's history.",
                    schema: || <bool as PartialSchema>::schema(),
                }])
                .with_answer(Answer::without_envelope::<TrackingRecord>(
                    "200",
                    "The tracking record.",
                ))
                .with_refusals(&[ValidationFailed, ParcelNotFound]),
            Call::new(Operation::BatchTracking, "Track up to 100 parcels")
                .with_body::<BatchTrackingRequest>(
                    json!({ "trackingNumbers": ["SB-SUCCESS-0001"], "includeHistory": true }),
                )
                .with_answer(Answer::data::<BatchTracking>("200", "A result for each number.")),
        ]
    }
}
