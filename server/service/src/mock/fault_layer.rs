//! The mock server's middleware, which logs every request and injects the planned faults. `parcelo-server serve` does
//! not have it.
//!
//! There are two layers. [`inject`] is outside the service's own middleware: it delays requests and responses, and
//! damages bodies. [`short_circuit`] is inside: a planned error returned there gets the headers that every response of
//! the service has, and requests that the service would refuse, such as those with a bad key, are still refused. The
//! faults are attached to the response as an extension for the transport, since only it can close or reset a
//! connection.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use axum::{
    Router,
    body::{Body, Bytes},
    extract::{Request, State},
    http::{HeaderName, HeaderValue, header, response::Parts},
    middleware::{Next, from_fn, from_fn_with_state},
    response::{IntoResponse, Response},
};
use futures_util::{StreamExt, stream};
use http_body_util::{BodyExt, BodyStream, Collected, StreamBody};
use parcelo_domain::Refusal;
use parcelo_system::clock::Clock;
use parcelo_types::{ErrorCode, internal::header as names};

use super::{
    corruption::{corrupt_body, fit_content_length},
    fault_plan::{Corruption, FaultPlans, InjectedFaults, Replacement, RequestInfo, Timing},
    log::RequestLog,
    order_names::OrderNames,
    recorded_request::{MAX_BODY_BYTES, RecordedRequest},
    request_capture::{RequestCapture, record_head},
    selection::related_names,
};
use crate::http::{Api, HttpRefusal, router_with_layer};

/// The request log and the planned faults of a server.
#[derive(Debug)]
pub(super) struct Recorder {
    plans: Mutex<FaultPlans>,
    log: RequestLog,
    clock: Arc<dyn Clock>,
}

/// A marker of a request whose delays are left to its transport. `Responder` blocks the runtime's thread, where a sleep
/// would never end, so it passes delays on to wiremock.
#[derive(Debug, Clone, Copy)]
pub(super) struct TransportDelays;

/// A planned error that is returned instead of executing a request's operation, or instead of the operation's
/// response.
#[derive(Debug, Clone)]
struct ShortCircuit(Timing, Refusal);

impl Recorder {
    pub(super) fn new(seed: u64, log: usize, clock: Arc<dyn Clock>) -> Self {
        Self { plans: Mutex::new(FaultPlans::seeded(seed)), log: RequestLog::new(log), clock }
    }

    pub(super) fn log(&self) -> &RequestLog {
        &self.log
    }

    pub(super) fn plans(&self) -> MutexGuard<'_, FaultPlans> {
        self.plans.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the service's routes, with faults.
pub(super) fn routes(api: Api, recorder: Arc<Recorder>) -> Router {
    router_with_layer(api, |routes| routes.layer(from_fn(short_circuit)))
        .layer(from_fn_with_state(recorder, inject))
}

async fn inject(
    State(recorder): State<Arc<Recorder>>,
    mut request: Request,
    next: Next,
) -> Response {
    let mut record = record_head(&mut request, recorder.clock.now()).await;
    let (orders, request) = recorder.select_orders(&record, request).await;
    let faults = recorder.select_faults(&record, &orders);
    record.faults.clone_from(&faults.descriptions);
    let (mut capture, mut request) = RequestCapture::start(&recorder.log, record, request);
    let transport_delays = request.extensions().get::<TransportDelays>().copied();
    let delay = |time: Duration| if transport_delays.is_some() { Duration::ZERO } else { time };
    pause(delay(faults.delay_before)).await;
    if let Some(short_circuit) = ShortCircuit::from_faults(&faults) {
        request.extensions_mut().insert(short_circuit);
    }
    let response = respond(request, next, &faults, transport_delays).await;
    let (response_head, body) = collect_body(response).await;
    let mut response_head = recorder.with_rate_limit(response_head, &faults);
    if !faults.drops_request() {
        capture.set_response(response_head.status.as_u16(), &body);
    }
    pause(delay(faults.delay_after)).await;
    let is_reply = faults.reply().is_some();
    // The other corruptions need time or the connection, so the transport applies them.
    let corruption = faults
        .corruption()
        .filter(|corruption| transport_delays.is_none() || *corruption == Corruption::Malformed);
    response_head.extensions.insert(faults);
    match corruption {
        Some(corruption) => corrupt_body(response_head, &body, corruption),
        None if is_reply => {
            let body = fit_content_length(&response_head, body);
            Response::from_parts(response_head, body)
        }
        None => Response::from_parts(response_head, Body::from(body)),
    }
}

/// Returns the service's response, or the reply that replaces it.
async fn respond(
    request: Request,
    next: Next,
    faults: &InjectedFaults,
    transport_delays: Option<TransportDelays>,
) -> Response {
    let Some((timing, reply)) = faults.reply() else { return next.run(request).await };
    match timing {
        Timing::AfterCommit => drop(next.run(request).await),
        // The body is read to its end for the log, and because closing a connection with unread data resets it, which
        // can discard the response in flight.
        Timing::Before => {
            let mut body = request.into_body();
            while let Some(Ok(_)) = body.frame().await {}
        }
    }
    // A transport that does the waiting also leaves a hanging request without a response.
    if transport_delays.is_some() && reply.hangs() {
        Response::default()
    } else {
        reply.response().await
    }
}

/// Returns the head and the whole body of a response. The service's bodies are in memory and cannot fail.
pub(super) async fn collect_body(response: Response) -> (Parts, Bytes) {
    let (head, body) = response.into_parts();
    (head, body.collect().await.map(Collected::to_bytes).unwrap_or_default())
}

/// Returns the beginning of a body, up to the length that the log keeps, and the body unchanged.
async fn peek_body(mut body: Body) -> (Vec<u8>, Body) {
    let (mut bytes, mut frames) = (Vec::new(), Vec::new());
    while bytes.len() <= MAX_BODY_BYTES {
        let Some(frame) = body.frame().await else {
            // A body that was read to its end has a known length. One that failed has ended too, and its error must be
            // passed on.
            if frames.iter().all(Result::is_ok) {
                return (bytes.clone(), Body::from(bytes));
            }
            break;
        };
        let data = frame.as_ref().ok().and_then(|frame| frame.data_ref());
        bytes.extend_from_slice(data.map_or(&[][..], |data| data));
        frames.push(frame);
    }
    let whole = stream::iter(frames).chain(BodyStream::new(body));
    (bytes, Body::new(StreamBody::new(whole)))
}

async fn pause(time: Duration) {
    if !time.is_zero() {
        tokio::time::sleep(time).await;
    }
}

async fn short_circuit(request: Request, next: Next) -> Response {
    let Some(ShortCircuit(timing, refusal)) = request.extensions().get::<ShortCircuit>().cloned()
    else {
        return next.run(request).await;
    };
    if timing == Timing::AfterCommit {
        drop(next.run(request).await);
    }
    HttpRefusal(refusal).into_response()
}

impl Recorder {
    /// Returns the orders that a request is about, if a plan selects by order; otherwise its body is not read in
    /// advance.
    async fn select_orders(
        &self,
        head: &RecordedRequest,
        request: Request,
    ) -> (OrderNames, Request) {
        if !self.plans().select_by_order() {
            return (OrderNames::EMPTY, request);
        }
        let (parts, body) = request.into_parts();
        let (beginning, body) = peek_body(body).await;
        let mut orders = head.orders.clone();
        orders.add_body(&beginning);
        let orders = self.log.read(|requests| related_names(&orders, requests));
        (orders, Request::from_parts(parts, body))
    }

    fn select_faults(&self, head: &RecordedRequest, orders: &OrderNames) -> InjectedFaults {
        let Some(operation) = head.operation else { return InjectedFaults::default() };
        self.plans().faults_for(RequestInfo { operation, key: head.key.as_ref(), orders })
    }

    /// Makes the rate-limit headers of a planned 429 agree with its body. A response with another `Retry-After` is the
    /// service's own refusal and is left unchanged.
    fn with_rate_limit(&self, mut head: Parts, faults: &InjectedFaults) -> Parts {
        if let Some((_, Replacement::RateLimited(seconds))) = faults.replacement
            && head.headers.get(header::RETRY_AFTER) == Some(&HeaderValue::from(seconds))
        {
            let reset = self.clock.now().second() + i64::from(seconds);
            head.headers.insert(HeaderName::from_static(names::RATE_REMAINING), 0.into());
            head.headers.insert(HeaderName::from_static(names::RATE_RESET), reset.into());
        }
        head
    }
}

impl ShortCircuit {
    fn from_faults(faults: &InjectedFaults) -> Option<Self> {
        let (timing, replacement) = faults.replacement.as_ref()?;
        let timing = *timing;
        match replacement {
            Replacement::Error(code) => Some(Self(timing, Refusal::example(*code))),
            Replacement::RateLimited(seconds) => {
                Some(Self(timing, Refusal::rate_limited(*seconds)))
            }
            // The error is never seen, since the connection ends; it only keeps the operation from being executed.
            Replacement::Disconnect(_) if timing == Timing::Before => {
                Some(Self(timing, ErrorCode::ServiceUnavailable.into()))
            }
            Replacement::Disconnect(_) | Replacement::Corrupted(_) | Replacement::Reply(_) => None,
        }
    }
}
