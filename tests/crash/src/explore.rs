//! The images of a recording: selected, written to a folder and checked, by several threads.

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

/// One image in so many is opened by the server's binary.
const BY_BINARY: usize = 500;
/// How many violations are described.
const MAX_MESSAGES: usize = 3;

/// How a recording is explored.
#[derive(Debug, Clone)]
pub struct Options {
    pub seed: u64,
    /// The services' clock at their start.
    pub start: i64,
    pub depth: Depth,
    /// At most so many images, chosen at random.
    pub max_images: usize,
    pub threads: usize,
    /// For so long at most.
    pub time: Option<Duration>,
    pub binary: PathBuf,
    /// Only this image: the moment after so many events, and the place among its subsets.
    pub only: Option<(usize, usize)>,
    /// Only moments from this event on.
    pub from: usize,
}

/// The counts of an exploration.
#[derive(Debug, Default)]
pub struct Outcome {
    pub events: usize,
    /// How many different images this depth has.
    pub possible: usize,
    pub images: usize,
    pub by_binary: usize,
    pub violations: BTreeMap<Guarantee, usize>,
    /// The image with the first violation, counted from 1.
    pub first: Option<usize>,
    pub messages: Vec<String>,
}

/// The images of one moment: after so many events, these of its subsets.
type Moment = (usize, Vec<usize>);

/// Each moment has random numbers of its own, so that one of its subsets can be drawn again alone.
fn subsets_at(disk: &Disk<'_>, at: usize, options: &Options) -> Vec<Vec<crate::disk::Kept>> {
    let mut rng = Rng::with_seed(options.seed ^ (at as u64) << 20);
    subsets(disk, options.depth, &mut rng)
}

/// The different images of a run, and those of them that are to be checked.
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
    // Each moment has two plain images, with nothing and with everything that is pending: at least a quarter of all.
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

/// The disk and what is expected of it, moment by moment.
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

    /// Moves to the moment after so many events; one in the past is reached from the beginning.
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
