//! The moment when the next request may be sent. Requests are evenly spaced, at a rate adjusted to the key's rate limit
//! as the service's responses report it. After a pause some are sent at once, and the next second has fewer turns in
//! return, so that no second exceeds the limit. The limiter decides; [`pacer`](super::pacer) waits.
//!
//! A request that has to wait gets a numbered ticket. Tickets get their turns in order, and turns pass with time alone,
//! so that a caller who stops polling does not delay those behind it.
//!
//! The functions are pure: the time is a parameter.

use std::{collections::BTreeSet, time::Duration};

use tokio::time::Instant;

use super::{response::RateLimitStatus, retry_after::MAX_WAIT};

/// The share of the limit that is used. Network and timers shift requests by some milliseconds; with the full
/// limit, one that arrives early would fall into a window that is already full, and be refused. 1 % of a window
/// is 10 ms.
const USED_SHARE: f64 = 0.99;
/// Factor on the rate after a 429. Other processes use the same key then. The rate falls by a factor and rises by a
/// constant, as TCP's does (AIMD): so processes that share a key approach equal shares without knowing of one another.
const RATE_FACTOR_AFTER_429: f64 = 0.7;
/// Share of the limit that the rate recovers each second: a single 429 is forgotten after 6 s. A faster recovery would
/// run into the next 429 sooner, each of which costs a request and a wait.
const RECOVERY_PER_SECOND: f64 = 0.05;
/// A turn that is taken late by at most this does not delay those behind it, so that lost milliseconds do not add up to
/// a lower rate. It is half of what [`USED_SHARE`] leaves of a window; the network has the other half.
const LATE_TURN_TOLERANCE: Duration = Duration::from_millis(5);
/// Maximum time between the first and the last request of a burst: a program starts its calls one after the other.
const BURST_LIFETIME: Duration = Duration::from_millis(20);
/// Maximum number of requests in a burst before a response has reported the rest of a window. Other processes with the
/// same key may start at that moment: five of them fit into the 50 requests of a production key.
const COLD_BURST: u32 = 10;
/// Time for which a turn stays valid after it came. It is the length of a window, so that turns which are taken late
/// and all at once still fit into one window.
const TURN_LIFETIME: Duration = SECOND;
/// A bound for what a response may claim, so that gaps stay longer than zero.
const MAX_REQUESTS_PER_SECOND: u32 = 100_000;
const SECOND: Duration = Duration::from_secs(1);
/// A bound for what a response may claim: no clock that is set wrongly stops a client for longer.
const MAX_WINDOW: Duration = Duration::from_secs(60);

/// The decision about a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Admission {
    /// The request may be sent, and has been counted.
    Go,
    /// The request must wait until then, as far as is known now.
    Wait(Instant),
}

/// A request's number in the queue.
#[derive(Debug)]
pub(super) struct Ticket {
    number: u64,
    /// The moment of its turn, as estimated when it was last checked.
    pub(super) due: Instant,
}

/// A response's data about the rate limit.
#[derive(Debug, Clone, Copy)]
pub(super) struct RateLimitFeedback {
    /// The moment when the request was sent.
    pub(super) sent: Instant,
    /// The moment when its response came.
    pub(super) received: Instant,
    pub(super) rate_limit: Option<RateLimitStatus>,
    /// Seconds from the response's own `Date` to the end of the window; 1 when not known.
    pub(super) window_seconds: u64,
    /// The response is a 429, with this `Retry-After`.
    pub(super) throttled: Option<Duration>,
}

/// The turns of the calls with an API key.
#[derive(Debug, Clone, Default)]
pub(super) struct Limiter {
    requests_per_second: u32,
    /// The part of the limit that is this client's.
    share: f64,
    /// Maximum number of requests in a burst.
    max_burst: u32,
    /// The time of the last 429 that counted, and the rate that it left.
    last_slowdown: Option<(Instant, f64)>,
    last_turn: Option<Instant>,
    paused_until: Option<Instant>,
    /// The service has asked for no requests until then.
    banned_until: Option<Instant>,
    window: Option<Window>,
    burst: Option<Burst>,
    repayment: Option<Repayment>,
    /// The numbers of the last ticket that was issued, and of the last whose turn has come.
    last_issued: u64,
    last_called: u64,
    /// Tickets that were returned before their turn: the next callers get them.
    returned: BTreeSet<u64>,
}

/// The newest window that the service has reported.
#[derive(Debug, Clone, Copy)]
struct Window {
    reset: u64,
    remaining: u32,
    /// The moment by which it has ended. The first estimate is late by up to a second, since `Date` and `reset` are
    /// whole seconds; each new window makes it more precise.
    ends: Instant,
}

/// A burst: requests that are sent at once after a pause.
#[derive(Debug, Clone, Copy)]
struct Burst {
    began: Instant,
    /// The length of the pause, in which a request could have been sent after each `gap`.
    idle: Duration,
    gap: Duration,
    /// Maximum number of requests in it, by the caller's settings and the rest of the service's window.
    max: u32,
    admitted: u32,
}

impl Burst {
    /// Returns `true` if another request may be sent: the pause has left an unused turn for it, and the burst still
    /// fits into a second.
    fn has_room(&self, even_gap: Duration, now: Instant) -> bool {
        now.saturating_duration_since(self.began) <= BURST_LIFETIME
            && self.admitted < self.max
            && self.gap * self.admitted <= self.idle
            && even_gap * (self.admitted + 1) <= SECOND
    }
}

/// The second after a burst, which has fewer turns.
#[derive(Debug, Clone, Copy)]
struct Repayment {
    until: Instant,
    /// The number of requests in the largest burst of that second.
    admitted: u32,
}

impl Repayment {
    /// Returns the gap between turns: the rest of the second after the burst, spread evenly.
    fn gap(&self, even_gap: Duration) -> Duration {
        let left = SECOND.saturating_sub(even_gap * self.admitted).max(Duration::from_millis(1));
        even_gap.div_f64(left.as_secs_f64()).min(SECOND)
    }
}

impl Limiter {
    pub(super) fn new(requests_per_second: u32, share: f64, max_burst: u32) -> Self {
        Self { requests_per_second, share, max_burst, ..Self::default() }
    }

    /// Decides whether a request without a ticket may be sent now. It must wait while others wait.
    pub(super) fn admit(&mut self, now: Instant) -> Admission {
        self.call_due_tickets(now);
        let turn = self.next_turn(now);
        if self.last_called < self.last_issued || (turn > now && !self.has_room_in_burst(now)) {
            let next = self.returned.first().copied().unwrap_or(self.last_issued + 1);
            return Admission::Wait(self.expected_turn(next, now));
        }
        if turn <= now {
            self.take_turn(turn, now);
        } else {
            self.extend_burst();
        }
        Admission::Go
    }

    fn take_turn(&mut self, turn: Instant, now: Instant) {
        let late = now.saturating_duration_since(turn);
        if late <= LATE_TURN_TOLERANCE && self.last_turn.is_some() {
            self.last_turn = Some(turn);
            return;
        }
        // Other processes use the same key if requests were refused lately.
        let is_alone = self.last_slowdown.is_none() || self.rate(now) >= self.limit();
        self.burst = is_alone.then(|| self.begin_burst(now));
        self.last_turn = Some(now);
    }

    fn begin_burst(&self, now: Instant) -> Burst {
        let even_gap = self.even_gap(now);
        let repayment = self.repayment.filter(|repayment| now < repayment.until);
        let gap = repayment.map_or(even_gap, |repayment| repayment.gap(even_gap));
        let since = self.last_turn.map(|last| last + gap).max(self.paused_until);
        let idle = since.map_or(SECOND, |since| now.saturating_duration_since(since));
        let window_max = match self.window {
            None => COLD_BURST,
            Some(window) if now < window.ends => window.remaining,
            // The next window is as large as the limit, which bounds every burst.
            Some(_) => u32::MAX,
        };
        Burst { began: now, idle, gap, max: window_max.min(self.max_burst), admitted: 1 }
    }

    fn extend_burst(&mut self) {
        let Some(burst) = &mut self.burst else { return };
        burst.admitted += 1;
        let before = self.repayment.filter(|before| burst.began < before.until);
        let admitted = before.map_or(burst.admitted, |before| before.admitted.max(burst.admitted));
        // The turns of a whole window take this long.
        let until = burst.began + SECOND.div_f64(USED_SHARE);
        self.repayment = Some(Repayment { until, admitted });
    }

    fn has_room_in_burst(&self, now: Instant) -> bool {
        self.paused_until.is_none_or(|resumes_at| resumes_at <= now)
            && self.burst.is_some_and(|burst| burst.has_room(self.even_gap(now), now))
    }

    /// Issues a ticket for a request that has to wait.
    pub(super) fn join_queue(&mut self, due: Instant) -> Ticket {
        let number = self.returned.pop_first().unwrap_or_else(|| {
            self.last_issued += 1;
            self.last_issued
        });
        Ticket { number, due }
    }

    /// Decides whether the turn of a ticket has come. A turn is lost if it was not taken in time, or if the service has
    /// since asked the client to stop; the ticket is then replaced by a new one at the end of the queue.
    pub(super) fn check(&mut self, ticket: &mut Ticket, now: Instant) -> Admission {
        self.call_due_tickets(now);
        if ticket.number > self.last_called {
            ticket.due = self.expected_turn(ticket.number, now);
            return Admission::Wait(ticket.due);
        }
        let is_late = now.saturating_duration_since(ticket.due) > TURN_LIFETIME;
        if !is_late && self.paused_until.is_none_or(|resumes_at| resumes_at <= now) {
            return Admission::Go;
        }
        let admission = self.admit(now);
        if let Admission::Wait(due) = admission {
            *ticket = self.join_queue(due);
        }
        admission
    }

    /// Takes a ticket back, so that a later request can use its turn.
    pub(super) fn leave_queue(&mut self, ticket: &Ticket) {
        if ticket.number > self.last_called {
            self.returned.insert(ticket.number);
        }
        while self.returned.remove(&self.last_issued) {
            self.last_issued -= 1;
        }
    }

    /// Advances the queue past the tickets whose turn has come, whether or not their callers take it.
    fn call_due_tickets(&mut self, now: Instant) {
        while self.last_called < self.last_issued {
            let turn = self.next_turn(now);
            if turn > now {
                return;
            }
            self.last_turn = Some(turn);
            self.last_called += 1;
            self.returned.remove(&self.last_called);
        }
    }

    /// Returns the moment of a ticket's turn, or a little earlier.
    fn expected_turn(&self, number: u64, now: Instant) -> Instant {
        let ahead = number.saturating_sub(self.last_called + 1);
        let ahead = u32::try_from(ahead).unwrap_or(u32::MAX);
        self.next_turn(now) + self.even_gap(now).saturating_mul(ahead)
    }

    /// Returns the moment when the next request may go.
    fn next_turn(&self, now: Instant) -> Instant {
        let Some(last) = self.last_turn else { return self.paused_until.unwrap_or(now) };
        let even_gap = self.even_gap(now);
        // Other processes use the same key, so the capacity that they leave is spread over the window.
        let spread = self.window.map(|window| {
            let left = window.ends.saturating_duration_since(last);
            (last + left / window.remaining.saturating_add(1), window.ends)
        });
        let repaid =
            self.repayment.map(|repayment| (last + repayment.gap(even_gap), repayment.until));
        // A longer gap ends with its period: the turn is at the end of the period, and not where an even gap would be.
        let slower = [spread, repaid].into_iter().flatten().map(|(turn, end)| turn.min(end));
        slower.chain(self.paused_until).fold(last + even_gap, Instant::max)
    }

    fn even_gap(&self, now: Instant) -> Duration {
        SECOND.div_f64(self.rate(now) * USED_SHARE)
    }

    /// Returns the requests per second, reduced by the last 429 and recovered since.
    fn rate(&self, now: Instant) -> f64 {
        let limit = self.limit();
        self.last_slowdown.map_or(limit, |(at, rate)| {
            let seconds = now.saturating_duration_since(at).as_secs_f64();
            limit.min(rate + seconds * RECOVERY_PER_SECOND * limit)
        })
    }

    /// Returns the time left until which the service has asked for no requests.
    pub(super) fn ban(&self, now: Instant) -> Duration {
        self.banned_until.map_or(Duration::ZERO, |until| until.saturating_duration_since(now))
    }

    fn limit(&self) -> f64 {
        f64::from(self.requests_per_second) * self.share
    }

    /// Adjusts the pace to a response.
    pub(super) fn observe(&mut self, feedback: &RateLimitFeedback) {
        // Turns before this response followed the rate that was known then.
        self.call_due_tickets(feedback.received);
        if let Some(rate_limit) = feedback.rate_limit {
            self.requests_per_second = rate_limit.limit.clamp(1, MAX_REQUESTS_PER_SECOND);
            self.observe_window(rate_limit, feedback);
        }
        if let Some(retry_after) = feedback.throttled {
            let until = feedback.received + retry_after.min(MAX_WAIT);
            self.slow_down(feedback.received);
            self.burst = None;
            self.pause_until(until);
            self.banned_until = self.banned_until.max(Some(until));
        }
    }

    fn observe_window(&mut self, rate_limit: RateLimitStatus, feedback: &RateLimitFeedback) {
        let remaining_time = Duration::from_secs(feedback.window_seconds).clamp(SECOND, MAX_WINDOW);
        let latest_end = feedback.received + remaining_time;
        let window = match self.window {
            // A response is out of date if one of a later window has overtaken it.
            Some(known) if rate_limit.reset < known.reset && feedback.sent < known.ends => return,
            Some(known) if rate_limit.reset == known.reset && feedback.sent < known.ends => {
                Window { remaining: known.remaining.min(rate_limit.remaining), ..known }
            }
            known => {
                let ends = known.and_then(|known| known.end_of(rate_limit.reset));
                // A window that counts a request sent after its estimated end had not ended by then.
                let ends = ends.filter(|ends| *ends > feedback.sent).unwrap_or(latest_end);
                let ends = ends.min(latest_end);
                Window { reset: rate_limit.reset, remaining: rate_limit.remaining, ends }
            }
        };
        self.window = Some(window);
        if let Some(burst) = &mut self.burst {
            burst.max = burst.max.min(burst.admitted.saturating_add(window.remaining));
        }
        if window.remaining == 0 {
            self.pause_until(window.ends);
        }
    }

    /// Reduces the rate. Requests that are in flight together are refused together, by the same full window. So
    /// refusals within a second count once: ten of them would otherwise leave 3 % of the rate.
    fn slow_down(&mut self, now: Instant) {
        let counted =
            self.last_slowdown.is_some_and(|(at, _)| now.saturating_duration_since(at) < SECOND);
        if !counted {
            self.last_slowdown = Some((now, (self.rate(now) * RATE_FACTOR_AFTER_429).max(1.0)));
        }
    }

    fn pause_until(&mut self, until: Instant) {
        self.paused_until = self.paused_until.max(Some(until));
    }
}

impl Window {
    /// Returns the end of a later window, if windows of a second follow one another until then. After an hour without
    /// a response the two clocks may have drifted apart, and the estimate starts again.
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

    /// Returns a limiter without bursts.
    fn evenly_paced(requests_per_second: u32) -> Limiter {
        Limiter::new(requests_per_second, 1.0, 1)
    }

    /// Takes turns as soon as each is due. Returns their times.
    fn take_turns(limiter: &mut Limiter, from: Instant, count: usize) -> Vec<Instant> {
        let mut now = from;
        let mut turns = Vec::new();
        while turns.len() < count {
            now = turn_after(limiter, now, || Duration::ZERO);
            turns.push(now);
        }
        turns
    }

    /// Returns the moment when a caller that arrives now gets its turn. It wakes up a little late each time.
    fn turn_after(
        limiter: &mut Limiter,
        from: Instant,
        mut late: impl FnMut() -> Duration,
    ) -> Instant {
        let mut now = from;
        let Admission::Wait(due) = limiter.admit(now) else { return now };
        let mut ticket = limiter.join_queue(due);
        loop {
            now = now.max(ticket.due) + late();
            if limiter.check(&mut ticket, now) == Admission::Go {
                return now;
            }
        }
    }

    fn feedback_at(at: Instant, limit: u32, remaining: u32, reset: u64) -> RateLimitFeedback {
        let status = RateLimitStatus { limit, remaining, reset };
        RateLimitFeedback {
            sent: at,
            received: at,
            rate_limit: Some(status),
            window_seconds: 1,
            throttled: None,
        }
    }

    fn refusal(at: Instant, retry_after: Duration) -> RateLimitFeedback {
        RateLimitFeedback {
            rate_limit: None,
            throttled: Some(retry_after),
            ..feedback_at(at, 1, 1, 1)
        }
    }

    #[test]
    fn turns_are_evenly_spaced_from_the_first_one() {
        for limit in [1, 50, 100, 5000] {
            let (start, mut limiter) = (start(), evenly_paced(limit));
            let turns = take_turns(&mut limiter, start, 300);
            let gap = SECOND.div_f64(f64::from(limit) * USED_SHARE);
            assert_eq!(turns[0], start);
            assert!(turns.windows(2).all(|pair| pair[1] - pair[0] == gap), "{limit}");
        }
    }

    /// Returns the tickets of `count` callers who all came at the same time.
    fn queue(limiter: &mut Limiter, now: Instant, count: usize) -> Vec<Ticket> {
        let join = |_| match limiter.admit(now) {
            Admission::Go => panic!("a request has just gone"),
            Admission::Wait(due) => limiter.join_queue(due),
        };
        (0..count).map(join).collect()
    }

    #[test]
    fn turns_are_given_in_the_order_of_the_queue() {
        let (start, mut limiter) = (start(), evenly_paced(100));
        limiter.admit(start);
        let gap = limiter.even_gap(start);
        let mut tickets = queue(&mut limiter, start, 50);
        for (i, ticket) in tickets.iter_mut().enumerate() {
            let turn = start + gap * u32::try_from(i + 1).unwrap();
            assert_eq!(ticket.due, turn);
            assert_eq!(limiter.check(ticket, turn - MS), Admission::Wait(turn));
            assert!(matches!(limiter.admit(turn), Admission::Wait(_)) || i == 49);
            assert_eq!(limiter.check(ticket, turn), Admission::Go);
        }
    }

    #[test]
    fn abandoned_tickets_delay_no_others() {
        let (start, mut limiter) = (start(), evenly_paced(1));
        limiter.admit(start);
        let mut tickets = queue(&mut limiter, start, 11);
        let mut last = tickets.pop().unwrap();
        let due = last.due;
        assert_eq!(limiter.check(&mut last, due), Admission::Go);
        // Tickets that come back late queue again, so that they do not all go at once.
        let late = due + 10 * MS;
        let mut goes = |ticket: &mut Ticket| limiter.check(ticket, late) == Admission::Go;
        assert!(!tickets.iter_mut().any(&mut goes));
        let dues: Vec<_> = tickets.iter().map(|ticket| ticket.due).collect();
        assert!(
            dues[0] > late && dues.windows(2).all(|pair| pair[1] > pair[0] + SECOND),
            "{dues:?}"
        );
    }

    #[test]
    fn a_returned_ticket_goes_to_the_next_caller() {
        let (start, mut limiter) = (start(), evenly_paced(100));
        limiter.admit(start);
        let tickets = queue(&mut limiter, start, 3);
        limiter.leave_queue(&tickets[1]);
        let next = queue(&mut limiter, start, 2);
        assert_eq!((next[0].due, next[1].number), (tickets[1].due, 4));
        for ticket in tickets.iter().take(1).chain(&tickets[2..]).chain(&next) {
            limiter.leave_queue(ticket);
        }
        assert_eq!((limiter.last_issued, limiter.returned.len()), (0, 0));
        assert_eq!(limiter.admit(tickets[0].due), Admission::Go);
    }

    #[test]
    fn the_queue_moves_at_the_rate_of_the_service() {
        let (start, mut limiter) = (start(), evenly_paced(100));
        limiter.admit(start);
        let mut tickets = queue(&mut limiter, start, 10);
        limiter.observe(&feedback_at(start + MS, 1, 0, 1000));
        // The window is used up, and the next ones have one request each.
        let mut now = start + limiter.even_gap(start);
        for ticket in &mut tickets {
            assert_eq!(limiter.check(ticket, now - 2 * MS), Admission::Wait(now));
            assert_eq!(limiter.check(ticket, now), Admission::Go);
            now += limiter.even_gap(now);
        }
        // A refusal came after its turn but before it woke up, so it waits with the others.
        let mut ticket = queue(&mut limiter, now - MS, 1).remove(0);
        limiter.call_due_tickets(ticket.due);
        let refused = RateLimitFeedback {
            throttled: Some(3 * SECOND),
            ..feedback_at(ticket.due, 1, 0, 1001)
        };
        limiter.observe(&refused);
        let resumes_at = ticket.due + 3 * SECOND;
        assert_eq!(
            limiter.check(&mut ticket, resumes_at - 2 * SECOND),
            Admission::Wait(resumes_at)
        );
        assert_eq!(limiter.check(&mut ticket, resumes_at), Admission::Go);
    }

    #[test]
    fn unused_turns_do_not_accumulate() {
        let (start, mut limiter) = (start(), evenly_paced(100));
        take_turns(&mut limiter, start, 5);
        let later = start + Duration::from_secs(10);
        let turns = take_turns(&mut limiter, later, 3);
        assert!(
            turns[0] == later && turns[1] - turns[0] > 10 * MS && turns[2] - turns[1] > 10 * MS
        );
    }

    #[test]
    fn a_turn_taken_a_little_late_does_not_delay_the_next() {
        let (start, mut limiter) = (start(), evenly_paced(100));
        assert_eq!(limiter.admit(start), Admission::Go);
        assert_eq!(limiter.admit(start + 12 * MS), Admission::Go);
        let Admission::Wait(next) = limiter.admit(start + 13 * MS) else { panic!() };
        assert!(next < start + 21 * MS);
    }

    #[test]
    fn the_next_turn_follows_from_the_windows_of_the_responses() {
        // A response: sent and received at these milliseconds; its limit, remaining and reset.
        type Responses<'a> = &'a [(u64, u64, u32, u32, u64)];
        let table: [(&str, Responses<'_>, u64, u64); 7] = [
            ("the limit is that of the responses", &[(0, 0, 10, 9, 1000)], 0, 101),
            ("what other clients leave is spread evenly", &[(0, 0, 100, 19, 1000)], 0, 50),
            (
                "a full window was there at the start, so it is over a second later",
                &[(0, 0, 100, 40, 1000), (300, 300, 100, 0, 1000)],
                300,
                1000,
            ),
            (
                "so is the next one",
                &[(0, 0, 100, 40, 1000), (1000, 1000, 100, 99, 1001), (1500, 1500, 100, 0, 1001)],
                1500,
                2000,
            ),
            (
                "the end of a window is learnt from the next one",
                &[(0, 0, 100, 40, 1000), (200, 200, 100, 99, 1001), (700, 700, 100, 0, 1001)],
                700,
                1200,
            ),
            (
                "a window that outlasts its estimate is measured again",
                &[(0, 0, 100, 40, 1000), (1500, 1500, 100, 0, 1000)],
                1500,
                2500,
            ),
            (
                "an outdated response changes nothing",
                &[(0, 0, 100, 40, 1000), (200, 200, 100, 99, 1001), (0, 300, 100, 0, 1000)],
                300,
                300,
            ),
        ];
        for (case, responses, now, turn) in table {
            let (start, mut limiter) = (start(), evenly_paced(100));
            let at = |milliseconds| start + Duration::from_millis(milliseconds);
            limiter.admit(start);
            for (sent, received, limit, remaining, reset) in responses {
                let feedback = feedback_at(at(*received), *limit, *remaining, *reset);
                limiter.observe(&RateLimitFeedback { sent: at(*sent), ..feedback });
            }
            let next = take_turns(&mut limiter, at(now), 1)[0] - start;
            assert_eq!(next.as_millis(), turn.into(), "{case}");
        }
    }

    #[test]
    fn a_refusal_lowers_the_rate_to_70_percent_for_a_while() {
        let (start, mut limiter) = (start(), evenly_paced(100));
        let refused = refusal(start, Duration::ZERO);
        for _ in 0..16 {
            limiter.observe(&refused);
        }
        assert!((limiter.rate(start) - 70.0).abs() < 1e-9, "those that come together count once");
        assert!((limiter.rate(start + SECOND) - 75.0).abs() < 1e-9);
        assert!((limiter.rate(start + 60 * SECOND) - 100.0).abs() < 1e-9);
        limiter.observe(&RateLimitFeedback { received: start + 2 * SECOND, ..refused });
        assert!((limiter.rate(start + 2 * SECOND) - 56.0).abs() < 1e-9);
    }

    #[test]
    fn a_refusal_with_retry_after_pauses_for_that_time() {
        for (asked, paused) in [(3, 3), (45, 45), (3600, 3600), (u64::MAX, 3600)] {
            let (start, mut limiter) = (start(), evenly_paced(100));
            let paused = paused * SECOND;
            limiter.observe(&refusal(start, Duration::from_secs(asked)));
            assert_eq!(limiter.ban(start), paused);
            assert_eq!(take_turns(&mut limiter, start, 1), [start + paused]);
            assert_eq!(limiter.ban(start + paused), Duration::ZERO);
        }
    }

    /// Returns how many of any number of requests are admitted at the same moment.
    fn count_admitted_at(limiter: &mut Limiter, now: Instant) -> u32 {
        (0..10_000).take_while(|_| limiter.admit(now) == Admission::Go).count().try_into().unwrap()
    }

    /// Returns a limiter that has observed a response, and a time after the end of its window.
    fn limiter_after_response(limit: u32, share: f64, max_burst: u32) -> (Instant, Limiter) {
        let (before, mut limiter) = (start(), Limiter::new(limit, share, max_burst));
        limiter.observe(&feedback_at(before, limit, limit - 1, 1000));
        (before + 2 * SECOND, limiter)
    }

    #[test]
    fn before_the_first_response_the_burst_is_small() {
        for (limit, max_burst, expected) in
            [(2, u32::MAX, 1), (50, u32::MAX, 10), (100, u32::MAX, 10), (100, 4, 4), (5000, 99, 10)]
        {
            let (start, mut limiter) = (start(), Limiter::new(limit, 1.0, max_burst));
            assert_eq!(count_admitted_at(&mut limiter, start), expected, "{limit}");
            assert_eq!(
                count_admitted_at(&mut limiter, start + 3 * SECOND),
                expected,
                "no response yet"
            );
        }
    }

    #[test]
    fn after_a_pause_a_burst_makes_up_for_missed_turns() {
        for (limit, whole) in [(1, 1), (2, 1), (50, 49), (100, 99), (5000, 4950)] {
            let (start, mut limiter) = limiter_after_response(limit, 1.0, u32::MAX);
            assert_eq!(count_admitted_at(&mut limiter, start), whole, "the first ones: {limit}");
            assert_eq!(count_admitted_at(&mut limiter, start + 3 * SECOND), whole, "{limit}");
        }
        for (pause, expected) in [(20, 1), (100, 9), (500, 49), (5000, 99)] {
            let (start, mut limiter) = limiter_after_response(100, 1.0, u32::MAX);
            let last = *take_turns(&mut limiter, start, 200).last().unwrap();
            assert_eq!(count_admitted_at(&mut limiter, last + pause * MS), expected, "{pause}");
        }
        // The same holds in the second after another burst, if that second has room.
        let (begun, mut limiter) = (start(), Limiter::new(50, 1.0, 8));
        let bursts = [0, 300, 600, 900].map(|ms| count_admitted_at(&mut limiter, begun + ms * MS));
        assert_eq!(bursts, [8; 4]);
        let (begun, mut limiter) = limiter_after_response(50, 1.0, 30);
        let bursts = [0, 300, 600, 900].map(|ms| count_admitted_at(&mut limiter, begun + ms * MS));
        assert!(bursts[0] == 30 && bursts.iter().sum::<u32>() <= 49, "{bursts:?}");
        for (share, max_burst, expected) in [(1.0, 8, 8), (1.0, 0, 1), (0.25, u32::MAX, 24)] {
            let (start, mut limiter) = limiter_after_response(100, share, max_burst);
            assert_eq!(count_admitted_at(&mut limiter, start), expected, "{share} {max_burst}");
        }
    }

    #[test]
    fn a_burst_is_limited_by_the_service_and_ends_at_a_refusal() {
        let (start, mut limiter) = (start(), Limiter::new(100, 1.0, u32::MAX));
        limiter.admit(start);
        limiter.observe(&feedback_at(start, 100, 7, 1000));
        assert_eq!(count_admitted_at(&mut limiter, start + 5 * MS), 7, "others use the window too");
        limiter.observe(&feedback_at(start + 6 * MS, 100, 5, 1000));
        assert_eq!(count_admitted_at(&mut limiter, start + 900 * MS), 5, "still");
        assert_eq!(count_admitted_at(&mut limiter, start + 5 * SECOND), 99, "it has ended");
        limiter.admit(start + 5 * SECOND);
        limiter.observe(&refusal(start + 5 * SECOND, Duration::ZERO));
        assert_eq!(count_admitted_at(&mut limiter, start + 5 * SECOND), 0);
        assert_eq!(count_admitted_at(&mut limiter, start + 7 * SECOND), 1);
        assert_eq!(count_admitted_at(&mut limiter, start + 20 * SECOND), 99, "it is forgotten");
    }

    #[test]
    fn a_window_that_begins_with_a_burst_has_fewer_turns() {
        for calls in [2_u32, 8, 30, 49, 60] {
            let (start, mut limiter) = limiter_after_response(50, 1.0, u32::MAX);
            let mut turns: Vec<_> =
                (0..calls).map(|_| turn_after(&mut limiter, start, || Duration::ZERO)).collect();
            let last = *turns.last().unwrap();
            turns.extend(self::take_turns(&mut limiter, last, 150));
            for (i, first) in turns.iter().enumerate() {
                let second = turns[i..].iter().take_while(|turn| **turn < *first + SECOND);
                assert!(second.count() <= 50, "{calls}, from {i}");
            }
            let took = *turns.last().unwrap() - start;
            assert!(took < Duration::from_secs_f64((f64::from(calls) + 150.0) / 49.0), "{took:?}");
        }
    }

    #[test]
    fn missed_turns_are_not_made_up_in_the_next_window() {
        let (start, mut limiter) = (start(), evenly_paced(100));
        limiter.admit(start);
        limiter.observe(&feedback_at(start, 100, 1, 1000));
        let mut tickets = queue(&mut limiter, start, 50);
        let now = start + SECOND + 5 * MS;
        let goes = tickets.iter_mut().map(|ticket| limiter.check(ticket, now));
        assert!(
            goes.filter(|admission| *admission == Admission::Go).count() < 10,
            "and not as many as fit into a second"
        );
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
            // Requests overtake each other; the last of a second may count in the next.
            if self.second < at.as_secs() {
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
        fn no_request_is_refused_at_any_phase_latency_or_jitter(
            phase in 0_u64..1_000_000, latency in 0_u64..200_000, seed in any::<u64>(),
            limit in prop::sample::select(vec![50_u32, 100]),
        ) {
            let (start, mut limiter) = (start(), evenly_paced(limit));
            let mut service = Service { limit, second: 0, used: 0, refused: 0 };
            let mut rng = fastrand::Rng::with_seed(seed);
            let mut pending = std::collections::VecDeque::<RateLimitFeedback>::new();
            let (mut now, mut sent) = (start, 0);
            while sent < 1000 {
                while pending.front().is_some_and(|feedback| feedback.received <= now) {
                    limiter.observe(&pending.pop_front().unwrap());
                }
                now = turn_after(&mut limiter, now, || Duration::from_micros(rng.u64(0..2000)));
                sent += 1;
                let way = Duration::from_micros(latency + rng.u64(0..3000));
                let arrived = now.duration_since(start) + way / 2;
                let (status, granted) = service.take(Duration::from_micros(phase) + arrived);
                let refused = (!granted).then_some(Duration::ZERO);
                let received = now + way;
                pending.push_back(RateLimitFeedback { sent: now, received, rate_limit: Some(status), window_seconds: 1, throttled: refused });
            }
            prop_assert_eq!(service.refused, 0);
            let rate = 999.0 / now.duration_since(start).as_secs_f64();
            prop_assert!(rate > f64::from(limit) * 0.97, "{} of {}", rate, limit);
        }

        #[test]
        fn no_request_is_refused_for_any_number_of_callers(
            phase in 0_u64..1_000_000, latency in 0_u64..200_000, seed in any::<u64>(),
            limit in prop::sample::select(vec![7_u32, 50, 100]),
        ) {
            let (start, mut limiter) = (start(), Limiter::new(limit, 1.0, u32::MAX));
            let mut service = Service { limit, second: 0, used: 0, refused: 0 };
            let mut rng = fastrand::Rng::with_seed(seed);
            let mut pending = std::collections::VecDeque::<RateLimitFeedback>::new();
            let mut now = start;
            for _ in 0..20 {
                now += Duration::from_micros(rng.u64(0..2_500_000));
                for _ in 0..rng.u32(1..2 * limit) {
                    while pending.front().is_some_and(|feedback| feedback.received <= now) {
                        limiter.observe(&pending.pop_front().unwrap());
                    }
                    now = turn_after(&mut limiter, now, || Duration::ZERO);
                    let way = Duration::from_micros(latency + rng.u64(0..3000));
                    let arrived = now.duration_since(start) + way / 2;
                    let (status, granted) = service.take(Duration::from_micros(phase) + arrived);
                    let throttled = (!granted).then_some(Duration::ZERO);
                    pending.push_back(RateLimitFeedback { sent: now, received: now + way, rate_limit: Some(status), window_seconds: 1, throttled });
                }
            }
            prop_assert_eq!(service.refused, 0);
        }

        #[test]
        fn no_response_causes_a_panic_or_an_endless_pause(
            feedback in prop::collection::vec(
                (any::<u32>(), any::<u32>(), any::<u64>(), any::<u64>(), 0_u64..100_000, any::<Option<u64>>()),
                0..50,
            ),
        ) {
            let (start, mut limiter) = (start(), evenly_paced(100));
            let mut now = start;
            for (limit, remaining, reset, window_seconds, millis, throttled) in feedback {
                let throttled = throttled.map(Duration::from_secs);
                now += Duration::from_millis(millis);
                limiter.observe(&RateLimitFeedback { window_seconds, throttled, ..feedback_at(now, limit, remaining, reset) });
                limiter.admit(now);
            }
            let limit = RateLimitStatus { limit: 100, remaining: 100, reset: 1 };
            now += MAX_WAIT + SECOND;
            limiter.observe(&RateLimitFeedback { rate_limit: Some(limit), ..feedback_at(now, 0, 0, 0) });
            let next = take_turns(&mut limiter, now, 1)[0];
            prop_assert!(next <= now + MAX_WINDOW + SECOND, "{:?}", next - now);
        }

        #[test]
        fn no_window_is_exceeded_if_callers_leave(
            phase in 0_u64..1_000_000, seed in any::<u64>(),
        ) {
            let (start, mut limiter) = (start(), evenly_paced(100));
            let mut service = Service { limit: 100, second: 0, used: 0, refused: 0 };
            let mut rng = fastrand::Rng::with_seed(seed);
            let (mut now, mut tickets) = (start, Vec::<Ticket>::new());
            for _ in 0..2000 {
                now += Duration::from_micros(rng.u64(0..5000));
                let mut gone = 0;
                if let Admission::Wait(due) = limiter.admit(now) {
                    if tickets.len() < 30 {
                        tickets.push(limiter.join_queue(due));
                    }
                } else {
                    gone += 1;
                }
                tickets.retain_mut(|ticket| match rng.u8(0..200) {
                    // Dropped, or left for good.
                    0 => { limiter.leave_queue(ticket); false }
                    1 => false,
                    _ if ticket.due > now => true,
                    _ => {
                        let goes = limiter.check(ticket, now) == Admission::Go;
                        gone += u32::from(goes);
                        !goes
                    }
                });
                for _ in 0..gone {
                    service.take(Duration::from_micros(phase) + now.duration_since(start));
                }
                prop_assert!(limiter.returned.len() <= 30 && limiter.last_issued - limiter.last_called < 200);
            }
            prop_assert_eq!(service.refused, 0);
        }

        #[test]
        fn no_two_turns_are_closer_than_the_pace_allows(
            waits in prop::collection::vec(0_u64..40, 2..200),
        ) {
            let (start, mut limiter) = (start(), evenly_paced(100));
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
                    prop_assert!(*later - *first + LATE_TURN_TOLERANCE >= least);
                }
            }
        }
    }
}
