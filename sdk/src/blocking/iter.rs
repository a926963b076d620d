//! Many answers, one after the other, as iterators.

use std::fmt;

use super::driver::Driver;
use crate::{
    client,
    client::{Error, Reply},
    model::{CreatedOrder, OrderRequest},
};

/// Items that are asked for as the iterator needs them. After an error there is nothing more.
#[must_use = "nothing is asked until it is iterated over"]
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

/// The orders of an iterator, being created several at a time: an iterator of each one's place and
/// its result, in the order in which they are done. See [`CreateMany`](crate::client::CreateMany).
///
/// Orders go on their way by themselves, on the client's thread, between two calls of `next` too. When
/// it is dropped midway, they are broken off: send them again, with the keys that they have.
#[derive(Debug)]
#[must_use = "nothing is created until it is iterated over"]
pub struct CreateMany<'a, I> {
    orders: Option<client::CreateMany<I>>,
    driver: &'a Driver,
}

impl<'a, I> CreateMany<'a, I> {
    pub(super) fn new(orders: client::CreateMany<I>, driver: &'a Driver) -> Self {
        Self { orders: Some(orders), driver }
    }

    /// How many orders are on their way at once; 8 unless said otherwise, and 0 counts as 1.
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
