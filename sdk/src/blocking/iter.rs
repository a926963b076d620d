//! Results that arrive one after another: a whole list, many orders at once, and the bytes of a file.

use std::{
    fmt,
    io::{self, Read},
};

use bytes::{Buf, Bytes};
use parcelo_types::{OrderRequest, model::CreatedOrder};

use super::driver::{Driver, FromAsync};
use crate::client::{self, Error, LabelStream, Reply};

/// An iterator that requests pages as it needs them. It continues after a row that cannot be read, and ends after any
/// other error.
#[must_use = "an iterator requests nothing until it is used"]
pub struct ItemIter<'a, T> {
    items: Option<client::ItemStream<Result<T, Error>>>,
    driver: &'a Driver,
}

impl<'a, T> FromAsync<'a, client::ItemStream<Result<T, Error>>> for ItemIter<'a, T> {
    fn from_async(items: client::ItemStream<Result<T, Error>>, driver: &'a Driver) -> Self {
        Self { items: Some(items), driver }
    }
}

impl<T> Iterator for ItemIter<'_, T> {
    type Item = Result<T, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        let next = self.driver.wait(self.items.as_mut()?.next());
        next.unwrap_or_else(|error| {
            self.items = None;
            Some(Err(error))
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

impl<'a, I> FromAsync<'a, client::CreateMany<I>> for CreateMany<'a, I> {
    fn from_async(orders: client::CreateMany<I>, driver: &'a Driver) -> Self {
        Self { orders: Some(orders), driver }
    }
}

impl<I> CreateMany<'_, I> {
    /// Sets the maximum number of orders that are in progress, or completed but not yet read, at once. The default is
    /// 8, and 0 counts as 1.
    pub fn concurrency(self, concurrency: usize) -> Self {
        Self { orders: self.orders.map(|orders| orders.concurrency(concurrency)), ..self }
    }
}

impl<I: Iterator<Item = OrderRequest> + Unpin> Iterator for CreateMany<'_, I> {
    type Item = (usize, Result<Reply<CreatedOrder>, Error>);

    fn next(&mut self) -> Option<Self::Item> {
        let orders = self.orders.as_mut()?;
        let taken = orders.taken();
        self.driver.wait(orders.next()).unwrap_or_else(|error| {
            self.orders = None;
            Some((taken, Err(error)))
        })
    }
}

/// A label file that is being downloaded.
///
/// Reading fails when the file does not arrive whole; the [`io::Error`] wraps the [`Error`].
#[derive(Debug)]
pub struct LabelReader<'a> {
    stream: LabelStream,
    driver: &'a Driver,
    /// Bytes that were received but not read yet.
    chunk: Bytes,
}

impl<'a> FromAsync<'a, LabelStream> for LabelReader<'a> {
    fn from_async(stream: LabelStream, driver: &'a Driver) -> Self {
        Self { stream, driver, chunk: Bytes::new() }
    }
}

impl LabelReader<'_> {
    /// Returns the file's length in bytes, if the service states it.
    pub fn length(&self) -> Option<u64> {
        self.stream.length()
    }
}

impl Read for LabelReader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.chunk.is_empty() && !buffer.is_empty() {
            let next = self.driver.wait(self.stream.next()).map_err(io::Error::other)?;
            let Some(chunk) = next else { return Ok(0) };
            self.chunk = chunk.map_err(io::Error::other)?;
        }
        (&mut self.chunk).reader().read(buffer)
    }
}
