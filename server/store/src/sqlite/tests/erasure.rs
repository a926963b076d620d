//! Every read and deletion uses an index, and no id of a manifest is reused.

use super::conformance::{SECRET, apply, commit, create, manifest, row, sandbox};
use crate::{
    Store, erase,
    generations::{current_generation, is_current},
    parcels::select_parcels,
    search,
    search_index::{self, pieces},
    sql::Sql,
    sqlite::connection,
};

/// A page of a purge may end between a manifest and its parcels.
#[tokio::test]
async fn a_parcel_without_its_manifest_never_names_another_awb() {
    let store = Store::memory(SECRET).unwrap();
    commit(&store, create(sandbox(1), "SB-FIRST-0001", 1)).await;
    let parcel = row(&store, "SB-FIRST-0001").await.unwrap().key;
    apply(&store, vec![manifest(sandbox(1), vec![parcel], 1)]).await;
    assert!(store.awb_on_label(parcel, 2).await.unwrap().is_some());
    store.call(|db| db.execute("DELETE FROM manifests", [])).await.unwrap();
    apply(&store, vec![manifest(sandbox(2), Vec::new(), 2)]).await;
    assert_eq!(store.awb_on_label(parcel, 2).await.unwrap(), None);
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table with a row for each statement")]
fn every_read_and_deletion_uses_an_index() {
    let mut db = connection::memory().unwrap();
    connection::prepare(&mut db, "memory".as_ref(), SECRET).unwrap();
    let list = "SELECT id FROM parcels WHERE tenant = 2 AND created_at >= 0 AND created_at < 9";
    let newest = "ORDER BY created_at DESC, id DESC LIMIT 20";
    let order_id = "external_order_id = 'x'";
    let with_nines = |sql: &str| {
        let sql = Sql::Sqlite(&db).in_dialect(sql).replace('?', "$");
        ["$1", "$2", "$3", "$4"].iter().fold(sql, |sql, place| sql.replace(place, "9"))
    };
    let due = concat!("SELECT id FROM outbox WHERE tenant = ", current_generation!("3"), " AND");
    let present = is_current!("tenant");
    let counts =
        "SELECT day, sum(total) FROM parcel_counts WHERE tenant = 2 AND day >= 1 AND day < 9";
    let reads = [
        (format!("{counts} GROUP BY day ORDER BY day DESC"), "PRIMARY KEY (tenant=? AND day>?"),
        ("DELETE FROM parcel_counts WHERE total = 0".to_owned(), "parcel_counts_empty"),
        (format!("{list} AND (3 IS NULL OR state = 3) {newest}"), "COVERING INDEX parcels_list"),
        (format!("{list} AND (NULL IS NULL OR country = NULL)"), "COVERING INDEX parcels_list"),
        (format!("{list} AND {order_id} {newest}"), "parcels_external"),
        (
            with_nines(pieces!("is_live")),
            "sqlite_autoindex_term_pieces_1 (run=? AND first>? AND first<?)",
        ),
        (
            with_nines(search_index::PIECES_OF_RUN),
            "sqlite_autoindex_term_pieces_1 (run=? AND first>? AND first<?)",
        ),
        (with_nines(search::UNINDEXED), "INTEGER PRIMARY KEY (rowid>?)"),
        (with_nines(search_index::PARCELS), "INTEGER PRIMARY KEY (rowid>? AND rowid<?)"),
        (with_nines(search::AWB_STARTS_WITH), "manifests_awb (tenant=? AND awb>? AND awb<?)"),
        (with_nines(search::AWB_ENDS_WITH), "manifests_awb_end (tenant=? AND <expr>=?)"),
        (with_nines(search::AWB_ENDS_WITH), "manifest_parcels_manifest (manifest=?)"),
        (with_nines(erase::TENANTS), "parcels_list"),
        (with_nines(erase::OLD_PARCELS), "COVERING INDEX parcels_list"),
        (with_nines(erase::OLD_RECORDS.sqlite[0]), "COVERING INDEX idempotency_sandbox"),
        (format!("{due} due <= 9 ORDER BY due, id LIMIT 9"), "outbox_due"),
        (format!("{due} state < 2 ORDER BY created_at LIMIT 9"), "outbox_pending"),
        (format!("{due} id > 9 AND state > 2 ORDER BY id LIMIT 9"), "outbox_missed"),
        (format!("{due} (state = 1 AND NOT leased AND due > 9) AND created_at >= 9"), "outbox_due"),
        (format!("SELECT id FROM outbox WHERE leased = 1 AND {present} LIMIT 9"), "outbox_leased"),
        (
            "SELECT id FROM idempotency WHERE tenant = 3 AND tenant % 2 = 1 LIMIT 9".to_owned(),
            "COVERING INDEX idempotency_sandbox",
        ),
        (
            format!("SELECT id FROM manifests WHERE tenant % 2 = 1 AND submitted_at <= 9 AND {present}"),
            "manifests_sandbox",
        ),
        (
            "SELECT id FROM parcels WHERE tenant = 3 AND (created_at, id) > (1, 2) ORDER BY created_at, id"
                .to_owned(),
            "COVERING INDEX parcels_list",
        ),
        (
            "SELECT id FROM outbox WHERE tenant = 3 ORDER BY id LIMIT 9".to_owned(),
            "outbox_tenant",
        ),
        (
            concat!("SELECT document FROM manifests WHERE awb = 'x' AND tenant = ", current_generation!("3"))
                .to_owned(),
            "manifests_awb",
        ),
        (
            "SELECT document FROM manifests WHERE public_id = x'00' AND tenant = 3".to_owned(),
            "public_id",
        ),
    ];
    let points = [
        (
            "SELECT id FROM parcels WHERE environment = 1 AND number = 'x'",
            "COVERING INDEX parcels_number",
        ),
        (select_parcels!("", "WHERE id = 1"), "INTEGER PRIMARY KEY"),
        ("SELECT id FROM parcels WHERE step_due <= 1 ORDER BY step_due LIMIT 9", "parcels_due"),
        (
            "SELECT step_due FROM parcels WHERE step_due > 1 ORDER BY step_due LIMIT 1",
            "parcels_due",
        ),
        ("SELECT body FROM idempotency WHERE id = 1 AND key = x'00'", "PRIMARY KEY"),
        ("SELECT up_to, keys FROM key_chunks WHERE up_to > 1 ORDER BY up_to", "PRIMARY KEY"),
        ("SELECT * FROM events WHERE parcel = 1 AND sequence <= 2 ORDER BY sequence", "PRIMARY"),
        ("SELECT 1 FROM carrier_events WHERE carrier = 1 AND event_id = 'x'", "PRIMARY"),
        ("SELECT 1 FROM carrier_events WHERE parcel = 1", "carrier_events_parcel"),
        ("SELECT * FROM carrier_keys WHERE hash = x'00'", "autoindex"),
        (
            "SELECT * FROM carrier_exceptions WHERE tenant = 1 ORDER BY id DESC",
            "carrier_exceptions_tenant",
        ),
        ("SELECT 1 FROM carrier_exceptions WHERE parcel = 1", "carrier_exceptions_parcel"),
    ];
    let points = points.map(|(sql, index)| (sql.to_owned(), index));
    for (sql, index) in reads.into_iter().chain(points) {
        let mut plan = db.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
        let lines = plan.query_map([], |row| row.get::<_, String>(3)).unwrap();
        let plan = lines.collect::<Result<Vec<_>, _>>().unwrap().join("; ");
        assert!(plan.contains(index) && !plan.contains("TEMP"), "{sql}: {plan}");
    }
}
