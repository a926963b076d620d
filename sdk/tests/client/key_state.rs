//! The state of an idempotency key: it follows the key into every request, and to disk with a saved request.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use parcelo::{
    Awb, Client, Error, ErrorKind, IdempotencyKey, ManifestRequest, OrderRequest, ReprintRequest,
    Retry, VoidManyRequest, VoidRequest, model::Saved, transport::Phase,
};
use serde_json::json;

use crate::scripted_transport::{
    ScriptedTransport, Step, client_with, number, order, refusal, response,
};

/// Returns a client that gets no responses and makes one attempt.
fn client_without_responses() -> (Client, ScriptedTransport) {
    let (client, script) = ScriptedTransport::client([lost_response()]);
    (client.with_retry(Retry::none()), script)
}

fn lost_response() -> Step {
    Step::Fail(Phase::MaybeSent)
}

fn built_order(key: IdempotencyKey) -> OrderRequest {
    let mut order = order();
    "Ana Ruiz".clone_into(&mut order.sender.full_name);
    let receiver = order.receiver.with_national_id(parcelo::IdType::Cedula, "1714307103");
    OrderRequest::builder()
        .idempotency_key(key)
        .sender(order.sender)
        .receiver(receiver)
        .weight_kg("1.5".parse().unwrap())
        .declared_value("19.99".parse().unwrap())
        .build()
        .unwrap()
}

fn manifest(key: IdempotencyKey) -> ManifestRequest {
    ManifestRequest::new(key, Awb::parse("17612345675").unwrap(), &[number()])
}

/// Sends a write of this kind with the key.
async fn send(client: &Client, write_kind: usize, key: IdempotencyKey) -> Error {
    let (orders, numbers) = (client.orders(), [number()]);
    match write_kind {
        0 => orders.create(&built_order(key)).await.unwrap_err(),
        1 => orders.create(&order().with_idempotency_key(key)).await.unwrap_err(),
        2 => orders.void(&VoidRequest::new(key, &numbers)).await.unwrap_err(),
        3 => orders.void_many(&VoidManyRequest::new(&key, &numbers)).await.unwrap_err(),
        4 => client.manifests().submit(&manifest(key)).await.unwrap_err(),
        5 => client.labels().reprint(&number(), &ReprintRequest::new(key)).await.unwrap_err(),
        _ => orders.create_many([built_order(key)]).next().await.unwrap().1.unwrap_err(),
    }
}

const WRITE_KINDS: std::ops::Range<usize> = 0..7;

#[tokio::test(start_paused = true)]
async fn a_request_shares_the_state_of_its_key_for_24_hours() {
    for write_kind in WRITE_KINDS {
        let (client, script) = client_without_responses();
        let key = IdempotencyKey::random();
        send(&client, write_kind, key.clone()).await;
        assert!(key.may_have_executed() && key.first_sent().is_some(), "write {write_kind}");
        tokio::time::advance(Duration::from_secs(24 * 3600)).await;
        let error = send(&client, write_kind, key).await;
        assert_eq!(
            (error.kind(), script.sent_requests().len()),
            (ErrorKind::KeyExpired, 1),
            "write {write_kind}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn every_write_returns_its_key_in_every_outcome() {
    let steps = [
        response(400, refusal("VALIDATION_FAILED")),
        response(503, ""),
        response(200, "no json"),
        Step::Fail(Phase::NotSent),
        Step::Hang,
    ];
    for step in steps {
        // `void_many` derives its own keys.
        for write_kind in WRITE_KINDS.filter(|write_kind| *write_kind != 3) {
            let (client, _) = ScriptedTransport::client([step.clone()]);
            let key = IdempotencyKey::parse("write-0001").unwrap();
            let error = send(&client, write_kind, key.clone()).await;
            assert_eq!(error.idempotency_key(), Some(&key), "write {write_kind}: {step:?}");
        }
    }
}

#[cfg(feature = "blocking")]
#[test]
fn a_call_that_is_waited_for_updates_its_key() {
    use parcelo::blocking::{Wait, WaitEach};

    let (client, _) = client_without_responses();
    let keys: [_; 3] = std::array::from_fn(|_| IdempotencyKey::random());
    let orders = keys.clone().map(built_order);
    client.orders().create(&orders[0]).wait().unwrap_err();
    let mut creations = client.orders().create_many([orders[1].clone()]).wait_each().unwrap();
    creations.next().unwrap().1.unwrap_err();
    let many = VoidManyRequest::new(&keys[2], &[number()]);
    client.orders().void_many(&many).wait().unwrap_err();
    assert_eq!(keys.map(|key| key.may_have_executed()), [true; 3]);
}

#[tokio::test(start_paused = true)]
async fn each_part_of_void_many_updates_its_key() {
    let (client, _) = client_without_responses();
    let key = IdempotencyKey::random();
    let numbers: Vec<_> = (0..150)
        .map(|i| parcelo::TrackingNumber::parse(&format!("SB-NUMBER-{i:04}")).unwrap())
        .collect();
    let first = VoidManyRequest::new(&key, &numbers);
    client.orders().void(&first.requests()[1]).await.unwrap_err();
    let parts = |it: &VoidManyRequest| {
        let may = it.requests().iter().map(|part| part.idempotency_key.may_have_executed());
        may.collect::<Vec<_>>()
    };
    assert_eq!(parts(&first), [false, true], "each part has its own key state");
    assert!(key.may_have_executed());
    assert_eq!(parts(&VoidManyRequest::new(&key, &numbers)), [true, true]);
}

#[tokio::test(start_paused = true)]
async fn a_saved_request_is_restored_with_the_state_of_its_key() {
    let now: DateTime<Utc> = "2026-01-10T15:05:00Z".parse().unwrap();
    let (client, script) = client_with([lost_response()], |builder| {
        builder.retry(Retry::none()).wall_clock(move || now)
    });
    let labels = client.labels();
    let key = IdempotencyKey::random;
    for (hours, expired) in [(1, false), (25, true)] {
        let at = now - TimeDelta::hours(hours);
        let many = save_and_restore(&VoidManyRequest::new(&key(), &[number()]), at);
        let errors = [
            client.orders().create(&save_and_restore(&order(), at)).await.unwrap_err(),
            client
                .orders()
                .void(&save_and_restore(&VoidRequest::new(key(), &[]), at))
                .await
                .unwrap_err(),
            client.orders().void_many(&many).await.unwrap_err(),
            client.manifests().submit(&save_and_restore(&manifest(key()), at)).await.unwrap_err(),
            labels
                .reprint(&number(), &save_and_restore(&ReprintRequest::new(key()), at))
                .await
                .unwrap_err(),
        ];
        for error in errors {
            assert_eq!(error.kind() == ErrorKind::KeyExpired, expired, "{error:?}");
            let key = error.idempotency_key().unwrap();
            assert!(error.may_have_executed());
            assert_eq!(key.first_sent(), Some(at));
        }
    }
    assert_eq!(script.sent_requests().len(), 5);
}

/// Saves a request that is about to be sent at this time, and returns it as the next process restores it.
fn save_and_restore<R>(request: &R, at: DateTime<Utc>) -> R
where
    R: parcelo::model::KeyedRequest + serde::Serialize + serde::de::DeserializeOwned,
{
    let line = serde_json::to_string(&Saved::new(request, at)).unwrap();
    serde_json::from_str::<Saved<R>>(&line).unwrap().restore()
}

#[test]
fn a_damaged_key_state_is_an_error() {
    let at: DateTime<Utc> = "2026-01-10T15:05:00Z".parse().unwrap();
    let whole = serde_json::to_value(Saved::new(&order(), at)).unwrap();
    for damaged in [json!({}), json!({"firstSent": at}), json!(null)] {
        let saved = json!([damaged, whole[1]]);
        assert!(serde_json::from_value::<Saved<OrderRequest>>(saved).is_err(), "{damaged}");
    }
    assert!(serde_json::from_value::<Saved<OrderRequest>>(whole).is_ok());
}

#[test]
fn saving_a_request_again_makes_its_key_no_younger() {
    let at: DateTime<Utc> = "2026-01-10T15:05:00Z".parse().unwrap();
    let old = order().with_idempotency_key(IdempotencyKey::random().first_sent_at(at));
    let restored = save_and_restore(&old, at + TimeDelta::hours(9));
    assert_eq!(restored.idempotency_key.first_sent(), Some(at));
    let fresh = order();
    save_and_restore(&fresh, at);
    assert_eq!(fresh.idempotency_key.first_sent(), None, "saving does not count as sending");
}
