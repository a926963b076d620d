//! Sending requests: the [`Transport`] trait, and the phase in which a request failed.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::{future::BoxFuture, stream::BoxStream};

/// The body of a response as a stream of chunks.
pub type BodyStream = BoxStream<'static, Result<Bytes, TransportError>>;

/// Sends one request to the service once and returns its response: no retries, no redirects.
///
/// The client uses HTTP unless [`ClientBuilder::transport`](crate::client::ClientBuilder::transport) sets another
/// transport, such as a service embedded in the same process.
/// [`ClientBuilder::layer`](crate::client::ClientBuilder::layer) wraps the one that is used.
///
/// ```
/// use bytes::Bytes;
/// use parcelo::futures_util::{self, FutureExt, StreamExt, future::BoxFuture};
/// use parcelo::transport::{BodyStream, Transport, TransportError};
///
/// #[derive(Debug)]
/// struct NoContent;
///
/// impl Transport for NoContent {
///     fn send(
///         &self,
///         _: http::Request<Bytes>,
///     ) -> BoxFuture<'_, Result<http::Response<BodyStream>, TransportError>> {
///         let body = futures_util::stream::empty().boxed();
///         async { Ok(http::Response::new(body)) }.boxed()
///     }
/// }
/// ```
pub trait Transport: Send + Sync + std::fmt::Debug + 'static {
    /// Sends the request and returns when the head of the response has arrived.
    fn send(
        &self,
        request: http::Request<Bytes>,
    ) -> BoxFuture<'_, Result<http::Response<BodyStream>, TransportError>>;
}

/// A shared transport, or one whose type is known only at run time.
impl<T: Transport + ?Sized> Transport for Arc<T> {
    fn send(
        &self,
        request: http::Request<Bytes>,
    ) -> BoxFuture<'_, Result<http::Response<BodyStream>, TransportError>> {
        (**self).send(request)
    }
}

/// The phase in which a request failed. It decides whether sending it again is safe.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Phase {
    /// No byte of it was sent: the address could not be resolved or connected to.
    NotSent,
    /// No byte of it was sent, because a layer of your own refused it
    /// ([`ClientBuilder::layer`](crate::client::ClientBuilder::layer)); it is not tried again.
    Refused,
    /// Nothing was sent, because the peer's certificate is not trusted. It is not tried again.
    Untrusted,
    /// A connection that had been used before was closed without a byte of a response, or the peer says
    /// that it has not processed the request (HTTP/2).
    Stale,
    /// It was sent, at least in part, and the response did not arrive whole.
    MaybeSent,
    /// Like `MaybeSent`: the response did not arrive in time.
    Timeout,
    /// It was sent, and the response is not HTTP. It is not tried again.
    NotHttp,
}

impl Phase {
    /// Returns the description, in English and Spanish.
    pub(super) fn texts(self) -> (&'static str, &'static str) {
        match self {
            Self::NotSent => {
                ("The service could not be reached.", "No se pudo conectar con el servicio.")
            }
            Self::Refused => (
                "A transport layer of this program refused the request.",
                "Una capa de transporte de este programa rechazó la solicitud.",
            ),
            Self::Untrusted => (
                "The service could not prove its identity (TLS).",
                "El servicio no pudo probar su identidad (TLS).",
            ),
            Self::Stale | Self::MaybeSent => (
                "The connection broke before the whole response arrived.",
                "La conexión se cortó antes de recibir la respuesta completa.",
            ),
            Self::Timeout => {
                ("The service did not respond in time.", "El servicio no respondió a tiempo.")
            }
            Self::NotHttp => (
                "The server at this address does not speak HTTP.",
                "El servidor de esa dirección no responde en HTTP.",
            ),
        }
    }
}

/// The reason why no whole response arrived.
#[derive(Debug)]
pub struct TransportError {
    phase: Phase,
    source: Box<dyn std::error::Error + Send + Sync>,
}

impl TransportError {
    /// Returns a failure in a phase. `source` may be logged, so it must have no personal data.
    pub fn new(phase: Phase, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self { phase, source: source.into() }
    }

    /// Returns the phase that the request had reached.
    pub fn phase(&self) -> Phase {
        self.phase
    }
}

/// Displays its cause alone: the client's error names the phase, and a chain of causes should say everything
/// once.
impl std::fmt::Display for TransportError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.source.fmt(f)
    }
}

impl std::error::Error for TransportError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.source()
    }
}
