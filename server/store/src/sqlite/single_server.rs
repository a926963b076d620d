//! The state that servers of one database share (`server/store/src/postgres/limits.rs`), for the single server of a
//! file, which does not need the database for it.

use std::sync::PoisonError;

use super::{Store, StoreError};
use parcelo_domain::login_throttle::{LoginAttempt, LoginThrottle, PendingLogin};
use parcelo_domain::{
    Millis,
    shared_limit::{LimitClaim, LimitGrant, ServerCount},
};

impl Store {
    /// Claims requests from the shared limits. All claims are granted.
    pub async fn claim_requests(
        &self,
        claims: Vec<LimitClaim>,
    ) -> Result<Vec<LimitGrant>, StoreError> {
        let all = |claim: &LimitClaim| LimitGrant {
            granted: claim.wanted,
            taken: claim.admitted + claim.wanted,
        };
        Ok(claims.iter().map(all).collect())
    }

    /// Returns `None`, because a file has one server.
    pub async fn send_heartbeat(&self) -> Result<Option<ServerCount>, StoreError> {
        Ok(None)
    }

    /// Releases nothing. With one writer, an event is enqueued either before or after its predecessor is settled.
    pub async fn release_stranded(&self, _now: Millis) -> Result<u64, StoreError> {
        Ok(0)
    }

    /// Does nothing, because triggers add changes to the counts in the same write.
    pub async fn merge_count_changes(&self) -> Result<(), StoreError> {
        Ok(())
    }
}

impl Store {
    /// Allows an attempt to sign in, or returns the seconds that it has to wait. The throttle is in memory, so that a
    /// flood of attempts writes nothing to the disk.
    pub async fn begin_login(
        &self,
        attempt: LoginAttempt<'_>,
        now: Millis,
    ) -> Result<Result<PendingLogin, u32>, StoreError> {
        Ok(self.with_throttle(|throttle| throttle.begin(attempt, now)))
    }

    /// Takes back an attempt that did not fail, or whose outcome is unknown.
    pub async fn take_back_login(&self, begun: PendingLogin) -> Result<(), StoreError> {
        self.with_throttle(|throttle| throttle.take_back(begun));
        Ok(())
    }

    /// Records that the sign-in succeeded: later attempts of the same origin are counted separately.
    pub async fn remember_login(
        &self,
        attempt: LoginAttempt<'_>,
        _now: Millis,
    ) -> Result<(), StoreError> {
        self.with_throttle(|throttle| throttle.record_sign_in(attempt));
        Ok(())
    }

    fn with_throttle<T>(&self, run: impl FnOnce(&mut LoginThrottle) -> T) -> T {
        run(&mut self.0.login_throttle.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
