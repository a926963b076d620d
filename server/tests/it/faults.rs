//! Faults that a test plans on the mock server, as a client sees them on the wire.

use std::{io::ErrorKind, time::Duration};

use parcelo::{ErrorCode, Operation};
use parcelo_server::mock::{Fault, MockServer, Reply};
use parcelo_types::internal::header;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use crate::{
    api::{Api, order, order_with_number},
    embedded::start_with_key,
    waiting::{LONG, until},
};

const CREATE: Operation = Operation::CreateOrder;

async fn parcels(api: &Api) -> usize {
    let list = api.get(Operation::ListParcels.path()).await.json();
    list["data"].as_array().expect("a list of parcels").len()
}

#[tokio::test]
async fn each_error_comes_before_or_after_the_commit() {
    for code in ErrorCode::ALL {
        let (server, api) = start_with_key().await;
        server.faults().on(CREATE).nth(1).error(*code);
        server.faults().on(CREATE).nth(2).after_commit().error(*code);
        for is_created in [false, true] {
            let response = api.create(&order("order-0001")).await;
            assert_eq!(response.refusal(), (code.status(), code.code()));
            let wait = response.json()["error"].get("retryAfter").map(Value::to_string);
            assert_eq!(response.header("retry-after"), wait.as_deref().unwrap_or_default());
            let has = |name: &str| response.headers.contains_key(name);
            assert!(has("date") && has(header::RATE_LIMIT));
            assert_eq!(parcels(&api).await, usize::from(is_created), "{code}");
        }
        let replay = api.create(&order("order-0001")).await;
        assert_eq!(replay.status, 200, "the order exists");
        assert!(server.faults().unused().is_empty());
    }
}

#[tokio::test]
async fn a_planned_429_says_the_same_in_body_and_headers() {
    let (server, api) = start_with_key().await;
    server.faults().on(CREATE).rate_limited(Duration::from_millis(2_001));
    let response = api.create(&order("order-0001")).await;
    assert_eq!(response.refusal(), (429, "RATE_LIMIT_EXCEEDED"));
    assert_eq!(response.json()["error"]["retryAfter"], 3);
    assert_eq!(response.header("retry-after"), "3");
    assert_eq!(response.header(header::RATE_LIMIT), "100");
    assert_eq!(response.header(header::RATE_REMAINING), "0");
    assert_eq!(response.header(header::RATE_RESET), "1767600003");
}

#[tokio::test]
async fn a_missing_key_is_401_despite_a_planned_fault() {
    let (server, _) = start_with_key().await;
    server.faults().on(CREATE).error(ErrorCode::InternalError);
    let stranger = Api::new(server.url()).create(&order("order-0001")).await;
    assert_eq!(stranger.refusal().0, 401);
}

/// Sends a body on a new connection. Returns all bytes of the response, and the error with which the connection ended.
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
    let mut response = Vec::new();
    let end = stream.read_to_end(&mut response).await;
    (String::from_utf8(response).unwrap(), end.err().map(|error| error.kind()))
}

/// Returns the `Content-Length` of a raw response, and the part of its body that arrived.
fn length_and_body(response: &str) -> (usize, &str) {
    let (head, body) = response.split_once("\r\n\r\n").unwrap_or_else(|| panic!("{response:?}"));
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
        let (server, api) = start_with_key().await;
        let key = server.key().issue();
        plan(server.faults().on(CREATE).key(&key).nth(1));
        plan(server.faults().on(CREATE).key(&key).nth(2).after_commit());
        for is_created in [false, true] {
            let met = exchange(&server, key.secret(), &order("order-0001")).await;
            assert_eq!(met, (String::new(), end));
            assert_eq!(parcels(&api).await, usize::from(is_created));
        }
    }
}

#[tokio::test]
async fn a_truncated_body_ends_in_its_middle() {
    let (server, api) = start_with_key().await;
    server.faults().on(CREATE).truncated_body();
    let key = server.key().issue();
    let (response, _) = exchange(&server, key.secret(), &order("order-0001")).await;
    let (length, body) = length_and_body(&response);
    assert!(response.starts_with("HTTP/1.1 201 "), "{response}");
    assert_eq!(body.len(), length / 2);
    assert_eq!(parcels(&api).await, 1);
}

#[tokio::test]
async fn a_malformed_body_has_the_right_length_but_is_not_json() {
    let (server, api) = start_with_key().await;
    server.faults().on(CREATE).malformed_json();
    let response = api.create(&order("order-0001")).await;
    assert_eq!(response.status, 201);
    assert!(serde_json::from_slice::<Value>(&response.bytes).is_err());
    assert_eq!(parcels(&api).await, 1);
}

#[tokio::test]
async fn latencies_and_slow_bodies_delay_complete_responses() {
    let (server, api) = start_with_key().await;
    let moment = Duration::from_millis(20);
    server.faults().on(CREATE).latency(moment);
    server.faults().on(CREATE).after_commit().latency(moment);
    server.faults().on(CREATE).slow_body(moment);
    let begun = std::time::Instant::now();
    let response = api.create(&order("order-0001")).await;
    assert_eq!(response.json()["success"], true);
    assert!(begun.elapsed() >= moment * 3, "{:?}", begun.elapsed());
}

#[tokio::test]
async fn faults_do_not_use_up_seeded_ids() {
    let mut bodies = Vec::new();
    for probability in [0.001, 0.5] {
        let server = crate::embedded::builder().seed(7).start().await;
        let api = Api::with_key(server.url(), &server.key().issue());
        server.faults().on(CREATE).probability(probability).latency(Duration::from_nanos(1));
        bodies.push(api.create_parcel(&order("order-0001")).await);
    }
    assert_eq!(bodies[0], bodies[1]);
}

#[tokio::test]
async fn a_planned_reply_replaces_the_whole_response() {
    let page =
        || Reply::status(502).header("content-type", "text/html").header("set-cookie", "a=1");
    let page = || page().header("set-cookie", "b=2").body("<h1>Bad Gateway</h1>");
    for is_created in [false, true] {
        let (server, api) = start_with_key().await;
        let fault = server.faults().on(CREATE).nth(1);
        let fault = if is_created { fault.after_commit() } else { fault };
        fault.reply(page());
        let response = api.create(&order("order-0001")).await;
        assert_eq!((response.status, response.text().as_str()), (502, "<h1>Bad Gateway</h1>"));
        assert_eq!(response.headers["content-type"], "text/html");
        let cookies: Vec<_> = response.headers.get_all("set-cookie").iter().collect();
        assert_eq!(cookies, ["a=1", "b=2"]);
        let ours = ["x-request-id", header::RATE_LIMIT, "retry-after"];
        let has = |name: &&str| response.headers.contains_key(*name);
        assert!(!ours.iter().any(has), "{:?}", response.headers);
        assert_eq!(parcels(&api).await, usize::from(is_created));
        let record = server.requests().of(CREATE).all().remove(0);
        assert_eq!((record.status, record.faults.len()), (Some(502), 1));
        assert_eq!(
            record.request.json(),
            Some(order("order-0001")),
            "the body of a request that is not executed"
        );
    }
}

#[tokio::test]
async fn a_reply_may_be_shorter_than_its_length_or_never_arrive() {
    let (server, _) = start_with_key().await;
    let key = server.key().issue();
    server
        .faults()
        .on(CREATE)
        .nth(1)
        .reply(Reply::status(200).header("content-length", "10").body("{}"));
    let (response, _) = exchange(&server, key.secret(), &order("order-0001")).await;
    assert_eq!(length_and_body(&response), (10, "{}"), "{response:?}");
    server.faults().on(CREATE).nth(1).after_commit().reply(Reply::hang());
    let body = order("order-0001");
    let sent = exchange(&server, key.secret(), &body);
    tokio::select! {
        response = sent => panic!("{response:?}"),
        () = until("the operation is executed", async || server.faults().unused().is_empty()) => {}
    }
    server.requests().of(CREATE).wait_for(2, LONG).await;
}

#[tokio::test]
async fn a_fault_hits_its_order_under_any_name_and_no_other() {
    let mut named = order_with_number("order-0001", "SB-SUCCESS-0001");
    named["externalOrderId"] = json!("A-17");
    for name in ["sb-success-0001", "order-0001", "A-17"] {
        let (server, api) = start_with_key().await;
        server.faults().on(CREATE).for_order(name).nth(1).reply(503);
        api.create_parcel(&order_with_number("order-0002", "SB-SUCCESS-0002")).await;
        assert_eq!(api.create(&named).await.status, 503, "{name}");
        api.create_parcel(&named).await;
        // Later requests can be matched by data that only the creation's request contained.
        server.faults().on(Operation::GetTracking).for_order(name).reply(418);
        assert_eq!(api.track("SB-SUCCESS-0002").await.status, 200);
        assert_eq!(api.track("SB-SUCCESS-0001").await.status, 418, "{name}");
        assert!(server.faults().unused().is_empty());
    }
}

#[tokio::test]
async fn a_body_searched_for_the_order_arrives_complete() {
    let (server, api) = start_with_key().await;
    server.faults().on_any().for_order("A-17").reply(503);
    let mut long = order("order-0001");
    long["receiver"]["address"]["line3"] = json!("x".repeat(100 * 1024));
    assert_eq!(api.create(&long).await.json()["warnings"][0]["field"], "receiver.address.line3");
    api.create_parcel(&order("order-0002")).await;
    let record = server.requests().of(CREATE).all().pop().unwrap();
    assert_eq!(record.request.json(), Some(order("order-0002")));
}
