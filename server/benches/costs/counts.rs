//! The figures and how they are counted: by valgrind in a separate process, by the allocator, or by the length of the
//! log.

use std::{
    fmt::{self, Display},
    path::Path,
    process::{Command, Stdio},
    thread,
};

use crate::{
    subject::{self, Subject},
    work::{self, Work},
};

/// The argument with which this program only works, to be counted.
pub(crate) const COUNT: &str = "count";
/// The function in which `SQLite` does all work of a statement. Instructions within it count as SQL.
const STATEMENTS: &str = "sqlite3_step";
/// Bytes of a page in the log: the page of the file, and its header.
const LOG_PAGE: f64 = 4096.0 + 24.0;
/// Number of orders that are written to a log before a new one is begun. It is far below the number that starts a
/// checkpoint, after which a log is written from its beginning again.
const ORDERS_A_LOG: usize = 64;
const LOGS: usize = 8;

/// The cost of one answer or one order, by its unit.
#[derive(Clone, Copy)]
pub(crate) enum Figure {
    Instructions(Work),
    /// Instructions within statements.
    Sql(Work),
    /// Allocations on the thread that answers.
    Allocations(Work),
    /// Pages that an order writes to the log, in groups of this many orders.
    LogPages(usize),
}

impl Figure {
    pub(crate) fn all() -> impl Iterator<Item = Self> {
        let groups = [1, 12, 64];
        let instructions = Work::ANSWERS.into_iter().map(Self::Instructions);
        instructions
            .chain(groups.map(|orders| Self::Sql(Work::Group(orders))))
            .chain([Self::Sql(Work::InMemory)])
            .chain(groups.map(Self::LogPages))
            .chain([Work::Create, Work::Repeat, Work::Tracking].map(Self::Allocations))
    }

    pub(crate) fn count(self, database: &Path) -> f64 {
        match self {
            // Each run creates the same orders before them.
            Self::Instructions(Work::Webhook) => {
                instructions(Work::Webhook, None, database)
                    - instructions(Work::Create, None, database)
            }
            Self::Instructions(work) => instructions(work, None, database),
            Self::Sql(work) => instructions(work, Some(STATEMENTS), database),
            Self::Allocations(work) => allocations(work, database),
            Self::LogPages(orders) => log_pages(orders, database),
        }
    }
}

impl Display for Figure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Instructions(work) => write!(f, "instructions of {work}"),
            Self::Sql(work) => write!(f, "instructions of SQL of {work}"),
            Self::Allocations(work) => write!(f, "allocations of {work}"),
            Self::LogPages(orders) => write!(f, "pages of the log of {}", Work::Group(*orders)),
        }
    }
}

/// Returns the instructions of one more answer, only those within a function if one is named.
fn instructions(work: Work, within: Option<&str>, database: &Path) -> f64 {
    let times = work.times();
    // The two run at once, which does not change their figures.
    let (fewer, more) = thread::scope(|scope| {
        let fewer = scope.spawn(|| counted(work, times, within, database));
        let more = counted(work, 2 * times, within, database);
        (fewer.join().unwrap(), more)
    });
    (more - fewer) / (times * work.orders()) as f64
}

/// Returns the instructions of a process that does the work.
fn counted(work: Work, times: usize, within: Option<&str>, database: &Path) -> f64 {
    let (copy, _folder) = subject::copy(database);
    let mut command = Command::new("valgrind");
    command.args(["--tool=callgrind", "--callgrind-out-file=/dev/null"]);
    command.args(within.map(|function| format!("--toggle-collect={function}")));
    command.arg(std::env::current_exe().unwrap()).arg(COUNT);
    command.args([work.to_string(), times.to_string()]).arg(copy).stdout(Stdio::null());
    let output = command.output().unwrap_or_else(|error| panic!("valgrind is to count: {error}"));
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}");
    let count = text.lines().find_map(|line| line.split_once("refs:")).unwrap().1;
    count.trim().replace(',', "").parse().unwrap()
}

fn allocations(work: Work, database: &Path) -> f64 {
    let (copy, _folder) = subject::copy(database);
    let subject = Subject::start(&copy);
    let times = work.times();
    let mut worker = work::Worker::new(subject);
    // The first work includes things that are created only once.
    worker.work(work, times);
    let found = allocation_counter::measure(|| worker.work(work, times));
    worker.finish();
    found.count_total as f64 / times as f64
}

fn log_pages(orders: usize, database: &Path) -> f64 {
    let groups = (ORDERS_A_LOG / orders).max(1);
    let bytes: u64 = (0..LOGS)
        .map(|_| {
            let (copy, _folder) = subject::copy(database);
            let log = copy.with_extension("db-wal");
            let mut worker = work::Worker::new(Subject::start(&copy));
            let before = log.metadata().unwrap().len();
            worker.work(Work::Group(orders), groups);
            let written = log.metadata().unwrap().len() - before;
            worker.finish();
            written
        })
        .sum();
    bytes as f64 / LOG_PAGE / (LOGS * groups * orders) as f64
}
