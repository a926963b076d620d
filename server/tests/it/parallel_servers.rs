//! Two hundred independent mock servers in one process, as a large test suite would start them.

use std::{sync::Arc, time::Duration};

use chrono::{DateTime, Utc};
use parcelo::{Operation, ParcelStatus, TrackingNumber};
use parcelo_server::internals::SCENARIOS;
use parcelo_server::mock::{Clock, MockServer};
use reqwest::RequestBuilder;
use serde_json::{Value, json};
use tokio::{sync::Barrier, task::JoinSet};

use crate::api::{Api, order, order_with_number, send, try_send};

const SERVERS: usize = 200;

/// Returns minutes that differ between servers.
fn minutes(index: usize) -> i64 {
    i64::try_from(index).unwrap()
}

fn start_time(index: usize) -> DateTime<Utc> {
    let first: DateTime<Utc> = "2026-01-05T08:00:00Z".parse().unwrap();
    first + chrono::Duration::minutes(minutes(index))
}

async fn server(index: usize) -> MockServer {
    let clock = Clock::frozen(&start_time(index).to_rfc3339());
    let seed = u64::try_from(index).unwrap();
    crate::embedded::in_memory("two hundred servers would need 1,400 connections")
        .clock(clock)
        .seed(seed)
        .verify_on_drop()
        .start()
        .await
}

/// Returns the minutes from creation to each step of the journey that is due within `within` minutes.
fn due_steps(journey: usize, within: i64) -> Vec<i64> {
    let steps = SCENARIOS[journey].steps.iter().map(|(minutes, _)| *minutes);
    steps.filter(|minutes| *minutes <= within).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
#[ignore = "long: `.ci/prove proofs` runs it"]
async fn two_hundred_parallel_tests_do_not_affect_each_other() {
    let (http, all_there) = (Api::new(""), Arc::new(Barrier::new(SERVERS)));
    let mut tests = JoinSet::new();
    for index in 0..SERVERS {
        tests.spawn(stateful_test(index, http.clone(), Arc::clone(&all_there)));
    }
    while let Some(test) = tests.join_next().await {
        test.unwrap();
    }
}

fn request(api: &Api, operation: Operation, body: &Value) -> RequestBuilder {
    let request = api.request("POST", operation.path()).header("content-type", "application/json");
    request.body(body.to_string())
}

/// Uses a server as a test suite does: a response is lost, time passes, parcels move, and everything is undone.
async fn stateful_test(index: usize, http: Api, all_there: Arc<Barrier>) {
    let server = server(index).await;
    let api = http.at(server.url(), &server.key().issue());
    server.faults().on(Operation::CreateOrder).nth(1).after_commit().reset_connection();
    all_there.wait().await;
    let first = request(&api, Operation::CreateOrder, &order("order-0001"));
    try_send(first).await.expect_err("the response is lost");
    let repeated = api.create(&order("order-0001")).await;
    assert_eq!(repeated.status, 200, "server {index}: {}", repeated.text());
    let plain = repeated.json()["parcel"]["trackingNumber"].as_str().unwrap().to_owned();
    let journey = index % SCENARIOS.len();
    let travels = format!("{}0001", SCENARIOS[journey].prefix);
    api.create_parcel(&order_with_number("order-0002", &travels)).await;
    let before = server.snapshot().await;
    let moved = advance_and_check(index, &server, &api, &plain).await;
    server.restore(&before).await;
    assert_eq!(server.clock().now(), start_time(index));
    assert_eq!(advance_and_check(index, &server, &api, &plain).await, moved, "server {index}");
    server.requests().of(Operation::CreateOrder).assert_count(3);
    server.assert_exactly_once();
}

/// Advances the clock, delivers one parcel, and returns the list after that.
async fn advance_and_check(index: usize, server: &MockServer, api: &Api, plain: &str) -> Vec<u8> {
    let within = minutes(index) % 80;
    let fired = server.clock().advance(Duration::from_secs(within.unsigned_abs() * 60)).await;
    assert_eq!(fired.len(), due_steps(index % SCENARIOS.len(), within).len(), "server {index}");
    let number = TrackingNumber::parse(plain).unwrap();
    let way = server.put_status(&number, ParcelStatus::Delivered).await.unwrap();
    assert_eq!(way.len(), 2);
    let void = json!({ "idempotencyKey": "void-0001", "trackingNumbers": [plain] });
    let voided = send(request(api, Operation::VoidOrders, &void)).await;
    assert_eq!(voided.status, 409, "server {index}");
    let list = api.get(Operation::ListParcels.path()).await;
    assert_eq!(list.json()["meta"]["total"], 2, "server {index}: {}", list.text());
    let mut list = list.json();
    list["meta"]["requestId"].take();
    list.to_string().into_bytes()
}
