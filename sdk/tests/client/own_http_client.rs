//! A client with an HTTP client of the integrator's own: what its settings may change, and what stays as it is.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use parcelo::{
    Client, ClientBuilder, ErrorKind, Language, Retry,
    bytes::Bytes,
    calls::StopReason,
    transport::{Phase, Reqwest, ResponseFuture, Transport, TransportError},
};
use wiremock::{Mock, MockServer, ResponseTemplate, matchers::any};

use crate::{
    retries::now,
    scripted_transport::{CREATED, RECORD, key, number, order},
    socket::{peer, phase, read_request, unused_address},
};

fn builder(address: &str, http: reqwest::ClientBuilder) -> ClientBuilder {
    let http = Reqwest::new(http.build().unwrap());
    Client::builder(key()).base_url(address).unwrap().transport(http)
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
async fn a_redirect_that_was_followed_is_an_error_and_not_repeated() {
    let created = ResponseTemplate::new(201).set_body_string(CREATED);
    for status in [301, 302, 303, 307, 308] {
        let elsewhere = start_with_response(created.clone()).await;
        let redirect = ResponseTemplate::new(status).insert_header("location", elsewhere.uri());
        let server = start_with_response(redirect).await;
        let client = builder(&server.uri(), reqwest::Client::builder()).build().unwrap();
        let order = order();
        let error = client.orders().create(&order).await.unwrap_err();
        assert_eq!(phase(&error), Some(Phase::Redirected), "{status}: {error:?}");
        assert_eq!(error.stop_reason(), Some(StopReason::Permanent));
        assert_eq!((error.kind(), error.attempts()), (ErrorKind::Unexpected, 1));
        // The other address may have passed it on to the service.
        assert!(error.may_have_executed() && order.idempotency_key.may_have_executed());
        assert!(error.message(Language::En).contains("set its redirect policy to none"), "{error}");
        assert_eq!((count_requests(&server).await, count_requests(&elsewhere).await), (1, 1));
    }
}

#[tokio::test]
async fn a_chain_of_redirects_without_end_is_such_an_error_too() {
    let server = MockServer::start().await;
    let redirect = ResponseTemplate::new(307).insert_header("location", server.uri());
    Mock::given(any()).respond_with(redirect).mount(&server).await;
    let client = builder(&server.uri(), reqwest::Client::builder()).build().unwrap();
    let error = client.tracking().get(&number()).await.unwrap_err();
    assert_eq!((phase(&error), error.attempts()), (Some(Phase::Redirected), 1), "{error:?}");
    let shown = format!("{error:?}");
    assert!(!shown.contains("SB-SUCCESS"), "{shown}");
}

#[tokio::test]
async fn a_client_that_follows_no_redirect_reports_it_as_the_built_in_one_does() {
    let elsewhere = start_with_response(ResponseTemplate::new(200).set_body_string(RECORD)).await;
    let redirect = ResponseTemplate::new(307).insert_header("location", elsewhere.uri());
    let server = start_with_response(redirect).await;
    let http = reqwest::Client::builder().redirect(reqwest::redirect::Policy::none());
    let client = builder(&server.uri(), http).build().unwrap();
    let error = client.tracking().get(&number()).await.unwrap_err();
    assert_eq!((error.kind(), error.status()), (ErrorKind::Unexpected, Some(307)));
    assert_eq!((count_requests(&server).await, count_requests(&elsewhere).await), (1, 0));
}

#[tokio::test]
async fn its_default_headers_never_replace_those_of_the_client() {
    let server = start_with_response(ResponseTemplate::new(200).set_body_string(RECORD)).await;
    let names = ["x-api-key", "accept-language", "user-agent", "x-own"];
    let headers = names.map(|name| {
        (http::HeaderName::from_static(name), http::HeaderValue::from_static("theirs"))
    });
    let http = reqwest::Client::builder().default_headers(headers.into_iter().collect());
    let client = builder(&server.uri(), http).build().unwrap();
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
async fn its_resolver_and_its_timeout_for_connecting_are_used() {
    let lookups = Arc::<AtomicU32>::default();
    let resolver = Arc::new(FailingResolver(Arc::clone(&lookups)));
    let (started, wait) = (now(), Duration::from_secs(2));
    let http = reqwest::Client::builder().dns_resolver(resolver).connect_timeout(wait);
    let client = builder("http://parcelo.example", http).retry(Retry::none()).build().unwrap();
    let error = client.orders().create(&order()).await.unwrap_err();
    assert_eq!((started.elapsed().as_secs(), lookups.load(Ordering::SeqCst)), (2, 1));
    assert_eq!((phase(&error), error.may_have_executed()), (Some(Phase::NotSent), false));
}

/// A SOCKS5 proxy that accepts every request and answers it itself.
#[tokio::test]
async fn requests_go_through_its_socks_proxy() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    let (proxy, _proxy) = peer(async |mut socket| {
        let mut greeting = [0; 3];
        socket.read_exact(&mut greeting).await.unwrap();
        socket.write_all(&[5, 0]).await.unwrap();
        read_request(&mut socket).await; // the address to connect to
        socket.write_all(&[5, 0, 0, 1, 0, 0, 0, 0, 0, 0]).await.unwrap();
        read_request(&mut socket).await;
        let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{RECORD}", RECORD.len());
        socket.write_all(head.as_bytes()).await.unwrap();
    })
    .await;
    let proxy = reqwest::Proxy::all(proxy.replace("http", "socks5h")).unwrap();
    let http = reqwest::Client::builder().proxy(proxy);
    let client = builder("http://parcelo.example", http).build().unwrap();
    client.tracking().get(&number()).await.unwrap();
}

/// A transport like that of the documentation: it sends by reqwest and classifies errors by `From`.
#[derive(Debug)]
struct OwnTransport(reqwest::Client);

impl Transport for OwnTransport {
    fn send(&self, request: http::Request<Bytes>) -> ResponseFuture<'_> {
        Box::pin(async move {
            let response = self.0.execute(request.try_into()?).await?;
            let status = response.status();
            let body = response.bytes().await?;
            let response = http::Response::builder().status(status).body(body.into());
            response.map_err(TransportError::not_answered)
        })
    }
}

#[tokio::test]
async fn a_transport_of_ones_own_finds_the_same_phases() {
    let served = |text: &'static str| {
        peer(async move |mut socket| {
            use tokio::io::AsyncWriteExt;
            read_request(&mut socket).await;
            socket.write_all(text.as_bytes()).await.unwrap();
        })
    };
    let (closing, _closing) = served("").await;
    let (breaking, _breaking) = served("HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\n{").await;
    let (not_http, _not_http) = served("220 smtp.example ESMTP\r\n").await;
    for (address, expected) in [
        (unused_address().await, Phase::NotSent),
        (closing, Phase::Stale),
        (breaking, Phase::MaybeSent),
        (not_http, Phase::NotHttp),
    ] {
        let transport = OwnTransport(reqwest::Client::new());
        let client = Client::builder(key()).base_url(&address).unwrap().transport(transport);
        let client = client.retry(Retry::none()).build().unwrap();
        let error = client.tracking().get(&number()).await.unwrap_err();
        assert_eq!(phase(&error), Some(expected), "{address}: {error:?}");
        assert!(!format!("{error:?}").contains("SB-SUCCESS"), "{error:?}");
    }
}
