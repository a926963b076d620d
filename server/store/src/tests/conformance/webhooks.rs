//! Webhooks: endpoints, the outbox, leases and the outcomes of deliveries.

use parcelo::webhook::Secret;
use parcelo_domain::{
    Changes, Millis, State, Tenant, TraceContext,
    sample::TEST_AUTHOR,
    webhooks::{
        AttemptResult, DeliveryLease, DeliveryStatus, DisabledBy, Endpoint, EndpointResponse,
        EventSubject, LEASE_MILLIS, OutboxEvent, RetryDecision, UNBLOCKED_AFTER_FAILURES,
        WebhookEventKind, WebhookEventKinds,
    },
};
use tokio::time::timeout;
use ulid::Ulid;

use super::{
    NOW, changes_to, commit, create, create_parcel, empty_changes, move_parcel, row, sandbox,
};
use crate::{
    CommitOutcome, EventsToReplay, Settled, Store, endpoints::disable_by_server, sql::Sql,
};

conformance_tests!(
    an_endpoint_is_set_up_changed_turned_off_and_removed,
    a_replaced_secret_stays_beside_the_new_one,
    without_an_endpoint_nothing_is_enqueued,
    due_events_are_leased_once_until_their_lease_ends,
    leases_of_a_server_that_has_ended_are_due_at_once,
    events_of_a_parcel_are_sent_in_order,
    events_that_wait_for_an_earlier_one_are_not_stranded,
    a_parcel_has_its_events_newest_first_for_its_tenant_alone,
    a_later_change_does_not_alter_the_payload_of_an_event,
    an_event_keeps_the_trace_of_its_request,
    settling_logs_the_attempt_and_updates_its_event,
    a_success_less_than_a_second_before_an_event_keeps_its_endpoint_on,
    a_late_answer_changes_nothing,
    forgetting_an_event_deletes_its_log,
    missed_events_are_counted_and_replayed,
    an_event_that_waits_for_its_next_attempt_is_due_at_once_after_a_replay,
    a_replay_keeps_the_order_of_a_parcels_pending_events,
    an_endpoint_fails_from_the_first_attempt_until_its_events_are_settled,
    many_events_are_held_and_replayed_in_pages_and_in_order,
    enabling_an_endpoint_while_holding_strands_no_event,
    nothing_is_replayed_to_an_endpoint_that_is_off,
    setting_the_clock_back_reschedules_deliveries,
    old_events_are_purged,
    an_enqueued_event_wakes_the_dispatcher,
);

pub(crate) fn endpoint(tenant: Tenant) -> Endpoint {
    Endpoint {
        tenant,
        url: "https://shop.example/".to_owned(),
        kinds: WebhookEventKinds::default(),
        secret: Secret::from_random(&[7; 32]),
        old: Vec::new(),
        disabled: None,
        created_at: NOW,
    }
}

/// Enqueues a test event; the number becomes the random part of its id.
pub(crate) async fn enqueue(store: &Store, tenant: Tenant, event: u64) {
    let event = Ulid::from_parts(1, event.into());
    let kind = WebhookEventKind::Test;
    let test = OutboxEvent { event, kind, sequence: None, previous: None, at: NOW };
    store.enqueue(tenant, test, None).await.unwrap();
}

pub(crate) async fn lease(
    store: &Store,
    tenant: Tenant,
    max: usize,
    now: Millis,
) -> Vec<DeliveryLease> {
    let leased = store.lease(vec![(tenant, max)], now).await.unwrap();
    leased.events.into_iter().map(|(_, lease)| lease).collect()
}

pub(crate) fn outcome(at: Millis, status: u16) -> AttemptResult {
    let response = EndpointResponse { status, retry_after: None, body_prefix: b"so".to_vec() };
    AttemptResult { at, millis: 1, response: Ok(response) }
}

/// Creates a tenant with an endpoint and this many waiting test events.
async fn tenant_with_endpoint(store: &Store, events: u64) -> Tenant {
    let tenant = sandbox(1);
    store.set_endpoint(endpoint(tenant), &TEST_AUTHOR).await.unwrap();
    for event in 0..events {
        enqueue(store, tenant, event).await;
    }
    tenant
}

async fn statuses(store: &Store, tenant: Tenant) -> Vec<DeliveryStatus> {
    let log = store.deliveries(tenant, 9).await.unwrap();
    log.iter().map(|logged| logged.delivery_status).collect()
}

async fn an_endpoint_is_set_up_changed_turned_off_and_removed(store: Store) {
    let tenant = sandbox(1);
    assert!(store.endpoint(tenant).await.unwrap().is_none());
    assert_eq!(store.disabled_endpoint(tenant).await.unwrap(), None);
    let first = store.set_endpoint(endpoint(tenant), &TEST_AUTHOR).await.unwrap();
    let other = Endpoint {
        url: "https://shop.example/other".to_owned(),
        secret: Secret::from_random(&[8; 32]),
        ..endpoint(tenant)
    };
    let changed = store.set_endpoint(other.clone(), &TEST_AUTHOR).await.unwrap();
    assert_eq!((changed.url.as_str(), changed.tenant), (other.url.as_str(), tenant));
    assert_eq!(changed.secret.as_bytes(), first.secret.as_bytes(), "it keeps its secret");
    assert!(store.endpoint(sandbox(2)).await.unwrap().is_none(), "no other tenant has it");
    enqueue(&store, tenant, 1).await;
    store.disable_endpoint(tenant, DisabledBy::Operator, &TEST_AUTHOR).await.unwrap();
    assert_eq!(store.disabled_endpoint(tenant).await.unwrap(), Some((DisabledBy::Operator, 1)));
    store.enable_endpoint(tenant, &TEST_AUTHOR).await.unwrap();
    assert_eq!(store.disabled_endpoint(tenant).await.unwrap(), None);
    store.remove_endpoint(tenant, &TEST_AUTHOR).await.unwrap();
    assert!(store.endpoint(tenant).await.unwrap().is_none());
    assert_eq!(statuses(&store, tenant).await, [DeliveryStatus::Held], "held for a later endpoint");
}

async fn a_replaced_secret_stays_beside_the_new_one(store: Store) {
    let tenant = tenant_with_endpoint(&store, 0).await;
    store
        .rotate_secret(tenant, (None, Secret::from_random(&[8; 32])), NOW, &TEST_AUTHOR)
        .await
        .unwrap();
    let found = store.endpoint(tenant).await.unwrap().unwrap();
    assert_eq!(found.secret.as_bytes(), Secret::from_random(&[8; 32]).as_bytes());
    assert_eq!(found.old.len(), 1);
    assert_eq!(found.old[0].0.as_bytes(), Secret::from_random(&[7; 32]).as_bytes());
    assert!(found.old[0].1 > NOW);
    // It replaces only the named secret, if one is named.
    for (replaced, is_done) in [(7, false), (8, true), (8, false)] {
        let secrets = (Some(Secret::from_random(&[replaced; 32])), Secret::from_random(&[9; 32]));
        let done = store.rotate_secret(tenant, secrets, NOW, &TEST_AUTHOR).await.unwrap();
        assert_eq!(done, is_done, "{replaced}");
    }
    assert_eq!(store.endpoint(tenant).await.unwrap().unwrap().old.len(), 2);
}

async fn without_an_endpoint_nothing_is_enqueued(store: Store) {
    create_parcel(&store, sandbox(1), "SB-SUCCESS-0001").await;
    enqueue(&store, sandbox(1), 1).await;
    assert!(store.deliveries(sandbox(1), 9).await.unwrap().is_empty());
    assert_eq!(store.next_delivery().await.unwrap(), None);
    assert!(store.backlogs().await.unwrap().is_empty());
}

async fn due_events_are_leased_once_until_their_lease_ends(store: Store) {
    let tenant = tenant_with_endpoint(&store, 3).await;
    assert_eq!(store.tenants_with_due(NOW.plus(-1), 9).await.unwrap(), []);
    assert_eq!(store.tenants_with_due(NOW, 9).await.unwrap(), [tenant]);
    assert_eq!(store.next_delivery().await.unwrap(), Some(NOW));
    let leased = lease(&store, tenant, 2, NOW).await;
    assert_eq!(leased.len(), 2);
    assert_eq!(leased[0].attempt.number, 1);
    assert_eq!(lease(&store, tenant, 9, NOW).await.len(), 1, "only the event not leased yet");
    assert!(lease(&store, tenant, 9, NOW.plus(LEASE_MILLIS - 1)).await.is_empty());
    assert_eq!(store.next_delivery().await.unwrap(), Some(NOW.plus(LEASE_MILLIS)));
    let again = lease(&store, tenant, 9, NOW.plus(LEASE_MILLIS)).await;
    assert_eq!(again.len(), 3);
    assert!(again[0].number > leased[0].number, "lease numbers are not reused");
}

async fn leases_of_a_server_that_has_ended_are_due_at_once(store: Store) {
    let tenant = tenant_with_endpoint(&store, 1).await;
    let lost = lease(&store, tenant, 1, NOW).await.remove(0);
    store.end_leases(NOW.plus(1)).await.unwrap();
    store.hold_all().await.unwrap();
    let again = lease(&store, tenant, 1, NOW.plus(1)).await.remove(0);
    assert_eq!(again.attempt.event, lost.attempt.event);
}

async fn events_of_a_parcel_are_sent_in_order(store: Store) {
    let tenant = tenant_with_endpoint(&store, 0).await;
    let parcel = create_parcel(&store, tenant, "SB-SUCCESS-0001").await;
    commit(&store, changes_to(&parcel, vec![move_parcel(&parcel, State::InTransit, 5)])).await;
    let all = store.deliveries(tenant, 9).await.unwrap();
    let mut sequences = Vec::new();
    for _ in 0..all.len() {
        let [one] =
            <[DeliveryLease; 1]>::try_from(lease(&store, tenant, 9, NOW.plus(9)).await).unwrap();
        sequences.push(one.sequence);
        store.settle(one, outcome(NOW.plus(9), 200), RetryDecision::Delivered).await.unwrap();
    }
    assert!(sequences.len() >= 2 && sequences.is_sorted(), "{sequences:?}");
    assert!(lease(&store, tenant, 9, NOW.plus(9)).await.is_empty());
}

async fn events_that_wait_for_an_earlier_one_are_not_stranded(store: Store) {
    let tenant = tenant_with_endpoint(&store, 0).await;
    let parcel = create_parcel(&store, tenant, "SB-SUCCESS-0001").await;
    commit(&store, changes_to(&parcel, vec![move_parcel(&parcel, State::InTransit, 5)])).await;
    assert_eq!(store.release_stranded(NOW).await.unwrap(), 0);
    assert_eq!(lease(&store, tenant, 9, NOW.plus(9)).await.len(), 1);
    assert_eq!(store.release_stranded(NOW).await.unwrap(), 0, "nor while the earlier is leased");
}

async fn a_parcel_has_its_events_newest_first_for_its_tenant_alone(store: Store) {
    let tenant = tenant_with_endpoint(&store, 1).await;
    let [parcel, other] = ["SB-SUCCESS-0001", "SB-SUCCESS-0002"];
    let parcel = create_parcel(&store, tenant, parcel).await;
    create_parcel(&store, tenant, other).await;
    commit(&store, changes_to(&parcel, vec![move_parcel(&parcel, State::InTransit, 5)])).await;
    let first = lease(&store, tenant, 9, NOW).await;
    let first = first.into_iter().find(|lease| lease.parcel == Some(parcel.key)).unwrap();
    let retry = RetryDecision::Retry { at: NOW.plus(9) };
    store.settle(first, outcome(NOW, 500), retry).await.unwrap();
    let all = store.deliveries(tenant, 9).await.unwrap();
    let own: Vec<_> = all
        .into_iter()
        .filter(|event| event.tracking_number == Some(parcel.tracking_number.to_string()))
        .collect();
    assert!(own.len() >= 2 && own.last().unwrap().attempts.len() == 1, "{own:?}");
    let found = async |tenant, max| store.parcel_deliveries(tenant, parcel.key, max).await.unwrap();
    assert_eq!(found(tenant, 9).await, own);
    assert_eq!(found(tenant, 1).await, own[..1]);
    assert_eq!(found(sandbox(2), 9).await, []);
    store.reset(tenant).await.unwrap();
    assert_eq!(found(tenant, 9).await, []);
}

async fn a_later_change_does_not_alter_the_payload_of_an_event(store: Store) {
    let tenant = tenant_with_endpoint(&store, 0).await;
    let parcel = create_parcel(&store, tenant, "SB-SUCCESS-0001").await;
    let leased = lease(&store, tenant, 1, NOW).await.remove(0);
    commit(&store, changes_to(&parcel, vec![move_parcel(&parcel, State::InTransit, 5)])).await;
    let payload = store.payload(&leased).await.unwrap().unwrap();
    assert_eq!((payload.event, payload.kind), (leased.attempt.event, leased.kind));
    {
        let logged = store.logged_payload(tenant, payload.event).await.unwrap();
        assert_eq!(logged.as_ref(), Some(&payload), "its tenant can read it at any time");
        assert_eq!(store.logged_payload(sandbox(2), payload.event).await.unwrap(), None);
    }
    let EventSubject::Parcel { parcel: subject, event, .. } = payload.subject else { panic!() };
    assert_eq!((subject.key, Some(event.sequence)), (parcel.key, leased.sequence));
    store.reset(tenant).await.unwrap();
    assert!(store.payload(&leased).await.unwrap().is_none(), "its parcel is deleted");
    assert!(store.logged_payload(tenant, leased.attempt.event).await.unwrap().is_none());
}

async fn an_event_keeps_the_trace_of_its_request(store: Store) {
    let tenant = tenant_with_endpoint(&store, 1).await;
    let trace = Some(TraceContext::from_bytes([7; 17]));
    commit(&store, Changes { trace, ..create(tenant, "SB-TRACED-0001", 1) }).await;
    commit(&store, create(tenant, "SB-UNTRACED-01", 2)).await;
    let parcel = row(&store, "SB-UNTRACED-01").await.unwrap();
    let moved = changes_to(&parcel, vec![move_parcel(&parcel, State::InTransit, 5)]);
    commit(&store, Changes { trace, ..moved }).await;
    let mut traces = Vec::new();
    for _ in 0..2 {
        for one in lease(&store, tenant, 9, NOW.plus(9)).await {
            traces.push((one.sequence, one.trace));
            store.settle(one, outcome(NOW.plus(9), 200), RetryDecision::Delivered).await.unwrap();
        }
    }
    assert_eq!(traces, [(None, None), (Some(2), trace), (Some(2), None), (Some(3), trace)]);
}

async fn settling_logs_the_attempt_and_updates_its_event(store: Store) {
    let later = NOW.plus(5_000);
    let table = [
        (RetryDecision::Delivered, DeliveryStatus::Delivered, Settled::Counted),
        (RetryDecision::Retry { at: later }, DeliveryStatus::Ready, Settled::Counted),
        (RetryDecision::Unreadable, DeliveryStatus::Failed, Settled::Counted),
        (RetryDecision::Gone, DeliveryStatus::Failed, Settled::EndpointDisabled(DisabledBy::Gone)),
        (
            RetryDecision::GivenUp,
            DeliveryStatus::Failed,
            Settled::EndpointDisabled(DisabledBy::Failures),
        ),
    ];
    for (account, (decision, status, settled)) in (1..).zip(table) {
        let tenant = sandbox(account);
        store.set_endpoint(endpoint(tenant), &TEST_AUTHOR).await.unwrap();
        enqueue(&store, tenant, account.unsigned_abs()).await;
        let one = lease(&store, tenant, 1, NOW).await.remove(0);
        let answer = store.settle(one, outcome(NOW.plus(3), 500), decision).await.unwrap();
        assert_eq!(answer, settled, "{decision:?}");
        let logged = store.deliveries(tenant, 9).await.unwrap().remove(0);
        assert_eq!(logged.delivery_status, status, "{decision:?}");
        let attempt = &logged.attempts[0];
        assert_eq!((attempt.number, attempt.at, attempt.status), (1, NOW.plus(3), Some(500)));
        assert_eq!(attempt.response, b"so");
        let due = matches!(decision, RetryDecision::Retry { .. }).then_some(later);
        assert_eq!(logged.due, due, "{decision:?}");
    }
}

async fn a_success_less_than_a_second_before_an_event_keeps_its_endpoint_on(store: Store) {
    let disabled = Settled::EndpointDisabled(DisabledBy::Failures);
    for (account, since, expected) in [(1, 999, Settled::Counted), (2, 1_000, disabled)] {
        let tenant = sandbox(account);
        store.set_endpoint(endpoint(tenant), &TEST_AUTHOR).await.unwrap();
        let attempts = [
            (NOW, RetryDecision::Delivered, Settled::Counted),
            (NOW.plus(since), RetryDecision::GivenUp, expected),
        ];
        for (event, (at, decision, expected)) in (account.unsigned_abs() * 10..).zip(attempts) {
            enqueue(&store, tenant, event).await;
            let one = lease(&store, tenant, 1, at).await.remove(0);
            let settled = store.settle(one, outcome(at, 200), decision).await.unwrap();
            assert_eq!(settled, expected, "{since} ms after a success: {decision:?}");
        }
    }
}

async fn a_late_answer_changes_nothing(store: Store) {
    let tenant = tenant_with_endpoint(&store, 1).await;
    let late = lease(&store, tenant, 1, NOW).await.remove(0);
    let own = lease(&store, tenant, 1, NOW.plus(LEASE_MILLIS)).await.remove(0);
    store
        .settle(own, outcome(NOW.plus(LEASE_MILLIS), 200), RetryDecision::Delivered)
        .await
        .unwrap();
    store.reset(tenant).await.unwrap();
    let settled = store.settle(late, outcome(NOW, 410), RetryDecision::Gone).await.unwrap();
    assert_eq!(settled, Settled::Late);
    assert!(store.endpoint(tenant).await.unwrap().unwrap().disabled.is_none());
}

async fn forgetting_an_event_deletes_its_log(store: Store) {
    let (one, other) = (sandbox(1), sandbox(2));
    for (tenant, event) in [(one, 1), (other, 2)] {
        store.set_endpoint(endpoint(tenant), &TEST_AUTHOR).await.unwrap();
        if tenant == other {
            store.forget(lease(&store, one, 1, NOW).await.remove(0)).await.unwrap();
        }
        enqueue(&store, tenant, event).await;
        if tenant == one {
            let lease = lease(&store, one, 1, NOW).await.remove(0);
            let decision = RetryDecision::Retry { at: NOW };
            let settled = store.settle(lease, outcome(NOW, 500), decision).await.unwrap();
            assert_eq!(settled, Settled::Counted);
        }
    }
    assert!(store.deliveries(one, 10).await.unwrap().is_empty());
    let log = store.deliveries(other, 10).await.unwrap();
    assert_eq!((log.len(), log[0].attempts.len()), (1, 0), "the forgotten event's are deleted");
}

async fn missed_events_are_counted_and_replayed(store: Store) {
    let tenant = tenant_with_endpoint(&store, 2).await;
    assert!(!store.has_missed(tenant).await.unwrap());
    let failed = lease(&store, tenant, 1, NOW).await.remove(0);
    let event = failed.attempt.event;
    store.settle(failed, outcome(NOW, 500), RetryDecision::Unreadable).await.unwrap();
    assert!(store.has_missed(tenant).await.unwrap());
    let [backlog] = store.backlogs().await.unwrap().try_into().unwrap();
    assert_eq!((backlog.tenant, backlog.is_held, backlog.events), (tenant, false, 1));
    assert!(store.has_event(tenant, event).await.unwrap());
    assert!(!store.has_event(sandbox(2), event).await.unwrap(), "no other tenant has it");
    assert_eq!(store.replay(tenant, EventsToReplay::One(event), NOW).await.unwrap(), 1);
    assert!(!store.has_missed(tenant).await.unwrap());
    assert_eq!(lease(&store, tenant, 9, NOW).await.len(), 2);
    let newest = store.deliveries(tenant, 1).await.unwrap().remove(0).event;
    let older = store.older_deliveries(tenant, 1, 9).await.unwrap();
    assert_eq!(older.len(), 1);
    assert_ne!(older[0].event, newest);
}

async fn an_event_that_waits_for_its_next_attempt_is_due_at_once_after_a_replay(store: Store) {
    let tenant = tenant_with_endpoint(&store, 2).await;
    let [failed, leased] =
        <[DeliveryLease; 2]>::try_from(lease(&store, tenant, 9, NOW).await).unwrap();
    let (event, retry) = (failed.attempt.event, RetryDecision::Retry { at: NOW.plus(Millis::DAY) });
    store.settle(failed, outcome(NOW, 500), retry).await.unwrap();
    let now = NOW.plus(9);
    let replay = async |selection| store.replay(tenant, selection, now).await.unwrap();
    assert_eq!(replay(EventsToReplay::One(leased.attempt.event)).await, 0, "it is being sent");
    assert_eq!(replay(EventsToReplay::One(event)).await, 1);
    assert_eq!(replay(EventsToReplay::One(event)).await, 0, "it is due already");
    let again = lease(&store, tenant, 9, now).await;
    let attempts: Vec<_> =
        again.iter().map(|one| (one.attempt.event, one.attempt.number)).collect();
    assert_eq!(attempts, [(event, 1)], "with all its attempts");
    for one in again {
        store.settle(one, outcome(now, 500), retry).await.unwrap();
    }
    assert_eq!(replay(EventsToReplay::MissedSince(NOW.plus(1))).await, 0, "it is older");
    assert_eq!(replay(EventsToReplay::MissedSince(NOW)).await, 1);
    assert_eq!(lease(&store, tenant, 9, now).await.len(), 1);
    let answer = store.settle(leased, outcome(now, 200), RetryDecision::Delivered).await;
    assert_eq!(
        answer.unwrap(),
        Settled::Counted,
        "the event that was being sent is not sent twice"
    );
}

async fn a_replay_keeps_the_order_of_a_parcels_pending_events(store: Store) {
    let tenant = tenant_with_endpoint(&store, 0).await;
    let parcel = create_parcel(&store, tenant, "SB-SUCCESS-0001").await;
    commit(&store, changes_to(&parcel, vec![move_parcel(&parcel, State::InTransit, 5)])).await;
    let now = NOW.plus(9);
    // The second event overtakes the first after its third failure, and its next attempt is earlier.
    for pause in [Millis::DAY, Millis::HOUR] {
        let mut failed = lease(&store, tenant, 9, now).await.remove(0);
        failed.attempt.number = UNBLOCKED_AFTER_FAILURES;
        let retry = RetryDecision::Retry { at: now.plus(pause) };
        store.settle(failed, outcome(now, 500), retry).await.unwrap();
    }
    assert_eq!(store.replay(tenant, EventsToReplay::MissedSince(Millis(0)), now).await.unwrap(), 2);
    let mut sequences = Vec::new();
    for _ in 0..2 {
        let [one] = <[DeliveryLease; 1]>::try_from(lease(&store, tenant, 9, now).await).unwrap();
        sequences.push(one.sequence);
        store.settle(one, outcome(now, 200), RetryDecision::Delivered).await.unwrap();
    }
    assert_eq!(sequences, [Some(2), Some(3)]);
}

async fn an_endpoint_fails_from_the_first_attempt_until_its_events_are_settled(store: Store) {
    let tenant = tenant_with_endpoint(&store, 2).await;
    let failing_since = async |tenant| store.failing_since(tenant).await.unwrap();
    let [first, second] =
        <[DeliveryLease; 2]>::try_from(lease(&store, tenant, 9, NOW).await).unwrap();
    assert_eq!(failing_since(tenant).await, None, "an attempt in progress is not a failure");
    let again = NOW.plus(Millis::MINUTE);
    let retry = RetryDecision::Retry { at: again };
    store.settle(first, outcome(NOW.plus(3), 500), retry).await.unwrap();
    assert_eq!(failing_since(tenant).await, Some(NOW));
    assert_eq!(failing_since(sandbox(2)).await, None, "another tenant's");
    store.settle(second, outcome(NOW.plus(3), 204), RetryDecision::Delivered).await.unwrap();
    assert_eq!(failing_since(tenant).await, Some(NOW));
    let leased = lease(&store, tenant, 9, again).await.remove(0);
    assert_eq!(failing_since(tenant).await, Some(NOW), "nor does an attempt in progress end it");
    store.settle(leased, outcome(again, 204), RetryDecision::Delivered).await.unwrap();
    assert_eq!(failing_since(tenant).await, None);
    enqueue(&store, tenant, 3).await;
    let leased = lease(&store, tenant, 9, again).await.remove(0);
    store.settle(leased, outcome(again, 500), RetryDecision::Retry { at: again }).await.unwrap();
    assert_eq!(failing_since(tenant).await, Some(again));
    store.disable_endpoint(tenant, DisabledBy::Operator, &TEST_AUTHOR).await.unwrap();
    assert_eq!(failing_since(tenant).await, None, "a held event is not tried");
}

async fn many_events_are_held_and_replayed_in_pages_and_in_order(store: Store) {
    let tenant = tenant_with_endpoint(&store, 600).await;
    let commits = || store.stats().commits;
    let before = commits();
    store.disable_endpoint(tenant, DisabledBy::Operator, &TEST_AUTHOR).await.unwrap();
    assert!(commits() - before >= 3, "{}", commits() - before);
    let held = store.deliveries(tenant, 1_000).await.unwrap();
    assert_eq!(held.len(), 600);
    assert!(held.iter().all(|logged| logged.delivery_status == DeliveryStatus::Held));
    store.enable_endpoint(tenant, &TEST_AUTHOR).await.unwrap();
    let before = commits();
    let missed = EventsToReplay::MissedSince(Millis(0));
    assert_eq!(store.replay(tenant, missed, NOW).await.unwrap(), 600);
    assert!(commits() - before >= 3, "{}", commits() - before);
    let events = lease(&store, tenant, 1_000, NOW).await;
    assert!(events.iter().map(|lease| lease.attempt.event.random()).eq(0..600), "oldest first");
    let retry = RetryDecision::Retry { at: NOW.plus(Millis::DAY) };
    for failed in events.into_iter().take(260) {
        store.settle(failed, outcome(NOW, 500), retry).await.unwrap();
    }
    assert_eq!(store.replay(tenant, missed, NOW).await.unwrap(), 260, "the others are being sent");
    let events = lease(&store, tenant, 1_000, NOW).await;
    assert!(events.iter().map(|lease| lease.attempt.event.random()).eq(0..260), "oldest first");
}

async fn enabling_an_endpoint_while_holding_strands_no_event(store: Store) {
    let tenant = tenant_with_endpoint(&store, 0).await;
    let mut parcels = Vec::new();
    for number in 0..130 {
        parcels.push(create_parcel(&store, tenant, &format!("SB-HOLDING-{number:04}")).await);
    }
    for parcel in &parcels {
        commit(&store, changes_to(parcel, vec![move_parcel(parcel, State::InTransit, 5)])).await;
    }
    let off =
        async move |db: Sql<'_>| disable_by_server(db, tenant, DisabledBy::Operator, NOW).await;
    assert!(store.write(off).await.unwrap());
    assert!(store.hold_page(tenant).await.unwrap() >= 250);
    // If the endpoint is on again before the next page, nothing more is held.
    store.enable_endpoint(tenant, &TEST_AUTHOR).await.unwrap();
    let log = store.deliveries(tenant, 1_000).await.unwrap();
    let waiting = log.iter().filter(|logged| logged.delivery_status == DeliveryStatus::Waiting);
    assert_eq!((log.len(), waiting.count()), (260, 0), "no event waits behind a held one");
}

async fn nothing_is_replayed_to_an_endpoint_that_is_off(store: Store) {
    let tenant = tenant_with_endpoint(&store, 0).await;
    store.disable_endpoint(tenant, DisabledBy::Operator, &TEST_AUTHOR).await.unwrap();
    enqueue(&store, tenant, 1).await;
    assert_eq!(store.replay(tenant, EventsToReplay::MissedSince(Millis(0)), NOW).await.unwrap(), 0);
    assert_eq!(statuses(&store, tenant).await, [DeliveryStatus::Held]);
}

async fn setting_the_clock_back_reschedules_deliveries(store: Store) {
    let tenant = tenant_with_endpoint(&store, 1).await;
    let fast_clock = NOW.plus(Millis::DAY);
    let one = lease(&store, tenant, 1, fast_clock).await.remove(0);
    let decision = RetryDecision::Retry { at: fast_clock.plus(5) };
    store.settle(one, outcome(fast_clock, 500), decision).await.unwrap();
    assert_eq!(store.reschedule_deliveries(NOW).await.unwrap(), 1);
    assert_eq!(store.next_delivery().await.unwrap(), Some(NOW.plus(5)), "after its own pause");
    assert_eq!(store.reschedule_deliveries(NOW.plus(9)).await.unwrap(), 0);
}

async fn old_events_are_purged(store: Store) {
    let tenant = tenant_with_endpoint(&store, 2).await;
    assert_eq!(store.purge_outbox(NOW.plus(-1)).await.unwrap(), 0);
    assert_eq!(store.purge_outbox(NOW).await.unwrap(), 2);
    assert!(store.deliveries(tenant, 9).await.unwrap().is_empty());
    assert_eq!(store.next_delivery().await.unwrap(), None);
}

async fn an_enqueued_event_wakes_the_dispatcher(store: Store) {
    let tenant = tenant_with_endpoint(&store, 0).await;
    commit(&store, create(tenant, "SB-SUCCESS-0001", 1)).await;
    assert!(row(&store, "SB-SUCCESS-0001").await.is_some());
    timeout(crate::waiting::LONG, store.outbox_changed()).await.unwrap();
    assert_eq!(store.commit(empty_changes()).await, CommitOutcome::Committed);
}
