//! Authentication: accepted and refused requests, and the headers of every response.

use crate::api::{Api, order, send};

const HEALTH: &str = "/api/v1/health";

#[tokio::test]
async fn health_shows_the_permissions_of_the_key() {
    let server = crate::embedded::start().await;
    let key = server.key().name("Warehouse 1").countries(["EC"]).issue();
    let response = Api::with_key(server.url(), &key).get(HEALTH).await;
    let mut body = response.json();
    assert_eq!(response.status, 200);
    assert_eq!(body["meta"]["requestId"].take(), response.header("x-request-id"));
    let expected = serde_json::json!({
        "success": true, "status": "ok", "authenticated": true, "keyName": "Warehouse 1",
        "allowedCountries": ["EC"], "environment": "sandbox", "meta": { "requestId": null }
    });
    assert_eq!(body, expected);
    let all = Api::with_key(server.url(), &server.key().issue()).get(HEALTH).await.json();
    assert_eq!(all["allowedCountries"], serde_json::json!(["*"]));
    let blanks = server.key().countries(["EC, MX", " CO"]).ip_list(["127.0.0.1, ::1"]).issue();
    let some = Api::with_key(server.url(), &blanks).get(HEALTH).await.json();
    assert_eq!(some["allowedCountries"], serde_json::json!(["EC", "MX", "CO"]));
}

#[tokio::test]
async fn without_a_valid_key_the_response_is_401() {
    let server = crate::embedded::start().await;
    let key = server.key().issue();
    let missing = Api::new(server.url()).get(HEALTH).await;
    assert_eq!(missing.refusal(), (401, "AUTH_MISSING_API_KEY"));
    let typo = key.secret().replace("pk_test_", "pk_test_0");
    for wrong in ["", "garbage", "pk_live_", &typo, &"x".repeat(10_000)] {
        let response = Api::new(server.url()).key(wrong).get(HEALTH).await;
        assert_eq!(response.refusal(), (401, "AUTH_INVALID_API_KEY"), "{wrong}");
    }
    let revoked = server.key().revoked().issue();
    let response = Api::with_key(server.url(), &revoked).get(HEALTH).await;
    assert_eq!(response.refusal(), (401, "AUTH_INVALID_API_KEY"));
    let elsewhere = crate::embedded::builder().seed(7).start().await;
    let response = Api::with_key(elsewhere.url(), &key).get(HEALTH).await;
    assert_eq!(response.refusal(), (401, "AUTH_INVALID_API_KEY"));
}

#[tokio::test]
async fn an_ip_address_outside_the_list_is_refused_and_named() {
    let server = crate::embedded::start().await;
    let inside = server.key().ip_list(["127.0.0.1", "2001:db8::/32"]).issue();
    assert_eq!(Api::with_key(server.url(), &inside).get(HEALTH).await.status, 200);
    let outside = server.key().ip_list(["192.0.2.0/24"]).rate_limit(5).issue();
    for _ in 0..6 {
        let response = Api::with_key(server.url(), &outside).get(HEALTH).await;
        assert_eq!(response.refusal(), (403, "AUTH_IP_NOT_ALLOWED"));
        assert_eq!(response.json()["error"]["details"]["clientIp"], "127.0.0.1");
        assert_eq!(response.header("x-ratelimit-remaining"), "5", "a refusal consumes nothing");
    }
    let api = Api::with_key(server.url(), &outside);
    let forged = send(api.request("GET", HEALTH).header("X-Forwarded-For", "192.0.2.1")).await;
    assert_eq!(forged.status, 403, "only a trusted proxy may set the client address");
}

#[tokio::test]
async fn an_unknown_api_path_is_401_without_a_key_others_are_404() {
    let server = crate::embedded::start().await;
    let (stranger, api) =
        (Api::new(server.url()), Api::with_key(server.url(), &server.key().issue()));
    for path in ["/api", "/api/v1/nothing", "/api/v2/health", "/api/v1/health/"] {
        assert_eq!(stranger.get(path).await.refusal().0, 401, "{path}");
        assert_eq!(api.get(path).await.refusal(), (404, "NOT_FOUND"), "{path}");
    }
    for path in
        ["/", "/favicon.ico", "/apiv1", "/%ff", "/files/x", "/files/SB-SUCCESS-0001.pdf?sig=x"]
    {
        assert_eq!(stranger.get(path).await.refusal(), (404, "NOT_FOUND"), "{path}");
    }
}

#[tokio::test]
async fn an_unsupported_method_is_405_with_the_allowed_ones() {
    let (server, api) = crate::embedded::start_with_key().await;
    let table = [
        ("GET", "/api/v1/orders/create", "POST"),
        ("DELETE", "/api/v1/orders/create", "POST"),
        ("POST", HEALTH, "GET,HEAD"),
        ("BREW", HEALTH, "GET,HEAD"),
        ("POST", "/healthz", "GET,HEAD"),
    ];
    for (method, path, allow) in table {
        let response = send(api.request(method, path)).await;
        assert_eq!(response.refusal(), (405, "METHOD_NOT_ALLOWED"), "{method} {path}");
        assert_eq!(response.header("allow"), allow, "{method} {path}");
    }
    let keyless = send(Api::new(server.url()).request("DELETE", HEALTH)).await;
    assert_eq!(keyless.refusal().0, 401);
}

#[tokio::test]
async fn every_response_has_a_request_id_and_rate_limit_headers() {
    let server = crate::embedded::start().await;
    let key = server.key().issue();
    let api = Api::with_key(server.url(), &key);
    let created = api.create(&order("order-0001")).await;
    let label = created.json()["parcel"]["labelUrl"].as_str().unwrap().to_owned();
    let responses = [
        created,
        api.get(HEALTH).await,
        api.get("/api/v1/tracking/SB-ABSENT-0001").await,
        api.get("/api/v1/nothing").await,
        api.create_text("{").await,
        Api::new(server.url()).get(HEALTH).await,
        Api::new(server.url()).get("/nothing").await,
        Api::new(server.url()).get("/healthz").await,
        Api::new(server.url()).get("/readyz").await,
        Api::new(server.url()).get(&label).await,
        send(api.request("PUT", HEALTH)).await,
    ];
    for response in &responses {
        assert!(response.header("x-request-id").starts_with("req_"), "{}", response.text());
        let limit: u32 = response.header("x-ratelimit-limit").parse().unwrap();
        let left: u32 = response.header("x-ratelimit-remaining").parse().unwrap();
        assert_eq!(left, limit, "nothing is counted on a frozen clock: {}", response.text());
        assert_eq!(response.header("x-ratelimit-reset"), "1767600001");
        assert_eq!(response.header("date"), "Mon, 05 Jan 2026 08:00:00 GMT");
        assert_eq!(response.header("access-control-allow-origin"), "");
    }
    let ids: std::collections::HashSet<_> =
        responses.iter().map(|a| a.header("x-request-id")).collect();
    assert_eq!(ids.len(), responses.len());
}

#[tokio::test]
async fn a_callers_own_request_id_is_not_echoed() {
    let server = crate::embedded::start().await;
    let request = Api::new(server.url()).request("GET", "/healthz").header("X-Request-Id", "mine");
    assert_ne!(send(request).await.header("x-request-id"), "mine");
}
