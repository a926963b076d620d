//! Connections that fail at each message of a group of writes: nothing that was acknowledged is lost, and nothing is
//! done twice.

use std::{collections::BTreeMap, time::Duration};

use futures_util::future::join_all;
use parcelo_domain::{Changes, IdempotencyRecord, ParcelRow, State, sample::TEST_AUTHOR};
use tokio::time::timeout;

use crate::postgres::test_util::{
    cluster::{empty_database, query, run_sql, socket_and_name},
    proxy::{Direction, FAULTS, Fault, FaultPoint, Proxy},
};
use crate::{
    CommitOutcome, Store,
    postgres::Address,
    tests::conformance::{
        NOW, SECRET, changes_to, create, move_parcel, record, row, sandbox, webhooks::endpoint,
    },
    waiting::LONG,
};

/// Number of orders in a round that are each sent by one caller.
const SINGLE_CALLER_ORDERS: u32 = 6;
/// Number of orders in a round that are each sent by all [`CALLERS`] at once.
const SHARED_ORDERS: u32 = 3;
const CALLERS: u32 = 3;

/// A store behind a proxy, a second store with a direct connection, and the callers' answers.
struct CutTest {
    address: Address,
    proxy: Proxy,
    store: Store,
    direct: Store,
    /// The answer under each key.
    answers: BTreeMap<u32, Vec<u8>>,
    next_key: u32,
    voidable: Vec<String>,
    voided: usize,
    cuts: usize,
}

impl CutTest {
    /// Opens the stores, or `None` if PostgreSQL is not installed.
    async fn open() -> Option<Self> {
        let address = empty_database()?;
        let proxy = Proxy::start(&address).await;
        let proxied = Address { answer_timeout: Duration::from_millis(400), ..proxy.address() };
        let direct = Store::connect(address.clone(), SECRET).await.unwrap();
        let connected = async {
            loop {
                // On a slow machine, opening a connection may take longer than the answer timeout.
                if let Ok(store) = Store::connect(proxied.clone(), SECRET).await {
                    break store;
                }
            }
        };
        let store = timeout(LONG, connected).await.expect("it connects in the end");
        direct.set_endpoint(endpoint(sandbox(1)), &TEST_AUTHOR).await.unwrap();
        Some(Self {
            address,
            proxy,
            store,
            direct,
            answers: BTreeMap::new(),
            next_key: 0,
            voidable: Vec::new(),
            voided: 0,
            cuts: 0,
        })
    }

    /// Sends all kinds of writes at once, while the connection fails at `point`. Returns `true` if a group reached it.
    async fn run_round(&mut self, point: FaultPoint, fault: Fault) -> bool {
        let first = self.next_key;
        let voids = self.voidable.split_off(self.voidable.len().saturating_sub(3));
        self.next_key += SINGLE_CALLER_ORDERS + SHARED_ORDERS + u32::try_from(voids.len()).unwrap();
        let mut parcels = Vec::new();
        for number in &voids {
            parcels.push(row(&self.direct, number).await.unwrap());
        }
        self.proxy.arm(point, fault);
        let single =
            (first..).take(SINGLE_CALLER_ORDERS as usize).map(|key| self.spawn(key, 0, None));
        let shared = (first + SINGLE_CALLER_ORDERS..first + SINGLE_CALLER_ORDERS + SHARED_ORDERS)
            .flat_map(|key| (0..CALLERS).map(move |caller| (key, caller)))
            .map(|(key, caller)| self.spawn(key, caller, None));
        let voids = (first + SINGLE_CALLER_ORDERS + SHARED_ORDERS..)
            .zip(parcels)
            .map(|(key, parcel)| self.spawn(key, 0, Some(parcel)));
        let calls: Vec<_> = single.chain(shared).chain(voids).collect();
        for (key, answer) in join_all(calls).await.into_iter().map(Result::unwrap) {
            let known = self.answers.entry(key).or_insert_with(|| answer.clone());
            assert_eq!(*known, answer, "{key}: one key, one answer ({point:?}, {fault:?})");
        }
        let orders = (first..first + SINGLE_CALLER_ORDERS + SHARED_ORDERS)
            .map(|key| body_text(&self.answers[&key]));
        self.voidable.extend(orders);
        self.voided += self
            .answers
            .keys()
            .filter(|key| **key >= first + SINGLE_CALLER_ORDERS + SHARED_ORDERS)
            .count();
        let has_failed = self.proxy.disarm();
        self.cuts += usize::from(has_failed);
        has_failed
    }

    fn spawn(
        &self,
        key: u32,
        caller: u32,
        parcel: Option<ParcelRow>,
    ) -> tokio::task::JoinHandle<(u32, Vec<u8>)> {
        let (store, direct) = (self.store.clone(), self.direct.clone());
        let answered = async move {
            let mut attempt = 0;
            loop {
                attempt += 1;
                let kind = if parcel.is_some() { "void" } else { "SB-CUT" };
                let text = format!("{kind}-{key:06}-{caller}{attempt:04}");
                match store.commit(request(key, &text, parcel.as_ref())).await {
                    CommitOutcome::Committed => return (key, text.into_bytes()),
                    CommitOutcome::IdempotencyTaken(record) => return (key, record.body),
                    CommitOutcome::Unreachable if parcel.is_none() => {
                        let created = row(&direct, &text).await;
                        assert!(
                            created.is_none(),
                            "{text}: the store reported that nothing was done"
                        );
                    }
                    CommitOutcome::Unreachable | CommitOutcome::Unknown | CommitOutcome::Busy => {
                        tokio::task::yield_now().await;
                    }
                    other => panic!("{text}: {other:?}"),
                }
            }
        };
        tokio::spawn(async { timeout(LONG, answered).await.expect("it is answered in the end") })
    }

    /// Checks that the database holds the callers' answers, once each, and that its counts and events agree with it.
    async fn assert_each_write_done_once(&self) {
        let select = |sql: &str| query(&self.address, sql);
        let orders: Vec<_> = self.answers.values().map(|body| body_text(body)).collect();
        let (voids, orders): (Vec<_>, Vec<_>) =
            orders.into_iter().partition(|text| text.starts_with("void"));
        assert_eq!(voids.len(), self.voided);
        let numbers =
            select("SELECT string_agg(number, ' ' ORDER BY number COLLATE \"C\") FROM parcels");
        let mut expected = orders.clone();
        expected.sort();
        assert_eq!(numbers, expected.join(" "), "each order once, and no other");
        assert_eq!(select("SELECT count(*) FROM idempotency"), self.answers.len().to_string());
        for (key, body) in &self.answers {
            let record =
                self.direct.idempotency_record(&record(sandbox(1), *key).key).await.unwrap();
            assert_eq!(record.map(|record| record.body).as_ref(), Some(body), "{key}");
        }
        let counted = "SELECT string_agg(format('%s %s %s', day, state, n), ' ' ORDER BY day, state) \
             FROM (SELECT day, state, sum(total) AS n FROM all_counts GROUP BY 1, 2) AS c WHERE n <> 0";
        let stored = "SELECT string_agg(format('%s %s %s', day, state, n), ' ' ORDER BY day, state) \
             FROM (SELECT created_at / 86400000 AS day, state, count(*) AS n FROM parcels \
             GROUP BY 1, 2) AS p";
        assert_eq!(select(counted), select(stored), "the counts agree with the parcels");
        let voided =
            format!("SELECT count(*) FROM parcels WHERE state = {}", State::Voided.number());
        assert_eq!(select(&voided), self.voided.to_string());
        assert_eq!(select("SELECT count(*) FROM events"), self.voided.to_string());
        // The endpoint subscribes to changes of status. The first such change is the parcel's second event, with which
        // it is created.
        let events = "SELECT string_agg(format('%s:%s', parcel, sequence), ' ' \
             ORDER BY parcel, sequence) FROM outbox";
        let history = "SELECT string_agg(format('%s:%s', id, n), ' ' ORDER BY id, n) \
             FROM parcels, generate_series(2, last_sequence) AS n";
        assert_eq!(select(events), select(history), "an event for each change, and no other");
    }
}

fn body_text(body: &[u8]) -> String {
    String::from_utf8(body.to_vec()).unwrap()
}

/// Returns an order, or the void of a parcel, whose answer is `text`.
fn request(key: u32, text: &str, parcel: Option<&ParcelRow>) -> Changes {
    let changes = match parcel {
        Some(parcel) => changes_to(parcel, vec![move_parcel(parcel, State::Voided, 5)]),
        None => create(sandbox(1), text, key),
    };
    let new_record =
        IdempotencyRecord { body: text.into(), first_seen: NOW, ..record(sandbox(1), key) };
    Changes { idempotency_record: Some(new_record), ..changes }
}

/// Fails a connection at each message of a group, from its BEGIN on, with each fault. Returns the number of failed
/// connections.
async fn fail_at_every_message() -> Option<usize> {
    let mut test = CutTest::open().await?;
    for direction in [Direction::ToServer, Direction::ToStore] {
        // Groups differ in length: the longest has ended if several rounds in a row do not reach the message.
        let mut rounds_without_failure = 0;
        for nth in 0.. {
            for fault in FAULTS {
                let has_failed = test.run_round(FaultPoint::Nth(direction, nth), fault).await;
                rounds_without_failure = if has_failed { 0 } else { rounds_without_failure + 1 };
            }
            if rounds_without_failure > 2 {
                break;
            }
        }
    }
    for point in [FaultPoint::Commit, FaultPoint::Committed] {
        for fault in FAULTS {
            assert!(test.run_round(point, fault).await, "{point:?} is a part of every group");
        }
    }
    test.assert_each_write_done_once().await;
    Some(test.cuts)
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "long: `.ci/prove postgres` runs it"]
async fn failures_at_any_message_neither_lose_nor_repeat_writes() {
    let mut cuts = 0;
    while cuts < 500 {
        let Some(count) = fail_at_every_message().await else { return };
        cuts += count;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_retry_learns_the_outcome_of_a_cut_off_commit() {
    let Some(mut test) = CutTest::open().await else { return };
    // The COMMIT is lost, forwarded or executed. In each case both ends of the connection are cut, or one, or neither.
    for fault in FAULTS {
        for point in [FaultPoint::Commit, FaultPoint::Committed] {
            assert!(test.run_round(point, fault).await, "{point:?} {fault:?}");
        }
    }
    test.assert_each_write_done_once().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn locks_of_a_failed_connection_are_free_at_once() {
    let Some(address) = empty_database() else { return };
    let proxy = Proxy::start(&address).await;
    let store = Store::connect(proxy.address(), SECRET).await.unwrap();
    let mut failed = 0;
    for nth in 0..40 {
        let order = create(sandbox(1), &format!("SB-LOCKED-{nth:04}"), nth);
        // Connections format the start times of backends in different ways.
        let style = ["ISO", "SQL"][nth as usize % 2];
        let (_, database) = socket_and_name(&address);
        run_sql(&address, &format!("ALTER DATABASE {database} SET datestyle = '{style}'"));
        // PostgreSQL does not notice the failure, so the transaction stays open.
        proxy.arm(FaultPoint::Nth(Direction::ToStore, nth as usize), Fault::Orphan);
        if store.commit(order.clone()).await == CommitOutcome::Unreachable {
            failed += 1;
            assert_eq!(store.commit(order).await, CommitOutcome::Committed, "{nth}");
        }
        proxy.disarm();
    }
    assert!(failed > 10, "{failed}");
}
