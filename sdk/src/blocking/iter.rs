//! Iterators over results: a whole list, and many orders at once.

use std::fmt;

use super::driver::Driver;
use crate::{
    client,
    client::{Error, Reply},
    model::{CreatedOrder, OrderRequest},
};

/// An iterator that requests pages as it needs them. After a row that cannot be read it continues; after any other
/// error it ends.
#[must_use = "an iterator requests nothing until it is used"]
pub struct ItemIter<'a, T> {
    items: Option<client::ItemStream<Result<T, Error>>>,
    driver: &'a Driver,
}

impl<'a, T> ItemIter<'a, T> {
    pub(super) fn new(items: client::ItemStream<Result<T, Error>>, driver: &'a Driver) -> Self {
        Self { items: Some(items), driver }
    }
}

impl<T> Iterator for ItemIter<'_, T> {
    type Item = Result<T, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        let next = self.driver.wait(self.items.as_mut()?.next());
        next.unwrap_or_else(|ended| {
            self.items = None;
            Some(Err(ended))
        })
    }
}

impl<T> fmt::Debug for ItemIter<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ItemIter").finish_non_exhaustive()
    }
}

/// The creation of an iterator's orders, several at a time: an iterator of each order's index and its result, in
/// the order of completion. See [`CreateMany`](crate::client::CreateMany).
///
/// The calls run on the client's thread, also between two calls of `next`. Dropping the iterator aborts those in
/// progress: send their orders again, with the keys that they have.
#[derive(Debug)]
#[must_use = "an iterator creates nothing until it is used"]
pub struct CreateMany<'a, I> {
    orders: Option<client::CreateMany<I>>,
    driver: &'a Driver,
}

impl<'a, I> CreateMany<'a, I> {
    pub(super) fn new(orders: client::CreateMany<I>, driver: &'a Driver) -> Self {
        Self { orders: Some(orders), driver }
    }

    /// How many orders may be in progress, or completed but not yet read, at once. The default is 8, and 0 counts
    /// as 1.
    pub fn concurrency(self, concurrency: usize) -> Self {
        Self { orders: self.orders.map(|orders| orders.concurrency(concurrency)), ..self }
    }
}

impl<I: Iterator<Item = OrderRequest> + Unpin> Iterator for CreateMany<'_, I> {
    type Item = (usize, Result<Reply<CreatedOrder>, Error>);

    fn next(&mut self) -> Option<Self::Item> {
        let orders = self.orders.as_mut()?;
        let taken = orders.taken();
        self.driver.wait(orders.next()).unwrap_or_else(|ended| {
            self.orders = None;
            Some((taken, Err(ended)))
        })
    }
}
