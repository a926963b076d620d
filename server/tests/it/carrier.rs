//! POST /carrier/v1/events, and the keys of carriers.

use std::time::Duration;

use parcelo::{Environment, Operation};
use parcelo_server::mock::MockServer;
use parcelo_wire::CarrierKey;
use serde_json::{Value, json};

use crate::{
    api::{Api, HttpResponse, order, order_with_number, send, with},
    running::TestSetup,
};

const EVENTS: &str = Operation::PushCarrierEvents.path();
const NUMBER: &str = "SB-PARCEL-0001";

/// A carrier's system.
#[derive(Debug, Clone)]
struct Carrier {
    api: Api,
    key: String,
}

impl Carrier {
    fn new(server: &MockServer) -> Self {
        Self::with_key(server.url(), server.carrier_key().secret())
    }

    fn with_key(url: &str, key: &str) -> Self {
        Self { api: Api::new(url), key: key.to_owned() }
    }

    fn request(&self, method: &str, path: &str) -> reqwest::RequestBuilder {
        self.api.request(method, path).header("X-Carrier-Key", &self.key)
    }

    async fn post(&self, body: &Value) -> HttpResponse {
        let request = self.request("POST", EVENTS).header("content-type", "application/json");
        send(request.body(body.to_string())).await
    }

    /// Pushes events and returns `data` of the response, which must be a success.
    async fn push(&self, events: &[Value]) -> Value {
        let response = self.post(&json!({ "events": events })).await;
        let body = response.json();
        assert_eq!((response.status, &body["success"]), (200, &json!(true)), "{body}");
        assert_eq!(body["meta"]["requestId"], response.header("x-request-id"));
        body["data"].clone()
    }

    /// Returns the outcome of each event, or the error's code if it was refused.
    async fn outcomes(&self, events: &[Value]) -> Vec<String> {
        let data = self.push(events).await;
        let results = data["results"].as_array().unwrap().iter();
        let word = |result: &Value| {
            let rejected = result["outcome"] == "REJECTED";
            assert_eq!(result.get("error").is_some(), rejected, "{result}");
            let word = if rejected { &result["error"]["code"] } else { &result["outcome"] };
            word.as_str().unwrap().to_owned()
        };
        results.map(word).collect()
    }
}

/// Starts a server with one parcel, created at 08:00 on its clock, and two carriers.
async fn start() -> (MockServer, Api, Carrier, Carrier) {
    let (server, api) = crate::embedded::start_with_key().await;
    api.create_parcel(&order_with_number("order-0001", NUMBER)).await;
    let (one, two) = (Carrier::new(&server), Carrier::new(&server));
    (server, api, one, two)
}

/// Starts the same, and moves the clock to 09:00.
async fn start_at_nine() -> (MockServer, Api, Carrier, Carrier) {
    let started = start().await;
    started.0.clock().advance(minutes(60)).await;
    started
}

/// Returns a scan of the parcel at a time (`HH:MM`) on the morning on which the test clocks start.
fn scan(id: &str, status: &str, time: &str) -> Value {
    json!({ "eventId": id, "trackingNumber": NUMBER, "status": status,
        "occurredAt": format!("2026-01-05T{time}:00Z"), "location": format!("Hub {id}") })
}

/// Returns `STATUS HH:MM` of each event in the order shown.
async fn history(api: &Api, number: &str) -> Vec<String> {
    let body = api.record(number).await;
    let events = body["history"].as_array().unwrap();
    let word = |event: &Value| {
        let time = &event["timestamp"].as_str().unwrap()[11..16];
        format!("{} {time}", event["status"].as_str().unwrap())
    };
    events.iter().map(word).collect()
}

async fn status(api: &Api) -> String {
    api.track(NUMBER).await.json()["status"].as_str().unwrap().to_owned()
}

fn minutes(minutes: u64) -> Duration {
    Duration::from_secs(minutes * 60)
}

#[tokio::test]
async fn each_scan_changes_the_status_of_its_parcel() {
    let (_server, api, carrier, _) = start_at_nine().await;
    let mut delivery = scan("e4", "DELIVERED", "08:40");
    delivery["description"] = json!("Signed for");
    delivery["carrierCode"] = json!("D1");
    let data = carrier
        .push(&[
            scan("e1", "PICKED_UP", "08:10"),
            scan("e2", "IN_TRANSIT", "08:20"),
            scan("e3", "OUT_FOR_DELIVERY", "08:30"),
            delivery,
        ])
        .await;
    let summary =
        json!({ "received": 4, "applied": 4, "recorded": 0, "duplicates": 0, "rejected": 0 });
    assert_eq!(data["summary"], summary);
    let first = json!({ "eventId": "e1", "trackingNumber": NUMBER, "outcome": "APPLIED" });
    assert_eq!(data["results"][0], first);
    let record = api.record(NUMBER).await;
    assert_eq!(record["status"], "DELIVERED");
    let last = json!({ "status": "DELIVERED", "statusName": "Delivered", "location": "Hub e4",
        "timestamp": "2026-01-05T08:40:00.000Z", "description": "Signed for", "sequence": 6 });
    assert_eq!(record["history"][5], last);
}

#[tokio::test]
async fn each_event_gets_an_outcome_in_the_order_sent() {
    let (_server, _api, carrier, _) = start_at_nine().await;
    let unknown =
        with(scan("e5", "IN_TRANSIT", "08:50"), "/trackingNumber", json!("SB-ABSENT-0001"));
    let malformed = with(scan("e6", "IN_TRANSIT", "08:50"), "/trackingNumber", json!("no number"));
    let events = [
        scan("e1", "IN_TRANSIT", "08:30"),
        scan("e2", "IN_TRANSIT", "08:40"),
        scan("e3", "PICKED_UP", "08:20"),
        scan("e1", "DELIVERED", "08:50"),
        scan("e4", "PICKED_UP", "08:50"),
        unknown,
        malformed,
        scan("e7", "DELIVERED", "08:55"),
    ];
    let data = carrier.push(&events).await;
    let summary =
        json!({ "received": 8, "applied": 2, "recorded": 2, "duplicates": 1, "rejected": 3 });
    assert_eq!(data["summary"], summary);
    let error = &data["results"][4]["error"];
    assert_eq!(error["code"], "ILLEGAL_TRANSITION");
    assert_eq!(error["message"], "A parcel in status IN_TRANSIT cannot move to PICKED_UP.");
    assert_eq!(error["message_es"], "Un paquete en estado IN_TRANSIT no puede pasar a PICKED_UP.");
    for (index, id) in [(5, "e5"), (6, "e6")] {
        assert_eq!(data["results"][index]["eventId"], id);
        assert_eq!(data["results"][index]["trackingNumber"], events[index]["trackingNumber"]);
        assert_eq!(data["results"][index]["error"]["code"], "PARCEL_NOT_FOUND");
    }
}

#[tokio::test]
async fn a_repeated_event_id_is_a_duplicate_even_if_changed() {
    let (server, api, carrier, other) = start_at_nine().await;
    let events = [scan("e1", "PICKED_UP", "08:10"), scan("e2", "IN_TRANSIT", "08:20")];
    assert_eq!(carrier.outcomes(&events).await, ["APPLIED", "APPLIED"]);
    let before = history(&api, NUMBER).await;
    assert_eq!(carrier.outcomes(&events).await, ["DUPLICATE", "DUPLICATE"]);
    let changed =
        with(scan("e1", "DELIVERED", "08:50"), "/trackingNumber", json!("SB-ABSENT-0001"));
    assert_eq!(carrier.outcomes(&[changed]).await, ["DUPLICATE"]);
    server.clock().advance(minutes(60 * 24 * 29)).await;
    assert_eq!(carrier.outcomes(&events).await, ["DUPLICATE", "DUPLICATE"], "still known");
    assert_eq!(history(&api, NUMBER).await, before);
    assert_eq!(other.outcomes(&events[1..]).await, ["RECORDED"], "another carrier's own e2");
    let other_case = [scan("E1", "IN_TRANSIT", "08:25")];
    assert_eq!(carrier.outcomes(&other_case).await, ["RECORDED"]);
}

#[tokio::test]
async fn a_late_scan_changes_the_history_but_not_the_status() {
    let (_server, api, carrier, _) = start_at_nine().await;
    let leap = [scan("e1", "OUT_FOR_DELIVERY", "08:50")];
    assert_eq!(carrier.outcomes(&leap).await, ["ILLEGAL_TRANSITION"]);
    let events = [
        scan("e2", "IN_TRANSIT", "08:30"),
        scan("e3", "PICKED_UP", "08:10"),
        scan("e4", "DELIVERED", "08:29"),
        scan("e5", "CUSTOMS_CLEARANCE", "08:20"),
    ];
    assert_eq!(carrier.outcomes(&events).await, ["APPLIED", "RECORDED", "RECORDED", "RECORDED"]);
    assert_eq!(status(&api).await, "IN_TRANSIT");
    let expected = [
        "ORDERED 08:00",
        "LABEL_GENERATED 08:00",
        "PICKED_UP 08:10",
        "CUSTOMS_CLEARANCE 08:20",
        "DELIVERED 08:29",
        "IN_TRANSIT 08:30",
    ];
    assert_eq!(history(&api, NUMBER).await, expected);
    assert_eq!(carrier.outcomes(&leap).await, ["APPLIED"]);
}

#[tokio::test]
async fn a_repeated_status_is_recorded_and_the_newest_scan_counts() {
    let (_server, api, carrier, _) = start_at_nine().await;
    let events = [
        scan("e1", "IN_TRANSIT", "08:10"),
        scan("e2", "IN_TRANSIT", "08:30"),
        scan("e3", "OUT_FOR_DELIVERY", "08:20"),
    ];
    assert_eq!(carrier.outcomes(&events).await, ["APPLIED", "RECORDED", "RECORDED"]);
    assert_eq!(status(&api).await, "IN_TRANSIT");
    assert_eq!(history(&api, NUMBER).await.last().unwrap(), "IN_TRANSIT 08:30");
    let same_minute = [scan("e4", "OUT_FOR_DELIVERY", "08:30"), scan("e5", "DELIVERED", "08:30")];
    assert_eq!(carrier.outcomes(&same_minute).await, ["APPLIED", "APPLIED"]);
    assert_eq!(carrier.outcomes(&[scan("e6", "DELIVERED", "08:40")]).await, ["RECORDED"]);
    let back = [scan("e7", "IN_TRANSIT", "08:45")];
    assert_eq!(carrier.outcomes(&back).await, ["ILLEGAL_TRANSITION"]);
    assert_eq!(status(&api).await, "DELIVERED");
}

#[tokio::test]
async fn a_carrier_cannot_set_statuses_that_only_the_service_sets() {
    let (_server, api, carrier, _) = start_at_nine().await;
    for (index, status) in
        ["ORDERED", "LABEL_GENERATED", "MANIFEST_SUBMITTED", "VOIDED"].iter().enumerate()
    {
        for time in ["08:30", "07:30"] {
            let outcomes =
                carrier.outcomes(&[scan(&format!("e{index}{time}"), status, time)]).await;
            assert_eq!(outcomes, ["ILLEGAL_TRANSITION"], "{status} {time}");
        }
    }
    assert_eq!(history(&api, NUMBER).await, ["ORDERED 08:00", "LABEL_GENERATED 08:00"]);
}

#[tokio::test]
async fn a_refused_event_is_evaluated_again_when_resent() {
    let (_server, api, carrier, _) = start_at_nine().await;
    let early = scan("e1", "DELIVERED", "08:40");
    for _ in 0..2 {
        assert_eq!(carrier.outcomes(std::slice::from_ref(&early)).await, ["ILLEGAL_TRANSITION"]);
    }
    assert_eq!(history(&api, NUMBER).await.len(), 2);
    let events = [scan("e2", "IN_TRANSIT", "08:30"), early];
    assert_eq!(carrier.outcomes(&events).await, ["APPLIED", "APPLIED"]);
    assert_eq!(status(&api).await, "DELIVERED");
}

#[test]
fn the_list_of_carrier_keys_keeps_its_columns_apart() {
    let setup = TestSetup::new();
    for environment in ["sandbox", "production"] {
        setup.admin("carriers", &create_arguments(environment, "Andes Cargo"));
    }
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_parcelo-server"));
    command.args(["carriers", "list", "--database", &setup.database()]);
    let listed = String::from_utf8(command.output().unwrap().stdout).unwrap();
    let rows: Vec<Vec<_>> = listed.lines().map(|row| row.split_whitespace().collect()).collect();
    let ends: Vec<_> = rows.iter().map(|row| row[2..].join(" ")).collect();
    assert_eq!(ends, ["active sandbox Andes Cargo", "active production Andes Cargo"]);
    let names: Vec<_> = listed.lines().map(|row| row.find("Andes")).collect();
    assert_eq!(names[0], names[1], "{listed}");
}

#[tokio::test]
async fn rejected_events_are_logged_with_the_id_of_the_carriers_key() {
    let setup = TestSetup::new();
    let running = setup.start_with(&[("PARCELO_LOG", "info")], &[]);
    let created = setup.admin("carriers", &create_arguments("sandbox", "Andes Cargo"));
    let carrier = Carrier::with_key(running.sandbox(), created["key"].as_str().unwrap());
    let unknown = [scan("e1", "IN_TRANSIT", "08:00")];
    assert_eq!(carrier.outcomes(&unknown).await, ["PARCEL_NOT_FOUND"]);
    running.stop();
    let log = setup.output();
    let line = log.lines().find(|line| line.contains("events of a carrier were rejected")).unwrap();
    for part in [created["keyId"].as_str().unwrap(), r#""received":1"#, r#""rejected":1"#] {
        assert!(line.contains(part), "{part}: {line}");
    }
    assert!(!log.contains(&carrier.key), "{log}");
}

#[tokio::test]
async fn a_request_has_1_to_100_events() {
    let (_server, api, carrier, _) = start_at_nine().await;
    assert_eq!(carrier.post(&json!({ "events": [] })).await.faults(), ["events TOO_SHORT"]);
    let scans = |count| -> Vec<_> {
        (0..count).map(|i| scan(&format!("e{i}"), "IN_TRANSIT", "08:30")).collect()
    };
    assert_eq!(carrier.post(&json!({ "events": scans(101) })).await.faults(), ["events TOO_LONG"]);
    assert_eq!(history(&api, NUMBER).await.len(), 2, "nothing of a refused request is taken");
    assert_eq!(carrier.push(&scans(100)).await["summary"]["recorded"], 99);
    assert_eq!(history(&api, NUMBER).await.len(), 102);
}

#[tokio::test]
async fn a_fault_in_any_event_refuses_the_whole_request() {
    let (_server, api, carrier, _) = start_at_nine().await;
    let good = |id| scan(id, "IN_TRANSIT", "08:20");
    let late = with(good("e4"), "/occurredAt", json!("2026-01-05T09:05:00.001Z"));
    let body = json!({ "events": [good("e1"), good("e2"), good("e3"), late] });
    assert_eq!(carrier.post(&body).await.faults(), ["events[3].occurredAt OUT_OF_RANGE"]);
    assert_eq!(status(&api).await, "LABEL_GENERATED");
    let ahead = scan("e1", "IN_TRANSIT", "09:05");
    assert_eq!(carrier.outcomes(&[ahead]).await, ["APPLIED"], "five minutes ahead are fine");
}

#[tokio::test]
async fn a_body_or_path_is_refused_as_in_the_api() {
    let (_server, _api, carrier, _) = start().await;
    let post = |kind: &'static str, body: String| {
        send(carrier.request("POST", EVENTS).header("content-type", kind).body(body))
    };
    let refusals = [
        (post("application/json", "{".to_owned()).await, (400, "VALIDATION_FAILED")),
        (post("text/plain", "{}".to_owned()).await, (415, "UNSUPPORTED_MEDIA_TYPE")),
        (post("application/json", "x".repeat(256 * 1024 + 1)).await, (413, "PAYLOAD_TOO_LARGE")),
        (send(carrier.request("GET", EVENTS)).await, (405, "METHOD_NOT_ALLOWED")),
        (send(carrier.request("GET", "/carrier/v1/nothing")).await, (404, "NOT_FOUND")),
    ];
    for (response, (status, code)) in refusals {
        assert_eq!(response.refusal(), (status, code));
    }
}

#[tokio::test]
async fn without_a_valid_carrier_key_the_response_is_401() {
    let (server, api, carrier, _) = start().await;
    let live = CarrierKey::from_random(Environment::Production, &[7; 32]);
    let unknown = CarrierKey::from_random(Environment::Sandbox, &[7; 32]);
    let typo = carrier.key.replace("ck_test_", "ck_test_0");
    let wrong = ["", "garbage", "ck_live_", live.secret(), unknown.secret(), &typo];
    for key in wrong {
        let response = Carrier::with_key(server.url(), key).post(&json!({})).await;
        assert_eq!(response.refusal(), (401, "CARRIER_AUTH_FAILED"), "{key}");
        assert_eq!(response.header("x-ratelimit-limit"), "50", "counted by address");
    }
    for (path, request) in [
        (EVENTS, Api::new(server.url()).request("POST", EVENTS)),
        ("an API key", api.request("POST", EVENTS)),
        ("/carrier", Api::new(server.url()).request("GET", "/carrier")),
    ] {
        assert_eq!(send(request).await.refusal(), (401, "CARRIER_AUTH_FAILED"), "{path}");
    }
    let response = send(carrier.request("GET", "/api/v1/health")).await;
    assert_eq!(response.refusal(), (401, "AUTH_MISSING_API_KEY"), "no API key");
}

#[tokio::test]
async fn a_carrier_has_ten_times_the_rate_limit_of_an_api_key() {
    let (_server, _api, carrier, _) = start().await;
    for response in [
        carrier.post(&json!({ "events": [scan("e1", "IN_TRANSIT", "08:00")] })).await,
        carrier.post(&json!({})).await,
        send(carrier.request("GET", EVENTS)).await,
    ] {
        assert_eq!(response.header("x-ratelimit-limit"), "1000", "{}", response.text());
        assert_eq!(response.header("x-ratelimit-reset"), "1767600001");
    }
}

#[tokio::test]
async fn a_carrier_reports_on_the_parcels_of_every_account() {
    let (server, _api, carrier, _) = start().await;
    let other = Api::with_key(server.url(), &server.key().account("other").issue());
    other.create_parcel(&order_with_number("order-0001", "SB-OTHERS-0001")).await;
    let theirs =
        with(scan("e2", "IN_TRANSIT", "08:00"), "/trackingNumber", json!("sb-others-0001"));
    let outcomes = carrier.outcomes(&[scan("e1", "PICKED_UP", "08:00"), theirs]).await;
    assert_eq!(outcomes, ["APPLIED", "APPLIED"]);
    assert_eq!(other.track("SB-OTHERS-0001").await.json()["status"], "IN_TRANSIT");
}

#[tokio::test]
async fn due_steps_of_a_simulated_journey_come_before_a_scan() {
    let (server, api, carrier, _) = start().await;
    api.create_parcel(&order_with_number("order-0002", "SB-SUCCESS-0001")).await;
    let of_it = |event: Value| with(event, "/trackingNumber", json!("SB-SUCCESS-0001"));
    server.clock().advance(minutes(7)).await;
    let events =
        [of_it(scan("e1", "IN_TRANSIT", "08:07")), of_it(scan("e2", "PICKED_UP", "08:03"))];
    assert_eq!(carrier.outcomes(&events).await, ["APPLIED", "RECORDED"]);
    server.clock().advance(minutes(60)).await;
    let expected = [
        "ORDERED 08:00",
        "LABEL_GENERATED 08:00",
        "PICKED_UP 08:03",
        "CUSTOMS_CLEARANCE 08:05",
        "IN_TRANSIT 08:07",
        "IN_TRANSIT 08:10",
        "OUT_FOR_DELIVERY 08:15",
        "DELIVERED 08:20",
    ];
    assert_eq!(history(&api, "SB-SUCCESS-0001").await, expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn two_carriers_racing_for_a_parcel_leave_a_valid_history() {
    let (setup, running) = TestSetup::new_and_start();
    let api = running.api(&setup.new_key("sandbox").1);
    let number = api.create_parcel(&order("order-0001")).await;
    let now = chrono::Utc::now();
    let mut tasks = tokio::task::JoinSet::new();
    for name in ["One", "Two"] {
        let created = setup.admin("carriers", &create_arguments("sandbox", name));
        let carrier = Carrier::with_key(running.sandbox(), created["key"].as_str().unwrap());
        let event = |index: usize| {
            let status = ["PICKED_UP", "IN_TRANSIT", "CUSTOMS_HOLD", "OUT_FOR_DELIVERY"][index % 4];
            let late = i64::from(index.is_multiple_of(5)) * 3_600_000;
            let millis = i64::try_from(index).unwrap() - late;
            let time = now + chrono::TimeDelta::milliseconds(millis);
            json!({ "eventId": format!("e{index}"), "trackingNumber": number, "status": status,
                "occurredAt": time.to_rfc3339(), "location": name })
        };
        let events: Vec<_> = (0..100).map(event).collect();
        tasks.spawn(async move { carrier.outcomes(&events).await });
    }
    let outcomes: Vec<_> = tasks.join_all().await.into_iter().flatten().collect();
    let taken = outcomes
        .iter()
        .filter(|outcome| ["APPLIED", "RECORDED"].contains(&outcome.as_str()))
        .count();
    assert!(taken > 40, "{outcomes:?}");
    let body = api.record(&number).await;
    let events = body["history"].as_array().unwrap();
    assert_eq!(events.len(), taken + 2, "each accepted event is recorded once");
    assert!(events.is_sorted_by_key(|event| event["timestamp"].as_str().unwrap()));
    let sequences = events.iter().map(|event| event["sequence"].as_u64().unwrap());
    let sequences: std::collections::BTreeSet<_> = sequences.collect();
    assert_eq!(sequences, (1..=taken as u64 + 2).collect());
    assert_eq!(body["status"], events.last().unwrap()["status"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn one_of_32_concurrent_copies_of_an_event_is_applied() {
    let (_server, api, carrier, _) = start_at_nine().await;
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..32 {
        let carrier = carrier.clone();
        tasks.spawn(async move { carrier.outcomes(&[scan("e1", "IN_TRANSIT", "08:30")]).await });
    }
    let mut outcomes: Vec<_> = tasks.join_all().await.into_iter().flatten().collect();
    outcomes.sort_unstable();
    let sorted = [0, 1, 31].map(|index| outcomes[index].as_str());
    assert_eq!(sorted, ["APPLIED", "DUPLICATE", "DUPLICATE"]);
    assert_eq!(history(&api, NUMBER).await.len(), 3);
}

fn create_arguments<'a>(environment: &'a str, name: &'a str) -> [&'a str; 5] {
    ["create", "--environment", environment, "--name", name]
}

#[tokio::test]
async fn carriers_are_created_and_revoked_on_a_running_server() {
    let (setup, running) = TestSetup::new_and_start();
    let api = running.api(&setup.new_key("sandbox").1);
    let number = api.create_parcel(&order("order-0001")).await;
    let live = setup.admin("carriers", &create_arguments("production", "Andes Cargo"));
    let old = setup.admin("carriers", &create_arguments("sandbox", "Andes Cargo"));
    let new = setup.admin("carriers", &create_arguments("sandbox", " Andes Cargo "));
    let of = |listener, created: &Value| {
        Carrier::with_key(running.url(listener), created["key"].as_str().unwrap())
    };
    assert!(old["key"].as_str().unwrap().starts_with("ck_test_"), "{old}");
    assert!(live["key"].as_str().unwrap().starts_with("ck_live_"), "{live}");
    let now = chrono::Utc::now().to_rfc3339();
    let event = with(scan("e1", "IN_TRANSIT", "08:00"), "/trackingNumber", json!(number));
    let event = [with(event, "/occurredAt", json!(now))];

    assert_eq!(of("sandbox", &old).outcomes(&event).await, ["APPLIED"]);
    assert_eq!(of("sandbox", &new).outcomes(&event).await, ["DUPLICATE"], "the same carrier");
    assert_eq!(of("production", &live).outcomes(&event).await, ["PARCEL_NOT_FOUND"]);
    for (listener, created) in [("sandbox", &live), ("production", &old)] {
        let response = of(listener, created).post(&json!({})).await;
        assert_eq!(response.refusal(), (401, "CARRIER_AUTH_FAILED"), "{listener}");
    }
    assert_eq!(of("admin", &old).post(&json!({})).await.status, 404, "it serves no carriers");
    let listed = setup.admin("carriers", &["list"]);
    assert_eq!(listed.as_array().unwrap().len(), 3, "{listed}");
    assert!(!listed.to_string().contains(old["key"].as_str().unwrap()));
    let gone = setup.admin("carriers", &["revoke", old["keyId"].as_str().unwrap()]);
    assert!(gone["revokedAt"].is_string(), "{gone}");
    assert_eq!(of("sandbox", &old).post(&json!({})).await.status, 401);
    assert_eq!(of("sandbox", &new).post(&json!({})).await.status, 400);
}

#[test]
fn the_carriers_command_explains_wrong_arguments() {
    let setup = TestSetup::new();
    let run = |arguments: &[&str]| setup.try_admin(&[&["carriers"][..], arguments].concat());
    let table: [(&[&str], &str); 5] = [
        (&create_arguments("sandbox", "Andes Cargo"), "does not exist or is empty"),
        (&["list"], "does not exist or is empty"),
        (&["revoke", "car_x"], "does not exist or is empty"),
        (&create_arguments("test", "x"), "sandbox"),
        (&create_arguments("sandbox", ""), "1-100"),
    ];
    for (arguments, hint) in table {
        let (success, words) = run(arguments);
        assert!(!success && words.contains(hint), "{arguments:?}: {words}");
    }
    setup.create_database();
    assert!(run(&create_arguments("sandbox", "Andes Cargo")).1.contains("only once"));
    assert!(run(&["list"]).0);
    let (success, words) = run(&["revoke", "car_x"]);
    assert!(!success && words.contains("car_x"), "{words}");
}
