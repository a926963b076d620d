//! Events of the outbox on their way: who has something due, what is leased to be sent, and what a
//! leased event says. An event is another's until its lease ends; the lease's number, which is never
//! given twice, distinguishes its row from any that took its place.

use std::{collections::HashMap, sync::Arc};

use tokio::task::JoinHandle;
use tokio_postgres::{Row, types::ToSql};
use ulid::Ulid;

use super::{
    Store, WRITE_TIMEOUT,
    connection::{Connection, bytes, get, number, small},
    due::unleased,
    endpoints,
    error::{DbResult, Failure},
    generations::{CURRENT, is_held},
    manifests,
    outbox::{self, FAILED},
    pages::{ROWS_PER_PAGE, in_page},
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
    store::{LeasedBatch, StoreError, generations::current},
};

impl Store {
    pub(crate) async fn outbox_changed(&self) {
        self.0.wake.notified().await;
    }

    pub(super) fn notify_outbox(&self) {
        self.0.wake.notify_one();
    }

    pub(crate) async fn lease(
        &self,
        shares: Vec<(Tenant, usize)>,
        now: Millis,
    ) -> Result<LeasedBatch, StoreError> {
        let tenants: Vec<i64> = shares.iter().map(|(tenant, _)| tenant.number()).collect();
        let wanted = Wanted {
            most: shares.iter().map(|(_, most)| i64::try_from(*most).unwrap_or(i64::MAX)).collect(),
            floors: self.0.floors.for_tenants(&tenants),
            tenants,
            server: self.0.server,
            clock: self.lease_clock(now),
            now,
        };
        let store = self.clone();
        let lease = async move |db: &Connection| lease(db, &wanted).await;
        let mut leasing = tokio::spawn(async move { store.call_within(None, lease).await });
        let Ok(leased) = tokio::time::timeout(WRITE_TIMEOUT, &mut leasing).await else {
            tokio::spawn(self.clone().give_back(leasing));
            return Err(StoreError::Busy { database: self.name() });
        };
        let leased = leased.map_err(|_panicked| StoreError::Broken { database: self.name() })??;
        for tenant in &leased.switched_off {
            self.hold(*tenant).await?;
        }
        Ok(leased)
    }

    /// Frees what is leased at last when no one waits for it any more. Otherwise it would wait for the lease's end.
    async fn give_back(self, leasing: JoinHandle<Result<LeasedBatch, StoreError>>) {
        let Ok(Ok(leased)) = leasing.await else { return };
        let Some((_, lease)) = leased.events.first() else { return };
        if let Err(error) = self.free_leased(Some(lease.number)).await {
            tracing::warn!(%error, "events are sent a minute late");
        }
        self.notify_outbox();
    }

    pub(crate) async fn payload(&self, lease: &Lease) -> Result<Option<EventPayload>, StoreError> {
        let lease = lease.clone();
        self.read(async move |db| payload(db, &lease).await).await
    }

    pub(crate) async fn logged_payload(
        &self,
        tenant: Tenant,
        event: Ulid,
    ) -> Result<Option<EventPayload>, StoreError> {
        self.read(async move |db| {
            let sql = format!(
                "SELECT event_id, kind, parcel, manifest, sequence, previous, happened_at, \
                 attempts FROM outbox WHERE tenant = {CURRENT} AND event_id = $2"
            );
            let found = db.all(&sql, &[&tenant.number(), &event.to_bytes().as_slice()]).await?;
            let Some(row) = found.first() else { return Ok(None) };
            payload(db, &read_lease(row, tenant, 0)?).await
        })
        .await
    }

    pub(crate) async fn forget(&self, lease: Lease) -> Result<(), StoreError> {
        self.call(async move |db| forget(db, &lease).await).await
    }

    /// Ends those of this server alone: another's are alive, or end by their time.
    pub(crate) async fn end_leases(&self, _now: Millis) -> Result<(), StoreError> {
        self.free_leased(None).await
    }

    /// Ends this server's lease with a number, or all of them.
    async fn free_leased(&self, number: Option<i64>) -> Result<(), StoreError> {
        let server = self.0.server;
        let page = async move |db: &Connection| {
            let sql = concat!(
                "UPDATE outbox SET leased = false, lease_until = NULL WHERE ",
                in_page!(
                    "id",
                    "outbox WHERE leased AND leased_by = $2 \
                     AND ($3::bigint IS NULL OR lease = $3) LIMIT $1"
                ),
            );
            db.execute(sql, &[&ROWS_PER_PAGE, &server, &number]).await
        };
        while self.page(page).await? == ROWS_PER_PAGE.unsigned_abs() {}
        Ok(())
    }
}

/// What is to be leased: so many events of each tenant, which are looked for from its floor on.
struct Wanted {
    tenants: Vec<i64>,
    most: Vec<i64>,
    floors: Vec<i64>,
    server: i64,
    clock: Option<i64>,
    now: Millis,
}

async fn lease(db: &Connection, wanted: &Wanted) -> DbResult<LeasedBatch> {
    let number = outbox::next_lease(db).await?;
    let (mut leased, mut endpoints) = (LeasedBatch::default(), HashMap::new());
    for (tenant, found) in endpoints::find_all(db, &wanted.tenants).await? {
        match found {
            Ok(endpoint) if endpoint.disabled.is_none() => {
                endpoints.insert(tenant, Arc::new(endpoint));
            }
            // It was turned off meanwhile.
            Ok(_) => {}
            Err(failure) if failure.is_row() => {
                let tenant = Tenant::from_number(tenant);
                endpoints::give_up(db, tenant, DisabledBy::Unreadable, wanted.now).await?;
                leased.switched_off.push(tenant);
            }
            Err(failure) => return Err(failure),
        }
    }
    for row in &take(db, wanted, (&endpoints, number)).await? {
        let Some(endpoint) = endpoints.get(&get(row, 9)?) else { continue };
        match read_lease(row, endpoint.tenant, number) {
            Ok(lease) => leased.events.push((Arc::clone(endpoint), lease)),
            Err(failure) if failure.is_row() => {
                set_aside(db, get(row, 8)?, wanted.now).await?;
                leased.unreadable.push(endpoint.tenant);
            }
            Err(failure) => return Err(failure),
        }
    }
    Ok(leased)
}

/// Takes the events under the lease with a number, for all tenants by one statement. What another server is leasing
/// at this moment is passed over: no two servers have the same event, and neither waits for the other. Each
/// tenant has its share, and so its own look into the index: one look over all tenants would be the
/// queue of the one that has the most.
async fn take(
    db: &Connection,
    wanted: &Wanted,
    (endpoints, number): (&HashMap<i64, Arc<Endpoint>>, i64),
) -> DbResult<Vec<Row>> {
    let shares = wanted.tenants.iter().zip(&wanted.most).zip(&wanted.floors);
    let shares: Vec<_> = shares.filter(|((tenant, _), _)| endpoints.contains_key(tenant)).collect();
    let tenants: Vec<i64> = shares.iter().map(|((tenant, _), _)| **tenant).collect();
    let most: Vec<i64> = shares.iter().map(|((_, most), _)| **most).collect();
    let floors: Vec<i64> = shares.iter().map(|(_, floor)| **floor).collect();
    // `due` stays, and so every index: what a lease writes is in none. An event that was written since the number was
    // drawn is left for the next lease: its answer could not be distinguished from a late one. A plan for any floor takes two plain
    // bounds of `due` for a handful of rows, and reads and sorts all that is due, however much that is; beside the
    // comparison of two columns it goes along the index.
    let sql = concat!(
        "WITH next AS (SELECT o.id FROM unnest($2::bigint[], $3::bigint[], $4::bigint[]) \
         AS s (tenant, most, floor) CROSS JOIN LATERAL (SELECT id FROM outbox WHERE tenant = ",
        current!("s.tenant"),
        " AND state = 1 AND (due, id) >= (s.floor, 0) AND due <= $5 AND after_lease < $7 AND ",
        unleased!(),
        " ORDER BY due, id LIMIT s.most FOR UPDATE SKIP LOCKED) AS o), \
         mine AS (UPDATE outbox AS o SET leased = true, leased_by = $6, lease = $7, \
         lease_until = $8 + coalesce($1::bigint, (extract(epoch FROM now()) * 1000)::bigint), \
         first_attempt = coalesce(first_attempt, $5) FROM next \
         WHERE o.id = next.id AND o.state = 1 \
         RETURNING o.event_id, o.kind, o.parcel, o.manifest, o.sequence, o.previous, \
         o.happened_at, o.attempts, o.id, o.tenant & 4294967295) SELECT * FROM mine ORDER BY id"
    );
    let given: [&(dyn ToSql + Sync); 8] =
        [&wanted.clock, &tenants, &most, &floors, &wanted.now.0, &wanted.server, &number, &LEASE];
    db.all(sql, &given).await
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
    outbox::log_attempts(db, &[(row, 1, &outcome)]).await?;
    let sql = "UPDATE outbox SET state = $2, due = NULL, leased = false, lease_until = NULL \
         WHERE id = $1 RETURNING parcel";
    if let Some(parcel) = db.value::<Option<i64>>(sql, &[&row, &FAILED]).await? {
        outbox::lock_parcel(db, parcel).await?;
        outbox::release(db, &[(parcel, now)]).await?;
    }
    Ok(())
}

/// Deletes a leased event with its log; one that is deleted already, though it may have come again, stays.
async fn forget(db: &Connection, lease: &Lease) -> DbResult<()> {
    // The parcel's row before the event's, as everyone does who has both.
    if let Some(parcel) = lease.parcel {
        outbox::lock_parcel(db, parcel.0).await?;
    }
    let sql = concat!(
        "WITH old AS (DELETE FROM outbox WHERE id = (SELECT id FROM outbox \
         WHERE event_id = $1 AND tenant & 4294967295 = $2 AND after_lease < $3 AND ",
        is_held!("tenant"),
        ") RETURNING id) DELETE FROM webhook_attempts WHERE outbox IN (SELECT id FROM old)"
    );
    let (event, tenant) = (lease.attempt.event.to_bytes(), lease.tenant.number());
    db.execute(sql, &[&event.as_slice(), &tenant, &lease.number]).await.map(drop)
}

async fn payload(db: &Connection, lease: &Lease) -> DbResult<Option<EventPayload>> {
    let Some(about) = about(db, lease).await? else { return Ok(None) };
    let Attempt { environment, event, .. } = lease.attempt;
    Ok(Some(EventPayload { event, environment, kind: lease.kind, at: lease.at, about }))
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
    let sql = select_parcels!(
        ", external_order_id",
        "WHERE parcels.id = $1 AND tenant & 4294967295 = $2"
    );
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
