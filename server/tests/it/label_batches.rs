//! Many labels in one file: in the order of their numbers, all of them or none.

use parcelo::Operation;
use serde_json::{Value, json};

use crate::{
    api::{Api, HttpResponse, order, with},
    embedded::start_with_key,
};

async fn create_orders(api: &Api, numbers: &[&str]) {
    for number in numbers {
        let order = with(order(&format!("order-{number}")), "/trackingNumber", json!(number));
        api.create_parcel(&order).await;
    }
}

async fn download_batch(api: &Api, body: Value) -> HttpResponse {
    api.post(Operation::BatchLabels.path(), &body).await
}

#[tokio::test]
async fn zpl_labels_are_in_the_requested_order() {
    let (_server, api) = start_with_key().await;
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
    let (_server, api) = start_with_key().await;
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
    let (server, api) = start_with_key().await;
    create_orders(&api, &["SB-NORMAL-0001", "SB-NORMAL-0002"]).await;
    let other = Api::with_key(server.url(), &server.key().account("other").issue());
    create_orders(&other, &["SB-NORMAL-0009"]).await;
    api.void("SB-NORMAL-0002").await;
    let request = ["SB-NORMAL-0001", "SB-NORMAL-0002", "SB-ABSENT-0001", "SB-NORMAL-0009", "?"];
    let refused = download_batch(&api, json!({ "trackingNumbers": request })).await;
    assert_eq!(refused.refusal(), (409, "LABELS_REJECTED"));
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
    let (_server, api) = start_with_key().await;
    let body = json!({ "trackingNumbers": ["a", "A"], "format": 1 });
    let faults = ["trackingNumbers[1] DUPLICATE", "format INVALID_FORMAT"];
    assert_eq!(download_batch(&api, body).await.faults(), faults);
}

#[tokio::test]
async fn a_batch_counts_as_one_request_against_the_rate_limit() {
    let (server, _api) = start_with_key().await;
    server.clock().freeze().await;
    let numbers: Vec<_> = server.seed_parcels(7).await;
    let key = server.key().rate_limit(2).issue();
    let limited = Api::with_key(server.url(), &key);
    let request = |count: usize| json!({"trackingNumbers": &numbers[..count], "format": "ZPL"});
    for remaining in ["1", "0"] {
        let batch = download_batch(&limited, request(7)).await;
        assert_eq!((batch.status, batch.header("x-ratelimit-remaining")), (200, remaining));
    }
    let third = download_batch(&limited, request(1)).await;
    assert_eq!(third.refusal(), (429, "RATE_LIMIT_EXCEEDED"));
}
