//! The webhook shell: takes what is due from the outbox and sends it, a few messages at a time to
//! each endpoint, so that a slow one delays nobody else. It decides nothing: what an answer means is
//! the core's, what is due the store's.

mod resolver;
mod send;
#[cfg(test)]
mod tests;

use std::{collections::HashMap, sync::Arc, time::Duration};

use tokio::{
    sync::{Mutex, Semaphore},
    task::JoinSet,
};

use self::send::Sender;
use crate::{
    core::{Refusal, Tenant, webhooks::Outcome},
    service::{Delivery, Service},
};

/// How often the outbox is looked into when nobody says that there is something new: for what falls
/// due, and for what another process put there.
const TICK: Duration = Duration::from_millis(500);

/// Sends what the outbox holds.
#[derive(Debug)]
pub struct Dispatcher {
    service: Arc<Service>,
    sender: Arc<Sender>,
    /// Deliveries at once to one endpoint.
    most: usize,
    /// One round at a time.
    turn: Mutex<()>,
}

/// Deliveries on their way, and the places that are left at each endpoint.
#[derive(Default)]
struct Round {
    tasks: JoinSet<()>,
    places: HashMap<Tenant, Arc<Semaphore>>,
}

impl Dispatcher {
    /// Sends for a service, at most so many messages at once to one endpoint.
    pub fn new(service: Arc<Service>, most: usize) -> Self {
        Self { service, sender: Arc::default(), most, turn: Mutex::default() }
    }

    /// Sends all that is due, until nothing is and the last answer is written down.
    pub async fn deliver_due(&self) -> Result<(), Refusal> {
        let _turn = self.turn.lock().await;
        let mut round = Round::default();
        loop {
            self.fill(&mut round).await?;
            if !round.finish_one().await {
                return Ok(());
            }
        }
    }

    /// Sends whatever falls due until `stop` resolves, then waits for what is on its way.
    pub async fn run(&self, stop: impl Future<Output = ()>) {
        let _turn = self.turn.lock().await;
        let mut stop = std::pin::pin!(stop);
        let (mut round, mut ticks) = (Round::default(), tokio::time::interval(TICK));
        loop {
            tokio::select! {
                () = &mut stop => break,
                () = self.service.told() => {}
                _ = ticks.tick() => {}
                true = round.finish_one() => {}
            }
            // A failure is logged where it happened, and the next tick tries again.
            let _ = self.fill(&mut round).await;
        }
        while round.finish_one().await {}
    }

    /// Starts as many deliveries as there is room for.
    async fn fill(&self, round: &mut Round) -> Result<(), Refusal> {
        round.places.retain(|_, places| places.available_permits() < self.most);
        for tenant in self.service.tenants_with_due()? {
            let places = round.places.entry(tenant);
            let places = places.or_insert_with(|| Arc::new(Semaphore::new(self.most)));
            let room = places.available_permits();
            if room == 0 {
                continue;
            }
            for delivery in self.service.take_deliveries(tenant, room).await? {
                let place = Arc::clone(places).try_acquire_owned();
                let (service, sender) = (Arc::clone(&self.service), Arc::clone(&self.sender));
                round.tasks.spawn(async move {
                    deliver(&service, &sender, delivery).await;
                    drop(place);
                });
            }
        }
        Ok(())
    }
}

impl Round {
    /// Waits until one delivery is over; false if none is on its way.
    async fn finish_one(&mut self) -> bool {
        self.tasks.join_next().await.is_some()
    }
}

async fn deliver(service: &Service, sender: &Sender, delivery: Delivery) {
    let (millis, said) = sender.send(&delivery).await;
    let outcome = Outcome { at: service.now(), millis, said };
    // A failure is logged where it happened; the lease ends, and the message is sent again.
    let _ = service.settle_delivery(delivery, outcome).await;
}
