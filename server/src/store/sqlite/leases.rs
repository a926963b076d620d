//! Leases of outbox events: the tenants with due events, and the events that are leased to be sent. A leased event
//! belongs to one sender until the lease ends. The lease's number is never reused, so it distinguishes the leased row
//! from a row that took its place.

use std::sync::Arc;

use rusqlite::{Connection, OptionalExtension, Row, params};

use super::{
    Store, StoreError,
    error::is_damaged,
    outbox::{self, FAILED},
};
use crate::{
    clock::Millis,
    domain::{
        Tenant,
        webhooks::{AttemptResult, DeliveryError, DisabledBy, Endpoint, LEASE, Lease},
    },
    store::{
        LeasedBatch, endpoints,
        generations::{current, is_current},
        payloads::{lease_columns, read_lease},
        sql::{self, Sql, at_once},
    },
};

/// The row of a leased event.
pub(super) struct Found {
    pub(super) row: i64,
    pub(super) parcel: Option<i64>,
    /// `true` if the lease is the row's last, and no replay or new endpoint has ended it.
    pub(super) is_current: bool,
}

impl Store {
    /// Resolves when an event is enqueued, or at once if an event was enqueued since the last call.
    pub async fn outbox_changed(&self) {
        self.0.wake.notified().await;
    }

    pub(super) fn notify_outbox(&self) {
        self.0.wake.notify_one();
    }

    /// Returns up to `max` tenants with events due for their endpoints, the longest waiting first.
    pub async fn tenants_with_due(
        &self,
        now: Millis,
        max: usize,
    ) -> Result<Vec<Tenant>, StoreError> {
        self.read(|db| {
            let mut find = db.prepare_cached(
                "SELECT tenant FROM webhook_endpoints WHERE enabled = 1 AND next_due <= ?1 \
                 ORDER BY next_due LIMIT ?2",
            )?;
            let max = i64::try_from(max).unwrap_or(i64::MAX);
            let tenant = |row: &Row<'_>| row.get(0).map(Tenant::from_number);
            find.query_map([now.0, max], tenant)?.collect()
        })
    }

    /// Returns the time at which the next delivery is due.
    pub async fn next_delivery(&self) -> Result<Option<Millis>, StoreError> {
        self.read(|db| {
            let mut find = db.prepare_cached(
                "SELECT min(next_due) FROM webhook_endpoints \
                 WHERE enabled = 1 AND next_due IS NOT NULL",
            )?;
            find.query_row([], |row| Ok(row.get::<_, Option<i64>>(0)?.map(Millis)))
        })
    }

    /// Leases due events in one commit, up to the number in `shares` for each tenant. No other sender gets them until
    /// the lease ends. Unreadable rows are set aside, so that they do not hold up other events.
    pub async fn lease(
        &self,
        shares: Vec<(Tenant, usize)>,
        now: Millis,
    ) -> Result<LeasedBatch, StoreError> {
        let leased = self.call(move |db| lease(db, &shares, now)).await?;
        for tenant in &leased.switched_off {
            self.hold(*tenant).await?;
        }
        Ok(leased)
    }

    /// Ends every lease. A server calls this when it starts, because no other server can hold a lease then.
    pub async fn end_leases(&self, now: Millis) -> Result<(), StoreError> {
        let page = move |db: &Connection, max| {
            let mut update = db.prepare_cached(concat!(
                "UPDATE outbox SET leased = 0, due = iif(due IS NULL, NULL, ?1) \
                 WHERE id IN (SELECT id FROM outbox WHERE leased = 1 AND ",
                is_current!("tenant"),
                " LIMIT ?2)"
            ))?;
            update.execute([now.0, max])
        };
        self.in_pages(page).await.map(drop)
    }
}

fn lease(
    db: &Connection,
    shares: &[(Tenant, usize)],
    now: Millis,
) -> rusqlite::Result<LeasedBatch> {
    let number = outbox::next_lease(db)?;
    let mut leased = LeasedBatch::default();
    for (tenant, max) in shares {
        match at_once(endpoints::find(Sql::Sqlite(db), *tenant)) {
            Ok(Some(endpoint)) if endpoint.disabled.is_none() => {
                let endpoint = Arc::new(endpoint);
                lease_of(db, (&endpoint, *max, number), now, &mut leased)?;
            }
            // The endpoint has since been turned off or removed.
            Ok(_) => {}
            Err(error) if is_damaged(&error) => {
                let why = DisabledBy::Unreadable;
                at_once(endpoints::give_up(Sql::Sqlite(db), *tenant, why, now))?;
                leased.switched_off.push(*tenant);
            }
            Err(error) => return Err(error),
        }
    }
    Ok(leased)
}

/// Leases up to `max` due events of one endpoint, under the lease with this number.
fn lease_of(
    db: &Connection,
    (endpoint, max, number): (&Arc<Endpoint>, usize, i64),
    now: Millis,
    leased: &mut LeasedBatch,
) -> rusqlite::Result<()> {
    let tenant = endpoint.tenant;
    let mut find = db.prepare_cached(concat!(
        "SELECT ",
        lease_columns!(),
        ", id FROM outbox WHERE tenant = ",
        current!("?1"),
        " AND due <= ?2 ORDER BY due, id LIMIT ?3"
    ))?;
    let max = i64::try_from(max).unwrap_or(i64::MAX);
    let due = find.query_map([tenant.number(), now.0, max], |row| {
        Ok((row.get::<_, i64>(8)?, read_lease(&sql::Row::Sqlite(row), tenant, number)))
    })?;
    let mut mark = db.prepare_cached(
        "UPDATE outbox SET leased = 1, lease = ?4, due = ?2, \
         first_attempt = coalesce(first_attempt, ?3) WHERE id = ?1",
    )?;
    // All events are read before the first is written, because writing changes which events are due.
    for (row, lease) in due.collect::<Result<Vec<_>, _>>()? {
        match lease {
            Ok(lease) => {
                mark.execute([row, now.plus(LEASE).0, now.0, number])?;
                leased.events.push((Arc::clone(endpoint), lease));
            }
            Err(error) if error.is_row_error() => {
                set_aside(db, row, now)?;
                leased.unreadable.push(tenant);
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// Fails the event in an unreadable row, because another lease would find it just as unreadable.
fn set_aside(db: &Connection, row: i64, now: Millis) -> rusqlite::Result<()> {
    let outcome = AttemptResult { at: now, millis: 0, answer: Err(DeliveryError::Unreadable) };
    outbox::log_attempt(db, (row, 1), &outcome)?;
    let mut update = db.prepare_cached(
        "UPDATE outbox SET state = ?2, due = NULL, leased = 0 WHERE id = ?1 RETURNING parcel",
    )?;
    match update.query_row([row, FAILED], |row| row.get(0))? {
        Some(parcel) => outbox::release(db, parcel, now),
        None => Ok(()),
    }
}

/// Returns the row of a leased event, or `None` if it was deleted, even if the same event has been enqueued again. The
/// row's id is valid for this transaction only.
pub(super) fn find(db: &Connection, lease: &Lease) -> rusqlite::Result<Option<Found>> {
    let mut find = db.prepare_cached(concat!(
        "SELECT id, parcel, lease = ?3 FROM outbox WHERE event_id = ?1 AND tenant = ",
        current!("?2"),
        " AND after_lease < ?3"
    ))?;
    let (event, tenant) = (lease.attempt.event.to_bytes(), lease.tenant.number());
    let found = |row: &Row<'_>| {
        Ok(Found { row: row.get(0)?, parcel: row.get(1)?, is_current: row.get(2)? })
    };
    find.query_row(params![event, tenant, lease.number], found).optional()
}
