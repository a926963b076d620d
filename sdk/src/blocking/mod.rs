//! Calls without `async`: [`Wait::wait`] in place of `.await`, and [`WaitEach::wait_each`] in place of a stream.
//!
//! The client is the same [`Client`](crate::Client), with the same settings, retries, errors and guarantees. One that is
//! awaited in one part of a program can be waited for in another.
//!
//! ```
//! use parcelo::{
//!     Client, LabelFormat,
//!     blocking::{Wait, WaitEach},
//! };
//! # use parcelo_server::mock::MockServer;
//!
//! # let runtime = tokio::runtime::Runtime::new()?;
//! # let server = runtime.block_on(MockServer::start());
//! # let (key, address) = (server.key().issue(), server.url());
//! # let order = serde_json::from_str(parcelo_server::mock::sample::ORDER)?;
//! let client = Client::builder(key).base_url(address)?.build()?;
//! let created = client.orders().create(&order).wait()?;
//! let number = &created.parcel.tracking_number;
//! println!("{number} is {}", client.tracking().get(number).history(true).wait()?.status);
//! for parcel in client.parcels().list().stream().wait_each()? {
//!     println!("{}", parcel?.tracking_number);
//! }
//! let label = client.labels().download(number, LabelFormat::Pdf);
//! assert!(label.bytes().wait()?.starts_with(b"%PDF"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The file of a label is an [`std::io::Read`]:
//!
//! ```
#![doc = include_str!("example.txt")]
//! # let number = &numbers[0];
//! use parcelo::{LabelFormat, blocking::Wait};
//!
//! let mut label = client.labels().download(number, LabelFormat::Zpl).stream().wait()?;
//! let mut printer = Vec::new();
//! std::io::copy(&mut label, &mut printer)?;
//! assert!(printer.starts_with(b"^XA"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A call runs on the thread that waits. Connections and timers run on another one, named `parcelo`, which starts with
//! the first call and serves all clients of the process.
//!
//! Waiting also works inside a tokio runtime, but blocks its thread: prefer `.await` there. A connection that was opened
//! by `.await` belongs to the runtime in which it was opened. If all threads of that runtime are blocked by calls that
//! wait, such a connection does not answer: the call ends it after the timeout of an attempt, and opens another one.

mod driver;

use std::io::{self, Read};

use bytes::Buf;
use futures_util::{Stream, StreamExt};

use crate::client::{Error, LabelStream};
use driver::Driver;

/// Waiting for a call, or for any other future with the client's errors.
pub trait Wait: IntoFuture {
    /// Sends the call, and blocks the thread until its result is known.
    ///
    /// Errors: those of the call, and `Config` when the thread for connections cannot be started.
    ///
    /// ```
    #[doc = include_str!("example.txt")]
    /// use parcelo::blocking::Wait;
    ///
    /// let created = client.orders().create(&order).wait()?;
    /// println!("{}", created.parcel.tracking_number);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    fn wait(self) -> Self::Output;
}

impl<T, C> Wait for C
where
    C: IntoFuture<Output = Result<T, Error>>,
{
    fn wait(self) -> Result<T, Error> {
        // A task may be spawned already when the call becomes a future.
        Driver::get()?.wait(async { self.await })
    }
}

/// Waiting for the items of a stream, such as a whole list or the orders of
/// [`create_many`](crate::calls::Orders::create_many).
pub trait WaitEach: Stream + Sized {
    /// Returns an iterator over the items, which blocks the thread until the next one has come.
    ///
    /// Orders are created between two items too. Dropping the iterator aborts those in progress: send them again, with
    /// the keys that they have.
    ///
    /// Errors (`Config`) when the thread for connections cannot be started.
    ///
    /// ```
    #[doc = include_str!("example.txt")]
    /// # let orders = [order];
    /// use parcelo::blocking::WaitEach;
    ///
    /// for (index, created) in client.orders().create_many(orders).concurrency(16).wait_each()? {
    ///     match created {
    ///         Ok(created) => println!("{index}: {}", created.parcel.tracking_number),
    ///         Err(error) => eprintln!("{index}: {error}"),
    ///     }
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    fn wait_each(self) -> Result<Iter<Self>, Error>;
}

impl<S: Stream + Unpin> WaitEach for S {
    fn wait_each(self) -> Result<Iter<Self>, Error> {
        Ok(Iter { stream: self, driver: Driver::get()? })
    }
}

/// The items of a stream; from [`WaitEach::wait_each`].
#[derive(Debug)]
#[must_use = "an iterator requests nothing until it is used"]
pub struct Iter<S> {
    stream: S,
    driver: Driver,
}

impl<S: Stream + Unpin> Iterator for Iter<S> {
    type Item = S::Item;

    fn next(&mut self) -> Option<S::Item> {
        self.driver.wait(self.stream.next())
    }
}

/// Fails when the file does not arrive whole; the [`io::Error`] wraps the [`Error`].
impl Read for LabelStream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut chunk = self.take_unread();
        while chunk.is_empty() && !buffer.is_empty() {
            let driver = Driver::get().map_err(io::Error::other)?;
            let Some(next) = driver.wait(self.next()) else { return Ok(0) };
            chunk = next.map_err(io::Error::other)?;
        }
        let length = (&mut chunk).reader().read(buffer)?;
        self.put_back(chunk);
        Ok(length)
    }
}
