//! A server on a thread of its own: it outlives the runtime of the test that started it, and goes on while a caller's
//! thread is blocked.
//!
//! Calls of the server's methods still run on the caller's thread, so that they may borrow and their panics are the
//! caller's. Only what they leave to a runtime (sockets, timers, tasks) belongs to the server's.

use std::{future::poll_fn, sync::mpsc::sync_channel, thread};

use tokio::runtime::{self, EnterGuard, Handle};

use super::{Builder, MockServer, sync};

impl Builder {
    /// Starts the server on a thread of its own, and blocks until it listens; it may be called inside a runtime too. The
    /// thread ends when the server is dropped.
    ///
    /// Such a server can be a `static` that many tests share, each with a runtime of its own, or none: calls that are
    /// waited for (`parcelo::blocking`) do not block it. Keys of different accounts see different parcels. With tokio's
    /// time paused, use [`Builder::start`]: this server's time is not the caller's.
    ///
    /// ```
    /// use std::{sync::LazyLock, time::Duration};
    ///
    /// use parcelo::{ParcelStatus, blocking::Wait};
    /// use parcelo_server::mock::MockServer;
    ///
    /// static SERVER: LazyLock<MockServer> = LazyLock::new(MockServer::start_blocking);
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let client = SERVER.client(&SERVER.key().account("shop-1").issue());
    /// let created = client.orders().create(&MockServer::order("SB-SUCCESS-0001")).wait()?;
    /// SERVER.block_on(SERVER.clock().advance(Duration::from_secs(25 * 60)));
    /// let record = client.tracking().get(&created.parcel.tracking_number).wait()?;
    /// assert_eq!(record.status, ParcelStatus::Delivered);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Panics
    ///
    /// If no thread can be started, or no port of `127.0.0.1` can be bound.
    pub fn start_blocking(self) -> MockServer {
        let (sender, started) = sync_channel(1);
        let run = move || {
            #[expect(clippy::expect_used, reason = "a test cannot go on; documented")]
            let runtime =
                runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
            let mut server = runtime.block_on(self.start());
            server.own_runtime = Some(runtime.handle().clone());
            let stop = server.stop.clone();
            // This cannot fail, because the caller waits.
            let _ = sender.send(server);
            // Then the runtime is dropped here, with its connections and tasks: it could not be where a test is async.
            runtime.block_on(stop.requested());
        };
        #[expect(clippy::expect_used, reason = "a test cannot go on; documented")]
        thread::Builder::new().name("parcelo-mock".to_owned()).spawn(run).expect("a thread");
        #[expect(clippy::expect_used, reason = "the thread's own panic says why; documented")]
        started.recv().expect("the server's thread starts it")
    }
}

impl MockServer {
    /// Starts a server with the defaults of [`MockServer::builder`] on a thread of its own; see
    /// [`Builder::start_blocking`].
    ///
    /// # Panics
    ///
    /// If no thread can be started, or no port of `127.0.0.1` can be bound.
    pub fn start_blocking() -> Self {
        Self::builder().start_blocking()
    }

    /// Blocks until an asynchronous call returns, such as [`ClockControl::advance`](super::ClockControl::advance) or
    /// the SDK's, for tests without a runtime.
    ///
    /// # Panics
    ///
    /// If the server was not started by [`Builder::start_blocking`]: it could not serve while its thread is blocked.
    #[track_caller]
    pub fn block_on<F: IntoFuture>(&self, call: F) -> F::Output {
        assert!(
            self.own_runtime.is_some(),
            "only a server that was started by start_blocking can serve a blocked thread"
        );
        sync::block_on(self.in_own_runtime(call.into_future()))
    }

    /// Polls a call so that the sockets, timers and tasks that it creates belong to the runtime of the server's own
    /// thread, if it has one.
    pub(super) fn in_own_runtime<F: Future>(&self, call: F) -> impl Future<Output = F::Output> {
        let mut call = Box::pin(call);
        poll_fn(move |context| {
            let _entered = self.enter_own_runtime();
            call.as_mut().poll(context)
        })
    }

    /// Makes the runtime of the server's own thread, if it has one, the current one until the guard is dropped.
    pub(super) fn enter_own_runtime(&self) -> Option<EnterGuard<'_>> {
        self.own_runtime.as_ref().map(Handle::enter)
    }
}

#[cfg(test)]
mod tests {
    use std::{
        io::{Read, Write},
        net::TcpStream,
    };

    use parcelo_types::Operation;

    use super::*;

    /// Drops a server and waits until its thread has closed a connection that was open.
    fn drop_with_open_connection(server: MockServer) {
        let mut connection =
            TcpStream::connect(server.url().trim_start_matches("http://")).unwrap();
        connection.write_all(b"GET /api/v1/health HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
        let mut response = [0; 4];
        connection.read_exact(&mut response).unwrap();
        assert_eq!(&response, b"HTTP");
        drop(server);
        // An error is an end too: the connection was reset.
        let _ = connection.read_to_end(&mut Vec::new());
    }

    #[test]
    fn the_thread_of_a_dropped_server_ends_outside_a_runtime() {
        drop_with_open_connection(MockServer::start_blocking());
    }

    #[tokio::test]
    async fn the_thread_of_a_dropped_server_ends_inside_a_runtime() {
        drop_with_open_connection(MockServer::start_blocking());
    }

    #[test]
    #[should_panic(expected = "hit no request: CreateOrder no. 2")]
    fn a_server_on_its_own_thread_fails_the_test_that_drops_it() {
        let server = MockServer::builder().verify_on_drop().start_blocking();
        server.faults().on(Operation::CreateOrder).nth(2).close();
    }

    #[tokio::test]
    #[should_panic(expected = "only a server that was started by start_blocking")]
    async fn blocking_the_thread_of_a_server_fails_instead_of_hanging() {
        let server = MockServer::start().await;
        server.block_on(server.clock().freeze());
    }
}
