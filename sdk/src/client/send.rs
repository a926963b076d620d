//! Sending a call: attempt after attempt, sleeping as [`retry`](super::retry) decides.

use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use serde::de::DeserializeOwned;
use tokio::time::{Instant, sleep, timeout_at};
use tracing::{Instrument, debug, debug_span, field::Empty};

use super::{
    Client, Error, Failure, Phase, Reply, TransportError,
    body::{Pace, Reader},
    call::{Call, LONGEST_JSON},
    clock,
    failure::{Refusal, Trace},
    retry::{Class, Decision, Failed},
};
use crate::Envelope;

/// A successful answer.
#[derive(Debug)]
pub(super) struct Answer<T> {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    pub(super) body: T,
    pub(super) attempts: u32,
}

impl Client {
    /// Makes a call whose answer is JSON.
    pub(super) async fn json<T: DeserializeOwned>(
        &self,
        call: Call<'_>,
    ) -> Result<Reply<T>, Error> {
        let answer = self.answer(&call, Reader::whole).await?;
        Reply::read(&call, &answer)
    }

    /// Makes a call whose answer is JSON in an envelope.
    pub(super) async fn data<T: DeserializeOwned>(
        &self,
        call: Call<'_>,
    ) -> Result<Reply<T>, Error> {
        let reply: Reply<Envelope<T>> = self.json(call).await?;
        Ok(reply.map(|envelope| envelope.data))
    }

    /// Makes a call; `read` takes what it needs of the body before an attempt counts as a success.
    pub(super) async fn answer<T, R>(
        &self,
        call: &Call<'_>,
        read: impl Fn(Reader) -> R,
    ) -> Result<Answer<T>, Error>
    where
        R: Future<Output = Result<T, Failure>>,
    {
        let span = debug_span!(
            "parcelo.call",
            "http.request.method" = call.operation.method().as_str(),
            "url.template" = call.operation.path(),
            "http.response.status_code" = Empty,
            attempts = Empty,
        );
        async {
            let answer = self.attempts(call, read).await;
            let (status, attempts) = match &answer {
                Ok(answer) => (Some(answer.status.as_u16()), answer.attempts),
                Err(error) => (error.status(), error.attempts()),
            };
            tracing::Span::current()
                .record("http.response.status_code", status)
                .record("attempts", attempts);
            answer
        }
        .instrument(span)
        .await
    }

    async fn attempts<T, R>(
        &self,
        call: &Call<'_>,
        read: impl Fn(Reader) -> R,
    ) -> Result<Answer<T>, Error>
    where
        R: Future<Output = Result<T, Failure>>,
    {
        let request = call.request(self)?;
        let deadline = clock::after(self.timeouts().total);
        let mut trace = Trace::new(call);
        let mut stale_before = false;
        loop {
            trace.attempts += 1;
            let failure = match self.attempt(call, request.clone(), deadline, &read).await {
                Ok(answer) => return Ok(Answer { attempts: trace.attempts, ..answer }),
                Err(failure) => failure,
            };
            trace.in_the_dark |= failure.is_in_the_dark();
            let failed = Failed {
                number: trace.attempts,
                class: failure.class(),
                repeatable: call.operation.is_repeatable(),
                stale_before,
                hint: failure.hint(),
                left: clock::until(deadline),
            };
            stale_before |= failed.class == Class::Stale;
            match self.decide(&failed) {
                Decision::Wait(wait) => {
                    debug!(attempt = failed.number, class = ?failed.class, ?wait, "retrying");
                    sleep(wait).await;
                }
                Decision::GiveUp(reason) => return Err(failure.into_error(trace, reason)),
            }
        }
    }

    async fn attempt<T, R>(
        &self,
        call: &Call<'_>,
        request: http::Request<Bytes>,
        deadline: Instant,
        read: impl Fn(Reader) -> R,
    ) -> Result<Answer<T>, Failure>
    where
        R: Future<Output = Result<T, Failure>>,
    {
        let end = clock::after(self.timeouts().attempt).min(deadline);
        let answer = timeout_at(end, self.transport().send(request))
            .await
            .map_err(|elapsed| TransportError::new(Phase::Timeout, elapsed))??;
        let (head, body) = answer.into_parts();
        if head.status.is_success() {
            let pace = call.pace(end, self.timeouts().idle);
            let reader = Reader::new(&head.headers, body, call.longest_answer(), pace);
            let body = read(reader).await?;
            return Ok(Answer { status: head.status, headers: head.headers, body, attempts: 0 });
        }
        // The status alone is enough to decide by, should the rest not arrive.
        let reader = Reader::new(&head.headers, body, LONGEST_JSON, Pace::By(end));
        let body = reader.whole().await.unwrap_or_default();
        Err(Failure::Refused(Box::new(Refusal::read(head.status, &head.headers, &body))))
    }
}
