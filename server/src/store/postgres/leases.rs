//! Events of the outbox on their way: who has something due, what is leased to be sent, and what a
//! leased event says. An event is another's until its lease ends; the lease's number, which is never
//! given twice, distinguishes its row from any that took its place.

use std::sync::Arc;

use tokio_postgres::{Row, types::ToSql};
use ulid::Ulid;

use super::{
    Store,
    connection::{Connection, bytes, get, number, small},
    endpoints,
    error::{DbResult, Failure},
    manifests,
    outbox::{self, FAILED},
    pages::ROWS_PER_PAGE,
    parcels::{self, select_parcels},
};
use crate::{
    clock::Millis,
    domain::{
        ParcelRowId, State, Tenant, history,
        webhooks::{
            About, Attempt, AttemptResult, DeliveryError, DisabledBy, Endpoint, EventPayload, Kind,
            LEASE, Lease,
        },
    },
    store::{LeasedBatch, StoreError},
};

/// The row of an event that was leased.
pub(super) struct Found {
    pub(super) row: i64,
    pub(super) parcel: Option<i64>,
    /// Whether the lease is the row's last, and no replay or new endpoint has ended it.
    pub(super) is_current: bool,
}

impl Store {
    pub(crate) async fn outbox_changed(&self) {
        self.0.wake.notified().await;
    }

    pub(super) fn notify_outbox(&self) {
        self.0.wake.notify_one();
    }

    pub(crate) async fn tenants_with_due(
        &self,
        now: Millis,
        most: usize,
    ) -> Result<Vec<Tenant>, StoreError> {
        let most = i64::try_from(most).unwrap_or(i64::MAX);
        self.read(async move |db| {
            // One look into an index for each endpoint, however many events wait.
            let sql = "SELECT e.tenant FROM webhook_endpoints AS e CROSS JOIN LATERAL \
                 (SELECT due FROM living_outbox AS o WHERE o.tenant = e.tenant AND due IS NOT NULL \
                 ORDER BY due LIMIT 1) AS first \
                 WHERE e.enabled AND first.due <= $1 ORDER BY first.due LIMIT $2";
            db.each(sql, &[&now.0, &most], |row| get(row, 0).map(Tenant::from_number)).await
        })
        .await
    }

    pub(crate) async fn next_delivery(&self) -> Result<Option<Millis>, StoreError> {
        self.read(async |db| {
            let sql = "SELECT min(first.due) FROM webhook_endpoints AS e CROSS JOIN LATERAL \
                 (SELECT due FROM living_outbox AS o WHERE o.tenant = e.tenant AND due IS NOT NULL \
                 ORDER BY due LIMIT 1) AS first WHERE e.enabled";
            Ok(db.value::<Option<i64>>(sql, &[]).await?.map(Millis))
        })
        .await
    }

    pub(crate) async fn lease(
        &self,
        shares: Vec<(Tenant, usize)>,
        now: Millis,
    ) -> Result<LeasedBatch, StoreError> {
        let server = self.0.server;
        let leased = self.call(async move |db| lease(db, (&shares, server), now).await).await?;
        for tenant in &leased.switched_off {
            self.hold(*tenant).await?;
        }
        Ok(leased)
    }

    pub(crate) async fn payload(&self, lease: &Lease) -> Result<Option<EventPayload>, StoreError> {
        let lease = lease.clone();
        self.read(async move |db| {
            let Some(about) = about(db, &lease).await? else { return Ok(None) };
            let Attempt { environment, event, .. } = lease.attempt;
            Ok(Some(EventPayload { event, environment, kind: lease.kind, at: lease.at, about }))
        })
        .await
    }

    /// Ends those of this server alone: another's are alive, or end by their time.
    pub(crate) async fn end_leases(&self, now: Millis) -> Result<(), StoreError> {
        let server = self.0.server;
        self.in_pages(async move |db| {
            let sql = "UPDATE outbox SET leased = false, \
                 due = CASE WHEN due IS NOT NULL THEN $1::bigint END \
                 WHERE id IN (SELECT id FROM living_outbox \
                 WHERE leased AND leased_by = $3 LIMIT $2)";
            db.execute(sql, &[&now.0, &ROWS_PER_PAGE, &server]).await
        })
        .await
        .map(drop)
    }
}

async fn lease(
    db: &Connection,
    (shares, server): (&[(Tenant, usize)], i64),
    now: Millis,
) -> DbResult<LeasedBatch> {
    let number = outbox::next_lease(db).await?;
    let mut leased = LeasedBatch::default();
    for (tenant, most) in shares {
        match endpoints::find(db, *tenant).await {
            Ok(Some(endpoint)) if endpoint.disabled.is_none() => {
                let endpoint = Arc::new(endpoint);
                let which = (*most, number, server);
                lease_of(db, &endpoint, (which, now), &mut leased).await?;
            }
            // It was turned off or removed meanwhile.
            Ok(_) => {}
            Err(failure) if failure.is_row() => {
                endpoints::switch_off(db, tenant.number(), DisabledBy::Unreadable).await?;
                leased.switched_off.push(*tenant);
            }
            Err(failure) => return Err(failure),
        }
    }
    Ok(leased)
}

/// The same for one endpoint, so many events under the lease with a number. What another server is leasing
/// at this moment is passed over: no two servers have the same event, and none waits for the other.
async fn lease_of(
    db: &Connection,
    endpoint: &Arc<Endpoint>,
    ((most, number, server), now): ((usize, i64, i64), Millis),
    leased: &mut LeasedBatch,
) -> DbResult<()> {
    let tenant = endpoint.tenant;
    let most = i64::try_from(most).unwrap_or(i64::MAX);
    let sql = "WITH next AS (SELECT id FROM living_outbox WHERE tenant = $1 AND due <= $2 \
         ORDER BY due, id LIMIT $3 FOR UPDATE SKIP LOCKED), \
         mine AS (UPDATE outbox AS o SET leased = true, leased_by = $6, \
         lease = $5, due = $4, \
         first_attempt = coalesce(first_attempt, $2) FROM next WHERE o.id = next.id \
         RETURNING o.event_id, o.kind, o.parcel, o.manifest, o.sequence, o.previous, \
         o.happened_at, o.attempts, o.id) SELECT * FROM mine ORDER BY id";
    let given: [&(dyn ToSql + Sync); 6] =
        [&tenant.number(), &now.0, &most, &now.plus(LEASE).0, &number, &server];
    for row in &db.all(sql, &given).await? {
        match read_lease(row, tenant, number) {
            Ok(lease) => leased.events.push((Arc::clone(endpoint), lease)),
            Err(failure) if failure.is_row() => {
                set_aside(db, get(row, 8)?, now).await?;
                leased.unreadable.push(tenant);
            }
            Err(failure) => return Err(failure),
        }
    }
    Ok(())
}

fn read_lease(row: &Row, tenant: Tenant, lease: i64) -> DbResult<Lease> {
    let event = Ulid::from_bytes(bytes(row, 0)?);
    let attempt = number::<u32>(row, 7)?.saturating_add(1);
    let sequence: Option<i64> = get(row, 4)?;
    let previous = get::<Option<i16>>(row, 5)?.map(|_some| parcels::read_state(row, 5));
    Ok(Lease {
        tenant,
        attempt: Attempt { environment: tenant.environment, event, number: attempt },
        kind: read_kind(row, 1)?,
        at: Millis(get(row, 6)?),
        parcel: get::<Option<i64>>(row, 2)?.map(ParcelRowId),
        manifest: get(row, 3)?,
        sequence: sequence.map(u32::try_from).transpose().map_err(Failure::row)?,
        previous: previous.transpose()?,
        number: lease,
    })
}

pub(super) fn read_kind(row: &Row, column: usize) -> DbResult<Kind> {
    let number = small(row, column)?;
    Kind::from_number(number).ok_or_else(|| Failure::row(format!("no kind is numbered {number}")))
}

/// Fails the event in a row that cannot be read: leased again, it would be as unreadable.
async fn set_aside(db: &Connection, row: i64, now: Millis) -> DbResult<()> {
    let outcome = AttemptResult { at: now, millis: 0, answer: Err(DeliveryError::Unreadable) };
    outbox::log_attempt(db, (row, 1), &outcome).await?;
    let sql = "UPDATE outbox SET state = $2, due = NULL, leased = false WHERE id = $1 \
         RETURNING parcel";
    if let Some(parcel) = db.value::<Option<i64>>(sql, &[&row, &FAILED]).await? {
        outbox::lock_parcel(db, parcel).await?;
        outbox::release(db, parcel, now).await?;
    }
    Ok(())
}

/// The row of a leased event; none when it is deleted, though the same event may have come again.
pub(super) async fn find(db: &Connection, lease: &Lease) -> DbResult<Option<Found>> {
    // The parcel's row before the event's, as everyone does who has both.
    if let Some(parcel) = lease.parcel {
        outbox::lock_parcel(db, parcel.0).await?;
    }
    let sql = "SELECT id, parcel, lease = $3 FROM living_outbox \
         WHERE event_id = $1 AND tenant = $2 AND after_lease < $3 FOR UPDATE";
    let (event, tenant) = (lease.attempt.event.to_bytes(), lease.tenant.number());
    let found = db.first(sql, &[&event.as_slice(), &tenant, &lease.number]).await?;
    let Some(row) = found else { return Ok(None) };
    Ok(Some(Found { row: get(&row, 0)?, parcel: get(&row, 1)?, is_current: get(&row, 2)? }))
}

async fn about(db: &Connection, lease: &Lease) -> DbResult<Option<About>> {
    match (lease.parcel, lease.manifest) {
        (Some(parcel), _) => about_parcel(db, parcel, lease).await,
        (None, Some(manifest)) => {
            let place = (lease.tenant, manifest);
            let found = manifests::of_event(db, place, lease.attempt.event).await?;
            Ok(found.map(|manifest| About::Manifest(Box::new(manifest))))
        }
        (None, None) => Ok(Some(About::Nothing)),
    }
}

async fn about_parcel(
    db: &Connection,
    parcel: ParcelRowId,
    lease: &Lease,
) -> DbResult<Option<About>> {
    let sql = select_parcels!(", external_order_id", "WHERE parcels.id = $1 AND tenant = $2");
    let found = db.first(sql, &[&parcel.0, &lease.tenant.number()]).await?;
    let Some(row) = found else { return Ok(None) };
    let external_order_id = get(&row, parcels::MORE)?;
    let parcel = parcels::read_or_name(&row)?;
    let events = parcels::events(db, &parcel).await?;
    let event = events.into_iter().find(|event| Some(event.sequence) == lease.sequence);
    let [ordered, _] = history::first_events(&parcel);
    let previous: State = lease.previous.unwrap_or(ordered.state);
    let parcel = Box::new(parcel);
    Ok(event.map(|event| About::Parcel { parcel, previous, event, external_order_id }))
}
