//! Deliveries: what is due is leased from the outbox, signed and handed to the webhook shell; what
//! came of it is judged and written down.

use std::sync::Arc;

use parcelo::webhook;

use super::{Refusal, Service};
use crate::{
    clock::Millis,
    domain::{
        Tenant,
        webhooks::{
            self, AllowedHosts, AttemptResult, DeliveryError, DisabledBy, Endpoint,
            IN_FLIGHT_IN_ALL, LEASED_AT_ONCE, Lease, Places, RETENTION, RetryDecision,
        },
    },
    ids::named,
    store::{Settled, StoreError},
};

/// An event that is leased to be sent.
#[derive(Debug, Clone)]
pub struct LeasedEvent {
    lease: Lease,
    endpoint: Arc<Endpoint>,
}

impl LeasedEvent {
    /// Whose it is.
    pub const fn tenant(&self) -> Tenant {
        self.lease.tenant
    }
}

/// A message that is ready to be sent.
#[derive(Debug, Clone)]
pub struct Delivery {
    lease: Lease,
    /// Where to.
    pub url: String,
    /// What may be reached.
    pub reach: AllowedHosts,
    /// Its id, time and signatures, as headers.
    pub headers: [(&'static str, String); 3],
    /// Its body.
    pub body: Vec<u8>,
}

impl Delivery {
    /// Whose it is.
    pub const fn tenant(&self) -> Tenant {
        self.lease.tenant
    }
}

impl Service {
    /// Resolves when an event was enqueued, or had been since the last call.
    pub async fn outbox_changed(&self) {
        self.store.outbox_changed().await;
    }

    /// When the next delivery falls due.
    pub async fn next_delivery(&self) -> Result<Option<Millis>, Refusal> {
        Ok(self.store.next_delivery().await?)
    }

    /// Leases messages that are due, as many as one commit may and as there are places for, shared out
    /// among all tenants. If they are not settled within a minute, they are due again.
    pub async fn lease_deliveries(&self, places: &Places) -> Result<Vec<LeasedEvent>, Refusal> {
        loop {
            if places.free() == 0 {
                return Ok(Vec::new());
            }
            let now = self.now();
            // Beside those that may be full already, as many as there are places for.
            let waiting =
                self.store.tenants_with_due(now, places.busy() + IN_FLIGHT_IN_ALL).await?;
            let shares = places.share_out(&waiting, LEASED_AT_ONCE);
            if shares.is_empty() {
                return Ok(Vec::new());
            }
            let leased = self.store.lease(shares, now).await?;
            for tenant in &leased.unreadable {
                self.metrics.delivered(*tenant, "unreadable");
                let (account, environment) = self.named(*tenant).await;
                tracing::error!(
                    account,
                    environment,
                    "a webhook event cannot be read: it has failed"
                );
            }
            for tenant in &leased.switched_off {
                self.switched_off(*tenant, DisabledBy::Unreadable).await;
            }
            // What was set aside may have been all that was in the way of others.
            if !leased.events.is_empty() || leased.is_empty() {
                let event = |(endpoint, lease)| LeasedEvent { lease, endpoint };
                return Ok(leased.events.into_iter().map(event).collect());
            }
        }
    }

    /// The message that a leased event makes. None when there is nothing left to tell, or when it
    /// cannot be read: then it has failed, and is not leased again.
    pub async fn delivery(&self, event: LeasedEvent) -> Result<Option<Delivery>, Refusal> {
        let LeasedEvent { lease, endpoint } = event;
        match self.store.payload(&lease).await {
            Ok(Some(payload)) => {
                let body = webhooks::body(payload);
                Ok(Some(self.sign(&endpoint, lease, body)))
            }
            Ok(None) => {
                self.store.forget(lease).await?;
                Ok(None)
            }
            Err(StoreError::Damaged { .. }) => {
                let (account, environment) = self.named(lease.tenant).await;
                let event = named("evt", lease.attempt.event);
                tracing::error!(
                    account,
                    environment,
                    event,
                    "what a webhook event tells cannot be read"
                );
                let answer = Err(DeliveryError::Unreadable);
                self.settle(lease, AttemptResult { at: self.now(), millis: 0, answer }).await?;
                Ok(None)
            }
            Err(error) => Err(error.into()),
        }
    }

    fn sign(&self, endpoint: &Endpoint, lease: Lease, body: Vec<u8>) -> Delivery {
        let (id, now) = (named("evt", lease.attempt.event), self.now());
        let signatures = endpoint.sign(&id, now, &body);
        let timestamp = now.second().to_string();
        Delivery {
            reach: self.settings.reach(lease.tenant.environment),
            url: endpoint.url.clone(),
            headers: [
                (webhook::ID, id),
                (webhook::TIMESTAMP, timestamp),
                (webhook::SIGNATURE, signatures),
            ],
            body,
            lease,
        }
    }

    /// Writes down what came of a delivery, and what that means.
    pub async fn settle_delivery(
        &self,
        delivery: Delivery,
        outcome: AttemptResult,
    ) -> Result<(), Refusal> {
        self.settle(delivery.lease, outcome).await
    }

    async fn settle(&self, lease: Lease, outcome: AttemptResult) -> Result<(), Refusal> {
        let (tenant, decision) = (lease.tenant, webhooks::judge(lease.attempt, &outcome));
        let settled = self.store.settle(lease, outcome, decision).await?;
        self.metrics.delivered(tenant, outcome_of(settled, decision));
        if let Settled::SwitchedOff(by) = settled {
            self.switched_off(tenant, by).await;
        }
        Ok(())
    }

    /// Logs that an endpoint was turned off, since no user may be watching. Its address is left out:
    /// it may hold a secret.
    async fn switched_off(&self, tenant: Tenant, by: DisabledBy) {
        self.metrics.switched_off(tenant, by);
        let (account, environment) = self.named(tenant).await;
        let reason = by.code();
        tracing::warn!(
            account,
            environment,
            reason,
            "a webhook is off: its events are held for 30 days"
        );
    }

    /// What a tenant is called in the log.
    async fn named(&self, tenant: Tenant) -> (String, &'static str) {
        let account = self.store.account_record(tenant.account).await.map(|account| account.id);
        (account.unwrap_or_default(), tenant.environment.code())
    }

    /// Ends what an earlier server left half done: its leases, for no other server holds any when
    /// this one starts, and the holding of what endpoints that are off had still to be sent.
    pub async fn end_leases(&self) -> Result<(), Refusal> {
        self.store.end_leases(self.now()).await?;
        Ok(self.store.hold_all().await?)
    }

    /// Sends what waits for an event that is done.
    pub async fn release_stranded(&self) {
        match self.store.release_stranded(self.now()).await {
            Ok(0) => {}
            Ok(events) => tracing::error!(
                events,
                "webhook events waited for an earlier one that is done, and are sent now: please report this"
            ),
            // The next look is soon.
            Err(error) => tracing::warn!(%error, "webhook events that wait could not be checked"),
        }
    }

    /// Deletes events and their log after 30 days.
    pub async fn purge_outbox(&self) -> Result<usize, Refusal> {
        Ok(self.store.purge_outbox(self.now().plus(-RETENTION)).await?)
    }
}

/// The word under which a delivery is counted.
const fn outcome_of(settled: Settled, decision: RetryDecision) -> &'static str {
    match (settled, decision) {
        (Settled::Late, _) => "late",
        (_, RetryDecision::Delivered) => "delivered",
        (_, RetryDecision::Again { .. }) => "retried",
        (_, RetryDecision::GivenUp) => "failed",
        (_, RetryDecision::Gone) => "gone",
        (_, RetryDecision::Unreadable) => "unreadable",
    }
}
