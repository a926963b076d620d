//! Writes to the webhook outbox: an event is in it if and only if its change was committed. For a tenant without an
//! endpoint, a commit only does one look-up, in a table that has no row for the tenant.
//!
//! Events of one parcel arrive in order: while an earlier event is undelivered, a new event is `WAITING` and has no due
//! time. When the earlier event is settled, [`release`] makes the next event `READY` in the same commit. An event is
//! settled when it is delivered, has failed for good, or has failed `UNBLOCKED_AFTER_FAILURES` times. The last case exists so
//! that a receiver that rejects one event does not miss the rest.

use rusqlite::{Connection, OptionalExtension, Row, params};
use ulid::Ulid;

use crate::{
    clock::Millis,
    domain::{
        Event, NewManifest, NewParcel, ParcelRowId, State, Tenant,
        webhooks::{self, AttemptResult, Kinds, OutboxEvent, UNBLOCKED_AFTER_FAILURES},
    },
    store::{
        generations::{current, home, is_current},
        sql,
    },
};

/// Numbers under which `DeliveryStatus` is stored.
pub(super) const WAITING: i64 = 0;
pub(super) const READY: i64 = 1;
pub(super) const DELIVERED: i64 = 2;
pub(super) const FAILED: i64 = 3;
pub(super) const HELD: i64 = 4;
/// Condition for failed or held events, written exactly as in the index `outbox_missed`, because otherwise `SQLite`
/// does not use the index.
pub(super) const MISSED: &str = "state > 2";

/// Maximum number of an answer's bytes that are logged.
const MAX_ANSWER_BYTES: usize = 1_024;

/// The kinds of events that a tenant's endpoint subscribes to.
#[derive(Debug, Clone, Copy)]
pub(super) struct Subscription {
    /// The number of the tenant's current generation.
    tenant: i64,
    kinds: Kinds,
    pub(super) enabled: bool,
}

/// A parcel whose state is about to change, and whose tenant has an endpoint.
pub(super) struct TransitionSubject {
    subscription: Subscription,
    id: Ulid,
    state: State,
}

/// The parcel or manifest of an event.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Subject {
    pub(super) parcel: Option<i64>,
    pub(super) manifest: Option<i64>,
}

/// Enqueues the events of the new parcel in row `row`. Returns `true` if there are any.
pub(super) fn enqueue_creation(
    db: &Connection,
    subscription: Subscription,
    (parcel, row): (&NewParcel, i64),
    now: Millis,
) -> rusqlite::Result<bool> {
    let subject = Subject { parcel: Some(row), manifest: None };
    let events = webhooks::creation_events(subscription.kinds, parcel);
    enqueue_all(db, subscription, (subject, &events), now)
}

/// Enqueues the event of the new manifest in row `row`. Returns `true` if there is one.
pub(super) fn enqueue_manifest(
    db: &Connection,
    subscription: Subscription,
    (manifest, row): (&NewManifest, i64),
    now: Millis,
) -> rusqlite::Result<bool> {
    let subject = Subject { parcel: None, manifest: Some(row) };
    let event = webhooks::manifest_event(subscription.kinds, manifest);
    enqueue_all(db, subscription, (subject, event.as_slice()), now)
}

/// Returns the data of a parcel that is needed before its state changes, or `None` if its tenant has no endpoint.
pub(super) fn transition_subject(
    db: &Connection,
    parcel: ParcelRowId,
) -> rusqlite::Result<Option<TransitionSubject>> {
    let mut find = db.prepare_cached(concat!(
        "SELECT p.tenant, e.kinds, e.enabled, p.public_id, p.state FROM parcels p \
         JOIN webhook_endpoints e ON e.tenant = ",
        home!("p.tenant"),
        " WHERE p.id = ?1 AND ",
        is_current!("p.tenant")
    ))?;
    let found = find.query_row([parcel.0], |row| {
        let (tenant, enabled) = (row.get(0)?, row.get(2)?);
        let subscription = Subscription { tenant, kinds: kinds(row, 1)?, enabled };
        Ok(TransitionSubject {
            subscription,
            id: Ulid::from_bytes(row.get(3)?),
            state: sql::Row::Sqlite(row).numbered(4, State::from_number)?,
        })
    });
    found.optional()
}

/// Enqueues the events of a parcel's new state. Returns `true` if there are any.
pub(super) fn enqueue_move(
    db: &Connection,
    parcel_before: &TransitionSubject,
    (parcel, event): (ParcelRowId, &Event),
    now: Millis,
) -> rusqlite::Result<bool> {
    let TransitionSubject { subscription, id, state } = *parcel_before;
    let subject = Subject { parcel: Some(parcel.0), manifest: None };
    let events = webhooks::move_events(subscription.kinds, id, state, event);
    enqueue_all(db, subscription, (subject, &events), now)
}

/// Returns the tenant's subscription, or `None` if the tenant has no endpoint.
pub(super) fn subscription(
    db: &Connection,
    tenant: Tenant,
) -> rusqlite::Result<Option<Subscription>> {
    let mut find = db.prepare_cached(concat!(
        "SELECT kinds, enabled, ",
        current!("tenant"),
        " FROM webhook_endpoints WHERE tenant = ?1"
    ))?;
    let found = find.query_row([tenant.number()], |row| {
        Ok(Subscription { tenant: row.get(2)?, kinds: kinds(row, 0)?, enabled: row.get(1)? })
    });
    found.optional()
}

/// Reads the kinds of a subscription. A damaged row counts as no kinds, because it must not fail an order. The
/// dispatcher reports the row when it reads it.
fn kinds(row: &Row<'_>, column: usize) -> rusqlite::Result<Kinds> {
    let number: i64 = row.get(column)?;
    Ok(u8::try_from(number).map(Kinds::from_number).unwrap_or_default())
}

fn enqueue_all(
    db: &Connection,
    subscription: Subscription,
    (subject, events): (Subject, &[OutboxEvent]),
    now: Millis,
) -> rusqlite::Result<bool> {
    for event in events {
        enqueue(db, subscription, (subject, event), now)?;
    }
    Ok(!events.is_empty())
}

/// Enqueues one event.
pub(super) fn enqueue(
    db: &Connection,
    subscription: Subscription,
    (subject, event): (Subject, &OutboxEvent),
    now: Millis,
) -> rusqlite::Result<()> {
    let status = match subject.parcel {
        _ if !subscription.enabled => HELD,
        Some(parcel) if is_blocked(db, parcel)? => WAITING,
        Some(_) | None => READY,
    };
    // `after_lease` distinguishes the row from an earlier row of the same event, whose answer may come late
    // (leases.rs).
    let mut insert = db.prepare_cached(
        "INSERT INTO outbox (tenant, event_id, kind, parcel, manifest, sequence, previous, \
         happened_at, created_at, state, due, after_lease) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, (SELECT last FROM leases))",
    )?;
    insert.execute(params![
        subscription.tenant,
        event.event.to_bytes(),
        event.kind.number(),
        subject.parcel,
        subject.manifest,
        event.sequence,
        event.previous.map(State::number),
        event.at.0,
        now.0,
        status,
        (status == READY).then_some(now.0),
    ])?;
    Ok(())
}

/// Returns `true` if an earlier event of the parcel comes first. Such an event is `WAITING` (0) too, or it is still
/// being tried (`READY`, 1) and has failed fewer than `UNBLOCKED_AFTER_FAILURES` times.
fn is_blocked(db: &Connection, parcel: i64) -> rusqlite::Result<bool> {
    let mut find = db.prepare_cached(
        "SELECT EXISTS (SELECT 1 FROM outbox \
         WHERE parcel = ?1 AND (state = 0 OR (state = 1 AND attempts < ?2)))",
    )?;
    find.query_row(params![parcel, UNBLOCKED_AFTER_FAILURES], |row| row.get(0))
}

/// Makes the parcel's next `WAITING` (0) event `READY` (1), unless an earlier event still comes first.
pub(super) fn release(db: &Connection, parcel: i64, now: Millis) -> rusqlite::Result<()> {
    let mut update = db.prepare_cached(
        "UPDATE outbox SET state = 1, due = ?2 \
         WHERE id = (SELECT min(id) FROM outbox WHERE parcel = ?1 AND state = 0) \
         AND NOT EXISTS (SELECT 1 FROM outbox WHERE parcel = ?1 AND state = 1 AND attempts < ?3)",
    )?;
    update.execute(params![parcel, now.0, UNBLOCKED_AFTER_FAILURES]).map(drop)
}

/// Issues the number of the next lease.
pub(super) fn next_lease(db: &Connection) -> rusqlite::Result<i64> {
    let mut next = db.prepare_cached("UPDATE leases SET last = last + 1 RETURNING last")?;
    next.query_row([], |row| row.get(0))
}

/// Returns the number of the last lease.
pub(super) fn last_lease(db: &Connection) -> rusqlite::Result<i64> {
    db.query_row("SELECT last FROM leases", [], |row| row.get(0))
}

/// Skips the lease numbers up to `last`, which were already issued.
pub(super) fn skip_leases_to(db: &Connection, last: i64) -> rusqlite::Result<()> {
    db.execute("UPDATE leases SET last = max(last, ?1)", [last]).map(drop)
}

/// Logs attempt `number` at the event in `row`, which is a row of this transaction.
pub(super) fn log_attempt(
    db: &Connection,
    (row, number): (i64, u32),
    outcome: &AttemptResult,
) -> rusqlite::Result<()> {
    let received = outcome.answer.as_ref();
    let answer = received
        .map(|received| {
            received.body_prefix.get(..MAX_ANSWER_BYTES).unwrap_or(&received.body_prefix)
        })
        .ok();
    let mut insert = db.prepare_cached(
        "INSERT INTO webhook_attempts (outbox, number, at, millis, status, error, answer) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
    )?;
    insert.execute(params![
        row,
        number,
        outcome.at.0,
        outcome.millis,
        received.map(|received| received.status).ok(),
        received.err().map(ToString::to_string),
        answer,
    ])?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::webhooks::DeliveryStatus;

    #[test]
    fn the_numbers_are_those_of_the_delivery_statuses() {
        let numbers = [WAITING, READY, DELIVERED, FAILED, HELD];
        let statuses = [
            DeliveryStatus::Waiting,
            DeliveryStatus::Ready,
            DeliveryStatus::Delivered,
            DeliveryStatus::Failed,
            DeliveryStatus::Held,
        ];
        for (number, status) in numbers.into_iter().zip(statuses) {
            assert_eq!(DeliveryStatus::ALL[usize::try_from(number).unwrap()], status);
        }
    }
}
