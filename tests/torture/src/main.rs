//! A torture test with real server processes and a real PostgreSQL. Clients work on the same orders concurrently while
//! faults are injected: servers are killed, connections cut, clocks stepped, disks filled, and the database crashes.
//!
//! Afterwards the run checks three promises: every acknowledged order exists exactly once, and no other parcel exists;
//! the calls on each order were answered as if one server had executed them one at a time (`linearizability.rs`); and
//! every change of a parcel's status reached the webhook receiver, in order (`receiver.rs`).

mod clients;
mod disk;
mod fault_injector;
mod finished_order;
mod linearizability;
mod model;
mod postgres;
mod proxy;
mod receiver;
mod requests;
mod resets;
mod servers;
mod stepped_clock;
mod test_bed;
mod verdict;

use std::{
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use clap::{Parser, ValueEnum};
use fastrand::Rng;
use tokio::task::JoinSet;

use self::{
    clients::Clients,
    fault_injector::{FaultCounts, FaultInjector},
    finished_order::FinishedOrder,
    receiver::Receiver,
    resets::Sandbox,
    servers::Server,
    test_bed::{TestBed, TestBedSettings},
    verdict::Verdict,
};

/// Faults against real servers, and a check that they kept every promise.
#[derive(Parser)]
struct Args {
    /// The server's binary.
    #[arg(long)]
    server: PathBuf,
    /// The database of the parcels.
    #[arg(long, default_value = "postgres")]
    store: Store,
    /// Maximum duration of the faults, in seconds.
    #[arg(long, default_value_t = 60)]
    seconds: u64,
    /// Ends the faults early, once this many writes were acknowledged and `--kills` servers were killed.
    #[arg(long, default_value_t = u64::MAX)]
    writes: u64,
    /// Minimum number of kills of servers, if the time allows it.
    #[arg(long, default_value_t = 0)]
    kills: u64,
    /// Number of orders that are worked on at once.
    #[arg(long, default_value_t = 64)]
    orders: u32,
    /// Approximate number of acknowledged writes between faults.
    #[arg(long, default_value_t = 300)]
    calm: u64,
    /// Ends sooner: no fault lasts longer than a webhook's lease, and the receiver refuses no webhook.
    #[arg(long)]
    brief: bool,
    /// Never fills a disk, which needs root, to mount a tmpfs.
    #[arg(long)]
    without_full_disks: bool,
    /// Never sets a wall clock, which needs libfaketime.
    #[arg(long)]
    without_clocks: bool,
    /// The seed of the faults and the calls; a new one if absent.
    #[arg(long)]
    seed: Option<u64>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Store {
    /// Three servers, each with a proxy to PostgreSQL that can cut its connections.
    Postgres,
    /// One server on a SQLite file.
    Sqlite,
}

/// Number of accounts, each with its own webhook, because at most ten messages are in flight to each.
const ACCOUNTS: usize = 16;
/// Number of further accounts, whose sandboxes are filled and reset.
const SANDBOXES: usize = 4;

/// The servers, clients and receiver of a run.
struct Run {
    injector: Arc<FaultInjector>,
    clients: Arc<Clients>,
    receiver: Receiver,
    verdict: Verdict,
}

fn main() {
    let args = Args::parse();
    let seed = args.seed.unwrap_or_else(|| fastrand::u64(..1_000_000));
    println!("seed {seed}");
    let folder = tempfile::tempdir().expect("a folder");
    // PostgreSQL runs as another user and has its data in this folder.
    let readable = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(folder.path(), readable).expect("a folder");
    let mut random = Rng::with_seed(seed);
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let has_passed = runtime.block_on(async {
        tokio::select! {
            has_passed = run(&args, folder.path(), &mut random) => has_passed,
            _ = tokio::signal::ctrl_c() => false,
        }
    });
    // The runtime's tasks own the servers, PostgreSQL and its disk, so it is dropped explicitly.
    drop(runtime);
    if !has_passed {
        println!("seed {seed}: see the servers' logs in {}", folder.keep().display());
        std::process::exit(1);
    }
}

async fn run(args: &Args, folder: &Path, random: &mut Rng) -> bool {
    let settings = TestBedSettings {
        binary: &args.server,
        is_postgres: args.store == Store::Postgres,
        has_full_disks: !args.without_full_disks,
        has_clocks: !args.without_clocks,
    };
    let test_bed = Arc::new(TestBed::start(&settings, folder).await);
    let receiver = Receiver::start(random.fork(), !args.brief).await;
    for server in &test_bed.servers {
        server.wait_until_listening();
    }
    let accounts = (0..ACCOUNTS).map(|at| test_bed.new_account(at, &receiver)).collect();
    let addresses = test_bed.servers.iter().map(Server::address).collect();
    let clients = Arc::new(Clients::new(addresses, accounts, test_bed.clock_of_only_server()));
    let injector = Arc::new(FaultInjector {
        test_bed,
        clients: Arc::clone(&clients),
        fault_counts: FaultCounts::default(),
        writes_between_faults: args.calm.max(2),
        has_long_freezes: !args.brief,
        is_running: AtomicBool::new(true),
    });
    let mut run = Run { injector, clients, receiver, verdict: Verdict::default() };
    run.wait_until_ready(random).await;
    run.run_under_faults(args, random).await;
    println!("faults end");
    run.wait_until_ready(random).await;
    run.verdict.recheck_orders(&run.clients, random).await;
    run.verdict.wait_for_webhooks(run.receiver.delivery_log()).await;
    run.verdict.report(&run.injector, &run.receiver).await
}

impl Run {
    /// Waits until every server answers.
    async fn wait_until_ready(&mut self, random: &mut Rng) {
        let began = Instant::now();
        let test_bed = &self.injector.test_bed;
        let mut in_a_row = 0;
        while in_a_row < 4 * test_bed.servers.len() {
            assert!(began.elapsed() < Duration::from_secs(300), "the servers do not come back");
            for server in &test_bed.servers {
                server.restart_if_ended();
            }
            let order = FinishedOrder::new(self.clients.work_on_new_order(random).await);
            let all_answered = order.as_ref().is_ok_and(FinishedOrder::is_fully_answered);
            in_a_row = if all_answered { in_a_row + 1 } else { 0 };
            self.verdict.add_order(order);
        }
    }

    /// Works on orders while faults are injected.
    async fn run_under_faults(&mut self, args: &Args, random: &mut Rng) {
        let injector = Arc::clone(&self.injector);
        // Keys are created before the first fault, because the command that creates them does not retry.
        let idle: Vec<_> = (0..SANDBOXES).map(|at| Sandbox::new(&injector.test_bed, at)).collect();
        let injecting = tokio::spawn(Arc::clone(&injector).run(random.fork()));
        let mut workers = JoinSet::new();
        for _ in 0..args.orders {
            let (injector, mut random) = (Arc::clone(&injector), random.fork());
            workers.spawn(async move {
                let mut orders = Vec::new();
                while injector.is_running.load(Ordering::SeqCst) {
                    let order =
                        FinishedOrder::new(injector.clients.work_on_new_order(&mut random).await);
                    if let Err(violation) = &order {
                        println!("{violation}");
                    }
                    orders.push(order);
                }
                orders
            });
        }
        let mut sandboxes = JoinSet::new();
        for sandbox in idle {
            let (injector, mut random) = (Arc::clone(&injector), random.fork());
            sandboxes.spawn(async move { sandbox.fill_and_reset(&injector, &mut random).await });
        }
        self.wait_until_enough(args).await;
        injector.is_running.store(false, Ordering::SeqCst);
        for order in workers.join_all().await.into_iter().flatten() {
            self.verdict.add_order(order);
        }
        injecting.await.expect("faults that can be injected");
        self.verdict.add_sandboxes(sandboxes.join_all().await);
    }

    /// Waits until the time is over or enough has been written and killed, and prints the progress at intervals.
    async fn wait_until_enough(&self, args: &Args) {
        let (began, clients) = (Instant::now(), &self.clients);
        let mut printed = Instant::now();
        let is_enough = || {
            clients.counts.writes() >= args.writes
                && self.injector.fault_counts.kills() >= args.kills
        };
        while began.elapsed() < Duration::from_secs(args.seconds) && !is_enough() {
            tokio::time::sleep(Duration::from_millis(100)).await;
            if printed.elapsed() > Duration::from_secs(10) {
                printed = Instant::now();
                println!(
                    "{:>5} s: {} writes, {} faults, {} kills, {} events",
                    began.elapsed().as_secs(),
                    clients.counts.writes(),
                    self.injector.fault_counts.total(),
                    self.injector.fault_counts.kills(),
                    self.receiver.delivery_log().counts.events.load(Ordering::Relaxed),
                );
            }
        }
    }
}
