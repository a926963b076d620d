//! Idempotency records in the database, found through the keys in memory. The domain decides which of them still count.

use parcelo_domain::{IdempotencyRecord, Millis, RecordKey, Tenant, idempotency::LIFETIME_MILLIS};
use rusqlite::{Connection, OptionalExtension, Row, params};

use super::{
    Store, StoreError, key_index::KeyIndex, key_map::KeyPart, key_runs::MAX_KEYS, record_order,
};
use crate::{generations::is_current, pages::Budget};

/// Number of records that one statement of the purge checks.
const ROWS_PER_STATEMENT: i64 = 100;

impl Store {
    /// Returns the idempotency record under a key. It may be older than 24 h; the domain decides whether it still
    /// counts.
    pub async fn idempotency_record(
        &self,
        key: &RecordKey,
    ) -> Result<Option<IdempotencyRecord>, StoreError> {
        let keys = &self.0.keys;
        // A server's keys are complete from its start on.
        if !keys.is_filled() {
            self.read(|db| keys.catch_up(db))?;
        }
        if keys.is_absent(key) {
            return Ok(None);
        }
        self.read(|db| find(db, keys, key)).map(|found| found.map(|(_, record)| record))
    }

    /// Deletes expired idempotency records, page by page, and returns their number.
    pub async fn purge_records(&self, now: Millis) -> Result<u64, StoreError> {
        let (mut after, mut all) = (0, 0);
        loop {
            let page = self.page(move |db, budget| purge_page(db, after, now, budget)).await?;
            let (deleted, next) = page;
            self.mark_erased(deleted > 0);
            all += deleted;
            match next {
                Some(next) => after = next,
                None => break,
            }
        }
        if all > 0 {
            self.forget_deleted_keys().await?;
        }
        self.spill_keys(MAX_KEYS).await?;
        Ok(all)
    }
}

/// Inserts the record into the generation with this number; no other record there may have its key.
pub(super) fn insert(
    db: &Connection,
    keys: &KeyIndex,
    (record, number): (&IdempotencyRecord, i64),
) -> rusqlite::Result<()> {
    let mut insert = db.prepare_cached(
        "INSERT INTO idempotency (id, key, tenant, first_seen, fingerprint, body) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
    )?;
    let inserted = insert.execute(params![
        keys.add(&record.key),
        record.key.0,
        number,
        record.first_seen.0,
        record.fingerprint,
        record.body,
    ]);
    inserted.map(drop)
}

/// Returns the record under a key, expired or not, and its row: the first of the possible rows that holds the key.
/// Fails if none holds it because a page is damaged.
pub(super) fn find(
    db: &Connection,
    keys: &KeyIndex,
    key: &RecordKey,
) -> rusqlite::Result<Option<(i64, IdempotencyRecord)>> {
    let part = KeyPart::from(key);
    for id in keys.rows(db, part)? {
        let mut find = db.prepare_cached(concat!(
            "SELECT tenant, first_seen, fingerprint, body FROM idempotency \
             WHERE id = ?1 AND key = ?2 AND ",
            is_current!("tenant")
        ))?;
        let found = find.query_row(params![id, key.0], |row| read_record(row, *key)).optional()?;
        if let Some(record) = found {
            return Ok(Some((id, record)));
        }
        verify_absent(db, keys, (id, part))?;
    }
    Ok(None)
}

/// Fails if a known row lacks its record because of a damaged page. The row may rightly be gone (deleted or rolled
/// back), or have a key that begins alike, or one of another process, which used the id of a row that was rolled back.
fn verify_absent(
    db: &Connection,
    keys: &KeyIndex,
    (id, part): (i64, KeyPart),
) -> rusqlite::Result<()> {
    // Read before the row: until the next write, rows of other processes that follow it are not known.
    let committed = keys.last_committed();
    // A stored key has 16 bytes. One of another length is damaged, even if it begins alike.
    let begin = "SELECT iif(length(key) = 16, substr(key, 1, 5), zeroblob(5)) FROM idempotency WHERE id = ?1";
    let mut find = db.prepare_cached(begin)?;
    match find.query_row([id], |row| row.get(0)).optional()?.map(KeyPart) {
        None => record_order::verify(db, id),
        Some(found) if found == part || id > committed => Ok(()),
        Some(found) if keys.rows(db, found)?.contains(&id) => Ok(()),
        Some(_) => Err(record_order::misplaced(id)),
    }
}

/// Deletes the record in a row.
pub(super) fn delete(db: &Connection, id: i64) -> rusqlite::Result<()> {
    db.prepare_cached("DELETE FROM idempotency WHERE id = ?1")?.execute([id]).map(drop)
}

/// Deletes the expired records after `after`. Returns their number, and the row after which to continue. That is `None`
/// once a stretch has no expired record, because records are appended in the order in which they expire.
fn purge_page(
    db: &Connection,
    mut after: i64,
    now: Millis,
    budget: &mut Budget,
) -> rusqlite::Result<(u64, Option<i64>)> {
    let mut all = 0;
    loop {
        let mut stretch = db.prepare_cached(concat!(
            "SELECT max(id) FROM (SELECT id FROM idempotency WHERE id > ?1 AND ",
            is_current!("tenant"),
            " ORDER BY id LIMIT ?2)"
        ))?;
        let last: Option<i64> = stretch.query_row([after, ROWS_PER_STATEMENT], |row| row.get(0))?;
        let Some(last) = last else { return Ok((all, None)) };
        let mut delete = db.prepare_cached(concat!(
            "DELETE FROM idempotency WHERE id > ?1 AND id <= ?2 AND first_seen <= ?3 AND ",
            is_current!("tenant")
        ))?;
        let deleted = delete.execute([after, last, now.plus(-LIFETIME_MILLIS).0])? as u64;
        budget.spend(deleted);
        all += deleted;
        after = last;
        if deleted == 0 {
            return Ok((all, None));
        }
        if budget.is_spent() {
            return Ok((all, Some(after)));
        }
    }
}

fn read_record(row: &Row<'_>, key: RecordKey) -> rusqlite::Result<IdempotencyRecord> {
    Ok(IdempotencyRecord {
        key,
        tenant: Tenant::from_number(row.get(0)?),
        first_seen: Millis(row.get(1)?),
        fingerprint: row.get(2)?,
        body: row.get(3)?,
    })
}
