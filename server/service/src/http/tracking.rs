//! Tracking: GET /api/v1/tracking/{trackingNumber} and POST /api/v1/tracking/batch.

use axum::{
    Extension,
    extract::{Path, Request, State, rejection::PathRejection},
    response::Response,
};

use super::{
    Api, HttpRefusal, body,
    response::{self, RequestId},
};
use crate::service::Caller;

const HISTORY: &str = "includeHistory";

/// Handles GET /api/v1/tracking/{trackingNumber}.
pub(super) async fn get(
    State(api): State<Api>,
    Extension(caller): Extension<Caller>,
    path: Result<Path<String>, PathRejection>,
    request: Request,
) -> Result<Response, HttpRefusal> {
    let number = body::path_parameter(path);
    let text = body::query_parameter(request.uri().query(), HISTORY);
    let with_history = body::parse_bool(text.as_deref(), HISTORY);
    let language = body::preferred_language(request.headers());
    let record = api.service.track(&caller, &number, with_history, language).await?;
    Ok(response::json_ok(&record))
}

/// Handles POST /api/v1/tracking/batch.
pub(super) async fn batch(
    State(api): State<Api>,
    Extension(caller): Extension<Caller>,
    id: RequestId,
    request: Request,
) -> Result<Response, HttpRefusal> {
    let language = body::preferred_language(request.headers());
    let body = body::json_object(request).await?;
    Ok(response::enveloped(api.service.track_batch(&caller, &body, language).await?, id))
}

/// The description of these calls for the OpenAPI document.
#[cfg(test)]
pub(super) mod description {
    use parcelo_types::{
        ErrorCode::{ParcelNotFound, ValidationFailed},
        Operation,
        internal::{BatchTracking, BatchTrackingRequest},
        model::TrackingRecord,
    };
    use serde_json::json;
    use utoipa::PartialSchema;

    use crate::http::openapi::{
        call::Call,
        operation_doc::{QueryParameter, ResponseDoc},
    };

    pub(in crate::http) fn calls() -> Vec<Call> {
        vec![
            Call::new(Operation::GetTracking, "Track one parcel")
                .query(&[QueryParameter(
                    super::HISTORY,
                    "Whether the response includes the parcel's history.",
                    <bool as PartialSchema>::schema,
                )])
                .with_response(ResponseDoc::without_envelope::<TrackingRecord>(
                    "200",
                    "The tracking record.",
                ))
                .with_refusals(&[ValidationFailed, ParcelNotFound]),
            Call::new(Operation::BatchTracking, "Track up to 100 parcels")
                .with_body::<BatchTrackingRequest>(
                    json!({ "trackingNumbers": ["SB-SUCCESS-0001"], "includeHistory": true }),
                )
                .with_data::<BatchTracking>("200", "A result for each number."),
        ]
    }
}
