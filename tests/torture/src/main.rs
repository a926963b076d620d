//! Real servers, a real PostgreSQL, real faults: clients work on the same orders at once while servers are
//! killed, connections cut, clocks set, disks full and the database crashes. Afterwards every acknowledged order
//! is there once, no other parcel is, each order's calls were answered as by one server that does one thing at a
//! time, and every change of a parcel has reached the receiver of webhooks, in order.

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

/// Faults against real servers, and whether they kept every promise.
#[derive(Parser)]
struct Args {
    /// The server's binary.
    #[arg(long)]
    server: PathBuf,
    /// Where the parcels are.
    #[arg(long, default_value = "postgres")]
    store: Store,
    /// How long faults happen at most.
    #[arg(long, default_value_t = 60)]
    seconds: u64,
    /// Ends sooner once so many writes were acknowledged, and `--kills` happened.
    #[arg(long, default_value_t = u64::MAX)]
    writes: u64,
    /// How many servers are killed at least, if the time allows it.
    #[arg(long, default_value_t = 0)]
    kills: u64,
    /// How many orders are worked on at once.
    #[arg(long, default_value_t = 64)]
    orders: u32,
    /// Writes that are acknowledged between faults, more or less.
    #[arg(long, default_value_t = 300)]
    calm: u64,
    /// Without faults that last longer than a lease of a webhook, and with a receiver that never refuses: it ends sooner.
    #[arg(long)]
    brief: bool,
    /// No disk is ever full: it needs root, to mount a tmpfs.
    #[arg(long)]
    without_full_disks: bool,
    /// No wall clock is set: it needs libfaketime.
    #[arg(long)]
    without_clocks: bool,
    /// Draws the faults and the calls; a new one if absent.
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

/// So many accounts have webhooks of their own: at most ten messages are on their way to each.
const ACCOUNTS: usize = 16;
/// So many accounts more have sandboxes that are reset.
const SANDBOXES: usize = 4;

/// What a run consists of.
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
    // PostgreSQL has its data in there, and is another user.
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
    // With its tasks go the servers, PostgreSQL and its disk.
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
    run.verdict.ask_again(&run.clients, random).await;
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

    /// Works on orders while things go wrong.
    async fn torture(&mut self, args: &Args, random: &mut Rng) {
        let troubles = Arc::clone(&self.troubles);
        // Their keys are made by a command that does not try again, so before anything goes wrong.
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

    /// Until there was enough trouble; says now and then how it goes.
    async fn watch(&self, args: &Args) {
        let (began, clients) = (Instant::now(), &self.clients);
        let mut said = Instant::now();
        let is_enough =
            || clients.counts.writes() >= args.writes && self.troubles.tally.kills() >= args.kills;
        while began.elapsed() < Duration::from_secs(args.seconds) && !is_enough() {
            tokio::time::sleep(Duration::from_millis(100)).await;
            if said.elapsed() > Duration::from_secs(10) {
                said = Instant::now();
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
