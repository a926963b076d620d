//! Deliberate faults, each of which the simulation must see: they show that it would see a real one.
//!
//! The product is not changed for them. Its sources are copied, the faults of `table.rs` are written into the copy, each
//! behind a choice at run time, and the simulation is built there once and run for each of them.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a command's output")]

mod patch;
mod report;
mod run;
mod table;
mod workspace;

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
    sync::atomic::{AtomicUsize, Ordering},
    thread,
};

use clap::Parser;

use self::{
    report::Row,
    run::Verdict,
    table::{MUTANTS, Mutant},
    workspace::NotCopied,
};

/// Whether the simulation sees each of the deliberate faults, and how soon.
#[derive(Debug, Parser)]
struct Args {
    /// The mutants whose name has this in it; all if absent.
    only: Option<String>,
    /// How many seeds a mutant may take.
    #[arg(long, default_value_t = 200)]
    seeds: u64,
    /// From how many places each is run; the figure is the median.
    #[arg(long, default_value_t = 5)]
    starts: u64,
    /// How many run at once.
    #[arg(long, default_value_t = 2)]
    threads: usize,
    /// Leaves out the run without a mutant.
    #[arg(long)]
    no_control: bool,
    /// Only copies the sources with the faults, to `target/mutants/workspace`.
    #[arg(long)]
    copy_only: bool,
    /// A simulation that is built already.
    #[arg(long)]
    built: Option<PathBuf>,
}

/// So far apart are the seeds from which each is run.
const DISTANCE: u64 = 1_000_000;

fn main() -> ExitCode {
    match try_main(&Args::parse()) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn try_main(args: &Args) -> Result<ExitCode, String> {
    let copy = Path::new("target/mutants/workspace");
    workspace::copy(Path::new("."), copy).map_err(|reason| match reason {
        NotCopied::Stale(all) => all.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"),
        NotCopied::Io(path, error) => format!("{}: {error}", path.display()),
    })?;
    if args.copy_only {
        return Ok(ExitCode::SUCCESS);
    }
    let simulation = match &args.built {
        Some(path) => path.clone(),
        None => run::build(copy).map_err(|error| error.to_string())?,
    };
    let simulation = simulation.as_path();
    if !args.no_control {
        control(simulation, args)?;
    }
    let chosen: Vec<_> = MUTANTS.iter().filter(|mutant| is_wanted(mutant, args)).collect();
    let rows = run_all(simulation, &chosen, args);
    println!("{}", report::table(&rows, args.seeds));
    let all_caught = rows.iter().all(|row| row.median().is_some());
    Ok(if all_caught { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn is_wanted(mutant: &Mutant, args: &Args) -> bool {
    args.only.as_deref().is_none_or(|part| mutant.name.contains(part))
}

fn starts(args: &Args) -> impl Iterator<Item = u64> {
    (0..args.starts).map(|place| 1 + place * DISTANCE)
}

/// Without a mutant the same seeds must be clean: what is seen then is the mutant.
fn control(simulation: &Path, args: &Args) -> Result<(), String> {
    for first in starts(args) {
        match run::run(simulation, None, first, args.seeds) {
            Verdict::Clean => {}
            verdict => return Err(format!("without a mutant, from seed {first} on: {verdict:?}")),
        }
    }
    println!("without a mutant: {} seeds, no violation", args.starts * args.seeds);
    Ok(())
}

fn run_all(simulation: &Path, mutants: &[&'static Mutant], args: &Args) -> Vec<Row> {
    let next = AtomicUsize::new(0);
    let work = || {
        let mut rows = Vec::new();
        while let place = next.fetch_add(1, Ordering::Relaxed)
            && let Some(mutant) = mutants.get(place)
        {
            let run = |first| run::run(simulation, Some(mutant.name), first, args.seeds);
            let row = Row { mutant, verdicts: starts(args).map(run).collect() };
            eprintln!("{}", row.line());
            rows.push((place, row));
        }
        rows
    };
    let mut rows: Vec<_> = thread::scope(|scope| {
        let workers: Vec<_> = (0..args.threads.max(1)).map(|_| scope.spawn(work)).collect();
        workers.into_iter().flat_map(|worker| worker.join().unwrap_or_default()).collect()
    });
    rows.sort_by_key(|(place, _)| *place);
    rows.into_iter().map(|(_, row)| row).collect()
}
