//! A receiver of webhooks for tests: on `127.0.0.1`, with replies to choose, verified by the SDK.

use std::{
    collections::{HashSet, VecDeque},
    net::SocketAddr,
    sync::{Arc, Mutex, PoisonError, atomic::Ordering},
    time::Duration,
};

use axum::{
    Router,
    body::Body,
    http::{HeaderValue, Request, Response, StatusCode, header},
};
use chrono::{DateTime, Utc};
use futures_util::FutureExt;
use parcelo::{
    Environment,
    model::{EventData, StatusChange, WebhookEvent},
    webhook::{ID, Secret, Webhook, WebhookError},
};
use tokio::{net::TcpListener, sync::watch};

use super::{MockServer, Reply, journey, pace::MovableClock};
use crate::{
    clock::Clock as _,
    domain::{
        Tenant,
        webhooks::{AllowedHosts, Kinds},
    },
    http::{Listener, Stop, read_body},
    ids::named,
    service::{EndpointRequest, Endpoints, Service},
    webhook::Dispatcher,
};

/// How long a test waits, in real time, for what never comes.
const PATIENCE: Duration = Duration::from_secs(5);
/// How many deliveries are remembered, the newest.
const MOST: usize = 10_000;
/// The most bytes of a delivery that are read: 256 KiB, and no webhook is as long.
const LONGEST: usize = 256 * 1024;

/// One delivery as it arrived, whatever it was answered.
#[derive(Debug, Clone)]
pub struct Received {
    /// `webhook-id`: the same at every attempt.
    pub id: String,
    /// What the server's clock showed.
    pub at: DateTime<Utc>,
    /// What it tells, when its signature and time are right.
    pub event: Result<WebhookEvent, WebhookError>,
    /// The body as it came.
    pub body: Vec<u8>,
    /// The status of the answer; 0 for none.
    pub status: u16,
}

/// No such event came in 5 s. The text says so too when a parcel could not have moved: its tracking number
/// chooses no simulated journey, or the clock was not moved.
#[derive(Debug, Clone, thiserror::Error)]
#[error("no such event came within 5 s of real time; these did: {events:?}{}", listed(hints))]
#[non_exhaustive]
pub struct NotReceived {
    /// The events that came.
    pub events: Vec<WebhookEvent>,
    /// Why an event that was waited for may never come, in words.
    pub hints: Vec<String>,
}

fn listed(hints: &[String]) -> String {
    hints.iter().flat_map(|hint| ["\n- ", hint.as_str()]).collect()
}

/// A receiver that is to be set up; [`InboxBuilder::start`] starts it.
#[derive(Debug)]
#[must_use = "nothing is received before `start`"]
pub struct InboxBuilder<'a> {
    server: &'a MockServer,
    replies: VecDeque<Reply>,
    account: String,
    kinds: Kinds,
}

impl<'a> InboxBuilder<'a> {
    pub(super) fn new(server: &'a MockServer) -> Self {
        let account = "default".to_owned();
        Self { server, replies: VecDeque::new(), account, kinds: Kinds::default() }
    }

    /// The answers to the first deliveries, in order; every later one is answered 200.
    ///
    /// # Panics
    ///
    /// When a number is no status of a final answer: 200 to 999.
    pub fn reply<R: Into<Reply>>(mut self, replies: impl IntoIterator<Item = R>) -> Self {
        self.replies = replies.into_iter().map(Into::into).collect();
        self
    }

    /// Further kinds of events: `parcel.created`, `parcel.voided`, `manifest.submitted`.
    ///
    /// # Panics
    ///
    /// When one is no kind.
    pub fn events<'k>(mut self, kinds: impl IntoIterator<Item = &'k str>) -> Self {
        #[expect(clippy::expect_used, reason = "a test's own constant is wrong; documented")]
        let named = Kinds::named(kinds).expect("kinds of events");
        self.kinds = named;
        self
    }

    /// The account whose events it receives.
    pub fn account(mut self, account: &str) -> Self {
        account.clone_into(&mut self.account);
        self
    }

    /// Starts the receiver and makes it the account's endpoint.
    ///
    /// # Panics
    ///
    /// When no port of `127.0.0.1` can be listened on.
    pub async fn start(self) -> Inbox {
        let address = SocketAddr::from(([127, 0, 0, 1], 0));
        #[expect(clippy::expect_used, reason = "a test cannot go on; documented")]
        let socket = TcpListener::bind(address).await.expect("a free port on 127.0.0.1");
        #[expect(clippy::expect_used, reason = "a bound socket has an address")]
        let url =
            format!("http://{}/", socket.local_addr().expect("a bound socket has an address"));
        let (server, replies) = (self.server, Mutex::new(self.replies.clone()));
        let secret = self.set_endpoint(url.clone());
        #[expect(clippy::expect_used, reason = "the server's own secret is one")]
        let webhook = Webhook::new([secret]).expect("a secret");
        let clock = Arc::clone(&server.clock);
        let (received, _) = watch::channel(VecDeque::new());
        let desk = Arc::new(Desk { webhook, clock, replies, received });
        let routes = Router::new().fallback({
            let desk = Arc::clone(&desk);
            move |request| async move { desk.take(request).await }
        });
        let listener = Listener::start(socket, routes, server.stop.clone());
        server.send_webhooks();
        Inbox { desk, url, listener, service: Arc::clone(&server.service) }
    }

    /// Makes a receiver of your own the account's endpoint instead, and tells the secret that its
    /// webhooks are signed with. Its timestamps are those of the server's clock: let that be
    /// [`Clock::system`](super::Clock::system) if the receiver verifies them by the machine's.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use parcelo::webhook::Webhook;
    /// use parcelo_server::mock::{Clock, MockServer};
    ///
    /// let server = MockServer::builder().clock(Clock::system()).start().await;
    /// let secret = server.webhook_inbox().elsewhere("http://127.0.0.1:3000/");
    /// let webhook = Webhook::new([secret])?; // what your receiver verifies with
    /// # Ok(())
    /// # }
    /// ```
    pub fn elsewhere(self, url: &str) -> Secret {
        let server = self.server;
        let secret = self.set_endpoint(url.to_owned());
        server.send_webhooks();
        secret
    }

    fn set_endpoint(self, url: String) -> Secret {
        let Self { server, account, kinds, .. } = self;
        let (store, ids) = (server.service.store(), &server.ids);
        let now = server.clock.now();
        let made = async {
            let account = store.account(&account, named("acc", ids.ulid(now)), now).await?;
            let tenant = Tenant { account, environment: Environment::Sandbox };
            let request = EndpointRequest { tenant, url, kinds, reach: AllowedHosts::Here };
            Endpoints { store, ids }.set(request, now).await
        };
        #[expect(
            clippy::expect_used,
            reason = "a store in memory answers at once, and does not fail"
        )]
        let endpoint = made.now_or_never().expect("an answer at once").expect("an endpoint");
        endpoint.secret
    }
}

/// What makes a mock server send: news in the outbox, and time if it passes by itself.
pub(super) struct Pulse {
    service: Arc<Service>,
    clock: Arc<MovableClock>,
    stop: Stop,
}

impl MockServer {
    /// Sends webhooks from now on; once is enough, however many inboxes there are.
    fn send_webhooks(&self) {
        let dispatcher = Arc::clone(&self.dispatcher);
        if self.sends.swap(true, Ordering::Relaxed) {
            // What waits already is for the new receiver. A store in memory does not fail.
            tokio::spawn(async move { dispatcher.deliver_due().await.is_ok() });
            return;
        }
        let (service, clock) = (Arc::clone(&self.service), Arc::clone(&self.clock));
        let pulse = Pulse { service, clock, stop: self.stop.clone() };
        tokio::spawn(send(dispatcher, pulse));
    }
}

async fn send(dispatcher: Arc<Dispatcher>, pulse: Pulse) {
    loop {
        // A store in memory does not fail.
        let _ = dispatcher.deliver_due().await;
        tokio::select! {
            () = pulse.service.outbox_changed() => {}
            () = pulse.clock.beat() => {}
            () = pulse.stop.requested() => return,
        }
    }
}

/// Where deliveries are taken in.
#[derive(Debug)]
struct Desk {
    webhook: Webhook,
    clock: Arc<MovableClock>,
    replies: Mutex<VecDeque<Reply>>,
    received: watch::Sender<VecDeque<Received>>,
}

impl Desk {
    async fn take(&self, request: Request<Body>) -> Response<Body> {
        let (head, body) = request.into_parts();
        // A body that breaks off, or is too long, has no right signature.
        let body = read_body(body, LONGEST).await.unwrap_or_default();
        let next = self.replies.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
        let reply = next.unwrap_or(Reply::status(StatusCode::OK.as_u16()));
        let at = self.clock.now().to_utc();
        let verified = self.webhook.verify_at(&head.headers, &body, at);
        let event = verified.and_then(|verified| verified.event());
        let id =
            head.headers.get(ID).and_then(|id| id.to_str().ok()).unwrap_or_default().to_owned();
        let status = reply.status_code();
        self.received.send_modify(|all| keep(all, Received { id, at, event, body, status }));
        let mut response = reply.response().await;
        response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
        response
    }
}

/// Remembers a delivery, and forgets the oldest when there are too many.
fn keep(all: &mut VecDeque<Received>, one: Received) {
    if all.len() == MOST {
        all.pop_front();
    }
    all.push_back(one);
}

/// A receiver of webhooks. It remembers the newest 10,000 deliveries.
#[derive(Debug)]
pub struct Inbox {
    desk: Arc<Desk>,
    url: String,
    listener: Listener,
    service: Arc<Service>,
}

impl Inbox {
    /// Its address.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Closes its socket: another receiver has taken its place.
    pub(super) fn end(self) {
        self.listener.end();
    }

    /// Every delivery that is remembered, in the order in which they came, whatever they were
    /// answered.
    pub fn deliveries(&self) -> Vec<Received> {
        self.desk.received.borrow().iter().cloned().collect()
    }

    /// Every event that was verified and answered with a 2xx status, each once.
    pub fn events(&self) -> Vec<WebhookEvent> {
        events(&self.desk.received.borrow())
    }

    /// The first change of a status that is as wanted; waits up to 5 s of real time for it. Times
    /// of the server's own are not waited for: move its clock.
    pub async fn wait_for(
        &self,
        wanted: impl Fn(&StatusChange) -> bool,
    ) -> Result<StatusChange, NotReceived> {
        let of_change = |event: &WebhookEvent| match &event.data {
            EventData::StatusChanged(change) => wanted(change).then(|| change.clone()),
            _ => None,
        };
        self.wait(of_change).await
    }

    /// As [`wait_for`](Self::wait_for), for any kind of event.
    pub async fn wait_for_event(
        &self,
        wanted: impl Fn(&WebhookEvent) -> bool,
    ) -> Result<WebhookEvent, NotReceived> {
        self.wait(|event| wanted(event).then(|| event.clone())).await
    }

    async fn wait<T>(&self, choose: impl Fn(&WebhookEvent) -> Option<T>) -> Result<T, NotReceived> {
        let mut received = self.desk.received.subscribe();
        let mut found = None;
        let seen = received.wait_for(|all| {
            found = events(all).iter().find_map(&choose);
            found.is_some()
        });
        let _ = tokio::time::timeout(PATIENCE, seen).await.map(drop);
        found.ok_or_else(|| NotReceived {
            events: self.events(),
            hints: journey::hints(&self.service),
        })
    }
}

fn events(received: &VecDeque<Received>) -> Vec<WebhookEvent> {
    let mut seen = HashSet::new();
    let taken = received.iter().filter(|delivery| (200..300).contains(&delivery.status));
    let events = taken.filter_map(|delivery| Some((&delivery.id, delivery.event.as_ref().ok()?)));
    events.filter(|(id, _)| seen.insert(*id)).map(|(_, event)| event.clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_inbox_forgets_the_oldest_of_too_many() {
        let (mut all, event) = (VecDeque::new(), Err(WebhookError::Signature));
        for id in 0..MOST + 2 {
            let (id, at, event) = (id.to_string(), DateTime::UNIX_EPOCH, event.clone());
            keep(&mut all, Received { id, at, event, body: Vec::new(), status: 200 });
        }
        assert_eq!(
            (all.len(), all[0].id.as_str(), all[MOST - 1].id.as_str()),
            (MOST, "2", "10001")
        );
    }
}
