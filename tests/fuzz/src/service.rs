//! The service under test. It runs in this thread, in memory and without a socket.

use std::{cell::RefCell, fmt::Display};

use axum::{Router, body::Body};
use bytes::Bytes;
use http::{HeaderMap, Request};
use http_body_util::BodyExt;
use parcelo::{ApiKey, model::FieldFault};
use parcelo_server::mock::MockServer;
use serde_json::Value;
use tokio::runtime::{Builder, Runtime};
use tower::ServiceExt;

/// Number of inputs after which a service is replaced, so that its parcels do not fill the memory.
const MAX_INPUTS: u32 = 3_000;

/// A service that the inputs of a thread share, with all its data.
pub(crate) struct Service {
    pub(crate) runtime: Runtime,
    pub(crate) server: MockServer,
    routes: Router,
    inputs: u32,
}

/// A response, with its body read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HttpResponse {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

thread_local! {
    static SERVICE: RefCell<Option<Service>> = const { RefCell::new(None) };
}

/// Calls `check` with this thread's service. A service is not used again after a failed check.
pub(crate) fn with_service<T>(check: impl FnOnce(&Service) -> T) -> T {
    let previous =
        SERVICE.with_borrow_mut(Option::take).filter(|service| service.inputs < MAX_INPUTS);
    let mut service = previous.unwrap_or_else(Service::start);
    service.inputs += 1;
    let checked = check(&service);
    SERVICE.with_borrow_mut(|kept| *kept = Some(service));
    checked
}

impl Service {
    fn start() -> Self {
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        let server = runtime.block_on(MockServer::builder().request_log(0).start());
        let routes = server.routes();
        Self { runtime, server, routes, inputs: 0 }
    }

    /// Issues an API key of an account.
    pub(crate) fn key(&self, account: &str) -> ApiKey {
        let _context = self.runtime.enter();
        self.server.key().account(account).issue()
    }

    pub(crate) fn call(&self, request: Request<Body>) -> HttpResponse {
        call(&self.runtime, &self.routes, request)
    }

    pub(crate) fn get(&self, key: &ApiKey, path: &str) -> HttpResponse {
        self.call(Request::get(path).header("x-api-key", key.secret()).body(Body::empty()).unwrap())
    }

    pub(crate) fn post(&self, key: &ApiKey, path: &str, body: &[u8]) -> HttpResponse {
        let request = Request::post(path)
            .header("x-api-key", key.secret())
            .header("content-type", "application/json");
        self.call(request.body(Body::from(body.to_vec())).unwrap())
    }
}

/// Calls a router, and checks that the response is not a server error.
pub(crate) fn call(runtime: &Runtime, routes: &Router, request: Request<Body>) -> HttpResponse {
    let response = runtime.block_on(async {
        let response = routes.clone().oneshot(request).await.unwrap();
        let (head, body) = response.into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        HttpResponse { status: head.status.as_u16(), headers: head.headers, body }
    });
    assert!(response.status < 500, "{response:?}");
    response
}

impl HttpResponse {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|err| panic!("{err}: {self:?}"))
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.body.to_vec()).unwrap()
    }

    /// Returns the code of a refusal, after checking that it has texts in both languages.
    pub(crate) fn code(&self) -> String {
        let body = self.json();
        let error = &body["error"];
        for name in ["message", "message_es", "requestId", "code"] {
            assert!(error[name].as_str().is_some_and(|text| !text.is_empty()), "{name}: {body}");
        }
        error["code"].as_str().unwrap().to_owned()
    }

    /// Checks that the request was refused for these faults.
    pub(crate) fn assert_faults(&self, faults: &[FieldFault], request: impl Display) {
        let faults = faults.iter().map(|fault| (fault.field.clone(), fault.code.code().to_owned()));
        assert_eq!((self.status, self.faults()), (400, faults.collect()), "{request}");
    }

    /// Returns the field and the code of each fault.
    pub(crate) fn faults(&self) -> Vec<(String, String)> {
        let body = self.json();
        let faults = body["error"]["details"]["errors"].as_array().cloned().unwrap_or_default();
        let text = |fault: &Value, name: &str| fault[name].as_str().unwrap().to_owned();
        faults.iter().map(|fault| (text(fault, "field"), text(fault, "code"))).collect()
    }
}
