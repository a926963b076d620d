//! Events of the outbox on their way: who has something due, what is leased to be sent, and what a
//! leased event says. An event is another's until its lease ends; the lease's number, which is never
//! given twice, distinguishes its row from any that took its place.

use std::sync::Arc;

use rusqlite::{Connection, OptionalExtension, Row, params};
use ulid::Ulid;

use super::{
    Store, StoreError, endpoints,
    error::is_damaged,
    manifests,
    outbox::{self, FAILED},
    parcels::{self, read_state, select_parcels},
};
use crate::{
    clock::Millis,
    domain::{
        ParcelRowId, Tenant, history,
        webhooks::{
            About, Attempt, AttemptResult, DeliveryError, DisabledBy, Endpoint, EventPayload, Kind,
            LEASE, Lease,
        },
    },
    store::generations::{current, is_current},
};

/// What one commit leased.
#[derive(Debug, Default)]
pub struct LeasedBatch {
    /// The events, each with its endpoint as it was then.
    pub events: Vec<(Arc<Endpoint>, Lease)>,
    /// The tenants of events that could not be read: each has failed.
    pub unreadable: Vec<Tenant>,
    /// The tenants whose endpoint could not be read: each is off now.
    pub switched_off: Vec<Tenant>,
}

impl LeasedBatch {
    /// Whether there was nothing of all that.
    pub fn is_empty(&self) -> bool {
        self.events.is_empty() && self.unreadable.is_empty() && self.switched_off.is_empty()
    }
}

/// The row of an event that was leased.
pub(super) struct Found {
    pub(super) row: i64,
    pub(super) parcel: Option<i64>,
    /// Whether the lease is the row's last, and no replay or new endpoint has ended it.
    pub(super) is_current: bool,
}

impl Store {
    /// Resolves when an event was enqueued, or had been since the last call.
    pub async fn outbox_changed(&self) {
        self.0.wake.notified().await;
    }

    pub(super) fn notify_outbox(&self) {
        self.0.wake.notify_one();
    }

    /// Up to `most` tenants to whose endpoints something is to be sent, who waits longest first.
    pub async fn tenants_with_due(
        &self,
        now: Millis,
        most: usize,
    ) -> Result<Vec<Tenant>, StoreError> {
        self.read(|db| {
            let mut find = db.prepare_cached(
                "SELECT tenant FROM webhook_endpoints WHERE enabled = 1 AND next_due <= ?1 \
                 ORDER BY next_due LIMIT ?2",
            )?;
            let most = i64::try_from(most).unwrap_or(i64::MAX);
            let tenant = |row: &Row<'_>| row.get(0).map(Tenant::from_number);
            find.query_map([now.0, most], tenant)?.collect()
        })
    }

    /// When the next delivery is due.
    pub async fn next_delivery(&self) -> Result<Option<Millis>, StoreError> {
        self.read(|db| {
            let mut find = db.prepare_cached(
                "SELECT min(next_due) FROM webhook_endpoints \
                 WHERE enabled = 1 AND next_due IS NOT NULL",
            )?;
            find.query_row([], |row| Ok(row.get::<_, Option<i64>>(0)?.map(Millis)))
        })
    }

    /// Leases up to so many due events of each tenant, in one commit: no other sender gets them until the
    /// lease ends. Rows that cannot be read are set aside, so that they hold up no others.
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

    /// What the body of a leased event says; none when its parcel or manifest is deleted.
    pub async fn payload(&self, lease: &Lease) -> Result<Option<EventPayload>, StoreError> {
        self.read(|db| payload(db, lease))
    }

    #[cfg(feature = "server")]
    pub(in crate::store) async fn logged_payload(
        &self,
        tenant: Tenant,
        event: Ulid,
    ) -> Result<Option<EventPayload>, StoreError> {
        self.read(|db| {
            let mut find = db.prepare_cached(concat!(
                "SELECT event_id, kind, parcel, manifest, sequence, previous, happened_at, attempts \
                 FROM outbox WHERE tenant = ",
                current!("?1"),
                " AND event_id = ?2"
            ))?;
            let given = params![tenant.number(), event.to_bytes()];
            let found = find.query_row(given, |row| read_lease(row, tenant, 0)).optional()?;
            found.map_or(Ok(None), |event| payload(db, &event))
        })
    }

    /// Ends every lease: for a server that starts, since no other can hold one.
    pub async fn end_leases(&self, now: Millis) -> Result<(), StoreError> {
        let page = move |db: &Connection, most| {
            let mut update = db.prepare_cached(concat!(
                "UPDATE outbox SET leased = 0, due = iif(due IS NULL, NULL, ?1) \
                 WHERE id IN (SELECT id FROM outbox WHERE leased = 1 AND ",
                is_current!("tenant"),
                " LIMIT ?2)"
            ))?;
            update.execute([now.0, most])
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
    for (tenant, most) in shares {
        match endpoints::find(db, *tenant) {
            Ok(Some(endpoint)) if endpoint.disabled.is_none() => {
                let endpoint = Arc::new(endpoint);
                lease_of(db, (&endpoint, *most, number), now, &mut leased)?;
            }
            // It was turned off or removed meanwhile.
            Ok(_) => {}
            Err(error) if is_damaged(&error) => {
                endpoints::give_up(db, *tenant, DisabledBy::Unreadable, now)?;
                leased.switched_off.push(*tenant);
            }
            Err(error) => return Err(error),
        }
    }
    Ok(leased)
}

/// The same for one endpoint, so many events under the lease with a number.
fn lease_of(
    db: &Connection,
    (endpoint, most, number): (&Arc<Endpoint>, usize, i64),
    now: Millis,
    leased: &mut LeasedBatch,
) -> rusqlite::Result<()> {
    let tenant = endpoint.tenant;
    let mut find = db.prepare_cached(concat!(
        "SELECT event_id, kind, parcel, manifest, sequence, previous, happened_at, attempts, id \
         FROM outbox WHERE tenant = ",
        current!("?1"),
        " AND due <= ?2 ORDER BY due, id LIMIT ?3"
    ))?;
    let most = i64::try_from(most).unwrap_or(i64::MAX);
    let due = find.query_map([tenant.number(), now.0, most], |row| {
        Ok((row.get::<_, i64>(8)?, read_lease(row, tenant, number)))
    })?;
    let mut mark = db.prepare_cached(
        "UPDATE outbox SET leased = 1, lease = ?4, due = ?2, \
         first_attempt = coalesce(first_attempt, ?3) WHERE id = ?1",
    )?;
    // All are read before the first is written, which changes what is due.
    for (row, lease) in due.collect::<Result<Vec<_>, _>>()? {
        match lease {
            Ok(lease) => {
                mark.execute([row, now.plus(LEASE).0, now.0, number])?;
                leased.events.push((Arc::clone(endpoint), lease));
            }
            Err(error) if is_damaged(&error) => {
                set_aside(db, row, now)?;
                leased.unreadable.push(tenant);
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn read_lease(row: &Row<'_>, tenant: Tenant, lease: i64) -> rusqlite::Result<Lease> {
    let event = Ulid::from_bytes(row.get(0)?);
    let number = row.get::<_, u32>(7)?.saturating_add(1);
    let previous = row.get::<_, Option<u8>>(5)?.map(|_| read_state(row, 5)).transpose()?;
    Ok(Lease {
        tenant,
        attempt: Attempt { environment: tenant.environment, event, number },
        kind: read_kind(row, 1)?,
        at: Millis(row.get(6)?),
        parcel: row.get::<_, Option<_>>(2)?.map(ParcelRowId),
        manifest: row.get(3)?,
        sequence: row.get(4)?,
        previous,
        number: lease,
    })
}

pub(super) fn read_kind(row: &Row<'_>, column: usize) -> rusqlite::Result<Kind> {
    let number = row.get(column)?;
    Kind::from_number(number)
        .ok_or_else(|| rusqlite::Error::IntegralValueOutOfRange(column, number.into()))
}

/// Fails the event in a row that cannot be read: leased again, it would be as unreadable.
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

/// The row of a leased event; none when it is deleted, though the same event may have come again. Its id
/// is good for this transaction only.
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

fn payload(db: &Connection, lease: &Lease) -> rusqlite::Result<Option<EventPayload>> {
    let Some(about) = about(db, lease)? else { return Ok(None) };
    let Attempt { environment, event, .. } = lease.attempt;
    Ok(Some(EventPayload { event, environment, kind: lease.kind, at: lease.at, about }))
}

fn about(db: &Connection, lease: &Lease) -> rusqlite::Result<Option<About>> {
    match (lease.parcel, lease.manifest) {
        (Some(parcel), _) => about_parcel(db, parcel, lease),
        (None, Some(manifest)) => {
            let found = manifests::of_event(db, (lease.tenant, manifest), lease.attempt.event)?;
            Ok(found.map(|manifest| About::Manifest(Box::new(manifest))))
        }
        (None, None) => Ok(Some(About::Nothing)),
    }
}

fn about_parcel(
    db: &Connection,
    parcel: ParcelRowId,
    lease: &Lease,
) -> rusqlite::Result<Option<About>> {
    let sql = select_parcels!(", external_order_id", "WHERE id = ?1 AND tenant = ", current!("?2"));
    let both = |row: &Row<'_>| Ok((parcels::read(row)?, row.get(parcels::MORE)?));
    let mut find = db.prepare_cached(sql)?;
    let found = find.query_row([parcel.0, lease.tenant.number()], both).optional()?;
    let Some((parcel, external_order_id)) = found else { return Ok(None) };
    let events = parcels::events(db, &parcel)?;
    let event = events.into_iter().find(|event| Some(event.sequence) == lease.sequence);
    let [ordered, _] = history::first_events(&parcel);
    let previous = lease.previous.unwrap_or(ordered.state);
    let parcel = Box::new(parcel);
    Ok(event.map(|event| About::Parcel { parcel, previous, event, external_order_id }))
}
