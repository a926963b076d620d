//! Retries: which calls are retried, when, and what the caller sees of it.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use parcelo::{
    ErrorCode, ErrorKind, Language, NextStep, Outcome, Retry, Timeouts, calls::StopReason,
    transport::Phase,
};
use tokio::time::Instant;

use crate::scripted_transport::{
    CREATED, Piece, RECORD, ScriptedTransport, Step, client_with, number, order, refusal, response,
};

#[expect(clippy::disallowed_methods, reason = "the paused clock of the test")]
pub(crate) fn now() -> Instant {
    Instant::now()
}

#[tokio::test(start_paused = true)]
async fn a_retried_creation_is_identical_and_honours_retry_after() {
    let busy = response(503, refusal("SERVICE_UNAVAILABLE")).with_header("retry-after", "2");
    let (client, script) = ScriptedTransport::client([busy.clone(), busy, response(201, CREATED)]);
    let start = now();
    let created = client.orders().create(&order()).await.unwrap();

    let sent = script.sent_requests();
    assert_eq!((sent.len(), created.meta().attempts), (3, 3));
    for request in &sent {
        assert_eq!(request.body(), sent[0].body());
        assert_eq!(request.headers(), sent[0].headers());
        assert_eq!(request.uri(), "http://localhost/api/v1/orders/create");
    }
    let body: serde_json::Value = serde_json::from_slice(sent[0].body()).unwrap();
    assert_eq!(body["idempotencyKey"], "order-0001");
    let waited = start.elapsed().as_millis();
    assert!((4000..=4410).contains(&waited), "{waited}");
}

/// Returns the number of attempts of a read, a write with a key, a read by POST, and the only write without a key.
async fn count_attempts(step: &Step) -> [usize; 4] {
    let (reads, read) = ScriptedTransport::client([step.clone()]);
    let error = reads.tracking().get(&number()).await.unwrap_err();
    assert!(!error.may_have_executed() && error.idempotency_key().is_none(), "{step:?}");
    let (writes, keyed) = ScriptedTransport::client([step.clone()]);
    let error = writes.orders().create(&order()).await.unwrap_err();
    let sent = keyed.sent_requests().len();
    assert_eq!(error.attempts() as usize, sent, "{step:?}");
    assert_eq!(error.idempotency_key(), Some(&order().idempotency_key), "{step:?}");
    let (batches, batch) = ScriptedTransport::client([step.clone()]);
    batches.tracking().batch(&[number()]).await.unwrap_err();
    let (resets, reset) = ScriptedTransport::client([step.clone()]);
    resets.sandbox().reset().await.unwrap_err();
    [read, keyed, batch, reset].map(|script| script.sent_requests().len())
}

#[tokio::test(start_paused = true)]
async fn every_signal_is_retried_for_the_operations_that_allow_it() {
    const ALWAYS: [usize; 4] = [4; 4];
    const REPEATABLE: [usize; 4] = [4, 4, 4, 1];
    const NEVER: [usize; 4] = [1; 4];
    let truncated = Step::in_pieces(201, []).with_header("content-length", "9");
    let busy = response(429, refusal("RATE_LIMIT_EXCEEDED")).with_header("retry-after", "1");
    let signals = [
        (Step::Fail(Phase::NotSent), ALWAYS),
        (Step::Fail(Phase::Untrusted), NEVER),
        (Step::Fail(Phase::Stale), REPEATABLE),
        (Step::Fail(Phase::MaybeSent), REPEATABLE),
        (Step::Fail(Phase::Timeout), REPEATABLE),
        (Step::Hang, REPEATABLE),
        (truncated, REPEATABLE),
        (Step::in_pieces(201, [Piece::Break]), REPEATABLE),
        (Step::in_pieces(400, [Piece::Break]), NEVER),
        (Step::in_pieces(503, [Piece::Silence]), REPEATABLE),
        (busy, ALWAYS),
        (response(500, refusal("INTERNAL_ERROR")), REPEATABLE),
        (response(409, refusal("IDEMPOTENCY_IN_PROGRESS")), REPEATABLE),
        (response(409, refusal("IDEMPOTENCY_CONFLICT")), NEVER),
        (response(409, refusal("PARCEL_DUPLICATE_TRACKING")), NEVER),
        (response(307, "").with_header("location", "/elsewhere"), NEVER),
        (response(200, "no json"), NEVER),
    ];
    let responses: [(&[u16], [usize; 4]); 3] = [
        (&[408, 425, 500, 502, 503, 504, 506, 507, 520, 522, 524, 529, 561, 599], REPEATABLE),
        (&[429], ALWAYS),
        (&[300, 302, 308, 400, 401, 403, 404, 405, 409, 410, 413, 415, 422, 501, 505, 511], NEVER),
    ];
    let responses = responses.iter().flat_map(|(statuses, expected)| {
        statuses.iter().map(|code| (response(*code, ""), *expected))
    });
    for (step, expected) in signals.into_iter().chain(responses) {
        assert_eq!(count_attempts(&step).await, expected, "{step:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_error_has_its_code_message_and_request_id() {
    let limited = response(429, refusal("RATE_LIMIT_EXCEEDED"))
        .with_header("retry-after", "45")
        .with_header("x-request-id", "req_head");
    let (client, _) = ScriptedTransport::client([limited]);
    let start = now();
    let error = client.orders().create(&order()).await.unwrap_err();
    assert_eq!(start.elapsed(), Duration::ZERO, "the requested wait is longer than allowed");
    assert_eq!(error.kind(), ErrorKind::RateLimited);
    assert_eq!(error.stop_reason(), Some(StopReason::RetryAfterTooLong));
    assert_eq!(error.retry_after(), Some(Duration::from_secs(45)));
    assert_eq!(error.known_code(), Some(ErrorCode::RateLimitExceeded));
    assert_eq!((error.status(), error.request_id().unwrap().as_str()), (Some(429), "req_head"));
    assert_eq!(error.message(Language::Es), "No va.");
    assert_eq!(error.to_string(), "RATE_LIMIT_EXCEEDED (429): No. [req_head, 1 attempt]");
}

#[tokio::test(start_paused = true)]
async fn the_request_id_in_the_body_is_used_without_a_header() {
    let (client, _) = ScriptedTransport::client([response(404, refusal("PARCEL_NOT_FOUND"))]);
    let error = client.tracking().get(&number()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert_eq!(error.request_id().unwrap().as_str(), "req_body");
    assert_eq!(error.stop_reason(), Some(StopReason::Permanent));
}

#[tokio::test(start_paused = true)]
async fn a_service_that_never_responds_times_out_after_a_minute() {
    let (client, script) = ScriptedTransport::client([Step::Hang]);
    let start = now();
    let error = client.orders().create(&order()).await.unwrap_err();
    let waited = start.elapsed();
    assert_eq!((error.kind(), script.sent_requests().len()), (ErrorKind::Timeout, 4));
    assert!(Duration::from_secs(45) < waited && waited <= Duration::from_secs(60), "{waited:?}");

    let timeouts = Timeouts::default().total(Duration::from_secs(3));
    let (client, _) = client_with([Step::Hang], |it| it.timeouts(timeouts));
    let start = now();
    let error = client.orders().create(&order()).await.unwrap_err();
    assert_eq!(start.elapsed(), Duration::from_secs(3));
    assert_eq!(error.stop_reason(), Some(StopReason::Deadline));
}

#[tokio::test(start_paused = true)]
async fn a_stale_connection_is_replaced_without_a_delay() {
    let (client, _) = ScriptedTransport::client([Step::Fail(Phase::Stale), response(201, CREATED)]);
    let start = now();
    let created = client.orders().create(&order()).await.unwrap();
    assert_eq!((created.meta().attempts, start.elapsed()), (2, Duration::ZERO));

    let (client, _) = ScriptedTransport::client([Step::Fail(Phase::Stale)]);
    client.health().await.unwrap_err();
    assert!(start.elapsed() > Duration::ZERO, "only the first is replaced without a pause");
}

#[tokio::test(start_paused = true)]
async fn a_client_without_retries_makes_one_attempt() {
    let steps = [response(503, "")];
    let (client, script) = client_with(steps, |it| it.retry(Retry::none()));
    let error = client.health().await.unwrap_err();
    assert_eq!(
        (error.stop_reason(), script.sent_requests().len()),
        (Some(StopReason::Attempts), 1)
    );
}

#[tokio::test(start_paused = true)]
async fn a_condition_ends_a_call_with_the_error_that_it_was_given() {
    let busy = response(503, refusal("SERVICE_UNAVAILABLE")).with_header("retry-after", "2");
    let (client, script) = ScriptedTransport::client([Step::Fail(Phase::MaybeSent), busy]);
    let first_only = Retry::standard().only_if(|error| error.kind() == ErrorKind::Network);
    let start = now();
    let error = client.orders().create(&order()).retry(first_only).await.unwrap_err();
    assert_eq!((error.status(), error.attempts()), (Some(503), 2));
    assert_eq!(error.stop_reason(), Some(StopReason::Declined));
    assert!(error.may_have_executed() && matches!(error.next_step(), NextStep::Resend { .. }));
    assert!(start.elapsed() < Duration::from_secs(1), "it does not wait as the service asks");
    assert_eq!(script.sent_requests().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_condition_is_asked_only_about_retries_and_causes_none() {
    let stale = Step::Fail(Phase::Stale);
    // A write without a key, responses that are final, and those after which the client tries again.
    let table = [
        (response(503, ""), true, 0),
        (stale.clone(), true, 0),
        (response(401, ""), false, 0),
        (response(409, refusal("IDEMPOTENCY_CONFLICT")), false, 0),
        (Step::Fail(Phase::Untrusted), false, 0),
        (response(429, "").with_header("retry-after", "31"), false, 0),
        (response(503, ""), false, 3),
        (stale, false, 3),
        (Step::Fail(Phase::NotSent), true, 3),
        (response(429, ""), true, 3),
    ];
    for (step, is_reset, expected) in table {
        let asked = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&asked);
        let retry = Retry::standard().only_if(move |error| {
            assert_eq!(error.stop_reason(), Some(StopReason::Declined));
            count.fetch_add(1, Ordering::Relaxed);
            true
        });
        let (client, script) = ScriptedTransport::client([step.clone()]);
        let client = client.with_retry(retry);
        if is_reset {
            client.sandbox().reset().await.unwrap_err();
        } else {
            client.orders().create(&order()).await.unwrap_err();
        }
        let sent = script.sent_requests().len();
        assert_eq!((asked.load(Ordering::Relaxed), sent), (expected, expected + 1), "{step:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_declined_retry_takes_nothing_from_the_budget() {
    let (client, _) = ScriptedTransport::client([response(503, "")]);
    let none = client.with_retry(Retry::standard().only_if(|_| false));
    for _ in 0..100 {
        let error = none.health().await.unwrap_err();
        assert_eq!(error.stop_reason(), Some(StopReason::Declined));
    }
    let error = client.health().await.unwrap_err();
    assert_eq!((error.attempts(), error.stop_reason()), (4, Some(StopReason::Attempts)));
}

#[tokio::test(start_paused = true)]
async fn the_budget_has_the_size_with_which_the_client_was_built() {
    let retry = Retry::standard().budget(2 * 14, 0);
    let (client, _) = client_with([response(503, "")], |it| it.retry(retry));
    let error = client.health().await.unwrap_err();
    assert_eq!((error.attempts(), error.stop_reason()), (3, Some(StopReason::Budget)));
    tokio::time::advance(Duration::from_secs(3600)).await;
    let other = client.with_retry(Retry::standard().budget(2000, 2000));
    let error = other.health().await.unwrap_err();
    assert_eq!((error.attempts(), error.stop_reason()), (1, Some(StopReason::Budget)));
}

#[tokio::test(start_paused = true)]
async fn a_reply_says_whether_it_is_a_repeat_and_has_metadata() {
    let table = [
        (response(201, CREATED), Outcome::Created),
        (response(200, CREATED), Outcome::Replayed),
        (response(201, CREATED).with_header("idempotent-replayed", "true"), Outcome::Replayed),
    ];
    for (step, outcome) in table {
        let step = step
            .with_header("x-request-id", "req_1")
            .with_header("x-ratelimit-limit", "100")
            .with_header("x-ratelimit-remaining", "99")
            .with_header("x-ratelimit-reset", "1768057503");
        let (client, _) = ScriptedTransport::client([step]);
        let reply = client.orders().create(&order()).await.unwrap();
        assert_eq!(reply.outcome(), outcome);
        assert_eq!(reply.meta().request_id.as_ref().unwrap().as_str(), "req_1");
        assert_eq!(reply.meta().idempotency_key, Some(order().idempotency_key));
        let limit = reply.meta().rate_limit.unwrap();
        assert_eq!((limit.limit, limit.remaining, limit.reset), (100, 99, 1_768_057_503));
        assert_eq!(reply.into_inner().parcel.tracking_number, number());
    }
}

#[tokio::test(start_paused = true)]
async fn responses_of_newer_services_are_read() {
    let (client, script) = ScriptedTransport::client([response(200, RECORD)]);
    let record = client.tracking().get(&number()).history(true).await.unwrap();
    assert_eq!(record.status.code(), "LOST_AT_SEA");
    assert_eq!(
        script.sent_requests()[0].uri(),
        "http://localhost/api/v1/tracking/SB-SUCCESS-0001?includeHistory=true"
    );
}

#[tokio::test(start_paused = true)]
async fn an_unreadable_response_is_an_error_and_never_a_panic() {
    let bodies =
        ["", "\u{0}", "null", "[]", "{", "\"", "{\"success\":true}", "9".repeat(400).leak()];
    let heads = ["", "\u{ff}", "-1", "99999999999999999999", "NaN", "; , ="];
    for status in [200, 201, 204, 299, 302, 400, 404, 418, 429, 500, 503, 599] {
        for (body, head) in bodies.iter().flat_map(|body| heads.map(|head| (body, head))) {
            let step =
                ["retry-after", "date", "x-request-id", "x-ratelimit-limit", "idempotent-replayed"]
                    .into_iter()
                    .fold(response(status, *body), |step, name| step.with_header(name, head));
            let (client, _) = ScriptedTransport::client([step]);
            let error = client.orders().create(&order()).await.unwrap_err();
            assert!(!error.to_string().contains('\n') && error.status() == Some(status), "{error}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn calls_can_be_spawned_and_dropped() {
    let (client, script) = ScriptedTransport::client([Step::Hang, response(201, CREATED)]);
    let other = client.clone();
    let dropped = tokio::spawn(async move { other.orders().create(&order()).await });
    while script.sent_requests().is_empty() {
        tokio::task::yield_now().await;
    }
    dropped.abort();
    assert!(dropped.await.unwrap_err().is_cancelled());
    assert!(client.orders().create(&order()).await.is_ok());
}
