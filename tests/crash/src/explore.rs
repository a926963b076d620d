//! Exploration of a recording: images are selected, written to a folder and checked by several threads.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    fs,
    path::{Path, PathBuf},
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use fastrand::Rng;

use crate::{
    check::{self, Guarantee, Violation},
    disk::{Disk, Event, Image},
    recording::{Expected, Run, put},
    server_binary,
    subsets::{Depth, subsets},
};

/// Interval between the images that the server's binary opens.
const BY_BINARY: usize = 500;
/// Maximum number of violations that are described.
const MAX_MESSAGES: usize = 3;

/// The options of an exploration.
#[derive(Debug, Clone)]
pub struct Options {
    pub seed: u64,
    /// The time on the services' clock when they start.
    pub start: i64,
    pub depth: Depth,
    /// Maximum number of images, chosen at random.
    pub max_images: usize,
    pub threads: usize,
    /// Maximum duration.
    pub time: Option<Duration>,
    pub binary: PathBuf,
    /// The only image to check: the number of events before its moment, and its index among the subsets.
    pub only: Option<(usize, usize)>,
    /// The first event whose moment is explored.
    pub from: usize,
}

/// The counts of an exploration.
#[derive(Debug, Default)]
pub struct Outcome {
    pub events: usize,
    /// The number of different images at this depth.
    pub possible: usize,
    pub images: usize,
    pub by_binary: usize,
    pub violations: BTreeMap<Guarantee, usize>,
    /// The index of the first image with a violation, counted from 1.
    pub first: Option<usize>,
    pub messages: Vec<String>,
}

/// The images of one moment: the number of events before it, and the indexes of its subsets.
type Moment = (usize, Vec<usize>);

/// Draws the subsets of a moment. Each moment has a separate random generator, so that one of its subsets can be drawn
/// again alone.
fn subsets_at(disk: &Disk<'_>, at: usize, options: &Options) -> Vec<Vec<crate::disk::Kept>> {
    let mut rng = Rng::with_seed(options.seed ^ (at as u64) << 20);
    subsets(disk, options.depth, &mut rng)
}

/// Counts the different images of a run and selects those to check.
fn plan(run: &Run, options: &Options) -> (usize, Vec<Moment>) {
    let (mut disk, mut seen) = (Disk::new(&run.base, &run.events), HashSet::new());
    let (mut plain, mut rest) = (Vec::new(), Vec::new());
    let (mut at, mut marks) = (0, 0);
    loop {
        let subsets = subsets_at(&disk, at, options);
        for (nth, subset) in subsets.iter().enumerate().filter(|_| at >= options.from) {
            if seen.insert((disk.number(subset), marks)) {
                if nth < 2 { &mut plain } else { &mut rest }.push((at, nth));
            }
        }
        marks += usize::from(matches!(run.events.get(at), Some(Event::Mark(_))));
        if !disk.advance() {
            break;
        }
        at += 1;
    }
    let mut rng = Rng::with_seed(options.seed);
    rng.shuffle(&mut plain);
    rng.shuffle(&mut rest);
    // Each moment has two plain images: without the pending events and with all of them. They get at least a quarter.
    plain.truncate((options.max_images / 4).max(options.max_images.saturating_sub(rest.len())));
    rest.truncate(options.max_images.saturating_sub(plain.len()));
    if let Some(only) = options.only {
        (plain, rest) = (vec![only], Vec::new());
    }
    let mut moments: HashMap<usize, Vec<usize>> = HashMap::new();
    for (at, nth) in plain.into_iter().chain(rest) {
        moments.entry(at).or_default().push(nth);
    }
    let mut moments: Vec<_> = moments.into_iter().collect();
    moments.sort();
    rng.shuffle(&mut moments);
    (seen.len(), moments)
}

/// Checks the images of a run.
pub fn explore(run: &Run, folder: &Path, options: &Options) -> Outcome {
    let (possible, moments) = plan(run, options);
    let (next, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let outcome = Outcome { events: run.events.len(), possible, ..Outcome::default() };
    #[expect(clippy::disallowed_methods, reason = "a run has a bound in time")]
    let deadline = options.time.map(|time| Instant::now() + time);
    let outcome = Mutex::new(outcome);
    let shared = Shared { run, options, deadline, moments, next, done, outcome };
    thread::scope(|scope| {
        for worker in 0..options.threads {
            let folder = folder.join(format!("images-{worker}"));
            fs::create_dir_all(&folder).unwrap();
            let shared = &shared;
            scope.spawn(move || shared.work(&folder));
        }
    });
    shared.outcome.into_inner().unwrap()
}

struct Shared<'r> {
    run: &'r Run,
    options: &'r Options,
    deadline: Option<Instant>,
    moments: Vec<Moment>,
    next: AtomicUsize,
    done: AtomicUsize,
    outcome: Mutex<Outcome>,
}

impl Shared<'_> {
    fn work(&self, folder: &Path) {
        let mut replay = Replay::new(self.run);
        while let Some((at, chosen)) = self.moments.get(self.next.fetch_add(1, Ordering::Relaxed)) {
            replay = replay.to(*at);
            let subsets = subsets_at(&replay.disk, *at, self.options);
            for nth in chosen {
                if self.is_over() {
                    return;
                }
                let image = replay.disk.image(&subsets[*nth]);
                self.check((folder, &image), &replay.expected, (*at, *nth));
            }
        }
    }

    fn is_over(&self) -> bool {
        #[expect(clippy::disallowed_methods, reason = "a run that has a bound in time")]
        let is_late = self.deadline.is_some_and(|deadline| Instant::now() >= deadline);
        is_late
    }

    fn check(&self, (folder, image): (&Path, &Image), expected: &Expected, place: (usize, usize)) {
        put(folder, image);
        let count = self.done.fetch_add(1, Ordering::Relaxed) + 1;
        let by_binary = count.is_multiple_of(BY_BINARY);
        let checked = if by_binary {
            server_binary::check(&self.options.binary, (self.run, expected), folder)
        } else {
            check::check(self.run, expected, folder)
        };
        let mut outcome = self.outcome.lock().unwrap();
        outcome.images += 1;
        outcome.by_binary += usize::from(by_binary);
        if let Err(Violation { guarantee, what }) = checked {
            *outcome.violations.entry(guarantee).or_default() += 1;
            outcome.first.get_or_insert(count);
            if outcome.messages.len() < MAX_MESSAGES {
                let (at, nth) = place;
                let Options { seed, start, depth, .. } = self.options;
                let name = &self.run.name;
                outcome.messages.push(format!(
                    "{guarantee}: {what}\n  --only '{name}' --at {at}:{nth} --seed {seed} --start {start}{}",
                    depth.argument()
                ));
            }
        }
    }
}

/// The disk and the expectations, moment by moment.
pub struct Replay<'r> {
    run: &'r Run,
    at: usize,
    pub disk: Disk<'r>,
    pub expected: Expected,
}

impl<'r> Replay<'r> {
    pub fn new(run: &'r Run) -> Self {
        let disk = Disk::new(&run.base, &run.events);
        Self { run, at: 0, disk, expected: run.before.clone() }
    }

    /// Moves to the moment after this many events. A moment in the past is reached from the beginning.
    pub fn to(mut self, at: usize) -> Self {
        if at < self.at {
            self = Self::new(self.run);
        }
        while self.at < at && self.disk.advance() {
            if let Event::Mark(mark) = &self.run.events[self.at] {
                self.expected.observe(mark, &self.run.requests);
            }
            self.at += 1;
        }
        self
    }
}

impl Outcome {
    pub fn is_clean(&self) -> bool {
        self.violations.is_empty()
    }

    pub fn count(&self, guarantee: Guarantee) -> usize {
        self.violations.get(&guarantee).copied().unwrap_or(0)
    }
}
