//! Settlements of deliveries: all settlements of a group of writes, with one statement for each table. The group has
//! already locked the parcels' rows in the order of their ids. So two servers that settle events of the same parcels
//! wait for each other and never deadlock.
//!
//! An answer counts for the lease under which its event was sent. If the event was leased again or replayed since, the
//! answer is late: it is logged without further effect.

use std::collections::{BTreeMap, HashMap};

use tokio::sync::oneshot;
use tokio_postgres::types::ToSql;

use super::{
    connection::{Connection, get},
    error::{DbResult, Failure},
    outbox::{self, DELIVERED, FAILED, READY},
};
use crate::{
    clock::Millis,
    domain::{
        Tenant,
        webhooks::{AttemptResult, DisabledBy, Lease, RetryDecision},
    },
    store::{Settled, endpoints, generations::is_current, sql::Sql},
};

/// Resolution of an endpoint's last success, in milliseconds. Every delivery to an endpoint updates the same row, so
/// with a finer resolution servers would constantly wait for each other's commits.
const SUCCESS_PRECISION: i64 = 1_000;

/// The settlement of a delivery, and its caller.
pub(super) struct Settlement {
    lease: Lease,
    outcome: AttemptResult,
    decision: RetryDecision,
    settled: Settled,
    caller: oneshot::Sender<DbResult<Settled>>,
}

impl Settlement {
    /// Creates a settlement, and the receiver of its answer.
    pub(super) fn new(
        lease: Lease,
        outcome: AttemptResult,
        decision: RetryDecision,
    ) -> (Box<Self>, oneshot::Receiver<DbResult<Settled>>) {
        let (caller, answer) = oneshot::channel();
        (Box::new(Self { lease, outcome, decision, settled: Settled::Late, caller }), answer)
    }

    /// Returns the parcel whose row must be locked, if any.
    pub(super) fn parcel(&self) -> Option<i64> {
        self.lease.parcel.map(|parcel| parcel.0)
    }

    /// Returns the tenant whose endpoint this may turn off, if any.
    pub(super) fn may_switch_off(&self) -> Option<Tenant> {
        match self.decision {
            RetryDecision::Gone | RetryDecision::GivenUp => Some(self.lease.tenant),
            RetryDecision::Delivered | RetryDecision::Retry { .. } | RetryDecision::Unreadable => {
                None
            }
        }
    }

    pub(super) fn tenant(&self) -> Tenant {
        self.lease.tenant
    }

    pub(super) fn is_abandoned(&self) -> bool {
        self.caller.is_closed()
    }

    /// Answers the caller; a caller that has gone needs no answer.
    pub(super) fn answer(self, outcome: DbResult<()>) {
        let _gone = self.caller.send(outcome.map(|()| self.settled));
    }
}

/// The row of a leased event.
struct Found {
    row: i64,
    parcel: Option<i64>,
    first_attempt: Option<i64>,
    /// `true` if the lease is the row's last and was not ended by a replay or a new endpoint.
    is_current: bool,
}

/// Writes all settlements; the rows of their parcels are locked.
pub(super) async fn write(db: &Connection, all: &mut [&mut Settlement]) -> DbResult<()> {
    if all.is_empty() {
        return Ok(());
    }
    let found = find(db, all).await?;
    let (mut attempts, mut rows, mut parcels) = (Vec::new(), Rows::default(), BTreeMap::new());
    let mut successes = BTreeMap::<i64, i64>::new();
    for (place, one) in all.iter_mut().enumerate() {
        let Some(event) = found.get(&place) else { continue };
        let (number, at) = (one.lease.attempt.number, one.outcome.at);
        attempts.push((event.row, number, &one.outcome));
        if !event.is_current {
            continue;
        }
        one.settled = Settled::Counted;
        rows.add(event.row, number, one.decision);
        parcels.extend(event.parcel.map(|parcel| (parcel, at)));
        if one.decision == RetryDecision::Delivered {
            let last = successes.entry(one.lease.tenant.number()).or_insert(at.0);
            *last = at.0.max(*last);
        }
    }
    outbox::log_attempts(db, &attempts).await?;
    rows.write(db).await?;
    write_successes(db, &successes).await?;
    let parcels: Vec<(i64, Millis)> = parcels.into_iter().collect();
    outbox::release(db, &parcels).await?;
    switch_off(db, all, &found).await
}

/// Returns the locked rows of the leased events by the position in `all`. A deleted event has no entry, even if the
/// same event was enqueued again.
async fn find(db: &Connection, all: &[&mut Settlement]) -> DbResult<HashMap<usize, Found>> {
    let events: Vec<Vec<u8>> =
        all.iter().map(|one| one.lease.attempt.event.to_bytes().to_vec()).collect();
    let tenants: Vec<i64> = all.iter().map(|one| one.lease.tenant.number()).collect();
    let leases: Vec<i64> = all.iter().map(|one| one.lease.number).collect();
    let sql = concat!(
        "SELECT n.place, o.id, o.parcel, o.first_attempt, o.lease = n.lease \
         FROM unnest($1::bytea[], $2::bigint[], $3::bigint[]) WITH ORDINALITY \
         AS n (event, tenant, lease, place) \
         JOIN outbox AS o ON o.event_id = n.event AND o.tenant & 4294967295 = n.tenant \
         AND o.after_lease < n.lease AND ",
        is_current!("o.tenant"),
        " ORDER BY o.id FOR UPDATE OF o"
    );
    let given: [&(dyn ToSql + Sync); 3] = [&events, &tenants, &leases];
    let found = db.each(sql, &given, |row| {
        let place = usize::try_from(get::<i64>(row, 0)?).map_err(Failure::row)?;
        let event = Found {
            row: get(row, 1)?,
            parcel: get(row, 2)?,
            first_attempt: get(row, 3)?,
            is_current: get(row, 4)?,
        };
        Ok((place.saturating_sub(1), event))
    });
    Ok(found.await?.into_iter().collect())
}

/// The new values of the events' rows, by column.
#[derive(Default)]
struct Rows {
    ids: Vec<i64>,
    states: Vec<i16>,
    dues: Vec<Option<i64>>,
    attempts: Vec<i64>,
}

impl Rows {
    fn add(&mut self, row: i64, number: u32, decision: RetryDecision) {
        let (state, due) = match decision {
            RetryDecision::Delivered => (DELIVERED, None),
            RetryDecision::Retry { at } => (READY, Some(at.0)),
            RetryDecision::GivenUp | RetryDecision::Gone | RetryDecision::Unreadable => {
                (FAILED, None)
            }
        };
        self.ids.push(row);
        self.states.push(state);
        self.dues.push(due);
        self.attempts.push(i64::from(number));
    }

    /// Writes the rows. An event that was held after it was sent is not retried, but if it has arrived it counts as
    /// delivered.
    async fn write(self, db: &Connection) -> DbResult<()> {
        let sql = "UPDATE outbox AS o SET state = n.state, due = n.due, attempts = n.attempts, \
             leased = false, lease_until = NULL \
             FROM unnest($1::bigint[], $2::smallint[], $3::bigint[], $4::bigint[]) \
             AS n (id, state, due, attempts) WHERE o.id = n.id AND (n.state <> 1 OR o.state = 1)";
        let given: [&(dyn ToSql + Sync); 4] = [&self.ids, &self.states, &self.dues, &self.attempts];
        db.execute(sql, &given).await.map(drop)
    }
}

/// Records the times of endpoints' last successes, sorted by tenant so that two servers never deadlock.
async fn write_successes(db: &Connection, successes: &BTreeMap<i64, i64>) -> DbResult<()> {
    if successes.is_empty() {
        return Ok(());
    }
    let tenants: Vec<i64> = successes.keys().copied().collect();
    let moments: Vec<i64> = successes.values().copied().collect();
    let sql = "INSERT INTO webhook_successes AS old (tenant, at) \
         SELECT n.tenant, n.at FROM unnest($1::bigint[], $2::bigint[]) AS n (tenant, at) \
         WHERE NOT EXISTS (SELECT 1 FROM webhook_successes AS s \
         WHERE s.tenant = n.tenant AND s.at > n.at - $3) ORDER BY n.tenant \
         ON CONFLICT (tenant) DO UPDATE SET at = greatest(old.at, excluded.at)";
    db.execute(sql, &[&tenants, &moments, &SUCCESS_PRECISION]).await.map(drop)
}

/// Turns off endpoints that are gone, or that refused all attempts of an event and accepted nothing else.
async fn switch_off(
    db: &Connection,
    all: &mut [&mut Settlement],
    found: &HashMap<usize, Found>,
) -> DbResult<()> {
    for (place, one) in all.iter_mut().enumerate() {
        let Some(event) = found.get(&place).filter(|event| event.is_current) else { continue };
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
        if endpoints::give_up(Sql::Postgres(db), tenant, by, one.outcome.at).await? {
            one.settled = Settled::SwitchedOff(by);
        }
    }
    Ok(())
}

/// Returns `true` if the endpoint has accepted anything since an event's first attempt, with the precision of the
/// stored last success.
async fn has_answered_since(db: &Connection, tenant: i64, first: Option<i64>) -> DbResult<bool> {
    let sql = "SELECT EXISTS (SELECT 1 FROM webhook_successes WHERE tenant = $1 AND at > $2)";
    let known = first.map(|first| first.saturating_sub(SUCCESS_PRECISION));
    db.value(sql, &[&tenant, &known]).await
}
