//! The admin commands for webhooks: on the database itself, also while a server runs on it. The
//! server sends; within half a second it sees what a command has put into the outbox.

use parcelo::Environment;
use serde::Serialize;

use super::{
    Failure,
    database::open,
    print,
    webhook_args::{ListDeliveries, ReplayEvents, SetWebhook, WebhookArgs, Webhooks},
};
use crate::{
    clock::{Clock, Millis, SystemClock},
    domain::{
        Tenant,
        admin::{DeliveryView, NewSecret, ReplayedView, TestedView, WebhookView},
        audit::Actor,
        webhooks::{Allowance, AllowedHosts, InvalidUrl, Kinds, OLD_SECRET, check_url},
    },
    ids::Ids,
    service::{EndpointError, EndpointRequest, Endpoints},
    store::{EventsToReplay, Store},
};

pub(super) async fn run(command: Webhooks) -> Result<(), Failure> {
    match command {
        Webhooks::Set(options) => set(options).await,
        Webhooks::Deliveries(options) => deliveries(&options).await,
        Webhooks::Replay(options) => replay(options).await,
        Webhooks::Show(which) => {
            let (store, tenant) = find(&which).await?;
            let endpoint = endpoints(&store, &Ids::random()).find(tenant).await?;
            say(&which, &WebhookView::new(&which.account, &endpoint))
        }
        Webhooks::RotateSecret(which) => rotate_secret(which).await,
        Webhooks::Test(which) => test(which).await,
        Webhooks::Enable(which) => turn(which, true).await,
        Webhooks::Disable(which) => turn(which, false).await,
        Webhooks::Remove(which) => remove(which).await,
    }
}

async fn set(options: SetWebhook) -> Result<(), Failure> {
    let (which, ids, now) = (options.which, Ids::random(), SystemClock.now());
    let environment = Environment::from(which.environment);
    let allowed = Allowance {
        private: options.webhooks_allow_private,
        sandbox_loopback: options.sandbox_webhooks_allow_loopback,
    };
    let reach = AllowedHosts::for_environment(environment, allowed);
    let (store, tenant) = find(&which).await?;
    let request = EndpointRequest {
        tenant,
        url: options.url,
        // Each was checked when the command line was read.
        kinds: Kinds::named(options.events.iter().map(String::as_str)).unwrap_or_default(),
        reach,
    };
    let is_loopback =
        environment == Environment::Sandbox && check_url(&request.url, AllowedHosts::Here).is_ok();
    let set = endpoints(&store, &ids).set(request, now).await;
    let endpoint = set.map_err(|why| match why {
        EndpointError::Address(why @ InvalidUrl::NotPublic) if is_loopback => {
            Failure::OwnMachine(why)
        }
        why => why.into(),
    })?;
    if which.json {
        print::secret_json(&WebhookView::with_secret(&which.account, &endpoint))?;
    } else {
        print::webhook_secret(&endpoint.secret)?;
    }
    Ok(())
}

async fn rotate_secret(which: WebhookArgs) -> Result<(), Failure> {
    let ((store, tenant), ids, now) = (find(&which).await?, Ids::random(), SystemClock.now());
    let secret = endpoints(&store, &ids).rotate_secret(tenant, now).await?;
    if which.json {
        print::secret_json(&NewSecret::new(&secret, now.plus(OLD_SECRET)))?;
    } else {
        print::webhook_secret(&secret)?;
    }
    Ok(())
}

async fn test(which: WebhookArgs) -> Result<(), Failure> {
    let ((store, tenant), ids) = (find(&which).await?, Ids::random());
    let event = endpoints(&store, &ids).test(tenant, SystemClock.now()).await?;
    say(&which, &TestedView::from(event))
}

async fn turn(which: WebhookArgs, on: bool) -> Result<(), Failure> {
    let ((store, tenant), ids) = (find(&which).await?, Ids::random());
    let endpoints = endpoints(&store, &ids);
    let endpoint =
        if on { endpoints.enable(tenant).await? } else { endpoints.disable(tenant).await? };
    say(&which, &WebhookView::new(&which.account, &endpoint))
}

async fn remove(which: WebhookArgs) -> Result<(), Failure> {
    let ((store, tenant), ids) = (find(&which).await?, Ids::random());
    let endpoint = endpoints(&store, &ids).remove(tenant).await?;
    say(&which, &WebhookView::new(&which.account, &endpoint))
}

async fn replay(options: ReplayEvents) -> Result<(), Failure> {
    let ((store, tenant), ids) = (find(&options.which).await?, Ids::random());
    let what = match (options.event, options.since) {
        (Some(event), _) => EventsToReplay::One(event),
        (None, Some(since)) => EventsToReplay::MissedSince(since.into()),
        (None, None) => EventsToReplay::MissedSince(Millis(0)),
    };
    let endpoints = endpoints(&store, &ids);
    let replayed = endpoints.replay(tenant, what, SystemClock.now()).await?;
    say(&options.which, &ReplayedView { replayed })
}

async fn deliveries(options: &ListDeliveries) -> Result<(), Failure> {
    let (store, tenant) = find(&options.which).await?;
    let logged = store.deliveries(tenant, options.limit.into()).await?;
    if options.which.json {
        print::json(&logged.iter().map(DeliveryView::from).collect::<Vec<_>>())?;
    } else {
        print::deliveries(&logged)?;
    }
    Ok(())
}

fn endpoints<'a>(store: &'a Store, ids: &'a Ids) -> Endpoints<'a> {
    Endpoints { store, ids, by: Actor::Command.at(SystemClock.now()) }
}

/// The database, and the tenant whose webhook is meant.
async fn find(which: &WebhookArgs) -> Result<(Store, Tenant), Failure> {
    let store = open(&which.database).await?;
    let account = store.account_named(&which.account).await?;
    let account = account.ok_or_else(|| Failure::NoAccount(which.account.clone()))?;
    Ok((store, Tenant { account, environment: which.environment.into() }))
}

fn say(which: &WebhookArgs, value: &impl Serialize) -> Result<(), Failure> {
    Ok(if which.json { print::json(value) } else { print::members(value) }?)
}
