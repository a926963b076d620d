//! Sending requests: the [`Transport`] trait, and the phase in which a request failed.

use std::{
    error::Error,
    fmt,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use bytes::Bytes;
use futures_util::{Stream, stream};

/// The future of one request, which [`Transport::send`] returns: `Box::pin(async move { … })`.
pub type ResponseFuture<'a> =
    Pin<Box<dyn Future<Output = Result<http::Response<BodyStream>, TransportError>> + Send + 'a>>;

/// Sends one request to the service once and returns its response.
///
/// The client uses [`Reqwest`](crate::transport::Reqwest) unless
/// [`ClientBuilder::transport`](crate::ClientBuilder::transport) sets another transport: a `Reqwest` around an HTTP client
/// that you configured, or one of your own, over any HTTP client or to a service in the same process.
/// [`ClientBuilder::layer`](crate::ClientBuilder::layer) wraps the one that is used.
///
/// # Writing a transport
///
/// The client's guarantees hold if each call of `send`
///
/// - sends the request once, to the address in its URI, with its method, headers and body as they are; only what HTTP
///   itself needs is added, such as `host` and `content-length`. It follows no redirect, which would carry the API key
///   elsewhere, and does not retry what may have been sent;
/// - returns as soon as the head of the response is there, whatever its status, which is never an error. The body follows
///   in the [`BodyStream`], as it was received, or decompressed and then without `content-encoding` and
///   `content-length`;
/// - reports every failure with the [`Phase`] that it is sure of. [`Phase::MaybeSent`] is always safe;
/// - ends when its future is dropped: this is how the client ends an attempt that takes too long. A connection that
///   cannot be opened should be given up earlier, within a few seconds, as [`Phase::NotSent`], since at the end of an
///   attempt it would count as [`Phase::Timeout`], after which the request may have been executed.
///
/// Calls of `send` run at the same time. This transport sends by reqwest, as [`Reqwest`](crate::transport::Reqwest) does:
///
/// ```
/// use parcelo::bytes::Bytes;
/// use parcelo::transport::{BodyStream, ResponseFuture, Transport};
///
/// #[derive(Debug)]
/// struct OwnHttp(reqwest::Client);
///
/// impl Transport for OwnHttp {
///     fn send(&self, request: http::Request<Bytes>) -> ResponseFuture<'_> {
///         Box::pin(async move {
///             // `?` and `from` find the phases of reqwest's errors.
///             let response = self.0.execute(request.try_into()?).await?;
///             Ok(http::Response::<reqwest::Body>::from(response).map(BodyStream::from))
///         })
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = parcelo_server::mock::MockServer::start().await;
/// # let (key, address) = (server.key().issue(), server.url());
/// let http = reqwest::Client::builder().redirect(reqwest::redirect::Policy::none()).build()?;
/// let client = parcelo::Client::builder(key).base_url(address)?.transport(OwnHttp(http)).build()?;
/// client.health().await?;
/// # Ok(())
/// # }
/// ```
///
/// One for tests answers by itself; `into` makes a whole body of its bytes:
///
/// ```
/// # use parcelo::bytes::Bytes;
/// # use parcelo::transport::{ResponseFuture, Transport};
/// #[derive(Debug)]
/// struct NotFound;
///
/// impl Transport for NotFound {
///     fn send(&self, _: http::Request<Bytes>) -> ResponseFuture<'_> {
///         let mut response = http::Response::new(Bytes::from_static(b"{}").into());
///         *response.status_mut() = http::StatusCode::NOT_FOUND;
///         Box::pin(async { Ok(response) })
///     }
/// }
/// ```
pub trait Transport: Send + Sync + fmt::Debug + 'static {
    /// Sends the request and returns when the head of the response has arrived.
    fn send(&self, request: http::Request<Bytes>) -> ResponseFuture<'_>;
}

/// A shared transport, or one whose type is known only at run time.
impl<T: Transport + ?Sized> Transport for Arc<T> {
    fn send(&self, request: http::Request<Bytes>) -> ResponseFuture<'_> {
        (**self).send(request)
    }
}

/// The body of a response: a stream of chunks, or a whole body made `from` its bytes.
///
/// ```
/// use parcelo::bytes::Bytes;
/// use parcelo::transport::BodyStream;
///
/// let whole = BodyStream::from(Bytes::from_static(b"{}"));
/// let chunks = futures_util::stream::iter([Ok(Bytes::from_static(b"{")), Ok("}".into())]);
/// let streamed = BodyStream::new(chunks);
/// ```
pub struct BodyStream(Pin<Box<dyn Stream<Item = Result<Bytes, TransportError>> + Send>>);

impl BodyStream {
    /// Returns a body that consists of these chunks; an error ends it.
    pub fn new(chunks: impl Stream<Item = Result<Bytes, TransportError>> + Send + 'static) -> Self {
        Self(Box::pin(chunks))
    }
}

impl From<Bytes> for BodyStream {
    fn from(whole: Bytes) -> Self {
        Self::new(stream::iter([Ok(whole)]))
    }
}

impl Stream for BodyStream {
    type Item = Result<Bytes, TransportError>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.as_mut().poll_next(context)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.0.size_hint()
    }
}

impl fmt::Debug for BodyStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("BodyStream")
    }
}

/// The phase in which a request failed. It decides whether it is sent again, and whether it may have been executed.
///
/// | phase | what a transport promises with it | sent again | may have been executed |
/// |---|---|---|---|
/// | `NotSent` | no byte was sent | yes | no |
/// | `Refused` | no byte was sent | no | no |
/// | `Untrusted` | no byte was sent | no | no |
/// | `Stale` | no byte of a response came | yes, at first without a wait | yes |
/// | `MaybeSent` | nothing | yes | yes |
/// | `Timeout` | nothing | yes | yes |
/// | `NotHttp` | no byte of an HTTP response came | no | yes |
/// | `Redirected` | nothing | no | yes |
///
/// [`Retry`](crate::Retry) limits how often; a write is sent again with its idempotency key only.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Phase {
    /// No byte of it was sent: the address could not be resolved or connected to.
    NotSent,
    /// No byte of it was sent, because a layer of your own refused it
    /// ([`ClientBuilder::layer`](crate::ClientBuilder::layer)); it is not tried again.
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
    /// It was sent, and the HTTP client followed a redirect, which may have carried it and the API key elsewhere. It is
    /// not tried again.
    Redirected,
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
            Self::Redirected => (
                "The HTTP client followed a redirect: set its redirect policy to none.",
                "El cliente HTTP siguió una redirección: configure su política para que no siga ninguna.",
            ),
        }
    }
}

/// The reason why no whole response arrived.
///
/// `From<reqwest::Error>` finds the phase of an error of reqwest (feature `reqwest`), and
/// [`not_connected`](Self::not_connected) and [`not_answered`](Self::not_answered) that of other clients over hyper
/// (feature `hyper`).
#[derive(Debug)]
pub struct TransportError {
    phase: Phase,
    source: Box<dyn Error + Send + Sync>,
}

impl TransportError {
    /// Returns a failure in a phase. `source` may be logged, so it must have no personal data.
    ///
    /// ```
    /// use parcelo::transport::{Phase, TransportError};
    ///
    /// let late = TransportError::new(Phase::NotSent, "no connection within 2 seconds");
    /// assert_eq!((late.phase(), &*late.to_string()), (Phase::NotSent, "no connection within 2 seconds"));
    /// ```
    pub fn new(phase: Phase, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self { phase, source: source.into() }
    }

    /// Returns the phase that the request had reached.
    pub fn phase(&self) -> Phase {
        self.phase
    }
}

/// Displays its cause alone: the client's error names the phase, and a chain of causes should say everything
/// once.
impl fmt::Display for TransportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.source.fmt(f)
    }
}

impl Error for TransportError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.source.source()
    }
}

/// A transport for tests that send nothing.
#[cfg(test)]
#[derive(Debug)]
pub(super) struct Unused;

#[cfg(test)]
impl Transport for Unused {
    fn send(&self, _: http::Request<Bytes>) -> ResponseFuture<'_> {
        Box::pin(async { Err(TransportError::new(Phase::Refused, "nothing is sent")) })
    }
}
