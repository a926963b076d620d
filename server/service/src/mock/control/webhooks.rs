//! Webhooks to the mock server's inbox or to the suite's own handler, their faults and their secret.

use axum::{
    extract::{Request, State},
    response::Response,
};
use parcelo::webhook::Secret;
use parcelo_domain::{
    Refusal,
    webhooks::{Endpoint, WebhookEventKinds},
};
use parcelo_types::internal::EventKind;
use serde::{Deserialize, Deserializer};

#[cfg(test)]
use super::schemas;
use super::{
    ControlResult, StateExtractor,
    refusals::{invalid_body, invalid_field},
    requests::read_body,
    responses::{InboxDelivery, InboxShown, InboxStarted, RotatedSecret},
};
use crate::{
    http::json_ok,
    mock::{
        Inbox, MockServer, inbox::DEFAULT_ACCOUNT, journey, reply::FINAL_STATUSES,
        webhook_chaos::WebhookFault,
    },
};

/// The receiver that the last `POST webhooks` chose.
pub(in crate::mock) enum WebhookReceiver {
    Inbox(Inbox),
    /// The suite's own handler at this address.
    Handler(String),
}

impl WebhookReceiver {
    /// Takes the place of the receiver before, whose inbox is closed.
    pub(super) fn replace(self, current: &mut Option<Self>) {
        if let Some(Self::Inbox(previous)) = current.replace(self) {
            previous.close();
        }
    }
}

/// The inbox to start.
#[derive(Deserialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub(super) struct WantedInbox {
    /// The statuses of its first responses; later ones are 200.
    #[serde(default)]
    #[cfg_attr(test, schema(schema_with = schemas::statuses))]
    reply: Vec<u16>,
    /// The address of the suite's own handler, to which events are sent instead.
    #[serde(default, deserialize_with = "present")]
    #[cfg_attr(test, schema(value_type = String, required = false))]
    url: Option<String>,
    /// Further kinds of events, in addition to those that every endpoint gets.
    #[serde(default)]
    #[cfg_attr(test, schema(schema_with = schemas::event_kinds))]
    events: Vec<String>,
    /// The secret that signs events to `url`: `whsec_` and the base64 of 24-64 bytes. By default it is generated.
    #[serde(default)]
    #[cfg_attr(test, schema(pattern = "^whsec_[A-Za-z0-9+/]{32,86}={0,2}$"))]
    secret: Option<String>,
}

/// Reads a value that may be absent but not null, because null is the mistake of a suite that has no address.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    String::deserialize(deserializer).map(Some)
}

impl WantedInbox {
    /// Starts the inbox, or sends webhooks to `url`.
    pub(super) async fn start(
        &self,
        server: &MockServer,
    ) -> Result<(InboxStarted, WebhookReceiver), Refusal> {
        let mut builder = server.webhook_inbox().kinds(self.check()?);
        let Some(url) = &self.url else {
            let inbox = builder.reply(self.reply.iter().copied()).start().await;
            let started = InboxStarted { url: inbox.url().to_owned(), secret: None };
            return Ok((started, WebhookReceiver::Inbox(inbox)));
        };
        if let Some(secret) = &self.secret {
            builder = builder.secret(parse_secret(secret)?);
        }
        let secret = Some(builder.try_send_to(url)?.expose());
        Ok((InboxStarted { url: url.clone(), secret }, WebhookReceiver::Handler(url.clone())))
    }

    /// Checks the request and returns its kinds of events.
    fn check(&self) -> Result<WebhookEventKinds, Refusal> {
        let is_status = |status: &u16| (FINAL_STATUSES.0..=FINAL_STATUSES.1).contains(status);
        if !self.reply.iter().all(is_status) {
            return Err(invalid_body(
                "reply must be a list of final statuses, 200 to 999",
                "reply debe ser una lista de estados finales, de 200 a 999",
            ));
        }
        if self.url.is_some() && !self.reply.is_empty() {
            return Err(invalid_body(
                "reply is for the mock server's inbox: a url answers for itself",
                "reply es para el buzón del servidor simulado: una url responde por sí misma",
            ));
        }
        if self.url.is_none() && self.secret.is_some() {
            return Err(invalid_field(
                "secret",
                "secret is for a url: the mock server's inbox verifies by itself",
                "secret es para una url: el buzón del servidor simulado verifica por sí mismo",
            ));
        }
        WebhookEventKinds::from_codes(self.events.iter().map(String::as_str)).ok_or_else(|| {
            let known: Vec<_> = EventKind::KNOWN.iter().map(EventKind::code).collect();
            let known = known.join(", ");
            invalid_field(
                "events",
                &format!("the kinds of events are {known}"),
                &format!("los tipos de eventos son {known}"),
            )
        })
    }
}

fn parse_secret(text: &str) -> Result<Secret, Refusal> {
    Secret::parse(text).map_err(|error| {
        let es = "secret debe ser whsec_ seguido del base64 de 24-64 bytes";
        invalid_field("secret", &error.to_string(), es)
    })
}

/// Handles POST webhooks: starts an inbox for webhooks, which responds with the statuses of `reply`, then with 200;
/// or sends them to `url`, and returns the secret that signs them. It replaces an earlier inbox.
pub(super) async fn start_inbox(State(state): StateExtractor, request: Request) -> ControlResult {
    let requested: WantedInbox = read_body(request, "reply, a list of statuses, or url").await?;
    let mut current = state.webhook_receiver.lock().await;
    let (started, receiver) = requested.start(&state.server).await?;
    receiver.replace(&mut current);
    Ok(json_ok(&started))
}

/// Handles GET webhooks with the deliveries of the inbox, or those to the suite's own handler.
pub(super) async fn read_inbox(State(state): StateExtractor) -> Response {
    // A store in memory does not fail.
    let endpoint = state.server.endpoint(DEFAULT_ACCOUNT).await.ok().flatten();
    let receiver = state.webhook_receiver.lock().await;
    let (url, deliveries) = match &*receiver {
        None => (None, Vec::new()),
        Some(WebhookReceiver::Inbox(inbox)) => {
            let deliveries = inbox.deliveries();
            (Some(inbox.url()), deliveries.iter().map(InboxDelivery::received).collect())
        }
        Some(WebhookReceiver::Handler(url)) => {
            let sent = state.server.webhooks().deliveries();
            let sent = sent.iter().filter(|sent| sent.url == *url);
            (Some(url.as_str()), sent.map(InboxDelivery::sent).collect())
        }
    };
    let mut hints = journey::hints(&state.server.service);
    let mut listening = false;
    if let Some(Endpoint { url: current, disabled, .. }) = &endpoint {
        let is_own = url == Some(current.as_str());
        listening = is_own && disabled.is_none();
        if !is_own {
            hints.push(format!(
                "webhooks go to {current}, which no POST /__mock/webhooks has chosen here: choose the receiver with it"
            ));
        }
    }
    let fault = state.server.webhooks().fault();
    json_ok(&InboxShown { listening, deliveries, fault, hints })
}

/// Handles POST webhooks/faults: plans the fault of every event from now on, in place of the one before.
pub(super) async fn plan_fault(State(state): StateExtractor, request: Request) -> ControlResult {
    let fault: WebhookFault = read_body(request, "a fault of webhooks").await?;
    if let Some((english, spanish)) = fault.violation() {
        return Err(invalid_field("seconds", english, spanish).into());
    }
    state.server.webhooks().plan(fault);
    Ok(read_inbox(State(state)).await)
}

/// Handles DELETE webhooks/faults.
pub(super) async fn delete_fault(State(state): StateExtractor) -> Response {
    state.server.webhooks().clear_fault();
    read_inbox(State(state)).await
}

/// Handles POST webhooks/rotate: gives the endpoint a new secret. The old one also signs for 24 hours.
pub(super) async fn rotate_secret(State(state): StateExtractor) -> ControlResult {
    let secret = state.server.webhooks().try_rotate_secret()?.expose();
    Ok(json_ok(&RotatedSecret { secret }))
}
