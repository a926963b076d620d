//! The state of an idempotency key besides its text: when it was first sent, and whether its write may have been
//! executed. A key and its clones share it; [`KeyState`] is its saved form.

use chrono::{DateTime, TimeDelta, Utc};
use serde::{Deserialize, Serialize};

use super::time;

/// The knowledge of one process about an idempotency key, saved for the process that continues its work.
///
/// A process that may be killed at any moment stores [`KeyState::sent_at`] with the present time and the request
/// **before** it sends it for the first time: the state of a key that was not sent yet says "never sent", and the saved
/// copy would never change. The key's state after a call can replace it.
///
/// Only the text of a key is sent, so the key's own serde has none of its state. It comes from
/// [`IdempotencyKey::state`](crate::model::IdempotencyKey::state), and goes back by
/// [`IdempotencyKey::with_state`](crate::model::IdempotencyKey::with_state). [`Saved`](super::Saved) writes and reads
/// it with its request.
///
/// ```
/// # use parcelo::IdempotencyKey;
/// # use parcelo::model::KeyState;
/// # let now = "2026-01-10T15:05:00Z".parse().unwrap();
/// let written = serde_json::to_string(&KeyState::sent_at(now)).unwrap(); // to disk, then sent
/// // The process dies here, and the next one reads what it had written:
/// let state: KeyState = serde_json::from_str(&written).unwrap();
/// let key = IdempotencyKey::parse("order-2026-01-10-0001")?.with_state(&state);
/// assert_eq!(key.first_sent(), Some(now));
/// assert!(key.may_have_executed());
/// # Ok::<(), parcelo::InvalidValue>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct KeyState {
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        serialize_with = "time::serialize_option"
    )]
    first_sent: Option<DateTime<Utc>>,
    /// The time on the service's clock then, as far as its responses show it.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        serialize_with = "time::serialize_option"
    )]
    service_time: Option<DateTime<Utc>>,
    /// Always present, so that a damaged state is not mistaken for that of a key without history.
    execution: Execution,
    /// The digest of the one request whose outcome is unknown; `None` if there are several, or if it is not known.
    #[serde(rename = "request", default, skip_serializing_if = "Option::is_none")]
    request_digest: Option<String>,
}

/// The knowledge about the execution of a write. The order of the variants is used to merge two states: executed wins
/// over unknown, and unknown over not executed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
enum Execution {
    /// Not executed, as far as this process knows.
    #[default]
    #[serde(rename = "no")]
    NotExecuted,
    /// Unknown: an attempt was sent and no response arrived.
    Unknown,
    /// Executed, as a response says.
    #[serde(rename = "yes")]
    Executed,
}

impl KeyState {
    /// Returns the state of a key that an earlier process first sent at `at`, with an unknown outcome.
    pub fn sent_at(at: DateTime<Utc>) -> Self {
        Self { first_sent: Some(at), execution: Execution::Unknown, ..Self::default() }
    }

    /// Merges two states of one key: the earlier time wins, and the greater execution.
    pub(super) fn merge(&self, other: &Self) -> Self {
        let earlier = |one: Option<DateTime<Utc>>, other| one.into_iter().chain(other).min();
        let request_digest = match (self.execution, other.execution) {
            (_, Execution::NotExecuted) => self.request_digest.clone(),
            (Execution::NotExecuted, _) => other.request_digest.clone(),
            // The outcomes of two requests are unknown: either may have been executed.
            _ => self
                .request_digest
                .clone()
                .filter(|request| other.request_digest.as_ref() == Some(request)),
        };
        Self {
            first_sent: earlier(self.first_sent, other.first_sent),
            service_time: earlier(self.service_time, other.service_time),
            execution: self.execution.max(other.execution),
            request_digest,
        }
    }

    /// Returns the time when the key was first sent, by this machine's wall clock.
    pub fn first_sent(&self) -> Option<DateTime<Utc>> {
        self.first_sent
    }

    /// Returns `false` only if no request with the key can have been executed.
    pub fn may_have_executed(&self) -> bool {
        self.execution != Execution::NotExecuted
    }
}

/// Maximum time from an attempt's beginning until the service has executed it or never will. The service waits 10 s for
/// a request's head, 30 s for its body and 30 s for its handler; the rest is for proxies, and for processes whose clocks
/// differ.
const MAX_EXECUTION: TimeDelta = TimeDelta::minutes(10);

/// Maximum age of a key that is sent: an attempt that begins later could reach a service that has forgotten the key.
pub(super) const MAX_SENT_AGE: TimeDelta = TimeDelta::minutes(24 * 60 - 10);

/// A moment, as shown by all available clocks.
#[expect(clippy::exhaustive_structs, reason = "the client makes it of its clocks")]
#[derive(Debug, Clone, Copy)]
pub struct Moment {
    /// The time on the machine's wall clock, which may be set.
    pub wall: DateTime<Utc>,
    /// The time on the monotonic clock, which stops while the machine is suspended: counted from an arbitrary moment of
    /// this process. `None` if a test moves the service's clock.
    pub monotonic: Option<TimeDelta>,
    /// The time on the service's clock, as far as its responses show it.
    pub service: Option<DateTime<Utc>>,
}

/// The outcome of an attempt to send a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AttemptOutcome {
    /// Nothing was sent.
    NotSent,
    /// The request was not executed. This says nothing about earlier attempts.
    Rejected,
    /// The service looked up the key, did not find it, and refused this request.
    RejectedAfterLookup,
    /// The key belongs to another request than this one.
    KeyConflict,
    /// The outcome of this request is unknown.
    Unknown,
    /// The request was executed.
    Executed,
}

/// The memory that a key and its clones share.
#[derive(Debug, Default)]
pub(super) struct Memory {
    state: KeyState,
    /// The moment of the first attempt, by a monotonic clock; `None` in a process that resumes.
    monotonic: Option<TimeDelta>,
    /// The moment of this process's last attempt, by the same clock; of a key that another process sent, the moment
    /// at which this one first looked whether an attempt may be under way.
    last_attempt: Option<TimeDelta>,
    /// Age of the key at the beginning of the last attempt that no response had preceded.
    age_at_attempt: TimeDelta,
    /// Number of attempts that have not ended.
    in_flight: u32,
    /// Set if an attempt has reached the service, or may have.
    was_sent: bool,
}

impl Memory {
    pub(super) fn from_state(state: KeyState) -> Self {
        Self { was_sent: state.first_sent.is_some(), state, ..Self::default() }
    }

    /// Returns the memory merged with a saved state.
    pub(super) fn merged_with(&self, state: &KeyState) -> Self {
        let merged = self.state().merge(state);
        // A first attempt that is earlier by the wall clock is earlier by the monotonic clock too.
        let earlier = self.state.first_sent.zip(merged.first_sent).map(|(own, first)| own - first);
        let monotonic = self.monotonic.zip(earlier).map(|(monotonic, by)| monotonic - by);
        Self {
            monotonic,
            last_attempt: self.last_attempt,
            age_at_attempt: self.age_at_attempt,
            ..Self::from_state(merged)
        }
    }

    pub(super) fn first_sent(&self) -> Option<DateTime<Utc>> {
        self.state.first_sent
    }

    /// Returns the state; the outcome of an attempt that has not ended is unknown.
    pub(super) fn state(&self) -> KeyState {
        if self.in_flight > 0 && self.state.execution != Execution::Executed {
            return KeyState {
                execution: Execution::Unknown,
                request_digest: None,
                ..self.state.clone()
            };
        }
        self.state.clone()
    }

    pub(super) fn begin_attempt(
        &mut self,
        monotonic: Option<TimeDelta>,
        now: impl FnOnce() -> Moment,
    ) {
        if self.state.first_sent.is_none() {
            let now = now();
            self.state.first_sent = Some(now.wall);
            self.state.service_time = now.service;
            self.monotonic = now.monotonic;
        } else if self.monotonic.is_none() || self.state.service_time.is_none() {
            let now = now();
            let age = self.age(&now).unwrap_or_default().max(TimeDelta::zero());
            self.age_at_attempt = age;
            // If another process sent it first, setting a clock cannot make it younger from here on.
            self.monotonic = self.monotonic.or(now.monotonic.map(|now| now - age));
        }
        self.last_attempt = monotonic;
        self.in_flight = self.in_flight.saturating_add(1);
    }

    pub(super) fn end_attempt(&mut self, outcome: AttemptOutcome, request: impl Fn() -> String) {
        self.in_flight = self.in_flight.saturating_sub(1);
        self.was_sent |= outcome != AttemptOutcome::NotSent;
        match outcome {
            AttemptOutcome::NotSent => self.forget_unsent(),
            AttemptOutcome::Rejected => {}
            // Once executed, a write stays executed, whatever the outcome of a later attempt.
            _ if self.state.execution == Execution::Executed => {}
            AttemptOutcome::Executed => self.set_execution(Execution::Executed, None),
            AttemptOutcome::RejectedAfterLookup if self.is_only_unknown_request(&request()) => {
                self.set_execution(Execution::NotExecuted, None);
            }
            AttemptOutcome::RejectedAfterLookup => {}
            // Another request has the key: the one with the unknown outcome, if that is not this one.
            AttemptOutcome::KeyConflict
                if self.state.execution == Execution::Unknown
                    && !self.is_only_unknown_request(&request()) =>
            {
                self.set_execution(Execution::Executed, None);
            }
            AttemptOutcome::KeyConflict => self.set_execution(Execution::NotExecuted, None),
            AttemptOutcome::Unknown => {
                let request = request();
                let first = self.state.execution == Execution::NotExecuted
                    || self.is_only_unknown_request(&request);
                self.set_execution(Execution::Unknown, first.then_some(request));
            }
        }
    }

    /// Records the service's clock from a response to an attempt with the key.
    pub(super) fn note_service_time(&mut self, date: DateTime<Utc>) {
        self.state.service_time.get_or_insert(date - self.age_at_attempt);
    }

    /// Returns the time since the key was first sent, by the clock that shows the longest time.
    pub(super) fn age(&self, now: &Moment) -> Option<TimeDelta> {
        let first_sent = self.state.first_sent?;
        let wall = now.wall - first_sent;
        let monotonic = now.monotonic.zip(self.monotonic).map(|(now, first)| now - first);
        // A state saved before any response has only the other process's wall time, and this one's clock may be behind
        // it.
        let first = self.state.service_time.or(Some(first_sent).filter(|_| monotonic.is_none()));
        let service = now.service.zip(first).map(|(now, first)| now - first);
        [Some(wall), monotonic, service].into_iter().flatten().max()
    }

    /// Returns how long an attempt may still be under way once the key is too old to be sent, since no process begins
    /// an attempt after that. The key may seem too old only because a clock was set. This process remembers its own
    /// last attempt; for those of another process it trusts the wall clock only if the service's clock agrees.
    pub(super) fn time_under_way(&mut self, now: &Moment) -> TimeDelta {
        let age = self.age(now).map(|age| age - MAX_SENT_AGE);
        let shows_the_same = |service: DateTime<Utc>| (now.wall - service).abs() < MAX_EXECUTION;
        let own = match (self.last_attempt, now.monotonic) {
            (None, _) if now.service.is_some_and(shows_the_same) => None,
            (_, monotonic) => monotonic.map(|now| now - *self.last_attempt.get_or_insert(now)),
        };
        let passed = age.into_iter().chain(own).min();
        passed.map_or(TimeDelta::zero(), |passed| MAX_EXECUTION - passed)
    }

    /// Forgets the first attempt if nothing has been sent yet: the age of the key counts from the first request that
    /// was sent.
    fn forget_unsent(&mut self) {
        if !self.was_sent && self.in_flight == 0 {
            (self.state.first_sent, self.state.service_time, self.monotonic) = (None, None, None);
        }
    }

    fn is_only_unknown_request(&self, request: &str) -> bool {
        self.state.execution == Execution::Unknown
            && self.state.request_digest.as_deref() == Some(request)
    }

    fn set_execution(&mut self, execution: Execution, request: Option<String>) {
        self.state.execution = execution;
        self.state.request_digest = request;
    }
}

#[cfg(test)]
mod tests {
    use super::{
        Execution::{Executed, NotExecuted, Unknown},
        *,
    };

    fn at(hours: i64) -> DateTime<Utc> {
        DateTime::from_timestamp(hours * 3600, 0).unwrap()
    }

    fn moment(hours: i64) -> Moment {
        Moment { wall: at(hours), monotonic: Some(TimeDelta::zero()), service: None }
    }

    /// Returns a moment from minutes on each clock.
    fn minutes(wall: i64, monotonic: i64, service: Option<i64>) -> Moment {
        let at_minute = |minutes| at(0) + TimeDelta::minutes(minutes);
        Moment {
            wall: at_minute(wall),
            monotonic: Some(TimeDelta::minutes(monotonic)),
            service: service.map(at_minute),
        }
    }

    fn begin(memory: &mut Memory, now: Moment) {
        memory.begin_attempt(now.monotonic, || now);
    }

    fn end(memory: &mut Memory, outcome: AttemptOutcome, request: &str) {
        memory.end_attempt(outcome, || request.to_owned());
    }

    #[test]
    fn a_merged_state_has_the_earlier_time_and_worse_outcome() {
        let state = |(hours, execution, request): (Option<i64>, _, Option<&str>)| KeyState {
            first_sent: hours.map(at),
            service_time: hours.map(at),
            execution,
            request_digest: request.map(str::to_owned),
        };
        let never = (None, NotExecuted, None);
        let (a, b) = (Some("a"), Some("b"));
        let table = [
            [never, (Some(5), Unknown, None), (Some(5), Unknown, None)],
            [(Some(1), Unknown, a), never, (Some(1), Unknown, a)],
            [(Some(1), Executed, None), (Some(25), Unknown, None), (Some(1), Executed, None)],
            [(Some(9), Unknown, a), (Some(2), Unknown, a), (Some(2), Unknown, a)],
            [(Some(9), Unknown, a), (Some(2), Unknown, b), (Some(2), Unknown, None)],
        ];
        for [one, other, both] in table.map(|row| row.map(state)) {
            assert_eq!(Memory::from_state(one.clone()).merged_with(&other).state(), both);
            assert_eq!(Memory::from_state(other).merged_with(&one).state(), both);
        }
    }

    /// Returns `true` if the write may have been executed after attempts that ended one after the other.
    fn may_have_executed_after(outcomes: &[(AttemptOutcome, &str)]) -> bool {
        let mut memory = Memory::default();
        for (outcome, request) in outcomes {
            begin(&mut memory, moment(0));
            assert!(memory.state().may_have_executed(), "an attempt in flight may be executed");
            end(&mut memory, *outcome, request);
            memory = Memory::from_state(memory.state()); // in another process it is the same
        }
        memory.state().may_have_executed()
    }

    #[test]
    fn an_unknown_outcome_remains_until_a_response_settles_it() {
        use AttemptOutcome::{
            Executed, KeyConflict as Conflict, NotSent, Rejected, RejectedAfterLookup as Refused,
            Unknown,
        };
        let table: [(&[(AttemptOutcome, &str)], bool); 15] = [
            (&[(NotSent, "a")], false),
            (&[(Rejected, "a")], false),
            (&[(Refused, "a")], false),
            (&[(Conflict, "a")], false),
            (&[(Unknown, "a")], true),
            (&[(Unknown, "a"), (NotSent, "a")], true),
            (&[(Unknown, "a"), (Rejected, "a")], true),
            (&[(Unknown, "a"), (Refused, "a")], false),
            (&[(Unknown, "a"), (Refused, "b")], true),
            (&[(Unknown, "a"), (Unknown, "b"), (Refused, "a"), (Refused, "b")], true),
            (&[(Unknown, "a"), (Unknown, "a"), (Refused, "a")], false),
            (&[(Unknown, "a"), (Conflict, "a")], false),
            // The other request, whose outcome is unknown, has the key.
            (&[(Unknown, "a"), (Conflict, "b")], true),
            // It was executed, and stays so.
            (&[Executed, NotSent, Rejected, Refused, Conflict, Unknown].map(|it| (it, "a")), true),
            (&[(Unknown, "a"), (Refused, "a"), (Unknown, "a")], true),
        ];
        for (outcomes, expected) in table {
            assert_eq!(may_have_executed_after(outcomes), expected, "{outcomes:?}");
        }
    }

    #[test]
    fn a_known_execution_wins_over_a_clones_unknown_outcome() {
        let mut memory = Memory::default();
        begin(&mut memory, moment(0));
        begin(&mut memory, moment(0));
        end(&mut memory, AttemptOutcome::Executed, "a");
        end(&mut memory, AttemptOutcome::Unknown, "a");
        assert_eq!(memory.state().execution, Execution::Executed);
    }

    #[test]
    fn a_key_that_was_not_sent_has_no_age() {
        let mut memory = Memory::default();
        begin(&mut memory, moment(1));
        end(&mut memory, AttemptOutcome::NotSent, "a");
        assert_eq!((memory.first_sent(), memory.age(&moment(9))), (None, None));
        begin(&mut memory, moment(2));
        begin(&mut memory, moment(3));
        end(&mut memory, AttemptOutcome::NotSent, "a");
        assert_eq!(memory.first_sent(), Some(at(2)), "another attempt is in flight");
        end(&mut memory, AttemptOutcome::Rejected, "a");
        begin(&mut memory, moment(4));
        end(&mut memory, AttemptOutcome::NotSent, "a");
        assert_eq!(memory.first_sent(), Some(at(2)));
    }

    #[test]
    fn the_clock_with_the_longest_time_counts() {
        // The first attempt's clocks stand at 100 h; wall, monotonic, service; age
        let table = [
            (101, 1, None, 1),
            (125, 1, None, 25),
            (75, 25, None, 25),
            (75, 0, Some(125), 25),
            (125, 0, Some(99), 25),
        ];
        for (wall, hours, service, expected) in table {
            let mut memory = Memory::default();
            begin(&mut memory, Moment { service: Some(at(100)), ..moment(100) });
            let now = minutes(wall * 60, hours * 60, service.map(|hours: i64| hours * 60));
            let age = memory.age(&now).unwrap();
            assert_eq!(age.num_minutes() / 60, expected, "{wall} {hours} {service:?}");
            let resumed = Memory::from_state(memory.state()).age(&now).unwrap();
            let known = expected == 25 && hours != 25;
            assert_eq!(resumed.num_hours() == 25, known, "wall time and the service's, no other");
        }
    }

    #[test]
    fn an_attempt_may_last_ten_minutes_after_the_last_start() {
        // Minutes since the first attempt, by the wall clock and by the monotonic one; minutes left.
        let day = 24 * 60;
        let table = [
            (day - 10, day - 10, 10),
            (day - 6, day - 6, 6),
            (day, day, 0),
            // After suspend, or after the wall clock was set forward.
            (day + 60, 3, 7),
            (day + 60, 12, 0),
        ];
        for (wall, monotonic, left) in table {
            let mut memory = Memory::default();
            begin(&mut memory, moment(0));
            let now = minutes(wall, monotonic, None);
            assert_eq!(minutes_under_way(&mut memory, &now), left, "{wall} {monotonic}");
        }
    }

    fn minutes_under_way(memory: &mut Memory, now: &Moment) -> i64 {
        memory.time_under_way(now).num_minutes().max(0)
    }

    #[test]
    fn the_attempt_of_another_process_ends_after_ten_minutes() {
        let by = |wall, service, monotonic| minutes(wall, monotonic, service);
        let day = 24 * 60;
        let table = [
            // The moments of two looks; minutes left at each.
            (by(day + 1, Some(day), 0), by(day + 3, Some(day + 2), 2), [0, 0]),
            (by(day - 6, Some(day - 6), 0), by(day, Some(day), 6), [6, 0]),
            // Set forward, or not known to be right.
            (by(day + 60, Some(1), 0), by(day + 64, Some(5), 4), [10, 6]),
            (by(day + 60, None, 0), by(day + 69, None, 9), [10, 1]),
            (by(day + 60, None, 0), by(day + 61, Some(day + 61), 1), [10, 9]),
            (by(day + 60, None, 0), by(day + 70, None, 10), [10, 0]),
        ];
        for (first, second, left) in table {
            let mut memory = Memory::from_state(KeyState::sent_at(at(0)));
            let found = [&first, &second].map(|now| minutes_under_way(&mut memory, now));
            assert_eq!(found, left, "{first:?} {second:?}");
        }
    }

    #[test]
    fn a_clock_set_back_makes_a_restored_key_no_younger() {
        let now = |wall: i64, hours: i64, service: Option<i64>| {
            minutes(wall * 60, hours * 60, service.map(|hours| hours * 60))
        };
        let age = |memory: &Memory, now: &Moment| memory.age(now).unwrap().num_hours();
        // The service's clock, while this process's is behind.
        let mut memory = Memory::from_state(KeyState::sent_at(at(0)));
        assert_eq!(age(&memory, &now(22, 0, Some(25))), 25);
        // The monotonic clock from the first attempt on, and the service's from the first response on.
        begin(&mut memory, now(10, 0, None));
        assert_eq!(age(&memory, &now(-4, 15, None)), 25);
        memory.note_service_time(at(110));
        assert_eq!(memory.state().service_time, Some(at(100)));
        assert_eq!(age(&memory, &now(-4, 1, Some(125))), 25);
    }

    #[test]
    fn a_saved_state_takes_no_monotonic_age_from_a_key() {
        let mut memory = Memory::default();
        begin(&mut memory, moment(2));
        let merged = memory.merged_with(&KeyState::sent_at(at(1)));
        // The wall clock was set back since.
        let age = merged.age(&minutes(0, 24 * 60, None)).unwrap();
        assert_eq!(age.num_hours(), 25);
    }

    #[test]
    fn a_state_survives_a_round_trip() {
        let mut memory = Memory::default();
        begin(&mut memory, Moment { service: Some(at(2)), ..moment(1) });
        end(&mut memory, AttemptOutcome::Unknown, "ab");
        let written = serde_json::to_value(memory.state()).unwrap();
        let expected = serde_json::json!({"firstSent": "1970-01-01T01:00:00.000Z",
            "serviceTime": "1970-01-01T02:00:00.000Z", "execution": "unknown", "request": "ab"});
        assert_eq!(written, expected);
        assert_eq!(serde_json::from_value::<KeyState>(written).unwrap(), memory.state());
        for (word, execution) in [("no", NotExecuted), ("unknown", Unknown), ("yes", Executed)] {
            let state = KeyState { execution, ..KeyState::default() };
            assert_eq!(
                serde_json::to_value(&state).unwrap(),
                serde_json::json!({"execution": word})
            );
        }
        assert!(serde_json::from_str::<KeyState>("{}").is_err());
    }
}
