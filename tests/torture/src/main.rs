//! Real servers, a real PostgreSQL, real faults: clients work on the same orders at once while servers are
//! killed, connections cut and the database crashes. Afterwards every acknowledged order is there once, no
//! other parcel is, and each order's calls were answered as by one server that does one thing at a time.

mod clients;
mod faults;
mod linearizability;
mod model;
mod postgres;
mod proxy;
mod servers;

use std::{
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use clap::{Parser, ValueEnum};
use fastrand::Rng;

use self::{
    clients::{Clients, OrderHistory},
    faults::{Tally, World},
    linearizability::is_linearizable,
    model::{Answer, Call, Order},
    postgres::Postgres,
    proxy::Proxy,
    servers::Server,
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
    /// How long faults happen.
    #[arg(long, default_value_t = 60)]
    seconds: u64,
    /// Ends sooner once so many writes were acknowledged.
    #[arg(long, default_value_t = u64::MAX)]
    writes: u64,
    /// How many orders are worked on at once.
    #[arg(long, default_value_t = 24)]
    orders: u32,
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

#[tokio::main]
async fn main() {
    let args = Args::parse();
    let seed = args.seed.unwrap_or_else(|| fastrand::u64(..1_000_000));
    println!("seed {seed}");
    let mut random = Rng::with_seed(seed);
    let folder = tempfile::tempdir().expect("a folder");
    let world = Arc::new(furnish(&args, folder.path()).await);
    let addresses = world.servers.iter().map(Server::address).collect();
    let clients = Arc::new(Clients::new(addresses, world.servers[0].new_key()));
    let mut orders = wait_until_ready(&world, &clients, &mut random).await;
    let (under_faults, tally) = torture(&args, &world, &clients, &mut random).await;
    orders.extend(under_faults);
    println!("faults end; {} orders are asked for again", orders.len());
    orders.extend(wait_until_ready(&world, &clients, &mut random).await);
    let without_answer = ask_again(&clients, &orders, &mut random).await;
    report(&world, &clients, &tally);
    let parcels = clients.parcels().await;
    if judge(&orders, without_answer, parcels) {
        return;
    }
    let _kept = folder.keep();
    for server in &world.servers {
        println!("see {}", server.log.display());
    }
    std::process::exit(1);
}

async fn furnish(args: &Args, folder: &Path) -> World {
    let (postgres, servers) = match args.store {
        Store::Postgres => (Some(Postgres::start()), 3),
        Store::Sqlite => (None, 1),
    };
    let mut world = World { servers: Vec::new(), proxies: Vec::new(), postgres };
    for at in 0..servers {
        let database = match &world.postgres {
            Some(postgres) => {
                let proxy = Proxy::start(postgres.socket()).await;
                let database =
                    format!("postgres://parcelo@127.0.0.1:{}/torture?sslmode=disable", proxy.port);
                world.proxies.push(proxy);
                database
            }
            None => format!("sqlite:{}", folder.join("parcelo.db").display()),
        };
        let server = Server::new(&args.server, database, folder.join(format!("server{at}.log")));
        server.start();
        world.servers.push(server);
    }
    world
}

/// Waits until every server answers, and gives the orders that were created meanwhile.
async fn wait_until_ready(
    world: &World,
    clients: &Arc<Clients>,
    random: &mut Rng,
) -> Vec<Arc<OrderHistory>> {
    let began = Instant::now();
    let (mut orders, mut in_a_row) = (Vec::new(), 0);
    while in_a_row < 4 * world.servers.len() {
        assert!(began.elapsed() < Duration::from_secs(90), "the servers do not come back");
        for server in &world.servers {
            server.ensure_alive();
        }
        let order = clients.work(random).await;
        let all_answered = order.records().iter().all(|record| record.answered.is_some());
        in_a_row = if all_answered { in_a_row + 1 } else { 0 };
        orders.push(order);
    }
    orders
}

/// Works on orders while things go wrong.
async fn torture(
    args: &Args,
    world: &Arc<World>,
    clients: &Arc<Clients>,
    random: &mut Rng,
) -> (Vec<Arc<OrderHistory>>, Tally) {
    let go_on = Arc::new(AtomicBool::new(true));
    let faults = tokio::spawn(faults::make(Arc::clone(world), random.fork(), Arc::clone(&go_on)));
    let ends = Instant::now() + Duration::from_secs(args.seconds);
    let mut workers = tokio::task::JoinSet::new();
    for _ in 0..args.orders {
        let (clients, mut random, writes) = (Arc::clone(clients), random.fork(), args.writes);
        workers.spawn(async move {
            let mut orders = Vec::new();
            while Instant::now() < ends
                && clients.acknowledged_writes.load(Ordering::Relaxed) < writes
            {
                orders.push(clients.work(&mut random).await);
            }
            orders
        });
    }
    let orders = workers.join_all().await.into_iter().flatten().collect();
    go_on.store(false, Ordering::SeqCst);
    (orders, faults.await.expect("faults that can happen"))
}

/// Creates every order again under its key, and looks where its parcel stands; how many did not answer.
async fn ask_again(
    clients: &Arc<Clients>,
    orders: &[Arc<OrderHistory>],
    random: &mut Rng,
) -> usize {
    let mut workers = tokio::task::JoinSet::new();
    for part in orders.chunks(orders.len() / 32 + 1) {
        let (clients, part, mut random) = (Arc::clone(clients), part.to_vec(), random.fork());
        workers.spawn(async move {
            let mut without_answer = 0;
            for order in part {
                let again = clients.call(&order, Call::Create, &mut random).await;
                let stands = clients.call(&order, Call::Track, &mut random).await;
                without_answer += usize::from(again.is_none() || stands.is_none());
            }
            without_answer
        });
    }
    workers.join_all().await.into_iter().sum()
}

fn report(world: &World, clients: &Clients, tally: &Tally) {
    for (fault, count) in tally {
        println!("{count:>8} {fault}");
    }
    let cuts: u64 = world.proxies.iter().map(Proxy::cuts).sum();
    println!("{cuts:>8} connections were cut");
    println!("{:>8} writes were acknowledged", clients.acknowledged_writes.load(Ordering::Relaxed));
    println!("{:>8} calls had no answer", clients.without_answer.load(Ordering::Relaxed));
}

/// Whether every promise was kept.
fn judge(orders: &[Arc<OrderHistory>], without_answer: usize, parcels: u64) -> bool {
    let (mut wrong, mut doubled) = (0, 0);
    for order in orders {
        let records = order.records();
        if !is_linearizable::<Order>(&records) {
            wrong += 1;
            println!("{}: no order of these calls fits their answers: {records:#?}", order.key);
        }
        let creations = records
            .iter()
            .filter(|record| matches!(record.answered, Some((_, Answer::Created(_)))));
        doubled += usize::from(creations.count() > 1);
    }
    let expected = orders.len() as u64;
    println!("{expected:>8} orders, and {parcels} parcels");
    println!("{wrong:>8} orders whose calls are not linearizable");
    println!("{doubled:>8} orders that were created twice");
    println!("{without_answer:>8} orders that are not answered afterwards");
    wrong + doubled + without_answer == 0 && parcels == expected
}
