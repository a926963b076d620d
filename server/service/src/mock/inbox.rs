//! A receiver of webhooks for tests, on `127.0.0.1`. It replies as the test chooses, and the SDK verifies events.

use std::{
    collections::{HashSet, VecDeque},
    sync::{Arc, Mutex, PoisonError, atomic::Ordering},
    time::Duration,
};

use axum::{
    Router,
    body::Body,
    http::{HeaderValue, Request, Response, StatusCode, header},
};
use chrono::{DateTime, Utc};
use parcelo::webhook::{ID, Secret, Webhook, WebhookError};
use parcelo_domain::{TraceContext, webhooks::WebhookEventKinds};
use parcelo_system::clock::Clock as _;
use parcelo_types::model::{EventData, StatusChange, WebhookEvent};
use tokio::sync::watch;

use super::{
    MockServer, Reply, bind_free_port, journey,
    movable_clock::MovableClock,
    sync::block_on,
    webhook_chaos::{ChaosDispatcher, push_delivery},
};
use crate::{
    http::{Listener, Stop, read_body},
    service::{EndpointError, Service},
};

/// Maximum time that a test waits for an event, in real time, unless it sets another.
const WAIT_TIMEOUT: Duration = Duration::from_secs(5);
/// The account whose events a receiver gets, unless it sets another.
pub(super) const DEFAULT_ACCOUNT: &str = "default";
/// Maximum size of a body that is read: 256 KiB, far above any webhook of the service.
const MAX_DELIVERY_BYTES: usize = 256 * 1024;

/// A delivery as it arrived, with any response.
#[derive(Debug, Clone)]
pub struct Received {
    /// `webhook-id`: the same at every attempt.
    pub id: String,
    /// The time of its arrival, by the server's clock.
    pub at: DateTime<Utc>,
    /// Its event, if its signature and timestamp are valid.
    pub event: Result<WebhookEvent, WebhookError>,
    /// The `traceparent` header, if it had one.
    pub traceparent: Option<String>,
    /// The body as received.
    pub body: Vec<u8>,
    /// The status of the response; 0 if there was none.
    pub status: u16,
}

/// The error if no such event arrived in time. The message also names parcels that could not have moved, because
/// their tracking number selects no simulated journey or because the clock was not moved.
#[derive(Debug, Clone, thiserror::Error)]
#[error(
    "no such event arrived within {waited:?} of real time; received: {events:?}{}",
    bullet_list(hints)
)]
#[non_exhaustive]
pub struct InboxTimeout {
    /// The time that the test waited, in real time.
    pub waited: Duration,
    /// The events that arrived.
    pub events: Vec<WebhookEvent>,
    /// Explanations why the event may never arrive.
    pub hints: Vec<String>,
}

fn bullet_list(hints: &[String]) -> String {
    hints.iter().flat_map(|hint| ["\n- ", hint.as_str()]).collect()
}

/// Configures a receiver; [`InboxBuilder::start`] starts it.
#[derive(Debug)]
#[must_use = "`start` starts the receiver"]
pub struct InboxBuilder<'a> {
    server: &'a MockServer,
    replies: VecDeque<Reply>,
    account: String,
    kinds: WebhookEventKinds,
    secret: Option<Secret>,
    max_wait: Duration,
}

impl<'a> InboxBuilder<'a> {
    pub(super) fn new(server: &'a MockServer) -> Self {
        Self {
            server,
            replies: VecDeque::new(),
            account: DEFAULT_ACCOUNT.to_owned(),
            kinds: WebhookEventKinds::default(),
            secret: None,
            max_wait: WAIT_TIMEOUT,
        }
    }

    /// Sets the responses to the first deliveries, in order. All later ones are 200.
    ///
    /// # Panics
    ///
    /// If a number is not the status of a final response, 200 to 999.
    pub fn reply<R: Into<Reply>>(mut self, replies: impl IntoIterator<Item = R>) -> Self {
        self.replies = replies.into_iter().map(Into::into).collect();
        self
    }

    /// Adds kinds of events: `parcel.created`, `parcel.voided`, `manifest.submitted`.
    ///
    /// # Panics
    ///
    /// If one is not a kind of event.
    pub fn events<'k>(mut self, kinds: impl IntoIterator<Item = &'k str>) -> Self {
        #[expect(clippy::expect_used, reason = "a test's own constant is wrong; documented")]
        let named = WebhookEventKinds::from_codes(kinds).expect("known kinds of events");
        self.kinds = named;
        self
    }

    /// Sets the account whose events it receives.
    pub fn account(mut self, account: &str) -> Self {
        account.clone_into(&mut self.account);
        self
    }

    /// Sets the secret that signs its webhooks, in place of a generated one. If the account's endpoint has another one
    /// already, it is rotated: the old one also signs for 24 hours.
    pub fn secret(mut self, secret: Secret) -> Self {
        self.secret = Some(secret);
        self
    }

    /// Sets the maximum time that the receiver's `wait_for` and `wait_for_event` wait, in real time; 5 s by default.
    pub const fn wait_at_most(mut self, max_wait: Duration) -> Self {
        self.max_wait = max_wait;
        self
    }

    /// Starts the receiver and makes it the account's endpoint.
    ///
    /// # Panics
    ///
    /// If no port of `127.0.0.1` can be bound.
    pub async fn start(self) -> Inbox {
        let (socket, url) = self.server.in_own_runtime(bind_free_port()).await;
        let url = format!("{url}/");
        let (server, replies, max_wait) =
            (self.server, Mutex::new(self.replies.clone()), self.max_wait);
        #[expect(clippy::expect_used, reason = "a store in memory does not fail")]
        let secret = block_on(self.set_endpoint(url.clone())).expect("an address of this machine");
        #[expect(clippy::expect_used, reason = "the server's own secret is one")]
        let webhook = Webhook::new([secret]).expect("a secret");
        let clock = Arc::clone(&server.clock);
        let (deliveries, _) = watch::channel(VecDeque::new());
        let receiver = Arc::new(Receiver { webhook, clock, replies, deliveries });
        let routes = Router::new().fallback({
            let receiver = Arc::clone(&receiver);
            move |request| async move { receiver.receive(request).await }
        });
        let _entered = server.enter_own_runtime();
        let listener = Listener::start(socket, routes, server.stop.clone());
        server.send_webhooks();
        Inbox { receiver, url, listener, service: Arc::clone(&server.service), max_wait }
    }

    /// Makes your own receiver the account's endpoint instead, and returns the secret that signs its webhooks. Their
    /// timestamps come from the server's clock: use [`Clock::system`](super::Clock::system) if the receiver compares
    /// them with the machine's.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use parcelo::webhook::Webhook;
    /// use parcelo_server::mock::{Clock, MockServer};
    ///
    /// let server = MockServer::builder().clock(Clock::system()).start().await;
    /// let secret = server.webhook_inbox().send_to("http://127.0.0.1:3000/");
    /// let webhook = Webhook::new([secret])?; // what your receiver verifies with
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// [`Webhooks::deliveries`](super::Webhooks::deliveries) returns what was sent, and the responses.
    ///
    /// # Panics
    ///
    /// If it is not an http or https address.
    pub fn send_to(self, url: &str) -> Secret {
        #[expect(clippy::expect_used, reason = "a test's own constant is wrong; documented")]
        let secret = self.try_send_to(url).expect("an address that webhooks can be sent to");
        secret
    }

    /// Makes your own receiver the endpoint, like [`InboxBuilder::send_to`], at an address that may be wrong.
    pub(super) fn try_send_to(self, url: &str) -> Result<Secret, EndpointError> {
        let server = self.server;
        let secret = block_on(self.set_endpoint(url.to_owned()))?;
        server.send_webhooks();
        Ok(secret)
    }

    /// Sets the kinds of events, already parsed.
    pub(super) const fn kinds(mut self, kinds: WebhookEventKinds) -> Self {
        self.kinds = kinds;
        self
    }

    async fn set_endpoint(self, url: String) -> Result<Secret, EndpointError> {
        self.server.choose_receiver(&self.account, (url, self.kinds), self.secret).await
    }
}

impl MockServer {
    /// Starts the task that sends webhooks, once for all inboxes.
    fn send_webhooks(&self) {
        // On the runtime of a test it would end with that test, and the next one would get no webhooks.
        let _entered = self.enter_own_runtime();
        let dispatcher = Arc::clone(&self.dispatcher);
        if self.sends_webhooks.swap(true, Ordering::Relaxed) {
            // Events that are waiting go to the new receiver. A store in memory does not fail.
            tokio::spawn(async move { dispatcher.deliver_due().await.is_ok() });
            return;
        }
        let (service, clock) = (Arc::clone(&self.service), Arc::clone(&self.clock));
        tokio::spawn(run_dispatcher(dispatcher, service, clock, self.stop.clone()));
    }
}

/// Sends at each change of the outbox and at each tick of the clock.
async fn run_dispatcher(
    dispatcher: Arc<ChaosDispatcher>,
    service: Arc<Service>,
    clock: Arc<MovableClock>,
    stop: Stop,
) {
    loop {
        // A store in memory does not fail.
        let _ = dispatcher.deliver_due().await;
        tokio::select! {
            () = service.wait_for_outbox_change() => {}
            () = clock.wait_for_tick() => {}
            () = stop.requested() => return,
        }
    }
}

/// The handler that receives the deliveries.
#[derive(Debug)]
struct Receiver {
    webhook: Webhook,
    clock: Arc<MovableClock>,
    replies: Mutex<VecDeque<Reply>>,
    deliveries: watch::Sender<VecDeque<Received>>,
}

impl Receiver {
    async fn receive(&self, request: Request<Body>) -> Response<Body> {
        let (head, body) = request.into_parts();
        // A body that ends early or is too long is taken as empty, so that its signature is wrong.
        let body = read_body(body, MAX_DELIVERY_BYTES).await.unwrap_or_default();
        let next = self.replies.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
        let reply = next.unwrap_or(Reply::status(StatusCode::OK.as_u16()));
        let at = self.clock.now().to_utc();
        let verified = self.webhook.verify_at(&head.headers, &body, at);
        let event = verified.and_then(|verified| verified.event());
        let header = |name: &str| Some(head.headers.get(name)?.to_str().ok()?.to_owned());
        let (id, traceparent) = (header(ID).unwrap_or_default(), header(TraceContext::HEADER));
        let status = reply.status_code();
        let received = Received { id, at, event, traceparent, body, status };
        self.deliveries.send_modify(|all| push_delivery(all, received));
        let mut response = reply.response().await;
        response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
        response
    }
}

/// A receiver of webhooks. It keeps the newest 10,000 deliveries.
#[derive(Debug)]
pub struct Inbox {
    receiver: Arc<Receiver>,
    url: String,
    listener: Listener,
    service: Arc<Service>,
    max_wait: Duration,
}

impl Inbox {
    /// Returns its address.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Closes its socket after another receiver has replaced it.
    pub(super) fn close(self) {
        self.listener.abort();
    }

    /// Returns every kept delivery in the order of arrival, with any response.
    pub fn deliveries(&self) -> Vec<Received> {
        self.receiver.deliveries.borrow().iter().cloned().collect()
    }

    /// Returns every event that was verified and got a 2xx response, without repetition.
    pub fn events(&self) -> Vec<WebhookEvent> {
        events(&self.receiver.deliveries.borrow())
    }

    /// Waits up to 5 s of real time, or as long as [set](InboxBuilder::wait_at_most), for the first status change that matches. It does not move the server's clock.
    pub async fn wait_for(
        &self,
        matches: impl Fn(&StatusChange) -> bool,
    ) -> Result<StatusChange, InboxTimeout> {
        let status_change = |event: &WebhookEvent| match &event.data {
            EventData::StatusChanged(change) => matches(change).then(|| change.clone()),
            _ => None,
        };
        self.wait(status_change).await
    }

    /// Waits for an event of any kind, like [`wait_for`](Self::wait_for).
    pub async fn wait_for_event(
        &self,
        matches: impl Fn(&WebhookEvent) -> bool,
    ) -> Result<WebhookEvent, InboxTimeout> {
        self.wait(|event| matches(event).then(|| event.clone())).await
    }

    async fn wait<T>(
        &self,
        choose: impl Fn(&WebhookEvent) -> Option<T>,
    ) -> Result<T, InboxTimeout> {
        let mut received = self.receiver.deliveries.subscribe();
        let mut found = None;
        let arrival = received.wait_for(|all| {
            found = events(all).iter().find_map(&choose);
            found.is_some()
        });
        let _ = tokio::time::timeout(self.max_wait, arrival).await.map(drop);
        found.ok_or_else(|| InboxTimeout {
            waited: self.max_wait,
            events: self.events(),
            hints: journey::hints(&self.service),
        })
    }
}

fn events(received: &VecDeque<Received>) -> Vec<WebhookEvent> {
    let mut seen = HashSet::new();
    let accepted = received.iter().filter(|delivery| (200..300).contains(&delivery.status));
    let events =
        accepted.filter_map(|delivery| Some((&delivery.id, delivery.event.as_ref().ok()?)));
    events.filter(|(id, _)| seen.insert(*id)).map(|(_, event)| event.clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mock::webhook_chaos::MAX_DELIVERIES;

    #[test]
    fn a_full_inbox_removes_the_oldest() {
        let (mut all, event) = (VecDeque::new(), Err(WebhookError::Signature));
        for id in 0..MAX_DELIVERIES + 2 {
            let (id, at, event) = (id.to_string(), DateTime::UNIX_EPOCH, event.clone());
            let (traceparent, body) = (None, Vec::new());
            push_delivery(&mut all, Received { id, at, event, traceparent, body, status: 200 });
        }
        assert_eq!(
            (all.len(), all[0].id.as_str(), all[MAX_DELIVERIES - 1].id.as_str()),
            (MAX_DELIVERIES, "2", "10001")
        );
    }
}
