//! A rate limit that several servers keep together: the part of it that decides (docs/operations.md, What several
//! servers share). [`super::limit`] is the same limit on one server, and its windows are these.
//!
//! For each key and second the database counts the requests that servers have taken from the limit. To ask it for each
//! request would make every one of them wait, so each server has some leeway, the same two times ([`Share::spare`]):
//!
//! * it begins a second with so many requests that it has not asked for. What it admits so is added to the count with
//!   its next claim; if none comes, or all was taken meanwhile, that much is admitted beyond the limit;
//! * it holds so many that it has asked for and not used yet, and asks for more before they run out. They die with
//!   the second, and are missing to a caller of another server.
//!
//! All others together have at most a tenth of the limit of either kind. So a second admits at most
//! `limit + max(limit / 10, servers - 1)` requests, and no caller is refused before nine tenths of the limit are used,
//! whichever servers it calls. What is not covered by the leeway waits for a claim: those that wait ask together, and
//! one question is on its way at a time, so that a flood costs no more questions than round trips.

use std::collections::{BTreeMap, HashMap};

use super::limit::{Admission, Quota};
use crate::clock::Millis;

/// The part of a limit that the other servers together may have in hand unused, or admit unasked.
const LEEWAY: u32 = 10;

/// A key whose requests are counted over all servers, by its row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SharedKey {
    /// An API key.
    Api(i64),
    /// A carrier key.
    Carrier(i64),
}

/// What a server asks of the database for one key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Claim {
    /// For which second of the database's clock.
    pub second: i64,
    /// Whose requests.
    pub key: SharedKey,
    /// The most of them in that second, on all servers.
    pub limit: u32,
    /// Requests that were admitted without asking: they are counted in any case.
    pub admitted: u32,
    /// How many more are asked for.
    pub wanted: u32,
}

/// What the database answers to a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Grant {
    /// How many of those that were asked for; fewer when there are no more.
    pub granted: u32,
    /// What all servers have taken of the second.
    pub taken: u32,
}

/// How many servers there are, and the time in the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Meeting {
    /// This one too.
    pub servers: u32,
    /// By the database's clock.
    pub now: Millis,
}

/// Claims that are to be asked of the database together, and who waits for each.
#[derive(Debug)]
pub(crate) struct Question<T> {
    claims: Vec<Claim>,
    tickets: Vec<Vec<T>>,
}

impl<T> Question<T> {
    /// What is to be asked.
    pub(crate) fn claims(&self) -> &[Claim] {
        &self.claims
    }
}

/// What the servers' share of a limit is.
#[derive(Debug, Clone, Copy)]
struct Share {
    limit: u32,
    servers: u32,
}

impl Share {
    /// How much one server may hold that it does not use.
    fn spare(self) -> u32 {
        match self.servers.checked_sub(1) {
            None | Some(0) => 0,
            Some(others) => self.limit / LEEWAY / others,
        }
    }

    /// With how many requests a server begins a second unasked. At least one: a key that is hardly used waits for
    /// nothing, however many servers there are.
    fn unasked(self) -> u32 {
        if self.servers <= 1 { self.limit } else { self.spare().max(1).min(self.limit) }
    }

    /// What is left to a server that cannot ask.
    fn alone(self) -> u32 {
        (self.limit / self.servers.max(1)).max(1).min(self.limit)
    }
}

/// Whether the database has more to give.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Pool {
    #[default]
    Open,
    /// All is taken.
    Empty,
    /// It did not answer.
    Unreachable,
}

/// A key's use of the present second.
#[derive(Debug, Default)]
struct Usage {
    /// Requests that were admitted here.
    admitted: u32,
    /// Of the database's count what this server has taken.
    taken: u32,
    /// What the others have, as far as is known.
    others: u32,
    pool: Pool,
    /// More is asked for already, or is about to be.
    is_asked: bool,
}

impl Usage {
    /// Whether a request is admitted; none when that has to be asked.
    fn take(&mut self, share: Share) -> Option<bool> {
        let is_admitted = self.admitted < self.taken
            || match self.pool {
                Pool::Empty => false,
                Pool::Unreachable => self.admitted < share.alone(),
                Pool::Open if self.admitted < share.unasked() => true,
                Pool::Open if share.servers <= 1 => false,
                Pool::Open => return None,
            };
        if is_admitted {
            self.admitted += 1;
        }
        Some(is_admitted)
    }

    /// What was taken and not used yet.
    fn in_hand(&self) -> u32 {
        self.taken.saturating_sub(self.admitted)
    }

    /// Whether it is time to ask for more, so that the next requests need not wait.
    fn is_low(&self, share: Share) -> bool {
        let left = self.taken.max(share.unasked()).saturating_sub(self.admitted);
        self.pool == Pool::Open && !self.is_asked && share.spare() > 0 && left <= share.spare() / 2
    }

    fn settle(&mut self, claim: Claim, grant: Option<Grant>) {
        self.is_asked = false;
        let Some(Grant { granted, taken }) = grant else {
            self.pool = Pool::Unreachable;
            return;
        };
        self.taken += claim.admitted + granted;
        self.others = taken.saturating_sub(self.taken);
        self.pool = if granted < claim.wanted { Pool::Empty } else { Pool::Open };
    }

    fn quota(&self, limit: u32, second: i64) -> Quota {
        let remaining = limit.saturating_sub(self.others).saturating_sub(self.admitted);
        Quota { limit, remaining, reset: second + 1 }
    }
}

/// A request that waits for a claim.
#[derive(Debug)]
struct Waiting<T> {
    second: i64,
    key: SharedKey,
    limit: u32,
    ticket: T,
}

/// The use of the present second by the keys that called this server. `T` is by what a request that waits is
/// answered.
#[derive(Debug)]
pub(crate) struct SharedWindows<T> {
    second: i64,
    usage: HashMap<SharedKey, Usage>,
    /// The same of the second before: who waits across its end counts in the one in which the request came.
    before: HashMap<SharedKey, Usage>,
    servers: u32,
    /// How far the database's clock is ahead of ours: all servers' seconds begin by that clock.
    ahead: i64,
    waiting: Vec<Waiting<T>>,
    /// Keys that are about to run out, with their limits.
    low: Vec<(SharedKey, u32)>,
    is_asking: bool,
}

impl<T> Default for SharedWindows<T> {
    fn default() -> Self {
        Self {
            second: i64::MIN,
            usage: HashMap::new(),
            before: HashMap::new(),
            servers: 1,
            ahead: 0,
            waiting: Vec::new(),
            low: Vec::new(),
            is_asking: false,
        }
    }
}

impl<T> SharedWindows<T> {
    /// Counts a request against `limit`. None when the database has to be asked: then it is to [wait](Self::wait).
    pub(crate) fn take(&mut self, key: SharedKey, limit: u32, now: Millis) -> Option<Admission> {
        self.turn_to(now.plus(self.ahead).second());
        let share = self.share(limit);
        let usage = self.usage.entry(key).or_default();
        let is_admitted = usage.take(share);
        if usage.is_low(share) {
            usage.is_asked = true;
            self.low.push((key, limit));
        }
        is_admitted.map(|is_admitted| admission(is_admitted, usage.quota(limit, self.second)))
    }

    /// Counts `more` for a request that was admitted and stands for several. It may go beyond the limit, so that a limit
    /// below its size does not keep it out for ever, but not when the limit is exceeded already: those that are on
    /// their way at the same time go beyond it once, not each of them.
    pub(crate) fn take_more(
        &mut self,
        key: SharedKey,
        (limit, more): (u32, u32),
        now: Millis,
    ) -> Admission {
        self.turn_to(now.plus(self.ahead).second());
        let usage = self.usage.entry(key).or_default();
        let is_admitted = usage.others.saturating_add(usage.admitted) <= limit;
        if is_admitted {
            usage.admitted = usage.admitted.saturating_add(more);
            // The other servers are to count it too, now rather than with the next request, which may not come.
            if self.servers > 1 && !usage.is_asked {
                usage.is_asked = true;
                self.low.push((key, limit));
            }
        }
        admission(is_admitted, usage.quota(limit, self.second))
    }

    /// What is left, without counting anything.
    pub(crate) fn quota(&self, key: SharedKey, limit: u32, now: Millis) -> Quota {
        let second = now.plus(self.ahead).second();
        let usage = self.usage.get(&key).filter(|_| second == self.second);
        usage.map_or(Quota { limit, remaining: limit, reset: second + 1 }, |usage| {
            usage.quota(limit, second)
        })
    }

    /// Lets a request wait that could not be decided.
    pub(crate) fn wait(&mut self, key: SharedKey, limit: u32, ticket: T) {
        self.waiting.push(Waiting { second: self.second, key, limit, ticket });
    }

    /// What is to be asked now; none while an answer is awaited. It is to be [answered](Self::answer), whatever
    /// comes of it.
    pub(crate) fn question(&mut self) -> Option<Question<T>> {
        if self.is_asking || (self.waiting.is_empty() && self.low.is_empty()) {
            return None;
        }
        self.is_asking = true;
        let mut by_key = BTreeMap::<(i64, SharedKey), (u32, Vec<T>)>::new();
        for Waiting { second, key, limit, ticket } in self.waiting.drain(..) {
            by_key.entry((second, key)).or_insert_with(|| (limit, Vec::new())).1.push(ticket);
        }
        for (key, limit) in self.low.drain(..) {
            by_key.entry((self.second, key)).or_insert_with(|| (limit, Vec::new()));
        }
        let mut question = Question { claims: Vec::new(), tickets: Vec::new() };
        for ((second, key), (limit, tickets)) in by_key {
            let waiting = u32::try_from(tickets.len()).unwrap_or(u32::MAX);
            question.claims.push(self.claim((second, key), limit, waiting));
            question.tickets.push(tickets);
        }
        Some(question)
    }

    fn claim(&mut self, (second, key): (i64, SharedKey), limit: u32, waiting: u32) -> Claim {
        let spare = self.share(limit).spare();
        let (mut admitted, mut wanted) = (0, waiting);
        if let Some(usage) = self.usage_of(second, key) {
            usage.is_asked = true;
            admitted = usage.admitted.saturating_sub(usage.taken);
            wanted = waiting.saturating_add(spare).saturating_sub(usage.in_hand());
        }
        Claim { second, key, limit, admitted, wanted }
    }

    /// Takes the answer to a question, with a grant for each claim; none when the database gave no answer. Returns
    /// what became of those who waited.
    pub(crate) fn answer(
        &mut self,
        question: Question<T>,
        grants: Option<&[Grant]>,
    ) -> Vec<(T, Admission)> {
        self.is_asking = false;
        let mut answered = Vec::new();
        let grants = (0..).map(|place| grants.and_then(|grants| grants.get(place)).copied());
        for ((claim, tickets), grant) in
            question.claims.into_iter().zip(question.tickets).zip(grants)
        {
            let share = self.share(claim.limit);
            let mut forgotten = Usage::default();
            let usage = self.usage_of(claim.second, claim.key).unwrap_or(&mut forgotten);
            usage.settle(claim, grant);
            for ticket in tickets {
                // What was granted covers all that waited, or the pool is empty: nothing is left to be asked.
                let is_admitted = usage.take(share).unwrap_or(false);
                let quota = usage.quota(claim.limit, claim.second);
                answered.push((ticket, admission(is_admitted, quota)));
            }
        }
        answered
    }

    fn usage_of(&mut self, second: i64, key: SharedKey) -> Option<&mut Usage> {
        if second == self.second {
            self.usage.get_mut(&key)
        } else if second.checked_add(1) == Some(self.second) {
            self.before.get_mut(&key)
        } else {
            None
        }
    }

    /// Takes note of how many servers there are, and of the database's clock, which said so at `at` by ours.
    pub(crate) fn meet(&mut self, meeting: Meeting, at: Millis) {
        self.servers = meeting.servers.max(1);
        // One server alone keeps its own time, as a file's does.
        self.ahead = if self.servers > 1 { meeting.now.0 - at.0 } else { 0 };
    }

    /// Forgets what was counted.
    pub(crate) fn clear(&mut self) {
        self.second = i64::MIN;
        self.usage.clear();
        self.before.clear();
        self.low.clear();
    }

    const fn share(&self, limit: u32) -> Share {
        Share { limit, servers: self.servers }
    }

    fn turn_to(&mut self, second: i64) {
        // As in `Windows`: one that began just before the second turned counts in the new one.
        if second == self.second || second.checked_add(1) == Some(self.second) {
            return;
        }
        std::mem::swap(&mut self.usage, &mut self.before);
        if self.second.checked_add(1) != Some(second) {
            self.before.clear();
        }
        self.second = second;
        self.usage.clear();
        self.low.clear();
    }
}

fn admission(is_admitted: bool, quota: Quota) -> Admission {
    if is_admitted {
        Admission::Granted(quota)
    } else {
        Admission::Refused(Quota { remaining: 0, ..quota })
    }
}

#[cfg(test)]
pub(crate) mod tests;
