//! Group commit without savepoints: many writes in one transaction, with statements that never fail because of an
//! expected conflict. Work that several writes need is done once for all of them, in sorted order, so that the groups
//! of two servers wait for each other and never deadlock. If a write is refused after it has written something, the
//! group is rolled back and repeated without that write.

use std::{collections::BTreeMap, panic::AssertUnwindSafe};

use futures_util::{
    FutureExt,
    future::{try_join, try_join3, try_join4},
};
use parcelo_domain::{Changes, IdempotencyRecord, ParcelRowId, RecordKey, StoreOp, Tenant};

use super::{
    apply::{Application, ApplyOutcome},
    connection::Connection,
    creates::{self, NewRow},
    error::Failure,
    generations::Generations,
    lock_wait::LockWait,
    locks,
    outbox::Subscriptions,
    records,
    write_queue::{Mutation, RollbackReason, Write, WriteOutcome},
};
use crate::{CommitOutcome, outbox::ChangeOrigin, settlements, sql::Sql};

/// Writes a whole group in a transaction that it leaves open, for the caller to commit or roll back. Returns `Ok` only
/// if the answers of all statements were read and none prevents the commit.
///
/// Statements that do not depend on each other's answers are sent together. So a group of creates of any size waits for
/// PostgreSQL three times: to begin, to take its keys, and to insert its parcels. With webhooks it waits once more, to
/// insert their events.
pub(super) async fn write(
    db: &Connection,
    lock_wait: LockWait,
    writes: &mut [Write],
) -> Result<Vec<WriteOutcome>, RollbackReason> {
    let mut group = Group::begin(db, lock_wait, writes).await?;
    group.insert_creates(writes).await?;
    group.apply_others(writes).await?;
    group.settle_deliveries(writes).await?;
    group.run_calls(writes).await?;
    group.finish().await?;
    Ok(group.outcomes.into_iter().map(|outcome| outcome.unwrap_or(WriteOutcome::Broken)).collect())
}

struct Group<'a> {
    db: &'a Connection,
    application: Application<'a>,
    /// The outcomes by the position of the write.
    outcomes: Vec<Option<WriteOutcome>>,
    /// Writes that use the same key as an earlier write of the group, each with the position of that write.
    followers: Vec<(usize, usize)>,
    /// Keys whose records are deleted again because their writes were refused.
    refused_keys: Vec<RecordKey>,
}

fn as_mutation(write: &Write) -> Option<&Mutation> {
    match write {
        Write::Changes(mutation) => Some(mutation),
        Write::Settle(_) | Write::Call(_) => None,
    }
}

impl<'a> Group<'a> {
    /// Locks the parcels that the group concerns, and takes its idempotency keys.
    async fn begin(
        db: &'a Connection,
        lock_wait: LockWait,
        writes: &[Write],
    ) -> Result<Self, RollbackReason> {
        let mut outcomes: Vec<Option<WriteOutcome>> = writes.iter().map(|_| None).collect();
        let (mut records, mut followers) =
            (BTreeMap::<[u8; 16], (usize, &IdempotencyRecord)>::new(), vec![]);
        for (at, mutation) in
            writes.iter().enumerate().filter_map(|(at, write)| Some((at, as_mutation(write)?)))
        {
            let Some(record) = &mutation.changes.idempotency_record else { continue };
            match records.get(&record.key.0) {
                Some((first, _)) => followers.push((at, *first)),
                None => drop(records.insert(record.key.0, (at, record))),
            }
        }
        let sorted: Vec<_> = records.values().map(|(_, record)| *record).collect();
        let parcels = locks::affected_parcels(
            writes.iter().filter_map(as_mutation).map(|mutation| &mutation.changes),
        );
        let settled: Vec<i64> = writes.iter().filter_map(Write::settled_parcel).collect();
        let mut subscriptions = Subscriptions::default();
        let settling: Vec<_> = writes.iter().filter_map(Write::endpoint_lock).collect();
        let load_subscriptions = async {
            let may_disable = settling.iter().any(|(_, lock)| *lock == "UPDATE");
            let lock = if may_disable { "UPDATE" } else { "SHARE" };
            let tenants = owners(writes).chain(settling.iter().map(|(tenant, _)| *tenant));
            subscriptions.load(db, lock, tenants.collect()).await
        };
        // Every group of every server locks parcels before keys, and keys before numbers. If BEGIN fails, the
        // statements sent with it do no harm outside a transaction.
        let ((), generations, mut locked, ()) = try_join4(
            db.run(lock_wait.begin()),
            Generations::lock_current(db, tenants(writes), &parcels),
            locks::lock_parcels(db, &parcels, &settled),
            load_subscriptions,
        )
        .await?;
        // A reset may have happened after the callers read their parcels.
        locked.retain(|_, parcel| generations.has(parcel.tenant));
        let changed = parcels.iter().filter_map(|parcel| locked.get(&ParcelRowId(*parcel)));
        let tenants = changed.map(|parcel| Tenant::from_number(parcel.tenant)).collect();
        let (taken, ()) = try_join(
            records::insert_all(db, &generations, &sorted),
            subscriptions.load(db, "SHARE", tenants),
        )
        .await?;
        let conflicting: Vec<_> =
            sorted.iter().map(|record| record.key).filter(|key| !taken.contains(key)).collect();
        for existing in records::find_all(db, &conflicting).await? {
            if let Some((at, _)) = records.get(&existing.key.0)
                && let Some(outcome) = outcomes.get_mut(*at)
            {
                *outcome = Some(WriteOutcome::decided(CommitOutcome::IdempotencyTaken(existing)));
            }
        }
        let application = Application::new((db, generations), locked, subscriptions);
        let group = Self { db, application, outcomes, followers, refused_keys: Vec::new() };
        group.check_conflicting_records_found(&conflicting, &records)?;
        Ok(group)
    }

    /// Checks that the read found every record that the insert conflicted with. If a record was purged in between, the
    /// group is repeated.
    fn check_conflicting_records_found(
        &self,
        conflicting: &[RecordKey],
        records: &BTreeMap<[u8; 16], (usize, &IdempotencyRecord)>,
    ) -> Result<(), RollbackReason> {
        let is_undecided = |key: &RecordKey| {
            let at = records.get(&key.0).map(|(at, _)| *at);
            at.is_some_and(|at| self.outcomes.get(at).is_some_and(Option::is_none))
        };
        if conflicting.iter().any(is_undecided) {
            return Err(RollbackReason::Failed(Failure::Conflict));
        }
        Ok(())
    }

    /// Returns `true` if a write has no outcome yet and does not wait for that of an earlier write.
    fn needs_decision(&self, at: usize) -> bool {
        self.outcomes.get(at).is_some_and(Option::is_none)
            && !self.followers.iter().any(|(follower, _)| *follower == at)
    }

    fn decide(&mut self, at: usize, outcome: WriteOutcome) {
        if let Some(slot) = self.outcomes.get_mut(at) {
            *slot = Some(outcome);
        }
    }

    /// Inserts the parcels of writes that only create a parcel, with one statement for each table.
    async fn insert_creates(&mut self, writes: &[Write]) -> Result<(), RollbackReason> {
        let mut batch = creates::CreateBatch::default();
        for (at, write) in writes.iter().enumerate() {
            if let Some(mutation) = as_mutation(write)
                && self.needs_decision(at)
                && let Some(parcel) = mutation.as_create()
            {
                catch_panic(at, || panic_in_test(&mutation.changes))?;
                batch.add(at, parcel, ChangeOrigin::new(&mutation.changes));
            }
        }
        if batch.is_empty() {
            return Ok(());
        }
        let created = batch.insert(self.db, &self.application.generations).await?;
        for (id, NewRow { at, parcel, origin }) in created {
            let has_enqueued = self.application.record_created((id, parcel), origin);
            self.decide(
                at,
                WriteOutcome::Decided { outcome: CommitOutcome::Committed, has_enqueued },
            );
        }
        Ok(())
    }

    /// Applies the other changes one by one, in order, including creations whose number was taken.
    async fn apply_others(&mut self, writes: &mut [Write]) -> Result<(), RollbackReason> {
        for (at, write) in writes.iter_mut().enumerate() {
            let Write::Changes(mutation) = write else { continue };
            if !self.needs_decision(at) {
                continue;
            }
            catch_panic(at, || panic_in_test(&mutation.changes))?;
            let applied = self.application.apply(at, &mut mutation.changes);
            let applied = AssertUnwindSafe(applied).catch_unwind().await;
            let applied = applied
                .map_err(|_panic| RollbackReason::OneWrite { at, outcome: WriteOutcome::Broken })?;
            match applied.map_err(|failure| rollback_reason(at, failure))? {
                ApplyOutcome::Applied { has_enqueued } => {
                    let outcome = CommitOutcome::Committed;
                    self.decide(at, WriteOutcome::Decided { outcome, has_enqueued });
                }
                ApplyOutcome::Refused { outcome, has_written: false } => {
                    let record = mutation.changes.idempotency_record.as_ref();
                    self.refused_keys.extend(record.map(|record| record.key));
                    self.decide(at, WriteOutcome::decided(outcome));
                }
                ApplyOutcome::Refused { outcome, has_written: true } => {
                    return Err(RollbackReason::OneWrite {
                        at,
                        outcome: WriteOutcome::decided(outcome),
                    });
                }
            }
        }
        self.decide_followers(writes);
        Ok(())
    }

    /// Answers followers with the record of their key, if this group's write or an earlier one has taken the key. If
    /// the first write was refused, the next write under its key is decided in a later group.
    fn decide_followers(&mut self, writes: &[Write]) {
        for (at, first) in std::mem::take(&mut self.followers) {
            let record = || {
                let first = writes.get(first).and_then(as_mutation)?;
                first.changes.idempotency_record.clone()
            };
            let outcome = match self.outcomes.get(first) {
                Some(Some(WriteOutcome::Decided { outcome, .. })) => match outcome {
                    CommitOutcome::Committed => record().map_or(WriteOutcome::Broken, |record| {
                        WriteOutcome::decided(CommitOutcome::IdempotencyTaken(record))
                    }),
                    taken @ CommitOutcome::IdempotencyTaken(_) => {
                        WriteOutcome::decided(taken.clone())
                    }
                    _ => WriteOutcome::Later,
                },
                _ => WriteOutcome::Later,
            };
            self.decide(at, outcome);
        }
    }

    async fn settle_deliveries(&mut self, writes: &mut [Write]) -> Result<(), RollbackReason> {
        let mut settlements = Vec::new();
        for (at, write) in writes.iter_mut().enumerate() {
            let Write::Settle(queued) = write else { continue };
            settlements.push(&mut queued.settlement);
            self.decide(at, WriteOutcome::Done);
        }
        if settlements.is_empty() {
            return Ok(());
        }
        // Events that wait for the settled ones must be written first, so that the settlement releases them.
        refuse_write_at(self.application.flush().await?)?;
        let settled = settlements::settle(Sql::Postgres(self.db), &mut settlements).await;
        settled.map_err(|error| RollbackReason::Failed(error.into()))
    }

    async fn run_calls(&mut self, writes: &mut [Write]) -> Result<(), RollbackReason> {
        if writes.iter().any(|write| matches!(write, Write::Call(_))) {
            // Calls may read what the changes of this group have written.
            refuse_write_at(self.application.flush().await?)?;
        }
        let is_alone = writes.len() == 1;
        for (at, write) in writes.iter_mut().enumerate() {
            let Write::Call(call) = write else { continue };
            let result = AssertUnwindSafe(call.run(self.db)).catch_unwind().await;
            match result {
                Ok(Ok(())) => self.decide(at, WriteOutcome::Done),
                Ok(Err(failure)) if failure.is_connection_error() => {
                    return Err(RollbackReason::Failed(failure));
                }
                // A call that is alone in its group is retried.
                Ok(Err(failure)) if failure.is_conflict() && is_alone => {
                    return Err(RollbackReason::Failed(failure));
                }
                Ok(Err(failure)) => {
                    return Err(RollbackReason::OneWrite {
                        at,
                        outcome: WriteOutcome::Failed(failure),
                    });
                }
                Err(_panic) => {
                    return Err(RollbackReason::OneWrite { at, outcome: WriteOutcome::Broken });
                }
            }
        }
        Ok(())
    }

    /// Writes what remains, once for the whole group: parcels, counts, and the deletion of records.
    async fn finish(&mut self) -> Result<(), RollbackReason> {
        let Application { counts, .. } = &mut self.application;
        let counts = std::mem::take(counts);
        let (refused, (), ()) = try_join3(
            self.application.flush(),
            records::delete_all(self.db, &self.refused_keys),
            counts.write(self.db),
        )
        .await?;
        refuse_write_at(refused)
    }
}

/// Returns the tenants whose data a group adds, and the tenants of its keys.
fn tenants(writes: &[Write]) -> impl Iterator<Item = Tenant> {
    let records = writes.iter().filter_map(as_mutation).filter_map(|mutation| {
        let record = mutation.changes.idempotency_record.as_ref()?;
        Some(record.tenant)
    });
    records.chain(owners(writes))
}

/// Returns the tenants whose data a group adds.
fn owners(writes: &[Write]) -> impl Iterator<Item = Tenant> {
    let ops = writes.iter().filter_map(as_mutation).flat_map(|mutation| &mutation.changes.ops);
    ops.filter_map(|op| match op {
        StoreOp::InsertParcel(parcel) => Some(parcel.tenant),
        StoreOp::InsertManifest(manifest) => Some(manifest.tenant),
        StoreOp::LogCarrierException(exception) => Some(exception.tenant),
        StoreOp::Move { .. }
        | StoreOp::AddEvent { .. }
        | StoreOp::RecordCarrierEvent(_)
        | StoreOp::Schedule { .. }
        | StoreOp::CancelSteps { .. }
        | StoreOp::Reprint { .. }
        | StoreOp::InsertMail(_) => None,
    })
}

/// Returns an error if the write at position `refused` has an event whose sequence number is taken.
fn refuse_write_at(refused: Option<usize>) -> Result<(), RollbackReason> {
    let outcome = WriteOutcome::decided(CommitOutcome::VersionConflict);
    refused.map_or(Ok(()), |at| Err(RollbackReason::OneWrite { at, outcome }))
}

/// Returns the reason for the rollback after a statement of one write has failed. Unless the connection failed or a
/// conflict occurred, only that write is at fault.
fn rollback_reason(at: usize, failure: Failure) -> RollbackReason {
    if failure.is_connection_error() || failure.is_conflict() {
        return RollbackReason::Failed(failure);
    }
    tracing::error!(error = %failure, "a write failed and was undone");
    RollbackReason::OneWrite { at, outcome: WriteOutcome::Broken }
}

/// Runs code of one write, and turns its panic into the failure of that write.
fn catch_panic(at: usize, run: impl FnOnce()) -> Result<(), RollbackReason> {
    std::panic::catch_unwind(AssertUnwindSafe(run))
        .map_err(|_panic| RollbackReason::OneWrite { at, outcome: WriteOutcome::Broken })
}

/// Lets a test make a write panic.
#[cfg_attr(not(test), expect(unused_variables, reason = "a test's hook"))]
fn panic_in_test(changes: &Changes) {
    #[cfg(test)]
    crate::tests::conformance::panic_if_requested(changes);
}
