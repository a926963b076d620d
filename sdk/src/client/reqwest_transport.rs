//! The transport over HTTP by reqwest, and the phases of its errors.

use std::{error::Error as StdError, io};

use bytes::Bytes;
use futures_util::{FutureExt, StreamExt, TryStreamExt, future::BoxFuture};
use http::{Uri, uri::Authority};
use http_body_util::BodyDataStream;
use url::Url;

use super::{BodyStream, Error, Phase, Transport, TransportError, error::Texts};

#[derive(Debug)]
pub(super) struct ReqwestTransport {
    client: reqwest::Client,
    base: Url,
}

impl ReqwestTransport {
    /// Returns a transport for the service at `base`; `builder` may be called twice.
    pub(super) fn new(
        base: Url,
        builder: impl Fn() -> reqwest::ClientBuilder,
    ) -> Result<Self, Error> {
        // On a machine without root certificates, such as a bare container, a client that loads them cannot be built,
        // even for plain http. Bundled roots help in this case, but not against invalid settings.
        let client = match builder().build() {
            Err(_) if reqwest::Client::builder().build().is_err() => with_bundled_roots(builder()),
            client => client,
        };
        client
            .map(|client| Self { client, base })
            .map_err(|error| Error::config(NO_CLIENT).with_source(error))
    }

    fn request(&self, request: http::Request<Bytes>) -> Result<reqwest::Request, TransportError> {
        let (head, body) = request.into_parts();
        let url = to_url(&self.base, &head.uri)
            .map_err(|error| TransportError::new(Phase::NotSent, error))?;
        let mut request = reqwest::Request::new(head.method, url);
        *request.headers_mut() = head.headers;
        *request.body_mut() = Some(body.into());
        Ok(request)
    }

    async fn exchange(
        &self,
        request: http::Request<Bytes>,
    ) -> Result<http::Response<BodyStream>, TransportError> {
        let request = self.request(request)?;
        let response =
            self.client.execute(request).await.map_err(|error| failed(phase(&error), error))?;
        let response: http::Response<reqwest::Body> = response.into();
        Ok(response.map(|body| {
            BodyDataStream::new(body).map_err(|error| failed(Phase::MaybeSent, error)).boxed()
        }))
    }
}

/// Returns a client with Mozilla's root certificates in place of the machine's.
fn with_bundled_roots(builder: reqwest::ClientBuilder) -> reqwest::Result<reqwest::Client> {
    let bundled = webpki_root_certs::TLS_SERVER_ROOT_CERTS.iter();
    let roots = bundled.map(|root| reqwest::Certificate::from_der(root));
    builder.tls_certs_only(roots.collect::<Result<Vec<_>, _>>()?).build()
}

impl Transport for ReqwestTransport {
    fn send(
        &self,
        request: http::Request<Bytes>,
    ) -> BoxFuture<'_, Result<http::Response<BodyStream>, TransportError>> {
        self.exchange(request).boxed()
    }
}

/// Returns the URL of an address. Parsing the host is most of the work, and the base is parsed already.
fn to_url(base: &Url, address: &Uri) -> Result<Url, url::ParseError> {
    let authority = address.authority().map(Authority::as_str);
    if address.scheme_str() != Some(base.scheme()) || authority != Some(base.authority()) {
        return Url::parse(&address.to_string());
    }
    let mut url = base.clone();
    url.set_path(address.path());
    url.set_query(address.query());
    Ok(url)
}

const NO_CLIENT: Texts =
    ("The HTTP client could not be set up.", "No se pudo preparar el cliente HTTP.");

/// Returns the failure for an error, without the error's address, which contains tracking numbers.
fn failed(phase: Phase, error: reqwest::Error) -> TransportError {
    TransportError::new(phase, error.without_url())
}

fn phase(error: &reqwest::Error) -> Phase {
    if error.is_connect() {
        if causes(error).any(is_untrusted) { Phase::Untrusted } else { Phase::NotSent }
    } else if error.is_timeout() {
        Phase::Timeout
    } else if causes(error).any(is_closed_without_response) {
        Phase::Stale
    } else if causes(error).any(is_not_http) {
        Phase::NotHttp
    } else {
        causes(error).find_map(phase_of_http2).unwrap_or(Phase::MaybeSent)
    }
}

/// Returns the phase of an HTTP/2 error. A refused stream and a GOAWAY say that the request was not processed: it is
/// sent again like one on a stale connection. Its outcome stays unknown, since a proxy may say so after it has passed
/// the request on.
#[cfg(feature = "http2")]
fn phase_of_http2(cause: &(dyn StdError + 'static)) -> Option<Phase> {
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
fn phase_of_http2(_: &(dyn StdError + 'static)) -> Option<Phase> {
    None
}

fn causes<'a>(error: &'a reqwest::Error) -> impl Iterator<Item = &'a (dyn StdError + 'static)> {
    std::iter::successors(error.source(), |cause: &&'a (dyn StdError + 'static)| (*cause).source())
}

/// Returns `true` for a certificate that is not trusted. Any other fault of a handshake may be over the next time:
/// alerts, for example, come from a load balancer that is being reloaded. I/O errors wrap it without returning it as
/// their source.
fn is_untrusted(cause: &(dyn StdError + 'static)) -> bool {
    if let Some(error) = cause.downcast_ref::<rustls::Error>() {
        return matches!(error, rustls::Error::InvalidCertificate(_));
    }
    let io: Option<&io::Error> = cause.downcast_ref();
    io.and_then(io::Error::get_ref).is_some_and(|inner| is_untrusted(inner))
}

/// Returns `true` if the connection closed without a response. hyper does not say whether it had been used before: a new
/// one that closes in this way counts as stale too, and is retried under the same conditions. Over HTTP/2 it is a
/// broken pipe.
fn is_closed_without_response(cause: &(dyn StdError + 'static)) -> bool {
    let http: Option<&hyper::Error> = cause.downcast_ref();
    let io: Option<&io::Error> = cause.downcast_ref();
    http.is_some_and(|error| error.is_incomplete_message() || error.is_canceled())
        || io.is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}

/// Returns `true` for a response whose head cannot be parsed. One with too many headers is still HTTP; unless hyper is
/// built as a server, only its message tells the two apart.
fn is_not_http(cause: &(dyn StdError + 'static)) -> bool {
    cause
        .downcast_ref::<hyper::Error>()
        .is_some_and(|error| error.is_parse() && !error.to_string().contains("too large"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_can_be_built_with_the_bundled_roots() {
        assert!(webpki_root_certs::TLS_SERVER_ROOT_CERTS.len() > 100);
        assert!(with_bundled_roots(reqwest::Client::builder()).is_ok());
    }

    #[test]
    fn an_address_is_the_same_url_for_http_and_reqwest() {
        let addresses = [
            "http://h:81/a/b/api/v1/tracking/SB-1?lang=es&x=%20+",
            "http://h:81/",
            "http://h:81/a%2Fb/%C3%B1?",
            "http://h:81/a/./b",
            "http://h:81/api?a='b",
            "https://h:81/other",
            "http://h/other",
            "http://other:81/a?b",
        ];
        let base = Url::parse("http://h:81/a/b").unwrap();
        for address in addresses {
            let uri = Uri::try_from(address).unwrap();
            assert_eq!(to_url(&base, &uri), Url::parse(address), "{address}");
        }
    }
}
