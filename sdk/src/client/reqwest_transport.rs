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
    /// A transport for the service at `base`; `builder` may be called twice.
    pub(super) fn new(
        base: Url,
        builder: impl Fn() -> reqwest::ClientBuilder,
    ) -> Result<Self, Error> {
        // On a machine without root certificates, such as a bare container, building a client that loads them
        // fails, even for plain http. Bundled roots help then; they do not help against invalid settings.
        let client = match builder().build() {
            Err(_) if reqwest::Client::builder().build().is_err() => with_bundled_roots(builder()),
            client => client,
        };
        client
            .map(|client| Self { client, base })
            .map_err(|fault| Error::config(NO_CLIENT).with_source(fault))
    }

    fn request(&self, request: http::Request<Bytes>) -> Result<reqwest::Request, TransportError> {
        let (head, body) = request.into_parts();
        let url = under(&self.base, &head.uri)
            .map_err(|fault| TransportError::new(Phase::NotSent, fault))?;
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
        let answer =
            self.client.execute(request).await.map_err(|fault| failed(phase(&fault), fault))?;
        let answer: http::Response<reqwest::Body> = answer.into();
        Ok(answer.map(|body| {
            BodyDataStream::new(body).map_err(|fault| failed(Phase::MaybeSent, fault)).boxed()
        }))
    }
}

/// A client that trusts the authorities that Mozilla does, not the machine's.
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

/// An address as a URL. Reading the host is most of the work, and the base's was read before.
fn under(base: &Url, address: &Uri) -> Result<Url, url::ParseError> {
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

/// The address is dropped from the error: it holds tracking numbers.
fn failed(phase: Phase, fault: reqwest::Error) -> TransportError {
    TransportError::new(phase, fault.without_url())
}

fn phase(fault: &reqwest::Error) -> Phase {
    if fault.is_connect() {
        if causes(fault).any(is_tls) { Phase::Untrusted } else { Phase::NotSent }
    } else if fault.is_timeout() {
        Phase::Timeout
    } else if causes(fault).any(is_closed_unanswered) {
        Phase::Stale
    } else if causes(fault).any(is_no_http) {
        Phase::NotHttp
    } else {
        causes(fault).find_map(phase_of_http2).unwrap_or(Phase::MaybeSent)
    }
}

/// What HTTP/2 says besides. A request that the other side says it has not looked at, because it refused the
/// stream or is going away, is sent again as one on a connection that died in the pool is; it stays in
/// doubt, for whoever stands between may say so too.
#[cfg(feature = "http2")]
fn phase_of_http2(cause: &(dyn StdError + 'static)) -> Option<Phase> {
    use h2::Reason;

    let fault: &h2::Error = cause.downcast_ref()?;
    match fault.reason() {
        Some(Reason::REFUSED_STREAM) if fault.is_remote() => Some(Phase::Stale),
        Some(_) if fault.is_go_away() && fault.is_remote() => Some(Phase::Stale),
        // What comes back are no frames.
        Some(Reason::PROTOCOL_ERROR | Reason::FRAME_SIZE_ERROR)
            if fault.is_go_away() && fault.is_library() =>
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

fn causes<'a>(fault: &'a reqwest::Error) -> impl Iterator<Item = &'a (dyn StdError + 'static)> {
    std::iter::successors(fault.source(), |cause: &&'a (dyn StdError + 'static)| (*cause).source())
}

/// The TLS layer reports a bad certificate, or a peer that speaks no TLS, as invalid data, inside
/// another I/O error that does not name it as its source.
fn is_tls(cause: &(dyn StdError + 'static)) -> bool {
    cause.downcast_ref::<io::Error>().is_some_and(|fault| {
        fault.kind() == io::ErrorKind::InvalidData
            || fault.get_ref().is_some_and(|inner| is_tls(inner))
    })
}

/// hyper does not tell whether the connection had been used before. A new one that closes without an
/// answer is taken for a stale one, too: it is retried under the same conditions. Over HTTP/2 it shows as a
/// pipe that broke.
fn is_closed_unanswered(cause: &(dyn StdError + 'static)) -> bool {
    let http: Option<&hyper::Error> = cause.downcast_ref();
    let io: Option<&io::Error> = cause.downcast_ref();
    http.is_some_and(|fault| fault.is_incomplete_message() || fault.is_canceled())
        || io.is_some_and(|fault| fault.kind() == io::ErrorKind::BrokenPipe)
}

/// An answer that cannot be read from its first line on. One with too many headers is HTTP; hyper tells
/// them apart by its text alone, unless it is built as a server.
fn is_no_http(cause: &(dyn StdError + 'static)) -> bool {
    cause
        .downcast_ref::<hyper::Error>()
        .is_some_and(|fault| fault.is_parse() && !fault.to_string().contains("too large"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bundled_roots_are_a_client_s() {
        assert!(webpki_root_certs::TLS_SERVER_ROOT_CERTS.len() > 100);
        assert!(with_bundled_roots(reqwest::Client::builder()).is_ok());
    }

    #[test]
    fn an_address_is_the_same_url_however_it_is_read() {
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
            assert_eq!(under(&base, &uri), Url::parse(address), "{address}");
        }
    }
}
