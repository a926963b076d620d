//! The record of an order once its clients are done, and its verdict at the end. It is small, since a run has hundreds
//! of thousands of orders.

use std::collections::HashSet;

use fastrand::Rng;
use serde_json::Value;

use crate::{
    clients::{Clients, OrderHistory, OrderRecord},
    linearizability::end_states,
    model::{Call, Order, State},
    receiver::Move,
};

/// An order that was worked on.
pub(crate) struct KeptOrder {
    serial: u64,
    number: Option<String>,
    past: Past,
}

/// The calls on an order, or their result.
enum Past {
    /// Every call was answered; the order is in one of these states.
    Settled(Vec<State>),
    /// The calls, since one without an answer may still take effect.
    Open(Vec<OrderRecord>),
}

/// The result of checking an order at the end.
pub(crate) struct Final {
    pub(crate) number: String,
    /// The changes of its parcel's status, from its history.
    pub(crate) moves: Vec<Move>,
}

impl KeptOrder {
    /// Judges the answers of the clients, and drops what is not needed later.
    pub(crate) fn new(history: OrderHistory) -> Result<Self, String> {
        let (serial, number, records) = history.into_parts();
        let ends = judge(serial, &[State::Absent], &records)?;
        let is_settled = records.iter().all(|record| record.answered.is_some());
        let past = if is_settled {
            Past::Settled(ends.into_iter().collect())
        } else {
            Past::Open(records)
        };
        Ok(Self { serial, number, past })
    }

    /// Returns whether every call was answered.
    pub(crate) const fn is_settled(&self) -> bool {
        matches!(self.past, Past::Settled(_))
    }

    /// Creates the order again under its key and checks its parcel: it must be the same parcel, in a state that the
    /// calls allow.
    pub(crate) async fn check_again(
        self,
        clients: &Clients,
        random: &mut Rng,
    ) -> Result<Final, String> {
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
        let history = clients.history(&order).await;
        let history = history.ok_or_else(|| format!("{key}: its history is not answered"))?;
        let (serial, number, repeated) = order.into_parts();
        match self.past {
            Past::Settled(states) => judge(serial, &states, &repeated)?,
            Past::Open(mut records) => {
                records.extend(repeated);
                judge(serial, &[State::Absent], &records)?
            }
        };
        Ok(Final { number: number.unwrap_or_default(), moves: moves(&history) })
    }
}

fn judge(serial: u64, before: &[State], records: &[OrderRecord]) -> Result<HashSet<State>, String> {
    let ends = end_states::<Order>(before, records);
    if ends.is_empty() {
        let key = OrderHistory::key(serial);
        return Err(format!(
            "{key}: no order of these calls fits their answers: {before:?} {records:#?}"
        ));
    }
    Ok(ends)
}

/// Returns the entries of a history that changed the status: those of the service, and scans that were neither late nor
/// of the same status.
fn moves(tracking: &Value) -> Vec<Move> {
    let mut entries: Vec<_> = tracking["history"].as_array().into_iter().flatten().collect();
    entries.sort_by_key(|entry| entry["sequence"].as_u64());
    let (mut status, mut newest) = ("", "");
    let mut moves = Vec::new();
    for entry in entries {
        let [seen, at] = ["status", "timestamp"].map(|name| entry[name].as_str().unwrap_or(""));
        let is_ours = ["LABEL_GENERATED", "MANIFEST_SUBMITTED", "VOIDED"].contains(&seen);
        if is_ours || seen != status && at >= newest && !status.is_empty() {
            status = seen;
            newest = at;
            let sequence = entry["sequence"].as_u64().unwrap_or(0);
            moves.push(Move { sequence, status: seen.to_owned() });
        } else {
            newest = newest.max(at);
            status = if status.is_empty() { seen } else { status };
        }
    }
    moves
}
