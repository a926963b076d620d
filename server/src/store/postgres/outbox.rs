//! Writes to the webhook outbox, which contains an event if and only if its change was committed.
//!
//! Events of one parcel arrive in order: while an earlier event is undelivered, a new event is `WAITING` and has no due
//! time. Settling the earlier event calls [`release`] in the same commit, which makes the next event `READY`. Both
//! enqueuing and settling lock the parcel's row first. Without the lock, two servers could enqueue and settle at once,
//! and the new event would wait forever for a settled event. In case that happens nevertheless,
//! [`Store::release_stranded`] searches for such events.
//!
//! Unsent and finished events are partitions of the table: a condition on `state` selects one of them.

use std::{
    collections::{HashMap, HashSet},
    sync::atomic::Ordering,
};

use tokio_postgres::types::ToSql;

use super::{
    Store,
    connection::{Connection, get},
    error::DbResult,
    generations::IS_CURRENT,
};
use crate::{
    clock::Millis,
    domain::{
        Tenant,
        webhooks::{AttemptResult, Kinds, OutboxEvent, UNBLOCKED_AFTER_FAILURES},
    },
    store::StoreError,
};

/// The numbers that are stored for `DeliveryStatus`.
pub(super) const WAITING: i16 = 0;
pub(super) const READY: i16 = 1;
pub(super) const DELIVERED: i16 = 2;
pub(super) const FAILED: i16 = 3;
pub(super) const HELD: i16 = 4;
/// Condition for failed or held events, spelled exactly as in the index `outbox_missed`.
pub(super) const MISSED: &str = "state > 2";

/// Number of waiting events that one search for stranded events checks.
const SWEPT_AT_ONCE: usize = 1_000;

/// Maximum number of bytes of an answer that are logged.
const MAX_ANSWER_BYTES: usize = 1_024;

/// Deletes events with the log of their attempts. Returns their number and the time of the last one.
macro_rules! delete_events {
    ($($which:tt)+) => {
        concat!(
            "WITH old AS (DELETE FROM outbox WHERE ",
            $($which)+,
            " RETURNING id, created_at), attempts AS (DELETE FROM webhook_attempts \
             WHERE outbox IN (SELECT id FROM old)) SELECT count(*), max(created_at) FROM old"
        )
    };
}
pub(super) use delete_events;

/// The kinds of events that a tenant's endpoint subscribes to.
#[derive(Debug, Clone, Copy)]
pub(super) struct Subscription {
    pub(super) kinds: Kinds,
    pub(super) enabled: bool,
}

/// The subscriptions of tenants in a transaction.
#[derive(Debug, Default)]
pub(super) struct Subscriptions(HashMap<i64, Option<Subscription>>);

impl Subscriptions {
    /// Loads the subscriptions of these tenants, unless they are loaded already. Until the commit their endpoints' rows
    /// are locked against being turned off, because nothing would hold events that were enqueued as due.
    pub(super) async fn load(&mut self, db: &Connection, tenants: Vec<Tenant>) -> DbResult<()> {
        let sql = "SELECT tenant, kinds, enabled FROM webhook_endpoints WHERE tenant = ANY($1) \
             ORDER BY tenant FOR SHARE";
        self.load_by(db, sql, tenants).await
    }

    /// Loads subscriptions for a transaction that may turn an endpoint off. It locks exclusively at once, because two
    /// transactions that share a row's lock and then need it exclusively would wait for each other.
    pub(super) async fn load_to_change(
        &mut self,
        db: &Connection,
        tenants: Vec<Tenant>,
    ) -> DbResult<()> {
        let sql = "SELECT tenant, kinds, enabled FROM webhook_endpoints WHERE tenant = ANY($1) \
             ORDER BY tenant FOR UPDATE";
        self.load_by(db, sql, tenants).await
    }

    async fn load_by(&mut self, db: &Connection, sql: &str, tenants: Vec<Tenant>) -> DbResult<()> {
        let mut unknown: Vec<i64> = tenants.into_iter().map(Tenant::number).collect();
        unknown.retain(|tenant| !self.0.contains_key(tenant));
        unknown.sort_unstable();
        unknown.dedup();
        if unknown.is_empty() {
            return Ok(());
        }
        let found = db.all(sql, &[&unknown]).await?;
        self.0.extend(unknown.into_iter().map(|tenant| (tenant, None)));
        for row in &found {
            // A damaged row must not fail an order: the endpoint gets no kinds, and the dispatcher reports the row.
            let kinds = u8::try_from(get::<i16>(row, 1)?).map(Kinds::from_number);
            let kinds = kinds.unwrap_or_default();
            self.0.insert(get(row, 0)?, Some(Subscription { kinds, enabled: get(row, 2)? }));
        }
        Ok(())
    }

    /// Returns the tenant's subscription, which must be loaded, or `None` without an endpoint.
    pub(super) fn of_tenant(&self, tenant: Tenant) -> Option<Subscription> {
        self.0.get(&tenant.number()).copied().flatten()
    }
}

/// The parcel or manifest of an event, if it exists already.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Subject {
    pub(super) parcel: Option<i64>,
    pub(super) manifest: Option<i64>,
}

/// Events that are enqueued together.
#[derive(Debug, Default)]
pub(super) struct NewEvents {
    all: Vec<NewEvent>,
    /// The parcels of these events: a parcel's next event waits for its earlier ones.
    parcels: HashSet<i64>,
}

#[derive(Debug)]
struct NewEvent {
    tenant: i64,
    subject: Subject,
    event: OutboxEvent,
    /// The time at which the event's change was decided.
    now: Millis,
    status: i16,
}

impl NewEvents {
    /// Adds an event of a tenant's present generation behind the earlier events of its parcel. The parcel's row is new
    /// or locked.
    pub(super) fn add(
        &mut self,
        (tenant, subscription): (i64, Subscription),
        (subject, event): (Subject, OutboxEvent),
        now: Millis,
    ) {
        let is_first = subject.parcel.is_none_or(|parcel| self.parcels.insert(parcel));
        let status = match is_first {
            _ if !subscription.enabled => HELD,
            true => READY,
            false => WAITING,
        };
        self.all.push(NewEvent { tenant, subject, event, now, status });
    }

    /// Enqueues the added events by one statement. The first event of a parcel waits if an earlier event of the parcel
    /// is itself waiting (0), or is still tried (1) and has failed fewer than `UNBLOCKED_AFTER_FAILURES` times.
    pub(super) async fn insert(&mut self, db: &Connection) -> DbResult<()> {
        if self.all.is_empty() {
            return Ok(());
        }
        let all = std::mem::take(&mut self.all);
        /// Returns a column of the new rows.
        macro_rules! column {
            ($new:ident => $value:expr) => {
                all.iter().map(|$new| $value).collect::<Vec<_>>()
            };
        }
        let tenants = column!(new => new.tenant);
        let ids = column!(new => new.event.event.to_bytes().to_vec());
        let kinds = column!(new => i16::from(new.event.kind.number()));
        let parcels = column!(new => new.subject.parcel);
        let manifests = column!(new => new.subject.manifest);
        let sequences = column!(new => new.event.sequence.map(i64::from));
        let previous = column!(new => new.event.previous.map(|state| i16::from(state.number())));
        let happened = column!(new => new.event.at.0);
        let created = column!(new => new.now.0);
        let states = column!(new => new.status);
        let released_after = i64::from(UNBLOCKED_AFTER_FAILURES);
        let sql = "INSERT INTO outbox (tenant, event_id, kind, parcel, manifest, sequence, \
             previous, happened_at, created_at, state, due, after_lease) \
             SELECT n.tenant, n.event_id, n.kind, n.parcel, n.manifest, n.sequence, n.previous, n.happened_at, n.created_at, s.state, \
             CASE WHEN s.state = 1 THEN n.created_at END, (SELECT last_value FROM lease_numbers) \
             FROM unnest($1::bigint[], $2::bytea[], $3::smallint[], $4::bigint[], $5::bigint[], \
             $6::bigint[], $7::smallint[], $8::bigint[], $9::bigint[], $10::smallint[]) \
             WITH ORDINALITY AS n (tenant, event_id, kind, parcel, manifest, \
             sequence, previous, happened_at, created_at, state, place) \
             CROSS JOIN LATERAL (SELECT (CASE WHEN n.state = 1 AND EXISTS \
             (SELECT 1 FROM outbox AS o WHERE o.parcel = n.parcel \
             AND (o.state = 0 OR (o.state = 1 AND o.attempts < $11))) \
             THEN 0 ELSE n.state END)::smallint AS state) AS s ORDER BY n.place";
        let given: [&(dyn ToSql + Sync); 11] = [
            &tenants,
            &ids,
            &kinds,
            &parcels,
            &manifests,
            &sequences,
            &previous,
            &happened,
            &created,
            &states,
            &released_after,
        ];
        db.execute(sql, &given).await.map(drop)
    }
}

/// Locks a parcel's row, as every transaction that enqueues or settles its events must.
pub(super) async fn lock_parcel(db: &Connection, parcel: i64) -> DbResult<()> {
    let sql = "SELECT id FROM parcels WHERE id = $1 FOR NO KEY UPDATE";
    db.execute(sql, &[&parcel]).await.map(drop)
}

/// Makes the next `WAITING` (0) event of each parcel `READY` (1), due at the parcel's time in `parcels`, unless an
/// earlier event still precedes it. Returns their number. The parcels' rows are locked. The next event is the one with
/// the lowest sequence in the parcel's history.
pub(super) async fn release(db: &Connection, parcels: &[(i64, Millis)]) -> DbResult<u64> {
    if parcels.is_empty() {
        return Ok(0);
    }
    let (ids, due): (Vec<i64>, Vec<i64>) =
        parcels.iter().map(|(parcel, due)| (*parcel, due.0)).unzip();
    let sql = "UPDATE outbox AS o SET state = 1, due = next.due FROM \
         (SELECT first.id, p.due FROM unnest($1::bigint[], $2::bigint[]) AS p (id, due) \
         CROSS JOIN LATERAL (SELECT id FROM outbox WHERE parcel = p.id AND state = 0 \
         ORDER BY sequence, id LIMIT 1) AS first \
         WHERE NOT EXISTS (SELECT 1 FROM outbox \
         WHERE parcel = p.id AND state = 1 AND attempts < $3)) AS next \
         WHERE o.id = next.id AND o.state = 0";
    db.execute(sql, &[&ids, &due, &i64::from(UNBLOCKED_AFTER_FAILURES)]).await
}

impl Store {
    pub(crate) async fn release_stranded(&self, now: Millis) -> Result<u64, StoreError> {
        let after = self.0.swept_to.load(Ordering::Relaxed);
        let page = self.read(async move |db| waiting(db, after).await).await?;
        let next = if page.len() < SWEPT_AT_ONCE { None } else { page.last() };
        self.0.swept_to.store(next.map_or(0, |(row, _)| *row), Ordering::Relaxed);
        let mut parcels: Vec<i64> = page.into_iter().filter_map(|(_, parcel)| parcel).collect();
        parcels.sort_unstable();
        parcels.dedup();
        if parcels.is_empty() {
            return Ok(0);
        }
        let released = self
            .call(async move |db| {
                lock_parcels(db, &parcels).await?;
                let parcels: Vec<_> = parcels.iter().map(|parcel| (*parcel, now)).collect();
                release(db, &parcels).await
            })
            .await?;
        self.notify_outbox();
        Ok(released)
    }
}

/// Returns a page of the waiting events after the row `after`, each with its parcel if the event waits for nothing.
async fn waiting(db: &Connection, after: i64) -> DbResult<Vec<(i64, Option<i64>)>> {
    let sql = format!(
        "SELECT w.id, CASE WHEN earlier.is_there IS NULL THEN w.parcel END \
         FROM (SELECT id, parcel FROM outbox WHERE state = 0 AND id > $1 AND {IS_CURRENT} \
         ORDER BY id LIMIT $3) AS w LEFT JOIN LATERAL (SELECT true AS is_there FROM outbox \
         WHERE parcel = w.parcel AND state = 1 AND attempts < $2 LIMIT 1) AS earlier ON true \
         ORDER BY w.id"
    );
    let max = i64::try_from(SWEPT_AT_ONCE).unwrap_or(i64::MAX);
    db.each(&sql, &[&after, &i64::from(UNBLOCKED_AFTER_FAILURES), &max], |row| {
        Ok((get(row, 0)?, get(row, 1)?))
    })
    .await
}

/// Locks parcels' rows in the order of their ids, as writers of orders do.
pub(super) async fn lock_parcels(db: &Connection, parcels: &[i64]) -> DbResult<()> {
    let sql = "SELECT id FROM parcels WHERE id = ANY($1) ORDER BY id FOR NO KEY UPDATE";
    db.execute(sql, &[&parcels]).await.map(drop)
}

/// Returns the number of the next lease.
pub(super) async fn next_lease(db: &Connection) -> DbResult<i64> {
    db.value("SELECT nextval('lease_numbers')", &[]).await
}

/// Logs attempts, each with its number, for the events in these rows.
pub(super) async fn log_attempts(
    db: &Connection,
    attempts: &[(i64, u32, &AttemptResult)],
) -> DbResult<()> {
    /// Returns a column of the new rows.
    macro_rules! column {
        ($attempt:ident => $value:expr) => {
            attempts.iter().map(|$attempt| $value).collect::<Vec<_>>()
        };
    }
    let rows = column!(attempt => attempt.0);
    let numbers = column!(attempt => i64::from(attempt.1));
    let moments = column!(attempt => attempt.2.at.0);
    let millis = column!(attempt => attempt.2.millis);
    let received = column!(attempt => attempt.2.answer.as_ref());
    let statuses: Vec<Option<i32>> = received
        .iter()
        .map(|received| received.ok().map(|answer| i32::from(answer.status)))
        .collect();
    let errors: Vec<Option<String>> =
        received.iter().map(|received| received.err().map(ToString::to_string)).collect();
    let answers: Vec<Option<&[u8]>> = received
        .iter()
        .map(|received| {
            let body = received.ok()?.body_prefix.as_slice();
            Some(body.get(..MAX_ANSWER_BYTES).unwrap_or(body))
        })
        .collect();
    let sql = "INSERT INTO webhook_attempts (outbox, number, at, millis, status, error, answer) \
         SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], \
         $5::integer[], $6::text[], $7::bytea[])";
    let given: [&(dyn ToSql + Sync); 7] =
        [&rows, &numbers, &moments, &millis, &statuses, &errors, &answers];
    db.execute(sql, &given).await.map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::webhooks::DeliveryStatus;

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
