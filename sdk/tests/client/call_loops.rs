//! Loops as integrators write them: calls in the loop of other calls, futures that are no longer polled, and responses
//! that arrive meanwhile. Each runs with a paced client.

use std::{
    future::poll_fn,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::Poll,
    time::Duration,
};

use bytes::Bytes;
use futures_util::{FutureExt, Stream, StreamExt, stream};
use parcelo::{
    Client, ErrorKind, IdempotencyKey, LabelFormat, OrderRequest, RateLimit, Timeouts,
    calls::StopReason,
    transport::{BodyStream, ResponseFuture, Transport},
};
use tokio::{
    sync::{mpsc, oneshot},
    time::sleep,
};

use crate::scripted_transport::{CREATED, RECORD, key, number, order, orders};

/// A service with a latency, so that calls overlap. Responses arrive without being polled, as on a connection.
#[derive(Debug, Clone, Default)]
struct FakeService {
    created: Arc<AtomicUsize>,
}

impl FakeService {
    fn client() -> (Client, Self) {
        let service = Self::default();
        (Client::builder(key()).transport(service.clone()).build().unwrap(), service)
    }

    fn created(&self) -> usize {
        self.created.load(Ordering::Relaxed)
    }
}

const LATENCY: Duration = Duration::from_millis(40);

impl Transport for FakeService {
    fn send(&self, request: http::Request<Bytes>) -> ResponseFuture<'_> {
        let (status, body) = match request.uri().path() {
            path if path.ends_with("/create") => {
                self.created.fetch_add(1, Ordering::Relaxed);
                (201, CREATED)
            }
            path if path.ends_with("/download") => (200, "%PDF-1.7 and what follows it"),
            _ => (200, RECORD),
        };
        let (sender, arrived) = oneshot::channel();
        tokio::spawn(async move {
            sleep(LATENCY).await;
            // A connection has room for one unread chunk.
            let (pieces, body_in) = mpsc::channel(1);
            let body_out = stream::unfold(body_in, async |mut pieces| {
                Some((Ok(pieces.recv().await?), pieces))
            });
            let response = http::Response::builder().status(status);
            let _ = sender.send(response.body(BodyStream::new(body_out)).unwrap());
            for piece in body.as_bytes().chunks(body.len() / 3) {
                let _ = pieces.send(Bytes::from_static(piece)).await;
            }
        });
        Box::pin(async move { Ok(arrived.await.unwrap()) })
    }
}

/// Polls a future once, and leaves it pending.
async fn poll_once<T>(future: &mut (impl Future<Output = T> + Unpin)) {
    poll_fn(|context| {
        assert!(future.poll_unpin(context).is_pending());
        Poll::Ready(())
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn labels_can_be_saved_in_the_loop_that_creates_orders() {
    let (client, service) = FakeService::client();
    // As in a worker that cannot wait: a call that hangs ends after five seconds.
    for client in [client.with_timeouts(Timeouts::default().total(5 * LATENCY * 25)), client] {
        let folder = tempfile::tempdir().unwrap();
        let mut creations = client.orders().create_many(orders("labels", 20));
        let mut saved = 0;
        while let Some((index, created)) = creations.next().await {
            let number = created.unwrap().into_inner().parcel.tracking_number;
            let download = client.labels().download(&number, LabelFormat::Pdf);
            download.save_to(folder.path().join(format!("{index}.pdf"))).await.unwrap();
            saved += 1;
        }
        assert_eq!(saved, 20);
    }
    assert_eq!(service.created(), 40, "each was sent once");
}

#[tokio::test(start_paused = true)]
async fn any_other_call_may_be_made_in_the_loop() {
    let (client, service) = FakeService::client();
    let mut creations = client.orders().create_many(orders("outer", 30)).concurrency(16);
    let mut done = 0;
    while let Some((_, created)) = creations.next().await {
        created.unwrap();
        client.tracking().get(&number()).await.unwrap();
        let mut parts = client.clone().orders().create_many(orders("inner", 3)).concurrency(2);
        while let Some((_, created)) = parts.next().await {
            created.unwrap();
            done += 1;
        }
    }
    assert_eq!((done, service.created()), (90, 120));
}

#[tokio::test(start_paused = true)]
async fn a_loop_with_select_creates_every_order() {
    let (client, service) = FakeService::client();
    let mut creations = client.orders().create_many(orders("select", 50)).concurrency(4);
    let mut ticks = tokio::time::interval(LATENCY / 4);
    let mut done = 0;
    loop {
        tokio::select! {
            created = creations.next() => match created {
                Some((_, created)) => { created.unwrap(); done += 1; }
                None => break,
            },
            _ = ticks.tick() => { client.tracking().get(&number()).await.unwrap(); }
        }
    }
    assert_eq!((done, service.created()), (50, 50));
}

#[tokio::test(start_paused = true)]
async fn a_call_that_loses_a_select_delays_no_others() {
    let (client, _) = FakeService::client();
    let number = number();
    for _ in 0..200 {
        tokio::select! {
            biased;
            _ = client.tracking().get(&number).into_future() => {}
            () = sleep(LATENCY / 8) => {}
        }
    }
    let began = crate::retries::now();
    client.tracking().get(&number).await.unwrap();
    assert!(began.elapsed() < 2 * LATENCY, "{:?}", began.elapsed());
}

#[tokio::test(start_paused = true)]
async fn futures_polled_only_once_delay_no_others() {
    let (client, service) = FakeService::client();
    let (first, second, third) = (order(), order(), order());
    let create = |order| client.orders().create(order).into_future();
    let mut left = [&first, &second, &third].map(create);
    for call in &mut left {
        poll_once(call).await;
    }
    let began = crate::retries::now();
    for created in client.orders().create_many(orders("next", 20)).collect::<Vec<_>>().await {
        created.1.unwrap();
    }
    client.health().await.unwrap_err(); // the fake service has no health response
    assert!(began.elapsed() < Duration::from_secs(1), "{:?}", began.elapsed());
    // They can be continued: the first had been sent, the others were queued.
    for call in left {
        call.await.unwrap();
    }
    assert_eq!(service.created(), 23);
}

#[tokio::test(start_paused = true)]
async fn a_response_in_time_wins_over_an_unpolled_timeout() {
    let (client, service) = FakeService::client();
    let order = order();
    let mut call = client.orders().create(&order).into_future();
    poll_once(&mut call).await;
    sleep(Duration::from_secs(3600)).await;
    let created = call.await.unwrap();
    assert_eq!((created.meta().attempts, service.created()), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn a_call_unpolled_past_its_timeout_is_not_sent() {
    let service = FakeService::default();
    let client = Client::builder(key()).rate_limit(RateLimit::adaptive().burst(1));
    let client = client.transport(service.clone()).build().unwrap();
    let (number, order) = (number(), order());
    client.tracking().get(&number).await.unwrap();
    let mut call = client.orders().create(&order).into_future();
    let mut before = client.tracking().get(&number).into_future();
    poll_once(&mut before).await;
    poll_once(&mut call).await;
    sleep(Duration::from_secs(3600)).await;
    let error = call.await.unwrap_err();
    assert_eq!(error.stop_reason(), Some(StopReason::Deadline));
    assert_eq!((error.kind(), error.attempts()), (ErrorKind::Timeout, 0));
    assert!(!error.may_have_executed() && service.created() == 0);
}

#[tokio::test(start_paused = true)]
async fn orders_are_sent_while_their_results_are_not_read() {
    let (client, service) = FakeService::client();
    let mut creations = client.orders().create_many(orders("alone", 20)).concurrency(5);
    creations.next().await.unwrap().1.unwrap();
    sleep(Duration::from_secs(3600)).await;
    assert!(
        (5..=6).contains(&service.created()),
        "no more than may be unread: {}",
        service.created()
    );
    let rest: Vec<_> = creations.collect().await;
    assert!(rest.len() == 19 && rest.iter().all(|(_, created)| created.is_ok()));
    assert_eq!(service.created(), 20);
}

/// Returns a stream of the orders that are sent to a channel, with their keys. It cannot be moved while it is polled.
fn from_channel(
    orders: mpsc::Receiver<OrderRequest>,
) -> impl Stream<Item = (IdempotencyKey, OrderRequest)> + Send {
    stream::unfold(orders, async |mut orders| {
        let order: OrderRequest = orders.recv().await?;
        Some(((order.idempotency_key.clone(), order), orders))
    })
}

#[tokio::test(start_paused = true)]
async fn orders_of_a_stream_are_created_as_they_come() {
    let (client, service) = FakeService::client();
    let (sender, receiver) = mpsc::channel(1);
    let mut creations = client.orders().create_stream(from_channel(receiver));
    poll_once(&mut Box::pin(creations.next())).await;
    for (sent, order) in (1..).zip(orders("stream", 5)) {
        let key = order.idempotency_key.clone();
        sender.send(order).await.unwrap();
        // The source has no other order yet, and is still open.
        let (value, created) = creations.next().await.unwrap();
        assert_eq!((value, created.is_ok(), service.created()), (key, true, sent));
        poll_once(&mut Box::pin(creations.next())).await;
    }
    let mut waiting = tokio::spawn(async move { creations.next().await.is_none() });
    poll_once(&mut waiting).await;
    drop(sender);
    assert!(waiting.await.unwrap(), "it ends with its source");
}

#[tokio::test(start_paused = true)]
async fn a_slow_stream_does_not_hold_up_the_results_of_its_orders() {
    let (client, service) = FakeService::client();
    let slow = stream::iter(orders("slow", 3)).zip(stream::iter(["a", "b", "c"]));
    let slow = slow.then(async |(order, row)| {
        sleep(25 * LATENCY).await;
        (row, order)
    });
    let began = crate::retries::now();
    let mut creations = client.orders().create_stream(slow).concurrency(2);
    for (count, row) in (1..).zip(["a", "b", "c"]) {
        let (value, created) = creations.next().await.unwrap();
        assert_eq!((value, created.is_ok()), (row, true));
        assert!(began.elapsed() < count * 25 * LATENCY + 5 * LATENCY, "{row} came late");
    }
    assert!(creations.next().await.is_none());
    assert_eq!(service.created(), 3);
}

#[tokio::test(start_paused = true)]
async fn no_more_orders_of_a_stream_are_taken_than_may_be_unread() {
    let (client, service) = FakeService::client();
    let endless = stream::repeat_with(|| ((), order()));
    let mut creations = client.orders().create_stream(endless).concurrency(5);
    creations.next().await.unwrap().1.unwrap();
    sleep(Duration::from_secs(3600)).await;
    assert!((5..=6).contains(&service.created()), "{}", service.created());
}

#[test]
fn outside_a_runtime_every_order_is_an_error() {
    let (client, service) = FakeService::client();
    let mut creations = client.orders().create_many(orders("nowhere", 2));
    for index in 0..2 {
        let (at, created) = creations.next().now_or_never().unwrap().unwrap();
        let error = created.unwrap_err();
        assert_eq!((at, error.kind()), (index, ErrorKind::Config));
        assert!(error.to_string().contains("tokio") && error.idempotency_key().is_some());
        assert!(!error.may_have_executed());
    }
    assert!(creations.next().now_or_never().unwrap().is_none());
    assert_eq!(service.created(), 0);
}
