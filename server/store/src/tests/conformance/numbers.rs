//! Tracking numbers: generated ones, which are drawn again if they are taken, and given ones.

use std::sync::{Arc, Mutex};

use parcelo_domain::{
    Changes, NewParcel, Secrets, Site, StoreOp, Tenant, TrackingNumberGenerator,
    tracking_numbers::RemainingDraws,
};
use parcelo_types::{Environment, TrackingNumber};

use super::{NOW, SECRET, create, create_parcel, find, production, record, sandbox};
use crate::{CommitOutcome, Store};

conformance_tests!(
    a_number_is_found_in_any_case_and_as_a_whole,
    given_and_generated_numbers_are_unique_together,
    a_taken_generated_number_is_redrawn_in_the_same_write,
    orders_of_a_group_with_equal_draws_get_different_numbers,
    a_repeating_number_source_fails_without_conflict,
    parcel_ids_are_not_reused_after_deletion,
);

fn parcel(changes: &mut Changes) -> &mut NewParcel {
    match &mut changes.ops[..] {
        [StoreOp::InsertParcel(parcel)] => parcel,
        ops => panic!("{ops:?}"),
    }
}

fn site() -> Site {
    let labels_base_url = "https://labels.test/files".to_owned();
    Site { environment: Environment::Sandbox, base_url: None, labels_base_url }
}

/// Returns a generator that draws the numbers of a script, and repeats the last of them.
fn scripted_generator(ends: &[u8]) -> Arc<TrackingNumberGenerator> {
    let ends = Mutex::new(ends.to_vec());
    let random = move || {
        let mut ends = ends.lock().unwrap();
        let next = if ends.len() > 1 { ends.remove(0) } else { ends[0] };
        [0, 0, 0, 0, next]
    };
    Arc::new(TrackingNumberGenerator::new(Box::new(random), Secrets::derive(&SECRET)))
}

/// Returns the changes with which the service creates an order without a given number.
fn create_unnumbered(tenant: Tenant, source: &Arc<TrackingNumberGenerator>, key: u32) -> Changes {
    let mut changes = create(tenant, "ANOTHER-0001", key);
    let new = parcel(&mut changes);
    new.tracking_number = source.draw((tenant.environment, new.country), NOW);
    new.redraws = Some(RemainingDraws::new(source));
    let body = response(new);
    changes.idempotency_record.as_mut().unwrap().body = body;
    changes
}

/// Returns a short form of the response to the creation of a parcel.
fn response(new: &NewParcel) -> Vec<u8> {
    let number = &new.tracking_number;
    let url = site().label_url(&Secrets::derive(&SECRET), number, new.id);
    format!(r#"{{"trackingNumber":"{number}","labelUrl":"{url}"}}"#).into_bytes()
}

/// Returns the number that ends with one of the script's entries.
fn number(end: u8) -> String {
    scripted_generator(&[end])
        .draw((Environment::Sandbox, parcelo_types::CountryCode::EC), NOW)
        .to_string()
}

/// Commits an order whose number is drawn from the script `ends`, and checks that its response, its record and its
/// parcel have the number that ends with `end`.
async fn assert_drawn(store: &Store, key: u32, ends: &[u8], end: u8) {
    let mut changes = create_unnumbered(sandbox(1), &scripted_generator(ends), key);
    let mut expected = parcel(&mut changes).clone();
    let body = store.commit_idempotent(changes).await.unwrap();
    expected.tracking_number = TrackingNumber::parse(&number(end)).unwrap();
    assert_eq!(String::from_utf8(body.clone()), String::from_utf8(response(&expected)));
    let stored = store.idempotency_record(&record(sandbox(1), key).key).await.unwrap().unwrap();
    assert_eq!(stored.body, body, "a retry gets the same response");
    let found = find(store, Environment::Sandbox, &number(end)).await.unwrap();
    assert_eq!((found.id, found.tenant), (expected.id, sandbox(1)));
}

async fn a_number_is_found_in_any_case_and_as_a_whole(store: Store) {
    let created = create_parcel(&store, sandbox(1), "SBEC7K2M9QX4T8WD0").await;
    for text in ["SBEC7K2M9QX4T8WD0", "sbec7k2m9qx4t8wd0", "SBec7K2m9QX4T8WD0"] {
        assert_eq!(find(&store, Environment::Sandbox, text).await.as_ref(), Some(&created));
        assert_eq!(find(&store, Environment::Production, text).await, None);
    }
    for text in ["SBEC7K2M9QX4T8WD", "SBEC7K2M9QX4T8WD00", "SBCO7K2M9QX4T8WD0", "EC7K2M9QX4T8WD0"] {
        assert_eq!(find(&store, Environment::Sandbox, text).await, None, "{text}");
    }
}

async fn given_and_generated_numbers_are_unique_together(store: Store) {
    assert_drawn(&store, 1, &[7], 7).await;
    let ours = find(&store, Environment::Sandbox, &number(7)).await;
    for (tenant, text, key) in
        [(sandbox(1), number(7), 2), (sandbox(2), number(7).to_lowercase(), 3)]
    {
        let params = create(tenant, &text, key);
        assert_eq!(store.commit(params).await, CommitOutcome::DuplicateTracking);
    }
    assert_eq!(find(&store, Environment::Sandbox, &number(7)).await, ours);
    create_parcel(&store, production(1), &number(7)).await;
}

async fn a_taken_generated_number_is_redrawn_in_the_same_write(store: Store) {
    create_parcel(&store, sandbox(2), &number(1).to_lowercase()).await;
    assert_drawn(&store, 1, &[1, 1, 2], 2).await;
    assert_drawn(&store, 2, &[2, 1, 2, 3], 3).await;
}

async fn orders_of_a_group_with_equal_draws_get_different_numbers(store: Store) {
    let source = scripted_generator(&[1, 1, 1, 2, 3]);
    let orders =
        (1..=3).map(|key| store.commit_idempotent(create_unnumbered(sandbox(1), &source, key)));
    let mut bodies = Vec::new();
    for body in futures_util::future::join_all(orders).await {
        bodies.push(String::from_utf8(body.unwrap()).unwrap());
    }
    for end in 1..=3 {
        let found = find(&store, Environment::Sandbox, &number(end)).await.unwrap();
        let with_number =
            bodies.iter().filter(|body| body.contains(found.tracking_number.as_str()));
        assert_eq!(with_number.count(), 1, "{end}: {bodies:?}");
    }
}

async fn a_repeating_number_source_fails_without_conflict(store: Store) {
    create_parcel(&store, sandbox(2), &number(1)).await;
    let stuck = create_unnumbered(sandbox(1), &scripted_generator(&[1]), 1);
    assert_eq!(store.commit(stuck).await, CommitOutcome::Broken);
    assert_eq!(store.idempotency_record(&record(sandbox(1), 1).key).await.unwrap(), None);
    assert_drawn(&store, 1, &[2], 2).await;
}

async fn parcel_ids_are_not_reused_after_deletion(store: Store) {
    let first = create_parcel(&store, sandbox(1), "SB-FIRST-0001").await;
    assert_eq!(store.reset(sandbox(1)).await.unwrap().parcels, 1);
    let second = create_parcel(&store, sandbox(1), "SB-FIRST-0001").await;
    assert!(second.key > first.key);
    store.purge(NOW).await.unwrap();
    assert!(create_parcel(&store, sandbox(1), "SB-FIRST-0001").await.key > second.key);
}
