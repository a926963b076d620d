//! `ship` follows `next_step`, with every end of a call that leaves the outcome unknown. There is at most one parcel, no
//! order is sent again after its response, and the loop ends.

use std::{collections::BTreeSet, time::Duration};

use parcelo::{
    ApiKey, Client, ErrorKind, IdempotencyKey, IfAbsent, NextStep, OrderRequest, Retry,
    testing::{self, CallEnd, Execution, FaultyService, Piece, Step, call_ends},
    transport::Phase,
};

use crate::{
    scripted_transport::{order, refusal, response},
    ship::InMemory,
    write_outcomes::{ConnectionEnd, ExpectedOutcome, all_ends},
};

/// Returns the end of a connection as a step of a scripted transport.
fn step(end: ConnectionEnd) -> Step {
    match end {
        ConnectionEnd::Closed | ConnectionEnd::Unanswered => Step::Fail(Phase::Stale),
        ConnectionEnd::Cut => Step::Fail(Phase::MaybeSent),
        ConnectionEnd::Silence => Step::Hang,
        ConnectionEnd::Bytes(text) if text.contains("101 Switching") => response(101, ""),
        ConnectionEnd::Bytes(text) if text.ends_with('{') => {
            Step::in_pieces(201, [Piece::Bytes("{".into()), Piece::Break])
        }
        ConnectionEnd::Bytes(text) if text.starts_with("HTTP") => Step::Fail(Phase::MaybeSent),
        ConnectionEnd::Bytes(_) => Step::Fail(Phase::NotHttp),
        ConnectionEnd::Response(status, kind) => response(status, kind.body()),
    }
}

/// Returns what the client learns from a step: everything except texts for people.
fn essence(step: &Step) -> String {
    let Step::Respond(response) = step else { return format!("{step:?}") };
    let pieces = response.body().iter().map(|piece| match piece {
        Piece::Bytes(bytes) => match serde_json::from_slice::<serde_json::Value>(bytes) {
            Ok(json) => {
                let faults = json["error"]["details"]["errors"].as_array();
                let fields = faults.map(|all| all.iter().map(|fault| &fault["field"]).collect());
                let fields: Vec<_> = fields.unwrap_or_default();
                format!("{} {} {fields:?}", json["success"], json["error"]["code"])
            }
            Err(_) => format!("{bytes:?}"),
        },
        other => format!("{other:?}"),
    });
    format!("{} {:?}", response.status(), pieces.collect::<Vec<_>>())
}

#[test]
fn the_published_table_has_every_end_of_a_connection() {
    let published: BTreeSet<_> =
        call_ends().map(|end| (essence(&end.step), format!("{:?}", end.execution))).collect();
    let mut missing = Vec::new();
    for (end, expected) in all_ends() {
        let open = expected == ExpectedOutcome::None;
        for execution in [Execution::Never, Execution::Done, Execution::UnderWay] {
            let is_possible = open || execution == Execution::Never;
            let row = (essence(&step(end)), format!("{execution:?}"));
            if published.contains(&row) != is_possible {
                missing.push(format!("{row:?}, expected: {is_possible}"));
            }
        }
    }
    assert!(missing.is_empty(), "{}", missing.join("\n"));
}

/// Returns the number of parcels and of requests that create an order.
pub(crate) fn counts(service: &FaultyService) -> (usize, usize) {
    (service.parcels(), service.creations())
}

pub(crate) fn order_with_external_id() -> OrderRequest {
    order().with_external_order_id("1001")
}

/// Ships an order three times, and waits in between for as long as the service has refused all requests.
async fn follow(
    client: &Client,
    order: &OrderRequest,
    journal: &InMemory,
) -> Vec<Result<String, String>> {
    let mut results = Vec::new();
    for _ in 0..3 {
        let shipped = client.orders().ship(order, journal).await;
        if let Some(ban) = shipped.as_ref().err().filter(|e| e.kind() == ErrorKind::RateLimited) {
            tokio::time::sleep(ban.retry_after().unwrap_or_default()).await;
        }
        let number = shipped.map(|shipped| shipped.tracking_number.to_string());
        results.push(number.map_err(|error| format!("{error:?}")));
    }
    results
}

/// Returns an end for each next step, and for each state of the order.
fn representative_ends() -> [CallEnd; 10] {
    let lost = || Step::Fail(Phase::MaybeSent);
    let faulty = r#"{"success":false,"error":{"code":"VALIDATION_FAILED","message":"No.",
        "details":{"errors":[{"field":"receiver.phone","message":"No."}]}}}"#;
    [
        (lost(), Execution::Done),
        (lost(), Execution::UnderWay),
        (response(201, ""), Execution::UnderWay),
        (response(201, r#"{"success":true,"new":1}"#), Execution::Done),
        (response(400, faulty), Execution::Never),
        (response(401, refusal("AUTH_INVALID_API_KEY")), Execution::Never),
        (response(409, refusal("IDEMPOTENCY_IN_PROGRESS")), Execution::UnderWay),
        (response(409, refusal("NEW_CODE")), Execution::Never),
        (response(429, ""), Execution::Never),
        (response(501, ""), Execution::Never),
    ]
    .map(|(step, execution)| CallEnd::new(step, execution))
}

#[tokio::test(start_paused = true)]
async fn following_the_next_step_ships_once_after_any_two_failures() {
    for first in call_ends() {
        for second in representative_ends() {
            let service = FaultyService::new([first.clone(), second.clone()]);
            let journal = InMemory::default();
            let results = follow(&service.client(), &order_with_external_id(), &journal).await;
            let (parcels, creations) = counts(&service);
            let case = format!("{first:?}, {second:?}: {results:?}");
            assert_eq!(parcels, 1, "one parcel once the service works: {case}");
            assert!(results[2].is_ok(), "{case}");
            assert!(creations <= 5, "{creations} creations: {case}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_lasting_failure_ends_and_ships_at_most_once() {
    for end in call_ends() {
        let service = FaultyService::new(std::iter::repeat(end.clone()));
        let (order, journal) = (order_with_external_id(), InMemory::default());
        let results = follow(&service.client(), &order, &journal).await;
        let (parcels, creations) = counts(&service);
        let case = format!("{end:?}: {results:?}");
        assert_eq!(parcels, usize::from(end.execution != Execution::Never), "{case}");
        // A minute each, and 5 s between two.
        assert!(creations <= 3 * 12, "{creations} creations: {case}");
        // A day later the key has expired, and the service works.
        service.repair();
        tokio::time::advance(Duration::from_secs(25 * 3600)).await;
        assert!(follow(&service.client(), &order, &journal).await[0].is_ok(), "{case}");
        assert_eq!(service.parcels(), 1, "{case}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_attempt_in_flight_at_expiry_creates_no_second_parcel() {
    for last in [Execution::UnderWay, Execution::Never] {
        // The service loses the first attempt; the last one is made in the last second in which the key is sent.
        let lost = |execution| CallEnd::new(Step::Fail(Phase::MaybeSent), execution);
        let service = FaultyService::new([lost(Execution::Never), lost(last)]);
        let client = service.client();
        let (order, journal) = (order_with_external_id(), InMemory::default());
        client.orders().create(&order).await.unwrap_err();
        tokio::time::advance(Duration::from_secs(24 * 3600 - 601)).await;
        let mut results = follow(&client, &order, &journal).await;
        // It is executed minutes later, or never.
        tokio::time::advance(Duration::from_secs(5 * 60)).await;
        let error = client.orders().create(&order).await.unwrap_err();
        let after = Duration::from_secs(5 * 60 - 4);
        let look_again = IfAbsent::Resend { after };
        assert_eq!(error.next_step(), NextStep::LookUp { if_absent: look_again });
        results.extend(follow(&client, &order, &journal).await);
        assert_eq!(service.creations(), 2, "no new key yet: {results:?}");
        assert!(results.iter().all(Result::is_err), "no parcel yet: {results:?}");
        tokio::time::advance(after).await;
        results.extend(follow(&client, &order, &journal).await);
        assert_eq!(service.parcels(), 1, "{results:?}");
        assert!(results[8].is_ok(), "{results:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn nothing_is_sent_again_after_it_was_executed() {
    let settled = response(201, r#"{"success":true,"new":1}"#).with_header("x-request-id", "req_1");
    let service = FaultyService::new([CallEnd::new(settled, Execution::Done)]);
    let (order, journal) = (order_with_external_id(), InMemory::default());
    let number = service.client().orders().ship(&order, &journal).await.unwrap().tracking_number;
    assert_eq!((counts(&service), number.as_str()), ((1, 1), "SB-SUCCESS-0000"));
}

#[tokio::test(start_paused = true)]
async fn an_order_corrected_after_a_lost_response_ships_once() {
    for execution in [Execution::Done, Execution::UnderWay, Execution::Never] {
        let service = FaultyService::new([CallEnd::new(Step::Fail(Phase::MaybeSent), execution)]);
        let (client, mut order) = (service.client(), order_with_external_id());
        client.orders().create(&order).await.unwrap_err();
        order.receiver.phone = "+593991234568".to_owned();
        let results = follow(&client, &order, &InMemory::default()).await;
        assert_eq!(service.parcels(), 1, "{execution:?}: {results:?}");
        assert!(results.iter().all(Result::is_ok), "{execution:?}: {results:?}");
    }
}

/// Handlers that look right, and the mistake that each makes.
#[tokio::test(start_paused = true)]
async fn the_faulty_service_finds_handlers_that_ship_twice() {
    async fn new_key(client: Client, mut order: OrderRequest) {
        while let Err(error) = client.orders().create(&order).await {
            tokio::time::sleep(error.retry_after().unwrap_or_default()).await;
            order.idempotency_key = IdempotencyKey::random();
        }
    }
    async fn key_without_history(client: Client, mut order: OrderRequest) {
        let text = order.idempotency_key.to_string();
        while client.orders().create(&order).await.is_err() {
            tokio::time::sleep(Duration::from_secs(25 * 3600)).await;
            order.idempotency_key = IdempotencyKey::parse(&text).unwrap();
        }
    }
    async fn look_up_at_once(client: Client, mut order: OrderRequest) {
        while let Err(error) = client.orders().create(&order).await {
            tokio::time::sleep(error.retry_after().unwrap_or_default()).await;
            if !client.orders().find("1001").await.unwrap().is_empty() {
                return;
            }
            order.idempotency_key = IdempotencyKey::random();
        }
    }
    async fn shipped_twice(handler: impl AsyncFn(Client, OrderRequest)) -> Vec<CallEnd> {
        let mut found = Vec::new();
        for end in call_ends() {
            let service = FaultyService::new([end.clone()]);
            handler(service.client(), testing::order()).await;
            assert!(service.parcels() > 0, "{end:?}");
            found.extend((service.parcels() > 1).then_some(end));
        }
        found
    }
    let open = call_ends().filter(|end| end.execution != Execution::Never).count();
    let under_way = call_ends().filter(|end| end.execution == Execution::UnderWay).count();
    assert_eq!(shipped_twice(new_key).await.len(), open);
    assert_eq!(shipped_twice(key_without_history).await.len(), open);
    assert_eq!(shipped_twice(look_up_at_once).await.len(), under_way);
}

#[tokio::test(start_paused = true)]
async fn the_faulty_service_knows_a_key_for_one_api_key() {
    let service = FaultyService::new([]);
    let builder = Client::builder(ApiKey::parse("pk_test_other").unwrap());
    let other = builder.transport(service.clone()).retry(Retry::none()).build().unwrap();
    for client in [service.client(), service.client(), other] {
        client.orders().create(&order()).await.unwrap();
    }
    assert_eq!(counts(&service), (2, 3));
}
