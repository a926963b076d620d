//! The headers of requests: the client's own, and those that the integrator adds. Added headers never replace the
//! client's, and are sent only to the service's own origin.

use std::{fmt, sync::Arc};

use http::{
    HeaderMap, HeaderName, HeaderValue,
    header::{ACCEPT_LANGUAGE, USER_AGENT},
};
use parcelo_types::{ApiKey, Language, internal::header};

use super::{ClientBuilder, Error, Texts};

const USER_AGENT_PREFIX: &str = concat!("parcelo-rust/", env!("CARGO_PKG_VERSION"));

/// The header settings of a builder.
#[derive(Debug, Clone, Default)]
pub(super) struct HeaderSettings {
    fixed: HeaderMap,
    computed: Vec<ComputedHeader>,
    user_agent_suffix: Option<String>,
}

/// A header whose value is computed for each attempt.
#[derive(Clone)]
struct ComputedHeader {
    name: HeaderName,
    value: Arc<dyn Fn() -> Option<HeaderValue> + Send + Sync>,
}

impl fmt::Debug for ComputedHeader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ComputedHeader").field("name", &self.name).finish_non_exhaustive()
    }
}

/// The headers of a client's requests.
#[derive(Debug, Clone)]
pub(in crate::client) struct Headers {
    to_service: HeaderMap,
    /// The headers for other origins, which learn nothing about the integrator.
    to_other_origin: HeaderMap,
    computed: Vec<ComputedHeader>,
}

impl Headers {
    pub(super) fn new(
        key: &ApiKey,
        language: Language,
        settings: HeaderSettings,
    ) -> Result<Self, Error> {
        // The capacity includes the headers that each request and HTTP itself add.
        let mut to_service = HeaderMap::with_capacity(8 + settings.fixed.len());
        to_service.insert(ACCEPT_LANGUAGE, HeaderValue::from_static(language.code()));
        to_service.insert(USER_AGENT, HeaderValue::from_static(USER_AGENT_PREFIX));
        let to_other_origin = to_service.clone();
        if let Some(suffix) = settings.user_agent_suffix {
            let user_agent = format!("{USER_AGENT_PREFIX} {suffix}");
            to_service.insert(USER_AGENT, parse_header_value(&user_agent, INVALID_USER_AGENT)?);
        }
        to_service.insert(header::API_KEY, secret_value(key)?);
        to_service.extend(settings.fixed);
        Ok(Self { to_service, to_other_origin, computed: settings.computed })
    }

    /// Returns the same headers with another API key.
    pub(in crate::client) fn with_key(&self, key: &ApiKey) -> Result<Self, Error> {
        let mut headers = self.clone();
        headers.to_service.insert(header::API_KEY, secret_value(key)?);
        Ok(headers)
    }

    /// Returns the same headers for another language.
    pub(in crate::client) fn with_language(&self, language: Language) -> Self {
        let mut headers = self.clone();
        for map in [&mut headers.to_service, &mut headers.to_other_origin] {
            map.insert(ACCEPT_LANGUAGE, HeaderValue::from_static(language.code()));
        }
        headers
    }

    /// Returns the headers of one attempt to the service; computed headers are computed here.
    pub(in crate::client) fn to_service(&self) -> HeaderMap {
        let mut headers = self.to_service.clone();
        for ComputedHeader { name, value } in &self.computed {
            if let Some(value) = value() {
                headers.insert(name, value);
            }
        }
        headers
    }

    /// Returns the headers of one attempt to another origin.
    pub(in crate::client) fn to_other_origin(&self) -> HeaderMap {
        self.to_other_origin.clone()
    }

    pub(in crate::client) fn api_key(&self) -> &[u8] {
        self.to_service.get(header::API_KEY).map(HeaderValue::as_bytes).unwrap_or_default()
    }
}

fn secret_value(key: &ApiKey) -> Result<HeaderValue, Error> {
    let mut secret = HeaderValue::from_str(key.secret())
        .map_err(|error| Error::config(INVALID_KEY).with_source(error))?;
    secret.set_sensitive(true);
    Ok(secret)
}

impl ClientBuilder {
    /// Adds a header to every request to the service, for instance for a gateway in front of it. If it is set
    /// twice, the last value counts.
    ///
    /// It is not sent to other origins, such as [`label_hosts`](Self::label_hosts), and its value is
    /// marked as sensitive: `Debug` does not show it.
    ///
    /// Errors (`Config`) when the name is invalid or reserved for the client or HTTP itself, and when the value has
    /// a line break or another character that a header cannot have.
    ///
    /// ```
    /// # use parcelo::{ApiKey, Environment};
    /// # let key = ApiKey::from_random(Environment::Sandbox, &[7; 32]);
    /// use parcelo::Client;
    ///
    /// let builder = Client::builder(key).header("x-gateway-token", "let-me-in")?;
    /// let error = builder.header("Content-Type", "text/plain").unwrap_err();
    /// let text = "The header content-type is reserved for the client: it cannot be set.";
    /// assert_eq!(error.to_string(), text);
    /// # Ok::<(), parcelo::Error>(())
    /// ```
    pub fn header(mut self, name: &str, value: &str) -> Result<Self, Error> {
        let name = parse_header_name(name)?;
        let mut value = parse_header_value(value, INVALID_VALUE)
            .map_err(|error| error.with_source(format!("the value of {name}")))?;
        value.set_sensitive(true);
        self.headers.computed.retain(|computed| computed.name != name);
        self.headers.fixed.insert(name, value);
        Ok(self)
    }

    /// Adds a header whose value is computed for each attempt, such as `traceparent`. An attempt for which `value`
    /// returns `None` is sent without it. It is subject to the same rules as [`header`](Self::header), but its
    /// value is sensitive only if you mark it so.
    ///
    /// `value` is called inside the attempt's [`tracing`] span, so that each attempt can be a separate span in a trace;
    /// it should be quick. See the example `trace_context`.
    ///
    /// Errors (`Config`) when the name is one that [`header`](Self::header) refuses.
    ///
    /// ```
    /// # use parcelo::{ApiKey, Environment};
    /// # let key = ApiKey::from_random(Environment::Sandbox, &[7; 32]);
    /// use std::sync::atomic::{AtomicU64, Ordering};
    ///
    /// let count = AtomicU64::new(0);
    /// let number = move || Some(count.fetch_add(1, Ordering::Relaxed).into());
    /// let client = parcelo::Client::builder(key)
    ///     .base_url("https://sandbox.parcelo.example")?
    ///     .header_with("x-attempt", number)?
    ///     .build()?;
    /// # Ok::<(), parcelo::Error>(())
    /// ```
    pub fn header_with(
        mut self,
        name: &str,
        value: impl Fn() -> Option<HeaderValue> + Send + Sync + 'static,
    ) -> Result<Self, Error> {
        let name = parse_header_name(name)?;
        self.headers.fixed.remove(&name);
        self.headers.computed.retain(|computed| computed.name != name);
        self.headers.computed.push(ComputedHeader { name, value: Arc::new(value) });
        Ok(self)
    }

    /// Appends your program's name and version to the client's `User-Agent`. Label hosts do not receive it.
    ///
    /// Errors (`Config`) when it is empty or has anything but visible ASCII and single spaces.
    ///
    /// ```
    /// # use parcelo::{ApiKey, Environment};
    /// # let key = ApiKey::from_random(Environment::Sandbox, &[7; 32]);
    /// use parcelo::Client;
    ///
    /// // User-Agent: parcelo-rust/… my-shop/2.1
    /// let builder = Client::builder(key).user_agent_suffix("my-shop/2.1")?;
    /// assert!(builder.user_agent_suffix("my-shop\r\nX: y").is_err());
    /// # Ok::<(), parcelo::Error>(())
    /// ```
    pub fn user_agent_suffix(mut self, suffix: &str) -> Result<Self, Error> {
        let is_word = |word: &str| !word.is_empty() && word.bytes().all(|b| b.is_ascii_graphic());
        if !suffix.split(' ').all(is_word) {
            return Err(Error::config(INVALID_USER_AGENT));
        }
        self.headers.user_agent_suffix = Some(suffix.to_owned());
        Ok(self)
    }
}

/// Parses the name of a header, which must not be reserved.
fn parse_header_name(name: &str) -> Result<HeaderName, Error> {
    let name = HeaderName::try_from(name)
        .map_err(|error| Error::config(INVALID_NAME).with_source(format!("{error}: {name:?}")))?;
    match RESERVED_HEADERS.iter().find(|(reserved, _)| name == *reserved) {
        Some((_, texts)) => Err(Error::config(*texts)),
        None => Ok(name),
    }
}

/// Parses the value of a header.
fn parse_header_value(value: &str, texts: Texts) -> Result<HeaderValue, Error> {
    HeaderValue::from_str(value).map_err(|error| Error::config(texts).with_source(error))
}

macro_rules! reserved {
    ($($name:literal)*) => {
        &[$((
            $name,
            (
                concat!("The header ", $name, " is reserved for the client: it cannot be set."),
                concat!("El encabezado ", $name, " está reservado para el cliente: no se puede definir."),
            ),
        )),*]
    };
}

/// Headers that cannot be set: those that the client sets itself, those that would contradict the request's
/// body, those that would turn the response into a part of a file or an empty 304, and those of the connection.
const RESERVED_HEADERS: &[(&str, Texts)] = reserved!(
    "x-api-key" "x-carrier-key" "x-idempotency-key" "idempotency-key" "accept-language" "user-agent"
    "content-type" "content-length" "content-encoding"
    "accept-encoding" "range" "if-match" "if-none-match" "if-modified-since" "if-unmodified-since"
    "if-range" "expect"
    "host" "connection" "keep-alive" "proxy-connection" "proxy-authorization" "te" "trailer"
    "transfer-encoding" "upgrade" "http2-settings"
);

pub(super) const INVALID_KEY: Texts = (
    "PARCELO_API_KEY is not an API key: those start with pk_live_ or pk_test_ and have no spaces.",
    "PARCELO_API_KEY no es una clave de API: estas comienzan con pk_live_ o pk_test_ y no tienen espacios.",
);
const INVALID_NAME: Texts = ("Invalid header name.", "Nombre de encabezado no válido.");
const INVALID_VALUE: Texts = (
    "Invalid header value: it has a character that headers must not have, such as a line break.",
    "Valor de encabezado no válido: contiene un carácter no permitido, como un salto de línea.",
);
const INVALID_USER_AGENT: Texts = (
    "Invalid User-Agent suffix: expected words of visible ASCII, separated by single spaces.",
    "Sufijo de User-Agent no válido: se esperan palabras de ASCII visible separadas por un espacio.",
);

#[cfg(test)]
mod tests {
    use parcelo_types::Environment;

    use super::*;
    use crate::client::{ErrorKind, transport::Unused};

    fn builder() -> ClientBuilder {
        let key = ApiKey::from_random(Environment::Sandbox, &[7; 32]);
        ClientBuilder::new(key).transport(Unused)
    }

    #[test]
    fn a_reserved_header_is_refused_by_name() {
        for (name, texts) in RESERVED_HEADERS {
            let spelled = [(*name).to_owned(), name.to_uppercase()];
            for name in spelled {
                let fixed = builder().header(&name, "x").unwrap_err();
                let computed = builder().header_with(&name, || None).unwrap_err();
                for error in [fixed, computed] {
                    assert_eq!((error.kind(), &*error.to_string()), (ErrorKind::Config, texts.0));
                    assert!(error.to_string().contains(&name.to_lowercase()), "{error}");
                }
            }
        }
    }

    #[test]
    fn invalid_header_values_are_refused_and_not_shown() {
        for name in ["", "a b", "a:b", "x\r\nx-api-key", "ñ", "x\n"] {
            let error = builder().header(name, "x").unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Config, "{name:?}");
        }
        for value in ["CANARY\r\nx: y", "CANARY\n", "\rCANARY", "CANARY\0", "CANARY\u{7f}"] {
            let error = builder().header("x-token", value).unwrap_err();
            let shown = format!("{error} {error:?}");
            assert!(shown.contains("x-token") && !shown.contains("CANARY"), "{shown}");
        }
        for suffix in ["", " ", "a  b", " a", "a ", "a\r\nb", "a\tb", "ñ", "a\0"] {
            let error = builder().user_agent_suffix(suffix).unwrap_err();
            assert_eq!(error.to_string(), INVALID_USER_AGENT.0, "{suffix:?}");
        }
    }

    #[test]
    fn debug_output_hides_header_values() {
        let given = builder().header("x-token", "CANARY").unwrap();
        let shown = format!("{given:?}");
        let client = given.base_url("http://h").unwrap().build().unwrap();
        let shown = format!("{shown} {client:?} {:?}", client.identity.headers.to_service());
        assert!(!shown.contains("CANARY") && shown.contains("x-token"), "{shown}");
    }

    #[test]
    fn the_last_value_of_a_header_counts() {
        let both = builder().header("x-a", "1").unwrap().header("X-A", "2").unwrap();
        let three = || Some(HeaderValue::from_static("3"));
        let computed = both.clone().header_with("x-a", three).unwrap();
        let fixed = computed.clone().header("x-a", "4").unwrap();
        for (builder, value) in [(both, "2"), (computed, "3"), (fixed, "4")] {
            let client = builder.base_url("http://h").unwrap().build().unwrap();
            let headers = client.identity.headers.to_service();
            assert_eq!(headers.get_all("x-a").iter().collect::<Vec<_>>(), [value]);
        }
    }
}
