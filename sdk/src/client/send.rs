//! Making a call and reading its JSON.

use serde::de::DeserializeOwned;
use tracing::{Instrument, debug_span, field::Empty};

use super::{
    Client, Error, Failure, Reply,
    body::Reader,
    call::Call,
    course::{Answer, Course},
    reply::{self, Data, Plain, Verdict},
};

impl Client {
    /// Makes a call whose answer is JSON.
    pub(super) async fn json<T: DeserializeOwned + Verdict>(
        &self,
        call: Call<'_>,
    ) -> Result<Reply<T>, Error> {
        let (answer, mut course) = self.answer(&call, Reader::whole).await?;
        let reply = reply::read(&call, answer, &course.trace);
        if reply.as_ref().map_or_else(Error::is_executed, |_| true) {
            course.executed();
        }
        reply
    }

    /// Makes a call whose answer is JSON that says nothing of itself.
    pub(super) async fn plain<T: DeserializeOwned>(
        &self,
        call: Call<'_>,
    ) -> Result<Reply<T>, Error> {
        let reply: Reply<Plain<T>> = self.json(call).await?;
        Ok(reply.map(|plain| plain.0))
    }

    /// Makes a call whose answer is JSON in an envelope.
    pub(super) async fn data<T: DeserializeOwned>(
        &self,
        call: Call<'_>,
    ) -> Result<Reply<T>, Error> {
        let reply: Reply<Data<T>> = self.json(call).await?;
        Ok(reply.map(|answer| answer.data))
    }

    /// Makes a call; `read` takes what it needs of the body before an attempt counts as a success.
    pub(super) async fn answer<T, R>(
        &self,
        call: &Call<'_>,
        read: impl Fn(Reader) -> R,
    ) -> Result<(Answer<T>, Course), Error>
    where
        R: Future<Output = Result<T, Failure>>,
    {
        let span = debug_span!(
            "parcelo.call",
            "http.request.method" = call.method().as_str(),
            "url.template" = call.template(),
            "http.response.status_code" = Empty,
            attempts = Empty,
        );
        let answer = async {
            let mut course = Course::begin(self, call).await?;
            let answer = course.answer(read).await?;
            Ok::<_, Error>((answer, course))
        }
        .instrument(span.clone())
        .await;
        let (status, attempts) = match &answer {
            Ok((answer, course)) => (Some(answer.status.as_u16()), course.trace.attempts),
            Err(error) => (error.status(), error.attempts()),
        };
        span.record("http.response.status_code", status).record("attempts", attempts);
        answer
    }
}
