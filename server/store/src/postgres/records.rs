//! Idempotency records in the database. The domain decides which records are still valid.

use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError, atomic::Ordering},
};

use futures_util::future::LocalBoxFuture;
use parcelo_domain::{IdempotencyRecord, Millis, RecordKey, Tenant, idempotency::LIFETIME_MILLIS};
use tokio::sync::oneshot;
use tokio_postgres::Row;

use super::{
    READ_TIMEOUT, Store,
    call::Call,
    connection::{Connection, bytes, column, get},
    error::{DbResult, Failure},
    generations::{Generations, IS_CURRENT},
    pages::delete_old,
};
use crate::{StoreError, generations::is_current_locked};

/// Inserts records whose key has no valid record yet. Returns the keys of the inserted records.
pub(super) const INSERT: &str = "INSERT INTO idempotency AS old (key, tenant, first_seen, fingerprint, body) \
     SELECT n.key, n.tenant, n.first_seen, n.fingerprint, n.body \
     FROM unnest($1::bytea[], $2::bigint[], $3::bigint[], $4::bytea[], $5::bytea[]) \
     AS n (key, tenant, first_seen, fingerprint, body) ORDER BY n.key \
     ON CONFLICT (key, tenant) DO UPDATE SET first_seen = excluded.first_seen, \
     fingerprint = excluded.fingerprint, body = excluded.body \
     WHERE old.first_seen <= excluded.first_seen - $6 RETURNING key";

impl Store {
    pub async fn idempotency_record(
        &self,
        key: &RecordKey,
    ) -> Result<Option<IdempotencyRecord>, StoreError> {
        let (caller, answer) = oneshot::channel();
        self.0.lookups.add((*key, caller), |call| self.0.readers.push(call));
        self.0.state.reads.fetch_add(1, Ordering::Relaxed);
        self.await_answer(answer, Some(READ_TIMEOUT)).await
    }

    pub async fn purge_records(&self, now: Millis) -> Result<u64, StoreError> {
        // A record that a group is replacing is skipped: it is locked, and will be valid once the group commits.
        let sql = delete_old!(
            "idempotency",
            "ctid",
            concat!("idempotency WHERE ", is_current_locked!("tenant"), " AND "),
            "first_seen"
        );
        self.delete_old(sql, now.plus(-LIFETIME_MILLIS).0).await
    }
}

/// Maximum number of calls that look up keys at once: few, so that many lookups share a statement, and more than one,
/// so that none waits for a statement that hangs.
const MAX_LOOKUP_CALLS: usize = 2;

/// A queue that batches lookups of keys. Every order begins with a lookup, so all queued lookups share one statement.
/// Lookups that arrive while it runs wait for the next statement.
#[derive(Clone, Default)]
pub(super) struct Lookups(Arc<Mutex<WaitingLookups>>);

#[derive(Default)]
struct WaitingLookups {
    lookups: Vec<Lookup>,
    /// The number of calls that are queued or running.
    calls: usize,
}

type Lookup = (RecordKey, oneshot::Sender<DbResult<Option<IdempotencyRecord>>>);

impl Lookups {
    /// Adds a lookup, for a call that is under way or one that is queued with `push`.
    fn add(&self, lookup: Lookup, push: impl FnOnce(Box<dyn Call>) -> bool) {
        let needs_call = {
            let mut waiting = self.lock();
            waiting.lookups.push(lookup);
            let needs_call = waiting.calls < MAX_LOOKUP_CALLS;
            waiting.calls += usize::from(needs_call);
            needs_call
        };
        if needs_call {
            let call = LookupCall { waiting: self.clone(), taken: Vec::new() };
            if !push(Box::new(call)) {
                // Other lookups that rely on this call may have been added in between.
                for (_, caller) in self.end_call() {
                    let _gone = caller.send(Err(Failure::Crowded));
                }
            }
        }
    }

    /// Takes the lookups of the next statement, or ends the call because none waits.
    fn take(&self) -> Vec<Lookup> {
        let mut waiting = self.lock();
        if waiting.lookups.is_empty() {
            waiting.calls -= 1;
        }
        std::mem::take(&mut waiting.lookups)
    }

    /// Ends a call that cannot run. If it was the only one, this takes the lookups that rely on it.
    fn end_call(&self) -> Vec<Lookup> {
        let mut waiting = self.lock();
        waiting.calls -= 1;
        if waiting.calls > 0 { Vec::new() } else { std::mem::take(&mut waiting.lookups) }
    }

    fn lock(&self) -> MutexGuard<'_, WaitingLookups> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The call that looks up keys until none waits.
struct LookupCall {
    waiting: Lookups,
    /// The lookups of the present statement.
    taken: Vec<Lookup>,
}

impl Call for LookupCall {
    fn run<'a>(&'a mut self, db: &'a Connection) -> LocalBoxFuture<'a, DbResult<()>> {
        Box::pin(async move {
            loop {
                // A statement that failed on a connection that was closed is repeated on another.
                if self.taken.is_empty() {
                    self.taken = self.waiting.take();
                }
                if self.taken.is_empty() {
                    return Ok(());
                }
                let keys: Vec<RecordKey> = self.taken.iter().map(|(key, _)| *key).collect();
                // Each record, or the error of reading it, which concerns only the callers of its key.
                let mut records = HashMap::new();
                for row in find_rows(db, &keys).await? {
                    let record = read_record(&row).map_err(|failure| failure.to_string());
                    records.insert(RecordKey(bytes(&row, 0)?), record);
                }
                for (key, caller) in self.taken.drain(..) {
                    // A caller that has gone needs no answer.
                    let _gone =
                        caller.send(records.get(&key).cloned().transpose().map_err(Failure::row));
                }
            }
        })
    }

    /// Returns `false`, because the callers of other lookups may rely on this call.
    fn is_abandoned(&self) -> bool {
        false
    }

    fn answer(self: Box<Self>, outcome: DbResult<()>) {
        let Err(failure) = outcome else { return };
        for (_, caller) in self.taken.into_iter().chain(self.waiting.end_call()) {
            // A caller that has gone needs no answer.
            let _gone = caller.send(Err(failure.to_shared_failure()));
        }
    }
}

/// Inserts the records whose key has no valid record yet, and returns their keys. `records` are sorted by key, and no
/// key occurs twice. If another server's open transaction has inserted the same key, this waits for its outcome.
pub(super) async fn insert_all(
    db: &Connection,
    generations: &Generations,
    records: &[&IdempotencyRecord],
) -> DbResult<HashSet<RecordKey>> {
    if records.is_empty() {
        return Ok(HashSet::new());
    }
    let keys = column!(records, record => record.key.0.as_slice());
    let tenants = column!(records, record => generations.storage_tenant_id(record.tenant));
    let first_seen = column!(records, record => record.first_seen.0);
    let fingerprints = column!(records, record => record.fingerprint.as_slice());
    let bodies = column!(records, record => record.body.as_slice());
    let params: [&(dyn tokio_postgres::types::ToSql + Sync); 6] =
        [&keys, &tenants, &first_seen, &fingerprints, &bodies, &LIFETIME_MILLIS];
    let inserted = db.query_map(INSERT, &params, |row| bytes(row, 0).map(RecordKey)).await?;
    Ok(inserted.into_iter().collect())
}

/// Replaces the body of a record that this transaction has inserted.
pub(super) async fn rewrite(
    db: &Connection,
    generations: &Generations,
    record: &IdempotencyRecord,
) -> DbResult<()> {
    let sql = "UPDATE idempotency SET body = $3 WHERE key = $1 AND tenant = $2";
    let tenant = generations.storage_tenant_id(record.tenant);
    db.execute(sql, &[&record.key.0.as_slice(), &tenant, &record.body]).await.map(drop)
}

/// Returns the records under these keys, including those that are no longer valid.
pub(super) async fn find_all(
    db: &Connection,
    keys: &[RecordKey],
) -> DbResult<Vec<IdempotencyRecord>> {
    find_rows(db, keys).await?.iter().map(read_record).collect()
}

async fn find_rows(db: &Connection, keys: &[RecordKey]) -> DbResult<Vec<Row>> {
    if keys.is_empty() {
        return Ok(Vec::new());
    }
    let keys: Vec<&[u8]> = keys.iter().map(|key| key.0.as_slice()).collect();
    let sql = format!(
        "SELECT key, tenant, first_seen, fingerprint, body FROM idempotency \
         WHERE key = ANY($1) AND {IS_CURRENT}"
    );
    db.all(&sql, &[&keys]).await
}

/// Deletes the records under these keys.
pub(super) async fn delete_all(db: &Connection, keys: &[RecordKey]) -> DbResult<()> {
    if keys.is_empty() {
        return Ok(());
    }
    let keys: Vec<&[u8]> = keys.iter().map(|key| key.0.as_slice()).collect();
    let sql = format!("DELETE FROM idempotency WHERE key = ANY($1) AND {IS_CURRENT}");
    db.execute(&sql, &[&keys]).await.map(drop)
}

fn read_record(row: &Row) -> DbResult<IdempotencyRecord> {
    Ok(IdempotencyRecord {
        key: RecordKey(bytes(row, 0)?),
        tenant: Tenant::from_number(get(row, 1)?),
        first_seen: Millis(get(row, 2)?),
        fingerprint: bytes(row, 3)?,
        body: get(row, 4)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lookups_share_calls_and_those_of_a_failed_one_wait_for_the_other() {
        let (lookups, mut calls) = (Lookups::default(), Vec::new());
        let mut callers = Vec::new();
        for number in 1..=5 {
            let (caller, answer) = oneshot::channel();
            callers.push(answer);
            lookups.add((RecordKey([number; 16]), caller), |call| {
                calls.push(call);
                true
            });
        }
        assert_eq!(calls.len(), MAX_LOOKUP_CALLS);
        calls.remove(0).answer(Err(Failure::Crowded));
        assert!(callers.iter_mut().all(|answer| answer.try_recv().is_err()), "the other call runs");
        calls.remove(0).answer(Err(Failure::Crowded));
        for mut answer in callers {
            assert!(matches!(answer.try_recv(), Ok(Err(_))));
        }
    }

    #[test]
    fn a_refused_lookup_refuses_all_lookups_it_batches() {
        let lookups = Lookups::default();
        let [(one, first), (other, second)] = [oneshot::channel(), oneshot::channel()];
        lookups.add((RecordKey([1; 16]), one), |_call| {
            lookups.add((RecordKey([2; 16]), other), |_call| false);
            false
        });
        for mut answer in [first, second] {
            assert!(matches!(answer.try_recv(), Ok(Err(Failure::Crowded))));
        }
    }
}
