//! Which requests meet which faults: plain data, and a decision that keeps count.
//!
//! Plans are asked in the order in which they were added, and each counts the requests it selects,
//! whatever the others do. Latencies add up; of everything else a request meets at most one, from
//! the first plan that is due, and a later plan passes it by.

use std::{fmt, time::Duration};

use parcelo::{ApiKey, ErrorCode, Operation};

use super::{Reply, Times, order_names::OrderNames};
use crate::ids::Ids;

/// What is known of a request before it is handled.
#[derive(Debug, Clone, Copy)]
pub(super) struct Asked<'a> {
    pub(super) operation: Operation,
    pub(super) key: Option<&'a ApiKey>,
    /// The orders that it is about.
    pub(super) orders: &'a OrderNames,
}

/// One planned fault.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Plan {
    /// None means every operation.
    pub(super) operation: Option<Operation>,
    /// None means every key, and none.
    pub(super) key: Option<ApiKey>,
    /// None means every order, and what is about none.
    pub(super) order: Option<String>,
    pub(super) when: When,
    pub(super) moment: Moment,
    pub(super) action: Action,
    /// How many requests are to meet it; none for at least one.
    pub(super) expected: Option<Times>,
}

/// Which of the selected requests, counted from 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum When {
    Always,
    Nth(u64),
    First(u64),
    Sometimes(f64),
}

/// Whether the operation is carried out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Moment {
    Before,
    AfterCommit,
}

/// A fault.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Action {
    Latency(Duration),
    End(End),
}

/// What a request gets in its answer's place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum End {
    Error(ErrorCode),
    /// Not the service's own: as of a proxy in front of it.
    Reply(Reply),
    /// Whole seconds.
    RateLimited(u32),
    Cut(Cut),
    Spoilt(Spoilt),
}

/// How a connection ends before the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cut {
    Closed,
    Reset,
}

/// What becomes of an answer's body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Spoilt {
    Truncated,
    Slow(Duration),
    Malformed,
}

/// The faults that one request meets.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Hit {
    /// How long it waits before it is handled.
    pub(super) before: Duration,
    /// How long its answer waits.
    pub(super) after: Duration,
    pub(super) end: Option<(Moment, End)>,
    /// The plans, in words.
    pub(super) faults: Vec<String>,
}

impl Hit {
    /// Whether nothing is done, and nothing answered.
    pub(super) fn is_unanswered_before(&self) -> bool {
        match &self.end {
            Some((Moment::Before, End::Cut(_))) => true,
            Some((Moment::Before, End::Reply(reply))) => reply.hangs(),
            Some(_) | None => false,
        }
    }

    /// What becomes of the body, if anything.
    pub(super) fn spoilt(&self) -> Option<Spoilt> {
        if let Some((_, End::Spoilt(spoilt))) = self.end { Some(spoilt) } else { None }
    }

    /// How the connection ends, if it does.
    pub(super) fn cut(&self) -> Option<Cut> {
        if let Some((_, End::Cut(cut))) = self.end { Some(cut) } else { None }
    }

    /// The answer in the place of the service's, and whether the operation is carried out.
    pub(super) fn reply(&self) -> Option<(Moment, &Reply)> {
        if let Some((moment, End::Reply(reply))) = &self.end {
            Some((*moment, reply))
        } else {
            None
        }
    }
}

/// All plans, with how often each selected and hit.
#[derive(Debug)]
pub(super) struct Plans {
    entries: Vec<Entry>,
    chance: Ids,
}

#[derive(Debug)]
struct Entry {
    plan: Plan,
    selected: u64,
    hits: u64,
}

impl Plans {
    /// No plans yet; chance follows from the seed, and takes nothing from the server's ids.
    pub(super) fn seeded(seed: u64) -> Self {
        Self { entries: Vec::new(), chance: Ids::seeded(!seed) }
    }

    pub(super) fn add(&mut self, plan: Plan) {
        self.entries.push(Entry { plan, selected: 0, hits: 0 });
    }

    pub(super) fn clear(&mut self) {
        self.entries.clear();
    }

    /// The plans that hit nothing yet, in words.
    pub(super) fn unused(&self) -> Vec<String> {
        let idle = self.entries.iter().filter(|entry| entry.hits == 0);
        idle.map(|entry| entry.plan.to_string()).collect()
    }

    /// The plans of which nothing was expected but that they hit something, and that did not; in words.
    pub(super) fn idle(&self) -> Vec<String> {
        let plain = self.entries.iter().filter(|entry| entry.plan.expected.is_none());
        let idle = plain.filter(|entry| entry.hits == 0);
        idle.map(|entry| format!("a planned fault hit no request: {}", entry.plan)).collect()
    }

    /// The plans that hit more or fewer requests than was expected, in words.
    pub(super) fn unexpected(&self) -> Vec<String> {
        let wrong = self.entries.iter().filter_map(|Entry { plan, hits, .. }| {
            let expected = plan.expected?;
            let said = || format!("expected to hit {expected}, hit {hits}: {plan}");
            (!expected.allows(*hits)).then(said)
        });
        wrong.collect()
    }

    /// Whether a plan asks which orders a request is about.
    pub(super) fn ask_for_orders(&self) -> bool {
        self.entries.iter().any(|entry| entry.plan.order.is_some())
    }

    /// What this request meets; it has been counted.
    pub(super) fn meet(&mut self, asked: Asked<'_>) -> Hit {
        let mut hit = Hit::default();
        for entry in self.entries.iter_mut().filter(|entry| entry.plan.selects(asked)) {
            entry.selected += 1;
            if entry.plan.when.is_due(entry.selected, &self.chance) && hit.take(&entry.plan) {
                entry.hits += 1;
            }
        }
        hit
    }
}

impl Plan {
    fn selects(&self, asked: Asked<'_>) -> bool {
        self.operation.is_none_or(|operation| operation == asked.operation)
            && self.key.as_ref().is_none_or(|key| asked.key == Some(key))
            && self.order.as_ref().is_none_or(|order| asked.orders.has(order))
    }
}

impl When {
    fn is_due(self, selected: u64, chance: &Ids) -> bool {
        match self {
            Self::Always => true,
            Self::Nth(n) => selected == n,
            Self::First(n) => selected <= n,
            Self::Sometimes(probability) => {
                let drawn = u32::from_be_bytes(chance.array());
                f64::from(drawn) / (f64::from(u32::MAX) + 1.0) < probability
            }
        }
    }
}

impl Hit {
    /// Takes the plan's fault, unless another one stands in its place.
    fn take(&mut self, plan: &Plan) -> bool {
        match (&plan.action, plan.moment) {
            (Action::Latency(time), Moment::Before) => {
                self.before = self.before.saturating_add(*time);
            }
            (Action::Latency(time), Moment::AfterCommit) => {
                self.after = self.after.saturating_add(*time);
            }
            (Action::End(_), _) if self.end.is_some() => return false,
            // A body can be spoilt only when there is one.
            (Action::End(End::Spoilt(spoilt)), _) => {
                self.end = Some((Moment::AfterCommit, End::Spoilt(*spoilt)));
            }
            (Action::End(end), moment) => self.end = Some((moment, end.clone())),
        }
        self.faults.push(plan.to_string());
        true
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let operation = self.operation.map_or("any operation", Operation::name);
        write!(f, "{operation}{}", self.when)?;
        if self.key.is_some() {
            f.write_str(" of one key")?;
        }
        if let Some(order) = &self.order {
            write!(f, " about {order}")?;
        }
        if self.moment == Moment::AfterCommit {
            f.write_str(" after commit")?;
        }
        write!(f, ": {}", self.action)
    }
}

impl fmt::Display for When {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Always => Ok(()),
            Self::Nth(n) => write!(f, " no. {n}"),
            Self::First(n) => write!(f, " up to no. {n}"),
            Self::Sometimes(probability) => write!(f, " with probability {probability}"),
        }
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Latency(time) => write!(f, "latency of {time:?}"),
            Self::End(End::Error(code)) => f.write_str(code.code()),
            Self::End(End::Reply(reply)) if reply.hangs() => f.write_str("no answer"),
            Self::End(End::Reply(reply)) => write!(f, "answer {}", reply.status_code()),
            Self::End(End::RateLimited(seconds)) => write!(f, "rate limited for {seconds} s"),
            Self::End(End::Cut(Cut::Closed)) => f.write_str("connection closed"),
            Self::End(End::Cut(Cut::Reset)) => f.write_str("connection reset"),
            Self::End(End::Spoilt(Spoilt::Truncated)) => f.write_str("truncated body"),
            Self::End(End::Spoilt(Spoilt::Slow(pause))) => write!(f, "slow body ({pause:?})"),
            Self::End(End::Spoilt(Spoilt::Malformed)) => f.write_str("malformed JSON"),
        }
    }
}

#[cfg(test)]
mod tests {
    use parcelo::Environment;

    use super::*;

    const CLOSED: End = End::Cut(Cut::Closed);
    const RESET: End = End::Cut(Cut::Reset);
    const BROKEN: End = End::Error(ErrorCode::InternalError);
    const SECOND: Duration = Duration::from_secs(1);

    fn plan(when: When, action: Action) -> Plan {
        let (operation, key, order, expected) = (None, None, None, None);
        Plan { operation, key, order, when, moment: Moment::Before, action, expected }
    }

    fn end(when: When, end: End) -> Plan {
        plan(when, Action::End(end))
    }

    const NO_ORDERS: &OrderNames = &OrderNames::NONE;

    fn asked(operation: Operation) -> Asked<'static> {
        Asked { operation, key: None, orders: NO_ORDERS }
    }

    /// How each of five requests ends: closed, reset, with an error, or well.
    fn ends(planned: &[Plan]) -> String {
        let mut plans = Plans::seeded(1);
        planned.iter().cloned().for_each(|plan| plans.add(plan));
        let end = |()| match plans.meet(asked(Operation::CreateOrder)).end {
            Some((_, CLOSED)) => 'c',
            Some((_, RESET)) => 'r',
            Some(_) => 'e',
            None => '.',
        };
        [(); 5].map(end).into_iter().collect()
    }

    #[test]
    fn each_selector_hits_its_requests() {
        use When::{Always, First, Nth, Sometimes};
        let table = [
            (Always, "ccccc"),
            (Nth(1), "c...."),
            (Nth(3), "..c.."),
            (Nth(0), "....."),
            (First(2), "cc..."),
            (First(0), "....."),
            (Sometimes(0.0), "....."),
            (Sometimes(1.0), "ccccc"),
        ];
        for (when, expected) in table {
            assert_eq!(ends(&[end(when, CLOSED)]), expected, "{when:?}");
        }
    }

    #[test]
    fn the_first_plan_that_is_due_ends_a_request() {
        use When::{Always, First, Nth};
        let table: [(&[Plan], _); 3] = [
            (&[end(Nth(2), CLOSED), end(Always, RESET)], "rcrrr"),
            (&[end(Always, RESET), end(Nth(2), CLOSED)], "rrrrr"),
            (&[end(First(2), CLOSED), end(First(3), RESET), end(Nth(5), BROKEN)], "ccr.e"),
        ];
        for (plans, expected) in table {
            assert_eq!(ends(plans), expected);
        }
    }

    #[test]
    fn operation_and_key_select_and_only_what_they_select_counts() {
        let key = ApiKey::from_random(Environment::Sandbox, &[1; 32]);
        let other = ApiKey::from_random(Environment::Sandbox, &[2; 32]);
        let chosen = Plan {
            operation: Some(Operation::CreateOrder),
            key: Some(key.clone()),
            ..end(When::Nth(2), CLOSED)
        };
        let mut plans = Plans::seeded(0);
        plans.add(chosen);
        let table = [
            (Operation::CreateOrder, Some(&key), false),
            (Operation::CreateOrder, Some(&other), false),
            (Operation::CreateOrder, None, false),
            (Operation::VoidOrders, Some(&key), false),
            (Operation::CreateOrder, Some(&key), true),
            (Operation::CreateOrder, Some(&key), false),
        ];
        for (operation, key, hit) in table {
            let asked = Asked { operation, key, orders: NO_ORDERS };
            assert_eq!(plans.meet(asked).end.is_some(), hit, "{operation:?}");
        }
    }

    #[test]
    fn latencies_add_up_beside_one_end_and_keep_their_moments() {
        let mut plans = Plans::seeded(0);
        let after = |plan| Plan { moment: Moment::AfterCommit, ..plan };
        plans.add(plan(When::Always, Action::Latency(SECOND)));
        plans.add(end(When::Always, BROKEN));
        plans.add(plan(When::Always, Action::Latency(SECOND)));
        plans.add(after(plan(When::Always, Action::Latency(SECOND * 5))));
        plans.add(after(end(When::Nth(1), CLOSED)));
        let hit = plans.meet(asked(Operation::Health));
        assert_eq!((hit.before, hit.after), (SECOND * 2, SECOND * 5));
        assert_eq!(hit.end, Some((Moment::Before, BROKEN)));
        assert_eq!(hit.faults.len(), 4);
        assert_eq!(plans.unused(), ["any operation no. 1 after commit: connection closed"]);
        plans.clear();
        assert!(plans.unused().is_empty());
        assert_eq!(plans.meet(asked(Operation::Health)), Hit::default());
    }

    #[test]
    fn a_body_is_spoilt_after_the_commit_always() {
        let mut plans = Plans::seeded(0);
        plans.add(end(When::Always, End::Spoilt(Spoilt::Malformed)));
        let hit = plans.meet(asked(Operation::Health));
        assert_eq!(hit.end, Some((Moment::AfterCommit, End::Spoilt(Spoilt::Malformed))));
    }

    #[test]
    fn chance_follows_from_the_seed_and_keeps_its_word() {
        let hits = |seed| {
            let mut plans = Plans::seeded(seed);
            plans.add(end(When::Sometimes(0.25), CLOSED));
            let mut met = || plans.meet(asked(Operation::Health)).end.is_some();
            (0..1_000).map(|_| met()).collect::<Vec<_>>()
        };
        assert_eq!(hits(1), hits(1));
        assert_ne!(hits(1), hits(2));
        let count = hits(1).into_iter().filter(|hit| *hit).count();
        assert!((200..300).contains(&count), "{count} of 1000");
    }
}
