//! Request heads: hosts, languages, keys, and heads that cannot be parsed.

use serde_json::Value;

use crate::{
    api::{Api, order, order_with_number, send},
    raw::{RawConnection, RawResponse},
    running::TestSetup,
    waiting::until,
};

async fn send_head(url: &str, request: &str) -> RawResponse {
    let mut connection = RawConnection::open(url).await;
    connection.send(&[request]).await;
    connection.next_response().await.unwrap()
}

#[tokio::test]
async fn a_request_names_one_host() {
    let server = crate::embedded::start().await;
    let get = |version: &str, hosts: &str| format!("GET /healthz HTTP/{version}\r\n{hosts}\r\n");
    let table = [
        ("1.1", "Host: a.test\r\n", None),
        ("1.1", "Host: [::1]:8080\r\n", None),
        ("1.0", "", None),
        ("1.1", "", Some("REQUIRED")),
        ("1.1", "Host: a.test\r\nHost: b.test\r\n", Some("DUPLICATE")),
        ("1.1", "Host: a.test\r\nHost: a.test\r\n", Some("DUPLICATE")),
        ("1.1", "Host: a.test, b.test\r\n", Some("INVALID_FORMAT")),
        ("1.1", "Host: x@a.test\r\n", Some("INVALID_FORMAT")),
    ];
    for (version, hosts, fault) in table {
        let response = send_head(server.url(), &get(version, hosts)).await;
        let Some(code) = fault else {
            assert_eq!(response.status, 200, "{hosts:?}");
            continue;
        };
        assert_eq!(response.status, 400, "{hosts:?}");
        let body: Value = serde_json::from_str(&response.body).unwrap();
        let fault = &body["error"]["details"]["errors"][0];
        assert_eq!((&fault["field"], &fault["code"]), (&"Host".into(), &code.into()), "{hosts:?}");
    }
}

#[tokio::test]
async fn several_accept_language_headers_are_combined() {
    let (_server, api) = crate::embedded::start_with_key().await;
    api.create_parcel(&order_with_number("order-0001", "SB-SUCCESS-0001")).await;
    for (lines, word) in [
        (["en;q=0.3", "es;q=0.9"], "Etiqueta generada"),
        (["es;q=0.3", "en;q=0.9"], "Label generated"),
    ] {
        let request = api.request("GET", "/api/v1/tracking/SB-SUCCESS-0001");
        let request = lines.iter().fold(request, |one, line| one.header("accept-language", *line));
        let status = send(request).await.json()["statusName"].as_str().unwrap().to_owned();
        assert_eq!(status.to_lowercase(), word.to_lowercase(), "{lines:?}");
    }
}

#[tokio::test]
async fn the_idempotency_key_header_of_the_draft_is_accepted() {
    let (_server, api) = crate::embedded::start_with_key().await;
    let mut body = order("order-0001");
    body.as_object_mut().unwrap().remove("idempotencyKey");
    let create = |headers: &[(&'static str, &'static str)]| {
        let request = api.request("POST", "/api/v1/orders/create");
        let request = headers.iter().fold(request, |one, (name, value)| one.header(*name, *value));
        send(request.header("content-type", "application/json").body(body.to_string()))
    };
    let first = create(&[("x-idempotency-key", "order-0001")]).await;
    assert_eq!(first.status, 201, "{}", first.text());
    for headers in [
        &[("idempotency-key", "order-0001")][..],
        &[("idempotency-key", "\"order-0001\"")],
        &[("idempotency-key", "\"order-0001\""), ("x-idempotency-key", "order-0001")],
        &[("idempotency-key", ""), ("x-idempotency-key", "order-0001")],
    ] {
        let again = create(headers).await;
        assert_eq!((again.status, &again.bytes), (200, &first.bytes), "{headers:?}");
    }
    for headers in [
        &[("idempotency-key", "\"order-0001\""), ("x-idempotency-key", "order-0002")][..],
        &[("idempotency-key", "order-0001"), ("idempotency-key", "order-0002")],
    ] {
        assert_eq!(create(headers).await.faults(), ["idempotencyKey MISMATCH"], "{headers:?}");
    }
    let padded = create(&[("idempotency-key", "\" order-0001 \"")]).await;
    assert_eq!(padded.faults(), ["idempotencyKey INVALID_FORMAT"], "blanks belong to the key");
    let twice =
        create(&[("idempotency-key", "order-0001"), ("idempotency-key", "order-0001")]).await;
    assert_eq!(twice.faults(), ["idempotencyKey MISMATCH"]);
    assert!(twice.text().contains("or one header is sent twice"), "{}", twice.text());
}

#[tokio::test]
async fn an_unreadable_head_is_counted() {
    let (_setup, server) = TestSetup::new_and_start();
    let long =
        format!("GET /healthz HTTP/1.1\r\nHost: a.test\r\nX: {}\r\n\r\n", "x".repeat(300_000));
    assert_eq!(send_head(server.sandbox(), "NOT HTTP\r\n\r\n").await.status, 400);
    assert_eq!(send_head(server.sandbox(), &long).await.status, 431);
    let path = format!("GET /{} HTTP/1.1\r\nHost: a.test\r\n\r\n", "x".repeat(70_000));
    assert_eq!(send_head(server.sandbox(), &path).await.status, 414);
    let metrics = Api::new(server.url("admin"));
    let expected = [
        "parcelo_bad_request_heads_total{listener=\"sandbox\",reason=\"malformed\"} 1",
        "parcelo_bad_request_heads_total{listener=\"sandbox\",reason=\"too_large\"} 2",
    ];
    // They are counted only when their connections have ended.
    until("all three are counted", async || {
        let text = metrics.get("/metrics").await.text();
        expected.iter().all(|line| text.contains(line))
    })
    .await;
}

#[tokio::test]
async fn a_head_has_at_most_128_kib_and_100_lines() {
    let server = crate::embedded::start().await;
    let head = |headers: String| format!("GET /healthz HTTP/1.1\r\n{headers}\r\n");
    let lines = |count: usize| head("Host: a.test\r\n".to_owned() + &"X: a\r\n".repeat(count - 1));
    let bytes = |count: usize| {
        let filled = |text: &str| head(format!("Host: a.test\r\nX: {text}\r\n"));
        filled(&"x".repeat(count - filled("").len()))
    };
    for (head, status) in [
        (lines(100), 200),
        (lines(101), 431),
        (bytes(128 * 1024), 200),
        (bytes(128 * 1024 + 1), 431),
        (bytes(150_000), 431),
    ] {
        assert_eq!(send_head(server.url(), &head).await.status, status, "{} bytes", head.len());
    }
}

#[tokio::test]
async fn http_2_is_closed_without_a_response() {
    let server = crate::embedded::start().await;
    let mut connection = RawConnection::open(server.url()).await;
    connection.send(&["PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"]).await;
    assert!(connection.next_response().await.is_none());
}

#[tokio::test]
async fn every_response_forbids_content_type_sniffing() {
    let (_server, api) = crate::embedded::start_with_key().await;
    let number = api.create_parcel(&order("order-0001")).await;
    for path in [
        "/api/v1/health".to_owned(),
        "/nowhere".to_owned(),
        "/healthz".to_owned(),
        "/openapi.json".to_owned(),
        "/docs/".to_owned(),
        "/__mock/clock".to_owned(),
        format!("/track/{number}"),
        format!("/api/v1/labels/{number}/download"),
        format!("/api/labels/{number}.pdf"),
    ] {
        let response = api.get(&path).await;
        assert_eq!(response.header("x-content-type-options"), "nosniff", "{path}");
    }
}
