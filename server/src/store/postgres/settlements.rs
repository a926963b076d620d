//! Settlements in the writer's queue.

use tokio::sync::oneshot;

use super::error::DbResult;
use crate::{
    domain::{Tenant, webhooks::RetryDecision},
    store::{Settled, settlements::Settlement},
};

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

    /// Returns the parcel whose row must be locked, if any.
    pub(super) fn parcel(&self) -> Option<i64> {
        self.settlement.lease.parcel.map(|parcel| parcel.0)
    }

    /// Returns the tenant whose endpoint this may turn off, if any.
    pub(super) fn may_switch_off(&self) -> Option<Tenant> {
        match self.settlement.decision {
            RetryDecision::Gone | RetryDecision::GivenUp => Some(self.tenant()),
            RetryDecision::Delivered | RetryDecision::Retry { .. } | RetryDecision::Unreadable => {
                None
            }
        }
    }

    pub(super) fn tenant(&self) -> Tenant {
        self.settlement.lease.tenant
    }

    pub(super) fn is_abandoned(&self) -> bool {
        self.caller.is_closed()
    }

    /// Answers the caller; a caller that has gone needs no answer.
    pub(super) fn answer(self, outcome: DbResult<()>) {
        let _gone = self.caller.send(outcome.map(|()| self.settlement.settled));
    }
}
