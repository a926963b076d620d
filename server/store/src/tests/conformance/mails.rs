//! E-mails: written with their change, sent once, and deleted with their parcel.

use parcelo_domain::{
    AccountRowId, Changes, Millis, ParcelRow, State, StoreOp,
    mail::{
        BURST_DELAY_MILLIS, DisabledMailKinds, DropReason, LEASE_MILLIS, LoggedMail, MailDecision,
        MailKind, MailLease, MailRecipient, MailStatus, OptOut,
    },
    sample::TEST_AUTHOR,
};

use super::{NOW, changes_to, commit, create_parcel, empty_changes, move_parcel, row, sandbox};
use crate::{CommitOutcome, MailBacklog, Store};

conformance_tests!(
    no_e_mails_are_written_unless_enabled,
    an_e_mail_is_committed_with_its_change,
    due_e_mails_are_leased_by_one_sender_until_the_lease_ends,
    an_answer_after_another_lease_changes_nothing,
    a_failed_e_mail_is_due_after_its_pause,
    only_the_last_e_mail_of_a_burst_is_sent,
    a_leased_e_mail_is_not_superseded,
    the_on_its_way_e_mail_is_sent_once,
    a_reset_deletes_e_mails_but_keeps_opt_outs,
    old_e_mails_are_purged,
    e_mails_that_failed_for_good_are_counted_for_their_tenant,
    e_mails_that_wait_to_be_tried_again_are_counted_for_their_tenant,
    the_time_of_enabling_e_mails_is_kept_until_disabled,
    e_mails_are_counted_by_counter_and_period,
    kinds_are_switched_off_for_one_account,
);

const DUE: Millis = Millis(NOW.0 + BURST_DELAY_MILLIS);

/// Moves a parcel through these states, one second apart.
async fn move_through(store: &Store, number: &str, states: &[State]) -> ParcelRow {
    for state in states {
        let parcel = row(store, number).await.unwrap();
        let now = NOW.plus(i64::from(parcel.last_sequence - 2) * Millis::SECOND);
        let changes = changes_to(&parcel, vec![move_parcel(&parcel, *state, 0)]);
        commit(store, Changes { now, ..changes }).await;
    }
    row(store, number).await.unwrap()
}

/// Creates a parcel in a store that sends e-mails, and moves it through these states.
async fn parcel_moved_through(store: &Store, states: &[State]) -> ParcelRow {
    store.send_mails();
    create_parcel(store, sandbox(1), "SB-SUCCESS-0001").await;
    move_through(store, "SB-SUCCESS-0001", states).await
}

async fn lease_due(store: &Store, now: Millis) -> Vec<MailLease> {
    store.lease_mails(now, 10).await.unwrap()
}

async fn mail_log(store: &Store, parcel: &ParcelRow) -> Vec<(MailKind, MailStatus)> {
    let mails = store.mails_of_parcel(parcel.key).await.unwrap();
    mails.into_iter().map(|mail| (mail.kind, mail.status)).collect()
}

async fn settle(store: &Store, lease: &MailLease, decision: MailDecision) -> bool {
    store.settle_mail(lease.id, lease.number, decision).await.unwrap()
}

const SENT: MailDecision = MailDecision::Done(MailStatus::Sent);
const SUPERSEDED: MailStatus = MailStatus::Dropped(DropReason::Superseded);

async fn no_e_mails_are_written_unless_enabled(store: Store) {
    create_parcel(&store, sandbox(1), "SB-SUCCESS-0001").await;
    let parcel =
        move_through(&store, "SB-SUCCESS-0001", &[State::InTransit, State::Delivered]).await;
    assert_eq!(mail_log(&store, &parcel).await, []);
    assert_eq!(store.next_mail().await.unwrap(), None);
}

async fn an_e_mail_is_committed_with_its_change(store: Store) {
    let parcel = parcel_moved_through(&store, &[State::InTransit, State::CustomsHold]).await;
    let mails = store.mails_of_parcel(parcel.key).await.unwrap();
    let expected = [
        (MailRecipient::Receiver, MailKind::OnItsWay, 0),
        (MailRecipient::Receiver, MailKind::Held, 1),
        (MailRecipient::Sender, MailKind::Held, 1),
    ];
    let expected = expected.map(|(recipient, kind, after)| LoggedMail {
        recipient,
        kind,
        at: NOW.plus(after * Millis::SECOND),
        attempts: 0,
        status: MailStatus::Waiting,
    });
    assert_eq!(mails, expected);
    assert_eq!(store.next_mail().await.unwrap(), Some(DUE));

    let stale = ParcelRow { version: parcelo_domain::Version(1), ..parcel.clone() };
    let refused = changes_to(&stale, vec![move_parcel(&parcel, State::InTransit, 9)]);
    assert_eq!(store.commit(refused).await, CommitOutcome::VersionConflict);
    // The second operation is refused, and undoes the first and its e-mail.
    let unknown = ParcelRow { key: parcelo_domain::ParcelRowId(77_777), ..parcel.clone() };
    let ops = [(&parcel, State::ReturnToSender), (&unknown, State::Delivered)];
    let ops = ops.map(|(parcel, state)| move_parcel(parcel, state, 9)).to_vec();
    let refused = store.commit(Changes { ops, ..empty_changes() }).await;
    assert_eq!(refused, CommitOutcome::VersionConflict);
    assert_eq!(store.mails_of_parcel(parcel.key).await.unwrap().len(), 3);
}

async fn due_e_mails_are_leased_by_one_sender_until_the_lease_ends(store: Store) {
    let parcel = parcel_moved_through(&store, &[State::OutForDelivery]).await;
    assert_eq!(lease_due(&store, DUE.plus(-1)).await, []);
    let first = lease_due(&store, DUE).await;
    let [mail] = &first[..] else { panic!("{first:?}") };
    let (kind, recipient) = (MailKind::OutForDelivery, MailRecipient::Receiver);
    let fields = (mail.parcel, mail.kind, mail.recipient, mail.sequence, mail.at, mail.attempt);
    assert_eq!(fields, (parcel.key, kind, recipient, 3, NOW, 1));
    assert_eq!(lease_due(&store, DUE.plus(LEASE_MILLIS - 1)).await, []);
    let second = lease_due(&store, DUE.plus(LEASE_MILLIS)).await;
    assert_eq!((second[0].id, second[0].attempt), (mail.id, 2));
    assert!(settle(&store, &second[0], SENT).await);
    assert_eq!(lease_due(&store, DUE.plus(10 * LEASE_MILLIS)).await, []);
    assert_eq!(mail_log(&store, &parcel).await, [(kind, MailStatus::Sent)]);
    assert_eq!(store.next_mail().await.unwrap(), None);
}

async fn an_answer_after_another_lease_changes_nothing(store: Store) {
    let parcel = parcel_moved_through(&store, &[State::OutForDelivery]).await;
    let late = lease_due(&store, DUE).await;
    let second = lease_due(&store, DUE.plus(LEASE_MILLIS)).await;
    assert!(!settle(&store, &late[0], MailDecision::Done(MailStatus::GivenUp)).await);
    assert!(settle(&store, &second[0], SENT).await);
    assert!(!settle(&store, &second[0], MailDecision::Retry(DUE)).await, "none is settled twice");
    assert_eq!(mail_log(&store, &parcel).await, [(MailKind::OutForDelivery, MailStatus::Sent)]);
}

async fn a_failed_e_mail_is_due_after_its_pause(store: Store) {
    parcel_moved_through(&store, &[State::OutForDelivery]).await;
    let first = lease_due(&store, DUE).await;
    let again = DUE.plus(Millis::HOUR);
    assert!(settle(&store, &first[0], MailDecision::Retry(again)).await);
    assert_eq!(store.next_mail().await.unwrap(), Some(again));
    assert_eq!(lease_due(&store, again.plus(-1)).await, []);
    assert_eq!(lease_due(&store, again).await[0].attempt, 2);
}

async fn only_the_last_e_mail_of_a_burst_is_sent(store: Store) {
    let states = [State::InTransit, State::OutForDelivery, State::DeliveryFailed];
    let parcel = parcel_moved_through(&store, &states).await;
    let mails = lease_due(&store, DUE).await;
    let kinds: Vec<_> = mails.iter().map(|mail| (mail.recipient, mail.kind)).collect();
    // The sender's one is due two seconds later.
    assert_eq!(kinds, [(MailRecipient::Receiver, MailKind::Failed)]);
    let expected = [
        (MailKind::OnItsWay, SUPERSEDED),
        (MailKind::OutForDelivery, SUPERSEDED),
        (MailKind::Failed, MailStatus::Waiting),
        (MailKind::Failed, MailStatus::Waiting),
    ];
    assert_eq!(mail_log(&store, &parcel).await, expected);
    let sender = lease_due(&store, DUE.plus(2 * Millis::SECOND)).await;
    assert_eq!((sender.len(), sender[0].recipient), (1, MailRecipient::Sender));
}

async fn a_leased_e_mail_is_not_superseded(store: Store) {
    let parcel = parcel_moved_through(&store, &[State::OutForDelivery]).await;
    let first = lease_due(&store, DUE).await;
    move_through(&store, "SB-SUCCESS-0001", &[State::Delivered]).await;
    let second = lease_due(&store, DUE.plus(Millis::SECOND)).await;
    assert_eq!(second[0].kind, MailKind::Delivered);
    assert!(settle(&store, &first[0], SENT).await && settle(&store, &second[0], SENT).await);
    let sent = [MailKind::OutForDelivery, MailKind::Delivered].map(|kind| (kind, MailStatus::Sent));
    assert_eq!(mail_log(&store, &parcel).await, sent);
}

async fn the_on_its_way_e_mail_is_sent_once(store: Store) {
    let states = [State::PickedUp, State::InTransit, State::CustomsClearance, State::InTransit];
    let parcel = parcel_moved_through(&store, &states).await;
    assert_eq!(mail_log(&store, &parcel).await, [(MailKind::OnItsWay, MailStatus::Waiting)]);
}

async fn a_reset_deletes_e_mails_but_keeps_opt_outs(store: Store) {
    let parcel = parcel_moved_through(&store, &[State::OutForDelivery]).await;
    store.opt_out([7; 32], OptOut::Unsubscribed, NOW).await.unwrap();
    store.opt_out([7; 32], OptOut::Bounced, NOW).await.unwrap();
    store.reset(sandbox(1)).await.unwrap();
    assert_eq!(mail_log(&store, &parcel).await, []);
    assert_eq!(lease_due(&store, DUE).await, []);
    assert!(store.has_opted_out([7; 32]).await.unwrap());
    assert!(!store.has_opted_out([8; 32]).await.unwrap());
    assert!(store.parcel_in_row(parcel.key).await.unwrap().is_none());

    let again = parcel_moved_through(&store, &[State::OutForDelivery]).await;
    assert_eq!(store.parcel_in_row(again.key).await.unwrap().unwrap().0, again);
    store.purge(NOW).await.unwrap();
    assert_eq!(mail_log(&store, &again).await, [], "a purge deletes them with their parcel");
}

async fn old_e_mails_are_purged(store: Store) {
    let parcel = parcel_moved_through(&store, &[State::InTransit, State::OutForDelivery]).await;
    assert_eq!(store.purge_mails(NOW.plus(-1)).await.unwrap(), 0);
    assert_eq!(store.purge_mails(NOW).await.unwrap(), 1);
    assert_eq!(mail_log(&store, &parcel).await, [(MailKind::OutForDelivery, MailStatus::Waiting)]);
    store.count_mail([([1; 32], NOW), ([2; 32], NOW.plus(1))]).await.unwrap();
    store.purge_mails(NOW).await.unwrap();
    assert_eq!(store.count_mail([([1; 32], NOW), ([2; 32], NOW.plus(1))]).await.unwrap(), [1, 2]);
}

async fn e_mails_that_failed_for_good_are_counted_for_their_tenant(store: Store) {
    let parcel =
        parcel_moved_through(&store, &[State::InTransit, State::OutForDelivery, State::Delivered])
            .await;
    let failed = async |tenant, since| store.failed_mails(tenant, since).await.unwrap();
    assert_eq!(failed(sandbox(1), NOW).await, (0, None));
    let ended = [MailStatus::Sent, MailStatus::Bounced, MailStatus::GivenUp];
    for (count, status) in (0..).zip(ended) {
        for lease in lease_due(&store, DUE.plus(count * Millis::DAY)).await {
            assert!(settle(&store, &lease, MailDecision::Done(status)).await);
        }
        let again = format!("SB-SUCCESS-{:04}", count + 2);
        create_parcel(&store, sandbox(1), &again).await;
        move_through(&store, &again, &[State::OutForDelivery]).await;
    }
    let (mails, latest) = failed(sandbox(1), NOW).await;
    assert_eq!(mails, 2);
    assert!(latest.is_some_and(|latest| latest > parcel.key), "the latest that has one is named");
    assert_eq!(failed(sandbox(1), NOW.plus(Millis::DAY)).await, (0, None));
    assert_eq!(failed(sandbox(2), NOW).await, (0, None), "another tenant's");
    store.reset(sandbox(1)).await.unwrap();
    assert_eq!(failed(sandbox(1), NOW).await, (0, None));
}

async fn e_mails_that_wait_to_be_tried_again_are_counted_for_their_tenant(store: Store) {
    let parcel = parcel_moved_through(&store, &[State::OutForDelivery]).await;
    let (tenant, one) = (sandbox(1), MailBacklog { mails: 1, since: NOW, latest: parcel.key });
    let held = async |tenant| store.held_mails(tenant).await.unwrap();
    let waiting = async || store.waiting_mails().await.unwrap();
    assert_eq!((held(tenant).await, waiting().await), (None, vec![(tenant, one)]));
    let first = lease_due(&store, DUE).await.remove(0);
    assert_eq!(held(tenant).await, None, "its first attempt may succeed");
    let again = DUE.plus(Millis::MINUTE);
    assert!(settle(&store, &first, MailDecision::Retry(again)).await);
    assert_eq!((held(tenant).await, waiting().await), (Some(one), vec![(tenant, one)]));
    assert_eq!(held(sandbox(2)).await, None, "another tenant's");
    let second = lease_due(&store, again).await.remove(0);
    assert_eq!(held(tenant).await, Some(one), "it has failed before");
    assert!(settle(&store, &second, MailDecision::Retry(again)).await);
    create_parcel(&store, tenant, "SB-SUCCESS-0002").await;
    let other = move_through(&store, "SB-SUCCESS-0002", &[State::OutForDelivery]).await;
    let both = MailBacklog { mails: 2, since: NOW, latest: other.key };
    assert_eq!((held(tenant).await, waiting().await), (Some(one), vec![(tenant, both)]));
    for lease in lease_due(&store, again).await {
        assert!(settle(&store, &lease, SENT).await);
    }
    assert_eq!((held(tenant).await, waiting().await), (None, vec![]));
    create_parcel(&store, tenant, "SB-SUCCESS-0003").await;
    move_through(&store, "SB-SUCCESS-0003", &[State::OutForDelivery]).await;
    let lease = lease_due(&store, again).await.remove(0);
    assert!(settle(&store, &lease, MailDecision::Retry(again)).await);
    store.reset(tenant).await.unwrap();
    assert_eq!((held(tenant).await, waiting().await), (None, vec![]), "gone with their parcels");
}

async fn the_time_of_enabling_e_mails_is_kept_until_disabled(store: Store) {
    assert_eq!(store.mail_since(NOW).await.unwrap(), NOW);
    assert_eq!(store.mail_since(NOW.plus(9)).await.unwrap(), NOW);
    store.disable_mails().await.unwrap();
    store.disable_mails().await.unwrap();
    assert_eq!(store.mail_since(NOW.plus(9)).await.unwrap(), NOW.plus(9));
}

async fn e_mails_are_counted_by_counter_and_period(store: Store) {
    let (address, account) = ([1; 32], [2; 32]);
    let count = |address, since| {
        let store = &store;
        async move { store.count_mail([(address, since), (account, NOW)]).await.unwrap() }
    };
    assert_eq!(count(address, NOW).await, [1, 1]);
    assert_eq!(count(address, NOW).await, [2, 2]);
    assert_eq!(count([3; 32], NOW).await, [1, 3]);
    assert_eq!(count(address, NOW.plus(Millis::DAY)).await, [1, 4]);
}

async fn kinds_are_switched_off_for_one_account(store: Store) {
    let (one, other) = (AccountRowId(1), AccountRowId(2));
    let off = DisabledMailKinds::default().with(MailKind::Held).with(MailKind::Delivered);
    store.set_mails_off(one, off, &TEST_AUTHOR).await.unwrap();
    assert_eq!(store.mails_off(one).await.unwrap(), off);
    assert_eq!(store.mails_off(other).await.unwrap(), DisabledMailKinds::default());
    store.set_mails_off(one, DisabledMailKinds::default(), &TEST_AUTHOR).await.unwrap();
    assert_eq!(store.mails_off(one).await.unwrap(), DisabledMailKinds::default());
}

/// No other operation writes an e-mail.
#[test]
fn only_moves_trigger_e_mails() {
    let mut changes = Changes {
        ops: vec![StoreOp::CancelSteps { parcel: parcelo_domain::ParcelRowId(1) }],
        ..empty_changes()
    };
    changes.add_mails();
    assert_eq!(changes.ops.len(), 1);
}
