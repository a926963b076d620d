//! Accepting connections: sockets, their limits in time and number, and stopping in order.

use std::{io, net::SocketAddr, sync::Arc, time::Duration};

use axum::{
    Router,
    body::Body,
    extract::Request,
    http::{HeaderValue, header::CONNECTION},
    response::Response,
};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    server::graceful::GracefulShutdown,
};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpListener, TcpStream},
    sync::{OwnedSemaphorePermit, Semaphore, watch},
    task::JoinHandle,
};
use tower::ServiceExt;

use super::{
    client_address::Peer,
    connections::{AddressSlot, ConnectionLimits, MAX_CONNECTIONS, OpenConnections},
    linger::{ConnectionState, LingeringStream},
    request_body::BodyNotDrained,
};

/// How long a client may take to send the head of a request: without a limit, clients that send a byte now
/// and then could hold every connection.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);
/// How long requests in flight may take to finish when the process stops: less than the 30 s that
/// Kubernetes grants by default.
pub(crate) const SHUTDOWN_GRACE: Duration = Duration::from_secs(25);
/// The most bytes of a request's head, and of what is read ahead of a body: a connection keeps that
/// much as long as it lives.
const MAX_HEAD_BYTES: usize = 128 * 1024;

/// What listeners do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Serving,
    /// They accept as before, and each answer is the last of its connection.
    Draining,
    /// They accept no more, and requests in flight have this long to finish.
    Stopping(Duration),
}

/// Stops listeners, once and for all of its clones.
#[derive(Debug, Clone)]
pub struct Stop(watch::Sender<Phase>);

impl Default for Stop {
    fn default() -> Self {
        Self(watch::Sender::new(Phase::Serving))
    }
}

impl Stop {
    /// Lets clients go elsewhere, one answer after the other, while new ones are still served.
    pub fn drain(&self) {
        self.0.send_replace(Phase::Draining);
    }

    /// Stops them.
    pub fn now(&self) {
        self.within(SHUTDOWN_GRACE);
    }

    /// Stops them; requests in flight have this long to finish.
    pub fn within(&self, grace: Duration) {
        self.0.send_replace(Phase::Stopping(grace));
    }

    /// Resolves once it is time to stop.
    pub async fn requested(&self) {
        self.grace().await;
    }

    /// The same, with how long requests in flight have from then on.
    async fn grace(&self) -> Duration {
        let mut phases = self.0.subscribe();
        loop {
            if let Phase::Stopping(grace) = *phases.borrow_and_update() {
                return grace;
            }
            // An error would mean that no sender is left, and `self` is one.
            let _ = phases.changed().await;
        }
    }

    fn is_last(&self) -> bool {
        *self.0.borrow() != Phase::Serving
    }
}

/// A connection as a listener serves it: plain, or one that the mock server can break.
pub(crate) trait ServerStream:
    AsyncRead + AsyncWrite + Unpin + Send + Sized + 'static
{
    /// What decides about each response just before it is sent.
    type ResponseHook: Clone + Send + Sync + 'static;

    /// Takes a connection.
    fn open(stream: TcpStream) -> (Self, Self::ResponseHook);

    /// Lets a response be sent; an error ends the connection without it.
    fn release(hook: &Self::ResponseHook, answer: Response) -> io::Result<Response>;
}

impl ServerStream for TcpStream {
    type ResponseHook = ();

    fn open(stream: Self) -> (Self, ()) {
        (stream, ())
    }

    fn release((): &(), answer: Response) -> io::Result<Response> {
        Ok(answer)
    }
}

/// A listener that serves until it is stopped.
#[derive(Debug)]
pub struct Listener(JoinHandle<()>);

impl Listener {
    /// Serves the routes on a socket until the stop.
    pub fn start(socket: TcpListener, routes: Router, stop: Stop) -> Self {
        Self::start_on::<TcpStream>(socket, routes, stop)
    }

    /// The same with a bound on the connections of one address.
    pub fn start_within(
        limits: ConnectionLimits,
        socket: TcpListener,
        routes: Router,
        stop: Stop,
    ) -> Self {
        let connected = OpenConnections::new(Some(limits));
        Self(tokio::spawn(accept::<TcpStream>(socket, routes, stop, connected)))
    }

    /// The same on connections of another kind.
    pub(crate) fn start_on<S: ServerStream>(
        socket: TcpListener,
        routes: Router,
        stop: Stop,
    ) -> Self {
        Self(tokio::spawn(accept::<S>(socket, routes, stop, OpenConnections::new(None))))
    }

    /// Closes the socket; requests in flight are answered.
    pub(crate) fn end(self) {
        self.0.abort();
    }

    /// Waits until requests in flight are answered after a stop.
    pub async fn finish(self) {
        if let Err(error) = self.0.await {
            tracing::error!(%error, "a listener failed");
        }
    }
}

async fn accept<S: ServerStream>(
    socket: TcpListener,
    routes: Router,
    stop: Stop,
    connected: Arc<OpenConnections>,
) {
    accept_up_to::<S>(MAX_CONNECTIONS as usize, (socket, connected), routes, stop).await;
}

async fn accept_up_to<S: ServerStream>(
    most: usize,
    (socket, connected): (TcpListener, Arc<OpenConnections>),
    routes: Router,
    stop: Stop,
) {
    let graceful = GracefulShutdown::new();
    let permits = Arc::new(Semaphore::new(most));
    let mut stopped = std::pin::pin!(stop.grace());
    let grace = loop {
        tokio::select! {
            // The wait for a slot is in here too: a stop ends it also when all are taken.
            arrived = next(&socket, &permits, &connected) => match arrived {
                Ok(Some(arrival)) => serve::<S>(arrival, routes.clone(), stop.clone(), &graceful),
                // Its address has its share of the slots already: the socket closes unserved.
                Ok(None) => {}
                Err(error) => pause_after(&error).await,
            },
            grace = &mut stopped => break grace,
        }
    };
    // First the socket, so that clients whose connection is refused go to another server at once; a connection
    // accepted now could only be cut short. Then requests in flight have their time.
    drop(socket);
    if tokio::time::timeout(grace, graceful.shutdown()).await.is_err() {
        tracing::warn!("some requests did not finish in time");
    }
}

/// A connection that has just come in, with its slot.
struct Arrival {
    stream: TcpStream,
    peer: SocketAddr,
    slot: Slot,
}

/// A connection's slot among all, and among those of its address: given back when dropped.
struct Slot {
    _permit: OwnedSemaphorePermit,
    _address: AddressSlot,
    connected: Arc<OpenConnections>,
}

/// The next connection; `None` when its address has its share of the slots.
async fn next(
    socket: &TcpListener,
    permits: &Arc<Semaphore>,
    connected: &Arc<OpenConnections>,
) -> io::Result<Option<Arrival>> {
    // Before `accept`: at the limit, further connections wait in the system's queue and cost us nothing, not
    // even a file descriptor, which the store and webhooks need too.
    let permit = Arc::clone(permits).acquire_owned().await.map_err(io::Error::other)?;
    let (stream, peer) = socket.accept().await?;
    let connected = Arc::clone(connected);
    Ok(connected.admit(peer.ip()).map(|slot| {
        let slot = Slot { _permit: permit, _address: slot, connected };
        Arrival { stream, peer, slot }
    }))
}

/// Out of file descriptors, say: the next try is bound to fail too, so give others a moment.
async fn pause_after(error: &io::Error) {
    tracing::warn!(%error, "a connection could not be accepted");
    tokio::time::sleep(Duration::from_millis(50)).await;
}

fn serve<S: ServerStream>(
    Arrival { stream, peer, slot }: Arrival,
    routes: Router,
    stop: Stop,
    graceful: &GracefulShutdown,
) {
    // Small answers leave at once; a failure only makes them slower.
    let _ = stream.set_nodelay(true);
    let (stream, hook) = S::open(stream);
    let state = Arc::new(ConnectionState::default());
    let stream = LingeringStream::new(stream, Arc::clone(&state));
    let ending = Arc::clone(&state);
    let service = service_fn(move |request: Request<Incoming>| {
        let (routes, hook, stop) = (routes.clone(), hook.clone(), stop.clone());
        let state = Arc::clone(&state);
        async move {
            let mut request = request.map(Body::new);
            request.extensions_mut().insert(Peer(peer.ip()));
            let Ok(mut answer) = routes.oneshot(request).await;
            if answer.extensions().get::<BodyNotDrained>().is_some() {
                state.leave_unread();
            }
            state.expect_head();
            if stop.is_last() {
                answer.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
            }
            S::release(&hook, answer)
        }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .max_buf_size(MAX_HEAD_BYTES)
        // By itself the buffer lets a longer head pass, if it comes in large packets.
        .max_header_size(MAX_HEAD_BYTES)
        .auto_date_header(false)
        .serve_connection(TokioIo::new(stream), service);
    let connection = graceful.watch(connection);
    tokio::spawn(async move {
        // A client that breaks off is not an error of the server: it is counted, not logged.
        if let Err(fault) = connection.await {
            slot.connected.count_bad_head(&fault, &ending);
        }
        drop(slot);
    });
}

#[cfg(test)]
mod tests {
    use axum::routing::{MethodRouter, get};
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n";

    async fn answer(stream: &mut TcpStream) -> String {
        stream.write_all(REQUEST).await.unwrap();
        let mut answer = [0; 1_024];
        let length = stream.read(&mut answer).await.unwrap();
        String::from_utf8_lossy(&answer[..length]).to_lowercase()
    }

    /// A listener with two places, and its address.
    async fn listener(handler: MethodRouter, stop: &Stop) -> (Listener, SocketAddr) {
        let socket = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = socket.local_addr().unwrap();
        let routes = Router::new().route("/", handler);
        let accepting = accept_up_to::<TcpStream>(
            2,
            (socket, OpenConnections::new(None)),
            routes,
            stop.clone(),
        );
        (Listener(tokio::spawn(accepting)), address)
    }

    #[tokio::test]
    async fn a_stop_is_heard_when_all_places_are_taken() {
        let stop = Stop::default();
        let entered = Arc::new(Semaphore::new(0));
        let slow = {
            let entered = Arc::clone(&entered);
            get(move || async move {
                entered.add_permits(1);
                std::future::pending::<&str>().await
            })
        };
        let (listener, address) = listener(slow, &stop).await;
        let mut held = Vec::new();
        for _ in 0..2 {
            let mut stream = TcpStream::connect(address).await.unwrap();
            stream.write_all(REQUEST).await.unwrap();
            held.push(stream);
        }
        let _both = entered.acquire_many(2).await.unwrap();
        stop.within(Duration::ZERO);
        let finished = tokio::time::timeout(SHUTDOWN_GRACE, listener.finish()).await;
        assert!(finished.is_ok(), "the listener waits for a slot");
    }

    #[tokio::test]
    async fn a_listener_that_drains_accepts_and_lets_each_connection_go() {
        let stop = Stop::default();
        let (listener, address) = listener(get(|| async { "fine" }), &stop).await;
        let mut before = TcpStream::connect(address).await.unwrap();
        assert!(!answer(&mut before).await.contains("connection: close"));
        stop.drain();
        for stream in [&mut before, &mut TcpStream::connect(address).await.unwrap()] {
            assert!(answer(stream).await.contains("connection: close"));
            assert_eq!(stream.read(&mut [0; 1]).await.unwrap(), 0, "and it is closed");
        }
        stop.now();
        listener.finish().await;
        assert!(TcpStream::connect(address).await.is_err());
    }
}
