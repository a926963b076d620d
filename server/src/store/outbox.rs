//! The outbox as changes write it: an event is in it if and only if its change was committed. A
//! tenant without an endpoint costs one look at a table that is empty for it.

use rusqlite::{Connection, OptionalExtension, Row, params};
use ulid::Ulid;

use super::parcels::read_state;
use crate::{
    clock::Millis,
    core::{
        Event, NewParcel, ParcelKey, State, Tenant,
        manifest::NewManifest,
        webhooks::{self, Kinds, RELEASED_AFTER, Told},
    },
};

/// The numbers under which `Standing` is stored.
pub(super) const WAITING: i64 = 0;
pub(super) const READY: i64 = 1;
pub(super) const DELIVERED: i64 = 2;
pub(super) const FAILED: i64 = 3;
pub(super) const HELD: i64 = 4;
/// What did not arrive, and waits to be sent again: failed or held, in the words of its index.
pub(super) const MISSED: &str = "state > 2";

/// A tenant with an endpoint.
#[derive(Debug, Clone, Copy)]
pub(super) struct Listener {
    tenant: Tenant,
    kinds: Kinds,
    pub(super) enabled: bool,
}

/// A parcel that is about to move, and whose tenant has an endpoint.
pub(super) struct Mover {
    listener: Listener,
    id: Ulid,
    state: State,
}

/// What an event is about.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Subject {
    pub(super) parcel: Option<i64>,
    pub(super) manifest: Option<i64>,
}

/// Writes down what the parcel in row `row` tells; says whether anything.
pub(super) fn created(
    db: &Connection,
    parcel: &NewParcel,
    row: i64,
    now: Millis,
) -> rusqlite::Result<bool> {
    let Some(listener) = listener(db, parcel.tenant)? else { return Ok(false) };
    let subject = Subject { parcel: Some(row), manifest: None };
    tell_all(db, listener, (subject, &webhooks::of_creation(listener.kinds, parcel)), now)
}

/// Writes down what the manifest in row `row` tells; says whether anything.
pub(super) fn submitted(
    db: &Connection,
    manifest: &NewManifest,
    row: i64,
    now: Millis,
) -> rusqlite::Result<bool> {
    let Some(listener) = listener(db, manifest.tenant)? else { return Ok(false) };
    let subject = Subject { parcel: None, manifest: Some(row) };
    let told = webhooks::of_manifest(listener.kinds, manifest);
    tell_all(db, listener, (subject, told.as_slice()), now)
}

/// What must be known of a parcel before it moves; none when nobody listens.
pub(super) fn mover(db: &Connection, parcel: ParcelKey) -> rusqlite::Result<Option<Mover>> {
    let mut find = db.prepare_cached(
        "SELECT p.tenant, e.kinds, e.enabled, p.public_id, p.state \
         FROM living_parcels p JOIN webhook_endpoints e ON e.tenant = p.tenant WHERE p.id = ?1",
    )?;
    let found = find.query_row([parcel.0], |row| {
        let tenant = Tenant::of_number(row.get(0)?);
        let listener = Listener { tenant, kinds: kinds(row, 1)?, enabled: row.get(2)? };
        Ok(Mover { listener, id: Ulid::from_bytes(row.get(3)?), state: read_state(row, 4)? })
    });
    found.optional()
}

/// Writes down what a parcel's move tells; says whether anything.
pub(super) fn moved(
    db: &Connection,
    mover: &Mover,
    (parcel, event): (ParcelKey, &Event),
    now: Millis,
) -> rusqlite::Result<bool> {
    let Mover { listener, id, state } = *mover;
    let subject = Subject { parcel: Some(parcel.0), manifest: None };
    let told = webhooks::of_move(listener.kinds, id, state, event);
    tell_all(db, listener, (subject, &told), now)
}

/// The tenant's endpoint, when it has one.
pub(super) fn listener(db: &Connection, tenant: Tenant) -> rusqlite::Result<Option<Listener>> {
    let mut find =
        db.prepare_cached("SELECT kinds, enabled FROM webhook_endpoints WHERE tenant = ?1")?;
    let found = find.query_row([tenant.number()], |row| {
        Ok(Listener { tenant, kinds: kinds(row, 0)?, enabled: row.get(1)? })
    });
    found.optional()
}

/// The kinds that were asked for. No order fails because they cannot be read: then it is none, and the
/// dispatcher says so when it meets the row.
fn kinds(row: &Row<'_>, column: usize) -> rusqlite::Result<Kinds> {
    let number: i64 = row.get(column)?;
    Ok(u8::try_from(number).map(Kinds::of_number).unwrap_or_default())
}

fn tell_all(
    db: &Connection,
    listener: Listener,
    (subject, told): (Subject, &[Told]),
    now: Millis,
) -> rusqlite::Result<bool> {
    for told in told {
        tell(db, listener, (subject, told), now)?;
    }
    Ok(!told.is_empty())
}

/// Puts one event into the outbox.
pub(super) fn tell(
    db: &Connection,
    listener: Listener,
    (subject, told): (Subject, &Told),
    now: Millis,
) -> rusqlite::Result<()> {
    let standing = match subject.parcel {
        _ if !listener.enabled => HELD,
        Some(parcel) if is_blocked(db, parcel)? => WAITING,
        Some(_) | None => READY,
    };
    let mut insert = db.prepare_cached(
        "INSERT INTO outbox (id, tenant, event_id, kind, parcel, manifest, sequence, previous, \
         happened_at, created_at, state, due, after_lease) \
         VALUES ((SELECT 1 + max(coalesce((SELECT max(id) FROM outbox), 0), \
         coalesce((SELECT max(outbox) FROM resets), 0))), ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, \
         (SELECT last FROM leases))",
    )?;
    insert.execute(params![
        listener.tenant.number(),
        told.event.to_bytes(),
        told.kind.number(),
        subject.parcel,
        subject.manifest,
        told.sequence,
        told.previous.map(State::number),
        told.at.0,
        now.0,
        standing,
        (standing == READY).then_some(now.0),
    ])?;
    Ok(())
}

/// Whether an earlier event of the parcel comes first: one that waits itself, or one that has not
/// failed often enough.
fn is_blocked(db: &Connection, parcel: i64) -> rusqlite::Result<bool> {
    let mut find = db.prepare_cached(
        "SELECT EXISTS (SELECT 1 FROM living_outbox \
         WHERE parcel = ?1 AND (state = 0 OR (state = 1 AND attempts < ?2)))",
    )?;
    find.query_row(params![parcel, RELEASED_AFTER], |row| row.get(0))
}

/// Lets the next event of the parcel go, unless one before it still comes first.
pub(super) fn release(db: &Connection, parcel: i64, now: Millis) -> rusqlite::Result<()> {
    let mut update = db.prepare_cached(
        "UPDATE outbox SET state = 1, due = ?2 \
         WHERE id = (SELECT min(id) FROM living_outbox WHERE parcel = ?1 AND state = 0) \
         AND NOT EXISTS (SELECT 1 FROM living_outbox WHERE parcel = ?1 AND state = 1 AND attempts < ?3)",
    )?;
    update.execute(params![parcel, now.0, RELEASED_AFTER]).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::webhooks::Standing;

    #[test]
    fn the_numbers_are_those_of_the_standings() {
        let numbers = [WAITING, READY, DELIVERED, FAILED, HELD];
        let standings = [
            Standing::Waiting,
            Standing::Ready,
            Standing::Delivered,
            Standing::Failed,
            Standing::Held,
        ];
        for (number, standing) in numbers.into_iter().zip(standings) {
            assert_eq!(Standing::ALL[usize::try_from(number).unwrap()], standing);
        }
    }
}
