//! The decision which faults to inject into a request: plain data, and counters.
//!
//! Plans are consulted in the order in which they were added, and each counts the requests that it selects,
//! independently of the others. Latencies add up. A request gets at most one other fault, from the first plan that is
//! due, and later plans do not count it as a hit.
//!
//! Rust ([`super::Fault`]) and HTTP ([`super::control`]) make plans by the same functions, which refuse one that
//! contradicts itself or can have no effect: a mistake in the test, which would otherwise go unnoticed.

use std::{fmt, time::Duration};

use parcelo_system::ids::Ids;
use parcelo_types::{
    ApiKey, ErrorCode, Operation,
    model::{FaultCode, FieldFault},
};

use super::{Reply, Times, order_names::OrderNames};

/// The facts about a request that are known before it is handled.
#[derive(Debug, Clone, Copy)]
pub(super) struct RequestInfo<'a> {
    pub(super) operation: Operation,
    pub(super) key: Option<&'a ApiKey>,
    /// The orders that the request is about.
    pub(super) orders: &'a OrderNames,
}

/// A planned fault.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct FaultPlan {
    /// `None` selects every operation.
    pub(super) operation: Option<Operation>,
    /// `None` selects requests with any key or without one.
    pub(super) key: Option<ApiKey>,
    /// `None` selects requests about any order or about none.
    pub(super) order: Option<String>,
    pub(super) trigger: Trigger,
    pub(super) timing: Timing,
    pub(super) action: Action,
    /// The number of requests that the test expects it to hit; `None` for at least one.
    pub(super) expected: Option<Times>,
}

/// The rule that chooses among the selected requests, counted from 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Trigger {
    Always,
    Nth(u64),
    First(u64),
    Probability(f64),
}

/// The time of the fault: before or after the operation is executed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Timing {
    Before,
    AfterCommit,
}

/// The action of a fault.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Action {
    Latency(Duration),
    Replace(Replacement),
}

/// The replacement of the service's response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Replacement {
    Error(ErrorCode),
    /// A response of the test's choice, as a proxy in front of the service might give it.
    Reply(Reply),
    /// A 429 with this wait, in whole seconds.
    RateLimited(u32),
    Disconnect(Disconnect),
    Corrupted(Corruption),
}

/// The end of a connection without a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Disconnect {
    Close,
    Reset,
}

/// The damage to a response's body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Corruption {
    Truncated,
    Slow(Duration),
    Malformed,
}

/// The faults injected into one request.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct InjectedFaults {
    /// The delay before the request is handled.
    pub(super) delay_before: Duration,
    /// The delay of its response.
    pub(super) delay_after: Duration,
    pub(super) replacement: Option<(Timing, Replacement)>,
    /// The descriptions of the plans that hit, for the log.
    pub(super) descriptions: Vec<String>,
}

impl InjectedFaults {
    /// Returns `true` if the operation is not executed and no response is sent.
    pub(super) fn drops_request(&self) -> bool {
        match &self.replacement {
            Some((Timing::Before, Replacement::Disconnect(_))) => true,
            Some((Timing::Before, Replacement::Reply(reply))) => reply.hangs(),
            Some(_) | None => false,
        }
    }

    /// Returns the damage to the body, if any.
    pub(super) fn corruption(&self) -> Option<Corruption> {
        let Some((_, Replacement::Corrupted(corruption))) = self.replacement else { return None };
        Some(corruption)
    }

    /// Returns the end of the connection, if it ends without a response.
    pub(super) fn disconnect(&self) -> Option<Disconnect> {
        let Some((_, Replacement::Disconnect(disconnect))) = self.replacement else { return None };
        Some(disconnect)
    }

    /// Returns the reply that replaces the service's response, with its timing.
    pub(super) fn reply(&self) -> Option<(Timing, &Reply)> {
        let Some((timing, Replacement::Reply(reply))) = &self.replacement else { return None };
        Some((*timing, reply))
    }
}

/// All plans, each with the numbers of requests that it has selected and hit.
#[derive(Debug)]
pub(super) struct FaultPlans {
    entries: Vec<CountedPlan>,
    random: Ids,
}

#[derive(Debug)]
struct CountedPlan {
    plan: FaultPlan,
    selected: u64,
    hits: u64,
}

impl FaultPlans {
    /// Returns an empty set of plans. Probabilities are drawn from the seed with a separate generator, so that planning
    /// a fault does not change the server's ids.
    pub(super) fn seeded(seed: u64) -> Self {
        Self { entries: Vec::new(), random: Ids::seeded(!seed) }
    }

    pub(super) fn add(&mut self, plan: FaultPlan) {
        self.entries.push(CountedPlan { plan, selected: 0, hits: 0 });
    }

    pub(super) fn clear(&mut self) {
        self.entries.clear();
    }

    /// Returns descriptions of the plans that have hit no request.
    pub(super) fn unused(&self) -> Vec<String> {
        let idle = self.entries.iter().filter(|entry| entry.hits == 0);
        idle.map(|entry| entry.plan.to_string()).collect()
    }

    /// Returns messages about plans without an expectation that have hit no request.
    pub(super) fn unused_without_expectation(&self) -> Vec<String> {
        let plain = self.entries.iter().filter(|entry| entry.plan.expected.is_none());
        let idle = plain.filter(|entry| entry.hits == 0);
        idle.map(|entry| format!("a planned fault hit no request: {}", entry.plan)).collect()
    }

    /// Returns messages about plans that have hit more or fewer requests than expected.
    pub(super) fn unmet_expectations(&self) -> Vec<String> {
        let wrong = self.entries.iter().filter_map(|CountedPlan { plan, hits, .. }| {
            let expected = plan.expected?;
            let describe = || format!("expected to hit {expected}, hit {hits}: {plan}");
            (!expected.allows(*hits)).then(describe)
        });
        wrong.collect()
    }

    /// Returns `true` if a plan selects requests by order.
    pub(super) fn select_by_order(&self) -> bool {
        self.entries.iter().any(|entry| entry.plan.order.is_some())
    }

    /// Counts this request, and returns the faults to inject.
    pub(super) fn faults_for(&mut self, request: RequestInfo<'_>) -> InjectedFaults {
        let mut faults = InjectedFaults::default();
        for entry in self.entries.iter_mut().filter(|entry| entry.plan.selects(request)) {
            entry.selected += 1;
            if entry.plan.trigger.is_due(entry.selected, &self.random) && faults.add(&entry.plan) {
                entry.hits += 1;
            }
        }
        faults
    }
}

impl FaultPlan {
    /// Returns the plan of a fault that hits every request of an operation, before it is executed.
    pub(super) fn new(operation: Option<Operation>) -> Self {
        Self {
            operation,
            key: None,
            order: None,
            trigger: Trigger::Always,
            timing: Timing::Before,
            action: Action::Latency(Duration::ZERO),
            expected: None,
        }
    }

    /// Sets the rule that chooses among the selected requests. A plan has only one, which must be able to hit.
    pub(super) fn with_trigger(self, trigger: Trigger) -> Result<Self, FieldFault> {
        let Some(field) = trigger.field() else { return Ok(self) };
        if let Some(other) = self.trigger.field() {
            return Err(invalid_field(
                field,
                format!(
                    "{other} already selects the requests: leave out {field}, or plan two faults"
                ),
                format!(
                    "{other} ya selecciona las solicitudes: quite {field}, o planee dos fallos"
                ),
            ));
        }
        let (en, es) = match trigger {
            Trigger::Nth(0) | Trigger::First(0) => {
                ("requests are counted from 1", "las solicitudes se cuentan desde 1")
            }
            Trigger::Probability(value) if value.is_nan() || value <= 0.0 || value > 1.0 => (
                "probability must be above 0 and at most 1",
                "probability debe ser mayor que 0 y como máximo 1",
            ),
            Trigger::Always | Trigger::Nth(_) | Trigger::First(_) | Trigger::Probability(_) => {
                return Ok(Self { trigger, ..self });
            }
        };
        Err(invalid_field(field, en, es))
    }

    /// Sets the action, which must not take 0 seconds, of a plan that is complete otherwise.
    pub(super) fn with_action(self, action: Action) -> Result<Self, FieldFault> {
        self.check_expectation()?;
        match action {
            Action::Latency(time)
            | Action::Replace(Replacement::Corrupted(Corruption::Slow(time)))
                if time.is_zero() =>
            {
                let en = "this fault has no effect in 0 seconds: set seconds above 0";
                let es = "este fallo no tiene efecto en 0 segundos: ponga en seconds más de 0";
                Err(invalid_field("seconds", en, es))
            }
            action => Ok(Self { action, ..self }),
        }
    }

    /// Refuses an expectation of more hits than the trigger allows.
    fn check_expectation(&self) -> Result<(), FieldFault> {
        let max = match self.trigger {
            Trigger::Always | Trigger::Probability(_) => return Ok(()),
            Trigger::Nth(_) => 1,
            Trigger::First(n) => n,
        };
        if self.expected.is_none_or(|times| times.min() <= max) {
            return Ok(());
        }
        let en = format!("this fault can hit at most {max}: lower expect");
        let es = format!("este fallo afecta a {max} como máximo: reduzca expect");
        Err(invalid_field("expect", en, es))
    }

    fn selects(&self, request: RequestInfo<'_>) -> bool {
        self.operation.is_none_or(|operation| operation == request.operation)
            && self.key.as_ref().is_none_or(|key| request.key == Some(key))
            && self.order.as_ref().is_none_or(|order| request.orders.contains(order))
    }
}

fn invalid_field(field: &str, en: impl Into<String>, es: impl Into<String>) -> FieldFault {
    FieldFault::new(field, FaultCode::InvalidFormat, (en, es))
}

impl Replacement {
    /// Returns a 429 with a time to wait, rounded up to whole seconds and at least one.
    pub(super) fn rate_limited(wait: Duration) -> Self {
        let seconds = u32::try_from(wait.as_millis().div_ceil(1_000)).unwrap_or(u32::MAX);
        Self::RateLimited(seconds.max(1))
    }
}

impl Trigger {
    /// Returns the name of the field, and of the method, that sets it.
    fn field(self) -> Option<&'static str> {
        match self {
            Self::Always => None,
            Self::Nth(_) => Some("nth"),
            Self::First(_) => Some("first"),
            Self::Probability(_) => Some("probability"),
        }
    }

    fn is_due(self, selected: u64, random: &Ids) -> bool {
        match self {
            Self::Always => true,
            Self::Nth(n) => selected == n,
            Self::First(n) => selected <= n,
            Self::Probability(probability) => {
                let value = u32::from_be_bytes(random.array());
                f64::from(value) / (f64::from(u32::MAX) + 1.0) < probability
            }
        }
    }
}

impl InjectedFaults {
    /// Adds the plan's fault. Returns `false` if another fault replaces the response already.
    fn add(&mut self, plan: &FaultPlan) -> bool {
        match (&plan.action, plan.timing) {
            (Action::Latency(time), Timing::Before) => {
                self.delay_before = self.delay_before.saturating_add(*time);
            }
            (Action::Latency(time), Timing::AfterCommit) => {
                self.delay_after = self.delay_after.saturating_add(*time);
            }
            (Action::Replace(_), _) if self.replacement.is_some() => return false,
            // Only an executed operation has a body to corrupt.
            (Action::Replace(Replacement::Corrupted(corruption)), _) => {
                self.replacement = Some((Timing::AfterCommit, Replacement::Corrupted(*corruption)));
            }
            (Action::Replace(replacement), timing) => {
                self.replacement = Some((timing, replacement.clone()));
            }
        }
        self.descriptions.push(plan.to_string());
        true
    }
}

impl fmt::Display for FaultPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let operation = self.operation.map_or("any operation", Operation::name);
        write!(f, "{operation}{}", self.trigger)?;
        if self.key.is_some() {
            f.write_str(" of one key")?;
        }
        if let Some(order) = &self.order {
            write!(f, " about {order}")?;
        }
        if self.timing == Timing::AfterCommit {
            f.write_str(" after commit")?;
        }
        write!(f, ": {}", self.action)
    }
}

impl fmt::Display for Trigger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Always => Ok(()),
            Self::Nth(n) => write!(f, " no. {n}"),
            Self::First(n) => write!(f, " up to no. {n}"),
            Self::Probability(probability) => write!(f, " with probability {probability}"),
        }
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Latency(time) => write!(f, "latency of {time:?}"),
            Self::Replace(replacement) => replacement.fmt(f),
        }
    }
}

impl fmt::Display for Replacement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Error(code) => f.write_str(code.code()),
            Self::Reply(reply) if reply.hangs() => f.write_str("no answer"),
            Self::Reply(reply) => write!(f, "answer {}", reply.status_code()),
            Self::RateLimited(seconds) => write!(f, "rate limited for {seconds} s"),
            Self::Disconnect(Disconnect::Close) => f.write_str("connection closed"),
            Self::Disconnect(Disconnect::Reset) => f.write_str("connection reset"),
            Self::Corrupted(Corruption::Truncated) => f.write_str("truncated body"),
            Self::Corrupted(Corruption::Slow(pause)) => write!(f, "slow body ({pause:?})"),
            Self::Corrupted(Corruption::Malformed) => f.write_str("malformed JSON"),
        }
    }
}

#[cfg(test)]
mod tests {
    use parcelo_types::Environment;

    use super::*;

    const CLOSED: Replacement = Replacement::Disconnect(Disconnect::Close);
    const RESET: Replacement = Replacement::Disconnect(Disconnect::Reset);
    const INTERNAL_ERROR: Replacement = Replacement::Error(ErrorCode::InternalError);
    const SECOND: Duration = Duration::from_secs(1);

    fn plan(trigger: Trigger, action: Action) -> FaultPlan {
        FaultPlan { trigger, action, ..FaultPlan::new(None) }
    }

    fn replace(trigger: Trigger, replacement: Replacement) -> FaultPlan {
        plan(trigger, Action::Replace(replacement))
    }

    const NO_ORDERS: &OrderNames = &OrderNames::EMPTY;

    fn request(operation: Operation) -> RequestInfo<'static> {
        RequestInfo { operation, key: None, orders: NO_ORDERS }
    }

    /// Returns the ends of five requests as letters: closed, reset, error, or `.` for success.
    fn ends(planned: &[FaultPlan]) -> String {
        let mut plans = FaultPlans::seeded(1);
        planned.iter().cloned().for_each(|plan| plans.add(plan));
        let end = |()| match plans.faults_for(request(Operation::CreateOrder)).replacement {
            Some((_, CLOSED)) => 'c',
            Some((_, RESET)) => 'r',
            Some(_) => 'e',
            None => '.',
        };
        [(); 5].map(end).into_iter().collect()
    }

    #[test]
    fn each_selector_hits_its_requests() {
        use Trigger::{Always, First, Nth, Probability};
        let table = [
            (Always, "ccccc"),
            (Nth(1), "c...."),
            (Nth(3), "..c.."),
            (Nth(0), "....."),
            (First(2), "cc..."),
            (First(0), "....."),
            (Probability(0.0), "....."),
            (Probability(1.0), "ccccc"),
        ];
        for (trigger, expected) in table {
            assert_eq!(ends(&[replace(trigger, CLOSED)]), expected, "{trigger:?}");
        }
    }

    #[test]
    fn the_first_plan_that_is_due_replaces_the_response() {
        use Trigger::{Always, First, Nth};
        let table: [(&[FaultPlan], _); 3] = [
            (&[replace(Nth(2), CLOSED), replace(Always, RESET)], "rcrrr"),
            (&[replace(Always, RESET), replace(Nth(2), CLOSED)], "rrrrr"),
            (
                &[
                    replace(First(2), CLOSED),
                    replace(First(3), RESET),
                    replace(Nth(5), INTERNAL_ERROR),
                ],
                "ccr.e",
            ),
        ];
        for (plans, expected) in table {
            assert_eq!(ends(plans), expected);
        }
    }

    #[test]
    fn only_requests_with_the_operation_and_key_count() {
        let key = ApiKey::from_random(Environment::Sandbox, &[1; 32]);
        let other = ApiKey::from_random(Environment::Sandbox, &[2; 32]);
        let chosen = FaultPlan {
            operation: Some(Operation::CreateOrder),
            key: Some(key.clone()),
            ..replace(Trigger::Nth(2), CLOSED)
        };
        let mut plans = FaultPlans::seeded(0);
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
            let request = RequestInfo { operation, key, orders: NO_ORDERS };
            assert_eq!(plans.faults_for(request).replacement.is_some(), hit, "{operation:?}");
        }
    }

    #[test]
    fn latencies_add_up_in_addition_to_one_replacement() {
        let mut plans = FaultPlans::seeded(0);
        let after = |plan| FaultPlan { timing: Timing::AfterCommit, ..plan };
        plans.add(plan(Trigger::Always, Action::Latency(SECOND)));
        plans.add(replace(Trigger::Always, INTERNAL_ERROR));
        plans.add(plan(Trigger::Always, Action::Latency(SECOND)));
        plans.add(after(plan(Trigger::Always, Action::Latency(SECOND * 5))));
        plans.add(after(replace(Trigger::Nth(1), CLOSED)));
        let hit = plans.faults_for(request(Operation::Health));
        assert_eq!((hit.delay_before, hit.delay_after), (SECOND * 2, SECOND * 5));
        assert_eq!(hit.replacement, Some((Timing::Before, INTERNAL_ERROR)));
        assert_eq!(hit.descriptions.len(), 4);
        assert_eq!(plans.unused(), ["any operation no. 1 after commit: connection closed"]);
        plans.clear();
        assert!(plans.unused().is_empty());
        assert_eq!(plans.faults_for(request(Operation::Health)), InjectedFaults::default());
    }

    #[test]
    fn a_body_is_always_corrupted_after_the_commit() {
        let mut plans = FaultPlans::seeded(0);
        plans.add(replace(Trigger::Always, Replacement::Corrupted(Corruption::Malformed)));
        let hit = plans.faults_for(request(Operation::Health));
        assert_eq!(
            hit.replacement,
            Some((Timing::AfterCommit, Replacement::Corrupted(Corruption::Malformed)))
        );
    }

    #[test]
    fn random_faults_follow_seed_and_probability() {
        let hits = |seed| {
            let mut plans = FaultPlans::seeded(seed);
            plans.add(replace(Trigger::Probability(0.25), CLOSED));
            let mut met = || plans.faults_for(request(Operation::Health)).replacement.is_some();
            (0..1_000).map(|_| met()).collect::<Vec<_>>()
        };
        assert_eq!(hits(1), hits(1));
        assert_ne!(hits(1), hits(2));
        let count = hits(1).into_iter().filter(|hit| *hit).count();
        assert!((200..300).contains(&count), "{count} of 1000");
    }
}
