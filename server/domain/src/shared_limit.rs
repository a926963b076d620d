//! Decides on requests under a rate limit that several servers share (docs/operations.md, What several servers share).
//! [`super::limit`] is the same limit on one server, with the same windows.
//!
//! For each key and second, the database counts the requests that servers have claimed. If every request needed a
//! claim, every request would have to wait, so each server has some leeway (see `LEEWAY_DIVISOR`) in two ways:
//!
//! * It may admit that many requests in a second without a claim. Its next claim counts them. If no claim follows, or
//!   if the limit is used up before, they are admitted beyond the limit.
//! * It may hold that many claimed requests unused, and claims more before they run out. Unused claims expire with the
//!   second, and are lost to callers of other servers.
//!
//! In either way, all other servers together have at most a tenth of the limit. So a second admits at most
//! `limit + max(limit / 10, servers - 1)` requests, and no caller is refused before nine tenths of the limit are used,
//! whichever servers it calls. Requests beyond the leeway wait for a claim. They are claimed in one batch, and only one
//! batch is in flight at a time, so that a flood costs no more queries than round trips.

use std::collections::{BTreeMap, HashMap};

use super::limit::{Admission, Quota};
use crate::Millis;

/// The divisor for the part of a limit that the other servers together may hold unused, or admit without a claim.
const LEEWAY_DIVISOR: u32 = 10;

/// A key whose requests are counted across all servers, by its row id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SharedKey {
    /// An API key.
    Api(i64),
    /// A carrier key.
    Carrier(i64),
}

/// A server's claim to a part of a key's limit, sent to the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LimitClaim {
    /// The Unix second, by the database's clock.
    pub second: i64,
    /// The key that is limited.
    pub key: SharedKey,
    /// Maximum number of requests in that second on all servers.
    pub limit: u32,
    /// The requests that were admitted without a claim. They are counted in any case.
    pub admitted: u32,
    /// The number of further requests that are claimed.
    pub wanted: u32,
}

/// The database's response to a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LimitGrant {
    /// The number of claimed requests that are granted; fewer if they would exceed the limit.
    pub granted: u32,
    /// The number of requests that all servers have taken in the second.
    pub taken: u32,
}

impl LimitClaim {
    /// Grants the claim, given the requests that all servers have taken in its second, and adds the grant to them. The
    /// databases do the same in SQL.
    pub fn grant(&self, taken: &mut u32) -> LimitGrant {
        let left = self.limit.saturating_sub(*taken + self.admitted);
        let granted = self.wanted.min(left);
        *taken += self.admitted + granted;
        LimitGrant { granted, taken: *taken }
    }
}

/// The number of servers on a database, and the time by its clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ServerCount {
    /// The number of servers, including this one.
    pub servers: u32,
    /// The time by the database's clock.
    pub now: Millis,
}

/// Claims that are sent to the database together, with the requests that wait for each.
#[derive(Debug)]
pub struct ClaimBatch<T> {
    claims: Vec<LimitClaim>,
    tickets: Vec<Vec<T>>,
}

impl<T> ClaimBatch<T> {
    /// Returns the claims to send.
    pub fn claims(&self) -> &[LimitClaim] {
        &self.claims
    }
}

/// A limit and the number of servers that share it.
#[derive(Debug, Clone, Copy)]
struct LimitShare {
    limit: u32,
    servers: u32,
}

impl LimitShare {
    /// Returns how many requests one server may hold unused.
    fn max_unused(self) -> u32 {
        match self.servers.checked_sub(1) {
            None | Some(0) => 0,
            Some(others) => self.limit / LEEWAY_DIVISOR / others,
        }
    }

    /// Returns how many requests a server may admit in a second without a claim. At least one, so that a key that is
    /// seldom used never waits, however many servers there are.
    fn unclaimed_limit(self) -> u32 {
        if self.servers <= 1 { self.limit } else { self.max_unused().max(1).min(self.limit) }
    }

    /// Returns the limit of a server that cannot reach the database.
    fn offline_limit(self) -> u32 {
        (self.limit / self.servers.max(1)).max(1).min(self.limit)
    }
}

/// The state of the limit in the database, as far as is known.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum LimitState {
    /// Requests may be left.
    #[default]
    Open,
    /// The limit is used up.
    UsedUp,
    /// The database did not respond.
    Unreachable,
}

/// The requests that a key made in the current second.
#[derive(Debug, Default)]
struct KeyUsage {
    /// The requests that this server admitted.
    admitted: u32,
    /// The number of requests in the database's count that this server has taken.
    taken: u32,
    /// The number of requests that the other servers have taken, as far as is known.
    others: u32,
    state: LimitState,
    /// `true` if a claim is in flight or about to be sent.
    is_claiming: bool,
}

impl KeyUsage {
    /// Counts a request if it is admitted. Returns `None` if that needs a claim.
    fn admit(&mut self, share: LimitShare) -> Option<bool> {
        let is_admitted = self.admitted < self.taken
            || match self.state {
                LimitState::UsedUp => false,
                LimitState::Unreachable => self.admitted < share.offline_limit(),
                LimitState::Open if self.admitted < share.unclaimed_limit() => true,
                LimitState::Open if share.servers <= 1 => false,
                LimitState::Open => return None,
            };
        if is_admitted {
            self.admitted += 1;
        }
        Some(is_admitted)
    }

    /// Returns how many requests are taken and not used yet.
    fn unused(&self) -> u32 {
        self.taken.saturating_sub(self.admitted)
    }

    /// Returns `true` if it is time to claim more, so that the next requests need not wait.
    fn is_low(&self, share: LimitShare) -> bool {
        let left = self.taken.max(share.unclaimed_limit()).saturating_sub(self.admitted);
        self.state == LimitState::Open
            && !self.is_claiming
            && share.max_unused() > 0
            && left <= share.max_unused() / 2
    }

    fn settle(&mut self, claim: LimitClaim, grant: Option<LimitGrant>) {
        self.is_claiming = false;
        let Some(LimitGrant { granted, taken }) = grant else {
            self.state = LimitState::Unreachable;
            return;
        };
        self.taken += claim.admitted + granted;
        self.others = taken.saturating_sub(self.taken);
        self.state = if granted < claim.wanted { LimitState::UsedUp } else { LimitState::Open };
    }

    fn quota(&self, limit: u32, second: i64) -> Quota {
        let remaining = limit.saturating_sub(self.others).saturating_sub(self.admitted);
        Quota { limit, remaining, reset: second + 1 }
    }
}

/// A request that waits for a claim.
#[derive(Debug)]
struct WaitingRequest<T> {
    second: i64,
    key: SharedKey,
    limit: u32,
    ticket: T,
}

/// The requests that each key made at this server in the current second. `T` identifies a waiting request.
#[derive(Debug)]
pub struct SharedRateLimitWindows<T> {
    second: i64,
    usage: HashMap<SharedKey, KeyUsage>,
    /// The requests of the previous second: a request that is still waiting when its second ends counts in it.
    previous: HashMap<SharedKey, KeyUsage>,
    servers: u32,
    /// The milliseconds by which the database's clock is ahead of ours. All servers count seconds by that clock.
    clock_offset: i64,
    waiting: Vec<WaitingRequest<T>>,
    /// Keys that are about to run out, with their limits.
    low: Vec<(SharedKey, u32)>,
    is_in_flight: bool,
}

impl<T> Default for SharedRateLimitWindows<T> {
    fn default() -> Self {
        Self {
            second: i64::MIN,
            usage: HashMap::new(),
            previous: HashMap::new(),
            servers: 1,
            clock_offset: 0,
            waiting: Vec::new(),
            low: Vec::new(),
            is_in_flight: false,
        }
    }
}

impl<T> SharedRateLimitWindows<T> {
    /// Counts a request against `limit`. Returns `None` if it needs a claim: the caller must then
    /// [enqueue](Self::enqueue) it.
    pub fn admit(&mut self, key: SharedKey, limit: u32, now: Millis) -> Option<Admission> {
        self.advance_to(now.plus(self.clock_offset).second());
        let share = self.share(limit);
        let usage = self.usage.entry(key).or_default();
        let is_admitted = usage.admit(share);
        if usage.is_low(share) {
            usage.is_claiming = true;
            self.low.push((key, limit));
        }
        is_admitted.map(|is_admitted| admission(is_admitted, usage.quota(limit, self.second)))
    }

    /// Returns the quota without counting a request.
    pub fn quota(&self, key: SharedKey, limit: u32, now: Millis) -> Quota {
        let second = now.plus(self.clock_offset).second();
        let usage = self.usage.get(&key).filter(|_| second == self.second);
        usage.map_or(Quota { limit, remaining: limit, reset: second + 1 }, |usage| {
            usage.quota(limit, second)
        })
    }

    /// Adds a request that waits for the next claim. `ticket` identifies it in the result of [`Self::settle`].
    pub fn enqueue(&mut self, key: SharedKey, limit: u32, ticket: T) {
        self.waiting.push(WaitingRequest { second: self.second, key, limit, ticket });
    }

    /// Returns the batch of claims to send next, or `None` while a batch is in flight. It must be
    /// [settled](Self::settle), even if it fails.
    pub fn next_batch(&mut self) -> Option<ClaimBatch<T>> {
        if self.is_in_flight || (self.waiting.is_empty() && self.low.is_empty()) {
            return None;
        }
        self.is_in_flight = true;
        let mut by_key = BTreeMap::<(i64, SharedKey), (u32, Vec<T>)>::new();
        for WaitingRequest { second, key, limit, ticket } in self.waiting.drain(..) {
            by_key.entry((second, key)).or_insert_with(|| (limit, Vec::new())).1.push(ticket);
        }
        for (key, limit) in self.low.drain(..) {
            by_key.entry((self.second, key)).or_insert_with(|| (limit, Vec::new()));
        }
        let mut batch = ClaimBatch { claims: Vec::new(), tickets: Vec::new() };
        for ((second, key), (limit, tickets)) in by_key {
            let waiting = u32::try_from(tickets.len()).unwrap_or(u32::MAX);
            batch.claims.push(self.claim((second, key), limit, waiting));
            batch.tickets.push(tickets);
        }
        Some(batch)
    }

    fn claim(&mut self, (second, key): (i64, SharedKey), limit: u32, waiting: u32) -> LimitClaim {
        let spare = self.share(limit).max_unused();
        let (mut admitted, mut wanted) = (0, waiting);
        if let Some(usage) = self.usage_mut(second, key) {
            usage.is_claiming = true;
            admitted = usage.admitted.saturating_sub(usage.taken);
            wanted = waiting.saturating_add(spare).saturating_sub(usage.unused());
        }
        LimitClaim { second, key, limit, admitted, wanted }
    }

    /// Settles a batch with a grant for each claim, or with `None` if the database did not respond. Returns the
    /// decisions on the requests that waited.
    pub fn settle(
        &mut self,
        batch: ClaimBatch<T>,
        grants: Option<&[LimitGrant]>,
    ) -> Vec<(T, Admission)> {
        self.is_in_flight = false;
        let mut decisions = Vec::new();
        let grants = (0..).map(|index| grants.and_then(|grants| grants.get(index)).copied());
        for ((claim, tickets), grant) in batch.claims.into_iter().zip(batch.tickets).zip(grants) {
            let share = self.share(claim.limit);
            let mut forgotten = KeyUsage::default();
            let usage = self.usage_mut(claim.second, claim.key).unwrap_or(&mut forgotten);
            usage.settle(claim, grant);
            for ticket in tickets {
                // The grant covers all waiting requests, or the limit is used up: none needs another claim.
                let is_admitted = usage.admit(share).unwrap_or(false);
                let quota = usage.quota(claim.limit, claim.second);
                decisions.push((ticket, admission(is_admitted, quota)));
            }
        }
        decisions
    }

    /// Returns the entry of a key in the current or the previous second; `None` for any other second.
    fn usage_mut(&mut self, second: i64, key: SharedKey) -> Option<&mut KeyUsage> {
        if second == self.second {
            self.usage.get_mut(&key)
        } else if second.checked_add(1) == Some(self.second) {
            self.previous.get_mut(&key)
        } else {
            None
        }
    }

    /// Sets the number of servers, and the offset of the database's clock from ours. `at` is the time by our clock at
    /// which the database's clock was read.
    pub fn set_servers(&mut self, count: ServerCount, at: Millis) {
        self.servers = count.servers.max(1);
        // A single server uses its own clock, like a server on a database file.
        self.clock_offset = if self.servers > 1 { count.now.0 - at.0 } else { 0 };
    }

    /// Forgets all counts.
    pub fn clear(&mut self) {
        self.second = i64::MIN;
        self.usage.clear();
        self.previous.clear();
        self.low.clear();
    }

    const fn share(&self, limit: u32) -> LimitShare {
        LimitShare { limit, servers: self.servers }
    }

    fn advance_to(&mut self, second: i64) {
        // As in `RateLimitWindows`: a request from just before the end of a second counts in the next one.
        if second == self.second || second.checked_add(1) == Some(self.second) {
            return;
        }
        std::mem::swap(&mut self.usage, &mut self.previous);
        if self.second.checked_add(1) != Some(second) {
            self.previous.clear();
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
pub mod tests;
