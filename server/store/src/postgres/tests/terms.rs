//! The search index: parcels from before it existed, two servers, and entries that are deleted with their parcel.

use super::super::address::Address;
use crate::postgres::test_util::cluster::{new_store, query, run_sql};
use crate::{
    Store,
    tests::conformance::{
        NOW, SECRET, commit, create, sandbox,
        search::{maintain_index, search_text as search},
    },
    waiting::until,
};

/// Resets the first sandbox, and waits until its parcels are erased.
async fn reset_and_wait(store: &Store, address: &Address) {
    store.reset(sandbox(1)).await.unwrap();
    let count_parcels = "SELECT count(*) FROM parcels";
    until("the parcels are erased", async || query(address, count_parcels).trim() == "0").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn older_parcels_are_indexed_and_terms_are_deleted_with_parcels() {
    let Some((store, address)) = new_store().await else { return };
    for number in 0..120 {
        commit(&store, create(sandbox(1), &format!("SB-OLD-{number:06}"), number)).await;
    }
    // The state after an upgrade of a database in which half of the parcels already existed.
    run_sql(
        &address,
        "DELETE FROM term_queue WHERE parcel % 2 = 0; UPDATE term_sweep SET until = (SELECT max(id) FROM parcels); \
         UPDATE orders SET order_json = '?' FROM parcels WHERE id = parcel AND number = 'SB-OLD-000007'",
    );
    assert!(!search(&store, "nandu").await.is_complete);
    maintain_index(&store).await;
    let results = search(&store, "nandu").await;
    assert_eq!((results.total, results.is_complete), (119, true), "all but the damaged one");
    run_sql(
        &address,
        "UPDATE orders SET order_json = '?' FROM parcels WHERE id = parcel AND number = 'SB-OLD-000003'",
    );
    reset_and_wait(&store, &address).await;
    assert_eq!(query(&address, "SELECT count(*) FROM term_pieces").trim(), "0");
    store.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_servers_share_the_index_while_parcels_come_and_go() {
    let Some((one, address)) = new_store().await else { return };
    let other = Store::connect(address.clone(), SECRET).await.unwrap();
    let creating = async {
        for number in 0..150 {
            let store = if number % 2 == 0 { &one } else { &other };
            commit(store, create(sandbox(1), &format!("SB-OLD-{number:06}"), number)).await;
        }
    };
    let maintaining = async |store: &Store| {
        for _ in 0..60 {
            store.maintain_search_index().await.unwrap();
            tokio::task::yield_now().await;
        }
    };
    let erasing = async {
        for _ in 0..30 {
            one.purge(NOW).await.unwrap();
        }
    };
    futures_util::future::join4(creating, maintaining(&one), maintaining(&other), erasing).await;
    let remaining: u64 = query(&address, "SELECT count(*) FROM parcels").trim().parse().unwrap();
    let results = search(&one, "nandu").await;
    assert_eq!((results.total, results.is_complete), (remaining, true));
    reset_and_wait(&one, &address).await;
    assert_eq!(query(&address, "SELECT count(*) FROM term_pieces").trim(), "0");
    one.close().await;
    other.close().await;
}
