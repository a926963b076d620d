//! The verdict on every promise, from the clients' answers, the final state of the service, and the webhooks.

use std::{
    sync::{Arc, PoisonError, atomic::Ordering},
    time::{Duration, Instant},
};

use fastrand::Rng;
use tokio::task::JoinSet;

use crate::{
    clients::Clients,
    faults::Troubles,
    kept::{Final, KeptOrder},
    receiver::{Ledger, Receiver},
    resets::Sandbox,
};

/// Maximum wait for the next webhook. If its server was killed a webhook is sent after its lease, and if it is refused
/// then, after five more minutes.
const LAST_WEBHOOK: Duration = Duration::from_secs(400);
/// Maximum number of webhooks in flight to an account, whose outcome a fault can keep a server from writing.
const MAX_IN_FLIGHT: u64 = 10;
/// Maximum number of faults that are printed.
const PRINTED: usize = 20;

/// The orders, and the faults found.
#[derive(Default)]
pub(crate) struct Verdict {
    orders: Vec<KeptOrder>,
    finals: Vec<Final>,
    faults: Vec<String>,
    events: u64,
    resets: u64,
}

impl Verdict {
    pub(crate) fn add(&mut self, order: Result<KeptOrder, String>) {
        match order {
            Ok(order) => self.orders.push(order),
            Err(fault) => self.faults.push(fault),
        }
    }

    pub(crate) fn add_sandboxes(&mut self, sandboxes: Vec<Sandbox>) {
        for sandbox in sandboxes {
            self.resets += sandbox.resets;
            self.faults.extend(sandbox.faults);
        }
    }

    /// Creates every order again under its key and checks its parcel.
    pub(crate) async fn check_again(&mut self, clients: &Arc<Clients>, random: &mut Rng) {
        let orders = std::mem::take(&mut self.orders);
        println!("{} orders are asked for again", orders.len());
        let mut workers = JoinSet::new();
        let (size, mut orders) = (orders.len() / 32 + 1, orders.into_iter());
        for _ in 0..32 {
            let part: Vec<_> = orders.by_ref().take(size).collect();
            let (clients, mut random) = (Arc::clone(clients), random.fork());
            workers.spawn(async move {
                let mut checked = Vec::new();
                for order in part {
                    checked.push(order.check_again(&clients, &mut random).await);
                }
                checked
            });
        }
        for checked in workers.join_all().await.into_iter().flatten() {
            match checked {
                Ok(order) => self.finals.push(order),
                Err(fault) => self.faults.push(fault),
            }
        }
    }

    /// Waits until every change of every parcel has arrived, and compares the two.
    pub(crate) async fn wait_for_webhooks(&mut self, ledger: &Ledger) {
        let (mut newest, mut received) = (Instant::now(), 0);
        let mut waiting: Vec<_> = self.finals.iter().collect();
        self.events = waiting.iter().map(|order| order.moves.len() as u64).sum();
        println!("webhooks of {} events are waited for", self.events);
        loop {
            waiting.retain(|order| match ledger.judge(&order.number, &order.moves) {
                Some(judged) => {
                    self.faults.extend(judged.err());
                    false
                }
                None => true,
            });
            let messages = ledger.counts.messages.load(Ordering::Relaxed);
            if messages > received {
                (newest, received) = (Instant::now(), messages);
            }
            if waiting.is_empty() || newest.elapsed() > LAST_WEBHOOK {
                break;
            }
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
        let missing = |order: &&Final| format!("webhooks of {}: {:?}", order.number, order.moves);
        self.faults.extend(waiting.iter().map(missing));
    }

    /// Prints the results. Returns whether every promise was kept.
    pub(crate) async fn judge(mut self, troubles: &Troubles, receiver: &Receiver) -> bool {
        let parcels = troubles.clients.parcels().await;
        let orders = (self.finals.len() + self.faults.len()) as u64;
        println!("{:>9} sandboxes were reset, each with what it had", self.resets);
        print_faults(troubles);
        print_writes(&troubles.clients);
        self.judge_webhooks(troubles, receiver.ledger());
        println!("{orders:>9} orders, and {parcels} parcels");
        if self.faults.is_empty() && parcels != orders {
            self.faults.push("the parcels are not those of the orders".to_owned());
        }
        println!("{:>9} promises were not kept", self.faults.len());
        for fault in self.faults.iter().take(PRINTED) {
            println!("{fault}");
        }
        self.faults.is_empty()
    }

    fn judge_webhooks(&mut self, troubles: &Troubles, ledger: &Ledger) {
        let counts = &ledger.counts;
        let count = |count: &std::sync::atomic::AtomicU64| count.load(Ordering::Relaxed);
        println!("{:>9} changes of parcels, each with its webhook", self.events);
        println!(
            "{:>9} messages came, {} of them again",
            count(&counts.messages),
            count(&counts.repeated)
        );
        println!("{:>9} messages were refused, or not answered", count(&counts.refused));
        self.faults.append(&mut ledger.faults());
        if troubles.world.postgres.is_some() && count(&counts.of_another_time) > 0 {
            self.faults.push("webhooks of servers whose clock is wrong have its time".to_owned());
        }
        let limit = MAX_IN_FLIGHT * troubles.clients.accounts.len() as u64 * troubles.tally.all();
        if count(&counts.repeated) > limit {
            self.faults.push(format!("more than {limit} webhooks were sent twice"));
        }
        let pauses = troubles.world.pauses.lock().unwrap_or_else(PoisonError::into_inner);
        let soon = ledger.soon.lock().unwrap_or_else(PoisonError::into_inner);
        let explained = |(first, again): &&(Instant, Instant)| {
            pauses.iter().any(|pause| pause.explains(*first, *again))
        };
        let unexplained = soon.iter().filter(|pair| !explained(pair)).count();
        println!("{:>9} of them before a lease was over", soon.len());
        for (first, again) in soon.iter().filter(|pair| !explained(pair)).take(PRINTED) {
            println!(
                "acknowledged {:?} ago, and again {:?} later",
                first.elapsed(),
                *again - *first
            );
        }
        if unexplained > 0 {
            let fault =
                format!("{unexplained} webhooks were sent twice although no server stood still");
            self.faults.push(fault);
        }
    }
}

fn print_faults(troubles: &Troubles) {
    for (fault, count) in troubles.tally.counts() {
        println!("{count:>9} {fault}");
    }
    let cuts: u64 = troubles.world.proxies.iter().map(crate::proxy::Proxy::cuts).sum();
    println!("{cuts:>9} times connections were cut");
}

fn print_writes(clients: &Clients) {
    let counts = &clients.counts;
    println!("{:>9} writes were acknowledged:", counts.writes());
    let rows = [
        ("creates", &counts.creates),
        ("reprints", &counts.reprints),
        ("carrier scans", &counts.scans),
        ("manifests", &counts.manifests),
        ("voids", &counts.voids),
        ("repeated creates, which are not counted as writes", &counts.repeats),
        ("attempts without an answer", &counts.without_answer),
    ];
    for (name, count) in rows {
        println!("{:>9} {name}", count.load(Ordering::Relaxed));
    }
}
