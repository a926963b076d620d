//! Health checks: a caller's key, and the liveness and readiness of the process.

use std::sync::atomic::Ordering;

use axum::{
    Extension,
    extract::State,
    response::{IntoResponse, Response},
};
use parcelo_domain::Refusal;
use parcelo_types::ErrorCode;
use serde_json::json;

use super::{Api, HttpRefusal, response};
use crate::service::Caller;

/// The path of the liveness probe.
pub(super) const LIVE: &str = "/healthz";
/// The path of the readiness probe.
pub(super) const READY: &str = "/readyz";

/// Handles GET /api/v1/health with the key's name and permissions.
pub(super) async fn check_key(
    Extension(caller): Extension<Caller>,
    id: super::response::RequestId,
) -> Response {
    response::json_ok(&json!({
        "success": true,
        "status": "ok",
        "authenticated": true,
        "keyName": caller.key.name,
        "allowedCountries": caller.key.scope.countries.to_wire(),
        "environment": caller.tenant().environment,
        "meta": { "requestId": id.0 },
    }))
}

/// Responds to the liveness probe: a process that responds is alive.
pub(super) async fn check_liveness() -> Response {
    response::json_ok(&json!({ "status": "ok" }))
}

/// Responds to the readiness probe. The process is ready if it is not stopping, its store can be written and read, its
/// clock agrees with the database's, and its version is compatible with those of the other servers.
pub(super) async fn check_readiness(State(api): State<Api>) -> Result<Response, HttpRefusal> {
    let store = api.service.store();
    if let Some(reason) = api.service.clock_skew_reason().or_else(|| store.unavailable_reason()) {
        let body = json!({ "status": "unavailable", "reason": reason });
        let status = response::http_status(ErrorCode::ServiceUnavailable);
        return Ok((status, response::json_ok(&body)).into_response());
    }
    if api.ready.load(Ordering::Relaxed) && store.is_writable() && store.is_readable() {
        Ok(response::json_ok(&json!({ "status": "ok" })))
    } else {
        Err(HttpRefusal(Refusal::unavailable()))
    }
}

/// The description of the health call for the OpenAPI document.
#[cfg(test)]
pub(super) mod description {
    use parcelo_types::{Operation, model::Health};

    use crate::http::openapi::{call::Call, operation_doc::ResponseDoc};

    pub(in crate::http) fn calls() -> Vec<Call> {
        let about = "The key's name and permissions.";
        vec![
            Call::new(Operation::Health, "Check the API key")
                .with_response(ResponseDoc::without_envelope::<Health>("200", about)),
        ]
    }
}

#[cfg(test)]
#[cfg(feature = "postgres")]
mod tests {
    use std::sync::{Arc, atomic::AtomicBool};

    use parcelo_types::Environment;

    use super::*;
    use crate::{mock::MockServer, service::Service};
    use parcelo_store::test_util::two_servers;
    use parcelo_system::{clock::SystemClock, ids::Ids};

    #[tokio::test(flavor = "multi_thread")]
    async fn a_server_with_a_wrong_clock_says_why_it_is_not_ready() {
        let Some([store, _]) = two_servers().await else { return };
        let settings = MockServer::start().await.api().service.settings().clone();
        let clock = Arc::clone(store.shared_clock().unwrap());
        let service =
            Service::new(store, Arc::new(SystemClock), Arc::new(Ids::seeded(1)), settings);
        let ready = Arc::new(AtomicBool::new(true));
        let api = Api { service: Arc::new(service), environment: Environment::Sandbox, ready };
        for (ahead, status) in [(9_900, 200), (12_000, 503), (0, 200)] {
            let machine = clock.read_machine();
            clock.record_measurement(machine, machine.wall.plus(-ahead), machine);
            let response = super::check_readiness(State(api.clone())).await.unwrap();
            assert_eq!(response.status(), status, "{ahead}");
            let body = axum::body::to_bytes(response.into_body(), 1_000).await.unwrap();
            let body = String::from_utf8(body.to_vec()).unwrap();
            let is_explained =
                body.contains("12.0 s ahead of the database's") && body.contains("NTP");
            assert_eq!(is_explained, status == 503, "{body}");
        }
        // The next measurement is one of the real clocks.
        api.service.watch_clock().await.unwrap();
        assert_eq!(super::check_readiness(State(api)).await.unwrap().status(), 200);
    }
}
