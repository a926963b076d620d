//! The rate limit: kept against the real service in virtual time and over a socket, and against a model of the service
//! with latencies.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use futures_util::StreamExt;
use parcelo::{
    ApiKey, Client, Environment, ErrorKind, Operation, RateLimit, Retry, Timeouts,
    calls::{Attempt, StopReason},
    transport::{ResponseFuture, Transport},
};
use parcelo_server::internals::{Admission, Millis, RateLimitWindows};
use parcelo_server::mock::{Clock, MockServer};
use tokio::time::{Instant, sleep};

use crate::scripted_transport::{
    CREATED, RECORD, ScriptedTransport, client_with, key, number, order, orders, refusal, response,
};

#[expect(clippy::disallowed_methods, reason = "the clock of the test, paused or not")]
pub(crate) fn now() -> Instant {
    Instant::now()
}

/// The service's rate limit, on a clock that moves with tokio's.
#[derive(Debug, Clone)]
struct LimitedService {
    limit: u32,
    began: Instant,
    /// Milliseconds by which the start is after a whole second.
    phase: u64,
    latency: Duration,
    window: Arc<Mutex<RateLimitWindows<()>>>,
    refused: Arc<AtomicUsize>,
}

impl LimitedService {
    fn new(limit: u32, phase: u64, latency: Duration) -> Self {
        let (window, refused) = (Arc::default(), Arc::default());
        Self { limit, began: now(), phase, latency, window, refused }
    }

    fn take(&self) -> (u16, parcelo_server::internals::Quota) {
        let millis = self.phase + u64::try_from(self.began.elapsed().as_millis()).unwrap();
        let at = Millis(1_768_057_500_000 + i64::try_from(millis).unwrap());
        match self.window.lock().unwrap().admit((), self.limit, at) {
            Admission::Granted(quota) => (201, quota),
            Admission::Refused(quota) => {
                self.refused.fetch_add(1, Ordering::Relaxed);
                (429, quota)
            }
        }
    }
}

impl Transport for LimitedService {
    fn send(&self, _: http::Request<Bytes>) -> ResponseFuture<'_> {
        Box::pin(async {
            sleep(self.latency / 2).await;
            let (status, quota) = self.take();
            sleep(self.latency / 2).await;
            let response = http::Response::builder()
                .status(status)
                .header("x-request-id", "req_1")
                .header("x-ratelimit-limit", quota.limit)
                .header("x-ratelimit-remaining", quota.remaining)
                .header("x-ratelimit-reset", quota.reset)
                .header("retry-after", "1");
            let body = Bytes::from_static(CREATED.as_bytes()).into();
            Ok(response.body(body).unwrap())
        })
    }
}

#[tokio::test(start_paused = true)]
async fn the_limit_is_used_without_refusals_at_any_latency() {
    for (environment, phase, latency, count) in [
        (Environment::Sandbox, 137, 8, 1000_u32),
        (Environment::Sandbox, 0, 0, 1000),
        (Environment::Sandbox, 995, 80, 1000),
        (Environment::Production, 500, 30, 1000),
    ] {
        let limit = environment.requests_per_second();
        let service = LimitedService::new(limit, phase, Duration::from_millis(latency));
        let key = ApiKey::from_random(environment, &[7; 32]);
        let client = Client::builder(key).transport(service.clone()).build().unwrap();
        let mut created =
            client.orders().create_many(orders("limits", count as usize)).concurrency(16);
        let began = now();
        while let Some((_, created)) = created.next().await {
            assert_eq!(created.unwrap().meta().attempts, 1);
        }
        assert_eq!(service.refused.load(Ordering::Relaxed), 0, "{phase} {latency}");
        let share = f64::from(count) / began.elapsed().as_secs_f64() / f64::from(limit);
        assert!(share >= 0.98, "{share} of the limit at {phase} {latency}");
    }
}

#[tokio::test(start_paused = true)]
async fn ten_thousand_creations_use_the_limit_without_refusals() {
    let clock = Clock::ticking("2026-01-05T08:00:00.700Z");
    let server = MockServer::builder().clock(clock).start().await;
    let refused = Arc::new(AtomicUsize::new(0));
    let client = server.in_memory_builder(&server.key().issue());
    let client = client.on_attempt(count_refusals(&refused)).build().unwrap();
    let share = share_of(100, 10_000, &client).await;
    assert_eq!(refused.load(Ordering::Relaxed), 0);
    assert!(share >= 0.98, "{share} of the limit");
}

/// Creates orders on a service that accepts them. Returns the share of the limit that was used.
async fn share_of(limit: u32, count: u32, client: &Client) -> f64 {
    let orders = orders("limits", count as usize)
        .map(|order| crate::conformance::valid_order(order.idempotency_key));
    let mut created = client.orders().create_many(orders).concurrency(16);
    let began = now();
    while let Some((_, created)) = created.next().await {
        created.unwrap();
    }
    f64::from(count) / began.elapsed().as_secs_f64() / f64::from(limit)
}

fn count_refusals(refused: &Arc<AtomicUsize>) -> impl Fn(&Attempt) + Send + Sync + use<> {
    let refused = Arc::clone(refused);
    move |attempt| {
        refused.fetch_add(usize::from(attempt.status == Some(429)), Ordering::Relaxed);
    }
}

#[tokio::test]
#[ignore = "long: `.ci/prove proofs` runs it"]
async fn ten_thousand_creations_over_a_socket_use_the_limit() {
    const COUNT: usize = 10_000;
    const LIMIT: u32 = 200;
    let server = MockServer::builder().clock(Clock::system()).request_log(COUNT * 2);
    let server = server.start().await;
    let refused = Arc::new(AtomicUsize::new(0));
    let key = server.key().rate_limit(LIMIT).issue();
    let client = Client::builder(key).base_url(server.url()).unwrap();
    let client = client.on_attempt(count_refusals(&refused)).build().unwrap();
    let share = share_of(LIMIT, u32::try_from(COUNT).unwrap(), &client).await;
    let refused = refused.load(Ordering::Relaxed);
    // None are refused in virtual time. Here another program can delay this one, and requests due in one window arrive
    // in the next.
    assert!(refused <= COUNT / 2_000, "{refused} were refused");
    let requests = server.requests().of(Operation::CreateOrder).all();
    let created = requests.iter().filter(|request| request.status == Some(201)).count();
    assert_eq!((created, requests.len()), (COUNT, COUNT + refused), "each was created once");
    let windows = count_by_window(requests.iter().map(|request| request.at.timestamp()));
    println!("{share:.3} of the limit; windows: {windows:?}");
    // Other programs can delay single windows, but a client that is too slow has no full one.
    let full = windows[windows.len() / 4];
    assert!(full * 100 >= LIMIT * 95, "{share} of the limit; {windows:?}");
}

/// Returns the number of requests in each second, the largest first.
fn count_by_window(seconds: impl Iterator<Item = i64>) -> Vec<u32> {
    let mut windows = BTreeMap::new();
    seconds.for_each(|second| *windows.entry(second).or_insert(0) += 1);
    let mut windows: Vec<_> = windows.into_values().collect();
    windows.sort_unstable_by(|one, other| other.cmp(one));
    windows
}

#[tokio::test(start_paused = true)]
async fn clients_with_one_key_share_its_rate_limit() {
    let quarter = RateLimit::adaptive().share(0.25);
    // Two that do not know of one another, and four with a share each.
    for (clients, settings, max_refused, min_share) in
        [(2, RateLimit::adaptive(), 99, 0.8), (4, quarter, 0, 0.95)]
    {
        let service = LimitedService::new(100, 250, Duration::from_millis(10));
        let began = now();
        let mut loads = tokio::task::JoinSet::new();
        for _ in 0..clients {
            let client = Client::builder(key()).rate_limit(settings.clone());
            let client = client.transport(service.clone()).build().unwrap();
            loads.spawn(async move {
                let created =
                    client.orders().create_many(orders("limits", 2000 / clients)).concurrency(16);
                created.for_each(|(_, created)| async move { assert!(created.is_ok()) }).await;
            });
        }
        loads.join_all().await;
        let refused = service.refused.load(Ordering::Relaxed);
        let share = 2000.0 / began.elapsed().as_secs_f64() / 100.0;
        assert!(refused <= max_refused, "{clients} clients: {refused} refused");
        assert!(share > min_share, "{clients} clients: {share} of the limit");
    }
}

/// Makes concurrent calls with one client, and checks that none was refused.
async fn create_concurrently(client: &Client, count: u32) {
    let mut calls = tokio::task::JoinSet::new();
    for order in orders("limits", count as usize) {
        let client = client.clone();
        calls.spawn(async move { client.orders().create(&order).await.unwrap() });
    }
    calls.join_all().await;
}

#[tokio::test(start_paused = true)]
async fn an_idle_client_sends_a_full_window_at_once() {
    for (phase, at_once) in [(0, 8), (0, 49), (970, 49), (500, 30)] {
        let service = LimitedService::new(50, phase, Duration::from_millis(30));
        let key = ApiKey::from_random(Environment::Production, &[7; 32]);
        let client = Client::builder(key).transport(service.clone()).build().unwrap();
        // A few as it starts, and all after a pause: of seconds, or as short as possible.
        for (pause, calls) in [(0, 10), (5000, at_once), (1200, at_once), (3700, at_once)] {
            sleep(Duration::from_millis(pause)).await;
            let began = now();
            create_concurrently(&client, calls).await;
            assert_eq!(began.elapsed(), service.latency, "{calls} after {pause} ms");
        }
        // The calls that follow at once are paced so that no window overflows.
        create_concurrently(&client, 200).await;
        assert_eq!(service.refused.load(Ordering::Relaxed), 0, "{phase} {at_once}");
    }
}

/// Returns a client that never sends two requests at once.
fn evenly_paced_client() -> (Client, ScriptedTransport) {
    client_with([response(201, CREATED)], |builder| {
        builder.rate_limit(RateLimit::adaptive().burst(1))
    })
}

#[tokio::test(start_paused = true)]
async fn clones_take_turns() {
    let (client, script) = evenly_paced_client();
    let began = now();
    create_concurrently(&client, 50).await;
    let took = began.elapsed();
    assert!(took > Duration::from_millis(490) && took < Duration::from_millis(510), "{took:?}");
    assert_eq!(script.sent_requests().len(), 50);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_must_not_wait_fails_at_once_with_a_time() {
    let (client, script) = client_with([response(200, RECORD)], |builder| {
        builder.rate_limit(RateLimit::adaptive().burst(1).fail_fast())
    });
    let number = number();
    assert!(client.tracking().get(&number).await.is_ok());
    let began = now();
    let error = client.tracking().get(&number).await.unwrap_err();
    assert_eq!((error.kind(), error.attempts()), (ErrorKind::RateLimited, 0));
    assert_eq!(error.stop_reason(), Some(StopReason::RateLimit));
    let wait = error.retry_after().unwrap();
    assert!(wait > Duration::from_millis(9) && wait < Duration::from_millis(11), "{wait:?}");
    assert_eq!((began.elapsed(), script.sent_requests().len()), (Duration::ZERO, 1));
    assert!(!error.may_have_executed() && !error.to_string().is_empty());
    assert!(client.with_rate_limit(RateLimit::adaptive()).tracking().get(&number).await.is_ok());
    tokio::time::advance(Duration::from_millis(11)).await;
    assert!(client.tracking().get(&number).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn without_a_limiter_nothing_waits_and_the_service_refuses() {
    let service = LimitedService::new(100, 0, Duration::ZERO);
    let builder = Client::builder(key()).rate_limit(RateLimit::off()).retry(Retry::none());
    let client = builder.transport(service.clone()).build().unwrap();
    for _ in 0..120 {
        let _ = client.orders().create(&order()).await;
    }
    assert_eq!(service.refused.load(Ordering::Relaxed), 20);
    assert_eq!(service.began.elapsed().as_millis() / 100, 0);

    let service = LimitedService::new(100, 0, Duration::ZERO);
    let client = Client::builder(key()).transport(service.clone()).build().unwrap();
    for _ in 0..10 {
        let one = client.with_rate_limit(RateLimit::off());
        assert!(one.orders().create(&order()).await.is_ok());
    }
    assert_eq!(service.began.elapsed().as_millis() / 100, 0, "off for these calls alone");
}

#[tokio::test(start_paused = true)]
async fn waiting_in_the_queue_counts_towards_the_timeout() {
    let (client, script) = evenly_paced_client();
    let client = client.with_timeouts(Timeouts::default().total(Duration::from_millis(105)));
    let began = now();
    let mut calls = tokio::task::JoinSet::new();
    for _ in 0..50 {
        let client = client.clone();
        calls.spawn(async move { client.orders().create(&order()).await });
    }
    let ended = calls.join_all().await;
    assert!(began.elapsed() <= Duration::from_millis(105), "{:?}", began.elapsed());
    let late: Vec<_> = ended.into_iter().filter_map(Result::err).collect();
    assert_eq!((script.sent_requests().len(), late.len()), (11, 39));
    for error in late {
        assert_eq!(error.stop_reason(), Some(StopReason::Deadline));
        assert_eq!((error.kind(), error.attempts()), (ErrorKind::RateLimited, 0));
        assert_eq!(error.idempotency_key(), Some(&order().idempotency_key));
        assert!(!error.may_have_executed());
    }
}

#[tokio::test(start_paused = true)]
async fn a_used_up_window_delays_all_calls_until_it_ends() {
    let full = response(201, CREATED)
        .with_header("x-request-id", "req_1")
        .with_header("x-ratelimit-limit", "100")
        .with_header("x-ratelimit-remaining", "0")
        .with_header("x-ratelimit-reset", "1768057501");
    let (client, _) = ScriptedTransport::client([full, response(201, CREATED)]);
    let began = now();
    client.orders().create(&order()).await.unwrap();
    client.clone().orders().create(&order()).await.unwrap();
    assert_eq!(began.elapsed(), Duration::from_secs(1));
}

#[tokio::test(start_paused = true)]
async fn a_refusal_delays_all_later_calls() {
    let limited =
        response(429, refusal("RATE_LIMIT_EXCEEDED")).with_header("x-request-id", "req_1");
    let (client, _) = ScriptedTransport::client([limited, response(201, CREATED)]);
    client.with_retry(Retry::none()).orders().create(&order()).await.unwrap_err();
    let began = now();
    for _ in 0..8 {
        client.orders().create(&order()).await.unwrap();
    }
    let took = began.elapsed().as_millis();
    assert!((105..=120).contains(&took), "70 a second instead of 100: {took}");
}

#[tokio::test(start_paused = true)]
async fn a_call_dropped_in_the_queue_delays_no_others() {
    let (client, _) = evenly_paced_client();
    let began = now();
    client.orders().create(&order()).await.unwrap();
    for _ in 0..100 {
        let waiting = client.clone();
        let waiting = tokio::spawn(async move { waiting.orders().create(&order()).await });
        tokio::task::yield_now().await;
        waiting.abort();
        waiting.await.unwrap_err();
    }
    client.orders().create(&order()).await.unwrap();
    assert!(began.elapsed() < Duration::from_millis(15), "{:?}", began.elapsed());
}
