//! Simulates servers, their database and their callers for whole minutes of virtual time, in steps of a millisecond.

use std::collections::HashMap;

use super::*;
use crate::limit::RateLimitWindows;

const KEY: SharedKey = SharedKey::Api(7);
const START: i64 = 1_767_600_000_000;
const MINUTE: i64 = 60_000;

/// A batch in flight, with the times at which the database reads it and its response arrives.
struct BatchInFlight {
    server: usize,
    read_at: i64,
    answered_at: i64,
    batch: Option<ClaimBatch<()>>,
    grants: Option<Vec<LimitGrant>>,
}

struct Server {
    windows: SharedRateLimitWindows<()>,
    /// The error of its clock, in milliseconds.
    error: i64,
}

struct Simulation {
    limit: u32,
    servers: Vec<Server>,
    in_flight: Vec<BatchInFlight>,
    taken: HashMap<(i64, SharedKey), u32>,
    random: fastrand::Rng,
    is_reachable: bool,
    /// The admitted requests, by second.
    admitted: HashMap<i64, u32>,
    refused: u32,
    waited: u32,
    batches: u32,
}

impl Simulation {
    fn new(servers: usize, limit: u32) -> Self {
        let mut random = fastrand::Rng::with_seed(16);
        let server = |_| Server {
            windows: SharedRateLimitWindows::default(),
            error: if servers > 1 { random.i64(-400..400) } else { 0 },
        };
        let servers = (0..servers).map(server).collect();
        Self {
            limit,
            servers,
            in_flight: Vec::new(),
            taken: HashMap::new(),
            random: fastrand::Rng::with_seed(17),
            is_reachable: true,
            admitted: HashMap::new(),
            refused: 0,
            waited: 0,
            batches: 0,
        }
    }

    /// Runs a minute of requests. `load` returns the servers that are called in a millisecond.
    fn run(&mut self, load: impl Fn(i64, &mut fastrand::Rng) -> Vec<usize>) {
        for now in START..START + MINUTE + 100 {
            if (now - START) % 1_000 == 0 {
                self.count_servers(now);
            }
            self.deliver_batches(now);
            if now < START + MINUTE {
                for server in load(now - START, &mut self.random) {
                    self.request(server, now);
                }
            }
        }
        assert!(self.in_flight.is_empty(), "every request is decided");
    }

    fn count_servers(&mut self, now: i64) {
        let count =
            ServerCount { servers: u32::try_from(self.servers.len()).unwrap(), now: Millis(now) };
        for server in &mut self.servers {
            server.windows.set_servers(count, Millis(now + server.error));
        }
    }

    fn request(&mut self, at: usize, now: i64) {
        let limit = self.limit;
        let server = &mut self.servers[at];
        if let Some(admission) = server.windows.admit(KEY, limit, Millis(now + server.error)) {
            self.count(admission);
        } else {
            server.windows.enqueue(KEY, limit, ());
            self.waited += 1;
        }
        self.send_batch(at, now);
    }

    fn send_batch(&mut self, server: usize, now: i64) {
        if let Some(batch) = self.servers[server].windows.next_batch() {
            let read_at = now + self.random.i64(1..=20);
            let answered_at = read_at + self.random.i64(1..=20);
            let batch = Some(batch);
            self.batches += 1;
            self.in_flight.push(BatchInFlight {
                server,
                read_at,
                answered_at,
                batch,
                grants: None,
            });
        }
    }

    fn deliver_batches(&mut self, now: i64) {
        let mut in_flight = std::mem::take(&mut self.in_flight);
        for flight in
            in_flight.iter_mut().filter(|flight| flight.read_at == now && self.is_reachable)
        {
            let claims = flight.batch.as_ref().unwrap().claims();
            let grants = claims
                .iter()
                .map(|claim| claim.grant(self.taken.entry((claim.second, claim.key)).or_default()));
            flight.grants = Some(grants.collect());
        }
        for flight in in_flight.iter_mut().filter(|flight| flight.answered_at == now) {
            let batch = flight.batch.take().unwrap();
            let windows = &mut self.servers[flight.server].windows;
            for ((), admission) in windows.settle(batch, flight.grants.as_deref()) {
                self.count(admission);
            }
            self.send_batch(flight.server, now);
        }
        in_flight.retain(|flight| flight.answered_at > now);
        self.in_flight.append(&mut in_flight);
    }

    fn count(&mut self, admission: Admission) {
        match admission {
            Admission::Granted(quota) => *self.admitted.entry(quota.reset - 1).or_default() += 1,
            Admission::Refused(quota) => {
                assert_eq!(quota.remaining, 0);
                self.refused += 1;
            }
        }
    }

    /// Returns the number of requests admitted in the busiest second.
    fn peak(&self) -> u32 {
        self.admitted.values().copied().max().unwrap_or(0)
    }
}

/// A pattern of requests: returns the servers that are called in a millisecond, given their number and the rate.
type Load = fn(i64, usize, i64, &mut fastrand::Rng) -> Vec<usize>;

/// Returns how many requests of an even stream fall into a millisecond.
fn even(at: i64, rate: i64) -> usize {
    let by = |at: i64| at * rate / 1_000;
    usize::try_from(by(at + 1) - by(at)).unwrap()
}

fn burst(at: i64, from: i64, rate: i64) -> usize {
    if at % 1_000 == from { usize::try_from(rate).unwrap() } else { 0 }
}

fn index(number: i64) -> usize {
    usize::try_from(number).unwrap()
}

const LOADS: [(&str, Load); 9] = [
    ("all on one", |at, _, rate, _| vec![0; even(at, rate)]),
    ("one after the other", |at, servers, rate, _| {
        let first = index(at * rate / 1_000);
        (first..first + even(at, rate)).map(|number| number % servers).collect()
    }),
    ("any of them", |at, servers, rate, random| {
        (0..even(at, rate)).map(|_| random.usize(0..servers)).collect()
    }),
    ("bursts on one", |at, _, rate, _| vec![0; burst(at, 5, rate)]),
    ("bursts on one after the other", |at, servers, rate, _| {
        vec![index(at / 1_000) % servers; burst(at, 5, rate)]
    }),
    ("bursts over all", |at, servers, rate, _| {
        (0..burst(at, 5, rate)).map(|number| number % servers).collect()
    }),
    ("bursts just before a second ends, and just after", |at, servers, rate, _| {
        let from = if at / 1_000 % 2 == 0 { 994 } else { 5 };
        (0..burst(at, from, rate)).map(|number| number % servers).collect()
    }),
    ("first one, then another", |at, servers, rate, _| {
        vec![usize::from(at % 1_000 > 500) % servers; even(at, rate)]
    }),
    ("a little on each, then all on the last", |at, servers, rate, _| {
        let all = i64::try_from(servers).unwrap();
        let rounds = (rate / all).min(2);
        let is_round = at % 1_000 < 10 * rounds && at % 10 == 0;
        let rest = burst(at, 300, rate - rounds * all);
        is_round
            .then_some(0..servers)
            .into_iter()
            .flatten()
            .chain(vec![servers - 1; rest])
            .collect()
    }),
];

const LIMITS: [u32; 4] = [5, 10, 50, 100];

#[test]
fn a_caller_at_nine_tenths_of_its_limit_is_never_refused() {
    for (name, load) in LOADS {
        for (servers, limit) in (1..=4).flat_map(|servers| LIMITS.map(|limit| (servers, limit))) {
            let rate = i64::from(limit) * 9 / 10;
            let mut simulation = Simulation::new(servers, limit);
            simulation.run(|at, random| load(at, servers, rate, random));
            assert_eq!(simulation.refused, 0, "{name}: {rate} of {limit} on {servers}");
        }
    }
}

#[test]
fn the_requests_that_servers_admit_together_are_bounded() {
    for (name, load) in LOADS {
        for (servers, limit) in (1..=4).flat_map(|servers| LIMITS.map(|limit| (servers, limit))) {
            let mut simulation = Simulation::new(servers, limit);
            simulation.run(|at, random| load(at, servers, 3 * i64::from(limit), random));
            let others = u32::try_from(servers - 1).unwrap();
            let over = if others == 0 { 0 } else { (limit / 10).max(others) };
            assert!(
                simulation.peak() <= limit + over,
                "{name}: {} on {servers}",
                simulation.peak()
            );
            let all: u32 = simulation.admitted.values().sum();
            assert!(all <= 60 * (limit + over), "{name}: {all} of {limit} on {servers}");
            assert!(all >= 60 * limit * 9 / 10, "{name}: {all} of {limit} on {servers}");
        }
    }
}

#[test]
fn seldom_used_keys_claim_nothing_and_even_streams_never_wait() {
    let alternating = LOADS[1].1;
    let mut little = Simulation::new(2, 50);
    little.run(|at, random| alternating(at, 2, 4, random));
    assert_eq!((little.batches, little.waited), (0, 0));
    let mut even = Simulation::new(2, 50);
    even.run(|at, random| alternating(at, 2, 20, random));
    assert_eq!((even.waited, even.refused), (0, 0));
    assert!(even.batches <= 60 * 20 / 2, "{} batches for 1,200 requests", even.batches);
    let mut flood = Simulation::new(2, 50);
    flood.run(|at, random| alternating(at, 2, 1_000, random));
    assert!(flood.batches <= 60 * 50, "{} batches for 60,000 requests", flood.batches);
}

#[test]
fn a_single_server_claims_nothing_and_counts_locally() {
    let (mut shared, mut own) =
        (SharedRateLimitWindows::<()>::default(), RateLimitWindows::default());
    let mut random = fastrand::Rng::with_seed(1);
    let mut now = START;
    for _ in 0..20_000 {
        now += random.i64(-20..60);
        let expected = own.admit(KEY, 15, Millis(now));
        assert_eq!(shared.admit(KEY, 15, Millis(now)), Some(expected));
        assert_eq!(shared.quota(KEY, 15, Millis(now)), own.quota(&KEY, 15, Millis(now)));
        assert!(shared.next_batch().is_none());
    }
}

#[test]
fn without_the_database_each_server_has_its_share() {
    for servers in 2..=4 {
        let mut simulation = Simulation::new(servers, 50);
        simulation.is_reachable = false;
        simulation.run(|at, random| LOADS[1].1(at, servers, 200, random));
        let part = 50 / u32::try_from(servers).unwrap();
        let all = part * u32::try_from(servers).unwrap();
        // Requests that waited for a failed claim at the end of the second are admitted.
        assert!(simulation.admitted.values().filter(|count| **count > all + 10).count() == 0);
        assert!(simulation.admitted.values().sum::<u32>() >= 60 * all);
    }
}

#[test]
fn the_quota_falls_with_the_use_of_other_servers() {
    let mut windows = SharedRateLimitWindows::<()>::default();
    let now = Millis(START);
    windows.set_servers(ServerCount { servers: 2, now }, now);
    for left in (45..50).rev() {
        let quota = Quota { limit: 50, remaining: left, reset: START / 1_000 + 1 };
        assert_eq!(windows.admit(KEY, 50, now), Some(Admission::Granted(quota)));
    }
    let batch = windows.next_batch().unwrap();
    let claim = batch.claims()[0];
    assert_eq!((claim.admitted, claim.wanted), (5, 5));
    // The other server has taken 20.
    windows.settle(batch, Some(&[LimitGrant { granted: 5, taken: 30 }]));
    assert_eq!(windows.quota(KEY, 50, now).remaining, 25);
    let batch = windows.next_batch();
    assert!(batch.is_none(), "{batch:?}");
    windows.clear();
    assert_eq!(windows.quota(KEY, 50, now).remaining, 50);
}
