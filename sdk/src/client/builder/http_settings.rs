//! Settings of the HTTP transport: those that the integrator may change, and those that the client fixes.

use std::{fmt, sync::Arc, time::Duration};

use super::{ClientBuilder, Error, Texts, proxy::ProxyRule};
use crate::client::retry::MAX_IDLE_CONNECTIONS;

type ConfigureFn = dyn Fn(reqwest::ClientBuilder) -> reqwest::ClientBuilder + Send + Sync;

/// Settings of the HTTP transport.
#[derive(Clone, Default)]
pub(super) struct HttpSettings {
    pub(super) proxy: ProxyRule,
    roots: Vec<reqwest::Certificate>,
    adjust: Option<Arc<ConfigureFn>>,
    gzip: bool,
    http2: bool,
}

impl fmt::Debug for HttpSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpSettings")
            .field("proxy", &self.proxy)
            .field("roots", &self.roots.len())
            .field("adjusted", &self.adjust.is_some())
            .field("gzip", &self.gzip)
            .field("http2", &self.http2)
            .finish()
    }
}

impl HttpSettings {
    /// Returns a reqwest builder with all settings. The order matters: the integrator's hook may change the settings
    /// made before it, but not those made after it, which the client's guarantees depend on.
    pub(super) fn builder(&self, connect_timeout: Duration) -> reqwest::ClientBuilder {
        let builder = self.protocols(reqwest::Client::builder());
        let builder = match &self.adjust {
            Some(adjust) => adjust(builder),
            None => builder,
        };
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

impl ClientBuilder {
    /// Configures the underlying reqwest client, before the client's own settings are applied: its connection pool,
    /// its DNS resolver, a client certificate, keep-alive.
    ///
    /// Redirects, retries and the proxy cannot be changed here, because the client's guarantees depend on them;
    /// for proxies see [`proxy`](Self::proxy). A default header that is set here is sent to label hosts too: use
    /// [`header`](Self::header). For timeouts see [`Timeouts`](crate::client::Timeouts): a shorter one of reqwest's
    /// ends an attempt earlier.
    ///
    /// The crate is re-exported as [`parcelo::reqwest`](crate::reqwest). The closure is called when the client
    /// is built, possibly twice. If this method is called twice, the last closure counts.
    ///
    /// ```
    /// # use parcelo::{ApiKey, Environment};
    /// # let key = ApiKey::from_random(Environment::Sandbox, &[7; 32]);
    /// let client = parcelo::Client::builder(key)
    ///     .base_url("https://sandbox.parcelo.example")?
    ///     .reqwest(|http| http.pool_max_idle_per_host(4).https_only(true))
    ///     .build()?;
    /// # Ok::<(), parcelo::Error>(())
    /// ```
    pub fn reqwest(
        mut self,
        adjust: impl Fn(reqwest::ClientBuilder) -> reqwest::ClientBuilder + Send + Sync + 'static,
    ) -> Self {
        self.http.adjust = Some(Arc::new(adjust));
        self
    }

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

    /// Sets the timeout for connecting: the same as [`Timeouts::connect`](crate::client::Timeouts::connect) in
    /// [`timeouts`](Self::timeouts). The last of the two calls counts.
    pub fn connect_timeout(self, timeout: Duration) -> Self {
        let timeouts = self.settings.timeouts.clone().connect(timeout);
        self.timeouts(timeouts)
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

const INVALID_CERTIFICATE: Texts = (
    "Invalid root certificate: expected PEM, or the DER of one certificate.",
    "Certificado raíz no válido: se espera PEM, o el DER de un certificado.",
);
