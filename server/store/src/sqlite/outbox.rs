//! Writes to the webhook outbox: the events that a change causes. For a tenant without an endpoint, a commit only does
//! one look-up, in a table that has no row for the tenant.

use parcelo_domain::{
    ParcelRowId, State,
    webhooks::{OutboxEvent, WebhookEventKinds},
};
use rusqlite::{Connection, OptionalExtension};
use ulid::Ulid;

use crate::{
    generations::{is_current, own_number},
    outbox::{self, ChangeOrigin, NewEvent, Subject, Subscription},
    sql::{self, Sql, poll_now},
};

/// The number of a tenant's current generation, and the subscription of its endpoint.
type Owner = (i64, Subscription);

/// A parcel whose state is about to change, and whose tenant has an endpoint.
pub(super) struct TransitionSubject {
    pub(super) owner: Owner,
    pub(super) id: Ulid,
    pub(super) state: State,
}

/// Returns the data of a parcel that is needed before its state changes, or `None` if its tenant has no endpoint.
pub(super) fn transition_subject(
    db: &Connection,
    parcel: ParcelRowId,
) -> rusqlite::Result<Option<TransitionSubject>> {
    let mut find = db.prepare_cached(concat!(
        "SELECT p.tenant, e.kinds, e.enabled, p.public_id, p.state FROM parcels p \
         JOIN webhook_endpoints e ON e.tenant = ",
        own_number!("p.tenant"),
        " WHERE p.id = ?1 AND ",
        is_current!("p.tenant")
    ))?;
    let found = find.query_row([parcel.0], |row| {
        // A damaged subscription counts as no kinds, because it must not fail an order.
        let kinds = row.get(1).map(WebhookEventKinds::from_number).unwrap_or_default();
        Ok(TransitionSubject {
            owner: (row.get(0)?, Subscription { kinds, enabled: row.get(2)? }),
            id: Ulid::from_bytes(row.get(3)?),
            state: sql::Row::Sqlite(row).parse_number(4, State::from_number)?,
        })
    });
    found.optional()
}

/// Enqueues the events of a change. Returns `true` if there are any.
pub(super) fn enqueue(
    db: &Connection,
    (tenant, subscription): Owner,
    (subject, events): (Subject, impl IntoIterator<Item = OutboxEvent>),
    origin: ChangeOrigin,
) -> rusqlite::Result<bool> {
    let new = |event| NewEvent { tenant, subscription, subject, event, origin };
    let events: Vec<_> = events.into_iter().map(new).collect();
    if events.is_empty() {
        return Ok(false);
    }
    poll_now(outbox::insert(Sql::Sqlite(db), &events))?;
    Ok(true)
}

/// Skips the lease numbers up to `last`, which were already issued.
pub(super) fn skip_leases_to(db: &Connection, last: i64) -> rusqlite::Result<()> {
    db.execute("UPDATE leases SET last = max(last, ?1)", [last]).map(drop)
}
