//! The server as operators run it: first start, ready file, admin commands, signals.

use std::{
    io::Write,
    process::{Command, Stdio},
};

use serde_json::json;

use crate::{
    api::{Api, order, order_with_number, send, with},
    running::{BINARY, TestSetup},
    waiting::until,
};

#[tokio::test]
async fn a_first_start_prints_curl_lines_that_work() {
    let (setup, running) = TestSetup::new_and_start();
    let output = setup.output();
    let run = |line: &str| -> serde_json::Value {
        let response = Command::new("sh").args(["-c", line]).output().unwrap();
        serde_json::from_slice(&response.stdout).expect(line)
    };
    let (_, after) = output.split_once("  curl ").expect("a curl line");
    let (curl, _) = after.split_once("\n\n").expect("an empty line after it");
    let body = run(&format!("curl {curl}"));
    assert_eq!(body["parcel"]["trackingNumber"], "SB-SUCCESS-0001", "{body}");
    assert_eq!(body.get("warnings"), None, "{body}");
    let keys = run(output.lines().rfind(|line| line.contains("/admin/v1/keys")).unwrap());
    assert_eq!(keys["data"][0]["name"], "First key", "{keys}");
    drop(running);
    let _again = setup.start(&[]);
    let count = |text: &str| text.matches("pk_test_").count();
    assert_eq!(count(&setup.output()), count(&output), "shown once only");
}

#[tokio::test]
async fn a_start_logs_version_database_addresses_and_settings() {
    let setup = TestSetup::new();
    let variables = [("PARCELO_LOG", "info"), ("PARCELO_COUNTRIES", "EC, CO")];
    let running = setup.start_with(&variables, &["--drain", "5", "--sandbox-rate-limit", "7"]);
    running.stop();
    let output = setup.output();
    let lines = output.lines().filter_map(|line| serde_json::from_str(line).ok());
    let lines: Vec<serde_json::Value> = lines.collect();
    let starting = &lines[0]["fields"];
    assert_eq!(starting["message"], "starting", "{output}");
    assert_eq!(starting["version"], env!("CARGO_PKG_VERSION"));
    assert!(!starting["database"].as_str().unwrap().is_empty(), "{starting}");
    let set = starting["set"].as_str().unwrap();
    assert!(set.contains("--sandbox-rate-limit=7") && set.contains("--countries=EC, CO"), "{set}");
    // 5 is the default, and a database's address may contain a password.
    assert!(!set.contains("--drain") && !set.contains("--database"), "{set}");
    let addresses = lines.iter().filter(|line| line["fields"]["message"] == "listening");
    let addresses: Vec<_> = addresses.map(|line| line["fields"]["url"].clone()).collect();
    let ready = ["production", "sandbox", "admin"].map(|name| running_url(&setup, name));
    assert_eq!(addresses, ready);
}

/// Returns the address of the listener in the setup's last ready file.
fn running_url(setup: &TestSetup, listener: &str) -> serde_json::Value {
    let ready = std::fs::read_to_string(setup.path("ready.json")).unwrap();
    serde_json::from_str::<serde_json::Value>(&ready).unwrap()[listener].clone()
}

#[tokio::test]
async fn requests_are_logged_with_their_client_and_probes_at_debug() {
    let setup = TestSetup::new();
    let trust = ["--trusted-proxies", "127.0.0.1"];
    let running = setup.start_with(&[("PARCELO_LOG", "info")], &trust);
    let api = Api::new(running.url("sandbox"));
    let request = api.request("GET", "/api/v1/health").header("x-forwarded-for", "203.0.113.9");
    let trace = "4bf92f3577b34da6a3ce929d0e0e4736";
    let request = request.header("traceparent", format!("00-{trace}-00f067aa0ba902b7-01"));
    assert_eq!(send(request).await.status, 401);
    for (listener, path) in [("sandbox", "/readyz"), ("admin", "/healthz"), ("admin", "/metrics")] {
        assert_eq!(Api::new(running.url(listener)).get(path).await.status, 200, "{path}");
    }
    assert_eq!(Api::new(running.url("admin")).get("/metric").await.status, 404);
    running.stop();
    let log = setup.output();
    assert!(log.contains(r#""client":"203.0.113.9""#), "{log}");
    let answered: Vec<_> = log.lines().filter(|line| line.contains("answered")).collect();
    assert_eq!(answered.len(), 2, "{answered:?}");
    assert!(answered[0].contains(&format!(r#""trace_id":"{trace}""#)), "{answered:?}");
}

/// The id tells an operator who uses a leaked key, even from an address that the key does not allow.
#[tokio::test]
async fn requests_are_logged_with_the_id_of_their_key_and_without_the_key() {
    let setup = TestSetup::new();
    let trust = ["--trusted-proxies", "127.0.0.1"];
    let running = setup.start_with(&[("PARCELO_LOG", "info")], &trust);
    let (id, key) = setup.new_key_with("sandbox", &["--ip", "203.0.113.0/24"]);
    let clients = [("203.0.113.9", 200), ("198.51.100.7", 403)];
    for (client, status) in clients {
        let request = running.api(&key).request("GET", "/api/v1/health");
        assert_eq!(send(request.header("x-forwarded-for", client)).await.status, status);
    }
    // In the wrong place.
    let request = running.api(&key).request(key.secret(), "/api/v1/health");
    assert!(send(request).await.status >= 400);
    running.stop();
    let log = setup.output();
    for (client, _) in clients {
        let client = format!(r#""client":"{client}""#);
        let line = log.lines().find(|line| line.contains(&client)).unwrap();
        assert!(line.contains(&format!(r#""key_id":"{id}""#)), "{line}");
    }
    assert!(!log.contains(key.secret()), "{log}");
}

#[tokio::test]
async fn the_first_secrets_are_in_a_file_only_its_owner_can_read() {
    use std::os::unix::fs::PermissionsExt;
    let setup = TestSetup::new();
    let file = setup.path("secrets.txt");
    let unwritable = setup.path("no-such-folder/secrets.txt");
    let refused = setup.command().arg("--secrets-file").arg(&unwritable).output().unwrap();
    let reason = String::from_utf8(refused.stderr).unwrap();
    assert!(!refused.status.success(), "{reason}");
    assert!(reason.contains("cannot write the secrets file"), "{reason}");
    let device = setup.command().args(["--secrets-file", "/dev/full"]).output().unwrap();
    let reason = String::from_utf8(device.stderr).unwrap();
    assert!(!device.status.success() && reason.contains("not a regular file"), "{reason}");
    // Nothing was created then, so no secret was shown without a reader.
    std::fs::write(&file, "kept\n").unwrap();
    setup.start(&["--secrets-file", file.to_str().unwrap()]).stop();
    let secrets = std::fs::read_to_string(&file).unwrap();
    assert!(secrets.starts_with("kept\n"), "{secrets}");
    let key = secrets.split_whitespace().find(|word| word.starts_with("pk_test_")).unwrap();
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    let output = setup.output();
    assert!(output.contains(file.to_str().unwrap()), "{output}");
    for word in secrets.split_whitespace().filter(|word| word.len() >= 20 && word.contains('_')) {
        assert!(!output.contains(word), "{word}: {output}");
    }
    std::fs::remove_file(&file).unwrap();
    let running = setup.start(&["--secrets-file", file.to_str().unwrap()]);
    assert_eq!(std::fs::read(&file).unwrap(), b"", "they are shown once");
    let key = parcelo::ApiKey::parse(key).unwrap();
    assert_eq!(running.api(&key).get("/api/v1/health").await.status, 200);
}

/// Reads a file in examples/deploy.
pub(crate) fn deployment(name: &str) -> String {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/deploy");
    std::fs::read_to_string(folder.join(name)).unwrap()
}

/// Returns the image's health check for a server at this address.
fn health_check(url: &str) -> String {
    let file = deployment("Dockerfile");
    let check = file.lines().find_map(|line| line.strip_prefix("HEALTHCHECK CMD ")).unwrap();
    check.replace("/8082", &format!("/{}", url.rsplit(':').next().unwrap()))
}

#[tokio::test]
async fn the_container_is_healthy_while_its_server_is_ready() {
    let (_setup, running) = TestSetup::new_and_start();
    let check = health_check(running.url("admin"));
    let is_healthy = || Command::new("sh").args(["-c", &check]).output().unwrap().status.success();
    assert!(is_healthy(), "{check}");
    running.stop();
    assert!(!is_healthy(), "{check}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_container_with_the_mock_server_is_healthy() {
    let server = parcelo_server::mock::MockServer::start().await;
    let check = health_check(server.url());
    let output = Command::new("sh").args(["-c", &check]).output().unwrap();
    assert!(output.status.success(), "{check}: {output:?}");
}

#[test]
fn the_container_and_the_unit_set_variables_the_server_reads() {
    let help = ["serve", "mock"].map(|command| {
        let help = Command::new(BINARY).args([command, "--help"]).output().unwrap();
        String::from_utf8(help.stdout).unwrap()
    });
    let help = help.concat();
    for file in ["Dockerfile", "parcelo-server.service", "compose.yaml"] {
        // The name of the machine is for the proxy alone.
        let text = deployment(file).replace("PARCELO_HOST", "");
        let words = text.split([' ', '\n', '=', ':']).filter(|word| word.starts_with("PARCELO_"));
        let names: Vec<_> = words.collect();
        assert!(names.len() >= 2, "{file}: {names:?}");
        for name in names {
            assert!(help.contains(name), "{file}: {name}");
        }
    }
}

/// systemd would give up a server that fails five times in ten seconds, as on a full disk, and leave it off once
/// there is space again.
#[test]
fn the_unit_starts_the_server_again_however_often_it_fails() {
    let unit = deployment("parcelo-server.service");
    let (head, service) = unit.split_once("\n[Service]\n").unwrap();
    assert!(head.lines().any(|line| line == "StartLimitIntervalSec=0"), "{unit}");
    assert!(service.contains("\nRestart=on-failure\nRestartSec=1\n"), "{unit}");
}

#[tokio::test]
async fn the_ready_file_names_every_listener_and_the_process() {
    let (setup, running) = TestSetup::new_and_start();
    for listener in ["production", "sandbox", "admin"] {
        for path in ["/healthz", "/readyz"] {
            let response = Api::new(running.url(listener)).get(path).await;
            assert_eq!(response.status, 200, "{listener} {path}");
        }
    }
    assert!(running.ready["pid"].is_u64());
    drop(running);
    let only = setup.start(&["--environments", "sandbox"]);
    assert_eq!(only.ready.get("production"), None);
}

#[tokio::test]
async fn keys_are_created_and_revoked_on_a_running_server() {
    let (setup, running) = TestSetup::new_and_start();
    let (id, key) = setup.new_key("sandbox");
    let api = running.api(&key);
    assert_eq!(api.get("/api/v1/health").await.status, 200);
    let listed = setup.admin("keys", &["list"]);
    assert_eq!(listed.as_array().unwrap().len(), 2, "{listed}");
    assert!(!listed.to_string().contains(key.secret()));
    setup.admin("keys", &["revoke", &id]);
    until("the revocation is in force", async || api.get("/api/v1/health").await.status == 401)
        .await;
    assert!(!setup.try_admin(&["keys", "revoke", "key_x"]).0);
}

#[tokio::test]
async fn each_environment_has_its_numbers_limits_and_address() {
    let (setup, running) = TestSetup::new_and_start();
    let (live, test) = (setup.new_key("production").1, setup.new_key("sandbox").1);
    let production = Api::with_key(running.url("production"), &live);
    let number = production.create_parcel(&order("order-0001")).await;
    assert!(number.starts_with("EC") && number.len() == 15, "{number}");
    assert_eq!(production.track(&number).await.header("x-ratelimit-limit"), "50");
    let sandbox = running.api(&test);
    assert_eq!(sandbox.track(&number).await.header("x-ratelimit-limit"), "100");
    let reserved = production.create(&order_with_number("order-0002", "SB-SUCCESS-0001")).await;
    assert!(reserved.faults()[0].starts_with("trackingNumber"), "{}", reserved.text());
    let astray = Api::with_key(running.url("production"), &test).get("/api/v1/health").await;
    let message = astray.json()["error"]["message"].as_str().unwrap().to_owned();
    assert!(message.contains(running.sandbox()), "{message}");
}

#[tokio::test]
async fn behind_a_trusted_proxy_the_client_address_is_forwarded() {
    let setup = TestSetup::new();
    let running = setup.start(&["--trusted-proxies", "127.0.0.1"]);
    let api = running.api(&setup.new_key_with("sandbox", &["--ip", "192.0.2.1"]).1);
    let table: [(&[&[u8]], u16); 6] = [
        (&[], 403),
        (&[b"192.0.2.1"], 200),
        (&[b"192.0.2.1, 198.51.100.7"], 403),
        (&[b"192.0.2.1", b"198.51.100.7"], 403),
        (&[b"192.0.2.1", b"\xff"], 403),
        (&[b"\xff, 192.0.2.1"], 200),
    ];
    for (lines, status) in table {
        let mut request = api.request("GET", "/api/v1/health");
        for line in lines {
            request = request.header("X-Forwarded-For", *line);
        }
        assert_eq!(send(request).await.status, status, "{lines:?}");
    }
}

#[tokio::test]
async fn label_links_work_under_any_public_address() {
    let table: [(&[&str], &str, &str); 4] = [
        (
            &["--sandbox-base-url", "https://x.example/parcelo"],
            "https://x.example/parcelo",
            "/files/",
        ),
        (&["--sandbox-labels-host", "https://labels.example"], "https://labels.example", "/"),
        (
            &["--sandbox-labels-host", "https://labels.example/a/b/"],
            "https://labels.example",
            "/a/b/",
        ),
        (
            &[
                "--sandbox-base-url",
                "https://x.example",
                "--sandbox-labels-host",
                "https://x.example.net/l",
            ],
            "https://x.example.net",
            "/l/",
        ),
    ];
    for (arguments, public, path) in table {
        let setup = TestSetup::new();
        let running = setup.start(arguments);
        let created = running.api(&setup.new_key("sandbox").1).create(&order("order-0001")).await;
        let link = created.json()["parcel"]["labelUrl"].as_str().unwrap().to_owned();
        let behind = link.strip_prefix(public).unwrap_or_else(|| panic!("{link}"));
        assert!(behind.starts_with(path), "{link}");
        let anyone = Api::new(running.sandbox());
        assert_eq!(anyone.get(behind).await.status, 200, "{link}");
        assert_eq!(anyone.get("/healthz").await.status, 200);
    }
}

#[tokio::test]
async fn wrong_arguments_suggest_the_right_ones() {
    let table: [(&[&str], &str); 18] = [
        (&["keys", "list", "--database", "sqlite:/nonexistent.db"], "does not exist or is empty"),
        (
            &["keys", "revoke", "key_1", "--database", "sqlite:/nonexistent.db"],
            "does not exist or is empty",
        ),
        (&["serve", "--database", "mysql://x"], "sqlite:FILE"),
        (
            &["keys", "rotate", "key_1", "--database", "sqlite:/nonexistent.db"],
            "does not exist or is empty",
        ),
        (&["keys", "rotate", "key_1", "--overlap", "8d"], "7 days at most"),
        (&["keys", "rotate", "key_1", "--overlap", "24"], "24h, 90m or 7d"),
        (&["serve", "--database", "sqlite:/nonexistent/folder/p.db"], "/nonexistent/folder"),
        (&["serve", "--database", "sqlite:/nonexistent/folder/p.db"], "No such file"),
        (&["keys", "list", "--database", "sqlite::memory:"], "database file"),
        (&["serve", "--base-url", "mailto:someone"], "expected an http or https address"),
        (&["serve", "--base-url", "parcelo.example"], "expected an http or https address"),
        (&["serve", "--base-url", "localhost:8080"], "expected an http or https address"),
        (&["serve", "--labels-host", "https://labels.example/?a=b"], "https://"),
        (&["serve", "--labels-host", "https://labels.example/api/v1/tracking"], "outside /api"),
        (&["serve", "--sandbox-rate-limit", "0"], "1.."),
        (&["tokens", "create", "--name", "a\u{202E}b"], "invisible character"),
        (&["accounts", "create", "a\u{200B}"], "invisible character"),
        (&["backup", "sqlite::memory:"], "a file, not"),
    ];
    let assert_refused = |arguments: &[&str], hint: &str| {
        let output = Command::new(BINARY).args(arguments).env_clear().output().unwrap();
        let words = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && words.contains(hint), "{arguments:?}: {words}");
    };
    for (arguments, hint) in table {
        assert_refused(arguments, hint);
    }
    for (environment, name, countries, hint) in [
        ("test", "x", "*", "sandbox"),
        ("sandbox", "", "*", "1-100"),
        ("sandbox", "x", "xx", "ISO 3166"),
        ("sandbox", "x", "UK", "did you mean GB?"),
        ("sandbox", "x", "EC,*", "use it alone"),
        ("sandbox", "x", "*, EC", "use it alone"),
    ] {
        let create = ["keys", "create", "--environment", environment];
        assert_refused(&[&create[..], &["--name", name, "--countries", countries]].concat(), hint);
    }
}

#[test]
fn a_list_may_have_spaces_after_its_commas() {
    let setup = TestSetup::new();
    let key = ["create", "--environment", "sandbox", "--name", "x", "--countries", "EC, MX"];
    let created =
        setup.admin("keys", &[&key[..], &["--ip", "203.0.113.7, 2001:db8::/32"]].concat());
    assert_eq!(created["allowedCountries"], serde_json::json!(["EC", "MX"]));
    assert_eq!(created["ipWhitelist"], serde_json::json!(["203.0.113.7/32", "2001:db8::/32"]));
    setup.start(&["--countries", "EC, MX", "--environments", "production, sandbox"]);
}

#[test]
fn a_key_allows_at_most_50_ip_addresses() {
    let setup = TestSetup::new();
    let create = [&["keys"][..], &NEW_KEY, &["--ip", "10.0.0.0/8"].repeat(51)].concat();
    let (is_done, words) = setup.try_admin(&create);
    assert!(!is_done && words.contains("at most 50"), "{words}");
}

#[tokio::test]
async fn a_configured_secret_replaces_the_stored_one() {
    let setup = TestSetup::new();
    let secret = "0123456789abcdef".repeat(4);
    let key = setup.admin_with(&[("PARCELO_SECRET", &secret)], "keys", &NEW_KEY);
    let key = parcelo::ApiKey::parse(key["key"].as_str().unwrap()).unwrap();
    let without = setup.start(&[]);
    assert_eq!(without.api(&key).get("/api/v1/health").await.status, 401);
    drop(without);
    let with = setup.start_with(&[("PARCELO_SECRET", &secret)], &[]);
    assert_eq!(with.api(&key).get("/api/v1/health").await.status, 200);
    drop(with);
    let output = setup.command().env("PARCELO_SECRET", "short").output().unwrap();
    let words = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && words.contains("64 hexadecimal"), "{words}");
}

#[test]
fn only_serve_creates_a_database() {
    let setup = TestSetup::on_file("whether there is a file");
    let name = ["--name", "x"];
    let table: [(&[&str], &[&str]); 7] = [
        (&["accounts", "password", "default"], &[]),
        (&["accounts", "create", "Acme"], &[]),
        (&["accounts", "shop"], &["--shop-name", "Acme"]),
        (&["keys", "create", "--environment", "sandbox", "--countries", "*"], &name),
        (&["tokens", "create"], &name),
        (&["carriers", "create", "--environment", "sandbox"], &name),
        (&["webhooks", "set", "--environment", "sandbox", "--url", "https://shop.example/h"], &[]),
    ];
    let run = |command: &[&str], more: &[&str]| {
        let mut process = Command::new(BINARY);
        process.env_clear().args(command).args(more).args(["--database", &setup.database()]);
        process.stdin(Stdio::piped()).stderr(Stdio::piped()).stdout(Stdio::null());
        let mut child = process.spawn().unwrap();
        // A command that has ended reads no password.
        let _ = child.stdin.take().unwrap().write_all(b"a password of some length\n");
        let output = child.wait_with_output().unwrap();
        (output.status.success(), String::from_utf8(output.stderr).unwrap())
    };
    for (command, more) in table {
        let (success, words) = run(command, more);
        assert!(!success && words.contains("set --database"), "{command:?}: {words}");
        assert!(!setup.path("parcelo.db").exists(), "{command:?}");
    }
    setup.start(&[]).stop();
    for (command, more) in table {
        let (success, words) = run(command, more);
        assert!(success, "{command:?}: {words}");
    }
}

const NEW_KEY: [&str; 7] =
    ["create", "--environment", "sandbox", "--name", "Test", "--countries", "*"];

#[tokio::test]
async fn logs_contain_no_keys_or_personal_data() {
    let setup = TestSetup::new();
    let running =
        setup.start_with(&[("PARCELO_LOG", "debug")], &["--trusted-proxies", "127.0.0.1"]);
    let key = setup.new_key("sandbox").1;
    let mut canary = order("order-0001");
    for person in ["/sender", "/receiver"] {
        for field in ["/fullName", "/address/line1"] {
            canary = with(canary, &format!("{person}{field}"), "CANARY".into());
        }
    }
    let api = running.api(&key);
    let number = api.create_parcel(&canary).await;
    let wrong = with(canary, "/receiver/nationalId", "CANARY".into());
    let wrong = with(wrong, "/idempotencyKey", "order-0002".into());
    assert_eq!(api.create(&wrong).await.status, 400);
    let odd = api.request("GET", "/api/v1/CANARY?CANARY=CANARY");
    send(odd.header("X-Forwarded-For", "203.0.113.77")).await;
    // A visitor of the public page is a person.
    for (page, visitor) in
        [("/track/CANARY", "198.51.100.77"), ("/track/CANARY/", "2001:db8:7:7::77")]
    {
        send(api.request("GET", page).header("X-Forwarded-For", visitor)).await;
    }
    let carrier = ["create", "--environment", "sandbox", "--name", "Andes Cargo"];
    let created =
        [setup.admin("carriers", &carrier), setup.admin("tokens", &["create", "--name", "Test"])];
    let [carrier, token] =
        [&created[0]["key"], &created[1]["token"]].map(|secret| secret.as_str().unwrap());
    let post = async |url, path, name, value: &str, body: serde_json::Value| {
        let request = Api::new(running.url(url)).request("POST", path).body(body.to_string());
        send(request.header(name, value).header("Content-Type", "application/json")).await.status
    };
    let event = json!({ "eventId": "1", "trackingNumber": number, "location": "CANARY" });
    let events = json!({ "events": [event] });
    post("sandbox", "/carrier/v1/events", "X-Carrier-Key", carrier, events).await;
    let bearer = format!("Bearer {token}");
    let new = json!({ "name": "CANARY", "environment": "sandbox", "allowedCountries": ["EC"] });
    assert_eq!(post("admin", "/admin/v1/keys", "Authorization", &bearer, new).await, 201);
    running.stop();
    let logged =
        setup.output().split_once("curl").map_or(String::new(), |(_, rest)| rest.to_owned());
    assert!(logged.contains("/api/v1/orders/create"), "requests are logged: {logged}");
    for path in ["/carrier/v1/events", "/admin/v1/keys"] {
        assert!(logged.contains(path), "{path}: {logged}");
    }
    for client in [r#""203.0.113.77""#, r#""198.51.100.0/24""#, r#""2001:db8:7::/48""#] {
        assert!(logged.contains(client), "{client}: {logged}");
    }
    for secret in
        ["CANARY", key.secret(), carrier, token, &number, "198.51.100.77", "2001:db8:7:7:"]
    {
        assert!(!logged.contains(secret), "{secret}");
    }
}

#[tokio::test]
async fn a_path_that_is_not_utf_8_is_handled_like_any_other() {
    let (setup, running) = TestSetup::new_and_start();
    let key = setup.new_key("sandbox").1;
    let envelope = [
        ("sandbox", "/%FF", 404),
        ("sandbox", "/docs/%FF", 404),
        ("sandbox", "/files/%FF", 404),
        ("sandbox", "/api/v1/tracking/%FF", 400),
        ("sandbox", "/api/v1/labels/%FF", 404),
        ("sandbox", "/api/v1/labels/%FF/download", 404),
        ("sandbox", "/api/v1/manifests/%FF", 404),
        ("admin", "/%FF", 404),
    ];
    for (listener, path, status) in envelope {
        let response = Api::with_key(running.url(listener), &key).get(path).await;
        assert_eq!(response.status, status, "{path}: {}", response.text());
        assert_eq!(response.header("content-type"), "application/json", "{path}");
        assert_eq!(response.json()["success"], false, "{path}");
    }
    let pages = [
        ("sandbox", "/track/%FF"),
        ("admin", "/dashboard/keys/%FF/revoke"),
        ("admin", "/dashboard/webhooks/%FF"),
        ("admin", "/dashboard/parcels/sandbox/%FF"),
        ("admin", "/dashboard/parcels/sandbox/%FF/label.pdf"),
    ];
    for (listener, path) in pages {
        let request = Api::new(running.url(listener)).request("GET", path);
        let response = send(request.header("accept", "text/html")).await;
        assert_eq!(response.status, 404, "{path}: {}", response.text());
        assert_eq!(response.header("content-type"), "text/html; charset=utf-8", "{path}");
    }
}

#[tokio::test]
async fn a_missing_public_address_for_labels_is_a_warning() {
    let setup = TestSetup::new();
    let (start, label) = ("labels will work on this machine only", "live label's QR code leads");
    let count = |words: &str| setup.output().matches(words).count();
    let server = setup.start(&[]);
    let api = crate::api::Api::with_key(server.url("production"), &setup.new_key("production").1);
    let number = api.create_parcel(&order("order-0001")).await;
    for _ in 0..2 {
        assert_eq!(api.get(&format!("/api/v1/labels/{number}/download")).await.status, 200);
    }
    server.stop();
    assert_eq!((count(start), count(label)), (1, 1), "{}", setup.output());
    setup.start(&[]).stop();
    assert_eq!((count(start), count(label)), (2, 1), "{}", setup.output());
    setup.start(&["--base-url", "https://parcelo.example"]).stop();
    setup.start(&["--environments", "sandbox"]).stop();
    assert_eq!(count(start), 2, "{}", setup.output());
}

#[test]
fn neither_a_refusal_nor_the_help_shows_a_password() {
    let wrong = "postgres://shop:s3cret@db.example/parcelo?sslmode=verify_full";
    let run = |arguments: &[&str]| {
        let mut command = Command::new(BINARY);
        command.env_clear().env("PARCELO_DATABASE", wrong).args(arguments);
        let output = command.output().unwrap();
        String::from_utf8([output.stdout, output.stderr].concat()).unwrap()
    };
    let refused = run(&["keys", "list"]);
    assert!(refused.contains("sslmode is disable"), "{refused}");
    let help = run(&["keys", "list", "--help"]);
    assert!(help.contains("PARCELO_DATABASE"), "{help}");
    assert!(!refused.contains("s3cret") && !help.contains("s3cret"), "{refused}{help}");
}
