//! The admin commands for webhooks: on the database itself, also while a server runs on it. The
//! server sends; within half a second it sees what a command has put into the outbox.

use parcelo::{Environment, model::time};
use serde_json::{Value, json};

use super::{
    Failure,
    keys::{open, open_existing},
    print,
    webhook_args::{ListDeliveries, ReplayEvents, SetWebhook, WebhookArgs, Webhooks},
};
use crate::{
    clock::{Clock, Millis, SystemClock},
    core::{
        Tenant,
        webhooks::{DisabledBy, Endpoint, Kinds, Logged, LoggedAttempt, OLD_SECRET, Reach},
    },
    ids::{Ids, named},
    service::{EndpointError, EndpointRequest, Endpoints},
    store::{Replay, Store},
};

pub(super) async fn run(command: Webhooks) -> Result<(), Failure> {
    match command {
        Webhooks::Set(options) => set(options).await,
        Webhooks::Deliveries(options) => deliveries(&options),
        Webhooks::Replay(options) => replay(options).await,
        Webhooks::Show(which) => {
            let (store, tenant) = find(&which)?;
            let endpoint = Endpoints { store: &store, ids: &Ids::random() }.find(tenant)?;
            say(&which, &shown(&which, &endpoint));
            Ok(())
        }
        Webhooks::RotateSecret(which) => rotate_secret(which).await,
        Webhooks::Test(which) => test(which).await,
        Webhooks::Enable(which) => turn(which, true).await,
        Webhooks::Disable(which) => turn(which, false).await,
    }
}

async fn set(options: SetWebhook) -> Result<(), Failure> {
    let (which, ids, now) = (options.which, Ids::random(), SystemClock.now());
    let store = open(&which.database, &ids)?;
    let account = store.account(&which.account, named("acc", ids.ulid(now)), now).await?;
    let environment = Environment::from(which.environment);
    let request = EndpointRequest {
        tenant: Tenant { account, environment },
        url: options.url,
        // Each was checked when the command line was read.
        kinds: Kinds::named(options.events.iter().map(String::as_str)).unwrap_or_default(),
        reach: Reach::of(environment, options.webhooks_allow_private),
    };
    let endpoint = Endpoints { store: &store, ids: &ids }.set(request, now).await?;
    if which.json {
        let mut all = shown(&which, &endpoint);
        insert(&mut all, "secret", json!(endpoint.secret.expose()));
        print::json(&all);
    } else {
        print::webhook_secret(&endpoint.secret);
    }
    Ok(())
}

async fn rotate_secret(which: WebhookArgs) -> Result<(), Failure> {
    let ((store, tenant), ids, now) = (find(&which)?, Ids::random(), SystemClock.now());
    let secret = Endpoints { store: &store, ids: &ids }.rotate_secret(tenant, now).await?;
    if which.json {
        let until = time::to_text(now.plus(OLD_SECRET).to_utc());
        print::json(&json!({ "secret": secret.expose(), "oldSecretUntil": until }));
    } else {
        print::webhook_secret(&secret);
    }
    Ok(())
}

async fn test(which: WebhookArgs) -> Result<(), Failure> {
    let ((store, tenant), ids) = (find(&which)?, Ids::random());
    let event = Endpoints { store: &store, ids: &ids }.test(tenant, SystemClock.now()).await?;
    say(&which, &json!({ "eventId": named("evt", event) }));
    Ok(())
}

async fn turn(which: WebhookArgs, on: bool) -> Result<(), Failure> {
    let ((store, tenant), ids) = (find(&which)?, Ids::random());
    let endpoints = Endpoints { store: &store, ids: &ids };
    let endpoint =
        if on { endpoints.enable(tenant).await? } else { endpoints.disable(tenant).await? };
    say(&which, &shown(&which, &endpoint));
    Ok(())
}

async fn replay(options: ReplayEvents) -> Result<(), Failure> {
    let ((store, tenant), ids) = (find(&options.which)?, Ids::random());
    let what = match (options.event, options.since) {
        (Some(event), _) => Replay::One(event),
        (None, Some(since)) => Replay::MissedSince(since.into()),
        (None, None) => Replay::MissedSince(Millis(0)),
    };
    let endpoints = Endpoints { store: &store, ids: &ids };
    let replayed = endpoints.replay(tenant, what, SystemClock.now()).await?;
    say(&options.which, &json!({ "replayed": replayed }));
    Ok(())
}

fn deliveries(options: &ListDeliveries) -> Result<(), Failure> {
    let (store, tenant) = find(&options.which)?;
    let logged = store.deliveries(tenant, options.limit.into())?;
    if options.which.json {
        print::json(&logged.iter().map(delivery).collect());
    } else {
        print::deliveries(&logged);
    }
    Ok(())
}

/// The database, and the tenant whose webhook is meant.
fn find(which: &WebhookArgs) -> Result<(Store, Tenant), Failure> {
    let store = open_existing(&which.database)?;
    let account = store.account_named(&which.account)?.ok_or(EndpointError::None)?;
    Ok((store, Tenant { account, environment: which.environment.into() }))
}

fn say(which: &WebhookArgs, value: &Value) {
    if which.json { print::json(value) } else { print::members(value) }
}

fn shown(which: &WebhookArgs, endpoint: &Endpoint) -> Value {
    let old_until = endpoint.old.as_ref().map(|(_, until)| time::to_text(until.to_utc()));
    json!({
        "url": endpoint.url,
        "environment": endpoint.tenant.environment,
        "account": which.account,
        "events": endpoint.kinds.to_wire(),
        "enabled": endpoint.disabled.is_none(),
        "disabledBy": endpoint.disabled.map(DisabledBy::code),
        "createdAt": time::to_text(endpoint.created_at.to_utc()),
        "oldSecretUntil": old_until,
    })
}

fn delivery(logged: &Logged) -> Value {
    json!({
        "eventId": named("evt", logged.event),
        "event": logged.kind.to_wire(),
        "trackingNumber": logged.tracking_number,
        "status": logged.standing.code(),
        "createdAt": time::to_text(logged.created_at.to_utc()),
        "nextAttemptAt": logged.due.map(|due| time::to_text(due.to_utc())),
        "attempts": logged.attempts.iter().map(attempt).collect::<Value>(),
    })
}

fn attempt(attempt: &LoggedAttempt) -> Value {
    json!({
        "attempt": attempt.number,
        "at": time::to_text(attempt.at.to_utc()),
        "milliseconds": attempt.millis,
        "httpStatus": attempt.status,
        "error": attempt.error,
        "answer": String::from_utf8_lossy(&attempt.answer),
    })
}

fn insert(all: &mut Value, name: &str, value: Value) {
    if let Value::Object(members) = all {
        members.insert(name.to_owned(), value);
    }
}
