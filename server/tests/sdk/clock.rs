//! Clocks: a client of the embedded server takes dates from the server's clock, and waits by tokio's.

use std::time::Duration;

use parcelo::{Client, ErrorKind, OrderRequest, Outcome, calls::StopReason, webhook::Webhook};
use parcelo_server::mock::{Clock, MockServer};

const DAY: Duration = Duration::from_secs(24 * 3600);

fn order() -> OrderRequest {
    MockServer::order("SB-SUCCESS-0001")
}

/// Returns a client over HTTP and one without a socket.
fn clients(server: &MockServer) -> [Client; 2] {
    let key = server.key().issue();
    [server.client(&key), server.in_memory_client(&key)]
}

#[tokio::test]
async fn a_key_expires_only_if_the_server_clock_moves() {
    for (transport, number) in [(0, "SB-SUCCESS-0001"), (1, "SB-SUCCESS-0002")] {
        let server = MockServer::start().await;
        let client = clients(&server)[transport].clone();
        let order = MockServer::order(number);
        let created = client.orders().create(&order).await.unwrap();
        assert_eq!(order.idempotency_key.first_sent(), Some(server.clock().now()));
        // A key is sent until ten minutes before its end.
        server.clock().advance(Duration::from_secs(24 * 3600 - 601)).await;
        let again = client.orders().create(&order).await.unwrap();
        assert_eq!((again.outcome(), &again.parcel.id), (Outcome::Replayed, &created.parcel.id));
        server.clock().advance(Duration::from_secs(1)).await;
        let error = client.orders().create(&order).await.unwrap_err();
        assert_eq!(
            (error.kind(), error.stop_reason()),
            (ErrorKind::KeyExpired, Some(StopReason::KeyExpired))
        );
        server.requests().assert_count(2);
    }
}

#[tokio::test(start_paused = true)]
async fn sleeping_in_a_test_makes_no_key_older() {
    let server = MockServer::start().await;
    let client = server.in_memory_client(&server.key().issue());
    let (order, before) = (order(), server.clock().now());
    client.orders().create(&order).await.unwrap();
    tokio::time::sleep(DAY * 7).await;
    assert_eq!(server.clock().now(), before, "a sleeping client does not move a frozen clock");
    assert_eq!(client.orders().create(&order).await.unwrap().outcome(), Outcome::Replayed);
}

#[tokio::test(start_paused = true)]
async fn setting_the_server_clock_back_makes_a_key_younger() {
    let server = MockServer::start().await;
    let client = server.in_memory_client(&server.key().issue());
    let (order, before) = (order(), server.snapshot().await);
    client.orders().create(&order).await.unwrap();
    server.clock().advance(DAY).await;
    client.health().await.unwrap(); // its date is tomorrow's
    server.restore(&before).await;
    assert_eq!(client.orders().create(&order).await.unwrap().outcome(), Outcome::Created);
}

#[tokio::test(start_paused = true)]
async fn a_call_ends_even_in_a_frozen_rate_limit_window() {
    let server = MockServer::start().await;
    let client = server.in_memory_client(&server.key().rate_limit(1).issue());
    let before = server.clock().now();
    client.health().await.unwrap();
    let error = client.health().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::RateLimited, "{error}");
    assert_eq!(server.clock().now(), before, "the client's waits move nothing");
    server.clock().advance(Duration::from_secs(1)).await;
    client.health().await.unwrap();
}

#[tokio::test]
async fn a_client_keeps_the_clock_after_its_server_is_dropped() {
    let server = MockServer::start().await;
    let (client, order) = (server.in_memory_client(&server.key().issue()), order());
    drop(server);
    client.orders().create(&order).await.unwrap();
}

#[tokio::test]
async fn a_receiver_verifies_webhooks_by_the_server_clock() {
    use parcelo::webhook::{ID, SIGNATURE, TIMESTAMP, WebhookError};
    let server = MockServer::builder().clock(Clock::frozen("2031-01-05T08:00:00Z")).start().await;
    let secret = server.webhook_inbox().send_to("http://127.0.0.1:9/");
    let sent = server.clock().now().timestamp();
    let (body, time) = (br#"{"event":"webhook.test"}"#, sent.to_string());
    let signature = secret.sign("evt_1", sent, body);
    let headers = [(ID, "evt_1"), (TIMESTAMP, &time), (SIGNATURE, &signature)];
    let machine = Webhook::new([secret.clone()]).unwrap();
    assert!(matches!(machine.verify(&headers[..], body), Err(WebhookError::TooNew { .. })));
    let webhook = Webhook::new([secret]).unwrap().clock(server.clock().reader());
    assert!(webhook.verify(&headers[..], body).is_ok());
    server.clock().advance(Duration::from_secs(301)).await;
    let late = webhook.verify(&headers[..], body).unwrap_err();
    assert_eq!(late, WebhookError::TooOld { seconds: 301 });
}
