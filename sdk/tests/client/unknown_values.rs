//! Responses with values and rows that this version does not know. Readable parts are returned, and a completed write is
//! never reported as failed.

use futures_util::StreamExt;
use parcelo::{
    Awb, Client, CountryCode, CurrencyCode, Environment, Error, ErrorKind, IdempotencyKey,
    LabelFormat, ManifestRequest, ParcelStatus, ReprintRequest, VoidRequest,
    model::{BatchResult, MaybeKnown, WarningCode},
};
use serde_json::{Value, json};

use crate::scripted_transport::{ScriptedTransport, number, order, response};

const TIME: &str = "2026-01-10T15:05:00.000Z";

#[expect(clippy::needless_pass_by_value, reason = "as it is written where it is called")]
pub(crate) fn data(data: Value) -> Value {
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

pub(crate) fn manifest() -> Value {
    json!({"manifestId": "man_1", "awbNumber": "176-12345675", "status": "SUBMITTED",
        "parcelCount": 1, "totalWeightKg": 1.361,
        "declaredValues": [{"currency": "USD", "amount": 45.5}],
        "destinationCountries": ["EC"], "trackingNumbers": ["SB-SUCCESS-0001"],
        "submittedAt": TIME, "warnings": [warning()]})
}

pub(crate) fn label() -> Value {
    json!({"labelId": "lbl_1", "trackingNumber": "SB-SUCCESS-0001", "status": "ACTIVE",
        "version": 2, "reprintCount": 1, "dpi": 203, "sandbox": true,
        "size": {"widthIn": 4, "heightIn": 6, "widthMm": 100, "heightMm": 150},
        "barcode": {"symbology": "CODE_128", "value": "SB-SUCCESS-0001"},
        "qrCode": {"content": "http://localhost/track/SB-SUCCESS-0001"},
        "formats": ["PDF", "ZPL", "PNG"], "createdAt": TIME,
        "downloads": {"PDF": "http://l/1", "ZPL": "http://l/2", "PNG": "http://l/3"}})
}

pub(crate) fn voided() -> Value {
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

pub(crate) fn parcel(number: &str) -> Value {
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

fn response_of(operation: &str) -> Value {
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

/// Returns responses that a later or faulty version of the service might give: the operation, the location in it,
/// and the unexpected value.
fn unexpected_values() -> Vec<(&'static str, &'static str, Value)> {
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
    // Parts of the response to a completed write that the caller can do without.
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
async fn every_response_may_have_unknown_values_and_rows() {
    let mut failed = Vec::new();
    for (operation, at, odd) in unexpected_values() {
        let mut body = response_of(operation);
        *body.pointer_mut(at).unwrap() = odd.clone();
        let (client, script) = ScriptedTransport::client([response(200, body.to_string())]);
        if let Err(error) = call(&client, operation).await {
            failed.push(format!("{operation} {at} = {odd}: {error}"));
        }
        assert_eq!(script.sent_requests().len(), 1, "{operation} {at}");
    }
    assert!(failed.is_empty(), "{} failed:\n{}", failed.len(), failed.join("\n"));
}

/// Returns a client whose response is `body` with these unexpected values.
fn client_with_response(mut body: Value, unexpected_values: &[(&str, Value)]) -> Client {
    for (at, odd) in unexpected_values {
        *body.pointer_mut(at).unwrap() = odd.clone();
    }
    ScriptedTransport::client([response(200, body.to_string())]).0
}

fn unknown<T>(word: &str) -> MaybeKnown<T> {
    MaybeKnown::Unknown(word.to_owned())
}

#[tokio::test(start_paused = true)]
async fn unknown_values_are_kept_unchanged() {
    let client = client_with_response(
        data(manifest()),
        &[
            ("/data/declaredValues/0/currency", json!("XYZ")),
            ("/data/destinationCountries", json!(["EC", "XK"])),
            ("/data/trackingNumbers", json!(["SB-SUCCESS-0001", "NEW/1"])),
            ("/data/awbNumber", json!("NEW-1")),
        ],
    );
    let key = IdempotencyKey::random();
    let request = ManifestRequest::new(key, Awb::parse("176-12345675").unwrap(), [&number()]);
    let manifest = client.manifests().submit(&request).await.unwrap();
    let value = manifest.declared_values[0].as_ref().unwrap();
    assert_eq!((&value.currency, value.currency == CurrencyCode::USD), (&unknown("XYZ"), false));
    assert_eq!(manifest.destination_countries, [CountryCode::EC.into(), unknown("XK")]);
    assert_eq!(manifest.tracking_numbers, [number().into(), unknown("NEW/1")]);
    assert_eq!(manifest.awb_number.as_str(), "NEW-1");

    let client = client_with_response(data(label()), &[("/data/formats/1", json!("SVG"))]);
    let label = client.labels().metadata(&number()).await.unwrap();
    assert_eq!(label.formats, [LabelFormat::Pdf.into(), unknown("SVG"), LabelFormat::Png.into()]);

    let client = client_with_response(health(), &[("/environment", json!("staging"))]);
    let health = client.health().await.unwrap();
    assert_eq!(health.environment, Some(unknown::<Environment>("staging")));
}

#[tokio::test(start_paused = true)]
async fn an_unreadable_row_keeps_its_place_and_its_json() {
    let odd = json!({"trackingNumber": "SB-SUCCESS-0001", "new": 1});
    let client = client_with_response(list(), &[("/data/0", odd.clone())]);
    let page = client.parcels().list().await.unwrap();
    let [Err(row), Ok(parcel)] = &page.parcels[..] else { panic!("{:?}", page.parcels) };
    assert_eq!((row.json(), parcel.tracking_number.as_str()), (&odd, "SB-SUCCESS-0002"));

    let client = client_with_response(data(batch()), &[("/data/results/0", odd.clone())]);
    let results = client.tracking().batch([&number(), &number()]).await.unwrap();
    let [BatchResult::Unreadable { tracking_number, row, .. }, BatchResult::NotFound { .. }] =
        &results[..]
    else {
        panic!("{results:?}")
    };
    assert_eq!((tracking_number.as_deref(), row.json()), (Some("SB-SUCCESS-0001"), &odd));

    let client = client_with_response(data(voided()), &[("/data/results/0", odd.clone())]);
    let request = VoidRequest::new(IdempotencyKey::random(), [&number()]);
    let voided = client.orders().void(&request).await.unwrap();
    let [Err(row), Ok(other)] = &voided.results[..] else { panic!("{:?}", voided.results) };
    assert_eq!((row.json(), other.voided), (&odd, false));

    let client = client_with_response(record(), &[("/history/0", odd.clone())]);
    let number = number();
    let record = client.tracking().get(&number).history(true).await.unwrap();
    assert_eq!(record.history.as_ref().unwrap()[0].as_ref().unwrap_err().json(), &odd);
}

#[tokio::test(start_paused = true)]
async fn a_stream_continues_after_an_unreadable_row() {
    let page = |page: u32, rows: [Value; 2]| {
        let meta = json!({"page": page, "limit": 2, "total": 4, "totalPages": 2});
        response(200, json!({"success": true, "data": rows, "meta": meta}).to_string())
    };
    let odd = json!({"createdAt": "2026-01-11T00:00:00.000Z"});
    let other = |id: &str, number: &str| {
        let mut other = parcel(number);
        other["id"] = json!(id);
        other
    };
    let first = page(1, [odd, other("par_1", "SB-SUCCESS-0001")]);
    let second = page(2, [other("par_2", "SB-SUCCESS-0002"), json!("?")]);
    let (client, script) = ScriptedTransport::client([first, second]);
    let mut parcels = client.parcels().list().stream();
    let mut seen = Vec::new();
    while let Some(parcel) = parcels.next().await {
        seen.push(match parcel {
            Ok(parcel) => parcel.tracking_number.to_string(),
            Err(error) => {
                assert_eq!((error.kind(), error.may_have_executed()), (ErrorKind::Decode, false));
                error.unreadable().unwrap().json().to_string()
            }
        });
    }
    let odd = r#"{"createdAt":"2026-01-11T00:00:00.000Z"}"#;
    assert_eq!(seen, [odd, "SB-SUCCESS-0001", "SB-SUCCESS-0002", r#""?""#]);
    let second = script.sent_requests()[1].uri().to_string();
    assert!(second.contains("createdTo=2026-01-10T15%3A05%3A00.001Z"), "{second}");
}

#[tokio::test(start_paused = true)]
async fn rows_without_a_time_are_returned_once() {
    let meta = json!({"page": 1, "limit": 1, "total": 2, "totalPages": 2});
    let rows = [json!([{"new": 1}, parcel("SB-SUCCESS-0001")]), json!([{"new": 1}, {"new": 2}])];
    for rows in rows {
        let page = json!({"success": true, "data": rows, "meta": meta});
        let (client, script) = ScriptedTransport::client([response(200, page.to_string())]);
        assert_eq!(client.parcels().list().stream().count().await, 2);
        assert!(script.sent_requests().len() <= 3, "{rows}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_creation_yields_its_number_despite_unreadable_fields() {
    let unexpected_values = [
        ("/parcel/id", json!([])),
        ("/parcel/status", json!(7)),
        ("/parcel/labelUrl", json!({"pdf": "http://localhost/l"})),
        ("/parcel/createdAt", json!("soon")),
        ("/warnings/0", json!({"text": "New."})),
    ];
    let created = client_with_response(created(), &unexpected_values)
        .orders()
        .create(&order())
        .await
        .unwrap();
    let parcel = &created.parcel;
    assert_eq!(parcel.tracking_number, number());
    assert_eq!(parcel.status, ParcelStatus::Unknown("7".to_owned()));
    assert_eq!((parcel.label_url.as_ref(), parcel.created_at), (None, None));
    let warning = &created.warnings[0];
    assert_eq!(warning.code, WarningCode::Unknown(String::new()));
    assert_eq!(warning.message, r#"{"text":"New."}"#);
}

#[tokio::test(start_paused = true)]
async fn a_write_that_was_executed_is_never_reported_as_failed() {
    let table = [
        ("create", "/parcel/trackingNumber"),
        ("create", "/parcel"),
        ("submit", "/data/totalWeightKg"),
        ("submit", "/data"),
        ("reprint", "/data/version"),
        ("reprint", "/data"),
        ("reset", "/data/resetAt"),
        ("reset", "/data"),
    ];
    for (operation, at) in table {
        let mut body = response_of(operation);
        *body.pointer_mut(at).unwrap() = json!("?");
        let step = response(200, body.to_string()).with_header("x-request-id", "req_1");
        let (client, script) = ScriptedTransport::client([step]);
        let error = call(&client, operation).await.unwrap_err();
        assert_eq!((error.kind(), error.may_have_executed()), (ErrorKind::Executed, true));
        assert_eq!(error.unreadable().unwrap().json(), &body, "{operation} {at}");
        assert_eq!(script.sent_requests().len(), 1, "it is not sent again");
        let text = error.to_string();
        assert!(text.contains("was executed") && !text.contains("may have"), "{text}");
        if let Some(key) = error.idempotency_key() {
            let state = serde_json::to_value(key.state()).unwrap();
            assert_eq!(state["execution"], "yes", "{operation} {at}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_response_without_success_leaves_the_outcome_unknown() {
    // The last response is a gateway's own: those of the service have a request id.
    let gateway = r#"{"success":true}"#;
    for body in
        ["?", "{}", "[]", r#"{"success":"true"}"#, r#"{"success":false}"#, "<html>", gateway]
    {
        let (client, _) = ScriptedTransport::client([response(200, body)]);
        for operation in ["create", "void", "submit", "reprint", "reset"] {
            let error = call(&client, operation).await.unwrap_err();
            assert_eq!((error.kind(), error.may_have_executed()), (ErrorKind::Decode, true));
        }
    }
    let (client, _) = ScriptedTransport::client([response(200, gateway)]);
    for operation in ["track", "batch", "list", "label", "health"] {
        let error = call(&client, operation).await.unwrap_err();
        assert_eq!((error.kind(), error.may_have_executed()), (ErrorKind::Decode, false));
    }
}

#[tokio::test(start_paused = true)]
async fn an_unreadable_row_of_a_refusal_hides_no_other() {
    let refused = |details: Value, retry_after: Value| {
        json!({"success": false, "error": {"code": "IDEMPOTENCY_CONFLICT", "message": "No.",
            "message_es": 7, "requestId": 7, "retryAfter": retry_after, "details": details}})
    };
    let fault = json!({"field": "reason", "code": "NEW_WORD", "message": "No."});
    let body = refused(json!({"errors": [fault, {"new": 1}]}), json!("soon"));
    let (client, _) = ScriptedTransport::client([response(409, body.to_string())]);
    let error = call(&client, "create").await.unwrap_err();
    assert_eq!((error.code(), error.may_have_executed()), (Some("IDEMPOTENCY_CONFLICT"), false));
    let faults: Vec<_> = error.field_faults().iter().map(|fault| &*fault.message).collect();
    assert_eq!(faults, ["No.", r#"{"new":1}"#]);

    let unvoided = voided()["results"][1].clone();
    let body = refused(json!({"results": [{"new": 1}, unvoided]}), json!(3));
    let (client, _) = ScriptedTransport::client([response(409, body.to_string())]);
    let results = call(&client, "void").await.unwrap_err().body().unwrap().void_results();
    assert!(matches!(&results[..], [Err(row), Ok(_)] if row.json()["new"] == 1), "{results:?}");
}
