//! Carriers: an event is accepted once, a refused event is stored, and a key belongs to its carrier.

use parcelo_domain::{
    AcceptedCarrierEvent, CarrierException, CarrierKeyRecord, CarrierReport, CarrierRowId, Changes,
    Event, NewCredential, ParcelRow, Scan, State, StoreOp, Version, credentials::CarrierScope,
    sample::TEST_AUTHOR,
};
use parcelo_types::Environment;

use super::{NOW, apply, create_parcel, credential, empty_changes, row, sandbox};
use crate::{CommitOutcome, Store, StoreError};

conformance_tests!(
    an_added_event_never_moves_updated_at_back,
    a_repeated_carrier_event_changes_nothing,
    refused_events_are_kept_once_for_the_tenant_newest_first,
    keys_with_the_same_name_belong_to_one_carrier,
);

fn event(parcel: &ParcelRow, after: i64) -> Event {
    Event {
        sequence: parcel.last_sequence + 1,
        state: State::InTransit,
        at: NOW.plus(after),
        location: "Miami, US".to_owned(),
        description: Some("Hub".to_owned()),
    }
}

pub(crate) fn carrier_scan(parcel: &ParcelRow, carrier: i64, event_id: &str) -> StoreOp {
    StoreOp::RecordCarrierEvent(AcceptedCarrierEvent {
        carrier: CarrierRowId(carrier),
        event_id: event_id.to_owned(),
        parcel: parcel.key,
        sequence: parcel.last_sequence + 1,
        code: None,
    })
}

async fn an_added_event_never_moves_updated_at_back(store: Store) {
    let before = create_parcel(&store, sandbox(1), "SB-SUCCESS-0001").await;
    for (after, updated) in [(-5, 0), (7, 7), (3, 7)] {
        let parcel = row(&store, "SB-SUCCESS-0001").await.unwrap();
        apply(&store, vec![StoreOp::AddEvent { parcel: parcel.key, event: event(&parcel, after) }])
            .await;
        let expected = ParcelRow {
            version: Version(parcel.version.0 + 1),
            last_sequence: parcel.last_sequence + 1,
            updated_at: NOW.plus(updated),
            ..before.clone()
        };
        assert_eq!(row(&store, "SB-SUCCESS-0001").await, Some(expected));
    }
    let parcel = row(&store, "SB-SUCCESS-0001").await.unwrap();
    let sequences: Vec<_> =
        store.events(&parcel).await.unwrap().iter().map(|event| event.sequence).collect();
    assert_eq!(sequences, [3, 1, 2, 5, 4], "sorted by time");
    let unknown = ParcelRow { key: parcelo_domain::ParcelRowId(4_711), ..parcel.clone() };
    let label = Event { sequence: 2, ..event(&before, 1) };
    for ops in [
        vec![StoreOp::AddEvent { parcel: unknown.key, event: event(&parcel, 1) }],
        vec![StoreOp::AddEvent { parcel: parcel.key, event: event(&before, 1) }],
        vec![StoreOp::AddEvent { parcel: parcel.key, event: label.clone() }],
        vec![StoreOp::Move { parcel: parcel.key, event: label }],
    ] {
        let commit = store.commit(Changes { ops, ..empty_changes() }).await;
        assert_eq!(commit, CommitOutcome::VersionConflict);
    }
}

async fn a_repeated_carrier_event_changes_nothing(store: Store) {
    let parcel = create_parcel(&store, sandbox(1), "SB-SUCCESS-0001").await;
    let scan_changes = |parcel: &ParcelRow, carrier, id| Changes {
        ops: vec![
            StoreOp::Move { parcel: parcel.key, event: event(parcel, 1) },
            carrier_scan(parcel, carrier, id),
        ],
        ..empty_changes()
    };
    assert!(!store.has_carrier_event(CarrierRowId(1), "evt-1").await.unwrap());
    assert_eq!(store.commit(scan_changes(&parcel, 1, "evt-1")).await, CommitOutcome::Committed);
    assert!(store.has_carrier_event(CarrierRowId(1), "evt-1").await.unwrap());
    let after = row(&store, "SB-SUCCESS-0001").await.unwrap();
    let again = store.commit(scan_changes(&after, 1, "evt-1")).await;
    assert_eq!(again, CommitOutcome::DuplicateCarrierEvent);
    assert_eq!(row(&store, "SB-SUCCESS-0001").await, Some(after.clone()), "the move is undone");
    let stale = store.commit(scan_changes(&parcel, 1, "evt-1")).await;
    assert_eq!(stale, CommitOutcome::VersionConflict, "a conflict has priority over a duplicate");
    assert_eq!(store.commit(scan_changes(&after, 2, "evt-1")).await, CommitOutcome::Committed);
    let after = row(&store, "SB-SUCCESS-0001").await.unwrap();
    let other_case = store.commit(scan_changes(&after, 1, "EVT-1")).await;
    assert_eq!(other_case, CommitOutcome::Committed, "event ids are case-sensitive");
}

async fn refused_events_are_kept_once_for_the_tenant_newest_first(store: Store) {
    let parcel = create_parcel(&store, sandbox(1), "SB-SUCCESS-0001").await;
    let new = key(1, Environment::Sandbox, "Andes Cargo");
    let key: CarrierKeyRecord = store.insert_credential(new, &TEST_AUTHOR).await.unwrap();
    let exception = |id: &str, from| CarrierException {
        tenant: parcel.tenant,
        parcel: parcel.key,
        from,
        report: CarrierReport {
            carrier: key.scope.carrier,
            event_id: id.to_owned(),
            code: Some("D1".to_owned()),
            scan: Scan {
                state: State::Delivered,
                at: NOW.plus(4),
                location: "Quito, EC".to_owned(),
                description: Some("Left with a neighbour".to_owned()),
            },
        },
        refused_at: NOW.plus(5),
    };
    let all = [
        exception("evt-1", State::Ordered),
        exception("evt-2", State::Ordered),
        exception("evt-1", State::LabelGenerated),
    ];
    for exception in all {
        apply(&store, vec![StoreOp::LogCarrierException(Box::new(exception))]).await;
    }
    let logged = store.carrier_exceptions(sandbox(1), 9).await.unwrap();
    let exceptions: Vec<_> = logged.iter().map(|logged| logged.exception.clone()).collect();
    let expected = [exception("evt-1", State::LabelGenerated), exception("evt-2", State::Ordered)];
    assert_eq!(exceptions, expected);
    assert_eq!(logged[0].carrier_name, "Andes Cargo");
    assert_eq!(logged[0].tracking_number, parcel.tracking_number);
    assert_eq!(store.carrier_exceptions(sandbox(1), 1).await.unwrap(), logged[..1]);
    assert_eq!(store.carrier_exceptions(sandbox(2), 9).await.unwrap(), []);
    assert_eq!(row(&store, "SB-SUCCESS-0001").await, Some(parcel));
}

fn key(number: u8, environment: Environment, name: &str) -> NewCredential<Environment> {
    NewCredential { name: name.to_owned(), ..credential("car", number, environment) }
}

async fn keys_with_the_same_name_belong_to_one_carrier(store: Store) {
    let insert = |number, environment, name| {
        store.insert_credential::<CarrierScope>(key(number, environment, name), &TEST_AUTHOR)
    };
    let one = insert(1, Environment::Sandbox, "Andes Cargo").await.unwrap();
    let two = insert(2, Environment::Sandbox, "Andes Cargo").await.unwrap();
    let production = insert(3, Environment::Production, "Andes Cargo").await.unwrap();
    let other = insert(4, Environment::Sandbox, "Other").await.unwrap();
    assert_eq!(one.scope, two.scope);
    assert!(one.scope.carrier != production.scope.carrier);
    assert!(one.scope.carrier != other.scope.carrier);
    let fields = (one.id.as_str(), one.name.as_str(), one.last4.as_str());
    assert_eq!(fields, ("car_1", "Andes Cargo", "wXyZ"));
    let fields = (production.scope.environment, production.created_at, production.revoked_at);
    assert_eq!(fields, (Environment::Production, NOW, None));
    let found = store.credential_by_hash::<CarrierScope>(&[2; 32]).await.unwrap();
    assert_eq!(found, Some(two.clone()));
    let revoke = async |id, after| {
        store.revoke_credential::<CarrierScope>(id, NOW.plus(after), &TEST_AUTHOR).await.unwrap()
    };
    let revoked = revoke("car_1", 5).await.unwrap();
    assert_eq!(revoked.revoked_at, Some(NOW.plus(5)));
    assert_eq!(revoke("car_1", 9).await, Some(revoked.clone()));
    let all = store.credentials::<CarrierScope>().await.unwrap();
    assert_eq!(all, [revoked, two, production, other]);
    assert_eq!(revoke("car_9", 0).await, None);
    let again = insert(1, Environment::Sandbox, "Andes Cargo").await;
    assert!(matches!(again, Err(StoreError::Engine { .. })), "{again:?}");
}
