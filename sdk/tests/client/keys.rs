//! The life of an idempotency key: created with its request, and sent for 24 hours.

use std::time::Duration;

use parcelo::{ErrorKind, IdempotencyKey, Retry, Timeouts, calls::StopReason, transport::Phase};

use crate::scripted_transport::{CREATED, ScriptedTransport, Step, order, response};

const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(60 * 60);

async fn advance_clock(time: Duration) {
    tokio::time::advance(time).await;
}

#[tokio::test(start_paused = true)]
async fn a_key_is_sent_until_ten_minutes_before_it_expires() {
    let (client, script) =
        ScriptedTransport::client([Step::Fail(Phase::MaybeSent), response(201, CREATED)]);
    let (order, client) = (order(), client.with_retry(Retry::none()));
    assert!(order.idempotency_key.first_sent().is_none());
    assert!(client.orders().create(&order).await.unwrap_err().may_have_executed());
    let first = order.idempotency_key.first_sent().unwrap();

    // A request that is sent later could arrive just after the service has forgotten the key.
    advance_clock(23 * HOUR + 49 * MINUTE).await;
    assert!(client.orders().create(&order.clone()).await.is_ok());
    advance_clock(MINUTE).await;
    let error = client.orders().create(&order).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::KeyExpired);
    assert_eq!(error.stop_reason(), Some(StopReason::KeyExpired));
    assert_eq!(error.retry_after(), Some(10 * MINUTE), "any process may have just sent it");
    assert_eq!((error.attempts(), error.may_have_executed()), (0, true));
    assert_eq!(error.idempotency_key(), Some(&order.idempotency_key));
    assert_eq!(order.idempotency_key.first_sent(), Some(first), "later attempts do not renew it");
    assert_eq!(script.sent_requests().len(), 2);

    let mut order = order;
    order.idempotency_key = IdempotencyKey::random();
    assert!(client.orders().create(&order).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn no_retry_outlives_its_key() {
    let patient = Retry::standard().attempts(1000).unbudgeted().max_retry_after(2 * HOUR);
    let timeouts = Timeouts::default().total(1000 * HOUR);
    let (client, script) =
        ScriptedTransport::client([response(503, "").with_header("retry-after", "3600")]);
    let client = client.with_retry(patient).with_timeouts(timeouts);
    let error = client.orders().create(&order()).await.unwrap_err();
    assert_eq!(error.stop_reason(), Some(StopReason::KeyExpired));
    assert_eq!((error.kind(), script.sent_requests().len()), (ErrorKind::Server, 24));
}

#[tokio::test(start_paused = true)]
async fn a_client_has_one_type_for_all_settings() {
    let (client, script) = ScriptedTransport::client([response(503, "")]);
    for _ in 0..40 {
        let _ = client.with_timeouts(Timeouts::default()).health().await;
    }
    let sent = script.sent_requests().len();
    assert!((40..90).contains(&sent), "{sent}");
    let twice = client.with_retry(Retry::standard().attempts(2));
    let mut stops = Vec::new();
    // The budget recovers less during the pauses than the retries spend.
    for _ in 0..10 {
        let error = twice.health().await.unwrap_err();
        stops.push((error.stop_reason(), error.attempts()));
    }
    assert!(stops.contains(&(Some(StopReason::Budget), 1)), "{stops:?}");
    let error = client.with_retry(Retry::standard().unbudgeted()).health().await.unwrap_err();
    assert_eq!((error.stop_reason(), error.attempts()), (Some(StopReason::Attempts), 4));
}
