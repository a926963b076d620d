//! Deliveries: what is due is leased from the outbox, signed and handed to the webhook shell; what
//! came of it is judged and written down.

use std::sync::Arc;

use parcelo::webhook;

use super::{Refusal, Service};
use crate::{
    clock::Millis,
    core::{
        Tenant,
        webhooks::{
            self, DisabledBy, Endpoint, IN_FLIGHT_IN_ALL, KEPT, LEASED_AT_ONCE, Outcome, Places,
            Reach, Taken, Undelivered, Verdict,
        },
    },
    ids::named,
    store::{Settled, StoreError},
};

/// An event that is leased to be sent.
#[derive(Debug, Clone)]
pub struct LeasedEvent {
    taken: Taken,
    endpoint: Arc<Endpoint>,
}

impl LeasedEvent {
    /// Whose it is.
    pub const fn tenant(&self) -> Tenant {
        self.taken.tenant
    }
}

/// A message that is ready to be sent.
#[derive(Debug, Clone)]
pub struct Delivery {
    taken: Taken,
    /// Where to.
    pub url: String,
    /// What may be reached.
    pub reach: Reach,
    /// Its id, time and signatures, as headers.
    pub headers: [(&'static str, String); 3],
    /// Its body.
    pub body: Vec<u8>,
}

impl Delivery {
    /// Whose it is.
    pub const fn tenant(&self) -> Tenant {
        self.taken.tenant
    }
}

impl Service {
    /// Resolves when something was put into the outbox, or had been since the last call.
    pub async fn told(&self) {
        self.store.told().await;
    }

    /// When the next delivery falls due.
    pub fn next_delivery(&self) -> Result<Option<Millis>, Refusal> {
        Ok(self.store.next_delivery()?)
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
            let waiting = self.store.tenants_with_due(now, places.busy() + IN_FLIGHT_IN_ALL)?;
            let shares = places.share_out(&waiting, LEASED_AT_ONCE);
            if shares.is_empty() {
                return Ok(Vec::new());
            }
            let leased = self.store.lease(shares, now).await?;
            for tenant in &leased.unreadable {
                self.metrics.delivered(*tenant, "unreadable");
                let (account, environment) = self.named(*tenant);
                tracing::error!(
                    account,
                    environment,
                    "a webhook event cannot be read: it has failed"
                );
            }
            for tenant in &leased.switched_off {
                self.switched_off(*tenant, DisabledBy::Unreadable);
            }
            // What was set aside may have been all that was in the way of others.
            if !leased.events.is_empty() || leased.is_empty() {
                let event = |(endpoint, taken)| LeasedEvent { taken, endpoint };
                return Ok(leased.events.into_iter().map(event).collect());
            }
        }
    }

    /// The message that a leased event makes. None when there is nothing left to tell, or when it
    /// cannot be read: then it has failed, and is not leased again.
    pub async fn delivery(&self, event: LeasedEvent) -> Result<Option<Delivery>, Refusal> {
        let LeasedEvent { taken, endpoint } = event;
        match self.store.telling(&taken) {
            Ok(Some(telling)) => {
                let body = webhooks::body(telling);
                Ok(Some(self.sign(&endpoint, taken, body)))
            }
            Ok(None) => {
                self.store.forget(taken).await?;
                Ok(None)
            }
            Err(StoreError::Damaged { .. }) => {
                let (account, environment) = self.named(taken.tenant);
                let event = named("evt", taken.attempt.event);
                tracing::error!(
                    account,
                    environment,
                    event,
                    "what a webhook event tells cannot be read"
                );
                let said = Err(Undelivered::Unreadable);
                self.settle(taken, Outcome { at: self.now(), millis: 0, said }).await?;
                Ok(None)
            }
            Err(error) => Err(error.into()),
        }
    }

    fn sign(&self, endpoint: &Endpoint, taken: Taken, body: Vec<u8>) -> Delivery {
        let (id, now) = (named("evt", taken.attempt.event), self.now());
        let signatures = endpoint.sign(&id, now, &body);
        let timestamp = now.second().to_string();
        Delivery {
            reach: self.settings.reach(taken.tenant.environment),
            url: endpoint.url.clone(),
            headers: [
                (webhook::ID, id),
                (webhook::TIMESTAMP, timestamp),
                (webhook::SIGNATURE, signatures),
            ],
            body,
            taken,
        }
    }

    /// Writes down what came of a delivery, and what that means.
    pub async fn settle_delivery(
        &self,
        delivery: Delivery,
        outcome: Outcome,
    ) -> Result<(), Refusal> {
        self.settle(delivery.taken, outcome).await
    }

    async fn settle(&self, taken: Taken, outcome: Outcome) -> Result<(), Refusal> {
        let (tenant, verdict) = (taken.tenant, webhooks::judge(taken.attempt, &outcome));
        let settled = self.store.settle(taken, outcome, verdict).await?;
        self.metrics.delivered(tenant, outcome_of(settled, verdict));
        if let Settled::SwitchedOff(by) = settled {
            self.switched_off(tenant, by);
        }
        Ok(())
    }

    /// Says that an endpoint was turned off, which nobody may be looking at. Its address is left out:
    /// it may hold a secret.
    fn switched_off(&self, tenant: Tenant, by: DisabledBy) {
        self.metrics.switched_off(tenant, by);
        let (account, environment) = self.named(tenant);
        let reason = by.code();
        tracing::warn!(
            account,
            environment,
            reason,
            "a webhook is off: its events are held for 30 days"
        );
    }

    /// What a tenant is called in the log.
    fn named(&self, tenant: Tenant) -> (String, &'static str) {
        let account = self.store.account_record(tenant.account).map(|account| account.id);
        (account.unwrap_or_default(), tenant.environment.code())
    }

    /// Ends what a server that is no more left half done: its leases, for nobody else holds any when
    /// this one starts, and the holding of what endpoints that are off had still to be sent.
    pub async fn end_leases(&self) -> Result<(), Refusal> {
        self.store.end_leases(self.now()).await?;
        Ok(self.store.hold_all().await?)
    }

    /// Deletes events and their log after 30 days.
    pub async fn purge_outbox(&self) -> Result<usize, Refusal> {
        Ok(self.store.purge_outbox(self.now().plus(-KEPT)).await?)
    }
}

/// The word under which a delivery is counted.
const fn outcome_of(settled: Settled, verdict: Verdict) -> &'static str {
    match (settled, verdict) {
        (Settled::Late, _) => "late",
        (_, Verdict::Delivered) => "delivered",
        (_, Verdict::Again { .. }) => "retried",
        (_, Verdict::GivenUp) => "failed",
        (_, Verdict::Gone) => "gone",
        (_, Verdict::Unreadable) => "unreadable",
    }
}
