//! The legacy API: the same service under older names, with headers that announce its sunset.

use std::time::Duration;

use parcelo::ErrorCode;
use serde_json::{Value, json};

use crate::{
    api::{Api, HttpResponse, send, with},
    embedded::start_with_key,
    running::TestSetup,
};

const NUMBER: &str = "SB-SUCCESS-0001";

fn legacy_order() -> Value {
    json!({
        "reference": "PO-77", "tracking_number": NUMBER,
        "sender_name": "Ana Ruiz", "sender_phone": "+13055550100",
        "sender_address": "8400 NW 25th St", "sender_city": "Miami", "sender_country": "US",
        "receiver_name": "Luis Paredes", "receiver_phone": "+593991234567",
        "receiver_document": "1714307103", "receiver_document_type": "cedula",
        "receiver_address": "Av. Amazonas N34-451", "receiver_city": "Quito",
        "receiver_province": "Pichincha", "receiver_zip": "170515", "receiver_country": "EC",
        "weight_kg": 1.25, "value": 45.5, "description": "Cotton shirts"
    })
}

async fn post(api: &Api, path: &str, body: &Value, key: Option<&str>) -> HttpResponse {
    let mut request = api.request("POST", path).header("content-type", "application/json");
    if let Some(key) = key {
        request = request.header("x-idempotency-key", key);
    }
    send(request.body(body.to_string())).await
}

async fn create(api: &Api, body: &Value) -> HttpResponse {
    api.post("/api/orders", body).await
}

/// Returns status and code of an error in the legacy format, after checking that it is complete.
fn refusal(response: &HttpResponse) -> (u16, &'static str) {
    assert_headers(response);
    let body = response.json();
    assert_eq!(body["ok"], false, "{body}");
    assert!(body["message"].is_string() && body["message"] != body["message_es"], "{body}");
    assert!(body.get("success").is_none(), "{body}");
    (response.status, ErrorCode::known(body["error"].as_str().unwrap()).unwrap().code())
}

/// Checks the headers that every response of the legacy API has.
fn assert_headers(response: &HttpResponse) {
    assert_eq!(response.header("deprecation"), "@1767225600");
    let link = response.header("link");
    assert!(link.contains("/docs/migration>; rel=\"deprecation\""), "{link}");
    assert!(link.contains("/api/v1/orders/create>; rel=\"successor-version\""), "{link}");
    assert!(response.header("x-request-id").starts_with("req_"));
    assert!(!response.header("x-ratelimit-limit").is_empty());
}

#[tokio::test]
async fn an_order_is_created_once_for_its_reference() {
    let (_server, api) = start_with_key().await;
    let first = create(&api, &legacy_order()).await;
    assert_headers(&first);
    let body = first.json();
    assert_eq!((first.status, &body["ok"]), (201, &json!(true)));
    assert_eq!(body["tracking_number"], NUMBER);
    assert_eq!(body["status"], "LABEL_GENERATED");
    assert!(body["id"].as_str().unwrap().starts_with("par_"), "{body}");
    assert_eq!(Api::new("").get(body["label_url"].as_str().unwrap()).await.status, 200);
    let again = create(&api, &legacy_order()).await;
    assert_eq!((again.status, again.header("idempotent-replayed")), (200, "true"));
    assert_eq!(again.bytes, first.bytes);
    let other = create(&api, &with(legacy_order(), "/value", json!(46))).await;
    assert_eq!(refusal(&other), (409, "IDEMPOTENCY_CONFLICT"));
    let list = api.get("/api/v1/parcels").await.json();
    assert_eq!(list["meta"]["total"], 1);
    assert_eq!(list["data"][0]["externalOrderId"], "PO-77");
}

#[tokio::test]
async fn calls_without_an_idempotency_header_are_never_repeats() {
    let (_server, api) = start_with_key().await;
    let bare =
        with(with(legacy_order(), "/reference", json!(null)), "/tracking_number", json!(null));
    for (key, status) in
        [(Some("legacy-key-1"), 201), (Some("legacy-key-1"), 200), (None, 201), (None, 201)]
    {
        let response = post(&api, "/api/orders", &bare, key).await;
        assert_eq!(response.status, status, "{key:?}: {}", response.text());
    }
    let bad = post(&api, "/api/orders", &bare, Some("no!")).await;
    assert_eq!(refusal(&bad), (400, "VALIDATION_FAILED"));
    assert!(bad.json()["fields"]["X-Idempotency-Key"].is_string(), "{}", bad.text());
}

#[tokio::test]
async fn every_fault_is_reported_under_its_legacy_name() {
    let (_server, api) = start_with_key().await;
    let broken = with(
        with(with(legacy_order(), "/receiver_city", json!(7)), "/receiver_document", json!("12")),
        "/weight_kg",
        json!(-1),
    );
    let response = create(&api, &broken).await;
    assert_eq!(refusal(&response), (400, "VALIDATION_FAILED"));
    let body = response.json();
    let mut names: Vec<_> = body["fields"].as_object().unwrap().keys().cloned().collect();
    names.sort();
    assert_eq!(names, ["receiver_city", "receiver_document", "weight_kg"], "{body}");
    assert_ne!(body["fields"], body["fields_es"]);
    for (body, field) in
        [("[]", "body"), ("{", "body"), ("{}", "sender_name"), ("{\"reference\":{}}", "reference")]
    {
        let request = api.request("POST", "/api/orders").header("content-type", "application/json");
        let response = send(request.body(body)).await;
        assert_eq!(refusal(&response), (400, "VALIDATION_FAILED"), "{body}");
        assert!(response.json()["fields"][field].is_string(), "{body}: {}", response.text());
    }
}

#[tokio::test]
async fn a_cancelled_order_stays_cancelled() {
    let (server, api) = start_with_key().await;
    create(&api, &legacy_order()).await;
    let path = format!("/api/orders/{NUMBER}/cancel");
    let expected = json!({ "ok": true, "tracking_number": NUMBER, "status": "VOIDED" });
    for _ in 0..2 {
        let response = send(api.request("POST", &path)).await;
        assert_eq!((response.status, response.json()), (200, expected.clone()));
        assert_headers(&response);
    }
    assert_eq!(api.track(NUMBER).await.json()["status"], "VOIDED");
    let label = api.get(&format!("/api/labels/{NUMBER}.pdf")).await;
    assert_eq!(refusal(&label), (409, "LABEL_VOIDED"));
    for number in ["SB-ABSENT-0001", "no", "%00%ff"] {
        let response = send(api.request("POST", &format!("/api/orders/{number}/cancel"))).await;
        assert_eq!(refusal(&response), (404, "PARCEL_NOT_FOUND"), "{number}");
    }
    let moving = with(
        with(legacy_order(), "/tracking_number", json!("SB-SUCCESS-0002")),
        "/reference",
        json!("PO-78"),
    );
    create(&api, &moving).await;
    server.clock().advance(Duration::from_secs(600)).await;
    let late = send(api.request("POST", "/api/orders/SB-SUCCESS-0002/cancel")).await;
    assert_eq!(refusal(&late), (409, "PARCEL_NOT_VOIDABLE"));
}

#[tokio::test]
async fn up_to_twenty_parcels_are_tracked_in_their_order() {
    let (server, api) = start_with_key().await;
    create(&api, &legacy_order()).await;
    server.clock().advance(Duration::from_secs(300)).await;
    let spanish = api
        .request("GET", &format!("/api/tracking?number=SB-ABSENT-0001,%20{NUMBER},"))
        .header("accept-language", "es");
    let response = send(spanish).await;
    assert_headers(&response);
    let event = |status: &str, minute: &str, location: &str| json!({ "status": status, "date": format!("2026-01-05T08:{minute}:00.000Z"), "location": location });
    assert_eq!(
        response.json(),
        json!({ "ok": true, "tracking": [
            { "tracking_number": "SB-ABSENT-0001", "error": "PARCEL_NOT_FOUND" },
            { "tracking_number": NUMBER, "status": "CUSTOMS_CLEARANCE", "status_name": "En trámite aduanero",
              "estimated_delivery": "2026-01-13T23:59:59-05:00", "events": [
                event("ORDERED", "00", "Miami, US"), event("LABEL_GENERATED", "00", "Miami, US"),
                event("CUSTOMS_CLEARANCE", "05", "Quito, EC"),
            ] },
        ] })
    );
    let twenty = vec!["SB-ABSENT-0001"; 20].join(",");
    assert_eq!(api.get(&format!("/api/tracking?number={twenty}")).await.status, 200);
    for query in ["", "?number=", "?number=,,", &format!("?number={twenty},X")] {
        let refused = api.get(&format!("/api/tracking{query}")).await;
        assert_eq!(refusal(&refused), (400, "VALIDATION_FAILED"), "{query}");
        assert!(refused.json()["fields"]["number"].is_string());
    }
}

#[tokio::test]
async fn a_label_is_the_same_file_as_under_v1() {
    let (_server, api) = start_with_key().await;
    create(&api, &legacy_order()).await;
    for format in ["pdf", "zpl", "png"] {
        let legacy = api.get(&format!("/api/labels/{NUMBER}.{format}")).await;
        let v1 = api.get(&format!("/api/v1/labels/{NUMBER}/download?format={format}")).await;
        assert_eq!((legacy.status, &legacy.bytes), (200, &v1.bytes), "{format}");
        assert_eq!(legacy.headers["content-type"], v1.headers["content-type"]);
        assert!(!legacy.header("deprecation").is_empty() && v1.header("deprecation").is_empty());
    }
    for (file, code) in [
        ("SB-SUCCESS-0001", "NOT_FOUND"),
        ("SB-SUCCESS-0001.gif", "NOT_FOUND"),
        ("SB-ABSENT-0001.pdf", "PARCEL_NOT_FOUND"),
    ] {
        let refused = api.get(&format!("/api/labels/{file}")).await;
        assert_eq!(refusal(&refused), (404, code), "{file}");
    }
}

#[tokio::test]
async fn keys_countries_limits_and_tenants_behave_as_in_v1() {
    let (server, api) = start_with_key().await;
    create(&api, &legacy_order()).await;
    let stranger = Api::new(server.url());
    assert_eq!(refusal(&create(&stranger, &legacy_order()).await), (401, "AUTH_MISSING_API_KEY"));
    let wrong = stranger.clone().key("pk_test_wrong");
    assert_eq!(refusal(&create(&wrong, &legacy_order()).await), (401, "AUTH_INVALID_API_KEY"));
    let mexican = Api::with_key(server.url(), &server.key().countries(["MX"]).issue());
    let forbidden = create(&mexican, &legacy_order()).await;
    assert_eq!(refusal(&forbidden), (403, "AUTH_COUNTRY_NOT_ALLOWED"));
    let elsewhere = Api::with_key(server.url(), &server.key().ip_list(["10.0.0.1"]).issue());
    assert_eq!(refusal(&create(&elsewhere, &legacy_order()).await), (403, "AUTH_IP_NOT_ALLOWED"));
    let slow = Api::with_key(server.url(), &server.key().rate_limit(1).issue());
    slow.get("/api/v1/health").await;
    let limited = create(&slow, &legacy_order()).await;
    assert_eq!(refusal(&limited), (429, "RATE_LIMIT_EXCEEDED"));
    assert_eq!(limited.header("retry-after"), "1");
    let other = Api::with_key(server.url(), &server.key().account("other").issue());
    let found = other.get(&format!("/api/tracking?number={NUMBER}")).await.json();
    assert_eq!(found["tracking"][0]["error"], "PARCEL_NOT_FOUND");
    let cancel = send(other.request("POST", &format!("/api/orders/{NUMBER}/cancel"))).await;
    assert_eq!(refusal(&cancel), (404, "PARCEL_NOT_FOUND"));
    let taken = create(&other, &legacy_order()).await;
    assert_eq!(refusal(&taken), (409, "PARCEL_DUPLICATE_TRACKING"));
}

#[tokio::test]
async fn unknown_paths_and_methods_get_legacy_errors() {
    let (_server, api) = start_with_key().await;
    for path in ["/api/orders/x", "/api/orders/x/y/z", "/api/labels"] {
        assert_eq!(refusal(&api.get(path).await), (404, "NOT_FOUND"), "{path}");
    }
    let method = send(api.request("DELETE", "/api/orders")).await;
    assert_eq!((refusal(&method).0, method.header("allow")), (405, "POST"));
    let text = send(api.request("POST", "/api/orders").body("{}")).await;
    assert_eq!(refusal(&text), (415, "UNSUPPORTED_MEDIA_TYPE"));
    let huge = with(legacy_order(), "/description", json!("x".repeat(300_000)));
    assert_eq!(refusal(&create(&api, &huge).await), (413, "PAYLOAD_TOO_LARGE"));
}

#[tokio::test]
async fn the_sunset_is_announced_then_enforced_and_users_listed() {
    let setup = TestSetup::new();
    let (id, key) = setup.new_key("sandbox");
    let dates = ["--legacy-sunset", "2099-06-30", "--legacy-deprecated", "2026-02-01"];
    let announced = setup.start(&dates);
    for _ in 0..3 {
        let response = announced.api(&key).get("/api/tracking?number=SB-ABSENT-0001").await;
        assert_eq!((response.status, response.header("deprecation")), (200, "@1769904000"));
        assert_eq!(response.header("sunset"), "Tue, 30 Jun 2099 00:00:00 GMT");
    }
    announced.stop();
    let ended = setup.start(&["--legacy-sunset", "2026-01-01"]);
    let api = ended.api(&key);
    let gone = create(&api, &legacy_order()).await;
    assert_eq!((gone.status, &gone.json()["error"]), (410, &json!("LEGACY_SUNSET")));
    assert_eq!(api.get("/api/v1/health").await.status, 200);
    assert_eq!(Api::new(ended.sandbox()).get("/api/orders").await.status, 401);
    ended.stop();
    let uses = setup.admin("legacy", &[]);
    let requests: u64 =
        uses.as_array().unwrap().iter().map(|day| day["requests"].as_u64().unwrap()).sum();
    assert_eq!((requests, &uses[0]["keyId"]), (4, &json!(id)), "{uses}");
}

#[tokio::test]
async fn the_migration_page_maps_every_field() {
    let (server, _api) = start_with_key().await;
    let page = Api::new(server.url()).get("/docs/migration").await;
    assert_eq!((page.status, page.header("content-type")), (200, "text/html; charset=utf-8"));
    let html = page.text();
    for part in [
        "receiver_document</code></td><td><code>receiver.nationalId",
        "lang=\"es\"",
        "/api/v1/orders/void",
    ] {
        assert!(html.contains(part), "{part}");
    }
    assert!(!html.contains("<script") && !html.contains(" src="));
}
