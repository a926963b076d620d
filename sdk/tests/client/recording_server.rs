//! Errors that say whether a write may have been executed, over raw sockets: a server that knows the requests which
//! arrived whole checks what they say.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use parcelo::{
    Client, Error, IdempotencyKey, OrderRequest, RateLimit, Retry, Timeouts, model::KeyState,
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use crate::{
    scripted_transport::{key, order},
    socket::peer,
    write_outcomes::{ConnectionEnd, ExpectedOutcome, all_ends, assert_execution_is_reported},
};

/// Longer than any test takes.
const HOUR: Duration = Duration::from_secs(3_600);

/// A server that reads one request after another, and knows which arrived whole.
#[derive(Debug)]
struct RecordingServer {
    client: Client,
    next: Arc<Mutex<ConnectionEnd>>,
    arrived: Arc<AtomicBool>,
    _tasks: tokio::task::JoinSet<()>,
}

impl RecordingServer {
    async fn start() -> Self {
        let (next, arrived) = (Arc::new(Mutex::new(ConnectionEnd::Closed)), Arc::default());
        let (all_ends, arrived_whole) = (Arc::clone(&next), Arc::clone(&arrived));
        let (address, tasks) = peer(move |mut socket| {
            let (end, arrived_whole) = (*all_ends.lock().unwrap(), Arc::clone(&arrived_whole));
            async move {
                serve_request(&mut socket, end, &arrived_whole).await;
                if matches!(end, ConnectionEnd::Silence) {
                    // Nothing else happens, so time goes on to the end of the attempt.
                    tokio::time::pause();
                    std::future::pending::<()>().await;
                }
            }
        })
        .await;
        let client = Client::builder(key()).base_url(&address).unwrap().retry(Retry::none());
        let timeouts = Timeouts::default().total(HOUR).attempt(HOUR).connect(HOUR);
        let client = client.timeouts(timeouts).rate_limit(RateLimit::off()).build().unwrap();
        Self { client, next, arrived, _tasks: tasks }
    }

    /// Makes a call that ends in a given way. Returns its error, and `true` if the request arrived whole.
    async fn call(&self, order: &OrderRequest, end: ConnectionEnd) -> (Error, bool) {
        *self.next.lock().unwrap() = end;
        self.arrived.store(false, Ordering::SeqCst);
        let error = self.client.orders().create(order).await.unwrap_err();
        if matches!(end, ConnectionEnd::Silence) {
            tokio::time::resume();
        }
        (error, self.arrived.load(Ordering::SeqCst))
    }
}

async fn serve_request(socket: &mut TcpStream, end: ConnectionEnd, arrived_whole: &AtomicBool) {
    let length = match end {
        ConnectionEnd::Closed => return,
        ConnectionEnd::Cut => 20,
        _ => usize::MAX,
    };
    if !read(socket, length).await {
        return;
    }
    arrived_whole.store(true, Ordering::SeqCst);
    let text = match end {
        ConnectionEnd::Closed
        | ConnectionEnd::Cut
        | ConnectionEnd::Unanswered
        | ConnectionEnd::Silence => return,
        ConnectionEnd::Bytes(text) => text.to_owned(),
        ConnectionEnd::Response(status, kind) => {
            let body = kind.body();
            let length = body.len();
            format!(
                "HTTP/1.1 {status} X\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}"
            )
        }
    };
    // A client that has gone by now reads no response.
    let _ = socket.write_all(text.as_bytes()).await;
    let _ = socket.shutdown().await;
}

/// Reads at most this many bytes. Returns `true` if the request arrived whole.
async fn read(socket: &mut TcpStream, limit: usize) -> bool {
    let mut request = Vec::new();
    loop {
        let mut buffer = [0; 4096];
        let room = buffer.len().min(limit - request.len().min(limit));
        let Ok(length @ 1..) = socket.read(&mut buffer[..room]).await else { return false };
        request.extend_from_slice(&buffer[..length]);
        let text = String::from_utf8_lossy(&request);
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let head = head.to_lowercase();
            let length = head.split_once("content-length: ").unwrap().1;
            let length: usize = length.split("\r\n").next().unwrap().parse().unwrap();
            if body.len() >= length {
                return true;
            }
        }
    }
}

#[tokio::test]
async fn not_executed_is_reported_only_if_it_is_certain() {
    let recorder = RecordingServer::start().await;
    for (first, expected) in all_ends() {
        for (later, later_expected) in all_ends() {
            for resumed in [false, true] {
                let mut order = order();
                // The first says that the server may have executed the write; the second, that the client must assume it.
                let (mut possible, mut doubtful) = (false, false);
                for (end, expected) in [(first, expected), (later, later_expected)] {
                    let (error, arrived) = recorder.call(&order, end).await;
                    possible |= arrived && expected == ExpectedOutcome::None;
                    possible &= expected != ExpectedOutcome::Settled;
                    doubtful = (doubtful || expected == ExpectedOutcome::None)
                        && expected != ExpectedOutcome::Settled;
                    let may = error.may_have_executed();
                    let case = format!("{first:?}, {later:?}, resumed {resumed}: {error:?}");
                    assert!(may || !possible, "it can have been executed: {case}");
                    assert_eq!(may, doubtful, "{case}");
                    assert_eq!(order.idempotency_key.may_have_executed(), may, "{case}");
                    assert_execution_is_reported(&error);
                    if resumed {
                        order.idempotency_key = resume(&order.idempotency_key);
                    }
                }
            }
        }
    }
}

/// Returns the key as the next process restores it from its saved state.
fn resume(key: &IdempotencyKey) -> IdempotencyKey {
    let (text, state) = (key.to_string(), serde_json::to_string(&key.state()).unwrap());
    let state: KeyState = serde_json::from_str(&state).unwrap();
    IdempotencyKey::parse(&text).unwrap().with_state(&state)
}
