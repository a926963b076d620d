//! Label metadata, reprints, and tracking of a batch of parcels.

use std::time::Duration;

use parcelo::Operation;
use parcelo_server::mock::MockServer;
use serde_json::{Value, json};

use crate::api::{Api, HttpResponse, order_with_number};

async fn start() -> (MockServer, Api) {
    let (server, api) = crate::embedded::start_with_key().await;
    for number in ["SB-NORMAL-0001", "SB-SUCCESS-0001"] {
        api.create_parcel(&order_with_number(&format!("order-{number}"), number)).await;
    }
    (server, api)
}

async fn reprint(api: &Api, number: &str, key: &str) -> HttpResponse {
    api.post(&Operation::ReprintLabel.path_of(number), &json!({ "idempotencyKey": key })).await
}

/// Returns the label of the first parcel as ZPL.
async fn zpl(api: &Api) -> String {
    api.get("/api/v1/labels/SB-NORMAL-0001/download?format=zpl").await.text()
}

/// Submits a manifest with the first parcel.
async fn submit_manifest(api: &Api) {
    let body = json!({ "awbNumber": "176-12345675", "trackingNumbers": ["SB-NORMAL-0001"] });
    assert_eq!(api.post(Operation::SubmitManifest.path(), &body).await.status, 201);
}

#[tokio::test]
async fn metadata_describes_the_label() {
    let (server, api) = start().await;
    let response = api.get("/api/v1/labels/SB-NORMAL-0001").await;
    let mut data = response.json()["data"].clone();
    assert_eq!(response.status, 200, "{}", response.text());
    let link = data["labelUrl"].as_str().unwrap().to_owned();
    assert_eq!(data["downloads"]["PDF"], link);
    for format in ["PDF", "ZPL", "PNG"] {
        let file = Api::new("").get(data["downloads"][format].as_str().unwrap()).await;
        assert_eq!(file.status, 200, "{format}");
    }
    assert!(data["labelId"].as_str().unwrap().starts_with("lbl_"));
    for changing in ["labelId", "labelUrl", "downloads"] {
        data[changing].take();
    }
    let expected = json!({
        "labelId": null, "trackingNumber": "SB-NORMAL-0001", "status": "ACTIVE", "version": 1, "reprintCount": 0,
        "size": { "widthIn": 4, "heightIn": 6, "widthMm": 100, "heightMm": 150 }, "dpi": 203,
        "barcode": { "symbology": "CODE_128", "value": "SB-NORMAL-0001" },
        "qrCode": { "content": format!("{}/track/SB-NORMAL-0001", server.url()) }, "sandbox": true,
        "formats": ["PDF", "ZPL", "PNG"], "labelUrl": null, "downloads": null,
        "createdAt": "2026-01-05T08:00:00.000Z", "lastReprintedAt": null, "voidedAt": null
    });
    assert_eq!(data, expected);
}

#[tokio::test]
async fn a_reprint_is_the_same_label_with_a_reprint_mark() {
    let (server, api) = start().await;
    assert!(!zpl(&api).await.contains("R1"));
    let before = api.get("/api/v1/labels/SB-NORMAL-0001").await.json()["data"].clone();
    server.clock().advance(Duration::from_secs(60)).await;
    let first = reprint(&api, "SB-NORMAL-0001", "reprint-0001").await;
    let data = first.json()["data"].clone();
    assert_eq!((first.status, &data["version"]), (200, &json!(2)));
    assert_eq!(data["reprintCount"], 1);
    assert_eq!(data["lastReprintedAt"], "2026-01-05T08:01:00.000Z");
    assert_eq!((&data["labelUrl"], &data["barcode"]), (&before["labelUrl"], &before["barcode"]));
    assert!(zpl(&api).await.contains("R1"));
    let again = reprint(&api, "sb-normal-0001", "reprint-0001").await;
    assert_eq!(again.bytes, first.bytes, "a replay does not bump the version");
    assert_eq!(api.get("/api/v1/labels/SB-NORMAL-0001").await.json()["data"], data);
    let other = reprint(&api, "SB-SUCCESS-0001", "reprint-0001").await;
    assert_eq!(other.refusal(), (409, "IDEMPOTENCY_CONFLICT"));
}

#[tokio::test]
async fn a_reprint_after_a_manifest_names_the_air_waybill() {
    let (_server, api) = start().await;
    let before = zpl(&api).await;
    submit_manifest(&api).await;
    assert_eq!(zpl(&api).await, before);
    // The clock stands still, so all of these happen at the same moment.
    reprint(&api, "SB-NORMAL-0001", "reprint-0001").await;
    assert!(!before.contains("176-12345675") && zpl(&api).await.contains("176-12345675"));
}

#[tokio::test]
async fn a_reprint_is_not_changed_by_a_later_manifest() {
    let (server, api) = start().await;
    reprint(&api, "SB-NORMAL-0001", "reprint-0001").await;
    let first = zpl(&api).await;
    submit_manifest(&api).await;
    assert_eq!(zpl(&api).await, first);
    server.clock().advance(Duration::from_secs(60)).await;
    assert_eq!(zpl(&api).await, first);
    reprint(&api, "SB-NORMAL-0001", "reprint-0002").await;
    assert!(!first.contains("176-12345675") && zpl(&api).await.contains("176-12345675"));
}

#[tokio::test]
async fn a_label_that_cannot_be_reprinted_is_refused() {
    let (server, api) = start().await;
    let stranger = Api::with_key(server.url(), &server.key().account("other").issue());
    for (api, number) in [(&api, "SB-ABSENT-0001"), (&stranger, "SB-NORMAL-0001")] {
        let response = reprint(api, number, "reprint-0001").await;
        assert_eq!(response.refusal(), (404, "PARCEL_NOT_FOUND"));
        let metadata = api.get(&Operation::GetLabel.path_of(number)).await;
        assert_eq!(metadata.refusal(), (404, "PARCEL_NOT_FOUND"));
    }
    let keyless = api.post("/api/v1/labels/SB-NORMAL-0001/reprint", &json!({})).await;
    assert_eq!(keyless.faults(), ["idempotencyKey REQUIRED"]);
    api.void("SB-NORMAL-0001").await;
    let dead = reprint(&api, "SB-NORMAL-0001", "reprint-0001").await;
    assert_eq!(dead.refusal(), (409, "LABEL_VOIDED"));
    let metadata = api.get("/api/v1/labels/SB-NORMAL-0001").await.json()["data"].clone();
    assert_eq!((&metadata["status"], metadata.get("labelUrl")), (&json!("VOIDED"), None));
    assert_eq!(metadata.get("downloads"), None);
    assert_eq!(metadata["voidedAt"], "2026-01-05T08:00:00.000Z");
    server.clock().advance(Duration::from_secs(3600)).await;
    let delivered = reprint(&api, "SB-SUCCESS-0001", "reprint-0002").await;
    assert_eq!(delivered.refusal(), (409, "LABEL_NOT_REPRINTABLE"));
}

#[tokio::test]
async fn a_batch_has_a_result_for_every_number_in_order() {
    let (server, api) = start().await;
    server.clock().advance(Duration::from_secs(300)).await;
    let batch = async |body: Value| api.post(Operation::BatchTracking.path(), &body).await;
    let numbers =
        json!(["SB-SUCCESS-0001", "odd", "SB-ABSENT-0001", "sb-normal-0001", "SB-SUCCESS-0001"]);
    let response = batch(json!({ "trackingNumbers": numbers, "includeHistory": true })).await;
    let data = response.json()["data"].clone();
    assert_eq!(response.status, 200, "{}", response.text());
    assert_eq!(data["summary"], json!({ "requested": 5, "found": 3, "notFound": 2 }));
    let results = data["results"].as_array().unwrap();
    let asked: Vec<_> = results.iter().map(|result| result["trackingNumber"].clone()).collect();
    assert_eq!(json!(asked), numbers);
    assert_eq!(results[0]["tracking"]["status"], "CUSTOMS_CLEARANCE", "due steps are taken first");
    assert_eq!(results[0]["tracking"]["history"].as_array().unwrap().len(), 3);
    assert_eq!(results[1]["error"]["code"], "PARCEL_NOT_FOUND");
    assert_eq!(results[1].get("tracking"), None);
    let odd = batch(json!({ "trackingNumbers": [7], "includeHistory": "yes" })).await;
    let faults = ["trackingNumbers[0] INVALID_FORMAT", "includeHistory INVALID_FORMAT"];
    assert_eq!(odd.faults(), faults);
    let stranger = Api::with_key(server.url(), &server.key().account("other").issue());
    let body = json!({ "trackingNumbers": ["SB-NORMAL-0001"] });
    let unseen = stranger.post(Operation::BatchTracking.path(), &body).await.json();
    assert_eq!(unseen["data"]["summary"]["found"], 0);
}
