//! POST /api/v1/sandbox/reset.

use axum::{Extension, extract::State, response::Response};

use super::{
    Api, HttpRefusal,
    response::{self, RequestId},
};
use crate::service::Caller;

/// Handles POST /api/v1/sandbox/reset.
pub(super) async fn reset(
    State(api): State<Api>,
    Extension(caller): Extension<Caller>,
    id: RequestId,
) -> Result<Response, HttpRefusal> {
    Ok(response::enveloped(api.service.reset_sandbox(&caller).await?, id))
}

/// The description of these calls for the OpenAPI document.
#[cfg(test)]
pub(super) mod description {
    use parcelo_types::{ErrorCode, Operation, model::SandboxReset};

    use crate::http::openapi::call::Call;

    pub(in crate::http) fn calls() -> Vec<Call> {
        vec![
            Call::new(Operation::ResetSandbox, "Delete all data of the caller's sandbox")
                .with_data::<SandboxReset>("200", "How much was deleted.")
                .with_refusals(&[ErrorCode::SandboxOnly]),
        ]
    }
}
