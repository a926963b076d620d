//! Real sockets: the bytes of a request, and the errors that broken peers cause.

use std::error::Error;

use parcelo::{
    Client, ClientBuilder, ErrorKind, LabelFormat, Language, Retry,
    transport::{Phase, TransportError},
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};
use wiremock::{
    Mock, MockServer, ResponseTemplate,
    matchers::{any, body_partial_json, header, method, path},
};

use crate::{
    errors::causes,
    scripted_transport::{CREATED, RECORD, key, number, order},
};

fn builder(address: &str) -> ClientBuilder {
    Client::builder(key()).base_url(address).unwrap()
}

/// Returns a builder of a client that accepts compressed responses, if the build supports them.
fn accept_gzip_if(builder: ClientBuilder, gzip: bool) -> ClientBuilder {
    #[cfg(feature = "gzip")]
    let builder = if gzip { builder.gzip() } else { builder };
    let _ = gzip;
    builder
}

#[tokio::test]
async fn a_creation_has_its_path_headers_and_body() {
    let server = MockServer::start().await;
    Mock::given(method("POST"))
        .and(path("/behind/a/proxy/api/v1/orders/create"))
        .and(header("x-api-key", key().secret()))
        .and(header("accept-language", "es"))
        .and(header("content-type", "application/json"))
        .and(header("user-agent", concat!("parcelo-rust/", env!("CARGO_PKG_VERSION"))))
        .and(body_partial_json(serde_json::json!({"idempotencyKey": "order-0001"})))
        .respond_with(ResponseTemplate::new(201).set_body_string(CREATED))
        .expect(1)
        .mount(&server)
        .await;
    let base = format!("{}/behind/a/proxy/", server.uri());
    let client = builder(&base).language(Language::Es).build().unwrap();
    assert!(client.orders().create(&order()).await.is_ok());
}

#[tokio::test]
async fn a_redirect_is_not_followed_and_gets_no_key() {
    let elsewhere = MockServer::start().await;
    Mock::given(any()).respond_with(ResponseTemplate::new(200)).expect(0).mount(&elsewhere).await;
    let server = MockServer::start().await;
    for status in [301, 302, 303, 307, 308] {
        server.reset().await;
        let redirect = ResponseTemplate::new(status).insert_header("location", elsewhere.uri());
        Mock::given(any()).respond_with(redirect).expect(2).mount(&server).await;
        let client = builder(&server.uri()).build().unwrap();
        let error = client.health().await.unwrap_err();
        assert_eq!((error.kind(), error.status()), (ErrorKind::Unexpected, Some(status)));
        let error = client.orders().create(&order()).await.unwrap_err();
        // A 303 means that the request was handled and that its response is at the other address.
        assert_eq!((error.may_have_executed(), error.attempts()), (status == 303, 1));
    }
    // A link is opened without the key and does not follow redirects either.
    server.reset().await;
    let redirect = ResponseTemplate::new(302).insert_header("location", elsewhere.uri());
    Mock::given(path("/files/a.pdf")).respond_with(redirect).expect(1).mount(&server).await;
    let client = builder(&server.uri()).build().unwrap();
    let link = format!("{}/files/a.pdf?sig=x", server.uri());
    let error = client.labels().download_link(&link).bytes().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unexpected);
    let sent = server.received_requests().await.unwrap();
    assert!(sent.iter().all(|request| !request.headers.contains_key("x-api-key")));
}

#[tokio::test]
async fn a_refused_connection_is_not_sent_and_is_retried() {
    let address = unused_address().await;
    let client = builder(&address).retry(Retry::standard().attempts(2)).build().unwrap();
    let error = client.orders().create(&order()).await.unwrap_err();
    assert_eq!((error.kind(), error.attempts()), (ErrorKind::Network, 2));
    assert!(!error.may_have_executed());
}

#[tokio::test]
async fn each_broken_peer_has_a_phase_and_hides_its_address() {
    let (closing, _peer) = responding_peer("").await;
    let (breaking, _other) =
        responding_peer("HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\n{").await;
    let (not_http, _third) = responding_peer("220 smtp.example ESMTP\r\n").await;
    let encrypted = closing.replace("http", "https");
    let table = [
        ("http://127.0.0.1:1", Phase::NotSent),
        (&encrypted, Phase::NotSent),
        (&closing, Phase::Stale),
        (&breaking, Phase::MaybeSent),
        (&not_http, Phase::NotHttp),
    ];
    let with_and_without_gzip = table.iter().flat_map(|row| [(row, false), (row, true)]);
    for ((address, phase), gzip) in with_and_without_gzip {
        let client = accept_gzip_if(builder(address), gzip).retry(Retry::none()).build().unwrap();
        let error = client.tracking().get(&number()).await.unwrap_err();
        assert_eq!(self::phase(&error), Some(*phase), "{address}: {error:?}");
        let shown: Vec<_> = causes(&error).map(|cause| format!("{cause} {cause:?}")).collect();
        assert!(!shown.concat().contains("SB-SUCCESS"), "{shown:?}");
        let texts: Vec<_> = causes(&error).map(ToString::to_string).collect();
        for (i, text) in texts.iter().enumerate() {
            let again =
                texts[i + 1..].iter().any(|cause| text.contains(cause) || cause.contains(text));
            assert!(!again, "no text is repeated: {texts:?}");
        }
    }
}

#[tokio::test]
async fn a_response_with_too_many_headers_is_still_http() {
    let (address, _peer) = peer(async |mut socket| {
        read_request(&mut socket).await;
        let huge = format!("HTTP/1.1 200 OK\r\nx: {}", "x".repeat(1 << 20));
        // It is cut off before it has sent everything.
        let _ = socket.write_all(huge.as_bytes()).await;
    })
    .await;
    let client = builder(&address).retry(Retry::none()).build().unwrap();
    assert_eq!(client.health().await.unwrap_err().kind(), ErrorKind::Network);
}

#[tokio::test]
async fn a_peer_without_http_is_reported_after_one_attempt() {
    // A mail server, a server that needs TLS, and one that speaks HTTP/2 without negotiation.
    for greeting in
        ["220 smtp.example ESMTP\r\n", "\u{15}\u{3}\u{1}\0\u{2}\u{2}F", "\0\0\u{6}\u{4}\0\0\0"]
    {
        let (address, _peer) = responding_peer(greeting).await;
        let client = builder(&address).build().unwrap();
        let error = client.health().await.unwrap_err();
        assert_eq!((error.kind(), error.attempts()), (ErrorKind::Decode, 1), "{error:?}");
        assert!(error.to_string().contains("does not speak HTTP"), "{error}");
        let error = client.orders().create(&order()).await.unwrap_err();
        assert!(error.may_have_executed() && error.attempts() == 1, "it was sent");
    }
}

#[tokio::test]
async fn a_handshake_that_fails_once_is_retried() {
    // A load balancer that is being reloaded sends an alert: handshake_failure, internal_error. The last peer speaks no
    // TLS.
    for alert in [
        "\u{15}\u{3}\u{3}\0\u{2}\u{2}\u{28}",
        "\u{15}\u{3}\u{3}\0\u{2}\u{2}\u{50}",
        "HTTP/1.1 400 Bad Request\r\n\r\n",
    ] {
        let (address, _peer) = responding_peer(alert).await;
        let client = builder(&address.replace("http", "https")).build().unwrap();
        let error = client.orders().create(&order()).await.unwrap_err();
        assert_eq!((error.kind(), error.attempts()), (ErrorKind::Network, 4), "{error:?}");
        assert!(!error.may_have_executed() && error.to_string().contains("nothing was sent"));
    }
}

#[tokio::test]
async fn a_dead_pooled_connection_is_replaced() {
    // Each connection gets one response; its second request finds it closed.
    let (address, _peer) = peer(async |mut socket| {
        read_request(&mut socket).await;
        let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{RECORD}", RECORD.len());
        socket.write_all(head.as_bytes()).await.unwrap();
        read_request(&mut socket).await;
    })
    .await;
    let client = builder(&address).build().unwrap();
    let first = client.tracking().get(&number()).await.unwrap();
    let second = client.tracking().get(&number()).await.unwrap();
    assert_eq!((first.meta().attempts, second.meta().attempts), (1, 2));
}

#[tokio::test]
async fn a_label_truncated_on_the_wire_leaves_no_file() {
    let (address, _peer) =
        responding_peer("HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\n%PDF").await;
    let directory = tempfile::tempdir().unwrap();
    for gzip in [false, true] {
        let client = accept_gzip_if(builder(&address), gzip).retry(Retry::standard().attempts(2));
        let (client, number) = (client.build().unwrap(), number());
        let download = client.labels().download(&number, LabelFormat::Pdf);
        let error = download.save_to(directory.path().join("label.pdf")).await.unwrap_err();
        assert_eq!((error.kind(), error.attempts()), (ErrorKind::Network, 2));
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
        let shown = format!("{error:?}");
        assert!(!shown.contains("SB-SUCCESS-0001"), "{shown}");
    }
}

/// Returns the phase in which the transport failed.
pub(crate) fn phase(error: &parcelo::Error) -> Option<Phase> {
    let cause = error.source().and_then(|cause| cause.downcast_ref::<TransportError>());
    cause.map(TransportError::phase)
}

/// Returns an address at which nothing listens.
pub(crate) async fn unused_address() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    format!("http://{}", listener.local_addr().unwrap())
}

/// Starts a server that reads a request, sends this text, and closes the connection.
async fn responding_peer(text: &'static str) -> (String, tokio::task::JoinSet<()>) {
    peer(async move |mut socket| {
        read_request(&mut socket).await;
        socket.write_all(text.as_bytes()).await.unwrap();
    })
    .await
}

/// Starts a server that handles every connection in the same way, until its handle is dropped.
pub(crate) async fn peer<F>(
    treat: impl Fn(TcpStream) -> F + Send + Sync + 'static,
) -> (String, tokio::task::JoinSet<()>)
where
    F: Future<Output = ()> + Send + 'static,
{
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let mut tasks = tokio::task::JoinSet::new();
    tasks.spawn(async move {
        let mut connections = tokio::task::JoinSet::new();
        loop {
            connections.spawn(treat(listener.accept().await.unwrap().0));
        }
    });
    (address, tasks)
}

pub(crate) async fn read_request(socket: &mut TcpStream) {
    let mut buffer = [0; 4096];
    let _ = socket.read(&mut buffer).await.unwrap();
}
