//! Webhooks: one for each account and environment. `?account=` names the account.

use axum::{
    extract::{FromRequestParts, Request},
    http::request::Parts,
    response::Response,
};
use parcelo::{Environment, admin::ReplayRequest, model::EventKind};
use ulid::Ulid;

use super::{AdminRequest, environment, invalid};
use crate::{
    clock::Millis,
    domain::{
        Refusal, Tenant,
        admin::{DeliveryView, NewSecret, ReplayedView, TestedView, WebhookView},
        webhooks::{Endpoint, Kinds, OLD_SECRET, check_url},
    },
    http::{Api, Refused, body},
    service::{EndpointError, EndpointRequest, Endpoints},
    store::EventsToReplay,
};

/// The most events of one answer.
const MAX_DELIVERIES: u16 = 1_000;
/// How many there are when the query does not say.
const USUAL: u16 = 100;

/// A call about a webhook, and which one.
pub(super) struct Which {
    call: AdminRequest,
    account: String,
    environment: Environment,
}

impl FromRequestParts<Api> for Which {
    type Rejection = Refused;

    async fn from_request_parts(parts: &mut Parts, api: &Api) -> Result<Self, Refused> {
        let call = AdminRequest::from_request_parts(parts, api).await?;
        let account = call.account_name()?;
        Ok(Self { account, environment: environment(&call.parameter)?, call })
    }
}

impl Which {
    async fn tenant(&self) -> Result<Tenant, Refusal> {
        let account = self.call.account(&self.account).await?;
        Ok(Tenant { account, environment: self.environment })
    }

    fn endpoints(&self) -> Endpoints<'_> {
        self.call.service().endpoints(self.call.by.clone())
    }

    fn show(self, endpoint: &Endpoint) -> Response {
        self.call.answer(WebhookView::new(&self.account, endpoint))
    }
}

pub(super) async fn show(which: Which) -> Result<Response, Refused> {
    let endpoint = which.endpoints().find(which.tenant().await?).await?;
    Ok(which.show(&endpoint))
}

/// The account is made when it does not exist, as it is for a key.
pub(super) async fn set(which: Which, request: Request) -> Result<Response, Refused> {
    let asked =
        parcelo::admin::check_webhook(&body::json_object(request).await?).map_err(invalid)?;
    let (service, now) = (which.call.service(), which.call.now());
    let reach = service.settings().reach(which.environment);
    // Before the account, so that what is refused makes none.
    check_url(&asked.url, reach).map_err(EndpointError::Address)?;
    let (account, _) = which.call.issuer().account(which.account.clone(), now).await?;
    let tenant = Tenant { account: account.key, environment: which.environment };
    let kinds = Kinds::named(asked.events.iter().map(EventKind::code));
    let request = EndpointRequest {
        tenant,
        url: asked.url,
        // The rules let only known kinds pass.
        kinds: kinds.unwrap_or_default(),
        reach,
    };
    let (endpoint, is_new) = which.endpoints().set_up(request, now).await?;
    if is_new {
        return Ok(which.call.created(WebhookView::with_secret(&which.account, &endpoint)));
    }
    Ok(which.show(&endpoint))
}

pub(super) async fn remove(which: Which) -> Result<Response, Refused> {
    let endpoint = which.endpoints().remove(which.tenant().await?).await?;
    Ok(which.show(&endpoint))
}

pub(super) async fn rotate_secret(which: Which) -> Result<Response, Refused> {
    let now = which.call.now();
    let secret = which.endpoints().rotate_secret(which.tenant().await?, now).await?;
    Ok(which.call.answer(NewSecret::new(&secret, now.plus(OLD_SECRET))))
}

pub(super) async fn test(which: Which) -> Result<Response, Refused> {
    let event = which.endpoints().test(which.tenant().await?, which.call.now()).await?;
    Ok(which.call.answer(TestedView::from(event)))
}

pub(super) async fn enable(which: Which) -> Result<Response, Refused> {
    let endpoint = which.endpoints().enable(which.tenant().await?).await?;
    Ok(which.show(&endpoint))
}

pub(super) async fn disable(which: Which) -> Result<Response, Refused> {
    let endpoint = which.endpoints().disable(which.tenant().await?).await?;
    Ok(which.show(&endpoint))
}

/// The latest events; `?limit=` says how many, at most 1,000.
pub(super) async fn deliveries(which: Which) -> Result<Response, Refused> {
    let most = which.call.number("limit", 1..=MAX_DELIVERIES)?.unwrap_or(USUAL);
    let tenant = which.tenant().await?;
    let logged = which.call.service().deliveries_of(tenant, 0, most.into()).await?;
    Ok(which.call.answer(logged.iter().map(DeliveryView::from).collect::<Vec<_>>()))
}

/// With an empty object, all that failed or was held is sent again.
pub(super) async fn replay(which: Which, request: Request) -> Result<Response, Refused> {
    let tenant = which.tenant().await?;
    let asked =
        parcelo::admin::check_replay(&body::json_object(request).await?).map_err(invalid)?;
    let replayed = which.endpoints().replay(tenant, wanted(&asked), which.call.now()).await?;
    Ok(which.call.answer(ReplayedView { replayed }))
}

fn wanted(asked: &ReplayRequest) -> EventsToReplay {
    let id = asked.event_id.as_deref().and_then(|id| id.strip_prefix("evt_"));
    match id {
        // An id of another form is one that no event has.
        Some(id) => EventsToReplay::One(Ulid::from_string(id).unwrap_or(Ulid::nil())),
        None => EventsToReplay::MissedSince(asked.since.map_or(Millis(0), Millis::from)),
    }
}

/// For the OpenAPI document.
#[cfg(test)]
pub(super) mod description {
    use parcelo::{
        ErrorCode::{
            self, AccountNotFound, EventNotFound, WebhookDisabled, WebhookNotFound,
            WebhookUnreadable,
        },
        admin::{ReplayRequest, WebhookRequest},
    };
    use serde_json::json;
    use utoipa::{PartialSchema, openapi::HttpMethod};

    use crate::{
        domain::admin::{DeliveryView, NewSecret, ReplayedView, TestedView, WebhookView},
        http::{
            admin::document::{ACCOUNT, AdminCall},
            openapi::{
                call::Call,
                described::{Answer, Query},
            },
        },
    };

    const MISSING: &[ErrorCode] = &[AccountNotFound, WebhookNotFound, WebhookUnreadable];
    const UNSENT: &[ErrorCode] =
        &[AccountNotFound, WebhookNotFound, WebhookDisabled, WebhookUnreadable];

    const WEBHOOK: &str = "/webhooks/{environment}";

    pub(in crate::http::admin) fn calls() -> Vec<Call<AdminCall>> {
        let wanted = json!({ "url": "https://shop.example/parcelo", "events": ["parcel.created"] });
        vec![
            call((HttpMethod::Put, WEBHOOK, "SetWebhook"), "Set up or change the webhook")
                .takes::<WebhookRequest>(wanted)
                .answers(webhook("201", "It was set up; its secret is shown only this once."))
                .answers(webhook("200", "It existed, and keeps its secret.")),
            call((HttpMethod::Get, WEBHOOK, "ShowWebhook"), "Show the webhook")
                .answers(webhook("200", "The webhook, without its secret."))
                .refuses(MISSING),
            call((HttpMethod::Delete, WEBHOOK, "RemoveWebhook"), "Remove the webhook")
                .answers(webhook("200", "What it was. Unsent events are held."))
                .refuses(MISSING),
            post("/webhooks/{environment}/enable", "EnableWebhook", "Send to the webhook again")
                .answers(webhook("200", "The webhook as it is now."))
                .refuses(MISSING),
            post(
                "/webhooks/{environment}/disable",
                "DisableWebhook",
                "Stop sending to the webhook",
            )
            .answers(webhook("200", "The webhook as it is now."))
            .refuses(MISSING),
            post("/webhooks/{environment}/rotate-secret", "RotateSecret", "Create a new secret")
                .answers(Answer::data::<NewSecret>(
                    "200",
                    "The previous secret signs beside it for 24 hours.",
                ))
                .refuses(MISSING),
            post("/webhooks/{environment}/test", "TestWebhook", "Send a test event")
                .answers(Answer::data::<TestedView>("200", "The event is on its way."))
                .refuses(UNSENT),
            deliveries(),
            post("/webhooks/{environment}/replay", "ReplayEvents", "Send events again")
                .takes::<ReplayRequest>(json!({ "since": "2026-01-10T15:05:00Z" }))
                .answers(Answer::data::<ReplayedView>("200", "How many are sent again."))
                .refuses(&[
                    AccountNotFound,
                    WebhookNotFound,
                    EventNotFound,
                    WebhookDisabled,
                    WebhookUnreadable,
                ]),
        ]
    }

    fn deliveries() -> Call<AdminCall> {
        let path = "/webhooks/{environment}/deliveries";
        let target = (HttpMethod::Get, path, "ListDeliveries");
        call(target, "List events and every attempt to deliver them")
            .query(&[
                ACCOUNT,
                Query {
                    name: "limit",
                    about: "How many: 1-1,000, 100 when absent.",
                    schema: || <u16 as PartialSchema>::schema(),
                },
            ])
            .answers(Answer::list::<DeliveryView>("200", "The latest events, newest first."))
            .refuses(&[AccountNotFound])
    }

    fn post(path: &'static str, id: &'static str, summary: &'static str) -> Call<AdminCall> {
        call((HttpMethod::Post, path, id), summary)
    }

    fn call(
        (method, path, id): (HttpMethod, &'static str, &'static str),
        summary: &'static str,
    ) -> Call<AdminCall> {
        Call::new(AdminCall(method, path, id), summary).query(&[ACCOUNT])
    }

    fn webhook(status: &'static str, about: &'static str) -> Answer {
        Answer::data::<WebhookView>(status, about)
    }
}
