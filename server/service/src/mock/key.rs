//! API keys and carrier keys for tests.

use std::time::Duration;

use parcelo_domain::{
    CarrierKeyRecord, access,
    audit::Actor,
    credentials::{ApiKeyRecord, Countries},
};
use parcelo_system::clock::Clock as _;
use parcelo_types::{ApiKey, CountryCode};
use parcelo_wire::CarrierKey;

use super::{MockServer, expect_stored, sync::block_on};
use crate::service::{CredentialIssuer, NewKeyRequest, RotationOutcome};

/// The name of a key for which none was set.
pub(super) const DEFAULT_NAME: &str = "Test";

/// Configures a key; [`KeyBuilder::issue`] creates it.
#[derive(Debug)]
#[must_use = "`issue` creates the key"]
pub struct KeyBuilder<'a> {
    server: &'a MockServer,
    request: NewKeyRequest,
    revoked: bool,
}

impl<'a> KeyBuilder<'a> {
    pub(super) fn new(server: &'a MockServer) -> Self {
        let request = NewKeyRequest::unrestricted("default", server.environment, DEFAULT_NAME);
        Self { server, request, revoked: false }
    }

    /// Sets the key's name.
    pub fn name(mut self, name: &str) -> Self {
        name.clone_into(&mut self.request.name);
        self
    }

    /// Sets the account it belongs to; keys of one account share their parcels.
    pub fn account(mut self, account: &str) -> Self {
        account.clone_into(&mut self.request.account);
        self
    }

    /// Sets the only countries it may ship to, as `["EC", "MX"]` or `["EC, MX"]`.
    ///
    /// # Panics
    ///
    /// If one is not a country code.
    #[track_caller]
    pub fn countries<'c>(mut self, countries: impl IntoIterator<Item = &'c str>) -> Self {
        let codes = countries.into_iter().flat_map(|codes| codes.split(','));
        let parse = |code: &str| {
            CountryCode::parse(code.trim()).map_err(|error| format!("{code:?} is {error}"))
        };
        #[expect(clippy::panic, reason = "a test's own constant is wrong; documented")]
        match codes.map(parse).collect() {
            Ok(codes) => self.request.countries = Countries::Only(codes),
            Err(message) => panic!("{message}"),
        }
        self
    }

    /// Sets the countries it may ship to, already checked.
    pub(super) fn allowed_countries(mut self, countries: Countries) -> Self {
        self.request.countries = countries;
        self
    }

    /// Sets the only IP addresses and networks it may be used from; a text may list several with commas.
    ///
    /// # Panics
    ///
    /// If one is neither an address nor a network.
    pub fn ip_list<'c>(mut self, list: impl IntoIterator<Item = &'c str>) -> Self {
        #[expect(clippy::expect_used, reason = "a test's own constant is wrong; documented")]
        let parse = |text: &str| {
            access::parse_network(text.trim()).expect("an address, or a network such as 10.0.0.0/8")
        };
        let networks = list.into_iter().flat_map(|networks| networks.split(','));
        self.request.ip_list = networks.map(parse).collect();
        self
    }

    /// Sets its limit of requests per second, which also applies while the clock is frozen.
    pub fn rate_limit(mut self, requests: u32) -> Self {
        self.request.rate_limit = Some(requests);
        self
    }

    /// Revokes it as soon as it is created: every request with it is refused.
    pub fn revoked(mut self) -> Self {
        self.revoked = true;
        self
    }

    /// Creates the key.
    ///
    /// # Panics
    ///
    /// Never: a store in memory completes at once and does not fail.
    pub fn issue(self) -> ApiKey {
        self.issue_with_record().0
    }

    /// Creates the key, and returns its record too.
    pub(super) fn issue_with_record(self) -> (ApiKey, ApiKeyRecord) {
        let Self { server, request, revoked } = self;
        let issuer = server.issuer();
        let created = issuer.issue_api_key(request, server.clock.now());
        let (key, record) = expect_stored(block_on(created));
        if revoked {
            expect_stored(block_on(server.service.revoke_key(&record.id, Actor::Server)));
        }
        (key, record)
    }
}

impl MockServer {
    /// Issues the key of a new carrier, which can report events for every parcel on this server. Each call creates
    /// another carrier.
    ///
    /// # Panics
    ///
    /// Never: a store in memory completes at once and does not fail.
    pub fn carrier_key(&self) -> CarrierKey {
        self.issue_carrier_key(format!("Carrier {}", self.ids.ulid(self.clock.now()))).0
    }

    /// Issues another key of the carrier with this name.
    pub(super) fn issue_carrier_key(&self, name: String) -> (CarrierKey, CarrierKeyRecord) {
        let issuer = self.issuer();
        let created = issuer.issue(name, self.environment, self.clock.now());
        expect_stored(block_on(created))
    }

    /// Gives a key a new secret, as an operator does. It is still the same key, so that idempotency keys used with the
    /// old secret are replayed. The old secret keeps working for `overlap`, at most 7 days.
    ///
    /// ```
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
    /// ```
    ///
    /// # Panics
    ///
    /// If the server has no such key, or the key is revoked or expired.
    pub fn rotate_key(&self, key: &ApiKey, overlap: Duration) -> ApiKey {
        #[expect(clippy::expect_used, reason = "a test's own key is wrong; documented")]
        self.try_rotate_key(key, overlap).expect("a key of this server that works")
    }

    /// Gives a key a new secret like [`MockServer::rotate_key`]; returns `None` if the key does not work.
    pub(super) fn try_rotate_key(&self, key: &ApiKey, overlap: Duration) -> Option<ApiKey> {
        let caller =
            block_on(self.service.authenticate(self.environment, Some(key.secret()))).ok()?;
        let seconds = u32::try_from(overlap.as_secs()).unwrap_or(u32::MAX);
        match block_on(self.service.rotate_key(&caller.key.id, seconds, Actor::Server)).ok()? {
            RotationOutcome::Done(key, _) => Some(key),
            RotationOutcome::Revoked | RotationOutcome::Superseded | RotationOutcome::Unknown => {
                None
            }
        }
    }

    pub(super) fn issuer(&self) -> CredentialIssuer<'_> {
        CredentialIssuer {
            store: self.service.store(),
            secrets: &self.service.settings().secrets,
            ids: &self.ids,
            by: Actor::Server.at(self.clock.now()),
        }
    }
}
