//! `--dry-run`, `-v` and raw calls: the requests that the command sends or would send.

use serde_json::json;

use crate::{
    fake_servers,
    shop::{TestShop, Workdir},
};

#[tokio::test(flavor = "multi_thread")]
async fn every_command_that_sends_shows_its_request_and_sends_nothing() {
    let dir = Workdir::new(TestShop::open().await.key.secret(), &fake_servers::unused_address());
    let table = [
        ("order create order.json --label label.pdf", "POST", "/api/v1/orders/create"),
        ("order template --from SB-SUCCESS-0001", "GET", "/api/v1/parcels/SB-SUCCESS-0001/order"),
        ("order void SB-SUCCESS-0001 --reason Torn", "POST", "/api/v1/orders/void"),
        ("manifest submit SB-SUCCESS-0001 --awb 176-12345675", "POST", "/api/v1/manifests/submit"),
        ("manifest show man_1", "GET", "/api/v1/manifests/man_1"),
        (
            "track SB-SUCCESS-0001 --history",
            "GET",
            "/api/v1/tracking/SB-SUCCESS-0001?includeHistory=true",
        ),
        ("track SB-SUCCESS-0001 --watch", "GET", "/api/v1/tracking/SB-SUCCESS-0001"),
        ("track SB-SUCCESS-0001 SB-SUCCESS-0002", "POST", "/api/v1/tracking/batch"),
        ("parcel list --all", "GET", "/api/v1/parcels?page=1&limit=100"),
        ("parcel list --search 4711", "GET", "/api/v1/parcels?search=4711&page=1"),
        ("parcel show 4711", "GET", "/api/v1/parcels?search=%224711%22&limit=100"),
        (
            "label get SB-SUCCESS-0001 -f zpl -d out",
            "GET",
            "/api/v1/labels/SB-SUCCESS-0001/download?format=ZPL",
        ),
        ("invoice get SB-SUCCESS-0001 -d out", "GET", "/api/v1/parcels/SB-SUCCESS-0001/invoice"),
        ("label show SB-SUCCESS-0001", "GET", "/api/v1/labels/SB-SUCCESS-0001"),
        ("label reprint SB-SUCCESS-0001", "POST", "/api/v1/labels/SB-SUCCESS-0001/reprint"),
        ("sandbox reset", "POST", "/api/v1/sandbox/reset"),
        ("health", "GET", "/api/v1/health"),
        ("api DELETE /api/v1/health", "DELETE", "/api/v1/health"),
    ];
    for (line, method, path) in table {
        let text_output = dir.run(&format!("{line} --dry-run"));
        assert_eq!((text_output.code, &*text_output.stderr), (0, ""), "{line}");
        let curl = text_output.text();
        assert!(curl.starts_with(&format!("curl -X {method} 'http://127.0.0.1:")), "{curl}");
        assert!(curl.contains(&format!("{path}'")), "{line}: {curl}");
        assert!(curl.contains("'x-api-key: pk_test_***'"), "{curl}");
        let request = dir.run(&format!("{line} --dry-run -o ndjson")).lines()[0].clone();
        assert_eq!(request["method"], method);
        assert_eq!(request["headers"]["x-api-key"], "pk_test_***");
        let csv = dir.run(&format!("{line} --dry-run -o csv"));
        assert!(csv.text().starts_with("method,url,body,curl\n"), "{csv:?}");
    }
    assert!(!dir.path("out").exists() && !dir.path("label.pdf").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dry_run_shows_each_label_and_body_to_be_sent() {
    let shop = TestShop::open().await;
    let both = shop.run("label get SB-SUCCESS-0001 SB-SUCCESS-0002 --dry-run -o json").json();
    assert_eq!(both.as_array().unwrap().len(), 2);
    let body = shop.run("order create order.json --dry-run -o json").json()[0]["body"].clone();
    assert_eq!(body["idempotencyKey"], "order-SB-SUCCESS-0001");
    assert_eq!(shop.run("track SB-SUCCESS-0001").code, 5, "nothing was created");
    shop.dir.write("bad.json", &json!({}));
    assert_eq!(shop.run("order create bad.json --dry-run").code, 3, "invalid orders are reported");
    assert_eq!(shop.run("order validate order.json --dry-run").code, 0);
}

#[cfg(unix)]
#[tokio::test(flavor = "multi_thread")]
async fn the_shown_curl_line_runs_in_a_shell() {
    let shop = TestShop::open().await;
    let mut order = crate::shop::order("SB-SUCCESS-0001");
    order["receiver"]["fullName"] = json!("Luis O'Higgins $HOME `id` \\");
    shop.dir.write("order.json", &order);
    let curl = shop.run("order create order.json --dry-run");
    // The shell splits the line as it would for curl, and prints its words, one per line.
    let script = format!("curl() {{ printf '%s\\n' \"$@\"; }}\n{}", curl.text());
    let output = std::process::Command::new("sh").args(["-c", &script]).output().unwrap();
    let words = String::from_utf8(output.stdout).unwrap();
    let body: serde_json::Value = serde_json::from_str(words.lines().last().unwrap()).unwrap();
    assert_eq!(body["receiver"]["fullName"], order["receiver"]["fullName"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_raw_call_has_the_key_and_prints_the_response_unchanged() {
    let shop = TestShop::open().await;
    let health = shop.run("api GET /api/v1/health");
    assert_eq!((health.code, &health.json()["status"]), (0, &json!("ok")), "{health:?}");
    let created = shop.run("api post /api/v1/orders/create --data order.json");
    assert_eq!(created.json()["parcel"]["trackingNumber"], "SB-SUCCESS-0001", "{created:?}");
    let body = r#"{"trackingNumbers":["SB-SUCCESS-0001"]}"#;
    let batch = shop.dir.run_with("api POST /api/v1/tracking/batch --data - -o json", &[], body);
    assert_eq!(batch.json()["data"]["summary"]["found"], 1, "{batch:?}");
    let list = shop.run("api GET /api/v1/parcels?limit=1&status=LABEL_GENERATED");
    assert_eq!(list.json()["meta"]["total"], 1, "{}", list.text());
    let page = shop.run("api GET /docs/migration");
    assert!(page.text().contains("<html"), "{page:?}");
    let label = shop.run("api GET /api/v1/labels/SB-SUCCESS-0001/download?format=PNG");
    assert!(label.stdout.starts_with(b"\x89PNG"));
    let head = shop.run("api HEAD /api/v1/health");
    assert_eq!((head.code, head.text().trim()), (0, ""), "{head:?}");
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread")]
async fn a_response_cannot_control_the_terminal() {
    let key = TestShop::open().await.key;
    for head in [
        "200 OK\r\ncontent-type: text/plain",
        "200 OK\r\ncontent-type: application/json; charset=utf-8",
    ] {
        let url = fake_servers::start_with_response(head, "a\u{1b}[2Jb\nc").await;
        let dir = Workdir::new(key.secret(), &url);
        let output = tokio::task::block_in_place(|| dir.run_on_terminal("api GET /page", ""));
        assert_eq!((output.code, output.text()), (0, "a [2Jb\r\nc\r\n"), "{head}");
        let piped = dir.run("api GET /page");
        assert_eq!(piped.text(), "a\u{1b}[2Jb\nc\n", "{head}: unchanged");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_raw_call_fails_like_every_other_call() {
    let shop = TestShop::open().await;
    shop.dir.write("empty.json", &json!({}));
    let table = [
        ("api GET /api/v1/nothing", 5, "NOT_FOUND"),
        ("api GET /api/v1/tracking/SB-UNKNOWN-01", 5, "PARCEL_NOT_FOUND"),
        ("api POST /api/v1/orders/create --data empty.json", 3, "VALIDATION_FAILED"),
        ("api DELETE /api/v1/health", 2, "METHOD_NOT_ALLOWED"),
    ];
    for (line, exit, code) in table {
        let output = shop.run(&format!("{line} -o json"));
        output.assert_error(exit, code);
    }
    for line in ["api DELETE /api/v1/health", "api GET /api/v1/nothing", "api GET health"] {
        let output = shop.run(line);
        assert!(output.stderr.contains("Check the method and the path."), "{line}: {output:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_raw_call_is_retried_where_that_is_safe() {
    let shop = TestShop::open().await;
    let dir = Workdir::new(shop.key.secret(), &fake_servers::start_closing_connections().await);
    let attempts = |line: &str| {
        let output = dir.run(&format!("{line} -v"));
        let printed =
            output.stderr.lines().find(|line| line.contains("no response")).unwrap().to_owned();
        let count = printed.rsplit(' ').next().unwrap().trim_end_matches(')').to_owned();
        (output.code, count)
    };
    assert_eq!(attempts("api GET /api/v1/health"), (8, "4".to_owned()));
    assert_eq!(attempts("api GET /anything"), (8, "4".to_owned()));
    assert_eq!(attempts("api POST /api/v1/orders/create --data order.json"), (9, "4".to_owned()));
    assert_eq!(attempts("api POST /api/v1/sandbox/reset"), (9, "1".to_owned()));
    assert_eq!(attempts("api POST /anything"), (9, "1".to_owned()));
}
