//! The mock server's controls over HTTP, under `/__mock/`, for suites in any language: clock,
//! faults, requests, keys, webhooks. They need no key, and `serve` does not have them.

use std::{sync::Arc, time::Duration};

use axum::{
    Router,
    extract::{Path, RawQuery, Request, State},
    response::Response,
    routing::{get, post},
};
use chrono::{DateTime, Utc};
use parcelo::{ErrorCode, FaultCode, FieldFault, Operation, model::time};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Fired, Inbox, MockServer, log::Recorded};
use crate::{
    core::Refusal,
    http::{Refused, answer_ok, json_object, query, written},
};

/// Where the controls are.
pub(super) const FOLDER: &str = "/__mock";

/// A server under control, with the inbox that its webhooks go to once one is asked for.
struct Controlled {
    server: Arc<MockServer>,
    inbox: tokio::sync::Mutex<Option<Inbox>>,
}

type Controls = State<Arc<Controlled>>;
type Told = Result<Response, Refused>;

/// The routes under [`FOLDER`].
pub(super) fn routes(server: Arc<MockServer>) -> Router {
    let controlled = Arc::new(Controlled { server, inbox: tokio::sync::Mutex::default() });
    let routes = Router::new()
        .route("/clock", get(now).post(move_clock))
        .route("/faults", get(unused).post(plan).delete(forget))
        .route("/requests", get(requests))
        .route("/keys", post(make_key))
        .route("/reset", post(reset))
        .route("/parcels/{number}/status", post(put_status))
        .route("/webhooks", get(received).post(receive))
        .with_state(controlled);
    let routes = routes
        .fallback(|| async { Refused::from(ErrorCode::NotFound) })
        .method_not_allowed_fallback(|| async { Refused::from(ErrorCode::MethodNotAllowed) });
    Router::new().nest(FOLDER, routes).layer(axum::middleware::map_response(written))
}

/// What a control takes; `what` it is says the refusal.
async fn read<T: for<'de> Deserialize<'de>>(request: Request, what: &str) -> Result<T, Refusal> {
    let body = json_object(request).await?;
    serde_json::from_value(body).map_err(|error| wrong(&format!("{what}: {error}")))
}

fn wrong(message: &str) -> Refusal {
    Refusal::invalid(&[FieldFault {
        field: "body".to_owned(),
        code: FaultCode::InvalidFormat,
        message: message.to_owned(),
        message_es: format!("El control no se entiende ({message})."),
        suggestion: None,
    }])
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Move {
    advance: Option<Value>,
    set: Option<String>,
    mode: Option<Mode>,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Mode {
    Frozen,
    Ticking,
    System,
}

async fn now(State(controlled): Controls) -> Response {
    answer_ok(&shown_clock(&controlled.server, &[]))
}

/// POST clock: `{"advance": seconds or "PT5M"}`, `{"set": time}`, `{"mode": …}`, or several of them,
/// the mode last.
async fn move_clock(State(controlled): Controls, request: Request) -> Told {
    let asked: Move = read(request, "advance, set and mode").await?;
    let by = asked.advance.as_ref().map(duration).transpose()?;
    let to = asked.set.map(|text| moment(&text)).transpose()?;
    let (server, mut fired) = (&controlled.server, Vec::new());
    let clock = server.clock();
    if let Some(to) = to {
        fired.extend(clock.set(&to.to_rfc3339()).await);
    }
    if let Some(by) = by {
        fired.extend(clock.advance(by).await);
    }
    fired.extend(match asked.mode {
        Some(Mode::Frozen) => clock.freeze().await,
        Some(Mode::Ticking) => clock.tick().await,
        Some(Mode::System) => clock.follow_system().await,
        None => Vec::new(),
    });
    Ok(answer_ok(&shown_clock(server, &fired)))
}

fn shown_clock(server: &MockServer, fired: &[Fired]) -> Value {
    let fired = fired.iter().map(|one| {
        json!({ "at": time::to_text(one.at.to_utc()), "trackingNumber": one.tracking_number, "status": one.status })
    });
    json!({ "now": time::to_text(server.clock().now()), "fired": fired.collect::<Vec<_>>() })
}

fn moment(text: &str) -> Result<DateTime<Utc>, Refusal> {
    let parsed = DateTime::parse_from_rfc3339(text);
    let parsed = parsed.map_err(|_| wrong("set is a time such as 2026-01-05T08:00:00Z"))?;
    Ok(parsed.to_utc())
}

/// Seconds as a number, or an ISO 8601 duration of days and less: `P1DT2H30M5S`.
fn duration(given: &Value) -> Result<Duration, Refusal> {
    let read = match given {
        Value::Number(seconds) => seconds.as_f64(),
        Value::String(text) => iso_seconds(text),
        _ => None,
    };
    let read = read.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    read.ok_or_else(|| wrong("advance is seconds, or a duration such as \"PT5M\", not below 0"))
}

fn iso_seconds(text: &str) -> Option<f64> {
    let (days, rest) = text.strip_prefix('P')?.split_once('T').unwrap_or((text.get(1..)?, ""));
    let mut total = 0.0;
    for (part, units) in
        [(days, &[('D', 86_400.0)][..]), (rest, &[('H', 3_600.0), ('M', 60.0), ('S', 1.0)])]
    {
        let mut part = part;
        for (unit, seconds) in units {
            if let Some((number, after)) = part.split_once(*unit) {
                total += number.parse::<u32>().map(f64::from).ok()? * seconds;
                part = after;
            }
        }
        part.is_empty().then_some(())?;
    }
    text.ends_with(['D', 'H', 'M', 'S']).then_some(total)
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct PlannedFault {
    operation: Option<String>,
    nth: Option<u64>,
    first: Option<u64>,
    probability: Option<f64>,
    key: Option<String>,
    #[serde(default)]
    after_commit: bool,
    fault: Kind,
    /// Of a latency, a slow body, a 429.
    #[serde(default)]
    seconds: f64,
    /// Of an error.
    code: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
enum Kind {
    Latency,
    Error,
    RateLimited,
    Close,
    Reset,
    TruncatedBody,
    SlowBody,
    MalformedJson,
}

/// POST faults: `{"operation":"CreateOrder","nth":1,"afterCommit":true,"fault":"reset"}`.
async fn plan(State(controlled): Controls, request: Request) -> Told {
    let asked: PlannedFault = read(request, "a fault").await?;
    let faults = controlled.server.faults();
    let mut fault = match &asked.operation {
        Some(name) => faults.on(operation(name)?),
        None => faults.on_any(),
    };
    if let Some(key) = &asked.key {
        fault = fault.key(&parcelo::ApiKey::parse(key).map_err(|_| wrong("key is an API key"))?);
    }
    if let Some(nth) = asked.nth {
        fault = fault.nth(nth);
    }
    if let Some(first) = asked.first {
        fault = fault.first(first);
    }
    if let Some(probability) = asked.probability {
        fault = fault.probability(probability);
    }
    if asked.after_commit {
        fault = fault.after_commit();
    }
    let seconds = Duration::try_from_secs_f64(asked.seconds);
    let seconds = seconds.map_err(|_| wrong("seconds is a number, not below 0"))?;
    match asked.fault {
        Kind::Latency => fault.latency(seconds),
        Kind::Error => {
            let code = asked.code.as_deref().and_then(ErrorCode::known);
            fault.error(
                code.ok_or_else(|| wrong("code is an error's, such as SERVICE_UNAVAILABLE"))?,
            );
        }
        Kind::RateLimited => fault.rate_limited(seconds),
        Kind::Close => fault.close(),
        Kind::Reset => fault.reset_connection(),
        Kind::TruncatedBody => fault.truncated_body(),
        Kind::SlowBody => fault.slow_body(seconds),
        Kind::MalformedJson => fault.malformed_json(),
    }
    Ok(shown_faults(&controlled))
}

fn operation(name: &str) -> Result<Operation, Refusal> {
    let found = Operation::ALL.iter().find(|operation| operation.name() == name);
    found.copied().ok_or_else(|| {
        let names: Vec<_> = Operation::ALL.iter().map(|operation| operation.name()).collect();
        wrong(&format!("operation is one of {}", names.join(", ")))
    })
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
    answer_ok(&json!({ "unused": controlled.server.faults().unused() }))
}

/// GET requests, of one operation if `?operation=` names it.
async fn requests(State(controlled): Controls, RawQuery(asked): RawQuery) -> Told {
    let mut requests = controlled.server.requests();
    if let Some(name) = query(asked.as_deref(), "operation") {
        requests = requests.of(operation(&name)?);
    }
    let shown: Vec<_> = requests.all().iter().map(shown_request).collect();
    Ok(answer_ok(&json!({ "count": shown.len(), "requests": shown })))
}

fn shown_request(request: &Recorded) -> Value {
    json!({
        "at": time::to_text(request.at),
        "operation": request.operation.map(Operation::name),
        "method": request.method,
        "path": request.path,
        "parameter": request.parameter,
        "apiKey": request.api_key,
        "idempotencyKey": request.idempotency_key,
        "request": request.request.json(),
        "status": request.status,
        "answer": request.answer.json(),
        "faults": request.faults,
    })
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct WantedKey {
    account: Option<String>,
    name: Option<String>,
    allowed_countries: Option<Vec<parcelo::CountryCode>>,
    rate_limit: Option<u32>,
}

/// POST keys: a key of an account of its own choosing, for every country unless said otherwise.
async fn make_key(State(controlled): Controls, request: Request) -> Told {
    let asked: WantedKey = read(request, "a key").await?;
    let mut key = controlled.server.key();
    if let Some(account) = &asked.account {
        key = key.account(account);
    }
    if let Some(name) = &asked.name {
        key = key.name(name);
    }
    if let Some(countries) = &asked.allowed_countries {
        key = key.countries(countries.iter().map(parcelo::CountryCode::as_str));
    }
    if let Some(limit) = asked.rate_limit {
        key = key.rate_limit(limit);
    }
    Ok(answer_ok(&json!({ "key": key.issue().secret() })))
}

/// POST reset: deletes all data, whatever the account, and forgets the faults; keys and clock stay.
async fn reset(State(controlled): Controls) -> Response {
    controlled.server.faults().clear();
    answer_ok(&json!({ "deleted": controlled.server.reset().await }))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WantedStatus {
    status: parcelo::ParcelStatus,
}

/// POST parcels/{number}/status: the shortest legal way to a status, now.
async fn put_status(
    State(controlled): Controls,
    Path(number): Path<String>,
    request: Request,
) -> Told {
    let asked: WantedStatus = read(request, "status").await?;
    let number = parcelo::TrackingNumber::parse(&number).map_err(|_| ErrorCode::ParcelNotFound)?;
    let put = controlled.server.put_status(&number, asked.status).await;
    let way = put.map_err(|fault| wrong(&fault.to_string()))?;
    Ok(answer_ok(&json!({ "trackingNumber": number, "statuses": way })))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WantedInbox {
    #[serde(default)]
    reply: Vec<u16>,
}

/// POST webhooks: webhooks go to an inbox of this server from now on, which answers as `reply`
/// says, and 200 after that.
async fn receive(State(controlled): Controls, request: Request) -> Told {
    let asked: WantedInbox = read(request, "reply, a list of statuses").await?;
    let inbox = controlled.server.webhook_inbox().reply(asked.reply).start().await;
    let url = json!({ "url": inbox.url() });
    *controlled.inbox.lock().await = Some(inbox);
    Ok(answer_ok(&url))
}

/// GET webhooks: what the inbox has received.
async fn received(State(controlled): Controls) -> Response {
    let inbox = controlled.inbox.lock().await;
    let deliveries = inbox.as_ref().map(Inbox::deliveries).unwrap_or_default();
    let shown = deliveries.iter().map(|one| {
        json!({
            "id": one.id,
            "at": time::to_text(one.at),
            "verified": one.event.is_ok(),
            "body": serde_json::from_slice::<Value>(&one.body).ok(),
            "status": one.status,
        })
    });
    answer_ok(&json!({ "listening": inbox.is_some(), "deliveries": shown.collect::<Vec<_>>() }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_is_seconds_or_iso_8601() {
        let table = [
            (json!(300), Some(300)),
            (json!("PT5M"), Some(300)),
            (json!("P1DT2H30M5S"), Some(86_400 + 9_005)),
            (json!("P30D"), Some(30 * 86_400)),
            (json!(0), Some(0)),
            (json!(-1), None),
            (json!("5M"), None),
            (json!("PT"), None),
            (json!("P"), None),
            (json!("PT5X"), None),
            (json!("PT5S5M"), None),
            (json!("PT-5M"), None),
            (json!("P1M"), None),
            (json!(null), None),
            (json!(1e300), None),
        ];
        for (given, seconds) in table {
            assert_eq!(duration(&given).ok().map(|one| one.as_secs()), seconds, "{given}");
        }
    }
}
