//! Rotation of an API key's secret: the key stays the same, so orders that were sent with the old secret are not
//! created again.

use std::time::Duration;

use parcelo::ApiKey;
use serde_json::{Value, json};

use crate::{
    api::{Api, HttpResponse, order, send, with},
    running::TestSetup,
    waiting::until,
};

const HEALTH: &str = "/api/v1/health";
const HOUR: Duration = Duration::from_secs(3_600);
const DAY: Duration = Duration::from_secs(86_400);

async fn parcels(api: &Api) -> Value {
    api.get("/api/v1/parcels").await.json()["meta"]["total"].clone()
}

fn number(response: &HttpResponse) -> Value {
    response.json()["parcel"]["trackingNumber"].clone()
}

#[tokio::test]
async fn an_order_is_not_shipped_again_with_the_new_secret() {
    let server = crate::embedded::start().await;
    let old = server.key().name("Shop").countries(["EC"]).issue();
    let before = Api::with_key(server.url(), &old);
    let first = before.create(&order("order-0001")).await;
    assert_eq!(first.status, 201);
    let new = server.rotate_key(&old, DAY);
    assert_ne!(new.secret(), old.secret());
    let after = Api::with_key(server.url(), &new);

    for api in [&after, &before] {
        let again = api.create(&order("order-0001")).await;
        assert_eq!((again.status, again.header("idempotent-replayed")), (200, "true"));
        assert_eq!(again.bytes, first.bytes);
        let other = with(order("order-0001"), "/receiver/fullName", json!("Someone Else"));
        assert_eq!(api.create(&other).await.refusal().1, "IDEMPOTENCY_CONFLICT");
    }
    assert_eq!(parcels(&after).await, 1);
    let health = after.get(HEALTH).await.json();
    assert_eq!((&health["keyName"], &health["allowedCountries"]), (&json!("Shop"), &json!(["EC"])));
    // With a separate key it is a new order.
    let stranger = Api::with_key(server.url(), &server.key().issue());
    let second = stranger.create(&order("order-0001")).await;
    assert_eq!(second.status, 201);
    assert_ne!(number(&second), number(&first));
}

#[tokio::test]
async fn the_old_secret_works_for_exactly_the_overlap() {
    let server = crate::embedded::start().await;
    let old = server.key().issue();
    let new = server.rotate_key(&old, HOUR);
    let status = async |key: &ApiKey| Api::with_key(server.url(), key).get(HEALTH).await.status;
    server.clock().advance(Duration::from_millis(3_599_999)).await;
    assert_eq!((status(&old).await, status(&new).await), (200, 200));
    server.clock().advance(Duration::from_millis(1)).await;
    assert_eq!((status(&old).await, status(&new).await), (401, 200));
    let refused = Api::with_key(server.url(), &old).get(HEALTH).await.refusal();
    assert_eq!(refused, (401, "AUTH_INVALID_API_KEY"));
    // An overlap of 0 ends all earlier secrets at once.
    let next = server.rotate_key(&new, HOUR);
    let last = server.rotate_key(&next, Duration::ZERO);
    for (key, expected) in [(&new, 401), (&next, 401), (&last, 200)] {
        assert_eq!(status(key).await, expected);
    }
}

#[tokio::test]
async fn a_second_rotation_does_not_shorten_the_overlap() {
    let server = crate::embedded::start().await;
    let status = async |key: &ApiKey| Api::with_key(server.url(), key).get(HEALTH).await.status;
    let first = server.key().issue();
    let second = server.rotate_key(&first, HOUR);
    server.clock().advance(HOUR / 2).await;
    let third = server.rotate_key(&second, DAY);
    for key in [&first, &second, &third] {
        assert_eq!(status(key).await, 200);
    }
    server.clock().advance(HOUR / 2).await;
    assert_eq!((status(&first).await, status(&second).await), (401, 200), "the overlap is over");
}

#[tokio::test]
async fn both_secrets_share_the_rate_limit_of_their_key() {
    let server = crate::embedded::start().await;
    let old = server.key().rate_limit(4).issue();
    let new = server.rotate_key(&old, DAY);
    let mut statuses = Vec::new();
    for key in [&old, &new, &old, &new, &old, &new] {
        statuses.push(Api::with_key(server.url(), key).get(HEALTH).await.status);
    }
    assert_eq!(statuses, [200, 200, 200, 200, 429, 429]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn orders_sent_during_a_rotation_are_created_once() {
    let server = crate::embedded::start().await;
    let old = server.key().issue();
    let api = Api::with_key(server.url(), &old);
    let creates = (0..40).map(|i| {
        let api = api.clone();
        tokio::spawn(async move { api.create(&order(&format!("order-{i:04}"))).await.status })
    });
    let creates: Vec<_> = creates.collect();
    let new = server.rotate_key(&old, DAY);
    let again = Api::with_key(server.url(), &new);
    let repeats = (0..40).map(|i| {
        let again = again.clone();
        tokio::spawn(async move { again.create(&order(&format!("order-{i:04}"))).await.status })
    });
    let repeats: Vec<_> = repeats.collect();
    let mut rotated_count = 0;
    for response in creates.into_iter().chain(repeats) {
        let status = response.await.unwrap();
        assert!(matches!(status, 200 | 201), "{status}");
        rotated_count += usize::from(status == 201);
    }
    assert_eq!((rotated_count, parcels(&again).await), (40, json!(40)));
}

#[tokio::test]
async fn a_rotation_by_command_outlasts_a_restart_of_the_server() {
    let (setup, running) = TestSetup::new_and_start();
    let (id, old) = setup.new_key("sandbox");
    let first = running.api(&old).create(&order("order-0001")).await;
    let rotated = setup.admin("keys", &["rotate", &id]);
    let new = ApiKey::parse(rotated["key"].as_str().unwrap()).unwrap();
    assert_eq!(rotated["keyId"], id.as_str());
    let end = rotated["oldSecretUntil"].as_str().unwrap();
    let end = chrono::DateTime::parse_from_rfc3339(end).unwrap().to_utc();
    let hours = (end - chrono::Utc::now()).num_minutes();
    assert!((23 * 60..=24 * 60).contains(&hours), "{end}");

    let again = running.api(&new).create(&order("order-0001")).await;
    assert_eq!((again.status, &again.bytes), (200, &first.bytes), "{}", again.text());
    drop(running);
    let running = setup.start(&[]);
    for key in [&old, &new] {
        let again = running.api(key).create(&order("order-0001")).await;
        assert_eq!((again.status, &again.bytes), (200, &first.bytes), "{}", again.text());
    }
    assert_eq!(parcels(&running.api(&new)).await, 1);
    let listed = setup.admin("keys", &["list"]);
    let listed = listed.as_array().unwrap().iter().find(|key| key["keyId"] == id.as_str()).unwrap();
    assert_eq!(listed["oldSecretUntil"], rotated["oldSecretUntil"]);
    assert!(new.secret().ends_with(listed["last4"].as_str().unwrap()));

    setup.admin("keys", &["revoke", &id]);
    for key in [&old, &new] {
        let api = running.api(key);
        until("both secrets are refused", async || api.get(HEALTH).await.status == 401).await;
    }
    let rotate =
        |id: &str, more: &[&str]| setup.try_admin(&[&["keys", "rotate", id][..], more].concat());
    let (done, words) = rotate(&id, &[]);
    assert!(!done && words.contains("is revoked and cannot get a new secret"), "{words}");
    let (done, words) = rotate("key_x", &[]);
    assert!(!done && words.contains("no API key has the id key_x"), "{words}");
    let (other, _) = setup.new_key("sandbox");
    let (done, words) = rotate(&other, &["--overlap", "0"]);
    assert!(done && words.contains("The old secret no longer works"), "{words}");
}

#[tokio::test]
async fn the_rotate_control_works_for_suites_in_any_language() {
    let server = crate::embedded::builder().start_controlled("127.0.0.1:0".parse().unwrap()).await;
    let server = server.unwrap();
    let api = Api::new(server.url());
    let post = async |control: &str, body: &Value| {
        send(api.request("POST", &format!("/__mock/{control}")).body(body.to_string())).await
    };
    let old = post("keys", &json!({})).await.json()["key"].as_str().unwrap().to_owned();
    let asked = json!({ "key": old, "overlap": "PT1H" });
    let new = post("keys/rotate", &asked).await.json()["key"].as_str().unwrap().to_owned();
    let status = async |key: &str| api.clone().key(key).get(HEALTH).await.status;
    assert_eq!((status(&old).await, status(&new).await), (200, 200));
    post("clock", &json!({ "advance": "PT1H" })).await;
    assert_eq!((status(&old).await, status(&new).await), (401, 200));
    let table = [
        (json!({}), 400),
        (json!({ "key": "pk_test_x" }), 400),
        (json!({ "key": new, "overlap": "a day" }), 400),
        (json!({ "key": new, "overlap": "P8D" }), 400),
        (json!({ "key": new, "overlapSeconds": 1 }), 400),
        (json!({ "key": old }), 404),
        (json!({ "key": new, "overlap": 0 }), 200),
    ];
    for (body, expected) in table {
        assert_eq!(post("keys/rotate", &body).await.status, expected, "{body}");
    }
}
