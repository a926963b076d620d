//! The webhook dispatcher: leases due events from the outbox and sends them, with limits for each endpoint
//! and for all together, so that a slow endpoint does not delay others. It makes no decisions: the domain
//! evaluates responses, and the store knows what is due.
//!
//! A lease lasts a minute, four times as long as an attempt may take (15 s). If it ends, the process that held it
//! is gone, and the event is due again. A process that was suspended between leasing and sending does not send, and
//! its event is due again too. A response after the end of its lease (from a process that was suspended while it
//! waited) still counts if the event was not leased again. Otherwise the later attempt decides, and the late response
//! is only logged.

mod resolver;
mod send;
#[cfg(test)]
mod tests;

use std::{collections::HashMap, fmt, sync::Arc, time::Duration};

use futures_util::future::BoxFuture;
use parcelo_domain::{
    Refusal, Tenant,
    webhooks::{AttemptResult, DeliveryError, DeliverySlots, EndpointResponse},
};
use tokio::{
    sync::Mutex,
    task::{Id, JoinError, JoinSet},
};

pub(crate) use self::send::HttpTransport;
use crate::service::{Delivery, LeasedEvent, Service};

/// Interval at which the outbox is polled, for retries that become due and for events that another process (an admin
/// command) enqueued.
const POLL_INTERVAL: Duration = Duration::from_millis(500);

/// Interval between searches for stranded events, which wait for a predecessor that no longer exists. Such an event is
/// only delayed, not lost.
const SWEEP_INTERVAL: Duration = Duration::from_secs(10);

/// A transport that sends messages to endpoints.
pub trait WebhookTransport: fmt::Debug + Send + Sync {
    /// Sends a message. Returns the duration in milliseconds, and the endpoint's response.
    fn send<'a>(
        &'a self,
        delivery: &'a Delivery,
    ) -> BoxFuture<'a, (i64, Result<EndpointResponse, DeliveryError>)>;
}

/// A background sender of the events in the outbox.
#[derive(Debug)]
pub struct WebhookDispatcher {
    service: Arc<Service>,
    transport: Arc<dyn WebhookTransport>,
    /// Maximum number of deliveries in flight to one endpoint.
    per_endpoint: usize,
    /// Held while events are sent, so that [`Self::deliver_due`] and [`Self::run`] do not overlap.
    send_lock: Mutex<()>,
}

/// The deliveries in flight, and the tenants whose slots they take.
struct InFlightDeliveries {
    tasks: JoinSet<()>,
    tenants: HashMap<Id, Tenant>,
    slots: DeliverySlots,
}

impl WebhookDispatcher {
    /// Creates a dispatcher for a service, with a limit of messages in flight to one endpoint.
    pub fn new(service: Arc<Service>, per_endpoint: usize) -> Self {
        Self::with_transport(Arc::new(HttpTransport::default()), service, per_endpoint)
    }

    /// Creates a dispatcher that sends through another transport.
    pub fn with_transport(
        transport: Arc<dyn WebhookTransport>,
        service: Arc<Service>,
        per_endpoint: usize,
    ) -> Self {
        Self { service, transport, per_endpoint, send_lock: Mutex::default() }
    }

    /// Sends due events until there are none and the last response is stored.
    pub async fn deliver_due(&self) -> Result<(), Refusal> {
        let _lock = self.send_lock.lock().await;
        let mut deliveries = InFlightDeliveries::new(self.per_endpoint);
        loop {
            self.start_due(&mut deliveries).await?;
            if !deliveries.join_finished().await {
                return Ok(());
            }
        }
    }

    /// Sends events as they fall due until `stop` resolves, then waits for deliveries in flight.
    pub async fn run(&self, stop: impl Future<Output = ()>) {
        let _lock = self.send_lock.lock().await;
        let mut stop = std::pin::pin!(stop);
        let (mut deliveries, mut ticks) =
            (InFlightDeliveries::new(self.per_endpoint), tokio::time::interval(POLL_INTERVAL));
        let mut sweeps = tokio::time::interval(SWEEP_INTERVAL);
        loop {
            tokio::select! {
                () = &mut stop => break,
                () = self.service.wait_for_outbox_change() => {}
                _ = ticks.tick() => {}
                _ = sweeps.tick() => self.service.release_stranded().await,
                true = deliveries.join_finished() => {}
            }
            // A failure is logged where it happened, and the next tick tries again.
            let _ = self.start_due(&mut deliveries).await;
        }
        while deliveries.join_finished().await {}
    }

    /// Starts as many deliveries as there are slots for.
    async fn start_due(&self, deliveries: &mut InFlightDeliveries) -> Result<(), Refusal> {
        loop {
            let events = self.service.lease_deliveries(&deliveries.slots).await?;
            if events.is_empty() {
                return Ok(());
            }
            for event in events {
                let (service, transport) = (Arc::clone(&self.service), Arc::clone(&self.transport));
                deliveries.start(event.tenant(), deliver(service, transport, event));
            }
        }
    }
}

impl InFlightDeliveries {
    fn new(per_endpoint: usize) -> Self {
        let slots = DeliverySlots::new(per_endpoint);
        Self { tasks: JoinSet::new(), tenants: HashMap::new(), slots }
    }

    /// Starts a delivery and takes a slot for it.
    fn start(&mut self, tenant: Tenant, delivery: impl Future<Output = ()> + Send + 'static) {
        self.tenants.insert(self.tasks.spawn(delivery).id(), tenant);
        self.slots.take(tenant);
    }

    /// Waits until a delivery ends, and removes all that have ended, so that their slots are leased together.
    /// Returns `false` if none is in flight.
    async fn join_finished(&mut self) -> bool {
        let Some(finished) = self.tasks.join_next_with_id().await else { return false };
        self.release_slot(finished);
        while let Some(finished) = self.tasks.try_join_next_with_id() {
            self.release_slot(finished);
        }
        true
    }

    fn release_slot(&mut self, finished: Result<(Id, ()), JoinError>) {
        // A delivery that panicked releases its slot too; its lease expires.
        let id = finished.map_or_else(|panic| panic.id(), |(id, ())| id);
        if let Some(tenant) = self.tenants.remove(&id) {
            self.slots.release(tenant);
        }
    }
}

/// Reads, sends and settles one event. An event that fails does not delay others.
async fn deliver(service: Arc<Service>, transport: Arc<dyn WebhookTransport>, event: LeasedEvent) {
    // A failure is logged where it happened. Unless the event is done, its lease ends, and the message is sent later.
    let Ok(Some(delivery)) = service.prepare_delivery(event).await else { return };
    let (millis, response) = transport.send(&delivery).await;
    let outcome = AttemptResult { at: service.now(), millis, response };
    let _ = service.settle_delivery(delivery, outcome).await;
}
