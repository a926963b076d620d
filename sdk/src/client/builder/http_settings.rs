//! How requests are sent over HTTP: what the integrator may set, and what stays the client's.

use std::{fmt, sync::Arc, time::Duration};

use super::{ClientBuilder, Error, Texts, proxy::ProxyRule};

type Adjust = dyn Fn(reqwest::ClientBuilder) -> reqwest::ClientBuilder + Send + Sync;

/// Settings of the transport over HTTP.
#[derive(Clone, Default)]
pub(super) struct HttpSettings {
    pub(super) proxy: ProxyRule,
    roots: Vec<reqwest::Certificate>,
    adjust: Option<Arc<Adjust>>,
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
    /// A builder with all settings. What comes first the integrator may change; what comes last is what
    /// the client's promises rest on.
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

    /// What another crate in the build has turned on for reqwest is not turned on here by that.
    fn protocols(&self, builder: reqwest::ClientBuilder) -> reqwest::ClientBuilder {
        let builder = builder.no_gzip().no_brotli().no_zstd().no_deflate();
        #[cfg(feature = "gzip")]
        let builder = builder.gzip(self.gzip);
        if !self.http2 {
            return builder.http1_only();
        }
        // One connection carries all requests, and an attempt that runs out of time does not close it: a dead
        // one must be found out before the next attempt, or that would go the same way.
        #[cfg(feature = "http2")]
        let builder = builder
            .http2_keep_alive_interval(Duration::from_secs(5))
            .http2_keep_alive_timeout(Duration::from_secs(5));
        builder
    }
}

impl ClientBuilder {
    /// Adjusts the HTTP client, reqwest's, before the client's own settings are made: its pool, its
    /// resolver, a client certificate, keep-alive.
    ///
    /// Redirects, retries and the proxy stay the client's whatever is set here, because its promises rest on
    /// them: for proxies see [`proxy`](Self::proxy). A header that is set here goes to label hosts too: use
    /// [`header`](Self::header). For time-outs see [`Timeouts`](crate::client::Timeouts): one of reqwest's own that is
    /// shorter ends an attempt earlier.
    ///
    /// The crate is re-exported as [`parcelo::reqwest`](crate::reqwest). The closure is called when the client
    /// is built, perhaps twice; the last one that is given counts.
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

    /// A certificate authority, or several, that the service may be certified by besides those that the
    /// machine trusts: PEM with any number of certificates, or DER of one. On a machine that trusts none, as a
    /// bare container, nobody else is believed.
    ///
    /// Errors (`Config`) when there is no certificate in it; [`build`](Self::build) when one cannot be read.
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
        let unread = |fault| Error::config(INVALID_CERTIFICATE).with_source(fault);
        let bytes = pem_or_der.as_ref();
        // DER is a sequence, so it begins with this byte, which no text of PEM does.
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

    /// The proxy that every request goes through, with its name and password if it wants them. What is
    /// encrypted stays so on its way.
    ///
    /// Unless this is set, https requests to other machines take the proxy in `HTTPS_PROXY` or
    /// `ALL_PROXY`, except to what `NO_PROXY` names. Plain http, and requests to this machine, take none
    /// from the environment: it would read the API key.
    ///
    /// Errors (`Config`) when it is not an http or https address. A live key is not sent through a proxy on
    /// another machine to a plain http address: see [`ClientBuilder::build`].
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

    /// No proxy at all, whatever the environment says.
    pub fn no_proxy(mut self) -> Self {
        self.http.proxy = ProxyRule::Direct;
        self
    }

    /// How long making a connection may take: [`Timeouts::connect`](crate::client::Timeouts::connect), which is part of
    /// [`timeouts`](Self::timeouts); the later of the two counts.
    pub fn connect_timeout(self, timeout: Duration) -> Self {
        let timeouts = self.settings.timeouts.connect(timeout);
        self.timeouts(timeouts)
    }

    /// Speaks HTTP/2 with a service that offers it by TLS (ALPN), and HTTP/1.1 with others.
    ///
    /// Off unless it is asked for: the client waits for its turns anyway, so a handful of connections carries
    /// all that the service's rate limit lets through, and one broken connection breaks one request, not all
    /// that are on their way. The promises about retries are the same.
    #[cfg(feature = "http2")]
    pub fn http2(mut self) -> Self {
        self.http.http2 = true;
        self
    }

    /// Takes answers that are compressed with gzip.
    ///
    /// Off unless it is asked for: answers are small, label files are compressed already, and the length that
    /// a compressed answer promises is not the file's, so [`LabelStream::length`](crate::client::LabelStream::length)
    /// has none. That it arrived whole is seen all the same, by gzip's own end.
    #[cfg(feature = "gzip")]
    pub fn gzip(mut self) -> Self {
        self.http.gzip = true;
        self
    }
}

const INVALID_CERTIFICATE: Texts = (
    "The root certificate is neither PEM nor DER of a certificate.",
    "El certificado raíz no es un certificado en PEM ni en DER.",
);
