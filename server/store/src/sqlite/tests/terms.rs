//! The search index: parcels from before it existed, its runs, and entries that are deleted with their parcel.

use parcelo_domain::Millis;

use super::conformance::{
    NOW, SECRET, commit, create, file, sandbox,
    search::{maintain_index, search_text as search},
};
use crate::{Store, term_runs::RUNS_PER_MERGE};

async fn create_parcels(store: &Store, count: u32) {
    for number in 0..count {
        commit(store, create(sandbox(1), &format!("SB-OLD-{number:06}"), number)).await;
    }
}

async fn run_sql(store: &Store, sql: &'static str) {
    store.call(move |db| db.execute_batch(sql)).await.unwrap();
}

fn count_pieces(store: &Store) -> i64 {
    let count = "SELECT count(*) FROM term_pieces";
    store.read(|db| db.query_row(count, [], |row| row.get(0))).unwrap()
}

#[tokio::test]
async fn older_parcels_are_added_and_a_damaged_one_hides_no_other() {
    let (store, _folder) = file();
    create_parcels(&store, 50).await;
    run_sql(&store, "UPDATE parcels SET order_json = '?' WHERE number = 'SB-OLD-000007'").await;
    assert_eq!(count_pieces(&store), 0, "creating an order writes no piece");
    maintain_index(&store).await;
    assert!(count_pieces(&store) > 0);
    let found = search(&store, "nandu").await;
    assert_eq!((found.total, found.is_complete), (49, true), "all but the damaged one");
    run_sql(&store, "UPDATE term_pieces SET entries = x'0900'").await;
    let found = search(&store, "nandu").await;
    assert!(found.total < 49, "parcels of a damaged piece are not found, and nothing fails");
    store.purge(Millis(i64::MAX)).await.unwrap();
    store.close().await;
}

#[tokio::test]
async fn terms_are_deleted_with_their_parcel() {
    let store = Store::memory(SECRET).unwrap();
    for round in 0..2 {
        create_parcels(&store, 60).await;
        // In the middle of a merge: its parcels are in two runs.
        for _ in 0..5 + round {
            store.maintain_search_index().await.unwrap();
        }
        assert!(count_pieces(&store) > 0);
        // Its terms can no longer be read, and are deleted nevertheless.
        run_sql(&store, "UPDATE parcels SET order_json = '?' WHERE number = 'SB-OLD-000003'").await;
        if round == 0 {
            store.reset(sandbox(1)).await.unwrap();
        } else {
            store.purge(NOW).await.unwrap();
        }
        assert_eq!(count_pieces(&store), 0);
    }
}

#[tokio::test]
async fn the_number_of_runs_stays_small() {
    let store = Store::memory(SECRET).unwrap();
    create_parcels(&store, 600).await;
    maintain_index(&store).await;
    let runs = "SELECT count(*), sum(is_live), max(level) FROM term_runs";
    let row = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?, row.get(2)?));
    let (all, live, levels): (i64, i64, i64) =
        store.read(|db| db.query_row(runs, [], row)).unwrap();
    assert_eq!(all, live, "merged runs are deleted");
    assert!(live <= (levels + 1) * (RUNS_PER_MERGE - 1), "{live} of {levels} levels");
    // A page merges for a time, so how far the levels grow depends on the machine.
    assert!(levels >= 1, "{levels}");
    assert_eq!(search(&store, "nandu").await.total, 600);
}
