//! Real servers, a real PostgreSQL, real faults: clients work on the same orders at once while servers are killed,
//! connections cut, clocks set, disks full and the database crashes. Afterwards every acknowledged order exists once
//! and no further parcel does, each order's calls were answered as by one server that does one thing at a time, and
//! every change of a parcel has reached the receiver of webhooks, in order.

mod calls;
mod clients;
mod disk;
mod faults;
mod kept;
mod linearizability;
mod model;
mod postgres;
mod proxy;
mod receiver;
mod resets;
mod servers;
mod stepped_clock;
mod verdict;
mod world;

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
    faults::{Tally, Troubles},
    kept::KeptOrder,
    receiver::Receiver,
    resets::Sandbox,
    servers::Server,
    verdict::Verdict,
    world::{Plan, World},
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
    /// Ends the faults early once this many writes were acknowledged and `--kills` happened.
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
    /// Leaves out faults that last longer than a webhook's lease, and the receiver never refuses: it ends sooner.
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
    /// Three servers, each with a proxy that cuts.
    Postgres,
    /// One server on a file.
    Sqlite,
}

/// Number of accounts with separate webhooks: at most ten messages are in flight to each.
const ACCOUNTS: usize = 16;
/// Number of further accounts whose sandboxes are reset.
const SANDBOXES: usize = 4;

/// The servers, clients and receiver of a run.
struct Run {
    troubles: Arc<Troubles>,
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
    let all_may_look = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(folder.path(), all_may_look).expect("a folder");
    let mut random = Rng::with_seed(seed);
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let is_sound = runtime.block_on(async {
        tokio::select! {
            is_sound = run(&args, folder.path(), &mut random) => is_sound,
            _ = tokio::signal::ctrl_c() => false,
        }
    });
    // The tasks of the runtime own the servers, PostgreSQL and its disk.
    drop(runtime);
    if !is_sound {
        println!("seed {seed}: see the servers' logs in {}", folder.keep().display());
        std::process::exit(1);
    }
}

async fn run(args: &Args, folder: &Path, random: &mut Rng) -> bool {
    let plan = Plan {
        binary: &args.server,
        is_postgres: args.store == Store::Postgres,
        has_full_disks: !args.without_full_disks,
        has_clocks: !args.without_clocks,
    };
    let world = Arc::new(World::furnish(&plan, folder).await);
    let receiver = Receiver::start(random.fork(), !args.brief).await;
    for server in &world.servers {
        server.wait_until_it_listens();
    }
    let accounts = (0..ACCOUNTS).map(|at| world.new_account(at, &receiver)).collect();
    let addresses = world.servers.iter().map(Server::address).collect();
    let clients = Arc::new(Clients::new(addresses, accounts, world.clock_of_only_server()));
    let troubles = Arc::new(Troubles {
        world,
        clients: Arc::clone(&clients),
        tally: Tally::default(),
        calm: args.calm.max(2),
        may_outlast_leases: !args.brief,
        go_on: AtomicBool::new(true),
    });
    let mut run = Run { troubles, clients, receiver, verdict: Verdict::default() };
    run.wait_until_ready(random).await;
    run.torture(args, random).await;
    println!("faults end");
    run.wait_until_ready(random).await;
    run.verdict.check_again(&run.clients, random).await;
    run.verdict.wait_for_webhooks(run.receiver.ledger()).await;
    run.verdict.judge(&run.troubles, &run.receiver).await
}

impl Run {
    /// Waits until every server answers.
    async fn wait_until_ready(&mut self, random: &mut Rng) {
        let began = Instant::now();
        let world = &self.troubles.world;
        let mut in_a_row = 0;
        while in_a_row < 4 * world.servers.len() {
            assert!(began.elapsed() < Duration::from_secs(300), "the servers do not come back");
            for server in &world.servers {
                server.ensure_alive();
            }
            let order = KeptOrder::new(self.clients.work(random).await);
            let all_answered = order.as_ref().is_ok_and(KeptOrder::is_settled);
            in_a_row = if all_answered { in_a_row + 1 } else { 0 };
            self.verdict.add(order);
        }
    }

    /// Works on orders while faults happen.
    async fn torture(&mut self, args: &Args, random: &mut Rng) {
        let troubles = Arc::clone(&self.troubles);
        // Their keys are made by a command that does not try again, so before the first fault.
        let all: Vec<_> = (0..SANDBOXES).map(|at| Sandbox::new(&troubles.world, at)).collect();
        let making = tokio::spawn(Arc::clone(&troubles).make(random.fork()));
        let mut workers = JoinSet::new();
        for _ in 0..args.orders {
            let (troubles, mut random) = (Arc::clone(&troubles), random.fork());
            workers.spawn(async move {
                let mut orders = Vec::new();
                while troubles.go_on.load(Ordering::SeqCst) {
                    let order = KeptOrder::new(troubles.clients.work(&mut random).await);
                    if let Err(fault) = &order {
                        println!("{fault}");
                    }
                    orders.push(order);
                }
                orders
            });
        }
        let mut sandboxes = JoinSet::new();
        for sandbox in all {
            let (troubles, mut random) = (Arc::clone(&troubles), random.fork());
            sandboxes.spawn(async move { sandbox.work(&troubles, &mut random).await });
        }
        self.watch(args).await;
        troubles.go_on.store(false, Ordering::SeqCst);
        for order in workers.join_all().await.into_iter().flatten() {
            self.verdict.add(order);
        }
        making.await.expect("faults that can happen");
        self.verdict.add_sandboxes(sandboxes.join_all().await);
    }

    /// Waits until enough faults happened, and prints the progress at intervals.
    async fn watch(&self, args: &Args) {
        let (began, clients) = (Instant::now(), &self.clients);
        let mut printed = Instant::now();
        let is_enough =
            || clients.counts.writes() >= args.writes && self.troubles.tally.kills() >= args.kills;
        while began.elapsed() < Duration::from_secs(args.seconds) && !is_enough() {
            tokio::time::sleep(Duration::from_millis(100)).await;
            if printed.elapsed() > Duration::from_secs(10) {
                printed = Instant::now();
                println!(
                    "{:>5} s: {} writes, {} faults, {} kills, {} events",
                    began.elapsed().as_secs(),
                    clients.counts.writes(),
                    self.troubles.tally.all(),
                    self.troubles.tally.kills(),
                    self.receiver.ledger().counts.events.load(Ordering::Relaxed),
                );
            }
        }
    }
}
