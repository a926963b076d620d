//! `parcelo-server mock`: the mock server as a process, its controls, and the suite that it runs.

use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::{
    api::{Api, HttpResponse, order, order_with_number, send},
    running::{BINARY, RunningServer, wait_for},
    waiting::LONG,
};

struct MockProcess {
    running: RunningServer,
    _folder: tempfile::TempDir,
}

impl MockProcess {
    fn start(arguments: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let ready_file = folder.path().join("ready.json");
        let mut command = Command::new(BINARY);
        command.env_clear().arg("mock").args(arguments).arg("--ready-file").arg(&ready_file);
        let child = command.stdout(Stdio::null()).spawn().unwrap();
        Self { running: wait_for(&ready_file, child), _folder: folder }
    }

    fn text(&self, name: &str) -> &str {
        self.running.ready[name].as_str().unwrap()
    }

    fn api(&self) -> Api {
        Api::new(self.text("sandbox")).key(self.text("apiKey"))
    }

    async fn control(&self, method: &str, name: &str, body: &Value) -> HttpResponse {
        let request = Api::new(self.text("sandbox")).request(method, &format!("/__mock/{name}"));
        send(request.header("content-type", "application/json").body(body.to_string())).await
    }

    async fn get(&self, name: &str) -> Value {
        self.control("GET", name, &json!({})).await.json()
    }

    async fn post(&self, name: &str, body: &Value) -> Value {
        self.control("POST", name, body).await.json()
    }
}

#[tokio::test]
async fn a_suite_in_any_language_moves_the_clock() {
    let mock = MockProcess::start(&["--clock", "frozen=2026-01-05T08:00:00Z", "--seed", "7"]);
    assert_eq!(mock.running.ready["pid"], mock.running.child.id());
    let api = mock.api();
    api.create_parcel(&order_with_number("order-0001", "SB-SUCCESS-0001")).await;
    let moved = mock.post("clock", &json!({ "advance": "PT10M" })).await;
    assert_eq!(
        moved,
        json!({ "now": "2026-01-05T08:10:00.000Z", "fired": [
            { "at": "2026-01-05T08:05:00.000Z", "trackingNumber": "SB-SUCCESS-0001", "status": "CUSTOMS_CLEARANCE" },
            { "at": "2026-01-05T08:10:00.000Z", "trackingNumber": "SB-SUCCESS-0001", "status": "IN_TRANSIT" },
        ] })
    );
    let set = mock.post("clock", &json!({ "set": "2026-01-05T08:15:00Z", "mode": "frozen" })).await;
    assert_eq!(set["now"], "2026-01-05T08:15:00.000Z");
    assert_eq!(set["fired"][0]["status"], "OUT_FOR_DELIVERY");
    assert_eq!(mock.get("clock").await["now"], set["now"]);
}

#[tokio::test]
async fn faults_are_planned_hit_and_deleted_and_requests_listed() {
    let mock = MockProcess::start(&["--clock", "frozen=2026-01-05T08:00:00Z"]);
    let plan = json!({ "operation": "CreateOrder", "nth": 1, "afterCommit": true, "fault": "error", "code": "SERVICE_UNAVAILABLE" });
    let unused = mock.post("faults", &plan).await;
    assert_eq!(unused["unused"].as_array().unwrap().len(), 1);
    let api = mock.api();
    assert_eq!(api.create(&order("order-0001")).await.refusal(), (503, "SERVICE_UNAVAILABLE"));
    assert_eq!(api.create(&order("order-0001")).await.status, 200, "it had been committed");
    assert_eq!(mock.get("faults").await["unused"], json!([]));
    mock.control("POST", "faults", &json!({ "fault": "close" })).await;
    let deleted = mock.control("DELETE", "faults", &json!({})).await.json();
    assert_eq!(deleted["unused"].as_array().unwrap().len(), 1);
    assert_eq!(api.get("/api/v1/health").await.status, 200, "the plan is forgotten");
    let requests = mock.get("requests?operation=CreateOrder").await;
    assert_eq!(requests["count"], 2);
    assert_eq!(requests["requests"][0]["idempotencyKey"], "order-0001");
    assert!(!requests.to_string().contains(mock.text("apiKey")), "{requests}");
}

#[tokio::test]
async fn a_suite_sets_the_status_of_a_parcel_until_a_reset() {
    let mock = MockProcess::start(&["--clock", "frozen=2026-01-05T08:00:00Z"]);
    let api = mock.api();
    api.create_parcel(&order_with_number("order-0001", "SB-NORMAL-0001")).await;
    let put = async |number: &str, status: &str| {
        let path = format!("parcels/{number}/status");
        mock.control("POST", &path, &json!({ "status": status })).await
    };
    let way = put("SB-NORMAL-0001", "DELIVERED").await.json();
    assert_eq!(way["statuses"], json!(["IN_TRANSIT", "DELIVERED"]));
    assert_eq!(api.track("SB-NORMAL-0001").await.json()["status"], "DELIVERED");
    let back = put("SB-NORMAL-0001", "IN_TRANSIT").await;
    assert_eq!(back.status, 400);
    assert!(back.text().contains("from which no transitions lead"), "{}", back.text());
    assert_eq!(put("SB-ABSENT-0001", "DELIVERED").await.status, 404);
    assert_eq!(put("odd", "DELIVERED").await.status, 404);
    let deleted = mock.post("reset", &json!({})).await;
    assert_eq!(deleted["deleted"]["parcels"], 1, "{deleted}");
    assert_eq!(api.track("SB-NORMAL-0001").await.status, 404);
}

#[tokio::test]
async fn a_suite_can_have_production_in_place_of_the_sandbox() {
    let mock = MockProcess::start(&["--production"]);
    assert!(mock.text("apiKey").starts_with("pk_live_"));
    let api = Api::new(mock.text("production")).key(mock.text("apiKey"));
    assert_eq!(api.get("/api/v1/health").await.status, 200);
}

#[tokio::test]
async fn keys_are_created_and_webhooks_received() {
    let mock = MockProcess::start(&["--clock", "frozen=2026-01-05T08:00:00Z"]);
    let created = mock.post("keys", &json!({ "allowedCountries": ["MX"] })).await;
    let mexican = Api::new(mock.text("sandbox")).key(created["key"].as_str().unwrap());
    assert_eq!(mexican.create(&order("order-0001")).await.refusal().0, 403);
    for (requested, granted) in [
        (json!(["EC", " MX"]), json!(["EC", "MX"])),
        (json!(["EC", "EC"]), json!(["EC"])),
        (json!(["*"]), json!(["*"])),
        (json!(null), json!(["*"])),
    ] {
        let body = json!({ "allowedCountries": requested });
        let created = mock.post("keys", &body).await;
        let api = Api::new(mock.text("sandbox")).key(created["key"].as_str().unwrap());
        assert_eq!(api.get("/api/v1/health").await.json()["allowedCountries"], granted, "{body}");
    }
    let listening = mock.control("POST", "webhooks", &json!({ "reply": [503] })).await;
    assert_eq!(listening.status, 200, "{}", listening.text());
    mock.api().create_parcel(&order_with_number("order-0002", "SB-FAIL-0001")).await;
    mock.control("POST", "clock", &json!({ "advance": 301 })).await;
    let seen = mock.get("webhooks").await;
    let deliveries = seen["deliveries"].as_array().unwrap();
    let statuses: Vec<_> = deliveries
        .iter()
        .map(|one| (one["status"].as_u64().unwrap(), one["verified"].as_bool().unwrap()))
        .collect();
    assert_eq!(statuses, [(503, true), (200, true), (200, true)], "{seen}");
    assert_eq!(deliveries[2]["body"]["data"]["newStatus"], "IN_TRANSIT");
}

#[tokio::test]
async fn a_reply_is_planned_for_one_order_and_its_requests() {
    let mock = MockProcess::start(&["--clock", "frozen=2026-01-05T08:00:00Z"]);
    let sample = mock.get("orders/SB-SUCCESS-0001").await;
    let sample = &sample["order"];
    assert_eq!(sample["idempotencyKey"], "order-SB-SUCCESS-0001");
    for (body, text, content_type) in [
        (json!("<h1>"), "<h1>", "text/html"),
        (json!({ "error": "odd" }), r#"{"error":"odd"}"#, "application/json"),
        (json!(null), "", ""),
    ] {
        let mut plan = json!({ "operation": "CreateOrder", "order": "SB-SUCCESS-0001", "nth": 1, "afterCommit": true,
            "fault": "reply", "status": 502, "headers": { "set-cookie": ["a=1", "b=2"] }, "body": body });
        if content_type == "text/html" {
            plan["headers"]["content-type"] = json!(content_type);
        }
        let planned = mock.control("POST", "faults", &plan).await;
        assert_eq!(planned.status, 200, "{}", planned.text());
        mock.api().create(&order(&format!("order-{}", text.len()))).await;
        let response = mock.api().create(sample).await;
        assert_eq!((response.status, response.text().as_str()), (502, text));
        assert_eq!(response.header("content-type"), content_type);
        assert_eq!(response.headers.get_all("set-cookie").iter().count(), 2);
    }
    assert_eq!(mock.api().create(sample).await.status, 200, "it had been carried out");
    let path = "requests?order=sb-success-0001&operation=CreateOrder";
    assert_eq!(mock.get(path).await["count"], 4);
    assert_eq!(mock.get("verify").await, json!({ "offences": [] }));
    mock.control("POST", "faults", &json!({ "fault": "hang", "nth": 1, "order": "A-17" })).await;
    let offences = mock.get("verify").await;
    let idle = "a planned fault hit no request: any operation no. 1 about A-17: no answer";
    assert_eq!(offences, json!({ "offences": [idle] }));
}

#[tokio::test]
async fn a_suite_advances_until_a_status_or_gets_a_reason() {
    let mock = MockProcess::start(&["--clock", "frozen=2026-01-05T08:00:00Z"]);
    mock.control("POST", "webhooks", &json!({})).await;
    mock.api().create_parcel(&order_with_number("order-0001", "SB-SUCCESS-0001")).await;
    mock.api().create_parcel(&order_with_number("order-0002", "SB-NORMAL-0001")).await;
    let hints = mock.get("webhooks").await["hints"].to_string();
    for hint in
        ["SB-NORMAL-0001 will not move", "advance it", "SB-SUCCESS-0001 at 2026-01-05T08:05"]
    {
        assert!(hints.contains(hint), "{hints}");
    }
    let until =
        |number: &str| json!({ "until": { "trackingNumber": number, "status": "DELIVERED" } });
    let moved = mock.post("clock", &until("SB-SUCCESS-0001")).await;
    assert_eq!(moved["now"], "2026-01-05T08:20:00.000Z");
    assert_eq!(moved["fired"].as_array().unwrap().len(), 4);
    let never = mock.control("POST", "clock", &until("SB-NORMAL-0001")).await;
    assert_eq!(never.status, 400);
    assert!(never.text().contains("has no prefix of a simulated journey"), "{}", never.text());
    assert_eq!(mock.control("POST", "clock", &until("SB-ABSENT-0001")).await.status, 404);
}

#[tokio::test]
async fn an_invalid_control_is_refused_with_a_reason() {
    let mock = MockProcess::start(&[]);
    let table = [
        ("clock", json!({ "advance": "soon" }), "PT5M"),
        ("clock", json!({ "set": "noon" }), "2026-01-05T08:00:00Z"),
        ("clock", json!({ "speed": 2 }), "speed"),
        ("clock", json!({ "advance": 1e15 }), "beyond the year 9999"),
        ("clock", json!({ "mode": "fast" }), "frozen"),
        ("faults", json!({ "fault": "explode" }), "truncatedBody"),
        ("faults", json!({ "fault": "error", "code": "NO_SUCH" }), "SERVICE_UNAVAILABLE"),
        ("faults", json!({ "fault": "close", "probability": 1.5 }), "at most 1"),
        ("faults", json!({ "fault": "latency", "seconds": -1 }), "seconds"),
        ("faults", json!({ "fault": "reply" }), "200 to 999"),
        ("faults", json!({ "fault": "reply", "status": 100 }), "200 to 999"),
        ("faults", json!({ "fault": "reply", "status": 200, "headers": { "a b": "c" } }), "header"),
        (
            "faults",
            json!({ "fault": "reply", "status": 200, "headers": { "a": "b\nc" } }),
            "header",
        ),
        ("faults", json!({ "fault": "close", "status": 200 }), "leave it out"),
        ("faults", json!({ "fault": "hang", "body": "x" }), "leave it out"),
        (
            "clock",
            json!({ "until": { "trackingNumber": "odd", "status": "DELIVERED" } }),
            "tracking number",
        ),
        ("keys", json!({ "allowedCountries": ["Ecuador"] }), "country"),
        ("keys", json!({ "allowedCountries": [] }), "TOO_SHORT"),
        ("keys", json!({ "allowedCountries": ["EC", "*"] }), "Use * alone"),
        ("keys", json!({ "allowedCountries": "EC" }), "allowedCountries"),
        ("webhooks", json!({ "reply": ["no"] }), "reply"),
        ("webhooks", json!({ "reply": [7] }), "200 to 999"),
    ];
    for (name, body, hint) in table {
        let response = mock.control("POST", name, &body).await;
        assert_eq!(response.status, 400, "{name} {body}");
        assert!(response.text().contains(hint), "{name} {body}: {}", response.text());
        for fault in response.json()["error"]["details"]["errors"].as_array().unwrap() {
            let [en, es] = ["message", "message_es"].map(|name| fault[name].as_str().unwrap());
            assert!(en != es && !es.contains(en), "{name} {body}: {es}");
        }
    }
    for query in ["order=", "order=a&order=b", "sort=up"] {
        let response = mock.control("GET", &format!("requests?{query}"), &json!({})).await;
        assert_eq!(response.status, 400, "{query}");
    }
    assert_eq!(mock.control("GET", "orders/odd", &json!({})).await.status, 404);
    assert_eq!(mock.control("GET", "nothing", &json!({})).await.status, 404);
    assert_eq!(mock.control("PUT", "clock", &json!({})).await.status, 405);
}

/// Writes a scenario, and returns its file and the folder that holds it.
fn write_scenario(json: &str) -> (String, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("scenario.json");
    std::fs::write(&file, json).unwrap();
    (file.to_str().unwrap().to_owned(), folder)
}

#[tokio::test]
async fn a_suite_starts_in_the_state_of_a_scenario_file() {
    let scenario = json!({
        "$schema": "./scenario.schema.json",
        "clock": "frozen=2026-01-05T08:00:00Z",
        "keys": [{ "allowedCountries": ["MX"] }],
        "parcels": [
            { "trackingNumber": "SB-NORMAL-0001", "status": "VOIDED" },
            { "trackingNumber": "SB-NORMAL-0002", "country": "PE", "status": "MANIFEST_SUBMITTED" },
            { "trackingNumber": "SB-NORMAL-0003", "country": "MX", "status": "DELIVERED" },
            { "trackingNumber": "SB-SUCCESS-0001", "country": "CO" },
        ],
        "webhooks": [{ "reply": [503] }],
        "faults": [{ "operation": "Health", "nth": 1, "fault": "error", "code": "SERVICE_UNAVAILABLE" }],
    });
    let (file, _folder) = write_scenario(&format!("\u{feff}{scenario}")); // as editors on Windows write it
    let mock = MockProcess::start(&["--scenario", &file]);
    assert_eq!(mock.get("clock").await["now"], "2026-01-05T08:00:00.000Z");
    let api = mock.api();
    assert_eq!(api.get("/api/v1/health").await.status, 503);
    for (number, status) in [
        ("SB-NORMAL-0001", "VOIDED"),
        ("SB-NORMAL-0002", "MANIFEST_SUBMITTED"),
        ("SB-NORMAL-0003", "DELIVERED"),
        ("SB-SUCCESS-0001", "LABEL_GENERATED"),
    ] {
        assert_eq!(api.track(number).await.json()["status"], status, "{number}");
    }
    let keys = mock.get("keys").await["keys"].clone();
    assert_eq!(keys.as_array().unwrap().len(), 1);
    let mexican = mock.api().key(keys[0].as_str().unwrap());
    assert_eq!(mexican.create(&order("order-0001")).await.refusal().0, 403);
    mock.post("clock", &json!({ "advance": 301 })).await;
    let first = mock.get("webhooks").await["deliveries"][0].clone();
    assert_eq!((&first["status"], &first["verified"]), (&json!(503), &json!(true)), "{first}");
    assert_eq!(first["body"]["data"]["newStatus"], "CUSTOMS_CLEARANCE");
}

#[tokio::test]
async fn the_clock_of_the_command_line_overrides_the_scenarios() {
    let (file, _folder) = write_scenario(r#"{ "clock": "frozen=2026-01-05T08:00:00Z" }"#);
    let clock = "frozen=2027-01-01T00:00:00Z";
    let mock = MockProcess::start(&["--clock", clock, "--scenario", &file]);
    assert_eq!(mock.get("clock").await["now"], "2027-01-01T00:00:00.000Z");
}

#[test]
fn a_wrong_scenario_file_is_refused_with_its_place() {
    for (scenario, place, hint) in [
        ("{\n  \"parcel\": []\n}", "line 2 column", "`parcels`"),
        ("{\n", "line 2 column", "EOF"),
        ("[]", "scenario: ", "must be a JSON object"),
        (r#"{ "keys": [{}, []] }"#, "keys[1]: ", "must be an object"),
        (r#"{ "parcels": [{ "number": "1" }] }"#, "parcels[0].number: ", "`trackingNumber`"),
        (
            r#"{ "parcels": [{ "trackingNumber": "odd" }] }"#,
            "parcels[0].tracking",
            "tracking number",
        ),
        (r#"{ "clock": "noon" }"#, "clock: ", "frozen=TIME"),
        (r#"{ "keys": [{}, { "allowedCountries": ["UK"] }] }"#, "keys[1].allowed", "ountry"),
        (
            r#"{ "parcels": [{ "trackingNumber": "SB-NORMAL-0001", "status": "LOST" }] }"#,
            "parcels[0].status: ",
            "LABEL_GENERATED",
        ),
        (r#"{ "webhooks": [{ "url": "nowhere" }] }"#, "webhooks[0].url: ", "a full URL"),
        (r#"{ "faults": [{ "fault": "error" }] }"#, "faults[0].code: ", "SERVICE_UNAVAILABLE"),
    ] {
        let (file, _folder) = write_scenario(scenario);
        let output = exec("true").args(["--scenario", &file]).output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{scenario}: {errors}");
        for part in [&*file, place, hint, "--scenario-schema"] {
            assert!(errors.contains(part), "{scenario}: {errors}");
        }
    }
    let output = exec("true").args(["--scenario", "no-such-file.json"]).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(errors.contains("no-such-file.json: No such file"), "{errors}");
    assert!(!errors.contains("--scenario-schema"), "no schema helps: {errors}");
}

#[test]
fn the_schema_of_scenarios_is_complete_and_has_nothing_else() {
    let output = Command::new(BINARY).args(["mock", "--scenario-schema"]).output().unwrap();
    let schema: Value = serde_json::from_slice(&output.stdout).unwrap();
    let pointer = schema["$ref"].as_str().unwrap().trim_start_matches('#');
    let scenario = schema.pointer(pointer).unwrap();
    for name in ["$schema", "clock", "keys", "parcels", "webhooks", "faults"] {
        assert!(scenario["properties"][name].is_object(), "{name}: {scenario}");
    }
    assert_eq!(scenario["additionalProperties"], false);
    let text = schema.to_string();
    for reference in text.split(r##""$ref":"#"##).skip(1) {
        let pointer = reference.split('"').next().unwrap();
        assert!(schema.pointer(pointer).is_some(), "{pointer}");
    }
    for name in ["PlannedFault", "FaultKind", "WantedKey", "WantedInbox", "ParcelStatus"] {
        assert!(schema["$defs"][name].is_object(), "{name}");
    }
    assert_eq!(schema["$defs"].get("OrderRequest"), None);
    // Strict validators refuse keywords that only OpenAPI has.
    for keyword in ["components", "\"example\""] {
        assert!(!text.contains(keyword), "{keyword}: {text}");
    }
}

/// Returns a command that runs a suite with a mock server.
fn exec(suite: &str) -> Command {
    let mut mock = Command::new(BINARY);
    mock.args(["mock", "--exec", suite]).stdin(Stdio::null());
    mock
}

#[test]
fn exec_runs_a_suite_and_ends_with_its_exit_code() {
    let run = |suite: &str| {
        let output = exec(suite).output().unwrap();
        (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned())
    };
    let (code, output) = run("echo \"seen $PARCELO_BASE_URL $PARCELO_API_KEY\"");
    let line = output.lines().find(|line| line.starts_with("seen ")).unwrap();
    assert!(line.starts_with("seen http://127.0.0.1:") && line.contains(" pk_test_"), "{output}");
    assert_eq!(code, Some(0));
    assert_eq!(run("exit 7").0, Some(7));
    assert_eq!(run("kill -9 $$").0, Some(137));
    assert_eq!(run("no-such-command-anywhere").0, Some(127));
}

#[test]
fn an_interrupted_suite_ends_with_its_children_and_fails() {
    for (signal, code) in [("TERM", 143), ("INT", 130), ("HUP", 129)] {
        let folder = tempfile::tempdir().unwrap();
        let gone = folder.path().join("gone");
        // The child of the shell gets the signal too.
        let suite = format!(
            "sh -c 'trap \"touch {gone}; exit\" {signal}; kill -{signal} '$PPID'; \
             while :; do sleep 0.05; done'; true",
            gone = gone.display()
        );
        assert_eq!(exec(&suite).output().unwrap().status.code(), Some(code), "{signal}");
        assert!(gone.exists(), "{signal} did not reach what the suite had started");
    }
}

#[test]
fn a_suite_that_ignores_an_interrupt_is_killed() {
    // A background job of a shell ignores an interrupt, and keeps the output open.
    let suite = "(while :; do sleep 0.05; done) & kill -INT $PPID; wait";
    assert_eq!(exec(suite).output().unwrap().status.code(), Some(130));
}

#[test]
fn a_ready_file_is_private_and_overwrites_no_other_file() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let (ready, neighbour) = (folder.path().join("notes.json"), folder.path().join("notes.tmp"));
    std::fs::write(&neighbour, "mine").unwrap();
    assert!(exec("true").arg("--ready-file").arg(&ready).status().unwrap().success());
    assert_eq!(std::fs::read_to_string(&neighbour).unwrap(), "mine");
    assert_eq!(std::fs::metadata(&ready).unwrap().permissions().mode() & 0o777, 0o600);
    let output = exec("true").arg("--ready-file").arg(folder.path()).output().unwrap();
    assert!(!output.status.success());
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2, "no draft with a key is left");
}

#[test]
fn a_ready_file_may_be_a_pipe() {
    use std::os::unix::fs::FileTypeExt;
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("ready");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let (sender, receiver) = std::sync::mpsc::channel();
    let reader = pipe.clone();
    std::thread::spawn(move || sender.send(std::fs::read_to_string(reader)));
    assert!(exec("true").arg("--ready-file").arg(&pipe).status().unwrap().success());
    assert!(std::fs::symlink_metadata(&pipe).unwrap().file_type().is_fifo());
    let content = receiver.recv_timeout(LONG).unwrap().unwrap();
    assert!(content.contains("\"pid\""), "it is not read");
}

#[test]
fn wrong_arguments_suggest_the_right_ones() {
    for (arguments, hint) in [
        (["--clock", "frozen=noon"], "2026-01-05T08:00:00Z"),
        (["--clock", "stopped"], "ticking=TIME"),
        (["--listen", "somewhere"], "socket address"),
    ] {
        let output = Command::new(BINARY).arg("mock").args(arguments).output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(errors.contains(hint), "{arguments:?}: {errors}");
    }
}

#[tokio::test]
async fn a_real_server_has_no_controls() {
    let (_setup, running) = crate::running::TestSetup::new_and_start();
    for listener in ["production", "sandbox", "admin"] {
        let api = Api::new(running.url(listener));
        assert_eq!(api.get("/__mock/clock").await.status, 404, "{listener}");
        assert!(!api.get("/openapi.json").await.text().contains("__mock"), "{listener}");
    }
}

/// Creates an order. Returns the address in the label link, the tracking number, and the bytes of the response.
async fn created(api: &Api, host: &str, key: &str) -> (String, String, Vec<u8>) {
    let request = api.request("POST", "/api/v1/orders/create").header("host", host);
    let request = request.header("content-type", "application/json");
    let response = send(request.body(order(key).to_string())).await;
    let parcel = response.json()["parcel"].clone();
    let text = |name: &str| parcel[name].as_str().unwrap().to_owned();
    (text("labelUrl"), text("trackingNumber"), response.bytes)
}

#[tokio::test]
async fn links_use_the_host_of_the_request() {
    let mock = MockProcess::start(&["--listen", "0.0.0.0:0"]);
    assert!(mock.text("sandbox").starts_with("http://127.0.0.1:"), "{}", mock.text("sandbox"));
    let api = mock.api();
    let (link, number, bytes) = created(&api, "mock:8080", "order-0001").await;
    assert!(link.starts_with("http://mock:8080/files/"), "{link}");
    let metadata = api.request("GET", &format!("/api/v1/labels/{number}")).header("host", "other");
    let metadata = send(metadata).await.json();
    let tracking = metadata["data"]["qrCode"]["content"].as_str().unwrap();
    assert_eq!(tracking, format!("http://other/track/{number}"));
    let (_, _, again) = created(&api, "other", "order-0001").await;
    assert_eq!(again, bytes, "a replay keeps its first bytes");
}

#[tokio::test]
async fn links_use_the_base_url_of_the_flag() {
    let mock = MockProcess::start(&["--base-url", "https://mock.example/parcelo/"]);
    let (link, ..) = created(&mock.api(), "other", "order-0001").await;
    assert!(link.starts_with("https://mock.example/parcelo/files/"), "{link}");
}
