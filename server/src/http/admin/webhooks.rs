//! Webhooks: one for each account and environment. `?account=` names the account.

use axum::{
    Extension,
    extract::{FromRequestParts, Path, RawQuery, Request, State},
    http::{StatusCode, request::Parts},
    response::Response,
};
use parcelo::{Environment, admin::ReplayRequest, model::EventKind};
use ulid::Ulid;

use super::{account_named, environment, invalid, tenant};
use crate::{
    clock::Millis,
    domain::{
        Refusal, Tenant,
        admin::{DeliveryView, NewSecret, ReplayedView, TestedView, WebhookView},
        webhooks::{Endpoint, Kinds, OLD_SECRET},
    },
    http::{
        Api, Refused,
        answer::{self, RequestId},
        body,
    },
    service::EndpointRequest,
    store::Replay,
};

/// The most events of one answer.
const MAX_DELIVERIES: u16 = 1_000;
/// How many there are when nobody says.
const USUAL: u16 = 100;

/// Which webhook is meant, and who asks.
pub(super) struct Which {
    account: String,
    environment: Environment,
    id: RequestId,
}

impl FromRequestParts<Api> for Which {
    type Rejection = Refused;

    async fn from_request_parts(parts: &mut Parts, api: &Api) -> Result<Self, Refused> {
        let word = Path::<String>::from_request_parts(parts, api).await;
        let id = Extension::<RequestId>::from_request_parts(parts, api).await;
        let Extension(id) = id.map_err(|_| Refusal::unavailable())?;
        let account = account_named(parts.uri.query())?;
        Ok(Self { account, environment: environment(&body::parameter(word))?, id })
    }
}

impl Which {
    fn tenant(&self, api: &Api) -> Result<Tenant, Refusal> {
        tenant(api, &self.account, self.environment)
    }

    fn shown(self, endpoint: &Endpoint) -> Response {
        answer::data(WebhookView::of(&self.account, endpoint), self.id)
    }
}

pub(super) async fn show(State(api): State<Api>, which: Which) -> Result<Response, Refused> {
    let endpoint = api.service.endpoints().find(which.tenant(&api)?)?;
    Ok(which.shown(&endpoint))
}

/// The account is made when it does not exist, as it is for a key.
pub(super) async fn set(
    State(api): State<Api>,
    which: Which,
    request: Request,
) -> Result<Response, Refused> {
    let asked =
        parcelo::admin::check_webhook(&body::json_object(request).await?).map_err(invalid)?;
    let (service, now) = (&api.service, api.service.now());
    let (account, _) = service.issuer().account(which.account.clone(), now).await?;
    let tenant = Tenant { account: account.key, environment: which.environment };
    let kinds = Kinds::named(asked.events.iter().map(EventKind::code));
    let request = EndpointRequest {
        tenant,
        url: asked.url,
        // The rules let no kind pass that is none.
        kinds: kinds.unwrap_or_default(),
        reach: service.settings().reach(which.environment),
    };
    let (endpoint, is_new) = service.endpoints().set_up(request, now).await?;
    if is_new {
        let view = WebhookView::with_secret(&which.account, &endpoint);
        return Ok(answer::data_as(StatusCode::CREATED, view, which.id));
    }
    Ok(which.shown(&endpoint))
}

pub(super) async fn remove(State(api): State<Api>, which: Which) -> Result<Response, Refused> {
    let endpoint = api.service.endpoints().remove(which.tenant(&api)?).await?;
    Ok(which.shown(&endpoint))
}

pub(super) async fn rotate_secret(
    State(api): State<Api>,
    which: Which,
) -> Result<Response, Refused> {
    let now = api.service.now();
    let secret = api.service.endpoints().rotate_secret(which.tenant(&api)?, now).await?;
    Ok(answer::data(NewSecret::of(&secret, now.plus(OLD_SECRET)), which.id))
}

pub(super) async fn test(State(api): State<Api>, which: Which) -> Result<Response, Refused> {
    let event = api.service.endpoints().test(which.tenant(&api)?, api.service.now()).await?;
    Ok(answer::data(TestedView::from(event), which.id))
}

pub(super) async fn enable(State(api): State<Api>, which: Which) -> Result<Response, Refused> {
    let endpoint = api.service.endpoints().enable(which.tenant(&api)?).await?;
    Ok(which.shown(&endpoint))
}

pub(super) async fn disable(State(api): State<Api>, which: Which) -> Result<Response, Refused> {
    let endpoint = api.service.endpoints().disable(which.tenant(&api)?).await?;
    Ok(which.shown(&endpoint))
}

/// The latest events; `?limit=` says how many, at most 1,000.
pub(super) async fn deliveries(
    State(api): State<Api>,
    which: Which,
    RawQuery(query): RawQuery,
) -> Result<Response, Refused> {
    let most = super::number(query.as_deref(), "limit", 1..=MAX_DELIVERIES)?.unwrap_or(USUAL);
    let tenant = which.tenant(&api)?;
    let logged = api.service.deliveries_of(tenant, 0, most.into()).await?;
    Ok(answer::data(logged.iter().map(DeliveryView::from).collect::<Vec<_>>(), which.id))
}

/// With an empty object, all that failed or was held is sent again.
pub(super) async fn replay(
    State(api): State<Api>,
    which: Which,
    request: Request,
) -> Result<Response, Refused> {
    let tenant = which.tenant(&api)?;
    let asked =
        parcelo::admin::check_replay(&body::json_object(request).await?).map_err(invalid)?;
    let replayed =
        api.service.endpoints().replay(tenant, wanted(&asked), api.service.now()).await?;
    Ok(answer::data(ReplayedView { replayed }, which.id))
}

fn wanted(asked: &ReplayRequest) -> Replay {
    let id = asked.event_id.as_deref().and_then(|id| id.strip_prefix("evt_"));
    match id {
        // An id of another form is one that no event has.
        Some(id) => Replay::One(Ulid::from_string(id).unwrap_or(Ulid::nil())),
        None => Replay::MissedSince(asked.since.map_or(Millis(0), Millis::from)),
    }
}
