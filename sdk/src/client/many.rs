//! Many answers, one after the other: whole lists, and many orders at once.

use std::{
    fmt,
    iter::Fuse,
    panic::resume_unwind,
    pin::Pin,
    task::{Context, Poll, ready},
};

use futures_util::{
    FutureExt, Stream, StreamExt,
    stream::{BoxStream, FuturesUnordered},
};
use tokio::{runtime::Handle, task::JoinHandle};
use tracing::Instrument;

use super::{Client, Error, ErrorKind, Reply, error::Texts};
use crate::model::{CreatedOrder, IdempotencyKey, OrderRequest};

/// Items that come one after the other: call [`Items::next`], or use it as a `futures` stream. It has
/// its own clone of the client, so it may outlive that and be sent to another task.
#[must_use = "nothing is asked until it is polled"]
pub struct Items<T>(BoxStream<'static, T>);

impl<T> Items<T> {
    pub(super) fn of(items: impl Stream<Item = T> + Send + 'static) -> Self {
        Self(items.fuse().boxed())
    }

    /// The next item; none at the end.
    pub async fn next(&mut self) -> Option<T> {
        self.0.next().await
    }
}

impl<T> Stream for Items<T> {
    type Item = T;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<T>> {
        self.0.poll_next_unpin(context)
    }
}

impl<T> fmt::Debug for Items<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Items").finish_non_exhaustive()
    }
}

/// The orders of an iterator, being created several at a time: a stream of each one's place in the
/// iterator and its result, in the order in which they are done.
///
/// Its calls are tasks of the tokio runtime in which it is polled: they go on while the loop around it
/// does something else. An order is taken from the iterator when there is room for it, that is, when
/// fewer than [`CreateMany::concurrency`] are on their way or done and not yet read; so the iterator
/// may be as long as it likes. After a failure the others go on.
///
/// When it is dropped, calls on their way are broken off. What became of them is in doubt: send their
/// orders again, with the keys that they have. Outside a runtime each order's result is an error
/// (`Config`), and nothing is sent.
#[must_use = "nothing is created until it is polled"]
pub struct CreateMany<I> {
    client: Client,
    orders: Fuse<I>,
    concurrency: usize,
    next: usize,
    on_the_way: FuturesUnordered<Creation>,
}

type Created = (usize, Result<Reply<CreatedOrder>, Error>);

const CONCURRENCY: usize = 8;

impl<I: Iterator> CreateMany<I> {
    pub(super) fn new(client: &Client, orders: I) -> Self {
        let (client, orders) = (client.clone(), orders.fuse());
        let on_the_way = FuturesUnordered::new();
        Self { client, orders, concurrency: CONCURRENCY, next: 0, on_the_way }
    }
}

impl<I> CreateMany<I> {
    /// How many orders are on their way, or done and not yet read, at once; 8 unless said otherwise,
    /// and 0 counts as 1.
    pub fn concurrency(self, concurrency: usize) -> Self {
        Self { concurrency: concurrency.max(1), ..self }
    }
}

impl<I: Iterator<Item = OrderRequest> + Unpin> CreateMany<I> {
    /// The next order that is done; none when all are.
    pub async fn next(&mut self) -> Option<(usize, Result<Reply<CreatedOrder>, Error>)> {
        StreamExt::next(self).await
    }

    /// How many orders were taken from the iterator.
    #[cfg(feature = "blocking")]
    pub(crate) fn taken(&self) -> usize {
        self.next
    }

    fn fill(&mut self, runtime: &Handle) {
        while self.on_the_way.len() < self.concurrency {
            let Some((place, order)) = self.next_order() else { return };
            let (client, key) = (self.client.clone(), order.idempotency_key.clone());
            let call = async move { client.orders().create(&order).await };
            let call = runtime.spawn(call.in_current_span());
            self.on_the_way.push(Creation { place, key, call });
        }
    }

    /// The next order and its place.
    fn next_order(&mut self) -> Option<(usize, OrderRequest)> {
        let order = self.orders.next()?;
        let place = self.next;
        self.next += 1;
        Some((place, order))
    }
}

impl<I: Iterator<Item = OrderRequest> + Unpin> Stream for CreateMany<I> {
    type Item = (usize, Result<Reply<CreatedOrder>, Error>);

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        match Handle::try_current() {
            Ok(runtime) => self.fill(&runtime),
            Err(_) if self.on_the_way.is_empty() => {
                let unsent = |(place, order): (_, OrderRequest)| {
                    (place, Err(broken_off(NO_RUNTIME, ErrorKind::Config, order.idempotency_key)))
                };
                return Poll::Ready(self.next_order().map(unsent));
            }
            // What was sent inside a runtime is waited for outside as well.
            Err(_) => {}
        }
        self.on_the_way.poll_next_unpin(context)
    }
}

const NO_RUNTIME: Texts = (
    "Orders are created on a tokio runtime, and here is none; see also the blocking client.",
    "Los pedidos se crean en un runtime de tokio y aquí no hay ninguno; vea también el cliente bloqueante.",
);
const RUNTIME_ENDED: Texts = (
    "The tokio runtime ended before the answer came.",
    "El runtime de tokio terminó antes de recibir la respuesta.",
);

fn broken_off(why: Texts, kind: ErrorKind, key: IdempotencyKey) -> Error {
    Error::new(kind, why).with(|inner| {
        inner.may_have_executed = key.may_have_executed();
        inner.idempotency_key = Some(key);
    })
}

/// An order that is being created by a task of its own, which is broken off when this is dropped.
struct Creation {
    place: usize,
    key: IdempotencyKey,
    call: JoinHandle<Result<Reply<CreatedOrder>, Error>>,
}

impl Future for Creation {
    type Output = Created;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let created = match ready!(self.call.poll_unpin(context)) {
            Ok(created) => created,
            Err(ended) => match ended.try_into_panic() {
                // An observer's or a transport's own panic is the caller's, as in every call.
                Ok(panic) => resume_unwind(panic),
                Err(_) => Err(broken_off(RUNTIME_ENDED, ErrorKind::Network, self.key.clone())),
            },
        };
        Poll::Ready((self.place, created))
    }
}

impl Drop for Creation {
    fn drop(&mut self) {
        self.call.abort();
    }
}

impl<I> fmt::Debug for CreateMany<I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CreateMany")
            .field("concurrency", &self.concurrency)
            .field("taken", &self.next)
            .finish_non_exhaustive()
    }
}
