//! Carriers for tests.

use parcelo::{Environment, admin::CarrierKey};

use super::{MockServer, at_once::at_once};
use crate::{clock::Clock as _, domain::CarrierKeyRecord};

impl MockServer {
    /// The key of a new carrier, which may report on every parcel of this server; each call makes
    /// another carrier.
    ///
    /// # Panics
    ///
    /// Never: a store in memory answers at once and does not fail.
    pub fn carrier_key(&self) -> CarrierKey {
        self.carrier_named(format!("Carrier {}", self.ids.ulid(self.clock.now()))).0
    }

    /// A further key of the carrier with a name.
    pub(super) fn carrier_named(&self, name: String) -> (CarrierKey, CarrierKeyRecord) {
        let issuer = self.issuer();
        let made = issuer.issue_for_carrier(Environment::Sandbox, name, self.clock.now());
        #[expect(clippy::expect_used, reason = "a store in memory does not fail")]
        at_once(made).expect("a key")
    }
}
