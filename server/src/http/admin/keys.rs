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
        AccountKey, Countries, KeyRecord, Refusal, access,
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

/// All keys, or those of `?account=`.
pub(super) async fn list(
    State(api): State<Api>,
    Extension(id): Extension<RequestId>,
    RawQuery(query): RawQuery,
) -> Result<Response, Refused> {
    let account = asked_account(&api, query.as_deref())?;
    let mut keys = api.service.store().keys()?;
    keys.retain(|key| is_of(key, account));
    Ok(answer::data(keys.iter().map(ApiKeyView::from).collect::<Vec<_>>(), id))
}

pub(super) async fn revoke(
    State(api): State<Api>,
    Extension(id): Extension<RequestId>,
    path: Result<Path<String>, PathRejection>,
    RawQuery(query): RawQuery,
) -> Result<Response, Refused> {
    let (account, key) = (asked_account(&api, query.as_deref())?, body::parameter(path));
    let keys = api.service.store().keys()?;
    if !keys.iter().any(|record| record.id == key && is_of(record, account)) {
        return Err(ErrorCode::KeyNotFound.into());
    }
    let record = api.service.revoke_key(&key).await?.ok_or(ErrorCode::KeyNotFound)?;
    Ok(answer::data(ApiKeyView::from(&record), id))
}

/// The account that is named, when one is: without it the operator means all.
fn asked_account(api: &Api, query: Option<&str>) -> Result<Option<AccountKey>, Refusal> {
    let Some(name) = body::query(query, "account") else { return Ok(None) };
    let account = api.service.store().account_named(&name)?;
    account.map(Some).ok_or_else(|| ErrorCode::AccountNotFound.into())
}

fn is_of(key: &KeyRecord, account: Option<AccountKey>) -> bool {
    account.is_none_or(|account| key.tenant.account == account)
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
