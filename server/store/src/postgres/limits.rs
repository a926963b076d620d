//! The limits that servers share, and the number of servers. `server/domain/src/shared_limit.rs` has the rules.

use std::{
    collections::HashMap,
    sync::atomic::{AtomicI64, Ordering},
    time::Duration,
};

use parcelo_domain::{
    Millis,
    shared_limit::{LimitClaim, LimitGrant, ServerCount, SharedKey},
};
use tokio_postgres::Row;

use super::{
    Store,
    connection::{Connection, get, number},
    error::DbResult,
    readers::Readers,
};
use crate::{
    StoreError,
    sql::{Sql, params},
};

/// Maximum time that a caller waits for shared limits.
const SHARED_TIMEOUT: Duration = Duration::from_secs(5);

/// Grants what is left of each key's limit in its second, up to the wanted number. Requests that were already admitted
/// always count. Sorted by key, so that two servers never deadlock.
const CLAIM: &str = "\
    INSERT INTO rate_limit_windows AS w (second, kind, key, taken, granted, most, admitted, wanted) \
    SELECT c.second, c.kind, c.key, \
           c.admitted + least(c.wanted, greatest(c.most - c.admitted, 0)), \
           least(c.wanted, greatest(c.most - c.admitted, 0)), c.most, c.admitted, c.wanted \
    FROM unnest($1::bigint[], $2::smallint[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[]) \
         AS c(second, kind, key, most, admitted, wanted) \
    ORDER BY 1, 2, 3 \
    ON CONFLICT (second, kind, key) DO UPDATE SET \
        granted = least(excluded.wanted, greatest(excluded.most - excluded.admitted - w.taken, 0)), \
        taken = w.taken + excluded.admitted \
            + least(excluded.wanted, greatest(excluded.most - excluded.admitted - w.taken, 0)), \
        most = excluded.most, admitted = excluded.admitted, wanted = excluded.wanted \
    RETURNING w.second, w.kind, w.key, w.granted, w.taken";

/// Announces this server and counts the other servers that were seen within five seconds.
const HEARTBEAT: &str = "\
    WITH me AS (INSERT INTO rate_limit_servers (server, seen_at) VALUES ($1, clock_timestamp()) \
        ON CONFLICT (server) DO UPDATE SET seen_at = excluded.seen_at) \
    SELECT 1 + count(*), floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint \
    FROM rate_limit_servers WHERE server <> $1 AND seen_at > now() - interval '5 seconds'";
/// Deletes the server `$1`, unless it is null, and all servers that were not seen for a minute.
const DELETE_OLD_SERVERS: &str = "DELETE FROM rate_limit_servers \
     WHERE server = $1 OR seen_at < now() - interval '1 minute'";
/// Deletes expired windows, beginning where this server's previous deletion ended. While a long transaction runs
/// elsewhere, the table and its index still have all deleted windows; claims would wait while a statement reads them
/// all.
const DELETE_EXPIRED_WINDOWS: &str =
    "DELETE FROM rate_limit_windows WHERE second >= $1 AND second < $2";
/// Interval at which all windows are checked, in seconds.
const FULL_CHECK_SECONDS: i64 = 3_600;

impl Store {
    pub async fn claim_requests(
        &self,
        claims: Vec<LimitClaim>,
    ) -> Result<Vec<LimitGrant>, StoreError> {
        self.call_reader(async move |db| claim(db, &claims).await).await
    }

    pub async fn send_heartbeat(&self) -> Result<Option<ServerCount>, StoreError> {
        let (store, server) = (self.clone(), self.0.server);
        self.call_reader(async move |db| {
            db.execute(DELETE_OLD_SERVERS, &[&None::<i64>]).await?;
            let read =
                |row: &Row| Ok(ServerCount { servers: number(row, 0)?, now: Millis(get(row, 1)?) });
            let count = db.query_one(HEARTBEAT, &[&server], read).await?;
            delete_expired_windows(
                db,
                &store.0.windows_deleted_before,
                count.now.0 / Millis::SECOND,
            )
            .await?;
            Ok(Some(count))
        })
        .await
    }

    /// Deletes this server from the list of servers, so that the others do not wait for its heartbeat to expire.
    pub(super) async fn unregister_server(&self) -> Result<(), StoreError> {
        let server = self.0.server;
        self.call_reader(async move |db| {
            db.execute(DELETE_OLD_SERVERS, &[&Some(server)]).await.map(drop)
        })
        .await
    }

    /// Makes a call on a connection for reads. It may run twice if its connection is cut.
    pub(super) async fn call_reader<T, F>(&self, run: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: AsyncFn(&Connection) -> DbResult<T> + Send + 'static,
    {
        self.read_within(Some(SHARED_TIMEOUT), Readers::push, run).await
    }
}

/// Deletes windows that no claim needs any more; windows before `deleted_before` are deleted already.
async fn delete_expired_windows(
    db: &Connection,
    deleted_before: &AtomicI64,
    second: i64,
) -> DbResult<()> {
    let (from, to) = (deleted_before.load(Ordering::Relaxed), second - 10);
    let is_full_check = from == 0 || second % FULL_CHECK_SECONDS == 0;
    if is_full_check {
        // Windows in the future are from a server whose clock was wrong.
        db.execute(DELETE_EXPIRED_WINDOWS, &[&(second + 11), &i64::MAX]).await?;
    }
    // A claim may be late by as long as its caller waits, so the windows of the ten seconds before are deleted again.
    let from = if is_full_check { i64::MIN } else { from - 10 };
    db.execute(DELETE_EXPIRED_WINDOWS, &[&from, &to]).await?;
    deleted_before.store(to, Ordering::Relaxed);
    Ok(())
}

async fn claim(db: &Connection, claims: &[LimitClaim]) -> DbResult<Vec<LimitGrant>> {
    let row = |claim: &LimitClaim| {
        let (kind, key) = to_stored_key(claim.key);
        params![claim.second, kind, key, claim.limit, claim.admitted, claim.wanted].to_vec()
    };
    let rows: Vec<_> = claims.iter().map(row).collect();
    let granted = Sql::Postgres(db).query_rows(CLAIM, &rows, &[], |row| {
        let key: (i64, (i64, i64)) = (row.get(0)?, (row.get(1)?, row.get(2)?));
        Ok((key, LimitGrant { granted: row.get(3)?, taken: row.get(4)? }))
    });
    let grants: HashMap<_, _> = granted.await?.into_iter().collect();
    let nothing = LimitGrant { granted: 0, taken: 0 };
    let grant_for =
        |claim: &LimitClaim| grants.get(&(claim.second, to_stored_key(claim.key))).copied();
    Ok(claims.iter().map(|claim| grant_for(claim).unwrap_or(nothing)).collect())
}

/// Returns a key as its row stores it.
const fn to_stored_key(key: SharedKey) -> (i64, i64) {
    match key {
        SharedKey::Api(row) => (0, row),
        SharedKey::Carrier(row) => (1, row),
    }
}
