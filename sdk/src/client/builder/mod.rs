//! Builds a client, and refuses unsafe settings.

mod headers;
#[cfg(feature = "reqwest")]
mod http_settings;
mod key_provider;
mod layers;
#[cfg(feature = "reqwest")]
mod proxy;
#[cfg(not(feature = "reqwest"))]
mod without_http;

use std::{
    env,
    sync::{Arc, Mutex},
};

use chrono::{DateTime, Utc};
use parcelo_types::{ApiKey, Language};
use url::{Host, Url};

pub(super) use headers::Headers;
pub(super) use key_provider::KeyProvider;

use super::{
    Attempt, Client, Error, Identity, RateLimit, Retry, Settings, Shared, Timeouts, Transport,
    attempt::Observer,
    clock::{ClockSource, Clocks},
    endpoint::{Endpoint, Route, parse_base_url},
    error::Texts,
    key_limits::KeyLimitTable,
};
use crate::wall_clock::WallClock;
use headers::{HeaderSettings, INVALID_KEY};
#[cfg(feature = "reqwest")]
use http_settings::HttpSettings;
use layers::{Layer, wrap_in_layers};
#[cfg(not(feature = "reqwest"))]
use without_http::HttpSettings;

/// Builds a [`Client`].
///
/// ```
/// # use parcelo::{ApiKey, Environment};
/// use parcelo::{Client, Language, Retry, Timeouts};
///
/// # let key = ApiKey::from_random(Environment::Sandbox, &[7; 32]);
/// let client = Client::builder(key)
///     .base_url("http://127.0.0.1:8081")?
///     .language(Language::Es)
///     .timeouts(Timeouts::default())
///     .retry(Retry::standard())
///     .build()?;
/// assert_eq!(client.base_url().port(), Some(8081));
/// # Ok::<(), parcelo::Error>(())
/// ```
#[derive(Debug, Clone)]
#[must_use]
pub struct ClientBuilder {
    key: ApiKey,
    base_url: Option<Url>,
    language: Language,
    settings: Settings,
    label_hosts: Vec<String>,
    transport: Option<Arc<dyn Transport>>,
    observer: Option<Observer>,
    clock: ClockSource,
    headers: HeaderSettings,
    http: HttpSettings,
    layers: Vec<Layer>,
}

const KEY_VARIABLE: &str = "PARCELO_API_KEY";
const BASE_URL_VARIABLE: &str = "PARCELO_BASE_URL";

impl ClientBuilder {
    pub(super) fn new(key: ApiKey) -> Self {
        Self {
            key,
            base_url: None,
            language: Language::default(),
            settings: Settings::default(),
            label_hosts: Vec::new(),
            transport: None,
            observer: None,
            clock: ClockSource::default(),
            headers: HeaderSettings::default(),
            http: HttpSettings::default(),
            layers: Vec::new(),
        }
    }

    /// Returns a builder with the key in `PARCELO_API_KEY` and the address in `PARCELO_BASE_URL`.
    ///
    /// Errors (`Config`) when one of them is missing or invalid.
    ///
    /// ```no_run
    /// use parcelo::{ClientBuilder, Language};
    ///
    /// let client = ClientBuilder::from_env()?.language(Language::Es).build()?;
    /// # Ok::<(), parcelo::Error>(())
    /// ```
    pub fn from_env() -> Result<Self, Error> {
        Self::from_variables(|name| env::var(name))
    }

    /// Returns a builder from the environment variables that `read` returns.
    fn from_variables(read: impl Fn(&str) -> Result<String, env::VarError>) -> Result<Self, Error> {
        let variable = |name, missing| {
            read(name).map_err(|error| Error::config(missing).with_source(variable_error(&error)))
        };
        let key = ApiKey::parse(&variable(KEY_VARIABLE, NO_KEY)?)
            .map_err(|error| Error::config(INVALID_KEY).with_source(error))?;
        Self::new(key).base_url(&variable(BASE_URL_VARIABLE, NO_BASE_URL)?)
    }

    /// Sets the address of the service: http or https, with a path if the API is under one.
    ///
    /// Errors (`Config`) when it is not such an address, or has credentials, a query or a fragment.
    ///
    /// ```
    /// # use parcelo::{ApiKey, Environment};
    /// # let key = ApiKey::from_random(Environment::Sandbox, &[7; 32]);
    /// use parcelo::Client;
    ///
    /// assert!(Client::builder(key.clone()).base_url("http://127.0.0.1:8081").is_ok());
    /// assert!(Client::builder(key).base_url("http://user@127.0.0.1:8081").is_err());
    /// ```
    pub fn base_url(self, address: &str) -> Result<Self, Error> {
        Ok(Self { base_url: Some(parse_base_url(address)?), ..self })
    }

    /// Sets the language of texts for people, such as names of statuses. The default is English.
    pub fn language(self, language: Language) -> Self {
        Self { language, ..self }
    }

    /// Sets the timeouts.
    pub fn timeouts(self, timeouts: Timeouts) -> Self {
        Self { settings: Settings { timeouts, ..self.settings }, ..self }
    }

    /// Sets the number of attempts of a call, and the waits in between.
    pub fn retry(self, retry: Retry) -> Self {
        Self { settings: Settings { retry, ..self.settings }, ..self }
    }

    /// Sets how the client stays within the key's rate limit. The default is [`RateLimit::adaptive`].
    pub fn rate_limit(self, rate_limit: RateLimit) -> Self {
        Self { settings: Settings { rate_limit, ..self.settings }, ..self }
    }

    /// Calls `observer` after each attempt, for counters and logs. The call continues when it returns, so it should
    /// be quick.
    pub fn on_attempt(self, observer: impl Fn(&Attempt) + Send + Sync + 'static) -> Self {
        Self { observer: Some(Observer(Arc::new(observer))), ..self }
    }

    /// Adds hosts besides the service's host from which labels are downloaded by their link: names or IP addresses,
    /// without scheme and port. The API key is not sent to them.
    ///
    /// ```
    /// # let key = parcelo::ApiKey::parse("pk_test_dummy")?;
    /// let client = parcelo::Client::builder(key)
    ///     .base_url("https://api.parcelo.example")?
    ///     .label_hosts(["labels.parcelo.example"])
    ///     .build()?;
    /// let label = "https://labels.parcelo.example/files/EC7K2M9QX4T8WD0.pdf?sig=…";
    /// let download = client.labels().download_link(label); // a link to another host is a `Config` error
    /// # drop(download);
    /// # Ok::<(), parcelo::Error>(())
    /// ```
    pub fn label_hosts<H: Into<String>>(self, hosts: impl IntoIterator<Item = H>) -> Self {
        Self { label_hosts: hosts.into_iter().map(Into::into).collect(), ..self }
    }

    /// Sends requests by this [`Transport`] in place of the client's own: by an HTTP client that you configured
    /// ([`Reqwest`](crate::transport::Reqwest)), or to a service in the same process, for which the base URL is optional.
    ///
    /// The settings of HTTP belong to that client then: [`build`](Self::build) refuses proxies, root certificates, `http2` and
    /// `gzip` beside a transport, and the timeout for connecting has no effect.
    /// To wrap the client's own transport instead, see [`layer`](Self::layer).
    pub fn transport(self, transport: impl Transport) -> Self {
        Self { transport: Some(Arc::new(transport)), ..self }
    }

    /// Reads the wall time from `read` in place of the machine's clock, for tests in which that clock is set.
    ///
    /// The age of idempotency keys is measured by it, by the runtime's clock, and by the dates of the service's
    /// responses.
    pub fn wall_clock(self, read: impl Fn() -> DateTime<Utc> + Send + Sync + 'static) -> Self {
        Self { clock: ClockSource::Wall(WallClock::new(read)), ..self }
    }

    /// Reads the service's own clock from `read`, for tests against an embedded service whose clock they move.
    /// `MockServer::client` sets it.
    ///
    /// The age of idempotency keys is then measured by this clock alone, and neither by the machine's clocks nor by
    /// the dates of responses. Waits and timeouts still use tokio's clock.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let order = parcelo_server::mock::MockServer::order("SB-SUCCESS-0001");
    /// use std::time::Duration;
    ///
    /// use parcelo::{Client, ErrorKind};
    /// use parcelo_server::mock::MockServer;
    ///
    /// let server = MockServer::start().await;
    /// let client = Client::builder(server.key().issue())
    ///     .base_url(server.url())?
    ///     .service_clock(server.clock().reader())
    ///     .build()?;
    /// client.orders().create(&order).await?;
    /// server.clock().advance(Duration::from_secs(24 * 3600)).await;
    /// let error = client.orders().create(&order).await.unwrap_err();
    /// assert_eq!(error.kind(), ErrorKind::KeyExpired);
    /// # Ok(())
    /// # }
    /// ```
    pub fn service_clock(self, read: impl Fn() -> DateTime<Utc> + Send + Sync + 'static) -> Self {
        Self { clock: ClockSource::Service(WallClock::new(read)), ..self }
    }

    /// Builds the client. It connects when it is first used.
    ///
    /// Errors (`Config`): there is no base URL; a live key would be sent unencrypted to another machine; the host name
    /// has a part (`sandbox`; `live`, `prod`, `production`) that names the environment which the key does not belong
    /// to; a label host is not a host name; settings of HTTP are beside a [`transport`](Self::transport); no transport is set
    /// in a build without the feature `reqwest`.
    ///
    /// ```
    /// use parcelo::{ApiKey, Client};
    ///
    /// let live = ApiKey::parse("pk_live_dummy")?;
    /// let refused = Client::builder(live).base_url("http://api.parcelo.example")?.build();
    /// let why = refused.unwrap_err().to_string();
    /// assert!(why.starts_with("A live key must not be sent unencrypted"));
    /// # Ok::<(), parcelo::Error>(())
    /// ```
    pub fn build(self) -> Result<Client, Error> {
        let base_url = match (self.base_url, &self.transport) {
            (Some(base_url), _) => base_url,
            (None, Some(_)) => parse_base_url("http://localhost")?,
            (None, None) => return Err(Error::config(NO_BASE_URL)),
        };
        let route = if self.http.has_remote_proxy() { Route::RemoteProxy } else { Route::Direct };
        let endpoint = Endpoint { base_url, route };
        endpoint.check_key(&self.key)?;
        if self.label_hosts.iter().any(|host| Host::parse(host).is_err()) {
            return Err(Error::config(INVALID_LABEL_HOST));
        }
        let transport = match self.transport {
            Some(_) if self.http.are_set() => return Err(Error::config(UNUSED_SETTINGS)),
            Some(transport) => transport,
            None => self.http.transport(self.settings.timeouts.connect)?,
        };
        let Settings { rate_limit, retry, .. } = &self.settings;
        let key_limits = KeyLimitTable::new(rate_limit.clone(), retry.budget.clone());
        let identity = Identity {
            environment: self.key.environment(),
            language: self.language,
            headers: Headers::new(&self.key, self.language, self.headers)?,
            limits: key_limits.get(&self.key),
        };
        let shared = Shared {
            endpoint,
            label_hosts: self.label_hosts,
            transport: wrap_in_layers(transport, &self.layers),
            observer: self.observer,
            retry_policy: Mutex::default(),
            key_limits,
            clocks: Clocks::new(self.clock),
        };
        let (shared, identity) = (Arc::new(shared), Arc::new(identity));
        Ok(Client { shared, identity, settings: self.settings })
    }
}

const NO_KEY: Texts = ("PARCELO_API_KEY is not set.", "Falta la variable PARCELO_API_KEY.");
const NO_BASE_URL: Texts = (
    "The service's address is not set: call base_url, or set PARCELO_BASE_URL.",
    "Falta la dirección del servicio: llame a base_url o defina PARCELO_BASE_URL.",
);
const UNUSED_SETTINGS: Texts = (
    "Proxy, root certificates, http2 and gzip have no effect beside a transport: set them on the HTTP client in it.",
    "El proxy, los certificados raíz, http2 y gzip no tienen efecto junto a un transporte: defínalos en su cliente HTTP.",
);
const INVALID_LABEL_HOST: Texts = (
    "Invalid label host: expected a host name without scheme, port and path.",
    "Servidor de etiquetas no válido: se espera un nombre de servidor sin esquema, puerto ni ruta.",
);

/// Describes the error without the variable's value, which may be a secret.
fn variable_error(error: &env::VarError) -> &'static str {
    match error {
        env::VarError::NotPresent => "the environment variable is not set",
        env::VarError::NotUnicode(_) => "the environment variable is not Unicode",
    }
}

#[cfg(test)]
mod tests {
    use parcelo_types::Environment;

    use super::*;
    use crate::client::{ErrorKind, endpoint::INVALID_BASE_URL, transport::Unused};

    fn builder(environment: Environment, address: &str) -> Result<ClientBuilder, Error> {
        let key = ApiKey::from_random(environment, &[7; 32]);
        ClientBuilder::new(key).transport(Unused).base_url(address)
    }

    fn build(environment: Environment, address: &str) -> Result<Client, Error> {
        builder(environment, address)?.build()
    }

    #[test]
    fn invalid_base_urls_are_refused() {
        let bad = [
            "",
            "parcelo.example",
            "ftp://h",
            "http://",
            "file:///etc",
            "http://h\r\nX: y",
            "http://h\n",
            " http://h",
            "http://h\t",
            "http://user@h",
            "http://u:p@h",
            "http://h?q=1",
            "http://h#f",
        ];
        for address in bad {
            let error = build(Environment::Sandbox, address).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Config, "{address:?}");
        }
    }

    #[test]
    fn a_live_key_never_crosses_a_network_unencrypted() {
        let table = [
            ("https://api.parcelo.example", true),
            ("http://127.0.0.1:8080", true),
            ("http://127.9.9.9", true),
            ("http://[::1]:8080/base", true),
            ("http://[::ffff:127.0.0.1]", true),
            ("http://localhost", true),
            ("http://api.parcelo.example", false),
            ("http://10.0.0.1", false),
            ("http://0.0.0.0", false),
            ("http://LOCALHOST:8080", true),
            ("http://localhost.example", false),
            // The resolver decides which machine a name under localhost belongs to.
            ("http://parcelo.localhost", false),
            ("http://parcelo.localhost.", false),
            ("http://localhost.", false),
            ("http://[::ffff:10.0.0.1]", false),
        ];
        for (address, fine) in table {
            assert_eq!(build(Environment::Production, address).is_ok(), fine, "{address}");
            assert!(build(Environment::Sandbox, address).is_ok(), "{address}");
        }
    }

    #[cfg(feature = "reqwest")]
    #[test]
    fn a_live_key_never_goes_unencrypted_through_a_proxy() {
        let build = |environment, address, proxy| {
            let builder = ClientBuilder::new(ApiKey::from_random(environment, &[7; 32]));
            builder.base_url(address).unwrap().proxy(proxy).unwrap().build().is_ok()
        };
        let table = [
            ("http://127.0.0.1:8080", "http://proxy.example:3128", false),
            ("http://127.0.0.1:8080", "https://proxy.example:3128", false),
            ("http://127.0.0.1:8080", "http://127.0.0.1:3128", true),
            ("https://api.parcelo.example", "http://proxy.example:3128", true),
        ];
        for (address, proxy, fine) in table {
            assert_eq!(build(Environment::Production, address, proxy), fine, "{address} {proxy}");
            assert!(build(Environment::Sandbox, address, proxy), "{address} {proxy}");
        }
    }

    #[cfg(feature = "reqwest")]
    #[test]
    fn settings_of_http_beside_a_transport_are_refused() {
        let builder = || builder(Environment::Sandbox, "https://api.parcelo.example").unwrap();
        let proxy = builder().proxy("http://127.0.0.1:3128").unwrap();
        assert_eq!(proxy.build().unwrap_err().to_string(), UNUSED_SETTINGS.0);
        #[cfg(feature = "rustls")]
        {
            let root = webpki_root_certs::TLS_SERVER_ROOT_CERTS.first().unwrap();
            assert!(builder().root_certificate(root).unwrap().build().is_err());
        }
        #[cfg(feature = "http2")]
        assert!(builder().http2().build().is_err());
        #[cfg(feature = "gzip")]
        assert!(builder().gzip().build().is_err());
        assert!(builder().no_proxy().build().is_ok());
    }

    #[test]
    fn a_key_is_not_sent_to_the_other_environment() {
        use Environment::{Production, Sandbox};
        let table = [
            ("https://sandbox.parcelo.example", Some(Sandbox)),
            ("https://api-sandbox.parcelo.example/v", Some(Sandbox)),
            ("https://SANDBOX.parcelo.example", Some(Sandbox)),
            ("https://live.parcelo.example", Some(Production)),
            ("https://api.prod.parcelo.example", Some(Production)),
            ("https://production.parcelo.example", Some(Production)),
            ("https://api.parcelo.example/sandbox", None),
            ("https://sandboxes.parcelo.example", None),
            ("http://127.0.0.1:8081", None),
        ];
        for (address, there) in table {
            for key in Environment::ALL {
                let fine = there.is_none_or(|there| there == key);
                assert_eq!(build(key, address).is_ok(), fine, "{key} {address}");
            }
        }
    }

    #[test]
    fn a_label_host_is_a_host() {
        let table = [
            ("labels.parcelo.example", true),
            ("127.0.0.1", true),
            ("https://labels.parcelo.example", false),
            ("labels.parcelo.example:8443", false),
            ("labels.parcelo.example/a", false),
            ("labels\r\n", false),
            ("", false),
        ];
        for (host, fine) in table {
            let builder = builder(Environment::Sandbox, "http://h").unwrap();
            assert_eq!(builder.label_hosts([host]).build().is_ok(), fine, "{host:?}");
        }
    }

    #[test]
    fn environment_variables_are_read_or_their_fault_is_named() {
        let key = ApiKey::from_random(Environment::Sandbox, &[7; 32]);
        let typo = key.secret().replace("pk_test_", "pk_tset_");
        let broken = format!("{}\n", key.secret());
        let url = Some("http://127.0.0.1:8081");
        let table = [
            (Some(key.secret()), url, None),
            (Some("pk_test_dummy"), url, None),
            (None, url, Some(NO_KEY)),
            (Some(""), url, Some(INVALID_KEY)),
            (Some(typo.as_str()), url, Some(INVALID_KEY)),
            (Some(broken.as_str()), url, Some(INVALID_KEY)),
            (Some(key.secret()), None, Some(NO_BASE_URL)),
            (Some(key.secret()), Some("not a url"), Some(INVALID_BASE_URL)),
        ];
        for (key, url, fault) in table {
            let read = |name: &str| {
                let value = if name == KEY_VARIABLE { key } else { url };
                value.map(str::to_owned).ok_or(env::VarError::NotPresent)
            };
            let error = ClientBuilder::from_variables(read).err();
            assert_eq!(error.as_ref().map(Error::to_string).as_deref(), fault.map(|texts| texts.0));
            assert!(!format!("{error:?}").contains("pk_test_7"));
        }
    }

    #[test]
    fn debug_output_and_errors_hide_the_key() {
        let key = ApiKey::from_random(Environment::Sandbox, &[7; 32]);
        let builder = ClientBuilder::new(key.clone()).transport(Unused);
        let builder = builder.base_url("http://h:1/x").unwrap();
        let shown = format!("{builder:?}");
        let client = builder.build().unwrap();
        let shown = format!("{shown} {client:?} {:?}", client.identity.headers.to_service());
        assert!(!shown.contains(key.secret()), "{shown}");
        assert_eq!(
            format!("{client:?}"),
            r#"Client { base_url: "http://h:1/x", environment: Sandbox, .. }"#
        );
    }
}
