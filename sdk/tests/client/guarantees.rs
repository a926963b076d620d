//! Guarantees for integrators: unknown paths are handled like any other, errors and streams can be sent to other
//! threads, and identifiers are values.

use std::{collections::HashSet, fmt::Display, hash::Hash, str::FromStr};

use futures_util::StreamExt;
use parcelo::{
    Awb, Client, CountryCode, CurrencyCode, Decimal, Error, ErrorKind, IdempotencyKey, NextStep,
    TrackingNumber, transport::Phase,
};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::json;

use crate::{
    scripted_transport::{ScriptedTransport, Step, key, refusal, response},
    unknown_values::parcel,
};

#[derive(Debug, Deserialize)]
struct Rate {
    price: u32,
}

#[tokio::test(start_paused = true)]
async fn an_unknown_path_is_read_like_any_other() {
    let lost = Step::Fail(Phase::MaybeSent);
    let (client, script) =
        ScriptedTransport::client([lost, response(200, r#"{"price": 7, "new": 1}"#)]);
    let rate = client.get::<Rate>("/api/v2/rates?to=EC").await.unwrap();
    assert_eq!((rate.price, rate.meta().attempts), (7, 2));
    let sent = &script.sent_requests()[1];
    assert_eq!((sent.method().as_str(), sent.uri().path()), ("GET", "/api/v2/rates"));
    assert_eq!(sent.headers()["x-api-key"], key().secret());
}

#[tokio::test(start_paused = true)]
async fn an_unknown_path_fails_like_any_other() {
    let steps = [response(404, refusal("NOT_FOUND")), response(200, r#"{"price": "CANARY"}"#)];
    let (client, _) = ScriptedTransport::client(steps);
    for kind in [ErrorKind::NotFound, ErrorKind::Decode] {
        let error = client.get::<Rate>("/api/v2/rates").await.unwrap_err();
        assert_eq!((error.kind(), error.may_have_executed()), (kind, false));
        assert!(!format!("{error:?}{error}").contains("CANARY"), "{error:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn reply_headers_are_kept_and_debug_hides_some_values() {
    let step = response(200, r#"{"price": 7}"#)
        .with_header("content-type", "application/json")
        .with_header("x-request-id", "req_1")
        .with_header("set-cookie", "session=CANARY")
        .with_header("x-of-a-proxy", "CANARY");
    let (client, _) = ScriptedTransport::client([step]);
    let rate = client.get::<Rate>("/api/v2/rates").await.unwrap();
    assert_eq!(rate.meta().headers["set-cookie"], "session=CANARY");
    let shown = format!("{rate:?}");
    assert!(shown.contains("application/json") && shown.contains("req_1"), "{shown}");
    assert!(shown.contains("set-cookie") && !shown.contains("CANARY"), "{shown}");
}

fn assert_send<T: Send + 'static>(_: &T) {}

#[tokio::test(start_paused = true)]
async fn a_list_outlives_its_client_in_another_task() {
    let page = r#"{"success": true, "data": [], "meta": {"page": 1, "limit": 100, "total": 0,
        "totalPages": 0, "requestId": "req_1"}}"#;
    let (client, _) = ScriptedTransport::client([response(200, page), response(200, page)]);
    let (mut parcels, list) = (client.parcels().list().stream(), client.parcels().list());
    assert_send(&list);
    drop::<Client>(client);
    let read = tokio::spawn(async move { parcels.next().await.is_none() });
    assert!(read.await.unwrap());
    assert_eq!(tokio::spawn(list.into_future()).await.unwrap().unwrap().meta.total, 0);
}

#[tokio::test(start_paused = true)]
async fn a_list_that_keeps_changing_ends_with_an_error() {
    // One millisecond has more rows than fit on a page, and rows enter and leave the filter all the time.
    let page = |total: u64| {
        let meta = json!({"page": 1, "limit": 1, "total": total, "totalPages": 2});
        let rows = [parcel("SB-SUCCESS-0001")];
        response(200, json!({"success": true, "data": rows, "meta": meta}).to_string())
    };
    let (client, script) = ScriptedTransport::client((2..1000).map(page));
    let mut parcels: Vec<_> = client.parcels().list().stream().collect().await;
    let error = parcels.pop().unwrap().unwrap_err();
    assert_eq!((error.kind(), parcels.len()), (ErrorKind::Conflict, 1));
    assert!(error.to_string().contains("changes"), "{error}");
    assert!(matches!(error.next_step(), NextStep::Resend { .. }));
    assert!(script.sent_requests().len() < 50, "{}", script.sent_requests().len());
}

#[tokio::test(start_paused = true)]
async fn an_error_can_be_stored_and_sent_between_threads() {
    let (client, _) = ScriptedTransport::client([response(404, refusal("NOT_FOUND"))]);
    let error: Error = client.health().await.unwrap_err();
    assert_send(&error);
    assert_eq!(error.clone().to_string(), error.to_string());
    assert_eq!(size_of::<Error>(), size_of::<usize>(), "one pointer");
}

/// Checks the traits of a newtype that is not a secret.
fn assert_value_type<T>(text: &str)
where
    T: Display + FromStr + Eq + Hash + Clone + Serialize + DeserializeOwned,
    <T as FromStr>::Err: std::fmt::Debug,
{
    let parsed: T = text.parse().unwrap();
    assert_eq!(parsed.to_string(), text);
    let json = serde_json::to_value(&parsed).unwrap();
    assert_eq!(json, text);
    let read = serde_json::from_value(json).unwrap();
    assert_eq!(HashSet::from([parsed, read]).len(), 1);
}

#[test]
fn every_newtype_can_be_parsed_serialized_and_a_key_of_a_map() {
    assert_value_type::<TrackingNumber>("SB-SUCCESS-0001");
    assert_value_type::<IdempotencyKey>("order-0001");
    assert_value_type::<Awb>("176-12345675");
    assert_value_type::<CountryCode>("EC");
    assert_value_type::<CurrencyCode>("USD");
    assert_value_type::<parcelo::model::ParcelId>("par_1");
    assert_value_type::<parcelo::model::ManifestId>("man_1");
    assert_value_type::<parcelo::model::EventId>("evt_1");
    assert_value_type::<parcelo::model::RequestId>("req_1");
    let price: Decimal = serde_json::from_str("\"19.99\"").unwrap();
    assert_eq!(serde_json::to_value(price).unwrap(), "19.99");
}
