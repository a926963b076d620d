//! Counts requests by caller; the counting itself is decided in the core.

use std::{
    collections::HashMap,
    net::IpAddr,
    sync::{Mutex, PoisonError},
};

use parcelo::Environment;

use super::{Caller, Carrier, Service};
use crate::{
    clock::Millis,
    core::limit::{Admission, Quota, Window},
};

/// How many times the limit of an API key a carrier key has.
const CARRIER: u32 = 10;
/// Windows kept before those that are over are forgotten.
const MOST_WINDOWS: usize = 10_000;

/// Whose requests are counted together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Limited {
    /// The requests of one API key.
    Key(i64),
    /// The requests of one carrier key.
    Carrier(i64),
    /// The requests of one address without a valid key, in one environment.
    Address(Environment, IpAddr),
    /// The requests of one address to public pages, in one environment.
    Public(Environment, IpAddr),
}

#[derive(Debug, Default)]
pub(super) struct Limiter(Mutex<HashMap<Limited, Window>>);

impl Limiter {
    fn with<T>(&self, who: Limited, now: Millis, look: impl FnOnce(&mut Window) -> T) -> T {
        let mut windows = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if windows.len() >= MOST_WINDOWS {
            windows.retain(|_, window| !window.is_over(now));
        }
        look(windows.entry(who).or_default())
    }
}

impl Service {
    /// Counts a request of somebody without a key.
    pub fn admit(&self, who: Limited, now: Millis) -> Admission {
        let limits = &self.settings.limits;
        let limit = match who {
            Limited::Public(..) => limits.public,
            Limited::Address(..) | Limited::Key(_) | Limited::Carrier(_) => limits.unauthenticated,
        };
        self.count(who, limit, limits.enforced, now)
    }

    /// Counts a request of a key.
    pub fn admit_caller(&self, caller: &Caller, now: Millis) -> Admission {
        let (limit, enforced) = self.limit_of(caller);
        self.count(Limited::Key(caller.key.row), limit, enforced, now)
    }

    /// Counts a request of a carrier key, which reports for many shippers.
    pub fn admit_carrier(&self, carrier: &Carrier, now: Millis) -> Admission {
        let limits = &self.settings.limits;
        let limit = limits.of_key(carrier.key.environment).saturating_mul(CARRIER);
        self.count(Limited::Carrier(carrier.key.row), limit, limits.enforced, now)
    }

    /// What a key has left, counting nothing.
    pub fn quota_of(&self, caller: &Caller, now: Millis) -> Quota {
        let (limit, enforced) = self.limit_of(caller);
        if !enforced {
            return Quota::whole(limit, now);
        }
        self.limiter.with(Limited::Key(caller.key.row), now, |window| window.quota(limit, now))
    }

    fn limit_of(&self, caller: &Caller) -> (u32, bool) {
        let limits = &self.settings.limits;
        match caller.key.rate_limit {
            Some(own) => (own, true),
            None => (limits.of_key(caller.key.tenant.environment), limits.enforced),
        }
    }

    fn count(&self, who: Limited, limit: u32, enforced: bool, now: Millis) -> Admission {
        if !enforced {
            return Admission::Granted(Quota::whole(limit, now));
        }
        self.limiter.with(who, now, |window| window.take(limit, now))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use parcelo::rules::Destinations;

    use super::*;
    use crate::{
        clock::ManualClock,
        core::{CarrierKeyRecord, CarrierNumber, Secrets, Site},
        ids::Ids,
        service::{Limits, Settings},
        store::Store,
    };

    fn service() -> Service {
        let site =
            |environment| Site { environment, base_url: String::new(), labels_host: String::new() };
        let settings = Settings {
            production: site(Environment::Production),
            sandbox: site(Environment::Sandbox),
            destinations: Destinations::All,
            limits: Limits { production: 3, ..Limits::default() },
            secrets: Secrets::derive(&[1; 32]),
            trusted_proxies: Vec::new(),
        };
        let clock = Arc::new(ManualClock::at(Millis(0)));
        let store = Store::memory([1; 32]).unwrap();
        Service::new(store, clock, Arc::new(Ids::seeded(1)), settings)
    }

    fn carrier(row: i64, environment: Environment) -> Carrier {
        Carrier {
            key: Arc::new(CarrierKeyRecord {
                row,
                id: format!("car_{row}"),
                carrier: CarrierNumber(1),
                environment,
                name: "Andes Cargo".to_owned(),
                last4: "wXyZ".to_owned(),
                created_at: Millis(0),
                revoked_at: None,
            }),
        }
    }

    #[test]
    fn a_carrier_key_has_ten_times_the_limit_of_its_environment() {
        let service = service();
        let one = carrier(1, Environment::Production);
        for left in (0..30).rev() {
            let quota = Quota { limit: 30, remaining: left, reset: 1 };
            assert_eq!(service.admit_carrier(&one, Millis(0)), Admission::Granted(quota));
        }
        let empty = Quota { limit: 30, remaining: 0, reset: 1 };
        assert_eq!(service.admit_carrier(&one, Millis(999)), Admission::Refused(empty));
        let others = [(2, Environment::Production, 30), (3, Environment::Sandbox, 1_000)];
        for (row, environment, limit) in others {
            let quota = Quota { limit, remaining: limit - 1, reset: 1 };
            let admission = service.admit_carrier(&carrier(row, environment), Millis(0));
            assert_eq!(admission, Admission::Granted(quota));
        }
        assert!(matches!(service.admit_carrier(&one, Millis(1_000)), Admission::Granted(_)));
    }
}
