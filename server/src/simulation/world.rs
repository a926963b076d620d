//! What is known of a run from outside: what was asked, executed and answered. Each thing that happens is checked
//! against it at once; the first that breaks a promise ends the run.

use std::{
    collections::{BTreeMap, BTreeSet},
    hash::{DefaultHasher, Hash, Hasher},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicI64, Ordering},
    },
    time::Duration,
};

use fastrand::Rng;

use super::options::Options;
use crate::{
    clock::{GuardedClock, Millis, Reading, TwoClocks, runtime_time},
    domain::Tenant,
    store::Store,
};

/// 2026-01-10 15:05 UTC.
const START: Millis = Millis(1_768_057_500_000);
/// From the lease of an event to the answer, and from there until it is written down, however the store stalls.
const SENT_WITHIN: Duration = Duration::from_secs(60);
pub(super) const WRITTEN_WITHIN: Duration = Duration::from_secs(15);
/// Ten times what the longest runs have.
const MAX_STEPS: u64 = 50_000;

/// The two clocks of the machine on which all servers are: the runtime's, which cannot jump, and one that does.
#[derive(Debug, Clone)]
pub(super) struct Clocks(Arc<ClockState>);

#[derive(Debug)]
struct ClockState {
    start: tokio::time::Instant,
    /// By how many milliseconds the wall clock is off.
    off: AtomicI64,
}

impl Clocks {
    fn new() -> Self {
        Self(Arc::new(ClockState { start: runtime_time(), off: AtomicI64::new(0) }))
    }

    pub(super) fn elapsed(&self) -> Duration {
        self.0.start.elapsed()
    }

    pub(super) fn wall(&self) -> Millis {
        let passed = i64::try_from(self.elapsed().as_millis()).unwrap();
        START.plus(passed + self.0.off.load(Ordering::Relaxed))
    }

    /// What it would show had it never jumped.
    pub(super) fn unjumped(&self) -> Millis {
        self.wall().plus(-self.0.off.load(Ordering::Relaxed))
    }

    pub(super) fn is_off(&self) -> bool {
        self.0.off.load(Ordering::Relaxed) != 0
    }

    pub(super) fn jump(&self, millis: i64) {
        self.0.off.fetch_add(millis, Ordering::Relaxed);
    }

    /// The clock of a server that starts now.
    pub(super) fn guarded(&self) -> GuardedClock<Self> {
        GuardedClock::from_clocks(self.clone())
    }
}

impl TwoClocks for Clocks {
    fn read(&self) -> Reading {
        Reading { wall: self.wall(), monotonic: self.elapsed() }
    }
}

/// What broke a promise.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Violation {
    pub(super) name: &'static str,
    pub(super) step: u64,
    pub(super) detail: String,
}

/// A shipper.
#[derive(Debug, Clone)]
pub(super) struct Shipper {
    pub(super) tenant: Tenant,
    pub(super) key: parcelo::ApiKey,
    /// What its orders' ids begin with, and no other's.
    pub(super) tag: String,
    pub(super) webhook: parcelo::webhook::Secret,
}

/// An order as its shipper knows it.
#[derive(Debug, Clone, Default)]
pub(super) struct Order {
    pub(super) shipper: usize,
    /// The number in an answer that reached the shipper.
    pub(super) acknowledged: Option<String>,
    /// Calls that create it and are under way.
    pub(super) open_calls: usize,
    /// Whether a call may have executed it, as far as its shipper knows.
    pub(super) may_exist: bool,
    /// How many parcels it may have: one more when its key had expired.
    pub(super) parcels: usize,
    pub(super) made_at: Millis0,
    pub(super) voided: bool,
    pub(super) manifest: Option<String>,
    /// The versions of its label that reprints were answered with.
    pub(super) reprints: BTreeSet<u32>,
    /// Its sandbox may have been emptied since: it need not be there.
    pub(super) may_be_reset: bool,
}

/// A moment that is 0 by default.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Millis0(pub(super) i64);

/// All that is known.
#[derive(Debug, Default)]
pub(super) struct Facts {
    pub(super) shippers: Vec<Shipper>,
    /// The key of the carrier.
    pub(super) carrier: String,
    /// By their ids in the shipper's system.
    pub(super) orders: BTreeMap<String, Order>,
    /// Numbers that the service made, and for which order.
    pub(super) numbers: BTreeMap<String, String>,
    pub(super) answers: super::answers::Answers,
    pub(super) calls: super::calls::Calls,
    pub(super) deliveries: super::receivers::Deliveries,
    /// What each parcel's history was when it was last seen, by sequence.
    pub(super) histories: BTreeMap<String, BTreeMap<u32, String>>,
    /// Requests that are being handled.
    pub(super) in_flight: usize,
    /// When the store failed, a server ended or the clock jumped.
    disturbances: BTreeSet<Duration>,
    steps: u64,
    trace: DefaultHasher,
    violation: Option<Violation>,
}

/// A run.
#[derive(Debug)]
pub(super) struct World {
    pub(super) options: Options,
    pub(super) store: Store,
    pub(super) clocks: Clocks,
    facts: Mutex<Facts>,
    /// Nothing goes wrong any more.
    is_calm: AtomicBool,
    prints: bool,
}

impl World {
    pub(super) fn new(options: Options) -> Self {
        let mut secret = [0; 32];
        Rng::with_seed(options.seed).fill(&mut secret);
        Self {
            options,
            store: Store::memory(secret).unwrap(),
            clocks: Clocks::new(),
            facts: Mutex::default(),
            is_calm: AtomicBool::new(false),
            prints: std::env::var_os("PARCELO_TRACE").is_some(),
        }
    }

    /// Random numbers for one purpose, so that what one part draws does not change another's.
    pub(super) fn random(&self, purpose: &str, number: usize) -> Rng {
        let mut hash = DefaultHasher::new();
        (self.options.seed, purpose, number).hash(&mut hash);
        Rng::with_seed(hash.finish())
    }

    pub(super) fn facts(&self) -> MutexGuard<'_, Facts> {
        self.facts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn is_calm(&self) -> bool {
        self.is_calm.load(Ordering::Relaxed)
    }

    pub(super) fn set_calm(&self, is_calm: bool) {
        self.step(&format!("calm: {is_calm}"));
        self.is_calm.store(is_calm, Ordering::Relaxed);
    }

    /// Writes down that something has happened.
    pub(super) fn step(&self, what: &str) {
        let at = self.clocks.elapsed().as_millis();
        let mut facts = self.facts();
        facts.steps += 1;
        (at, what).hash(&mut facts.trace);
        if facts.steps > MAX_STEPS {
            let (step, detail) = (facts.steps, what.to_owned());
            facts.violation.get_or_insert(Violation { name: "never-rests", step, detail });
        }
        if self.prints {
            crate::simulation::print(&format!("{} {at} {what}", facts.steps));
        }
    }

    /// Writes down that what is under way may not be written down as it happened.
    pub(super) fn disturbed(&self) {
        let now = self.clocks.elapsed();
        self.facts().disturbances.insert(now);
    }

    /// Whether an answer to a delivery at that moment was surely written down, under the lease that it had.
    pub(super) fn was_undisturbed(&self, moment: Duration) -> bool {
        let around = moment.saturating_sub(SENT_WITHIN)..moment + WRITTEN_WITHIN;
        self.facts().disturbances.range(around).next().is_none()
    }

    /// Writes down that a promise was broken; the first time counts.
    pub(super) fn violated(&self, name: &'static str, detail: impl Into<String>) {
        let mut facts = self.facts();
        let (step, detail) = (facts.steps, detail.into());
        facts.violation.get_or_insert(Violation { name, step, detail });
    }

    /// The same where something must be true.
    pub(super) fn check(&self, holds: bool, name: &'static str, detail: impl FnOnce() -> String) {
        if !holds {
            self.violated(name, detail());
        }
    }

    pub(super) fn violation(&self) -> Option<Violation> {
        self.facts().violation.clone()
    }

    pub(super) fn is_over(&self) -> bool {
        self.facts().violation.is_some()
    }

    /// A number for all that has happened, in its order, and how much that was.
    pub(super) fn trace(&self) -> (u64, u64) {
        let facts = self.facts();
        (facts.trace.finish(), facts.steps)
    }

    /// Whose words stand in a text that is for another.
    pub(super) fn foreign_words(&self, shipper: usize, text: &[u8]) -> Option<String> {
        let facts = self.facts();
        let text = String::from_utf8_lossy(text);
        let others = facts.shippers.iter().enumerate().filter(|(at, _)| *at != shipper);
        others.map(|(_, other)| other.tag.clone()).find(|tag| text.contains(tag))
    }
}
