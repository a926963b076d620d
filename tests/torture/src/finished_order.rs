//! The state that a run keeps of an order whose clients have finished, for the check at the end. It is small, because a
//! run has hundreds of thousands of orders.

use std::collections::HashSet;

use fastrand::Rng;
use serde_json::Value;

use crate::{
    clients::{Clients, OrderHistory, OrderRecord},
    linearizability::end_states,
    model::{Call, Order, State},
    receiver::StatusChange,
};

/// An order whose clients have made all their calls.
pub(crate) struct FinishedOrder {
    serial: u64,
    number: Option<String>,
    outcome: CallOutcome,
}

/// The possible states after the calls of an order, or the calls if one of them may still take effect.
enum CallOutcome {
    /// Every call was answered, and the order is in one of these states.
    AllAnswered(Vec<State>),
    /// The calls, because one without an answer may take effect later.
    SomeUnanswered(Vec<OrderRecord>),
}

/// The result of the final check of an order.
pub(crate) struct CheckedOrder {
    pub(crate) number: String,
    /// The changes of its parcel's status, from its history.
    pub(crate) status_changes: Vec<StatusChange>,
}

impl FinishedOrder {
    /// Checks the clients' answers, and drops the data that is not needed later.
    pub(crate) fn new(history: OrderHistory) -> Result<Self, String> {
        let (serial, number, records) = history.into_parts();
        let ends = check_answers(serial, &[State::Absent], &records)?;
        let is_fully_answered = records.iter().all(|record| record.answered.is_some());
        let outcome = if is_fully_answered {
            CallOutcome::AllAnswered(ends.into_iter().collect())
        } else {
            CallOutcome::SomeUnanswered(records)
        };
        Ok(Self { serial, number, outcome })
    }

    /// Returns `true` if every call was answered.
    pub(crate) const fn is_fully_answered(&self) -> bool {
        matches!(self.outcome, CallOutcome::AllAnswered(_))
    }

    /// Creates the order again under its key. The answer must be the same parcel, in a state that the calls permit.
    pub(crate) async fn recheck(
        self,
        clients: &Clients,
        random: &mut Rng,
    ) -> Result<CheckedOrder, String> {
        let order = OrderHistory::new(self.serial, self.number);
        let key = OrderHistory::key(self.serial);
        for call in [Call::Create, Call::Track] {
            let mut attempts = 0;
            while clients.call(&order, call, random).await.is_none() {
                attempts += 1;
                if attempts == 20 {
                    return Err(format!("{key}: {call:?} is not answered afterwards"));
                }
            }
        }
        let history = clients.fetch_history(&order).await;
        let history = history.ok_or_else(|| format!("{key}: its history is not answered"))?;
        let (serial, number, repeated) = order.into_parts();
        match self.outcome {
            CallOutcome::AllAnswered(states) => check_answers(serial, &states, &repeated)?,
            CallOutcome::SomeUnanswered(mut records) => {
                records.extend(repeated);
                check_answers(serial, &[State::Absent], &records)?
            }
        };
        Ok(CheckedOrder {
            number: number.unwrap_or_default(),
            status_changes: status_changes(&history),
        })
    }
}

/// Returns the possible states of an order after these calls, or an error if the answers fit no order of the calls.
fn check_answers(
    serial: u64,
    before: &[State],
    records: &[OrderRecord],
) -> Result<HashSet<State>, String> {
    let ends = end_states::<Order>(before, records);
    if ends.is_empty() {
        let key = OrderHistory::key(serial);
        return Err(format!(
            "{key}: no order of these calls fits their answers: {before:?} {records:#?}"
        ));
    }
    Ok(ends)
}

/// Returns the history entries that changed the status: those of the service, and scans that were neither late nor
/// repetitions of the same status.
fn status_changes(tracking: &Value) -> Vec<StatusChange> {
    let mut entries: Vec<_> = tracking["history"].as_array().into_iter().flatten().collect();
    entries.sort_by_key(|entry| entry["sequence"].as_u64());
    let (mut status, mut newest) = ("", "");
    let mut status_changes = Vec::new();
    for entry in entries {
        let [seen, at] = ["status", "timestamp"].map(|name| entry[name].as_str().unwrap_or(""));
        let is_ours = ["LABEL_GENERATED", "MANIFEST_SUBMITTED", "VOIDED"].contains(&seen);
        if is_ours || seen != status && at >= newest && !status.is_empty() {
            status = seen;
            newest = at;
            let sequence = entry["sequence"].as_u64().unwrap_or(0);
            status_changes.push(StatusChange { sequence, status: seen.to_owned() });
        } else {
            newest = newest.max(at);
            status = if status.is_empty() { seen } else { status };
        }
    }
    status_changes
}
