//! Counts failed sign-ins across all servers, so that an attacker gets no more attempts at several servers than at one.
//! `server/domain/src/login_throttle.rs` decides which attempts are refused. Networks and accounts are stored as keyed
//! hashes.

use std::net::IpAddr;

use parcelo_domain::{
    Millis,
    login_throttle::{
        FAILURE_LIFETIME_MILLIS, FailureKey, Failures, LoginAttempt, PendingLogin, count_attempt,
    },
    secrets::hash_login_failure,
};
use tokio_postgres::Row;

use super::{
    Store,
    connection::{Connection, bytes, get, number},
    error::DbResult,
    pages::delete_old,
};
use crate::StoreError;

/// Time for which a network stays known after a sign-in to an account from it.
const NETWORK_LIFETIME: i64 = 90 * Millis::DAY;
/// Maximum expected difference between the servers' clocks. A failure that is ahead by no more than this counts as a
/// failure at the current time.
const CLOCK_SKEW: i64 = Millis::MINUTE;

impl Store {
    pub async fn begin_login(
        &self,
        attempt: LoginAttempt<'_>,
        now: Millis,
    ) -> Result<Result<PendingLogin, u32>, StoreError> {
        let network_hash = self.hash_key(&attempt.known_network_key());
        let [if_known, if_unknown] = [true, false].map(|counts_as_known| {
            let failure_keys = attempt.failure_keys(counts_as_known);
            (self.hash_keys(&failure_keys), failure_keys)
        });
        self.call_reader(async move |db| {
            db.run("BEGIN").await?;
            let find = "SELECT EXISTS (SELECT 1 FROM login_networks WHERE known = $1)";
            let knows_network: bool = db.value(find, &[&network_hash.as_slice()]).await?;
            let (hashes, failure_keys) = if knows_network { &if_known } else { &if_unknown };
            let decision = count_if_allowed(db, failure_keys, hashes, now).await?;
            // A refused attempt is not counted, and leaves no row.
            db.run(if decision.is_ok() { "COMMIT" } else { "ROLLBACK" }).await?;
            Ok(decision.map(|()| PendingLogin(failure_keys.clone())))
        })
        .await
    }

    pub async fn take_back_login(&self, pending: PendingLogin) -> Result<(), StoreError> {
        let hashes = self.hash_keys(&pending.0);
        self.call_reader(async move |db| {
            let sql = "UPDATE login_failures SET failures = greatest(failures - 1, 0) \
                 WHERE counted_by IN (SELECT counted_by FROM login_failures \
                 WHERE counted_by = ANY($1) ORDER BY counted_by FOR UPDATE)";
            db.execute(sql, &[&hashes]).await.map(drop)
        })
        .await
    }

    pub async fn remember_login(
        &self,
        attempt: LoginAttempt<'_>,
        now: Millis,
    ) -> Result<(), StoreError> {
        let known = self.hash_key(&attempt.known_network_key());
        self.call_reader(async move |db| {
            let sql = "INSERT INTO login_networks (known, last) VALUES ($1, $2) \
                 ON CONFLICT (known) DO UPDATE SET last = excluded.last";
            db.execute(sql, &[&known.as_slice(), &now.0]).await.map(drop)
        })
        .await
    }

    /// Deletes rows that no longer affect an attempt.
    pub(crate) async fn purge_logins(&self, now: Millis) -> Result<(), StoreError> {
        let sql = delete_old!("login_failures", "counted_by", "login_failures WHERE ", "last");
        self.delete_old(sql, now.0 - FAILURE_LIFETIME_MILLIS).await?;
        let sql = delete_old!("login_networks", "known", "login_networks WHERE ", "last");
        self.delete_old(sql, now.0 - NETWORK_LIFETIME).await.map(drop)
    }

    fn hash_key(&self, key: &FailureKey) -> [u8; 32] {
        let network = |address: &IpAddr| address.to_string();
        let (kind, account, network) = match key {
            FailureKey::Network(address) => ("network", "", network(address)),
            FailureKey::Account(account) => ("account", account.as_str(), String::new()),
            FailureKey::KnownNetwork(account, address) => {
                ("known", account.as_str(), network(address))
            }
        };
        hash_login_failure(&self.0.state.secret, [kind, account, &network])
    }

    fn hash_keys(&self, failure_keys: &[FailureKey]) -> Vec<Vec<u8>> {
        failure_keys.iter().map(|key| self.hash_key(key).to_vec()).collect()
    }
}

/// Locks the rows of an attempt in the open transaction, so that simultaneous attempts are counted like successive
/// ones, and counts the attempt. Returns the seconds to wait if it is refused.
async fn count_if_allowed(
    db: &Connection,
    failure_keys: &[FailureKey],
    hashes: &[Vec<u8>],
    now: Millis,
) -> DbResult<Result<(), u32>> {
    // Only existing rows can be locked. Sorted by hash, so that two servers never deadlock.
    let insert = "INSERT INTO login_failures (counted_by, failures, last) \
         SELECT by, 0, $2 FROM unnest($1::bytea[]) AS by ORDER BY by ON CONFLICT DO NOTHING";
    db.execute(insert, &[&hashes, &now.0]).await?;
    let lock = "SELECT counted_by, failures, last FROM login_failures \
         WHERE counted_by = ANY($1) ORDER BY counted_by FOR UPDATE";
    let read = |row: &Row| {
        let last = get::<i64>(row, 2)?;
        // Another server's clock may be ahead: its failure must not look as if the clock had been set back.
        let last = Millis(if last - now.0 <= CLOCK_SKEW { last.min(now.0) } else { last });
        Ok((bytes::<32>(row, 0)?, Failures { count: number(row, 1)?, last }))
    };
    let rows = db.query_map(lock, &[&hashes], read).await?;
    let stored_failures =
        |hash: &[u8]| rows.iter().find(|(key, _)| key == hash).map(|(_, failures)| *failures);
    let by_key: Vec<_> =
        failure_keys.iter().zip(hashes).map(|(key, hash)| (key, stored_failures(hash))).collect();
    let failures = match count_attempt(&by_key, now) {
        Ok(failures) => failures,
        Err(seconds) => return Ok(Err(seconds)),
    };
    let counts: Vec<i64> = failures.iter().map(|failures| failures.count.into()).collect();
    let update = "UPDATE login_failures AS f SET failures = n.failures, last = $3 \
         FROM unnest($1::bytea[], $2::bigint[]) AS n(by, failures) WHERE f.counted_by = n.by";
    db.execute(update, &[&hashes, &counts, &now.0]).await.map(|_rows| Ok(()))
}
