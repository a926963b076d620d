//! The address of a service, and the API keys that may be sent there.

use parcelo_types::{ApiKey, Environment};
use url::Url;

use super::{
    Error,
    address::{has_whitespace_or_control, is_loopback},
    error::Texts,
};

/// The address of a service, and how requests get there.
#[derive(Debug)]
pub(super) struct Endpoint {
    pub(super) base_url: Url,
    pub(super) route: Route,
}

/// The way of a client's requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Route {
    /// To the address itself.
    Direct,
    /// Through a proxy on another machine.
    RemoteProxy,
}

impl Endpoint {
    /// Fails if the key must not be sent there: a live key unencrypted, or one of the other environment.
    pub(super) fn check_key(&self, key: &ApiKey) -> Result<(), Error> {
        if key.environment() == Environment::Production && self.is_exposed() {
            return Err(Error::config(UNENCRYPTED));
        }
        if environment_in_host(&self.base_url).is_some_and(|there| there != key.environment()) {
            return Err(Error::config(WRONG_ENVIRONMENT));
        }
        Ok(())
    }

    /// Returns `true` if requests would cross a network unencrypted.
    fn is_exposed(&self) -> bool {
        self.base_url.scheme() == "http"
            && (!is_loopback(&self.base_url) || self.route == Route::RemoteProxy)
    }
}

pub(super) const INVALID_BASE_URL: Texts = (
    "The base URL is not an http or https address: begin it with http:// or https://.",
    "La URL base no es una dirección http o https: debe comenzar con http:// o https://.",
);
const BASE_URL_WITH_EXTRAS: Texts = (
    "The base URL must not have credentials, a query or a fragment.",
    "La URL base no debe contener credenciales, consulta ni fragmento.",
);
const UNENCRYPTED: Texts = (
    "A live key must not be sent unencrypted: use an https address.",
    "Una clave de producción no debe enviarse sin cifrar: use una dirección https.",
);
const WRONG_ENVIRONMENT: Texts = (
    "The key and the address belong to different environments: sandbox and production.",
    "La clave y la dirección pertenecen a entornos distintos: pruebas y producción.",
);

/// Returns the environment that the host name contains, if any.
fn environment_in_host(url: &Url) -> Option<Environment> {
    let parts = url.domain()?.split(['.', '-']);
    parts.into_iter().find_map(|part| match part {
        "sandbox" => Some(Environment::Sandbox),
        "live" | "prod" | "production" => Some(Environment::Production),
        _ => None,
    })
}

/// Parses the address of a service, without credentials, query and fragment.
pub(super) fn parse_base_url(address: &str) -> Result<Url, Error> {
    if has_whitespace_or_control(address) {
        return Err(Error::config(INVALID_BASE_URL));
    }
    let url =
        Url::parse(address).map_err(|error| Error::config(INVALID_BASE_URL).with_source(error))?;
    if !matches!(url.scheme(), "http" | "https") || url.host().is_none() {
        return Err(Error::config(INVALID_BASE_URL));
    }
    let has_no_extras = url.username().is_empty()
        && url.password().is_none()
        && url.query().is_none()
        && url.fragment().is_none();
    if has_no_extras { Ok(url) } else { Err(Error::config(BASE_URL_WITH_EXTRAS)) }
}
