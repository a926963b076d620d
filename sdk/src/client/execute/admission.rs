//! The admission of an attempt: the API key of its call, its turn under the rate limit, and the age of its idempotency key.

use std::time::Duration;

use super::CallExecution;
use crate::client::{
    Error, ErrorKind, StopReason, clock,
    error::Texts,
    pacer::{NotAdmitted, WaitLimits},
};

impl CallExecution {
    /// Waits until the first attempt may be sent.
    pub(super) async fn admit(&mut self) -> Result<(), Error> {
        self.read_key()?;
        self.check_key_age()?;
        let admitted = self.acquire_turn().await;
        let has_waited = admitted.map_err(|not_admitted| not_admitted.into_error(&self.state))?;
        // The key may have expired while the call waited.
        if has_waited { self.check_key_age() } else { Ok(()) }
    }

    /// Reads the API key of the call from its provider, if it has one. All attempts are made with this key, even after a
    /// 401: to the service, a write that is repeated with another API key is another write.
    fn read_key(&mut self) -> Result<(), Error> {
        if self.client.settings.key_provider.is_some() {
            let client = self.client.clone().with_current_key();
            self.client = client.map_err(|error| {
                error.with(|inner| {
                    inner.nothing_sent = true;
                    inner.idempotency_key.clone_from(&self.state.idempotency_key);
                    inner.may_have_executed = self.state.may_have_executed();
                })
            })?;
        }
        Ok(())
    }

    /// Waits for a turn under the rate limit. Returns `true` if it had to wait.
    pub(super) async fn acquire_turn(&mut self) -> Result<bool, NotAdmitted> {
        const OUT_OF_TIME: NotAdmitted =
            NotAdmitted { reason: StopReason::Deadline, retry_after: None };
        let began = clock::now();
        if began >= self.deadline {
            return Err(OUT_OF_TIME);
        }
        let limits = WaitLimits {
            deadline: self.deadline,
            max_retry_after: self.client.settings.retry.max_retry_after,
        };
        let admitted = if self.request.is_rate_limited() {
            self.client
                .identity
                .limits
                .pacer
                .acquire(&self.client.settings.rate_limit, limits)
                .await
        } else {
            Ok(false)
        };
        let now = clock::now();
        self.queued = now.saturating_duration_since(began);
        self.total_queue_time += self.queued;
        self.span.record("queued_ms", self.total_queue_time.as_millis());
        let has_waited = admitted?;
        // Nothing is sent if the caller polled again only after the deadline.
        if now < self.deadline { Ok(has_waited) } else { Err(OUT_OF_TIME) }
    }

    /// Returns the time left in which the idempotency key may be sent.
    pub(super) fn key_time_left(&self) -> Option<Duration> {
        let key = self.state.idempotency_key.as_ref()?;
        Some(key.time_left(|| self.client.shared.clocks.moment()))
    }

    pub(super) fn is_key_expired(&self) -> bool {
        self.key_time_left().is_some_and(|left| left.is_zero())
    }

    fn check_key_age(&self) -> Result<(), Error> {
        const EXPIRED: Texts = (
            "The idempotency key's 24 hours are over, or nearly: sending it again could execute the request twice.",
            "Las 24 horas de la clave de idempotencia han terminado o están por terminar: enviarla otra vez podría repetir la operación.",
        );
        if !self.is_key_expired() {
            return Ok(());
        }
        let now = self.client.shared.clocks.moment();
        let key = self.state.idempotency_key.as_ref();
        let error = self.state.error(ErrorKind::KeyExpired, EXPIRED);
        Err(error.with(|inner| {
            inner.stop_reason = Some(StopReason::KeyExpired);
            inner.retry_after = key.and_then(|key| key.time_under_way(&now));
        }))
    }
}
