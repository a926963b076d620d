//! Leases of outbox events: finding the tenants with due events, and leasing events to send them. A leased event
//! belongs to one sender until the lease ends. Lease numbers are never reused, so the number distinguishes the event's
//! row from any row that takes its place.

use std::{collections::HashMap, sync::Arc};

use tokio::task::JoinHandle;
use tokio_postgres::{Row, types::ToSql};

use super::{
    Store, WRITE_TIMEOUT,
    connection::{Connection, get},
    due_events::unleased,
    endpoints,
    error::DbResult,
    generations::is_held,
    outbox::{self, FAILED},
    pages::{ROWS_PER_PAGE, in_page},
};
use crate::{
    clock::Millis,
    domain::{
        Tenant,
        webhooks::{AttemptResult, DeliveryError, DisabledBy, Endpoint, LEASE, Lease},
    },
    store::{
        self, LeasedBatch, StoreError,
        generations::current,
        payloads::read_lease,
        sql::{self, Sql},
    },
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
        let request = LeaseRequest {
            max: shares.iter().map(|(_, max)| i64::try_from(*max).unwrap_or(i64::MAX)).collect(),
            floors: self.0.floors.for_tenants(&tenants),
            tenants,
            server: self.0.server,
            clock: self.lease_clock(now),
            now,
        };
        let store = self.clone();
        let lease = async move |db: &Connection| lease(db, &request).await;
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

    /// Frees the events of a lease whose caller has stopped waiting, because they would stay leased otherwise.
    async fn give_back(self, leasing: JoinHandle<Result<LeasedBatch, StoreError>>) {
        let Ok(Ok(leased)) = leasing.await else { return };
        let Some((_, lease)) = leased.events.first() else { return };
        if let Err(error) = self.free_leased(Some(lease.number)).await {
            tracing::warn!(%error, "events are sent a minute late");
        }
        self.notify_outbox();
    }

    pub(crate) async fn forget(&self, lease: Lease) -> Result<(), StoreError> {
        self.call(async move |db| forget(db, &lease).await).await
    }

    /// Ends only the leases of this server: other servers' leases are in use, or expire.
    pub(crate) async fn end_leases(&self, _now: Millis) -> Result<(), StoreError> {
        self.free_leased(None).await
    }

    /// Ends this server's lease with a number, or all leases of this server.
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

/// The request for a lease: the maximum number of events for each tenant, and the floor from which events are searched.
struct LeaseRequest {
    tenants: Vec<i64>,
    max: Vec<i64>,
    floors: Vec<i64>,
    server: i64,
    clock: Option<i64>,
    now: Millis,
}

async fn lease(db: &Connection, request: &LeaseRequest) -> DbResult<LeasedBatch> {
    let number = outbox::next_lease(db).await?;
    let (mut leased, mut endpoints) = (LeasedBatch::default(), HashMap::new());
    for (tenant, found) in endpoints::find_all(db, &request.tenants).await? {
        match found {
            Ok(endpoint) if endpoint.disabled.is_none() => {
                endpoints.insert(tenant, Arc::new(endpoint));
            }
            // The endpoint was turned off in between.
            Ok(_) => {}
            Err(failure) if failure.is_row() => {
                let tenant = Tenant::from_number(tenant);
                let why = DisabledBy::Unreadable;
                store::endpoints::give_up(Sql::Postgres(db), tenant, why, request.now).await?;
                leased.switched_off.push(tenant);
            }
            Err(failure) => return Err(failure),
        }
    }
    for row in &take(db, request, (&endpoints, number)).await? {
        let Some(endpoint) = endpoints.get(&get(row, 9)?) else { continue };
        match read_lease(&sql::Row::Postgres(row), endpoint.tenant, number) {
            Ok(lease) => leased.events.push((Arc::clone(endpoint), lease)),
            Err(error) if error.is_row_error() => {
                set_aside(db, get(row, 8)?, request.now).await?;
                leased.unreadable.push(endpoint.tenant);
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(leased)
}

/// Leases events under a lease number, for all tenants in one statement. Events that another server is leasing at the
/// same time are skipped, so no event is leased twice and neither server waits. Each tenant has its own limit and its
/// own index scan: in a single scan, the tenant with the most events would crowd out the others.
async fn take(
    db: &Connection,
    request: &LeaseRequest,
    (endpoints, number): (&HashMap<i64, Arc<Endpoint>>, i64),
) -> DbResult<Vec<Row>> {
    let shares = request.tenants.iter().zip(&request.max).zip(&request.floors);
    let shares: Vec<_> = shares.filter(|((tenant, _), _)| endpoints.contains_key(tenant)).collect();
    let tenants: Vec<i64> = shares.iter().map(|((tenant, _), _)| **tenant).collect();
    let max: Vec<i64> = shares.iter().map(|((_, max), _)| **max).collect();
    let floors: Vec<i64> = shares.iter().map(|(_, floor)| **floor).collect();
    // A lease writes no indexed column: `due` stays, and so do all index entries. An event that was written after the
    // lease's number was drawn is left for the next lease, because its answer would look like a late one. With two
    // plain bounds of `due`, a generic plan expects a handful of rows, and so reads and sorts all due events. Comparing
    // two columns makes it follow the index.
    let sql = concat!(
        "WITH next AS (SELECT o.id FROM unnest($2::bigint[], $3::bigint[], $4::bigint[]) \
         AS s (tenant, max, floor) CROSS JOIN LATERAL (SELECT id FROM outbox WHERE tenant = ",
        current!("s.tenant"),
        " AND state = 1 AND (due, id) >= (s.floor, 0) AND due <= $5 AND after_lease < $7 AND ",
        unleased!(),
        " ORDER BY due, id LIMIT s.max FOR UPDATE SKIP LOCKED) AS o), \
         mine AS (UPDATE outbox AS o SET leased = true, leased_by = $6, lease = $7, \
         lease_until = $8 + coalesce($1::bigint, (extract(epoch FROM now()) * 1000)::bigint), \
         first_attempt = coalesce(first_attempt, $5) FROM next \
         WHERE o.id = next.id AND o.state = 1 \
         RETURNING o.event_id, o.kind, o.parcel, o.manifest, o.sequence, o.previous, \
         o.happened_at, o.attempts, o.id, o.tenant & 4294967295) SELECT * FROM mine ORDER BY id"
    );
    let given: [&(dyn ToSql + Sync); 8] =
        [&request.clock, &tenants, &max, &floors, &request.now.0, &request.server, &number, &LEASE];
    db.all(sql, &given).await
}

/// Fails the event in an unreadable row, because the next lease could not read it either.
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

/// Deletes a leased event with its log. If it is deleted already and the same event was enqueued again, the new one
/// stays.
async fn forget(db: &Connection, lease: &Lease) -> DbResult<()> {
    // The parcel's row is locked before the event's, as in every transaction that locks both.
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
