//! Answers with words and rows that this version does not know: what can be read is delivered, and a
//! write that was done is never reported as failed.

use parcelo::{Awb, Client, Error, IdempotencyKey, ManifestRequest, ReprintRequest, VoidRequest};
use serde_json::{Value, json};

use crate::script::{Script, answer, number, order};

const TIME: &str = "2026-01-10T15:05:00.000Z";

fn data(data: Value) -> Value {
    json!({"success": true, "data": data, "meta": {"requestId": "req_1"}})
}

fn created() -> Value {
    json!({"success": true, "parcel": {"id": "par_1", "trackingNumber": "SB-SUCCESS-0001",
        "status": "LABEL_GENERATED", "labelUrl": "http://localhost/l", "createdAt": TIME},
        "warnings": [warning()]})
}

fn warning() -> Value {
    json!({"code": "HS_CODE_MISSING", "field": "customsInfo", "message": "No.", "message_es": "No."})
}

fn manifest() -> Value {
    json!({"manifestId": "man_1", "awbNumber": "176-12345675", "status": "SUBMITTED",
        "parcelCount": 1, "totalWeightKg": 1.361,
        "declaredValues": [{"currency": "USD", "amount": 45.5}],
        "destinationCountries": ["EC"], "trackingNumbers": ["SB-SUCCESS-0001"],
        "submittedAt": TIME, "warnings": [warning()]})
}

fn label() -> Value {
    json!({"labelId": "lbl_1", "trackingNumber": "SB-SUCCESS-0001", "status": "ACTIVE",
        "version": 2, "reprintCount": 1, "dpi": 203, "sandbox": true,
        "size": {"widthIn": 4, "heightIn": 6, "widthMm": 100, "heightMm": 150},
        "barcode": {"symbology": "CODE_128", "value": "SB-SUCCESS-0001"},
        "qrCode": {"content": "http://localhost/track/SB-SUCCESS-0001"},
        "formats": ["PDF", "ZPL", "PNG"], "createdAt": TIME,
        "downloads": {"PDF": "http://l/1", "ZPL": "http://l/2", "PNG": "http://l/3"}})
}

fn voided() -> Value {
    json!({"summary": {"requested": 2, "voided": 1, "failed": 1}, "results": [
        {"trackingNumber": "SB-SUCCESS-0001", "voided": true, "alreadyVoided": false,
            "previousStatus": "LABEL_GENERATED", "status": "VOIDED", "voidedAt": TIME},
        {"trackingNumber": "SB-SUCCESS-0002", "voided": false,
            "error": {"code": "PARCEL_NOT_FOUND", "message": "No.", "message_es": "No va."}}]})
}

fn record() -> Value {
    json!({"trackingNumber": "SB-SUCCESS-0001", "status": "IN_TRANSIT", "statusName": "?",
        "estimatedDelivery": "2026-01-20T23:59:59-05:00", "history": [
            {"status": "ORDERED", "statusName": "?", "timestamp": TIME, "location": "Miami, US"}]})
}

fn batch() -> Value {
    json!({"summary": {"requested": 2, "found": 1, "notFound": 1}, "results": [
        {"trackingNumber": "SB-SUCCESS-0001", "found": true, "tracking": record()},
        {"trackingNumber": "SB-SUCCESS-0002", "found": false,
            "error": {"code": "PARCEL_NOT_FOUND", "message": "No.", "message_es": "No va."}}]})
}

fn parcel(number: &str) -> Value {
    json!({"id": "par_1", "trackingNumber": number, "status": "VOIDED", "statusName": "?",
        "destinationCountry": "EC", "manifestId": "man_1", "awbNumber": "176-12345675",
        "createdAt": TIME, "updatedAt": TIME})
}

fn list() -> Value {
    json!({"success": true, "data": [parcel("SB-SUCCESS-0001"), parcel("SB-SUCCESS-0002")],
        "meta": {"requestId": "req_1", "page": 1, "limit": 20, "total": 2, "totalPages": 1}})
}

fn health() -> Value {
    json!({"success": true, "status": "ok", "authenticated": true, "keyName": "shop",
        "allowedCountries": ["EC"], "environment": "sandbox"})
}

fn reset() -> Value {
    json!({"resetAt": TIME, "deleted": {"parcels": 1, "labels": 1, "manifests": 0,
        "trackingEvents": 2, "idempotencyKeys": 1, "webhookDeliveries": 0}})
}

async fn call(client: &Client, operation: &str) -> Result<(), Error> {
    let key = IdempotencyKey::parse("order-0001")?;
    let number = &number();
    match operation {
        "create" => client.orders().create(&order()).await.map(drop),
        "void" => client.orders().void(&VoidRequest::new(key, [number])).await.map(drop),
        "submit" => {
            let request = ManifestRequest::new(key, Awb::parse("176-12345675")?, [number]);
            client.manifests().submit(&request).await.map(drop)
        }
        "reprint" => client.labels().reprint(number, &ReprintRequest::new(key)).await.map(drop),
        "reset" => client.sandbox().reset().await.map(drop),
        "track" => client.tracking().get(number).history(true).await.map(drop),
        "batch" => client.tracking().batch([number]).await.map(drop),
        "list" => client.parcels().list().await.map(drop),
        "label" => client.labels().metadata(number).await.map(drop),
        "health" => client.health().await.map(drop),
        other => panic!("{other}"),
    }
}

fn answer_of(operation: &str) -> Value {
    match operation {
        "create" => created(),
        "void" => data(voided()),
        "submit" => data(manifest()),
        "reprint" | "label" => data(label()),
        "reset" => data(reset()),
        "track" => record(),
        "batch" => data(batch()),
        "list" => list(),
        "health" => health(),
        other => panic!("{other}"),
    }
}

/// What a later version of the service might answer, or one with a fault: operation, where in the
/// answer, what stands there.
fn oddities() -> Vec<(&'static str, &'static str, Value)> {
    let words = [
        ("create", "/parcel/status"),
        ("create", "/parcel/id"),
        ("create", "/warnings/0/code"),
        ("void", "/data/results/0/status"),
        ("void", "/data/results/0/previousStatus"),
        ("void", "/data/results/1/error/code"),
        ("submit", "/data/status"),
        ("submit", "/data/manifestId"),
        ("submit", "/data/declaredValues/0/currency"),
        ("submit", "/data/destinationCountries/0"),
        ("submit", "/data/trackingNumbers/0"),
        ("submit", "/data/warnings/0/code"),
        ("reprint", "/data/status"),
        ("reprint", "/data/formats/0"),
        ("reprint", "/data/barcode/symbology"),
        ("label", "/data/formats/2"),
        ("track", "/status"),
        ("track", "/history/0/status"),
        ("batch", "/data/results/0/tracking/status"),
        ("batch", "/data/results/0/trackingNumber"),
        ("batch", "/data/results/1/error/code"),
        ("list", "/data/0/status"),
        ("list", "/data/0/destinationCountry"),
        ("list", "/data/0/id"),
        ("list", "/data/0/awbNumber"),
        ("list", "/data/0/trackingNumber"),
        ("health", "/environment"),
        ("health", "/status"),
        ("health", "/allowedCountries/0"),
    ];
    let rows = [
        ("create", "/warnings/0"),
        ("void", "/data/results/0"),
        ("submit", "/data/declaredValues/0"),
        ("submit", "/data/destinationCountries/0"),
        ("submit", "/data/trackingNumbers/0"),
        ("submit", "/data/warnings/0"),
        ("reprint", "/data/formats/0"),
        ("label", "/data/formats/0"),
        ("track", "/history/0"),
        ("batch", "/data/results/0"),
        ("batch", "/data/results/0/tracking"),
        ("batch", "/data/results/0/tracking/history"),
        ("batch", "/data/results/1/error"),
        ("list", "/data/0"),
        ("list", "/data/0/createdAt"),
    ];
    // Of a write that was done: nothing of these is what the caller must have.
    let secondary = [
        ("create", "/parcel/id"),
        ("create", "/parcel/status"),
        ("create", "/parcel/labelUrl"),
        ("create", "/parcel/createdAt"),
        ("create", "/warnings"),
        ("void", "/data/summary"),
        ("void", "/data/results/0/voidedAt"),
        ("void", "/data/results/0/status"),
        ("void", "/data/results"),
        ("void", "/meta"),
        ("submit", "/data/manifestId"),
        ("submit", "/data/declaredValues"),
        ("submit", "/data/warnings"),
        ("submit", "/meta"),
        ("reprint", "/meta"),
        ("reset", "/meta"),
        ("batch", "/data/summary"),
        ("batch", "/meta"),
    ];
    let mut all: Vec<_> =
        words.into_iter().map(|(operation, at)| (operation, at, json!("NEW_WORD"))).collect();
    for odd in [json!({"odd": true}), json!(7), json!("?"), json!([[]]), Value::Null] {
        let with = |(operation, at)| (operation, at, odd.clone());
        all.extend(rows.into_iter().map(with));
        all.extend(secondary.into_iter().map(with));
    }
    all
}

#[tokio::test(start_paused = true)]
async fn every_answer_may_hold_words_and_rows_that_this_version_does_not_know() {
    let mut failed = Vec::new();
    for (operation, at, odd) in oddities() {
        let mut body = answer_of(operation);
        *body.pointer_mut(at).unwrap() = odd.clone();
        let (client, script) = Script::client([answer(200, body.to_string())]);
        if let Err(error) = call(&client, operation).await {
            failed.push(format!("{operation} {at} = {odd}: {error}"));
        }
        assert_eq!(script.sent().len(), 1, "{operation} {at}");
    }
    assert!(failed.is_empty(), "{} failed:\n{}", failed.len(), failed.join("\n"));
}
