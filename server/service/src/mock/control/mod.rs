//! The mock server's controls over HTTP, under `/__mock/`, for suites in any language: clock, faults, requests, keys,
//! webhooks. They need no key. `parcelo-server serve` does not have them.

#[cfg(test)]
mod document;
mod planned_fault;
mod refusals;
mod requests;
mod responses;
mod scenario;
#[cfg(test)]
mod schemas;
mod servers;
mod snapshots;
mod webhooks;

use std::sync::Arc;

use axum::{
    Extension, Router,
    extract::{Path, RawQuery, Request, State, rejection::PathRejection},
    response::Response,
    routing::{delete, get, post},
};
use parcelo_domain::Refusal;
use parcelo_system::{clock::Clock, ids::Ids};
use parcelo_types::{ApiKey, CountryCode, ErrorCode, TrackingNumber};
use url::form_urlencoded;

pub use self::scenario::{Scenario, ScenarioError};
use self::{
    planned_fault::PlannedFault,
    refusals::{invalid_body, invalid_field},
    requests::{
        ClockMode, ClockMove, KeyToRotate, WantedKey, WantedStatus, check_status, parse_key,
        read_body, select_requests,
    },
    responses::{
        ClockShown, IssuedKey, KeysShown, MailsShown, Offences, RequestLog, ResetDone, SampleOrder,
        StatusPut, UnusedFaults,
    },
    servers::Servers,
};
pub(super) use self::{servers::StartServer, webhooks::WebhookReceiver};
#[cfg(test)]
pub use document::document;

use super::{AdvanceError, MockServer, SetStatusError};
use crate::http::{Document, HttpRefusal, drain_bodies, json_ok, path_parameter, with_request_id};

/// The path prefix of the controls.
pub(super) const PREFIX: &str = "/__mock";

/// The seed of the controls' request ids, in ASCII `mock`. A separate generator makes them, so that controls do not
/// change the service's ids.
const REQUEST_ID_SEED: u64 = 0x6d6f_636b;

/// A server, and the receiver of its webhooks once `POST webhooks` has chosen one.
struct ControlState {
    server: Arc<MockServer>,
    ids: Ids,
    webhook_receiver: tokio::sync::Mutex<Option<WebhookReceiver>>,
    servers: Servers,
}

type StateExtractor = State<Arc<ControlState>>;
type ControlResult = Result<Response, HttpRefusal>;

/// Adds the routes under [`PREFIX`] to the service's; the OpenAPI document has both. `receiver` is that of the
/// server's scenario. `start` starts further servers.
pub(super) fn add_to(
    service: Router,
    (server, receiver): (Arc<MockServer>, Option<WebhookReceiver>),
    start: StartServer,
) -> Router {
    service.layer(Extension(Document::WithControls)).merge(routes(server, receiver, start))
}

fn routes(
    server: Arc<MockServer>,
    receiver: Option<WebhookReceiver>,
    start: StartServer,
) -> Router {
    let ids = Ids::seeded(REQUEST_ID_SEED);
    let webhook_receiver = tokio::sync::Mutex::new(receiver);
    let servers = Servers::new(start);
    let state = Arc::new(ControlState { server, ids, webhook_receiver, servers });
    let routes = Router::new()
        .route("/clock", get(read_clock).post(move_clock))
        .route("/faults", get(list_unused_faults).post(plan_fault).delete(delete_plans))
        .route("/requests", get(list_requests))
        .route("/keys", get(list_keys).post(create_key))
        .route("/keys/rotate", post(rotate_key))
        .route("/orders/{number}", get(sample_order))
        .route("/reset", post(reset))
        .route("/servers", post(servers::start))
        .route("/servers/{port}", delete(servers::stop))
        .route("/snapshot", get(snapshots::save).put(snapshots::restore))
        .route("/mails", get(list_mails))
        .route("/verify", get(verify))
        .route("/parcels/{number}/status", post(put_status))
        .route("/webhooks", get(webhooks::read_inbox).post(webhooks::start_inbox))
        .route("/webhooks/faults", post(webhooks::plan_fault).delete(webhooks::delete_fault))
        .route("/webhooks/rotate", post(webhooks::rotate_secret))
        .with_state(Arc::clone(&state));
    let routes = routes
        .fallback(|| async { HttpRefusal::from(ErrorCode::NotFound) })
        .method_not_allowed_fallback(|| async { HttpRefusal::from(ErrorCode::MethodNotAllowed) });
    let with_id = axum::middleware::map_response_with_state(state, add_request_id);
    Router::new().nest(PREFIX, routes).layer(with_id).layer(axum::middleware::from_fn(drain_bodies))
}

/// Adds the request id to a response.
async fn add_request_id(State(state): StateExtractor, response: Response) -> Response {
    with_request_id(response, &state.ids.request_id(state.server.clock.now()))
}

async fn read_clock(State(state): StateExtractor) -> Response {
    json_ok(&ClockShown::new(&state.server, &[]))
}

/// Handles POST clock with `{"advance": seconds or "PT5M"}`, `{"set": time}`, `{"until": …}`, `{"mode": …}`, or
/// several of them, the mode last.
async fn move_clock(State(state): StateExtractor, request: Request) -> ControlResult {
    let requested: ClockMove = read_body(request, "advance, set and mode").await?;
    requested.check()?;
    let (server, mut fired) = (&state.server, Vec::new());
    let clock = server.clock();
    let to = requested.target_time()?;
    let by = requested.advance_duration(to.unwrap_or(clock.now()))?;
    if let Some(to) = to {
        fired.extend(clock.set(&to.to_rfc3339()).await);
    }
    if let Some(by) = by {
        fired.extend(clock.advance(by).await);
    }
    if let Some(until) = requested.until {
        let moved = clock.advance_until(&until.tracking_number, until.status).await;
        fired.extend(moved.map_err(|error| match error {
            AdvanceError::ParcelNotFound(_) => ErrorCode::ParcelNotFound.into(),
            AdvanceError::NoFurtherStep { ref number, ref status, .. } => invalid_body(
                &error.to_string(),
                &format!(
                    "{number} está en {status} y ya no avanza por sí solo: cambie su estado con POST parcels/{number}/status"
                ),
            ),
        })?);
    }
    fired.extend(match requested.mode {
        Some(ClockMode::Frozen) => clock.freeze().await,
        Some(ClockMode::Ticking) => clock.resume().await,
        Some(ClockMode::System) => clock.follow_system().await,
        None => Vec::new(),
    });
    Ok(json_ok(&ClockShown::new(server, &fired)))
}

/// Handles POST faults with a fault such as `{"operation":"CreateOrder","nth":1,"fault":"reset"}`.
async fn plan_fault(State(state): StateExtractor, request: Request) -> ControlResult {
    let requested: PlannedFault = read_body(request, "a fault").await?;
    let plan = requested.plan()?;
    state.server.recorder.plans().add(plan);
    Ok(list_unused_faults(State(state)).await)
}

async fn list_unused_faults(State(state): StateExtractor) -> Response {
    json_ok(&UnusedFaults { unused: state.server.faults().unused() })
}

/// Handles DELETE faults: deletes all plans, and returns those that have hit no request.
async fn delete_plans(State(state): StateExtractor) -> Response {
    let unused = state.server.faults().unused();
    state.server.faults().clear();
    json_ok(&UnusedFaults { unused })
}

/// Handles GET requests with the log, or with the part of it that the query selects.
async fn list_requests(State(state): StateExtractor, RawQuery(query): RawQuery) -> ControlResult {
    let requests = select_requests(&state.server, query.as_deref())?;
    Ok(json_ok(&RequestLog::new(requests.all())))
}

/// Handles GET orders/{number} with a valid sample order that has this tracking number, to `?country=` or Ecuador.
async fn sample_order(
    State(_): StateExtractor,
    number: Result<Path<String>, PathRejection>,
    RawQuery(query): RawQuery,
) -> ControlResult {
    let number = TrackingNumber::parse(&path_parameter(number));
    let number = number.map_err(|_| ErrorCode::ParcelNotFound)?;
    let country = parse_country(query.as_deref())?;
    Ok(json_ok(&SampleOrder { order: MockServer::sample_order(country, number) }))
}

/// Returns the country of a query; Ecuador if it has none.
fn parse_country(query: Option<&str>) -> Result<CountryCode, Refusal> {
    let mut country = CountryCode::EC;
    for (name, value) in form_urlencoded::parse(query.unwrap_or_default().as_bytes()) {
        let code = CountryCode::parse(&value).ok().filter(|_| name == "country");
        country = code.ok_or_else(|| {
            invalid_field(
                &name,
                "the only parameter is country, with a code such as CO",
                "el único parámetro es country, con un código como CO",
            )
        })?;
    }
    Ok(country)
}

/// Handles GET verify with the offences that [`MockServer::verify`] would list.
async fn verify(State(state): StateExtractor) -> Response {
    json_ok(&Offences { offences: state.server.offences() })
}

/// Handles GET keys with the keys of the scenario that the server was started with.
async fn list_keys(State(state): StateExtractor) -> Response {
    let keys = state.server.scenario_keys().iter().map(|key| key.secret().to_owned());
    json_ok(&KeysShown { keys: keys.collect() })
}

/// Handles POST keys: creates an API key, by default of the account `default` and for every country.
async fn create_key(State(state): StateExtractor, request: Request) -> ControlResult {
    let requested: WantedKey = read_body(request, "a key").await?;
    let key = issue_key(&state.server, &requested)?;
    Ok(json_ok(&IssuedKey { key: key.secret().to_owned() }))
}

fn issue_key(server: &MockServer, requested: &WantedKey) -> Result<ApiKey, Refusal> {
    let checked = requested.check(&server.service.settings().destinations)?;
    let key = server.key().account(&checked.account).name(&checked.name);
    let mut key = key.allowed_countries(checked.allowed_countries.into());
    if let Some(limit) = requested.rate_limit {
        key = key.rate_limit(limit);
    }
    Ok(key.issue())
}

/// Handles POST keys/rotate: gives a key a new secret. The old one keeps working for `overlap`, by default 24 hours.
async fn rotate_key(State(state): StateExtractor, request: Request) -> ControlResult {
    let requested: KeyToRotate = read_body(request, "key and overlap").await?;
    let (key, overlap) = (parse_key(&requested.key)?, requested.overlap()?);
    let rotated = state.server.try_rotate_key(&key, overlap).ok_or(ErrorCode::KeyNotFound)?;
    Ok(json_ok(&IssuedKey { key: rotated.secret().to_owned() }))
}

/// Handles GET mails with the e-mails that the service would have sent.
async fn list_mails(State(state): StateExtractor) -> Response {
    json_ok(&MailsShown { mails: state.server.mails() })
}

/// Handles POST reset: deletes the data of all accounts, and all faults. Keys and clock stay.
async fn reset(State(state): StateExtractor) -> Response {
    json_ok(&ResetDone { deleted: state.server.reset().await })
}

/// Handles POST parcels/{number}/status: changes the status now, by the shortest path of the state machine.
async fn put_status(
    State(state): StateExtractor,
    number: Result<Path<String>, PathRejection>,
    request: Request,
) -> ControlResult {
    let requested: WantedStatus = read_body(request, "status").await?;
    check_status(&requested.status)?;
    let number =
        TrackingNumber::parse(&path_parameter(number)).map_err(|_| ErrorCode::ParcelNotFound)?;
    let put = state.server.put_status(&number, requested.status).await;
    let statuses = put.map_err(|error| refuse_status(&error))?;
    Ok(json_ok(&StatusPut { tracking_number: number, statuses }))
}

fn refuse_status(error: &SetStatusError) -> Refusal {
    match error {
        SetStatusError::ParcelNotFound(_) => ErrorCode::ParcelNotFound.into(),
        SetStatusError::Unreachable { number, from, to } => invalid_body(
            &error.to_string(),
            &format!(
                "{number} está en {from}, desde donde no se llega a {to} (docs/api.md, Statuses)"
            ),
        ),
        SetStatusError::Refused { number, to, .. } => {
            invalid_body(&error.to_string(), &format!("{number} no pudo pasar a {to}"))
        }
    }
}
