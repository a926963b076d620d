//! Manifests: POST /api/v1/manifests/submit, GET /api/v1/manifests/{manifestId}.

use axum::{
    Extension,
    extract::{Path, Request, State, rejection::PathRejection},
    response::Response,
};

use super::{
    Api, HttpRefusal, body,
    response::{self, RequestId},
};
use crate::service::{Caller, KeyedRequest, WriteResponse};

/// Handles POST /api/v1/manifests/submit.
pub(super) async fn submit(
    State(api): State<Api>,
    Extension(caller): Extension<Caller>,
    id: RequestId,
    request: Request,
) -> Result<WriteResponse, HttpRefusal> {
    let key = body::idempotency_key(request.headers());
    let body = body::json_object(request).await?;
    let request = KeyedRequest { body: &body, header_key: key.as_deref(), request_id: &id.0 };
    Ok(api.service.submit_manifest(&caller, request).await?)
}

/// Handles GET /api/v1/manifests/{manifestId}.
pub(super) async fn get(
    State(api): State<Api>,
    Extension(caller): Extension<Caller>,
    id: RequestId,
    path: Result<Path<String>, PathRejection>,
) -> Result<Response, HttpRefusal> {
    let manifest = api.service.get_manifest(&caller, &body::path_parameter(path)).await?;
    Ok(response::enveloped(manifest, id))
}

/// The description of these calls for the OpenAPI document.
#[cfg(test)]
pub(super) mod description {
    use parcelo_types::{
        ErrorCode::{ManifestAlreadySubmitted, ManifestNotFound, ManifestParcelsRejected},
        ManifestRequest, Operation,
        model::Manifest,
    };

    use crate::http::openapi::{call::Call, operation_doc::ResponseDoc};
    use parcelo_domain::sample;

    pub(in crate::http) fn calls() -> Vec<Call> {
        let before = ResponseDoc::data::<Manifest>("200", "It had been submitted before.");
        vec![
            Call::new(Operation::SubmitManifest, "Submit a manifest under an air waybill")
                .with_body::<ManifestRequest>(sample::manifest())
                .with_data::<Manifest>("201", "The manifest was submitted.")
                .with_response(before.with_replay_header())
                .with_refusals(&[ManifestParcelsRejected, ManifestAlreadySubmitted]),
            Call::new(Operation::GetManifest, "Read a manifest")
                .with_data::<Manifest>("200", "The manifest as it was submitted.")
                .with_refusals(&[ManifestNotFound]),
        ]
    }
}
