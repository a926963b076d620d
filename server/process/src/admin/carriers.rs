//! Carrier keys, and carrier events that were refused because the parcel's state did not allow them.

use axum::{extract::Request, response::Response};
use parcelo_domain::{
    Tenant, admin::ExceptionView, credential_views::ViewableScope, credentials::CarrierScope,
    key_uses::LastUseDays,
};
use parcelo_service::http::{HttpRefusal, body};
use parcelo_types::{Environment, ErrorCode};

use super::{AdminRequest, parse_environment, to_refusal};

/// Maximum number of exceptions in a response.
const MAX_EXCEPTIONS: u32 = 1_000;

/// Creates a carrier key.
pub(super) async fn create(call: AdminRequest, request: Request) -> Result<Response, HttpRefusal> {
    let body = body::json_object(request).await?;
    let new = parcelo_wire::check_carrier_key(&body).map_err(to_refusal)?;
    let issuer = call.issuer();
    let (key, record) = issuer.issue(new.name, new.environment, call.now()).await?;
    Ok(call.created_response(CarrierScope::created(&key, &record)))
}

/// Lists all carrier keys.
pub(super) async fn list(call: AdminRequest) -> Result<Response, HttpRefusal> {
    let (keys, now) = (call.service().store().credentials().await?, call.now());
    let keys = keys.iter().map(|key| CarrierScope::view(key, &LastUseDays::new(), now));
    Ok(call.ok_response(keys.collect::<Vec<_>>()))
}

/// Revokes a carrier key.
pub(super) async fn revoke(call: AdminRequest) -> Result<Response, HttpRefusal> {
    let (store, now) = (call.service().store(), call.now());
    let revoked =
        store.revoke_credential(&call.parameter, now, &call.actor.clone().at(now)).await?;
    let record = revoked.ok_or(ErrorCode::KeyNotFound)?;
    Ok(call.ok_response(CarrierScope::view(&record, &LastUseDays::new(), now)))
}

/// Lists the latest exceptions of one environment: `?environment=`, else production.
pub(super) async fn exceptions(call: AdminRequest) -> Result<Response, HttpRefusal> {
    let code = call.query("environment");
    let environment = code.map_or(Ok(Environment::Production), |code| parse_environment(&code))?;
    let tenant = Tenant { account: call.account(&call.account_name()?).await?, environment };
    let exceptions = call.service().carrier_exceptions(tenant, MAX_EXCEPTIONS).await?;
    Ok(call.ok_response(exceptions.iter().map(ExceptionView::from).collect::<Vec<_>>()))
}

/// The description of these calls for the OpenAPI document.
#[cfg(test)]
pub(super) mod description {
    use parcelo_types::{
        Environment,
        ErrorCode::{AccountNotFound, KeyNotFound},
    };
    use parcelo_wire::CarrierKeyRequest;
    use serde_json::json;
    use utoipa::openapi::HttpMethod;

    use crate::admin::document::ACCOUNT;
    use parcelo_domain::{
        admin::ExceptionView,
        credential_views::{CarrierKeyView, NewCarrierKeyView},
    };
    use parcelo_service::http::openapi::{
        call::Call,
        operation_doc::{QueryParameter, reference},
    };

    pub(in crate::admin) fn calls() -> Vec<Call> {
        let example = json!({ "name": "Andes Cargo", "environment": "sandbox" });
        let (path, revoke) = ("/carriers/{keyId}", "RevokeCarrierKey");
        let (exceptions, list) = ("/carrier-exceptions", "ListCarrierExceptions");
        let about_exceptions = "List impossible events that carriers reported";
        vec![
            Call::route(HttpMethod::Post, "/carriers", "CreateCarrierKey", "Create a carrier key")
                .with_body::<CarrierKeyRequest>(example)
                .with_data::<NewCarrierKeyView>("201", "The key, shown only this once."),
            Call::route(HttpMethod::Get, "/carriers", "ListCarrierKeys", "List carrier keys")
                .with_list::<CarrierKeyView>("The keys, oldest first."),
            Call::route(HttpMethod::Delete, path, revoke, "Revoke a carrier key")
                .with_data::<CarrierKeyView>("200", "The key as it is now.")
                .with_refusals(&[KeyNotFound]),
            Call::route(HttpMethod::Get, exceptions, list, about_exceptions)
                .query(&[
                    ACCOUNT,
                    QueryParameter(
                        "environment",
                        "The environment of the reports; production when absent.",
                        reference::<Environment>,
                    ),
                ])
                .with_list::<ExceptionView>("The latest 1,000, newest first.")
                .with_refusals(&[AccountNotFound]),
        ]
    }
}
