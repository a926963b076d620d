//! Counts requests by caller; the counting itself is decided in the domain.

use std::{
    net::IpAddr,
    sync::{Mutex, MutexGuard, PoisonError},
};

use parcelo::Environment;

use super::{Caller, Carrier, Service};
use crate::{
    clock::Millis,
    domain::{
        access::client_network,
        limit::{Admission, Quota, Windows},
    },
};

/// How many times the limit of an API key a carrier key has.
const CARRIER_LIMIT_FACTOR: u32 = 10;

/// Whose requests are counted together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Limited {
    /// The requests of one API key.
    Key(i64),
    /// The requests of one carrier key.
    Carrier(i64),
    /// The requests of one address without a valid key, in one environment. Here and below, of IPv6
    /// the addresses of one /64 are counted together.
    Address(Environment, IpAddr),
    /// The requests of one address to the operators' listener.
    Operator(IpAddr),
    /// The requests of one address to public pages, in one environment.
    Public(Environment, IpAddr),
}

impl Limited {
    /// The same with the network that one client has in the place of its address: of IPv6 one client
    /// has more addresses than could be counted.
    fn by_network(self) -> Self {
        match self {
            Self::Address(environment, client) => {
                Self::Address(environment, client_network(client))
            }
            Self::Operator(client) => Self::Operator(client_network(client)),
            Self::Public(environment, client) => Self::Public(environment, client_network(client)),
            Self::Key(_) | Self::Carrier(_) => self,
        }
    }
}

#[derive(Debug, Default)]
pub(super) struct Limiter(Mutex<Windows<Limited>>);

impl Limiter {
    pub(super) fn clear(&self) {
        self.windows().clear();
    }

    fn windows(&self) -> MutexGuard<'_, Windows<Limited>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Service {
    /// Counts a request without a valid key.
    pub fn admit(&self, who: Limited, now: Millis) -> Admission {
        let limits = &self.settings.limits;
        let limit = match who {
            Limited::Public(..) => limits.public,
            Limited::Address(..) | Limited::Operator(_) | Limited::Key(_) | Limited::Carrier(_) => {
                limits.unauthenticated
            }
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
        let limit =
            limits.of_key(carrier.key.scope.environment).saturating_mul(CARRIER_LIMIT_FACTOR);
        self.count(Limited::Carrier(carrier.key.row), limit, limits.enforced, now)
    }

    /// What a key has left, counting nothing.
    pub fn quota_of(&self, caller: &Caller, now: Millis) -> Quota {
        let (limit, enforced) = self.limit_of(caller);
        if !enforced {
            return Quota::whole(limit, now);
        }
        self.limiter.windows().quota(&Limited::Key(caller.key.row), limit, now)
    }

    fn limit_of(&self, caller: &Caller) -> (u32, bool) {
        let limits = &self.settings.limits;
        match caller.key.scope.rate_limit {
            Some(own) => (own, true),
            None => (limits.of_key(caller.tenant().environment), limits.enforced),
        }
    }

    fn count(&self, who: Limited, limit: u32, enforced: bool, now: Millis) -> Admission {
        if !enforced {
            return Admission::Granted(Quota::whole(limit, now));
        }
        let admission = self.limiter.windows().take(who.by_network(), limit, now);
        if matches!(admission, Admission::Refused(_)) {
            self.metrics.refused(who);
        }
        admission
    }
}
