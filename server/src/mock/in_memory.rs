//! The SDK's client for an embedded server without a socket.

use axum::{Router, body::Body};
use bytes::Bytes;
use futures_util::{FutureExt, StreamExt, TryStreamExt, future::BoxFuture};
use parcelo::{
    ApiKey, Client, ClientBuilder,
    transport::{BodyStream, Phase, Transport, TransportError},
};
use tower::ServiceExt;

use super::{
    MockServer,
    plan::{Cut, Hit},
};

impl MockServer {
    /// The SDK with this key and no socket: requests go straight to the service, and meet the same
    /// faults. It lives in the server's time, as [`MockServer::client`] does. On a runtime whose time is paused, waits take no time.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), parcelo::Error> {
    /// use parcelo::{ErrorCode, Operation};
    /// use parcelo_server::mock::MockServer;
    ///
    /// let server = MockServer::start().await;
    /// server.faults().on(Operation::Health).nth(1).error(ErrorCode::ServiceUnavailable);
    /// let client = server.in_memory_client(&server.key().issue());
    /// assert_eq!(client.health().await?.meta().attempts, 2);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Panics
    ///
    /// Never: the server's own address is one that the client takes.
    pub fn in_memory_client(&self, key: &ApiKey) -> Client {
        #[expect(clippy::expect_used, reason = "the server's own address is valid")]
        self.in_memory_builder(key).build().expect("a client")
    }

    /// The same, for a client whose time-outs or retries are to be set.
    ///
    /// # Panics
    ///
    /// Never: the server's own address is one that the client takes.
    pub fn in_memory_builder(&self, key: &ApiKey) -> ClientBuilder {
        self.client_builder(key).transport(InMemory(self.routes()))
    }
}

/// The transport without a socket.
#[derive(Debug)]
struct InMemory(Router);

impl Transport for InMemory {
    fn send(
        &self,
        request: http::Request<Bytes>,
    ) -> BoxFuture<'_, Result<http::Response<BodyStream>, TransportError>> {
        async {
            let Ok(answer) = self.0.clone().oneshot(request.map(Body::from)).await;
            match answer.extensions().get().and_then(Hit::cut) {
                Some(cut) => Err(cut_off(cut)),
                None => Ok(answer.map(pieces)),
            }
        }
        .boxed()
    }
}

/// The phases that the transport over HTTP tells.
fn cut_off(cut: Cut) -> TransportError {
    match cut {
        Cut::Closed => TransportError::new(Phase::Stale, "the connection was closed"),
        Cut::Reset => TransportError::new(Phase::MaybeSent, "the connection was reset"),
    }
}

fn pieces(body: Body) -> BodyStream {
    let broken = |fault| TransportError::new(Phase::MaybeSent, fault);
    body.into_data_stream().map_err(broken).boxed()
}
