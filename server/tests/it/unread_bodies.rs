//! Refusals that are sent before the body of the request has been read. The connection either accepts the next request
//! or is closed, and the response says which.

use crate::{
    api::order,
    raw::{RawConnection, RawResponse},
    running::TestSetup,
};

const CREATE: &str = "/api/v1/orders/create";

fn head(method: &str, path: &str, headers: &str, length: usize) -> String {
    format!(
        "{method} {path} HTTP/1.1\r\nHost: parcelo.test\r\nContent-Type: application/json\r\n\
         {headers}Content-Length: {length}\r\n\r\n"
    )
}

/// Sends a request `times` times, head and body in two packets, on one connection as long as the responses keep it
/// open. Returns the number of responses with this status.
async fn count_responses(
    url: &str,
    head: &str,
    body: &str,
    (times, status): (usize, u16),
) -> usize {
    let (mut connection, mut count) = (RawConnection::open(url).await, 0);
    for _ in 0..times {
        connection.send(&[head, body]).await;
        let response = connection.next_response().await;
        count += usize::from(response.as_ref().is_some_and(|response| response.status == status));
        if response.is_none_or(|response| response.closes_connection()) {
            connection = RawConnection::open(url).await;
        }
    }
    count
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn refusals_before_the_body_keep_or_close_the_connection() {
    let server = crate::embedded::start().await;
    let secret = |key: parcelo::ApiKey| format!("X-API-Key: {}\r\n", key.secret());
    let (any, tired) = (secret(server.key().issue()), secret(server.key().rate_limit(1).issue()));
    let body = order("order-0001").to_string();
    let wrong = "X-API-Key: pk_test_0000000000000000000000000000000000000a\r\n";
    let spent = head("POST", CREATE, &tired, body.len());
    let mut connection = RawConnection::open(server.url()).await;
    connection.send(&[&spent, &body]).await;
    let accepted = connection.next_response().await.unwrap();
    assert_eq!(accepted.status, 201, "the one request of this window");
    let table = [
        (head("POST", CREATE, "", body.len()), 401),
        (head("POST", CREATE, wrong, body.len()), 401),
        (head("POST", "/nowhere", "", body.len()), 404),
        (head("POST", "/api/v1/nowhere", &any, body.len()), 404),
        (head("PUT", CREATE, &any, body.len()), 405),
        (head("POST", "/api/v1/health", &any, body.len()), 405),
        (spent, 429),
        (head("POST", "/__mock/nowhere", "", body.len()), 404),
    ];
    let each = 200 / table.len();
    for (head, status) in &table {
        let count = count_responses(server.url(), head, &body, (each, *status)).await;
        assert_eq!(count, each, "{head}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn address_and_forged_form_refusals_keep_the_connection() {
    let setup = TestSetup::new();
    let key = setup.new_key_with("sandbox", &["--ip", "203.0.113.7"]).1;
    let server = setup.start(&[]);
    let body = order("order-0001").to_string();
    let header = format!("X-API-Key: {}\r\n", key.secret());
    let head_of = head("POST", CREATE, &header, body.len());
    assert_eq!(count_responses(server.sandbox(), &head_of, &body, (100, 403)).await, 100);
    let head_of = head("POST", "/dashboard/sign-in", "", body.len());
    assert_eq!(count_responses(server.url("admin"), &head_of, &body, (40, 403)).await, 40);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_body_that_is_too_long_gets_a_readable_refusal() {
    let server = crate::embedded::start().await;
    let key = format!("X-API-Key: {}\r\n", server.key().issue().secret());
    let body = "x".repeat(2_000_000);
    let long = head("POST", CREATE, &key, body.len());
    let response = send_refused(server.url(), &[&long, &body]).await;
    assert_eq!((response.status, response.closes_connection()), (413, true));
    let chunked =
        long.replace(&format!("Content-Length: {}", body.len()), "Transfer-Encoding: chunked");
    let chunk = format!("{:x}\r\n{body}\r\n0\r\n\r\n", body.len());
    let response = send_refused(server.url(), &[&chunked, &chunk]).await;
    assert_eq!((response.status, response.closes_connection()), (413, true));
}

/// Sends a request that is refused before all of it is read. Returns the response.
async fn send_refused(url: &str, packets: &[&str]) -> RawResponse {
    let mut connection = RawConnection::open(url).await;
    connection.send(packets).await;
    connection.next_response().await.expect("a response, not a reset")
}

#[tokio::test]
async fn expect_100_continue_is_refused_without_the_body() {
    let server = crate::embedded::start().await;
    let mut connection = RawConnection::open(server.url()).await;
    connection.send(&[&head("POST", CREATE, "Expect: 100-continue\r\n", 1_000)]).await;
    let response = connection.next_response().await.unwrap();
    assert_eq!((response.status, response.closes_connection()), (401, true));
}

#[tokio::test]
async fn a_client_with_a_valid_key_gets_100_continue() {
    let server = crate::embedded::start().await;
    let key = format!("X-API-Key: {}\r\nExpect: 100-continue\r\n", server.key().issue().secret());
    let body = order("order-0001").to_string();
    let mut connection = RawConnection::open(server.url()).await;
    connection.send(&[&head("POST", CREATE, &key, body.len())]).await;
    assert_eq!(connection.next_response().await.unwrap().status, 100);
    connection.send(&[&body]).await;
    assert_eq!(connection.next_response().await.unwrap().status, 201);
}
