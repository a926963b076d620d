//! Many labels in one file: in the order of their numbers, all of them or none.

use parcelo::Operation;
use parcelo_server::mock::MockServer;
use serde_json::{Value, json};

use crate::api::{Answer, Api, order, send, with};

async fn start() -> (MockServer, Api) {
    let server = crate::embedded::start().await;
    let api = Api::with_key(server.url(), &server.key().issue());
    (server, api)
}

async fn create_orders(api: &Api, numbers: &[&str]) {
    for number in numbers {
        let order = with(order(&format!("order-{number}")), "/trackingNumber", json!(number));
        api.create_parcel(&order).await;
    }
}

async fn download_batch(api: &Api, body: Value) -> Answer {
    let request = api.request("POST", Operation::BatchLabels.path());
    send(request.header("content-type", "application/json").body(body.to_string())).await
}

async fn void(api: &Api, number: &str) {
    let void = json!({"idempotencyKey": "void-0001", "trackingNumbers": [number]});
    let void = api.request("POST", "/api/v1/orders/void").body(void.to_string());
    assert_eq!(send(void.header("content-type", "application/json")).await.status, 200);
}

#[tokio::test]
async fn zpl_labels_are_in_the_requested_order() {
    let (_server, api) = start().await;
    let numbers = ["SB-NORMAL-0001", "SB-NORMAL-0002", "SB-NORMAL-0003"];
    create_orders(&api, &numbers).await;
    let request = ["SB-NORMAL-0003", "sb-normal-0001", "SB-NORMAL-0002"];
    let file = download_batch(&api, json!({"trackingNumbers": request, "format": "ZPL"})).await;
    assert_eq!((file.status, file.header("content-type")), (200, "text/plain"), "{}", file.text());
    assert_eq!(file.header("content-disposition"), "attachment; filename=\"labels.zpl\"");
    assert_eq!(file.header("cache-control"), "private, no-store");
    let mut each = Vec::new();
    for number in request {
        let path = format!("/api/v1/labels/{number}/download?format=ZPL");
        each.extend(api.get(&path).await.bytes);
    }
    assert_eq!(file.bytes, each);
}

#[tokio::test]
async fn a_pdf_has_a_page_for_each_label_and_each_font_once() {
    let (_server, api) = start().await;
    let numbers = ["SB-NORMAL-0001", "SB-NORMAL-0002", "SB-NORMAL-0003"];
    create_orders(&api, &numbers).await;
    let request = json!({ "trackingNumbers": numbers });
    let file = download_batch(&api, request.clone()).await;
    assert_eq!((file.status, file.header("content-type")), (200, "application/pdf"));
    assert_eq!(file.header("content-disposition"), "attachment; filename=\"labels.pdf\"");
    let text = String::from_utf8_lossy(&file.bytes).into_owned();
    let count = |what: &str| text.matches(what).count();
    assert_eq!((count("/Type/Page/"), count("/FontFile2"), count("%PDF-")), (3, 2, 1));
    assert_eq!(download_batch(&api, request).await.bytes, file.bytes);
    let one =
        download_batch(&api, json!({"trackingNumbers": ["SB-NORMAL-0002"], "format": "pdf"})).await;
    let path = "/api/v1/labels/SB-NORMAL-0002/download";
    assert_eq!(one.bytes, api.get(path).await.bytes);
}

#[tokio::test]
async fn missing_labels_are_named_and_no_file_is_drawn() {
    let (server, api) = start().await;
    create_orders(&api, &["SB-NORMAL-0001", "SB-NORMAL-0002"]).await;
    let other = Api::with_key(server.url(), &server.key().account("other").issue());
    create_orders(&other, &["SB-NORMAL-0009"]).await;
    void(&api, "SB-NORMAL-0002").await;
    let request = ["SB-NORMAL-0001", "SB-NORMAL-0002", "SB-ABSENT-0001", "SB-NORMAL-0009", "?"];
    let refused = download_batch(&api, json!({ "trackingNumbers": request })).await;
    assert_eq!(refused.refusal(), (409, "LABELS_REJECTED".to_owned()));
    let body = refused.json();
    let items = body["error"]["details"]["errors"].as_array().unwrap();
    let text = |item: &Value, name: &str| item[name].as_str().unwrap_or("-").to_owned();
    let named = ["field", "trackingNumber", "status", "code"];
    let items: Vec<_> =
        items.iter().map(|item| named.map(|name| text(item, name)).join(" ")).collect();
    let expected = [
        "trackingNumbers[1] SB-NORMAL-0002 VOIDED LABEL_VOIDED",
        "trackingNumbers[2] SB-ABSENT-0001 - PARCEL_NOT_FOUND",
        "trackingNumbers[3] SB-NORMAL-0009 - PARCEL_NOT_FOUND",
        "trackingNumbers[4] ? - PARCEL_NOT_FOUND",
    ];
    assert_eq!(items, expected);
}

#[tokio::test]
async fn an_invalid_batch_is_refused_with_every_fault() {
    let (_server, api) = start().await;
    let many: Vec<_> = (0..101).map(|n| format!("SB-NORMAL-{n:04}")).collect();
    let table = [
        (json!({"trackingNumbers": ["a"], "format": "PNG"}), vec!["format UNKNOWN_VALUE"]),
        (json!({"trackingNumbers": []}), vec!["trackingNumbers TOO_SHORT"]),
        (json!({ "trackingNumbers": many }), vec!["trackingNumbers TOO_LONG"]),
        (
            json!({"trackingNumbers": ["a", "A"], "format": 1}),
            vec!["trackingNumbers[1] DUPLICATE", "format INVALID_FORMAT"],
        ),
    ];
    for (body, faults) in table {
        assert_eq!(download_batch(&api, body).await.faults(), faults);
    }
}

#[tokio::test]
async fn each_label_counts_against_the_rate_limit_like_a_request() {
    let (server, _api) = start().await;
    server.clock().freeze().await;
    let numbers: Vec<_> = server.seed_parcels(7).await;
    let key = server.key().rate_limit(10).issue();
    let limited = Api::with_key(server.url(), &key);
    let request = |count: usize| json!({"trackingNumbers": &numbers[..count], "format": "ZPL"});
    let first = download_batch(&limited, request(7)).await;
    assert_eq!((first.status, first.header("x-ratelimit-remaining")), (200, "3"));
    // It starts within the limit, so it is completed.
    let second = download_batch(&limited, request(7)).await;
    assert_eq!((second.status, second.header("x-ratelimit-remaining")), (200, "0"));
    let third = download_batch(&limited, request(1)).await;
    assert_eq!(third.refusal(), (429, "RATE_LIMIT_EXCEEDED".to_owned()));
}
