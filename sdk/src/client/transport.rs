//! What carries a request: the [`Transport`] trait, and in which phase it failed.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::{future::BoxFuture, stream::BoxStream};

/// The body of an answer, piece by piece.
pub type BodyStream = BoxStream<'static, Result<Bytes, TransportError>>;

/// Carries one request to the service and brings back one answer, once: no retries, no redirects.
///
/// The client sends over HTTP unless [`ClientBuilder::transport`](crate::client::ClientBuilder::transport)
/// gives it another one, such as a service embedded in the same process. One that stands around the client's
/// own is made by [`ClientBuilder::layer`](crate::client::ClientBuilder::layer).
///
/// ```
/// use bytes::Bytes;
/// use futures_util::{future::BoxFuture, FutureExt, StreamExt};
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
    /// Sends the request; the answer is there once its head has arrived.
    fn send(
        &self,
        request: http::Request<Bytes>,
    ) -> BoxFuture<'_, Result<http::Response<BodyStream>, TransportError>>;
}

/// A transport that is shared, or whose kind is known only when the program runs, is one too.
impl<T: Transport + ?Sized> Transport for Arc<T> {
    fn send(
        &self,
        request: http::Request<Bytes>,
    ) -> BoxFuture<'_, Result<http::Response<BodyStream>, TransportError>> {
        (**self).send(request)
    }
}

/// How far a request had come when it failed; it decides whether sending it again is safe.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Phase {
    /// No byte of it was sent: no address, no connection.
    NotSent,
    /// No byte of it was sent, because a layer of your own refused it
    /// ([`ClientBuilder::layer`](crate::client::ClientBuilder::layer)); it is not tried again.
    Refused,
    /// Nothing was sent because the other side could not prove its identity; trying again is useless.
    Untrusted,
    /// A connection that had been used before was closed without a byte of an answer, or the other side says
    /// that it has not looked at the request (HTTP/2).
    Stale,
    /// It was sent, in part at least, and the answer did not arrive whole.
    MaybeSent,
    /// As `MaybeSent`: the answer did not arrive in time.
    Timeout,
    /// It was sent, and what came back is not HTTP; trying again is useless.
    NotHttp,
}

impl Phase {
    /// What happened, in English and Spanish.
    pub(super) fn texts(self) -> (&'static str, &'static str) {
        match self {
            Self::NotSent => {
                ("The service could not be reached.", "No se pudo contactar con el servicio.")
            }
            Self::Refused => (
                "The request was refused by a layer of this program's own.",
                "La solicitud fue rechazada por una capa del propio programa.",
            ),
            Self::Untrusted => (
                "The service could not prove its identity (TLS).",
                "El servicio no pudo probar su identidad (TLS).",
            ),
            Self::Stale | Self::MaybeSent => (
                "The connection broke before the whole answer arrived.",
                "La conexión se cortó antes de recibir la respuesta completa.",
            ),
            Self::Timeout => {
                ("The service did not answer in time.", "El servicio no respondió a tiempo.")
            }
            Self::NotHttp => (
                "What answers at the address does not speak HTTP.",
                "Lo que responde en la dirección no habla HTTP.",
            ),
        }
    }
}

/// Why no whole answer came back.
#[derive(Debug)]
pub struct TransportError {
    phase: Phase,
    source: Box<dyn std::error::Error + Send + Sync>,
}

impl TransportError {
    /// A failure in a phase; `source` must hold no personal data, for it may be logged.
    pub fn new(phase: Phase, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self { phase, source: source.into() }
    }

    /// How far the request had come.
    pub fn phase(&self) -> Phase {
        self.phase
    }
}

/// It says what its cause says: the phase is in the text of the client's error, and in a chain of causes
/// each thing should stand once.
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
