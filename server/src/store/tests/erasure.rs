//! Lists and manifests have their indexes; what is deleted is gone whole, and its ids with it.

use futures_util::future::join_all;
use parcelo::{Awb, model::Deleted, rules::check_list};
use ulid::Ulid;

use super::conformance::{NOW, SECRET, create, nothing, row, sandbox};
use crate::{
    clock::Millis,
    domain::{Changes, Event, Op, ParcelKey, State, Tenant, manifest::NewManifest},
    store::{Commit, Store, connection, erase},
};

fn moved(parcel: ParcelKey) -> Op {
    let event = Event {
        sequence: 3,
        state: State::InTransit,
        at: NOW,
        location: "Quito, EC".to_owned(),
        description: None,
    };
    Op::Move { parcel, event }
}

async fn commit(store: &Store, changes: Changes) {
    assert_eq!(store.commit(changes).await, Commit::Committed);
}

async fn total(store: &Store, tenant: Tenant) -> u64 {
    store.list(tenant, check_list([]).unwrap()).await.unwrap().1
}

fn manifest(tenant: Tenant, parcels: Vec<ParcelKey>, id: u128) -> Op {
    Op::InsertManifest(Box::new(NewManifest {
        id: Ulid::from_parts(1, id),
        tenant,
        awb: Awb::parse("176-12345675").unwrap(),
        submitted_at: NOW,
        document: b"{}".to_vec(),
        parcels,
    }))
}

#[tokio::test]
async fn a_decision_on_a_deleted_parcel_never_meets_another_one() {
    let store = Store::memory(SECRET).unwrap();
    commit(&store, create(sandbox(1), "SB-FIRST-0001", 1)).await;
    let old = row(&store, "SB-FIRST-0001").await.unwrap();
    store.reset(sandbox(1)).await.unwrap();
    commit(&store, create(sandbox(2), "SB-SECOND-0001", 2)).await;
    let new = row(&store, "SB-SECOND-0001").await.unwrap();
    assert_eq!(new.version, old.version);
    let expect = vec![(old.key, old.version)];
    let stale = Changes { expect, ops: vec![moved(old.key)], ..nothing() };
    assert_eq!(store.commit(stale).await, Commit::VersionConflict);
    assert_eq!(row(&store, "SB-SECOND-0001").await, Some(new));
}

/// A page of a purge may end between a manifest and its parcels.
#[tokio::test]
async fn a_parcel_that_outlives_its_manifest_never_names_anothers_air_waybill() {
    let store = Store::memory(SECRET).unwrap();
    commit(&store, create(sandbox(1), "SB-FIRST-0001", 1)).await;
    let parcel = row(&store, "SB-FIRST-0001").await.unwrap().key;
    let ops = vec![manifest(sandbox(1), vec![parcel], 1)];
    commit(&store, Changes { ops, ..nothing() }).await;
    assert!(store.awb_on(parcel, 2).await.unwrap().is_some());
    store.call(|db| db.execute("DELETE FROM manifests", [])).await.unwrap();
    let ops = vec![manifest(sandbox(2), Vec::new(), 2)];
    commit(&store, Changes { ops, ..nothing() }).await;
    assert_eq!(store.awb_on(parcel, 2).await.unwrap(), None);
}

#[tokio::test]
async fn the_purge_takes_sandboxes_page_by_page_and_leaves_production() {
    let store = Store::memory(SECRET).unwrap();
    let production = Tenant { environment: parcelo::Environment::Production, ..sandbox(1) };
    commit(&store, create(production, "EC-PERMANENT-1", 9_000)).await;
    for number in 0..1_100 {
        commit(&store, create(sandbox(1), &format!("SB-ONE-{number:06}"), number)).await;
    }
    for number in 1_100..2_100 {
        commit(&store, create(sandbox(2), &format!("SB-TWO-{number:06}"), number)).await;
    }
    let parcel = row(&store, "SB-TWO-001500").await.unwrap().key;
    let ops = vec![manifest(sandbox(2), vec![parcel], 1), moved(parcel)];
    commit(&store, Changes { ops, ..nothing() }).await;
    assert_eq!(store.purge(NOW.plus(-1)).await.unwrap(), Deleted::default());
    let expected = Deleted::default()
        .with_parcels(2_100)
        .with_labels(2_100)
        .with_manifests(1)
        .with_tracking_events(4_201)
        .with_idempotency_keys(2_100);
    assert_eq!(store.purge(NOW).await.unwrap(), expected);
    let left = [production, sandbox(1), sandbox(2)].map(|tenant| total(&store, tenant));
    let left = join_all(left).await;
    assert_eq!(left, [1, 0, 0]);
    assert_eq!(store.reset(production).await.unwrap(), Deleted::default());
    assert_eq!(total(&store, production).await, 1);
    assert_eq!(store.purge(Millis(i64::MAX)).await.unwrap(), Deleted::default());
}

#[tokio::test]
async fn a_tenant_has_one_manifest_under_an_air_waybill() {
    let store = Store::memory(SECRET).unwrap();
    commit(&store, create(sandbox(1), "SB-FIRST-0001", 1)).await;
    let parcel = row(&store, "SB-FIRST-0001").await.unwrap();
    commit(&store, Changes { ops: vec![manifest(sandbox(1), vec![], 1)], ..nothing() }).await;
    let ops = vec![moved(parcel.key), manifest(sandbox(1), vec![parcel.key], 2)];
    assert_eq!(store.commit(Changes { ops, ..nothing() }).await, Commit::DuplicateAwb);
    assert_eq!(row(&store, "SB-FIRST-0001").await, Some(parcel), "nothing of it is kept");
}

#[test]
fn lists_and_deletions_have_their_indexes() {
    let mut db = connection::memory().unwrap();
    connection::prepare(&mut db, "memory".as_ref(), SECRET).unwrap();
    let list =
        "SELECT id FROM living_parcels WHERE tenant = 2 AND created_at >= 0 AND created_at < 9";
    let newest = "ORDER BY created_at DESC, id DESC LIMIT 20";
    let order_id = "json_extract(order_json, '$.externalOrderId') = 'x'";
    let with_nines = |sql: &str| sql.replace("?1", "9").replace("?2", "9");
    let due = "SELECT id FROM living_outbox WHERE tenant = 3 AND";
    let counts =
        "SELECT day, sum(total) FROM parcel_counts WHERE tenant = 2 AND day >= 1 AND day < 9";
    let reads = [
        (format!("{counts} GROUP BY day ORDER BY day DESC"), "PRIMARY KEY (tenant=? AND day>?"),
        ("DELETE FROM parcel_counts WHERE total = 0".to_owned(), "parcel_counts_empty"),
        (format!("{list} AND (3 IS NULL OR state = 3) {newest}"), "COVERING INDEX parcels_list"),
        (format!("{list} AND (NULL IS NULL OR country = NULL)"), "COVERING INDEX parcels_list"),
        (format!("{list} AND {order_id} {newest}"), "parcels_external"),
        (with_nines(erase::OLD), "COVERING INDEX parcels_list"),
        (with_nines(erase::OLD_RECORDS), "COVERING INDEX idempotency_sandbox"),
        (format!("{due} due <= 9 ORDER BY due, id LIMIT 9"), "outbox_due"),
        (format!("{due} state < 2 ORDER BY created_at LIMIT 9"), "outbox_pending"),
        (format!("{due} id > 9 AND state > 2 ORDER BY id LIMIT 9"), "outbox_missed"),
        ("SELECT id FROM living_outbox WHERE leased = 1 LIMIT 9".to_owned(), "outbox_leased"),
        (
            "SELECT id FROM idempotency WHERE tenant = 3 AND tenant % 2 = 1 AND id <= 9".to_owned(),
            "COVERING INDEX idempotency_sandbox",
        ),
        (
            "SELECT id FROM living_manifests WHERE tenant % 2 = 1 AND submitted_at <= 9".to_owned(),
            "manifests_sandbox",
        ),
        (
            "SELECT id FROM parcels WHERE tenant = 3 AND id <= 9 ORDER BY created_at, id LIMIT 9"
                .to_owned(),
            "COVERING INDEX parcels_list",
        ),
        (
            "SELECT id FROM outbox WHERE tenant = 3 AND id <= 9 ORDER BY id LIMIT 9".to_owned(),
            "outbox_tenant",
        ),
        (
            "SELECT document FROM living_manifests WHERE tenant = 3 AND awb = 'x'".to_owned(),
            "manifests_awb",
        ),
        (
            "SELECT document FROM living_manifests WHERE public_id = x'00' AND tenant = 3"
                .to_owned(),
            "public_id",
        ),
    ];
    for (sql, index) in reads {
        let mut plan = db.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
        let lines = plan.query_map([], |row| row.get::<_, String>(3)).unwrap();
        let plan = lines.collect::<Result<Vec<_>, _>>().unwrap().join("; ");
        assert!(plan.contains(index) && !plan.contains("TEMP"), "{sql}: {plan}");
    }
}
