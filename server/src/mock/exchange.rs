//! What happens to every request of the mock server besides what the service does: it meets the
//! planned faults. The service's own listeners know nothing of this.
//!
//! Two layers: [`meet`] stands around the gate, waits and spoils; [`stand_in`] stands behind it and
//! answers with a planned error, which so has all headers that the gate gives. What a request met is
//! written on its response, for the carrier that can do what only a connection can: close, reset.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use axum::{
    Router,
    body::{Body, Bytes},
    extract::{MatchedPath, Request, State},
    http::{HeaderMap, HeaderName, HeaderValue, header},
    middleware::{Next, from_fn, from_fn_with_state},
    response::{IntoResponse, Response},
};
use futures_util::{StreamExt, stream};
use http_body_util::BodyExt;
use parcelo::{ApiKey, ErrorCode, Operation, header as names};

use super::plan::{Asked, End, Hit, Moment, Plans, Spoilt};
use crate::{
    clock::Clock,
    core::Refusal,
    http::{Api, Refused, ignore, router_through},
};

/// How much of a slow body comes at once.
pub(super) const PIECE: usize = 1024;
const BROKEN: &str = r#"{"success":true,"data":{"#;

/// Where requests are looked at.
#[derive(Debug)]
pub(super) struct Desk {
    plans: Mutex<Plans>,
    clock: Arc<dyn Clock>,
}

/// On a request: its carrier waits, so nothing else must.
#[derive(Debug, Clone, Copy)]
pub(super) struct WaitsItself;

/// On a request: what is answered in the operation's place, or after it.
#[derive(Debug, Clone)]
struct StandIn(Moment, Refusal);

impl Desk {
    pub(super) fn new(seed: u64, clock: Arc<dyn Clock>) -> Self {
        Self { plans: Mutex::new(Plans::seeded(seed)), clock }
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
    let hit = desk.hit(&request);
    let waits_itself = request.extensions().get::<WaitsItself>().is_some();
    let pause = |time: Duration| if waits_itself { Duration::ZERO } else { time };
    rest(pause(hit.before)).await;
    if let Some(stand_in) = StandIn::of(&hit) {
        request.extensions_mut().insert(stand_in);
    }
    let response = next.run(request).await;
    rest(pause(hit.after)).await;
    let mut response = desk.finish(response, &hit).await;
    response.extensions_mut().insert(hit);
    response
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
    match moment {
        Moment::Before => ignore(request).await,
        Moment::AfterCommit => drop(next.run(request).await),
    }
    Refused(refusal).into_response()
}

impl Desk {
    fn hit(&self, request: &Request) -> Hit {
        let Some(operation) = operation(request) else { return Hit::default() };
        let key = api_key(request.headers());
        self.plans().meet(Asked { operation, key: key.as_ref() })
    }

    async fn finish(&self, response: Response, hit: &Hit) -> Response {
        match hit.end {
            Some((_, End::Spoilt(spoilt))) => spoil(response, spoilt).await,
            Some((_, End::RateLimited(seconds))) => self.rate_limited(response, seconds),
            Some((_, End::Error(_) | End::Cut(_))) | None => response,
        }
    }

    /// The headers agree with the body, unless the gate has answered otherwise.
    fn rate_limited(&self, mut response: Response, seconds: u32) -> Response {
        if response.headers().get(header::RETRY_AFTER) == Some(&HeaderValue::from(seconds)) {
            let reset = self.clock.now().second() + i64::from(seconds);
            let headers = response.headers_mut();
            headers.insert(HeaderName::from_static(names::RATE_REMAINING), 0.into());
            headers.insert(HeaderName::from_static(names::RATE_RESET), reset.into());
        }
        response
    }
}

impl StandIn {
    fn of(hit: &Hit) -> Option<Self> {
        let (moment, end) = hit.end?;
        match end {
            End::Error(code) => Some(Self(moment, Refusal::example(code))),
            End::RateLimited(seconds) => Some(Self(moment, Refusal::rate_limited(seconds))),
            // Nobody sees this one: the connection ends.
            End::Cut(_) if moment == Moment::Before => {
                Some(Self(moment, ErrorCode::ServiceUnavailable.into()))
            }
            End::Cut(_) | End::Spoilt(_) => None,
        }
    }
}

fn operation(request: &Request) -> Option<Operation> {
    let path = request.extensions().get::<MatchedPath>()?.as_str();
    let is_asked = |operation: &&Operation| {
        operation.path() == path && operation.method().as_str() == request.method().as_str()
    };
    Operation::ALL.iter().find(is_asked).copied()
}

fn api_key(headers: &HeaderMap) -> Option<ApiKey> {
    ApiKey::parse(headers.get(names::API_KEY)?.to_str().ok()?).ok()
}

async fn spoil(response: Response, spoilt: Spoilt) -> Response {
    let (mut head, body) = response.into_parts();
    // The service's bodies are whole in memory and do not fail.
    let whole = body.collect().await.map(http_body_util::Collected::to_bytes).unwrap_or_default();
    head.headers.insert(header::CONTENT_LENGTH, whole.len().into());
    let body = match spoilt {
        Spoilt::Truncated => truncated(&whole),
        Spoilt::Slow(pause) => slow(&whole, pause),
        Spoilt::Malformed => {
            head.headers.insert(header::CONTENT_LENGTH, BROKEN.len().into());
            head.headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
            Body::from(BROKEN)
        }
    };
    Response::from_parts(head, body)
}

fn truncated(whole: &Bytes) -> Body {
    let half = Ok(whole.slice(..whole.len() / 2));
    let end = async {
        // So that the half leaves before the connection ends.
        tokio::task::yield_now().await;
        Err(std::io::Error::from(std::io::ErrorKind::UnexpectedEof))
    };
    Body::from_stream(stream::once(async { half }).chain(stream::once(end)))
}

fn slow(whole: &Bytes, pause: Duration) -> Body {
    let pieces: Vec<_> = whole.chunks(PIECE).map(|piece| whole.slice_ref(piece)).collect();
    let late = stream::iter(pieces).then(move |piece| async move {
        tokio::time::sleep(pause).await;
        Ok::<_, std::io::Error>(piece)
    });
    Body::from_stream(late)
}
