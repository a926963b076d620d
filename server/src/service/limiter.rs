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
    /// The requests of one address to the operators' listener.
    Operator(IpAddr),
    /// The requests of one address to public pages, in one environment.
    Public(Environment, IpAddr),
}

#[derive(Debug, Default)]
pub(super) struct Limiter(Mutex<HashMap<Limited, Window>>);

impl Limiter {
    pub(super) fn clear(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

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
        let admission = self.limiter.with(who, now, |window| window.take(limit, now));
        if matches!(admission, Admission::Refused(_)) {
            self.metrics.refused(who);
        }
        admission
    }
}
