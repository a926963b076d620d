//! What a run consists of: all of it follows from the seed, and each part can be made smaller to find out what a failure
//! needs.

use std::fmt;

use fastrand::Rng;
use parcelo::Environment;

/// A run. Of the faults, 0 means none; the others are chances in a thousand, or how many there are in an episode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Options {
    pub(super) seed: u64,
    pub(super) production: bool,
    /// How many servers share the store.
    pub(super) servers: usize,
    pub(super) tenants: usize,
    /// How many programs call at the same time.
    pub(super) workers: usize,
    /// Busy times, between which days pass.
    pub(super) episodes: usize,
    /// Of each worker, in each episode.
    pub(super) operations: usize,
    /// Requests a second of each key.
    pub(super) limit: u32,
    /// Exchanges that go wrong.
    pub(super) network: u32,
    /// Calls of the store that go wrong.
    pub(super) store: u32,
    /// Calls of the store that take their time.
    pub(super) stalls: u32,
    /// Deliveries that receivers do not take at once.
    pub(super) receivers: u32,
    /// Ends of a server in the middle of everything, in each episode.
    pub(super) crashes: u32,
    /// Jumps of the clock, in each episode.
    pub(super) jumps: u32,
    /// Times in which no request gets through, in each episode.
    pub(super) outages: u32,
}

impl Options {
    /// How often the schedule tries an event (docs/api.md, Webhooks).
    pub(super) const fn attempts(&self) -> usize {
        if self.production { 10 } else { 3 }
    }

    /// What follows from a seed.
    pub(super) fn from_seed(seed: u64) -> Self {
        let mut rng = Rng::with_seed(seed ^ 0x6f70_7469_6f6e_7321);
        let one_of = |rng: &mut Rng, choices: &[u32]| choices[rng.usize(..choices.len())];
        Self {
            seed,
            production: rng.bool(),
            servers: rng.usize(1..=2),
            tenants: rng.usize(2..=3),
            workers: rng.usize(2..=5),
            episodes: rng.usize(1..=3),
            operations: rng.usize(6..=16),
            limit: one_of(&mut rng, &[3, 8, 50]),
            network: one_of(&mut rng, &[0, 60, 150, 300]),
            store: one_of(&mut rng, &[0, 0, 15, 60]),
            stalls: one_of(&mut rng, &[0, 200, 500]),
            receivers: one_of(&mut rng, &[0, 100, 400]),
            crashes: one_of(&mut rng, &[0, 1, 2]),
            jumps: one_of(&mut rng, &[0, 0, 1]),
            outages: one_of(&mut rng, &[0, 0, 1]),
        }
    }

    pub(super) const fn environment(&self) -> Environment {
        if self.production { Environment::Production } else { Environment::Sandbox }
    }

    /// Smaller runs, those that leave out most first.
    pub(super) fn smaller(self) -> Vec<Self> {
        let mut all = Vec::new();
        for fault in [
            |it: &mut Self| it.network = 0,
            |it: &mut Self| it.store = 0,
            |it: &mut Self| it.stalls = 0,
            |it: &mut Self| it.receivers = 0,
            |it: &mut Self| it.crashes = 0,
            |it: &mut Self| it.jumps = 0,
            |it: &mut Self| it.outages = 0,
            |it: &mut Self| it.servers = 1,
            |it: &mut Self| it.episodes = (it.episodes / 2).max(1),
            |it: &mut Self| it.workers = (it.workers / 2).max(1),
            |it: &mut Self| it.operations = (it.operations / 2).max(1),
            |it: &mut Self| it.workers = (it.workers - 1).max(1),
            |it: &mut Self| it.operations = (it.operations - 1).max(1),
            |it: &mut Self| it.tenants = 2,
        ] {
            let mut smaller = self;
            fault(&mut smaller);
            if smaller != self {
                all.push(smaller);
            }
        }
        all
    }
}

impl fmt::Display for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            seed, production, servers, tenants, workers, episodes, operations, limit, ..
        } = self;
        let place = if *production { "production" } else { "sandbox" };
        write!(
            f,
            "seed {seed}: {place}, {servers} servers, {tenants} tenants, {workers} workers, {episodes} episodes of \
             {operations} operations, limit {limit}; network {}, store {}, stalls {}, receivers {}, crashes {}, \
             jumps {}, outages {}",
            self.network,
            self.store,
            self.stalls,
            self.receivers,
            self.crashes,
            self.jumps,
            self.outages,
        )
    }
}
