//! Leases of outbox events: finding what is due, and leasing events to send them. A leased event belongs to one sender
//! until the lease ends. Lease numbers are never reused, so the number distinguishes the event's row from any row that
//! takes its place.
//!
//! A file's lease ends when its event is due again. On PostgreSQL an event has a separate time for that, so that a
//! lease writes no indexed column: all index entries stay.

use std::{collections::HashMap, sync::Arc};

use parcelo_domain::{
    Millis, Tenant,
    webhooks::{AttemptResult, DeliveryError, DeliveryLease, DisabledBy, Endpoint, LEASE_MILLIS},
};

use super::{
    Engine, LeasedBatch, Store, StoreError, endpoints,
    generations::{current_generation, is_current, is_current_locked, own_number},
    outbox::{self, FAILED},
    payloads::{lease_columns, read_lease},
    sql::{Row, Sql, SqlResult, params, poll_now},
    values::Value,
};

/// Maximum number of leases that one commit ends, because other writes wait for it.
const MAX_LEASES_PER_PAGE: u64 = 100;

/// A request for a lease.
#[derive(Debug)]
pub(super) struct LeaseRequest {
    /// The tenants, each with the maximum number of its events, and the time from which they are searched.
    pub(super) shares: Vec<(Tenant, usize, i64)>,
    pub(super) now: Millis,
    /// The server that leases, and the time at which the lease begins; `None` means the database's clock.
    pub(super) server: (i64, Option<i64>),
}

impl Store {
    /// Returns up to `max` tenants with due events for their endpoints, the longest waiting first.
    pub async fn tenants_with_due(
        &self,
        now: Millis,
        max: usize,
    ) -> Result<Vec<Tenant>, StoreError> {
        match &self.0 {
            Engine::Sqlite(_) => {
                self.query(async move |db| {
                    let sql = "SELECT tenant FROM webhook_endpoints \
                         WHERE enabled = 1 AND next_due <= $1 ORDER BY next_due LIMIT $2";
                    let tenant = |row: &Row<'_>| row.get(0).map(Tenant::from_number);
                    db.query_map(sql, params![now, max], tenant).await
                })
                .await
            }
            #[cfg(feature = "postgres")]
            Engine::Postgres(engine) => engine.tenants_with_due(now, max).await,
        }
    }

    /// Returns the time at which the next delivery is due. On PostgreSQL it reads all unsent events, so a running
    /// server searches for due events periodically instead.
    pub async fn next_delivery(&self) -> Result<Option<Millis>, StoreError> {
        self.query(async |db| {
            let sql = if db.is_postgres() {
                concat!(
                    "SELECT min(greatest(due, lease_until)) FROM outbox WHERE state = 1 AND ",
                    is_current!("tenant"),
                    " AND ",
                    own_number!("tenant"),
                    " IN (SELECT tenant FROM webhook_endpoints WHERE enabled)"
                )
            } else {
                "SELECT min(next_due) FROM webhook_endpoints \
                 WHERE enabled = 1 AND next_due IS NOT NULL"
            };
            db.value(sql, &[]).await
        })
        .await
    }

    /// Leases due events in one commit, for each tenant up to the number in `shares`. No other sender gets them until
    /// the lease ends. Unreadable rows are set aside, so that they do not delay others.
    pub async fn lease(
        &self,
        shares: Vec<(Tenant, usize)>,
        now: Millis,
    ) -> Result<LeasedBatch, StoreError> {
        let leased = match &self.0 {
            Engine::Sqlite(engine) => {
                let shares = shares.into_iter().map(|(tenant, max)| (tenant, max, i64::MIN));
                let request = LeaseRequest { shares: shares.collect(), now, server: (0, None) };
                engine.call(move |db| poll_now(lease(Sql::Sqlite(db), &request))).await?
            }
            #[cfg(feature = "postgres")]
            Engine::Postgres(engine) => engine.lease(shares, now).await?,
        };
        for tenant in &leased.disabled_endpoints {
            self.hold(*tenant).await?;
        }
        Ok(leased)
    }

    /// Ends every lease of this server, when it starts. Other servers' leases are in use, or expire.
    pub async fn end_leases(&self, now: Millis) -> Result<(), StoreError> {
        match &self.0 {
            Engine::Sqlite(_) => self.end_leases_where(params![MAX_LEASES_PER_PAGE, now]).await,
            #[cfg(feature = "postgres")]
            Engine::Postgres(engine) => {
                let params = params![MAX_LEASES_PER_PAGE, engine.server(), None::<i64>];
                self.end_leases_where(params).await
            }
        }
    }

    /// Ends leases page by page: in a file (size of a page, time) all of them, on PostgreSQL (size of a page, server,
    /// number) those of a server, or only the one with a number.
    async fn end_leases_where(&self, params: &[Value]) -> Result<(), StoreError> {
        loop {
            let params = params.to_vec();
            let page = async move |db: Sql<'_>| {
                let sql = concat!(
                    "UPDATE outbox SET leased = FALSE, \
                     {lease_until = NULL|due = CASE WHEN due IS NOT NULL THEN $2 END} \
                     WHERE id {= ANY (ARRAY (|IN (}SELECT id FROM outbox WHERE leased = {TRUE|1} AND \
                     {leased_by = $2 AND ($3::bigint IS NULL OR lease = $3) LIMIT $1 \
                     FOR UPDATE SKIP LOCKED))|",
                    is_current!("tenant"),
                    " LIMIT $1)}"
                );
                db.execute(sql, &params).await
            };
            if self.page(page).await? < MAX_LEASES_PER_PAGE {
                return Ok(());
            }
        }
    }

    /// Ends one lease of this server.
    #[cfg(feature = "postgres")]
    pub(super) async fn end_lease(&self, server: i64, number: i64) -> Result<(), StoreError> {
        self.end_leases_where(params![MAX_LEASES_PER_PAGE, server, number]).await
    }

    /// Deletes a leased event whose content no longer exists, with its log.
    pub async fn forget(&self, lease: DeliveryLease) -> Result<(), StoreError> {
        self.write(async move |db| delete_leased_event(db, &lease).await).await
    }
}

/// Leases events for a request.
pub(super) async fn lease(db: Sql<'_>, request: &LeaseRequest) -> SqlResult<LeasedBatch> {
    let number = outbox::next_lease(db).await?;
    let (mut leased, mut endpoints) = (LeasedBatch::default(), HashMap::new());
    let tenants: Vec<_> = request.shares.iter().map(|share| share.0).collect();
    for (tenant, found) in endpoints::find_all(db, &tenants).await? {
        match found {
            Ok(endpoint) if endpoint.disabled.is_none() => {
                endpoints.insert(tenant, Arc::new(endpoint));
            }
            // The endpoint was turned off in between.
            Ok(_) => {}
            Err(error) if error.is_row_error() => {
                let reason = DisabledBy::Unreadable;
                endpoints::disable_by_server(db, tenant, reason, request.now).await?;
                leased.disabled_endpoints.push(tenant);
            }
            Err(error) => return Err(error),
        }
    }
    for (row_id, tenant, lease) in lease_due_events(db, request, (&endpoints, number)).await? {
        match (endpoints.get(&tenant), lease) {
            (Some(endpoint), Ok(lease)) => {
                let lease = DeliveryLease { url: endpoint.url.clone(), ..lease };
                leased.events.push((Arc::clone(endpoint), lease));
            }
            (None, Ok(_)) => {}
            (_, Err(error)) if error.is_row_error() => {
                fail_unreadable_event(db, row_id, request.now).await?;
                leased.unreadable.push(tenant);
            }
            (_, Err(error)) => return Err(error),
        }
    }
    Ok(leased)
}

/// Leases events under a lease number, and returns them in the order of their rows. Each tenant has a separate limit
/// and index scan: in a single scan, the tenant with the most events would crowd out the others.
async fn lease_due_events(
    db: Sql<'_>,
    request: &LeaseRequest,
    (endpoints, number): (&HashMap<Tenant, Arc<Endpoint>>, i64),
) -> SqlResult<Vec<(i64, Tenant, SqlResult<DeliveryLease>)>> {
    let shares = request.shares.iter().filter(|share| endpoints.contains_key(&share.0));
    let shares = shares.map(|(tenant, max, from)| params![tenant.number(), *max, *from].to_vec());
    // PostgreSQL skips events that another server is leasing at the same time, so no event is leased twice and neither
    // server waits. An event that was written after the lease's number was drawn is left for the next lease, because
    // its answer would look like a late one. With two plain bounds of `due`, a generic plan expects a handful of rows,
    // and so reads and sorts all due events. Comparing two columns makes it follow the index.
    let sql = concat!(
        "UPDATE outbox SET leased = TRUE, lease = $4, \
         first_attempt = coalesce(first_attempt, $5), \
         {leased_by = $7, lease_until = $6 + coalesce($8::bigint, \
         (extract(epoch FROM now()) * 1000)::bigint)|due = $5 + $6} \
         WHERE id {= ANY (ARRAY (SELECT o.id FROM unnest($1::bigint[], $2::bigint[], $3::bigint[]) \
         AS n (tenant, max, floor) CROSS JOIN LATERAL (SELECT id FROM outbox WHERE tenant = ",
        current_generation!("n.tenant"),
        " AND state = 1 AND (due, id) >= (n.floor, 0) AND due <= $5 AND after_lease < $4 \
         AND (lease_until IS NULL OR lease_until <= coalesce($8::bigint, \
         (extract(epoch FROM now()) * 1000)::bigint)) \
         ORDER BY due, id LIMIT n.max FOR UPDATE SKIP LOCKED) AS o)) AND state = 1|\
         IN (SELECT id FROM outbox WHERE tenant = ",
        current_generation!("$1"),
        " AND due <= $5 ORDER BY due, id LIMIT $2)} RETURNING ",
        lease_columns!(),
        ", id, ",
        own_number!("tenant")
    );
    let (server, clock) = request.server;
    let params = params![number, request.now, LEASE_MILLIS, server, clock];
    let read = |row: &Row<'_>| {
        let tenant = Tenant::from_number(row.get(10)?);
        Ok((row.get(9)?, tenant, read_lease(row, tenant, number)))
    };
    let mut taken = db.query_rows(sql, &shares.collect::<Vec<_>>(), params, read).await?;
    taken.sort_by_key(|(row_id, ..)| *row_id);
    Ok(taken)
}

/// Fails the event in an unreadable row, because the next lease could not read it either.
async fn fail_unreadable_event(db: Sql<'_>, row_id: i64, now: Millis) -> SqlResult<()> {
    let outcome = AttemptResult { at: now, millis: 0, response: Err(DeliveryError::Unreadable) };
    outbox::log_attempts(db, &[(row_id, 1, &outcome)]).await?;
    let sql = "UPDATE outbox SET state = $2, due = NULL, leased = FALSE{, lease_until = NULL|} \
         WHERE id = $1 RETURNING parcel";
    if let Some(parcel) = db.value::<Option<i64>>(sql, params![row_id, FAILED]).await? {
        outbox::lock_parcels(db, &[parcel]).await?;
        outbox::release(db, &[(parcel, now)]).await?;
    }
    Ok(())
}

/// Deletes a leased event with its log. If it is deleted already and the same event was enqueued again, the new one
/// stays.
async fn delete_leased_event(db: Sql<'_>, lease: &DeliveryLease) -> SqlResult<()> {
    // The parcel's row is locked before the event's, as in every transaction that locks both.
    if let Some(parcel) = lease.parcel {
        outbox::lock_parcels(db, &[parcel.0]).await?;
    }
    let sql = concat!(
        "DELETE FROM outbox WHERE event_id = $1 AND ",
        own_number!("tenant"),
        " = $2 AND after_lease < $3 AND {",
        is_current_locked!("tenant"),
        "|",
        is_current!("tenant"),
        "} RETURNING id"
    );
    let params = params![lease.attempt.event.to_bytes(), lease.tenant.number(), lease.number];
    let Some(row_id) = db.first(sql, params, |row| row.get::<i64>(0)).await? else { return Ok(()) };
    // In a file another event will get the row's id, and must not inherit this log.
    db.execute("DELETE FROM webhook_attempts WHERE outbox = $1", params![row_id]).await.map(drop)
}
