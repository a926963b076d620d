//! The settings of HTTP in a build without the feature `reqwest`: there are none, and each client needs a transport.

use std::{sync::Arc, time::Duration};

use super::{Error, Texts};
use crate::client::Transport;

#[derive(Debug, Clone, Default)]
pub(super) struct HttpSettings {}

impl HttpSettings {
    #[expect(clippy::unused_self, reason = "as with the feature")]
    pub(super) fn has_remote_proxy(&self) -> bool {
        false
    }

    #[expect(clippy::unused_self, reason = "as with the feature")]
    pub(super) fn are_set(&self) -> bool {
        false
    }

    #[expect(clippy::unused_self, reason = "as with the feature")]
    pub(super) fn transport(&self, _: Duration) -> Result<Arc<dyn Transport>, Error> {
        Err(Error::config(NO_TRANSPORT))
    }
}

const NO_TRANSPORT: Texts = (
    "This build of parcelo has no HTTP client: enable its feature reqwest, or set a transport.",
    "Esta compilación de parcelo no tiene cliente HTTP: active su característica reqwest o defina un transporte.",
);

#[cfg(test)]
mod tests {
    use parcelo_types::{ApiKey, Environment, Language};

    use crate::{Client, ErrorKind};

    #[test]
    fn a_client_without_a_transport_is_not_built() {
        let key = ApiKey::from_random(Environment::Sandbox, &[7; 32]);
        let builder = Client::builder(key).base_url("http://127.0.0.1:8081").unwrap();
        let error = builder.build().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Config);
        assert!(error.message(Language::En).contains("feature reqwest"), "{error}");
        assert!(error.message(Language::Es).contains("característica reqwest"), "{error}");
    }
}
