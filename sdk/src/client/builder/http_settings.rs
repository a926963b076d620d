//! The settings of the client's own HTTP transport: those that the integrator may change, and those that the client
//! fixes.

use std::{sync::Arc, time::Duration};

use super::{ClientBuilder, Error, Texts, proxy::ProxyRule};
use crate::client::{Transport, reqwest_transport::Reqwest, retry::MAX_IDLE_CONNECTIONS};

/// Settings of the client's own HTTP transport.
#[derive(Debug, Clone, Default)]
pub(super) struct HttpSettings {
    proxy: ProxyRule,
    #[cfg(feature = "rustls")]
    roots: Vec<reqwest::Certificate>,
    #[cfg(feature = "gzip")]
    gzip: bool,
    http2: bool,
}

impl HttpSettings {
    /// Returns `true` if an unencrypted request would leave this machine through the proxy.
    pub(super) fn has_remote_proxy(&self) -> bool {
        self.proxy.is_remote()
    }

    /// Returns `true` if there are settings that a transport of the integrator's own would not have.
    pub(super) fn are_set(&self) -> bool {
        let is_set = self.http2 || matches!(self.proxy, ProxyRule::Through(_));
        #[cfg(feature = "rustls")]
        let is_set = is_set || !self.roots.is_empty();
        #[cfg(feature = "gzip")]
        let is_set = is_set || self.gzip;
        is_set
    }

    /// Returns a transport with these settings.
    pub(super) fn transport(&self, connect_timeout: Duration) -> Result<Arc<dyn Transport>, Error> {
        let client = match self.builder(connect_timeout).build() {
            // On a machine without root certificates, such as a bare container, a client that loads them cannot be
            // built, even for plain http. Bundled roots help in this case, but not against invalid settings.
            #[cfg(feature = "rustls")]
            Err(_) if reqwest::Client::builder().build().is_err() => {
                with_bundled_roots(self.builder(connect_timeout))
            }
            client => client,
        };
        let client = client.map_err(|error| Error::config(NO_CLIENT).with_source(error))?;
        Ok(Arc::new(Reqwest::new(client)))
    }

    fn builder(&self, connect_timeout: Duration) -> reqwest::ClientBuilder {
        let builder = self.protocols(reqwest::Client::builder());
        #[cfg(feature = "rustls")]
        let builder = match self.roots.as_slice() {
            [] => builder,
            roots => builder.tls_certs_merge(roots.iter().cloned()),
        };
        self.proxy
            .apply(builder)
            .redirect(reqwest::redirect::Policy::none())
            .retry(reqwest::retry::never())
            .connect_timeout(connect_timeout)
    }

    /// Sets the protocols. Cargo adds up features over a build, so another crate may have enabled compression or HTTP/2
    /// in reqwest. Each is turned off here unless this client's builder turned it on.
    fn protocols(&self, builder: reqwest::ClientBuilder) -> reqwest::ClientBuilder {
        let builder = builder.no_gzip().no_brotli().no_zstd().no_deflate();
        let builder = builder.pool_max_idle_per_host(MAX_IDLE_CONNECTIONS);
        #[cfg(feature = "gzip")]
        let builder = builder.gzip(self.gzip);
        if !self.http2 {
            return builder.http1_only();
        }
        // One connection carries all requests, and an attempt that times out does not close it. Pings must detect
        // a dead connection before the next attempt, or that would time out too: 5 s and 5 s are less than the
        // 15 s of an attempt.
        #[cfg(feature = "http2")]
        let builder = builder
            .http2_keep_alive_interval(Duration::from_secs(5))
            .http2_keep_alive_timeout(Duration::from_secs(5));
        builder
    }
}

/// Returns a client with Mozilla's root certificates in place of the machine's.
#[cfg(feature = "rustls")]
fn with_bundled_roots(builder: reqwest::ClientBuilder) -> reqwest::Result<reqwest::Client> {
    let bundled = webpki_root_certs::TLS_SERVER_ROOT_CERTS.iter();
    let roots = bundled.map(|root| reqwest::Certificate::from_der(root));
    builder.tls_certs_only(roots.collect::<Result<Vec<_>, _>>()?).build()
}

impl ClientBuilder {
    /// Trusts a certificate authority in addition to those of the machine: PEM with any number of certificates, or
    /// DER of one. On a machine without any, such as a bare container, it is the only one that is trusted.
    ///
    /// Errors (`Config`) when there is no certificate in it; [`build`](Self::build) fails when one cannot be read.
    ///
    /// ```no_run
    /// # use parcelo::{ApiKey, Environment};
    /// # let key = ApiKey::from_random(Environment::Sandbox, &[7; 32]);
    /// let authority = std::fs::read("/etc/ssl/our-own-ca.pem")?;
    /// let client = parcelo::Client::builder(key)
    ///     .base_url("https://parcelo.internal.example")?
    ///     .root_certificate(&authority)?
    ///     .build()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[cfg(feature = "rustls")]
    pub fn root_certificate(mut self, pem_or_der: impl AsRef<[u8]>) -> Result<Self, Error> {
        let unread = |error| Error::config(INVALID_CERTIFICATE).with_source(error);
        let bytes = pem_or_der.as_ref();
        // DER begins with the tag of a sequence, 0x30, and PEM does not.
        let roots = if bytes.first() == Some(&0x30) {
            vec![reqwest::Certificate::from_der(bytes).map_err(unread)?]
        } else {
            reqwest::Certificate::from_pem_bundle(bytes).map_err(unread)?
        };
        if roots.is_empty() {
            return Err(Error::config(INVALID_CERTIFICATE));
        }
        self.http.roots.extend(roots);
        Ok(self)
    }

    /// Sends every request through this proxy; the address may have a user name and a password. Requests to https
    /// addresses are tunnelled, so the proxy cannot read them.
    ///
    /// By default, https requests to other machines use the proxy in `HTTPS_PROXY` or `ALL_PROXY`, except for
    /// the hosts in `NO_PROXY`. Plain http and requests to this machine use no proxy from the environment, because
    /// it would read the API key.
    ///
    /// Errors (`Config`) when it is not an http or https address. [`ClientBuilder::build`] refuses a live key with a
    /// plain http address and a proxy on another machine.
    ///
    /// ```
    /// # use parcelo::{ApiKey, Environment};
    /// # let key = ApiKey::from_random(Environment::Sandbox, &[7; 32]);
    /// let client = parcelo::Client::builder(key)
    ///     .base_url("https://api.parcelo.example")?
    ///     .proxy("http://user:password@proxy.example:3128")?
    ///     .build()?;
    /// # Ok::<(), parcelo::Error>(())
    /// ```
    pub fn proxy(mut self, address: &str) -> Result<Self, Error> {
        self.http.proxy = ProxyRule::through(address)?;
        Ok(self)
    }

    /// Uses no proxy, whatever the environment variables say.
    pub fn no_proxy(mut self) -> Self {
        self.http.proxy = ProxyRule::Direct;
        self
    }

    /// Uses HTTP/2 with a service that offers it by TLS (ALPN), and HTTP/1.1 with others.
    ///
    /// It is off by default: a few connections are enough for the requests that the rate limit admits, and a connection
    /// that breaks then breaks one request, not all that are in progress. The guarantees about retries are the same.
    #[cfg(feature = "http2")]
    pub fn http2(mut self) -> Self {
        self.http.http2 = true;
        self
    }

    /// Accepts responses that are compressed with gzip.
    ///
    /// It is off by default: responses are small, and label files are compressed already. The length of a compressed
    /// response is not that of the file, so [`LabelStream::length`](crate::client::LabelStream::length) is then
    /// `None`; a file that is cut off is still detected, by the end mark of gzip.
    #[cfg(feature = "gzip")]
    pub fn gzip(mut self) -> Self {
        self.http.gzip = true;
        self
    }
}

const NO_CLIENT: Texts =
    ("The HTTP client could not be set up.", "No se pudo preparar el cliente HTTP.");
#[cfg(feature = "rustls")]
const INVALID_CERTIFICATE: Texts = (
    "Invalid root certificate: expected PEM, or the DER of one certificate.",
    "Certificado raíz no válido: se espera PEM, o el DER de un certificado.",
);

#[cfg(all(test, feature = "rustls"))]
mod tests {
    use super::*;

    #[test]
    fn a_client_can_be_built_with_the_bundled_roots() {
        assert!(webpki_root_certs::TLS_SERVER_ROOT_CERTS.len() > 100);
        assert!(with_bundled_roots(reqwest::Client::builder()).is_ok());
    }
}
