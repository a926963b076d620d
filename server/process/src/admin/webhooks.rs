//! Webhooks: one for each account and environment. `?account=` names the account.

use axum::{
    extract::{FromRequestParts, Request},
    http::request::Parts,
    response::Response,
};
use parcelo_domain::{
    Millis, Refusal, Tenant,
    admin::{DeliveryView, NewSecret, ReplayedView, TestedView, WebhookView},
    webhooks::{Endpoint, OLD_SECRET_LIFETIME_MILLIS, WebhookEventKinds, check_url},
};
use parcelo_service::{
    http::{Api, HttpRefusal, RequestIds, body},
    service::{EndpointError, EndpointRequest, Endpoints},
};
use parcelo_store::EventsToReplay;
use parcelo_types::{Environment, internal::EventKind};
use parcelo_wire::ReplayRequest;
use ulid::Ulid;

use super::{AdminRequest, parse_environment, to_refusal};

/// Maximum number of events in a response.
const MAX_DELIVERIES: u16 = 1_000;
/// Number of events in a response if the query gives none.
const DEFAULT_DELIVERIES: u16 = 100;

/// An admin request about a webhook, which its path and query name.
pub(super) struct WebhookCall {
    call: AdminRequest,
    account: String,
    environment: Environment,
}

impl FromRequestParts<Api> for WebhookCall {
    type Rejection = HttpRefusal;

    async fn from_request_parts(parts: &mut Parts, api: &Api) -> Result<Self, HttpRefusal> {
        let call = AdminRequest::from_request_parts(parts, api).await?;
        let account = call.account_name()?;
        Ok(Self { account, environment: parse_environment(&call.parameter)?, call })
    }
}

impl WebhookCall {
    async fn tenant(&self) -> Result<Tenant, Refusal> {
        let account = self.call.account(&self.account).await?;
        Ok(Tenant { account, environment: self.environment })
    }

    fn endpoints(&self) -> Endpoints<'_> {
        let endpoints = self.call.service().endpoints(self.call.actor.clone());
        Endpoints { trace: RequestIds::current_trace(), ..endpoints }
    }

    fn show(self, endpoint: &Endpoint) -> Response {
        self.call.ok_response(WebhookView::new(&self.account, endpoint))
    }
}

/// Returns the webhook without its secret.
pub(super) async fn show(webhook: WebhookCall) -> Result<Response, HttpRefusal> {
    let endpoint = webhook.endpoints().find(webhook.tenant().await?).await?;
    Ok(webhook.show(&endpoint))
}

/// Sets the webhook up or changes it. The account is created if it does not exist, as it is for a key.
pub(super) async fn set(webhook: WebhookCall, request: Request) -> Result<Response, HttpRefusal> {
    let settings =
        parcelo_wire::check_webhook(&body::json_object(request).await?).map_err(to_refusal)?;
    let (service, now) = (webhook.call.service(), webhook.call.now());
    let allowed_hosts = service.settings().allowed_hosts(webhook.environment);
    // The address is checked first, so that a refused request does not create an account.
    check_url(&settings.url, allowed_hosts).map_err(EndpointError::Address)?;
    let (account, _) =
        webhook.call.issuer().find_or_create_account(webhook.account.clone(), now).await?;
    let tenant = Tenant { account: account.key, environment: webhook.environment };
    let kinds = WebhookEventKinds::from_codes(settings.events.iter().map(EventKind::code));
    let request = EndpointRequest {
        tenant,
        url: settings.url,
        // The rules accept only known kinds.
        kinds: kinds.unwrap_or_default(),
        allowed_hosts,
    };
    let (endpoint, is_new) = webhook.endpoints().upsert(request, now).await?;
    if is_new {
        return Ok(webhook
            .call
            .created_response(WebhookView::with_secret(&webhook.account, &endpoint)));
    }
    Ok(webhook.show(&endpoint))
}

/// Removes the webhook.
pub(super) async fn remove(webhook: WebhookCall) -> Result<Response, HttpRefusal> {
    let endpoint = webhook.endpoints().remove(webhook.tenant().await?).await?;
    Ok(webhook.show(&endpoint))
}

/// Gives the webhook a new secret.
pub(super) async fn rotate_secret(webhook: WebhookCall) -> Result<Response, HttpRefusal> {
    let now = webhook.call.now();
    let secret = webhook.endpoints().rotate_secret(webhook.tenant().await?, now).await?;
    Ok(webhook.call.ok_response(NewSecret::new(&secret, now.plus(OLD_SECRET_LIFETIME_MILLIS))))
}

/// Sends a test event.
pub(super) async fn test(webhook: WebhookCall) -> Result<Response, HttpRefusal> {
    let event = webhook.endpoints().send_test(webhook.tenant().await?, webhook.call.now()).await?;
    Ok(webhook.call.ok_response(TestedView::from(event)))
}

/// Turns the webhook on.
pub(super) async fn enable(webhook: WebhookCall) -> Result<Response, HttpRefusal> {
    let endpoint = webhook.endpoints().enable(webhook.tenant().await?).await?;
    Ok(webhook.show(&endpoint))
}

/// Turns the webhook off.
pub(super) async fn disable(webhook: WebhookCall) -> Result<Response, HttpRefusal> {
    let endpoint = webhook.endpoints().disable(webhook.tenant().await?).await?;
    Ok(webhook.show(&endpoint))
}

/// Lists the latest events; `?limit=` is their number, at most 1,000.
pub(super) async fn deliveries(webhook: WebhookCall) -> Result<Response, HttpRefusal> {
    let limit = webhook.call.number("limit", 1..=MAX_DELIVERIES)?.unwrap_or(DEFAULT_DELIVERIES);
    let tenant = webhook.tenant().await?;
    let logged = webhook.call.service().webhook_deliveries(tenant, 0, limit.into()).await?;
    Ok(webhook.call.ok_response(logged.iter().map(DeliveryView::from).collect::<Vec<_>>()))
}

/// Sends events again; with an empty object, all that have failed or are held.
pub(super) async fn replay(
    webhook: WebhookCall,
    request: Request,
) -> Result<Response, HttpRefusal> {
    let tenant = webhook.tenant().await?;
    let replay =
        parcelo_wire::check_replay(&body::json_object(request).await?).map_err(to_refusal)?;
    let events = events_to_replay(&replay);
    let replayed = webhook.endpoints().replay(tenant, events, webhook.call.now()).await?;
    Ok(webhook.call.ok_response(ReplayedView { replayed }))
}

fn events_to_replay(request: &ReplayRequest) -> EventsToReplay {
    let id = request.event_id.as_deref().and_then(|id| id.strip_prefix("evt_"));
    match id {
        // A malformed id is one that no event has.
        Some(id) => EventsToReplay::One(Ulid::from_string(id).unwrap_or(Ulid::nil())),
        None => EventsToReplay::MissedSince(request.since.map_or(Millis(0), Millis::from)),
    }
}

/// The description of these calls for the OpenAPI document.
#[cfg(test)]
pub(super) mod description {
    use parcelo_types::ErrorCode::{
        self, AccountNotFound, EventNotFound, WebhookDisabled, WebhookNotFound, WebhookUnreadable,
    };
    use parcelo_wire::{ReplayRequest, WebhookRequest};
    use serde_json::json;
    use utoipa::{PartialSchema, openapi::HttpMethod};

    use crate::admin::document::ACCOUNT;
    use parcelo_domain::admin::{DeliveryView, NewSecret, ReplayedView, TestedView, WebhookView};
    use parcelo_service::http::openapi::{call::Call, operation_doc::QueryParameter};

    const LOOKUP_REFUSALS: &[ErrorCode] = &[AccountNotFound, WebhookNotFound, WebhookUnreadable];
    const SEND_REFUSALS: &[ErrorCode] =
        &[AccountNotFound, WebhookNotFound, WebhookDisabled, WebhookUnreadable];

    const WEBHOOK: &str = "/webhooks/{environment}";
    const ENABLE: &str = "/webhooks/{environment}/enable";
    const DISABLE: &str = "/webhooks/{environment}/disable";
    const ROTATE: &str = "/webhooks/{environment}/rotate-secret";
    const TEST: &str = "/webhooks/{environment}/test";
    const DELIVERIES: &str = "/webhooks/{environment}/deliveries";
    const REPLAY: &str = "/webhooks/{environment}/replay";

    pub(in crate::admin) fn calls() -> Vec<Call> {
        use HttpMethod::{Delete, Get, Post, Put};
        let example =
            json!({ "url": "https://shop.example/parcelo", "events": ["parcel.created"] });
        let list = "List events and every attempt to deliver them";
        vec![
            webhook_call(Put, WEBHOOK, "SetWebhook", "Set up or change the webhook")
                .with_body::<WebhookRequest>(example)
                .with_data::<WebhookView>(
                    "201",
                    "It was set up; its secret is shown only this once.",
                )
                .with_data::<WebhookView>("200", "It existed, and keeps its secret."),
            webhook_call(Get, WEBHOOK, "ShowWebhook", "Show the webhook")
                .with_data::<WebhookView>("200", "The webhook, without its secret.")
                .with_refusals(LOOKUP_REFUSALS),
            webhook_call(Delete, WEBHOOK, "RemoveWebhook", "Remove the webhook")
                .with_data::<WebhookView>("200", "What it was. Unsent events are held.")
                .with_refusals(LOOKUP_REFUSALS),
            webhook_call(Post, ENABLE, "EnableWebhook", "Send to the webhook again")
                .with_data::<WebhookView>("200", "The webhook as it is now.")
                .with_refusals(LOOKUP_REFUSALS),
            webhook_call(Post, DISABLE, "DisableWebhook", "Stop sending to the webhook")
                .with_data::<WebhookView>("200", "The webhook as it is now.")
                .with_refusals(LOOKUP_REFUSALS),
            webhook_call(Post, ROTATE, "RotateSecret", "Create a new secret")
                .with_data::<NewSecret>("200", "The previous secret also signs for 24 hours.")
                .with_refusals(LOOKUP_REFUSALS),
            webhook_call(Post, TEST, "TestWebhook", "Send a test event")
                .with_data::<TestedView>("200", "The event is on its way.")
                .with_refusals(SEND_REFUSALS),
            webhook_call(Get, DELIVERIES, "ListDeliveries", list)
                .query(&[
                    ACCOUNT,
                    QueryParameter("limit", "How many: 1-1,000, 100 when absent.", || {
                        <u16 as PartialSchema>::schema()
                    }),
                ])
                .with_list::<DeliveryView>("The latest events, newest first.")
                .with_refusals(&[AccountNotFound]),
            webhook_call(Post, REPLAY, "ReplayEvents", "Send events again")
                .with_body::<ReplayRequest>(json!({ "since": "2026-01-10T15:05:00Z" }))
                .with_data::<ReplayedView>("200", "How many are sent again.")
                .with_refusals(&[
                    AccountNotFound,
                    WebhookNotFound,
                    EventNotFound,
                    WebhookDisabled,
                    WebhookUnreadable,
                ]),
        ]
    }

    fn webhook_call(
        method: HttpMethod,
        path: &'static str,
        id: &'static str,
        summary: &'static str,
    ) -> Call {
        Call::route(method, path, id, summary).query(&[ACCOUNT])
    }
}
