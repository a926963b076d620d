//! The admin API, on the operators' listener only: keys, webhooks, carriers, accounts (docs/api.md, Admin API). Every
//! call that exists checks its token before anything else.

mod accounts;
mod carriers;
#[cfg(test)]
pub(super) mod document;
mod keys;
mod webhooks;

use std::{fmt::Display, ops::RangeInclusive, str::FromStr};

use axum::{
    Router,
    extract::{FromRequestParts, Path, Request, State},
    http::{StatusCode, header, request::Parts},
    middleware::{self, Next},
    response::{IntoResponse, Response},
    routing::{delete, get, post},
};
use parcelo_domain::{AccountRowId, Millis, Refusal, audit::Actor};
use parcelo_service::{
    http::{
        Api, HttpRefusal,
        area::{AddressLimit, Area, Policy},
        body,
        response::{self, RequestId},
    },
    service::{CredentialIssuer, Service},
};
use parcelo_types::{
    Environment, ErrorCode,
    model::{FaultCode, FieldFault},
    rules::Rejected,
};
use parcelo_wire::DEFAULT_ACCOUNT;
use serde::Serialize;

/// The OpenAPI document. The link in `server/process/openapi` points to `docs`, since a package cannot contain files from
/// outside its folder.
pub(super) const DOCUMENT: &str = include_str!("../../openapi/openapi-admin.json");

/// The path of the admin API.
const PATH_PREFIX: &str = "/admin/v1";

/// Returns the routes, all of which need a token. It is checked after the limit of the operators' listener, which
/// therefore counts guesses too.
pub(super) fn area(api: &Api) -> Area {
    let calls = Router::new()
        .route("/keys", get(keys::list).post(keys::create))
        .route("/keys/{keyId}", delete(keys::revoke))
        .route("/keys/{keyId}/rotate", post(keys::rotate))
        .route("/carriers", get(carriers::list).post(carriers::create))
        .route("/carriers/{keyId}", delete(carriers::revoke))
        .route("/carrier-exceptions", get(carriers::exceptions))
        .route("/accounts", get(accounts::list).post(accounts::create))
        .route(
            "/webhooks/{environment}",
            get(webhooks::show).put(webhooks::set).delete(webhooks::remove),
        )
        .route("/webhooks/{environment}/rotate-secret", post(webhooks::rotate_secret))
        .route("/webhooks/{environment}/test", post(webhooks::test))
        .route("/webhooks/{environment}/enable", post(webhooks::enable))
        .route("/webhooks/{environment}/disable", post(webhooks::disable))
        .route("/webhooks/{environment}/deliveries", get(webhooks::deliveries))
        .route("/webhooks/{environment}/replay", post(webhooks::replay))
        .route_layer(middleware::from_fn_with_state(api.clone(), require_token));
    let policy = Policy { metrics_name: "Admin", ..Policy::open(AddressLimit::Operators) };
    Area::new(policy).map_routes(|routes| routes.nest(PATH_PREFIX, calls))
}

async fn require_token(State(api): State<Api>, mut request: Request, next: Next) -> Response {
    let token = body::header_text(request.headers(), header::AUTHORIZATION);
    match api.service.authenticate_admin(token.as_deref()).await {
        Ok(id) => {
            request.extensions_mut().insert(Actor::Token(id));
            next.run(request).await
        }
        Err(refusal) => HttpRefusal(refusal).into_response(),
    }
}

/// A request without its body, as a handler gets it.
pub(super) struct AdminRequest {
    api: Api,
    id: RequestId,
    /// The parameter of the path; empty if it has none.
    parameter: String,
    query: Option<String>,
    /// The admin token, as the author for the audit log.
    actor: Actor,
}

impl FromRequestParts<Api> for AdminRequest {
    type Rejection = HttpRefusal;

    async fn from_request_parts(parts: &mut Parts, api: &Api) -> Result<Self, HttpRefusal> {
        let id = RequestId::from_request_parts(parts, api).await?;
        let actor = parts.extensions.get::<Actor>().cloned().ok_or_else(Refusal::unavailable)?;
        let parameter = body::path_parameter(Path::from_request_parts(parts, api).await);
        let query = parts.uri.query().map(str::to_owned);
        Ok(Self { api: api.clone(), id, parameter, query, actor })
    }
}

impl AdminRequest {
    fn service(&self) -> &Service {
        &self.api.service
    }

    fn issuer(&self) -> CredentialIssuer<'_> {
        self.service().issuer(self.actor.clone())
    }

    fn now(&self) -> Millis {
        self.service().now()
    }

    /// Returns a query parameter.
    fn query(&self, name: &str) -> Option<String> {
        body::query_parameter(self.query.as_deref(), name)
    }

    /// Returns a query parameter that must be a whole number within `range`.
    fn number<N: FromStr + PartialOrd + Display>(
        &self,
        name: &str,
        range: RangeInclusive<N>,
    ) -> Result<Option<N>, Refusal> {
        let Some(text) = self.query(name) else { return Ok(None) };
        let number = text.parse().ok().filter(|number| range.contains(number));
        let (min, max) = range.into_inner();
        let texts = || {
            let en = format!("{name} is a whole number from {min} to {max}.");
            (en, format!("{name} es un número entero de {min} a {max}."))
        };
        let fault = || FieldFault::new(name, FaultCode::OutOfRange, texts());
        number.map(Some).ok_or_else(|| Refusal::invalid(&[fault()]))
    }

    /// Returns the account name in `?account=`, else the default one.
    fn account_name(&self) -> Result<String, Refusal> {
        let Some(name) = self.query("account") else { return Ok(DEFAULT_ACCOUNT.to_owned()) };
        parcelo_wire::check_account_name(&name).map_err(|fault| Refusal::invalid(&[fault]))
    }

    /// Returns the account with this name, which must exist.
    async fn account(&self, name: &str) -> Result<AccountRowId, Refusal> {
        let account = self.service().store().account_named(name).await?;
        Ok(account.ok_or(ErrorCode::AccountNotFound)?)
    }

    /// Returns the response 200 with data.
    fn ok_response(self, data: impl Serialize) -> Response {
        self.response_with_status(StatusCode::OK, data)
    }

    /// Returns the response 201 with data.
    fn created_response(self, data: impl Serialize) -> Response {
        self.response_with_status(StatusCode::CREATED, data)
    }

    fn response_with_status(self, status: StatusCode, data: impl Serialize) -> Response {
        response::enveloped_with_status(status, data, self.id)
    }
}

/// Returns the environment that a path or a query names. An unknown code is a 404.
fn parse_environment(code: &str) -> Result<Environment, Refusal> {
    body::parse_environment(code).ok_or_else(|| ErrorCode::NotFound.into())
}

fn to_refusal(Rejected { faults, .. }: Rejected) -> Refusal {
    Refusal::invalid(&faults)
}
