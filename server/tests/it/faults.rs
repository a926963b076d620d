//! Planned faults as they are on the wire.

use std::{io::ErrorKind, time::Duration};

use parcelo::{ErrorCode, Operation, model::header};
use parcelo_server::mock::{Fault, MockServer};
use serde_json::Value;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use crate::api::{Api, order};

const CREATE: Operation = Operation::CreateOrder;

async fn start() -> (MockServer, Api) {
    let server = MockServer::start().await;
    let api = Api::with_key(server.url(), &server.key().issue());
    (server, api)
}

async fn parcels(api: &Api) -> usize {
    let list = api.get(Operation::ListParcels.path()).await.json();
    list["data"].as_array().expect("a list of parcels").len()
}

#[tokio::test]
async fn each_error_has_its_envelope_and_comes_before_or_after_the_commit() {
    for code in ErrorCode::ALL {
        let (server, api) = start().await;
        server.faults().on(CREATE).nth(1).error(*code);
        server.faults().on(CREATE).nth(2).after_commit().error(*code);
        for made in [0, 1] {
            let answer = api.create(&order("order-0001")).await;
            assert_eq!(answer.refusal(), (code.status(), code.code().to_owned()));
            let wait = answer.json()["error"].get("retryAfter").map(Value::to_string);
            assert_eq!(answer.header("retry-after"), wait.as_deref().unwrap_or_default());
            assert!(
                ["date", header::RATE_LIMIT].iter().all(|name| answer.headers.contains_key(*name))
            );
            assert_eq!(parcels(&api).await, made, "{code}");
        }
        assert_eq!(api.create(&order("order-0001")).await.status, 200, "it is there: a replay");
        assert!(server.faults().unused().is_empty());
    }
}

#[tokio::test]
async fn a_planned_429_says_the_same_in_body_and_headers() {
    let (server, api) = start().await;
    server.faults().on(CREATE).rate_limited(Duration::from_millis(2_001));
    let answer = api.create(&order("order-0001")).await;
    assert_eq!(answer.refusal(), (429, "RATE_LIMIT_EXCEEDED".to_owned()));
    assert_eq!(answer.json()["error"]["retryAfter"], 3);
    assert_eq!(answer.header("retry-after"), "3");
    assert_eq!(answer.header(header::RATE_LIMIT), "100");
    assert_eq!(answer.header(header::RATE_REMAINING), "0");
    assert_eq!(answer.header(header::RATE_RESET), "1767600003");
}

#[tokio::test]
async fn who_is_turned_away_at_the_gate_learns_why() {
    let (server, _) = start().await;
    server.faults().on(CREATE).error(ErrorCode::InternalError);
    let stranger = Api::new(server.url()).create(&order("order-0001")).await;
    assert_eq!(stranger.refusal().0, 401);
}

/// What came back on a connection of its own, and how it ended.
async fn exchange(server: &MockServer, key: &str, body: &Value) -> (String, Option<ErrorKind>) {
    let body = body.to_string();
    let address = server.url().strip_prefix("http://").unwrap();
    let mut stream = TcpStream::connect(address).await.unwrap();
    let head = format!(
        "POST {} HTTP/1.1\r\nhost: {address}\r\nx-api-key: {key}\r\nconnection: close\r\n\
         content-type: application/json\r\ncontent-length: {}\r\n\r\n",
        CREATE.path(),
        body.len()
    );
    stream.write_all(format!("{head}{body}").as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    let end = stream.read_to_end(&mut answer).await;
    (String::from_utf8(answer).unwrap(), end.err().map(|error| error.kind()))
}

/// The promised length of a body, and what there is of it.
fn promised(answer: &str) -> (usize, &str) {
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap();
    (length.parse().unwrap(), body)
}

#[tokio::test]
async fn a_connection_is_closed_or_reset_without_a_byte() {
    type Plan = fn(Fault<'_>);
    let table: [(Plan, Option<ErrorKind>); 2] = [
        (|fault| fault.close(), None),
        (|fault| fault.reset_connection(), Some(ErrorKind::ConnectionReset)),
    ];
    for (plan, end) in table {
        let (server, api) = start().await;
        let key = server.key().issue();
        plan(server.faults().on(CREATE).key(&key).nth(1));
        plan(server.faults().on(CREATE).key(&key).nth(2).after_commit());
        for made in [0, 1] {
            let met = exchange(&server, key.secret(), &order("order-0001")).await;
            assert_eq!(met, (String::new(), end));
            assert_eq!(parcels(&api).await, made);
        }
    }
}

#[tokio::test]
async fn a_truncated_body_ends_in_its_middle() {
    let (server, api) = start().await;
    server.faults().on(CREATE).truncated_body();
    let key = server.key().issue();
    let (answer, _) = exchange(&server, key.secret(), &order("order-0001")).await;
    let (length, body) = promised(&answer);
    assert!(answer.starts_with("HTTP/1.1 201 "), "{answer}");
    assert_eq!(body.len(), length / 2);
    assert_eq!(parcels(&api).await, 1);
}

#[tokio::test]
async fn a_malformed_body_has_its_length_and_is_no_json() {
    let (server, api) = start().await;
    server.faults().on(CREATE).malformed_json();
    let answer = api.create(&order("order-0001")).await;
    assert_eq!(answer.status, 201);
    assert!(serde_json::from_slice::<Value>(&answer.bytes).is_err());
    assert_eq!(parcels(&api).await, 1);
}

#[tokio::test]
async fn latencies_and_slow_bodies_take_their_time_and_arrive_whole() {
    let (server, api) = start().await;
    let moment = Duration::from_millis(20);
    server.faults().on(CREATE).latency(moment);
    server.faults().on(CREATE).after_commit().latency(moment);
    server.faults().on(CREATE).slow_body(moment);
    let begun = std::time::Instant::now();
    let answer = api.create(&order("order-0001")).await;
    assert_eq!(answer.json()["success"], true);
    assert!(begun.elapsed() >= moment * 3, "{:?}", begun.elapsed());
}

#[tokio::test]
async fn faults_take_nothing_from_the_ids() {
    let mut bodies = Vec::new();
    for probability in [0.001, 0.5] {
        let server = MockServer::builder().seed(7).start().await;
        let api = Api::with_key(server.url(), &server.key().issue());
        server.faults().on(CREATE).probability(probability).latency(Duration::from_nanos(1));
        bodies.push(api.created(&order("order-0001")).await);
    }
    assert_eq!(bodies[0], bodies[1]);
}
