//! The mock server's state: seeded parcels, statuses set by a test, snapshots and resets.

use std::time::Duration;

use parcelo::{ParcelStatus, TrackingNumber};
use parcelo_server::mock::{Builder, Clock, MockServer, SetStatusError, Snapshot};
use serde_json::{Value, json};

use crate::{
    api::{Api, order, order_with_number},
    embedded,
};

async fn start(seed: u64) -> (MockServer, Api) {
    start_on(embedded::builder().seed(seed)).await
}

/// Starts a server in memory for a test of snapshots.
async fn start_in_memory(seed: u64) -> (MockServer, Api) {
    start_on(in_memory().seed(seed)).await
}

fn in_memory() -> Builder {
    embedded::in_memory("a snapshot is a copy of a store in memory")
}

async fn start_on(builder: Builder) -> (MockServer, Api) {
    let server = builder.start().await;
    let api = Api::with_key(server.url(), &server.key().issue());
    (server, api)
}

async fn list(api: &Api, query: &str) -> Value {
    api.get(&format!("/api/v1/parcels?{query}")).await.json()
}

async fn history(api: &Api, number: &str) -> Vec<String> {
    let response = api.record(number).await;
    let history = response["history"].as_array().unwrap().clone();
    history.iter().map(|entry| entry["status"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn seeded_parcels_are_orders_like_any_other() {
    let (server, api) = start(1).await;
    let numbers = server.seed_parcels(7).await;
    assert_eq!(numbers.len(), 7);
    assert_eq!(list(&api, "").await["meta"]["total"], 7);
    for (country, count) in [("EC", 3), ("MX", 2), ("CO", 2)] {
        assert_eq!(list(&api, &format!("country={country}")).await["meta"]["total"], count);
    }
    let found = list(&api, "externalOrderId=SEED-00007").await;
    assert_eq!(found["data"][0]["trackingNumber"], numbers[6].as_str());
    assert_eq!(server.seed_parcels(2).await.len(), 2, "a second time makes further ones");
    let (other, _) = start(1).await;
    assert_eq!(other.seed_parcels(7).await, numbers);
}

#[tokio::test]
async fn put_status_takes_the_shortest_legal_path() {
    let ways: [(&str, &[&str]); 11] = [
        ("LABEL_GENERATED", &[]),
        ("MANIFEST_SUBMITTED", &["MANIFEST_SUBMITTED"]),
        ("PICKED_UP", &["PICKED_UP"]),
        ("CUSTOMS_CLEARANCE", &["CUSTOMS_CLEARANCE"]),
        ("CUSTOMS_HOLD", &["PICKED_UP", "CUSTOMS_HOLD"]),
        ("IN_TRANSIT", &["IN_TRANSIT"]),
        ("OUT_FOR_DELIVERY", &["PICKED_UP", "OUT_FOR_DELIVERY"]),
        ("DELIVERED", &["IN_TRANSIT", "DELIVERED"]),
        ("DELIVERY_FAILED", &["IN_TRANSIT", "DELIVERY_FAILED"]),
        ("RETURN_TO_SENDER", &["PICKED_UP", "RETURN_TO_SENDER"]),
        ("VOIDED", &["VOIDED"]),
    ];
    let (server, api) = start(1).await;
    let numbers = server.seed_parcels(ways.len()).await;
    for (number, (status, way)) in numbers.iter().zip(ways) {
        let statuses = server.put_status(number, ParcelStatus::from(status)).await.unwrap();
        let statuses: Vec<_> = statuses.iter().map(ParcelStatus::code).collect();
        assert_eq!(statuses, way, "{status}");
        let expected = [&["ORDERED", "LABEL_GENERATED"], way].concat();
        assert_eq!(history(&api, number.as_str()).await, expected);
        let listed = list(&api, &format!("status={status}")).await;
        let mut listed = listed["data"].as_array().unwrap().iter();
        assert!(listed.any(|parcel| parcel["trackingNumber"] == number.as_str()), "{status}");
    }
}

#[tokio::test]
async fn put_status_also_creates_the_manifest() {
    let (server, api) = start(1).await;
    let number = server.seed_parcels(1).await.remove(0);
    server.put_status(&number, ParcelStatus::ManifestSubmitted).await.unwrap();
    let listed = list(&api, "").await;
    let manifest = listed["data"][0]["manifestId"].as_str().unwrap().to_owned();
    let manifest = api.get(&format!("/api/v1/manifests/{manifest}")).await.json();
    assert_eq!(manifest["data"]["trackingNumbers"], json!([number]), "{manifest}");
}

#[tokio::test]
async fn an_unreachable_status_is_an_error_and_changes_nothing() {
    let (server, api) = start(1).await;
    let number = server.seed_parcels(1).await.remove(0);
    server.put_status(&number, ParcelStatus::InTransit).await.unwrap();
    for status in ["VOIDED", "LABEL_GENERATED", "MANIFEST_SUBMITTED", "LOST_AT_SEA"] {
        let refused = server.put_status(&number, ParcelStatus::from(status)).await.unwrap_err();
        let (from, to) = (ParcelStatus::InTransit, ParcelStatus::from(status));
        assert_eq!(refused, SetStatusError::Unreachable { number: number.clone(), from, to });
    }
    assert_eq!(history(&api, number.as_str()).await.len(), 3);
    let unknown = TrackingNumber::parse("SBEC0000000000000").unwrap();
    let refused = server.put_status(&unknown, ParcelStatus::InTransit).await.unwrap_err();
    assert_eq!(refused, SetStatusError::ParcelNotFound(unknown));
}

#[tokio::test]
async fn a_refused_step_is_an_error_with_a_reason() {
    let (server, _) = start(1).await;
    server.clock().set("2026-01-05T09:00:00Z").await;
    let number = server.seed_parcels(1).await.remove(0);
    server.clock().set("2026-01-05T08:00:00Z").await;
    let refused = server.put_status(&number, ParcelStatus::InTransit).await.unwrap_err();
    assert!(refused.to_string().ends_with("the clock is before the parcel's last event"));
}

#[tokio::test]
async fn a_restored_server_continues_as_before() {
    let (server, api) = start_in_memory(1).await;
    api.create_parcel(&order_with_number("order-0001", "SB-SUCCESS-0001")).await;
    server.clock().advance(Duration::from_secs(7 * 60)).await;
    let snapshot = server.snapshot().await;
    let mut runs = Vec::new();
    for _ in 0..3 {
        server.restore(&snapshot).await;
        assert_eq!(server.clock().now().to_rfc3339(), "2026-01-05T08:07:00+00:00");
        let fired = server.clock().advance(Duration::from_secs(8 * 60)).await;
        let created = api.create(&order("order-0002")).await;
        let key = server.key().issue();
        let total = list(&api, "").await["meta"]["total"].clone();
        runs.push((fired, created.bytes, created.headers, key.secret().to_owned(), total));
    }
    assert_eq!(runs[0].0.len(), 2);
    assert_eq!(runs[0].4, 2);
    assert!(runs.iter().all(|run| *run == runs[0]), "{runs:?}");
}

#[tokio::test]
async fn keys_made_after_the_snapshot_are_unknown_again() {
    let server = in_memory().start().await;
    let limited = Api::with_key(server.url(), &server.key().rate_limit(1).issue());
    let snapshot = server.snapshot().await;
    let later = Api::with_key(server.url(), &server.key().issue());
    assert_eq!(later.get("/api/v1/health").await.status, 200);
    for status in [200, 429] {
        assert_eq!(limited.get("/api/v1/health").await.status, status);
    }
    server.restore(&snapshot).await;
    assert_eq!(later.get("/api/v1/health").await.refusal().1, "AUTH_INVALID_API_KEY");
    assert_eq!(limited.get("/api/v1/health").await.status, 200);
}

#[tokio::test]
async fn a_server_can_start_from_the_snapshot_of_another() {
    let (first, api) = start_in_memory(7).await;
    let number = api.create_parcel(&order("order-0001")).await;
    let snapshot = first.snapshot().await;
    let second = in_memory().seed(7).clock(Clock::system()).start().await;
    let key = first.key().issue();
    second.restore(&snapshot).await;
    let same = second.key().issue();
    assert_eq!(key.secret(), same.secret());
    let there = Api::with_key(second.url(), &same);
    assert_eq!(there.track(&number).await.status, 200);
    assert_eq!(second.clock().now(), first.clock().now());
    there.create_parcel(&order("order-0002")).await;
    assert_eq!(list(&api, "").await["meta"]["total"], 1, "the two servers share no state");
}

#[tokio::test]
#[should_panic(expected = "another seed")]
async fn a_snapshot_of_another_seed_is_refused() {
    let (first, _) = start_in_memory(1).await;
    let (second, _) = start_in_memory(2).await;
    second.restore(&first.snapshot().await).await;
}

#[tokio::test]
#[should_panic(
    expected = "is of a server in the environment sandbox, and this one is in production"
)]
async fn a_snapshot_of_the_other_environment_is_refused() {
    let (first, _) = start_in_memory(1).await;
    let (second, _) = start_on(in_memory().seed(1).production()).await;
    second.restore(&first.snapshot().await).await;
}

#[tokio::test]
async fn a_restored_server_sends_webhooks_to_its_own_receiver() {
    let (first, api) = start_in_memory(7).await;
    let other = first.webhook_inbox().start().await;
    api.create_parcel(&order_with_number("order-0001", "SB-SUCCESS-0001")).await;
    let snapshot = first.snapshot().await;
    let before = other.deliveries().len();
    let (second, _) = start_in_memory(7).await;
    let inbox = second.webhook_inbox().start().await;
    second.restore(&snapshot).await;
    second.clock().advance(Duration::from_secs(5 * 60)).await;
    assert_eq!(inbox.events().len(), 1, "it is signed with the inbox's secret");
    assert_eq!(other.deliveries().len(), before);
}

#[tokio::test]
async fn a_receiver_chosen_after_the_snapshot_still_gets_webhooks() {
    let (server, api) = start_in_memory(7).await;
    let snapshot = server.snapshot().await;
    let inbox = server.webhook_inbox().start().await;
    server.restore(&snapshot).await;
    api.create_parcel(&order("order-0001")).await;
    server.clock().advance(Duration::ZERO).await;
    assert_eq!(inbox.events().len(), 1);
}

#[tokio::test]
async fn a_saved_snapshot_starts_the_next_run() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("state.snapshot");
    let (first, api) = start_in_memory(7).await;
    let number = api.create_parcel(&order_with_number("order-0001", "SB-SUCCESS-0001")).await;
    first.clock().advance(Duration::from_secs(7 * 60)).await;
    first.snapshot().await.save(&file).unwrap();
    let second = in_memory().seed(7).clock(Clock::system()).start().await;
    second.restore(&Snapshot::load(&file).unwrap()).await;
    assert_eq!(second.clock().now(), first.clock().now(), "it is frozen too");
    let key = second.key().issue();
    assert_eq!(key.secret(), first.key().issue().secret());
    assert_eq!(Api::with_key(second.url(), &key).track(&number).await.status, 200);
    let fired = second.clock().advance(Duration::from_secs(8 * 60)).await;
    assert_eq!(fired.len(), 2);
    assert_eq!(fired, first.clock().advance(Duration::from_secs(8 * 60)).await);
}

#[tokio::test]
async fn a_saved_snapshot_keeps_the_mode_of_the_clock() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("state.snapshot");
    tokio::time::pause();
    let server = in_memory().clock(Clock::ticking("2026-01-05T08:00:00Z")).start().await;
    server.snapshot().await.save(&file).unwrap();
    server.clock().freeze().await;
    server.restore(&Snapshot::load(&file).unwrap()).await;
    let before = server.clock().now();
    tokio::time::advance(Duration::from_secs(60)).await;
    assert_eq!((server.clock().now() - before).num_seconds(), 60);
}

#[tokio::test]
async fn an_idle_server_executes_what_a_restored_state_has_due() {
    let (first, api) = start_in_memory(7).await;
    api.create_parcel(&order_with_number("order-0001", "SB-SUCCESS-0001")).await;
    tokio::time::pause();
    first.clock().resume().await;
    let second = in_memory().seed(7).clock(Clock::ticking("2026-01-05T08:00:00Z")).start().await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    second.restore(&first.snapshot().await).await;
    tokio::time::sleep(Duration::from_secs(5 * 60)).await;
    assert_eq!(second.clock().freeze().await, [], "the step at 08:05 was taken already");
}

#[tokio::test]
async fn a_file_that_is_not_a_whole_snapshot_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("state.snapshot");
    let server = in_memory().start().await;
    server.snapshot().await.save(&file).unwrap();
    let whole = std::fs::read(&file).unwrap();
    let newer = whole.strip_prefix(br#"{"snapshot":1"#).unwrap();
    let newer = [br#"{"snapshot":2"#.as_slice(), newer].concat();
    let longer = [whole.as_slice(), b"x"].concat();
    let table: [(&[u8], &str); 5] = [
        (&whole[..whole.len() - 1], "not a whole snapshot"),
        (b"", "not a whole snapshot"),
        (&longer, "not a whole snapshot"),
        (b"{}\n", "not a whole snapshot"),
        (&newer, "of a newer version"),
    ];
    for (bytes, reason) in table {
        std::fs::write(&file, bytes).unwrap();
        let refused = Snapshot::load(&file).unwrap_err().to_string();
        assert!(refused.contains(reason), "{reason}: {refused}");
    }
    // SQLite itself accepts most of these.
    for byte in (0..whole.len()).step_by(whole.len() / 50) {
        let mut changed = whole.clone();
        changed[byte] ^= 1;
        std::fs::write(&file, changed).unwrap();
        assert!(Snapshot::load(&file).is_err(), "byte {byte}");
    }
    let absent = Snapshot::load(folder.path().join("absent")).unwrap_err().to_string();
    assert!(absent.contains("absent: No such file"), "{absent}");
}

#[tokio::test]
async fn a_reset_empties_every_account_and_leaves_keys_and_clock() {
    let (server, api) = start_in_memory(1).await;
    let other = Api::with_key(server.url(), &server.key().account("other").issue());
    server.clock().advance(Duration::from_secs(60)).await;
    api.create_parcel(&order_with_number("order-0001", "SB-SUCCESS-0001")).await;
    other.create_parcel(&order_with_number("order-0001", "SB-SUCCESS-0002")).await;
    server.faults().on_any().nth(1_000).close();
    let deleted = server.reset().await;
    assert!(server.faults().unused().is_empty());
    assert_eq!((deleted.parcels, deleted.idempotency_keys), (2, 2));
    for api in [&api, &other] {
        assert_eq!(list(api, "").await["meta"]["total"], 0);
    }
    assert_eq!(server.clock().advance(Duration::from_secs(3600)).await, []);
    assert_eq!(server.clock().now().to_rfc3339(), "2026-01-05T09:01:00+00:00");
    api.create_parcel(&order_with_number("order-0001", "SB-SUCCESS-0001")).await;
}
