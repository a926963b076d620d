//! What the operators' listener counts, read as Prometheus reads it.

use crate::{
    api::{Api, numbered},
    running::House,
};

/// The value of the one sample whose line starts with `name` and holds all of `labels`.
fn sample(text: &str, name: &str, labels: &[&str]) -> f64 {
    let is_it = |line: &&str| {
        let (series, _) = line.rsplit_once(' ').unwrap_or_default();
        series.split('{').next() == Some(name) && labels.iter().all(|label| series.contains(label))
    };
    let mut found = text.lines().filter(is_it);
    let line = found.next().unwrap_or_else(|| panic!("no {name} {labels:?} in\n{text}"));
    assert_eq!(found.next(), None, "{name} {labels:?} is ambiguous");
    line.rsplit(' ').next().unwrap().parse().unwrap()
}

#[tokio::test]
async fn operators_see_requests_refusals_and_commits() {
    let house = House::new();
    let running = house.start(&["--unauthenticated-rate-limit", "2"]);
    let (_, key) = house.new_key("sandbox");
    let api = running.api(&key);
    for number in ["SB-SUCCESS-0001", "SB-SUCCESS-0002"] {
        assert_eq!(api.created(&numbered(number, number)).await, number);
    }
    assert_eq!(api.get("/api/v1/tracking/SBEC0000000000000").await.status, 404);
    for _ in 0..50 {
        Api::new(running.sandbox()).get("/api/v1/health").await;
    }
    // However often strangers were refused there, an operator is not.
    assert_eq!(Api::new(running.url("admin")).get("/admin/v1/keys").await.status, 401);
    let text = Api::new(running.url("admin")).get("/metrics").await;
    assert!(text.header("content-type").starts_with("application/openmetrics-text"));
    let text = text.text();
    let sandbox = "listener=\"sandbox\"";
    let created = [sandbox, "operation=\"CreateOrder\"", "code=\"\"", "status=\"201\""];
    assert!((sample(&text, "parcelo_requests_total", &created) - 2.0).abs() < 0.1, "{text}");
    let missing = ["operation=\"GetTracking\"", "code=\"PARCEL_NOT_FOUND\"", "status=\"404\""];
    assert!((sample(&text, "parcelo_requests_total", &missing) - 1.0).abs() < 0.1);
    let timed = [sandbox, "operation=\"CreateOrder\""];
    assert!((sample(&text, "parcelo_request_seconds_count", &timed) - 2.0).abs() < 0.1);
    assert!(sample(&text, "parcelo_rate_limit_refusals_total", &["counted_by=\"address\""]) > 0.0);
    assert!((sample(&text, "parcelo_store_orders_total", &[]) - 2.0).abs() < 0.1);
    assert!(sample(&text, "parcelo_store_commits_total", &[]) >= 2.0);
    assert!((sample(&text, "parcelo_store_writable", &[]) - 1.0).abs() < 0.1);
    let admin = ["listener=\"operators\"", "operation=\"Admin\"", "code=\"ADMIN_AUTH_FAILED\""];
    assert!((sample(&text, "parcelo_requests_total", &admin) - 1.0).abs() < 0.1);
    assert!(text.ends_with("# EOF\n"));
    for secret in [key.secret(), "SB-SUCCESS-0001", "Quito"] {
        assert!(!text.contains(secret), "{secret}");
    }
}

#[tokio::test]
async fn only_the_operators_listener_has_them() {
    let house = House::new();
    let running = house.start(&[]);
    for listener in ["production", "sandbox"] {
        let answer = Api::new(running.url(listener)).get("/metrics").await;
        assert_eq!(answer.refusal().0, 404, "{listener}");
    }
}
