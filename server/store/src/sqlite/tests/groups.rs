//! Writes of a group: they do not affect each other, and share the cost of some statements.

use std::sync::Arc;

use parcelo_domain::{Changes, State};
use parcelo_types::{Environment, TrackingNumber};
use rusqlite::Connection;
use tempfile::TempDir;
use tokio::sync::oneshot;

use super::{
    commit_as_group,
    conformance::{
        NOW, PANIC, SECRET, changes_to, create, empty_changes, move_parcel, record, sandbox,
    },
};
use crate::{
    CommitOutcome, counts,
    parcels::{self, by_number, select_parcels},
    resets,
    sql::{Sql, poll_now},
    sqlite::{connection, group, health::Health, identity::IfEmpty, key_index::KeyIndex},
};

fn memory_database() -> Connection {
    connection::memory_with_schema().unwrap()
}

fn number(n: u32) -> String {
    format!("SB-NUMBER-{n:04}")
}

fn order(n: u32) -> Changes {
    create(sandbox(1), &number(n), n)
}

fn query_number(db: &Connection, sql: &str) -> i64 {
    db.query_row(sql, [], |row| row.get(0)).unwrap()
}

/// Returns what is stored of orders: their tracking numbers, the number of records, and the number of counted parcels.
fn stored_orders(db: &Connection) -> (Vec<String>, i64, i64) {
    let mut find = db.prepare("SELECT number FROM parcels ORDER BY number").unwrap();
    let numbers = find.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
    let records = query_number(db, "SELECT count(*) FROM idempotency");
    (numbers, records, query_number(db, "SELECT coalesce(sum(total), 0) FROM parcel_counts"))
}

/// Commits twelve orders in one group, and checks that the sixth fails and only it is undone.
fn assert_only_the_sixth_is_undone(db: &Connection, sixth: &Changes) {
    let group = (0..12).map(|n| if n == 5 { sixth.clone() } else { order(n) });
    let answers = commit_as_group(db, group.collect());
    let all_but = (0..12).filter(|n| *n != 5);
    for (n, answer) in (0..).zip(answers) {
        let expected = if n == 5 { CommitOutcome::Broken } else { CommitOutcome::Committed };
        assert_eq!(answer, expected, "{n}");
    }
    assert_eq!(stored_orders(db), (all_but.map(number).collect(), 11, 11));
}

#[test]
fn a_panic_in_the_middle_of_a_group_undoes_only_itself() {
    assert_only_the_sixth_is_undone(&memory_database(), &Changes { now: PANIC, ..order(5) });
}

#[test]
fn an_error_of_a_statement_undoes_only_its_write() {
    let db = memory_database();
    // The statement fails after the parcel of its order was written.
    db.execute_batch(&format!(
        "CREATE TEMP TRIGGER fails BEFORE INSERT ON main.idempotency WHEN EXISTS \
         (SELECT 1 FROM main.parcels WHERE number = '{}') AND substr(NEW.key, 1, 4) = x'00000005' \
         BEGIN SELECT RAISE(ABORT, 'a test asked for it'); END",
        number(5),
    ))
    .unwrap();
    assert_only_the_sixth_is_undone(&db, &order(5));
}

#[test]
fn a_refused_order_writes_nothing_and_costs_its_group_nothing() {
    let db = memory_database();
    let rows_of = |group| {
        let before = db.total_changes();
        (commit_as_group(&db, group), db.total_changes() - before)
    };
    let (_, rows_of_one) = rows_of(vec![order(1)]);
    let taken_number = create(sandbox(1), &number(1), 2);
    let taken_key = CommitOutcome::IdempotencyTaken(record(sandbox(1), 1));
    let refused = || vec![order(1), taken_number.clone()];
    let refusals = || vec![taken_key.clone(), CommitOutcome::DuplicateTracking];
    assert_eq!(rows_of(refused()), (refusals(), 0));
    let (answers, rows) = rows_of([refused(), vec![order(3)], refused()].concat());
    assert_eq!(answers, [refusals(), vec![CommitOutcome::Committed], refusals()].concat());
    assert_eq!(rows, rows_of_one, "only the rows of the new order were written");
    assert_eq!(stored_orders(&db), (vec![number(1), number(3)], 2, 2));
}

#[test]
fn a_half_done_refused_write_is_undone_alone() {
    let db = memory_database();
    commit_as_group(&db, vec![order(1)]);
    let first = TrackingNumber::parse(&number(1)).unwrap();
    let select = select_parcels!("", by_number!());
    let first = (Environment::Sandbox, &first);
    let first = parcels::find_by_number(Sql::Sqlite(&db), select, first, parcels::read);
    let first = poll_now(first).unwrap().unwrap();
    let mut late = order(2);
    late.ops.extend([0, 0].map(|_| move_parcel(&first, State::InTransit, 1)));
    let answers = commit_as_group(&db, vec![order(3), late, order(4)]);
    let [committed, refused] = [CommitOutcome::Committed, CommitOutcome::VersionConflict];
    assert_eq!(answers, [committed.clone(), refused, committed]);
    assert_eq!(stored_orders(&db), ([1, 3, 4].map(number).to_vec(), 3, 3));
    assert_eq!(query_number(&db, "SELECT count(*) FROM events"), 0);
    let moves = changes_to(&first, vec![move_parcel(&first, State::InTransit, 1)]);
    assert_eq!(commit_as_group(&db, vec![moves]), [CommitOutcome::Committed]);
}

#[test]
fn a_commit_writes_each_count_once() {
    let db = memory_database();
    db.execute_batch(
        "CREATE TEMP TABLE writes (n); \
         CREATE TEMP TRIGGER added AFTER INSERT ON main.parcel_counts BEGIN INSERT INTO writes VALUES (1); END; \
         CREATE TEMP TRIGGER changed AFTER UPDATE ON main.parcel_counts BEGIN INSERT INTO writes VALUES (1); END;",
    )
    .unwrap();
    for group in 0..2 {
        let orders = (0..12).map(|n| order(100 * group + n));
        commit_as_group(&db, orders.collect());
    }
    assert_eq!(query_number(&db, "SELECT count(*) FROM writes"), 2);
    assert_eq!(query_number(&db, "SELECT sum(total) FROM parcel_counts"), 24);
}

fn mutation(
    changes: Changes,
    keys: &Arc<KeyIndex>,
) -> (Box<group::Mutation>, oneshot::Receiver<crate::CommitResult>) {
    group::Mutation::new(changes, Arc::clone(keys), Arc::default())
}

/// Commits a group of an order, a plain call, and another order. Returns the result of the call.
fn commit_between_orders(
    db: &Connection,
    call: impl FnMut(&Connection) -> rusqlite::Result<i64> + Send + 'static,
) -> i64 {
    let (call, mut found) = group::PlainWrite::new(call);
    let keys = Arc::new(KeyIndex::new());
    let [before, after] =
        [1, 2].map(|n| mutation(order(n), &keys).0 as Box<dyn group::QueuedWrite>);
    group::commit(db, &Health::default(), vec![before, call, after]);
    match found.try_recv().unwrap() {
        Ok(found) => found.unwrap(),
        Err(reason) => panic!("{reason:?}"),
    }
}

#[test]
fn a_plain_call_sees_counts_of_earlier_group_writes() {
    let db = memory_database();
    let counted = |db: &Connection| {
        db.query_row("SELECT sum(total) FROM parcel_counts", [], |row| row.get(0))
    };
    assert_eq!(commit_between_orders(&db, counted), 1);
    assert_eq!(stored_orders(&db).2, 2);
}

#[test]
fn a_reset_between_two_orders_of_a_group_counts_the_second_only() {
    let db = memory_database();
    commit_between_orders(&db, |db| {
        poll_now(resets::begin_generation(Sql::Sqlite(db), sandbox(1))).map(|_ended| 0)
    });
    let days = poll_now(counts::activity(Sql::Sqlite(&db), sandbox(1), 0)).unwrap();
    assert_eq!(days.iter().map(|day| day.parcels).sum::<u64>(), 1);
}

#[test]
fn damaged_counts_fail_orders_and_nothing_else() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("parcelo.db");
    let open = || connection::open_writer(&file, IfEmpty::Create, SECRET).unwrap().0;
    let db = open();
    commit_as_group(&db, vec![order(9)]);
    let page = query_number(&db, "SELECT rootpage FROM sqlite_schema WHERE name = 'parcel_counts'");
    drop(db);
    let mut bytes = std::fs::read(&file).unwrap();
    let start = usize::try_from(page - 1).unwrap() * 4_096;
    bytes[start..start + 4_096].fill(0xA5);
    std::fs::write(&file, bytes).unwrap();
    let db = open();
    let health = Health::default();
    let (call, mut found) = group::PlainWrite::new(|db| {
        db.execute("INSERT INTO accounts VALUES (1, 'acc_1', 'default', ?1)", [NOW.0])
    });
    let keys = Arc::new(KeyIndex::new());
    let record = Changes { idempotency_record: Some(record(sandbox(1), 8)), ..empty_changes() };
    let (record, mut record_answer) = mutation(record, &keys);
    let mut queued_writes: Vec<Box<dyn group::QueuedWrite>> = vec![record, call];
    let mut orders = Vec::new();
    for n in 0..3 {
        let (queued_write, answer) = mutation(order(n), &keys);
        queued_writes.push(queued_write);
        orders.push(answer);
    }
    group::commit(&db, &health, queued_writes);
    for mut answer in orders {
        assert_eq!(answer.try_recv(), Ok(Err(CommitOutcome::Broken)));
    }
    assert!(record_answer.try_recv().unwrap().is_ok());
    assert!(matches!(found.try_recv(), Ok(Ok(Ok(1)))));
    assert_eq!(health.read_only_reason(), None, "one damaged page does not stop all writes");
}

#[test]
fn a_refusal_may_refer_to_a_row_of_its_own_group() {
    let answers = commit_as_group(
        &memory_database(),
        vec![
            create(sandbox(1), "SB-SUCCESS-0001", 1),
            create(sandbox(1), "SB-SUCCESS-0001", 1),
            create(sandbox(1), "SB-SUCCESS-0001", 2),
        ],
    );
    let taken = CommitOutcome::IdempotencyTaken(record(sandbox(1), 1));
    assert_eq!(answers, [CommitOutcome::Committed, taken, CommitOutcome::DuplicateTracking]);
}
