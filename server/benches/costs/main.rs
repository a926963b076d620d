//! The costs of the service in figures that do not depend on the load of the machine: instructions, allocations, and
//! pages of the write-ahead log. A figure above its bound in `bounds.tsv` fails the run, and CI with it.
//!
//! ```text
//! cargo bench --profile costs -p parcelo-server --bench costs                       or `just costs`
//! … --bench costs -- [--only TEXT] [--parcels N]   only figures whose names hold TEXT; another size
//! PARCELO_BLESS=1 …                                today's figures become the table, their bounds a quarter above
//! ```
//!
//! `callgrind_annotate` shows why a figure has grown: `valgrind --tool=callgrind PROGRAM count WHAT 200 DATABASE`,
//! whose program and database the run names when it fails.
//!
//! The server runs in this process, on one thread beside the store's, with a frozen clock and ids from a seed. The
//! figures of a whole server process varied by 5 %, because its periodic jobs follow the clock while valgrind runs fifty
//! times slower, and because the worker threads of its runtime wake one another at random.
//! A figure is the difference between a run with some number of answers and one with twice as many, divided by that
//! number, so that the cost of a start drops out. The database has 20,000 parcels with random keys and numbers: in a
//! small one every random leaf is shared, and a random index looks free.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::disallowed_methods,
    clippy::indexing_slicing,
    clippy::cast_precision_loss,
    reason = "a benchmark fails loudly and prints"
)]

mod bounds;
mod counts;
mod measured_server;
mod work;

use std::{path::Path, process::ExitCode};

use bounds::Bounds;
use counts::{COUNT_COMMAND, Figure};

/// Number of parcels in the database.
const PARCELS: usize = 20_000;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [COUNT_COMMAND, name, times, database] =
        arguments.iter().map(String::as_str).collect::<Vec<_>>()[..]
    {
        work::run(name.parse().unwrap(), times.parse().unwrap(), Path::new(database));
        return ExitCode::SUCCESS;
    }
    let value = |name: &str| {
        let at = arguments.iter().position(|argument| argument == name)?;
        Some(arguments.get(at + 1).unwrap_or_else(|| panic!("{name} needs a value")).as_str())
    };
    let only = value("--only").unwrap_or_default();
    let parcels = value("--parcels").map_or(PARCELS, |parcels| parcels.parse().unwrap());
    measure(only, parcels)
}

fn measure(only: &str, parcels: usize) -> ExitCode {
    let folder = tempfile::tempdir().unwrap();
    let database = folder.path().join("parcelo.db");
    measured_server::prepare_database(&database, parcels);
    let mut bounds = Bounds::read();
    println!("| what | counted | at most |\n|---|---|---|");
    for figure in Figure::all().filter(|figure| figure.to_string().contains(only)) {
        bounds.compare(&figure.to_string(), figure.count(&database));
    }
    if bounds.finish() {
        return ExitCode::SUCCESS;
    }
    let program = std::env::current_exe().unwrap();
    eprintln!("the program is {}, the database {}", program.display(), folder.keep().display());
    ExitCode::FAILURE
}
