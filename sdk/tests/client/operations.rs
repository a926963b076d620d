//! The request of each operation, byte for byte where it matters, and the parsing of its response.

use parcelo::{
    Awb, CountryCode, ErrorKind, IdempotencyKey, ManifestRequest, Outcome, ParcelStatus,
    ReprintRequest, Retry, TrackingNumber, VoidManyRequest, VoidRequest, model::ManifestId,
    transport::Phase,
};
use serde_json::{Value, json};

use crate::{
    scripted_transport::{RECORD, ScriptedTransport, Step, number, refusal, response},
    unknown_values::{data, label, manifest, voided},
};

/// Returns a response with this data.
fn data_response(status: u16, content: Value) -> Step {
    response(status, data(content).to_string())
}

fn numbers(count: usize) -> Vec<TrackingNumber> {
    (0..count).map(|i| TrackingNumber::parse(&format!("SB-NUMBER-{i:04}")).unwrap()).collect()
}

/// Returns method, path with query, and body of every request.
fn requests(script: &ScriptedTransport) -> Vec<(String, String, Value)> {
    let sent = script.sent_requests();
    let summary = |request: &http::Request<bytes::Bytes>| {
        let address = request.uri().path_and_query().unwrap().to_string();
        let body = serde_json::from_slice(request.body()).unwrap_or(Value::Null);
        assert_eq!(request.headers().contains_key("content-type"), !request.body().is_empty());
        (request.method().to_string(), address, body)
    };
    sent.iter().map(summary).collect()
}

fn only_request(script: &ScriptedTransport) -> (String, String, Value) {
    let mut requests = requests(script);
    assert_eq!(requests.len(), 1);
    requests.remove(0)
}

fn post(path: &str, body: Value) -> (String, String, Value) {
    ("POST".into(), path.into(), body)
}

fn get(path: &str) -> (String, String, Value) {
    ("GET".into(), path.into(), Value::Null)
}

#[tokio::test(start_paused = true)]
async fn a_void_sends_its_key_and_reads_a_result_for_each_number() {
    let (client, script) = ScriptedTransport::client([data_response(200, voided())]);
    let key = IdempotencyKey::parse("void-0001").unwrap();
    let request = VoidRequest::new(key.clone(), &numbers(2)).with_reason("Sold out");
    let reply = client.orders().void(&request).await.unwrap();
    let body = json!({"idempotencyKey": "void-0001", "reason": "Sold out",
        "trackingNumbers": ["SB-NUMBER-0000", "SB-NUMBER-0001"]});
    assert_eq!(only_request(&script), post("/api/v1/orders/void", body));
    assert_eq!((reply.summary.voided, reply.summary.failed), (1, 1));
    let [Ok(voided), Ok(failed)] = &reply.results[..] else { panic!("{:?}", reply.results) };
    assert_eq!(voided.previous_status, Some(ParcelStatus::LabelGenerated));
    assert_eq!(failed.error.as_ref().unwrap().code, "PARCEL_NOT_FOUND");
    assert_eq!((reply.outcome(), &reply.meta().idempotency_key), (Outcome::Created, &Some(key)));
}

#[tokio::test(start_paused = true)]
async fn a_void_that_voided_nothing_says_why_for_each_number() {
    let details = json!({"results": [voided()["results"][1]]});
    let refused = json!({"success": false, "error": {"code": "PARCEL_NOT_FOUND", "message": "No.",
        "message_es": "No va.", "details": details}});
    let (client, script) = ScriptedTransport::client([response(404, refused.to_string())]);
    let request = VoidRequest::new(IdempotencyKey::random(), &numbers(1));
    let error = client.orders().void(&request).await.unwrap_err();
    assert_eq!((error.kind(), script.sent_requests().len()), (ErrorKind::NotFound, 1));
    let results = error.body().unwrap().void_results();
    assert_eq!(results[0].as_ref().unwrap().tracking_number, "SB-SUCCESS-0002");
}

/// Returns the response to a void of this many orders, all of them voided.
fn all_voided(count: usize) -> Step {
    let row = |number: TrackingNumber| json!({"trackingNumber": number, "voided": true});
    let rows: Vec<_> = numbers(count).into_iter().map(row).collect();
    let summary = json!({"requested": count, "voided": count, "failed": 0});
    data_response(200, json!({"summary": summary, "results": rows}))
}

fn keys(request: &VoidManyRequest) -> Vec<&str> {
    request.requests().iter().map(|request| request.idempotency_key.as_str()).collect()
}

#[test]
fn void_many_derives_one_key_for_every_hundred_orders() {
    let (key, all) = (IdempotencyKey::parse("recall-0001").unwrap(), numbers(250));
    let request = VoidManyRequest::new(&key, &all);
    let first = keys(&request);
    let sizes = request.requests().iter().map(|request| request.tracking_numbers.len());
    assert_eq!(sizes.collect::<Vec<_>>(), [100, 100, 50]);
    assert_eq!(first.iter().collect::<std::collections::HashSet<_>>().len(), 3);
    assert_eq!(keys(&VoidManyRequest::new(&key, &all).with_reason("Recalled")), first);
    let fewer = VoidManyRequest::new(&key, &all[..240]);
    assert_eq!(keys(&fewer)[..2], first[..2]);
    assert_ne!(keys(&fewer)[2], first[2], "another request under the same key would be a conflict");
    let other = VoidManyRequest::new(&IdempotencyKey::parse("recall-0002").unwrap(), &all);
    assert!(keys(&other).iter().zip(&first).all(|(one, two)| one != two));
    let written = serde_json::to_string(&request).unwrap();
    assert_eq!(serde_json::from_str::<VoidManyRequest>(&written).unwrap(), request);
    assert!(VoidManyRequest::new(&key, []).requests().is_empty());
}

#[test]
fn the_derived_keys_of_void_many_share_the_state_of_its_key() {
    let at = "2026-01-10T15:05:00Z".parse().unwrap();
    let key = IdempotencyKey::parse("recall-0001").unwrap().first_sent_at(at);
    let request = VoidManyRequest::new(&key, &numbers(150));
    let fresh = VoidManyRequest::new(&IdempotencyKey::parse("recall-0001").unwrap(), &numbers(150));
    for (request, first_sent) in [(request, Some(at)), (fresh, None)] {
        for key in request.requests().iter().map(|request| &request.idempotency_key) {
            assert_eq!(key.first_sent(), first_sent);
            assert_eq!(key.may_have_executed(), first_sent.is_some());
        }
    }
}

#[tokio::test(start_paused = true)]
async fn void_many_sends_batches_of_100_and_returns_every_result() {
    let none = json!({"results": vec![voided()["results"][1].clone(); 100]});
    let none = json!({"success": false, "error": {"code": "PARCEL_NOT_FOUND", "message": "No.",
        "message_es": "No va.", "details": none}});
    let (client, script) = ScriptedTransport::client([
        all_voided(100),
        response(404, none.to_string()),
        all_voided(50),
    ]);
    let key = IdempotencyKey::random();
    let request = VoidManyRequest::new(&key, &numbers(250)).with_reason("Recalled");
    let voided = client.orders().void_many(&request).await.unwrap();
    let summary = voided.summary;
    assert_eq!((summary.requested, summary.voided, summary.failed), (250, 150, 100));
    let sent = request
        .requests()
        .iter()
        .map(|request| post("/api/v1/orders/void", serde_json::to_value(request).unwrap()));
    assert_eq!(requests(&script), sent.collect::<Vec<_>>());
}

#[tokio::test(start_paused = true)]
async fn void_many_can_be_continued_after_it_fails_halfway() {
    let lost = Step::Fail(Phase::MaybeSent);
    let refused = response(401, refusal("AUTH_INVALID_API_KEY"));
    let steps = [all_voided(100), lost, all_voided(100), refused, all_voided(100)];
    let (client, script) = ScriptedTransport::client(steps);
    let client = client.with_retry(Retry::none());
    let request = VoidManyRequest::new(&IdempotencyKey::random(), &numbers(200));

    let error = client.orders().void_many(&request).await.unwrap_err();
    assert!(error.may_have_executed() && error.voided().len() == 100);
    let second = &request.requests()[1].idempotency_key;
    assert_eq!(error.idempotency_key(), Some(second));

    let error = client.orders().void_many(&request).await.unwrap_err();
    assert!(error.may_have_executed(), "a refusal of the API key settles nothing");
    assert_eq!(error.voided().len(), 100);

    assert_eq!(client.orders().void_many(&request).await.unwrap().summary.voided, 200);
    let bodies: Vec<_> = script.sent_requests().iter().map(|sent| sent.body().clone()).collect();
    assert_eq!(
        (&bodies[0], &bodies[1]),
        (&bodies[2], &bodies[3]),
        "the same requests are sent again"
    );
}

fn submission(key: &str) -> ManifestRequest {
    let key = IdempotencyKey::parse(key).unwrap();
    ManifestRequest::new(key, Awb::parse("17612345675").unwrap(), &numbers(1))
}

#[tokio::test(start_paused = true)]
async fn a_manifest_keeps_its_key_through_retries() {
    let created = data_response(201, manifest());
    let (client, script) = ScriptedTransport::client([Step::Fail(Phase::MaybeSent), created]);
    let reply = client.manifests().submit(&submission("man-00001")).await.unwrap();
    assert_eq!(reply.meta().idempotency_key.as_ref().unwrap().as_str(), "man-00001");
    let body = json!({"idempotencyKey": "man-00001", "awbNumber": "176-12345675",
        "trackingNumbers": ["SB-NUMBER-0000"]});
    let sent = post("/api/v1/manifests/submit", body);
    assert_eq!(requests(&script), [sent.clone(), sent]);
    assert_eq!((reply.outcome(), reply.parcel_count), (Outcome::Created, 1));
    assert_eq!(reply.total_weight_kg.to_string(), "1.361");
}

#[tokio::test(start_paused = true)]
async fn a_manifest_without_a_key_derives_one_from_its_content() {
    let (client, script) = ScriptedTransport::client([data_response(200, manifest())]);
    let read = |flight: &str| -> ManifestRequest {
        let read = json!({"awbNumber": "17612345675", "trackingNumbers": ["SB-NUMBER-0000"],
            "flightNumber": flight});
        serde_json::from_value(read).unwrap()
    };
    for flight in ["EK213", "EK213", "EK214"] {
        let reply = client.manifests().submit(&read(flight)).await.unwrap();
        assert!(reply.meta().idempotency_key.is_some());
    }
    let sent = requests(&script);
    let keys: Vec<_> = sent.iter().map(|sent| sent.2["idempotencyKey"].as_str().unwrap()).collect();
    assert_eq!(keys[0], keys[1], "a restarted process derives the same key");
    assert_ne!(keys[0], keys[2]);
}

#[tokio::test(start_paused = true)]
async fn a_manifest_keeps_the_key_and_everything_that_is_given() {
    let (client, script) = ScriptedTransport::client([data_response(200, manifest())]);
    let request = submission("man-00001")
        .with_flight_number("EK213")
        .with_departure_date("2026-01-11".parse().unwrap())
        .with_origin_airport("MIA")
        .with_destination_airport("UIO")
        .with_reference("PO-77");
    let reply = client.manifests().submit(&request).await.unwrap();
    let body = json!({"idempotencyKey": "man-00001", "awbNumber": "176-12345675",
        "trackingNumbers": ["SB-NUMBER-0000"], "flightNumber": "EK213",
        "departureDate": "2026-01-11", "originAirport": "MIA", "destinationAirport": "UIO",
        "reference": "PO-77"});
    assert_eq!(only_request(&script).2, body);
    assert_eq!(reply.outcome(), Outcome::Replayed, "200 is the manifest that existed already");
}

#[tokio::test(start_paused = true)]
async fn a_rejected_manifest_names_its_parcels() {
    let refused = json!({"success": false, "error": {"code": "MANIFEST_PARCELS_REJECTED",
        "message": "No.", "message_es": "No va.", "details": {"errors": [{"field": "trackingNumbers[0]",
        "trackingNumber": "SB-NUMBER-0000", "status": "VOIDED", "code": "PARCEL_NOT_MANIFESTABLE",
        "message": "No.", "message_es": "No va."}]}}});
    let (client, _) = ScriptedTransport::client([response(409, refused.to_string())]);
    let request = submission("man-00001");
    let error = client.manifests().submit(&request).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict);
    let rejected = error.body().unwrap().rejected_parcels();
    let rejected = rejected[0].as_ref().unwrap();
    assert_eq!(rejected.tracking_number, "SB-NUMBER-0000");
    assert_eq!(rejected.status, Some(ParcelStatus::Voided));
}

#[tokio::test(start_paused = true)]
async fn a_manifest_id_is_escaped_in_its_path() {
    for (id, path) in [("man_1", "man_1"), ("../health", "..%2Fhealth")] {
        let (client, script) = ScriptedTransport::client([data_response(200, manifest())]);
        let manifest = client.manifests().get(&ManifestId::unchecked(id)).await.unwrap();
        assert_eq!(manifest.manifest_id.as_str(), "man_1");
        assert_eq!(only_request(&script), get(&format!("/api/v1/manifests/{path}")));
    }
}

#[tokio::test(start_paused = true)]
async fn a_tracking_batch_is_split_into_hundreds_and_keeps_its_order() {
    for (count, sizes) in [(0, vec![]), (1, vec![1]), (100, vec![100]), (201, vec![100, 100, 1])] {
        let batch = |size: usize| {
            let record: Value = serde_json::from_str(RECORD).unwrap();
            let mut results = vec![
                json!({"trackingNumber": "unknown", "found": false, "error":
                    {"code": "PARCEL_NOT_FOUND", "message": "No.", "message_es": "No va."}});
                size
            ];
            results[0] =
                json!({"trackingNumber": "SB-SUCCESS-0001", "found": true, "tracking": record});
            let summary = json!({"requested": size, "found": 1, "notFound": size - 1});
            data_response(200, json!({"summary": summary, "results": results}))
        };
        let (client, script) = ScriptedTransport::client(sizes.iter().map(|size| batch(*size)));
        let requested = numbers(count);
        let results = client.tracking().batch(&requested).history(true).await.unwrap();
        assert_eq!(results.len(), count);
        for (i, result) in results.iter().enumerate() {
            assert_eq!(result.tracking().is_some(), i % 100 == 0);
        }
        let sent = requested.chunks(100).map(|chunk| {
            let body = json!({"trackingNumbers": chunk, "includeHistory": true});
            post("/api/v1/tracking/batch", body)
        });
        assert_eq!(requests(&script), sent.collect::<Vec<_>>());
    }
}

#[tokio::test(start_paused = true)]
async fn a_batch_that_fails_halfway_keeps_its_results() {
    let requested = numbers(250);
    let data_response = |numbers: &[TrackingNumber]| {
        let unknown = |number| {
            json!({"trackingNumber": number, "found": false, "error":
            {"code": "PARCEL_NOT_FOUND", "message": "No.", "message_es": "No va."}})
        };
        let results: Vec<_> = numbers.iter().map(unknown).collect();
        let summary = json!({"requested": 100, "found": 0, "notFound": 100});
        data_response(200, json!({"summary": summary, "results": results}))
    };
    let limited = response(429, refusal("RATE_LIMIT_EXCEEDED")).with_header("retry-after", "100");
    let steps = [data_response(&requested[..100]), data_response(&requested[100..200]), limited];
    let (client, _) = ScriptedTransport::client(steps);
    let error = client.tracking().batch(&requested).await.unwrap_err();
    assert_eq!((error.kind(), error.may_have_executed()), (ErrorKind::RateLimited, false));
    let kept: Vec<_> =
        error.tracked().iter().map(|result| result.tracking_number().unwrap()).collect();
    let first: Vec<_> = requested[..200].iter().map(TrackingNumber::as_str).collect();
    assert_eq!(kept, first);
}

#[tokio::test(start_paused = true)]
async fn label_metadata_and_reprints_are_requested_and_read() {
    let (client, script) = ScriptedTransport::client([data_response(200, label())]);
    let read = client.labels().metadata(&number()).await.unwrap();
    assert_eq!((read.version, read.label_url.as_ref()), (2, None));
    assert_eq!(only_request(&script), get("/api/v1/labels/SB-SUCCESS-0001"));

    let (client, script) =
        ScriptedTransport::client([response(503, ""), data_response(200, label())]);
    let request =
        ReprintRequest::new(IdempotencyKey::parse("reprint-1").unwrap()).with_reason("Label torn");
    let reply = client.labels().reprint(&number(), &request).await.unwrap();
    assert_eq!((reply.reprint_count, reply.meta().attempts), (1, 2));
    let body = json!({"idempotencyKey": "reprint-1", "reason": "Label torn"});
    let sent = post("/api/v1/labels/SB-SUCCESS-0001/reprint", body);
    assert_eq!(requests(&script), [sent.clone(), sent]);
}

#[tokio::test(start_paused = true)]
async fn a_page_is_requested_with_its_filters() {
    let parcel = json!({"id": "par_1", "trackingNumber": "SB-SUCCESS-0001", "status": "VOIDED",
        "statusName": "Voided", "destinationCountry": "EC", "createdAt": "2026-01-10T15:05:00.000Z",
        "updatedAt": "2026-01-10T15:05:00.000Z"});
    let meta = json!({"requestId": "req_1", "page": 2, "limit": 1, "total": 3, "totalPages": 3});
    let body = json!({"success": true, "data": [parcel], "meta": meta}).to_string();
    let (client, script) = ScriptedTransport::client([response(200, body)]);
    let parcels = client.parcels();
    let page = parcels.list().await.unwrap();
    assert_eq!((page.parcels.len(), page.meta.total), (1, 3));
    let parcel = page.parcels[0].as_ref().unwrap();
    assert_eq!((parcel.id.as_str(), &parcel.awb_number), ("par_1", &None));
    let time = |text: &str| text.parse::<chrono::DateTime<chrono::Utc>>().unwrap();
    let narrow = parcels.list().page(2).limit(1).status(&ParcelStatus::Voided);
    let narrow = narrow.country(CountryCode::EC).external_order_id("a b&c");
    let narrow = narrow.created_from(time("2026-01-01T00:00:00Z"));
    narrow.created_to(time("2026-02-01T00:00:00.5Z")).await.unwrap();
    let query = "page=2&limit=1&status=VOIDED&country=EC&externalOrderId=a+b%26c\
        &createdFrom=2026-01-01T00%3A00%3A00.000Z&createdTo=2026-02-01T00%3A00%3A00.500Z";
    let expected = [get("/api/v1/parcels"), get(&format!("/api/v1/parcels?{query}"))];
    assert_eq!(requests(&script), expected);
}

#[tokio::test(start_paused = true)]
async fn a_reset_is_retried_only_if_it_was_not_executed() {
    let deleted = json!({"parcels": 3, "labels": 3, "manifests": 1, "trackingEvents": 7,
        "idempotencyKeys": 3, "webhookDeliveries": 0});
    let done =
        || data_response(200, json!({"deleted": deleted, "resetAt": "2026-01-10T15:05:00.000Z"}));
    let (client, script) = ScriptedTransport::client([done()]);
    assert_eq!(client.sandbox().reset().await.unwrap().deleted.tracking_events, 7);
    assert_eq!(only_request(&script), post("/api/v1/sandbox/reset", Value::Null));

    for (step, executed) in [
        (Step::Hang, true),
        (Step::Fail(Phase::MaybeSent), true),
        (response(502, ""), true),
        (response(403, refusal("SANDBOX_ONLY")), false),
    ] {
        let (client, script) = ScriptedTransport::client([step.clone(), done()]);
        let error = client.sandbox().reset().await.unwrap_err();
        assert_eq!(
            (error.may_have_executed(), script.sent_requests().len()),
            (executed, 1),
            "{step:?}"
        );
    }
    let (client, script) = ScriptedTransport::client([Step::Fail(Phase::NotSent), done()]);
    assert!(client.sandbox().reset().await.is_ok());
    assert_eq!(script.sent_requests().len(), 2);
}
