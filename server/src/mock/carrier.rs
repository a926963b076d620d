//! Carriers for tests.

use parcelo::{CarrierKey, Environment};

use super::{MockServer, at_once::at_once};
use crate::{clock::Clock as _, service::KeyIssuer};

impl MockServer {
    /// The key of a new carrier, which may report on every parcel of this server; each call makes
    /// another carrier.
    ///
    /// # Panics
    ///
    /// Never: a store in memory answers at once and does not fail.
    pub fn carrier_key(&self) -> CarrierKey {
        let now = self.clock.now();
        let issuer = KeyIssuer {
            store: self.service.store(),
            secrets: &self.service.settings().secrets,
            ids: &self.ids,
        };
        let name = format!("Carrier {}", self.ids.ulid(now));
        let made = issuer.issue_for_carrier(Environment::Sandbox, name, now);
        #[expect(clippy::expect_used, reason = "a store in memory does not fail")]
        let (key, _) = at_once(made).expect("a key");
        key
    }
}
