//! The whole house from one seed: clients on the SDK, servers, the store, webhooks and their receivers in one thread, in
//! simulated time, with everything that can go wrong between them. Each thing that happens is checked against what the
//! service promises.
//!
//! A seed is a run: what happens follows from it alone, so a failure is repeated by its number. It is made smaller by
//! itself, until what is left is needed ([`Options::smaller`]).
//!
//! ```text
//! just simulate 17        one seed
//! just simulate 1..10000  many
//! ```
//!
//! `PARCELO_SEEDS` says which seeds, `PARCELO_THREADS` how many at a time, `PARCELO_SHRINK=0` leaves a failing run as it
//! is, and `PARCELO_TRACE` prints each step.

mod answers;
mod audit;
mod calls;
mod clients;
mod episodes;
mod network;
mod options;
mod receivers;
mod refused;
mod servers;
mod world;

use std::{
    env,
    io::Write,
    sync::{
        Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread,
};

use self::{options::Options, world::Violation};

/// The seeds that each `cargo test` tries; CI tries more.
const DEFAULT_SEEDS: (u64, u64) = (1, 24);
/// A future of a run takes much room in a build without optimisation.
const STACK_BYTES: usize = 64 << 20;

/// What came of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Outcome {
    violation: Option<Violation>,
    /// A number for all that has happened, and how much that was.
    trace: (u64, u64),
    /// How long it was for those in it.
    days: u64,
}

/// Runs in a thread of its own, whose random numbers are the seed's.
fn simulate(options: Options) -> Outcome {
    let run = move || {
        fastrand::seed(options.seed);
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .unwrap();
        runtime.block_on(async {
            let world = episodes::run(options).await;
            let days = world.clocks.elapsed().as_secs() / 86_400;
            Outcome { violation: world.violation(), trace: world.trace(), days }
        })
    };
    let thread = thread::Builder::new().stack_size(STACK_BYTES).spawn(run).unwrap();
    thread.join().unwrap_or_else(|_| {
        let violation =
            Violation { name: "panic", step: 0, detail: "of the simulation".to_owned() };
        Outcome { violation: Some(violation), trace: (0, 0), days: 0 }
    })
}

/// The smallest run that fails in the same way.
fn shrink(options: Options, violation: Violation) -> (Options, Violation) {
    let fails_alike = |smaller: Options| {
        let found = simulate(smaller).violation.filter(|found| found.name == violation.name);
        found.map(|found| (smaller, found))
    };
    match options.smaller().into_iter().find_map(fails_alike) {
        Some((smaller, violation)) => shrink(smaller, violation),
        None => (options, violation),
    }
}

/// Prints past the capture of tests: a run of hours says how far it is.
fn print(line: &str) {
    let _closed = writeln!(std::io::stdout(), "{line}");
}

fn report(options: Options, violation: &Violation) {
    let Violation { name, step, detail } = violation;
    print(&format!("violated: {name} at step {step}, seed {}", options.seed));
    print(&format!("  {detail}\n  {options}"));
    if env::var("PARCELO_SHRINK").as_deref() != Ok("0") {
        let (smallest, violation) = shrink(options, violation.clone());
        let Violation { name, step, detail } = violation;
        print(&format!("the smallest: {name} at step {step}\n  {detail}\n  {smallest}"));
    }
}

/// `17`, or `1..200`.
fn seeds() -> (u64, u64) {
    let Ok(text) = env::var("PARCELO_SEEDS") else { return DEFAULT_SEEDS };
    let (first, last) = text.split_once("..").unwrap_or((&text, &text));
    (first.trim().parse().unwrap(), last.trim().trim_start_matches('=').parse().unwrap())
}

#[test]
fn seeds_keep_every_promise() {
    let (first, last) = seeds();
    let threads = env::var("PARCELO_THREADS").ok().and_then(|text| text.parse().ok());
    let threads = threads.unwrap_or(2).min(last - first + 1);
    let (next, has_failed) = (AtomicU64::new(first), AtomicBool::new(false));
    let (failed, sums) = (Mutex::new(None), [0, 0].map(AtomicU64::new));
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while !has_failed.load(Ordering::Relaxed) {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed > last {
                        return;
                    }
                    let options = Options::from_seed(seed);
                    let Outcome { violation, trace, days } = simulate(options);
                    if first == last {
                        print(&trace_line(trace));
                    }
                    sums[0].fetch_add(trace.1, Ordering::Relaxed);
                    sums[1].fetch_add(days, Ordering::Relaxed);
                    if let Some(violation) = violation {
                        has_failed.store(true, Ordering::Relaxed);
                        failed.lock().unwrap().get_or_insert((options, violation));
                    }
                }
            });
        }
    });
    let failed = failed.into_inner().unwrap();
    if let Some((options, violation)) = &failed {
        report(*options, violation);
    }
    let [steps, days] = sums.map(AtomicU64::into_inner);
    print(&format!("simulated: seeds {first} to {last}, {steps} steps, {days} days"));
    assert!(failed.is_none(), "a promise is broken: see above");
}

/// In this process, twice; and in another, whose memory lies elsewhere.
#[test]
fn one_seed_is_one_trace() {
    let [first, again, other] = [5, 5, 6].map(|seed| simulate(Options::from_seed(seed)).trace);
    assert_eq!(first, again);
    assert_ne!(first, other, "another seed is another run");
    let mut child = std::process::Command::new(env::current_exe().unwrap());
    let child = child.args(["simulation::seeds_keep_every_promise", "--exact", "--nocapture"]);
    let child = child.env("PARCELO_SEEDS", "5").env_remove("PARCELO_TRACE").output().unwrap();
    let said = String::from_utf8_lossy(&child.stdout).into_owned();
    assert!(said.contains(&trace_line(first)), "{}: {said}", trace_line(first));
}

fn trace_line((hash, steps): (u64, u64)) -> String {
    format!("trace {hash:016x} of {steps} steps")
}
