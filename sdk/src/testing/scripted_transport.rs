//! A transport that responds from a script and records its requests.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use futures_util::{StreamExt, stream};
use http::{HeaderName, HeaderValue, Request, Response};
use parcelo_types::ErrorCode;
use serde_json::json;

use super::{api_key, build};
use crate::{
    Client,
    transport::{BodyStream, Phase, ResponseFuture, Transport, TransportError},
};

/// The result of one request.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Step {
    /// A response, whose body arrives in pieces.
    Respond(Response<Vec<Piece>>),
    /// No whole response: the request fails in this phase.
    Fail(Phase),
    /// No response, however long the client waits.
    Hang,
}

/// A part of a response's body.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Piece {
    /// These bytes, at once.
    Bytes(Bytes),
    /// These bytes, after a time.
    After(Duration, Bytes),
    /// The connection breaks.
    Break,
    /// Nothing more arrives, and the connection stays open.
    Silence,
}

impl Step {
    /// Returns a response with a whole body.
    ///
    /// # Panics
    ///
    /// Panics if the status is not between 100 and 999.
    ///
    /// ```
    /// use parcelo::testing::Step;
    ///
    /// let busy = Step::response(503, "").with_header("retry-after", "20");
    /// ```
    pub fn response(status: u16, body: impl Into<Bytes>) -> Self {
        Self::in_pieces(status, [Piece::Bytes(body.into())])
    }

    /// Returns a response whose body arrives in pieces.
    ///
    /// # Panics
    ///
    /// Panics if the status is not between 100 and 999.
    ///
    /// ```
    /// use parcelo::testing::{Piece, Step};
    ///
    /// let broken = Step::in_pieces(201, [Piece::Bytes("{".into()), Piece::Break]);
    /// ```
    pub fn in_pieces(status: u16, pieces: impl IntoIterator<Item = Piece>) -> Self {
        let mut response = Response::new(pieces.into_iter().collect::<Vec<_>>());
        #[expect(clippy::expect_used, reason = "a test's own constant is wrong; documented")]
        let status = http::StatusCode::from_u16(status).expect("a status between 100 and 999");
        *response.status_mut() = status;
        Self::Respond(response)
    }

    /// Returns the response by which the service refuses a request with this code.
    ///
    /// ```
    /// use parcelo::ErrorCode;
    /// use parcelo::testing::{Step, error_after};
    ///
    /// let error = error_after(Step::refusal(ErrorCode::ParcelDuplicateTracking));
    /// assert_eq!(error.known_code(), Some(ErrorCode::ParcelDuplicateTracking));
    /// ```
    pub fn refusal(code: ErrorCode) -> Self {
        let error = json!({"code": code.code(), "message": "The request was refused.",
            "message_es": "La solicitud fue rechazada."});
        let body = json!({"success": false, "error": error});
        Self::response(code.status(), body.to_string()).by_service()
    }

    /// Returns the step with a header of its response. A step without a response stays as it is.
    ///
    /// # Panics
    ///
    /// Panics if a header cannot have the name or the value.
    #[must_use]
    pub fn with_header(self, name: &'static str, value: impl Into<String>) -> Self {
        let Self::Respond(mut response) = self else { return self };
        #[expect(clippy::expect_used, reason = "a test's own constant is wrong; documented")]
        let value = HeaderValue::try_from(value.into()).expect("a value that a header can have");
        response.headers_mut().append(HeaderName::from_static(name), value);
        Self::Respond(response)
    }

    /// Returns the step with the id that only the service's own responses have.
    pub(super) fn by_service(self) -> Self {
        self.with_header("x-request-id", "req_01JH8V0000000000000000TEST")
    }

    /// Returns the result of the step, for a transport of your own.
    pub fn perform(self) -> ResponseFuture<'static> {
        match self {
            Self::Hang => Box::pin(std::future::pending()),
            Self::Fail(phase) => {
                Box::pin(async move { Err(TransportError::new(phase, "scripted")) })
            }
            Self::Respond(response) => {
                let response =
                    response.map(|pieces| BodyStream::new(stream::iter(pieces).then(deliver)));
                Box::pin(async move { Ok(response) })
            }
        }
    }
}

async fn deliver(piece: Piece) -> Result<Bytes, TransportError> {
    match piece {
        Piece::Bytes(bytes) => Ok(bytes),
        Piece::After(wait, bytes) => {
            tokio::time::sleep(wait).await;
            Ok(bytes)
        }
        Piece::Break => Err(TransportError::new(Phase::MaybeSent, "scripted")),
        Piece::Silence => std::future::pending().await,
    }
}

/// A transport that responds from a script and records its requests. Clones share both.
///
/// Each attempt takes the next step, and the last step is repeated. For other settings than those of
/// [`client`](Self::client), pass it to [`ClientBuilder::transport`](crate::ClientBuilder::transport). Pause tokio's
/// time, so that no test waits between attempts.
///
/// ```
/// use parcelo::Outcome;
/// use parcelo::testing::{ScriptedTransport, Step, order};
/// use parcelo::transport::Phase;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), parcelo::Error> {
/// let created = r#"{"success": true, "parcel": {"id": "par_1", "status": "LABEL_GENERATED",
///     "trackingNumber": "SB-SUCCESS-0001", "createdAt": "2026-01-10T15:05:00Z"}}"#;
/// let steps = [Step::Fail(Phase::MaybeSent), Step::response(200, created)];
/// let (client, script) = ScriptedTransport::client(steps);
/// assert_eq!(client.orders().create(&order()).await?.outcome(), Outcome::Replayed);
/// let sent = script.sent_requests();
/// assert_eq!(sent[0].body(), sent[1].body());
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Default)]
pub struct ScriptedTransport(Arc<Mutex<Script>>);

#[derive(Debug, Default)]
struct Script {
    steps: VecDeque<Step>,
    sent_requests: Vec<Request<Bytes>>,
}

impl ScriptedTransport {
    /// Returns a transport whose requests end in these steps, one after the other. Without a step it refuses every
    /// request ([`Phase::Refused`]).
    pub fn new(steps: impl IntoIterator<Item = Step>) -> Self {
        let script = Script { steps: steps.into_iter().collect(), ..Script::default() };
        Self(Arc::new(Mutex::new(script)))
    }

    /// Returns a client with such a transport, and the transport.
    pub fn client(steps: impl IntoIterator<Item = Step>) -> (Client, Self) {
        let script = Self::new(steps);
        (build(Client::builder(api_key()).transport(script.clone())), script)
    }

    /// Returns the requests so far. Their bodies have what your orders have: print none of a real customer's.
    pub fn sent_requests(&self) -> Vec<Request<Bytes>> {
        self.with_script(|script| script.sent_requests.clone())
    }

    fn with_script<T>(&self, action: impl FnOnce(&mut Script) -> T) -> T {
        action(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Transport for ScriptedTransport {
    fn send(&self, request: Request<Bytes>) -> ResponseFuture<'_> {
        let step = self.with_script(|script| {
            script.sent_requests.push(request);
            let is_last = script.steps.len() <= 1;
            if is_last { script.steps.front().cloned() } else { script.steps.pop_front() }
        });
        step.unwrap_or(Step::Fail(Phase::Refused)).perform()
    }
}
