//! API keys for tests.

use parcelo::{ApiKey, CountryCode, Environment};

use super::{MockServer, at_once::at_once};
use crate::{
    clock::Clock as _,
    core::{
        access,
        keys::{Countries, KeyRecord},
    },
    service::{KeyIssuer, NewKeyRequest},
};

/// A key that is to be made; [`KeyBuilder::issue`] makes it.
#[derive(Debug)]
#[must_use = "nothing is made before `issue`"]
pub struct KeyBuilder<'a> {
    server: &'a MockServer,
    request: NewKeyRequest,
    revoked: bool,
}

impl<'a> KeyBuilder<'a> {
    pub(super) fn new(server: &'a MockServer) -> Self {
        let request = NewKeyRequest {
            account: "default".to_owned(),
            environment: Environment::Sandbox,
            name: "Test".to_owned(),
            countries: Countries::All,
            ip_list: Vec::new(),
            rate_limit: None,
        };
        Self { server, request, revoked: false }
    }

    /// The key's name.
    pub fn name(mut self, name: &str) -> Self {
        name.clone_into(&mut self.request.name);
        self
    }

    /// The account it belongs to; keys of one account share their parcels.
    pub fn account(mut self, account: &str) -> Self {
        account.clone_into(&mut self.request.account);
        self
    }

    /// The only countries it may ship to.
    ///
    /// # Panics
    ///
    /// When one is no country.
    pub fn countries<'c>(mut self, countries: impl IntoIterator<Item = &'c str>) -> Self {
        #[expect(clippy::expect_used, reason = "a test's own constant is wrong; documented")]
        let read = |code| CountryCode::parse(code).expect("a country code");
        self.request.countries = Countries::Only(countries.into_iter().map(read).collect());
        self
    }

    /// The only addresses it may be used from, as addresses or networks.
    ///
    /// # Panics
    ///
    /// When one is neither.
    pub fn ip_list<'c>(mut self, list: impl IntoIterator<Item = &'c str>) -> Self {
        #[expect(clippy::expect_used, reason = "a test's own constant is wrong; documented")]
        let read = |text| access::network(text).expect("an address, or a network as 10.0.0.0/8");
        self.request.ip_list = list.into_iter().map(read).collect();
        self
    }

    /// Requests a second; holds also where the clock is frozen.
    pub fn rate_limit(mut self, requests: u32) -> Self {
        self.request.rate_limit = Some(requests);
        self
    }

    /// Revoked as soon as it is made: every request with it is refused.
    pub fn revoked(mut self) -> Self {
        self.revoked = true;
        self
    }

    /// Makes the key.
    ///
    /// # Panics
    ///
    /// Never: a store in memory answers at once and does not fail.
    pub fn issue(self) -> ApiKey {
        self.make().0
    }

    /// Makes the key, with its record.
    pub(super) fn make(self) -> (ApiKey, KeyRecord) {
        let Self { server, request, revoked } = self;
        let issuer = server.issuer();
        let made = issuer.issue(request, server.clock.now());
        #[expect(clippy::expect_used, reason = "a store in memory does not fail")]
        let (key, record) = at_once(made).expect("a key");
        if revoked {
            #[expect(clippy::expect_used, reason = "a store in memory does not fail")]
            at_once(server.service.revoke_key(&record.id)).expect("the store is there");
        }
        (key, record)
    }
}

impl MockServer {
    pub(super) fn issuer(&self) -> KeyIssuer<'_> {
        KeyIssuer {
            store: self.service.store(),
            secrets: &self.service.settings().secrets,
            ids: &self.ids,
        }
    }
}
