//! A call on its way: attempt after attempt, waiting as [`retry`](super::retry) and
//! [`limiter`](super::limiter) decide.

use std::time::Duration;

use chrono::{DateTime, Utc};
use http::{HeaderMap, Method, StatusCode, header::DATE};
use tokio::time::{Instant, sleep};
use tracing::{Instrument, Span, debug, debug_span, field::Empty};

use super::{
    Attempt, Client, Error, ErrorKind, Failure, FailureClass, Phase, RateLimitStatus, StopReason,
    TransportError,
    body::{Pace, Reader},
    call::{Call, Draft, LONGEST_JSON},
    clock::{self, Deadline},
    error::Texts,
    failure::{Left, Refusal, Trace},
    hint,
    limiter::Heard,
    reply,
    retry::{Decision, Failed},
    turn::Refused,
};
use crate::model::{Ended, Operation, header};

/// A successful answer.
#[derive(Debug)]
pub(super) struct Answer<T> {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    pub(super) rate_limit: Option<RateLimitStatus>,
    /// When it was given, by its own clock.
    pub(super) date: Option<DateTime<Utc>>,
    pub(super) body: T,
}

/// A call between its attempts.
#[derive(Debug)]
pub(super) struct Course {
    client: Client,
    /// None for a raw call of no operation; observers are not told of it.
    operation: Option<Operation>,
    draft: Draft,
    deadline: Instant,
    pub(super) trace: Trace,
    stale_before: bool,
    /// What the last retry cost.
    cost: Option<u32>,
    began: Instant,
    /// An attempt with a key has begun, and its end is not known yet.
    under_way: bool,
}

impl Drop for Course {
    fn drop(&mut self) {
        if self.under_way {
            self.end(Ended::InDoubt(self.digest()));
        }
    }
}

impl Course {
    /// A call that is about to be sent: its turn has come.
    pub(super) async fn begin(client: &Client, call: &Call<'_>) -> Result<Self, Error> {
        let draft = call.draft(client)?;
        let began = clock::now();
        let course = Self {
            client: client.clone(),
            operation: call.operation,
            draft,
            deadline: clock::beyond(began, client.timeouts().total),
            trace: Trace::new(call),
            stale_before: false,
            cost: None,
            began,
            under_way: false,
        };
        course.check_key()?;
        let has_waited = course.turn().await.map_err(|refused| course.crowded_out(refused))?;
        // Without a wait no time has passed since the first look.
        if has_waited {
            course.check_key()?;
        }
        Ok(course)
    }

    /// Attempts until one succeeds; `read` takes what it needs of the body before it counts as one.
    pub(super) async fn answer<T, R>(
        &mut self,
        read: impl Fn(Reader) -> R,
    ) -> Result<Answer<T>, Error>
    where
        R: Future<Output = Result<T, Failure>>,
    {
        loop {
            self.trace.attempts += 1;
            self.began = clock::now();
            self.set_out();
            let span = self.span();
            let result = self.exchange(&read).instrument(span.clone()).await;
            record(&span, &result);
            match result {
                Ok(answer) => {
                    self.succeeded(answer.status);
                    return Ok(answer);
                }
                Err(failure) => self.recover(failure).await?,
            }
        }
    }

    async fn exchange<T, R>(&self, read: impl Fn(Reader) -> R) -> Result<Answer<T>, Failure>
    where
        R: Future<Output = Result<T, Failure>>,
    {
        let timeouts = self.client.timeouts();
        let end = clock::beyond(self.began, timeouts.attempt).min(self.deadline);
        let mut end = Deadline::at(end);
        let request = self.draft.request(&self.client);
        let answer = end
            .wait(self.client.transport().send(request))
            .await
            .map_err(|elapsed| TransportError::new(Phase::Timeout, elapsed))??;
        let (head, body) = answer.into_parts();
        let date = self.see_the_clock(&head.headers);
        let rate_limit = reply::rate_limit(&head.headers);
        if head.status.is_success() {
            self.hear(date, rate_limit, None);
            let pace = self.draft.pace(end, timeouts.idle);
            let reader = Reader::new(&head, body, self.draft.answer_size(), pace);
            let is_head = self.draft.method == Method::HEAD;
            let body = read(if is_head { reader.without_body() } else { reader }).await?;
            let (status, headers) = (head.status, head.headers);
            return Ok(Answer { status, headers, rate_limit, date, body });
        }
        // The status alone is enough to decide by, should the rest not arrive.
        let reader = Reader::new(&head, body, 0..=LONGEST_JSON, Pace::By(end));
        let body = reader.whole().await.unwrap_or_default();
        let refusal = Refusal::read(head.status, &head.headers, &body);
        self.hear(date, rate_limit, Some(&refusal));
        Err(Failure::Refused(Box::new(refusal)))
    }

    /// Tells the limiter what the answer says.
    fn hear(
        &self,
        date: Option<DateTime<Utc>>,
        status: Option<RateLimitStatus>,
        refusal: Option<&Refusal>,
    ) {
        let throttled = refusal.filter(|refusal| refusal.status == StatusCode::TOO_MANY_REQUESTS);
        if !self.draft.takes_turns() || (status.is_none() && throttled.is_none()) {
            return;
        }
        self.client.line().hear(&Heard {
            sent: self.began,
            received: clock::now(),
            status,
            rest: status.and_then(|status| hint::rest(date?, status.reset)).unwrap_or(1),
            refused: throttled.map(|refusal| refusal.hint.unwrap_or_default()),
        });
    }

    fn succeeded(&self, status: StatusCode) {
        self.client.decider().succeeded(self.cost);
        self.tell(|told| Attempt { status: Some(status.as_u16()), ..told });
    }

    /// Waits for the next attempt after a failed one, or gives up.
    pub(super) async fn recover(&mut self, failure: Failure) -> Result<(), Error> {
        self.arrive(&failure);
        let failed = self.failed(&failure);
        self.stale_before |= failed.class == FailureClass::Stale;
        let decision = self.client.decider().decide(self.client.retry(), &failed);
        self.tell(|told| {
            let (wait, stopped) = match decision {
                Decision::Wait(wait) => (Some(wait), None),
                Decision::GiveUp(reason) => (None, Some(reason)),
            };
            let (status, failure) = (failure.status(), Some(failed.class));
            Attempt { status, failure, wait, stopped, ..told }
        });
        let wait = match decision {
            Decision::Wait(wait) => wait,
            Decision::GiveUp(reason) => return Err(failure.into_error(self.trace.clone(), reason)),
        };
        debug!(attempt = failed.number, class = ?failed.class, ?wait, "retrying");
        self.cost = Some(failed.cost());
        // A free one was not counted, so its turn is still its own.
        let turn = if failed.is_free() {
            Ok(())
        } else {
            sleep(wait).await;
            self.turn().await.map(drop)
        };
        let stopped = match turn {
            Err(refused) => Some(refused.reason),
            // The machine may have slept meanwhile.
            Ok(()) => self.key_left().filter(Duration::is_zero).map(|_| StopReason::KeyExpired),
        };
        match stopped {
            Some(reason) => Err(failure.into_error(self.trace.clone(), reason)),
            None => Ok(()),
        }
    }

    /// An attempt begins: from now on, whatever interrupts it leaves its key in doubt.
    fn set_out(&mut self) {
        if let Some(key) = &self.trace.idempotency_key {
            key.begin(|| self.client.clocks().moment());
            self.under_way = true;
        }
    }

    /// An attempt has failed: its key learns what that says.
    fn arrive(&mut self, failure: &Failure) {
        let left = failure.trace_left();
        if self.trace.idempotency_key.is_none() {
            self.trace.in_the_dark |= left == Left::Doubt;
            return;
        }
        let ended = match left {
            Left::Nothing => Ended::NotSent,
            Left::Refused => Ended::Refused,
            Left::Settled => Ended::Settled(self.digest()),
            Left::Conflict => Ended::Conflict(self.digest()),
            Left::Doubt => Ended::InDoubt(self.digest()),
        };
        self.end(ended);
    }

    /// An answer says that what was asked is done.
    pub(super) fn executed(&mut self) {
        self.end(Ended::Executed);
    }

    fn end(&mut self, ended: Ended) {
        if let Some(key) = self.trace.idempotency_key.as_ref().filter(|_| self.under_way) {
            self.under_way = false;
            key.end(ended);
        }
    }

    /// What tells the request from every other, of another account too.
    fn digest(&self) -> String {
        self.draft.digest(&self.client)
    }

    /// An answer's date. The service's clock is learnt from it when the answer is the service's own.
    fn see_the_clock(&self, headers: &HeaderMap) -> Option<DateTime<Utc>> {
        let (clocks, shown) = (self.client.clocks(), headers.get(DATE)?);
        let date = clocks.read(shown)?;
        if headers.contains_key(header::REQUEST_ID) {
            clocks.hear(shown, date);
            if let Some(key) = &self.trace.idempotency_key {
                key.note_service_time(date);
            }
        }
        Some(date)
    }

    fn failed(&self, failure: &Failure) -> Failed {
        let now = clock::now();
        Failed {
            number: self.trace.attempts,
            class: failure.class(),
            repeatable: self.draft.repeatable,
            stale_before: self.stale_before,
            hint: failure.hint(),
            now,
            left: self.deadline.saturating_duration_since(now),
            key_left: self.key_left(),
        }
    }

    /// Begins the call's time anew, for a download that had come some way.
    pub(super) fn extend(&mut self) {
        self.deadline = clock::after(self.client.timeouts().total);
    }

    /// Waits for its turn; true when it had to wait.
    async fn turn(&self) -> Result<bool, Refused> {
        const TOO_LATE: Refused = Refused { reason: StopReason::Deadline, wait: None };
        // Without time of its own a call is late, however short the line is.
        if clock::now() >= self.deadline {
            return Err(TOO_LATE);
        }
        let limit = self.client.rate_limit();
        let has_waited =
            self.draft.takes_turns() && self.client.line().turn(limit, self.deadline).await?;
        // Nothing is sent for a caller who has not polled until its time was over.
        if clock::now() < self.deadline { Ok(has_waited) } else { Err(TOO_LATE) }
    }

    /// What is left of the idempotency key's life, which begins when it is first sent.
    fn key_left(&self) -> Option<Duration> {
        let key = self.trace.idempotency_key.as_ref()?;
        Some(key.left(|| self.client.clocks().moment()))
    }

    fn check_key(&self) -> Result<(), Error> {
        if self.key_left().is_some_and(|left| left.is_zero()) {
            Err(self.expired())
        } else {
            Ok(())
        }
    }

    fn crowded_out(&self, refused: Refused) -> Error {
        const NO_TURN: Texts = (
            "The client's own rate limit left no room in time.",
            "El límite de solicitudes del propio cliente no dejó lugar a tiempo.",
        );
        const NO_TIME: Texts = (
            "The call's time ran out before it could be sent.",
            "El tiempo de la llamada se agotó antes de poder enviarla.",
        );
        let (kind, texts) = match refused.wait {
            Some(_) => (ErrorKind::RateLimited, NO_TURN),
            None => (ErrorKind::Timeout, NO_TIME),
        };
        Error::new(kind, texts).with(|inner| {
            inner.retry_after = refused.wait;
            inner.idempotency_key.clone_from(&self.trace.idempotency_key);
            inner.may_have_executed = self.trace.may_have_executed();
            inner.nothing_sent = true;
            inner.stop_reason = Some(refused.reason);
        })
    }

    fn expired(&self) -> Error {
        const EXPIRED: Texts = (
            "The idempotency key was first sent 24 hours ago: sending it again could do it twice.",
            "La clave de idempotencia se envió hace 24 horas: enviarla otra vez podría repetir la operación.",
        );
        Error::new(ErrorKind::KeyExpired, EXPIRED).with(|inner| {
            inner.idempotency_key.clone_from(&self.trace.idempotency_key);
            inner.may_have_executed = self.trace.may_have_executed();
            inner.stop_reason = Some(StopReason::KeyExpired);
        })
    }

    fn tell(&self, fill: impl FnOnce(Attempt) -> Attempt) {
        let (Some(observer), Some(operation)) = (self.client.observer(), self.operation) else {
            return;
        };
        (observer.0)(&fill(Attempt {
            operation,
            number: self.trace.attempts,
            status: None,
            failure: None,
            took: clock::now().saturating_duration_since(self.began),
            wait: None,
            stopped: None,
        }));
    }

    /// The span of one attempt, named as OpenTelemetry names HTTP. Not the address: it holds
    /// tracking numbers.
    fn span(&self) -> Span {
        let (method, template) = (self.draft.method.as_str(), self.draft.template);
        let base = self.client.base_url();
        debug_span!(
            "parcelo.attempt",
            otel.name = format_args!("{method} {template}"),
            otel.kind = "client",
            "http.request.method" = method,
            "url.template" = template,
            "server.address" = base.host_str(),
            "server.port" = base.port_or_known_default(),
            "http.request.resend_count" = self.trace.attempts - 1,
            "http.response.status_code" = Empty,
            "error.type" = Empty,
        )
    }
}

fn record<T>(span: &Span, result: &Result<Answer<T>, Failure>) {
    if span.is_disabled() {
        return;
    }
    match result {
        Ok(answer) => span.record("http.response.status_code", answer.status.as_u16()),
        Err(failure) => span
            .record("http.response.status_code", failure.status())
            .record("error.type", failure.error_type()),
    };
}
