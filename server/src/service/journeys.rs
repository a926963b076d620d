//! Journeys through the whole service on a clock that the test moves: the sandbox's steps with a
//! restart in the middle, and what may follow on each of the 13 states.

mod damage;

use std::{path::Path, sync::Arc};

use parcelo::{Environment, ErrorCode, Language, TrackingNumber, rules::check_list};
use serde_json::{Value, json};

use super::{Caller, CredentialIssuer, Keyed, NewKeyRequest, Refusal, Service, tests::settings};
use crate::{
    clock::{ManualClock, Millis},
    domain::{
        Cause, Changes, Countries, Event, Op, State, audit::BY, sample, scenario::SCENARIOS,
        state::TRANSITIONS,
    },
    ids::Ids,
    store::{CommitOutcome, Store, hold_list},
};

const START: Millis = Millis(1_767_600_000_000);

struct House {
    service: Service,
    clock: Arc<ManualClock>,
    caller: Caller,
}

impl House {
    async fn on(store: Store) -> Self {
        let (ids, clock) = (Arc::new(Ids::seeded(1)), Arc::new(ManualClock::at(START)));
        let settings = settings();
        let request = NewKeyRequest {
            account: "default".to_owned(),
            environment: Environment::Sandbox,
            name: "Test".to_owned(),
            countries: Countries::All,
            ip_list: Vec::new(),
            rate_limit: None,
        };
        let issuer = CredentialIssuer {
            store: &store,
            secrets: &settings.secrets,
            ids: &ids,
            by: BY.clone(),
        };
        let (_, key) = issuer.issue_api_key(request, START).await.unwrap();
        let service = Service::new(store, clock.clone(), ids, settings);
        Self { service, clock, caller: Caller { key: Arc::new(key) } }
    }

    async fn in_memory() -> Self {
        Self::on(Store::memory([1; 32]).unwrap()).await
    }

    /// The same house after its process ended and another began.
    async fn restarted(self, file: &Path) -> Self {
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

    /// The history as everyone reads it.
    async fn history(&self, number: &str) -> Value {
        let record = self.service.track(&self.caller, number, Ok(true), Language::En).await;
        json!(record.unwrap().history)
    }

    async fn void(&self, number: &str) -> Result<(), Refusal> {
        let body =
            json!({ "idempotencyKey": format!("void-{number}"), "trackingNumbers": [number] });
        let request = Keyed { body: &body, header_key: None, request_id: "req_1" };
        self.service.void_orders(&self.caller, request).await.map(drop)
    }

    async fn manifest(&self, number: &str) -> Result<(), Refusal> {
        let body = json!({ "awbNumber": "176-12345675", "trackingNumbers": [number] });
        let request = Keyed { body: &body, header_key: None, request_id: "req_1" };
        self.service.submit_manifest(&self.caller, request).await.map(drop)
    }

    /// Puts a parcel where no decision would put it by itself.
    async fn force(&self, number: &str, state: State) {
        let number = TrackingNumber::parse(number).unwrap();
        let store = self.service.store();
        let parcel = store.parcel(Environment::Sandbox, &number).await.unwrap().unwrap();
        let (sequence, location) = (parcel.last_sequence + 1, "Nowhere".to_owned());
        let event = Event { sequence, state, at: START, location, description: None };
        let ops = vec![Op::Move { parcel: parcel.key, event }];
        let changes = Changes { now: START, idempotency_record: None, expect: Vec::new(), ops };
        assert_eq!(store.commit(changes).await, CommitOutcome::Committed);
    }

    async fn state(&self, number: &str) -> State {
        let number = TrackingNumber::parse(number).unwrap();
        self.service.store().parcel(Environment::Sandbox, &number).await.unwrap().unwrap().state
    }
}

/// Every journey, and a number that chooses none.
fn numbers() -> Vec<String> {
    let mut numbers: Vec<_> = SCENARIOS.iter().map(|one| format!("{}0001", one.prefix)).collect();
    numbers.push("SB-NORMAL-0001".to_owned());
    numbers
}

/// The moments around each step of any journey, and one long after all of them.
fn moments() -> Vec<i64> {
    let minutes = [5, 10, 15, 20, 70, 75];
    let around = minutes.iter().flat_map(|at| [-1, 0, 1].map(|by| at * Millis::MINUTE + by));
    around.chain([0, 24 * Millis::HOUR]).collect()
}

#[tokio::test]
async fn a_restart_at_any_moment_changes_no_journey() {
    let mut undisturbed = Vec::new();
    let house = House::in_memory().await;
    for number in numbers() {
        house.create(&number).await;
    }
    house.clock.set(START.plus(25 * Millis::HOUR));
    for number in numbers() {
        undisturbed.push(house.history(&number).await);
    }
    for moment in moments() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("parcelo.db");
        let house = House::on(Store::open(&file, [1; 32]).unwrap()).await;
        for number in numbers() {
            house.create(&number).await;
        }
        // Half of the process's work is done when it ends; the rest is done by the next one.
        house.clock.set(START.plus(moment));
        house.history("SB-CUSTOMS-0001").await;
        let house = house.restarted(&file).await;
        house.service.take_due_steps().await.unwrap();
        house.clock.set(START.plus(25 * Millis::HOUR));
        for (number, expected) in numbers().iter().zip(&undisturbed) {
            assert_eq!(
                house.history(number).await,
                *expected,
                "{number}, restart after {moment} ms"
            );
        }
    }
}

#[tokio::test]
async fn steps_that_are_due_together_share_a_commit() {
    let house = House::in_memory().await;
    for place in 0..300 {
        house.create(&format!("SB-SUCCESS-{place:04}")).await;
    }
    house.clock.set(START.plus(5 * Millis::MINUTE));
    let before = house.service.store().stats().commits;
    let fired = house.service.take_due_steps().await.unwrap();
    assert_eq!(house.service.store().stats().commits - before, 2);
    let numbers: Vec<_> = fired.iter().map(|one| one.tracking_number.to_string()).collect();
    assert!(numbers.len() == 300 && numbers.is_sorted(), "{numbers:?}");
}

#[tokio::test]
async fn a_step_that_another_has_taken_meanwhile_is_not_taken_again_and_stops_no_other() {
    let house = House::in_memory().await;
    for place in 0..4 {
        house.create(&format!("SB-SUCCESS-{place:04}")).await;
    }
    let now = START.plus(5 * Millis::MINUTE);
    house.clock.set(now);
    let due = house.service.store().due(now, 4).await.unwrap();
    house.history("SB-SUCCESS-0002").await;
    let (outcome, _) = house.service.take_together(&due, now).await;
    assert_eq!(outcome, CommitOutcome::VersionConflict);
    let fired = house.service.take_one_by_one(&due, now).await.unwrap().fired;
    let numbers = fired.iter().map(|one| one.tracking_number.as_str());
    assert!(numbers.eq(["SB-SUCCESS-0000", "SB-SUCCESS-0001", "SB-SUCCESS-0003"]), "{fired:?}");
    for place in 0..4 {
        let history = house.history(&format!("SB-SUCCESS-{place:04}")).await;
        assert_eq!(history.as_array().unwrap().len(), 3, "{history}");
    }
}

#[tokio::test]
async fn a_step_that_can_never_be_taken_holds_up_no_other_and_no_list() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("parcelo.db");
    let house = House::on(Store::open(&file, [1; 32]).unwrap()).await;
    for place in 0..300 {
        house.create(&format!("SB-SUCCESS-{place:04}")).await;
    }
    // The first 260, more than are taken at once, have an event where their next one belongs.
    let damage =
        "INSERT INTO events SELECT id, 3, 1, 0, '', NULL FROM parcels ORDER BY id LIMIT 260";
    assert_eq!(crate::store::damage_file(&file, damage), 260);
    house.clock.set(START.plus(25 * Millis::HOUR));
    let most = std::time::Duration::from_secs(120);
    let take = async || {
        let taken = tokio::time::timeout(most, house.service.take_due_steps()).await;
        taken.expect("it comes to an end").unwrap()
    };
    let fired = take().await;
    assert_eq!(fired.len(), 40 * 4, "every step of the 40 others");
    assert_eq!(house.state("SB-SUCCESS-0299").await, State::Delivered);
    assert_eq!(house.state("SB-SUCCESS-0000").await, State::LabelGenerated);
    assert_eq!(take().await, []);
    let query = check_list([]).unwrap();
    let listed = house.service.list_parcels(&house.caller, &query, Language::En);
    let listed = tokio::time::timeout(most, listed).await.expect("it comes to an end");
    assert_eq!(listed.unwrap().1.total, 300);
}

#[tokio::test]
async fn a_hold_lasts_one_hour_to_the_millisecond() {
    let house = House::in_memory().await;
    house.create("SB-CUSTOMS-0001").await;
    let hour_after_hold = START.plus(70 * Millis::MINUTE);
    for (now, state) in [
        (START.plus(10 * Millis::MINUTE), State::CustomsHold),
        (hour_after_hold.plus(-1), State::CustomsHold),
        (hour_after_hold, State::CustomsClearance),
    ] {
        house.clock.set(now);
        house.history("SB-CUSTOMS-0001").await;
        assert_eq!(house.state("SB-CUSTOMS-0001").await, state, "{now:?}");
    }
}

#[tokio::test]
async fn a_void_ends_a_journey_for_good_and_a_manifest_lets_it_go_on() {
    let house = House::in_memory().await;
    for number in ["SB-SUCCESS-0001", "SB-SUCCESS-0002"] {
        house.create(number).await;
    }
    house.clock.set(START.plus(5 * Millis::MINUTE - 1));
    house.void("SB-SUCCESS-0001").await.unwrap();
    house.manifest("SB-SUCCESS-0002").await.unwrap();
    assert_eq!(house.state("SB-SUCCESS-0002").await, State::ManifestSubmitted);
    house.clock.set(START.plus(Millis::DAY));
    assert_eq!(house.service.take_due_steps().await.unwrap().len(), 4);
    assert_eq!(house.state("SB-SUCCESS-0001").await, State::Voided);
    assert_eq!(house.state("SB-SUCCESS-0002").await, State::Delivered);
}

#[tokio::test]
async fn each_of_the_13_states_can_be_voided_or_manifested_as_the_table_says() {
    for (place, (state, next)) in TRANSITIONS.into_iter().enumerate() {
        let house = House::in_memory().await;
        let (one, other) = (format!("SB-VOIDED-{place:04}"), format!("SB-FLOWN-{place:04}"));
        for number in [&one, &other] {
            house.create(number).await;
            house.force(number, state).await;
        }
        let may_void = next.contains(&State::Voided) && Cause::Void.allows(State::Voided);
        let refused = house.void(&one).await.err().map(|refusal| refusal.code);
        let expected =
            (!may_void && state != State::Voided).then_some(ErrorCode::ParcelNotVoidable);
        assert_eq!(refused, expected, "{state:?}");
        let expected = if may_void { State::Voided } else { state };
        assert_eq!(house.state(&one).await, expected, "{state:?}");
        let may_fly = next.contains(&State::ManifestSubmitted);
        let refused = house.manifest(&other).await.err().map(|refusal| refusal.code);
        assert_eq!(refused, (!may_fly).then_some(ErrorCode::ManifestParcelsRejected), "{state:?}");
        let expected = if may_fly { State::ManifestSubmitted } else { state };
        assert_eq!(house.state(&other).await, expected, "{state:?}");
    }
}

#[tokio::test]
async fn what_is_due_is_done_before_a_list_or_a_manifest_is_decided() {
    let list = async |house: &House| {
        let query = check_list([("status".into(), "CUSTOMS_CLEARANCE".into())]).unwrap();
        let listed = house.service.list_parcels(&house.caller, &query, Language::En).await;
        listed.unwrap().1.total
    };
    for is_list_first in [true, false] {
        let house = House::in_memory().await;
        house.create("SB-SUCCESS-0001").await;
        assert_eq!(list(&house).await, 0);
        house.clock.set(START.plus(5 * Millis::MINUTE));
        if is_list_first {
            assert_eq!(list(&house).await, 1);
        }
        let refused = house.manifest("SB-SUCCESS-0001").await.unwrap_err();
        assert_eq!(refused.code, ErrorCode::ManifestParcelsRejected);
        assert_eq!(list(&house).await, 1);
    }
}

#[tokio::test]
async fn a_list_that_takes_long_holds_up_no_order() {
    let folder = tempfile::tempdir().unwrap();
    let house = House::on(Store::open(&folder.path().join("parcelo.db"), [1; 32]).unwrap()).await;
    let release = hold_list("shop-slow-list");
    let query = check_list([("externalOrderId".into(), "shop-slow-list".into())]).unwrap();
    // The runtime has one thread: a list that keeps it lets no one else have it.
    let list = house.service.list_parcels(&house.caller, &query, Language::En);
    let order = async {
        house.create("SB-SUCCESS-0001").await;
        "the order"
    };
    tokio::pin!(list);
    let first = tokio::select! {
        biased;
        _ = &mut list => "the list",
        first = order => first,
    };
    assert_eq!(first, "the order", "was answered first");
    drop(release);
    let (_, page) = list.await.unwrap();
    assert_eq!(page.total, 0);
}
