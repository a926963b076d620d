//! The middleware around every area: request id, caller and limit before the handler; then headers, a log line,
//! metrics, and JSON for refusals, panics and timeouts. It knows no paths: areas differ only by their [`Policy`].

use std::{
    any::Any,
    convert::Infallible,
    net::IpAddr,
    panic::AssertUnwindSafe,
    pin::pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use axum::{
    extract::{MatchedPath, Request},
    http::{HeaderName, Method},
    response::{IntoResponse, Response},
    routing::Route,
};
use futures_util::{FutureExt, future::BoxFuture};
use parcelo_domain::{
    Millis, Refusal, TraceContext,
    limit::{Admission, Quota},
};
use parcelo_system::clock::monotonic_now;
use parcelo_types::{ErrorCode, Operation, internal::header as names};
use tokio::time::{sleep, timeout};
use tower::{Layer, Service};

use super::{
    Api, HttpRefusal,
    area::{AddressLimit, CallerCheck, Policy, Principal, ResponseStyle},
    body::header_text,
    client_address::{LoggedClient, client_address},
    host,
    request_body::{self, SharedBody},
    request_ids::RequestIds,
    response,
};
use crate::service::{AnsweredRequest, Caller, Carrier, LimitSubject};

/// Maximum time for a request's body to arrive. It is separate from the handler's, since a slow client gets 408
/// and a slow handler 503.
const BODY_TIMEOUT: Duration = Duration::from_secs(30);
/// Maximum time for a handler once the body has arrived. It exceeds the 5 s of a write or of the wait for a scan: a
/// request may need several of them, and a sandbox reset one write for each page that it erases.
const HANDLER_TIMEOUT: Duration = Duration::from_secs(30);

/// The quota for the rate-limit headers, and a refusal if the request does not reach its handler.
type AdmissionResult = (Quota, Result<(), Refusal>);

/// The middleware of one area.
pub(super) struct AreaMiddleware {
    pub(super) api: Api,
    /// The listener that was called: an environment's, or the operators'.
    pub(super) listener: &'static str,
    pub(super) policy: Policy,
}

/// The layer that puts an area's middleware around its routes. `axum::middleware::from_fn` would copy the handler, with
/// its state, and box it once more for each request.
#[derive(Clone)]
pub(super) struct AreaLayer(pub(super) Arc<AreaMiddleware>);

impl Layer<Route> for AreaLayer {
    type Service = AreaService;

    fn layer(&self, route: Route) -> AreaService {
        AreaService { area: Arc::clone(&self.0), route: Arc::new(route) }
    }
}

/// A route behind its area's middleware.
#[derive(Clone)]
pub(super) struct AreaService {
    area: Arc<AreaMiddleware>,
    route: Arc<Route>,
}

impl Service<Request> for AreaService {
    type Response = Response;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request) -> Self::Future {
        let Self { area, route } = self.clone();
        async move { Ok(area.respond(request, &route).await) }.boxed()
    }
}

impl AreaMiddleware {
    /// Passes a request to its handler, or refuses it.
    async fn respond(&self, request: Request, route: &Route) -> Response {
        let expects_continue = request_body::expects_continue(&request);
        let (body, request) = SharedBody::split_from(request);
        let response = self.handle(request, (body.as_ref(), route)).await;
        match body {
            // This comes last, because reading the rest of the body may take seconds that must not count as the
            // handler's.
            Some(body) => body.drain_or_close(expects_continue, response).await,
            None => response,
        }
    }

    async fn handle(
        &self,
        mut request: Request,
        (body, route): (Option<&SharedBody>, &Route),
    ) -> Response {
        let (now, started) = (self.api.service.now(), monotonic_now());
        let ids = RequestIds::new(self.api.service.request_id(now), request.headers());
        // The pattern of the route, if there is one: the path itself may hold data that must not be logged.
        let path = request.extensions().get::<MatchedPath>().cloned();
        let path = path.as_ref().map(MatchedPath::as_str);
        let method = request.method().clone();
        let operation = self.operation(&method, path);
        let restyle = match &self.policy.style {
            ResponseStyle::Json => None,
            ResponseStyle::Custom(styling) => Some(styling(&self.api, &mut request)),
        };
        let client = client_address(&self.api, &request);
        let run = self.admit_and_run(request, client, (body, route));
        let (quota, key_id, response) = ids.clone().scope(run).await;
        let request_id = &*ids.request;
        // The code is read before the area restyles the response, since a page does not contain it.
        let code =
            response.extensions().get::<HttpRefusal>().map(|HttpRefusal(refusal)| refusal.code);
        let quota = match code {
            // The refusal of a handler, such as too many sign-ins.
            Some(ErrorCode::RateLimitExceeded) => Quota { remaining: 0, ..quota },
            _ => quota,
        };
        let response = match restyle {
            Some(restyle) => restyle(response),
            None => response,
        };
        let mut response = response::render_refusal(response, request_id);
        response::set_common_headers(response.headers_mut(), request_id, now, quota);
        let (status, listener, elapsed) =
            (response.status().as_u16(), self.listener, started.elapsed());
        let micros = u64::try_from(elapsed.as_micros()).unwrap_or(u64::MAX);
        let (code, path) = (code.map_or("", ErrorCode::code), path.unwrap_or("(no route)"));
        /// The log line, at a level.
        macro_rules! log {
            ($level:ident) => {
                tracing::$level!(
                    { request_id, trace_id = ids.trace.map(TraceContext::id), listener,
                      client = self.logged_client(client), key_id = key_id.as_deref(),
                      method = logged_method(&method), path, status, code, micros },
                    "answered"
                )
            };
        }
        // Probes and scrapes come every few seconds and would hide the rest, unless one of them fails.
        if self.policy.is_probed() && status < 400 {
            log!(debug);
        } else {
            log!(info);
        }
        self.api
            .service
            .metrics()
            .count_request(AnsweredRequest { listener, operation, code, status }, elapsed);
        response
    }

    /// Passes the request to its handler if it is admitted. Returns the id of its key, too.
    async fn admit_and_run(
        &self,
        mut request: Request,
        client: IpAddr,
        (body, route): (Option<&SharedBody>, &Route),
    ) -> (Quota, Option<String>, Response) {
        let (quota, admitted) = self.admit(&mut request, client).await;
        let key_id = key_id(&request);
        let response = match admitted {
            Ok(()) => {
                let handled = async move {
                    let handling = route.clone().call(request);
                    let Ok(response) = handling.await;
                    response
                };
                with_timeouts(handled, body).await
            }
            Err(refusal) => HttpRefusal(refusal).into_response(),
        };
        (quota, key_id, response)
    }

    fn logged_client(&self, address: IpAddr) -> String {
        LoggedClient { address, is_person: self.policy.is_public_page() }.text()
    }

    /// Returns the name of the request in metrics. It is from a closed list, so that no caller can add a time series.
    fn operation(&self, method: &Method, path: Option<&str>) -> &'static str {
        let Some(path) = path else { return "Other" };
        let matches = |operation: &&Operation| {
            operation.path() == path && operation.method().as_str() == method.as_str()
        };
        let found = Operation::ALL.iter().find(matches);
        found.map_or(self.policy.metrics_name, |operation| operation.name())
    }

    /// Admits or refuses the request by the area's policy. Handlers find the caller among its extensions.
    async fn admit(&self, request: &mut Request, client: IpAddr) -> AdmissionResult {
        if let Err(refusal) = host::check_host(request) {
            return self.refuse_and_count(refusal, client);
        }
        match self.policy.principal {
            Principal::ApiKey(check) => self.admit_caller(request, client, check).await,
            Principal::CarrierKey => self.admit_carrier(request, client).await,
            Principal::Anyone(limit) => self.admit_anyone(limit, client),
        }
    }

    async fn admit_caller(
        &self,
        request: &mut Request,
        client: IpAddr,
        check: Option<CallerCheck>,
    ) -> AdmissionResult {
        let (service, environment) = (&self.api.service, self.api.environment);
        let key = header_text(request.headers(), const { HeaderName::from_static(names::API_KEY) });
        let caller = match service.authenticate(environment, key.as_deref()).await {
            Ok(caller) => Caller { trace: RequestIds::current_trace(), ..caller },
            Err(refusal) => return self.refuse_and_count(refusal, client),
        };
        // A refused request has its key in the log, too. Its handler does not run.
        request.extensions_mut().insert(caller.clone());
        // The time is taken after the key was looked up, which may take seconds. The limiter knows only one second:
        // counting a request in the second of its arrival would take it back there, with the counts of all keys.
        let now = service.now();
        // A request from an address that the key does not allow must not use up the owner's limit. It does not count
        // against the address either, whose limit prevents guessing keys: this key is valid.
        if let Err(refusal) = service.check_address(&caller, client) {
            return (service.quota_for(&caller, now), Err(refusal));
        }
        let (quota, admitted) = to_admission_result(service.admit_caller(&caller, now).await, now);
        service.record_key_use(&caller, now);
        let admitted = admitted.and_then(|()| match check {
            Some(check) => check(&self.api, &caller, now),
            None => Ok(()),
        });
        (quota, admitted)
    }

    async fn admit_carrier(&self, request: &mut Request, client: IpAddr) -> AdmissionResult {
        let key = header_text(request.headers(), names::CARRIER_KEY);
        let service = &self.api.service;
        match service.authenticate_carrier(self.api.environment, key.as_deref()).await {
            Ok(carrier) => {
                let now = service.now();
                let admitted = to_admission_result(service.admit_carrier(&carrier, now).await, now);
                let trace = RequestIds::current_trace();
                request.extensions_mut().insert(Carrier { trace, ..carrier });
                admitted
            }
            Err(refusal) => self.refuse_and_count(refusal, client),
        }
    }

    fn admit_anyone(&self, limit: AddressLimit, client: IpAddr) -> AdmissionResult {
        let now = self.api.service.now();
        let subject = match limit {
            AddressLimit::Unlimited => {
                let limit = self.api.service.settings().limits.unauthenticated;
                return (Quota::full(limit, now), Ok(()));
            }
            AddressLimit::Unauthenticated => LimitSubject::Address(self.api.environment, client),
            AddressLimit::PublicPages => LimitSubject::Public(self.api.environment, client),
            AddressLimit::Operators => LimitSubject::Operator(client),
        };
        to_admission_result(self.api.service.admit(subject, now), now)
    }

    /// Refuses a request without a valid key or host and counts it against its address, so that keys cannot be guessed
    /// quickly. If the server could not look the key up, the key may be valid: its owner must see that the service is
    /// down, not that there were too many requests.
    fn refuse_and_count(&self, refusal: Refusal, client: IpAddr) -> AdmissionResult {
        // The key may be valid, and the failed lookup is not the client's fault.
        if refusal.code == ErrorCode::ServiceUnavailable {
            let limit = self.api.service.settings().limits.unauthenticated;
            return (Quota::full(limit, self.api.service.now()), Err(refusal));
        }
        let limit = match self.policy.principal {
            _ if refusal.is_server_error() => AddressLimit::Unlimited,
            Principal::Anyone(limit) => limit,
            Principal::ApiKey(_) | Principal::CarrierKey => AddressLimit::Unauthenticated,
        };
        let (quota, admitted) = self.admit_anyone(limit, client);
        (quota, admitted.and(Err(refusal)))
    }
}

/// Returns the id of the valid key that a request was sent with, by which the log shows who uses a leaked one.
fn key_id(request: &Request) -> Option<String> {
    let extensions = request.extensions();
    let caller = extensions.get::<Caller>().map(|caller| &caller.key.id);
    caller.or_else(|| extensions.get::<Carrier>().map(|carrier| &carrier.key.id)).cloned()
}

/// Returns the method for the log. No method of HTTP is longer than `OPTIONS`; a longer text may be a key by mistake.
fn logged_method(method: &Method) -> &str {
    let method = method.as_str();
    if method.len() <= Method::OPTIONS.as_str().len() { method } else { "(other)" }
}

fn to_admission_result(admission: Admission, now: Millis) -> AdmissionResult {
    match admission {
        Admission::Granted(quota) => (quota, Ok(())),
        Admission::Refused(quota) => (quota, Err(Refusal::rate_limited(quota.retry_after(now)))),
    }
}

/// Runs a handler. Returns its response, or a refusal if it panics or takes too long.
async fn with_timeouts(
    handler: impl Future<Output = Response>,
    body: Option<&SharedBody>,
) -> Response {
    // This is unwind-safe: handlers share the store, which applies whole changes only, and counters behind locks that a
    // panic cannot leave half-written.
    let mut handler = pin!(AssertUnwindSafe(handler).catch_unwind());
    if let Some(body) = body {
        tokio::select! {
            // The handler comes first: its response counts even if the body ended or timed out just now.
            biased;
            done = &mut handler => return or_internal_error(done),
            () = body.ended() => {}
            () = sleep(BODY_TIMEOUT) => return body_timed_out(body),
        }
    }
    match timeout(HANDLER_TIMEOUT, handler).await {
        Ok(done) => or_internal_error(done),
        Err(_) => HttpRefusal(Refusal::unavailable()).into_response(),
    }
}

/// Returns the response for a body that did not end in time: 408 if the handler waits for it, else 503.
fn body_timed_out(body: &SharedBody) -> Response {
    let is_client_fault = body.is_awaited();
    body.give_up();
    if is_client_fault {
        HttpRefusal::from(ErrorCode::RequestTimeout).into_response()
    } else {
        HttpRefusal(Refusal::unavailable()).into_response()
    }
}

fn or_internal_error(done: Result<Response, Box<dyn Any + Send>>) -> Response {
    done.unwrap_or_else(|_| {
        tracing::error!("a handler panicked");
        HttpRefusal::from(ErrorCode::InternalError).into_response()
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
    use parcelo_domain::TraceContext;
    use tower::ServiceExt;

    use crate::{
        http::{HttpRefusal, RequestIds, body::json_object, routes::open_routes},
        mock::MockServer,
    };

    #[tokio::test]
    async fn a_server_survives_a_panic_in_a_handler() {
        async fn panicking() -> &'static str {
            panic!("a handler's own fault")
        }
        let server = MockServer::start().await;
        let routes =
            Router::new().route("/faulty", get(panicking)).route("/fine", get(|| async {}));
        let routes = open_routes(routes, server.api());
        let call = |path| routes.clone().oneshot(Request::get(path).body(Body::empty()).unwrap());
        for _ in 0..3 {
            let response = call("/faulty").await.unwrap();
            assert_eq!(response.status().as_u16(), 500);
            assert!(response.headers().contains_key("x-ratelimit-limit"));
            let id = response.headers()["x-request-id"].to_str().unwrap().to_owned();
            let body = response.into_body().collect().await.unwrap().to_bytes();
            let body: serde_json::Value = serde_json::from_slice(&body).unwrap();
            assert_eq!(body["error"]["code"], "INTERNAL_ERROR");
            assert_eq!(body["error"]["requestId"], id);
            assert_eq!(call("/fine").await.unwrap().status().as_u16(), 200);
        }
    }

    #[tokio::test]
    async fn a_handler_knows_the_ids_of_its_request() {
        const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
        async fn ids() -> String {
            let read =
                |ids: &RequestIds| format!("{} {:?}", ids.request, ids.trace.map(TraceContext::id));
            RequestIds::read_current(read).unwrap()
        }
        let server = MockServer::start().await;
        let routes = open_routes(Router::new().route("/ids", get(ids)), server.api());
        let request =
            Request::get("/ids").header("traceparent", format!("00-{TRACE}-{}-01", "1".repeat(16)));
        let response = routes.oneshot(request.body(Body::empty()).unwrap()).await.unwrap();
        let id = response.headers()["x-request-id"].to_str().unwrap().to_owned();
        let body = response.into_body().collect().await.unwrap().to_bytes();
        assert_eq!(body, format!("{id} {:?}", Some(TRACE)));
        assert!(RequestIds::read_current(|_| ()).is_none(), "outside of a request there are none");
    }

    /// Reads a body, then takes 20 seconds.
    async fn slow_handler(request: extract::Request) -> Result<&'static str, HttpRefusal> {
        json_object(request).await?;
        tokio::time::sleep(Duration::from_secs(20)).await;
        Ok("done")
    }

    /// Reads a body, then never responds.
    async fn stuck_handler(request: extract::Request) -> Result<&'static str, HttpRefusal> {
        json_object(request).await?;
        std::future::pending().await
    }

    /// Returns the body `{}` in two pieces, the second after `seconds` or never.
    fn delayed_body(seconds: Option<u64>) -> Body {
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

    async fn send(path: &str, body: Body) -> Response {
        let server = MockServer::start().await;
        let routes = Router::new()
            .route("/slow", post(slow_handler))
            .route("/stuck", post(stuck_handler))
            .route("/deaf", post(std::future::pending::<&str>));
        let request = Request::post(path).header("content-type", "application/json");
        let request = request.body(body).unwrap();
        open_routes(routes, server.api()).oneshot(request).await.unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_body_is_a_408_and_a_slow_handler_a_503() {
        let table = [
            ("/slow", delayed_body(Some(0)), 200, false),
            ("/slow", delayed_body(Some(29)), 200, false),
            ("/slow", delayed_body(None), 408, true),
            ("/slow", delayed_body(Some(31)), 408, true),
            ("/stuck", delayed_body(Some(29)), 503, false),
            ("/stuck", Body::from("{}"), 503, false),
            ("/deaf", delayed_body(None), 503, true),
            ("/nowhere", delayed_body(Some(1)), 404, false),
            ("/nowhere", delayed_body(Some(3)), 404, true),
        ];
        for (path, body, status, closes) in table {
            let response = send(path, body).await;
            assert_eq!(response.status().as_u16(), status, "{path}");
            let is_closed = response.headers().get("connection").is_some_and(|v| v == "close");
            assert_eq!(is_closed, closes, "{path} {status}");
        }
    }
}
