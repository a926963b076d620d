//! The admin API as an operator's programs call it, on the operators' listener of a real server.

use std::collections::BTreeSet;

use axum::http::HeaderMap;
use parcelo::{ApiKey, Operation};
use serde_json::{Value, json};

use crate::{
    api::{Api, HttpResponse, order, order_with_number, send},
    deliveries::Receiver,
    running::{RunningServer, TestSetup},
    waiting::until,
};

/// An operator with a token.
struct Admin {
    url: String,
    token: String,
}

impl Admin {
    fn new(setup: &TestSetup, running: &RunningServer) -> Self {
        let created = setup.admin("tokens", &["create", "--name", "Test"]);
        Self {
            url: running.url("admin").to_owned(),
            token: created["token"].as_str().unwrap().to_owned(),
        }
    }

    async fn call(&self, method: &str, path: &str, body: Option<&Value>) -> HttpResponse {
        let request = Api::new(&self.url).request(method, &format!("/admin/v1/{path}"));
        let request = request.bearer_auth(&self.token);
        let request = match body {
            Some(body) => request.header("content-type", "application/json").body(body.to_string()),
            None => request,
        };
        send(request).await
    }

    async fn get(&self, path: &str) -> Value {
        self.data("GET", path, None, 200).await
    }

    /// Calls the API and returns `data` of the response, which must have this status.
    async fn data(&self, method: &str, path: &str, body: Option<&Value>, status: u16) -> Value {
        let response = self.call(method, path, body).await;
        assert_eq!(response.status, status, "{method} {path}: {}", response.text());
        let body = response.json();
        assert_eq!(body["meta"]["requestId"], response.header("x-request-id"));
        body["data"].clone()
    }
}

fn start() -> (TestSetup, RunningServer, Admin) {
    let (setup, running) = TestSetup::new_and_start();
    let admin = Admin::new(&setup, &running);
    (setup, running, admin)
}

fn key(name: &str) -> Value {
    json!({ "name": name, "environment": "sandbox", "allowedCountries": ["EC"] })
}

const WEBHOOK: &str = "webhooks/sandbox";

#[tokio::test]
async fn a_revoked_key_is_refused_within_a_second() {
    let (setup, running, admin) = start();
    let created = admin.data("POST", "keys", Some(&key("Warehouse")), 201).await;
    let secret = created["key"].as_str().unwrap().to_owned();
    let api = running.api(&ApiKey::parse(&secret).unwrap());
    assert_eq!(api.get("/api/v1/health").await.json()["keyName"], "Warehouse");
    let listed = admin.get("keys").await;
    assert!(!listed.to_string().contains(&secret));
    let ours =
        listed.as_array().unwrap().iter().find(|key| key["keyId"] == created["keyId"]).unwrap();
    assert_eq!(ours["allowedCountries"], json!(["EC"]));
    let path = format!("keys/{}", created["keyId"].as_str().unwrap());
    let revoked = admin.data("DELETE", &path, None, 200).await;
    assert!(revoked["revokedAt"].is_string());
    let refused = api.get("/api/v1/health").await.refusal();
    assert_eq!(refused, (401, "AUTH_INVALID_API_KEY"), "at once");
    let again = admin.data("DELETE", &path, None, 200).await;
    assert_eq!(again["revokedAt"], revoked["revokedAt"], "a second time changes nothing");
    running.stop();
    assert!(!setup.output().contains(&secret));
}

#[tokio::test]
async fn without_a_valid_token_no_call_changes_or_shows_anything() {
    let (setup, running, admin) = start();
    let (_, api_key) = setup.new_key("sandbox");
    let url = format!("{}/admin/v1/keys", running.url("admin"));
    let wrong = ["", "adm_", "Basic x", api_key.secret(), "pk_live_x"];
    for token in wrong {
        let request =
            reqwest::Client::new().post(&url).bearer_auth(token).body(key("x").to_string());
        let refused = send(request).await.refusal();
        assert_eq!(refused, (401, "ADMIN_AUTH_FAILED"), "{token}");
    }
    assert_eq!(setup.admin("keys", &["list"]).as_array().unwrap().len(), 2);
    let tokens = setup.admin("tokens", &["list"]);
    let id = tokens[1]["tokenId"].as_str().unwrap();
    assert!(!tokens.to_string().contains(&admin.token));
    setup.admin("tokens", &["revoke", id]);
    assert_eq!(admin.call("GET", "keys", None).await.refusal().0, 401, "revoked by a command");
    for listener in ["production", "sandbox"] {
        let response = Api::new(running.url(listener)).get("/admin/v1/keys").await;
        assert_eq!(response.refusal(), (404, "NOT_FOUND"), "{listener}");
    }
}

#[tokio::test]
async fn wrong_tokens_are_counted_by_ip_address() {
    let setup = TestSetup::new();
    let running = setup.start(&["--unauthenticated-rate-limit", "3"]);
    let (http, url) = (reqwest::Client::new(), format!("{}/admin/v1/keys", running.url("admin")));
    let guess = || async { send(http.get(&url).bearer_auth("adm_x")).await.status };
    let mut seen = BTreeSet::new();
    for _ in 0..50 {
        seen.insert(guess().await);
    }
    assert_eq!(seen, BTreeSet::from([401, 429]));
}

#[tokio::test]
async fn all_faults_of_a_request_are_reported_at_once() {
    let (_setup, _running, admin) = start();
    let wrong = json!({ "name": "", "environment": "live", "allowedCountries": ["EC", "*"],
        "ipWhitelist": ["10.0.0.0/8", "nowhere"] });
    let response = admin.call("POST", "keys", Some(&wrong)).await;
    let all = [
        "name REQUIRED",
        "environment UNKNOWN_VALUE",
        "allowedCountries MISMATCH",
        "ipWhitelist[1] INVALID_FORMAT",
    ];
    assert_eq!(response.faults(), all);
    let table = [
        ("POST", "keys", json!([]), "body MALFORMED_JSON"),
        ("POST", "carriers", json!({ "name": "Andes" }), "environment REQUIRED"),
        ("POST", "accounts", json!({ "name": "x".repeat(101) }), "name TOO_LONG"),
        (
            "PUT",
            "webhooks/production",
            json!({ "url": "http://shop.example/" }),
            "url INVALID_FORMAT",
        ),
        ("PUT", "webhooks/production", json!({ "url": "https://10.0.0.1/" }), "url INVALID_FORMAT"),
        (
            "PUT",
            WEBHOOK,
            json!({ "url": format!("https://shop.example/{}", "x".repeat(500)) }),
            "url TOO_LONG",
        ),
        (
            "PUT",
            WEBHOOK,
            json!({ "url": "https://shop.example/", "events": ["x"] }),
            "events[0] UNKNOWN_VALUE",
        ),
    ];
    for (method, path, body, fault) in table {
        let response = admin.call(method, path, Some(&body)).await;
        assert_eq!(response.faults(), [fault], "{path} {body}");
    }
    let url = json!({ "url": "https://shop.example/" });
    for (name, fault) in [("", "account REQUIRED"), ("a%00b", "account INVALID_FORMAT")] {
        let path = format!("{WEBHOOK}?account={name}");
        assert_eq!(admin.call("PUT", &path, Some(&url)).await.faults(), [fault], "{name}");
    }
    let limit = admin.call("GET", "webhooks/sandbox/deliveries?limit=0", None).await;
    assert_eq!(limit.faults(), ["limit OUT_OF_RANGE"]);
    for path in ["webhooks/staging", "nothing", "keys/x/y"] {
        assert_eq!(admin.call("GET", path, None).await.refusal().1, "NOT_FOUND", "{path}");
    }
    assert_eq!(admin.call("PUT", "keys", None).await.refusal().0, 405);
}

#[tokio::test]
async fn a_webhook_is_set_tested_turned_off_and_removed() {
    let (_setup, _running, admin) = start();
    assert_eq!(admin.call("GET", WEBHOOK, None).await.refusal().1, "WEBHOOK_NOT_FOUND");
    let request = json!({ "url": "http://127.0.0.1:9/parcelo", "events": ["parcel.created"] });
    let set = admin.data("PUT", WEBHOOK, Some(&request), 201).await;
    assert!(set["secret"].as_str().unwrap().starts_with("whsec_"));
    assert_eq!(set["events"], json!(["parcel.status_changed", "parcel.created"]));
    let again = admin.data("PUT", WEBHOOK, Some(&request), 200).await;
    assert_eq!(again.get("secret"), None, "an existing secret is not shown");
    let rotated = admin.data("POST", "webhooks/sandbox/rotate-secret", None, 200).await;
    assert_ne!(rotated["secret"], set["secret"]);
    let tested = admin.data("POST", "webhooks/sandbox/test", None, 200).await;
    let logged = admin.get("webhooks/sandbox/deliveries?limit=5").await;
    assert_eq!(logged[0]["eventId"], tested["eventId"]);
    let off = admin.data("POST", "webhooks/sandbox/disable", None, 200).await;
    assert_eq!((&off["enabled"], &off["disabledBy"]), (&json!(false), &json!("OPERATOR")));
    let refused = admin.call("POST", "webhooks/sandbox/test", None).await.refusal();
    assert_eq!(refused, (409, "WEBHOOK_DISABLED"));
    assert_eq!(admin.data("POST", "webhooks/sandbox/enable", None, 200).await["enabled"], true);
    let one = json!({ "eventId": tested["eventId"] });
    let replayed = admin.data("POST", "webhooks/sandbox/replay", Some(&one), 200).await;
    assert_eq!(replayed["replayed"], 1, "it was held while the webhook was off");
    admin.data("DELETE", WEBHOOK, None, 200).await;
    assert_eq!(admin.call("DELETE", WEBHOOK, None).await.refusal().1, "WEBHOOK_NOT_FOUND");
}

#[tokio::test]
async fn a_test_event_continues_the_trace_of_its_request() {
    let (_setup, _running, admin) = start();
    let receiver = Receiver::start().await;
    admin.data("PUT", WEBHOOK, Some(&json!({ "url": receiver.url })), 201).await;
    let trace = "4bf92f3577b34da6a3ce929d0e0e4736";
    let request = Api::new(&admin.url).request("POST", "/admin/v1/webhooks/sandbox/test");
    let request = request.header("traceparent", format!("00-{trace}-00f067aa0ba902b7-01"));
    assert_eq!(send(request.bearer_auth(&admin.token)).await.status, 200);
    let is_in_trace = |headers: &HeaderMap| {
        let parent = headers.get("traceparent").and_then(|parent| parent.to_str().ok());
        parent.is_some_and(|parent| parent.starts_with(&format!("00-{trace}-")))
    };
    receiver.wait_for(|came| came.iter().any(|(headers, _)| is_in_trace(headers))).await;
}

#[tokio::test]
async fn a_refused_webhook_creates_no_account() {
    let (_setup, _running, admin) = start();
    let path = "webhooks/production?account=Acme";
    let inside = json!({ "url": "https://10.0.0.1/parcelo", "events": [] });
    assert_eq!(admin.call("PUT", path, Some(&inside)).await.refusal().0, 400);
    assert_eq!(admin.call("GET", path, None).await.refusal().1, "ACCOUNT_NOT_FOUND");
}

#[tokio::test]
async fn events_of_a_removed_webhook_wait_for_the_next_one() {
    let (setup, running, admin) = start();
    let (_, key) = setup.new_key("sandbox");
    let request = json!({ "url": "http://127.0.0.1:9/parcelo" });
    admin.data("PUT", WEBHOOK, Some(&request), 201).await;
    running.api(&key).create_parcel(&order_with_number("order-0001", "SB-SUCCESS-0001")).await;
    setup.admin("webhooks", &["remove", "--environment", "sandbox"]);
    let logged = admin.get("webhooks/sandbox/deliveries").await;
    assert_eq!(logged[0]["status"], "HELD", "{logged}");
    let set = admin.data("PUT", WEBHOOK, Some(&request), 201).await;
    assert!(set["secret"].is_string(), "a new webhook has a new secret");
    let replayed = admin.data("POST", "webhooks/sandbox/replay", Some(&json!({})), 200).await;
    assert_eq!(replayed["replayed"], 1);
}

#[tokio::test]
async fn accounts_share_neither_keys_nor_webhooks() {
    let (setup, _running, admin) = start();
    let created = admin.data("POST", "accounts", Some(&json!({ "name": "Acme" })), 201).await;
    let again = admin.data("POST", "accounts", Some(&json!({ "name": "Acme" })), 200).await;
    assert_eq!(created, again);
    let mut theirs = key("Theirs");
    theirs["account"] = json!("Acme");
    let theirs = admin.data("POST", "keys", Some(&theirs), 201).await;
    let listed = admin.get("keys?account=Acme").await;
    assert_eq!(listed.as_array().unwrap().len(), 1);
    assert_eq!(listed[0]["keyId"], theirs["keyId"]);
    let request = json!({ "url": "http://127.0.0.1:9/acme" });
    admin.data("PUT", "webhooks/sandbox?account=Acme", Some(&request), 201).await;
    assert_eq!(admin.call("GET", WEBHOOK, None).await.refusal().1, "WEBHOOK_NOT_FOUND");
    for path in ["webhooks/sandbox?account=Unknown", "keys?account=No one"] {
        let missing = admin.call("GET", path, None).await;
        assert_eq!(missing.refusal(), (404, "ACCOUNT_NOT_FOUND"), "{path}");
    }
    let not_ours = format!("keys/{}?account=default", theirs["keyId"].as_str().unwrap());
    assert_eq!(admin.call("DELETE", &not_ours, None).await.refusal().1, "KEY_NOT_FOUND");
    assert_eq!(admin.get("keys?account=Acme").await[0]["revokedAt"], Value::Null);
    let tested = admin.data("POST", "webhooks/sandbox/test?account=Acme", None, 200).await;
    admin.data("PUT", WEBHOOK, Some(&request), 201).await;
    let event = json!({ "eventId": tested["eventId"] });
    let stranger = admin.call("POST", "webhooks/sandbox/replay", Some(&event)).await;
    assert_eq!(stranger.refusal(), (404, "EVENT_NOT_FOUND"));
    let accounts = setup.admin("accounts", &["list"]);
    let names = accounts.as_array().unwrap().iter().map(|account| &account["name"]);
    assert_eq!(names.collect::<Vec<_>>(), ["default", "Acme"]);
    assert_eq!(setup.admin("accounts", &["create", "Acme"]), created);
}

#[tokio::test]
async fn carriers_get_keys_and_their_refused_events_are_listed() {
    let (setup, running, admin) = start();
    let (_, api_key) = setup.new_key("sandbox");
    let number = running.api(&api_key).create_parcel(&order("order-0001")).await;
    let request = json!({ "name": "Andes Cargo", "environment": "sandbox" });
    let created = admin.data("POST", "carriers", Some(&request), 201).await;
    let now = chrono::Utc::now().to_rfc3339();
    let event = json!({ "events": [{ "eventId": "e-1", "trackingNumber": number,
        "status": "DELIVERED", "occurredAt": now, "location": "Quito, EC" }] });
    let report = || {
        let path = Operation::PushCarrierEvents.path();
        let request = Api::new(running.sandbox()).request("POST", path);
        let request = request.header("X-Carrier-Key", created["key"].as_str().unwrap());
        send(request.header("content-type", "application/json").body(event.to_string()))
    };
    assert_eq!(report().await.json()["data"]["summary"]["rejected"], 1);
    let exceptions = admin.get("carrier-exceptions?environment=sandbox").await;
    assert_eq!(exceptions[0]["trackingNumber"], number);
    let states = ["from", "to"].map(|name| exceptions[0][name].as_str().unwrap());
    assert_eq!(states, ["LABEL_GENERATED", "DELIVERED"]);
    assert_eq!(admin.get("carrier-exceptions").await, json!([]), "production's");
    let listed = admin.get("carriers").await;
    assert!(!listed.to_string().contains(created["key"].as_str().unwrap()));
    let path = format!("carriers/{}", created["keyId"].as_str().unwrap());
    assert!(admin.data("DELETE", &path, None, 200).await["revokedAt"].is_string());
    assert_eq!(report().await.refusal().1, "CARRIER_AUTH_FAILED");
    assert_eq!(admin.call("DELETE", "carriers/car_1", None).await.refusal().1, "KEY_NOT_FOUND");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_backup_under_load_has_every_earlier_order() {
    let setup = TestSetup::on_file("only a file has a backup command");
    let running = setup.start(&[]);
    let (_, key) = setup.new_key("sandbox");
    let api = running.api(&key);
    let acknowledged = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let writer = tokio::spawn({
        let acknowledged = acknowledged.clone();
        async move {
            for i in 0.. {
                let number = api.create_parcel(&order(&format!("order-{i:05}"))).await;
                acknowledged.lock().unwrap().push(number);
            }
        }
    });
    until("30 orders are acknowledged", async || acknowledged.lock().unwrap().len() >= 30).await;
    let before = acknowledged.lock().unwrap().clone();
    let copy = setup.path("copy.db");
    let report = setup.backup(&copy);
    writer.abort();
    assert_eq!(report["bytes"], std::fs::metadata(&copy).unwrap().len());
    drop(running);
    let restored = TestSetup::at(copy.clone());
    let running = restored.start(&[]);
    let api = running.api(&key);
    for number in &before {
        assert_eq!(api.track(number).await.status, 200, "{number}");
    }
}

#[tokio::test]
async fn one_of_many_concurrent_webhook_setups_shows_the_secret() {
    let (_setup, _running, admin) = start();
    let request = json!({ "url": "http://127.0.0.1:9/parcelo" });
    let all = (0..16).map(|_| admin.call("PUT", WEBHOOK, Some(&request)));
    let responses = futures_util::future::join_all(all).await;
    let created = responses.iter().filter(|response| response.status == 201).count();
    let shown = responses.iter().filter(|response| response.text().contains("whsec_")).count();
    assert_eq!((created, shown), (1, 1));
}

#[tokio::test]
async fn every_call_needs_a_token_and_responds_as_documented() {
    let (_setup, _running, admin) = start();
    let document = Api::new(&admin.url).get("/openapi.json").await.json();
    for (path, item) in document["paths"].as_object().unwrap() {
        let path = path.replace("{environment}", "sandbox").replace("{keyId}", "key_1");
        for (method, call) in item.as_object().unwrap() {
            let method = method.to_uppercase();
            let refused = send(Api::new(&admin.url).request(&method, &path)).await.refusal();
            assert_eq!(refused, (401, "ADMIN_AUTH_FAILED"), "{method} {path}");
            let body = &call["requestBody"]["content"]["application/json"]["example"];
            let body = Some(body).filter(|body| !body.is_null());
            let response = admin.call(&method, path.trim_start_matches("/admin/v1/"), body).await;
            let status = response.status.to_string();
            assert!(call["responses"][&status].is_object(), "{method} {path} {status}");
            assert!(response.status < 500, "{method} {path} {}", response.text());
        }
        let wrong = admin.call("PATCH", path.trim_start_matches("/admin/v1/"), None).await;
        assert_eq!(wrong.refusal().0, 405, "{path}");
    }
}

#[tokio::test]
async fn the_log_of_a_session_contains_no_secret() {
    let setup = TestSetup::new();
    let running = setup.start_with(&[("PARCELO_LOG", "debug")], &[]);
    let greeting = setup.output();
    let admin = Admin::new(&setup, &running);
    let mut request = key("Canary key name");
    request["account"] = json!("Canary account");
    let created = admin.data("POST", "keys", Some(&request), 201).await;
    let carrier = json!({ "name": "Canary carrier", "environment": "sandbox" });
    let carrier = admin.data("POST", "carriers", Some(&carrier), 201).await;
    let webhook = json!({ "url": "http://127.0.0.1:9/canary?canary-query" });
    let webhook = admin.data("PUT", WEBHOOK, Some(&webhook), 201).await;
    let rotated = admin.data("POST", "webhooks/sandbox/rotate-secret", None, 200).await;
    admin.data("POST", "webhooks/sandbox/test", None, 200).await;
    running.stop();
    let output = setup.output();
    let log = output.strip_prefix(&greeting).unwrap();
    assert!(log.contains("answered"), "{log}");
    let secrets = [&created["key"], &carrier["key"], &webhook["secret"], &rotated["secret"]];
    let secrets = secrets.map(|secret| secret.as_str().unwrap());
    for canary in secrets.into_iter().chain([admin.token.as_str(), "anary"]) {
        assert!(!log.contains(canary), "{canary}: {log}");
    }
}

#[tokio::test]
async fn a_list_of_keys_has_the_day_of_the_last_use() {
    let (setup, running, admin) = start();
    let created = admin.data("POST", "keys", Some(&key("Warehouse")), 201).await;
    let find = |listed: Value| {
        let mut keys = listed.as_array().unwrap().iter();
        keys.find(|key| key["keyId"] == created["keyId"]).unwrap().clone()
    };
    assert_eq!(find(admin.get("keys").await)["lastUsed"], Value::Null);
    let api = running.api(&ApiKey::parse(created["key"].as_str().unwrap()).unwrap());
    assert_eq!(api.get("/api/v1/health").await.status, 200);
    let used = find(admin.get("keys").await);
    let (day, created_at) =
        (used["lastUsed"].as_str().unwrap(), used["createdAt"].as_str().unwrap());
    assert!(day.len() == 10 && &created_at[..10] <= day, "{used}");
    assert_eq!(find(setup.admin("keys", &["list"]))["lastUsed"], day, "the command shows it too");
    let path = format!("keys/{}", created["keyId"].as_str().unwrap());
    assert_eq!(admin.data("DELETE", &path, None, 200).await["lastUsed"], day);
}

#[tokio::test]
async fn the_old_secret_of_a_rotated_key_works_for_the_overlap() {
    let (_setup, running, admin) = start();
    let created = admin.data("POST", "keys", Some(&key("Warehouse")), 201).await;
    let id = created["keyId"].as_str().unwrap();
    let api =
        |created: &Value| running.api(&ApiKey::parse(created["key"].as_str().unwrap()).unwrap());
    let rotated = admin.data("POST", &format!("keys/{id}/rotate"), None, 200).await;
    assert_eq!(rotated["keyId"], created["keyId"]);
    for secret in [&created, &rotated] {
        assert_eq!(api(secret).get("/api/v1/health").await.status, 200);
    }
    let listed = admin.get("keys").await;
    let shown = listed.as_array().unwrap().iter().find(|key| key["keyId"] == created["keyId"]);
    assert_eq!(shown.unwrap()["oldSecretUntil"], rotated["oldSecretUntil"]);
    let others = listed.as_array().unwrap().iter().filter(|key| key["keyId"] != created["keyId"]);
    assert!(others.map(|key| &key["oldSecretUntil"]).all(Value::is_null));
    assert!(!listed.to_string().contains(rotated["key"].as_str().unwrap()));

    let path = format!("keys/{id}/rotate?overlapSeconds=0&account=default");
    let last = admin.data("POST", &path, None, 200).await;
    assert_eq!(last["oldSecretUntil"], Value::Null);
    for (secret, status) in [(&created, 401), (&rotated, 401), (&last, 200)] {
        assert_eq!(api(secret).get("/api/v1/health").await.status, status, "at once");
    }
    for seconds in ["", "-1", "604801", "1.5", "a day"] {
        let path = format!("keys/{id}/rotate?overlapSeconds={}", seconds.replace(' ', "+"));
        let refused = admin.call("POST", &path, None).await;
        assert_eq!(refused.faults(), ["overlapSeconds OUT_OF_RANGE"], "{seconds}");
    }
    let table = [
        ("keys/key_1/rotate".to_owned(), "KEY_NOT_FOUND"),
        (format!("keys/{id}/rotate?account=Unknown"), "ACCOUNT_NOT_FOUND"),
    ];
    for (path, code) in table {
        assert_eq!(admin.call("POST", &path, None).await.refusal().1, code, "{path}");
    }
    admin.data("POST", "accounts", Some(&json!({ "name": "Acme" })), 201).await;
    let not_theirs = format!("keys/{id}/rotate?account=Acme");
    assert_eq!(admin.call("POST", &not_theirs, None).await.refusal().1, "KEY_NOT_FOUND");
    admin.data("DELETE", &format!("keys/{id}"), None, 200).await;
    let revoked = admin.call("POST", &format!("keys/{id}/rotate"), None).await.refusal();
    assert_eq!(revoked, (409, "KEY_REVOKED"));
    assert_eq!(api(&last).get("/api/v1/health").await.status, 401);
}

#[tokio::test]
async fn the_audit_log_has_authors_and_changes_but_no_secrets() {
    let (setup, running) = TestSetup::new_and_start();
    let first = setup.admin("audit", &[]);
    let by_start = |entry: &Value| entry["actor"] == "first_start";
    assert!(first.as_array().unwrap().iter().all(by_start), "{first}");
    assert!(first.to_string().contains("password.set"), "{first}");
    let admin = Admin::new(&setup, &running);
    let created = admin.data("POST", "keys", Some(&key("Canary")), 201).await;
    let path = format!("keys/{}", created["keyId"].as_str().unwrap());
    admin.data("POST", &format!("{path}/rotate"), None, 200).await;
    admin.data("DELETE", &path, None, 200).await;
    let log = setup.admin("audit", &["--account", "default", "--limit", "3"]);
    let token = setup.admin("audit", &[])[3].clone();
    assert_eq!((&token["action"], &token["actor"]), (&json!("token.created"), &json!("command")));
    for (entry, action) in
        log.as_array().unwrap().iter().zip(["key.revoked", "key.rotated", "key.created"])
    {
        assert_eq!(
            (&entry["action"], &entry["subject"], &entry["actor"], &entry["account"]),
            (&json!(action), &created["keyId"], &token["subject"], &json!("default")),
        );
    }
    assert_eq!(log.as_array().unwrap().len(), 3);
    assert_eq!(setup.admin("audit", &["--since", "9999-01-01"]), json!([]));
    let all = setup.admin("audit", &[]).to_string();
    for secret in ["Canary", created["key"].as_str().unwrap(), &admin.token] {
        assert!(!all.contains(secret), "{all}");
    }
}
