//! Deliveries: what is due is taken from the outbox, signed and handed to the webhook shell; what
//! came of it is judged and written down.

use parcelo::webhook;

use super::{Refusal, Service};
use crate::{
    clock::Millis,
    core::{
        Tenant,
        webhooks::{self, Endpoint, KEPT, Outcome, Reach, Taken},
    },
    ids::named,
};

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

    /// The tenants to whose endpoints something is to be sent now.
    pub fn tenants_with_due(&self) -> Result<Vec<Tenant>, Refusal> {
        Ok(self.store.tenants_with_due(self.now())?)
    }

    /// Takes up to `most` messages that are due to a tenant's endpoint. If they are not settled
    /// within a minute, they are due again.
    pub async fn take_deliveries(
        &self,
        tenant: Tenant,
        most: usize,
    ) -> Result<Vec<Delivery>, Refusal> {
        let now = self.now();
        let found = self.store.take_due(tenant, most, now).await?;
        let Some((endpoint, due)) = found else { return Ok(Vec::new()) };
        let mut deliveries = Vec::new();
        for taken in due {
            match self.store.telling(&taken)? {
                Some(telling) => {
                    let body = webhooks::body(telling);
                    deliveries.push(self.sign(&endpoint, taken, body, now));
                }
                None => self.store.forget(&taken).await?,
            }
        }
        Ok(deliveries)
    }

    fn sign(&self, endpoint: &Endpoint, taken: Taken, body: Vec<u8>, now: Millis) -> Delivery {
        let id = named("evt", taken.attempt.event);
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
        let verdict = webhooks::judge(delivery.taken.attempt, &outcome);
        Ok(self.store.settle(delivery.taken, outcome, verdict).await?)
    }

    /// Ends the leases of a server that is no more; nobody else holds any when this one starts.
    pub async fn end_leases(&self) -> Result<(), Refusal> {
        Ok(self.store.end_leases(self.now()).await?)
    }

    /// Deletes events and their log after 30 days.
    pub async fn purge_outbox(&self) -> Result<usize, Refusal> {
        Ok(self.store.purge_outbox(self.now().plus(-KEPT)).await?)
    }
}
