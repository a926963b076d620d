//! Idempotency records in the database. Which of them still counts is the core's decision.

use rusqlite::{Connection, OptionalExtension, Row, params};

use crate::{
    clock::Millis,
    core::{IdempotencyRecord, RecordKey, Tenant, idempotency::LIFETIME},
};

/// How many records one commit of the purge looks at.
const PAGE: i64 = 1_000;

/// Keeps the record unless there is one with its key; says whether it did.
pub(super) fn insert(db: &Connection, record: &IdempotencyRecord) -> rusqlite::Result<bool> {
    let mut insert = db.prepare_cached(
        "INSERT INTO idempotency (key, tenant, first_seen, fingerprint, body) \
         VALUES (?1, ?2, ?3, ?4, ?5) ON CONFLICT DO NOTHING",
    )?;
    let inserted = insert.execute(params![
        record.key.0,
        record.tenant.number(),
        record.first_seen.0,
        record.fingerprint,
        record.body,
    ])?;
    Ok(inserted == 1)
}

/// The record under a key, dead or alive.
pub(super) fn find(
    db: &Connection,
    key: &RecordKey,
) -> rusqlite::Result<Option<IdempotencyRecord>> {
    let mut find = db.prepare_cached(
        "SELECT tenant, first_seen, fingerprint, body FROM idempotency WHERE key = ?1",
    )?;
    find.query_row([key.0], |row| read(row, *key)).optional()
}

/// Forgets the record under a key.
pub(super) fn delete(db: &Connection, key: &RecordKey) -> rusqlite::Result<()> {
    db.prepare_cached("DELETE FROM idempotency WHERE key = ?1")?.execute([key.0]).map(drop)
}

/// One stretch of the purge.
#[derive(Debug, Clone, Copy)]
pub(super) struct Purged {
    /// The last record looked at; none when there was none.
    pub(super) last: Option<i64>,
    /// How many were dead and are gone.
    pub(super) deleted: usize,
}

/// Deletes the dead among the first records after `after`.
pub(super) fn purge(db: &Connection, after: i64, now: Millis) -> rusqlite::Result<Purged> {
    let mut page = db.prepare_cached(
        "SELECT max(id) FROM (SELECT id FROM idempotency WHERE id > ?1 ORDER BY id LIMIT ?2)",
    )?;
    let Some(last) = page.query_row([after, PAGE], |row| row.get::<_, Option<i64>>(0))? else {
        return Ok(Purged { last: None, deleted: 0 });
    };
    let mut delete = db.prepare_cached(
        "DELETE FROM idempotency WHERE id > ?1 AND id <= ?2 AND first_seen <= ?3",
    )?;
    let deleted = delete.execute([after, last, now.plus(-LIFETIME).0])?;
    Ok(Purged { last: Some(last), deleted })
}

fn read(row: &Row<'_>, key: RecordKey) -> rusqlite::Result<IdempotencyRecord> {
    Ok(IdempotencyRecord {
        key,
        tenant: Tenant::of_number(row.get(0)?),
        first_seen: Millis(row.get(1)?),
        fingerprint: row.get(2)?,
        body: row.get(3)?,
    })
}
