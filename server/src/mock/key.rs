//! API keys for tests.

use std::time::Duration;

use parcelo::{ApiKey, CountryCode, Environment};

use super::{MockServer, at_once::at_once};
use crate::{
    clock::Clock as _,
    domain::{
        access,
        credentials::{Countries, KeyRecord},
    },
    service::{CredentialIssuer, NewKeyRequest, Rotation, Visitor},
};

/// What a key is called that is given no name.
pub(super) const DEFAULT_NAME: &str = "Test";

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
            name: DEFAULT_NAME.to_owned(),
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

    /// The only countries it may ship to, as `["EC", "MX"]` or `["EC, MX"]`.
    ///
    /// # Panics
    ///
    /// When one is no country.
    pub fn countries<'c>(mut self, countries: impl IntoIterator<Item = &'c str>) -> Self {
        #[expect(clippy::expect_used, reason = "a test's own constant is wrong; documented")]
        let read = |code: &str| CountryCode::parse(code.trim()).expect("a country code");
        let codes = countries.into_iter().flat_map(|codes| codes.split(','));
        self.request.countries = Countries::Only(codes.map(read).collect());
        self
    }

    /// The countries it may ship to, checked already.
    pub(super) fn allowed(mut self, countries: Countries) -> Self {
        self.request.countries = countries;
        self
    }

    /// The only addresses it may be used from, as addresses or networks; several in one text have
    /// commas between them.
    ///
    /// # Panics
    ///
    /// When one is neither.
    pub fn ip_list<'c>(mut self, list: impl IntoIterator<Item = &'c str>) -> Self {
        #[expect(clippy::expect_used, reason = "a test's own constant is wrong; documented")]
        let read = |text: &str| {
            access::network(text.trim()).expect("an address, or a network as 10.0.0.0/8")
        };
        let networks = list.into_iter().flat_map(|networks| networks.split(','));
        self.request.ip_list = networks.map(read).collect();
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
    /// Gives a key a new secret, as an operator does: it stays the same key, which knows what it has
    /// shipped. The old secret keeps working for `overlap`, at most 7 days.
    ///
    /// ```
    /// # #[cfg(feature = "sdk")]
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use std::time::Duration;
    /// # let order: parcelo::OrderRequest = serde_json::from_str(parcelo_server::mock::sample::ORDER)?;
    /// use parcelo::Outcome;
    /// use parcelo_server::mock::MockServer;
    ///
    /// let server = MockServer::start().await;
    /// let old = server.key().issue();
    /// server.client(&old).orders().create(&order).await?;
    /// let new = server.rotate_key(&old, Duration::from_secs(3600));
    /// let again = server.client(&new).orders().create(&order).await?;
    /// assert_eq!(again.outcome(), Outcome::Replayed); // one parcel
    /// # Ok(())
    /// # }
    /// # #[cfg(not(feature = "sdk"))]
    /// # fn main() {}
    /// ```
    ///
    /// # Panics
    ///
    /// When it is no key of this server that works now.
    pub fn rotate_key(&self, key: &ApiKey, overlap: Duration) -> ApiKey {
        #[expect(clippy::expect_used, reason = "a test's own key is wrong; documented")]
        self.rotated(key, overlap).expect("a key of this server that works")
    }

    /// The same, or none for what is no key that works now.
    pub(super) fn rotated(&self, key: &ApiKey, overlap: Duration) -> Option<ApiKey> {
        let visitor = Visitor { environment: Environment::Sandbox, key: Some(key.secret()) };
        let caller = at_once(self.service.authenticate(visitor)).ok()?;
        let seconds = u32::try_from(overlap.as_secs()).unwrap_or(u32::MAX);
        match at_once(self.service.rotate_key(&caller.key.id, seconds)).ok()? {
            Rotation::Done(key, _) => Some(key),
            Rotation::Revoked | Rotation::Unknown => None,
        }
    }

    pub(super) fn issuer(&self) -> CredentialIssuer<'_> {
        CredentialIssuer {
            store: self.service.store(),
            secrets: &self.service.settings().secrets,
            ids: &self.ids,
        }
    }
}
