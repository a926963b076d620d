//! The phases of the errors of hyper, and of what lies below it: TLS and HTTP/2. Each error is recognised by the types in
//! its chain of causes, so that it does not matter which HTTP client over hyper reports it.

use std::{error::Error, io};

use super::{Phase, TransportError};

impl TransportError {
    /// Returns the failure of a request whose connection could not be opened: [`Phase::Untrusted`] if rustls did not
    /// trust the peer's certificate (feature `rustls`), otherwise [`Phase::NotSent`].
    ///
    /// It is for an HTTP client over hyper that tells such errors from others, as `is_connect` of hyper-util's and
    /// reqwest's errors does. `source` may be logged, so it must have no personal data.
    ///
    /// ```
    /// use parcelo::transport::{Phase, TransportError};
    ///
    /// let error = std::io::Error::from(std::io::ErrorKind::ConnectionRefused);
    /// assert_eq!(TransportError::not_connected(error).phase(), Phase::NotSent);
    /// ```
    pub fn not_connected(source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        let source = source.into();
        let is_untrusted = causes(&*source).any(is_untrusted);
        Self::new(if is_untrusted { Phase::Untrusted } else { Phase::NotSent }, source)
    }

    /// Returns the failure of a request that a connection was given, at whatever point: [`Phase::Stale`] if hyper says
    /// that the connection was closed before a response or, with the feature `http2`, that the peer did not process the
    /// request; [`Phase::NotHttp`] if what arrived is not a response; [`Phase::MaybeSent`] for every other error.
    ///
    /// A timeout of your own is [`Phase::Timeout`]. `source` may be logged, so it must have no personal data.
    ///
    /// ```
    /// use parcelo::transport::{Phase, TransportError};
    ///
    /// let error = std::io::Error::from(std::io::ErrorKind::ConnectionReset);
    /// assert_eq!(TransportError::not_answered(error).phase(), Phase::MaybeSent);
    /// ```
    pub fn not_answered(source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        let source = source.into();
        let phase = if causes(&*source).any(is_closed_without_response) {
            Phase::Stale
        } else if causes(&*source).any(is_not_http) {
            Phase::NotHttp
        } else {
            causes(&*source).find_map(phase_of_http2).unwrap_or(Phase::MaybeSent)
        };
        Self::new(phase, source)
    }
}

/// Returns an error, its cause, the cause of that, and so on.
fn causes<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    std::iter::successors(Some(error), |cause: &&'a (dyn Error + 'static)| (*cause).source())
}

/// Returns the phase of an HTTP/2 error. A refused stream and a GOAWAY say that the request was not processed: it is
/// sent again like one on a stale connection. Its outcome stays unknown, since a proxy may say so after it has passed
/// the request on.
#[cfg(feature = "http2")]
fn phase_of_http2(cause: &(dyn Error + 'static)) -> Option<Phase> {
    use h2::Reason;

    let error: &h2::Error = cause.downcast_ref()?;
    match error.reason() {
        Some(Reason::REFUSED_STREAM) if error.is_remote() => Some(Phase::Stale),
        Some(_) if error.is_go_away() && error.is_remote() => Some(Phase::Stale),
        // The response does not consist of HTTP/2 frames.
        Some(Reason::PROTOCOL_ERROR | Reason::FRAME_SIZE_ERROR)
            if error.is_go_away() && error.is_library() =>
        {
            Some(Phase::NotHttp)
        }
        Some(_) | None => None,
    }
}

#[cfg(not(feature = "http2"))]
fn phase_of_http2(_: &(dyn Error + 'static)) -> Option<Phase> {
    None
}

/// Returns `true` for a certificate that is not trusted. Any other fault of a handshake may be over the next time:
/// alerts, for example, come from a load balancer that is being reloaded. I/O errors wrap it without returning it as
/// their source.
#[cfg(feature = "rustls")]
fn is_untrusted(cause: &(dyn Error + 'static)) -> bool {
    if let Some(error) = cause.downcast_ref::<rustls::Error>() {
        return matches!(error, rustls::Error::InvalidCertificate(_));
    }
    let io: Option<&io::Error> = cause.downcast_ref();
    io.and_then(io::Error::get_ref).is_some_and(|inner| is_untrusted(inner))
}

#[cfg(not(feature = "rustls"))]
fn is_untrusted(_: &(dyn Error + 'static)) -> bool {
    false
}

/// Returns `true` if the connection closed without a response. hyper does not say whether it had been used before: a new
/// one that closes in this way counts as stale too, and is retried under the same conditions. Over HTTP/2 it is a
/// broken pipe.
fn is_closed_without_response(cause: &(dyn Error + 'static)) -> bool {
    let http: Option<&hyper::Error> = cause.downcast_ref();
    let io: Option<&io::Error> = cause.downcast_ref();
    http.is_some_and(|error| error.is_incomplete_message() || error.is_canceled())
        || io.is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}

/// Returns `true` for a response whose head cannot be parsed. One with too many headers is still HTTP; unless hyper is
/// built as a server, only its message tells the two apart.
fn is_not_http(cause: &(dyn Error + 'static)) -> bool {
    cause
        .downcast_ref::<hyper::Error>()
        .is_some_and(|error| error.is_parse() && !error.to_string().contains("too large"))
}
