//! The fault injector. It draws up to three faults from the seed, injects them at the same time, repairs them, and
//! waits until the clients have written for a while before the next ones.

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
    test_bed::{Pause, TestBed},
};

/// A fault that can be injected into the test bed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Fault {
    /// `kill -9`, then a start.
    KillServer,
    /// SIGTERM, then a start.
    RestartServer,
    /// SIGSTOP, and SIGCONT some seconds later.
    FreezeServer,
    /// A freeze that outlasts the lease of a webhook: the minute in which a server must send it and record the outcome.
    FreezeServerBeyondLease,
    /// A server's wall clock is set forward or back by hours.
    StepClock,
    /// The database's disk becomes full, and has room again seconds later.
    FillDisk,
    /// All connections of a server to PostgreSQL are cut after a random number of messages.
    CutConnections,
    /// The network between a server and PostgreSQL delivers nothing, while connections stay open.
    StallNetwork,
    /// PostgreSQL ends all connections, by `pg_terminate_backend`.
    TerminateConnections,
    /// PostgreSQL stops without writing anything more, as in a power cut, then starts.
    CrashDatabase,
    /// PostgreSQL stops in an orderly way, then starts.
    StopDatabase,
}

/// Relative frequencies of the faults of a run on PostgreSQL.
const POSTGRES_FAULTS: [(Fault, usize); 11] = [
    (Fault::KillServer, 24),
    (Fault::RestartServer, 3),
    (Fault::FreezeServer, 4),
    (Fault::FreezeServerBeyondLease, 1),
    (Fault::StepClock, 3),
    (Fault::FillDisk, 3),
    (Fault::CutConnections, 40),
    (Fault::StallNetwork, 4),
    (Fault::TerminateConnections, 5),
    (Fault::CrashDatabase, 3),
    (Fault::StopDatabase, 2),
];
/// Relative frequencies of the faults of a run on SQLite.
const SQLITE_FAULTS: [(Fault, usize); 5] = [
    (Fault::KillServer, 24),
    (Fault::RestartServer, 3),
    (Fault::FreezeServer, 3),
    (Fault::StepClock, 3),
    (Fault::FillDisk, 3),
];

/// Maximum number of faults at once.
const MAX_CONCURRENT_FAULTS: usize = 3;
/// Maximum time between faults, even if the clients write little.
const MAX_TIME_BETWEEN_FAULTS: Duration = Duration::from_secs(20);
/// Duration of a webhook's lease.
const LEASE: Duration = Duration::from_secs(60);
/// Maximum time from an acknowledgement to its write to the database, however busy the machine is.
const MAX_WRITE_DELAY: Duration = Duration::from_secs(5);
/// Duration of a long freeze, after which another server may have sent the webhooks leased by the frozen one.
const LONGER_THAN_LEASE: Duration = Duration::from_secs(66);
/// Maximum step of a clock in seconds: five hours, so that idempotency keys do not expire.
const MAX_CLOCK_STEP_SECONDS: i64 = 5 * 3_600;

/// The number of times that each fault was injected.
#[derive(Default)]
pub(crate) struct FaultCounts(Mutex<BTreeMap<Fault, u64>>);

impl FaultCounts {
    pub(crate) fn kills(&self) -> u64 {
        self.count(Fault::KillServer)
    }

    pub(crate) fn total(&self) -> u64 {
        self.counts().iter().map(|(_, count)| count).sum()
    }

    /// Returns each injected fault by name, with its count.
    pub(crate) fn counts(&self) -> Vec<(&'static str, u64)> {
        let counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        counts.iter().map(|(fault, count)| (fault.name(), *count)).collect()
    }

    fn count(&self, fault: Fault) -> u64 {
        let counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        counts.get(&fault).copied().unwrap_or(0)
    }

    fn add(&self, fault: Fault) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner).entry(fault).or_default() += 1;
    }
}

/// The fault injector of a run, with the servers that it disturbs.
pub(crate) struct FaultInjector {
    pub(crate) test_bed: Arc<TestBed>,
    pub(crate) clients: Arc<Clients>,
    pub(crate) fault_counts: FaultCounts,
    /// Approximate number of acknowledged writes between faults.
    pub(crate) writes_between_faults: u64,
    /// Set if a server may be frozen for longer than a webhook's lease.
    pub(crate) has_long_freezes: bool,
    pub(crate) is_running: AtomicBool,
}

impl FaultInjector {
    /// Injects faults until the run ends. Returns once all of them are repaired.
    pub(crate) async fn run(self: Arc<Self>, mut random: Rng) {
        let is_postgres = self.test_bed.postgres.is_some();
        let table: &[_] = if is_postgres { &POSTGRES_FAULTS } else { &SQLITE_FAULTS };
        let possible: Vec<_> = table.iter().filter(|(fault, _)| self.is_possible(*fault)).collect();
        let weighted: Vec<_> =
            possible.iter().flat_map(|(fault, weight)| vec![*fault; *weight]).collect();
        // Even a short run injects each fault once.
        let mut untried: Vec<_> = possible.iter().map(|(fault, _)| *fault).collect();
        random.shuffle(&mut untried);
        let mut long_faults = JoinSet::new();
        while self.is_running.load(Ordering::SeqCst) {
            let mut batch = JoinSet::new();
            for _ in 0..random.usize(1..=MAX_CONCURRENT_FAULTS) {
                let fault =
                    untried.pop().unwrap_or_else(|| weighted[random.usize(..weighted.len())]);
                let injection = Arc::clone(&self).inject(fault, random.fork());
                if fault == Fault::FreezeServerBeyondLease {
                    long_faults.spawn(injection);
                } else {
                    batch.spawn(injection);
                }
            }
            batch.join_all().await;
            self.restart_ended_servers();
            self.wait_between_faults(&mut random).await;
        }
        long_faults.join_all().await;
        self.restart_ended_servers();
    }

    fn is_possible(&self, fault: Fault) -> bool {
        match fault {
            Fault::FreezeServerBeyondLease => self.has_long_freezes,
            Fault::StepClock => self.test_bed.clock.is_some(),
            Fault::FillDisk => self.test_bed.disk.can_be_full(),
            _ => true,
        }
    }

    /// Restarts servers that have exited on their own, as a service manager would.
    fn restart_ended_servers(&self) {
        for server in &self.test_bed.servers {
            if server.fault_lock.try_lock().is_ok() {
                server.restart_if_ended();
            }
        }
    }

    async fn wait_between_faults(&self, random: &mut Rng) {
        let enough = self.clients.counts.writes()
            + random.u64(self.writes_between_faults / 2..=self.writes_between_faults * 3 / 2);
        let began = Instant::now();
        while self.clients.counts.writes() < enough
            && began.elapsed() < MAX_TIME_BETWEEN_FAULTS
            && self.is_running.load(Ordering::SeqCst)
        {
            tokio::time::sleep(Duration::from_millis(10)).await;
            self.restart_ended_servers();
        }
    }

    async fn inject(self: Arc<Self>, fault: Fault, mut random: Rng) {
        match fault {
            Fault::KillServer
            | Fault::RestartServer
            | Fault::FreezeServer
            | Fault::FreezeServerBeyondLease => {
                let index = random.usize(..self.test_bed.servers.len());
                // If another fault affects this server, nothing is injected.
                let server = &self.test_bed.servers[index];
                let Ok(_guard) = Arc::clone(&server.fault_lock).try_lock_owned() else { return };
                self.fault_counts.add(fault);
                self.inject_into_server(fault, index, &mut random).await;
            }
            Fault::CutConnections | Fault::StallNetwork => {
                self.fault_counts.add(fault);
                let proxy = &self.test_bed.proxies[random.usize(..self.test_bed.proxies.len())];
                if fault == Fault::CutConnections {
                    proxy.cut_after(random.u32(1..60));
                } else {
                    let stall = proxy.stall(random_duration(&mut random));
                    self.record_pause(LEASE, stall).await;
                }
            }
            Fault::StepClock => {
                self.fault_counts.add(fault);
                if let Some(clock) = &self.test_bed.clock {
                    clock.set_ahead(random.i64(-MAX_CLOCK_STEP_SECONDS..=MAX_CLOCK_STEP_SECONDS));
                }
            }
            Fault::TerminateConnections
            | Fault::CrashDatabase
            | Fault::StopDatabase
            | Fault::FillDisk => {
                let Ok(_guard) = self.test_bed.database_lock.try_lock() else { return };
                self.fault_counts.add(fault);
                self.inject_into_database(fault, &mut random).await;
            }
        }
    }

    async fn inject_into_server(&self, fault: Fault, index: usize, random: &mut Rng) {
        let server = &self.test_bed.servers[index];
        match fault {
            Fault::KillServer => {
                // On SQLite, the next server ends the killed one's leases, so that webhooks whose acknowledgement was
                // not written are sent again at once. On PostgreSQL, leases expire.
                let lookback = self.test_bed.postgres.is_none().then_some(MAX_WRITE_DELAY);
                self.restart_server(lookback, index, "-KILL").await;
            }
            // A server that stops ends those of its leases whose outcome it could not write.
            Fault::RestartServer => self.restart_server(Some(LEASE), index, "-TERM").await,
            _ => {
                let is_long = fault == Fault::FreezeServerBeyondLease;
                let time = if is_long { LONGER_THAN_LEASE } else { random_duration(random) };
                server.signal("-STOP");
                self.record_pause(LEASE, tokio::time::sleep(time)).await;
                server.signal("-CONT");
            }
        }
    }

    /// Ends a server and starts it again.
    async fn restart_server(&self, lookback: Option<Duration>, index: usize, signal: &str) {
        let restart = async {
            let server = &self.test_bed.servers[index];
            server.signal(signal);
            run_blocking(&self.test_bed, move |test_bed| test_bed.servers[index].wait_for_exit())
                .await;
            server.start();
        };
        match lookback {
            Some(lookback) => self.record_pause(lookback, restart).await,
            None => restart.await,
        }
    }

    async fn inject_into_database(&self, fault: Fault, random: &mut Rng) {
        match fault {
            // When the disk is full, PostgreSQL exits, and so does a server on SQLite.
            Fault::FillDisk => self.record_pause(MAX_WRITE_DELAY, self.fill_disk(random)).await,
            Fault::TerminateConnections => {
                run_blocking(&self.test_bed, |test_bed| {
                    run_on_postgres(test_bed, Postgres::terminate_connections)
                })
                .await;
            }
            Fault::CrashDatabase => {
                let restart = |it: &Postgres| it.restart(Shutdown::Immediate);
                run_blocking(&self.test_bed, move |test_bed| run_on_postgres(test_bed, restart))
                    .await;
            }
            _ => {
                let restart = |it: &Postgres| it.restart(Shutdown::Fast);
                run_blocking(&self.test_bed, move |test_bed| run_on_postgres(test_bed, restart))
                    .await;
            }
        }
    }

    async fn fill_disk(&self, random: &mut Rng) {
        self.test_bed.disk.leave_free(random.u64(..2_048));
        tokio::time::sleep(Duration::from_millis(random.u64(300..3_000))).await;
        // A server that is started now has no room either.
        self.restart_ended_servers();
        tokio::time::sleep(Duration::from_millis(random.u64(0..500))).await;
        self.test_bed.disk.remove_limit();
        run_blocking(&self.test_bed, |test_bed| {
            run_on_postgres(test_bed, Postgres::ensure_running)
        })
        .await;
    }

    /// Waits for `period`, and records it as a pause. Acknowledgements in the `lookback` before it may not have been
    /// written.
    async fn record_pause(&self, lookback: Duration, period: impl Future<Output = ()>) {
        let began = Instant::now();
        period.await;
        let mut pauses = self.test_bed.pauses.lock().unwrap_or_else(PoisonError::into_inner);
        pauses.push(Pause { began, ended: Instant::now(), lookback });
    }
}

impl Fault {
    const fn name(self) -> &'static str {
        match self {
            Self::KillServer => "kill -9 of a server",
            Self::RestartServer => "SIGTERM of a server",
            Self::FreezeServer => "SIGSTOP of a server for seconds",
            Self::FreezeServerBeyondLease => "SIGSTOP of a server for more than a minute",
            Self::StepClock => "wall clock of a server set by hours",
            Self::FillDisk => "disk of the database full",
            Self::CutConnections => "connections cut after a message",
            Self::StallNetwork => "network that delivers nothing",
            Self::TerminateConnections => "pg_terminate_backend of all",
            Self::CrashDatabase => "PostgreSQL: -m immediate",
            Self::StopDatabase => "PostgreSQL: -m fast",
        }
    }
}

/// Draws a duration, mostly short, but sometimes longer than a client's timeout.
fn random_duration(random: &mut Rng) -> Duration {
    let longest = if random.u8(..6) == 0 { 8_000 } else { 1_500 };
    Duration::from_millis(random.u64(200..longest))
}

fn run_on_postgres(test_bed: &TestBed, action: impl FnOnce(&Postgres)) {
    if let Some(postgres) = &test_bed.postgres {
        action(postgres);
    }
}

async fn run_blocking(test_bed: &Arc<TestBed>, action: impl FnOnce(&TestBed) + Send + 'static) {
    let test_bed = Arc::clone(test_bed);
    tokio::task::spawn_blocking(move || action(&test_bed))
        .await
        .expect("a fault that can be injected");
}
