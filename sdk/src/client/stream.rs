//! Streams of results: a whole list, and many orders at once.

use std::{
    fmt,
    panic::resume_unwind,
    pin::Pin,
    task::{Context, Poll, ready},
};

use futures_util::{
    FutureExt, Stream, StreamExt,
    stream::{BoxStream, Fuse, FusedStream, FuturesUnordered},
};
use parcelo_types::{IdempotencyKey, OrderRequest, model::CreatedOrder};
use tokio::{runtime::Handle, task::JoinHandle};
use tracing::Instrument;

use super::{Client, Error, ErrorKind, Reply, call::call_settings, error::Texts};

/// A stream of items: call [`ItemStream::next`], or use it as a `futures` stream. It has a clone of the client, so it
/// can be sent to another task.
#[must_use = "a stream requests nothing until it is polled"]
pub struct ItemStream<T>(BoxStream<'static, T>);

impl<T> ItemStream<T> {
    pub(super) fn new(items: impl Stream<Item = T> + Send + 'static) -> Self {
        Self(items.fuse().boxed())
    }

    /// Returns the next item; `None` at the end.
    pub async fn next(&mut self) -> Option<T> {
        self.0.next().await
    }
}

impl<T> Stream for ItemStream<T> {
    type Item = T;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<T>> {
        self.0.poll_next_unpin(context)
    }
}

impl<T> fmt::Debug for ItemStream<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ItemStream").finish_non_exhaustive()
    }
}

/// The creation of many orders, several at a time: a stream of each order's value and its result, in the order of
/// completion. The value is the order's index in the iterator ([`create_many`](crate::calls::Orders::create_many)) or one
/// of the caller's ([`create_stream`](crate::calls::Orders::create_stream)).
///
/// Its calls are tasks of the tokio runtime that polls it, so they make progress while the loop around it does
/// something else. An order is taken from its source when fewer than [`CreateMany::concurrency`] are in progress or
/// completed but not yet read; so the source may be of any length. When one fails, the others continue.
///
/// Dropping the stream aborts the calls in progress. Their outcome is unknown: send their orders again, with the
/// keys that they have. Outside a runtime each order's result is an error (`Config`), and nothing is sent.
#[must_use = "a stream creates nothing until it is polled"]
pub struct CreateMany<'a, T = usize> {
    client: Client,
    orders: Fuse<BoxStream<'a, (T, OrderRequest)>>,
    concurrency: usize,
    in_progress: FuturesUnordered<SpawnedCreation<T>>,
}

/// Default number of concurrent calls: enough for 50 requests a second, the limit of a production key, as long as each
/// takes up to 160 ms.
const DEFAULT_CONCURRENCY: usize = 8;

call_settings!(CreateMany<'a, T>);

impl<'a, T> CreateMany<'a, T> {
    pub(super) fn new(
        client: &Client,
        orders: impl Stream<Item = (T, OrderRequest)> + Send + 'a,
    ) -> Self {
        let (client, orders) = (client.clone(), StreamExt::fuse(orders.boxed()));
        let in_progress = FuturesUnordered::new();
        Self { client, orders, concurrency: DEFAULT_CONCURRENCY, in_progress }
    }

    /// Sets the maximum number of orders that are in progress, or completed but not yet read, at once. The default is
    /// 8, and 0 counts as 1.
    pub fn concurrency(self, concurrency: usize) -> Self {
        Self { concurrency: concurrency.max(1), ..self }
    }

    /// Returns the next order that is completed; `None` when all are.
    pub async fn next(&mut self) -> Option<(T, Result<Reply<CreatedOrder>, Error>)> {
        StreamExt::next(self).await
    }

    /// Spawns a call for each order that its source has now.
    fn spawn_calls(&mut self, runtime: &Handle, context: &mut Context<'_>) {
        while self.in_progress.len() < self.concurrency {
            let Poll::Ready(Some((value, order))) = self.orders.poll_next_unpin(context) else {
                return;
            };
            let key = order.idempotency_key.clone();
            let call = self.client.orders().create(&order).into_future();
            let call = runtime.spawn(call.in_current_span());
            self.in_progress.push(SpawnedCreation { value: Some(value), key, call });
        }
    }
}

impl<T> Stream for CreateMany<'_, T> {
    type Item = (T, Result<Reply<CreatedOrder>, Error>);

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        match Handle::try_current() {
            Ok(runtime) => self.spawn_calls(&runtime, context),
            Err(_) if self.in_progress.is_empty() => {
                let next = ready!(self.orders.poll_next_unpin(context));
                return Poll::Ready(next.map(|(value, order)| {
                    (value, Err(aborted(NO_RUNTIME, ErrorKind::Config, order.idempotency_key)))
                }));
            }
            // Calls that were spawned inside a runtime can be awaited outside of it too.
            Err(_) => {}
        }
        match self.in_progress.poll_next_unpin(context) {
            // The source has no order yet, and wakes the task when it has one.
            Poll::Ready(None) if !self.orders.is_terminated() => Poll::Pending,
            next => next,
        }
    }
}

const NO_RUNTIME: Texts = (
    "create_many must be polled inside a tokio runtime; without one, wait for it with parcelo::blocking.",
    "create_many debe usarse dentro de un runtime de tokio; sin él, use parcelo::blocking.",
);
const RUNTIME_ENDED: Texts = (
    "The tokio runtime ended before the response came.",
    "El runtime de tokio terminó antes de recibir la respuesta.",
);

fn aborted(texts: Texts, kind: ErrorKind, key: IdempotencyKey) -> Error {
    Error::new(kind, texts).with(|inner| {
        inner.may_have_executed = key.may_have_executed();
        inner.idempotency_key = Some(key);
    })
}

/// A task that creates one order; dropping it aborts the task.
struct SpawnedCreation<T> {
    /// The caller's value of the order, until the task has ended.
    value: Option<T>,
    key: IdempotencyKey,
    call: JoinHandle<Result<Reply<CreatedOrder>, Error>>,
}

// The value is moved and never pinned.
impl<T> Unpin for SpawnedCreation<T> {}

impl<T> Future for SpawnedCreation<T> {
    type Output = (T, Result<Reply<CreatedOrder>, Error>);

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let created = match ready!(self.call.poll_unpin(context)) {
            Ok(created) => created,
            Err(ended) => match ended.try_into_panic() {
                // A panic of an observer or a transport reaches the caller, as in any other call.
                Ok(panic) => resume_unwind(panic),
                Err(_) => Err(aborted(RUNTIME_ENDED, ErrorKind::Network, self.key.clone())),
            },
        };
        // No future is polled again after its end.
        self.value.take().map_or(Poll::Pending, |value| Poll::Ready((value, created)))
    }
}

impl<T> Drop for SpawnedCreation<T> {
    fn drop(&mut self) {
        self.call.abort();
    }
}

impl<T> fmt::Debug for CreateMany<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CreateMany")
            .field("concurrency", &self.concurrency)
            .field("in_progress", &self.in_progress.len())
            .finish_non_exhaustive()
    }
}
