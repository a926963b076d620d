//! The mock server's controls over HTTP, under `/__mock/`, for suites in any language: clock,
//! faults, requests, keys, webhooks. They need no key, and `serve` does not have them.

mod asked;
#[cfg(test)]
#[cfg(feature = "server")]
mod document;
mod fit;
#[cfg(test)]
mod schemas;
mod told;

use std::sync::Arc;

use axum::{
    Extension, Router,
    extract::{Path, RawQuery, Request, State, rejection::PathRejection},
    response::Response,
    routing::{get, post},
};
use parcelo::{ErrorCode, TrackingNumber};

use self::{
    asked::{
        ClockMode, ClockMove, KeyToRotate, PlannedFault, WantedInbox, WantedKey, WantedStatus,
        asked_requests, read, wrong,
    },
    told::{
        ClockShown, InboxDelivery, InboxShown, InboxStarted, IssuedKey, Offences, RequestLog,
        ResetDone, SampleOrder, StatusPut, UnusedFaults,
    },
};
#[cfg(test)]
#[cfg(feature = "server")]
pub(crate) use document::document;

use super::{Inbox, MockServer, NotPut, NotReached, journey};
use crate::{
    clock::Clock,
    http::{Document, Refused, answer_ok, drain_bodies, parameter, with_request_id},
    ids::Ids,
};

/// Where the controls are.
pub(super) const FOLDER: &str = "/__mock";

/// The seed of the controls' own ids: they take nothing from the server's.
const SEED: u64 = 0x6d6f_636b;

/// A server under control, with the inbox that its webhooks go to once one is asked for.
struct Controlled {
    server: Arc<MockServer>,
    ids: Ids,
    inbox: tokio::sync::Mutex<Option<Inbox>>,
}

type Controls = State<Arc<Controlled>>;
type Told = Result<Response, Refused>;

/// The service's routes, and those under [`FOLDER`]; the document tells of both.
pub(super) fn beside(service: Router, server: Arc<MockServer>) -> Router {
    service.layer(Extension(Document::WithControls)).merge(routes(server))
}

fn routes(server: Arc<MockServer>) -> Router {
    let (ids, inbox) = (Ids::seeded(SEED), tokio::sync::Mutex::default());
    let controlled = Arc::new(Controlled { server, ids, inbox });
    let routes = Router::new()
        .route("/clock", get(now).post(move_clock))
        .route("/faults", get(unused).post(plan).delete(forget))
        .route("/requests", get(requests))
        .route("/keys", post(make_key))
        .route("/keys/rotate", post(rotate_key))
        .route("/orders/{number}", get(sample_order))
        .route("/reset", post(reset))
        .route("/verify", get(verify))
        .route("/parcels/{number}/status", post(put_status))
        .route("/webhooks", get(received).post(receive))
        .with_state(Arc::clone(&controlled));
    let routes = routes
        .fallback(|| async { Refused::from(ErrorCode::NotFound) })
        .method_not_allowed_fallback(|| async { Refused::from(ErrorCode::MethodNotAllowed) });
    let named = axum::middleware::map_response_with_state(controlled, named);
    Router::new().nest(FOLDER, routes).layer(named).layer(axum::middleware::from_fn(drain_bodies))
}

/// An answer with the id of its request.
async fn named(State(controlled): Controls, response: Response) -> Response {
    with_request_id(response, &controlled.ids.request_id(controlled.server.clock.now()))
}

async fn now(State(controlled): Controls) -> Response {
    answer_ok(&ClockShown::of(&controlled.server, &[]))
}

/// POST clock: `{"advance": seconds or "PT5M"}`, `{"set": time}`, `{"until": …}`, `{"mode": …}`, or several of
/// them, the mode last.
async fn move_clock(State(controlled): Controls, request: Request) -> Told {
    let asked: ClockMove = read(request, "advance, set and mode").await?;
    asked.check()?;
    let (server, mut fired) = (&controlled.server, Vec::new());
    let clock = server.clock();
    let to = asked.to()?;
    let by = asked.by(to.unwrap_or(clock.now()))?;
    if let Some(to) = to {
        fired.extend(clock.set(&to.to_rfc3339()).await);
    }
    if let Some(by) = by {
        fired.extend(clock.advance(by).await);
    }
    if let Some(until) = asked.until {
        let moved = clock.advance_until(&until.tracking_number, until.status).await;
        fired.extend(moved.map_err(|not| match not {
            NotReached::NoParcel(_) => ErrorCode::ParcelNotFound.into(),
            NotReached::Ended { .. } => wrong(&not.to_string()),
        })?);
    }
    fired.extend(match asked.mode {
        Some(ClockMode::Frozen) => clock.freeze().await,
        Some(ClockMode::Ticking) => clock.tick().await,
        Some(ClockMode::System) => clock.follow_system().await,
        None => Vec::new(),
    });
    Ok(answer_ok(&ClockShown::of(server, &fired)))
}

/// POST faults: `{"operation":"CreateOrder","nth":1,"afterCommit":true,"fault":"reset"}`.
async fn plan(State(controlled): Controls, request: Request) -> Told {
    let asked: PlannedFault = read(request, "a fault").await?;
    fit::plan(&controlled.server, &asked)?;
    Ok(shown_faults(&controlled))
}

async fn unused(State(controlled): Controls) -> Response {
    shown_faults(&controlled)
}

/// DELETE faults: forgets all plans, and tells which were never met.
async fn forget(State(controlled): Controls) -> Response {
    let told = shown_faults(&controlled);
    controlled.server.faults().clear();
    told
}

fn shown_faults(controlled: &Controlled) -> Response {
    answer_ok(&UnusedFaults { unused: controlled.server.faults().unused() })
}

/// GET requests, of one operation if `?operation=` names it, about one order if `?order=` does.
async fn requests(State(controlled): Controls, RawQuery(asked): RawQuery) -> Told {
    let requests = asked_requests(&controlled.server, asked.as_deref())?;
    Ok(answer_ok(&RequestLog::of(&requests.all())))
}

/// GET orders/{number}: a sample order that may be sent as it is.
async fn sample_order(State(_): Controls, number: Result<Path<String>, PathRejection>) -> Told {
    let number = TrackingNumber::parse(&parameter(number));
    let number = number.map_err(|_| ErrorCode::ParcelNotFound)?;
    Ok(answer_ok(&SampleOrder { order: MockServer::order_of(number) }))
}

/// GET verify: what [`MockServer::verify`] finds.
async fn verify(State(controlled): Controls) -> Response {
    answer_ok(&Offences { offences: controlled.server.offences() })
}

/// POST keys: a key of an account of its own choosing, for every country unless said otherwise.
async fn make_key(State(controlled): Controls, request: Request) -> Told {
    let asked: WantedKey = read(request, "a key").await?;
    let server = &controlled.server;
    let wanted = asked.check(&server.service.settings().destinations)?;
    let key = server.key().account(&wanted.account).name(&wanted.name);
    let mut key = key.allowed(wanted.allowed_countries.into());
    if let Some(limit) = asked.rate_limit {
        key = key.rate_limit(limit);
    }
    Ok(answer_ok(&IssuedKey { key: key.issue().secret().to_owned() }))
}

/// POST keys/rotate: a new secret for a key; the old one keeps working for 24 hours unless `overlap`
/// says otherwise.
async fn rotate_key(State(controlled): Controls, request: Request) -> Told {
    let asked: KeyToRotate = read(request, "key and overlap").await?;
    let (key, overlap) = (asked.key()?, asked.overlap()?);
    let rotated = controlled.server.rotated(&key, overlap).ok_or(ErrorCode::KeyNotFound)?;
    Ok(answer_ok(&IssuedKey { key: rotated.secret().to_owned() }))
}

/// POST reset: deletes all data, whatever the account, and forgets the faults; keys and clock stay.
async fn reset(State(controlled): Controls) -> Response {
    controlled.server.faults().clear();
    answer_ok(&ResetDone { deleted: controlled.server.reset().await })
}

/// POST parcels/{number}/status: the shortest legal way to a status, now.
async fn put_status(
    State(controlled): Controls,
    number: Result<Path<String>, PathRejection>,
    request: Request,
) -> Told {
    let asked: WantedStatus = read(request, "status").await?;
    let number =
        TrackingNumber::parse(&parameter(number)).map_err(|_| ErrorCode::ParcelNotFound)?;
    let put = controlled.server.put_status(&number, asked.status).await;
    let statuses = put.map_err(|not| match not {
        NotPut::NoParcel(_) => ErrorCode::ParcelNotFound.into(),
        NotPut::Unreachable { .. } | NotPut::Refused { .. } => wrong(&not.to_string()),
    })?;
    Ok(answer_ok(&StatusPut { tracking_number: number, statuses }))
}

/// POST webhooks: webhooks go to an inbox of this server from now on, which answers as `reply`
/// says, and 200 after that. The inbox before it ends.
async fn receive(State(controlled): Controls, request: Request) -> Told {
    let asked: WantedInbox = read(request, "reply, a list of statuses").await?;
    asked.check()?;
    let mut place = controlled.inbox.lock().await;
    let inbox = controlled.server.webhook_inbox().reply(asked.reply).start().await;
    let started = InboxStarted { url: inbox.url().to_owned() };
    if let Some(before) = place.replace(inbox) {
        before.end();
    }
    Ok(answer_ok(&started))
}

/// GET webhooks: what the inbox has received.
async fn received(State(controlled): Controls) -> Response {
    let inbox = controlled.inbox.lock().await;
    let deliveries = inbox.as_ref().map(Inbox::deliveries).unwrap_or_default();
    let deliveries = deliveries.iter().map(InboxDelivery::of).collect();
    let hints = journey::hints(&controlled.server.service);
    answer_ok(&InboxShown { listening: inbox.is_some(), deliveries, hints })
}
