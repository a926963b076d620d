//! What servers of one database share (`server/src/store/postgres/limits.rs`), for the one server that a file has: it
//! needs no database for it.

#[cfg(feature = "server")]
use std::sync::PoisonError;

use super::{Store, StoreError};
use crate::domain::shared_limit::{Claim, Grant, ServerCount};
#[cfg(feature = "server")]
use crate::{
    clock::Millis,
    domain::login_throttle::{BegunLogin, LoginAttempt, LoginThrottle},
};

impl Store {
    /// Takes what is asked for from the limits that servers share: all of it.
    pub async fn claim_requests(&self, claims: Vec<Claim>) -> Result<Vec<Grant>, StoreError> {
        let all =
            |claim: &Claim| Grant { granted: claim.wanted, taken: claim.admitted + claim.wanted };
        Ok(claims.iter().map(all).collect())
    }

    /// Says that this server is there: a file has one.
    pub async fn meet_servers(&self) -> Result<Option<ServerCount>, StoreError> {
        Ok(None)
    }

    /// Adds up what writes have changed in the counts: triggers do it with them.
    pub async fn fold_counts(&self) -> Result<(), StoreError> {
        Ok(())
    }
}

#[cfg(feature = "server")]
impl Store {
    /// Lets an attempt to sign in through, or says how many seconds it has to wait. In memory: a flood of
    /// attempts writes nothing to the disk.
    pub async fn begin_login(
        &self,
        attempt: LoginAttempt<'_>,
        now: Millis,
    ) -> Result<Result<BegunLogin, u32>, StoreError> {
        Ok(self.with_throttle(|throttle| throttle.begin(attempt, now)))
    }

    /// The attempt did not fail, or its outcome is unknown.
    pub async fn take_back_login(&self, begun: BegunLogin) -> Result<(), StoreError> {
        self.with_throttle(|throttle| throttle.take_back(begun));
        Ok(())
    }

    /// The sign-in succeeded: further attempts from there are counted apart.
    pub async fn remember_login(
        &self,
        attempt: LoginAttempt<'_>,
        _now: Millis,
    ) -> Result<(), StoreError> {
        self.with_throttle(|throttle| throttle.has_signed_in(attempt));
        Ok(())
    }

    fn with_throttle<T>(&self, run: impl FnOnce(&mut LoginThrottle) -> T) -> T {
        run(&mut self.0.login_throttle.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
