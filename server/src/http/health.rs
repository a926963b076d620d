//! Is my key fine, does the process live, can it serve.

use std::sync::atomic::Ordering;

use axum::{
    Extension,
    extract::State,
    response::{IntoResponse, Response},
};
use parcelo::ErrorCode;
use serde_json::json;

use super::{Api, Refused, answer};
use crate::{domain::Refusal, service::Caller};

/// Does the process live.
pub(super) const LIVE: &str = "/healthz";
/// Can the process serve.
pub(super) const READY: &str = "/readyz";

/// GET /api/v1/health: which key this is, and what it may do.
pub(super) async fn check_key(
    Extension(caller): Extension<Caller>,
    Extension(id): Extension<super::answer::RequestId>,
) -> Response {
    answer::json_ok(&json!({
        "success": true,
        "status": "ok",
        "authenticated": true,
        "keyName": caller.key.name,
        "allowedCountries": caller.key.scope.countries.to_wire(),
        "environment": caller.tenant().environment,
        "meta": { "requestId": id.0 },
    }))
}

/// The process lives: it answers.
pub(super) async fn live() -> Response {
    answer::json_ok(&json!({ "status": "ok" }))
}

/// The process can serve: it is not stopping, its store can be written and read, and its clock is that of the database's
/// other servers.
pub(super) async fn ready(State(api): State<Api>) -> Result<Response, Refused> {
    let store = api.service.store();
    if let Some(reason) = api.service.clock_fault() {
        let why = json!({ "status": "unavailable", "reason": reason });
        let status = answer::status_of(ErrorCode::ServiceUnavailable);
        return Ok((status, answer::json_ok(&why)).into_response());
    }
    if api.ready.load(Ordering::Relaxed) && store.is_writable() && store.is_readable() {
        Ok(answer::json_ok(&json!({ "status": "ok" })))
    } else {
        Err(Refused(Refusal::unavailable()))
    }
}

/// For the OpenAPI document.
#[cfg(test)]
pub(super) mod description {
    use parcelo::{Operation, model::Health};

    use crate::http::openapi::{call::Call, described::Answer};

    pub(in crate::http) fn calls() -> Vec<Call<Operation>> {
        let about = "Which key this is, and what it may do.";
        vec![
            Call::new(Operation::Health, "Check the API key")
                .answers(Answer::bare::<Health>("200", about)),
        ]
    }
}
