//! The conformance tests of the store. Each takes an empty store and runs in every mode: on a file, in memory and on
//! PostgreSQL.

use std::{
    collections::HashSet,
    future::Future,
    path::{Path, PathBuf},
};

use futures_util::{FutureExt as _, future::join_all};
use parcelo_domain::{
    AccountRowId, AdminTokenRecord, ApiKeyRecord, Changes, Countries, Event, IdempotencyRecord,
    Layout, Millis, NewCredential, NewManifest, NewParcel, ParcelRow, ParcelRowId, RecordKey,
    State, Step, StoreOp, StoredOrder, Tenant, Version,
    credentials::{AdminScope, ApiKeyScope, NewSecret},
    idempotency::LIFETIME_MILLIS,
    sample::TEST_AUTHOR,
};
use parcelo_types::{
    Awb, CountryCode, Environment, OrderRequest, TrackingNumber, internal::ListQuery,
};
use tempfile::TempDir;
use tokio::task::JoinSet;
use ulid::Ulid;

use crate::{ALL_CREDENTIALS, AuditFilter, CommitOutcome, Store, StoreError};

pub(crate) const NOW: Millis = Millis(1_768_057_500_000);
pub(crate) const SECRET: [u8; 32] = [9; 32];
pub(crate) const PANIC: Millis = Millis(i64::MIN);

/// Lets a test make `apply` panic.
pub(crate) fn panic_if_requested(changes: &Changes) {
    assert!(changes.now != PANIC, "a test asked for it");
}

/// Defines each conformance test in every mode. Some tests use internals of `SQLite`; a third engine could run only the
/// others.
macro_rules! conformance_tests {
    ($($test:ident),+ $(,)?) => {
        mode!(file, Some(crate::tests::conformance::file()), [$($test),+]);
        mode!(memory, Some((crate::tests::conformance::memory(), ())), [$($test),+]);
        mode!(#[cfg(feature = "postgres")] postgres, crate::tests::conformance::postgres().await, [$($test),+]);
    };
}

/// Defines each conformance test in one mode. `$open` returns an empty store, and a value that must outlive it.
macro_rules! mode {
    ($(#[$attribute:meta])* $mode:ident, $open:expr, [$($test:ident),+]) => {
        $(#[$attribute])*
        mod $mode {
            $(#[tokio::test(flavor = "multi_thread")]
            async fn $test() {
                // `None` if PostgreSQL is not installed.
                let Some((store, _outlives)) = $open else { return };
                super::$test(store).await;
            })+
        }
    };
}

pub(crate) mod accounts;
mod audit;
pub(crate) mod carriers;
mod lists;
mod mails;
mod numbers;
pub(crate) mod search;
mod shared;
pub(crate) mod webhooks;

pub(crate) fn file() -> (Store, TempDir) {
    let folder = TempDir::new().unwrap();
    (Store::open(&folder.path().join("parcelo.db"), SECRET).unwrap(), folder)
}

#[cfg(feature = "postgres")]
pub(super) async fn postgres() -> Option<(Store, ())> {
    let engine = crate::postgres::test_util::cluster::open(SECRET).await?;
    Some((Store::from(engine), ()))
}

fn memory() -> Store {
    Store::memory(SECRET).unwrap()
}

conformance_tests!(
    sixty_four_identical_creates_make_one_parcel,
    a_stored_answer_is_returned_byte_for_byte,
    a_key_is_free_again_after_24_hours,
    a_stale_version_changes_nothing,
    a_taken_number_changes_nothing,
    histories_of_tenants_are_separate,
    an_order_comes_back_as_it_was_accepted,
    due_steps_are_returned_in_order,
    damaged_parcels_do_not_delay_other_parcels,
    writes_committed_during_a_pause_make_one_group,
    a_history_ends_at_the_given_row_and_is_sorted_by_time,
    an_impossible_operation_changes_nothing,
    keys_are_found_listed_and_revoked,
    a_rotated_key_keeps_each_old_secret_for_its_time,
    each_change_of_a_key_is_reported_once,
    a_key_that_exists_is_refused,
    an_admin_token_is_found_by_its_hash_and_revoked,
    expired_records_are_purged_and_valid_ones_stay,
    a_panicking_write_fails_alone,
);

async fn sixty_four_identical_creates_make_one_parcel(store: Store) {
    let mut tasks = JoinSet::new();
    for _ in 0..64 {
        let store = store.clone();
        tasks.spawn(async move { store.commit(create(sandbox(1), "SB-SUCCESS-0001", 1)).await });
    }
    let answers = tasks.join_all().await;
    let first = |answer: &&CommitOutcome| **answer == CommitOutcome::Committed;
    let replay = |answer: &&CommitOutcome| {
        **answer == CommitOutcome::IdempotencyTaken(record(sandbox(1), 1))
    };
    assert_eq!(answers.iter().filter(first).count(), 1);
    assert_eq!(answers.iter().filter(replay).count(), 63);
    assert_eq!(store.stats().changes, 1);
}

async fn a_stored_answer_is_returned_byte_for_byte(store: Store) {
    let mut stored = record(sandbox(1), 1);
    stored.body = (0..=u8::MAX).collect();
    stored.fingerprint = std::array::from_fn(|index| u8::try_from(index).unwrap());
    let changes = Changes { idempotency_record: Some(stored.clone()), ..empty_changes() };
    assert_eq!(store.idempotency_record(&stored.key).await.unwrap(), None);
    assert_eq!(store.commit(changes).await, CommitOutcome::Committed);
    assert_eq!(store.idempotency_record(&stored.key).await.unwrap(), Some(stored));
}

async fn a_key_is_free_again_after_24_hours(store: Store) {
    let at = |millis, number| {
        let mut changes = create(sandbox(1), number, 1);
        changes.now = NOW.plus(millis);
        let renewed = changes.idempotency_record.as_mut().unwrap();
        renewed.first_seen = changes.now;
        renewed.body = number.into();
        changes
    };
    let first = at(0, "SB-FIRST-0001");
    let stored = first.idempotency_record.clone().unwrap();
    assert_eq!(store.commit(first).await, CommitOutcome::Committed);
    let last_moment = store.commit(at(LIFETIME_MILLIS - 1, "SB-SECOND-0001")).await;
    assert_eq!(last_moment, CommitOutcome::IdempotencyTaken(stored.clone()));
    let renewed = at(LIFETIME_MILLIS, "SB-THIRD-0001");
    let new = renewed.idempotency_record.clone();
    assert_eq!(store.commit(renewed).await, CommitOutcome::Committed);
    assert_eq!(store.idempotency_record(&stored.key).await.unwrap(), new);
    assert!(row(&store, "SB-FIRST-0001").await.is_some());
    assert!(row(&store, "SB-SECOND-0001").await.is_none());
}

async fn a_stale_version_changes_nothing(store: Store) {
    let before = create_parcel(&store, sandbox(1), "SB-SUCCESS-0001").await;
    assert_eq!(before.version, Version(1));
    for expect in [(before.key, Version(2)), (before.key, Version(0)), (UNKNOWN, Version(1))] {
        let mut changes = create(sandbox(1), "SB-SECOND-0001", 7);
        changes.ops.push(move_parcel(&before, State::InTransit, 0));
        changes.expect = vec![(before.key, before.version), expect];
        assert_eq!(store.commit(changes).await, CommitOutcome::VersionConflict, "{expect:?}");
        assert_unchanged(&store, &before).await;
    }
    let changes = Changes {
        expect: vec![(before.key, before.version)],
        ops: vec![move_parcel(&before, State::InTransit, 5)],
        ..empty_changes()
    };
    assert_eq!(store.commit(changes.clone()).await, CommitOutcome::Committed);
    assert_eq!(store.commit(changes).await, CommitOutcome::VersionConflict);
    let after = row(&store, "SB-SUCCESS-0001").await.unwrap();
    let expected = ParcelRow {
        version: Version(2),
        state: State::InTransit,
        updated_at: NOW.plus(5),
        last_sequence: 3,
        ..before
    };
    assert_eq!(after, expected);
}

async fn a_taken_number_changes_nothing(store: Store) {
    let before = create_parcel(&store, sandbox(1), "SB-SUCCESS-0001").await;
    for (tenant, number) in [
        (sandbox(1), "SB-SUCCESS-0001"),
        (sandbox(1), "sb-success-0001"),
        (sandbox(2), "SB-SUCCESS-0001"),
        (sandbox(2), "Sb-Success-0001"),
    ] {
        let mut changes = create(tenant, "SB-SECOND-0001", 7);
        changes.ops.push(move_parcel(&before, State::InTransit, 0));
        changes.ops.extend(create(tenant, number, 7).ops);
        assert_eq!(store.commit(changes).await, CommitOutcome::DuplicateTracking, "{number}");
        assert_unchanged(&store, &before).await;
    }
}

async fn histories_of_tenants_are_separate(store: Store) {
    let tenants = [sandbox(1), production(1), sandbox(2), production(2)];
    for (index, tenant) in tenants.into_iter().enumerate() {
        // Both environments use the same number with different case, and each keeps its spelling.
        let spellings = [format!("PARCEL-000{}", index / 2), format!("parcel-000{}", index / 2)];
        let parcel = create_parcel(&store, tenant, &spellings[index % 2]).await;
        assert_eq!(parcel.tracking_number.as_str(), spellings[index % 2]);
        let mut event = event(&parcel, State::InTransit, 5);
        event.location = format!("{tenant:?}");
        apply(&store, vec![StoreOp::Move { parcel: parcel.key, event }]).await;
        let parcel = find(&store, tenant.environment, &spellings[0]).await.unwrap();
        assert_eq!(parcel.tenant, tenant);
        let later: Vec<_> = store.events(&parcel).await.unwrap().into_iter().skip(2).collect();
        assert_eq!(later.len(), 1);
        assert_eq!(later[0].location, format!("{tenant:?}"));
    }
}

async fn an_order_comes_back_as_it_was_accepted(store: Store) {
    let row = create_parcel(&store, sandbox(1), "SB-SUCCESS-0001").await;
    let number = TrackingNumber::parse("sb-success-0001").unwrap();
    let (same, stored) =
        store.parcel_with_order(Environment::Sandbox, &number).await.unwrap().unwrap();
    assert_eq!(same, row);
    assert!(stored.order == order("key-1") && stored.layout == Layout::NEWEST);
    let expected = ParcelRow {
        key: row.key,
        version: Version(1),
        id: ulid("SB-SUCCESS-0001"),
        tenant: sandbox(1),
        tracking_number: TrackingNumber::parse("SB-SUCCESS-0001").unwrap(),
        state: State::LabelGenerated,
        created_at: NOW,
        updated_at: NOW,
        origin: "Miami, US".to_owned(),
        destination: "Quito, EC".to_owned(),
        country: CountryCode::EC,
        promised_day: 20_473,
        label_version: 1,
        reprinted_at: None,
        last_sequence: 2,
        step: None,
    };
    assert_eq!(row, expected);
}

async fn due_steps_are_returned_in_order(store: Store) {
    let next_due = async |after| store.next_due(NOW.plus(after)).await.unwrap();
    assert_eq!(next_due(0).await, None);
    let due = async |until| -> Vec<_> {
        let rows = store.due(NOW.plus(until), 2).await.unwrap();
        assert_eq!(store.due_for_tenant(sandbox(1), NOW.plus(until), 2).await.unwrap(), rows);
        rows.into_iter().map(|row| row.tracking_number.to_string()).collect()
    };
    let mut keys = Vec::new();
    for (number, minutes) in [("SB-LATE-0001", 30), ("SB-EARLY-001", 10), ("SB-MIDDLE-01", 20)] {
        let parcel = create_parcel(&store, sandbox(1), number).await;
        let step = Step { index: 0, due: NOW.plus(minutes) };
        apply(&store, vec![StoreOp::Schedule { parcel: parcel.key, step }]).await;
        let scheduled = row(&store, number).await.unwrap();
        assert_eq!((scheduled.step, scheduled.version), (Some(step), Version(2)));
        keys.push(parcel.key);
    }
    create_parcel(&store, sandbox(1), "SB-NEVER-0001").await;
    assert_eq!(next_due(0).await, Some(NOW.plus(10)));
    assert_eq!(next_due(10).await, Some(NOW.plus(20)), "the first one after the given time");
    assert_eq!(due(9).await, [""; 0]);
    assert_eq!(due(10).await, ["SB-EARLY-001"]);
    assert_eq!(due(100).await, ["SB-EARLY-001", "SB-MIDDLE-01"]);
    apply(&store, vec![StoreOp::CancelSteps { parcel: keys[1] }]).await;
    assert_eq!(due(100).await, ["SB-MIDDLE-01", "SB-LATE-0001"]);
    assert_eq!(store.due_for_tenant(production(1), NOW.plus(100), 9).await.unwrap(), []);
    assert_eq!(next_due(0).await, Some(NOW.plus(20)));
}

async fn damaged_parcels_do_not_delay_other_parcels(store: Store) {
    for (number, due) in [("SB-DAMAGED-01", 1), ("SB-DAMAGED-02", 2), ("SB-WHOLE-0001", 3)] {
        let step = Step { index: 0, due: NOW.plus(due) };
        let parcel = create_parcel(&store, sandbox(1), number).await.key;
        apply(&store, vec![StoreOp::Schedule { parcel, step }]).await;
    }
    let damage = "UPDATE parcels SET country = '?' WHERE number LIKE 'SB-DAMAGED-%'";
    assert_eq!(store.write(async move |db| db.execute(damage, &[]).await).await.unwrap(), 2);
    let numbers = |rows: Vec<ParcelRow>| -> Vec<_> {
        rows.into_iter().map(|row| row.tracking_number.to_string()).collect()
    };
    assert_eq!(numbers(store.due(NOW.plus(9), 1).await.unwrap()), ["SB-WHOLE-0001"]);
    let due_for_tenant = async |tenant| store.due_for_tenant(tenant, NOW.plus(9), 1).await.unwrap();
    assert_eq!(numbers(due_for_tenant(sandbox(1)).await), ["SB-WHOLE-0001"]);
    assert_eq!(due_for_tenant(sandbox(2)).await, []);
    let counted = || store.stats().unreadable.iter().map(|(_, reads)| reads).sum::<u64>();
    let before = counted();
    for reads in [2, 4] {
        let (listed, total) = store.list(sandbox(1), ListQuery::default()).await.unwrap();
        assert_eq!((listed.len(), total, counted() - before), (1, 3, reads), "each read counts");
    }
}

async fn a_history_ends_at_the_given_row_and_is_sorted_by_time(store: Store) {
    let mut parcel = create_parcel(&store, sandbox(1), "SB-SUCCESS-0001").await;
    let before = parcel.clone();
    let happened = [(State::PickedUp, 50), (State::InTransit, 20), (State::CustomsHold, 20)];
    for (state, after) in happened {
        let mut changes =
            Changes { ops: vec![move_parcel(&parcel, state, after)], ..empty_changes() };
        if let StoreOp::Move { event, .. } = &mut changes.ops[0] {
            event.description = (state == State::CustomsHold).then(|| "Documents".to_owned());
        }
        assert_eq!(store.commit(changes).await, CommitOutcome::Committed);
        parcel = row(&store, "SB-SUCCESS-0001").await.unwrap();
    }
    let events = store.events(&parcel).await.unwrap();
    let history: Vec<_> = events.iter().map(|event| (event.sequence, event.state)).collect();
    let expected = [
        (1, State::Ordered),
        (2, State::LabelGenerated),
        (4, State::InTransit),
        (5, State::CustomsHold),
        (3, State::PickedUp),
    ];
    assert_eq!(history, expected);
    assert_eq!((events[0].location.as_str(), events[1].at), ("Miami, US", NOW));
    assert_eq!(events[3].description.as_deref(), Some("Documents"));
    assert_eq!(store.events(&before).await.unwrap().len(), 2, "newer events are left out");
}

async fn an_impossible_operation_changes_nothing(store: Store) {
    let parcel = create_parcel(&store, sandbox(1), "SB-SUCCESS-0001").await;
    let unknown = ParcelRow { key: UNKNOWN, ..parcel.clone() };
    let twice = move_parcel(&parcel, State::InTransit, 0);
    for ops in [
        vec![twice.clone(), twice],
        vec![move_parcel(&unknown, State::InTransit, 0)],
        vec![StoreOp::Schedule { parcel: UNKNOWN, step: Step { index: 0, due: NOW } }],
        vec![StoreOp::CancelSteps { parcel: UNKNOWN }],
    ] {
        let changes =
            Changes { idempotency_record: Some(record(sandbox(1), 7)), ops, ..empty_changes() };
        assert_eq!(store.commit(changes).await, CommitOutcome::VersionConflict);
        assert_unchanged(&store, &parcel).await;
    }
}

async fn keys_are_found_listed_and_revoked(store: Store) {
    assert!(store.is_new().await.unwrap());
    let account = store.account("default", "acc_1".to_owned(), NOW).await.unwrap();
    assert!(!store.is_new().await.unwrap());
    let mut limited = key(account, 1);
    limited.scope.countries = Countries::Only(vec![CountryCode::EC, CountryCode::MX]);
    limited.scope.ip_list = vec!["10.0.0.0/8".parse().unwrap(), "2001:db8::1/128".parse().unwrap()];
    limited.scope.rate_limit = Some(7);
    let one = insert_key(&store, limited.clone()).await.unwrap();
    let two = insert_key(&store, key(account, 2)).await.unwrap();
    assert_ne!(one.row, two.row);
    assert!(one.scope == limited.scope);
    assert_eq!((one.id.as_str(), one.hash), ("key_1", [1; 32]));
    assert_eq!((one.name.as_str(), one.last4.as_str()), ("Warehouse", "wXyZ"));
    assert_eq!((one.created_at, one.revoked_at), (NOW, None));
    assert_eq!((&two.scope.countries, two.scope.rate_limit), (&Countries::All, None));
    assert_eq!(stored_key(&store, "key_1").await.unwrap(), Some(one.clone()));
    assert_eq!(stored_key(&store, "key_3").await.unwrap(), None);

    let revoked =
        store.revoke_credential::<ApiKeyScope>("key_1", NOW.plus(5), &TEST_AUTHOR).await.unwrap();
    assert_eq!(revoked.as_ref().and_then(|key| key.revoked_at), Some(NOW.plus(5)));
    let again =
        store.revoke_credential::<ApiKeyScope>("key_1", NOW.plus(9), &TEST_AUTHOR).await.unwrap();
    assert_eq!(again, revoked);
    assert_eq!(stored_key(&store, "key_1").await.unwrap(), revoked);
    let (one, two) = (revoked.unwrap(), two);
    assert_eq!(store.api_keys(account).await.unwrap(), [two.clone(), one.clone()], "newest first");
    assert_eq!(store.api_keys(AccountRowId(4_711)).await.unwrap(), []);
    assert_eq!(store.credentials::<ApiKeyScope>().await.unwrap(), [one, two]);
    assert_eq!(
        store.revoke_credential::<ApiKeyScope>("key_9", NOW, &TEST_AUTHOR).await.unwrap(),
        None
    );
}

fn secret(number: u8, old_until: i64) -> NewSecret {
    NewSecret {
        hash: [number; 32],
        last4: format!("{number:04}"),
        old_until: NOW.plus(old_until),
        replaces: None,
    }
}

/// Returns a key's old secrets: the number of each, and the milliseconds for which it keeps working.
fn old_secrets(key: &ApiKeyRecord) -> Vec<(u8, i64)> {
    key.old_secrets.iter().map(|old| (old.hash[0], old.until.0 - NOW.0)).collect()
}

async fn a_rotated_key_keeps_each_old_secret_for_its_time(store: Store) {
    let account = store.account("default", "acc_1".to_owned(), NOW).await.unwrap();
    let created = insert_key(&store, key(account, 1)).await.unwrap();
    let other = insert_key(&store, key(account, 2)).await.unwrap();
    let rotate = async |number, old_until| {
        store.rotate_key("key_1", secret(number, old_until), &TEST_AUTHOR).await.unwrap().unwrap()
    };
    let rotated = rotate(11, 100).await;
    assert_eq!((rotated.hash, rotated.last4.as_str()), ([11; 32], "0011"));
    assert_eq!(old_secrets(&rotated), [(1, 100)]);
    let same = ApiKeyRecord {
        hash: created.hash,
        last4: created.last4.clone(),
        old_secrets: vec![],
        ..rotated
    };
    assert_eq!(same, created, "everything else is unchanged");
    assert_eq!(old_secrets(&rotate(12, 200).await), [(11, 200), (1, 100)]);
    let old = old_secrets(&rotate(13, 50).await);
    assert_eq!(old, [(12, 50), (11, 50), (1, 50)], "no older one works longer than the newest");
    for number in 14..40 {
        rotate(number, 50).await;
    }
    let stored = old_secrets(&rotate(40, 50).await);
    assert_eq!((stored.len(), stored[0], stored[14]), (15, (39, 50), (25, 50)));
    assert_eq!(stored_key(&store, "key_2").await.unwrap(), Some(other));
    for (replaces, hash) in [(39, 40), (40, 41), (40, 41)] {
        let secret = NewSecret { replaces: Some([replaces; 32]), ..secret(41, 50) };
        let key = store.rotate_key("key_1", secret, &TEST_AUTHOR).await.unwrap().unwrap();
        assert_eq!(key.hash, [hash; 32], "only the named secret is replaced");
    }

    let revoked =
        store.revoke_credential::<ApiKeyScope>("key_1", NOW, &TEST_AUTHOR).await.unwrap().unwrap();
    assert_eq!(old_secrets(&revoked), []);
    let rotated = store.rotate_key("key_1", secret(42, 50), &TEST_AUTHOR).await.unwrap();
    assert_eq!(rotated, Some(revoked), "a revoked key stays revoked");
    assert_eq!(store.rotate_key("key_9", secret(43, 50), &TEST_AUTHOR).await.unwrap(), None);
}

async fn each_change_of_a_key_is_reported_once(store: Store) {
    let mut version = ALL_CREDENTIALS;
    let mut changed_ids = async || {
        let changes = store.credentials_since::<ApiKeyScope>(version).await.unwrap();
        version = changes.version;
        changes.credentials.into_iter().map(|key| key.id).collect::<Vec<_>>()
    };
    assert_eq!(changed_ids().await, Vec::<String>::new());
    let account = store.account("default", "acc_1".to_owned(), NOW).await.unwrap();
    for number in 1..=3 {
        insert_key(&store, key(account, number)).await.unwrap();
    }
    assert_eq!(changed_ids().await, ["key_1", "key_2", "key_3"]);
    store.revoke_credential::<ApiKeyScope>("key_3", NOW, &TEST_AUTHOR).await.unwrap();
    store.rotate_key("key_1", secret(11, 9), &TEST_AUTHOR).await.unwrap();
    assert_eq!(changed_ids().await, ["key_3", "key_1"]);
    store.revoke_credential::<ApiKeyScope>("key_3", NOW, &TEST_AUTHOR).await.unwrap();
    store.rotate_key("key_3", secret(12, 9), &TEST_AUTHOR).await.unwrap();
    assert_eq!(changed_ids().await, Vec::<String>::new());
}

async fn an_admin_token_is_found_by_its_hash_and_revoked(store: Store) {
    let new = credential("adt", 1, AdminScope);
    let created: AdminTokenRecord = store.insert_credential(new, &TEST_AUTHOR).await.unwrap();
    let fields = (created.id.as_str(), created.name.as_str(), created.revoked_at);
    assert_eq!(fields, ("adt_1", "Warehouse", None));
    let found = async || store.credential_by_hash::<AdminScope>(&[1; 32]).await.unwrap();
    assert_eq!(found().await, Some(created));
    assert_eq!(store.credential_by_hash::<ApiKeyScope>(&[1; 32]).await.unwrap(), None);
    let writes = store.credential_writes();
    let revoked =
        store.revoke_credential::<AdminScope>("adt_1", NOW.plus(5), &TEST_AUTHOR).await.unwrap();
    assert_eq!(revoked.as_ref().and_then(|token| token.revoked_at), Some(NOW.plus(5)));
    assert!(store.credential_writes() > writes, "a cache of credentials knows that it is outdated");
    assert_eq!(found().await, revoked);
}

async fn a_key_that_exists_is_refused(store: Store) {
    let account = store.account("default", "acc_1".to_owned(), NOW).await.unwrap();
    insert_key(&store, key(account, 1)).await.unwrap();
    let again = insert_key(&store, key(account, 1)).await;
    assert!(matches!(again, Err(StoreError::Engine { .. })), "{again:?}");
    assert!(store.is_writable());
    assert_eq!(store.credentials::<ApiKeyScope>().await.unwrap().len(), 1);
    let log = store.audit_log(AuditFilter::All, Millis(0), 9).await.unwrap();
    assert_eq!(log.len(), 1, "a refused change is not logged");
}

async fn expired_records_are_purged_and_valid_ones_stay(store: Store) {
    let all = (0..2_010).map(|number| {
        let mut stored = record(sandbox(1), number);
        stored.first_seen = NOW.plus(i64::from(number >= 2_000));
        store.commit(Changes { idempotency_record: Some(stored), ..empty_changes() })
    });
    assert!(join_all(all).await.iter().all(|answer| *answer == CommitOutcome::Committed));
    assert_eq!(store.purge_records(NOW.plus(LIFETIME_MILLIS - 1)).await.unwrap(), 0);
    assert_eq!(store.purge_records(NOW.plus(LIFETIME_MILLIS)).await.unwrap(), 2_000);
    for (number, is_kept) in [(0, false), (1_999, false), (2_000, true), (2_009, true)] {
        let found = store.idempotency_record(&record(sandbox(1), number).key).await.unwrap();
        assert_eq!(found.is_some(), is_kept, "{number}");
    }
}

async fn a_panicking_write_fails_alone(store: Store) {
    let mut tasks = JoinSet::new();
    for number in 0..50 {
        let store = store.clone();
        tasks.spawn(async move {
            let mut changes = create(sandbox(1), &format!("SB-PANIC-{number:04}"), number);
            if number % 10 == 0 {
                changes.now = PANIC;
            }
            (number, store.commit(changes).await)
        });
    }
    for (number, commit) in tasks.join_all().await {
        let survives = number % 10 != 0;
        let expected = if survives { CommitOutcome::Committed } else { CommitOutcome::Broken };
        assert_eq!(commit, expected, "{number}");
        assert_eq!(row(&store, &format!("SB-PANIC-{number:04}")).await.is_some(), survives);
    }
    assert!(store.is_writable());
}

async fn writes_committed_during_a_pause_make_one_group(store: Store) {
    let before = store.stats();
    let pause = store.pause_writes().await;
    // The pause itself is the second commit. In memory no write waits, so each order has its own commit.
    let expected = if pause.is_some() { 2 } else { 12 };
    let changes = (0..12).map(|n| create(sandbox(1), &format!("SB-PAUSE-{n:06}"), n));
    let mut commits = Box::pin(join_all(changes.map(|changes| store.commit(changes))));
    // Polling the commits once puts each of them into the queue.
    let done = (&mut commits).now_or_never();
    assert!(pause.is_none() || store.stats().queued >= 12, "{:?}", store.stats());
    drop(pause);
    let outcomes = match done {
        Some(outcomes) => outcomes,
        None => commits.await,
    };
    assert!(outcomes.iter().all(|outcome| *outcome == CommitOutcome::Committed));
    let after = store.stats();
    assert_eq!((after.commits - before.commits, after.orders - before.orders), (expected, 12));
    assert!(store.size().await.unwrap() > 0);
}

#[test]
fn a_store_in_memory_needs_no_runtime() {
    let store = Store::memory(SECRET).unwrap();
    let mut commit = std::pin::pin!(store.commit(create(sandbox(1), "SB-SUCCESS-0001", 1)));
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    let ready = std::task::Poll::Ready(CommitOutcome::Committed);
    assert_eq!(commit.as_mut().poll(&mut context), ready);
    let mut scan = Box::pin(store.scan(Some(sandbox(1)), |_| Ok(7)));
    assert!(matches!(scan.as_mut().poll(&mut context), std::task::Poll::Ready(Ok(7))));
}

fn store_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src")
}

fn read_sources(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let files = entries.filter(|path| path.extension().is_some_and(|end| end == "rs"));
    files.map(|path| std::fs::read_to_string(path).unwrap()).collect()
}

/// Names of asynchronous functions that open, close or pause a store, and of the one that only PostgreSQL's clock needs.
const WITHOUT_CONFORMANCE_TEST: [&str; 6] =
    ["close", "connect", "connect_for_admin", "exists", "measure_clock", "pause_writes"];

/// Returns the names of the store's other asynchronous methods, each of which needs a conformance test.
pub(crate) fn methods() -> Vec<String> {
    let mut methods = Vec::new();
    for code in read_sources(&store_folder()) {
        let rests = code.split("\n    pub async fn ").skip(1);
        let names = rests.filter_map(|rest| rest.split_once(['(', '<']).map(|(name, _)| name));
        methods.extend(names.map(str::to_owned));
    }
    methods.retain(|name| !WITHOUT_CONFORMANCE_TEST.contains(&name.as_str()));
    assert!(methods.len() > 90, "{methods:?}");
    methods
}

#[test]
fn every_store_method_has_a_conformance_test() {
    let mut conformance_tests =
        std::fs::read_to_string(store_folder().join("tests/conformance.rs")).unwrap();
    conformance_tests.extend(read_sources(&store_folder().join("tests/conformance")));
    for name in methods() {
        let mut calls = [format!(".{name}("), format!(".{name}::<")].into_iter();
        let is_called = calls.any(|call| conformance_tests.contains(&call));
        assert!(is_called, "{name} has no conformance test");
    }
}

#[test]
fn debug_output_shows_no_rows() {
    let store = Store::memory(SECRET).unwrap();
    assert_eq!(format!("{store:?}"), "Store { file: \":memory:\", .. }");
}

const UNKNOWN: ParcelRowId = ParcelRowId(i64::MAX);

pub(crate) async fn commit(store: &Store, changes: Changes) {
    assert_eq!(store.commit(changes).await, CommitOutcome::Committed);
}

pub(crate) async fn apply(store: &Store, ops: Vec<StoreOp>) {
    commit(store, Changes { ops, ..empty_changes() }).await;
}

/// Returns an operation that submits a manifest. All tests use the same air waybill.
pub(crate) fn manifest(tenant: Tenant, parcels: Vec<ParcelRowId>, id: u128) -> StoreOp {
    StoreOp::InsertManifest(Box::new(NewManifest {
        id: Ulid::from_parts(1, id),
        tenant,
        awb: Awb::parse("176-12345675").unwrap(),
        submitted_at: NOW,
        document: b"{}".to_vec(),
        parcels,
    }))
}

/// Returns a new credential of a kind, whose id begins with the kind's prefix.
pub(crate) fn credential<S>(prefix: &str, number: u8, scope: S) -> NewCredential<S> {
    NewCredential {
        id: format!("{prefix}_{number}"),
        name: "Warehouse".to_owned(),
        hash: [number; 32],
        last4: "wXyZ".to_owned(),
        created_at: NOW,
        scope,
    }
}

pub(crate) fn sandbox(account: i64) -> Tenant {
    Tenant { account: AccountRowId(account), environment: Environment::Sandbox }
}

pub(crate) fn production(account: i64) -> Tenant {
    Tenant { account: AccountRowId(account), environment: Environment::Production }
}

pub(crate) fn empty_changes() -> Changes {
    Changes { now: NOW, trace: None, idempotency_record: None, expect: Vec::new(), ops: Vec::new() }
}

/// Returns changes that apply these operations to a parcel, if it is still as it was read.
pub(crate) fn changes_to(parcel: &ParcelRow, ops: Vec<StoreOp>) -> Changes {
    Changes { expect: vec![(parcel.key, parcel.version)], ops, ..empty_changes() }
}

pub(crate) fn record(tenant: Tenant, number: u32) -> IdempotencyRecord {
    // Each tenant has its own keys, as in the service, whose keys are hashes that include the API key.
    let mut key = [0; 16];
    key[..4].copy_from_slice(&number.to_be_bytes());
    key[8..].copy_from_slice(&tenant.number().to_be_bytes());
    IdempotencyRecord {
        key: RecordKey(key),
        tenant,
        fingerprint: [7; 32],
        first_seen: NOW,
        body: br#"{"success":true}"#.to_vec(),
    }
}

/// Returns changes that create an order. `number` determines the idempotency key.
pub(crate) fn create(tenant: Tenant, tracking_number: &str, number: u32) -> Changes {
    let parcel = NewParcel {
        id: ulid(tracking_number),
        tenant,
        tracking_number: TrackingNumber::parse(tracking_number).unwrap(),
        created_at: NOW,
        origin: "Miami, US".to_owned(),
        destination: "Quito, EC".to_owned(),
        country: CountryCode::EC,
        promised_day: 20_473,
        step: None,
        redraws: None,
        order: StoredOrder::to_json(&order("key-1")),
        external_order_id: None,
    };
    let ops = vec![StoreOp::InsertParcel(Box::new(parcel))];
    Changes { idempotency_record: Some(record(tenant, number)), ops, ..empty_changes() }
}

fn ulid(number: &str) -> Ulid {
    let tail = number.bytes().fold(7, |hash: u128, byte| hash * 31 + u128::from(byte));
    Ulid::from_parts(u64::try_from(NOW.0).unwrap(), tail)
}

pub(crate) fn order(key: &str) -> OrderRequest {
    let order = serde_json::json!({
        "idempotencyKey": format!("{key}-of-an-order"),
        "sender": { "fullName": "Ana Pérez", "phone": "+1 305 555 0100",
            "address": { "line1": "1 Main St", "city": "Miami", "state": "FL", "country": "US" } },
        "receiver": { "fullName": "Luis Ñandú", "phone": "+593 99 123 4567",
            "address": { "line1": "Av. Amazonas", "city": "Quito", "country": "EC" } },
        "parcelDetails": { "weightKg": 1.361, "declaredValue": 19.99, "currency": "USD" },
    });
    serde_json::from_value(order).unwrap()
}

fn key(account: AccountRowId, number: u8) -> NewCredential<ApiKeyScope> {
    let scope = ApiKeyScope {
        tenant: Tenant { account, environment: Environment::Sandbox },
        account: "default".to_owned(),
        countries: Countries::All,
        ip_list: Vec::new(),
        rate_limit: None,
    };
    credential("key", number, scope)
}

async fn insert_key(
    store: &Store,
    new: NewCredential<ApiKeyScope>,
) -> Result<ApiKeyRecord, StoreError> {
    store.insert_credential(new, &TEST_AUTHOR).await
}

async fn stored_key(store: &Store, id: &str) -> Result<Option<ApiKeyRecord>, StoreError> {
    store.credential(id).await
}

pub(crate) fn event(parcel: &ParcelRow, state: State, after: i64) -> Event {
    Event {
        sequence: parcel.last_sequence + 1,
        state,
        at: NOW.plus(after),
        location: "Quito, EC".to_owned(),
        description: None,
    }
}

pub(crate) fn move_parcel(parcel: &ParcelRow, state: State, after: i64) -> StoreOp {
    StoreOp::Move { parcel: parcel.key, event: event(parcel, state, after) }
}

/// Creates a parcel without an idempotency key.
pub(crate) async fn create_parcel(store: &Store, tenant: Tenant, number: &str) -> ParcelRow {
    commit(store, Changes { idempotency_record: None, ..create(tenant, number, 0) }).await;
    find(store, tenant.environment, number).await.unwrap()
}

async fn find(store: &Store, environment: Environment, number: &str) -> Option<ParcelRow> {
    store.parcel(environment, &TrackingNumber::parse(number).unwrap()).await.unwrap()
}

/// Returns the sandbox parcel with a number.
pub(crate) async fn row(store: &Store, number: &str) -> Option<ParcelRow> {
    find(store, Environment::Sandbox, number).await
}

/// Checks that a refused mutation has left nothing: neither its record 7, nor its second parcel, nor an event.
async fn assert_unchanged(store: &Store, before: &ParcelRow) {
    assert_eq!(row(store, before.tracking_number.as_str()).await.as_ref(), Some(before));
    assert_eq!(row(store, "SB-SECOND-0001").await, None);
    assert_eq!(store.idempotency_record(&record(before.tenant, 7).key).await.unwrap(), None);
    let all = ParcelRow { last_sequence: u32::MAX, ..before.clone() };
    let sequences: HashSet<_> =
        store.events(&all).await.unwrap().iter().map(|e| e.sequence).collect();
    assert_eq!(sequences, HashSet::from([1, 2]));
}
