//! The body of a request: it is copied into one buffer of bounded size, and read to its end after the response was
//! produced, so that the connection can be reused.

use std::{
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll},
    time::Duration,
};

use axum::{
    body::{Body, Bytes, HttpBody},
    extract::Request,
    http::{HeaderValue, header},
    middleware::Next,
    response::Response,
};
use http_body_util::BodyExt;
use hyper::body::{Frame, SizeHint};
use tokio::{sync::Notify, time::timeout};

/// Maximum size of a body: 256 KiB.
pub const MAX_BODY_BYTES: usize = 256 * 1024;
/// Maximum size of the buffer allocated before any of a body has arrived, since a client may declare any length.
const INITIAL_BUFFER_BYTES: usize = 16 * 1024;
/// Maximum size of an unread body that is drained after the response so that the connection stays open: the largest
/// valid body, plus what a client sends before it notices that its own is too large.
const MAX_DRAINED_BYTES: u64 = (MAX_BODY_BYTES + 64 * 1024) as u64;
/// Maximum time to drain it; together with the size it bounds the cost of a client that keeps sending.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(2);

/// A reason why a body could not be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BodyError {
    /// It exceeds the limit.
    TooLarge,
    /// It ended before it was complete.
    Incomplete,
}

/// Reads a whole body of at most `limit` bytes.
///
/// Its frames are copied and dropped one by one: each keeps the connection's read buffer alive, so a list of frames
/// would cost kilobytes for every byte that came in a separate packet.
pub async fn read_body<B>(mut body: B, limit: usize) -> Result<Vec<u8>, BodyError>
where
    B: HttpBody<Data = Bytes> + Unpin,
{
    let declared = usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX);
    if declared > limit {
        return Err(BodyError::TooLarge);
    }
    let mut whole = Vec::with_capacity(declared.min(INITIAL_BUFFER_BYTES));
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|_| BodyError::Incomplete)?;
        // A frame without data is a trailer; trailers are not used.
        let Ok(data) = frame.into_data() else { continue };
        if data.len() > limit - whole.len() {
            return Err(BodyError::TooLarge);
        }
        whole.extend_from_slice(&data);
    }
    Ok(whole)
}

/// A marker on a response whose request body was not read to its end. The connection is closed only after the client
/// had time to read the response, since bytes that arrive at a closed socket reset it.
#[derive(Debug, Clone, Copy)]
pub(super) struct BodyNotDrained;

/// A body that the handler reads and the middleware can continue to read. Its lock is held while one frame is polled,
/// never across an await.
#[derive(Clone)]
pub(super) struct SharedBody(Arc<SharedState>);

struct SharedState {
    source: Mutex<BodySource>,
    ended: Notify,
}

struct BodySource {
    body: Body,
    progress: ReadProgress,
    bytes: u64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ReadProgress {
    /// The handler has not begun to read it.
    Untouched,
    /// The handler has begun to read it.
    Begun,
    /// It was read to its end.
    Ended,
    /// It is not read any further.
    GivenUp,
}

impl SharedBody {
    /// Shares the body of a request. A request without a body is returned unchanged.
    pub(super) fn split_from(request: Request) -> (Option<Self>, Request) {
        if request.body().is_end_stream() {
            return (None, request);
        }
        let (parts, body) = request.into_parts();
        let source = Mutex::new(BodySource { body, progress: ReadProgress::Untouched, bytes: 0 });
        let shared = Self(Arc::new(SharedState { source, ended: Notify::new() }));
        let request = Request::from_parts(parts, Body::new(shared.clone()));
        (Some(shared), request)
    }

    /// Waits until the body was read to its end. Only the first call returns.
    pub(super) async fn ended(&self) {
        self.0.ended.notified().await;
    }

    /// Returns `true` if the handler waits for more of the body.
    pub(super) fn is_awaited(&self) -> bool {
        self.source().progress == ReadProgress::Begun
    }

    /// Stops reading the body.
    pub(super) fn give_up(&self) {
        self.source().progress = ReadProgress::GivenUp;
    }

    /// Reads the rest of the body. If that fails, the response closes the connection, where the rest would be parsed as
    /// the next request.
    pub(super) async fn drain_or_close(
        &self,
        expects_continue: bool,
        mut response: Response,
    ) -> Response {
        if !self.drain(expects_continue).await {
            let close = HeaderValue::from_static("close");
            response.headers_mut().insert(header::CONNECTION, close);
            response.extensions_mut().insert(BodyNotDrained);
        }
        response
    }

    async fn drain(&self, expects_continue: bool) -> bool {
        let rest = {
            let source = self.source();
            match source.progress {
                ReadProgress::Ended => return true,
                ReadProgress::GivenUp => return false,
                // Reading would make the client send a body that is not needed.
                ReadProgress::Untouched if expects_continue => return false,
                ReadProgress::Untouched | ReadProgress::Begun => source.body.size_hint().lower(),
            }
        };
        rest <= MAX_DRAINED_BYTES
            && timeout(DRAIN_TIMEOUT, self.clone().read_to_end()).await.unwrap_or(false)
    }

    async fn read_to_end(mut self) -> bool {
        while let Some(frame) = self.frame().await {
            if frame.is_err() || self.source().bytes > MAX_DRAINED_BYTES {
                return false;
            }
        }
        true
    }

    fn source(&self) -> MutexGuard<'_, BodySource> {
        self.0.source.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl HttpBody for SharedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let mut source = self.source();
        if matches!(source.progress, ReadProgress::Ended | ReadProgress::GivenUp) {
            return Poll::Ready(None);
        }
        source.progress = ReadProgress::Begun;
        let polled = Pin::new(&mut source.body).poll_frame(context);
        match &polled {
            Poll::Pending => {}
            Poll::Ready(Some(Ok(frame))) => {
                source.bytes += frame.data_ref().map_or(0, |data| data.len() as u64);
            }
            Poll::Ready(Some(Err(_))) => source.progress = ReadProgress::GivenUp,
            Poll::Ready(None) => {
                source.progress = ReadProgress::Ended;
                // The permit is kept for a waiter that comes later.
                self.0.ended.notify_one();
            }
        }
        polled
    }

    fn size_hint(&self) -> SizeHint {
        self.source().body.size_hint()
    }
}

/// Returns `true` if the client waits for a `100 Continue` before it sends the body.
pub(super) fn expects_continue(request: &Request) -> bool {
    request.headers().contains_key(header::EXPECT)
}

/// Drains each request's body, for routes without the areas' middleware.
pub(crate) async fn drain_bodies(request: Request, next: Next) -> Response {
    let expects = expects_continue(&request);
    let (body, request) = SharedBody::split_from(request);
    let response = next.run(request).await;
    match body {
        Some(body) => body.drain_or_close(expects, response).await,
        None => response,
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use futures_util::stream;

    use super::*;

    fn in_pieces(pieces: &[&'static str]) -> Body {
        let pieces: Vec<_> = pieces.iter().map(|s| Ok::<_, io::Error>(Bytes::from(*s))).collect();
        Body::from_stream(stream::iter(pieces))
    }

    #[tokio::test]
    async fn a_body_is_read_whole_or_refused() {
        let broken =
            stream::iter([Ok(Bytes::from("ab")), Err(io::Error::from(io::ErrorKind::BrokenPipe))]);
        let table = [
            (Body::empty(), Ok("")),
            (Body::from("abcdef"), Ok("abcdef")),
            (in_pieces(&["ab", "", "c", "def"]), Ok("abcdef")),
            (Body::from("abcdefg"), Err(BodyError::TooLarge)),
            (in_pieces(&["abcdef", "g"]), Err(BodyError::TooLarge)),
            (Body::from_stream(broken), Err(BodyError::Incomplete)),
        ];
        for (body, expected) in table {
            let read = read_body(body, 6).await;
            assert_eq!(read, expected.map(Vec::from), "{expected:?}");
        }
    }
}
