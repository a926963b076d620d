//! Deliveries in the database: taken for a while, settled by what came of them, and their log.

use rusqlite::{Connection, OptionalExtension, Row, params};
use ulid::Ulid;

use super::{
    Store, StoreError, endpoints,
    outbox::{self, DELIVERED, FAILED, MISSED},
    parcels::{self, read_state, select_parcels},
};
use crate::{
    clock::Millis,
    core::{
        ParcelKey, Tenant, history,
        webhooks::{
            About, Attempt, DisabledBy, Endpoint, Kind, LEASE, Logged, LoggedAttempt, Outcome,
            Standing, Taken, Telling, Verdict,
        },
    },
};

/// How much of an answer is kept.
const ANSWER: usize = 1_024;

/// Events that are to be delivered, all of a tenant's taken together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pending {
    /// How many.
    pub events: i64,
    /// When the oldest was written.
    pub since: Millis,
}

impl Store {
    /// Resolves when something was put into the outbox, or had been since the last call.
    pub async fn told(&self) {
        self.0.wake.notified().await;
    }

    pub(super) fn wake(&self) {
        self.0.wake.notify_one();
    }

    /// The tenants to whose endpoints something is to be sent.
    pub fn tenants_with_due(&self, now: Millis) -> Result<Vec<Tenant>, StoreError> {
        self.read(|db| {
            let mut find = db.prepare_cached(
                "SELECT tenant FROM webhook_endpoints e WHERE enabled = 1 \
                 AND EXISTS (SELECT 1 FROM living_outbox WHERE tenant = e.tenant AND due <= ?1)",
            )?;
            let tenant = |row: &Row<'_>| row.get(0).map(Tenant::of_number);
            find.query_map([now.0], tenant)?.collect()
        })
    }

    /// What each tenant's endpoint has still to be told: how many events, and since when.
    pub fn pending(&self) -> Result<Vec<(Tenant, Pending)>, StoreError> {
        self.read(|db| {
            let mut find = db.prepare_cached(
                "SELECT tenant, count(*), min(created_at) FROM living_outbox WHERE state < 2 GROUP BY tenant",
            )?;
            let pending = |row: &Row<'_>| {
                let pending = Pending { events: row.get(1)?, since: Millis(row.get(2)?) };
                Ok((Tenant::of_number(row.get(0)?), pending))
            };
            find.query_map([], pending)?.collect()
        })
    }

    /// When the next delivery is due.
    pub fn next_delivery(&self) -> Result<Option<Millis>, StoreError> {
        self.read(|db| {
            let mut find = db.prepare_cached(
                "SELECT min((SELECT min(due) FROM living_outbox WHERE tenant = e.tenant AND due IS NOT NULL)) \
                 FROM webhook_endpoints e WHERE enabled = 1",
            )?;
            find.query_row([], |row| Ok(row.get::<_, Option<i64>>(0)?.map(Millis)))
        })
    }

    /// Takes up to `most` due events of a tenant, and its endpoint as it is then: they are nobody
    /// else's until the lease ends.
    pub async fn take_due(
        &self,
        tenant: Tenant,
        most: usize,
        now: Millis,
    ) -> Result<Option<(Endpoint, Vec<Taken>)>, StoreError> {
        self.call(move |db| {
            let Some(endpoint) = endpoints::find(db, tenant)? else { return Ok(None) };
            Ok(Some((endpoint, take(db, tenant, most, now)?)))
        })
        .await
    }

    /// What the body of a taken event says; none when its parcel or manifest is deleted.
    pub fn telling(&self, taken: &Taken) -> Result<Option<Telling>, StoreError> {
        self.read(|db| {
            let Some(about) = about(db, taken)? else { return Ok(None) };
            let Attempt { environment, event, .. } = taken.attempt;
            Ok(Some(Telling { event, environment, kind: taken.kind, at: taken.at, about }))
        })
    }

    /// Writes down an attempt and what it means for the event, its successors and the endpoint:
    /// nothing when the event was replayed or its endpoint replaced meanwhile.
    pub async fn settle(
        &self,
        taken: Taken,
        outcome: Outcome,
        verdict: Verdict,
    ) -> Result<(), StoreError> {
        self.call(move |db| settle(db, &taken, &outcome, verdict)).await?;
        self.wake();
        Ok(())
    }

    /// Deletes a taken event that has nothing left to tell.
    pub async fn forget(&self, taken: &Taken) -> Result<(), StoreError> {
        let row = taken.row;
        self.call(move |db| db.execute("DELETE FROM outbox WHERE id = ?1", [row]).map(drop)).await
    }

    /// Ends every lease: for a server that starts, since no other can hold one.
    pub async fn end_leases(&self, now: Millis) -> Result<(), StoreError> {
        self.call(move |db| {
            let sql = "UPDATE outbox SET leased = 0, due = ?1 WHERE due IS NOT NULL AND leased = 1";
            db.execute(sql, [now.0]).map(drop)
        })
        .await
    }

    /// Deletes what came about at `before` or earlier, with its log, page by page.
    pub async fn purge_outbox(&self, before: Millis) -> Result<usize, StoreError> {
        let purged = self.in_pages(move |db, most| purge(db, before, most)).await?;
        self.erased(purged > 0);
        Ok(usize::try_from(purged).unwrap_or(usize::MAX))
    }

    /// The tenant's latest events and their attempts, newest first.
    pub fn deliveries(&self, tenant: Tenant, most: usize) -> Result<Vec<Logged>, StoreError> {
        self.older_deliveries(tenant, 0, most)
    }

    /// The same after the `skipped` latest.
    pub fn older_deliveries(
        &self,
        tenant: Tenant,
        skipped: usize,
        most: usize,
    ) -> Result<Vec<Logged>, StoreError> {
        self.read(|db| {
            let mut find = db.prepare(
                "SELECT o.id, o.event_id, o.kind, p.number, o.state, o.created_at, o.due \
                 FROM living_outbox o LEFT JOIN living_parcels p ON p.id = o.parcel \
                 WHERE o.tenant = ?1 ORDER BY o.id DESC LIMIT ?2 OFFSET ?3",
            )?;
            let [most, skipped] = [most, skipped].map(|n| i64::try_from(n).unwrap_or(i64::MAX));
            find.query_map([tenant.number(), most, skipped], |row| logged(db, row))?.collect()
        })
    }

    /// True when an event of the tenant's failed or is held.
    pub fn has_missed(&self, tenant: Tenant) -> Result<bool, StoreError> {
        self.read(|db| {
            let sql = format!(
                "SELECT EXISTS (SELECT 1 FROM living_outbox WHERE tenant = ?1 AND {MISSED})"
            );
            db.query_row(&sql, [tenant.number()], |row| row.get(0))
        })
    }
}

fn take(db: &Connection, tenant: Tenant, most: usize, now: Millis) -> rusqlite::Result<Vec<Taken>> {
    let mut find = db.prepare_cached(
        "SELECT id, event_id, kind, parcel, manifest, sequence, previous, happened_at, attempts, \
         lease FROM living_outbox WHERE tenant = ?1 AND due <= ?2 ORDER BY due, id LIMIT ?3",
    )?;
    let most = i64::try_from(most).unwrap_or(i64::MAX);
    let rows = find.query_map([tenant.number(), now.0, most], |row| taken(row, tenant))?;
    let all = rows.collect::<Result<Vec<_>, _>>()?;
    let mut lease = db.prepare_cached(
        "UPDATE outbox SET leased = 1, lease = ?4, due = ?2, \
         first_attempt = coalesce(first_attempt, ?3) WHERE id = ?1",
    )?;
    for taken in &all {
        lease.execute([taken.row, now.plus(LEASE).0, now.0, taken.lease])?;
    }
    Ok(all)
}

fn taken(row: &Row<'_>, tenant: Tenant) -> rusqlite::Result<Taken> {
    let event = Ulid::from_bytes(row.get(1)?);
    let number = row.get::<_, u32>(8)?.saturating_add(1);
    let previous = row.get::<_, Option<u8>>(6)?.map(|_| read_state(row, 6)).transpose()?;
    Ok(Taken {
        row: row.get(0)?,
        tenant,
        attempt: Attempt { environment: tenant.environment, event, number },
        kind: read_kind(row, 2)?,
        at: Millis(row.get(7)?),
        parcel: row.get::<_, Option<_>>(3)?.map(ParcelKey),
        manifest: row.get(4)?,
        sequence: row.get(5)?,
        previous,
        lease: row.get::<_, i64>(9)?.saturating_add(1),
    })
}

fn read_kind(row: &Row<'_>, column: usize) -> rusqlite::Result<Kind> {
    let number = row.get(column)?;
    Kind::of_number(number)
        .ok_or_else(|| rusqlite::Error::IntegralValueOutOfRange(column, number.into()))
}

fn about(db: &Connection, taken: &Taken) -> rusqlite::Result<Option<About>> {
    match (taken.parcel, taken.manifest) {
        (Some(parcel), _) => about_parcel(db, parcel, taken),
        (None, Some(manifest)) => {
            let found = super::manifests::document_of(db, manifest)?;
            Ok(found.map(|manifest| About::Manifest(Box::new(manifest))))
        }
        (None, None) => Ok(Some(About::Nothing)),
    }
}

fn about_parcel(
    db: &Connection,
    parcel: ParcelKey,
    taken: &Taken,
) -> rusqlite::Result<Option<About>> {
    let sql = select_parcels!(", json_extract(order_json, '$.externalOrderId')", "WHERE id = ?1");
    let both = |row: &Row<'_>| Ok((parcels::read(row)?, row.get(parcels::MORE)?));
    let found = db.prepare_cached(sql)?.query_row([parcel.0], both).optional()?;
    let Some((parcel, external_order_id)) = found else { return Ok(None) };
    let events = parcels::events(db, &parcel)?;
    let event = events.into_iter().find(|event| Some(event.sequence) == taken.sequence);
    let [ordered, _] = history::first_events(&parcel);
    let previous = taken.previous.unwrap_or(ordered.state);
    let parcel = Box::new(parcel);
    Ok(event.map(|event| About::Parcel { parcel, previous, event, external_order_id }))
}

fn settle(
    db: &Connection,
    taken: &Taken,
    outcome: &Outcome,
    verdict: Verdict,
) -> rusqlite::Result<()> {
    log(db, taken, outcome)?;
    if !is_still(db, taken)? {
        return Ok(());
    }
    let (tenant, now) = (taken.tenant.number(), outcome.at);
    match verdict {
        Verdict::Delivered => {
            finish(db, taken, DELIVERED)?;
            db.prepare_cached("UPDATE webhook_endpoints SET last_success = ?2 WHERE tenant = ?1")?
                .execute([tenant, now.0])?;
        }
        Verdict::Again { at } => again(db, taken, at)?,
        Verdict::GivenUp => {
            finish(db, taken, FAILED)?;
            if !has_answered_since(db, taken)? {
                endpoints::disable(db, tenant, DisabledBy::Failures)?;
            }
        }
        Verdict::Gone => {
            finish(db, taken, FAILED)?;
            endpoints::disable(db, tenant, DisabledBy::Gone)?;
        }
    }
    match taken.parcel {
        Some(parcel) => outbox::release(db, parcel.0, now),
        None => Ok(()),
    }
}

/// Whether the event is still as it was taken, for the endpoint it was taken for.
fn is_still(db: &Connection, taken: &Taken) -> rusqlite::Result<bool> {
    let sql = "SELECT EXISTS (SELECT 1 FROM living_outbox WHERE id = ?1 AND lease = ?2)";
    db.prepare_cached(sql)?.query_row([taken.row, taken.lease], |row| row.get(0))
}

fn log(db: &Connection, taken: &Taken, outcome: &Outcome) -> rusqlite::Result<()> {
    let said = outcome.said.as_ref();
    let answer = said.map(|said| said.beginning.get(..ANSWER).unwrap_or(&said.beginning)).ok();
    let mut insert = db.prepare_cached(
        "INSERT INTO webhook_attempts (outbox, number, at, millis, status, error, answer) \
         SELECT id, ?2, ?3, ?4, ?5, ?6, ?7 FROM living_outbox WHERE id = ?1",
    )?;
    insert.execute(params![
        taken.row,
        taken.attempt.number,
        outcome.at.0,
        outcome.millis,
        said.map(|said| said.status).ok(),
        said.err().map(ToString::to_string),
        answer,
    ])?;
    Ok(())
}

/// An event that was held meanwhile and has arrived all the same is delivered.
fn finish(db: &Connection, taken: &Taken, standing: i64) -> rusqlite::Result<()> {
    let mut update = db.prepare_cached(
        "UPDATE outbox SET state = ?2, due = NULL, leased = 0, attempts = ?3 WHERE id = ?1",
    )?;
    update.execute(params![taken.row, standing, taken.attempt.number]).map(drop)
}

fn again(db: &Connection, taken: &Taken, at: Millis) -> rusqlite::Result<()> {
    let mut update = db.prepare_cached(
        "UPDATE outbox SET due = ?2, leased = 0, attempts = ?3 WHERE id = ?1 AND state = 1",
    )?;
    update.execute(params![taken.row, at.0, taken.attempt.number]).map(drop)
}

/// Whether the endpoint has taken anything since the first attempt at this event.
fn has_answered_since(db: &Connection, taken: &Taken) -> rusqlite::Result<bool> {
    let mut find = db.prepare_cached(
        "SELECT EXISTS (SELECT 1 FROM webhook_endpoints e JOIN living_outbox o ON o.tenant = e.tenant \
         WHERE o.id = ?1 AND e.last_success >= o.first_attempt)",
    )?;
    find.query_row([taken.row], |row| row.get(0))
}

fn purge(db: &Connection, before: Millis, most: i64) -> rusqlite::Result<usize> {
    // Rows are appended as time goes by: when the first are young, all are.
    let old = "SELECT id FROM (SELECT id, created_at FROM living_outbox ORDER BY id LIMIT ?2) \
         WHERE created_at <= ?1";
    let attempts = format!("DELETE FROM webhook_attempts WHERE outbox IN ({old})");
    db.prepare_cached(&attempts)?.execute([before.0, most])?;
    let events = format!("DELETE FROM outbox WHERE id IN ({old})");
    db.prepare_cached(&events)?.execute([before.0, most])
}

fn logged(db: &Connection, row: &Row<'_>) -> rusqlite::Result<Logged> {
    let standing = usize::from(row.get::<_, u8>(4)?);
    let mut find = db.prepare_cached(
        "SELECT number, at, millis, status, error, answer FROM webhook_attempts \
         WHERE outbox = ?1 ORDER BY id",
    )?;
    let attempt = |row: &Row<'_>| {
        Ok(LoggedAttempt {
            number: row.get(0)?,
            at: Millis(row.get(1)?),
            millis: row.get(2)?,
            status: row.get(3)?,
            error: row.get(4)?,
            answer: row.get::<_, Option<_>>(5)?.unwrap_or_default(),
        })
    };
    let attempts = find.query_map([row.get::<_, i64>(0)?], attempt)?;
    Ok(Logged {
        event: Ulid::from_bytes(row.get(1)?),
        kind: read_kind(row, 2)?,
        tracking_number: row.get(3)?,
        standing: Standing::ALL.get(standing).copied().unwrap_or(Standing::Failed),
        created_at: Millis(row.get(5)?),
        due: row.get::<_, Option<_>>(6)?.map(Millis),
        attempts: attempts.collect::<Result<_, _>>()?,
    })
}
