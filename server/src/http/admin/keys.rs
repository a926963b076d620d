//! API keys: made, listed, revoked.

use axum::{
    Extension,
    extract::{Path, RawQuery, Request, State, rejection::PathRejection},
    http::StatusCode,
    response::Response,
};
use parcelo::{AllowedCountries, ErrorCode, KeyRequest, rules};

use super::invalid;
use crate::{
    core::{
        Countries, Refusal, access,
        admin::{ApiKeyView, NewApiKey},
    },
    http::{Api, Refused, answer, body, gate::RequestId},
    service::NewKeyRequest,
};

pub(super) async fn create(
    State(api): State<Api>,
    Extension(id): Extension<RequestId>,
    request: Request,
) -> Result<Response, Refused> {
    let body = body::json_object(request).await?;
    let asked = rules::check_key(&body, &api.service.settings().destinations).map_err(invalid)?;
    let (key, record) = api.service.issuer().issue(wanted(asked)?, api.service.now()).await?;
    Ok(answer::data_as(StatusCode::CREATED, NewApiKey::of(&key, &record), id))
}

/// All keys, or those of the account that is named.
pub(super) async fn list(
    State(api): State<Api>,
    Extension(id): Extension<RequestId>,
    RawQuery(query): RawQuery,
) -> Result<Response, Refused> {
    let account = body::query(query.as_deref(), "account");
    let mut keys = api.service.store().keys()?;
    keys.retain(|key| account.as_ref().is_none_or(|account| key.account == *account));
    Ok(answer::data(keys.iter().map(ApiKeyView::from).collect::<Vec<_>>(), id))
}

pub(super) async fn revoke(
    State(api): State<Api>,
    Extension(id): Extension<RequestId>,
    path: Result<Path<String>, PathRejection>,
) -> Result<Response, Refused> {
    let revoked = api.service.revoke_key(&body::parameter(path)).await?;
    let record = revoked.ok_or(ErrorCode::KeyNotFound)?;
    Ok(answer::data(ApiKeyView::from(&record), id))
}

fn wanted(asked: KeyRequest) -> Result<NewKeyRequest, Refusal> {
    // The rules let no text pass that is no network.
    let networks = asked.ip_whitelist.iter().map(|text| access::network(text));
    let ip_list = networks.collect::<Option<_>>().ok_or(ErrorCode::InternalError)?;
    Ok(NewKeyRequest {
        account: asked.account,
        environment: asked.environment,
        name: asked.name,
        countries: match asked.allowed_countries {
            AllowedCountries::All => Countries::All,
            AllowedCountries::Only(countries) => Countries::Only(countries),
        },
        ip_list,
        rate_limit: None,
    })
}
