//! The number of requests during an outage of a minute, compared with the usual middleware.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use futures_util::{FutureExt, future::BoxFuture};
use parcelo::{
    Client, ErrorKind, Outcome, RateLimit, Retry,
    calls::{Attempt, FailureClass, StopReason},
    transport::{Phase, ResponseFuture, Transport},
};
use reqwest_middleware::{ClientBuilder, ClientWithMiddleware, Next};
use reqwest_retry::{RetryTransientMiddleware, policies::ExponentialBackoff};
use tokio::task::JoinSet;

use crate::scripted_transport::{
    CREATED, RECORD, ScriptedTransport, Step, client_with, key, number, order, refusal, response,
};

const CALLS: usize = 60 * 50;

/// Makes fifty calls a second for a minute, and returns when all have ended.
async fn call_for_a_minute<F: Future<Output = ()> + Send + 'static>(call: impl Fn() -> F) {
    let mut calls = JoinSet::new();
    for _ in 0..CALLS {
        calls.spawn(call());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    calls.join_all().await;
}

#[tokio::test(start_paused = true)]
async fn an_outage_causes_few_additional_requests() {
    let down = response(503, refusal("SERVICE_UNAVAILABLE"));
    // Like a process that crashes behind a load balancer: connections are accepted and closed without a response.
    for outage in [down, Step::Fail(Phase::Stale), Step::Fail(Phase::NotSent)] {
        // After a minute without failures, and as the client starts.
        for well in [CALLS, 0] {
            let up = std::iter::repeat_n(response(200, RECORD), well);
            let (client, script) = ScriptedTransport::client(up.chain([outage.clone()]));
            for _ in 0..=well / CALLS {
                call_for_a_minute(|| {
                    let client = client.clone();
                    async move { drop(client.tracking().get(&number()).await) }
                })
                .await;
            }
            let ours = per_call(script.sent_requests().len() - well);
            assert!((1.0..=1.05).contains(&ours), "{ours} a call after {well}, {outage:?}");
        }
    }

    let requests = Arc::new(AtomicUsize::new(0));
    let client_with_middleware = client_with_middleware(&requests);
    call_for_a_minute(|| {
        let client_with_middleware = client_with_middleware.clone();
        async move { drop(client_with_middleware.get("http://localhost/").send().await) }
    })
    .await;
    let theirs = per_call(requests.load(Ordering::Relaxed));

    assert!(theirs > 3.9, "reqwest-retry with the same four attempts: {theirs}");
}

#[expect(clippy::cast_precision_loss, reason = "some thousands of calls")]
fn per_call(attempts: usize) -> f64 {
    attempts as f64 / CALLS as f64
}

type MiddlewareFuture<'a> = BoxFuture<'a, reqwest_middleware::Result<reqwest::Response>>;

/// Returns a client with the usual middleware, whose service is down. It uses no socket, so that virtual time can
/// advance.
fn client_with_middleware(requests: &Arc<AtomicUsize>) -> ClientWithMiddleware {
    fn down<F>(down: F) -> F
    where
        F: for<'a> Fn(reqwest::Request, &'a mut http::Extensions, Next<'a>) -> MiddlewareFuture<'a>,
    {
        down
    }
    let requests = Arc::clone(requests);
    let policy = ExponentialBackoff::builder().build_with_max_retries(3);
    ClientBuilder::new(reqwest::Client::new())
        .with(RetryTransientMiddleware::new_with_policy(policy))
        .with(down(move |_, _, _| {
            requests.fetch_add(1, Ordering::Relaxed);
            let response = http::Response::builder().status(503).body("").unwrap();
            async { Ok(response.into()) }.boxed()
        }))
        .build()
}

/// A working service that closes this number of idle connections first.
#[derive(Debug)]
struct StalePool(Arc<AtomicUsize>);

impl Transport for StalePool {
    fn send(&self, _: http::Request<Bytes>) -> ResponseFuture<'_> {
        let was_closed = self
            .0
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |closed| closed.checked_sub(1));
        let step =
            if was_closed.is_ok() { Step::Fail(Phase::Stale) } else { response(200, RECORD) };
        // The other calls are under way too before the first one fails.
        tokio::task::yield_now().then(|()| step.perform()).boxed()
    }
}

/// Makes this number of calls concurrently. Returns the number of failures.
async fn count_concurrent_failures(client: &Client, calls: usize) -> usize {
    let mut all = JoinSet::new();
    for _ in 0..calls {
        let client = client.clone();
        all.spawn(async move { client.tracking().get(&number()).await });
    }
    all.join_all().await.into_iter().filter(Result::is_err).count()
}

#[tokio::test(start_paused = true)]
async fn a_pool_of_closed_idle_connections_is_replaced() {
    const POOL: usize = 64;
    let closed = Arc::new(AtomicUsize::new(0));
    let builder = Client::builder(key()).transport(StalePool(Arc::clone(&closed)));
    let client = builder.rate_limit(RateLimit::off()).build().unwrap();
    assert_eq!(count_concurrent_failures(&client, POOL).await, 0);
    // Twice in succession, as in a rolling restart of two servers.
    for _ in 0..2 {
        closed.store(POOL, Ordering::Relaxed);
        assert_eq!(count_concurrent_failures(&client, POOL).await, 0);
        assert_eq!(closed.load(Ordering::Relaxed), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn after_an_outage_the_retry_budget_refills() {
    let down = (0..100).map(|_| response(503, ""));
    let up = [response(200, RECORD), response(503, ""), response(200, RECORD)];
    let (client, _) = ScriptedTransport::client(down.chain(up));
    let mut spent = 0;
    loop {
        match client.tracking().get(&number()).await {
            Ok(_) => break,
            Err(error) if error.stop_reason() == Some(StopReason::Budget) => spent += 1,
            Err(_) => {}
        }
    }
    assert!(spent > 0, "the budget was never spent");
    tokio::time::advance(Duration::from_secs(2)).await;
    let reply = client.tracking().get(&number()).await.unwrap();
    assert_eq!(reply.meta().attempts, 2);
}

#[tokio::test(start_paused = true)]
async fn an_observer_sees_each_attempt_and_no_personal_data() {
    let limited = response(429, refusal("RATE_LIMIT_EXCEEDED")).with_header("retry-after", "2");
    let created = response(201, CREATED).with_header("x-request-id", "req_1");
    let steps = [limited, Step::Hang, created, response(404, ""), response(200, "?")];
    let attempts = Arc::new(std::sync::Mutex::new(Vec::<Attempt>::new()));
    let log = Arc::clone(&attempts);
    let (client, _) = client_with(steps, |builder| {
        builder.on_attempt(move |attempt| log.lock().unwrap().push(attempt.clone()))
    });
    client.orders().create(&order()).await.unwrap();
    client.health().await.unwrap_err();
    client.health().await.unwrap_err();

    let attempts = attempts.lock().unwrap();
    let shown = format!("{attempts:?}");
    assert!(!shown.contains("CANARY") && !shown.contains(key().secret()), "{shown}");
    let facts: Vec<_> = attempts
        .iter()
        .map(|attempt| (attempt.operation.name(), attempt.number, attempt.status, attempt.failure))
        .collect();
    let expected = [
        ("CreateOrder", 1, Some(429), Some(FailureClass::Throttled)),
        ("CreateOrder", 2, None, Some(FailureClass::MaybeSent)),
        ("CreateOrder", 3, Some(201), None),
        ("Health", 1, Some(404), Some(FailureClass::Permanent)),
        ("Health", 1, Some(200), Some(FailureClass::Permanent)),
    ];
    assert_eq!(facts, expected);
    assert!(attempts[0].wait >= Some(Duration::from_secs(2)) && attempts[0].stopped.is_none());
    assert_eq!(attempts[1].took, Duration::from_secs(15));
    assert_eq!((attempts[2].wait, attempts[2].stopped), (None, None));
    assert_eq!((attempts[3].wait, attempts[3].stopped), (None, Some(StopReason::Permanent)));
    let ends: Vec<_> = attempts
        .iter()
        .map(|attempt| {
            let id = attempt.request_id.as_ref().map(ToString::to_string);
            (id, attempt.kind, attempt.outcome, attempt.may_have_executed)
        })
        .collect();
    let id = |id: &str| Some(id.to_owned());
    let expected = [
        (id("req_body"), Some(ErrorKind::RateLimited), None, false),
        (None, Some(ErrorKind::Timeout), None, true),
        (id("req_1"), None, Some(Outcome::Created), false),
        (None, Some(ErrorKind::Unexpected), None, false),
        (None, Some(ErrorKind::Decode), None, false),
    ];
    assert_eq!(ends, expected);
}

#[tokio::test(start_paused = true)]
async fn an_observer_sees_queue_times_and_unsent_calls() {
    let attempts = Arc::new(std::sync::Mutex::new(Vec::<Attempt>::new()));
    let log = Arc::clone(&attempts);
    let steps =
        [response(200, RECORD), response(200, RECORD), response(200, RECORD), response(503, "")];
    let (client, script) = client_with(steps, |builder| {
        let builder = builder.rate_limit(RateLimit::adaptive().burst(1));
        builder.on_attempt(move |attempt| log.lock().unwrap().push(attempt.clone()))
    });
    let number = number();
    client.tracking().get(&number).await.unwrap();
    client.tracking().get(&number).await.unwrap(); // waits for its turn
    let hasty = client.with_rate_limit(RateLimit::adaptive().fail_fast());
    let refused = hasty.tracking().get(&number).await.unwrap_err();
    client.tracking().get(&number).await.unwrap();
    // Its first attempt is made; the second would start after the deadline.
    tokio::time::advance(Duration::from_secs(1)).await;
    let lone = hasty.with_retry(Retry::standard().backoff(Duration::ZERO, Duration::ZERO));
    lone.tracking().get(&number).await.unwrap_err();

    let attempts = attempts.lock().unwrap();
    let facts: Vec<_> = attempts
        .iter()
        .map(|attempt| (attempt.number, attempt.failure, attempt.kind, attempt.stopped))
        .collect();
    let (not_admitted, reason) = (Some(FailureClass::NotAdmitted), Some(StopReason::RateLimit));
    let limited = Some(ErrorKind::RateLimited);
    let expected = [
        (1, None, None, None),
        (1, None, None, None),
        (1, not_admitted, limited, reason),
        (1, None, None, None),
        (1, Some(FailureClass::Server), Some(ErrorKind::Server), None),
        (2, not_admitted, Some(ErrorKind::Server), reason),
    ];
    assert_eq!(facts, expected);
    assert_eq!(refused.attempts(), 0);
    assert_eq!(attempts[0].queued, Duration::ZERO);
    let queued = attempts[1].queued;
    assert!(queued > Duration::from_millis(9) && queued < Duration::from_millis(12), "{queued:?}");
    assert!(attempts[1].took < Duration::from_millis(1), "without the wait");
    assert_eq!(script.sent_requests().len(), 4);
}
