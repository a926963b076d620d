//! Webhook deliveries: due events are leased from the outbox, signed and handed to the webhook dispatcher; the
//! outcome is evaluated and stored.

use std::sync::Arc;

use parcelo::webhook;
use parcelo_domain::{
    Millis, Tenant,
    ids::public_id,
    webhooks::{
        self, AllowedHosts, AttemptResult, DeliveryAttempt, DeliveryError, DeliveryLease,
        DeliverySlots, DisabledBy, Endpoint, LEASE_MILLIS, MAX_IN_FLIGHT, MAX_LEASED_AT_ONCE,
        RETENTION_MILLIS, RetryDecision, UNBLOCKED_AFTER_FAILURES,
    },
};
use parcelo_store::{Settled, StoreError};
use ulid::Ulid;

use super::{Refusal, Service};

/// Maximum age of a lease at which a message is sent: the rest of the lease is longer than an attempt may take.
const MAX_LEASE_AGE_MILLIS: i64 = LEASE_MILLIS * 2 / 3;

/// An event that is leased for sending.
#[derive(Debug, Clone)]
pub struct LeasedEvent {
    lease: DeliveryLease,
    /// A time just before the lease began.
    leased_at: Millis,
    endpoint: Arc<Endpoint>,
}

impl LeasedEvent {
    /// Returns the tenant whose webhook it is for.
    pub const fn tenant(&self) -> Tenant {
        self.lease.tenant
    }
}

/// A signed message, ready to be sent.
#[derive(Debug, Clone)]
pub struct Delivery {
    lease: DeliveryLease,
    /// The URL of the webhook.
    pub url: String,
    /// The hosts that may be reached.
    pub allowed_hosts: AllowedHosts,
    /// The headers with its id, time and signatures.
    pub headers: [(&'static str, String); 3],
    /// The `traceparent` header, if the request that caused the event had one.
    pub traceparent: Option<String>,
    /// The body of the message.
    pub body: Vec<u8>,
}

impl Delivery {
    /// Returns the event that it is about.
    pub const fn event(&self) -> Ulid {
        self.lease.attempt.event
    }

    /// Returns the tenant whose webhook it is for.
    pub const fn tenant(&self) -> Tenant {
        self.lease.tenant
    }
}

impl Service {
    /// Waits until an event is enqueued; returns at once if one was since the last call.
    pub async fn wait_for_outbox_change(&self) {
        self.store.outbox_changed().await;
    }

    /// Returns when the next delivery falls due.
    pub async fn next_delivery_due(&self) -> Result<Option<Millis>, Refusal> {
        Ok(self.store.next_delivery().await?)
    }

    /// Leases due events, shared out among all tenants, up to the limit of one commit and the number of free slots. An
    /// event that is not settled within a minute is due again.
    pub async fn lease_deliveries(
        &self,
        slots: &DeliverySlots,
    ) -> Result<Vec<LeasedEvent>, Refusal> {
        loop {
            if slots.free() == 0 {
                return Ok(Vec::new());
            }
            let now = self.now();
            // Tenants with deliveries in flight may have no share left, so as many others are read as there are slots.
            let waiting =
                self.store.tenants_with_due(now, slots.busy_endpoints() + MAX_IN_FLIGHT).await?;
            let shares = slots.allocate(&waiting, MAX_LEASED_AT_ONCE);
            if shares.is_empty() {
                return Ok(Vec::new());
            }
            let leased = self.store.lease(shares, now).await?;
            for tenant in &leased.unreadable {
                self.metrics.count_delivery(*tenant, "unreadable");
                let (account, environment) = self.account_and_environment(*tenant).await;
                tracing::error!(
                    account,
                    environment,
                    "a webhook event cannot be read: it has failed"
                );
            }
            for tenant in &leased.disabled_endpoints {
                self.report_disabled(*tenant, DisabledBy::Unreadable).await;
            }
            // If all events of this round were unreadable, others behind them may be due.
            if !leased.events.is_empty() || leased.is_empty() {
                let event = |(endpoint, lease)| LeasedEvent { lease, leased_at: now, endpoint };
                return Ok(leased.events.into_iter().map(event).collect());
            }
        }
    }

    /// Returns the message for a leased event. Returns `None` if its subject was deleted, or if the event cannot be
    /// read; it has then failed and is not leased again. Also returns `None` if the process was suspended and the lease
    /// may end during the attempt: another server may already have sent later events of the parcel.
    pub async fn prepare_delivery(&self, event: LeasedEvent) -> Result<Option<Delivery>, Refusal> {
        let LeasedEvent { lease, leased_at, endpoint } = event;
        match self.store.payload(&lease).await {
            Ok(_) if self.now() > leased_at.plus(MAX_LEASE_AGE_MILLIS) => Ok(None),
            Ok(Some(payload)) => {
                let body = webhooks::event_body(payload);
                Ok(Some(self.sign(&endpoint, lease, body)))
            }
            Ok(None) => {
                self.store.forget(lease).await?;
                Ok(None)
            }
            Err(StoreError::Damaged { .. }) => {
                let (account, environment) = self.account_and_environment(lease.tenant).await;
                let event = public_id("evt", lease.attempt.event);
                tracing::error!(
                    account,
                    environment,
                    event,
                    "the parcel or manifest of a webhook event cannot be read"
                );
                let response = Err(DeliveryError::Unreadable);
                self.settle(lease, AttemptResult { at: self.now(), millis: 0, response }).await?;
                Ok(None)
            }
            Err(error) => Err(error.into()),
        }
    }

    fn sign(&self, endpoint: &Endpoint, lease: DeliveryLease, body: Vec<u8>) -> Delivery {
        let (id, now) = (public_id("evt", lease.attempt.event), self.now());
        let signatures = endpoint.sign(&id, now, &body);
        let timestamp = now.second().to_string();
        Delivery {
            allowed_hosts: self.settings.allowed_hosts(lease.tenant.environment),
            url: endpoint.url.clone(),
            headers: [
                (webhook::ID, id),
                (webhook::TIMESTAMP, timestamp),
                (webhook::SIGNATURE, signatures),
            ],
            traceparent: lease.traceparent(),
            body,
            lease,
        }
    }

    /// Stores the result of an attempt, and the decision that follows from it.
    pub async fn settle_delivery(
        &self,
        delivery: Delivery,
        outcome: AttemptResult,
    ) -> Result<(), Refusal> {
        self.settle(delivery.lease, outcome).await
    }

    async fn settle(&self, lease: DeliveryLease, outcome: AttemptResult) -> Result<(), Refusal> {
        let (tenant, attempt) = (lease.tenant, lease.attempt);
        let decision = webhooks::decide_retry(attempt, &outcome);
        let failure = reportable_failure(attempt, &outcome);
        let settled = self.store.settle(lease, outcome, decision).await?;
        self.metrics.count_delivery(tenant, outcome_label(settled, decision));
        match (settled, failure) {
            (Settled::EndpointDisabled(by), _) => self.report_disabled(tenant, by).await,
            (Settled::Counted, Some(reason)) => {
                self.report_failing(tenant, attempt.event, &reason).await;
            }
            (Settled::Counted, None) | (Settled::Late, _) => {}
        }
        Ok(())
    }

    /// Logs whose webhook fails, and how: the metrics name no account, and an operator cannot sign in as each.
    async fn report_failing(&self, tenant: Tenant, event: Ulid, reason: &str) {
        let (account, environment) = self.account_and_environment(tenant).await;
        let event = public_id("evt", event);
        tracing::warn!(
            account,
            environment,
            event,
            reason,
            "a webhook event has failed three times"
        );
    }

    /// Logs that an endpoint was turned off, since no user may be watching. Its address is left out:
    /// it may hold a secret.
    async fn report_disabled(&self, tenant: Tenant, by: DisabledBy) {
        self.metrics.count_disabled_webhook(tenant, by);
        let (account, environment) = self.account_and_environment(tenant).await;
        let reason = by.code();
        tracing::warn!(
            account,
            environment,
            reason,
            "a webhook is off: its events are held for 30 days"
        );
    }

    /// Returns the ids of a tenant's account and environment, as the log names them.
    async fn account_and_environment(&self, tenant: Tenant) -> (String, &'static str) {
        let account = self.store.account_record(tenant.account).await.map(|account| account.id);
        (account.unwrap_or_default(), tenant.environment.code())
    }

    /// Finishes the work of an earlier server: ends its leases, since no other server holds any when this one starts,
    /// and holds the pending events of endpoints that are off.
    pub async fn end_leases(&self) -> Result<(), Refusal> {
        self.store.end_leases(self.now()).await?;
        Ok(self.store.hold_all().await?)
    }

    /// Releases events that still wait for an earlier one that is done or deleted. This is a safety net.
    pub async fn release_stranded(&self) {
        match self.store.release_stranded(self.now()).await {
            Ok(0) => {}
            Ok(events) => tracing::error!(
                events,
                "webhook events were waiting for an earlier one that is done; sent now: please report this"
            ),
            // The next check is soon.
            Err(error) => tracing::warn!(%error, "webhook events that wait could not be checked"),
        }
    }

    /// Deletes events and their log that are older than 30 days.
    pub async fn purge_outbox(&self) -> Result<usize, Refusal> {
        Ok(self.store.purge_outbox(self.now().plus(-RETENTION_MILLIS)).await?)
    }
}

/// Returns how an attempt failed if it is the one after which later events of the parcel are no longer held up. Earlier
/// failures may be a receiver's restart, and a line for each later one would say the same.
fn reportable_failure(attempt: DeliveryAttempt, outcome: &AttemptResult) -> Option<String> {
    if attempt.number != UNBLOCKED_AFTER_FAILURES {
        return None;
    }
    match &outcome.response {
        Ok(response) if (200..300).contains(&response.status) => None,
        Ok(response) => Some(format!("the endpoint answered {}", response.status)),
        Err(error) => Some(error.to_string()),
    }
}

/// Returns the label under which the metrics count a delivery.
const fn outcome_label(settled: Settled, decision: RetryDecision) -> &'static str {
    match (settled, decision) {
        (Settled::Late, _) => "late",
        (_, RetryDecision::Delivered) => "delivered",
        (_, RetryDecision::Retry { .. }) => "retried",
        (_, RetryDecision::GivenUp) => "failed",
        (_, RetryDecision::Gone) => "gone",
        (_, RetryDecision::Unreadable) => "unreadable",
    }
}

#[cfg(test)]
mod tests {
    use parcelo_domain::webhooks::EndpointResponse;
    use parcelo_types::Environment;

    use super::*;

    #[test]
    fn the_third_failure_of_an_event_is_reported_and_no_other() {
        let status = |status| {
            Ok(EndpointResponse { status, retry_after: None, body_prefix: b"their words".to_vec() })
        };
        let table = [
            (1, status(500), None),
            (2, Err(DeliveryError::TimedOut), None),
            (3, status(204), None),
            (3, status(500), Some("the endpoint answered 500")),
            (3, Err(DeliveryError::TimedOut), Some("the endpoint did not answer within 15 s")),
            (4, status(500), None),
        ];
        for (number, response, expected) in table {
            let attempt = DeliveryAttempt {
                environment: Environment::Production,
                event: Ulid::nil(),
                number,
            };
            let outcome = AttemptResult { at: Millis(0), millis: 1, response };
            let reported = reportable_failure(attempt, &outcome);
            assert_eq!(reported.as_deref(), expected, "{number} {outcome:?}");
        }
    }
}
