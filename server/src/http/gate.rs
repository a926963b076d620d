//! The gate: what happens to every request before its handler and to every response after it:
//! id, caller, address, limit; then headers, and JSON for panics and requests that take too long.

use std::{any::Any, net::IpAddr, panic::AssertUnwindSafe, pin::pin, time::Duration};

use axum::{
    extract::{Request, State},
    http::{Extensions, HeaderValue, header},
    middleware::Next,
    response::{IntoResponse, Response},
};
use futures_util::FutureExt;
use parcelo::{ErrorCode, Operation, model::header as names};
use tokio::time::{sleep, timeout};

use super::{
    Api, Refused, answer,
    body::header_text,
    health, host, legacy, public,
    request_body::{self, SharedBody},
};
#[cfg(feature = "server")]
use super::{admin, dashboard, metrics};
use crate::{
    clock::{Millis, stopwatch},
    domain::{
        Refusal, access,
        limit::{Admission, Quota},
    },
    service::{Caller, Carrier, Limited, Request as Answered, Visitor},
};

/// How long a request's body may take to arrive.
const BODY_TIME: Duration = Duration::from_secs(30);
/// How long a handler may take once the body is there.
const HANDLER_TIME: Duration = Duration::from_secs(30);

/// The other end of the connection; the listener tells it to the gate.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Peer(pub IpAddr);

/// The id of the request at hand, for answers that hold it.
#[derive(Debug, Clone)]
pub(super) struct RequestId(pub(super) String);

/// On every request of the operators' listener.
#[derive(Debug, Clone, Copy)]
pub(super) struct Operators;

/// Somebody who was let in.
enum Guest {
    Caller(Caller),
    Carrier(Carrier),
    Stranger,
}

impl Guest {
    /// Tells handlers who calls.
    fn join(self, extensions: &mut Extensions) {
        match self {
            Self::Caller(caller) => drop(extensions.insert(caller)),
            Self::Carrier(carrier) => drop(extensions.insert(carrier)),
            Self::Stranger => {}
        }
    }
}

/// How answers look, by what was asked for.
enum Dress {
    Plain,
    Public(public::Visit),
    #[cfg(feature = "server")]
    Dashboard(dashboard::Visit),
    Legacy,
}

impl Dress {
    fn of(api: &Api, request: &Request) -> Self {
        let path = request.uri().path();
        #[cfg(feature = "server")]
        if is_under(dashboard::FOLDER, path)
            && let Some(visit) = dashboard::Visit::of(request, client_of(api, request))
        {
            return Self::Dashboard(visit);
        }
        if is_under(public::FOLDER, path) {
            Self::Public(public::Visit::of(api.environment, request))
        } else if legacy::has(path) {
            Self::Legacy
        } else {
            Self::Plain
        }
    }

    /// Tells handlers for whom they write.
    fn join(&self, extensions: &mut Extensions) {
        match self {
            Self::Public(visit) => drop(extensions.insert(visit.clone())),
            #[cfg(feature = "server")]
            Self::Dashboard(visit) => drop(extensions.insert(visit.clone())),
            Self::Plain | Self::Legacy => {}
        }
    }
}

/// Lets a request in, or answers it here.
pub(super) async fn gate(State(api): State<Api>, request: Request, next: Next) -> Response {
    let expects_continue = request_body::expects_continue(&request);
    let (body, request) = SharedBody::of(request);
    let response = answered(&api, request, (body.as_ref(), next)).await;
    match body {
        Some(body) => body.settle(expects_continue, response).await,
        None => response,
    }
}

async fn answered(
    api: &Api,
    mut request: Request,
    (body, next): (Option<&SharedBody>, Next),
) -> Response {
    let (now, begun) = (api.service.now(), stopwatch());
    let request_id = api.service.request_id(now);
    let (method, path) = (request.method().clone(), route_of(&request));
    let dress = Dress::of(api, &request);
    let listener = listener_of(api, &request);
    let (quota, entry) = admit(api, &request, now).await;
    let response = match entry {
        Ok(guest) => {
            request.extensions_mut().insert(RequestId(request_id.clone()));
            guest.join(request.extensions_mut());
            dress.join(request.extensions_mut());
            guarded(next.run(request), body).await
        }
        Err(refusal) => Refused(refusal).into_response(),
    };
    let code = response.extensions().get::<Refused>().map(|Refused(refusal)| refusal.code);
    let response = match dress {
        Dress::Public(visit) => visit.dress(response),
        #[cfg(feature = "server")]
        Dress::Dashboard(visit) => visit.dress(response),
        Dress::Legacy => legacy::dress(api, response),
        Dress::Plain => response,
    };
    let mut response = answer::with_body(response, &request_id);
    answer::sign(response.headers_mut(), &request_id, quota);
    let date =
        HeaderValue::from_str(&answer::http_date(now)).unwrap_or(HeaderValue::from_static(""));
    response.headers_mut().insert(header::DATE, date);
    let status = response.status().as_u16();
    let took = begun.elapsed();
    let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
    let code = code.map_or("", ErrorCode::code);
    tracing::info!(%request_id, listener, %method, path, status, code, micros, "answered");
    let operation = operation_at(&method, &path);
    api.service.metrics().answered(Answered { listener, operation, code, status }, took);
    response
}

/// Which listener was called: an environment's, or the operators'.
fn listener_of(api: &Api, request: &Request) -> &'static str {
    let is_operators = request.extensions().get::<Operators>().is_some();
    if is_operators { "operators" } else { api.environment.code() }
}

/// What was asked for, in a word.
fn operation_at(method: &axum::http::Method, path: &str) -> &'static str {
    let is_it = |operation: &&Operation| {
        operation.path() == path && operation.method().as_str() == method.as_str()
    };
    match Operation::ALL.iter().find(is_it) {
        Some(operation) => operation.name(),
        #[cfg(feature = "server")]
        None if is_under(admin::FOLDER, path) => "Admin",
        #[cfg(feature = "server")]
        None if is_under(dashboard::FOLDER, path) => "Dashboard",
        None => "Other",
    }
}

/// The path's pattern: what stands in a path is not for logs.
fn route_of(request: &Request) -> String {
    let matched = request.extensions().get::<axum::extract::MatchedPath>();
    matched.map_or_else(|| "(no route)".to_owned(), |path| path.as_str().to_owned())
}

/// Who may come in, and what the rate headers say. What the request says is read before anything is waited
/// for: its body cannot be shared between threads.
fn admit<'a>(
    api: &'a Api,
    request: &Request,
    now: Millis,
) -> impl Future<Output = (Quota, Result<Guest, Refusal>)> + use<'a> {
    let (client, uri) = (client_of(api, request), request.uri().clone());
    let host = host::check(request);
    let is_operators = request.extensions().get::<Operators>().is_some();
    let keys = [names::API_KEY, names::CARRIER_KEY];
    let [api_key, carrier_key] = keys.map(|name| header_text(request.headers(), name));
    async move {
        let path = uri.path();
        if let Err(refusal) = host {
            return turn_away(api, refusal, client, now);
        }
        if is_operators {
            return admit_operator(api, path, client, now);
        }
        if is_under("/carrier", path) {
            return admit_carrier(api, carrier_key.as_deref(), client, now).await;
        }
        if !is_under("/api", path) {
            return admit_stranger(api, path, client, now);
        }
        let visitor = Visitor { environment: api.environment, key: api_key.as_deref() };
        match api.service.authenticate(visitor).await {
            Ok(caller) if legacy::has(path) => {
                let (quota, entry) = admit_caller(api, caller.clone(), client, now);
                (quota, entry.and_then(|guest| legacy::check(api, &caller, now).map(|()| guest)))
            }
            Ok(caller) => admit_caller(api, caller, client, now),
            Err(refusal) => turn_away(api, refusal, client, now),
        }
    }
}

fn is_under(folder: &str, path: &str) -> bool {
    path.strip_prefix(folder).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Whoever has no valid key is counted by address.
fn turn_away(
    api: &Api,
    refusal: Refusal,
    client: IpAddr,
    now: Millis,
) -> (Quota, Result<Guest, Refusal>) {
    let (quota, entry) = limited(api, Limited::Address(api.environment, client), now);
    (quota, entry.and(Err(refusal)))
}

async fn admit_carrier(
    api: &Api,
    key: Option<&str>,
    client: IpAddr,
    now: Millis,
) -> (Quota, Result<Guest, Refusal>) {
    match api.service.authenticate_carrier(api.environment, key).await {
        Ok(carrier) => {
            let (quota, entry) = counted(api.service.admit_carrier(&carrier, now), now);
            (quota, entry.map(|()| Guest::Carrier(carrier)))
        }
        Err(refusal) => turn_away(api, refusal, client, now),
    }
}

fn admit_caller(
    api: &Api,
    caller: Caller,
    client: IpAddr,
    now: Millis,
) -> (Quota, Result<Guest, Refusal>) {
    if let Err(refusal) = api.service.check_address(&caller, client) {
        return (api.service.quota_of(&caller, now), Err(refusal));
    }
    let (quota, entry) = counted(api.service.admit_caller(&caller, now), now);
    (quota, entry.map(|()| Guest::Caller(caller)))
}

/// Whoever calls the operators' listener is counted apart from the public ones, so that nobody there
/// can lock an operator out.
fn admit_operator(
    api: &Api,
    path: &str,
    client: IpAddr,
    now: Millis,
) -> (Quota, Result<Guest, Refusal>) {
    #[cfg(feature = "server")]
    if path == metrics::PATH {
        return unlimited(api, now);
    }
    admit_by_address(api, path, Limited::Operator(client), now)
}

fn admit_stranger(
    api: &Api,
    path: &str,
    client: IpAddr,
    now: Millis,
) -> (Quota, Result<Guest, Refusal>) {
    let who = if is_under(public::FOLDER, path) { Limited::Public } else { Limited::Address };
    admit_by_address(api, path, who(api.environment, client), now)
}

/// Probes are never limited; everybody else is counted.
fn admit_by_address(
    api: &Api,
    path: &str,
    who: Limited,
    now: Millis,
) -> (Quota, Result<Guest, Refusal>) {
    if path == health::LIVE || path == health::READY {
        return unlimited(api, now);
    }
    let (quota, entry) = limited(api, who, now);
    (quota, entry.map(|()| Guest::Stranger))
}

fn unlimited(api: &Api, now: Millis) -> (Quota, Result<Guest, Refusal>) {
    (Quota::whole(api.service.settings().limits.unauthenticated, now), Ok(Guest::Stranger))
}

fn limited(api: &Api, who: Limited, now: Millis) -> (Quota, Result<(), Refusal>) {
    counted(api.service.admit(who, now), now)
}

fn counted(admission: Admission, now: Millis) -> (Quota, Result<(), Refusal>) {
    match admission {
        Admission::Granted(quota) => (quota, Ok(())),
        Admission::Refused(quota) => (quota, Err(wait_for(quota, now))),
    }
}

fn wait_for(quota: Quota, now: Millis) -> Refusal {
    let seconds = u32::try_from(quota.reset - now.second()).unwrap_or(1);
    Refusal::rate_limited(seconds.max(1))
}

fn client_of(api: &Api, request: &Request) -> IpAddr {
    let peer =
        request.extensions().get::<Peer>().map_or(IpAddr::from([127, 0, 0, 1]), |peer| peer.0);
    let forwarded = request.headers().get_all("x-forwarded-for");
    // What is no text is kept: to leave a line out would move a forged one into its place.
    let lines: Vec<_> =
        forwarded.iter().map(|line| String::from_utf8_lossy(line.as_bytes())).collect();
    let lines = lines.iter().map(AsRef::as_ref);
    access::client_address(peer, lines, &api.service.settings().trusted_proxies)
}

/// The handler's response; a panic or a handler that takes too long is answered in its place.
async fn guarded(handler: impl Future<Output = Response>, body: Option<&SharedBody>) -> Response {
    let mut handler = pin!(AssertUnwindSafe(handler).catch_unwind());
    if let Some(body) = body {
        tokio::select! {
            biased;
            done = &mut handler => return unless_panicked(done),
            () = body.ended() => {}
            () = sleep(BODY_TIME) => return late(body),
        }
    }
    match timeout(HANDLER_TIME, handler).await {
        Ok(done) => unless_panicked(done),
        Err(_) => Refused(Refusal::unavailable()).into_response(),
    }
}

/// Whose fault it is that there is no answer: the client's, when its body is waited for.
fn late(body: &SharedBody) -> Response {
    let is_the_clients = body.is_awaited();
    body.give_up();
    if is_the_clients {
        Refused::from(ErrorCode::RequestTimeout).into_response()
    } else {
        Refused(Refusal::unavailable()).into_response()
    }
}

fn unless_panicked(done: Result<Response, Box<dyn Any + Send>>) -> Response {
    done.unwrap_or_else(|_| {
        tracing::error!("a handler panicked");
        Refused::from(ErrorCode::InternalError).into_response()
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use axum::{
        Router,
        body::{Body, Bytes},
        extract,
        http::Request,
        response::Response,
        routing::{get, post},
    };
    use futures_util::{StreamExt, stream};
    use http_body_util::BodyExt;
    use tower::ServiceExt;

    use crate::{
        http::{Refused, body::json_object, gated},
        mock::MockServer,
    };

    /// What a handler did not see coming.
    async fn faulty() -> &'static str {
        panic!("a handler's own fault")
    }

    #[tokio::test]
    async fn a_panic_in_a_handler_is_a_json_500_and_the_server_lives_on() {
        let server = MockServer::start().await;
        let routes = Router::new().route("/faulty", get(faulty)).route("/fine", get(|| async {}));
        let routes = gated(routes, server.api());
        let call = |path| routes.clone().oneshot(Request::get(path).body(Body::empty()).unwrap());
        for _ in 0..3 {
            let answer = call("/faulty").await.unwrap();
            assert_eq!(answer.status().as_u16(), 500);
            assert!(answer.headers().contains_key("x-ratelimit-limit"));
            let id = answer.headers()["x-request-id"].to_str().unwrap().to_owned();
            let body = answer.into_body().collect().await.unwrap().to_bytes();
            let body: serde_json::Value = serde_json::from_slice(&body).unwrap();
            assert_eq!(body["error"]["code"], "INTERNAL_ERROR");
            assert_eq!(body["error"]["requestId"], id);
            assert_eq!(call("/fine").await.unwrap().status().as_u16(), 200);
        }
    }

    /// Reads a body, and then takes its time.
    async fn slow(request: extract::Request) -> Result<&'static str, Refused> {
        json_object(request).await?;
        tokio::time::sleep(Duration::from_secs(20)).await;
        Ok("done")
    }

    /// Reads a body, and never comes back.
    async fn stuck(request: extract::Request) -> Result<&'static str, Refused> {
        json_object(request).await?;
        std::future::pending().await
    }

    /// Comes back never, and reads nothing.
    async fn deaf() -> &'static str {
        std::future::pending().await
    }

    /// `{}` in two pieces, the second so late; or never.
    fn lagging(seconds: Option<u64>) -> Body {
        let first = stream::once(async { Ok::<_, std::io::Error>(Bytes::from("{")) });
        let second = stream::once(async move {
            match seconds {
                Some(seconds) => tokio::time::sleep(Duration::from_secs(seconds)).await,
                None => std::future::pending().await,
            }
            Ok(Bytes::from("}"))
        });
        Body::from_stream(first.chain(second))
    }

    async fn answered(path: &str, body: Body) -> Response {
        let server = MockServer::start().await;
        let routes = Router::new()
            .route("/slow", post(slow))
            .route("/stuck", post(stuck))
            .route("/deaf", post(deaf));
        let request = Request::post(path).header("content-type", "application/json");
        let request = request.body(body).unwrap();
        gated(routes, server.api()).oneshot(request).await.unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_body_is_the_clients_fault_and_a_slow_answer_is_not() {
        let table = [
            ("/slow", lagging(Some(0)), 200, false),
            ("/slow", lagging(Some(29)), 200, false),
            ("/slow", lagging(None), 408, true),
            ("/slow", lagging(Some(31)), 408, true),
            ("/stuck", lagging(Some(29)), 503, false),
            ("/stuck", Body::from("{}"), 503, false),
            ("/deaf", lagging(None), 503, true),
            ("/nowhere", lagging(Some(1)), 404, false),
            ("/nowhere", lagging(Some(3)), 404, true),
        ];
        for (path, body, status, closes) in table {
            let answer = answered(path, body).await;
            assert_eq!(answer.status().as_u16(), status, "{path}");
            let is_closed = answer.headers().get("connection").is_some_and(|it| it == "close");
            assert_eq!(is_closed, closes, "{path} {status}");
        }
    }
}
