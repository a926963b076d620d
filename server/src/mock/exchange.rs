//! What happens to every request of the mock server besides what the service does: it is logged,
//! and it meets the planned faults. The service's own listeners know nothing of this.
//!
//! Two layers: [`meet`] stands around the gate, waits and spoils; [`stand_in`] stands behind it and
//! answers with a planned error, which so has all headers that the gate gives. What a request met is
//! written on its response, for the transport, which does what only a connection can: close, reset.

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
use parcelo::{ErrorCode, model::header as names};

use super::{
    log::{LONGEST_BODY, Log},
    order_names::OrderNames,
    plan::{Asked, End, Hit, Moment, Plans, Spoilt},
    record::{Entry, Seen},
    spoil::{as_promised, spoil},
};
use crate::{
    clock::Clock,
    domain::Refusal,
    http::{Api, Refused, router_through},
};

/// Where requests are looked at.
#[derive(Debug)]
pub(super) struct Desk {
    plans: Mutex<Plans>,
    log: Log,
    clock: Arc<dyn Clock>,
}

/// On a request: what takes time is left to its transport.
#[derive(Debug, Clone, Copy)]
pub(super) struct TransportWaits;

/// On a request: what is answered in the operation's place, or after it.
#[derive(Debug, Clone)]
struct StandIn(Moment, Refusal);

impl Desk {
    pub(super) fn new(seed: u64, log: usize, clock: Arc<dyn Clock>) -> Self {
        Self { plans: Mutex::new(Plans::seeded(seed)), log: Log::of(log), clock }
    }

    pub(super) fn log(&self) -> &Log {
        &self.log
    }

    pub(super) fn plans(&self) -> MutexGuard<'_, Plans> {
        self.plans.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The service's routes, with faults.
pub(super) fn routes(api: Api, desk: Arc<Desk>) -> Router {
    router_through(api, |routes| routes.layer(from_fn(stand_in)))
        .layer(from_fn_with_state(desk, meet))
}

async fn meet(State(desk): State<Arc<Desk>>, mut request: Request, next: Next) -> Response {
    let seen = Seen::of(&mut request).await;
    let (orders, request) = desk.orders(&seen, request).await;
    let hit = desk.hit(&seen, &orders);
    let (mut entry, mut request) = Entry::begin(&desk.log, seen, desk.clock.now(), request);
    entry.met(&hit.faults);
    let transport_waits = request.extensions().get::<TransportWaits>().is_some();
    let pause = |time: Duration| if transport_waits { Duration::ZERO } else { time };
    rest(pause(hit.before)).await;
    if let Some(stand_in) = StandIn::of(&hit) {
        request.extensions_mut().insert(stand_in);
    }
    let answer = answer(request, next, &hit, transport_waits).await;
    let (head, body) = whole(answer).await;
    let mut head = desk.head(head, &hit);
    if !hit.is_unanswered_before() {
        entry.answered(head.status.as_u16(), &body);
    }
    rest(pause(hit.after)).await;
    let is_chosen = hit.reply().is_some();
    let spoilt = hit.spoilt().filter(|spoilt| !transport_waits || *spoilt == Spoilt::Malformed);
    head.extensions.insert(hit);
    match spoilt {
        Some(spoilt) => spoil(head, &body, spoilt),
        None if is_chosen => {
            let body = as_promised(&head, body);
            Response::from_parts(head, body)
        }
        None => Response::from_parts(head, Body::from(body)),
    }
}

/// The service's answer, or the one in its place.
async fn answer(request: Request, next: Next, hit: &Hit, transport_waits: bool) -> Response {
    let Some((moment, reply)) = hit.reply() else { return next.run(request).await };
    match moment {
        Moment::AfterCommit => drop(next.run(request).await),
        // Read to its end, so that it stands in the log and the answer is not lost with the connection.
        Moment::Before => {
            let mut body = request.into_body();
            while let Some(Ok(_)) = body.frame().await {}
        }
    }
    // The transport knows how not to answer.
    if transport_waits && reply.hangs() { Response::default() } else { reply.response().await }
}

/// The service's bodies are whole in memory and do not fail.
pub(super) async fn whole(response: Response) -> (Parts, Bytes) {
    let (head, body) = response.into_parts();
    (head, body.collect().await.map(Collected::to_bytes).unwrap_or_default())
}

/// As much of a body's beginning as is remembered of any, and the body as if nobody had looked.
async fn peek(mut body: Body) -> (Vec<u8>, Body) {
    let (mut bytes, mut frames) = (Vec::new(), Vec::new());
    while bytes.len() <= LONGEST_BODY {
        let Some(frame) = body.frame().await else {
            // Whole, its length is known; what breaks off has ended too, and must not look whole.
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

async fn rest(time: Duration) {
    if !time.is_zero() {
        tokio::time::sleep(time).await;
    }
}

async fn stand_in(request: Request, next: Next) -> Response {
    let Some(StandIn(moment, refusal)) = request.extensions().get::<StandIn>().cloned() else {
        return next.run(request).await;
    };
    if moment == Moment::AfterCommit {
        drop(next.run(request).await);
    }
    Refused(refusal).into_response()
}

impl Desk {
    /// The orders that a request is about, if a plan asks for them: then its body is read here already.
    async fn orders(&self, seen: &Seen, request: Request) -> (OrderNames, Request) {
        if !self.plans().ask_for_orders() {
            return (OrderNames::NONE, request);
        }
        let (head, body) = request.into_parts();
        let (beginning, body) = peek(body).await;
        let mut orders = seen.orders.clone();
        orders.add_body(&beginning);
        let orders = self.log.read(|requests| orders.completed(requests));
        (orders, Request::from_parts(head, body))
    }

    fn hit(&self, seen: &Seen, orders: &OrderNames) -> Hit {
        let Some(operation) = seen.operation else { return Hit::default() };
        self.plans().meet(Asked { operation, key: seen.key.as_ref(), orders })
    }

    /// The head of a planned 429 agrees with its body, unless the gate has answered otherwise.
    fn head(&self, mut head: Parts, hit: &Hit) -> Parts {
        if let Some((_, End::RateLimited(seconds))) = hit.end
            && head.headers.get(header::RETRY_AFTER) == Some(&HeaderValue::from(seconds))
        {
            let reset = self.clock.now().second() + i64::from(seconds);
            head.headers.insert(HeaderName::from_static(names::RATE_REMAINING), 0.into());
            head.headers.insert(HeaderName::from_static(names::RATE_RESET), reset.into());
        }
        head
    }
}

impl StandIn {
    fn of(hit: &Hit) -> Option<Self> {
        let (moment, end) = hit.end.as_ref()?;
        let moment = *moment;
        match end {
            End::Error(code) => Some(Self(moment, Refusal::example(*code))),
            End::RateLimited(seconds) => Some(Self(moment, Refusal::rate_limited(*seconds))),
            // Nobody sees this one: the connection ends.
            End::Cut(_) if moment == Moment::Before => {
                Some(Self(moment, ErrorCode::ServiceUnavailable.into()))
            }
            End::Cut(_) | End::Spoilt(_) | End::Reply(_) => None,
        }
    }
}
