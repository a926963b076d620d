//! The methods that each engine implements separately, with their contracts, and a check that both engines have them.
//! Every other method has one body for both, in a file for its topic in this folder.
//!
//! The conformance suite, which runs on every engine, verifies the contracts. A missing method is a compile error here.

use super::{Engine, Store, StoreError};
use parcelo_domain::login_throttle::{LoginAttempt, PendingLogin};
use parcelo_domain::{
    IdempotencyRecord, Millis, RecordKey,
    shared_limit::{LimitClaim, LimitGrant, ServerCount},
};

/// Turns each signature into a method that calls the engine with the same arguments.
macro_rules! methods {
    ($($(#[$doc:meta])* pub async fn $name:ident(
        &self $(, $params:ident: $type:ty)*
    ) -> $answer:ty;)+) => {
        impl Store {$(
            $(#[$doc])*
            pub async fn $name(&self $(, $params: $type)*) -> $answer {
                match &self.0 {
                    Engine::Sqlite(engine) => engine.$name($($params),*).await,
                    #[cfg(feature = "postgres")]
                    Engine::Postgres(engine) => engine.$name($($params),*).await,
                }
            }
        )+}
    };
}

methods! {
    /// Releases events that wait for an earlier event that does not exist, and returns their number: a safety net in
    /// case the locks of several servers have failed to prevent that. Each call scans a part of the waiting events.
    pub async fn release_stranded(&self, now: Millis) -> Result<u64, StoreError>;

    /// Claims requests from the limits that servers share. Returns a grant for each claim, in order.
    pub async fn claim_requests(&self, claims: Vec<LimitClaim>) -> Result<Vec<LimitGrant>, StoreError>;

    /// Announces this server, and returns the number of servers, or `None` if there can be no other server.
    pub async fn send_heartbeat(&self) -> Result<Option<ServerCount>, StoreError>;

    /// Allows an attempt to sign in, or returns the number of seconds to wait. On every server the attempt counts as a
    /// failure until it is taken back.
    pub async fn begin_login(&self, attempt: LoginAttempt<'_>, now: Millis) -> Result<Result<PendingLogin, u32>, StoreError>;

    /// Takes back an attempt that did not fail, or whose outcome is unknown.
    pub async fn take_back_login(&self, begun: PendingLogin) -> Result<(), StoreError>;

    /// Records that the sign-in succeeded: later attempts of the same origin are counted separately.
    pub async fn remember_login(&self, attempt: LoginAttempt<'_>, now: Millis) -> Result<(), StoreError>;

    /// Adds pending changes to the counts, unless the writes have already done so. Reads include pending changes.
    pub async fn merge_count_changes(&self) -> Result<(), StoreError>;

    /// Returns the idempotency record under a key. It may be older than 24 h, which the domain checks.
    pub async fn idempotency_record(&self, key: &RecordKey) -> Result<Option<IdempotencyRecord>, StoreError>;

    /// Deletes expired idempotency records, page by page, and returns their number.
    pub async fn purge_records(&self, now: Millis) -> Result<u64, StoreError>;
}
