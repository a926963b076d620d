//! Accepting connections: sockets, their limits in time and number, and stopping in order.

use std::{
    io,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use axum::{Router, body::Body, extract::Request, response::Response};
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
    Peer,
    connections::{Connected, Connections, Seat},
    linger::Lingering,
    request_body::UnreadRest,
};

/// How long a client may take to send the head of a request.
const HEAD: Duration = Duration::from_secs(10);
/// How long requests in flight may take to finish when the process stops.
const LAST_WORDS: Duration = Duration::from_secs(25);
/// Connections served at once; a further one waits to be accepted.
pub(super) const MAX_CONNECTIONS: u32 = 10_000;
/// The most bytes of a request's head, and of what is read ahead of a body: a connection keeps that
/// much as long as it lives.
const MAX_BUFFER_BYTES: usize = 128 * 1024;

/// Tells listeners to stop.
#[derive(Debug, Clone)]
pub struct Stop(watch::Sender<bool>);

impl Default for Stop {
    fn default() -> Self {
        Self(watch::Sender::new(false))
    }
}

impl Stop {
    /// Stops them.
    pub fn now(&self) {
        self.0.send_replace(true);
    }

    /// Resolves once it is time to stop.
    pub async fn told(&self) {
        // An error would mean that no sender is left, and `self` is one.
        let _ = self.0.subscribe().wait_for(|stop| *stop).await;
    }
}

/// A connection as a listener serves it: plain, or one that the mock server can break.
pub(crate) trait Line: AsyncRead + AsyncWrite + Unpin + Send + Sized + 'static {
    /// What each answer passes on its way out.
    type Exit: Clone + Send + Sync + 'static;

    /// Takes a connection.
    fn open(stream: TcpStream) -> (Self, Self::Exit);

    /// Lets an answer out; an error ends the connection without it.
    fn pass(exit: &Self::Exit, answer: Response) -> io::Result<Response>;
}

impl Line for TcpStream {
    type Exit = ();

    fn open(stream: Self) -> (Self, ()) {
        (stream, ())
    }

    fn pass((): &(), answer: Response) -> io::Result<Response> {
        Ok(answer)
    }
}

/// A listener that serves until it is stopped.
#[derive(Debug)]
pub struct Listener(JoinHandle<()>);

impl Listener {
    /// Serves the routes on a socket until it is told to stop.
    pub fn start(socket: TcpListener, routes: Router, stop: Stop) -> Self {
        Self::start_on::<TcpStream>(socket, routes, stop)
    }

    /// The same with a bound on the connections of one address.
    pub fn start_within(
        connections: Connections,
        socket: TcpListener,
        routes: Router,
        stop: Stop,
    ) -> Self {
        let connected = Connected::under(Some(connections));
        Self(tokio::spawn(accept::<TcpStream>(socket, routes, stop, connected)))
    }

    /// The same on connections of another kind.
    pub(crate) fn start_on<L: Line>(socket: TcpListener, routes: Router, stop: Stop) -> Self {
        Self(tokio::spawn(accept::<L>(socket, routes, stop, Connected::under(None))))
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

async fn accept<L: Line>(
    socket: TcpListener,
    routes: Router,
    stop: Stop,
    connected: Arc<Connected>,
) {
    let graceful = GracefulShutdown::new();
    let places = Arc::new(Semaphore::new(MAX_CONNECTIONS as usize));
    loop {
        let Ok(place) = Arc::clone(&places).acquire_owned().await else { break };
        tokio::select! {
            accepted = socket.accept() => match accepted {
                Ok((stream, peer)) => {
                    // Somebody who has a share of the places already is not served; the socket closes.
                    let Some(seat) = connected.enter(peer.ip()) else { continue };
                    let place = Place { _permit: place, _seat: seat, connected: Arc::clone(&connected) };
                    serve::<L>((stream, peer), routes.clone(), place, &graceful);
                }
                Err(error) => rest_after(&error).await,
            },
            () = stop.told() => break,
        }
    }
    drop(socket);
    if tokio::time::timeout(LAST_WORDS, graceful.shutdown()).await.is_err() {
        tracing::warn!("some requests did not finish in time");
    }
}

/// Out of file descriptors, say: the next try is bound to fail too, so give others a moment.
async fn rest_after(error: &std::io::Error) {
    tracing::warn!(%error, "a connection could not be accepted");
    tokio::time::sleep(Duration::from_millis(50)).await;
}

/// A connection's place among all, and among those of its address.
struct Place {
    _permit: OwnedSemaphorePermit,
    _seat: Seat,
    connected: Arc<Connected>,
}

fn serve<L: Line>(
    (stream, peer): (TcpStream, SocketAddr),
    routes: Router,
    place: Place,
    graceful: &GracefulShutdown,
) {
    // Small answers leave at once; a failure only makes them slower.
    let _ = stream.set_nodelay(true);
    let (line, exit) = L::open(stream);
    let unread = Arc::new(AtomicBool::new(false));
    let line = Lingering::new(line, Arc::clone(&unread));
    let service = service_fn(move |request: Request<Incoming>| {
        let (routes, exit, unread) = (routes.clone(), exit.clone(), Arc::clone(&unread));
        async move {
            let mut request = request.map(Body::new);
            request.extensions_mut().insert(Peer(peer.ip()));
            let Ok(answer) = routes.oneshot(request).await;
            if answer.extensions().get::<UnreadRest>().is_some() {
                unread.store(true, Ordering::Relaxed);
            }
            L::pass(&exit, answer)
        }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD)
        .max_buf_size(MAX_BUFFER_BYTES)
        .auto_date_header(false)
        .serve_connection(TokioIo::new(line), service);
    let connection = graceful.watch(connection);
    tokio::spawn(async move {
        // A client that breaks off is no fault of ours.
        if let Err(fault) = connection.await {
            place.connected.ended(&fault);
        }
        drop(place);
    });
}
