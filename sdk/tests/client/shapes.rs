//! Guarantees for integrators: unknown paths, headers, errors, and streams that can be moved anywhere.

use std::{collections::BTreeSet, fmt::Display, hash::Hash, str::FromStr};

use futures_util::StreamExt;
use parcelo::{
    Awb, Client, CountryCode, CurrencyCode, Decimal, Error, ErrorKind, IdempotencyKey, NextStep,
    TrackingNumber, transport::Phase,
};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::json;

use crate::script::{Script, Step, answer, key, refusal};

#[derive(Debug, Deserialize)]
struct Rate {
    price: u32,
}

#[tokio::test(start_paused = true)]
async fn a_path_of_tomorrow_is_read_like_everything_else() {
    let lost = Step::Fail(Phase::MaybeSent);
    let (client, script) = Script::client([lost, answer(200, r#"{"price": 7, "new": 1}"#)]);
    let rate = client.get::<Rate>("/api/v2/rates?to=EC").await.unwrap();
    assert_eq!((rate.price, rate.meta().attempts), (7, 2));
    let sent = &script.sent()[1];
    assert_eq!((sent.method().as_str(), sent.uri().path()), ("GET", "/api/v2/rates"));
    assert_eq!(sent.headers()["x-api-key"], key().secret());
}

#[tokio::test(start_paused = true)]
async fn a_path_of_tomorrow_fails_as_everything_else_does() {
    let steps = [answer(404, refusal("NOT_FOUND")), answer(200, r#"{"price": "CANARY"}"#)];
    let (client, _) = Script::client(steps);
    for kind in [ErrorKind::NotFound, ErrorKind::Decode] {
        let error = client.get::<Rate>("/api/v2/rates").await.unwrap_err();
        assert_eq!((error.kind(), error.may_have_executed()), (kind, false));
        assert!(!format!("{error:?}{error}").contains("CANARY"), "{error:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_path_of_tomorrow_sends_the_key_to_no_other_origin() {
    for path in ["", "rates", "//evil.example/", "https://evil.example/", "@evil.example/", "/../x"]
    {
        let (client, script) = Script::client([answer(200, "{}")]);
        let error = client.get::<serde_json::Value>(path).await.unwrap_err();
        assert_eq!((error.kind(), script.sent().len()), (ErrorKind::Config, 0), "{path:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_s_headers_are_kept_and_debug_hides_some() {
    let step = answer(200, r#"{"price": 7}"#)
        .with("content-type", "application/json")
        .with("x-request-id", "req_1")
        .with("set-cookie", "session=CANARY")
        .with("x-of-a-proxy", "CANARY");
    let (client, _) = Script::client([step]);
    let rate = client.get::<Rate>("/api/v2/rates").await.unwrap();
    assert_eq!(rate.meta().headers["set-cookie"], "session=CANARY");
    let shown = format!("{rate:?}");
    assert!(shown.contains("application/json") && shown.contains("req_1"), "{shown}");
    assert!(shown.contains("set-cookie") && !shown.contains("CANARY"), "{shown}");
}

fn goes_anywhere<T: Send + 'static>(_: &T) {}

#[tokio::test(start_paused = true)]
async fn a_list_outlives_its_client_in_another_task() {
    let page = r#"{"success": true, "data": [], "meta": {"page": 1, "limit": 100, "total": 0,
        "totalPages": 0, "requestId": "req_1"}}"#;
    let (client, _) = Script::client([answer(200, page), answer(200, page)]);
    let (mut parcels, list) = (client.parcels().list().stream(), client.parcels().list());
    goes_anywhere(&list);
    drop::<Client>(client);
    let read = tokio::spawn(async move { parcels.next().await.is_none() });
    assert!(read.await.unwrap());
    assert_eq!(tokio::spawn(list.into_future()).await.unwrap().unwrap().meta.total, 0);
}

#[tokio::test(start_paused = true)]
async fn a_list_that_always_changes_ends_with_an_error() {
    // One millisecond has more rows than fit on a page, and rows enter and leave the filter all the time.
    let page = |total: u64| {
        let row = json!({"id": "par_1", "trackingNumber": "SB-SUCCESS-0001", "status": "VOIDED",
            "statusName": "Voided", "destinationCountry": "EC",
            "createdAt": "2026-01-10T15:05:00.000Z", "updatedAt": "2026-01-10T15:05:00.000Z"});
        let meta = json!({"page": 1, "limit": 1, "total": total, "totalPages": 2});
        answer(200, json!({"success": true, "data": [row], "meta": meta}).to_string())
    };
    let (client, script) = Script::client((2..1000).map(page));
    let mut parcels: Vec<_> = client.parcels().list().stream().collect().await;
    let error = parcels.pop().unwrap().unwrap_err();
    assert_eq!((error.kind(), parcels.len()), (ErrorKind::Conflict, 1));
    assert!(error.to_string().contains("changes"), "{error}");
    assert!(matches!(error.next_step(), NextStep::Resend { .. }));
    assert!(script.sent().len() < 50, "{}", script.sent().len());
}

#[tokio::test(start_paused = true)]
async fn an_error_can_be_kept_and_handed_on() {
    let (client, _) = Script::client([answer(404, refusal("NOT_FOUND"))]);
    let error: Error = client.health().await.unwrap_err();
    goes_anywhere(&error);
    assert_eq!(error.clone().to_string(), error.to_string());
    assert_eq!(size_of::<Error>(), 8);
}

/// Checks the traits of every newtype but a secret.
fn is_a_value<T>(text: &str)
where
    T: Display + FromStr + TryFrom<String> + Into<String> + Ord + Hash + Clone,
    T: Serialize + DeserializeOwned,
    <T as FromStr>::Err: std::fmt::Debug,
    <T as TryFrom<String>>::Error: std::fmt::Debug,
{
    let parsed: T = text.parse().unwrap();
    assert_eq!(parsed.to_string(), text);
    let json = serde_json::to_value(&parsed).unwrap();
    assert_eq!(json, text);
    let others = [T::try_from(text.to_owned()).unwrap(), serde_json::from_value(json).unwrap()];
    assert_eq!(BTreeSet::from(others).len(), 1);
    assert_eq!(Into::<String>::into(parsed), text);
}

#[test]
fn every_newtype_is_read_written_sorted_and_shown() {
    is_a_value::<TrackingNumber>("SB-SUCCESS-0001");
    is_a_value::<IdempotencyKey>("order-0001");
    is_a_value::<Awb>("176-12345675");
    is_a_value::<CountryCode>("EC");
    is_a_value::<CurrencyCode>("USD");
    is_a_value::<parcelo::model::ParcelId>("par_1");
    is_a_value::<parcelo::model::ManifestId>("man_1");
    is_a_value::<parcelo::model::EventId>("evt_1");
    is_a_value::<parcelo::model::RequestId>("req_1");
    let price: Decimal = serde_json::from_str("\"19.99\"").unwrap();
    assert_eq!(serde_json::to_value(price).unwrap(), "19.99");
}
