//! What clients do: how often a call is sent, when, and whether its request stays the same.

use std::{collections::BTreeMap, time::Duration};

use bytes::Bytes;
use parcelo::transport::Phase;

use super::world::World;

/// What one call may send at most (`Retry::standard`).
const MAX_ATTEMPTS: u32 = 4;
/// The budget for retries: so much at first, so much more each second, and what a retry costs.
const BUDGET: f64 = 500.0;
const BUDGET_PER_SECOND: f64 = 10.0;
const RETRY_COST: f64 = 14.0;
/// In seconds.
const LONGEST_BACKOFF: f64 = 5.0;
const THROTTLED_COST: f64 = 5.0;
/// A success gives back what its last retry cost.
const MAX_REFUND: f64 = 14.0;

tokio::task_local! {
    /// The call that a task makes.
    pub(super) static CALL: u64;
}

/// How an attempt ended, as its client sees it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Ended {
    /// There was no answer in time, and none was waited for.
    Unanswered,
    Failed(Phase),
    /// The status, and how long the answer asks to wait.
    Answered(u16, Option<Duration>),
}

#[derive(Debug, Clone)]
struct Call {
    attempts: u32,
    request: (String, Bytes),
    is_keyed: bool,
    was_stale: bool,
    ended: Ended,
    at: Duration,
}

/// What a client has left for retries.
#[derive(Debug, Clone, Copy)]
struct Budget {
    tokens: f64,
    at: Duration,
}

/// All calls of clients.
#[derive(Debug, Default)]
pub(super) struct Calls {
    next: u64,
    by_number: BTreeMap<u64, Call>,
    budgets: BTreeMap<usize, Budget>,
}

/// A request as its client sends it.
pub(super) struct Sent<'a> {
    pub(super) shipper: usize,
    pub(super) call: u64,
    pub(super) path: &'a str,
    pub(super) body: &'a Bytes,
    /// Whether sending it twice does no more than sending it once.
    pub(super) is_keyed: bool,
}

impl World {
    /// A number for another call.
    pub(super) fn next_call(&self) -> u64 {
        let mut facts = self.facts();
        facts.calls.next += 1;
        facts.calls.next
    }

    /// A client sends a request.
    pub(super) fn sent(&self, sent: &Sent<'_>) {
        let now = self.clocks.elapsed();
        let mut wrong = None;
        {
            let mut facts = self.facts();
            let request = (sent.path.to_owned(), sent.body.clone());
            let calls = &mut facts.calls;
            let call = calls.by_number.entry(sent.call).or_insert_with(|| Call {
                attempts: 0,
                request: request.clone(),
                is_keyed: sent.is_keyed,
                was_stale: false,
                ended: Ended::Unanswered,
                at: now,
            });
            call.attempts += 1;
            if call.attempts > MAX_ATTEMPTS {
                wrong = Some("attempts-exceeded");
            } else if call.request != request {
                wrong = Some("attempts-differ");
            } else if call.attempts > 1 {
                let budget =
                    calls.budgets.entry(sent.shipper).or_insert(Budget { tokens: BUDGET, at: now });
                wrong = wrong_retry(call, now).or_else(|| budget.spend(cost(call), now));
            }
            call.was_stale |= call.ended == Ended::Failed(Phase::Stale);
            (call.ended, call.at) = (Ended::Unanswered, now);
        }
        if let Some(name) = wrong {
            self.violated(name, format!("call {} {}", sent.call, sent.path));
        }
    }

    /// What its client hears of it.
    pub(super) fn heard(&self, sent: &Sent<'_>, ended: Ended) {
        let now = self.clocks.elapsed();
        self.step(&format!("call {} hears {ended:?}", sent.call));
        let mut facts = self.facts();
        let calls = &mut facts.calls;
        if let Some(call) = calls.by_number.get_mut(&sent.call) {
            (call.ended, call.at) = (ended, now);
        }
        if matches!(ended, Ended::Answered(200..=299, _)) {
            let budget =
                calls.budgets.entry(sent.shipper).or_insert(Budget { tokens: BUDGET, at: now });
            budget.tokens = BUDGET.min(budget.tokens + MAX_REFUND);
        }
    }

    /// How often a call was sent.
    pub(super) fn attempts(&self, call: u64) -> u32 {
        self.facts().calls.by_number.get(&call).map_or(0, |call| call.attempts)
    }
}

impl Budget {
    fn spend(&mut self, cost: f64, now: Duration) -> Option<&'static str> {
        let grown = now.saturating_sub(self.at).as_secs_f64() * BUDGET_PER_SECOND;
        (self.tokens, self.at) = (BUDGET.min(self.tokens + grown) - cost, now);
        // A retry is paid for before it waits: what grows meanwhile is lost here while the budget is full.
        let lost = LONGEST_BACKOFF * BUDGET_PER_SECOND;
        (self.tokens < -RETRY_COST - lost).then_some("budget-exceeded")
    }
}

fn cost(call: &Call) -> f64 {
    match call.ended {
        Ended::Failed(Phase::Stale) if !call.was_stale => 0.0,
        Ended::Answered(429, _) => THROTTLED_COST,
        _ => RETRY_COST,
    }
}

/// What is wrong with sending a call again after what was heard of it.
fn wrong_retry(call: &Call, now: Duration) -> Option<&'static str> {
    let may_be_done =
        !matches!(call.ended, Ended::Failed(Phase::NotSent) | Ended::Answered(429, _));
    if !call.is_keyed && may_be_done {
        return Some("unkeyed-repeated");
    }
    match call.ended {
        Ended::Answered(_, Some(wait)) if now < call.at + wait => Some("retry-after-ignored"),
        Ended::Answered(200..=299, _) => None,
        Ended::Answered(status, _) if !matches!(status, 408 | 409 | 429 | 500..=504) => {
            Some("refusal-repeated")
        }
        _ => None,
    }
}
