//! Every exit code of the command, and the text that is printed with it.

use std::{fs, process::Stdio, sync::atomic::Ordering};

use serde_json::json;

use crate::{
    fake_servers,
    shop::{TestShop, Workdir},
    waiting::LONG,
};

#[tokio::test(flavor = "multi_thread")]
async fn health_exits_with_0_and_shows_the_permissions_of_the_key() {
    let shop = TestShop::open().await;
    let key = shop.server.key().name("Warehouse 1").countries(["EC", "CO"]).issue();
    let dir = shop.with_key(&key);
    let output = dir.run("health");
    assert_eq!(output.code, 0, "{output:?}");
    insta::assert_snapshot!("health", output.text());
    let expected = json!(["EC", "CO"]);
    assert_eq!(dir.run("health -o json").json()["allowedCountries"], expected);
    assert_eq!(dir.run("health -o ndjson").lines()[0]["allowedCountries"], expected);
    let csv = "status,keyName,environment,allowedCountries\nok,Warehouse 1,sandbox,EC CO\n";
    assert_eq!(dir.run("health -o csv").text(), csv);
    assert!(shop.run("health").text().contains("all supported countries"));
}

#[tokio::test(flavor = "multi_thread")]
async fn no_root_certificates_of_the_machine_are_needed() {
    let shop = TestShop::open().await;
    let nowhere = [("SSL_CERT_FILE", "/nowhere/certificates"), ("SSL_CERT_DIR", "/nowhere")];
    let output = shop.dir.run_with("health", &nowhere, "");
    assert_eq!(output.code, 0, "{output:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_without_tls_exits_with_8_and_names_the_address() {
    let shop = TestShop::open().await;
    let plain = shop.server.url().replace("http:", "https:");
    let output = shop.dir.run_with("health -o json", &[("PARCELO_BASE_URL", &plain)], "");
    output.assert_error(8, "NETWORK");
    let hint = output.error()["hint"].to_string();
    assert!(hint.contains("address"), "{hint}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_untrusted_certificate_exits_with_8_after_one_attempt() {
    let (shop, peer) = (TestShop::open().await, fake_servers::start_untrusted_tls().await);
    let run = |line, variables: &[_]| {
        let variables = [&[("PARCELO_BASE_URL", &*peer.url)], variables].concat();
        shop.dir.run_with(line, &variables, "")
    };
    let output = run("health -o json", &[]);
    output.assert_error(8, "NETWORK");
    let message = output.error()["message"].to_string();
    assert!(
        message.contains("could not prove its identity (TLS); nothing was sent: invalid"),
        "{message}"
    );
    assert!(output.error()["hint"].to_string().contains("SSL_CERT_FILE"), "{output:?}");
    assert_eq!(peer.connections.load(Ordering::Relaxed), 1, "a retry could not succeed");
    let text_output = run("health --lang es", &[]);
    assert!(
        text_output.stderr.contains("El servicio no pudo probar su identidad (TLS)"),
        "{text_output:?}"
    );

    fs::write(shop.dir.path("authority.pem"), &peer.authority).unwrap();
    let authority = shop.dir.path("authority.pem");
    let trusted = run("health -o json", &[("SSL_CERT_FILE", authority.to_str().unwrap())]);
    trusted.assert_error(4, "AUTH_INVALID_API_KEY");
}

#[tokio::test(flavor = "multi_thread")]
async fn plain_http_ignores_the_environment_proxy() {
    let shop = TestShop::open().await;
    let proxy = fake_servers::start_with_response("200 OK", "{}").await;
    let names = ["http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"];
    let variables = names.map(|name| (name, &*proxy));
    let output = shop.with_key(&shop.key).run_with("health", &variables, "");
    assert_eq!(output.code, 0, "{output:?}");
    shop.server.requests().assert_count(1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_command_line_exits_with_2() {
    let shop = TestShop::open().await;
    for line in [
        "",
        "order",
        "trak SB-SUCCESS-0001",
        "track",
        "track SB-SUCCESS-0001 --histroy",
        "order create",
        "order create missing.json",
        "order create order.json --format zpl",
        "health -o yaml",
        "health --lang fr",
        "health --base-url ftp://example.com",
        "health --base-url 127.0.0.1:8081",
        "health --base-url http://user:secret@127.0.0.1",
        "order create - --api-key-stdin",
        "track - --api-key-stdin",
        "track - -",
        "order void",
        "order void SB-SUCCESS-0001 --reason",
        "manifest submit SB-SUCCESS-0001",
        "manifest submit --awb 176-12345675",
        "manifest show",
        "parcel list --status LOST",
        "parcel list --country xx",
        "parcel list --limit 0",
        "parcel list --limit 101",
        "parcel list --page 0",
        "parcel list --all --page 2",
        "label show",
        "label show SB-SUCCESS-0001 SB-SUCCESS-0002",
        "sandbox",
        "sandbox reset",
        "sandbox reset --api-key-stdin",
        "label show SB-SUCCESS-0001 --open",
        "track SB-SUCCESS-0001 --every 5",
        "track SB-SUCCESS-0001 --watch --every 0",
        "api",
        "api GET",
        "api GET api/v1/health",
        "api GET //example.com",
        "api GET http://example.com/",
        "api G/T /api/v1/health",
        "api POST /api/v1/tracking/batch --data missing.json",
        "config",
        "config use",
        "config use unknown",
        "config init a.b --base-url http://127.0.0.1:1",
        "config init",
        "webhook",
        "webhook listen",
        "webhook listen --secret whsec_short",
        "webhook listen --port 65536 --secret whsec_x",
        "health --profile unknown",
        "completions",
        "completions tcsh",
        "man nonsense",
        "man order --dir pages",
        "doctor --dry-run",
        "config list --dry-run",
    ] {
        let output = shop.run(line);
        assert_eq!(output.code, 2, "{line}: {output:?}");
        let found = ["hint:", "\"hint\":\""].iter().any(|word| output.stderr.contains(word));
        assert!(found || line.contains("missing"), "{line}: {output:?}");
        let json = shop.run(&format!("{line} -o json"));
        assert!(line.contains("-o ") || json.error()["code"].is_string(), "{line}: {json:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn standard_input_is_read_once_for_the_key_or_for_input() {
    let shop = TestShop::open().await;
    let table = [
        ("order validate - -", false),
        ("track - -", false),
        ("order validate - --api-key-stdin", true),
        ("track - --api-key-stdin", true),
    ];
    for (line, has_key) in table {
        let output = shop.run(&format!("{line} -o json"));
        let error = output.error();
        assert_eq!((output.code, &error["code"]), (2, &json!("USAGE")), "{line}: {output:?}");
        for hint in ["hint", "hint_es"].map(|name| error[name].to_string()) {
            assert_eq!(hint.contains("PARCELO_API_KEY"), has_key, "{line}: {hint}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_address_exits_with_2_and_a_flag_overrides_the_variable() {
    let shop = TestShop::open().await;
    let nowhere = Workdir::new(shop.key.secret(), "");
    let output = nowhere.run("health");
    assert_eq!(output.code, 2);
    assert!(output.stderr.contains("PARCELO_BASE_URL"), "{output:?}");
    let url = shop.server.url();
    assert_eq!(nowhere.run(&format!("health --base-url {url}")).code, 0);
    let dead = fake_servers::unused_address();
    assert_eq!(shop.run(&format!("health --base-url {dead}")).code, 8);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_mistyped_or_foreign_key_exits_with_4() {
    let shop = TestShop::open().await;
    let elsewhere = TestShop::open().await.server.key().name("Other").issue();
    let typo = shop.key.secret().replace("pk_test_", "pk_test_x");
    let table = [
        ("", "AUTH_MISSING_API_KEY"),
        (&*typo, "AUTH_INVALID_API_KEY"),
        ("nonsense", "AUTH_INVALID_API_KEY"),
        (elsewhere.secret(), "AUTH_INVALID_API_KEY"),
    ];
    for (key, code) in table {
        let dir = Workdir::new(key, shop.server.url());
        let warned = dir.run("health").stderr.contains("looks mistyped");
        assert_eq!(warned, key == typo, "{key}");
        let output = dir.run("health -o json");
        output.assert_error(4, code);
        assert!(output.error()["hint"].as_str().unwrap().contains("PARCELO_API_KEY"), "{output:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_forbidden_country_exits_with_4() {
    let shop = TestShop::open().await;
    let dir = shop.with_key(&shop.server.key().countries(["CO"]).issue());
    let output = dir.run("order create order.json -o json");
    output.assert_error(4, "AUTH_COUNTRY_NOT_ALLOWED");
    assert_eq!(output.error()["mayHaveExecuted"], false);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_key_is_never_read_from_an_argument() {
    let shop = TestShop::open().await;
    let keyless = Workdir::new("", shop.server.url());
    let secret = shop.key.secret();
    let output = keyless.run_with("health --api-key-stdin", &[], &format!("{secret}\n"));
    assert_eq!(output.code, 0, "{output:?}");
    assert_eq!(keyless.run("health --api-key-stdin").code, 4);
    for line in ["health --api-key=", "health ", "track ", "health --key=", "--api-key "] {
        let output = shop.run(&format!("{line}{secret}"));
        assert!(output.code == 2 || line == "track ", "{line}: {output:?}");
    }
    let found = shop.run(&format!("health --api-key={secret}"));
    assert!(found.stderr.contains("--api-key-stdin"), "{found:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn too_many_requests_exit_with_7_and_the_time_to_wait() {
    let url = fake_servers::start_with_response(
        "429 Too Many Requests\r\nretry-after: 3600",
        r#"{"success":false,"error":{"code":"RATE_LIMIT_EXCEEDED","message":"Too many.","message_es":"Demasiadas.","retryAfter":3600}}"#,
    )
    .await;
    let dir = Workdir::new(TestShop::open().await.key.secret(), &url);
    let output = dir.run("track SB-SUCCESS-0001");
    assert_eq!(output.code, 7, "{output:?}");
    assert!(output.stderr.contains("Wait 3600 s"), "{output:?}");
    let json = dir.run("order create order.json -o json");
    assert_eq!((json.code, &json.error()["retryAfter"]), (7, &json!(3600)));
    assert_eq!(json.error()["mayHaveExecuted"], false);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unreachable_server_exits_with_8_for_reads_and_writes() {
    let dir = Workdir::new(TestShop::open().await.key.secret(), &fake_servers::unused_address());
    for line in [
        "health",
        "track SB-SUCCESS-0001",
        "track SB-SUCCESS-0001 SB-SUCCESS-0002",
        "parcel list --all",
        "parcel show 4711",
        "manifest show man_1",
        "label show SB-SUCCESS-0001",
        "api GET /api/v1/health",
        "order create order.json",
        "order void SB-SUCCESS-0001",
        "label reprint SB-SUCCESS-0001",
        "manifest submit SB-SUCCESS-0001 --awb 176-12345675",
        "sandbox reset --yes",
    ] {
        let output = dir.run(&format!("{line} -o json"));
        output.assert_error(8, "NETWORK");
        assert_eq!(output.error()["mayHaveExecuted"], false, "{line}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_interrupted_read_exits_with_8_and_a_write_with_9() {
    let dir = Workdir::new(
        TestShop::open().await.key.secret(),
        &fake_servers::start_closing_connections().await,
    );
    assert_eq!(dir.run("track SB-SUCCESS-0001").code, 8);
    let text_output = dir.run("order create order.json --lang es");
    assert_eq!(text_output.code, 9, "{text_output:?}");
    assert!(
        text_output.stderr.contains("clave de idempotencia order-SB-SUCCESS-0001"),
        "{text_output:?}"
    );
    let error = dir.run("order create order.json -o json");
    assert_eq!(error.code, 9);
    assert_eq!(error.error()["mayHaveExecuted"], true);
    assert_eq!(error.error()["idempotencyKey"], "order-SB-SUCCESS-0001");
}

#[tokio::test(flavor = "multi_thread")]
async fn every_interrupted_write_says_how_to_resume_it() {
    let dir = Workdir::new(
        TestShop::open().await.key.secret(),
        &fake_servers::start_closing_connections().await,
    );
    let table = [
        ("order void SB-SUCCESS-0001", "--idempotency-key idk-", true),
        (
            "order void SB-SUCCESS-0001 --idempotency-key void-0001",
            "--idempotency-key void-0001,",
            true,
        ),
        ("label reprint SB-SUCCESS-0001", "--idempotency-key idk-", true),
        ("manifest submit SB-SUCCESS-0001 --awb 176-12345675", "never submitted twice", true),
        ("sandbox reset --yes", "parcelo parcel list", false),
        ("api POST /api/v1/orders/create --data order.json", "idempotencyKey", true),
    ];
    for (line, remedy, keyed) in table {
        let output = dir.run(&format!("{line} -o json"));
        let error = output.error();
        assert_eq!(
            (output.code, &error["mayHaveExecuted"]),
            (9, &json!(true)),
            "{line}: {output:?}"
        );
        let hint = error["hint"].as_str().unwrap();
        assert!(hint.contains(remedy), "{line}: {hint}");
        assert_eq!(error["idempotencyKey"].is_string(), keyed, "{line}");
        let key = error["idempotencyKey"].as_str().unwrap_or_default();
        assert!(!remedy.contains("idk") || hint.contains(key), "{line}: {hint}");
        assert_ne!(error["hint"], error["hint_es"], "{line}");
    }
}

/// If there is a response, whether from the service or from another server, the network is not to blame.
#[tokio::test(flavor = "multi_thread")]
async fn a_response_from_another_service_exits_with_8_and_a_hint() {
    let secret = TestShop::open().await.key;
    let table = [
        ("200 OK", "<html>", "the address is that of the service"),
        ("302 Found\r\nlocation: /", "", "the address is that of the service"),
        ("501 No", "", "The service failed"),
    ];
    for (head, body, fitting) in table {
        let dir =
            Workdir::new(secret.secret(), &fake_servers::start_with_response(head, body).await);
        let output = dir.run("health -o json");
        assert_eq!(output.code, 8, "{head}");
        let hint = output.error()["hint"].to_string();
        assert!(hint.contains(fitting) && !hint.contains("network"), "{head}: {hint}");
    }
}

#[cfg(unix)]
#[tokio::test(flavor = "multi_thread")]
async fn an_interrupted_write_exits_with_130_and_shows_its_key() {
    let key = TestShop::open().await.key;
    for (line, resumed) in [
        ("order create order.json", "order-SB-SUCCESS-0001"),
        ("order void SB-SUCCESS-0001 --idempotency-key void-0001", "void-0001"),
    ] {
        let (url, taken) = fake_servers::start_silent().await;
        let dir = Workdir::new(key.secret(), &url);
        let line = format!("{line} -o json");
        let child = dir.start(&line, Stdio::piped());
        tokio::time::timeout(LONG, taken.notified()).await.unwrap();
        crate::shop::interrupt(&child);
        let output = dir.read_output(child.wait_with_output().unwrap(), &line);
        output.assert_error(130, "INTERRUPTED");
        assert_eq!(output.error()["idempotencyKey"], resumed);
        assert!(output.error()["hint"].as_str().unwrap().contains(resumed), "{output:?}");
        assert_eq!(output.error()["mayHaveExecuted"], true);
    }
}

#[cfg(unix)]
#[test]
fn a_closed_pipe_is_not_an_error() {
    let dir = Workdir::new("", "");
    // Longer than the output buffer.
    let many = vec![crate::shop::order("SB-SUCCESS-0001"); 2000];
    std::fs::write(dir.path("many.json"), serde_json::to_vec(&many).unwrap()).unwrap();
    for line in [
        "order template",
        "--help",
        "order validate order.json -o csv",
        "order validate many.json -o csv",
        "order validate many.json -o ndjson",
        "order validate many.json",
    ] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let child = dir.start(line, writer.into());
        let output = dir.read_output(child.wait_with_output().unwrap(), line);
        assert_eq!(output.code, 0, "{line}: {output:?}");
        assert!(!output.stderr.contains("error"), "{line}: {output:?}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn results_that_cannot_be_written_exit_with_1() {
    Workdir::new("", "").assert_full_output_fails("order template", &[]);
}

/// The runtime needs more open files than the process may have.
#[cfg(target_os = "linux")]
#[test]
fn a_failed_start_does_not_blame_standard_output() {
    let secret = "whsec_QUJDREVGR0hJSktMTU5PUFFSU1RVVldY";
    let line = format!("webhook listen --port 0 --secret {secret}");
    let output = Workdir::new("", "").run_limited("ulimit -n 4", &line);
    assert_eq!(output.code, 1, "{output:?}");
    assert!(!output.stderr.contains("standard output"), "{output:?}");
    assert!(output.stderr.contains("Cannot start"), "{output:?}");
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread")]
async fn a_watch_that_cannot_be_written_exits_with_1() {
    let shop = TestShop::open().await;
    shop.run("order create order.json");
    shop.dir.assert_full_output_fails("track SB-SUCCESS-0001 --watch --every 3600", &[]);
}
