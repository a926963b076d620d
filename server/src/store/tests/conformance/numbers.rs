//! Tracking numbers: generated ones, which carry their row, and given ones.

use std::collections::HashSet;

use futures_util::future::join_all;
use parcelo::{CountryCode, Environment, TrackingNumber};

use super::{create, find, production, sandbox};
use crate::{
    domain::{Changes, NewParcel, Op, ParcelRow, ParcelRowId, Tenant},
    store::{CommitOutcome, Store},
};

promises!(
    a_generated_number_is_found_in_any_case,
    no_number_is_generated_that_was_given,
    no_number_is_given_that_was_generated,
    a_given_number_may_look_like_a_generated_one,
    a_number_is_a_parcel_s_only_as_a_whole,
    no_row_is_drawn_twice,
);

fn parcel(changes: &mut Changes) -> &mut NewParcel {
    match &mut changes.ops[..] {
        [Op::InsertParcel(parcel)] => parcel,
        ops => panic!("{ops:?}"),
    }
}

/// An order without a number of its own, as the service decides it.
async fn generated(store: &Store, tenant: Tenant, key: u32) -> Changes {
    let mut changes = create(tenant, "ANOTHER-0001", key);
    let new = parcel(&mut changes);
    new.row = store.next_parcel_row().await;
    new.tracking_number = number_of(store, new);
    changes
}

fn number_of(store: &Store, new: &NewParcel) -> TrackingNumber {
    store.number_key().generate((new.tenant.environment, new.country), new.row, new.id)
}

/// An order with this number.
async fn given(store: &Store, tenant: Tenant, number: &str, key: u32) -> Changes {
    let mut changes = create(tenant, number, key);
    parcel(&mut changes).row = store.next_parcel_row().await;
    changes
}

async fn committed(store: &Store, mut changes: Changes) -> ParcelRow {
    let new = parcel(&mut changes).clone();
    assert_eq!(store.commit(changes).await, CommitOutcome::Committed);
    let found = find(store, new.tenant.environment, new.tracking_number.as_str()).await.unwrap();
    assert_eq!((found.key, found.tenant, found.id), (new.row, new.tenant, new.id));
    found
}

async fn a_generated_number_is_found_in_any_case(store: Store) {
    for (tenant, key) in [(sandbox(1), 1), (production(1), 2), (sandbox(2), 3)] {
        let changes = generated(&store, tenant, key).await;
        let made = committed(&store, changes).await;
        let number = made.tracking_number.as_str();
        for text in [number.to_lowercase(), number.to_owned()] {
            assert_eq!(find(&store, tenant.environment, &text).await.as_ref(), Some(&made));
        }
        for other in [Environment::Sandbox, Environment::Production] {
            let found = find(&store, other, number).await;
            assert_eq!(found.is_some(), other == tenant.environment);
        }
    }
}

async fn no_number_is_generated_that_was_given(store: Store) {
    let mut generated = generated(&store, sandbox(1), 1).await;
    let number = parcel(&mut generated).tracking_number.as_str().to_lowercase();
    let theirs = committed(&store, given(&store, sandbox(2), &number, 2).await).await;
    assert_eq!(store.commit(generated).await, CommitOutcome::DuplicateTracking);
    assert_eq!(find(&store, Environment::Sandbox, &number).await, Some(theirs));
}

async fn no_number_is_given_that_was_generated(store: Store) {
    let changes = generated(&store, sandbox(1), 1).await;
    let ours = committed(&store, changes).await;
    let number = ours.tracking_number.as_str();
    for (tenant, text) in [(sandbox(1), number.to_owned()), (sandbox(2), number.to_lowercase())] {
        let changes = given(&store, tenant, &text, 2).await;
        assert_eq!(store.commit(changes).await, CommitOutcome::DuplicateTracking);
    }
    assert_eq!(find(&store, Environment::Sandbox, number).await.as_ref(), Some(&ours));
    committed(&store, given(&store, production(1), number, 3).await).await;
}

async fn a_given_number_may_look_like_a_generated_one(store: Store) {
    let far = (Environment::Sandbox, CountryCode::EC);
    // The numbers of a row that is there, and of rows that are not.
    let first = committed(&store, given(&store, sandbox(1), "SB-SUCCESS-0001", 1).await).await;
    for (key, row) in [(2, first.key.0), (3, 1 << 39), (4, 0)] {
        let number = store.number_key().generate(far, ParcelRowId(row), ulid::Ulid::nil());
        let made = committed(&store, given(&store, sandbox(1), number.as_str(), key).await).await;
        let folded = number.as_str().to_lowercase();
        assert_eq!(find(&store, Environment::Sandbox, &folded).await, Some(made));
        let again = given(&store, sandbox(2), &folded, key + 10).await;
        assert_eq!(store.commit(again).await, CommitOutcome::DuplicateTracking);
    }
}

async fn a_number_is_a_parcel_s_only_as_a_whole(store: Store) {
    let mut changes = generated(&store, sandbox(1), 1).await;
    let new = parcel(&mut changes).clone();
    let made = committed(&store, changes).await;
    let tail = &made.tracking_number.as_str()[4..];
    let other_bits = NewParcel { id: ulid::Ulid(new.id.0 ^ 1), ..new.clone() };
    let other_row = NewParcel { row: ParcelRowId(new.row.0 + 1), ..new };
    let others = [
        (Environment::Sandbox, number_of(&store, &other_bits).to_string()),
        (Environment::Sandbox, number_of(&store, &other_row).to_string()),
        (Environment::Sandbox, format!("SBCO{tail}")),
        (Environment::Sandbox, format!("EC{tail}")),
        (Environment::Production, format!("EC{tail}")),
        (Environment::Production, made.tracking_number.to_string()),
    ];
    for (environment, number) in others {
        assert_eq!(find(&store, environment, &number).await, None, "{number}");
    }
}

async fn no_row_is_drawn_twice(store: Store) {
    let draws = join_all((0..100).map(|_| store.next_parcel_row())).await;
    assert_eq!(draws.iter().collect::<HashSet<_>>().len(), 100);
    let last = draws.iter().max().unwrap();
    // Not even one whose parcel is gone.
    committed(&store, given(&store, sandbox(1), "SB-SUCCESS-0001", 1).await).await;
    assert_eq!(store.reset(sandbox(1)).await.unwrap().parcels, 1);
    assert!(store.next_parcel_row().await > ParcelRowId(last.0 + 1));
}
