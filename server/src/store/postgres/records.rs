//! Idempotency records in the database. Which of them still counts is the domain's decision.

use std::collections::HashSet;

use tokio_postgres::Row;

use super::{
    Store,
    connection::{Connection, bytes, get},
    error::DbResult,
    pages::ROWS_PER_PAGE,
};
use crate::{
    clock::Millis,
    domain::{IdempotencyRecord, RecordKey, Tenant, idempotency::LIFETIME},
    store::StoreError,
};

impl Store {
    pub(crate) async fn record(
        &self,
        key: &RecordKey,
    ) -> Result<Option<IdempotencyRecord>, StoreError> {
        let key = *key;
        self.read(async move |db| Ok(find_all(db, &[key]).await?.pop())).await
    }

    pub(crate) async fn purge_records(&self, now: Millis) -> Result<u64, StoreError> {
        let dead = now.plus(-LIFETIME).0;
        self.in_pages(async move |db| {
            let sql = "DELETE FROM idempotency WHERE key IN (SELECT key FROM living_idempotency \
                 WHERE first_seen <= $1 ORDER BY first_seen LIMIT $2)";
            db.execute(sql, &[&dead, &ROWS_PER_PAGE]).await
        })
        .await
    }
}

/// Keeps the records, which are sorted by key and each of a key of its own, unless there is a living one with
/// the key; answers the keys of those that were kept. One that waits for another server's transaction
/// wins or loses with it.
pub(super) async fn insert_all(
    db: &Connection,
    records: &[&IdempotencyRecord],
) -> DbResult<HashSet<RecordKey>> {
    if records.is_empty() {
        return Ok(HashSet::new());
    }
    let keys: Vec<&[u8]> = records.iter().map(|record| record.key.0.as_slice()).collect();
    let tenants: Vec<i64> = records.iter().map(|record| record.tenant.number()).collect();
    let first_seen: Vec<i64> = records.iter().map(|record| record.first_seen.0).collect();
    let fingerprints: Vec<&[u8]> =
        records.iter().map(|record| record.fingerprint.as_slice()).collect();
    let bodies: Vec<&[u8]> = records.iter().map(|record| record.body.as_slice()).collect();
    let sql = "INSERT INTO idempotency AS old (key, tenant, epoch, first_seen, fingerprint, body) \
         SELECT n.key, n.tenant, \
         coalesce((SELECT r.epoch FROM resets AS r WHERE r.tenant = n.tenant), 0), \
         n.first_seen, n.fingerprint, n.body \
         FROM unnest($1::bytea[], $2::bigint[], $3::bigint[], $4::bytea[], $5::bytea[]) \
         AS n (key, tenant, first_seen, fingerprint, body) ORDER BY n.key \
         ON CONFLICT (key) DO UPDATE SET tenant = excluded.tenant, epoch = excluded.epoch, \
         first_seen = excluded.first_seen, fingerprint = excluded.fingerprint, body = excluded.body \
         WHERE old.first_seen <= excluded.first_seen - $6 OR EXISTS \
         (SELECT 1 FROM resets AS r WHERE r.tenant = old.tenant AND r.epoch > old.epoch) \
         RETURNING key";
    let given: [&(dyn tokio_postgres::types::ToSql + Sync); 6] =
        [&keys, &tenants, &first_seen, &fingerprints, &bodies, &LIFETIME];
    let kept = db.each(sql, &given, |row| bytes(row, 0).map(RecordKey)).await?;
    Ok(kept.into_iter().collect())
}

/// The records under these keys, dead or alive.
pub(super) async fn find_all(
    db: &Connection,
    keys: &[RecordKey],
) -> DbResult<Vec<IdempotencyRecord>> {
    if keys.is_empty() {
        return Ok(Vec::new());
    }
    let keys: Vec<&[u8]> = keys.iter().map(|key| key.0.as_slice()).collect();
    let sql = "SELECT key, tenant, first_seen, fingerprint, body FROM living_idempotency \
         WHERE key = ANY($1)";
    db.each(sql, &[&keys], read).await
}

/// Forgets the records under these keys.
pub(super) async fn delete_all(db: &Connection, keys: &[RecordKey]) -> DbResult<()> {
    if keys.is_empty() {
        return Ok(());
    }
    let keys: Vec<&[u8]> = keys.iter().map(|key| key.0.as_slice()).collect();
    db.execute("DELETE FROM idempotency WHERE key = ANY($1)", &[&keys]).await.map(drop)
}

fn read(row: &Row) -> DbResult<IdempotencyRecord> {
    Ok(IdempotencyRecord {
        key: RecordKey(bytes(row, 0)?),
        tenant: Tenant::from_number(get(row, 1)?),
        first_seen: Millis(get(row, 2)?),
        fingerprint: bytes(row, 3)?,
        body: get(row, 4)?,
    })
}
