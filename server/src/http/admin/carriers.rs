//! Carrier keys, and what carriers reported that could not be true.

use axum::{
    Extension,
    extract::{Path, RawQuery, Request, State, rejection::PathRejection},
    http::StatusCode,
    response::Response,
};
use parcelo::{Environment, ErrorCode};

use super::{account_named, environment, invalid, tenant};
use crate::{
    domain::{admin::ExceptionView, credential_views::ShownScope, credentials::CarrierScope},
    http::{
        Api, Refused,
        answer::{self, RequestId},
        body,
    },
};

/// The most exceptions of one answer.
const MAX_EXCEPTIONS: u32 = 1_000;

pub(super) async fn create(
    State(api): State<Api>,
    Extension(id): Extension<RequestId>,
    request: Request,
) -> Result<Response, Refused> {
    let body = body::json_object(request).await?;
    let asked = parcelo::admin::check_carrier_key(&body).map_err(invalid)?;
    let (issuer, now) = (api.service.issuer(), api.service.now());
    let (key, record) = issuer.issue(asked.name, asked.environment, now).await?;
    Ok(answer::enveloped_with_status(StatusCode::CREATED, CarrierScope::created(&key, &record), id))
}

pub(super) async fn list(
    State(api): State<Api>,
    Extension(id): Extension<RequestId>,
) -> Result<Response, Refused> {
    let (keys, now) = (api.service.store().credentials().await?, api.service.now());
    let views: Vec<_> = keys.iter().map(|key| CarrierScope::view(key, now)).collect();
    Ok(answer::enveloped(views, id))
}

pub(super) async fn revoke(
    State(api): State<Api>,
    Extension(id): Extension<RequestId>,
    path: Result<Path<String>, PathRejection>,
) -> Result<Response, Refused> {
    let (store, now) = (api.service.store(), api.service.now());
    let revoked = store.revoke_credential(&body::parameter(path), now).await?;
    let record = revoked.ok_or(ErrorCode::KeyNotFound)?;
    Ok(answer::enveloped(CarrierScope::view(&record, now), id))
}

/// The latest of one environment: `?environment=`, else production.
pub(super) async fn exceptions(
    State(api): State<Api>,
    Extension(id): Extension<RequestId>,
    RawQuery(query): RawQuery,
) -> Result<Response, Refused> {
    let word = body::query(query.as_deref(), "environment");
    let environment = word.map_or(Ok(Environment::Production), |word| environment(&word))?;
    let tenant = tenant(&api, &account_named(query.as_deref())?, environment).await?;
    let exceptions = api.service.carrier_exceptions_of(tenant, MAX_EXCEPTIONS).await?;
    Ok(answer::enveloped(exceptions.iter().map(ExceptionView::from).collect::<Vec<_>>(), id))
}

/// For the OpenAPI document.
#[cfg(test)]
pub(super) mod description {
    use parcelo::{
        Environment,
        ErrorCode::{AccountNotFound, KeyNotFound},
        admin::CarrierKeyRequest,
    };
    use serde_json::json;
    use utoipa::openapi::HttpMethod;

    use crate::{
        domain::{
            admin::ExceptionView,
            credential_views::{CarrierKeyView, NewCarrierKeyView},
        },
        http::{
            admin::document::{ACCOUNT, AdminCall},
            openapi::{
                call::Call,
                described::{Answer, Query, reference},
            },
        },
    };

    pub(in crate::http::admin) fn calls() -> Vec<Call<AdminCall>> {
        let create = AdminCall(HttpMethod::Post, "/carriers", "CreateCarrierKey");
        let list = AdminCall(HttpMethod::Get, "/carriers", "ListCarrierKeys");
        let revoke = AdminCall(HttpMethod::Delete, "/carriers/{keyId}", "RevokeCarrierKey");
        let exceptions = AdminCall(HttpMethod::Get, "/carrier-exceptions", "ListCarrierExceptions");
        vec![
            Call::new(create, "Create a carrier key")
                .takes::<CarrierKeyRequest>(
                    json!({ "name": "Andes Cargo", "environment": "sandbox" }),
                )
                .answers(Answer::data::<NewCarrierKeyView>(
                    "201",
                    "The key, shown only this once.",
                )),
            Call::new(list, "List carrier keys")
                .answers(Answer::list::<CarrierKeyView>("200", "The keys, oldest first.")),
            Call::new(revoke, "Revoke a carrier key")
                .answers(Answer::data::<CarrierKeyView>("200", "The key as it is now."))
                .refuses(&[KeyNotFound]),
            Call::new(exceptions, "List impossible events that carriers reported")
                .query(&[
                    ACCOUNT,
                    Query {
                        name: "environment",
                        about: "Whose reports: production when absent.",
                        schema: reference::<Environment>,
                    },
                ])
                .answers(Answer::list::<ExceptionView>("200", "The latest 1,000, newest first."))
                .refuses(&[AccountNotFound]),
        ]
    }
}
