//! The hook for settings of the HTTP client: those that the integrator can change, and those that the client keeps.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use parcelo::{Client, ClientBuilder, ErrorKind, Retry, reqwest, transport::Phase};
use wiremock::{Mock, MockServer, ResponseTemplate, matchers::any};

use crate::{
    scripted_transport::{RECORD, key, number},
    socket::phase,
};

fn builder(address: &str) -> ClientBuilder {
    Client::builder(key()).base_url(address).unwrap().retry(Retry::none())
}

async fn start_with_response(response: ResponseTemplate) -> MockServer {
    let server = MockServer::start().await;
    Mock::given(any()).respond_with(response).mount(&server).await;
    server
}

async fn count_requests(server: &MockServer) -> usize {
    server.received_requests().await.unwrap().len()
}

#[tokio::test]
async fn the_hook_cannot_enable_redirects() {
    let elsewhere = start_with_response(ResponseTemplate::new(200).set_body_string(RECORD)).await;
    let redirect = ResponseTemplate::new(307).insert_header("location", elsewhere.uri());
    let server = start_with_response(redirect).await;
    let client = builder(&server.uri())
        .reqwest(|http| http.redirect(reqwest::redirect::Policy::limited(5)))
        .build()
        .unwrap();
    let error = client.tracking().get(&number()).await.unwrap_err();
    assert_eq!((error.kind(), error.status()), (ErrorKind::Unexpected, Some(307)));
    assert_eq!((count_requests(&server).await, count_requests(&elsewhere).await), (1, 0));
}

#[tokio::test]
async fn the_hook_cannot_enable_reqwest_retries() {
    let server = start_with_response(ResponseTemplate::new(503)).await;
    let client = builder(&server.uri())
        .reqwest(|http| {
            let again = reqwest::retry::for_host("127.0.0.1").no_budget();
            let again = again.max_retries_per_request(3);
            http.retry(again.classify_fn(|attempt| match attempt.status() {
                Some(_) => attempt.retryable(),
                None => attempt.success(),
            }))
        })
        .build()
        .unwrap();
    assert_eq!(client.health().await.unwrap_err().attempts(), 1);
    assert_eq!(count_requests(&server).await, 1);
}

#[tokio::test]
async fn the_hook_cannot_replace_the_proxy_of_the_client() {
    let proxy = start_with_response(ResponseTemplate::new(502)).await;
    let server = start_with_response(ResponseTemplate::new(200).set_body_string(RECORD)).await;
    let address = proxy.uri();
    let client = builder(&server.uri())
        .reqwest(move |http| http.proxy(reqwest::Proxy::all(&address).unwrap()))
        .build()
        .unwrap();
    client.tracking().get(&number()).await.unwrap();
    assert_eq!((count_requests(&server).await, count_requests(&proxy).await), (1, 0));
    // A proxy that is set on the client itself stays.
    let client = builder(&server.uri()).proxy(&proxy.uri()).unwrap();
    let client = client.reqwest(reqwest::ClientBuilder::no_proxy).build().unwrap();
    assert_eq!(client.health().await.unwrap_err().status(), Some(502));
}

#[tokio::test]
async fn the_hook_cannot_replace_headers_of_the_client() {
    let server = start_with_response(ResponseTemplate::new(200).set_body_string(RECORD)).await;
    let client = builder(&server.uri())
        .reqwest(|http| {
            let names = ["x-api-key", "accept-language", "user-agent", "x-own"];
            let headers = names.map(|name| {
                (http::HeaderName::from_static(name), http::HeaderValue::from_static("theirs"))
            });
            http.default_headers(headers.into_iter().collect())
        })
        .build()
        .unwrap();
    client.tracking().get(&number()).await.unwrap();
    let sent = &server.received_requests().await.unwrap()[0].headers;
    let of = |name| sent.get_all(name).iter().collect::<Vec<_>>();
    assert_eq!(of("x-api-key"), [key().secret()]);
    assert_eq!(of("x-own"), ["theirs"]);
    assert_eq!(of("accept-language"), ["en"]);
    assert_eq!(of("user-agent"), [concat!("parcelo-rust/", env!("CARGO_PKG_VERSION"))]);
}

/// A resolver that never finds a name.
struct FailingResolver(Arc<AtomicU32>);

impl reqwest::dns::Resolve for FailingResolver {
    fn resolve(&self, _: reqwest::dns::Name) -> reqwest::dns::Resolving {
        self.0.fetch_add(1, Ordering::SeqCst);
        Box::pin(std::future::pending())
    }
}

#[tokio::test(start_paused = true)]
async fn the_hook_is_applied_but_keeps_the_connect_timeout() {
    let lookups = Arc::<AtomicU32>::default();
    let resolver = Arc::new(FailingResolver(Arc::clone(&lookups)));
    let hour = Duration::from_secs(3600);
    let client = builder("http://parcelo.example")
        .connect_timeout(Duration::from_secs(2))
        .reqwest(move |http| http.dns_resolver(Arc::clone(&resolver)).connect_timeout(hour))
        .build()
        .unwrap();
    let late = tokio::time::timeout(Duration::from_secs(3), client.health()).await;
    let error = late.expect("the hour is not waited for").unwrap_err();
    assert_eq!(lookups.load(Ordering::SeqCst), 1);
    assert_eq!((phase(&error), error.may_have_executed()), (Some(Phase::NotSent), false));
}
