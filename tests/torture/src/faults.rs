//! What goes wrong, one thing after another, drawn from the seed.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use fastrand::Rng;

use crate::{
    postgres::{Postgres, Shutdown},
    proxy::Proxy,
    servers::Server,
};

/// What the faults happen to.
pub(crate) struct World {
    pub(crate) servers: Vec<Server>,
    /// With PostgreSQL: one for each server.
    pub(crate) proxies: Vec<Proxy>,
    pub(crate) postgres: Option<Postgres>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Fault {
    /// `kill -9`, and a start.
    Kill,
    /// SIGTERM, and a start.
    Restart,
    /// SIGSTOP, and SIGCONT after seconds.
    Freeze,
    /// A connection cut at some message of a group.
    Cut,
    /// A network that passes nothing on.
    Stall,
    /// `pg_terminate_backend` of all.
    EndConnections,
    /// PostgreSQL stopped as by a power cut, and started.
    Crash,
    /// PostgreSQL stopped in order, and started.
    StopDatabase,
}

/// How often each of them comes: cuts are cheap and find most.
const WITH_POSTGRES: [(Fault, usize); 8] = [
    (Fault::Kill, 4),
    (Fault::Restart, 2),
    (Fault::Freeze, 2),
    (Fault::Cut, 40),
    (Fault::Stall, 2),
    (Fault::EndConnections, 4),
    (Fault::Crash, 1),
    (Fault::StopDatabase, 1),
];
const WITH_A_FILE: [(Fault, usize); 3] =
    [(Fault::Kill, 6), (Fault::Restart, 1), (Fault::Freeze, 1)];

/// How often each fault happened.
pub(crate) type Tally = BTreeMap<&'static str, u64>;

/// Makes trouble as long as it is to go on.
pub(crate) async fn make(world: Arc<World>, mut random: Rng, go_on: Arc<AtomicBool>) -> Tally {
    let mut tally = Tally::new();
    let table: &[(Fault, usize)] =
        if world.postgres.is_some() { &WITH_POSTGRES } else { &WITH_A_FILE };
    let bag: Vec<_> = table.iter().flat_map(|(fault, weight)| vec![*fault; *weight]).collect();
    while go_on.load(Ordering::SeqCst) {
        let fault = bag[random.usize(..bag.len())];
        *tally.entry(fault.name()).or_default() += 1;
        let victim = random.usize(..world.servers.len());
        fault.happen(&world, victim, &mut random).await;
        tokio::time::sleep(Duration::from_millis(random.u64(20..400))).await;
    }
    tally
}

impl Fault {
    const fn name(self) -> &'static str {
        match self {
            Self::Kill => "kill -9 of a server",
            Self::Restart => "SIGTERM of a server",
            Self::Freeze => "SIGSTOP of a server for seconds",
            Self::Cut => "connection cut at a message",
            Self::Stall => "network that passes nothing on",
            Self::EndConnections => "pg_terminate_backend of all",
            Self::Crash => "PostgreSQL: -m immediate",
            Self::StopDatabase => "PostgreSQL: -m fast",
        }
    }

    async fn happen(self, world: &Arc<World>, victim: usize, random: &mut Rng) {
        let server = &world.servers[victim];
        match self {
            Self::Kill | Self::Restart => {
                server.signal(if self == Self::Kill { "-KILL" } else { "-TERM" });
                blocking(world, move |world| world.servers[victim].wait()).await;
                server.start();
            }
            Self::Freeze => {
                server.signal("-STOP");
                tokio::time::sleep(Duration::from_millis(random.u64(500..8_000))).await;
                server.signal("-CONT");
            }
            Self::Cut => world.proxies[victim].cut_after(random.u32(1..60)),
            Self::Stall => {
                world.proxies[victim].stall(Duration::from_millis(random.u64(500..6_000))).await
            }
            Self::EndConnections => {
                blocking(world, |world| postgres(world, Postgres::end_connections)).await
            }
            Self::Crash => {
                blocking(world, |world| postgres(world, |it| it.restart(Shutdown::Immediate))).await
            }
            Self::StopDatabase => {
                blocking(world, |world| postgres(world, |it| it.restart(Shutdown::Fast))).await
            }
        }
    }
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
