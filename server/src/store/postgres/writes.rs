//! What waits for the writer, how each is answered, and what may become of it in a transaction.

use std::sync::Arc;

use tokio::sync::{Notify, oneshot};

use super::{call::Call, error::Failure, settles::Settlement};
use crate::{
    domain::{Changes, NewParcel, Op, Tenant},
    store::{CommitOutcome, Kept},
};

/// One write on its way.
pub(super) enum Write {
    /// What the domain decided.
    Changes(Box<Mutation>),
    /// What came of a delivery.
    Settle(Box<Settlement>),
    /// Any other.
    Call(Box<dyn Call>),
}

/// Changes, and who waits for them.
pub(super) struct Mutation {
    pub(super) changes: Changes,
    /// Notified when an event was enqueued.
    dispatcher: Arc<Notify>,
    caller: oneshot::Sender<Kept>,
}

/// What became of a write in a transaction.
#[derive(Debug)]
pub(super) enum Verdict {
    /// Changes: what the caller is answered once the transaction is committed.
    Settled { outcome: CommitOutcome, has_enqueued: bool },
    /// A call was made.
    Made,
    /// A call failed; nothing of it is kept.
    Failed(Failure),
    /// It panicked, or cannot be done by any means; nothing of it is kept.
    Broken,
    /// It waits for the outcome of another one.
    Later,
}

/// Why a transaction is not to be committed.
#[derive(Debug)]
pub(super) enum Stopped {
    /// This write does not go with the others. Alone, it is answered this.
    By { at: usize, verdict: Verdict },
    /// A statement failed, and not for one write alone.
    Failed(Failure),
    /// The answer to its COMMIT was cut off: it was done, or not.
    InDoubt,
}

impl Stopped {
    /// Whether the connection is to be replaced.
    pub(super) fn is_of_connection(&self) -> bool {
        match self {
            Self::InDoubt => true,
            Self::Failed(failure) => failure.is_of_connection(),
            Self::By { .. } => false,
        }
    }
}

impl From<Failure> for Stopped {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

impl Verdict {
    pub(super) fn settled(outcome: CommitOutcome) -> Self {
        Self::Settled { outcome, has_enqueued: false }
    }

    /// Whether something of the write is in the database now.
    pub(super) fn is_kept(&self) -> bool {
        match self {
            Self::Settled { outcome, .. } => *outcome == CommitOutcome::Committed,
            Self::Made => true,
            Self::Failed(_) | Self::Broken | Self::Later => false,
        }
    }
}

impl Mutation {
    pub(super) fn new(
        changes: Changes,
        dispatcher: Arc<Notify>,
    ) -> (Box<Self>, oneshot::Receiver<Kept>) {
        let (caller, answer) = oneshot::channel();
        (Box::new(Self { changes, dispatcher, caller }), answer)
    }

    /// The parcel that it creates, when it does nothing else.
    pub(super) fn as_create(&self) -> Option<&NewParcel> {
        match (&*self.changes.expect, &*self.changes.ops) {
            ([], [Op::InsertParcel(parcel)]) => Some(parcel),
            _ => None,
        }
    }
}

impl Write {
    /// How many orders it writes.
    pub(super) fn orders(&self) -> u64 {
        match self {
            Self::Changes(mutation) => mutation.changes.orders() as u64,
            Self::Settle(_) | Self::Call(_) => 0,
        }
    }

    pub(super) fn settled_parcel(&self) -> Option<i64> {
        if let Self::Settle(one) = self { one.parcel() } else { None }
    }

    /// The tenant whose endpoint it may turn off.
    pub(super) fn may_switch_off(&self) -> Option<Tenant> {
        if let Self::Settle(one) = self { one.may_switch_off() } else { None }
    }

    /// The tenant whose data it changes, if it is known to be one.
    pub(super) fn tenant(&self) -> Option<Tenant> {
        match self {
            Self::Changes(mutation) => {
                mutation.changes.idempotency_record.as_ref().map(|record| record.tenant)
            }
            Self::Settle(one) => Some(one.tenant()),
            Self::Call(_) => None,
        }
    }

    /// Whether its caller has gone.
    pub(super) fn is_abandoned(&self) -> bool {
        match self {
            Self::Changes(mutation) => mutation.caller.is_closed(),
            Self::Settle(one) => one.is_abandoned(),
            Self::Call(call) => call.is_abandoned(),
        }
    }

    /// Answers the caller; one that has gone needs no answer.
    pub(super) fn answer(self, verdict: Verdict) {
        match (self, verdict) {
            (Self::Changes(mutation), Verdict::Settled { outcome, has_enqueued }) => {
                if has_enqueued {
                    mutation.dispatcher.notify_one();
                }
                let _gone = mutation.caller.send(match outcome {
                    CommitOutcome::Committed => Ok(mutation.changes.into_body()),
                    outcome => Err(outcome),
                });
            }
            (Self::Changes(mutation), _) => {
                let _gone = mutation.caller.send(Err(CommitOutcome::Broken));
            }
            (Self::Settle(one), Verdict::Made) => one.answer(Ok(())),
            (Self::Settle(one), Verdict::Failed(failure)) => one.answer(Err(failure)),
            (Self::Settle(one), Verdict::Settled { .. } | Verdict::Broken | Verdict::Later) => {
                one.answer(Err(Failure::Unanswered));
            }
            (Self::Call(call), Verdict::Made) => call.answer(Ok(())),
            (Self::Call(call), Verdict::Failed(failure)) => call.answer(Err(failure)),
            (Self::Call(call), Verdict::Settled { .. } | Verdict::Broken | Verdict::Later) => {
                call.answer(Err(Failure::Unanswered));
            }
        }
    }

    /// Nothing was done, for a reason that passes.
    pub(super) fn refuse(self, failure: Failure) {
        match self {
            Self::Changes(mutation) => {
                let is_away = failure.is_of_connection();
                let outcome =
                    if is_away { CommitOutcome::Unreachable } else { CommitOutcome::Busy };
                let _gone = mutation.caller.send(Err(outcome));
            }
            Self::Settle(one) => one.answer(Err(failure)),
            Self::Call(call) => call.answer(Err(failure)),
        }
    }

    /// It was done or not. An event is delivered again when its lease has ended.
    pub(super) fn leave_in_doubt(self) {
        match self {
            Self::Changes(mutation) => {
                let _gone = mutation.caller.send(Err(CommitOutcome::Unknown));
            }
            Self::Settle(one) => one.answer(Err(Failure::InDoubt)),
            Self::Call(call) => call.answer(Err(Failure::InDoubt)),
        }
    }

    /// It failed, and nothing of it is kept.
    pub(super) fn fail(self) {
        self.answer(Verdict::Broken);
    }
}
