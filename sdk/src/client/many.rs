//! Many answers, one after the other: whole lists, and many orders at once.

use std::{
    fmt,
    iter::Fuse,
    pin::Pin,
    task::{Context, Poll},
};

use futures_util::{
    Stream, StreamExt,
    future::BoxFuture,
    stream::{BoxStream, FuturesUnordered},
};

use super::{Client, Error, Reply};
use crate::{CreatedOrder, OrderRequest};

/// Items that come one after the other: call [`Items::next`], or use it as a `futures` stream.
#[must_use = "nothing is asked until it is polled"]
pub struct Items<'a, T>(BoxStream<'a, T>);

impl<'a, T> Items<'a, T> {
    pub(super) fn of(items: impl Stream<Item = T> + Send + 'a) -> Self {
        Self(items.fuse().boxed())
    }

    /// The next item; none at the end.
    pub async fn next(&mut self) -> Option<T> {
        self.0.next().await
    }
}

impl<T> Stream for Items<'_, T> {
    type Item = T;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<T>> {
        self.0.poll_next_unpin(context)
    }
}

impl<T> fmt::Debug for Items<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Items").finish_non_exhaustive()
    }
}

/// The orders of an iterator, being created several at a time: a stream of each one's place in the
/// iterator and its result, in the order in which they are done.
///
/// An order is taken from the iterator when there is room for it, so that an iterator may be as long
/// as it likes. After a failure the others go on.
#[must_use = "nothing is created until it is polled"]
pub struct CreateMany<I> {
    client: Client,
    orders: Fuse<I>,
    concurrency: usize,
    next: usize,
    on_the_way: FuturesUnordered<BoxFuture<'static, Created>>,
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
    /// How many orders are on their way at once; 8 unless said otherwise, and 0 counts as 1.
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

    fn fill(&mut self) {
        while self.on_the_way.len() < self.concurrency {
            let Some(order) = self.orders.next() else { return };
            let (client, place) = (self.client.clone(), self.next);
            self.next += 1;
            self.on_the_way
                .push(Box::pin(async move { (place, client.orders().create(&order).await) }));
        }
    }
}

impl<I: Iterator<Item = OrderRequest> + Unpin> Stream for CreateMany<I> {
    type Item = (usize, Result<Reply<CreatedOrder>, Error>);

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.fill();
        self.on_the_way.poll_next_unpin(context)
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
