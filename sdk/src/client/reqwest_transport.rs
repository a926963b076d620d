//! The transport over HTTP by reqwest, and the phases of its errors. It is the only place where the SDK's public items
//! name a type of reqwest.

use std::sync::OnceLock;

use bytes::Bytes;
use futures_util::TryStreamExt;
use http::{Uri, uri::Authority};
use http_body_util::BodyDataStream;
use url::Url;

use super::{BodyStream, Phase, Transport, TransportError, transport::ResponseFuture};

/// Sends requests by a [`reqwest::Client`].
///
/// The client makes one itself unless [`ClientBuilder::transport`](crate::ClientBuilder::transport) sets a transport. Make
/// your own for what reqwest can do and [`ClientBuilder`](crate::ClientBuilder) does not offer: a pool that your program
/// shares, SOCKS, another TLS stack, a client certificate, a resolver.
///
/// The settings of the builder that are about HTTP have no effect then; the timeout for connecting is one of them, and so
/// are the root certificates. The user agent of your client is replaced by the SDK's
/// ([`user_agent_suffix`](crate::ClientBuilder::user_agent_suffix)).
/// Set these on reqwest's builder:
///
/// - `redirect(Policy::none())`: by default reqwest follows redirects, and would carry the API key to another host. A
///   redirect that was followed is an error ([`Phase::Redirected`]), but the other host has the key by then.
/// - `connect_timeout`, to a few seconds: a connection that is given up then was not used, while the end of an attempt
///   leaves the outcome of a write unknown.
/// - a proxy only if it may read what is sent without TLS: reqwest's default uses `HTTP_PROXY` for plain http too.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = parcelo_server::mock::MockServer::start().await;
/// # let (key, address) = (server.key().issue(), server.url());
/// use std::time::Duration;
///
/// use parcelo::{Client, transport::Reqwest};
///
/// let http = reqwest::Client::builder()
///     .redirect(reqwest::redirect::Policy::none())
///     .connect_timeout(Duration::from_secs(5))
///     .pool_max_idle_per_host(4)
///     .build()?;
/// let client = Client::builder(key).base_url(address)?.transport(Reqwest::new(http)).build()?;
/// client.health().await?;
/// # Ok(())
/// # }
/// ```
///
/// # Versions
///
/// `new` and the conversions of reqwest's errors and bodies name types of reqwest 0.13. They are the only public items
/// that follow reqwest's version: a minor version of this crate may move them to the next one.
#[derive(Debug)]
pub struct Reqwest {
    client: reqwest::Client,
    /// The first address that was requested: most others have its origin.
    first_url: OnceLock<Url>,
}

impl Reqwest {
    /// Returns a transport that sends requests by this HTTP client.
    pub fn new(client: reqwest::Client) -> Self {
        Self { client, first_url: OnceLock::new() }
    }

    async fn exchange(
        &self,
        request: http::Request<Bytes>,
    ) -> Result<http::Response<BodyStream>, TransportError> {
        let (head, body) = request.into_parts();
        let url =
            self.url(&head.uri).map_err(|error| TransportError::new(Phase::NotSent, error))?;
        let mut request = reqwest::Request::new(head.method, url.clone());
        *request.headers_mut() = head.headers;
        *request.body_mut() = Some(body.into());
        let response = self.client.execute(request).await?;
        if *response.url() != url {
            return Err(TransportError::new(Phase::Redirected, "the response is from another URL"));
        }
        Ok(http::Response::<reqwest::Body>::from(response).map(BodyStream::from))
    }

    /// Returns the URL of an address. Parsing the host is most of the work, and it is done once.
    fn url(&self, address: &Uri) -> Result<Url, url::ParseError> {
        let first = if let Some(first) = self.first_url.get() {
            first
        } else {
            let url = Url::parse(&address.to_string())?;
            self.first_url.get_or_init(|| url)
        };
        let authority = address.authority().map(Authority::as_str);
        if address.scheme_str() != Some(first.scheme()) || authority != Some(first.authority()) {
            return Url::parse(&address.to_string());
        }
        let mut url = first.clone();
        url.set_path(address.path());
        url.set_query(address.query());
        Ok(url)
    }
}

impl Transport for Reqwest {
    fn send(&self, request: http::Request<Bytes>) -> ResponseFuture<'_> {
        Box::pin(self.exchange(request))
    }
}

/// Streams a body of reqwest's, whose errors get their phases.
impl From<reqwest::Body> for BodyStream {
    fn from(body: reqwest::Body) -> Self {
        Self::new(BodyDataStream::new(body).map_err(TransportError::from))
    }
}

/// Finds the phase of an error of reqwest, and takes the address out of it, which contains tracking numbers.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// use parcelo::transport::{Phase, TransportError};
///
/// let error = reqwest::get("http://127.0.0.1:1/").await.unwrap_err();
/// assert_eq!(TransportError::from(error).phase(), Phase::NotSent);
/// # }
/// ```
impl From<reqwest::Error> for TransportError {
    fn from(error: reqwest::Error) -> Self {
        let error = error.without_url();
        if error.is_connect() {
            Self::not_connected(error)
        } else if error.is_timeout() {
            Self::new(Phase::Timeout, error)
        } else if error.is_redirect() {
            Self::new(Phase::Redirected, error)
        } else {
            Self::not_answered(error)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let transport = Reqwest::new(reqwest::Client::new());
        for address in addresses {
            let uri = Uri::try_from(address).unwrap();
            assert_eq!(transport.url(&uri), Url::parse(address), "{address}");
        }
    }
}
