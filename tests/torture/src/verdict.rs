//! The result of a run: whether every promise was kept, judged by the clients' answers, the final state of the service,
//! and the webhooks.

use std::{
    sync::{Arc, PoisonError, atomic::Ordering},
    time::{Duration, Instant},
};

use fastrand::Rng;
use tokio::task::JoinSet;

use crate::{
    clients::Clients,
    fault_injector::FaultInjector,
    finished_order::{CheckedOrder, FinishedOrder},
    receiver::{DeliveryLog, Receiver},
    resets::Sandbox,
};

/// Maximum wait for the next webhook. If its server was killed, a webhook is sent again when its lease ends, and five
/// minutes later if it is then refused.
const MAX_WEBHOOK_WAIT: Duration = Duration::from_secs(400);
/// Maximum number of webhooks in flight to an account. A fault can prevent a server from recording their outcome.
const MAX_IN_FLIGHT: u64 = 10;
/// Maximum number of violations that are printed.
const MAX_PRINTED: usize = 20;

/// The orders of a run, and the violations found so far.
#[derive(Default)]
pub(crate) struct Verdict {
    orders: Vec<FinishedOrder>,
    checked_orders: Vec<CheckedOrder>,
    violations: Vec<String>,
    events: u64,
    resets: u64,
}

impl Verdict {
    pub(crate) fn add_order(&mut self, order: Result<FinishedOrder, String>) {
        match order {
            Ok(order) => self.orders.push(order),
            Err(violation) => self.violations.push(violation),
        }
    }

    pub(crate) fn add_sandboxes(&mut self, sandboxes: Vec<Sandbox>) {
        for sandbox in sandboxes {
            self.resets += sandbox.resets;
            self.violations.extend(sandbox.violations);
        }
    }

    /// Creates every order again under its key, and checks its parcel.
    pub(crate) async fn recheck_orders(&mut self, clients: &Arc<Clients>, random: &mut Rng) {
        let orders = std::mem::take(&mut self.orders);
        println!("{} orders are created again", orders.len());
        let mut workers = JoinSet::new();
        let (size, mut orders) = (orders.len() / 32 + 1, orders.into_iter());
        for _ in 0..32 {
            let part: Vec<_> = orders.by_ref().take(size).collect();
            let (clients, mut random) = (Arc::clone(clients), random.fork());
            workers.spawn(async move {
                let mut checked = Vec::new();
                for order in part {
                    checked.push(order.recheck(&clients, &mut random).await);
                }
                checked
            });
        }
        for checked in workers.join_all().await.into_iter().flatten() {
            match checked {
                Ok(order) => self.checked_orders.push(order),
                Err(violation) => self.violations.push(violation),
            }
        }
    }

    /// Waits until every change of every parcel has been delivered as a webhook, and compares both.
    pub(crate) async fn wait_for_webhooks(&mut self, delivery_log: &DeliveryLog) {
        let (mut newest, mut received) = (Instant::now(), 0);
        let mut waiting: Vec<_> = self.checked_orders.iter().collect();
        self.events = waiting.iter().map(|order| order.status_changes.len() as u64).sum();
        println!("waiting for the webhooks of {} events", self.events);
        loop {
            waiting.retain(|order| {
                match delivery_log.check_deliveries(&order.number, &order.status_changes) {
                    Some(result) => {
                        self.violations.extend(result.err());
                        false
                    }
                    None => true,
                }
            });
            let messages = delivery_log.counts.messages.load(Ordering::Relaxed);
            if messages > received {
                (newest, received) = (Instant::now(), messages);
            }
            if waiting.is_empty() || newest.elapsed() > MAX_WEBHOOK_WAIT {
                break;
            }
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
        let missing = |order: &&CheckedOrder| {
            format!("webhooks of {}: {:?}", order.number, order.status_changes)
        };
        self.violations.extend(waiting.iter().map(missing));
    }

    /// Prints the results. Returns `true` if every promise was kept.
    pub(crate) async fn report(mut self, injector: &FaultInjector, receiver: &Receiver) -> bool {
        let parcels = injector.clients.count_parcels().await;
        let orders = (self.checked_orders.len() + self.violations.len()) as u64;
        println!("{:>9} sandboxes were reset, each with what it had", self.resets);
        print_fault_counts(injector);
        print_write_counts(&injector.clients);
        self.report_webhooks(injector, receiver.delivery_log());
        println!("{orders:>9} orders, and {parcels} parcels");
        if self.violations.is_empty() && parcels != orders {
            self.violations.push("the parcels are not those of the orders".to_owned());
        }
        println!("{:>9} promises were not kept", self.violations.len());
        for violation in self.violations.iter().take(MAX_PRINTED) {
            println!("{violation}");
        }
        self.violations.is_empty()
    }

    fn report_webhooks(&mut self, injector: &FaultInjector, delivery_log: &DeliveryLog) {
        let counts = &delivery_log.counts;
        let count = |count: &std::sync::atomic::AtomicU64| count.load(Ordering::Relaxed);
        println!("{:>9} changes of parcels, each with its webhook", self.events);
        println!(
            "{:>9} messages came, {} of them again",
            count(&counts.messages),
            count(&counts.repeated)
        );
        println!("{:>9} messages were refused, or not answered", count(&counts.refused));
        self.violations.append(&mut delivery_log.violations());
        if injector.test_bed.postgres.is_some() && count(&counts.with_wrong_clock) > 0 {
            self.violations
                .push("webhooks of servers whose clock is wrong have its time".to_owned());
        }
        let limit =
            MAX_IN_FLIGHT * injector.clients.accounts.len() as u64 * injector.fault_counts.total();
        if count(&counts.repeated) > limit {
            self.violations.push(format!("more than {limit} webhooks were sent twice"));
        }
        let pauses = injector.test_bed.pauses.lock().unwrap_or_else(PoisonError::into_inner);
        let early_repeats =
            delivery_log.early_repeats.lock().unwrap_or_else(PoisonError::into_inner);
        let is_explained = |(first, again): &&(Instant, Instant)| {
            pauses.iter().any(|pause| pause.explains(*first, *again))
        };
        let unexplained = early_repeats.iter().filter(|pair| !is_explained(pair)).count();
        println!("{:>9} of them before a lease was over", early_repeats.len());
        for (first, again) in
            early_repeats.iter().filter(|pair| !is_explained(pair)).take(MAX_PRINTED)
        {
            println!(
                "acknowledged {:?} ago, and again {:?} later",
                first.elapsed(),
                *again - *first
            );
        }
        if unexplained > 0 {
            let violation =
                format!("{unexplained} webhooks were sent twice although no server stood still");
            self.violations.push(violation);
        }
    }
}

fn print_fault_counts(injector: &FaultInjector) {
    for (fault, count) in injector.fault_counts.counts() {
        println!("{count:>9} {fault}");
    }
    let cuts: u64 = injector.test_bed.proxies.iter().map(crate::proxy::Proxy::cuts).sum();
    println!("{cuts:>9} times connections were cut");
}

fn print_write_counts(clients: &Clients) {
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
