//! Tests of journeys through the whole service on a manual clock: the sandbox's steps with a restart in the middle,
//! and the operations that each of the 13 states allows.

mod damage;

use std::{path::Path, sync::Arc};

use parcelo_domain::{
    Cause, Changes, Event, Millis, State, StoreOp, sample, scenario::SCENARIOS, state::TRANSITIONS,
};
use parcelo_store::{CommitOutcome, Store, test_util::hold_list};
use parcelo_system::{clock::ManualClock, ids::Ids};
use parcelo_types::{Environment, ErrorCode, Language, TrackingNumber, internal::check_list};
use serde_json::{Value, json};

use super::{
    Caller, KeyedRequest, Refusal, Service,
    tests::{caller, settings},
};

const START: Millis = Millis(1_767_600_000_000);

struct TestService {
    service: Service,
    clock: Arc<ManualClock>,
    caller: Caller,
}

impl TestService {
    async fn with_store(store: Store) -> Self {
        let (ids, clock) = (Arc::new(Ids::seeded(1)), Arc::new(ManualClock::at(START)));
        let service = Service::new(store, clock.clone(), ids, settings());
        Self { caller: caller(&service).await, service, clock }
    }

    async fn in_memory() -> Self {
        Self::with_store(Store::memory([1; 32]).unwrap()).await
    }

    /// Restarts the service in a new process on the same file.
    async fn restart(self, file: &Path) -> Self {
        self.service.store().clone().close().await;
        drop(self.service);
        let store = Store::open(file, [2; 32]).unwrap();
        let service = Service::new(store, self.clock.clone(), Arc::new(Ids::seeded(2)), settings());
        Self { service, ..self }
    }

    async fn create(&self, number: &str) {
        let mut order = sample::order();
        order["trackingNumber"] = json!(number);
        order["idempotencyKey"] = json!(format!("order-{number}"));
        self.service.create_order(&self.caller, &order, None).await.unwrap();
    }

    /// Returns a parcel's history as its owner reads it.
    async fn history(&self, number: &str) -> Value {
        let record = self.service.track(&self.caller, number, Ok(true), Language::En).await;
        json!(record.unwrap().history)
    }

    async fn void(&self, number: &str) -> Result<(), Refusal> {
        let body =
            json!({ "idempotencyKey": format!("void-{number}"), "trackingNumbers": [number] });
        let request = KeyedRequest { body: &body, header_key: None, request_id: "req_1" };
        self.service.void_orders(&self.caller, request).await.map(drop)
    }

    async fn manifest(&self, number: &str) -> Result<(), Refusal> {
        let body = json!({ "awbNumber": "176-12345675", "trackingNumbers": [number] });
        let request = KeyedRequest { body: &body, header_key: None, request_id: "req_1" };
        self.service.submit_manifest(&self.caller, request).await.map(drop)
    }

    /// Moves a parcel to a state without the checks of any operation.
    async fn force_state(&self, number: &str, state: State) {
        let number = TrackingNumber::parse(number).unwrap();
        let store = self.service.store();
        let parcel = store.parcel(Environment::Sandbox, &number).await.unwrap().unwrap();
        let (sequence, location) = (parcel.last_sequence + 1, "Nowhere".to_owned());
        let event = Event { sequence, state, at: START, location, description: None };
        let ops = vec![StoreOp::Move { parcel: parcel.key, event }];
        let changes =
            Changes { now: START, trace: None, idempotency_record: None, expect: Vec::new(), ops };
        assert_eq!(store.commit(changes).await, CommitOutcome::Committed);
    }

    async fn state(&self, number: &str) -> State {
        let number = TrackingNumber::parse(number).unwrap();
        self.service.store().parcel(Environment::Sandbox, &number).await.unwrap().unwrap().state
    }
}

/// Returns a number for each journey, and one that has no journey.
fn journey_numbers() -> Vec<String> {
    let mut numbers: Vec<_> =
        SCENARIOS.iter().map(|scenario| format!("{}0001", scenario.prefix)).collect();
    numbers.push("SB-NORMAL-0001".to_owned());
    numbers
}

/// Returns the times around each step of any journey, the start, and a time long after all steps.
fn moments_around_steps() -> Vec<i64> {
    let minutes = [5, 10, 15, 20, 70, 75];
    let around = minutes.iter().flat_map(|at| [-1, 0, 1].map(|by| at * Millis::MINUTE + by));
    around.chain([0, 24 * Millis::HOUR]).collect()
}

#[tokio::test]
async fn a_restart_at_any_moment_leaves_journeys_unchanged() {
    let mut expected_histories = Vec::new();
    let test = TestService::in_memory().await;
    for number in journey_numbers() {
        test.create(&number).await;
    }
    test.clock.set(START.plus(25 * Millis::HOUR));
    for number in journey_numbers() {
        expected_histories.push(test.history(&number).await);
    }
    for moment in moments_around_steps() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("parcelo.db");
        let test = TestService::with_store(Store::open(&file, [1; 32]).unwrap()).await;
        for number in journey_numbers() {
            test.create(&number).await;
        }
        // The first process has taken some of the steps when it ends; the next one takes the rest.
        test.clock.set(START.plus(moment));
        test.history("SB-CUSTOMS-0001").await;
        let test = test.restart(&file).await;
        test.service.take_due_steps().await.unwrap();
        test.clock.set(START.plus(25 * Millis::HOUR));
        for (number, expected) in journey_numbers().iter().zip(&expected_histories) {
            assert_eq!(
                test.history(number).await,
                *expected,
                "{number}, restart after {moment} ms"
            );
        }
    }
}

#[tokio::test]
async fn steps_that_are_due_together_share_a_commit() {
    let test = TestService::in_memory().await;
    for index in 0..300 {
        test.create(&format!("SB-SUCCESS-{index:04}")).await;
    }
    test.clock.set(START.plus(5 * Millis::MINUTE));
    let before = test.service.store().stats().commits;
    let fired = test.service.take_due_steps().await.unwrap();
    assert_eq!(test.service.store().stats().commits - before, 2);
    let numbers: Vec<_> = fired.iter().map(|step| step.tracking_number.to_string()).collect();
    assert!(numbers.len() == 300 && numbers.is_sorted(), "{numbers:?}");
}

#[tokio::test]
async fn a_step_taken_meanwhile_is_skipped_without_blocking_others() {
    let test = TestService::in_memory().await;
    for index in 0..4 {
        test.create(&format!("SB-SUCCESS-{index:04}")).await;
    }
    let now = START.plus(5 * Millis::MINUTE);
    test.clock.set(now);
    let due = test.service.store().due(now, 4).await.unwrap();
    test.history("SB-SUCCESS-0002").await;
    let (outcome, _) = test.service.take_in_one_commit(&due, now).await;
    assert_eq!(outcome, CommitOutcome::VersionConflict);
    let fired = test.service.take_one_by_one(&due, now).await.unwrap().fired;
    let numbers = fired.iter().map(|step| step.tracking_number.as_str());
    assert!(numbers.eq(["SB-SUCCESS-0000", "SB-SUCCESS-0001", "SB-SUCCESS-0003"]), "{fired:?}");
    for index in 0..4 {
        let history = test.history(&format!("SB-SUCCESS-{index:04}")).await;
        assert_eq!(history.as_array().unwrap().len(), 3, "{history}");
    }
}

#[tokio::test]
async fn a_stuck_step_does_not_delay_other_steps_or_lists() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("parcelo.db");
    let test = TestService::with_store(Store::open(&file, [1; 32]).unwrap()).await;
    for index in 0..300 {
        test.create(&format!("SB-SUCCESS-{index:04}")).await;
    }
    // The next step of the first 260, which is more than one batch, collides with an event that already exists.
    let damage =
        "INSERT INTO events SELECT id, 3, 1, 0, '', NULL FROM parcels ORDER BY id LIMIT 260";
    assert_eq!(parcelo_store::test_util::damage_file(&file, damage), 260);
    test.clock.set(START.plus(25 * Millis::HOUR));
    let limit = std::time::Duration::from_secs(120);
    let take = async || {
        let taken = tokio::time::timeout(limit, test.service.take_due_steps()).await;
        taken.expect("it ends").unwrap()
    };
    let fired = take().await;
    assert_eq!(fired.len(), 40 * 4, "every step of the other 40");
    assert_eq!(test.state("SB-SUCCESS-0299").await, State::Delivered);
    assert_eq!(test.state("SB-SUCCESS-0000").await, State::LabelGenerated);
    assert_eq!(take().await, []);
    let query = check_list([]).unwrap();
    let listed = test.service.list_parcels(&test.caller, &query, Language::En);
    let listed = tokio::time::timeout(limit, listed).await.expect("it ends");
    assert_eq!(listed.unwrap().1.total, 300);
}

#[tokio::test]
async fn a_hold_lasts_one_hour_to_the_millisecond() {
    let test = TestService::in_memory().await;
    test.create("SB-CUSTOMS-0001").await;
    let hour_after_hold = START.plus(70 * Millis::MINUTE);
    for (now, state) in [
        (START.plus(10 * Millis::MINUTE), State::CustomsHold),
        (hour_after_hold.plus(-1), State::CustomsHold),
        (hour_after_hold, State::CustomsClearance),
    ] {
        test.clock.set(now);
        test.history("SB-CUSTOMS-0001").await;
        assert_eq!(test.state("SB-CUSTOMS-0001").await, state, "{now:?}");
    }
}

#[tokio::test]
async fn a_void_ends_a_journey_and_a_manifest_does_not() {
    let test = TestService::in_memory().await;
    for number in ["SB-SUCCESS-0001", "SB-SUCCESS-0002"] {
        test.create(number).await;
    }
    test.clock.set(START.plus(5 * Millis::MINUTE - 1));
    test.void("SB-SUCCESS-0001").await.unwrap();
    test.manifest("SB-SUCCESS-0002").await.unwrap();
    assert_eq!(test.state("SB-SUCCESS-0002").await, State::ManifestSubmitted);
    test.clock.set(START.plus(Millis::DAY));
    assert_eq!(test.service.take_due_steps().await.unwrap().len(), 4);
    assert_eq!(test.state("SB-SUCCESS-0001").await, State::Voided);
    assert_eq!(test.state("SB-SUCCESS-0002").await, State::Delivered);
}

#[tokio::test]
async fn states_can_be_voided_or_manifested_as_the_table_says() {
    for (index, (state, next)) in TRANSITIONS.into_iter().enumerate() {
        let test = TestService::in_memory().await;
        let (one, other) = (format!("SB-VOIDED-{index:04}"), format!("SB-FLOWN-{index:04}"));
        for number in [&one, &other] {
            test.create(number).await;
            test.force_state(number, state).await;
        }
        let may_void = next.contains(&State::Voided) && Cause::Void.allows(State::Voided);
        let refused = test.void(&one).await.err().map(|refusal| refusal.code);
        let expected =
            (!may_void && state != State::Voided).then_some(ErrorCode::ParcelNotVoidable);
        assert_eq!(refused, expected, "{state:?}");
        let expected = if may_void { State::Voided } else { state };
        assert_eq!(test.state(&one).await, expected, "{state:?}");
        let may_be_manifested = next.contains(&State::ManifestSubmitted);
        let refused = test.manifest(&other).await.err().map(|refusal| refusal.code);
        assert_eq!(
            refused,
            (!may_be_manifested).then_some(ErrorCode::ManifestParcelsRejected),
            "{state:?}"
        );
        let expected = if may_be_manifested { State::ManifestSubmitted } else { state };
        assert_eq!(test.state(&other).await, expected, "{state:?}");
    }
}

#[tokio::test]
async fn due_steps_are_taken_before_a_list_or_a_manifest() {
    let list = async |test: &TestService| {
        let query = check_list([("status".into(), "CUSTOMS_CLEARANCE".into())]).unwrap();
        let listed = test.service.list_parcels(&test.caller, &query, Language::En).await;
        listed.unwrap().1.total
    };
    for is_list_first in [true, false] {
        let test = TestService::in_memory().await;
        test.create("SB-SUCCESS-0001").await;
        assert_eq!(list(&test).await, 0);
        test.clock.set(START.plus(5 * Millis::MINUTE));
        if is_list_first {
            assert_eq!(list(&test).await, 1);
        }
        let refused = test.manifest("SB-SUCCESS-0001").await.unwrap_err();
        assert_eq!(refused.code, ErrorCode::ManifestParcelsRejected);
        assert_eq!(list(&test).await, 1);
    }
}

#[tokio::test]
async fn a_slow_list_does_not_delay_orders() {
    let folder = tempfile::tempdir().unwrap();
    let test =
        TestService::with_store(Store::open(&folder.path().join("parcelo.db"), [1; 32]).unwrap())
            .await;
    let release = hold_list("shop-slow-list");
    let query = check_list([("externalOrderId".into(), "shop-slow-list".into())]).unwrap();
    // The runtime has one thread: a list that blocked it would hold up the order.
    let list = test.service.list_parcels(&test.caller, &query, Language::En);
    let order = async {
        test.create("SB-SUCCESS-0001").await;
        "the order"
    };
    tokio::pin!(list);
    let first = tokio::select! {
        biased;
        _ = &mut list => "the list",
        first = order => first,
    };
    assert_eq!(first, "the order", "the order is answered first");
    drop(release);
    let (_, page) = list.await.unwrap();
    assert_eq!(page.total, 0);
}
