//! Every state in which a crash can leave the files of the `SQLite` store. In each of them an acknowledged order exists
//! once, with the same answer, and every other order exists as a whole or not at all.
//!
//! ```text
//! just crash                              all of it
//! just crash --brief                      CI's part, at most a minute
//! just crash --seed N                     other samples
//! just crash --only NAME --at A:B         one image again, as a violation names it; its files stay in the folder
//! ```
//!
//! The real store and the real service run in this process. `syscalls.rs` records the calls on their files, and
//! `recording.rs` when each request was sent and acknowledged. `disk.rs` computes the possible contents of the disk at
//! each moment, `subsets.rs` selects those to examine, and `check.rs` starts the service on them. `mutants.rs` shows
//! that defects are found.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a test program: it fails loudly and prints"
)]

mod arguments;
mod check;
mod disk;
mod explore;
mod facts;
mod io_errors;
mod mutants;
mod recording;
mod server;
mod server_binary;
mod stray_log;
mod subsets;
mod syscalls;
mod workloads;

use std::{
    fs,
    path::{Path, PathBuf},
    process::ExitCode,
    time::Instant,
};

use arguments::Arguments;
use check::Guarantee;
use disk::Kept;
use explore::{Options, Outcome, Replay, explore};
use fastrand::Rng;
use mutants::{Mutant, TAMPERINGS};
use recording::Run;
use rusqlite::Connection;

/// The figures of a full run. `BRIEF` has those of CI.
const FULL: Size =
    Size { images: 10_000, recoveries: 60, of_recovery: 300, every_call: 1, of_mutant: 500 };
const BRIEF: Size =
    Size { images: 1_000, recoveries: 6, of_recovery: 100, every_call: 29, of_mutant: 60 };

struct Size {
    /// Maximum number of images of each recording.
    images: usize,
    /// Number of crashes that are followed by another one during the recovery.
    recoveries: usize,
    /// Maximum number of images of each recovery.
    of_recovery: usize,
    /// Interval between the system calls that fail.
    every_call: usize,
    /// Maximum number of images of each mutant.
    of_mutant: usize,
}

const LONG_LOG: &str = "a long log";
const RECOVERIES: &str = "recoveries from crashes";

/// Cost of one image of the long log in images of the others: it has 40 MB.
const COST_OF_LONG_LOG: usize = 50;

fn main() -> ExitCode {
    let arguments = Arguments::read();
    raise_limit_of_descriptors();
    let place = tempfile::tempdir_in("/dev/shm").unwrap();
    let folder = fs::canonicalize(place.path()).unwrap();
    #[expect(clippy::disallowed_methods, reason = "says how long it took")]
    let start = Instant::now();
    let is_clean = run(&arguments, &folder);
    println!("\n{} s", start.elapsed().as_secs());
    println!("{}", if is_clean { "every guarantee was kept" } else { "GUARANTEES WERE BROKEN" });
    if arguments.at.is_some() {
        println!("the files are in {}", place.keep().display());
    }
    if is_clean { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn run(arguments: &Arguments, folder: &Path) -> bool {
    let size = if arguments.is_brief { BRIEF } else { FULL };
    let options = arguments.options(size.images);
    println!("seed {}, start {}, {} threads\n", options.seed, options.start, options.threads);
    println!(
        "| crashes during | events | different images | checked | by the binary | lost | doubled | unreadable | half written |"
    );
    println!("|---|---|---|---|---|---|---|---|---|");
    let mut outcomes = Vec::new();
    for (name, record) in recordings(&options.binary) {
        if arguments.wants(name) {
            let run = record(&fresh(folder));
            outcomes.push((name, explore(&run, folder, &options)));
            report(outcomes.last());
        }
    }
    if arguments.wants(LONG_LOG) && !arguments.is_brief {
        outcomes.push((LONG_LOG, long_log(folder, &options)));
        report(outcomes.last());
    }
    if arguments.wants(RECOVERIES) {
        let time = options.time.map(|time| time / size.recoveries as u32);
        let options = Options { max_images: size.of_recovery, time, ..options.clone() };
        outcomes.push((RECOVERIES, recoveries(folder, &options, size.recoveries)));
        report(outcomes.last());
    }
    let images: usize = outcomes.iter().map(|(_, outcome)| outcome.images).sum();
    println!("\n{images} images");
    let mut is_clean = outcomes.iter().all(|(_, outcome)| outcome.is_clean());
    if arguments.wants("stray logs") {
        is_clean &= stray_logs(folder);
    }
    if arguments.wants("failing calls") {
        is_clean &= failing_calls(folder, size.every_call);
    }
    if arguments.wants("mutants") {
        // A mutant has few images, and a time limit could end before the one that finds it.
        let options = Options { max_images: size.of_mutant, time: None, ..options };
        is_clean &= mutants(folder, &options) & tamperings(folder);
    }
    is_clean
}

type Record<'p> = Box<dyn Fn(&Path) -> Run + 'p>;

fn recordings(binary: &Path) -> [(&'static str, Record<'_>); 5] {
    [
        ("a first start", Box::new(workloads::first_start)),
        ("a busy day", Box::new(workloads::busy_day)),
        ("a restored backup", Box::new(|folder| workloads::restored_backup(folder, binary))),
        ("a vacuum", Box::new(workloads::vacuum)),
        ("an upgrade", Box::new(workloads::upgrade)),
    ]
}

fn long_log(folder: &Path, options: &Options) -> Outcome {
    let run = workloads::long_log(&fresh(folder));
    let max_images = options.max_images / COST_OF_LONG_LOG;
    explore(&run, folder, &Options { max_images, from: run.first_move(), ..options.clone() })
}

/// Crashes again while the service recovers from a crash, and while it checkpoints the log when it closes.
fn recoveries(folder: &Path, options: &Options, count: usize) -> Outcome {
    let mut rng = Rng::with_seed(options.seed);
    let crashed = workloads::busy_day(&fresh(folder));
    let mut sum = Outcome::default();
    for _ in 0..count {
        let replay = Replay::new(&crashed).to(rng.usize(..crashed.events.len()));
        if !replay.expected.has_keys || replay.expected.is_resetting {
            continue;
        }
        let subsets = subsets::subsets(&replay.disk, options.depth, &mut rng);
        let image = replay.disk.image(&subsets[rng.usize(..subsets.len())]);
        let live = fresh(folder);
        recording::put(&live, &image);
        let run = workloads::recovery(&live, (&crashed, replay.expected), &mut rng);
        sum.add(explore(&run, folder, options));
    }
    sum
}

fn stray_logs(folder: &Path) -> bool {
    let run = workloads::first_start(&fresh(folder));
    let stray_log::Outcome { images, messages } = stray_log::stray_logs(&run, folder);
    println!("\nempty files beside another's log: {images} images, {} unsound", messages.len());
    messages.iter().take(3).for_each(|message| println!("{message}"));
    messages.is_empty()
}

fn failing_calls(folder: &Path, every: usize) -> bool {
    let io_errors::Outcome { runs, images, acknowledged, refused, messages } =
        io_errors::every_call_fails(folder, every);
    println!(
        "\nsystem calls that fail: {runs} runs, {acknowledged} orders acknowledged, {refused} refused, \
         {images} images, {} violations",
        messages.len()
    );
    messages.iter().take(3).for_each(|message| println!("{message}"));
    messages.is_empty()
}

/// Checks that each mutant is found in one of the recordings.
fn mutants(folder: &Path, options: &Options) -> bool {
    println!(
        "\n| mutant | crashes during | found at image | of images | lost | doubled | unreadable | half written |"
    );
    println!("|---|---|---|---|---|---|---|---|");
    let mut are_found = true;
    for mutant in Mutant::ALL {
        let mut is_found = false;
        for (name, record) in recordings(&options.binary).iter().take(2) {
            let run = mutant.record(|| record(&fresh(folder)));
            let outcome = explore(&run, folder, options);
            let first = outcome.first.map_or("-".to_owned(), |first| first.to_string());
            let counts = outcome.counts();
            println!("| {} | {name} | {first} | {} | {counts} |", mutant.name(), outcome.images);
            is_found |= outcome.first.is_some();
        }
        are_found &= is_found;
    }
    are_found
}

/// Checks that each change to the rows of a sound database is found, as the guarantee that it breaks.
fn tamperings(folder: &Path) -> bool {
    let run = workloads::first_start(&fresh(folder));
    let replay = Replay::new(&run).to(run.events.len());
    let image = replay.disk.image(&vec![Kept::All; replay.disk.pending().len()]);
    let place = folder.join("tampered");
    fs::create_dir_all(&place).unwrap();
    let mut found = 0;
    for (sql, broken) in TAMPERINGS {
        recording::put(&place, &image);
        let db = Connection::open(place.join(recording::DATABASE)).unwrap();
        db.execute_batch(sql).unwrap();
        drop(db);
        match check::check(&run, &replay.expected, &place) {
            Err(violation) if violation.guarantee == broken => found += 1,
            other => println!("{sql}: {other:?}"),
        }
    }
    println!("\nchanges to the rows of a sound database: {found} of {} found", TAMPERINGS.len());
    found == TAMPERINGS.len()
}

fn report(outcome: Option<&(&str, Outcome)>) {
    let Some((name, outcome)) = outcome else { return };
    let Outcome { events, possible, images, by_binary, .. } = outcome;
    println!("| {name} | {events} | {possible} | {images} | {by_binary} | {} |", outcome.counts());
    outcome.messages.iter().for_each(|message| println!("{message}"));
}

impl Outcome {
    fn counts(&self) -> String {
        Guarantee::ALL.map(|guarantee| self.count(guarantee).to_string()).join(" | ")
    }

    fn add(&mut self, other: Self) {
        self.events += other.events;
        self.possible += other.possible;
        self.images += other.images;
        self.by_binary += other.by_binary;
        for (guarantee, count) in other.violations {
            *self.violations.entry(guarantee).or_default() += count;
        }
        self.first = self.first.or(other.first);
        self.messages.extend(other.messages);
    }
}

/// Creates an empty folder for a recording.
fn fresh(folder: &Path) -> PathBuf {
    let folder = folder.join("live");
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    folder
}

/// Raises the limit of open files. The store keeps one descriptor for each database file that it has opened, and images
/// without that file make it create new ones.
fn raise_limit_of_descriptors() {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the limit outlives the calls.
    unsafe {
        libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit);
        limit.rlim_cur = limit.rlim_max;
        libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit);
    }
}
