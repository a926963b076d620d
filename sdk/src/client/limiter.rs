//! When the next request may go: even gaps, corrected by what the service's answers say about the
//! key's rate limit. It decides; [`turn`](super::turn) waits.
//!
//! A request that has to wait takes a place in the line. Turns come to places in their order and pass
//! with time alone, so that a caller who never comes back for its turn holds nobody up.
//!
//! Pure: the time is a parameter.

use std::{collections::BTreeSet, time::Duration};

use tokio::time::Instant;

use super::RateLimitStatus;

/// The share of the limit that is used: network and timers move requests by some milliseconds, and
/// so none of them slips into the window before its own.
const SHARE: f64 = 0.99;
/// What a refusal leaves of the rate.
const CUT: f64 = 0.7;
/// The share of the limit by which the rate recovers in a second.
const RECOVERY: f64 = 0.05;
/// A turn that is taken late by at most this does not delay those behind it.
const LATE: Duration = Duration::from_millis(20);
/// How long a turn is kept for a place, a window's length: of those that are taken late and together no
/// more than fit into one window.
const KEPT: Duration = SECOND;
const MOST: u32 = 100_000;
const SECOND: Duration = Duration::from_secs(1);
const LONGEST_WINDOW: Duration = Duration::from_secs(60);
const LONGEST_HINT: Duration = Duration::from_secs(30);

/// Whether a request may go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Admission {
    /// It may; it has been counted.
    Go,
    /// Not before then, as far as is known now.
    Wait(Instant),
}

/// A place in the line.
#[derive(Debug)]
pub(super) struct Place {
    number: u64,
    /// When its turn comes, as far as was known at the last look.
    pub(super) due: Instant,
}

/// What an answer says about the rate limit.
#[derive(Debug, Clone, Copy)]
pub(super) struct Heard {
    /// When the request was sent.
    pub(super) sent: Instant,
    /// When its answer came.
    pub(super) received: Instant,
    pub(super) status: Option<RateLimitStatus>,
    /// From the answer's own `Date` to the end of the window, in seconds; 1 when not known.
    pub(super) rest: u64,
    /// It was refused; how long to stay away.
    pub(super) refused: Option<Duration>,
}

/// The turns of a client and its clones.
#[derive(Debug, Clone)]
pub(super) struct Limiter {
    /// Requests a second.
    limit: u32,
    /// The last refusal, and the rate since.
    cut: Option<(Instant, f64)>,
    /// When the last turn came.
    last: Option<Instant>,
    closed_until: Option<Instant>,
    window: Option<Window>,
    /// The places given out so far, and those whose turn has come.
    given: u64,
    passed: u64,
    /// Places whose turn has not come and that were given back: the next to come take them.
    vacant: BTreeSet<u64>,
}

/// The newest window that the service has spoken of.
#[derive(Debug, Clone, Copy)]
struct Window {
    reset: u64,
    remaining: u32,
    /// It is over by then. Later than the truth at first, and closer with every window.
    ends: Instant,
}

impl Limiter {
    pub(super) fn new(limit: u32) -> Self {
        Self {
            limit,
            cut: None,
            last: None,
            closed_until: None,
            window: None,
            given: 0,
            passed: 0,
            vacant: BTreeSet::new(),
        }
    }

    /// Whether a request that has no place may go now, which it may not while others wait.
    pub(super) fn admit(&mut self, now: Instant) -> Admission {
        self.pass(now);
        let turn = self.turn(now);
        if self.passed < self.given || turn > now {
            let next = self.vacant.first().copied().unwrap_or(self.given + 1);
            return Admission::Wait(self.due(next, now));
        }
        let on_time = now.saturating_duration_since(turn) <= LATE;
        self.last = Some(if on_time { turn } else { now });
        Admission::Go
    }

    /// A place for a request that was told to wait.
    pub(super) fn join(&mut self, due: Instant) -> Place {
        let number = self.vacant.pop_first().unwrap_or_else(|| {
            self.given += 1;
            self.given
        });
        Place { number, due }
    }

    /// Whether the turn of a place has come. One that was not taken in time, or before the service
    /// closed its doors, is lost, and the place is a new one.
    pub(super) fn look(&mut self, place: &mut Place, now: Instant) -> Admission {
        self.pass(now);
        if place.number > self.passed {
            place.due = self.due(place.number, now);
            return Admission::Wait(place.due);
        }
        let is_late = now.saturating_duration_since(place.due) > KEPT;
        if !is_late && self.closed_until.is_none_or(|opens| opens <= now) {
            return Admission::Go;
        }
        let admission = self.admit(now);
        if let Admission::Wait(due) = admission {
            *place = self.join(due);
        }
        admission
    }

    /// Gives a place back.
    pub(super) fn leave(&mut self, place: &Place) {
        if place.number > self.passed {
            self.vacant.insert(place.number);
        }
        while self.vacant.remove(&self.given) {
            self.given -= 1;
        }
    }

    /// Lets the turns pass that have come since.
    fn pass(&mut self, now: Instant) {
        while self.passed < self.given {
            let turn = self.turn(now);
            if turn > now {
                return;
            }
            self.last = Some(turn);
            self.passed += 1;
            self.vacant.remove(&self.passed);
        }
    }

    /// When the turn of a place comes, or somewhat earlier.
    fn due(&self, number: u64, now: Instant) -> Instant {
        let before = number.saturating_sub(self.passed + 1);
        let before = u32::try_from(before).unwrap_or(u32::MAX);
        self.turn(now) + self.even_gap(now).saturating_mul(before)
    }

    /// When the next request may go.
    fn turn(&self, now: Instant) -> Instant {
        let Some(last) = self.last else { return self.closed_until.unwrap_or(now) };
        let paced = last + self.gap(last, now);
        self.closed_until.map_or(paced, |opens| paced.max(opens))
    }

    fn gap(&self, last: Instant, now: Instant) -> Duration {
        let even = self.even_gap(now);
        // Others use the same key: what they leave is spread over the rest of the window.
        let spread = self.window.filter(|window| now < window.ends).map(|window| {
            window.ends.saturating_duration_since(last) / window.remaining.saturating_add(1)
        });
        spread.map_or(even, |spread| spread.max(even))
    }

    fn even_gap(&self, now: Instant) -> Duration {
        SECOND.div_f64(self.rate(now) * SHARE)
    }

    fn rate(&self, now: Instant) -> f64 {
        let limit = f64::from(self.limit);
        self.cut.map_or(limit, |(at, rate)| {
            let seconds = now.saturating_duration_since(at).as_secs_f64();
            limit.min(rate + seconds * RECOVERY * limit)
        })
    }

    /// Corrects the pace.
    pub(super) fn hear(&mut self, heard: &Heard) {
        // What has come until now, came at the pace until now.
        self.pass(heard.received);
        if let Some(status) = heard.status {
            self.limit = status.limit.clamp(1, MOST);
            self.look_at(status, heard);
        }
        if let Some(hint) = heard.refused {
            self.slow_down(heard.received);
            // After a longer one calls had better fail, and say why, than stand in line.
            if hint <= LONGEST_HINT {
                self.close(heard.received + hint);
            }
        }
    }

    fn look_at(&mut self, status: RateLimitStatus, heard: &Heard) {
        let rest = Duration::from_secs(heard.rest).clamp(SECOND, LONGEST_WINDOW);
        let latest = heard.received + rest;
        let window = match self.window {
            // An answer that was overtaken by one of a later window says nothing any more.
            Some(known) if status.reset < known.reset && heard.sent < known.ends => return,
            Some(known) if status.reset == known.reset && heard.sent < known.ends => {
                Window { remaining: known.remaining.min(status.remaining), ..known }
            }
            known => {
                let ends = known.and_then(|known| known.end_of(status.reset));
                // A window that takes requests after its end was wrongly thought to be over.
                let ends = ends.filter(|ends| *ends > heard.sent).unwrap_or(latest);
                Window { reset: status.reset, remaining: status.remaining, ends: ends.min(latest) }
            }
        };
        self.window = Some(window);
        if window.remaining == 0 {
            self.close(window.ends);
        }
    }

    /// Refusals of requests that were under way together count once.
    fn slow_down(&mut self, now: Instant) {
        let together = self.cut.is_some_and(|(at, _)| now.saturating_duration_since(at) < SECOND);
        if !together {
            self.cut = Some((now, (self.rate(now) * CUT).max(1.0)));
        }
    }

    fn close(&mut self, until: Instant) {
        self.closed_until = self.closed_until.max(Some(until));
    }
}

impl Window {
    /// When a later window ends, if windows of a second follow each other until then.
    fn end_of(&self, reset: u64) -> Option<Instant> {
        let seconds = reset.checked_sub(self.reset).filter(|seconds| *seconds < 3600)?;
        Some(self.ends + Duration::from_secs(seconds))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[expect(clippy::disallowed_methods, reason = "a moment to count from; any will do")]
    fn start() -> Instant {
        Instant::now()
    }

    /// The turns of somebody who always asks as soon as it may be granted.
    fn turns(limiter: &mut Limiter, from: Instant, count: usize) -> Vec<Instant> {
        let mut now = from;
        let mut turns = Vec::new();
        while turns.len() < count {
            now = turn_after(limiter, now, || Duration::ZERO);
            turns.push(now);
        }
        turns
    }

    /// When somebody goes who comes now and wakes up a little late each time.
    fn turn_after(
        limiter: &mut Limiter,
        from: Instant,
        mut late: impl FnMut() -> Duration,
    ) -> Instant {
        let mut now = from;
        let Admission::Wait(due) = limiter.admit(now) else { return now };
        let mut place = limiter.join(due);
        loop {
            now = now.max(place.due) + late();
            if limiter.look(&mut place, now) == Admission::Go {
                return now;
            }
        }
    }

    fn answer(at: Instant, limit: u32, remaining: u32, reset: u64) -> Heard {
        let status = RateLimitStatus { limit, remaining, reset };
        Heard { sent: at, received: at, status: Some(status), rest: 1, refused: None }
    }

    #[test]
    fn turns_are_evenly_spread_from_the_first_one_on() {
        for limit in [1, 50, 100, 5000] {
            let (start, mut limiter) = (start(), Limiter::new(limit));
            let turns = turns(&mut limiter, start, 300);
            let gap = SECOND.div_f64(f64::from(limit) * SHARE);
            assert_eq!(turns[0], start);
            assert!(turns.windows(2).all(|pair| pair[1] - pair[0] == gap), "{limit}");
        }
    }

    /// A line of `count` who all came at the same time.
    fn line(limiter: &mut Limiter, now: Instant, count: usize) -> Vec<Place> {
        let join = |_| match limiter.admit(now) {
            Admission::Go => panic!("somebody has just gone"),
            Admission::Wait(due) => limiter.join(due),
        };
        (0..count).map(join).collect()
    }

    #[test]
    fn turns_come_to_a_line_one_by_one_and_whoever_comes_later_is_behind_it() {
        let (start, mut limiter) = (start(), Limiter::new(100));
        limiter.admit(start);
        let gap = limiter.even_gap(start);
        let mut places = line(&mut limiter, start, 50);
        for (i, place) in places.iter_mut().enumerate() {
            let turn = start + gap * u32::try_from(i + 1).unwrap();
            assert_eq!(place.due, turn);
            assert_eq!(limiter.look(place, turn - MS), Admission::Wait(turn));
            assert!(matches!(limiter.admit(turn), Admission::Wait(_)) || i == 49);
            assert_eq!(limiter.look(place, turn), Admission::Go);
        }
    }

    #[test]
    fn nobody_waits_for_those_who_never_come_back() {
        let (start, mut limiter) = (start(), Limiter::new(1));
        limiter.admit(start);
        let mut places = line(&mut limiter, start, 11);
        let mut last = places.pop().unwrap();
        let due = last.due;
        assert_eq!(limiter.look(&mut last, due), Admission::Go);
        // Who comes back late stands in line again, so that they do not go all at once.
        let late = due + 10 * MS;
        let mut goes = |place: &mut Place| limiter.look(place, late) == Admission::Go;
        assert!(!places.iter_mut().any(&mut goes));
        let dues: Vec<_> = places.iter().map(|place| place.due).collect();
        assert!(
            dues[0] > late && dues.windows(2).all(|pair| pair[1] > pair[0] + SECOND),
            "{dues:?}"
        );
    }

    #[test]
    fn a_place_that_is_given_back_is_the_next_one_s() {
        let (start, mut limiter) = (start(), Limiter::new(100));
        limiter.admit(start);
        let places = line(&mut limiter, start, 3);
        limiter.leave(&places[1]);
        let next = line(&mut limiter, start, 2);
        assert_eq!((next[0].due, next[1].number), (places[1].due, 4));
        for place in places.iter().take(1).chain(&places[2..]).chain(&next) {
            limiter.leave(place);
        }
        assert_eq!((limiter.given, limiter.vacant.len()), (0, 0));
        assert_eq!(limiter.admit(places[0].due), Admission::Go);
    }

    #[test]
    fn the_line_moves_at_the_pace_that_the_service_asks_for_meanwhile() {
        let (start, mut limiter) = (start(), Limiter::new(100));
        limiter.admit(start);
        let mut places = line(&mut limiter, start, 10);
        limiter.hear(&answer(start + MS, 1, 0, 1000));
        // The window is used up, and the next ones have one request each.
        let mut now = start + limiter.even_gap(start);
        for place in &mut places {
            assert_eq!(limiter.look(place, now - 2 * MS), Admission::Wait(now));
            assert_eq!(limiter.look(place, now), Admission::Go);
            now += limiter.even_gap(now);
        }
        // A refusal after its turn came, and before it woke up: it waits with the others.
        let mut place = line(&mut limiter, now - MS, 1).remove(0);
        limiter.pass(place.due);
        let refused = Heard { refused: Some(3 * SECOND), ..answer(place.due, 1, 0, 1001) };
        limiter.hear(&refused);
        let opens = place.due + 3 * SECOND;
        assert_eq!(limiter.look(&mut place, opens - 2 * SECOND), Admission::Wait(opens));
        assert_eq!(limiter.look(&mut place, opens), Admission::Go);
    }

    #[test]
    fn a_pause_saves_up_nothing() {
        let (start, mut limiter) = (start(), Limiter::new(100));
        turns(&mut limiter, start, 5);
        let later = start + Duration::from_secs(10);
        let turns = turns(&mut limiter, later, 3);
        assert!(
            turns[0] == later && turns[1] - turns[0] > 10 * MS && turns[2] - turns[1] > 10 * MS
        );
    }

    #[test]
    fn a_turn_taken_a_little_late_does_not_delay_the_next() {
        let (start, mut limiter) = (start(), Limiter::new(100));
        assert_eq!(limiter.admit(start), Admission::Go);
        assert_eq!(limiter.admit(start + 12 * MS), Admission::Go);
        let Admission::Wait(next) = limiter.admit(start + 13 * MS) else { panic!() };
        assert!(next < start + 21 * MS);
    }

    #[test]
    fn the_limit_is_what_the_service_says() {
        let (start, mut limiter) = (start(), Limiter::new(100));
        limiter.admit(start);
        limiter.hear(&answer(start, 10, 9, 1000));
        let gap = turns(&mut limiter, start, 1)[0] - start;
        assert!(gap > 100 * MS && gap < 102 * MS, "{gap:?}");
    }

    #[test]
    fn no_room_left_closes_until_the_window_ends() {
        let (start, mut limiter) = (start(), Limiter::new(100));
        limiter.admit(start);
        limiter.hear(&answer(start, 100, 40, 1000));
        limiter.hear(&answer(start + 300 * MS, 100, 0, 1000));
        // The window was there at the start, so it is over a second later.
        assert_eq!(turns(&mut limiter, start + 300 * MS, 1), [start + SECOND]);
        limiter.hear(&answer(start + SECOND, 100, 99, 1001));
        limiter.hear(&answer(start + 1500 * MS, 100, 0, 1001));
        assert_eq!(turns(&mut limiter, start + 1500 * MS, 1), [start + 2 * SECOND]);
    }

    #[test]
    fn a_window_s_end_is_learnt_from_the_first_answer_of_the_next() {
        let (start, mut limiter) = (start(), Limiter::new(100));
        limiter.hear(&answer(start, 100, 40, 1000));
        limiter.hear(&answer(start + 200 * MS, 100, 99, 1001));
        limiter.hear(&answer(start + 700 * MS, 100, 0, 1001));
        assert_eq!(turns(&mut limiter, start + 700 * MS, 1), [start + 1200 * MS]);
    }

    #[test]
    fn a_window_that_outlives_its_end_is_measured_anew() {
        let (start, mut limiter) = (start(), Limiter::new(100));
        limiter.hear(&answer(start, 100, 40, 1000));
        let late = start + 1500 * MS;
        limiter.hear(&answer(late, 100, 0, 1000));
        assert_eq!(turns(&mut limiter, late, 1), [late + SECOND]);
    }

    #[test]
    fn an_answer_that_was_overtaken_changes_nothing() {
        let (start, mut limiter) = (start(), Limiter::new(100));
        limiter.hear(&answer(start, 100, 40, 1000));
        limiter.hear(&answer(start + 200 * MS, 100, 99, 1001));
        limiter.hear(&Heard { received: start + 300 * MS, ..answer(start, 100, 0, 1000) });
        assert_eq!(limiter.admit(start + 300 * MS), Admission::Go);
    }

    #[test]
    fn what_others_leave_is_spread_over_the_rest_of_the_window() {
        let (start, mut limiter) = (start(), Limiter::new(100));
        limiter.admit(start);
        limiter.hear(&answer(start, 100, 19, 1000));
        let turns = turns(&mut limiter, start, 3);
        assert_eq!(turns[0], start + 50 * MS);
    }

    #[test]
    fn a_refusal_leaves_seven_tenths_of_the_rate_which_recovers() {
        let (start, mut limiter) = (start(), Limiter::new(100));
        let refused =
            Heard { status: None, refused: Some(Duration::ZERO), ..answer(start, 1, 1, 1) };
        for _ in 0..16 {
            limiter.hear(&refused);
        }
        assert!((limiter.rate(start) - 70.0).abs() < 1e-9, "those that come together count once");
        assert!((limiter.rate(start + SECOND) - 75.0).abs() < 1e-9);
        assert!((limiter.rate(start + 60 * SECOND) - 100.0).abs() < 1e-9);
        limiter.hear(&Heard { received: start + 2 * SECOND, ..refused });
        assert!((limiter.rate(start + 2 * SECOND) - 56.0).abs() < 1e-9);
    }

    #[test]
    fn a_refusal_with_a_hint_closes_for_that_time() {
        let (start, mut limiter) = (start(), Limiter::new(100));
        let refused = Some(3 * SECOND);
        limiter.hear(&Heard { status: None, refused, ..answer(start, 1, 1, 1) });
        assert_eq!(turns(&mut limiter, start, 1), [start + 3 * SECOND]);
        let mut limiter = Limiter::new(100);
        let refused = Some(31 * SECOND);
        limiter.hear(&Heard { status: None, refused, ..answer(start, 1, 1, 1) });
        assert_eq!(limiter.admit(start), Admission::Go, "calls fail and say why");
    }

    /// The service's own arithmetic: windows of a second, aligned to its clock.
    struct Service {
        limit: u32,
        second: u64,
        used: u32,
        refused: u32,
    }

    impl Service {
        fn take(&mut self, at: Duration) -> (RateLimitStatus, bool) {
            if self.second != at.as_secs() {
                (self.second, self.used) = (at.as_secs(), 0);
            }
            let granted = self.used < self.limit;
            self.used += u32::from(granted);
            self.refused += u32::from(!granted);
            let remaining = self.limit - self.used;
            (RateLimitStatus { limit: self.limit, remaining, reset: self.second + 1 }, granted)
        }
    }

    proptest! {
        #[test]
        fn whatever_the_phase_the_latency_and_the_jitter_nothing_is_refused(
            phase in 0_u64..1_000_000, latency in 0_u64..200_000, seed in any::<u64>(),
            limit in prop::sample::select(vec![50_u32, 100]),
        ) {
            let (start, mut limiter) = (start(), Limiter::new(limit));
            let mut service = Service { limit, second: 0, used: 0, refused: 0 };
            let mut rng = fastrand::Rng::with_seed(seed);
            let mut pending = std::collections::VecDeque::<Heard>::new();
            let (mut now, mut sent) = (start, 0);
            while sent < 1000 {
                while pending.front().is_some_and(|heard| heard.received <= now) {
                    limiter.hear(&pending.pop_front().unwrap());
                }
                now = turn_after(&mut limiter, now, || Duration::from_micros(rng.u64(0..2000)));
                sent += 1;
                let way = Duration::from_micros(latency + rng.u64(0..3000));
                let arrived = now.duration_since(start) + way / 2;
                let (status, granted) = service.take(Duration::from_micros(phase) + arrived);
                let refused = (!granted).then_some(Duration::ZERO);
                let received = now + way;
                pending.push_back(Heard { sent: now, received, status: Some(status), rest: 1, refused });
            }
            prop_assert_eq!(service.refused, 0);
            let rate = 999.0 / now.duration_since(start).as_secs_f64();
            prop_assert!(rate > f64::from(limit) * 0.97, "{} of {}", rate, limit);
        }

        #[test]
        fn whatever_is_heard_it_never_panics_and_always_opens_again(
            heard in prop::collection::vec(
                (any::<u32>(), any::<u32>(), any::<u64>(), any::<u64>(), 0_u64..100_000, any::<Option<u64>>()),
                0..50,
            ),
        ) {
            let (start, mut limiter) = (start(), Limiter::new(100));
            let mut now = start;
            for (limit, remaining, reset, rest, millis, refused) in heard {
                let refused = refused.map(Duration::from_secs);
                now += Duration::from_millis(millis);
                limiter.hear(&Heard { rest, refused, ..answer(now, limit, remaining, reset) });
                limiter.admit(now);
            }
            let limit = RateLimitStatus { limit: 100, remaining: 100, reset: 1 };
            now += Duration::from_secs(61);
            limiter.hear(&Heard { status: Some(limit), ..answer(now, 0, 0, 0) });
            let next = turns(&mut limiter, now, 1)[0];
            prop_assert!(next <= now + LONGEST_WINDOW + SECOND, "{:?}", next - now);
        }

        #[test]
        fn whoever_waits_leaves_or_never_comes_back_no_window_has_too_many(
            phase in 0_u64..1_000_000, seed in any::<u64>(),
        ) {
            let (start, mut limiter) = (start(), Limiter::new(100));
            let mut service = Service { limit: 100, second: 0, used: 0, refused: 0 };
            let mut rng = fastrand::Rng::with_seed(seed);
            let (mut now, mut places) = (start, Vec::<Place>::new());
            for _ in 0..2000 {
                now += Duration::from_micros(rng.u64(0..5000));
                let mut gone = 0;
                if let Admission::Wait(due) = limiter.admit(now) {
                    if places.len() < 30 {
                        places.push(limiter.join(due));
                    }
                } else {
                    gone += 1;
                }
                places.retain_mut(|place| match rng.u8(0..200) {
                    // Dropped, or left for good.
                    0 => { limiter.leave(place); false }
                    1 => false,
                    _ if place.due > now => true,
                    _ => {
                        let goes = limiter.look(place, now) == Admission::Go;
                        gone += u32::from(goes);
                        !goes
                    }
                });
                for _ in 0..gone {
                    service.take(Duration::from_micros(phase) + now.duration_since(start));
                }
                prop_assert!(limiter.vacant.len() <= 30 && limiter.given - limiter.passed < 200);
            }
            prop_assert_eq!(service.refused, 0);
        }

        #[test]
        fn no_two_turns_are_closer_than_the_pace_allows(
            waits in prop::collection::vec(0_u64..40, 2..200),
        ) {
            let (start, mut limiter) = (start(), Limiter::new(100));
            let (mut now, mut turns) = (start, Vec::new());
            for millis in waits {
                now += Duration::from_millis(millis);
                if limiter.admit(now) == Admission::Go {
                    turns.push(now);
                }
            }
            for (i, first) in turns.iter().enumerate() {
                for (gaps, later) in turns[i..].iter().enumerate() {
                    let least = 10 * MS * u32::try_from(gaps).unwrap();
                    prop_assert!(*later - *first + LATE >= least);
                }
            }
        }
    }
}
