//! The service as a wiremock responder, for suites that mix it with stubs.

use std::{panic::resume_unwind, time::Duration};

use axum::{Router, body::Body, extract::Request, http::response::Parts};
use bytes::Bytes;
use tower::ServiceExt;
use wiremock::{Respond, ResponseTemplate};

use super::{
    MockServer,
    corruption::SLOW_CHUNK_BYTES,
    fault_layer::{TransportDelays, collect_body},
    fault_plan::{Corruption, InjectedFaults},
    sync::block_on,
};

/// A wiremock responder that passes requests to the service; see [`MockServer::responder`].
///
/// It behaves like the server over HTTP, faults included, except that wiremock owns the connection: a reset and a
/// truncated body close it without a response, all latency passes after the operation, and a slow body arrives whole
/// when its last chunk would have arrived.
#[derive(Debug, Clone)]
pub struct Responder(Router);

impl MockServer {
    /// Returns the service as a responder to mount on a wiremock server. It works after this server was dropped.
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
    /// let client = parcelo::Client::builder(key).base_url(&stubs.uri())?.build()?;
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
        // wiremock calls a responder synchronously. A store in memory completes at once, so the request only ever waits
        // for another thread that holds the same parcel's lock.
        let (head, body) = block_on(async {
            let Ok(response) = self.0.clone().oneshot(to_axum_request(request)).await;
            collect_body(response).await
        });
        let faults = head.extensions.get::<InjectedFaults>().cloned().unwrap_or_default();
        if faults.disconnect().is_some() || faults.corruption() == Some(Corruption::Truncated) {
            // This ends the task of the connection, and so the connection. Unlike `panic!` it prints nothing.
            resume_unwind(Box::new("a planned fault ends the connection"));
        }
        response_template(&head, &body).set_delay(total_delay(&faults, &body))
    }
}

fn to_axum_request(request: &wiremock::Request) -> Request {
    let mut converted = Request::new(Body::from(request.body.clone()));
    *converted.method_mut() = request.method.clone();
    *converted.headers_mut() = request.headers.clone();
    // A URL that was parsed can be parsed again.
    *converted.uri_mut() = request.url.as_str().parse().unwrap_or_default();
    converted.extensions_mut().insert(TransportDelays);
    converted
}

fn response_template(head: &Parts, body: &Bytes) -> ResponseTemplate {
    let template = ResponseTemplate::new(head.status.as_u16()).set_body_bytes(body.as_ref());
    head.headers
        .iter()
        .fold(template, |template, (name, value)| template.append_header(name, value))
}

fn total_delay(faults: &InjectedFaults, body: &Bytes) -> Duration {
    let body = match faults.corruption() {
        Some(Corruption::Slow(pause)) => {
            let pieces = u32::try_from(body.len().div_ceil(SLOW_CHUNK_BYTES)).unwrap_or(u32::MAX);
            pause.saturating_mul(pieces)
        }
        Some(Corruption::Truncated | Corruption::Malformed) | None => Duration::ZERO,
    };
    let hangs = faults.reply().is_some_and(|(_, reply)| reply.hangs());
    let silence = if hangs { Duration::MAX } else { Duration::ZERO };
    let waits = [faults.delay_after, body, silence];
    waits.into_iter().fold(faults.delay_before, Duration::saturating_add)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_beyond_the_longest_duration_do_not_overflow() {
        let faults = InjectedFaults {
            delay_before: Duration::MAX,
            delay_after: Duration::MAX,
            ..InjectedFaults::default()
        };
        assert_eq!(total_delay(&faults, &Bytes::new()), Duration::MAX);
    }
}
