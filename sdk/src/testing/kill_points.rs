//! Ships an order with a journal, in processes that are killed at every point, against a model of the service in memory.

mod process;
mod service;
mod world;

use std::{fmt, time::Duration};

use crate::{
    TrackingNumber,
    journal::{Journal, JournalError},
};

use process::Ended;
use service::Fault;
use world::{Interruption, Kind, Program, World};

/// Ships an order with your journal, in processes that are killed at every point, and returns the number of runs, if in
/// each of them the order has one parcel in the end, and the journal knows it.
///
/// `open` opens the journal of a name, as your program does when it starts: a new name is an empty journal, and a name
/// that it was called with before is the journal as the process that was killed left it.
///
/// A run is a process that ships the order, one that comes later, and then others until it is settled. Each makes the
/// order again, with another idempotency key, and calls [`resume`](crate::calls::Orders::resume) and
/// [`ship`](crate::calls::Orders::ship), or `ship` alone. The runs differ in
///
/// - where the first two are killed: before or after a call of the journal, before a request is sent, or before its
///   response arrives; or where a call of the journal fails, whether or not it has written,
/// - what becomes of the first creation in each: executed, not executed, executed later, refused, with a response that
///   arrives, is lost, or cannot be read,
/// - the time until the second: none, minutes, or a day, when the idempotency key has expired; and whether the next has
///   another API key.
///
/// It opens a journal several times in each of about 2,000 runs, so its time is that of your database: half a minute in
/// memory, minutes on a slow disk. Nothing here needs the disk to last, so put the folder in memory
/// (`TMPDIR=/dev/shm cargo test` on Linux).
///
/// There are no sockets, no waits and no randomness. The journal's destructor runs when a process is killed, and nothing
/// is cut off within a call: what a loss of power leaves of a write is for the journal's own tests.
///
/// Errors: the first run that ships a parcel twice or never, step by step.
///
/// ```no_run
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use parcelo::{journal::JournalFile, testing::kill_points};
///
/// let folder = tempfile::tempdir()?;
/// let open = async |name: &str| Ok(JournalFile::open(folder.path().join(name))?);
/// let runs = kill_points(open).await?;
/// assert!(runs > 1000);
/// # Ok(())
/// # }
/// ```
pub async fn kill_points<J: Journal>(
    open: impl AsyncFn(&str) -> Result<J, JournalError>,
) -> Result<usize, Violation> {
    let mut runs = Runs { open, count: 0, lost_entry: None };
    for (fault, gap) in Fault::ALL.into_iter().flat_map(|fault| Gap::ALL.map(|gap| (fault, gap))) {
        for kind in [Kind::JournalFails, Kind::Kill] {
            runs.interrupt_everywhere(kind, fault, gap).await?;
        }
    }
    // A parcel that is shipped twice says more, and ends the runs at once.
    runs.lost_entry.map_or(Ok(runs.count), Err)
}

struct Runs<F> {
    open: F,
    count: usize,
    /// The first run in which the journal lost what it had acknowledged, and one parcel was shipped all the same.
    lost_entry: Option<Violation>,
}

impl<J: Journal, F: AsyncFn(&str) -> Result<J, JournalError>> Runs<F> {
    /// Interrupts the first process at each of its steps, and finally at none.
    async fn interrupt_everywhere(
        &mut self,
        kind: Kind,
        fault: Fault,
        gap: Gap,
    ) -> Result<(), Violation> {
        for step in 1.. {
            let first = Interruption { kind, step };
            let run =
                Run { fault, gap, interruptions: [Some(first), None], program: Program::Ships };
            self.perform(run).await?;
            let was_reached =
                self.perform(Run { program: Program::ResumesAndShips, ..run }).await?;
            // Only those combinations of two kills where an outcome is unknown and the key is not the same.
            if kind == Kind::Kill && fault.leaves_doubt() && gap.changes_key() {
                self.kill_second_everywhere(fault, gap, first).await?;
            }
            if !was_reached[0] {
                break;
            }
        }
        Ok(())
    }

    async fn kill_second_everywhere(
        &mut self,
        fault: Fault,
        gap: Gap,
        first: Interruption,
    ) -> Result<(), Violation> {
        for step in 1.. {
            let second = Interruption { kind: Kind::Kill, step };
            let program = Program::ResumesAndShips;
            let run = Run { fault, gap, interruptions: [Some(first), Some(second)], program };
            if !self.perform(run).await?[1] {
                break;
            }
        }
        Ok(())
    }

    /// Performs a run; returns whether each interruption was reached.
    async fn perform(&mut self, run: Run) -> Result<[bool; 2], Violation> {
        self.count += 1;
        let name = format!("run-{}", self.count);
        let Finished { was_reached, lost_entry } = run.perform(&self.open, &name).await?;
        self.lost_entry = self.lost_entry.take().or(lost_entry);
        Ok(was_reached)
    }
}

/// A run in which [`kill_points`] found an order that was shipped twice or never. `Display` and `Debug` show it step by
/// step.
#[derive(Clone)]
pub struct Violation {
    what: String,
    steps: Vec<String>,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.what)?;
        (1..).zip(&self.steps).try_for_each(|(number, step)| write!(f, "\n{number:3} {step}"))
    }
}

impl fmt::Debug for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for Violation {}

/// The time and the changes between two processes.
#[derive(Debug, Clone, Copy)]
struct Gap {
    time: Duration,
    changes_api_key: bool,
}

impl Gap {
    const A_DAY: Self = Self::of_minutes(25 * 60);
    /// The key has expired for the client, and the service still knows it.
    const NEARLY_A_DAY: Self = Self::of_minutes(24 * 60 - 5);
    const ALL: [Self; 6] = [
        Self::of_minutes(0),
        Self::NEARLY_A_DAY,
        Self::A_DAY,
        Self { changes_api_key: true, ..Self::of_minutes(0) },
        Self { changes_api_key: true, ..Self::of_minutes(11) },
        Self { changes_api_key: true, ..Self::A_DAY },
    ];

    const fn of_minutes(minutes: u64) -> Self {
        Self { time: Duration::from_secs(60 * minutes), changes_api_key: false }
    }

    /// Returns `true` if an open order needs another idempotency key after it.
    fn changes_key(self) -> bool {
        self.time == Self::A_DAY.time || self.changes_api_key
    }

    /// Returns the gap without a pause.
    fn at_once(self) -> Self {
        Self { time: Duration::ZERO, ..self }
    }
}

/// Maximum number of processes that are not interrupted: one may find the last attempt under way, and the next has to
/// wait for it.
const MAX_LAST_PROCESSES: usize = 3;

/// A run that ended with one parcel.
struct Finished {
    /// `true` for each interruption that was reached.
    was_reached: [bool; 2],
    lost_entry: Option<Violation>,
}

#[derive(Debug, Clone, Copy)]
struct Run {
    program: Program,
    fault: Fault,
    gap: Gap,
    interruptions: [Option<Interruption>; 2],
}

impl Run {
    /// Performs the run.
    async fn perform<J: Journal>(
        &self,
        open: &impl AsyncFn(&str) -> Result<J, JournalError>,
        name: &str,
    ) -> Result<Finished, Violation> {
        let world = World::new(self.program);
        let mut was_reached = [false; 2];
        let gaps = [self.gap, self.gap.at_once()];
        let processes = self.interruptions.into_iter().zip(gaps);
        for (reached, (interruption, gap)) in was_reached.iter_mut().zip(processes) {
            world.begin_process(self.fault, interruption);
            process::run(&world, open, name).await?;
            *reached = world.end_process();
            world.pass(gap);
        }
        for _ in 0..MAX_LAST_PROCESSES {
            world.begin_process(Fault::None, None);
            let ended = process::run(&world, open, name).await?;
            world.end_process();
            if let Ended::Shipped(number) = ended {
                let lost_entry = check(&world, open, name, &number).await?;
                return Ok(Finished { was_reached, lost_entry });
            }
            world.pass(Gap::A_DAY);
        }
        Err(world.violation("the order was never shipped"))
    }
}

/// Checks the end of a run: one parcel, and a journal that has lost nothing.
async fn check<J: Journal>(
    world: &World,
    open: &impl AsyncFn(&str) -> Result<J, JournalError>,
    name: &str,
    number: &TrackingNumber,
) -> Result<Option<Violation>, Violation> {
    // Whatever is still under way is executed now.
    world.pass(Gap::A_DAY);
    let parcels = world.parcels();
    if parcels.len() > 1 {
        return Err(world.violation("the order was shipped twice"));
    }
    if parcels.first().map(String::as_str) != Some(number.as_str()) {
        return Err(
            world.violation("the order was lost: it has no parcel with the number returned")
        );
    }
    if world.has_lost_entry() {
        return Ok(Some(world.violation("the journal has lost an order that it had saved")));
    }
    let unreadable = |error| world.violation(&format!("the journal cannot be read: {error}"));
    let journal = open(name).await.map_err(unreadable)?;
    let is_settled = journal.open().await.map_err(unreadable)?.is_empty();
    Ok((!is_settled).then(|| world.violation("the journal has lost that the order is settled")))
}
