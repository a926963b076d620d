//! Settlements of deliveries: the attempt is logged, and moves its event, the parcel's next event and the endpoint. On
//! PostgreSQL all settlements of a group of writes are written together, and the group has already locked the parcels'
//! rows in the order of their ids. So two servers that settle events of the same parcels wait for each other and never
//! deadlock.
//!
//! An answer counts for the lease under which its event was sent. If the event was leased again or replayed since, or
//! its endpoint replaced, the answer is late: it is logged without further effect.

use std::collections::{BTreeMap, HashMap};

use parcelo_domain::{
    Millis,
    webhooks::{AttemptResult, DeliveryLease, DisabledBy, RetryDecision},
};

use super::{
    Engine, Settled, Store, StoreError, endpoints,
    generations::{is_current, own_number},
    outbox::{self, DELIVERED, FAILED, READY},
    sql::{Sql, SqlResult, params, poll_now},
};

/// Resolution of an endpoint's last success, in milliseconds. Every delivery to an endpoint updates the same row, so with a
/// finer resolution servers on PostgreSQL would constantly wait for each other's commits.
const SUCCESS_PRECISION: i64 = 1_000;

/// The settlement of a delivery.
pub(super) struct Settlement {
    pub(super) lease: DeliveryLease,
    pub(super) outcome: AttemptResult,
    pub(super) decision: RetryDecision,
    pub(super) settled: Settled,
}

/// The row of a leased event.
struct LeasedEventRow {
    row_id: i64,
    parcel: Option<i64>,
    first_attempt: Option<i64>,
    /// `true` if the lease is the row's last and was not ended by a replay or a new endpoint.
    is_current: bool,
}

impl Store {
    /// Records an attempt and its effect on the event, its successors and the endpoint. If the event was replayed or
    /// its endpoint replaced since it was leased, the attempt is logged without effect. If the event is deleted,
    /// nothing is logged.
    pub async fn settle(
        &self,
        lease: DeliveryLease,
        outcome: AttemptResult,
        decision: RetryDecision,
    ) -> Result<Settled, StoreError> {
        let tenant = lease.tenant;
        let mut one = Settlement { lease, outcome, decision, settled: Settled::Late };
        let settled = match &self.0 {
            Engine::Sqlite(engine) => {
                let run = move |db: &rusqlite::Connection| {
                    poll_now(settle(Sql::Sqlite(db), &mut [&mut one]))?;
                    Ok(one.settled)
                };
                engine.call(run).await?
            }
            #[cfg(feature = "postgres")]
            Engine::Postgres(engine) => engine.settle(one).await?,
        };
        if matches!(settled, Settled::EndpointDisabled(_)) {
            self.hold(tenant).await?;
        }
        self.notify_outbox();
        Ok(settled)
    }
}

/// Writes settlements; the rows of their parcels are locked.
pub(super) async fn settle(db: Sql<'_>, all: &mut [&mut Settlement]) -> SqlResult<()> {
    let found = find(db, all).await?;
    let (mut attempts, mut rows) = (Vec::new(), Vec::new());
    let (mut parcels, mut successes) = (BTreeMap::new(), BTreeMap::<i64, Millis>::new());
    for (index, one) in all.iter_mut().enumerate() {
        one.settled = Settled::Late;
        let Some(event) = found.get(&index) else { continue };
        let (number, at) = (one.lease.attempt.number, one.outcome.at);
        attempts.push((event.row_id, number, &one.outcome));
        if !event.is_current {
            continue;
        }
        one.settled = Settled::Counted;
        let (state, due) = match one.decision {
            RetryDecision::Delivered => (DELIVERED, None),
            RetryDecision::Retry { at } => (READY, Some(at)),
            RetryDecision::GivenUp | RetryDecision::Gone | RetryDecision::Unreadable => {
                (FAILED, None)
            }
        };
        rows.push(params![event.row_id, state, due, number].to_vec());
        parcels.extend(event.parcel.map(|parcel| (parcel, at)));
        if one.decision == RetryDecision::Delivered {
            let last = successes.entry(one.lease.tenant.number()).or_insert(at);
            *last = at.max(*last);
        }
    }
    outbox::log_attempts(db, &attempts).await?;
    // An event that was held after it was sent is not retried, but if it has arrived it counts as delivered.
    let sql = "UPDATE outbox AS o \
         SET state = {n.state|$2}, due = {n.due|$3}, attempts = {n.attempts|$4}, leased = FALSE\
         {, lease_until = NULL FROM unnest($1::bigint[], $2::smallint[], $3::bigint[], $4::bigint[]) \
         AS n (id, state, due, attempts)|} WHERE o.id = {n.id|$1} AND ({n.state|$2} <> 1 OR o.state = 1)";
    db.execute_rows(sql, &rows, &[]).await?;
    write_successes(db, &successes).await?;
    outbox::release(db, &parcels.into_iter().collect::<Vec<_>>()).await?;
    disable_endpoints(db, all, &found).await
}

/// Returns the locked rows of the leased events by the position in `all`. A deleted event has no entry, even if the
/// same event was enqueued again.
async fn find(db: Sql<'_>, all: &[&mut Settlement]) -> SqlResult<HashMap<usize, LeasedEventRow>> {
    let leases: Vec<_> = all
        .iter()
        .map(|one| &one.lease)
        .enumerate()
        .map(|(index, lease)| {
            let (event, tenant) = (lease.attempt.event.to_bytes(), lease.tenant.number());
            params![index, event, tenant, lease.number, &lease.url].to_vec()
        })
        .collect();
    let sql = concat!(
        "SELECT {n.place|$1}, o.id, o.parcel, o.first_attempt, o.lease = {n.lease|$4} AND EXISTS \
         (SELECT 1 FROM webhook_endpoints AS e WHERE e.tenant = {n.tenant|$3} AND e.url = {n.url|$5}) FROM \
         {unnest($1::bigint[], $2::bytea[], $3::bigint[], $4::bigint[], $5::text[]) \
         AS n (place, event, tenant, lease, url) JOIN outbox AS o ON|outbox AS o WHERE} \
         o.event_id = {n.event|$2} AND ",
        own_number!("o.tenant"),
        " = {n.tenant|$3} AND o.after_lease < {n.lease|$4} AND ",
        is_current!("o.tenant"),
        "{ ORDER BY o.id FOR UPDATE OF o|}"
    );
    let found = db.query_rows(sql, &leases, &[], |row| {
        let event = LeasedEventRow {
            row_id: row.get(1)?,
            parcel: row.get(2)?,
            first_attempt: row.get(3)?,
            is_current: row.get(4)?,
        };
        Ok((row.get(0)?, event))
    });
    Ok(found.await?.into_iter().collect())
}

/// Records the times of endpoints' last successes, sorted by tenant so that two servers never deadlock. PostgreSQL has
/// them in a table beside the endpoints, whose rows the writers of orders lock.
async fn write_successes(db: Sql<'_>, successes: &BTreeMap<i64, Millis>) -> SqlResult<()> {
    let rows: Vec<_> =
        successes.iter().map(|(tenant, at)| params![*tenant, *at].to_vec()).collect();
    if !db.is_postgres() {
        let sql = "UPDATE webhook_endpoints SET last_success = $2 \
             WHERE tenant = $1 AND (last_success <= $2 - $3 OR last_success IS NULL)";
        return db.execute_rows(sql, &rows, params![SUCCESS_PRECISION]).await.map(drop);
    }
    let sql = "INSERT INTO webhook_successes AS old (tenant, at) \
         SELECT n.tenant, n.at FROM unnest($1::bigint[], $2::bigint[]) AS n (tenant, at) \
         WHERE NOT EXISTS (SELECT 1 FROM webhook_successes AS s \
         WHERE s.tenant = n.tenant AND s.at > n.at - $3) ORDER BY n.tenant \
         ON CONFLICT (tenant) DO UPDATE SET at = greatest(old.at, excluded.at)";
    db.execute_rows(sql, &rows, params![SUCCESS_PRECISION]).await.map(drop)
}

/// Turns off endpoints that are gone, or that refused all attempts of an event and accepted nothing else.
async fn disable_endpoints(
    db: Sql<'_>,
    all: &mut [&mut Settlement],
    found: &HashMap<usize, LeasedEventRow>,
) -> SqlResult<()> {
    for (index, one) in all.iter_mut().enumerate() {
        let Some(event) = found.get(&index).filter(|event| event.is_current) else { continue };
        let tenant = one.lease.tenant;
        let by = match one.decision {
            RetryDecision::Gone => DisabledBy::Gone,
            RetryDecision::GivenUp
                if !has_answered_since(db, tenant.number(), event.first_attempt).await? =>
            {
                DisabledBy::Failures
            }
            RetryDecision::Delivered
            | RetryDecision::Retry { .. }
            | RetryDecision::GivenUp
            | RetryDecision::Unreadable => continue,
        };
        if endpoints::disable_by_server(db, tenant, by, one.outcome.at).await? {
            one.settled = Settled::EndpointDisabled(by);
        }
    }
    Ok(())
}

/// Returns `true` if the endpoint has accepted anything since an event's first attempt, or up to [`SUCCESS_PRECISION`]
/// before it. On PostgreSQL the group has locked the endpoint, whose lock those that record a success share,
/// so that no success is overlooked because it is not committed yet.
async fn has_answered_since(db: Sql<'_>, tenant: i64, first: Option<i64>) -> SqlResult<bool> {
    let sql = "SELECT EXISTS (SELECT 1 FROM {webhook_successes|webhook_endpoints} \
         WHERE tenant = $1 AND {at|last_success} > $2)";
    let known = first.map(|first| first.saturating_sub(SUCCESS_PRECISION));
    db.value(sql, params![tenant, known]).await
}
