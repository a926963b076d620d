//! Lists and counts of parcels, manifests, and deletions.

use futures_util::future::join_all;
use parcelo_domain::{
    Changes, Millis, State, StoreOp, Tenant,
    activity::{ParcelCount, epoch_day},
};
use parcelo_types::{Awb, TrackingNumber, internal::check_list, model::Deleted};
use ulid::Ulid;

use super::{
    NOW, apply, changes_to, commit, create, create_parcel, empty_changes, event, manifest,
    move_parcel, production, row, sandbox,
};
use crate::{CommitOutcome, Store};

conformance_tests!(
    a_list_has_a_tenants_parcels_newest_first_and_their_total,
    activity_counts_by_day_state_and_country,
    every_creation_is_listed_with_its_key,
    a_tenant_has_one_manifest_under_an_air_waybill,
    manifest_inputs_hold_only_data_of_their_tenant,
    a_decision_on_a_deleted_parcel_conflicts,
    the_purge_deletes_only_sandbox_data_in_pages,
    a_reset_deletes_its_own_sandbox_only,
    all_sandboxes_are_reset_at_once,
    an_order_during_a_reset_is_counted_or_kept,
    a_healthy_store_reports_its_stats,
);

async fn numbers(store: &Store, tenant: Tenant, query: &[(&str, &str)]) -> (Vec<String>, u64) {
    let pairs = query.iter().map(|(name, value)| ((*name).into(), (*value).into()));
    let (listed, total) = store.list(tenant, check_list(pairs).unwrap()).await.unwrap();
    (listed.iter().map(|listed| listed.parcel.tracking_number.to_string()).collect(), total)
}

async fn a_list_has_a_tenants_parcels_newest_first_and_their_total(store: Store) {
    for (number, after) in [("SB-ONE-00001", 0), ("SB-TWO-00001", 9), ("SB-THREE-001", 5)] {
        let mut changes = create(sandbox(1), number, 0);
        changes.idempotency_record = None;
        if let StoreOp::InsertParcel(parcel) = &mut changes.ops[0] {
            parcel.created_at = NOW.plus(after);
        }
        commit(&store, changes).await;
    }
    create_parcel(&store, sandbox(2), "SB-OTHER-001").await;
    let (all, total) = numbers(&store, sandbox(1), &[]).await;
    assert_eq!((all.join(" ").as_str(), total), ("SB-TWO-00001 SB-THREE-001 SB-ONE-00001", 3));
    let page = numbers(&store, sandbox(1), &[("limit", "1"), ("page", "3")]).await;
    assert_eq!(page, (vec!["SB-ONE-00001".to_owned()], 3));
    assert_eq!(numbers(&store, sandbox(1), &[("country", "MX")]).await, (vec![], 0));
    assert_eq!(numbers(&store, production(1), &[]).await, (vec![], 0));
}

async fn activity_counts_by_day_state_and_country(store: Store) {
    let parcel = create_parcel(&store, sandbox(1), "SB-ONE-00001").await;
    create_parcel(&store, sandbox(1), "SB-TWO-00001").await;
    commit(&store, changes_to(&parcel, vec![move_parcel(&parcel, State::InTransit, 5)])).await;
    let day = epoch_day(NOW);
    let country = parcelo_types::CountryCode::EC;
    let count = |state| ParcelCount { created_day: day, state, country, parcels: 1 };
    let mut expected = [count(State::LabelGenerated), count(State::InTransit)];
    expected.sort_by_key(|count| count.state.number());
    // Before the changes of counts are merged, and after one and two merges.
    for _ in 0..3 {
        let mut counted = store.activity(sandbox(1), 0).await.unwrap();
        counted.sort_by_key(|count| count.state.number());
        assert_eq!(counted, expected);
        store.merge_count_changes().await.unwrap();
    }
    assert_eq!(store.activity(sandbox(1), day + 1).await.unwrap(), []);
    assert_eq!(store.activity(sandbox(2), 0).await.unwrap(), []);
}

async fn every_creation_is_listed_with_its_key(store: Store) {
    let parcel = create_parcel(&store, sandbox(1), "SB-ONE-00001").await;
    create_parcel(&store, production(2), "EC-TWO-00001").await;
    let all = store.creations().await.unwrap();
    let fields: Vec<_> = all.iter().map(|parcel| (parcel.tenant, parcel.number.as_str())).collect();
    assert_eq!(fields, [(sandbox(1), "SB-ONE-00001"), (production(2), "EC-TWO-00001")]);
    assert_eq!((all[0].id, all[0].created_at, all[0].state), (parcel.id, NOW, parcel.state));
    assert_eq!(all[0].idempotency_key, "key-1-of-an-order");
}

async fn a_tenant_has_one_manifest_under_an_air_waybill(store: Store) {
    let parcel = create_parcel(&store, sandbox(1), "SB-FIRST-0001").await;
    apply(&store, vec![manifest(sandbox(1), vec![], 1)]).await;
    let ops =
        vec![move_parcel(&parcel, State::InTransit, 0), manifest(sandbox(1), vec![parcel.key], 2)];
    assert_eq!(store.commit(Changes { ops, ..empty_changes() }).await, CommitOutcome::DuplicateAwb);
    assert_eq!(row(&store, "SB-FIRST-0001").await, Some(parcel), "refused manifests leave nothing");
    apply(&store, vec![manifest(sandbox(2), vec![], 2)]).await;
}

async fn manifest_inputs_hold_only_data_of_their_tenant(store: Store) {
    let parcel = create_parcel(&store, sandbox(1), "SB-FIRST-0001").await;
    create_parcel(&store, sandbox(2), "SB-OTHER-001").await;
    let awb = Awb::parse("176-12345675").unwrap();
    let numbers = ["SB-OTHER-001", "sb-first-0001", "?"].map(str::to_owned);
    let inputs = store.manifest_inputs(sandbox(1), &awb, &numbers).await.unwrap();
    assert!(inputs.known.is_none());
    let found: Vec<_> = inputs.found.into_iter().map(Result::unwrap).collect();
    assert!(found[0].is_none() && found[2].is_none(), "parcels of another tenant are not found");
    let candidate = found[1].as_ref().unwrap();
    assert_eq!((&candidate.parcel, candidate.manifest), (&parcel, None));
    apply(&store, vec![manifest(sandbox(1), vec![parcel.key], 7)]).await;
    let number = [TrackingNumber::parse("SB-FIRST-0001").unwrap().to_string()];
    // The stored document is invalid in this test, so the known manifest cannot be read.
    assert!(store.manifest_inputs(sandbox(1), &awb, &number).await.is_err());
    let inputs = store.manifest_inputs(sandbox(2), &awb, &number).await.unwrap();
    assert!(inputs.known.is_none(), "another tenant's air waybill");
    assert_eq!(store.manifest(sandbox(1), Ulid::from_parts(1, 8)).await.unwrap(), None);
    assert_eq!(store.manifest(sandbox(2), Ulid::from_parts(1, 7)).await.unwrap(), None);
    assert_eq!(store.awb_on_label(parcel.key, 2).await.unwrap().as_deref(), Some(awb.as_str()));
    assert_eq!(store.awb_on_label(parcel.key, 1).await.unwrap(), None, "the old label has none");
}

async fn a_decision_on_a_deleted_parcel_conflicts(store: Store) {
    let old = create_parcel(&store, sandbox(1), "SB-FIRST-0001").await;
    store.reset(sandbox(1)).await.unwrap();
    let new = create_parcel(&store, sandbox(2), "SB-SECOND-0001").await;
    assert_eq!(new.version, old.version);
    let stale = changes_to(&old, vec![move_parcel(&old, State::InTransit, 0)]);
    assert_eq!(store.commit(stale).await, CommitOutcome::VersionConflict);
    assert_eq!(row(&store, "SB-SECOND-0001").await, Some(new));
}

async fn the_purge_deletes_only_sandbox_data_in_pages(store: Store) {
    let production = production(1);
    commit(&store, create(production, "EC-PERMANENT-1", 9_000)).await;
    let one = (0..1_100).map(|n| create(sandbox(1), &format!("SB-ONE-{n:06}"), n));
    let two = (1_100..2_100).map(|n| create(sandbox(2), &format!("SB-TWO-{n:06}"), n));
    for page in one.chain(two).collect::<Vec<_>>().chunks(500) {
        join_all(page.iter().map(|changes| commit(&store, changes.clone()))).await;
    }
    let parcel = row(&store, "SB-TWO-001500").await.unwrap();
    let ops =
        vec![manifest(sandbox(2), vec![parcel.key], 1), move_parcel(&parcel, State::InTransit, 0)];
    apply(&store, ops).await;
    assert_eq!(store.purge(NOW.plus(-1)).await.unwrap(), Deleted::default());
    let expected = Deleted::default()
        .with_parcels(2_100)
        .with_labels(2_100)
        .with_manifests(1)
        .with_tracking_events(4_201)
        .with_idempotency_keys(2_100);
    assert_eq!(store.purge(NOW).await.unwrap(), expected);
    for (tenant, remaining) in [(production, 1), (sandbox(1), 0), (sandbox(2), 0)] {
        assert_eq!(numbers(&store, tenant, &[]).await.1, remaining, "{tenant:?}");
    }
    assert_eq!(store.reset(production).await.unwrap(), Deleted::default());
    assert_eq!(numbers(&store, production, &[]).await.1, 1);
    assert_eq!(store.purge(Millis(i64::MAX)).await.unwrap(), Deleted::default());
}

async fn a_reset_deletes_its_own_sandbox_only(store: Store) {
    let parcel = create_parcel(&store, sandbox(1), "SB-ONE-00001").await;
    let add = StoreOp::AddEvent { parcel: parcel.key, event: event(&parcel, State::InTransit, 5) };
    commit(&store, changes_to(&parcel, vec![add])).await;
    create_parcel(&store, sandbox(2), "SB-TWO-00001").await;
    create_parcel(&store, production(1), "EC-ONE-00001").await;
    let deleted = store.reset(sandbox(1)).await.unwrap();
    assert_eq!((deleted.parcels, deleted.tracking_events), (1, 3));
    store.resume_resets().await.unwrap();
    store.truncate_log().await;
    assert_eq!(numbers(&store, sandbox(1), &[]).await.1, 0);
    assert_eq!(numbers(&store, sandbox(2), &[]).await.1, 1);
    assert_eq!(numbers(&store, production(1), &[]).await.1, 1);
    create_parcel(&store, sandbox(2), "SB-ONE-00001").await;
}

async fn all_sandboxes_are_reset_at_once(store: Store) {
    for name in ["one", "two"] {
        let account = store.account(name, format!("acc_{name}"), NOW).await.unwrap();
        create_parcel(&store, sandbox(account.0), &format!("SB-{name}-00001")).await;
        create_parcel(&store, production(account.0), &format!("EC-{name}-00001")).await;
    }
    assert_eq!(store.reset_all().await.unwrap().parcels, 2);
    assert_eq!(store.creations().await.unwrap().len(), 2, "production parcels are permanent");
}

/// Orders race with resets. `PARCELO_RESET_RACES=1000` makes it a long test.
async fn an_order_during_a_reset_is_counted_or_kept(store: Store) {
    let races = std::env::var("PARCELO_RESET_RACES").map_or(40, |races| races.parse().unwrap());
    let (mut created, mut deleted) = (0, 0);
    for _ in 0..races {
        // Numbers and keys are free again after each reset.
        let orders = (0..4).map(|n| create(sandbox(1), &format!("SB-RACE-{n:06}"), n));
        let orders = join_all(orders.map(|order| store.commit(order)));
        let (outcomes, reset) = tokio::join!(orders, store.reset(sandbox(1)));
        let created_now = outcomes.iter().filter(|outcome| **outcome == CommitOutcome::Committed);
        (created, deleted) =
            (created + created_now.count() as u64, deleted + reset.unwrap().parcels);
        assert_eq!(deleted + numbers(&store, sandbox(1), &[]).await.1, created);
    }
    assert!(created >= 4);
}

async fn a_healthy_store_reports_its_stats(store: Store) {
    let before = store.stats();
    create_parcel(&store, sandbox(1), "SB-ONE-00001").await;
    let after = store.stats();
    assert_eq!((after.orders, after.changes), (before.orders + 1, before.changes + 1));
    assert!(after.reads > before.reads);
    assert!(store.is_writable() && store.is_readable() && store.read_only_reason().is_none());
    assert!(store.writer_answers().await);
    store.close().await;
}
