//! The mock server's log of requests, as a test queries it.

use std::time::Duration;

use parcelo::{ErrorCode, Operation};
use parcelo_server::mock::RecordedRequest;

use crate::{
    api::{Api, order, order_with_number, send, try_send},
    waiting::{LONG, until},
};

const CREATE: Operation = Operation::CreateOrder;
const SECOND: Duration = Duration::from_secs(1);

#[tokio::test]
async fn a_record_has_the_request_and_its_response() {
    let server = crate::embedded::start().await;
    let key = server.key().issue();
    let api = Api::with_key(server.url(), &key);
    let sent = order_with_number("order-0001", "SB-SUCCESS-0001");
    let response = api.create(&sent).await;
    server.clock().advance(SECOND).await;
    let label = api.get("/api/v1/labels/SB-SUCCESS-0001/download").await;
    let _ = Api::new(server.url()).get("/api/v1/nowhere").await;

    let [create, download, stray] = &server.requests().all()[..] else { panic!("three") };
    assert_eq!(create.at.to_rfc3339(), "2026-01-05T08:00:00+00:00");
    assert_eq!((create.operation, create.method.as_str()), (Some(CREATE), "POST"));
    assert_eq!((create.path.as_str(), &create.parameter), (CREATE.path(), &None));
    let last = &key.secret()[key.secret().len() - 4..];
    assert_eq!(create.api_key, Some(format!("pk_test_…{last}")));
    assert_eq!(create.idempotency_key.as_deref(), Some("order-0001"));
    assert_eq!((create.request.json(), create.status), (Some(sent), Some(201)));
    assert_eq!((create.answer.json(), create.faults.len()), (Some(response.json()), 0));

    assert_eq!((download.at - create.at).num_seconds(), 1);
    assert_eq!(download.path, "/api/v1/labels/{trackingNumber}/download");
    assert_eq!(download.parameter.as_deref(), Some("SB-SUCCESS-0001"));
    assert_eq!((download.answer.json(), download.answer.len()), (None, label.bytes.len()));
    assert_eq!((stray.operation, stray.path.as_str(), stray.status), (None, "", Some(401)));
    assert_eq!(stray.api_key, None);
}

#[tokio::test]
async fn a_record_reads_json_in_any_layout() {
    let (server, api) = crate::embedded::start_with_key().await;
    let sent = order_with_number("order-0001", "SB-SUCCESS-0001");
    let laid_out = format!("\n\t {}\r\n", serde_json::to_string_pretty(&sent).unwrap());
    let request = create_request(&api).body(laid_out);
    assert_eq!(try_send(request).await.unwrap().status, 201);
    let record = server.requests().all().remove(0);
    assert_eq!(record.idempotency_key.as_deref(), Some("order-0001"));
    assert_eq!(record.request.json(), Some(sent));
}

#[tokio::test]
async fn requests_are_chosen_by_operation_and_key() {
    let server = crate::embedded::start().await;
    let [one, two] = [(); 2].map(|()| server.key().issue());
    for (key, name) in [(&one, "order-0001"), (&one, "order-0002"), (&two, "order-0003")] {
        Api::with_key(server.url(), key).create_parcel(&order(name)).await;
    }
    Api::with_key(server.url(), &two).get(Operation::Health.path()).await;
    let requests = server.requests();
    requests.assert_count(4);
    requests.clone().of(CREATE).assert_count(3);
    requests.clone().with_key(&two).assert_count(2);
    requests.clone().of(CREATE).with_key(&one).assert_count(2);
    requests.of(Operation::VoidOrders).assert_count(0);
}

#[tokio::test]
async fn requests_are_chosen_by_headers_and_bodies() {
    let (server, api) = crate::embedded::start_with_key().await;
    let heavy = |request: &RecordedRequest| {
        request.request.json().is_some_and(|order| order["parcelDetails"]["weightKg"] == 9.5)
    };
    server.requests().with_header("x-shop", "a").matching(heavy).expect(1);
    for (shop, key, weight) in
        [("a", "order-0001", 1.5), ("a", "order-0002", 9.5), ("b", "order-0003", 9.5)]
    {
        let mut body = order(key);
        body["parcelDetails"]["weightKg"] = serde_json::json!(weight);
        let request = api.request("POST", CREATE.path()).header("content-type", "application/json");
        send(request.header("X-Shop", shop).body(body.to_string())).await;
    }
    let requests = server.requests();
    requests.clone().with_header("X-SHOP", "a").assert_count(2);
    requests.clone().with_header("x-shop", "A").assert_count(0);
    requests.clone().matching(heavy).assert_count(2);
    requests.clone().with_header("x-shop", "b").matching(heavy).of(CREATE).wait_for(1, LONG).await;
    requests
        .matching(heavy)
        .matching(|request| request.header("x-shop") == Some("b"))
        .assert_count(1);
    server.verify();
}

#[tokio::test]
async fn a_key_is_shortened_wherever_it_stands() {
    let server = crate::embedded::start().await;
    let (key, carrier) = (server.key().issue(), server.carrier_key());
    let key = key.secret();
    let api = Api::new(server.url()).key(key);
    let request = api.request("POST", CREATE.path()).header("content-type", "application/json");
    let request =
        request.header("x-other", carrier.secret()).header("referer", format!("/?key={key}"));
    let body = serde_json::json!({ "note": key }).to_string();
    send(request.header("idempotency-key", key).body(body)).await;
    api.track(key).await;
    let records = server.requests().all();
    let shown = serde_json::to_string(&records).unwrap();
    assert!(!shown.contains(&key[8..]) && !shown.contains(&carrier.secret()[8..]), "{shown}");
    let short = format!("pk_test_…{}", &key[key.len() - 4..]);
    assert_eq!(records[0].request.json().unwrap()["note"], short.as_str());
    assert_eq!(records[1].parameter.as_deref(), Some(short.as_str()));
}

#[tokio::test]
#[should_panic(
    expected = "expected 2 requests of any operation with x-shop: a matching a predicate, got 0"
)]
async fn an_unmet_expectation_names_its_conditions() {
    let server = crate::embedded::start().await;
    server.requests().with_header("x-shop", "a").matching(|_| true).expect(2);
}

#[tokio::test]
async fn a_record_has_the_headers_without_credentials() {
    let server = crate::embedded::start().await;
    let key = server.key().issue();
    let request = Api::with_key(server.url(), &key).request("GET", Operation::Health.path());
    let request = request.header("X-Tag", "one").header("x-tag", "two");
    let request = request.header("authorization", "Bearer CANARY").header("cookie", "s=CANARY");
    send(request.header("x-carrier-key", "CANARY").header("x-buyer", "MARIA")).await;
    let record = server.requests().all().remove(0);
    assert_eq!(record.header("X-TAG"), Some("one, two"));
    for hidden in ["authorization", "cookie", "x-carrier-key"] {
        assert_eq!(record.header(hidden), Some("…"), "{hidden}");
    }
    assert_eq!(record.header("x-api-key"), record.api_key.as_deref());
    let all: Vec<_> = record.headers().map(|(name, value)| format!("{name}: {value}")).collect();
    let all = all.join("\n");
    assert!(all.contains("x-buyer: MARIA\n") && !all.contains("CANARY"), "{all}");
    assert!(!all.contains(&key.secret()[8..30]), "{all}");
    assert!(!format!("{record:?}").contains("MARIA"), "a header may be personal data");
}

#[tokio::test]
async fn requests_about_an_order_are_found_by_each_of_its_ids() {
    let (server, api) = crate::embedded::start_with_key().await;
    let mut named = order("order-0001");
    named["externalOrderId"] = serde_json::json!("A-17");
    let number = api.create_parcel(&named).await;
    api.create_parcel(&order("order-0002")).await;
    api.track(&number).await;
    api.get("/api/v1/parcels?externalOrderId=A-17").await;
    api.get(&format!("/api/v1/labels/{number}/download")).await;
    api.get("/api/v1/parcels").await;
    for name in ["order-0001", "A-17", &number, &number.to_lowercase()] {
        server.requests().for_order(name).assert_count(4);
        server.requests().of(CREATE).for_order(name).assert_count(1);
    }
    for name in ["order-0003", "a-17", ""] {
        server.requests().for_order(name).assert_count(0);
    }
    let shown = format!("{:?}", server.requests().for_order("A-17").all());
    assert!(!shown.contains("A-17"), "an id may be someone's: {shown}");
}

#[tokio::test]
#[should_panic(expected = "expected 2 requests, got 1:\n  POST /api/v1/orders/create (pk_test_")]
async fn a_wrong_count_fails_and_lists_the_requests() {
    let server = crate::embedded::start().await;
    Api::with_key(server.url(), &server.key().issue()).create_parcel(&order("order-0001")).await;
    server.requests().of(CREATE).assert_count(2);
}

#[tokio::test]
async fn waiting_ends_with_the_expected_request() {
    let (server, api) = crate::embedded::start_with_key().await;
    let (waited, ()) = tokio::join!(server.requests().of(CREATE).wait_for(2, LONG), async {
        api.create_parcel(&order("order-0001")).await;
        api.get(Operation::Health.path()).await;
        api.create_parcel(&order("order-0002")).await;
    });
    assert_eq!(waited.len(), 2);
}

#[tokio::test]
#[should_panic(expected = "expected 1 requests within 1ms, got 0")]
async fn waiting_for_a_request_that_never_comes_fails() {
    crate::embedded::start().await.requests().wait_for(1, Duration::from_millis(1)).await;
}

fn create_request(api: &Api) -> reqwest::RequestBuilder {
    let request = api.request("POST", CREATE.path()).header("content-type", "application/json");
    request.body(order("order-0001").to_string())
}

#[tokio::test]
async fn a_record_names_its_faults_and_a_lost_response() {
    let (server, api) = crate::embedded::start_with_key().await;
    let create = || server.faults().on(CREATE);
    create().nth(1).error(ErrorCode::InternalError);
    create().nth(2).close();
    create().nth(3).after_commit().reset_connection();
    create().nth(4).malformed_json();
    for _ in 0..4 {
        let request = create_request(&api);
        let _ = try_send(request).await;
    }
    let summary =
        |one: &RecordedRequest| (one.status, one.faults.join("; "), one.answer.json().is_some());
    let fault = |text: &str| format!("CreateOrder no. {text}");
    let expected = [
        (Some(500), fault("1: INTERNAL_ERROR"), true),
        (None, fault("2: connection closed"), false),
        (Some(201), fault("3 after commit: connection reset"), true),
        (Some(200), fault("4: malformed JSON"), true),
    ];
    assert_eq!(server.requests().all().iter().map(summary).collect::<Vec<_>>(), expected);
    let bodies = server.requests().all();
    assert!(bodies.iter().all(|one| one.request.json() == Some(order("order-0001"))));
}

#[tokio::test]
async fn an_abandoned_request_is_recorded_without_a_response() {
    let server = crate::embedded::start().await;
    server.faults().on(CREATE).latency(SECOND * 600);
    let api = Api::with_key(server.url(), &server.key().issue());
    tokio::select! {
        sent = try_send(create_request(&api)) => panic!("{:?}", sent.map(|response| response.status)),
        () = until("it has arrived", async || server.faults().unused().is_empty()) => {}
    }
    let all = server.requests().of(CREATE).wait_for(1, LONG).await;
    assert_eq!((all[0].status, all[0].faults.len()), (None, 1));
}

#[tokio::test]
async fn the_log_keeps_the_newest_and_can_be_turned_off() {
    for (limit, kept) in [(0, 0), (2, 2), (9, 3)] {
        let server = crate::embedded::builder().request_log(limit).start().await;
        let api = Api::with_key(server.url(), &server.key().issue());
        for name in ["order-0001", "order-0002", "order-0003"] {
            api.create_parcel(&order(name)).await;
        }
        server.requests().assert_count(kept);
        let newest = server.requests().all().pop().map(|one| one.idempotency_key.unwrap());
        assert!(newest.is_none_or(|key| key == "order-0003"));
    }
}

#[tokio::test]
async fn the_debug_output_of_a_record_has_no_personal_data() {
    let server = crate::embedded::start().await;
    let key = server.key().issue();
    Api::with_key(server.url(), &key).create_parcel(&order("order-0001")).await;
    let shown = format!("{:?}", server.requests().all());
    for secret in ["Muñoz", "Amazonas", "1714307103", &key.secret()[8..30]] {
        assert!(!shown.contains(secret), "{shown}");
    }
}
