//! The service as an answer of wiremock, for suites that mix it with stubs.

use std::{
    panic::resume_unwind,
    pin::pin,
    sync::Arc,
    task::{Context, Poll, Wake, Waker},
    thread::{self, Thread},
    time::Duration,
};

use axum::{Router, body::Body, extract::Request, http::response::Parts};
use bytes::Bytes;
use tokio::task::unconstrained;
use tower::ServiceExt;
use wiremock::{Respond, ResponseTemplate};

use super::{
    MockServer,
    exchange::{TransportWaits, whole},
    plan::{Hit, Spoilt},
    spoil::PIECE,
};

/// The service behind a wiremock server; see [`MockServer::responder`].
///
/// Everything is as over HTTP, faults included, except that wiremock owns the connection: a reset
/// and a truncated body are a connection closed without an answer, latency passes when the
/// operation has been carried out, and a slow body comes whole when its last piece would have come.
#[derive(Debug, Clone)]
pub struct Responder(Router);

impl MockServer {
    /// The service, to be mounted on a wiremock server; it goes on when this server is dropped.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use parcelo_server::mock::MockServer;
    /// use wiremock::{Mock, ResponseTemplate, matchers};
    ///
    /// let (server, stubs) = (MockServer::start().await, wiremock::MockServer::start().await);
    /// Mock::given(matchers::path("/rates")).respond_with(ResponseTemplate::new(200)).mount(&stubs).await;
    /// Mock::given(matchers::any()).respond_with(server.responder()).with_priority(9).mount(&stubs).await;
    ///
    /// let key = server.key().issue();
    /// # #[cfg(feature = "sdk")]
    /// let client = parcelo::Client::builder(key).base_url(&stubs.uri())?.build()?;
    /// # #[cfg(feature = "sdk")]
    /// assert!(client.health().await.is_ok());
    /// # Ok(())
    /// # }
    /// ```
    pub fn responder(&self) -> Responder {
        Responder(self.routes())
    }
}

impl Respond for Responder {
    fn respond(&self, request: &wiremock::Request) -> ResponseTemplate {
        let (head, body) = finish(async {
            let Ok(answer) = self.0.clone().oneshot(taken(request)).await;
            whole(answer).await
        });
        let hit = head.extensions.get::<Hit>().cloned().unwrap_or_default();
        if hit.cut().is_some() || hit.spoilt() == Some(Spoilt::Truncated) {
            // The task of this connection ends, and the connection with it; nothing is printed.
            resume_unwind(Box::new("a planned fault ends the connection"));
        }
        template(&head, &body).set_delay(delay(&hit, &body))
    }
}

fn taken(request: &wiremock::Request) -> Request {
    let mut taken = Request::new(Body::from(request.body.clone()));
    *taken.method_mut() = request.method.clone();
    *taken.headers_mut() = request.headers.clone();
    // What has been read from an address can be written as one.
    *taken.uri_mut() = request.url.as_str().parse().unwrap_or_default();
    taken.extensions_mut().insert(TransportWaits);
    taken
}

fn template(head: &Parts, body: &Bytes) -> ResponseTemplate {
    let template = ResponseTemplate::new(head.status.as_u16()).set_body_bytes(body.as_ref());
    head.headers
        .iter()
        .fold(template, |template, (name, value)| template.append_header(name, value))
}

fn delay(hit: &Hit, body: &Bytes) -> Duration {
    let body = match hit.spoilt() {
        Some(Spoilt::Slow(pause)) => {
            let pieces = u32::try_from(body.len().div_ceil(PIECE)).unwrap_or(u32::MAX);
            pause.saturating_mul(pieces)
        }
        Some(Spoilt::Truncated | Spoilt::Malformed) | None => Duration::ZERO,
    };
    let hangs = hit.reply().is_some_and(|(_, reply)| reply.hangs());
    let silence = if hangs { Duration::MAX } else { Duration::ZERO };
    hit.before.saturating_add(hit.after).saturating_add(body).saturating_add(silence)
}

/// Carries out a request on this thread, for wiremock waits for nobody. A store in memory answers
/// at once, so only another thread's turn at the same parcel can hold it up; the runtime must not,
/// for it cannot go on before this returns.
fn finish<T>(request: impl Future<Output = T>) -> T {
    let waker = Waker::from(Arc::new(Awake(thread::current())));
    let mut request = pin!(unconstrained(request));
    loop {
        match request.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(done) => return done,
            Poll::Pending => thread::park(),
        }
    }
}

struct Awake(Thread);

impl Wake for Awake {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_delay_that_never_ends_is_one_all_the_same() {
        let hit = Hit { before: Duration::MAX, after: Duration::MAX, ..Hit::default() };
        assert_eq!(delay(&hit, &Bytes::new()), Duration::MAX);
    }
}
