//! Checks the states in which a crash can leave the files of the `SQLite` store. In each of them an acknowledged order
//! must exist once, with the same answer, and every other order must exist as a whole or not at all.
//!
//! The real store and the real service run in this process. `syscalls.rs` records the calls on their files, and
//! `recording.rs` when each request was sent and acknowledged. `disk.rs` computes the possible contents of the disk at
//! each moment, `subsets.rs` selects those to examine, and `check.rs` starts the service on them. `mutants.rs` adds
//! defects, to show that the checks detect them.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a test program: it fails loudly and prints"
)]

mod check;
mod disk;
mod explore;
mod facts;
mod faults;
mod mutants;
mod recording;
mod server;
mod subsets;
mod syscalls;
mod workloads;

use std::{
    fs,
    path::{Path, PathBuf},
    process::ExitCode,
};

use clap::Parser as _;
use disk::{Disk, RecordedRun};
use explore::{Options, Outcome, explore};
use facts::Violation;
use fastrand::Rng;
use mutants::MUTANTS;

type Workload = fn(&Path) -> RecordedRun;

/// The recordings: name, workload, and the cost of checking one image. The write-ahead log of the last one has 40 MB,
/// so that checking one of its images costs as much as checking 50 others.
const RECORDINGS: [(&str, Workload, usize); 5] = [
    ("a first start", workloads::first_start, 1),
    ("a busy day", workloads::busy_day, 1),
    ("a vacuum", workloads::vacuum, 1),
    ("an upgrade", workloads::upgrade, 1),
    ("a long log", workloads::long_log, 50),
];
const RECOVERIES: &str = "recoveries from crashes";
const FAULTS: &str = "failing calls";

/// Checks the states in which a crash can leave the files of the `SQLite` store.
#[derive(clap::Parser)]
struct Arguments {
    /// The seed of the samples.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Maximum number of images of each recording. The other parts are scaled down in proportion.
    #[arg(long, default_value_t = 10_000)]
    images: usize,
    /// Check only this part: a recording, "recoveries from crashes", "failing calls" or "mutants".
    #[arg(long)]
    only: Option<String>,
    /// Check only this image of that part, given by the two numbers printed with a violation. Its files are kept.
    #[arg(long, num_args = 2)]
    at: Option<Vec<usize>>,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    raise_descriptor_limit();
    let temp_folder = tempfile::tempdir_in("/dev/shm").unwrap();
    let folder = fs::canonicalize(temp_folder.path()).unwrap();
    let is_clean = run(&arguments, &folder);
    println!("{}", if is_clean { "every guarantee was kept" } else { "GUARANTEES WERE BROKEN" });
    if arguments.at.is_some() {
        println!("the files are in {}", temp_folder.keep().display());
    }
    if is_clean { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn run(arguments: &Arguments, folder: &Path) -> bool {
    let is_selected = |name: &str| arguments.only.as_deref().is_none_or(|only| only == name);
    let Arguments { seed, images, .. } = *arguments;
    let only = arguments.at.as_ref().map(|at| (at[0], at[1]));
    let options = Options { seed, images, only };
    let mut is_clean = true;
    println!(
        "seed {seed}\n\n| crashes during | events | different images | checked | violations |"
    );
    println!("|---|---|---|---|---|");
    for (name, workload, cost) in RECORDINGS.into_iter().filter(|(name, ..)| is_selected(name)) {
        let options = Options { images: images / cost, ..options };
        is_clean &= report(name, &explore(&workload(&new_folder(folder)), folder, options));
    }
    if is_selected(RECOVERIES) {
        is_clean &= report(RECOVERIES, &explore_recoveries(folder, options));
    }
    if is_selected(FAULTS) {
        is_clean &= run_failing_calls(folder, (10_000 / images.max(1)).clamp(1, 29));
    }
    if is_selected("mutants") {
        is_clean &= check_mutants(folder, Options { images: images / 20 + 50, ..options });
    }
    is_clean
}

/// Explores crashes that happen while the service recovers from an earlier crash, and while it checkpoints the
/// write-ahead log as it closes.
fn explore_recoveries(folder: &Path, options: Options) -> Outcome {
    let mut rng = Rng::with_seed(options.seed);
    let crashed = workloads::busy_day(&new_folder(folder));
    let mut total = Outcome::default();
    let count = options.images / 200 + 5;
    for _ in 0..count {
        let disk = Disk::after(&crashed, rng.usize(..crashed.events.len()));
        let expected = disk.expected();
        if !expected.is_set_up || expected.is_resetting {
            continue;
        }
        let subsets = subsets::subsets(&disk, &mut rng);
        let image = disk.image(&subsets[rng.usize(..subsets.len())]);
        let run = workloads::recovery(&new_folder(folder), (&crashed, expected, &image), &mut rng);
        total.add(explore(&run, folder, Options { images: options.images / count, ..options }));
    }
    total
}

fn run_failing_calls(folder: &Path, interval: usize) -> bool {
    let outcome = faults::fail_calls(&new_folder(folder), interval);
    let faults::Outcome { runs, acknowledged, refused, violations } = outcome;
    println!("\n{FAULTS}: {runs} runs, {acknowledged} orders acknowledged, {refused} refused");
    violations.iter().take(3).for_each(|violation| println!("{violation:?}"));
    violations.is_empty()
}

/// Checks that each mutant is detected in at least one of the first two recordings, and that each corruption of a sound
/// database is detected.
fn check_mutants(folder: &Path, options: Options) -> bool {
    println!("\n| mutant | violations of {} images: first start | busy day |", options.images);
    println!("|---|---|---|");
    let [first_start, busy_day] = [RECORDINGS[0], RECORDINGS[1]].map(|(_, workload, _)| workload);
    let mut are_all_detected = true;
    for (name, mutate) in MUTANTS {
        let found = [first_start, busy_day].map(|workload| {
            let mut run = workload(&new_folder(folder));
            mutate(&mut run);
            explore(&run, folder, options).violations.len()
        });
        println!("| {name} | {} | {} |", found[0], found[1]);
        are_all_detected &= found != [0, 0];
    }
    let run = first_start(&new_folder(folder));
    let missed = mutants::undetected_corruptions(&run, &new_folder(folder));
    println!("\ncorruptions that were not detected: {missed:?}");
    are_all_detected && missed.is_empty()
}

/// Prints an outcome as a row of the table. Returns `true` if it has no violations.
fn report(name: &str, outcome: &Outcome) -> bool {
    let Outcome { events, distinct_images, images, violations } = outcome;
    println!("| {name} | {events} | {distinct_images} | {images} | {} |", violations.len());
    for ((moment, subset_index), Violation(kind, found)) in violations.iter().take(3) {
        println!("{kind:?}: {found}\n  --only '{name}' --at {moment} {subset_index}");
    }
    violations.is_empty()
}

/// Creates an empty folder for a recording, in place of the previous one.
fn new_folder(folder: &Path) -> PathBuf {
    let folder = folder.join("live");
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    folder
}

/// Raises the limit on open files. The store keeps a descriptor for each database file that it has opened, and it
/// creates a new database file for each image that has none.
fn raise_descriptor_limit() {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limit` is valid during both calls.
    unsafe {
        libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit);
        limit.rlim_cur = limit.rlim_max;
        libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit);
    }
}
