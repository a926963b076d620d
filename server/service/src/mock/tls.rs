//! TLS for a mock server: a certificate that is made at its start, and HTTP/2 with clients that offer it.
//!
//! The listener of the service speaks HTTP/1.1 only, because a proxy stands in front of it in production.

use std::sync::Arc;

use axum::{Router, body::Body, extract::Request};
use hyper::{body::Incoming, service::service_fn};
use hyper_util::{
    rt::{TokioExecutor, TokioIo},
    server::conn::auto,
};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::{
    TlsAcceptor,
    rustls::{ServerConfig, crypto::aws_lc_rs::default_provider, pki_types::PrivatePkcs8KeyDer},
};
use tower::ServiceExt;

use super::{MockServer, breakable_stream::BreakableStream};
use crate::http::{ServerStream, Stop};

/// The names that the certificate is valid for.
const NAMES: [&str; 2] = ["127.0.0.1", "localhost"];

/// A certificate with its key.
#[derive(Debug)]
pub(super) struct Tls {
    config: Arc<ServerConfig>,
    certificate_pem: String,
}

impl Tls {
    /// Makes a key and a certificate that it signs.
    #[expect(clippy::expect_used, reason = "the names are valid and the key is the certificate's")]
    pub(super) fn generate() -> Self {
        let generated = rcgen::generate_simple_self_signed(NAMES.map(str::to_owned));
        let generated = generated.expect("a certificate for valid names");
        let key = PrivatePkcs8KeyDer::from(generated.signing_key.serialize_der());
        let mut config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
            .with_safe_default_protocol_versions()
            .expect("the provider has ciphers for each version")
            .with_no_client_auth()
            .with_single_cert(vec![generated.cert.der().clone()], key.into())
            .expect("the key is the certificate's");
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Self { config: Arc::new(config), certificate_pem: generated.cert.pem() }
    }

    /// Starts serving the routes on a socket until the stop.
    pub(super) fn listen(&self, socket: TcpListener, routes: Router, stop: Stop) {
        let acceptor = TlsAcceptor::from(Arc::clone(&self.config));
        tokio::spawn(async move {
            loop {
                let accepted = tokio::select! {
                    accepted = socket.accept() => accepted,
                    () = stop.requested() => return,
                };
                // An error is of one connection, or passes when others are closed.
                let Ok((stream, _)) = accepted else {
                    tokio::task::yield_now().await;
                    continue;
                };
                tokio::spawn(serve(stream, acceptor.clone(), routes.clone(), stop.clone()));
            }
        });
    }
}

/// Serves one connection until its end or the stop.
async fn serve(stream: TcpStream, acceptor: TlsAcceptor, routes: Router, stop: Stop) {
    let _ = stream.set_nodelay(true);
    let (stream, hook) = BreakableStream::open(stream);
    // A client that does not trust the certificate ends the handshake.
    let Ok(stream) = acceptor.accept(stream).await else { return };
    let service = service_fn(move |request: Request<Incoming>| {
        let (routes, hook) = (routes.clone(), Arc::clone(&hook));
        async move {
            // Without the peer's address, as behind a proxy: HTTP/2 has no `Host` header, which is then required.
            let Ok(response) = routes.oneshot(request.map(Body::new)).await;
            BreakableStream::release(&hook, response)
        }
    });
    let mut connection = auto::Builder::new(TokioExecutor::new());
    connection.http1().auto_date_header(false);
    connection.http2().auto_date_header(false);
    tokio::select! {
        // The end of a connection is not an error of the server.
        _ = connection.serve_connection(TokioIo::new(stream), service) => {}
        () = stop.requested() => {}
    }
}

impl MockServer {
    /// Returns the certificate of a server that was started with [`Builder::tls`](super::Builder::tls), as PEM, for
    /// clients to trust. [`MockServer::client`] trusts it already.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use parcelo_server::mock::MockServer;
    ///
    /// let server = MockServer::builder().tls().start().await;
    /// let client = parcelo::Client::builder(server.key().issue())
    ///     .base_url(server.url())?
    ///     .root_certificate(server.certificate_pem())?
    ///     .build()?;
    /// assert!(server.url().starts_with("https://127.0.0.1:"));
    /// client.health().await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Panics
    ///
    /// If the server was started without TLS.
    #[track_caller]
    pub fn certificate_pem(&self) -> &str {
        #[expect(clippy::expect_used, reason = "a test's own server is wrong; documented")]
        let tls = self.tls.as_ref().expect("a server that was started with Builder::tls");
        &tls.certificate_pem
    }
}
