//! Faults of webhooks against a receiver as the documentation advises: it verifies with the SDK, processes each event
//! once, and ignores a status that is older than the parcel's.

use std::{
    collections::HashSet,
    sync::{Arc, Mutex},
    time::Duration,
};

use axum::{
    Router,
    body::Bytes,
    http::{HeaderMap, StatusCode},
};
use parcelo::{
    ParcelStatus,
    model::EventData,
    webhook::{Secret, Webhook, WebhookError},
};
use parcelo_server::mock::{MockServer, WebhookDelivery, Webhooks};
use tokio::net::TcpListener;

use crate::{
    api::{Api, order_with_number},
    deliveries::serve_routes,
    embedded,
};

const HALF_AN_HOUR: Duration = Duration::from_secs(30 * 60);

/// The status of the receiver's only parcel, and the messages that it received.
#[derive(Debug, Default, Clone, PartialEq)]
struct Shop {
    status: Option<ParcelStatus>,
    /// The sequence of that status.
    sequence: u32,
    processed: HashSet<String>,
    /// The sequences of the verified events, as they arrived.
    arrived: Vec<u32>,
    refused: Vec<WebhookError>,
}

/// A receiver of the SDK's webhooks.
struct Receiver {
    webhook: Webhook,
    shop: Mutex<Shop>,
}

impl Receiver {
    /// Starts the receiver of a server's webhooks, by the server's clock and with a secret of its own.
    async fn start(server: &MockServer) -> Arc<Self> {
        let secret = Secret::from_random(&[7; 32]);
        let webhook = Webhook::new([secret.clone()]).unwrap();
        let webhook = webhook.reject_replays(1_000).clock(server.clock().reader());
        let receiver = Arc::new(Self { webhook, shop: Mutex::default() });
        let socket = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let url = format!("http://{}/hook", socket.local_addr().unwrap());
        let shared = Arc::clone(&receiver);
        let routes = Router::new().fallback(move |headers: HeaderMap, body: Bytes| async move {
            shared.receive(&headers, &body)
        });
        tokio::spawn(serve_routes(socket, routes));
        let used = server.webhook_inbox().secret(secret.clone()).send_to(&url);
        assert_eq!(used.expose(), secret.expose());
        receiver
    }

    fn receive(&self, headers: &HeaderMap, body: &[u8]) -> StatusCode {
        let mut shop = self.shop.lock().unwrap();
        let message = self.webhook.verify(headers, body);
        let (id, event) =
            match message.and_then(|message| Ok((message.id().to_owned(), message.event()?))) {
                Ok(message) => message,
                Err(error) => {
                    shop.refused.push(error);
                    return StatusCode::BAD_REQUEST;
                }
            };
        let EventData::StatusChanged(change) = event.data else { panic!("{:?}", event.data) };
        let sequence = change.sequence.unwrap();
        shop.arrived.push(sequence);
        if shop.processed.insert(id) && sequence > shop.sequence {
            (shop.status, shop.sequence) = (Some(change.new_status), sequence);
        }
        StatusCode::NO_CONTENT
    }
}

/// Ships a parcel that is delivered after 20 minutes, with this fault. Returns the receiver's state half an hour
/// later, and the deliveries.
async fn ship_with(plan: impl Fn(Webhooks<'_>)) -> (Shop, Vec<WebhookDelivery>) {
    let (server, api) = embedded::start_with_key().await;
    ship(&server, &api, plan).await
}

async fn ship(
    server: &MockServer,
    api: &Api,
    plan: impl Fn(Webhooks<'_>),
) -> (Shop, Vec<WebhookDelivery>) {
    let receiver = Receiver::start(server).await;
    plan(server.webhooks());
    api.create_parcel(&order_with_number("order-0001", "SB-SUCCESS-0001")).await;
    server.clock().advance(HALF_AN_HOUR).await;
    let shop = receiver.shop.lock().unwrap().clone();
    assert_eq!((shop.status.as_ref(), shop.sequence), (Some(&ParcelStatus::Delivered), 6));
    assert_eq!(shop.processed.len(), 5, "each event once: {shop:?}");
    (shop, server.webhooks().deliveries())
}

#[tokio::test]
async fn without_a_fault_each_event_arrives_once_and_in_order() {
    let (shop, deliveries) = ship_with(|_| {}).await;
    assert_eq!((shop.arrived, shop.refused), (vec![2, 3, 4, 5, 6], vec![]));
    assert!(deliveries.iter().all(|sent| (sent.status, sent.fault) == (204, None)));
}

#[tokio::test]
async fn a_duplicate_has_the_same_id_and_body_and_a_signature_of_its_own() {
    let (shop, deliveries) = ship_with(|webhooks| webhooks.duplicate()).await;
    assert_eq!(shop.refused, [], "a copy of the bytes would be refused as a replay");
    assert_eq!(shop.arrived, [2, 2, 3, 3, 4, 4, 5, 5, 6, 6]);
    for pair in deliveries.chunks(2) {
        assert_eq!((&pair[0].id, &pair[0].body), (&pair[1].id, &pair[1].body));
        assert_ne!(pair[0].headers, pair[1].headers);
        assert_eq!([pair[0].fault, pair[1].fault], [Some("duplicate"), None]);
    }
}

#[tokio::test]
async fn reordered_events_arrive_together_with_the_first_one_last() {
    let run = async || ship_with(|webhooks| webhooks.reorder(HALF_AN_HOUR)).await;
    let (shop, deliveries) = run().await;
    let mut sorted = shop.arrived.clone();
    sorted.sort_unstable();
    assert_eq!((sorted, shop.arrived.last()), (vec![2, 3, 4, 5, 6], Some(&2)));
    let is_expected =
        |sent: &WebhookDelivery| (sent.at, sent.fault) == (deliveries[0].at, Some("reorder"));
    assert!(deliveries.iter().all(is_expected), "{deliveries:?}");
    assert_eq!(run().await.0.arrived, shop.arrived, "the same seed has the same order");
}

#[tokio::test]
async fn a_delayed_event_is_late_and_signed_when_it_is_sent() {
    let (shop, deliveries) = ship_with(|webhooks| webhooks.delay(Duration::from_secs(400))).await;
    assert_eq!((shop.arrived, shop.refused), (vec![2, 3, 4, 5, 6], vec![]));
    let at = deliveries.iter().map(|sent| sent.at.to_rfc3339()).collect::<Vec<_>>();
    assert_eq!(at[..2], ["2026-01-05T08:06:40+00:00", "2026-01-05T08:11:40+00:00"]);
    assert!(deliveries.iter().all(|sent| sent.fault == Some("delay")), "{deliveries:?}");
}

#[tokio::test]
async fn a_refused_signature_is_followed_by_a_valid_one() {
    type Plan = fn(Webhooks<'_>);
    let table: [(Plan, &str, WebhookError); 2] = [
        (|webhooks| webhooks.wrong_signature(), "wrongSignature", WebhookError::Signature),
        (
            |webhooks| webhooks.old_signature(),
            "oldSignature",
            WebhookError::TooOld { seconds: 600 },
        ),
    ];
    for (plan, fault, error) in table {
        let (shop, deliveries) = ship_with(plan).await;
        assert_eq!((shop.arrived, shop.refused), (vec![2, 3, 4, 5, 6], vec![error; 5]));
        for pair in deliveries.chunks(2) {
            assert_eq!((pair[0].fault, pair[0].status), (Some(fault), 400));
            assert_eq!((pair[1].fault, pair[1].status), (None, 204));
        }
    }
}

#[tokio::test]
async fn a_receiver_with_the_old_secret_accepts_webhooks_during_a_rotation() {
    let (server, api) = embedded::start_with_key().await;
    let rotated = Mutex::new(None);
    let (shop, deliveries) = ship(&server, &api, |webhooks| {
        *rotated.lock().unwrap() = Some(webhooks.rotate_secret());
    })
    .await;
    assert_eq!(shop.refused, []);
    let new = Webhook::new(rotated.lock().unwrap().take()).unwrap();
    for sent in &deliveries {
        assert_eq!(sent.headers[2].1.split(' ').count(), 2, "{sent:?}");
        assert!(new.verify_at(&sent.headers[..], &sent.body, sent.at).is_ok(), "{sent:?}");
    }
}

#[tokio::test]
async fn a_connection_error_is_listed_as_the_answer() {
    let (server, api) = embedded::start_with_key().await;
    let _secret = server.webhook_inbox().send_to("http://127.0.0.1:9/");
    api.create_parcel(&order_with_number("order-0001", "SB-NORMAL-0001")).await;
    server.clock().advance(Duration::ZERO).await;
    let deliveries = server.webhooks().deliveries();
    let [sent] = &deliveries[..] else { panic!("{deliveries:?}") };
    assert_eq!((sent.status, sent.url.as_str()), (0, "http://127.0.0.1:9/"));
    assert!(sent.answer.starts_with("no connection to the endpoint"), "{}", sent.answer);
}

#[tokio::test]
async fn a_reset_deletes_the_fault() {
    let (server, api) = embedded::start_with_key().await;
    let inbox = server.webhook_inbox().start().await;
    server.webhooks().delay(HALF_AN_HOUR);
    server.reset().await;
    api.create_parcel(&order_with_number("order-0001", "SB-NORMAL-0001")).await;
    server.clock().advance(Duration::ZERO).await;
    assert_eq!(inbox.events().len(), 1);
}
