//! Writes to the webhook outbox, which contains an event if and only if its change was committed.
//!
//! Events of one parcel arrive in order: while an earlier event is undelivered, a new event is `WAITING` and has no due
//! time. When the earlier event is settled, [`release`] makes the next event `READY` in the same commit. An event is
//! settled when it is delivered, has failed for good, or has failed `UNBLOCKED_AFTER_FAILURES` times. The last case
//! exists so that a receiver that rejects one event does not miss the rest.
//!
//! On PostgreSQL, both enqueuing and settling lock the parcel's row first. Without the lock, two servers could enqueue
//! and settle at once, and the new event would wait forever for a settled event. In case that happens nevertheless,
//! [`Store::release_stranded`] searches for such events. Unsent and finished events are partitions of the table there:
//! a condition on `state` selects one of them.

use std::collections::HashSet;

use parcelo_domain::{
    Changes, Millis, State, Tenant, TraceContext,
    webhooks::{AttemptResult, OutboxEvent, UNBLOCKED_AFTER_FAILURES, WebhookEventKinds},
};

#[cfg(feature = "postgres")]
use super::postgres::generations::Generations;
use super::{
    Store, StoreError,
    generations::current_generation,
    row_sets::column,
    sql::{Sql, SqlResult, params},
    values::Value,
};

/// The numbers that are stored for `DeliveryStatus`.
pub(super) const WAITING: i64 = 0;
pub(super) const READY: i64 = 1;
pub(super) const DELIVERED: i64 = 2;
pub(super) const FAILED: i64 = 3;
pub(super) const HELD: i64 = 4;

/// Maximum number of bytes of a response's body that are logged.
const MAX_RESPONSE_BYTES: usize = 1_024;

/// The kinds of events that a tenant's endpoint subscribes to.
#[derive(Debug, Clone, Copy)]
pub(super) struct Subscription {
    pub(super) kinds: WebhookEventKinds,
    pub(super) enabled: bool,
}

/// The parcel or manifest of an event.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Subject {
    pub(super) parcel: Option<i64>,
    pub(super) manifest: Option<i64>,
}

/// The time at which a change was decided, and the trace of the request that it was decided for.
#[derive(Debug, Clone, Copy)]
pub(super) struct ChangeOrigin {
    pub(super) now: Millis,
    pub(super) trace: Option<TraceContext>,
}

impl ChangeOrigin {
    pub(super) fn new(changes: &Changes) -> Self {
        Self { now: changes.now, trace: changes.trace }
    }
}

/// An event to enqueue.
#[derive(Debug)]
pub(super) struct NewEvent {
    /// The number of the tenant's current generation.
    pub(super) tenant: i64,
    pub(super) subscription: Subscription,
    pub(super) subject: Subject,
    pub(super) event: OutboxEvent,
    pub(super) origin: ChangeOrigin,
}

impl Store {
    /// Resolves when an event is enqueued, or at once if an event was enqueued since the last call.
    pub async fn outbox_changed(&self) {
        self.state().wake.notified().await;
    }

    pub(super) fn notify_outbox(&self) {
        self.state().wake.notify_one();
    }

    /// Enqueues an event that is not caused by a change (a test) for the tenant's endpoint.
    pub async fn enqueue(
        &self,
        tenant: Tenant,
        event: OutboxEvent,
        trace: Option<TraceContext>,
    ) -> Result<(), StoreError> {
        self.write(async move |db| {
            let number = generation(db, tenant).await?;
            let found = subscriptions(db, &[tenant.number()], "SHARE").await?;
            let Some((_, subscription)) = found.first().copied() else { return Ok(()) };
            let (subject, event) = (Subject::default(), event.clone());
            let origin = ChangeOrigin { now: event.at, trace };
            insert(db, &[NewEvent { tenant: number, subscription, subject, event, origin }]).await
        })
        .await?;
        self.notify_outbox();
        Ok(())
    }
}

/// Returns the number of a tenant's current generation, which does not end before the commit.
async fn generation(db: Sql<'_>, tenant: Tenant) -> SqlResult<i64> {
    match db {
        Sql::Sqlite(_) => {
            db.value(concat!("SELECT ", current_generation!("$1")), params![tenant.number()]).await
        }
        #[cfg(feature = "postgres")]
        Sql::Postgres(db) => {
            Ok(Generations::lock_current(db, [tenant], &[]).await?.storage_tenant_id(tenant))
        }
    }
}

/// Returns the subscriptions of those tenants that have an endpoint. On PostgreSQL the endpoints' rows stay locked
/// `FOR SHARE` or `FOR UPDATE`, so that no endpoint is turned off before the commit: nothing would hold events that
/// were enqueued as due.
pub(super) async fn subscriptions(
    db: Sql<'_>,
    tenants: &[i64],
    lock: &str,
) -> SqlResult<Vec<(i64, Subscription)>> {
    let sql = format!(
        "SELECT tenant, kinds, enabled FROM webhook_endpoints \
         WHERE tenant {{= ANY($1) ORDER BY tenant FOR {lock}|= $1}}"
    );
    db.query_rows(&sql, &column(tenants), &[], |row| {
        // A damaged row must not fail an order: the endpoint gets no kinds, and the dispatcher reports the row.
        let kinds = row.get(1).map(WebhookEventKinds::from_number).unwrap_or_default();
        Ok((row.get(0)?, Subscription { kinds, enabled: row.get(2)? }))
    })
    .await
}

/// Enqueues events. An event waits if an earlier event of its parcel is itself waiting (0), or is still being tried
/// (1) and has failed fewer than `UNBLOCKED_AFTER_FAILURES` times. The rows of the parcels are new or locked.
pub(super) async fn insert(db: Sql<'_>, events: &[NewEvent]) -> SqlResult<()> {
    let mut parcels = HashSet::new();
    let rows = events.iter().zip(0_i64..).map(|(new, place)| {
        let NewEvent { tenant, subscription, subject, event, origin } = new;
        // The statement does not see the rows that it writes itself.
        let is_first = subject.parcel.is_none_or(|parcel| parcels.insert(parcel));
        let status = match is_first {
            _ if !subscription.enabled => HELD,
            true => READY,
            false => WAITING,
        };
        params![
            *tenant,
            event.event.to_bytes(),
            event.kind.number(),
            subject.parcel,
            subject.manifest,
            event.sequence,
            event.previous.map(State::number),
            event.at,
            origin.now,
            status,
            origin.trace,
            place,
        ]
        .to_vec()
    });
    // `after_lease` distinguishes the row from an earlier row of the same event, whose answer may come late
    // (leases.rs).
    let sql = "INSERT INTO outbox (tenant, event_id, kind, parcel, manifest, sequence, previous, \
         happened_at, created_at, trace, state, due, after_lease) \
         SELECT tenant, event_id, kind, parcel, manifest, sequence, previous, happened_at, \
         created_at, trace, status, CASE WHEN status = 1 THEN created_at END, \
         (SELECT {last_value FROM lease_numbers|last FROM leases}) \
         FROM (SELECT n.*, CASE WHEN n.state = 1 AND EXISTS (SELECT 1 FROM outbox AS o \
         WHERE o.parcel = n.parcel AND (o.state = 0 OR (o.state = 1 AND o.attempts < $13))) \
         THEN 0 ELSE n.state END AS status \
         FROM {unnest($1::bigint[], $2::bytea[], $3::smallint[], $4::bigint[], $5::bigint[], \
         $6::bigint[], $7::smallint[], $8::bigint[], $9::bigint[], $10::smallint[], $11::bytea[], \
         $12::bigint[]) AS n (tenant, event_id, kind, parcel, manifest, sequence, previous, happened_at, \
         created_at, state, trace, place) ORDER BY n.place|\
         (SELECT $1 AS tenant, $2 AS event_id, $3 AS kind, $4 AS parcel, $5 AS manifest, \
         $6 AS sequence, $7 AS previous, $8 AS happened_at, $9 AS created_at, $10 AS state, \
         $11 AS trace) AS n}) \
         AS added";
    db.execute_rows(sql, &rows.collect::<Vec<_>>(), params![UNBLOCKED_AFTER_FAILURES])
        .await
        .map(drop)
}

/// Makes the next `WAITING` (0) event of each parcel `READY` (1), due at the parcel's time in `parcels`, unless an
/// earlier event still precedes it. Returns their number. The parcels' rows are locked. The next event is the one with
/// the lowest sequence in the parcel's history; in a file, which has one writer, it is the first.
pub(super) async fn release(db: Sql<'_>, parcels: &[(i64, Millis)]) -> SqlResult<u64> {
    let rows: Vec<_> = parcels.iter().map(|(id, due)| params![*id, *due].to_vec()).collect();
    let sql = "UPDATE outbox AS o SET state = 1, \
         due = {n.due FROM unnest($1::bigint[], $2::bigint[]) AS n (id, due)|$2} \
         WHERE o.id = (SELECT w.id FROM outbox AS w WHERE w.parcel = {n.id|$1} AND w.state = 0 \
         ORDER BY {w.sequence, |}w.id LIMIT 1) AND o.state = 0 AND NOT EXISTS (SELECT 1 \
         FROM outbox AS e WHERE e.parcel = {n.id|$1} AND e.state = 1 AND e.attempts < $3)";
    db.execute_rows(sql, &rows, params![UNBLOCKED_AFTER_FAILURES]).await
}

/// Locks parcels' rows in the order of their ids, as writers of orders do. A file has one writer.
pub(super) async fn lock_parcels(db: Sql<'_>, parcels: &[i64]) -> SqlResult<()> {
    if !db.is_postgres() {
        return Ok(());
    }
    let sql = "SELECT id FROM parcels WHERE id = ANY($1) ORDER BY id FOR NO KEY UPDATE";
    db.execute_rows(sql, &column(parcels), &[]).await.map(drop)
}

/// Returns `true` if a tenant (`$1`) has an event that meets a condition.
pub(super) async fn has_event(db: Sql<'_>, condition: &str, params: &[Value]) -> SqlResult<bool> {
    let sql =
        concat!("SELECT EXISTS (SELECT 1 FROM outbox WHERE tenant = ", current_generation!("$1"));
    db.value(&format!("{sql} AND {condition})"), params).await
}

/// Issues the number of the next lease.
pub(super) async fn next_lease(db: Sql<'_>) -> SqlResult<i64> {
    let sql = "{SELECT nextval('lease_numbers')|UPDATE leases SET last = last + 1 RETURNING last}";
    db.value(sql, &[]).await
}

/// Logs attempts, each with its number, for the events in these rows.
pub(super) async fn log_attempts(
    db: Sql<'_>,
    attempts: &[(i64, u32, &AttemptResult)],
) -> SqlResult<()> {
    let rows = attempts.iter().map(|(row_id, number, outcome)| {
        let response = outcome.response.as_ref();
        let body = response.map(|response| response.body_prefix.as_slice()).ok();
        params![
            *row_id,
            *number,
            outcome.at,
            outcome.millis,
            response.map(|response| response.status).ok(),
            response.err().map(ToString::to_string).as_ref(),
            body.map(|body| body.get(..MAX_RESPONSE_BYTES).unwrap_or(body)),
        ]
        .to_vec()
    });
    let sql = "INSERT INTO webhook_attempts (outbox, number, at, millis, status, error, answer) \
         {SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], \
         $5::integer[], $6::text[], $7::bytea[])|VALUES ($1, $2, $3, $4, $5, $6, $7)}";
    db.execute_rows(sql, &rows.collect::<Vec<_>>(), &[]).await.map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use parcelo_domain::webhooks::DeliveryStatus;

    #[test]
    fn the_numbers_are_those_of_the_delivery_statuses() {
        let numbers = [WAITING, READY, DELIVERED, FAILED, HELD];
        let statuses = [
            DeliveryStatus::Waiting,
            DeliveryStatus::Ready,
            DeliveryStatus::Delivered,
            DeliveryStatus::Failed,
            DeliveryStatus::Held,
        ];
        for (number, status) in numbers.into_iter().zip(statuses) {
            assert_eq!(DeliveryStatus::ALL[usize::try_from(number).unwrap()], status);
        }
    }
}
