//! Listeners: accepting connections, limiting their number and duration, and stopping gracefully.

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
use tower::Service;

use super::{
    client_address::PeerAddress,
    connections::{AddressSlot, ConnectionLimits, MAX_CONNECTIONS, OpenConnections},
    lingering_close::{ConnectionState, LingeringStream},
    request_body::BodyNotDrained,
};

/// Maximum time for the head of a request to arrive. Without it, clients that send a byte now and then could occupy all
/// connections.
const REQUEST_HEAD_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum time for requests in flight to finish when the process stops: less than the 30 s that Kubernetes grants
/// by default.
pub const SHUTDOWN_GRACE: Duration = Duration::from_secs(25);
/// Time for the first request of a connection that was accepted just before the end of a drain.
const FIRST_REQUEST_TIMEOUT: Duration = Duration::from_millis(500);
/// Maximum size of a request's head and of a connection's read buffer, which lives as long as the connection.
const MAX_HEAD_BYTES: usize = 128 * 1024;

/// The phase of a listener's life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Serving,
    /// New connections are accepted, and each response is the last one of its connection.
    Draining,
    /// No connection is accepted, and requests in flight have this long to finish.
    Stopping(Duration),
    /// The same after a drain, whose last connections may have sent no request yet.
    StoppingDrained(Duration),
}

/// A handle that stops listeners; all clones stop the same ones.
#[derive(Debug, Clone)]
pub struct Stop(watch::Sender<Phase>);

impl Default for Stop {
    fn default() -> Self {
        Self(watch::Sender::new(Phase::Serving))
    }
}

impl Stop {
    /// Closes each connection after its next response, so that clients move to other servers. Listeners still accept.
    pub fn drain(&self) {
        self.0.send_replace(Phase::Draining);
    }

    /// Stops the listeners now. Requests in flight have [`SHUTDOWN_GRACE`] to finish.
    pub fn now(&self) {
        self.within(SHUTDOWN_GRACE);
    }

    /// Stops the listeners; requests in flight have `grace` to finish.
    pub fn within(&self, grace: Duration) {
        self.0.send_modify(|phase| {
            *phase = match *phase {
                Phase::Serving | Phase::Stopping(_) => Phase::Stopping(grace),
                Phase::Draining | Phase::StoppingDrained(_) => Phase::StoppingDrained(grace),
            }
        });
    }

    /// Waits until a stop is requested.
    pub async fn requested(&self) {
        self.grace().await;
    }

    /// Waits until a stop is requested. Returns the times for the first requests of new connections, and for all
    /// requests in flight to finish.
    async fn grace(&self) -> (Duration, Duration) {
        let mut phases = self.0.subscribe();
        loop {
            match *phases.borrow_and_update() {
                Phase::Serving | Phase::Draining => {}
                Phase::Stopping(grace) => return (Duration::ZERO, grace),
                Phase::StoppingDrained(grace) => return (FIRST_REQUEST_TIMEOUT, grace),
            }
            // This cannot fail, because `self` is a sender.
            let _ = phases.changed().await;
        }
    }

    fn is_stopping(&self) -> bool {
        *self.0.borrow() != Phase::Serving
    }
}

/// A connection that a listener serves: a plain one, or one that the mock server can break.
pub trait ServerStream: AsyncRead + AsyncWrite + Unpin + Send + Sized + 'static {
    /// A hook that decides about each response just before it is sent.
    type ResponseHook: Clone + Send + Sync + 'static;

    /// Wraps an accepted connection.
    fn open(stream: TcpStream) -> (Self, Self::ResponseHook);

    /// Returns the response to send. An error ends the connection without a response.
    fn release(hook: &Self::ResponseHook, response: Response) -> io::Result<Response>;
}

impl ServerStream for TcpStream {
    type ResponseHook = ();

    fn open(stream: Self) -> (Self, ()) {
        (stream, ())
    }

    fn release((): &(), response: Response) -> io::Result<Response> {
        Ok(response)
    }
}

/// A listener that serves until it is stopped.
#[derive(Debug)]
pub struct Listener(JoinHandle<()>);

impl Listener {
    /// Starts serving the routes on a socket until the stop.
    pub fn start(socket: TcpListener, routes: Router, stop: Stop) -> Self {
        Self::start_on::<TcpStream>(socket, routes, stop)
    }

    /// Starts serving like [`Self::start`], with a limit on the connections of one address.
    pub fn start_within(
        limits: ConnectionLimits,
        socket: TcpListener,
        routes: Router,
        stop: Stop,
    ) -> Self {
        Self::spawn::<TcpStream>(socket, routes, stop, Some(limits))
    }

    /// Starts serving like [`Self::start`], on connections of another kind.
    pub fn start_on<S: ServerStream>(socket: TcpListener, routes: Router, stop: Stop) -> Self {
        Self::spawn::<S>(socket, routes, stop, None)
    }

    fn spawn<S: ServerStream>(
        socket: TcpListener,
        routes: Router,
        stop: Stop,
        limits: Option<ConnectionLimits>,
    ) -> Self {
        let socket = (socket, OpenConnections::new(limits));
        Self(tokio::spawn(accept::<S>(MAX_CONNECTIONS as usize, socket, routes, stop)))
    }

    /// Closes the socket; requests in flight still get their responses.
    pub fn abort(self) {
        self.0.abort();
    }

    /// Waits until requests in flight have got their responses after a stop.
    pub async fn finish(self) {
        if let Err(error) = self.0.await {
            tracing::error!(%error, "a listener failed");
        }
    }
}

async fn accept<S: ServerStream>(
    limit: usize,
    (socket, open_connections): (TcpListener, Arc<OpenConnections>),
    routes: Router,
    stop: Stop,
) {
    let graceful = GracefulShutdown::new();
    let permits = Arc::new(Semaphore::new(limit));
    let mut stopped = std::pin::pin!(stop.grace());
    let (first_request_timeout, grace) = loop {
        tokio::select! {
            // This includes the wait for a slot, so that a stop ends it even when all slots are taken.
            result = accept_next(&socket, &permits, &open_connections) => match result {
                Ok(Some(accepted)) => {
                    serve_connection::<S>(accepted, routes.clone(), stop.clone(), &graceful);
                }
                // The address has all its slots already: the socket closes unserved.
                Ok(None) => {}
                Err(error) => pause_after_error(&error).await,
            },
            grace = &mut stopped => break grace,
        }
    };
    // The socket closes first: clients whose connection is refused go to another server at once, and those of a socket
    // that systemd holds wait there for the next one, while a connection accepted now could only be cut short. Then
    // requests in flight have their time.
    drop(socket);
    let finished = async {
        // hyper closes a connection without a request at once, though its client may be sending one.
        if graceful.count() > 0 {
            tokio::time::sleep(first_request_timeout).await;
        }
        graceful.shutdown().await;
    };
    if tokio::time::timeout(grace, finished).await.is_err() {
        tracing::warn!("some requests did not finish in time");
    }
}

/// An accepted connection with its slot.
struct AcceptedConnection {
    stream: TcpStream,
    peer: SocketAddr,
    slot: ConnectionSlot,
}

/// A connection's slot in the limits of the listener and of its address, released on drop.
struct ConnectionSlot {
    _permit: OwnedSemaphorePermit,
    _address: AddressSlot,
    open_connections: Arc<OpenConnections>,
}

/// Accepts the next connection. Returns `None` if its address has all its slots already.
async fn accept_next(
    socket: &TcpListener,
    permits: &Arc<Semaphore>,
    open_connections: &Arc<OpenConnections>,
) -> io::Result<Option<AcceptedConnection>> {
    // The permit comes before `accept`: at the limit, further connections wait in the system's queue and need no file
    // descriptor, which the store and webhooks need too.
    let permit = Arc::clone(permits).acquire_owned().await.map_err(io::Error::other)?;
    let (stream, peer) = socket.accept().await?;
    let open_connections = Arc::clone(open_connections);
    Ok(open_connections.admit(peer.ip()).map(|slot| {
        let slot = ConnectionSlot { _permit: permit, _address: slot, open_connections };
        AcceptedConnection { stream, peer, slot }
    }))
}

/// Waits after a failed accept. If file descriptors ran out, the next one would fail too.
async fn pause_after_error(error: &io::Error) {
    tracing::warn!(%error, "a connection could not be accepted");
    tokio::time::sleep(Duration::from_millis(50)).await;
}

fn serve_connection<S: ServerStream>(
    AcceptedConnection { stream, peer, slot }: AcceptedConnection,
    routes: Router,
    stop: Stop,
    graceful: &GracefulShutdown,
) {
    // Without Nagle's algorithm small responses are sent at once; a failure only makes them slower.
    let _ = stream.set_nodelay(true);
    let (stream, hook) = S::open(stream);
    let state = Arc::new(ConnectionState::default());
    let stream = LingeringStream::new(stream, Arc::clone(&state));
    // One count of references that only this connection has: for the one of `stop`, all connections would contend.
    let shared = Arc::new((hook, stop, Arc::clone(&state)));
    let service = service_fn(move |request: Request<Incoming>| {
        let mut request = request.map(Body::new);
        request.extensions_mut().insert(PeerAddress(peer.ip()));
        let (answering, shared) = (routes.clone().call(request), Arc::clone(&shared));
        async move {
            let (hook, stop, state) = &*shared;
            let Ok(mut response) = answering.await;
            if response.extensions().get::<BodyNotDrained>().is_some() {
                state.mark_unread();
            }
            state.mark_responded();
            if stop.is_stopping() {
                response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
            }
            S::release(hook, response)
        }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(REQUEST_HEAD_TIMEOUT)
        .max_buf_size(MAX_HEAD_BYTES)
        // The buffer's size alone would admit a longer head that comes in large packets.
        .max_header_size(MAX_HEAD_BYTES)
        .auto_date_header(false)
        .serve_connection(TokioIo::new(stream), service);
    let connection = graceful.watch(connection);
    tokio::spawn(async move {
        // A client that disconnects is not an error of the server: it is counted, not logged.
        if let Err(fault) = connection.await {
            slot.open_connections.count_bad_head(&fault, &state);
        }
        drop(slot);
    });
}

#[cfg(test)]
mod tests {
    use axum::routing::{MethodRouter, get};
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;
    use crate::waiting::{PausedTime, until};

    const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n";

    async fn read_response(stream: &mut TcpStream) -> String {
        stream.write_all(REQUEST).await.unwrap();
        let mut response = [0; 1_024];
        let length = stream.read(&mut response).await.unwrap();
        String::from_utf8_lossy(&response[..length]).to_lowercase()
    }

    /// Starts a listener with two slots and returns its address.
    async fn listener(handler: MethodRouter, stop: &Stop) -> (Listener, SocketAddr) {
        let socket = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = socket.local_addr().unwrap();
        let routes = Router::new().route("/", handler);
        let socket = (socket, OpenConnections::new(None));
        let accepting = accept::<TcpStream>(2, socket, routes, stop.clone());
        (Listener(tokio::spawn(accepting)), address)
    }

    #[tokio::test]
    async fn a_stop_works_when_all_slots_are_taken() {
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
    async fn a_draining_listener_accepts_and_closes_each_connection() {
        let stop = Stop::default();
        let (listener, address) = listener(get(|| async { "fine" }), &stop).await;
        let mut before = TcpStream::connect(address).await.unwrap();
        assert!(!read_response(&mut before).await.contains("connection: close"));
        stop.drain();
        for stream in [&mut before, &mut TcpStream::connect(address).await.unwrap()] {
            assert!(read_response(stream).await.contains("connection: close"));
            assert_eq!(stream.read(&mut [0; 1]).await.unwrap(), 0, "it is closed");
        }
        stop.now();
        listener.finish().await;
    }

    #[tokio::test]
    async fn a_connection_accepted_at_the_end_of_a_drain_is_served() {
        let stop = Stop::default();
        let (listener, address) = listener(get(|| async { "fine" }), &stop).await;
        let mut accepted = TcpStream::connect(address).await.unwrap();
        // Connections are accepted in their order.
        read_response(&mut TcpStream::connect(address).await.unwrap()).await;
        let paused = PausedTime::start();
        stop.drain();
        stop.now();
        until("the socket is closed", async || TcpStream::connect(address).await.is_err()).await;
        assert!(read_response(&mut accepted).await.contains("connection: close"));
        drop(paused);
        listener.finish().await;
    }
}
