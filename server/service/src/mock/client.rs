//! The SDK's client for an embedded server, over HTTP or in memory, in the server's time.

use axum::{Router, body::Body};
use bytes::Bytes;
use futures_util::TryStreamExt;
use parcelo::{
    Client, ClientBuilder,
    transport::{BodyStream, Phase, ResponseFuture, Transport, TransportError},
};
use parcelo_types::ApiKey;
use tower::ServiceExt;

use super::{
    MockServer,
    fault_plan::{Disconnect, InjectedFaults},
};

impl MockServer {
    /// Creates the SDK's client over HTTP, with this key.
    ///
    /// It uses the server's clock for the age of idempotency keys: a key expires when the test moves the clock, and
    /// never because the test takes long. Sleeps and timeouts of the client use tokio's time, and do not move a frozen
    /// clock.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use std::time::Duration;
    ///
    /// use parcelo::ErrorKind;
    /// use parcelo_server::mock::MockServer;
    ///
    /// let server = MockServer::start().await;
    /// let client = server.client(&server.key().issue());
    /// let order = MockServer::order("SB-SUCCESS-0001");
    /// client.orders().create(&order).await?;
    /// server.clock().advance(Duration::from_secs(24 * 3600)).await;
    /// let error = client.orders().create(&order).await.unwrap_err();
    /// assert_eq!(error.kind(), ErrorKind::KeyExpired); // and nothing was sent
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Panics
    ///
    /// Never: the server's own address is valid.
    pub fn client(&self, key: &ApiKey) -> Client {
        #[expect(clippy::expect_used, reason = "the server's own address is valid")]
        self.client_builder(key).build().expect("a client")
    }

    /// Configures such a client, for other timeouts or retries.
    ///
    /// # Panics
    ///
    /// Never: the server's own address is valid.
    pub fn client_builder(&self, key: &ApiKey) -> ClientBuilder {
        #[expect(clippy::expect_used, reason = "the server's own address is valid")]
        let builder = Client::builder(key.clone()).base_url(self.url()).expect("a valid address");
        #[cfg(feature = "tls")]
        #[expect(clippy::expect_used, reason = "the server's own certificate is one")]
        let builder = if self.tls.is_some() {
            builder.root_certificate(self.certificate_pem()).expect("a certificate")
        } else {
            builder
        };
        builder.service_clock(self.clock().reader())
    }

    /// Creates the SDK's client without a socket: requests go straight to the service, and get the same planned faults.
    /// It uses the server's clock, like [`MockServer::client`]. On a runtime with paused time, its waits take no time.
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
    /// Never: the server's own address is valid.
    pub fn in_memory_client(&self, key: &ApiKey) -> Client {
        #[expect(clippy::expect_used, reason = "the server's own address is valid")]
        self.in_memory_builder(key).build().expect("a client")
    }

    /// Configures such a client, for other timeouts or retries.
    ///
    /// # Panics
    ///
    /// Never: the server's own address is valid.
    pub fn in_memory_builder(&self, key: &ApiKey) -> ClientBuilder {
        self.client_builder(key).transport(InMemory(self.routes()))
    }
}

/// A transport that calls the service's router.
#[derive(Debug)]
struct InMemory(Router);

impl Transport for InMemory {
    fn send(&self, request: http::Request<Bytes>) -> ResponseFuture<'_> {
        Box::pin(async {
            let Ok(response) = self.0.clone().oneshot(request.map(Body::from)).await;
            match response.extensions().get().and_then(InjectedFaults::disconnect) {
                Some(disconnect) => Err(transport_error(disconnect)),
                None => Ok(response.map(body_stream)),
            }
        })
    }
}

/// Returns the error that the transport over HTTP reports in this case.
fn transport_error(disconnect: Disconnect) -> TransportError {
    match disconnect {
        Disconnect::Close => TransportError::new(Phase::Stale, "the connection was closed"),
        Disconnect::Reset => TransportError::new(Phase::MaybeSent, "the connection was reset"),
    }
}

fn body_stream(body: Body) -> BodyStream {
    let failed = |error| TransportError::new(Phase::MaybeSent, error);
    BodyStream::new(body.into_data_stream().map_err(failed))
}
