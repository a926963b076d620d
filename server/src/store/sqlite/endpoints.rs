//! Endpoints in the database: setting them up, turning them on and off, replaying what they missed.

use parcelo::webhook::Secret;
use rusqlite::{Connection, OptionalExtension, Row, ToSql, params, params_from_iter, types::Type};

use super::{
    Store, StoreError,
    error::is_damaged,
    outbox::{self, HELD, MISSED, READY, Subject, WAITING},
};
use crate::{
    clock::Millis,
    domain::{
        Tenant,
        audit::{Actor, AuditAction, AuditedChange, Author},
        webhooks::{DisabledBy, Endpoint, Kinds, OutboxEvent},
    },
    store::{EventsToReplay, audit_entry, generations::current},
};

/// How many events one commit holds or replays: others wait for it.
const MAX_EVENTS_PER_COMMIT: usize = 250;

impl Store {
    /// Holds what would have been sent to an endpoint that is off, at most 250 events a commit: nothing
    /// is sent to it meanwhile. It stops when the endpoint is turned on again.
    pub(in crate::store) async fn hold(&self, tenant: Tenant) -> Result<(), StoreError> {
        while self.call(move |db| hold(db, tenant.number())).await? == MAX_EVENTS_PER_COMMIT {}
        Ok(())
    }

    /// Why nothing is sent to the tenant's endpoint, when it is off, and how many events are held.
    pub async fn switched_off(
        &self,
        tenant: Tenant,
    ) -> Result<Option<(DisabledBy, i64)>, StoreError> {
        self.read(|db| {
            let mut find = db.prepare_cached(concat!(
                "SELECT coalesce(disabled_why, ''), coalesce((SELECT events FROM outbox_counts \
                 WHERE tenant = ",
                current!("?1"),
                " AND held = 1), 0) FROM webhook_endpoints WHERE tenant = ?1 AND enabled = 0"
            ))?;
            let off = |row: &Row<'_>| Ok((disabled_by(row.get_ref(0)?.as_str()?), row.get(1)?));
            find.query_row([tenant.number()], off).optional()
        })
    }

    /// Enqueues an event that no change brings about (a test) for the tenant's endpoint.
    pub async fn enqueue(&self, tenant: Tenant, event: OutboxEvent) -> Result<(), StoreError> {
        let made = self.call(move |db| {
            let Some(subscription) = outbox::subscription(db, tenant)? else { return Ok(()) };
            outbox::enqueue(db, subscription, (Subject::default(), &event), event.at)
        });
        made.await?;
        self.notify_outbox();
        Ok(())
    }

    /// Sends events again, at most 250 a commit and first the first, and answers how many. It stops when
    /// the endpoint is turned off.
    pub async fn replay(
        &self,
        tenant: Tenant,
        what: EventsToReplay,
        now: Millis,
    ) -> Result<usize, StoreError> {
        let (mut after, mut replayed) = (0, 0);
        loop {
            let page = self.call(move |db| replay(db, (tenant, what, after), now)).await?;
            self.notify_outbox();
            replayed += page.len();
            match page.last() {
                Some(last) if page.len() == MAX_EVENTS_PER_COMMIT => after = *last,
                Some(_) | None => return Ok(replayed),
            }
        }
    }
}

/// The tenant's endpoint.
pub(super) fn find(db: &Connection, tenant: Tenant) -> rusqlite::Result<Option<Endpoint>> {
    let mut find = db.prepare_cached(
        "SELECT url, kinds, secret, disabled_why, created_at FROM webhook_endpoints \
         WHERE tenant = ?1",
    )?;
    find.query_row([tenant.number()], |row| read(db, row, tenant)).optional()
}

fn old_secrets(db: &Connection, tenant: Tenant) -> rusqlite::Result<Vec<(Secret, Millis)>> {
    let mut find = db.prepare_cached(
        "SELECT secret, until FROM webhook_old_secrets WHERE tenant = ?1 ORDER BY id DESC",
    )?;
    let old = |row: &Row<'_>| Ok((secret(row, 0)?, Millis(row.get(1)?)));
    let all = find.query_map([tenant.number()], old)?;
    // One that cannot be read signs nothing; the others go on.
    all.filter(|read| !read.as_ref().is_err_and(is_damaged)).collect()
}

/// Turns an endpoint off by the server itself, which the audit log says.
pub(super) fn give_up(
    db: &Connection,
    tenant: Tenant,
    why: DisabledBy,
    now: Millis,
) -> rusqlite::Result<bool> {
    let was_on = switch_off(db, tenant.number(), why)?;
    if was_on {
        let change = AuditedChange::of_webhook(tenant, AuditAction::WebhookDisabled);
        record(db, &Actor::Server.at(now), &change)?;
    }
    Ok(was_on)
}

/// Turns an endpoint off; says whether it was on. What is on its way stays leased: it may arrive yet.
fn switch_off(db: &Connection, tenant: i64, by: DisabledBy) -> rusqlite::Result<bool> {
    let was_on =
        "SELECT EXISTS (SELECT 1 FROM webhook_endpoints WHERE tenant = ?1 AND enabled = 1)";
    let was_on = db.prepare_cached(was_on)?.query_row([tenant], |row| row.get(0))?;
    let sql = "UPDATE webhook_endpoints SET enabled = 0, disabled_why = ?2 WHERE tenant = ?1";
    db.prepare_cached(sql)?.execute(params![tenant, by.code()])?;
    Ok(was_on)
}

/// Holds a page of what would have been sent to an endpoint that is off, and answers how many events.
fn hold(db: &Connection, tenant: i64) -> rusqlite::Result<usize> {
    let mut update = db.prepare_cached(concat!(
        "UPDATE outbox SET state = ?2, due = NULL WHERE id IN (SELECT id FROM outbox WHERE tenant = ",
        current!("?1"),
        " AND state < 2 ORDER BY created_at LIMIT 250) \
         AND NOT EXISTS (SELECT 1 FROM webhook_endpoints WHERE tenant = ?1 AND enabled = 1)"
    ))?;
    update.execute([tenant, HELD])
}

/// Replays a page of the tenant's events behind the row `after`, and answers which rows. Earlier rows
/// first, so that no event of a parcel overtakes another.
fn replay(
    db: &Connection,
    (tenant, what, after): (Tenant, EventsToReplay, i64),
    now: Millis,
) -> rusqlite::Result<Vec<i64>> {
    // It may have been turned off since it was looked at.
    if !outbox::subscription(db, tenant)?.is_some_and(|subscription| subscription.enabled) {
        return Ok(Vec::new());
    }
    let which = match what {
        EventsToReplay::One(_) => "state NOT IN (0, 1) AND event_id = ?3".to_owned(),
        EventsToReplay::MissedSince(_) => format!("{MISSED} AND created_at >= ?3"),
    };
    let sql = format!(
        concat!(
            "SELECT id, parcel FROM outbox WHERE tenant = ",
            current!("?1"),
            " AND id > ?2 AND {} ORDER BY id LIMIT 250"
        ),
        which
    );
    let given: Box<dyn ToSql> = match what {
        EventsToReplay::One(id) => Box::new(id.to_bytes()),
        EventsToReplay::MissedSince(moment) => Box::new(moment.0),
    };
    let mut find = db.prepare_cached(&sql)?;
    let both = |row: &Row<'_>| Ok((row.get(0)?, row.get(1)?));
    let missed = find.query_map(params![tenant.number(), after, given], both)?;
    let missed: Vec<(i64, Option<i64>)> = missed.collect::<Result<_, _>>()?;
    let lease = outbox::next_lease(db)?;
    let mut update = db.prepare_cached(
        "UPDATE outbox SET state = iif(parcel IS NULL, ?3, ?4), due = iif(parcel IS NULL, ?2, NULL), \
         leased = 0, lease = ?5, attempts = 0, first_attempt = NULL WHERE id = ?1",
    )?;
    for (row, parcel) in &missed {
        update.execute([*row, now.0, READY, WAITING, lease])?;
        if let Some(parcel) = parcel {
            outbox::release(db, *parcel, now)?;
        }
    }
    Ok(missed.into_iter().map(|(row, _)| row).collect())
}

fn read(db: &Connection, row: &Row<'_>, tenant: Tenant) -> rusqlite::Result<Endpoint> {
    let why = row.get_ref(3)?.as_str_or_null()?;
    Ok(Endpoint {
        tenant,
        url: row.get(0)?,
        kinds: Kinds::from_number(row.get(1)?),
        secret: secret(row, 2)?,
        old: old_secrets(db, tenant)?,
        disabled: why.map(disabled_by),
        created_at: Millis(row.get(4)?),
    })
}

/// Writes a change into the audit log, in the transaction that makes it.
fn record(db: &Connection, by: &Author, change: &AuditedChange) -> rusqlite::Result<()> {
    let given = params_from_iter(audit_entry::values(by, change));
    db.prepare_cached(audit_entry::INSERT)?.execute(given).map(drop)
}

fn disabled_by(code: &str) -> DisabledBy {
    DisabledBy::from_code(code).unwrap_or(DisabledBy::Operator)
}

fn secret(row: &Row<'_>, column: usize) -> rusqlite::Result<Secret> {
    let damaged =
        |error| rusqlite::Error::FromSqlConversionFailure(column, Type::Blob, Box::new(error));
    Secret::from_bytes(row.get_ref(column)?.as_blob()?).map_err(damaged)
}
