//! POST /api/v1/orders/create.

use std::time::Duration;

use parcelo::Operation;
use serde_json::{Value, json};

use crate::{
    api::{Api, HttpResponse, order, order_with_number, send, with},
    embedded::start_with_key,
};

const CREATE: &str = Operation::CreateOrder.path();

#[tokio::test]
async fn an_order_becomes_a_labelled_parcel() {
    let (server, api) = start_with_key().await;
    let response = api.create(&order("order-0001")).await;
    let body = response.json();
    assert_eq!(response.status, 201, "{body}");
    assert_eq!((&body["success"], body.get("warnings")), (&json!(true), None), "{body}");
    let parcel = &body["parcel"];
    assert_eq!(parcel["status"], "LABEL_GENERATED");
    assert_eq!(parcel["createdAt"], "2026-01-05T08:00:00.000Z");
    assert!(parcel["id"].as_str().unwrap().starts_with("par_"));
    let number = parcel["trackingNumber"].as_str().unwrap();
    assert!(number.starts_with("SBEC") && number.len() == 17, "{number}");
    let label = parcel["labelUrl"].as_str().unwrap();
    assert!(label.starts_with(&format!("{}/files/{number}.pdf?sig=", server.url())), "{label}");
    assert!(Api::new("").get(label).await.bytes.starts_with(b"%PDF"), "the link needs no key");
}

#[tokio::test]
async fn an_order_is_read_as_it_was_accepted_even_after_a_void() {
    let (server, api) = start_with_key().await;
    let sent = order_with_number("order-0001", "SB-NORMAL-0001");
    api.create(&with(sent.clone(), "/reciever", json!({}))).await;
    let path = Operation::GetOrder.path_of("SB-NORMAL-0001");
    let read = api.get(&path).await.json();
    assert_eq!(read["data"]["parcelDetails"]["currency"], "USD", "{read}");
    for (field, value) in
        sent.as_object().unwrap().iter().filter(|(name, _)| *name != "parcelDetails")
    {
        assert_eq!(&read["data"][field], value, "{field}");
    }
    assert_eq!(read["data"].get("reciever"), None, "only what was accepted: {read}");
    api.void("SB-NORMAL-0001").await;
    assert_eq!(api.get(&path).await.json()["data"], read["data"]);
    let other = Api::with_key(server.url(), &server.key().account("other").issue());
    assert_eq!(other.get(&path).await.refusal(), (404, "PARCEL_NOT_FOUND"));
    let absent = Operation::GetOrder.path_of("SB-ABSENT-0001");
    assert_eq!(api.get(&absent).await.refusal(), (404, "PARCEL_NOT_FOUND"));
}

#[tokio::test]
async fn a_given_number_is_kept_and_warnings_are_returned() {
    let (_server, api) = start_with_key().await;
    let order = with(order_with_number("order-0001", "sb-Mixed-Case-1"), "/reciever", json!({}));
    let body = api.create(&order).await.json();
    assert_eq!(body["parcel"]["trackingNumber"], "sb-Mixed-Case-1");
    assert_eq!(body["warnings"][0]["code"], "UNKNOWN_FIELD");
    assert_eq!(body["warnings"][0]["field"], "reciever");
    assert_ne!(body["warnings"][0]["message"], body["warnings"][0]["message_es"]);
}

#[tokio::test]
async fn a_repeat_with_a_key_returns_the_first_response() {
    let (_server, api) = start_with_key().await;
    let first = api.create(&order("order-0001")).await;
    let again = api.create(&order("order-0001")).await;
    assert_eq!((first.status, again.status), (201, 200));
    assert_eq!(first.bytes, again.bytes);
    assert_eq!([&first, &again].map(|one| one.header("idempotent-replayed")), ["", "true"]);
    assert_ne!(first.header("x-request-id"), again.header("x-request-id"));
}

#[tokio::test]
async fn a_changed_value_conflicts_but_a_changed_spelling_does_not() {
    let (_server, api) = start_with_key().await;
    let first = api.create(&order("order-0001")).await;
    for same in [
        serde_json::to_string_pretty(&order("order-0001")).unwrap(),
        order("order-0001").to_string().replace("1.25", "1.250"),
        order("order-0001").to_string().replace("45.5", "4.55e1"),
        reversed(&order("order-0001")),
        with(order("order-0001"), "/externalOrderId", Value::Null).to_string(),
        with(order("order-0001"), "/receiver/email", Value::Null).to_string(),
    ] {
        let response = api.create_text(&same).await;
        assert_eq!((response.status, &response.bytes), (200, &first.bytes), "{same}");
    }
    for (path, value) in [
        ("/parcelDetails/declaredValue", json!(45.51)),
        ("/receiver/fullName", json!("Jose Angel Munoz")),
        ("/externalOrderId", json!("1001")),
        ("/sender/address/country", json!("CA")),
        ("/unknown", json!(false)),
        ("/parcelDetails/weightKg", json!("1.25")),
    ] {
        let response = api.create(&with(order("order-0001"), path, value)).await;
        assert_eq!(response.refusal(), (409, "IDEMPOTENCY_CONFLICT"), "{path}");
        let details = &response.json()["error"]["details"];
        assert_eq!(details["firstSeenAt"], "2026-01-05T08:00:00.000Z");
        assert_eq!(details["expiresAt"], "2026-01-06T08:00:00.000Z");
        assert_eq!(details["trackingNumber"], first.json()["parcel"]["trackingNumber"]);
    }
}

/// Returns the same object with its members reversed.
fn reversed(value: &Value) -> String {
    match value {
        Value::Object(members) => {
            let members: Vec<_> =
                members.iter().rev().map(|(k, v)| format!("{:?}: {}", k, reversed(v))).collect();
            format!("{{ {} }}", members.join(" ,\n"))
        }
        other => other.to_string(),
    }
}

#[tokio::test]
async fn the_key_may_be_in_the_header_or_in_the_body() {
    let (_server, api) = start_with_key().await;
    let mut keyless = order("order-0001");
    keyless.as_object_mut().unwrap().remove("idempotencyKey");
    let post = |body: &Value, key: &'static str| {
        let request = api.request("POST", CREATE).header("X-Idempotency-Key", key);
        send(request.header("content-type", "application/json").body(body.to_string()))
    };
    let first = post(&keyless, "order-0001").await;
    assert_eq!(first.status, 201, "{}", first.text());
    assert_eq!(post(&order("order-0001"), "order-0001").await.bytes, first.bytes);
    assert_eq!(api.create(&order("order-0001")).await.bytes, first.bytes);
    let other = post(&order("order-0001"), "order-0002").await;
    assert_eq!(other.faults(), ["idempotencyKey MISMATCH"]);
    assert_eq!(api.create(&keyless).await.faults(), ["idempotencyKey REQUIRED"]);
    assert_eq!(post(&keyless, "short").await.faults()[0].split(' ').next(), Some("idempotencyKey"));
}

#[tokio::test]
async fn an_unreadable_or_repeated_key_header_is_refused() {
    let (_server, api) = start_with_key().await;
    let mut keyless = order("");
    keyless.as_object_mut().unwrap().remove("idempotencyKey");
    let post = |body: &Value, keys: &[&[u8]]| {
        let mut request = api.request("POST", CREATE).header("content-type", "application/json");
        for key in keys {
            request = request.header("X-Idempotency-Key", *key);
        }
        send(request.body(body.to_string()))
    };
    let no_text: &[&[u8]] = &[b"order-\xff\xff"];
    let two: &[&[u8]] = &[b"order-0001", b"order-0002"];
    for (keys, fault) in [(no_text, "INVALID_FORMAT"), (two, "MISMATCH")] {
        let alone = post(&keyless, keys).await;
        assert_eq!(alone.faults(), [format!("idempotencyKey {fault}")]);
        let beside = post(&order("order-0001"), keys).await;
        assert_eq!(beside.faults(), ["idempotencyKey MISMATCH"]);
    }
}

#[tokio::test]
async fn a_key_expires_after_24_hours() {
    let (server, api) = start_with_key().await;
    let first = api.create_parcel(&order("order-0001")).await;
    server.clock().advance(Duration::from_secs(24 * 3600 - 1)).await;
    assert_eq!(api.create(&order("order-0001")).await.status, 200);
    server.clock().advance(Duration::from_secs(1)).await;
    assert_ne!(api.create_parcel(&order("order-0001")).await, first);
}

#[tokio::test]
async fn each_api_key_has_its_own_idempotency_keys() {
    let (server, api) = start_with_key().await;
    let other = Api::with_key(server.url(), &server.key().issue());
    let (one, two) = (
        api.create_parcel(&order("order-0001")).await,
        other.create_parcel(&order("order-0001")).await,
    );
    assert_ne!(one, two);
}

#[tokio::test]
async fn a_refused_request_leaves_its_key_free() {
    let (_server, api) = start_with_key().await;
    let wrong = with(order("order-0001"), "/receiver/address/zipCode", json!("090101"));
    assert_eq!(api.create(&wrong).await.faults(), ["receiver.address.zipCode MISMATCH"]);
    assert_eq!(api.create(&order("order-0001")).await.status, 201);
}

#[tokio::test(flavor = "multi_thread")]
async fn one_of_64_concurrent_identical_orders_is_created() {
    let (_server, api) = start_with_key().await;
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..64 {
        let api = api.clone();
        tasks.spawn(async move { api.create(&order("order-0001")).await });
    }
    let responses: Vec<HttpResponse> = tasks.join_all().await;
    assert_eq!(responses.iter().filter(|response| response.status == 201).count(), 1);
    assert_eq!(responses.iter().filter(|response| response.status == 200).count(), 63);
    assert!(responses.iter().all(|response| response.bytes == responses[0].bytes));
}

#[tokio::test]
async fn a_tracking_number_is_unique_among_accounts_in_any_case() {
    let (server, api) = start_with_key().await;
    api.create_parcel(&order_with_number("order-0001", "SB-SUCCESS-0001")).await;
    let stranger = Api::with_key(server.url(), &server.key().account("other").issue());
    for api in [api, stranger] {
        let response = api.create(&order_with_number("order-0002", "sb-success-0001")).await;
        assert_eq!(response.refusal(), (409, "PARCEL_DUPLICATE_TRACKING"));
    }
}

#[tokio::test]
async fn a_forbidden_country_is_refused_before_other_faults() {
    let (server, _) = start_with_key().await;
    let api = Api::with_key(server.url(), &server.key().countries(["MX", "CO"]).issue());
    let incomplete = json!({ "receiver": { "address": { "country": "EC" } } });
    for body in [order("order-0001"), incomplete] {
        let response = api.create(&body).await;
        assert_eq!(response.refusal(), (403, "AUTH_COUNTRY_NOT_ALLOWED"));
        let details = response.json()["error"]["details"].clone();
        assert_eq!(details, json!({ "country": "EC", "allowedCountries": ["MX", "CO"] }));
    }
    let nowhere = with(order("order-0001"), "/receiver/address/country", json!("XX"));
    assert!(api.create(&nowhere).await.faults()[0].starts_with("receiver.address.country"));
}

#[tokio::test]
async fn all_faults_of_a_request_are_reported_at_once_in_order() {
    let (_server, api) = start_with_key().await;
    let mut wrong = order_with_number("order-0001", "EC7K2M9QX4T8WD0");
    wrong["sender"]["phone"] = json!("305 555 0100");
    wrong["receiver"].as_object_mut().unwrap().remove("nationalId");
    wrong["receiver"]["address"]["zipCode"] = json!("090101");
    wrong["parcelDetails"] = json!({ "weightKg": -1 });
    wrong["products"] = json!([{ "quantity": 0, "unitFobValue": 1 }]);
    let faults = api.create(&wrong).await.faults();
    let fields: Vec<_> = faults.iter().map(|fault| fault.split(' ').next().unwrap()).collect();
    assert_eq!(
        fields,
        [
            "trackingNumber",
            "sender.phone",
            "receiver.nationalId",
            "receiver.address.zipCode",
            "parcelDetails.weightKg",
            "parcelDetails.declaredValue",
            "products[0].quantity",
        ]
    );
}

#[tokio::test]
async fn a_body_that_is_not_a_json_object_is_refused() {
    let (_server, api) = start_with_key().await;
    for body in
        ["", "{", "[]", "null", "\"text\"", "{\"a\":1,\"a\":2}", "{\"a\":NaN}", "\u{0}", "{}{}"]
    {
        assert_eq!(api.create_text(body).await.faults(), ["body MALFORMED_JSON"], "{body}");
    }
    let deep = "[".repeat(100_000);
    assert_eq!(api.create_text(&format!("{{\"a\":{deep}")).await.faults(), ["body MALFORMED_JSON"]);
    let request = api.request("POST", CREATE).header("content-type", "application/json");
    assert_eq!(send(request.body(vec![b'{', 0xff, b'}'])).await.faults(), ["body MALFORMED_JSON"]);
}

#[tokio::test]
async fn a_body_must_be_json_and_at_most_256_kib() {
    let (_server, api) = start_with_key().await;
    let post = |kind: &'static str, body: String| {
        send(api.request("POST", CREATE).header("content-type", kind).body(body))
    };
    let text = order("order-0001").to_string();
    assert_eq!(post("text/plain", text.clone()).await.refusal(), (415, "UNSUPPORTED_MEDIA_TYPE"));
    assert_eq!(post("application/json; charset=utf-8", text).await.status, 201);
    let large = format!("{{\"a\":\"{}\"}}", "x".repeat(256 * 1024));
    assert_eq!(post("text/plain", large.clone()).await.refusal(), (413, "PAYLOAD_TOO_LARGE"));
    let chunks = futures_util::stream::iter([Ok::<_, std::io::Error>(large.clone()), Ok(large)]);
    let request = api.request("POST", CREATE).header("content-type", "application/json");
    let chunked = send(request.body(reqwest::Body::wrap_stream(chunks))).await;
    assert_eq!(chunked.refusal(), (413, "PAYLOAD_TOO_LARGE"));
}
