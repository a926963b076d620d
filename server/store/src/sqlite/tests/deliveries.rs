//! The outbox: values that are maintained next to its rows always equal those computed from all rows, and writes of
//! many rows are made in pages.

use parcelo_domain::{
    Changes, Millis, TraceContext,
    sample::TEST_AUTHOR,
    webhooks::{DeliveryLease, DisabledBy, RetryDecision},
};
use rusqlite::Connection;

use super::conformance::{
    NOW, SECRET, commit, create, sandbox,
    webhooks::{endpoint, enqueue, lease, outcome},
};
use crate::{
    EventsToReplay, Settled, Store,
    generations::{current_generation, is_current},
    sqlite::{
        identity,
        migrations::MIGRATIONS,
        tests::{TestFile, begin_reset, erase_some},
    },
};

/// Returns the due times of the webhooks and the counts of their events: each as the triggers keep it, and as computed
/// from all rows of current generations.
fn maintained_and_computed(store: &Store) -> [(String, String); 2] {
    let query_text = |sql: &str| {
        let text = |row: &rusqlite::Row<'_>| row.get::<_, Option<String>>(0);
        store.read(|db| db.query_row(sql, [], text)).unwrap().unwrap_or_default()
    };
    let due = |next: &str| {
        query_text(&format!(
            "SELECT group_concat(tenant || ':' || coalesce({next}, '-') ORDER BY tenant) \
             FROM webhook_endpoints AS e"
        ))
    };
    let counts = |from: &str| {
        query_text(&format!(
            "SELECT group_concat(tenant || ':' || held || ':' || events ORDER BY tenant, held) \
             FROM ({from}) WHERE events <> 0"
        ))
    };
    let all = concat!(
        "SELECT tenant, state = 4 AS held, count(*) AS events FROM outbox \
         WHERE state IN (0, 1, 4) AND ",
        is_current!("tenant"),
        " GROUP BY 1, 2"
    );
    [
        (
            due("next_due"),
            due(concat!(
                "(SELECT min(due) FROM outbox WHERE tenant = ",
                current_generation!("e.tenant"),
                ")"
            )),
        ),
        (counts(concat!("SELECT * FROM outbox_counts WHERE ", is_current!("tenant"))), counts(all)),
    ]
}

#[tokio::test]
async fn due_times_and_counts_equal_those_of_all_rows() {
    let mut random = fastrand::Rng::with_seed(11);
    for _ in 0..20 {
        let store = Store::memory(SECRET).unwrap();
        let (mut in_flight, mut now) = (Vec::new(), NOW);
        for step in 0..120 {
            let tenant = sandbox(random.i64(1..3));
            let action = random.u8(0..18);
            match action {
                0..4 => enqueue(&store, tenant, step).await,
                4..7 => in_flight.extend(lease(&store, tenant, 3, now).await),
                7..11 if !in_flight.is_empty() => {
                    let lease: DeliveryLease =
                        in_flight.swap_remove(random.usize(..in_flight.len()));
                    let decisions = [
                        RetryDecision::Delivered,
                        RetryDecision::Retry { at: now.plus(random.i64(0..9)) },
                        RetryDecision::GivenUp,
                        RetryDecision::Gone,
                        RetryDecision::Unreadable,
                    ];
                    let decision = decisions[random.usize(..decisions.len())];
                    store.settle(lease, outcome(now, 200), decision).await.unwrap();
                }
                11 => store
                    .disable_endpoint(tenant, DisabledBy::Operator, &TEST_AUTHOR)
                    .await
                    .unwrap(),
                12 => drop(store.set_endpoint(endpoint(tenant), &TEST_AUTHOR).await.unwrap()),
                13 => {
                    let missed = EventsToReplay::MissedSince(Millis(0));
                    store.replay(tenant, missed, now).await.unwrap();
                }
                14 if random.bool() => store.remove_endpoint(tenant, &TEST_AUTHOR).await.unwrap(),
                14 => drop(store.reset(tenant).await.unwrap()),
                15 => begin_reset(&store, tenant).await,
                16 => drop(erase_some(&store, tenant, random.u64(1..4)).await),
                _ => now = now.plus(1),
            }
            for (maintained, computed) in maintained_and_computed(&store) {
                assert_eq!(maintained, computed, "step {step}, {action}");
            }
            // Without a due event, the dispatcher would try to lease again and again.
            for tenant in store.tenants_with_due(now, 9).await.unwrap() {
                let due = concat!(
                    "SELECT count(*) FROM outbox WHERE due <= ?2 AND tenant = ",
                    current_generation!("?1")
                );
                let params = (tenant.number(), now.0);
                let due = store.read(|db| db.query_row(due, params, |row| row.get::<_, i64>(0)));
                assert!(due.unwrap() > 0, "step {step}, {action}");
            }
        }
    }
}

#[tokio::test]
async fn a_trace_survives_a_restart_and_an_event_of_schema_27_has_none() {
    let (test_file, tenant) = (TestFile::new(), sandbox(1));
    let db = Connection::open(&test_file.file).unwrap();
    db.execute_batch(&MIGRATIONS[..27].concat()).unwrap();
    db.pragma_update(None, "user_version", 27).unwrap();
    identity::mark_as_ours(&db).unwrap();
    db.execute("INSERT INTO meta VALUES ('secret', ?1)", [SECRET]).unwrap();
    let event = "INSERT INTO outbox (tenant, event_id, kind, happened_at, created_at, state, due, after_lease) \
         VALUES (?1, zeroblob(16), 4, 1, 1, 1, 1, 0)";
    db.execute(event, [tenant.number()]).unwrap();
    drop(db);
    let store = test_file.open();
    store.set_endpoint(endpoint(tenant), &TEST_AUTHOR).await.unwrap();
    let trace = Some(TraceContext::from_bytes([7; 17]));
    commit(&store, Changes { trace, ..create(tenant, "SB-TRACED-0001", 1) }).await;
    store.close().await;
    let leased = lease(&test_file.open(), tenant, 9, NOW).await;
    assert_eq!(leased.iter().map(|event| event.trace).collect::<Vec<_>>(), [None, trace]);
}

#[tokio::test]
async fn restoring_a_snapshot_reuses_no_lease_number() {
    let (store, tenant) = (Store::memory(SECRET).unwrap(), sandbox(1));
    store.set_endpoint(endpoint(tenant), &TEST_AUTHOR).await.unwrap();
    enqueue(&store, tenant, 1).await;
    let snapshot = store.copy().unwrap();
    let late = lease(&store, tenant, 1, NOW).await.remove(0);
    store.become_copy_of(&snapshot).unwrap();
    assert_ne!(late.number, lease(&store, tenant, 1, NOW).await.remove(0).number);
    let settled = store.settle(late, outcome(NOW, 410), RetryDecision::Gone).await.unwrap();
    assert_eq!(settled, Settled::Late);
    assert!(store.endpoint(tenant).await.unwrap().unwrap().disabled.is_none());
}

#[tokio::test]
async fn no_call_finds_events_from_before_a_reset() {
    let (store, tenant) = (Store::memory(SECRET).unwrap(), sandbox(1));
    store.set_endpoint(endpoint(tenant), &TEST_AUTHOR).await.unwrap();
    for event in 0..6 {
        enqueue(&store, tenant, event).await;
    }
    let [lost, failed] = lease(&store, tenant, 2, NOW).await.try_into().unwrap();
    store.settle(failed, outcome(NOW, 500), RetryDecision::Unreadable).await.unwrap();
    begin_reset(&store, tenant).await;

    let day = NOW.plus(Millis::DAY);
    let assert_nothing_pending = async || {
        assert_eq!(store.tenants_with_due(day, 9).await.unwrap(), []);
        assert_eq!(store.next_delivery().await.unwrap(), None);
        assert_eq!(store.backlogs().await.unwrap(), []);
        assert!(store.deliveries(tenant, 9).await.unwrap().is_empty());
        assert!(!store.has_missed(tenant).await.unwrap());
    };
    assert_nothing_pending().await;
    assert!(lease(&store, tenant, 9, day).await.is_empty());
    let settled = store.settle(lost, outcome(NOW, 200), RetryDecision::Delivered).await.unwrap();
    assert_eq!(settled, Settled::Late);
    assert_eq!(store.replay(tenant, EventsToReplay::MissedSince(Millis(0)), day).await.unwrap(), 0);
    store.end_leases(NOW).await.unwrap();
    store.disable_endpoint(tenant, DisabledBy::Operator, &TEST_AUTHOR).await.unwrap();
    store.set_endpoint(endpoint(tenant), &TEST_AUTHOR).await.unwrap();
    assert_eq!(store.reschedule_deliveries(Millis(0)).await.unwrap(), 0);
    assert_nothing_pending().await;

    // New events are due, and stay so while the others are erased.
    enqueue(&store, tenant, 9).await;
    for _ in 0..9 {
        assert_eq!(store.tenants_with_due(day, 9).await.unwrap(), [tenant]);
        assert_eq!(store.backlogs().await.unwrap()[0].events, 1);
        erase_some(&store, tenant, 1).await;
    }
    let leased = lease(&store, tenant, 9, day).await;
    assert_eq!(leased.iter().map(|lease| lease.attempt.event.random()).collect::<Vec<_>>(), [9]);
}

#[tokio::test]
async fn an_unreadable_attempt_does_not_hide_the_rest_of_the_log() {
    let (store, tenant) = (Store::memory(SECRET).unwrap(), sandbox(1));
    store.set_endpoint(endpoint(tenant), &TEST_AUTHOR).await.unwrap();
    for event in 0..2 {
        enqueue(&store, tenant, event).await;
    }
    for leased in lease(&store, tenant, 2, NOW).await {
        store.settle(leased, outcome(NOW, 200), RetryDecision::Delivered).await.unwrap();
    }
    let damage = "UPDATE webhook_attempts SET number = -1 WHERE id = 1";
    assert_eq!(store.call(|db| db.execute(damage, [])).await.unwrap(), 1);
    let log = store.deliveries(tenant, 9).await.unwrap();
    let attempts: Vec<_> = log.iter().map(|event| event.attempts.len()).collect();
    assert_eq!(attempts, [1, 0], "the newest is first");
}
