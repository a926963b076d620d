//! The metrics of the operators' listener, read as Prometheus reads them.

use std::{
    io::Write,
    process::{Command, Stdio},
};

use parcelo::Operation;
use serde_json::json;

use crate::{
    api::{Api, order_with_number, send},
    running::TestSetup,
};

/// Returns the value of the only sample whose line starts with `name` and contains all of `labels`.
fn metric_value(text: &str, name: &str, labels: &[&str]) -> f64 {
    let is_match = |line: &&str| {
        let (series, _) = line.rsplit_once(' ').unwrap_or_default();
        series.split('{').next() == Some(name) && labels.iter().all(|label| series.contains(label))
    };
    let mut found = text.lines().filter(is_match);
    let line = found.next().unwrap_or_else(|| panic!("no {name} {labels:?} in\n{text}"));
    assert_eq!(found.next(), None, "{name} {labels:?} is ambiguous");
    line.rsplit(' ').next().unwrap().parse().unwrap()
}

#[tokio::test]
async fn operators_see_requests_refusals_and_commits() {
    let setup = TestSetup::new();
    let running = setup.start(&["--unauthenticated-rate-limit", "2"]);
    let (_, key) = setup.new_key("sandbox");
    let api = running.api(&key);
    for number in ["SB-SUCCESS-0001", "SB-SUCCESS-0002"] {
        assert_eq!(api.create_parcel(&order_with_number(number, number)).await, number);
    }
    assert_eq!(api.get("/api/v1/tracking/SBEC0000000000000").await.status, 404);
    assert_eq!(api.get("/api/v1/labels/SB-SUCCESS-0001/download").await.status, 200);
    let batch = json!({"trackingNumbers": ["SB-SUCCESS-0001", "SB-SUCCESS-0002"]});
    assert_eq!(api.post(Operation::BatchLabels.path(), &batch).await.status, 200);
    for _ in 0..50 {
        Api::new(running.sandbox()).get("/api/v1/health").await;
    }
    // Refusals on the other listeners do not count against an operator's rate limit.
    assert_eq!(Api::new(running.url("admin")).get("/admin/v1/keys").await.status, 401);
    let text = Api::new(running.url("admin")).get("/metrics").await;
    assert_eq!(text.header("content-type"), "text/plain; version=0.0.4; charset=utf-8");
    let text = text.text();
    assert!(text.contains("# TYPE parcelo_requests_total counter\n"), "{text}");
    let version = concat!("version=\"", env!("CARGO_PKG_VERSION"), "\"");
    assert!((metric_value(&text, "parcelo_build_info", &[version]) - 1.0).abs() < 0.1, "{text}");
    let sandbox = "listener=\"sandbox\"";
    let created = [sandbox, "operation=\"CreateOrder\"", "code=\"\"", "status=\"201\""];
    assert!((metric_value(&text, "parcelo_requests_total", &created) - 2.0).abs() < 0.1, "{text}");
    let missing = ["operation=\"GetTracking\"", "code=\"PARCEL_NOT_FOUND\"", "status=\"404\""];
    assert!((metric_value(&text, "parcelo_requests_total", &missing) - 1.0).abs() < 0.1);
    let timed = [sandbox, "operation=\"CreateOrder\""];
    assert!((metric_value(&text, "parcelo_request_seconds_count", &timed) - 2.0).abs() < 0.1);
    assert!(
        metric_value(&text, "parcelo_rate_limit_refusals_total", &["counted_by=\"address\""]) > 0.0
    );
    assert!((metric_value(&text, "parcelo_store_orders_total", &[]) - 2.0).abs() < 0.1);
    assert!(metric_value(&text, "parcelo_store_commits_total", &[]) >= 2.0);
    assert!(metric_value(&text, "parcelo_store_commit_seconds_total", &[]) > 0.0);
    assert!(metric_value(&text, "parcelo_store_queued_writes", &[]) >= 0.0);
    assert!(metric_value(&text, "parcelo_database_size_bytes", &[]) > 0.0);
    assert!((metric_value(&text, "parcelo_store_writable", &[]) - 1.0).abs() < 0.1);
    let drawn = ["environment=\"sandbox\"", "format=\"PDF\""];
    assert!((metric_value(&text, "parcelo_labels_total", &drawn) - 3.0).abs() < 0.1, "{text}");
    let admin = ["listener=\"operators\"", "operation=\"Admin\"", "code=\"ADMIN_AUTH_FAILED\""];
    assert!((metric_value(&text, "parcelo_requests_total", &admin) - 1.0).abs() < 0.1);
    assert!(!text.contains("# EOF") && !text.contains("# UNIT"), "{text}");
    let open_metrics = Api::new(running.url("admin")).request("GET", "/metrics");
    let open_metrics = send(open_metrics.header("accept", "application/openmetrics-text")).await;
    let format = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    assert_eq!(open_metrics.header("content-type"), format);
    let open_metrics = open_metrics.text();
    assert!(open_metrics.contains("# TYPE parcelo_requests counter\n"), "{open_metrics}");
    assert!(open_metrics.ends_with("# EOF\n"), "{open_metrics}");
    for secret in [key.secret(), "SB-SUCCESS-0001", "Quito"] {
        assert!(!text.contains(secret), "{secret}");
    }
}

/// Metrics with labels appear only after they have counted something.
#[tokio::test]
async fn every_metric_is_in_the_manual() {
    let (setup, running) = TestSetup::new_and_start();
    let api = running.api(&setup.new_key("sandbox").1);
    api.create_parcel(&order_with_number("SB-SUCCESS-0001", "SB-SUCCESS-0001")).await;
    let text = Api::new(running.url("admin")).get("/metrics").await.text();
    let manual = include_str!("../../../docs/operations.md");
    let rows: Vec<_> = manual.lines().filter(|line| line.starts_with("| `parcelo_")).collect();
    let names = text.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next());
    let names: Vec<_> = names.collect();
    assert!(names.len() > 7, "{text}");
    let is_listed = |name: &&str| rows.iter().any(|row| row.contains(&format!("`{name}`")));
    let missing: Vec<_> = names.into_iter().filter(|name| !is_listed(name)).collect();
    assert!(missing.is_empty(), "docs/operations.md lacks {missing:?}");
}

#[test]
fn alerts_and_the_dashboard_use_metrics_of_the_manual() {
    let manual = include_str!("../../../docs/operations.md");
    let texts = [
        include_str!("../../../examples/monitoring/alerts.yaml"),
        include_str!("../../../examples/monitoring/grafana.json"),
    ];
    let mut found = 0;
    for text in texts {
        let words = text.split(|letter: char| !(letter.is_ascii_lowercase() || letter == '_'));
        for name in words.filter(|word| word.starts_with("parcelo_")) {
            found += 1;
            let name = name.strip_suffix("_bucket").unwrap_or(name);
            assert!(manual.contains(&format!("`{name}`")), "docs/operations.md lacks {name}");
        }
    }
    assert!(found > 20, "{found}");
}

/// In a series that begins with its first count, Prometheus sees no increase.
#[tokio::test]
async fn counts_whose_increase_raises_an_alert_begin_at_zero() {
    let (_setup, running) = TestSetup::new_and_start();
    let text = Api::new(running.url("admin")).get("/metrics").await.text();
    let alerts = include_str!("../../../examples/monitoring/alerts.yaml");
    let mut found = 0;
    for watched in alerts.split("increase(").skip(1) {
        let name = watched.split(['{', '[']).next().unwrap();
        let is_zero = |line: &str| line.starts_with(name) && line.ends_with(" 0");
        assert!(text.lines().any(is_zero), "{name} in {text}");
        found += 1;
    }
    assert!(found > 5, "{found}");
}

#[tokio::test]
async fn only_the_admin_listener_serves_metrics() {
    let (_setup, running) = TestSetup::new_and_start();
    for listener in ["production", "sandbox"] {
        let response = Api::new(running.url(listener)).get("/metrics").await;
        assert_eq!(response.refusal().0, 404, "{listener}");
    }
}

#[tokio::test]
#[ignore = "needs promtool: `.ci/prove browser` installs it and runs this"]
async fn promtool_accepts_the_metrics() {
    let (setup, running) = TestSetup::new_and_start();
    let api = running.api(&setup.new_key("sandbox").1);
    api.create_parcel(&order_with_number("SB-SUCCESS-0001", "SB-SUCCESS-0001")).await;
    api.get("/api/v1/tracking/SBEC0000000000000").await;
    let text = Api::new(running.url("admin")).get("/metrics").await.bytes;
    let mut promtool = Command::new("promtool")
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    promtool.stdin.take().unwrap().write_all(&text).unwrap();
    let output = promtool.wait_with_output().unwrap();
    let words = [output.stdout, output.stderr].concat();
    assert!(output.status.success() && words.is_empty(), "{}", String::from_utf8_lossy(&words));
}
