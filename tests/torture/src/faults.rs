//! The faults, drawn from the seed: a few at once, then none for a while.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use fastrand::Rng;
use tokio::task::JoinSet;

use crate::{
    clients::Clients,
    postgres::{Postgres, Shutdown},
    world::{Pause, World},
};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Fault {
    /// `kill -9`, then a start.
    Kill,
    /// SIGTERM, then a start.
    Restart,
    /// SIGSTOP, and SIGCONT after seconds.
    Freeze,
    /// The same for longer than the lease of a webhook.
    FreezeBeyondLease,
    /// A wall clock that is set by hours.
    StepClock,
    /// A full disk of the database, and room again.
    FillDisk,
    /// A connection that is cut at some message of a group.
    Cut,
    /// A network that passes nothing on.
    Stall,
    /// `pg_terminate_backend` for all connections.
    EndConnections,
    /// PostgreSQL stopped as by a power cut, then started.
    Crash,
    /// PostgreSQL stopped in order, then started.
    StopDatabase,
}

/// The relative frequency of each fault.
const WITH_POSTGRES: [(Fault, usize); 11] = [
    (Fault::Kill, 24),
    (Fault::Restart, 3),
    (Fault::Freeze, 4),
    (Fault::FreezeBeyondLease, 1),
    (Fault::StepClock, 3),
    (Fault::FillDisk, 3),
    (Fault::Cut, 40),
    (Fault::Stall, 4),
    (Fault::EndConnections, 5),
    (Fault::Crash, 3),
    (Fault::StopDatabase, 2),
];
const WITH_A_FILE: [(Fault, usize); 5] = [
    (Fault::Kill, 24),
    (Fault::Restart, 3),
    (Fault::Freeze, 3),
    (Fault::StepClock, 3),
    (Fault::FillDisk, 3),
];

/// Maximum number of faults at once.
const AT_ONCE: usize = 3;
/// Maximum duration of the calm between faults, however little was written.
const MAX_CALM: Duration = Duration::from_secs(20);
/// Duration of a webhook's lease.
const LEASE: Duration = Duration::from_secs(60);
/// Maximum time until an acknowledgement is written to the database, however busy the machine is.
const UNWRITTEN: Duration = Duration::from_secs(5);
/// A minute and some seconds.
const BEYOND_LEASE: Duration = Duration::from_secs(66);
/// Maximum step of a clock in seconds, five hours, so that keys do not expire.
const MAX_STEP: i64 = 5 * 3_600;

/// The number of times that each fault happened.
#[derive(Default)]
pub(crate) struct Tally(Mutex<BTreeMap<Fault, u64>>);

impl Tally {
    pub(crate) fn kills(&self) -> u64 {
        self.count(Fault::Kill)
    }

    pub(crate) fn all(&self) -> u64 {
        self.counts().iter().map(|(_, count)| count).sum()
    }

    /// Returns the counts with the names of the faults.
    pub(crate) fn counts(&self) -> Vec<(&'static str, u64)> {
        let tally = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        tally.iter().map(|(fault, count)| (fault.name(), *count)).collect()
    }

    fn count(&self, fault: Fault) -> u64 {
        let tally = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        tally.get(&fault).copied().unwrap_or(0)
    }

    fn add(&self, fault: Fault) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner).entry(fault).or_default() += 1;
    }
}

/// The servers, clients and settings of the faults.
pub(crate) struct Troubles {
    pub(crate) world: Arc<World>,
    pub(crate) clients: Arc<Clients>,
    pub(crate) tally: Tally,
    /// Approximate number of acknowledged writes between faults.
    pub(crate) calm: u64,
    /// Set if a server may be stopped for more than a minute.
    pub(crate) may_outlast_leases: bool,
    pub(crate) go_on: AtomicBool,
}

impl Troubles {
    /// Makes faults until the run ends, and returns when all of them are repaired.
    pub(crate) async fn make(self: Arc<Self>, mut random: Rng) {
        let is_postgres = self.world.postgres.is_some();
        let table: &[_] = if is_postgres { &WITH_POSTGRES } else { &WITH_A_FILE };
        let possible: Vec<_> = table.iter().filter(|(fault, _)| self.is_possible(*fault)).collect();
        let bag: Vec<_> =
            possible.iter().flat_map(|(fault, weight)| vec![*fault; *weight]).collect();
        // Each fault happens once, however short the run is.
        let mut first: Vec<_> = possible.iter().map(|(fault, _)| *fault).collect();
        random.shuffle(&mut first);
        let mut long = JoinSet::new();
        while self.go_on.load(Ordering::SeqCst) {
            let mut batch = JoinSet::new();
            for _ in 0..random.usize(1..=AT_ONCE) {
                let fault = first.pop().unwrap_or_else(|| bag[random.usize(..bag.len())]);
                let happening = Arc::clone(&self).happen(fault, random.fork());
                if fault == Fault::FreezeBeyondLease {
                    long.spawn(happening);
                } else {
                    batch.spawn(happening);
                }
            }
            batch.join_all().await;
            self.ensure_alive();
            self.calm_down(&mut random).await;
        }
        long.join_all().await;
        self.ensure_alive();
    }

    fn is_possible(&self, fault: Fault) -> bool {
        match fault {
            Fault::FreezeBeyondLease => self.may_outlast_leases,
            Fault::StepClock => self.world.clock.is_some(),
            Fault::FillDisk => self.world.disk.can_be_full(),
            _ => true,
        }
    }

    /// Starts a process again that ended by itself, as a service manager does.
    fn ensure_alive(&self) {
        for server in &self.world.servers {
            if server.turn.try_lock().is_ok() {
                server.ensure_alive();
            }
        }
    }

    async fn calm_down(&self, random: &mut Rng) {
        let enough = self.clients.counts.writes() + random.u64(self.calm / 2..=self.calm * 3 / 2);
        let began = Instant::now();
        while self.clients.counts.writes() < enough
            && began.elapsed() < MAX_CALM
            && self.go_on.load(Ordering::SeqCst)
        {
            tokio::time::sleep(Duration::from_millis(10)).await;
            self.ensure_alive();
        }
    }

    async fn happen(self: Arc<Self>, fault: Fault, mut random: Rng) {
        match fault {
            Fault::Kill | Fault::Restart | Fault::Freeze | Fault::FreezeBeyondLease => {
                let victim = random.usize(..self.world.servers.len());
                // Another fault may be happening to it.
                let server = &self.world.servers[victim];
                let Ok(_turn) = Arc::clone(&server.turn).try_lock_owned() else { return };
                self.tally.add(fault);
                self.happen_to(fault, victim, &mut random).await;
            }
            Fault::Cut | Fault::Stall => {
                self.tally.add(fault);
                let proxy = &self.world.proxies[random.usize(..self.world.proxies.len())];
                if fault == Fault::Cut {
                    proxy.cut_after(random.u32(1..60));
                } else {
                    let stall = proxy.stall(some_seconds(&mut random));
                    self.pause(LEASE, stall).await;
                }
            }
            Fault::StepClock => {
                self.tally.add(fault);
                if let Some(clock) = &self.world.clock {
                    clock.step(random.i64(-MAX_STEP..=MAX_STEP));
                }
            }
            Fault::EndConnections | Fault::Crash | Fault::StopDatabase | Fault::FillDisk => {
                let Ok(_turn) = self.world.database_turn.try_lock() else { return };
                self.tally.add(fault);
                self.happen_to_database(fault, &mut random).await;
            }
        }
    }

    async fn happen_to(&self, fault: Fault, victim: usize, random: &mut Rng) {
        let server = &self.world.servers[victim];
        match fault {
            Fault::Kill => {
                // On a file the next server ends the leases of the one before; on PostgreSQL they expire.
                let reaches_back = self.world.postgres.is_none().then_some(UNWRITTEN);
                self.end(reaches_back, victim, "-KILL").await;
            }
            // It ends the leases whose outcome it could not write.
            Fault::Restart => self.end(Some(LEASE), victim, "-TERM").await,
            _ => {
                let is_long = fault == Fault::FreezeBeyondLease;
                let time = if is_long { BEYOND_LEASE } else { some_seconds(random) };
                server.signal("-STOP");
                self.pause(LEASE, tokio::time::sleep(time)).await;
                server.signal("-CONT");
            }
        }
    }

    /// Ends a server and starts it again.
    async fn end(&self, reaches_back: Option<Duration>, victim: usize, signal: &str) {
        let restart = async {
            let server = &self.world.servers[victim];
            server.signal(signal);
            blocking(&self.world, move |world| world.servers[victim].wait()).await;
            server.start();
        };
        match reaches_back {
            Some(reaches_back) => self.pause(reaches_back, restart).await,
            None => restart.await,
        }
    }

    async fn happen_to_database(&self, fault: Fault, random: &mut Rng) {
        match fault {
            // A server on a file ends when the disk is full, and so does PostgreSQL.
            Fault::FillDisk => self.pause(UNWRITTEN, self.fill_disk(random)).await,
            Fault::EndConnections => {
                blocking(&self.world, |world| postgres(world, Postgres::end_connections)).await;
            }
            Fault::Crash => {
                let restart = |it: &Postgres| it.restart(Shutdown::Immediate);
                blocking(&self.world, move |world| postgres(world, restart)).await;
            }
            _ => {
                let restart = |it: &Postgres| it.restart(Shutdown::Fast);
                blocking(&self.world, move |world| postgres(world, restart)).await;
            }
        }
    }

    async fn fill_disk(&self, random: &mut Rng) {
        self.world.disk.limit(random.u64(..2_048));
        tokio::time::sleep(Duration::from_millis(random.u64(300..3_000))).await;
        // It finds no room when it starts either.
        self.ensure_alive();
        tokio::time::sleep(Duration::from_millis(random.u64(0..500))).await;
        self.world.disk.make_room();
        blocking(&self.world, |world| postgres(world, Postgres::ensure_running)).await;
    }

    /// Records a period in which something stands still, and how long before it the acknowledgements are in doubt.
    async fn pause(&self, reaches_back: Duration, still: impl Future<Output = ()>) {
        let began = Instant::now();
        still.await;
        let mut pauses = self.world.pauses.lock().unwrap_or_else(PoisonError::into_inner);
        pauses.push(Pause { began, ended: Instant::now(), reaches_back });
    }
}

impl Fault {
    const fn name(self) -> &'static str {
        match self {
            Self::Kill => "kill -9 of a server",
            Self::Restart => "SIGTERM of a server",
            Self::Freeze => "SIGSTOP of a server for seconds",
            Self::FreezeBeyondLease => "SIGSTOP of a server for more than a minute",
            Self::StepClock => "wall clock of a server set by hours",
            Self::FillDisk => "disk of the database full",
            Self::Cut => "connection cut at a message",
            Self::Stall => "network that passes nothing on",
            Self::EndConnections => "pg_terminate_backend of all",
            Self::Crash => "PostgreSQL: -m immediate",
            Self::StopDatabase => "PostgreSQL: -m fast",
        }
    }
}

/// Draws a duration: usually short, at times longer than calls wait.
fn some_seconds(random: &mut Rng) -> Duration {
    let longest = if random.u8(..6) == 0 { 8_000 } else { 1_500 };
    Duration::from_millis(random.u64(200..longest))
}

fn postgres(world: &World, act: impl FnOnce(&Postgres)) {
    if let Some(postgres) = &world.postgres {
        act(postgres);
    }
}

async fn blocking(world: &Arc<World>, act: impl FnOnce(&World) + Send + 'static) {
    let world = Arc::clone(world);
    tokio::task::spawn_blocking(move || act(&world)).await.expect("a fault that can happen");
}
