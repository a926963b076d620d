//! Outcomes of deliveries: settled, logged, shown, counted, and deleted when they are old.

use rusqlite::{Connection, Row, params};

use super::{
    Store, StoreError,
    leases::{self, Found},
    outbox::{self, DELIVERED, FAILED},
};
use crate::{
    clock::Millis,
    domain::{
        Tenant,
        webhooks::{AttemptResult, DisabledBy, Lease, RetryDecision},
    },
    store::{
        Backlog, Settled, endpoints,
        generations::{home, is_current},
        sql::{Sql, at_once},
    },
};

impl Store {
    /// Returns the number of undelivered events, tenant by tenant.
    pub async fn backlogs(&self) -> Result<Vec<Backlog>, StoreError> {
        let read = |db: &Connection| {
            let mut find = db.prepare_cached(concat!(
                "SELECT tenant, held, events, iif(held, \
                 (SELECT min(created_at) FROM outbox WHERE tenant = c.tenant AND state = 4), \
                 (SELECT min(created_at) FROM outbox WHERE tenant = c.tenant AND state < 2)) \
                 FROM outbox_counts c WHERE events > 0 AND ",
                is_current!("tenant")
            ))?;
            find.query_map([], backlog)?.collect()
        };
        self.scan(None, move |store| store.read(read)).await
    }

    /// Records an attempt and its effect on the event, its successors and the endpoint. If the event has been replayed
    /// or its endpoint replaced since the lease, the attempt is logged without effect. If the event has been deleted,
    /// nothing is logged.
    pub async fn settle(
        &self,
        lease: Lease,
        outcome: AttemptResult,
        decision: RetryDecision,
    ) -> Result<Settled, StoreError> {
        let tenant = lease.tenant;
        let settled = self.call(move |db| settle(db, &lease, &outcome, decision)).await?;
        if matches!(settled, Settled::SwitchedOff(_)) {
            self.hold(tenant).await?;
        }
        self.notify_outbox();
        Ok(settled)
    }

    /// Releases nothing. With one writer, an event is enqueued either before or after its predecessor is settled.
    #[expect(clippy::unused_async, reason = "the other engine waits")]
    pub async fn release_stranded(&self, _now: Millis) -> Result<u64, StoreError> {
        Ok(0)
    }

    /// Deletes a leased event that has no content any more, with its log.
    pub async fn forget(&self, lease: Lease) -> Result<(), StoreError> {
        self.call(move |db| {
            let Some(Found { row, .. }) = leases::find(db, &lease)? else { return Ok(()) };
            // Another event will get the row's id, and must not inherit this log.
            db.execute("DELETE FROM webhook_attempts WHERE outbox = ?1", [row])?;
            db.execute("DELETE FROM outbox WHERE id = ?1", [row]).map(drop)
        })
        .await
    }

    /// Deletes events from `before` or earlier with their logs, page by page.
    pub async fn purge_outbox(&self, before: Millis) -> Result<usize, StoreError> {
        let purged = self.in_pages(move |db, max| purge(db, before, max)).await?;
        self.erased(purged > 0);
        Ok(usize::try_from(purged).unwrap_or(usize::MAX))
    }
}

fn backlog(row: &Row<'_>) -> rusqlite::Result<Backlog> {
    Ok(Backlog {
        tenant: Tenant::from_number(row.get(0)?),
        held: row.get(1)?,
        events: row.get(2)?,
        since: Millis(row.get(3)?),
    })
}

fn settle(
    db: &Connection,
    lease: &Lease,
    outcome: &AttemptResult,
    decision: RetryDecision,
) -> rusqlite::Result<Settled> {
    let Some(found) = leases::find(db, lease)? else { return Ok(Settled::Late) };
    let (row, number) = (found.row, lease.attempt.number);
    outbox::log_attempt(db, (row, number), outcome)?;
    if !found.is_current {
        return Ok(Settled::Late);
    }
    let off = match decision {
        RetryDecision::Delivered => {
            finish(db, (row, number), DELIVERED)?;
            db.prepare_cached("UPDATE webhook_endpoints SET last_success = ?2 WHERE tenant = ?1")?
                .execute([lease.tenant.number(), outcome.at.0])?;
            None
        }
        RetryDecision::Retry { at } => {
            again(db, (row, number), at)?;
            None
        }
        RetryDecision::GivenUp => {
            finish(db, (row, number), FAILED)?;
            (!has_answered_since(db, row)?).then_some(DisabledBy::Failures)
        }
        RetryDecision::Gone => {
            finish(db, (row, number), FAILED)?;
            Some(DisabledBy::Gone)
        }
        RetryDecision::Unreadable => {
            finish(db, (row, number), FAILED)?;
            None
        }
    };
    if let Some(parcel) = found.parcel {
        outbox::release(db, parcel, outcome.at)?;
    }
    let Some(by) = off else { return Ok(Settled::Counted) };
    let is_new = at_once(endpoints::give_up(Sql::Sqlite(db), lease.tenant, by, outcome.at))?;
    Ok(if is_new { Settled::SwitchedOff(by) } else { Settled::Counted })
}

/// Ends an event with a status. An event that was held during the attempt and has arrived nevertheless is delivered.
fn finish(
    db: &Connection,
    (row, number): (i64, u32),
    delivery_status: i64,
) -> rusqlite::Result<()> {
    let mut update = db.prepare_cached(
        "UPDATE outbox SET state = ?2, due = NULL, leased = 0, attempts = ?3 WHERE id = ?1",
    )?;
    update.execute(params![row, delivery_status, number]).map(drop)
}

fn again(db: &Connection, (row, number): (i64, u32), at: Millis) -> rusqlite::Result<()> {
    let mut update = db.prepare_cached(
        "UPDATE outbox SET due = ?2, leased = 0, attempts = ?3 WHERE id = ?1 AND state = 1",
    )?;
    update.execute(params![row, at.0, number]).map(drop)
}

/// Returns `true` if the endpoint has accepted anything since the first attempt at this event.
fn has_answered_since(db: &Connection, row: i64) -> rusqlite::Result<bool> {
    let mut find = db.prepare_cached(concat!(
        "SELECT EXISTS (SELECT 1 FROM outbox o JOIN webhook_endpoints e ON e.tenant = ",
        home!("o.tenant"),
        " WHERE o.id = ?1 AND e.last_success >= o.first_attempt)"
    ))?;
    find.query_row([row], |row| row.get(0))
}

fn purge(db: &Connection, before: Millis, max: i64) -> rusqlite::Result<usize> {
    // Rows are appended in order of time, so if the first rows are young, all are.
    let old = concat!(
        "SELECT id FROM (SELECT id, created_at FROM outbox WHERE ",
        is_current!("tenant"),
        " ORDER BY id LIMIT ?2) WHERE created_at <= ?1"
    );
    let attempts = format!("DELETE FROM webhook_attempts WHERE outbox IN ({old})");
    db.prepare_cached(&attempts)?.execute([before.0, max])?;
    let events = format!("DELETE FROM outbox WHERE id IN ({old})");
    db.prepare_cached(&events)?.execute([before.0, max])
}
