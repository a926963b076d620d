//! Manifests: POST /api/v1/manifests/submit, GET /api/v1/manifests/{manifestId}.

use axum::{
    Extension,
    extract::{Path, Request, State, rejection::PathRejection},
    response::Response,
};

use super::{
    Api, Refused,
    answer::{self, RequestId},
    body,
};
use crate::service::{Answer, Caller, Keyed};

pub(super) async fn submit(
    State(api): State<Api>,
    Extension(caller): Extension<Caller>,
    Extension(id): Extension<RequestId>,
    request: Request,
) -> Result<Answer, Refused> {
    let key = body::idempotency_key(request.headers());
    let body = body::json_object(request).await?;
    let request = Keyed { body: &body, header_key: key.as_deref(), request_id: &id.0 };
    Ok(api.service.submit_manifest(&caller, request).await?)
}

pub(super) async fn get(
    State(api): State<Api>,
    Extension(caller): Extension<Caller>,
    Extension(id): Extension<RequestId>,
    path: Result<Path<String>, PathRejection>,
) -> Result<Response, Refused> {
    let manifest = api.service.manifest(&caller, &body::parameter(path)).await?;
    Ok(answer::enveloped(manifest, id))
}

/// The description for the OpenAPI document.
#[cfg(test)]
pub(super) mod description {
    use parcelo::{
        ErrorCode::{
            IdempotencyConflict, IdempotencyInProgress, ManifestAlreadySubmitted, ManifestNotFound,
            ManifestParcelsRejected,
        },
        ManifestRequest, Operation,
        model::Manifest,
    };

    use crate::{
        domain::sample,
        http::openapi::{call::Call, described::Answer},
    };

    pub(in crate::http) fn calls() -> Vec<Call<Operation>> {
        let before = Answer::data::<Manifest>("200", "It had been submitted before.");
        vec![
            Call::new(Operation::SubmitManifest, "Submit a manifest under an air waybill")
                .takes::<ManifestRequest>(sample::manifest())
                .answers(Answer::data::<Manifest>("201", "The manifest was submitted."))
                .answers(before.repeatable())
                .refuses(&[
                    ManifestParcelsRejected,
                    ManifestAlreadySubmitted,
                    IdempotencyConflict,
                    IdempotencyInProgress,
                ]),
            Call::new(Operation::GetManifest, "Read a manifest")
                .answers(Answer::data::<Manifest>("200", "The manifest as it was submitted."))
                .refuses(&[ManifestNotFound]),
        ]
    }
}
