//! API keys: creating, listing, rotating and revoking them.

use axum::{extract::Request, response::Response};
use parcelo_domain::{
    AccountRowId, ApiKeyRecord, Refusal, access,
    credential_views::{RotatedApiKey, ViewableScope},
    credentials::{ApiKeyScope, DEFAULT_OVERLAP_SECONDS, MAX_OVERLAP_SECONDS},
};
use parcelo_service::{
    http::{HttpRefusal, body},
    service::{NewKeyRequest, RotationOutcome},
};
use parcelo_types::ErrorCode;
use parcelo_wire::KeyRequest;

use super::{AdminRequest, to_refusal};

/// Creates an API key, and its account if it does not exist.
pub(super) async fn create(call: AdminRequest, request: Request) -> Result<Response, HttpRefusal> {
    let body = body::json_object(request).await?;
    let destinations = &call.service().settings().destinations;
    let new = parcelo_wire::check_key(&body, destinations).map_err(to_refusal)?;
    let (key, record) = call.issuer().issue_api_key(new_key_request(new)?, call.now()).await?;
    Ok(call.created_response(ApiKeyScope::created(&key, &record)))
}

/// Lists all keys, or those of `?account=`.
pub(super) async fn list(call: AdminRequest) -> Result<Response, HttpRefusal> {
    let account = requested_account(&call).await?;
    let (mut keys, now) = (call.service().store().credentials().await?, call.now());
    keys.retain(|key| belongs_to(key, account));
    let uses = call.service().key_uses(account).await?;
    let keys = keys.iter().map(|key| ApiKeyScope::view(key, &uses, now));
    Ok(call.ok_response(keys.collect::<Vec<_>>()))
}

/// Gives a key a new secret. The old one keeps working for `?overlapSeconds=`. If `?account=` is given, the key must
/// belong to that account.
pub(super) async fn rotate(call: AdminRequest) -> Result<Response, HttpRefusal> {
    let overlap = call.number("overlapSeconds", 0..=MAX_OVERLAP_SECONDS)?;
    let key = existing_key(&call).await?;
    match call
        .service()
        .rotate_key(&key, overlap.unwrap_or(DEFAULT_OVERLAP_SECONDS), call.actor.clone())
        .await?
    {
        RotationOutcome::Done(key, record) => {
            let rotated = RotatedApiKey::new(&key, &record, call.now());
            Ok(call.ok_response(rotated))
        }
        RotationOutcome::Revoked | RotationOutcome::Superseded => Err(ErrorCode::KeyRevoked.into()),
        RotationOutcome::Unknown => Err(ErrorCode::KeyNotFound.into()),
    }
}

/// Revokes an API key with all its secrets.
pub(super) async fn revoke(call: AdminRequest) -> Result<Response, HttpRefusal> {
    let key = existing_key(&call).await?;
    let record =
        call.service().revoke_key(&key, call.actor.clone()).await?.ok_or(ErrorCode::KeyNotFound)?;
    let uses = call.service().key_uses(Some(record.scope.tenant.account)).await?;
    let view = ApiKeyScope::view(&record, &uses, call.now());
    Ok(call.ok_response(view))
}

/// Returns the id of the key in the path, which must exist and belong to the account in the query, if there is one.
async fn existing_key(call: &AdminRequest) -> Result<String, Refusal> {
    let account = requested_account(call).await?;
    let found = call.service().store().credential(&call.parameter).await?;
    let found = found.filter(|key| belongs_to(key, account)).ok_or(ErrorCode::KeyNotFound)?;
    Ok(found.id)
}

/// Returns the account that the query names. Without one the call is about the keys of all accounts.
async fn requested_account(call: &AdminRequest) -> Result<Option<AccountRowId>, Refusal> {
    let Some(name) = call.query("account") else { return Ok(None) };
    call.account(&name).await.map(Some)
}

fn belongs_to(key: &ApiKeyRecord, account: Option<AccountRowId>) -> bool {
    account.is_none_or(|account| key.scope.tenant.account == account)
}

fn new_key_request(new: KeyRequest) -> Result<NewKeyRequest, Refusal> {
    // The rules accept only networks.
    let networks = new.ip_whitelist.iter().map(|text| access::parse_network(text));
    let ip_list = networks.collect::<Option<_>>().ok_or(ErrorCode::InternalError)?;
    Ok(NewKeyRequest {
        account: new.account,
        environment: new.environment,
        name: new.name,
        countries: new.allowed_countries.into(),
        ip_list,
        rate_limit: None,
    })
}

/// The description of these calls for the OpenAPI document.
#[cfg(test)]
pub(super) mod description {
    use parcelo_types::ErrorCode::{AccountNotFound, KeyNotFound, KeyRevoked};
    use parcelo_wire::KeyRequest;
    use serde_json::json;
    use utoipa::openapi::{
        HttpMethod, RefOr,
        schema::{Schema, Type},
    };

    use parcelo_domain::{
        credential_views::{ApiKeyView, NewApiKey, RotatedApiKey},
        credentials::{DEFAULT_OVERLAP_SECONDS, MAX_OVERLAP_SECONDS},
    };
    use parcelo_service::http::openapi::{
        call::Call,
        operation_doc::{QueryParameter, text_schema, type_schema},
    };

    const ACCOUNT_FILTER: QueryParameter =
        QueryParameter("account", "Only a key of this account.", text_schema);

    pub(in crate::admin) fn calls() -> Vec<Call> {
        let (rotate, about_rotate) = ("/keys/{keyId}/rotate", "Give an API key a new secret");
        vec![
            Call::route(HttpMethod::Post, "/keys", "CreateKey", "Create an API key")
                .with_body::<KeyRequest>(json!({ "name": "Warehouse 1", "environment": "sandbox",
                    "allowedCountries": ["EC", "MX"], "ipWhitelist": ["203.0.113.0/24"] }))
                .with_data::<NewApiKey>("201", "The key, shown only this once."),
            Call::route(HttpMethod::Get, "/keys", "ListKeys", "List API keys")
                .query(&[QueryParameter("account", "Only keys of this account.", text_schema)])
                .with_list::<ApiKeyView>("The keys, oldest first.")
                .with_refusals(&[AccountNotFound]),
            Call::route(HttpMethod::Delete, "/keys/{keyId}", "RevokeKey", "Revoke an API key")
                .query(&[ACCOUNT_FILTER])
                .with_data::<ApiKeyView>("200", "The key as it is now.")
                .with_refusals(&[KeyNotFound, AccountNotFound]),
            Call::route(HttpMethod::Post, rotate, "RotateKey", about_rotate)
                .query(&[
                    ACCOUNT_FILTER,
                    QueryParameter("overlapSeconds", "How long the old secret keeps working: 24 hours when absent; 0 ends it at once.", overlap),
                ])
                .with_data::<RotatedApiKey>("200", "The key with its new secret, shown only this once.")
                .with_refusals(&[KeyNotFound, AccountNotFound, KeyRevoked]),
        ]
    }

    fn overlap() -> RefOr<Schema> {
        type_schema(Type::Integer)
            .minimum(Some(0))
            .maximum(Some(MAX_OVERLAP_SECONDS))
            .default(Some(DEFAULT_OVERLAP_SECONDS.into()))
            .into()
    }
}
