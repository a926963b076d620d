//! The admin commands for webhooks. They open the database directly, even while a server uses it. The server sends
//! events that a command has put into the outbox within half a second.

use parcelo::webhook::Secret;
use parcelo_domain::{
    Millis, Tenant,
    admin::{DeliveryView, NewSecret, ReplayedView, TestedView, WebhookView},
    audit::Actor,
    webhooks::{
        AllowedHosts, InvalidWebhookUrl, OLD_SECRET_LIFETIME_MILLIS, WebhookAllowance,
        WebhookEventKinds, check_url,
    },
};
use parcelo_service::service::{EndpointError, EndpointRequest, Endpoints};
use parcelo_store::{EventsToReplay, Store};
use parcelo_system::{
    clock::{Clock, SystemClock},
    ids::Ids,
};
use parcelo_types::Environment;
use serde::Serialize;

use super::{
    Failure,
    database::{find_account, open},
    print,
    webhook_args::{ListDeliveries, ReplayEvents, SetWebhook, WebhookArgs, Webhooks},
};

pub(super) async fn run(command: Webhooks) -> Result<(), Failure> {
    match command {
        Webhooks::Set(options) => set(options).await,
        Webhooks::Deliveries(options) => deliveries(&options).await,
        Webhooks::Replay(options) => replay(options).await,
        Webhooks::Show(webhook) => {
            let (store, tenant) = open_tenant(&webhook).await?;
            let endpoint = endpoints(&store, &Ids::random()).find(tenant).await?;
            print_view(&webhook, &WebhookView::new(&webhook.account, &endpoint))
        }
        Webhooks::RotateSecret(webhook) => rotate_secret(webhook).await,
        Webhooks::Test(webhook) => test(webhook).await,
        Webhooks::Enable(webhook) => set_enabled(webhook, true).await,
        Webhooks::Disable(webhook) => set_enabled(webhook, false).await,
        Webhooks::Remove(webhook) => remove(webhook).await,
    }
}

async fn set(options: SetWebhook) -> Result<(), Failure> {
    let (webhook, ids, now) = (options.webhook, Ids::random(), SystemClock.now());
    let environment = Environment::from(webhook.environment);
    let allowance = WebhookAllowance {
        private: options.webhooks_allow_private,
        sandbox_loopback: options.sandbox_webhooks_allow_loopback,
    };
    let allowed_hosts = AllowedHosts::for_environment(environment, allowance);
    let (store, tenant) = open_tenant(&webhook).await?;
    let request = EndpointRequest {
        tenant,
        url: options.url,
        // The kinds were checked when the command line was parsed.
        kinds: WebhookEventKinds::from_codes(options.events.iter().map(String::as_str))
            .unwrap_or_default(),
        allowed_hosts,
    };
    let is_loopback = environment == Environment::Sandbox
        && check_url(&request.url, AllowedHosts::PublicAndLoopback).is_ok();
    let result = endpoints(&store, &ids).set(request, now).await;
    let endpoint = result.map_err(|error| match error {
        EndpointError::Address(error @ InvalidWebhookUrl::NotPublic) if is_loopback => {
            Failure::WebhookToThisMachine(error)
        }
        error => error.into(),
    })?;
    let view = WebhookView::with_secret(&webhook.account, &endpoint);
    print_secret(&webhook, &view, &endpoint.secret)
}

async fn rotate_secret(webhook: WebhookArgs) -> Result<(), Failure> {
    let ((store, tenant), ids, now) =
        (open_tenant(&webhook).await?, Ids::random(), SystemClock.now());
    let secret = endpoints(&store, &ids).rotate_secret(tenant, now).await?;
    let view = NewSecret::new(&secret, now.plus(OLD_SECRET_LIFETIME_MILLIS));
    print_secret(&webhook, &view, &secret)
}

async fn test(webhook: WebhookArgs) -> Result<(), Failure> {
    let ((store, tenant), ids) = (open_tenant(&webhook).await?, Ids::random());
    let event = endpoints(&store, &ids).send_test(tenant, SystemClock.now()).await?;
    print_view(&webhook, &TestedView::from(event))
}

async fn set_enabled(webhook: WebhookArgs, is_enabled: bool) -> Result<(), Failure> {
    let ((store, tenant), ids) = (open_tenant(&webhook).await?, Ids::random());
    let endpoints = endpoints(&store, &ids);
    let endpoint = if is_enabled {
        endpoints.enable(tenant).await?
    } else {
        endpoints.disable(tenant).await?
    };
    print_view(&webhook, &WebhookView::new(&webhook.account, &endpoint))
}

async fn remove(webhook: WebhookArgs) -> Result<(), Failure> {
    let ((store, tenant), ids) = (open_tenant(&webhook).await?, Ids::random());
    let endpoint = endpoints(&store, &ids).remove(tenant).await?;
    print_view(&webhook, &WebhookView::new(&webhook.account, &endpoint))
}

async fn replay(options: ReplayEvents) -> Result<(), Failure> {
    let ((store, tenant), ids) = (open_tenant(&options.webhook).await?, Ids::random());
    let events = match (options.event, options.since) {
        (Some(event), _) => EventsToReplay::One(event),
        (None, Some(since)) => EventsToReplay::MissedSince(since.into()),
        (None, None) => EventsToReplay::MissedSince(Millis(0)),
    };
    let endpoints = endpoints(&store, &ids);
    let replayed = endpoints.replay(tenant, events, SystemClock.now()).await?;
    print_view(&options.webhook, &ReplayedView { replayed })
}

async fn deliveries(options: &ListDeliveries) -> Result<(), Failure> {
    let (store, tenant) = open_tenant(&options.webhook).await?;
    let logged = store.deliveries(tenant, options.limit.into()).await?;
    if options.webhook.json {
        return Ok(print::json(&logged.iter().map(DeliveryView::from).collect::<Vec<_>>())?);
    }
    Ok(print::deliveries(&logged)?)
}

fn endpoints<'a>(store: &'a Store, ids: &'a Ids) -> Endpoints<'a> {
    Endpoints { store, ids, by: Actor::Command.at(SystemClock.now()), trace: None }
}

/// Opens the database and finds the tenant of the webhook.
async fn open_tenant(webhook: &WebhookArgs) -> Result<(Store, Tenant), Failure> {
    let store = open(&webhook.database).await?;
    let account = find_account(&store, &webhook.account).await?;
    Ok((store, Tenant { account, environment: webhook.environment.into() }))
}

fn print_secret(
    webhook: &WebhookArgs,
    view: &impl Serialize,
    secret: &Secret,
) -> Result<(), Failure> {
    Ok(if webhook.json { print::secret_json(view) } else { print::webhook_secret(secret) }?)
}

fn print_view(webhook: &WebhookArgs, value: &impl Serialize) -> Result<(), Failure> {
    Ok(if webhook.json { print::json(value) } else { print::fields(value) }?)
}
