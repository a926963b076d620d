//! Servers that are replaced one by one: this version serves at the same time as the next one, on its schema.
//!
//! The additions of the next version are unknown; here they are a column of every table, an index, a table and a
//! trigger's function. `PARCELO_NEXT_SCHEMA=1` runs every test of this engine on such a schema.

use parcelo_domain::{
    State, StoredOrder, activity::epoch_day, sample::TEST_AUTHOR, webhooks::RetryDecision,
};
use parcelo_types::{Environment, TrackingNumber, internal::check_list, model::Deleted};

use crate::postgres::test_util::cluster::{
    NEXT_MIGRATION, empty_database, make_schema, query, run_sql,
};
use crate::{
    CommitOutcome, Store, StoreError,
    postgres::migrations::{MIGRATIONS, OLDEST_SCHEMA},
    tests::conformance::{
        NOW, SECRET, changes_to, create, create_parcel, move_parcel, order, record, row, sandbox,
        search::{maintain_index, search_text as search},
        webhooks::{endpoint, lease, outcome},
    },
    waiting::until,
};

/// Selects the value of `oldest_schema`, and the number of migrations done.
const READ_SCHEMA_VERSIONS: &str = "SELECT (SELECT convert_from(value, 'UTF8') FROM meta WHERE name = 'oldest_schema') \
     || ' ' || (SELECT max(version) FROM schema_migrations)";

/// Inserts parcels of two days, as a program with schema 9 wrote them.
const INSERT_PARCELS: &str = "\
    INSERT INTO parcels (id, version, tenant, epoch, created_at, updated_at, promised_day, label_version, \
        last_sequence, environment, state, country, number, public_id, origin, destination, order_json) \
    SELECT 1000000 + g, 1, 3, 0, 86400000 * (g % 2), 0, 20000, 1, 2, 1, 2, 'EC', 'SB-NINE-' || lpad(g::text, 6, '0'), \
        decode(md5(g::text), 'hex'), 'Miami, US', 'Quito, EC', ORDER FROM generate_series(1, 300) AS g; \
    INSERT INTO parcel_counts (tenant, epoch, day, state, country, total) \
    SELECT tenant, epoch, created_at / 86400000, state, country, count(*) FROM parcels GROUP BY 1, 2, 3, 4, 5";

#[tokio::test(flavor = "multi_thread")]
async fn an_upgrade_keeps_parcels_with_their_orders_and_counts() {
    let Some(address) = empty_database() else { return };
    let order = order("key-1");
    let json = StoredOrder::to_json(&order);
    make_schema(&address, &MIGRATIONS[..9], &INSERT_PARCELS.replace("ORDER", &format!("'{json}'")));
    let store = Store::connect(address.clone(), SECRET).await.unwrap();
    serve_order(&store, "SB-TEN-0001", 1).await;
    for _ in 0..2 {
        let (page, total) = store.list(sandbox(1), check_list([]).unwrap()).await.unwrap();
        assert_eq!((page.len(), total), (20, 301));
        let days = store.activity(sandbox(1), 0).await.unwrap();
        let days: Vec<_> = days.iter().map(|day| (day.created_day, day.parcels)).collect();
        assert_eq!(days, [(0, 150), (1, 150), (epoch_day(NOW), 1)]);
        store.merge_count_changes().await.unwrap();
    }
    let number = TrackingNumber::parse("SB-NINE-000007").unwrap();
    let (parcel, stored) =
        store.parcel_with_order(Environment::Sandbox, &number).await.unwrap().unwrap();
    assert_eq!(stored.order, order);
    let moved = changes_to(&parcel, vec![move_parcel(&parcel, State::PickedUp, 5)]);
    assert_eq!(store.commit(moved).await, CommitOutcome::Committed);
}

/// Serves an order, from its creation to the delivery of its webhook.
async fn serve_order(store: &Store, number: &str, count: u32) {
    let tenant = sandbox(1);
    assert_eq!(store.commit(create(tenant, number, count)).await, CommitOutcome::Committed);
    assert!(row(store, number).await.is_some());
    for leased in lease(store, tenant, 9, NOW).await {
        store.settle(leased, outcome(NOW, 200), RetryDecision::Delivered).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn this_version_runs_on_the_schema_of_the_next() {
    let Some(address) = empty_database() else { return };
    let before = Store::connect(address.clone(), SECRET).await.unwrap();
    before.set_endpoint(endpoint(sandbox(1)), &TEST_AUTHOR).await.unwrap();
    serve_order(&before, "SB-NEXT-0001", 1).await;
    run_sql(&address, &format!("BEGIN; {NEXT_MIGRATION}; COMMIT"));
    let versions = query(&address, READ_SCHEMA_VERSIONS);
    // Its statements are prepared for the previous schema.
    serve_order(&before, "SB-NEXT-0002", 2).await;
    let again = Store::connect(address.clone(), [1; 32]).await.unwrap();
    assert_eq!(again.secret(), before.secret());
    serve_order(&again, "SB-NEXT-0003", 3).await;
    assert!(row(&before, "SB-NEXT-0003").await.is_some());
    let command = Store::connect_for_admin(address.clone(), [1; 32]).await.unwrap();
    command.account("other", "acc_2".to_owned(), NOW).await.unwrap();
    assert_eq!(query(&address, READ_SCHEMA_VERSIONS), versions, "the newer version's values stay");
    assert_eq!(query(&address, "SELECT count(*) FROM outbox WHERE state <> 2"), "0");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_outdated_version_does_not_start_and_is_not_ready() {
    let Some(address) = empty_database() else { return };
    let store = Store::connect(address.clone(), SECRET).await.unwrap();
    create_parcel(&store, sandbox(1), "SB-OLD-0001").await;
    let known = MIGRATIONS.len();
    let oldest =
        |schema: usize| format!("UPDATE meta SET value = '{schema}' WHERE name = 'oldest_schema'");
    run_sql(&address, NEXT_MIGRATION);
    run_sql(&address, &oldest(known + 1));
    let before = query(&address, READ_SCHEMA_VERSIONS);
    for refused in [
        Store::connect(address.clone(), SECRET).await,
        Store::connect_for_admin(address.clone(), SECRET).await,
    ] {
        let refused = refused.unwrap_err();
        assert!(matches!(refused, StoreError::Unsuitable { .. }), "{refused}");
        let words = format!(
            "(the database has schema {}, this program {known}): install the newer",
            known + 1
        );
        assert!(refused.to_string().contains(&words), "{refused}");
    }
    assert_eq!(query(&address, READ_SCHEMA_VERSIONS), before, "nothing was changed");
    // A server that was started before stops being ready.
    store.measure_clock().await.unwrap();
    assert!(!store.is_readable());
    assert!(store.unavailable_reason().unwrap().contains("install the newer program"));
    run_sql(&address, &oldest(known));
    store.measure_clock().await.unwrap();
    assert!(store.is_readable() && store.unavailable_reason().is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upgrade_records_the_oldest_supported_schema() {
    let Some(address) = empty_database() else { return };
    drop(Store::connect(address.clone(), SECRET).await.unwrap());
    run_sql(&address, "DELETE FROM meta WHERE name = 'oldest_schema'");
    drop(Store::connect(address.clone(), SECRET).await.unwrap());
    let known = MIGRATIONS.len();
    assert_eq!(query(&address, READ_SCHEMA_VERSIONS), format!("{OLDEST_SCHEMA} {known}"));
    // No program makes a newer schema without that value.
    run_sql(&address, &format!("{NEXT_MIGRATION}; DELETE FROM meta WHERE name = 'oldest_schema'"));
    let refused = Store::connect(address, SECRET).await.unwrap_err().to_string();
    assert!(refused.contains("install the newer program"), "{refused}");
}

/// Two sandboxes as a program of schema 12 has left them: one whose reset is finished, and one whose reset is not.
const INSERT_RESETS: &str = "\
    INSERT INTO resets (tenant, epoch, is_erasing) VALUES (3, 1, true), (5, 2, false); \
    INSERT INTO parcels (id, version, tenant, epoch, created_at, updated_at, promised_day, label_version, \
        last_sequence, environment, state, country, number, public_id, origin, destination) \
    SELECT 1000000 + g, 1, CASE WHEN g <= 40 THEN 3 ELSE 5 END, CASE WHEN g <= 30 THEN 0 WHEN g <= 40 THEN 1 ELSE 2 END, \
        g, 0, 20000, 1, 2, 1, 2, 'EC', 'SB-TWELVE-' || lpad(g::text, 4, '0'), decode(md5(g::text), 'hex'), \
        'Miami, US', 'Quito, EC' FROM generate_series(1, 45) AS g; \
    DELETE FROM term_queue; UPDATE term_sweep SET until = 1000045, next = 1000045; \
    INSERT INTO orders (parcel, order_json) SELECT id, ORDER FROM parcels; \
    INSERT INTO parcel_counts (tenant, epoch, day, state, country, total) \
    SELECT tenant, epoch, 0, state, country, count(*) FROM parcels GROUP BY 1, 2, 3, 4, 5; \
    INSERT INTO idempotency (key, tenant, epoch, first_seen, fingerprint, body) \
    SELECT decode(rpad(lpad(to_hex(id - 1000000), 8, '0'), 16, '0') || lpad(to_hex(tenant), 16, '0'), 'hex'), tenant, epoch, 0, \
        decode(repeat('07', 32), 'hex'), '' FROM parcels; \
    INSERT INTO manifests (tenant, epoch, awb, public_id, submitted_at, document) \
    SELECT tenant, epoch, number, public_id, 0, '' FROM parcels; \
    INSERT INTO outbox (tenant, epoch, event_id, parcel, sequence, happened_at, created_at, after_lease, kind, state) \
    SELECT tenant, epoch, public_id, id, 2, 0, 0, 0, 1, 3 FROM parcels";

#[tokio::test(flavor = "multi_thread")]
async fn new_ids_start_after_the_blocks_of_old_servers() {
    let first_id = async |blocks: &str| {
        let address = empty_database()?;
        make_schema(&address, &MIGRATIONS[..13], blocks);
        let store = Store::connect(address.clone(), SECRET).await.unwrap();
        serve_order(&store, "SB-THIRTEEN-0001", 1).await;
        store.close().await;
        Some(query(&address, "SELECT id FROM parcels"))
    };
    let Some(unused) = first_id("SELECT 1").await else { return };
    assert_eq!(unused, "1");
    let block = "SELECT nextval('parcel_ids')";
    assert_eq!(first_id(block).await.unwrap(), "1001");
    assert_eq!(first_id(&[block, block].join("; ")).await.unwrap(), "2001");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upgrade_completes_an_unfinished_reset() {
    let Some(address) = empty_database() else { return };
    let json = StoredOrder::to_json(&order("key-1"));
    make_schema(&address, &MIGRATIONS[..12], &INSERT_RESETS.replace("ORDER", &format!("'{json}'")));
    let store = Store::connect(address.clone(), SECRET).await.unwrap();
    let (unfinished, finished) = (sandbox(1), sandbox(2));
    for (tenant, parcels) in [(unfinished, 10), (finished, 5)] {
        let (_, total) = store.list(tenant, check_list([]).unwrap()).await.unwrap();
        let days = store.activity(tenant, 0).await.unwrap();
        let counted: Vec<_> = days.iter().map(|day| day.parcels).collect();
        let events = store.deliveries(tenant, 99).await.unwrap().len();
        let expected = (parcels, vec![parcels], usize::try_from(parcels).unwrap());
        assert_eq!((total, counted, events), expected);
    }
    assert!(row(&store, "SB-TWELVE-0007").await.is_none());
    assert!(row(&store, "SB-TWELVE-0035").await.is_some());
    assert_eq!(store.idempotency_record(&record(unfinished, 7).key).await.unwrap(), None);
    assert!(store.idempotency_record(&record(unfinished, 35).key).await.unwrap().is_some());
    serve_order(&store, "SB-TWELVE-0007", 7).await;
    maintain_index(&store).await;
    assert_eq!(search(&store, "nandu").await.total, 11);
    // The rows that the reset has left are erased, and its counts deleted a minute later.
    let a_minute_later =
        "UPDATE ended_generations SET changed_at = changed_at - interval '2 minutes'";
    let remaining = "SELECT (SELECT count(*) FROM parcels WHERE tenant = 3) \
         + (SELECT count(*) FROM idempotency WHERE tenant = 3) \
         + (SELECT count(*) FROM manifests WHERE tenant = 3) + (SELECT count(*) FROM outbox WHERE tenant = 3) \
         + (SELECT count(*) FROM ended_generations)";
    until("nothing of the old generation remains", async || {
        run_sql(&address, a_minute_later);
        store.resume_resets().await.unwrap();
        query(&address, remaining) == "0"
    })
    .await;
    for (tenant, parcels) in [(unfinished, 11), (finished, 5)] {
        let deleted = store.reset(tenant).await.unwrap();
        assert_eq!((deleted.parcels, deleted.idempotency_keys), (parcels, parcels));
        assert_eq!(store.reset(tenant).await.unwrap(), Deleted::default());
    }
}
