//! The execution of a call: its turn under the rate limit, its attempts, and the outcome that each records in the key.
//! [`pacer`](super::pacer) decides when an attempt may be sent and [`retry`](super::retry) whether another one follows;
//! this file does the waiting.

mod admission;
mod notices;

use std::time::Duration;

use chrono::{DateTime, Utc};
use http::{HeaderMap, Method, StatusCode, header::DATE};
use parcelo_types::{Operation, internal::AttemptOutcome};
use tokio::time::{Instant, sleep};
use tracing::{Instrument, Span, debug};

use super::{
    Client, Error, FailureClass, Phase, StopReason, TransportError,
    attempt_error::{AttemptError, ErrorResponse},
    body::{BodyReader, ReadTimeout},
    call_state::CallState,
    clock::{self, Deadline},
    limiter::RateLimitFeedback,
    outcome::outcome,
    pacer::NotAdmitted,
    request::{MAX_JSON_BYTES, PreparedRequest, UnsentRequest},
    response::{RateLimitStatus, ServiceResponse, is_from_service},
    retry::{Decision, FailedAttempt},
    retry_after,
    spans::{ReportedResponse, attempt_span, call_span, record_error, record_result},
};

impl Client {
    /// Makes the attempts of a call. `read` reads as much of the body as is needed before an attempt counts as a
    /// success. The caller calls [`CallExecution::finish`] when it knows the meaning of the response.
    pub(super) async fn execute<T, R>(
        self,
        request: UnsentRequest,
        read: impl Fn(BodyReader) -> R,
    ) -> Result<(ServiceResponse<T>, CallExecution), Error>
    where
        R: Future<Output = Result<T, AttemptError>>,
    {
        let span = call_span(&request);
        let result = async {
            let mut execution = CallExecution::start(self, request, span.clone()).await?;
            let response = execution.run(read).await?;
            Ok::<_, Error>((response, execution))
        }
        .instrument(span.clone())
        .await;
        result.inspect_err(|error| record_error(&span, error))
    }
}

/// A call that is being executed.
#[derive(Debug)]
pub(super) struct CallExecution {
    client: Client,
    /// `None` for a raw call; observers do not see its attempts.
    pub(super) operation: Option<Operation>,
    request: PreparedRequest,
    deadline: Instant,
    pub(super) state: CallState,
    was_stale: bool,
    /// The tokens that the last retry cost.
    last_retry_cost: Option<u32>,
    attempt_started: Instant,
    /// The time that the current attempt waited for its turn, and the total of all attempts.
    queued: Duration,
    total_queue_time: Duration,
    span: Span,
    response: Option<ReportedResponse>,
    /// An attempt with an idempotency key has begun, and its outcome is not recorded yet.
    is_outcome_open: bool,
}

/// A call that is dropped between its request and the response may have been executed.
impl Drop for CallExecution {
    fn drop(&mut self) {
        self.record_outcome(AttemptOutcome::Unknown);
    }
}

impl CallExecution {
    /// Starts a call, and returns when its first attempt may be sent.
    async fn start(client: Client, request: UnsentRequest, span: Span) -> Result<Self, Error> {
        let operation = request.operation;
        let (request, state) = request.prepare()?;
        let now = clock::now();
        let mut execution = Self {
            operation,
            request,
            deadline: clock::saturating_add(now, client.settings.timeouts.total),
            client,
            state,
            was_stale: false,
            last_retry_cost: None,
            attempt_started: now,
            queued: Duration::ZERO,
            total_queue_time: Duration::ZERO,
            span,
            response: None,
            is_outcome_open: false,
        };
        match execution.admit().await {
            Ok(()) => Ok(execution),
            Err(error) => {
                execution.notify_not_made(&error);
                Err(error)
            }
        }
    }

    /// Makes attempts until one succeeds or no further attempt is allowed.
    pub(super) async fn run<T, R>(
        &mut self,
        read: impl Fn(BodyReader) -> R,
    ) -> Result<ServiceResponse<T>, Error>
    where
        R: Future<Output = Result<T, AttemptError>>,
    {
        loop {
            self.begin_attempt();
            let base = self.client.base_url();
            let span = attempt_span(&self.request, base, self.state.attempts, self.queued);
            let result = self.exchange(&read).instrument(span.clone()).await;
            record_result(&span, &result);
            match result {
                Ok(response) => {
                    let mut policy = self.client.retry_policy();
                    policy.record_success(
                        self.last_retry_cost,
                        &mut self.client.identity.limits.retry_budget(),
                    );
                    self.response = Some(self.reported_response(&response));
                    return Ok(response);
                }
                Err(error) => self.recover(error).await?,
            }
        }
    }

    fn begin_attempt(&mut self) {
        self.state.attempts += 1;
        self.attempt_started = clock::now();
        // From here on, the outcome of an interrupted attempt is unknown.
        if let Some(key) = &self.state.idempotency_key {
            let clocks = &self.client.shared.clocks;
            // All clocks are read for the first attempt only.
            key.begin_attempt(clocks.monotonic(), || clocks.moment());
            self.is_outcome_open = true;
        }
    }

    async fn exchange<T, R>(
        &self,
        read: impl Fn(BodyReader) -> R,
    ) -> Result<ServiceResponse<T>, AttemptError>
    where
        R: Future<Output = Result<T, AttemptError>>,
    {
        let timeouts = &self.client.settings.timeouts;
        let deadline =
            clock::saturating_add(self.attempt_started, timeouts.attempt).min(self.deadline);
        let mut deadline = Deadline::at(deadline);
        let request = self.request.to_http(&self.client.identity.headers);
        let response = deadline
            .wait(self.client.shared.transport.send(request))
            .await
            .map_err(|elapsed| TransportError::new(Phase::Timeout, elapsed))??;
        let (head, body) = response.into_parts();
        let date = self.observe_date(&head.headers);
        let rate_limit = RateLimitStatus::from_headers(&head.headers);
        if head.status.is_success() {
            self.observe_rate_limit(date, rate_limit, None);
            let timeout = self.request.read_timeout(deadline, timeouts.idle);
            let reader = BodyReader::new(&head, body, self.request.body_size(), timeout);
            let is_head = self.request.method == Method::HEAD;
            let body = read(if is_head { reader.without_body() } else { reader }).await?;
            let (status, headers) = (head.status, head.headers);
            return Ok(ServiceResponse { status, headers, rate_limit, date, body });
        }
        // If the body is cut off, the status alone decides.
        let timeout = ReadTimeout::WholeBody(deadline);
        let reader = BodyReader::new(&head, body, 0..=MAX_JSON_BYTES, timeout);
        let body = reader.read_all().await.unwrap_or_default();
        let response = ErrorResponse::parse(head.status, &head.headers, &body);
        let is_throttled =
            head.status == StatusCode::TOO_MANY_REQUESTS && is_from_service(&head.headers);
        let throttled = is_throttled.then(|| response.retry_after.unwrap_or_default());
        self.observe_rate_limit(date, rate_limit, throttled);
        Err(AttemptError::Response(Box::new(response)))
    }

    /// Returns the date of a response. The service's clock is learnt only from responses of the service.
    fn observe_date(&self, headers: &HeaderMap) -> Option<DateTime<Utc>> {
        let (clocks, shown) = (&self.client.shared.clocks, headers.get(DATE)?);
        let date = clocks.parse_date(shown)?;
        if is_from_service(headers) {
            clocks.observe_date(shown, date);
            if let Some(key) = &self.state.idempotency_key {
                key.note_service_time(date);
            }
        }
        Some(date)
    }

    fn observe_rate_limit(
        &self,
        date: Option<DateTime<Utc>>,
        rate_limit: Option<RateLimitStatus>,
        throttled: Option<Duration>,
    ) {
        if !self.request.is_rate_limited() || (rate_limit.is_none() && throttled.is_none()) {
            return;
        }
        let window_seconds =
            rate_limit.and_then(|window| retry_after::seconds_until(window.reset, date?));
        self.client.identity.limits.pacer.observe(&RateLimitFeedback {
            sent: self.attempt_started,
            received: clock::now(),
            rate_limit,
            window_seconds: window_seconds.unwrap_or(1),
            throttled,
        });
    }

    fn reported_response<T>(&self, response: &ServiceResponse<T>) -> ReportedResponse {
        let outcome = outcome(self.operation, response.status, &response.headers);
        ReportedResponse {
            head: response.summary(),
            outcome: self.state.is_write.then_some(outcome),
        }
    }

    /// Waits until the next attempt may be sent; returns the call's error if there is no next attempt.
    pub(super) async fn recover(&mut self, error: AttemptError) -> Result<(), Error> {
        self.record_failure(&error);
        let failed = self.failed_attempt(&error);
        self.was_stale |= failed.class == FailureClass::Stale;
        let error = error.into_error(&self.state, StopReason::Declined);
        let decision = self.decide(&failed, &error);
        self.notify_failure(&error, failed.class, decision);
        let wait = match decision {
            Decision::Wait(wait) => wait,
            Decision::GiveUp(reason) => {
                return Err(error.with(|inner| inner.stop_reason = Some(reason)));
            }
        };
        debug!(attempt = failed.number, class = ?failed.class, ?wait, "retrying");
        self.last_retry_cost = Some(failed.cost());
        if !wait.is_zero() {
            sleep(wait).await;
        }
        let not_admitted = match self.acquire_turn().await {
            Err(not_admitted) => not_admitted,
            // The machine may have been suspended during the wait.
            Ok(_) if self.is_key_expired() => {
                NotAdmitted { reason: StopReason::KeyExpired, retry_after: None }
            }
            Ok(_) => return Ok(()),
        };
        let error = error.with(|inner| {
            inner.stop_reason = Some(not_admitted.reason);
            inner.retry_after = inner.retry_after.or(not_admitted.retry_after);
            // Another call with the same key may have been made during the wait.
            inner.may_have_executed = self.state.may_have_executed();
        });
        self.notify_not_made(&error);
        Err(error)
    }

    /// Decides about another attempt: whether it is safe and in time, whether the caller wants it, and whether the budget
    /// pays for it.
    fn decide(&self, failed: &FailedAttempt, error: &Error) -> Decision {
        let retry = &self.client.settings.retry;
        let planned = self.client.retry_policy().plan(retry, failed);
        if let Decision::GiveUp(_) = planned {
            return planned;
        }
        // No lock is held: the condition may make calls of its own.
        if retry.condition().is_some_and(|wants_retry| !wants_retry(error)) {
            return Decision::GiveUp(StopReason::Declined);
        }
        let mut policy = self.client.retry_policy();
        if policy.pay(retry, failed, &mut self.client.identity.limits.retry_budget()) {
            planned
        } else {
            Decision::GiveUp(StopReason::Budget)
        }
    }

    fn failed_attempt(&self, error: &AttemptError) -> FailedAttempt {
        let now = clock::now();
        FailedAttempt {
            number: self.state.attempts,
            class: error.class(),
            is_repeatable: self.request.is_repeatable,
            was_stale: self.was_stale,
            retry_after: error.retry_after(),
            now,
            time_left: self.deadline.saturating_duration_since(now),
            key_time_left: self.key_time_left(),
        }
    }

    /// Records, in the key or else in the call, whether a failed attempt may have been executed.
    fn record_failure(&mut self, error: &AttemptError) {
        let outcome = error.write_outcome();
        self.state.was_sent |= outcome != AttemptOutcome::NotSent;
        if self.state.idempotency_key.is_none() {
            self.state.outcome_unknown |= outcome == AttemptOutcome::Unknown;
        }
        self.record_outcome(outcome);
    }

    /// Records that the write was executed, as its response says.
    pub(super) fn mark_executed(&mut self) {
        self.record_outcome(AttemptOutcome::Executed);
    }

    fn record_outcome(&mut self, outcome: AttemptOutcome) {
        if let Some(key) = self.state.idempotency_key.as_ref().filter(|_| self.is_outcome_open) {
            self.is_outcome_open = false;
            key.end_attempt(outcome, || self.request.digest(&self.client.identity.headers));
        }
    }

    /// Restarts the time limit of the call, because a download that makes progress may take longer. One that keeps
    /// breaking is ended by the number of attempts.
    pub(super) fn restart_deadline(&mut self) {
        self.deadline = clock::from_now(self.client.settings.timeouts.total);
    }
}
