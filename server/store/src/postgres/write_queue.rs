//! The writes that are queued for the writer, their outcomes in a transaction, and their answers.

use std::sync::Arc;

use parcelo_domain::{Changes, NewParcel, StoreOp, Tenant, webhooks::RetryDecision};
use tokio::sync::{Notify, oneshot};

use super::{
    call::Call,
    error::{DbResult, Failure},
};
use crate::{CommitOutcome, CommitResult, Settled, settlements::Settlement};

/// A queued write.
pub(super) enum Write {
    /// Changes that the domain decided.
    Changes(Box<Mutation>),
    /// The settlement of a delivery.
    Settle(Box<QueuedSettlement>),
    /// Any other write.
    Call(Box<dyn Call>),
}

/// The settlement of a delivery, and its caller.
pub(super) struct QueuedSettlement {
    pub(super) settlement: Settlement,
    caller: oneshot::Sender<DbResult<Settled>>,
}

impl QueuedSettlement {
    /// Creates a settlement for the queue, and the receiver of its answer.
    pub(super) fn new(settlement: Settlement) -> (Box<Self>, oneshot::Receiver<DbResult<Settled>>) {
        let (caller, answer) = oneshot::channel();
        (Box::new(Self { settlement, caller }), answer)
    }

    /// Answers the caller; a caller that has gone needs no answer.
    fn answer(self, outcome: DbResult<()>) {
        let _gone = self.caller.send(outcome.map(|()| self.settlement.settled));
    }
}

/// Changes and their caller.
pub(super) struct Mutation {
    pub(super) changes: Changes,
    /// Notified when an event is enqueued.
    dispatcher: Arc<Notify>,
    caller: oneshot::Sender<CommitResult>,
}

/// The outcome of a write in a transaction.
#[derive(Debug)]
pub(super) enum WriteOutcome {
    /// Changes were decided: the caller gets this answer after the commit.
    Decided { outcome: CommitOutcome, has_enqueued: bool },
    /// A call was made.
    Done,
    /// A call failed, and nothing that it wrote is stored.
    Failed(Failure),
    /// The write panicked or is impossible, and nothing of it is stored.
    Broken,
    /// The write waits for the outcome of another write.
    Later,
}

/// The reason why a transaction is not committed.
#[derive(Debug)]
pub(super) enum RollbackReason {
    /// The write at this position cannot be committed with the others. If it is the only one, `outcome` is its answer.
    OneWrite { at: usize, outcome: WriteOutcome },
    /// A statement or the COMMIT failed for a reason that does not concern one write alone.
    Failed(Failure),
}

impl RollbackReason {
    /// Returns `true` if the connection must be replaced.
    pub(super) fn is_connection_error(&self) -> bool {
        matches!(self, Self::Failed(failure) if failure.is_connection_error())
    }
}

impl From<Failure> for RollbackReason {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

impl WriteOutcome {
    pub(super) fn decided(outcome: CommitOutcome) -> Self {
        Self::Decided { outcome, has_enqueued: false }
    }

    /// Returns `true` if the write has changed the database.
    pub(super) fn is_committed(&self) -> bool {
        match self {
            Self::Decided { outcome, .. } => *outcome == CommitOutcome::Committed,
            Self::Done => true,
            Self::Failed(_) | Self::Broken | Self::Later => false,
        }
    }
}

impl Mutation {
    pub(super) fn new(
        changes: Changes,
        dispatcher: Arc<Notify>,
    ) -> (Box<Self>, oneshot::Receiver<CommitResult>) {
        let (caller, answer) = oneshot::channel();
        (Box::new(Self { changes, dispatcher, caller }), answer)
    }

    /// Returns the parcel that the write creates, if it does nothing else.
    pub(super) fn as_create(&self) -> Option<&NewParcel> {
        match (&*self.changes.expect, &*self.changes.ops) {
            ([], [StoreOp::InsertParcel(parcel)]) => Some(parcel),
            _ => None,
        }
    }
}

impl Write {
    /// Returns the number of orders that the write creates.
    pub(super) fn orders(&self) -> u64 {
        match self {
            Self::Changes(mutation) => mutation.changes.order_count() as u64,
            Self::Settle(_) | Self::Call(_) => 0,
        }
    }

    /// Returns the parcel whose row must be locked because its delivery is settled.
    pub(super) fn settled_parcel(&self) -> Option<i64> {
        let Self::Settle(queued) = self else { return None };
        queued.settlement.lease.parcel.map(|parcel| parcel.0)
    }

    /// Returns the tenant whose endpoint a settlement locks, and the lock. A success shares it, so that no other server
    /// turns the endpoint off before the success is committed.
    pub(super) fn endpoint_lock(&self) -> Option<(Tenant, &'static str)> {
        let Self::Settle(queued) = self else { return None };
        let lock = match queued.settlement.decision {
            RetryDecision::Gone | RetryDecision::GivenUp => "UPDATE",
            RetryDecision::Delivered => "SHARE",
            RetryDecision::Retry { .. } | RetryDecision::Unreadable => return None,
        };
        Some((queued.settlement.lease.tenant, lock))
    }

    /// Returns the tenant whose data the write changes, if known.
    pub(super) fn tenant(&self) -> Option<Tenant> {
        match self {
            Self::Changes(mutation) => {
                mutation.changes.idempotency_record.as_ref().map(|record| record.tenant)
            }
            Self::Settle(queued) => Some(queued.settlement.lease.tenant),
            Self::Call(_) => None,
        }
    }

    /// Returns `true` if the write's caller has gone.
    pub(super) fn is_abandoned(&self) -> bool {
        match self {
            Self::Changes(mutation) => mutation.caller.is_closed(),
            Self::Settle(queued) => queued.caller.is_closed(),
            Self::Call(call) => call.is_abandoned(),
        }
    }

    /// Answers the caller; a caller that has gone needs no answer.
    pub(super) fn answer(self, outcome: WriteOutcome) {
        match (self, outcome) {
            (Self::Changes(mutation), WriteOutcome::Decided { outcome, has_enqueued }) => {
                if has_enqueued {
                    mutation.dispatcher.notify_one();
                }
                let _gone = mutation.caller.send(match outcome {
                    CommitOutcome::Committed => Ok(mutation.changes.into_body()),
                    outcome => Err(outcome),
                });
            }
            (Self::Settle(queued), WriteOutcome::Done) => queued.answer(Ok(())),
            (Self::Call(call), WriteOutcome::Done) => call.answer(Ok(())),
            (write, WriteOutcome::Failed(failure)) => write.fail(failure),
            (
                write,
                WriteOutcome::Decided { .. }
                | WriteOutcome::Done
                | WriteOutcome::Broken
                | WriteOutcome::Later,
            ) => write.fail(Failure::Broken),
        }
    }

    /// Answers with a failure: nothing of the write is stored, or its outcome is unknown. An event whose settlement has
    /// an unknown outcome is delivered again after its lease has ended.
    pub(super) fn fail(self, failure: Failure) {
        match self {
            Self::Changes(mutation) => drop(mutation.caller.send(Err(failure.into()))),
            Self::Settle(queued) => queued.answer(Err(failure)),
            Self::Call(call) => call.answer(Err(failure)),
        }
    }
}
