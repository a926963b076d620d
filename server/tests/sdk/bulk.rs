//! Bulk calls: whole lists, and many orders at once.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use futures_util::StreamExt;
use parcelo::{
    ErrorKind, IdempotencyKey, Operation, ParcelStatus, Retry, VoidManyRequest, VoidRequest,
};
use parcelo_server::mock::MockServer;
use serde_json::json;

use crate::{
    conformance::valid_order,
    scripted_transport::{
        CREATED, Piece, ScriptedTransport, Step, order, orders, refusal, response,
    },
};

#[tokio::test(start_paused = true)]
async fn every_order_has_a_result_even_if_others_fail() {
    let refused = response(400, refusal("VALIDATION_FAILED"));
    let created = response(201, CREATED);
    let steps = (0..9).map(|step| if step == 4 { refused.clone() } else { created.clone() });
    let (client, script) = ScriptedTransport::client(steps);
    let mut creations = client.orders().create_many(orders("many", 9)).concurrency(3);
    let mut indices = Vec::new();
    while let Some((index, created)) = creations.next().await {
        indices.push(index);
        let key = IdempotencyKey::derive("many", &index.to_string());
        match created {
            Ok(created) => assert_eq!(created.meta().idempotency_key, Some(key)),
            Err(error) => {
                assert_eq!((error.kind(), index), (ErrorKind::Validation, 4));
                assert_eq!(error.idempotency_key(), Some(&key));
            }
        }
    }
    indices.sort_unstable();
    assert_eq!((indices, script.sent_requests().len()), ((0..9).collect(), 9));
    assert!(client.orders().create_many([]).next().await.is_none());
}

#[tokio::test(start_paused = true)]
async fn an_ended_iterator_is_not_polled_again() {
    let (client, script) = ScriptedTransport::client([response(201, CREATED)]);
    let mut round = orders("many", 4);
    // Like a queue that is empty for a moment: it ends after two, and would then continue.
    let mut polls = 0;
    let restless = std::iter::from_fn(move || {
        polls += 1;
        if polls == 3 { None } else { round.next() }
    });
    let mut creations = client.orders().create_many(restless).concurrency(4);
    while let Some((_, created)) = creations.next().await {
        created.unwrap();
    }
    assert!(creations.next().await.is_none());
    assert_eq!(script.sent_requests().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn no_more_orders_are_taken_than_are_in_flight() {
    for (concurrency, max) in [(0, 1), (1, 1), (5, 5)] {
        let slow = vec![Piece::After(Duration::from_secs(1), CREATED.into())];
        let (client, _) = ScriptedTransport::client([Step::in_pieces(201, slow)]);
        let taken = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&taken);
        let endless = std::iter::repeat_with(move || {
            count.fetch_add(1, Ordering::Relaxed);
            order()
        });
        let mut creations = client.orders().create_many(endless).concurrency(concurrency);
        for done in 0..20 {
            creations.next().await.unwrap().1.unwrap();
            let taken = taken.load(Ordering::Relaxed);
            assert!(taken <= done + max, "{taken} taken, {done} done");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn as_many_orders_are_in_flight_as_allowed() {
    let slow = vec![Piece::After(Duration::from_secs(1), CREATED.into())];
    let (client, _) = ScriptedTransport::client([Step::in_pieces(201, slow)]);
    let began = crate::limits::now();
    let mut creations = client.orders().create_many(orders("many", 20)).concurrency(10);
    while let Some((_, created)) = creations.next().await {
        created.unwrap();
    }
    assert!(began.elapsed() < Duration::from_millis(2300), "{:?}", began.elapsed());
}

fn page(ids: std::ops::Range<usize>, meta: (u32, usize)) -> Step {
    let parcels: Vec<_> = ids
        .rev()
        .map(|id| {
            json!({"id": format!("par_{id}"), "trackingNumber": "SB-SUCCESS-0001",
                "status": "VOIDED", "statusName": "Voided", "destinationCountry": "EC",
                "createdAt": format!("2026-01-10T15:05:00.{id:03}Z"),
                "updatedAt": "2026-01-10T15:05:00.000Z"})
        })
        .collect();
    let (page, total) = meta;
    let meta = json!({"requestId": "req_1", "page": page, "limit": 100, "total": total,
        "totalPages": total.div_ceil(100)});
    response(200, json!({"success": true, "data": parcels, "meta": meta}).to_string())
}

fn queries(script: &ScriptedTransport) -> Vec<String> {
    let sent = script.sent_requests();
    sent.iter().map(|request| request.uri().query().unwrap_or_default().to_owned()).collect()
}

#[tokio::test(start_paused = true)]
async fn a_stream_requests_pages_only_as_they_are_read() {
    let (client, script) = ScriptedTransport::client([
        page(150..250, (1, 250)),
        page(51..151, (1, 151)),
        page(0..52, (1, 52)),
    ]);
    let mut parcels = client.parcels().list().status(&ParcelStatus::Voided).stream();
    for id in (0..250).rev() {
        assert_eq!(parcels.next().await.unwrap().unwrap().id.as_str(), format!("par_{id}"));
        let pages = [150, 51, 0].iter().filter(|oldest| id < **oldest).count() + 1;
        assert_eq!(script.sent_requests().len(), pages, "no page before it is needed");
    }
    assert!(parcels.next().await.is_none() && parcels.next().await.is_none());
    // Parcels that are created, or leave the list before the last row, do not move the others.
    let expected = [
        "status=VOIDED&limit=100&page=1".to_owned(),
        "status=VOIDED&limit=100&createdTo=2026-01-10T15%3A05%3A00.151Z&page=1".to_owned(),
        "status=VOIDED&limit=100&createdTo=2026-01-10T15%3A05%3A00.052Z&page=1".to_owned(),
    ];
    assert_eq!(queries(&script), expected);
}

#[tokio::test]
async fn a_list_changed_while_streaming_yields_each_parcel_once() {
    // All parcels are created in the same millisecond, on many pages or few, and 50 in each.
    for (batches, size, limit) in [(1, 250, 100), (1, 250, 10), (5, 50, 100)] {
        for voids_each in [1, 2, 3, 1000] {
            let server = MockServer::start().await;
            let client = server.client(&server.key().issue());
            let mut expected = Vec::new();
            for _ in 0..batches {
                let numbers = server.seed_parcels(size).await;
                expected.extend(numbers.iter().map(ToString::to_string));
                server.clock().advance(Duration::from_millis(1)).await;
            }
            let labelled = client.parcels().list().status(&ParcelStatus::LabelGenerated);
            let (mut parcels, mut seen) = (labelled.limit(limit).stream(), Vec::new());
            while let Some(parcel) = parcels.next().await {
                let number = parcel.unwrap().tracking_number;
                if seen.len() % voids_each == 0 {
                    let key = IdempotencyKey::derive("loop", number.as_str());
                    client.orders().void(&VoidRequest::new(key, [&number])).await.unwrap();
                }
                seen.push(number.to_string());
            }
            expected.sort();
            seen.sort();
            assert_eq!(seen.len(), 250, "{size} at once, one of {voids_each} voided");
            assert_eq!(seen, expected);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_error_ends_a_streamed_list() {
    let gone = response(401, refusal("AUTH_INVALID_API_KEY"));
    let (client, _) = ScriptedTransport::client([page(100..200, (1, 200)), gone]);
    let mut parcels = client.parcels().list().stream();
    for _ in 0..100 {
        parcels.next().await.unwrap().unwrap();
    }
    let error = parcels.next().await.unwrap().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Authentication);
    assert!(parcels.next().await.is_none());
}

#[tokio::test(start_paused = true)]
async fn a_streamed_list_keeps_its_filters() {
    let (client, script) = ScriptedTransport::client([page(0..1, (7, 800)), page(0..0, (1, 0))]);
    let to = "2026-02-01T00:00:00Z".parse().unwrap();
    let parcels = client.parcels().list().page(7).limit(10).created_to(to).stream();
    assert!(parcels.all(async |parcel| parcel.is_ok()).await);
    let expected = [
        "limit=10&createdTo=2026-02-01T00%3A00%3A00.000Z&page=7",
        "limit=10&createdTo=2026-01-10T15%3A05%3A00.001Z&page=1",
    ];
    assert_eq!(queries(&script), expected);
}

#[tokio::test]
async fn an_import_that_is_run_twice_creates_each_order_once() {
    let server = MockServer::start().await;
    let client = server.client(&server.key().issue());
    let orders =
        || (0..30).map(|row| valid_order(IdempotencyKey::derive("import", &row.to_string())));
    let mut numbers = Vec::new();
    for expected in [parcelo::Outcome::Created, parcelo::Outcome::Replayed] {
        let mut creations = client.orders().create_many(orders()).concurrency(4);
        while let Some((index, created)) = creations.next().await {
            let created = created.unwrap();
            assert_eq!(created.outcome(), expected);
            numbers.push((index, created.parcel.tracking_number.to_string()));
        }
    }
    numbers.sort();
    numbers.dedup();
    assert_eq!(numbers.len(), 30);
    let parcels = client.parcels().list().limit(7).stream();
    let mut listed: Vec<_> =
        parcels.map(|parcel| parcel.unwrap().tracking_number.to_string()).collect().await;
    let mut created: Vec<_> = numbers.into_iter().map(|(_, number)| number).collect();
    created.sort();
    listed.sort();
    assert_eq!(created, listed);
}

#[tokio::test]
async fn an_interrupted_void_many_can_be_continued() {
    let server = MockServer::start().await;
    let client = server.client(&server.key().issue()).with_retry(Retry::none());
    let numbers = server.seed_parcels(250).await;
    let request = VoidManyRequest::new(&IdempotencyKey::derive("recalls", "1"), &numbers);
    server.faults().on(Operation::VoidOrders).nth(2).after_commit().close();
    let error = client.orders().void_many(&request).await.unwrap_err();
    assert!(error.may_have_executed() && error.voided().len() == 100);

    // Another process: the same key and the same numbers.
    let request = VoidManyRequest::new(&IdempotencyKey::derive("recalls", "1"), &numbers);
    let voided = client.orders().void_many(&request).await.unwrap();
    assert_eq!((voided.summary.requested, voided.summary.voided), (250, 250));
    let first_time =
        voided.results.iter().flatten().all(|result| result.already_voided == Some(false));
    assert!(first_time, "a repetition is answered as the first request was");
    let requested = numbers.iter().map(parcelo::TrackingNumber::as_str);
    assert!(voided.results.iter().flatten().map(|result| &*result.tracking_number).eq(requested));
}
