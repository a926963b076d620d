//! The webhook dispatcher: leases what is due from the outbox and sends it, a few messages at a time to
//! each endpoint and to all of them, so that a slow one delays no other. It decides nothing: what an answer
//! means is the domain's, what is due the store's.
//!
//! A lease lasts a minute, four times what an attempt may take (15 s): when it ends, the process that held it is
//! gone, and the event is due again. An answer that comes after the end of its lease (a process that was
//! suspended) still counts if the event was not leased since; otherwise the later attempt decides, and the
//! late answer is only logged.

mod resolver;
mod send;
#[cfg(test)]
mod tests;

use std::{collections::HashMap, fmt, sync::Arc, time::Duration};

use futures_util::future::BoxFuture;
use tokio::{
    sync::Mutex,
    task::{Id, JoinError, JoinSet},
};

use self::send::Sender;
use crate::{
    domain::{
        Refusal, Tenant,
        webhooks::{AttemptResult, DeliveryError, EndpointAnswer, Places},
    },
    service::{Delivery, LeasedEvent, Service},
};

/// How often the outbox is read without a notification: for retries that fall due, and for events that another
/// process (an admin command) enqueued.
const POLL_INTERVAL: Duration = Duration::from_millis(500);

/// How often events that wait for nothing are looked for: a fault, of which one event is late, and none is lost.
const SWEEP_INTERVAL: Duration = Duration::from_secs(10);

/// Sends a message to its endpoint.
pub(crate) trait Transport: fmt::Debug + Send + Sync {
    /// Sends a message; answers how many milliseconds it took, and the endpoint's answer.
    fn send<'a>(
        &'a self,
        delivery: &'a Delivery,
    ) -> BoxFuture<'a, (i64, Result<EndpointAnswer, DeliveryError>)>;
}

/// Sends what the outbox holds.
#[derive(Debug)]
pub struct Dispatcher {
    service: Arc<Service>,
    transport: Arc<dyn Transport>,
    /// Deliveries at once to one endpoint.
    most: usize,
    /// One round at a time.
    turn: Mutex<()>,
}

/// Deliveries on their way, and whose place each takes up.
struct Round {
    tasks: JoinSet<()>,
    flights: HashMap<Id, Tenant>,
    places: Places,
}

impl Dispatcher {
    /// Sends for a service, at most so many messages at once to one endpoint.
    pub fn new(service: Arc<Service>, most: usize) -> Self {
        Self::over(Arc::new(Sender::default()), service, most)
    }

    /// The same by another transport.
    pub(crate) fn over(transport: Arc<dyn Transport>, service: Arc<Service>, most: usize) -> Self {
        Self { service, transport, most, turn: Mutex::default() }
    }

    /// Sends all that is due, until nothing is and the last answer is written down.
    pub async fn deliver_due(&self) -> Result<(), Refusal> {
        let _turn = self.turn.lock().await;
        let mut round = Round::new(self.most);
        loop {
            self.fill(&mut round).await?;
            if !round.finish_some().await {
                return Ok(());
            }
        }
    }

    /// Sends whatever falls due until `stop` resolves, then waits for what is on its way.
    pub async fn run(&self, stop: impl Future<Output = ()>) {
        let _turn = self.turn.lock().await;
        let mut stop = std::pin::pin!(stop);
        let (mut round, mut ticks) = (Round::new(self.most), tokio::time::interval(POLL_INTERVAL));
        let mut sweeps = tokio::time::interval(SWEEP_INTERVAL);
        loop {
            tokio::select! {
                () = &mut stop => break,
                () = self.service.outbox_changed() => {}
                _ = ticks.tick() => {}
                _ = sweeps.tick() => self.service.release_stranded().await,
                true = round.finish_some() => {}
            }
            // A failure is logged where it happened, and the next tick tries again.
            let _ = self.fill(&mut round).await;
        }
        while round.finish_some().await {}
    }

    /// Starts as many deliveries as there is room for.
    async fn fill(&self, round: &mut Round) -> Result<(), Refusal> {
        loop {
            let events = self.service.lease_deliveries(&round.places).await?;
            if events.is_empty() {
                return Ok(());
            }
            for event in events {
                let (service, transport) = (Arc::clone(&self.service), Arc::clone(&self.transport));
                round.start(event.tenant(), deliver(service, transport, event));
            }
        }
    }
}

impl Round {
    fn new(most: usize) -> Self {
        let places = Places::new(most);
        Self { tasks: JoinSet::new(), flights: HashMap::new(), places }
    }

    fn start(&mut self, tenant: Tenant, delivery: impl Future<Output = ()> + Send + 'static) {
        self.flights.insert(self.tasks.spawn(delivery).id(), tenant);
        self.places.take(tenant);
    }

    /// Waits until a delivery is over, and clears away all that are: settled together, they make room for
    /// a lease together. False if none is on its way.
    async fn finish_some(&mut self) -> bool {
        let Some(over) = self.tasks.join_next_with_id().await else { return false };
        self.clear(over);
        while let Some(over) = self.tasks.try_join_next_with_id() {
            self.clear(over);
        }
        true
    }

    fn clear(&mut self, over: Result<(Id, ()), JoinError>) {
        // One that panicked has left its place too; its lease ends by itself.
        let id = over.map_or_else(|panic| panic.id(), |(id, ())| id);
        if let Some(tenant) = self.flights.remove(&id) {
            self.places.leave(tenant);
        }
    }
}

/// Reads, sends and settles one event, so that what is wrong with it holds up no other.
async fn deliver(service: Arc<Service>, transport: Arc<dyn Transport>, event: LeasedEvent) {
    // A failure is logged where it happened; the lease ends, and the message is sent again.
    let Ok(Some(delivery)) = service.delivery(event).await else { return };
    let (millis, answer) = transport.send(&delivery).await;
    let outcome = AttemptResult { at: service.now(), millis, answer };
    let _ = service.settle_delivery(delivery, outcome).await;
}
