//! For the simulation: calls of a store that wait, that are not done, or of which the caller does not hear. The simulation
//! has one thread for each seed, so what disturbs a store is the thread's.

use std::{cell::RefCell, sync::Arc, time::Duration};

use super::{CommitOutcome, StoreError};
use crate::domain::ParcelRowId;

/// What becomes of one call.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Disturbance {
    pub(crate) before: Duration,
    pub(crate) after: Duration,
    pub(crate) fault: Option<Fault>,
}

/// What goes wrong with a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Nothing is done, and the caller hears so.
    NotDone,
    /// It is done, and the caller does not hear of it in time.
    AnswerLost,
    /// It is not done, and all the caller hears is that it may have been.
    NoAnswer,
}

/// Decides what becomes of each call.
pub(crate) trait Disturb {
    fn disturb(&self, method: &'static str) -> Disturbance;
}

thread_local! {
    static CURRENT: RefCell<Option<Arc<dyn Disturb>>> = const { RefCell::new(None) };
}

/// Sets, or ends, what disturbs the stores of this thread.
pub(crate) fn disturb_by(disturb: Option<Arc<dyn Disturb>>) {
    CURRENT.with(|current| *current.borrow_mut() = disturb);
}

/// Looks at a store while nothing disturbs it.
pub(crate) fn undisturbed<T>(look: impl FnOnce() -> T) -> T {
    let current = CURRENT.with(RefCell::take);
    let seen = look();
    disturb_by(current);
    seen
}

/// An answer that can be replaced by an error.
pub(super) trait Answered: Sized {
    /// What a caller hears in its place; none where nothing can go wrong.
    fn failed(_fault: Fault) -> Option<Self> {
        None
    }
}

impl Answered for () {}

impl Answered for ParcelRowId {}

impl Answered for CommitOutcome {
    fn failed(fault: Fault) -> Option<Self> {
        Some(match fault {
            Fault::NotDone => Self::Unreachable,
            Fault::AnswerLost | Fault::NoAnswer => Self::Busy,
        })
    }
}

impl<T> Answered for Result<T, StoreError> {
    fn failed(fault: Fault) -> Option<Self> {
        let (database, reason) = ("simulated".to_owned(), "simulated".to_owned());
        Some(Err(match fault {
            Fault::NotDone => StoreError::Unreachable { database, reason },
            Fault::AnswerLost | Fault::NoAnswer => StoreError::Busy { database },
        }))
    }
}

/// A call of a store, disturbed as this thread's stores are.
pub(super) async fn around<T: Answered>(method: &'static str, call: impl Future<Output = T>) -> T {
    let current = CURRENT.with(|current| current.borrow().as_ref().map(|it| it.disturb(method)));
    let Some(Disturbance { before, after, fault }) = current else { return call.await };
    pause(before).await;
    if fault.is_some_and(|fault| fault != Fault::AnswerLost)
        && let Some(failed) = fault.and_then(T::failed)
    {
        return failed;
    }
    let answer = call.await;
    pause(after).await;
    fault.and_then(T::failed).unwrap_or(answer)
}

async fn pause(time: Duration) {
    if !time.is_zero() {
        tokio::time::sleep(time).await;
    }
}
