//! The age of an idempotency key while clocks are set back, set forward, or stand still during a suspend.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use chrono::{DateTime, TimeDelta, Utc};
use parcelo::{
    Client, ErrorKind, IdempotencyKey, Retry, Timeouts, calls::StopReason, model::KeyState,
    transport::Phase,
};

use crate::scripted_transport::{ScriptedTransport, Step, client_with, order, response};

const NOON: &str = "2026-01-10T12:00:00Z";

/// The machine's wall clock, which a test can set.
#[derive(Debug, Clone)]
struct TestWallClock(Arc<Mutex<DateTime<Utc>>>);

impl TestWallClock {
    fn shift(&self, by: TimeDelta) {
        *self.0.lock().unwrap() += by;
    }
}

/// Returns a client on a machine with this clock, which makes one attempt.
fn client_on_machine(
    steps: impl IntoIterator<Item = Step>,
) -> (Client, TestWallClock, ScriptedTransport) {
    let wall = TestWallClock(Arc::new(Mutex::new(NOON.parse().unwrap())));
    let read = wall.clone();
    let (client, script) = client_with(steps, |builder| {
        builder.retry(Retry::none()).wall_clock(move || *read.0.lock().unwrap())
    });
    (client, wall, script)
}

fn is_expired(client: &Client, order: &parcelo::OrderRequest) -> impl Future<Output = bool> {
    let (client, order) = (client.clone(), order.clone());
    async move { client.orders().create(&order).await.unwrap_err().kind() == ErrorKind::KeyExpired }
}

fn lost_response() -> Step {
    Step::Fail(Phase::MaybeSent)
}

fn response_with_date(date: &str) -> Step {
    response(503, "").with_header("date", date).with_header("x-request-id", "req_1")
}

const TODAY: &str = "Sat, 10 Jan 2026 12:00:00 GMT";
const TOMORROW: &str = "Sun, 11 Jan 2026 13:00:00 GMT";

#[tokio::test(start_paused = true)]
async fn a_machine_that_slept_a_day_sends_no_expired_key() {
    // The runtime's clock stands still during suspend.
    let (client, wall, script) = client_on_machine([lost_response()]);
    let order = order();
    assert!(!is_expired(&client, &order).await);
    wall.shift(TimeDelta::hours(23));
    assert!(!is_expired(&client, &order).await);
    wall.shift(TimeDelta::hours(1));
    assert!(is_expired(&client, &order).await);
    assert_eq!(script.sent_requests().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_wall_clock_set_back_makes_no_key_younger() {
    let (client, wall, _) = client_on_machine([lost_response()]);
    let order = order();
    assert!(!is_expired(&client, &order).await);
    tokio::time::advance(Duration::from_secs(25 * 3600)).await;
    wall.shift(TimeDelta::days(-365));
    assert!(is_expired(&client, &order).await);
}

#[tokio::test(start_paused = true)]
async fn service_dates_reveal_time_that_both_clocks_missed() {
    // The first response came before the key was sent, or is the response to it.
    for steps in [
        vec![response_with_date(TODAY), lost_response(), response_with_date(TOMORROW)],
        vec![response_with_date(TODAY), response_with_date(TOMORROW)],
    ] {
        let (client, _, script) = client_on_machine(steps.clone());
        let (order, before) = (order(), steps.len() == 3);
        if before {
            client.health().await.unwrap_err();
        }
        assert!(!is_expired(&client, &order).await);
        client.health().await.unwrap_err();
        assert!(is_expired(&client, &order).await, "{steps:?}");
        assert_eq!(script.sent_requests().len(), steps.len());
    }
}

#[tokio::test(start_paused = true)]
async fn proxy_dates_and_dates_that_go_back_are_ignored() {
    let anonymous = response(503, "").with_header("date", TOMORROW);
    // Proxies add request ids too.
    let proxy =
        anonymous.clone().with_header("x-request-id", "9f1c2b1e-7d1a-4c59-8b0f-0f4b6a5f3a10");
    for odd in [
        anonymous,
        proxy,
        response_with_date("garbage"),
        response_with_date("Sat, 10 Jan 1976 12:00:00 GMT"),
    ] {
        let (client, wall, _) = client_on_machine([response_with_date(TODAY), odd.clone()]);
        let order = order();
        assert!(!is_expired(&client, &order).await);
        client.health().await.unwrap_err();
        assert!(!is_expired(&client, &order).await, "{odd:?}");
        wall.shift(TimeDelta::hours(24));
        assert!(is_expired(&client, &order).await, "an odd date hides no elapsed time: {odd:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_suspended_machine_makes_no_second_attempt() {
    let (client, wall, script) =
        client_on_machine([response(503, "").with_header("retry-after", "20")]);
    let client = client.with_retry(Retry::standard());
    let order = order();
    let sleeps = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        wall.shift(TimeDelta::hours(25));
    };
    let (error, ()) = tokio::join!(client.orders().create(&order), sleeps);
    let error = error.unwrap_err();
    assert_eq!((error.kind(), error.attempts()), (ErrorKind::Server, 1));
    assert_eq!(error.stop_reason(), Some(StopReason::KeyExpired));
    assert_eq!(script.sent_requests().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_call_is_not_sent_after_a_suspend_in_the_queue() {
    let full = response(503, "")
        .with_header("x-request-id", "req_1")
        .with_header("x-ratelimit-limit", "100")
        .with_header("x-ratelimit-remaining", "0")
        .with_header("x-ratelimit-reset", "1768057501");
    let (client, wall, script) = client_on_machine([full]);
    let order = order();
    assert!(!is_expired(&client, &order).await);
    let sleeps = async {
        tokio::time::sleep(Duration::from_millis(500)).await;
        wall.shift(TimeDelta::hours(25));
    };
    let patient = client.with_timeouts(Timeouts::default());
    let (is_expired, ()) = tokio::join!(is_expired(&patient, &order), sleeps);
    assert!(is_expired && script.sent_requests().len() == 1);
}

#[tokio::test(start_paused = true)]
async fn a_resumed_process_uses_wall_time_and_service_dates() {
    let (client, _, _) = client_on_machine([response_with_date(TODAY)]);
    let first = order();
    assert!(!is_expired(&client, &first).await);
    let state = serde_json::to_string(&first.idempotency_key.state()).unwrap();
    let resumed = || {
        let state: KeyState = serde_json::from_str(&state).unwrap();
        let mut order = order();
        order.idempotency_key =
            IdempotencyKey::parse(first.idempotency_key.as_str()).unwrap().with_state(&state);
        order
    };
    let (client, _, script) = client_on_machine([response_with_date(TOMORROW)]);
    client.health().await.unwrap_err();
    assert!(is_expired(&client, &resumed()).await, "by the service's dates");
    let (client, late, _) = client_on_machine([lost_response()]);
    late.shift(TimeDelta::hours(24));
    assert!(is_expired(&client, &resumed()).await, "by the wall clock");
    assert_eq!(script.sent_requests().len(), 1);
}
