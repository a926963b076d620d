//! Responses that a proxy in front of the service may have given, and how far the client trusts them.

use std::time::Duration;

use parcelo::{ErrorKind, RateLimit, Retry, calls::StopReason};

use crate::{
    retries::now,
    scripted_transport::{RECORD, ScriptedTransport, Step, client_with, number, refusal, response},
};

/// A request id in the form that proxies use.
const PROXY_REQUEST_ID: &str = "9f1c2b1e-7d1a-4c59-8b0f-0f4b6a5f3a10";
const SERVICE_REQUEST_ID: &str = "req_1";

fn throttling_response(seconds: &str) -> Step {
    response(429, "").with_header("retry-after", seconds)
}

fn ban_response() -> Step {
    let banned = response(429, refusal("RATE_LIMIT_EXCEEDED")).with_header("retry-after", "45");
    banned.with_header("x-request-id", SERVICE_REQUEST_ID)
}

#[tokio::test(start_paused = true)]
async fn only_a_429_from_the_service_delays_other_calls() {
    let table = [
        (throttling_response("20"), false),
        (throttling_response("20").with_header("x-request-id", PROXY_REQUEST_ID), false),
        (throttling_response("20").with_header("x-request-id", SERVICE_REQUEST_ID), true),
    ];
    for (refused, delays_all) in table {
        let (client, script) = ScriptedTransport::client([refused.clone(), response(200, RECORD)]);
        let began = now();
        let number = number();
        let other = async {
            while script.sent_requests().is_empty() {
                tokio::task::yield_now().await;
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
            client.tracking().get(&number).await.unwrap();
            began.elapsed()
        };
        let (refused_call, other) = tokio::join!(client.tracking().get(&number), other);
        assert_eq!(refused_call.unwrap().meta().attempts, 2);
        assert!(began.elapsed() >= Duration::from_secs(20), "the requested wait: {refused:?}");
        assert_eq!(other >= Duration::from_secs(20), delays_all, "{other:?}, {refused:?}");
        assert!(delays_all || other < Duration::from_millis(20), "{other:?}, {refused:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn rate_limit_headers_from_a_proxy_are_ignored() {
    let full = |id| {
        response(200, RECORD)
            .with_header("x-ratelimit-limit", "1")
            .with_header("x-ratelimit-remaining", "0")
            .with_header("x-ratelimit-reset", "1768057501")
            .with_header("x-request-id", id)
    };
    for (id, is_believed) in [(PROXY_REQUEST_ID, false), (SERVICE_REQUEST_ID, true)] {
        let (client, _) = ScriptedTransport::client([full(id), response(200, RECORD)]);
        let began = now();
        let first = client.tracking().get(&number()).await.unwrap();
        assert_eq!(first.meta().rate_limit.is_some(), is_believed);
        client.tracking().get(&number()).await.unwrap();
        assert_eq!(began.elapsed() >= Duration::from_millis(900), is_believed, "{id:?}");
    }
    // The end of a proxy's rate-limit window does not determine when to try again either.
    let refused = response(429, "")
        .with_header("date", "Sat, 10 Jan 2026 15:05:00 GMT")
        .with_header("x-ratelimit-reset", "1768057600");
    for (id, attempts) in [(PROXY_REQUEST_ID, 2), (SERVICE_REQUEST_ID, 1)] {
        let steps = [refused.clone().with_header("x-request-id", id), response(200, RECORD)];
        let (client, script) = ScriptedTransport::client(steps);
        let ended = client.tracking().get(&number()).await;
        let sent = script.sent_requests().len();
        assert_eq!((ended.is_ok(), sent), (attempts == 2, attempts), "{id:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_long_ban_stops_all_calls_and_errors_say_when_it_ends() {
    let (client, script) = ScriptedTransport::client([ban_response(), response(200, RECORD)]);
    let (began, number) = (now(), number());
    let mut calls = tokio::task::JoinSet::new();
    for _ in 0..200 {
        let (client, number) = (client.clone(), number.clone());
        calls.spawn(async move { client.tracking().get(&number).await });
    }
    // Requests that were sent before the ban was known get responses; the others end when it becomes known.
    let failed: Vec<_> = calls.join_all().await.into_iter().filter_map(Result::err).collect();
    assert!(began.elapsed() <= Duration::from_secs(1), "{:?}", began.elapsed());
    let sent = script.sent_requests().len();
    for error in &failed {
        assert_eq!(error.kind(), ErrorKind::RateLimited);
        assert_eq!(error.stop_reason(), Some(StopReason::RetryAfterTooLong));
        assert!(error.retry_after() >= Some(Duration::from_secs(44)) && !error.may_have_executed());
    }
    assert_eq!(failed.len(), 201 - sent, "one was refused, and these were not sent");

    tokio::time::advance(Duration::from_secs(10)).await;
    let error = client.tracking().get(&number).await.unwrap_err();
    assert_eq!((error.kind(), error.attempts()), (ErrorKind::RateLimited, 0));
    let left = error.retry_after().unwrap();
    assert!(left > Duration::from_secs(33) && left <= Duration::from_secs(35), "{left:?}");
    assert_eq!(script.sent_requests().len(), sent);
    // A call that may wait that long waits. Any other call does so once the remaining ban is short enough.
    let patient = client.with_retry(Retry::standard().max_retry_after(Duration::from_secs(60)));
    patient.tracking().get(&number).await.unwrap();
    assert!(
        began.elapsed() >= Duration::from_secs(45) && began.elapsed() < Duration::from_secs(47)
    );
    client.tracking().get(&number).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_client_without_pacing_also_stops_during_a_long_ban() {
    let (client, script) = client_with([ban_response(), response(200, RECORD)], |builder| {
        builder.rate_limit(RateLimit::off())
    });
    for _ in 0..2 {
        let error = client.tracking().get(&number()).await.unwrap_err();
        assert_eq!(error.stop_reason(), Some(StopReason::RetryAfterTooLong));
    }
    assert_eq!(script.sent_requests().len(), 1);
    tokio::time::advance(Duration::from_secs(16)).await;
    client.tracking().get(&number()).await.unwrap();
}
