//! Counting the costs: instructions with valgrind in a separate process, allocations with the global allocator, and
//! pages by the length of the write-ahead log.

use std::{
    fmt::{self, Display},
    path::Path,
    process::{Command, Stdio},
    thread,
};

use crate::{
    measured_server::{self, MeasuredServer},
    work::{self, Work},
};

/// Command-line argument that makes this program run only the work whose instructions valgrind counts.
pub(crate) const COUNT_COMMAND: &str = "count";
/// The function in which `SQLite` executes statements. Instructions within it count as SQL.
const SQLITE_STEP: &str = "sqlite3_step";
/// Bytes of a page in the write-ahead log: a page of the database and the log's frame header.
const WAL_PAGE_BYTES: f64 = 4096.0 + 24.0;
/// Number of orders written to one log before a new one is started. It is far below the size that triggers a
/// checkpoint, after which the log is overwritten from its beginning.
const ORDERS_PER_WAL: usize = 64;
const WAL_COUNT: usize = 8;

/// The cost of one answer or one order, by its unit.
#[derive(Clone, Copy)]
pub(crate) enum Figure {
    Instructions(Work),
    /// Instructions within SQL statements.
    Sql(Work),
    /// Allocations on the thread that handles the request.
    Allocations(Work),
    /// Pages per order that a group commit of this many orders writes to the log.
    WalPages(usize),
}

impl Figure {
    pub(crate) fn all() -> impl Iterator<Item = Self> {
        let instructions = Work::OVER_HTTP.into_iter().map(Self::Instructions);
        instructions
            .chain(Work::GROUPS.map(|orders| Self::Sql(Work::Group(orders))))
            .chain([Self::Sql(Work::InMemory)])
            .chain(Work::GROUPS.map(Self::WalPages))
            .chain([Work::Create, Work::Repeat, Work::Tracking].map(Self::Allocations))
    }

    pub(crate) fn count(self, database: &Path) -> f64 {
        match self {
            // Every run creates the same orders before the counted ones.
            Self::Instructions(Work::Webhook) => {
                instructions_per_answer(Work::Webhook, None, database)
                    - instructions_per_answer(Work::Create, None, database)
            }
            Self::Instructions(work) => instructions_per_answer(work, None, database),
            Self::Sql(work) => instructions_per_answer(work, Some(SQLITE_STEP), database),
            Self::Allocations(work) => count_allocations(work, database),
            Self::WalPages(orders) => count_wal_pages(orders, database),
        }
    }
}

impl Display for Figure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Instructions(work) => write!(f, "instructions of {work}"),
            Self::Sql(work) => write!(f, "instructions of SQL of {work}"),
            Self::Allocations(work) => write!(f, "allocations of {work}"),
            Self::WalPages(orders) => write!(f, "pages of the log of {}", Work::Group(*orders)),
        }
    }
}

/// Returns the instructions per request, or only those within a function if one is given: the difference between two
/// runs, divided by the number of requests.
fn instructions_per_answer(work: Work, within: Option<&str>, database: &Path) -> f64 {
    let times = work.repetitions();
    // The two runs can be concurrent: that does not change what valgrind counts.
    let (fewer, more) = thread::scope(|scope| {
        let fewer = scope.spawn(|| count_in_valgrind(work, times, within, database));
        let more = count_in_valgrind(work, 2 * times, within, database);
        (fewer.join().unwrap(), more)
    });
    (more - fewer) / (times * work.orders_per_repetition()) as f64
}

/// Runs the work in a separate process under valgrind, and returns its instructions.
fn count_in_valgrind(work: Work, times: usize, within: Option<&str>, database: &Path) -> f64 {
    let (copy, _folder) = measured_server::copy_database(database);
    let mut command = Command::new("valgrind");
    command.args(["--tool=callgrind", "--callgrind-out-file=/dev/null"]);
    command.args(within.map(|function| format!("--toggle-collect={function}")));
    command.arg(std::env::current_exe().unwrap()).arg(COUNT_COMMAND);
    command.args([work.to_string(), times.to_string()]).arg(copy).stdout(Stdio::null());
    let output = command.output().unwrap_or_else(|error| panic!("valgrind is to count: {error}"));
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}");
    let count = text.lines().find_map(|line| line.split_once("refs:")).unwrap().1;
    count.trim().replace(',', "").parse().unwrap()
}

fn count_allocations(work: Work, database: &Path) -> f64 {
    let (copy, _folder) = measured_server::copy_database(database);
    let server = MeasuredServer::start(&copy);
    let times = work.repetitions();
    let mut worker = work::Worker::new(server);
    // The first repetition also creates what later ones reuse.
    worker.perform(work, times);
    let found = allocation_counter::measure(|| worker.perform(work, times));
    worker.finish();
    found.count_total as f64 / times as f64
}

fn count_wal_pages(orders: usize, database: &Path) -> f64 {
    let groups = (ORDERS_PER_WAL / orders).max(1);
    let bytes: u64 = (0..WAL_COUNT)
        .map(|_| {
            let (copy, _folder) = measured_server::copy_database(database);
            let log = copy.with_extension("db-wal");
            let mut worker = work::Worker::new(MeasuredServer::start(&copy));
            let before = log.metadata().unwrap().len();
            worker.perform(Work::Group(orders), groups);
            let written = log.metadata().unwrap().len() - before;
            worker.finish();
            written
        })
        .sum();
    bytes as f64 / WAL_PAGE_BYTES / (WAL_COUNT * groups * orders) as f64
}
