//! The log of deliveries: shown, counted, and deleted when it is old.

use std::{
    collections::HashMap,
    time::{Duration, Instant},
};

use tokio_postgres::{Row, types::ToSql};
use ulid::Ulid;

use super::{
    Store,
    connection::{Connection, bytes, get, number},
    error::{DbResult, Failure},
    generations::{CURRENT, IS_CURRENT, is_held},
    leases::read_kind,
    outbox::{MISSED, delete_events},
    pages::in_page,
    settles::Settlement,
    writes::Write,
};
use crate::{
    clock::{Millis, is_older, stopwatch},
    domain::{
        Tenant,
        webhooks::{
            AttemptResult, DeliveryStatus, Lease, LoggedAttempt, LoggedDelivery, RetryDecision,
        },
    },
    store::{Backlog, Settled, StoreError},
};

/// Counting backlogs takes one part of so many of a connection's time.
const COUNTING_SHARE: u32 = 20;
/// What was counted faster is counted again.
const WORTH_KEEPING: Duration = Duration::from_millis(100);

/// The undelivered events as they were last counted.
pub(super) struct Counted {
    at: Instant,
    took: Duration,
    all: Vec<Backlog>,
}

impl Store {
    /// What was counted is answered again until twenty times as long has passed as it took: with a million events
    /// held it takes part of a second, and every server's metrics are asked for every few seconds.
    pub(crate) async fn backlogs(&self) -> Result<Vec<Backlog>, StoreError> {
        let counted = |backlogs: &Counted| {
            !is_older(backlogs.at, backlogs.took * COUNTING_SHARE) && backlogs.took > WORTH_KEEPING
        };
        let mut kept = self.0.backlogs.lock().await;
        if let Some(backlogs) = kept.as_ref().filter(|backlogs| counted(backlogs)) {
            return Ok(backlogs.all.clone());
        }
        let began = stopwatch();
        let all = self.scan(None, async |db| backlogs(db).await).await?;
        *kept = Some(Counted { at: began, took: began.elapsed(), all: all.clone() });
        Ok(all)
    }

    pub(crate) async fn settle(
        &self,
        lease: Lease,
        outcome: AttemptResult,
        decision: RetryDecision,
    ) -> Result<Settled, StoreError> {
        let tenant = lease.tenant;
        let (settlement, answer) = Settlement::new(lease, outcome, decision);
        let settled = self.write(Write::Settle(settlement), answer).await?;
        if matches!(settled, Settled::SwitchedOff(_)) {
            self.hold(tenant).await?;
        }
        self.notify_outbox();
        Ok(settled)
    }

    pub(crate) async fn purge_outbox(&self, before: Millis) -> Result<usize, StoreError> {
        let sql = delete_events!(in_page!(
            "id",
            "outbox WHERE ",
            is_held!("tenant"),
            " AND created_at >= $2 AND created_at <= $1 ORDER BY created_at LIMIT $3"
        ));
        let purged = self.delete_old(sql, before.0);
        Ok(usize::try_from(purged.await?).unwrap_or(usize::MAX))
    }

    pub(crate) async fn deliveries(
        &self,
        tenant: Tenant,
        most: usize,
    ) -> Result<Vec<LoggedDelivery>, StoreError> {
        self.older_deliveries(tenant, 0, most).await
    }

    pub(crate) async fn older_deliveries(
        &self,
        tenant: Tenant,
        skipped: usize,
        most: usize,
    ) -> Result<Vec<LoggedDelivery>, StoreError> {
        let [most, skipped] = [most, skipped].map(|n| i64::try_from(n).unwrap_or(i64::MAX));
        let found = self
            .scan(Some(tenant), async move |db| {
                let sql = format!(
                    "SELECT o.id, o.event_id, o.kind, p.number, o.state, o.created_at, \
                     CASE WHEN o.lease_until > o.due THEN o.lease_until ELSE o.due END \
                     FROM (SELECT * FROM outbox WHERE tenant = {CURRENT} \
                     ORDER BY id DESC LIMIT $2 OFFSET $3) AS o \
                     LEFT JOIN parcels AS p ON p.id = o.parcel ORDER BY o.id DESC"
                );
                let rows = db.all(&sql, &[&tenant.number(), &most, &skipped]).await?;
                let mut attempts = attempts(db, &rows).await?;
                Ok(rows.iter().map(|row| logged(row, &mut attempts)).collect::<Vec<_>>())
            })
            .await?;
        Ok(self.readable(found, "an event of a webhook's log is left out"))
    }

    pub(crate) async fn has_missed(&self, tenant: Tenant) -> Result<bool, StoreError> {
        self.scan(Some(tenant), async move |db| {
            let sql = format!(
                "SELECT EXISTS (SELECT 1 FROM outbox WHERE tenant = {CURRENT} AND {MISSED})"
            );
            db.value(&sql, &[&tenant.number()]).await
        })
        .await
    }
}

/// The undelivered events of each tenant. Delivered and failed events are in neither partition nor index that this reads.
async fn backlogs(db: &Connection) -> DbResult<Vec<Backlog>> {
    let sql = format!(
        "SELECT tenant, false, count(*), min(created_at) FROM outbox \
         WHERE state IN (0, 1) AND {IS_CURRENT} GROUP BY tenant UNION ALL \
         SELECT tenant, true, count(*), min(created_at) FROM outbox \
         WHERE state = 4 AND {IS_CURRENT} GROUP BY tenant ORDER BY 1, 2"
    );
    db.each(&sql, &[], |row| {
        Ok(Backlog {
            tenant: Tenant::from_number(get(row, 0)?),
            held: get(row, 1)?,
            events: get(row, 2)?,
            since: Millis(get(row, 3)?),
        })
    })
    .await
}

/// The attempts at these events, by the row of each.
async fn attempts(db: &Connection, events: &[Row]) -> DbResult<HashMap<i64, Vec<LoggedAttempt>>> {
    let rows: Vec<i64> = events.iter().map(|row| get(row, 0)).collect::<DbResult<_>>()?;
    let sql = "SELECT outbox, number, at, millis, status, error, answer FROM webhook_attempts \
         WHERE outbox = ANY($1) ORDER BY id";
    let mut attempts = HashMap::<i64, Vec<LoggedAttempt>>::new();
    let given: [&(dyn ToSql + Sync); 1] = [&rows];
    for row in &db.all(sql, &given).await? {
        let status: Option<i32> = get(row, 4)?;
        attempts.entry(get(row, 0)?).or_default().push(LoggedAttempt {
            number: number(row, 1)?,
            at: Millis(get(row, 2)?),
            millis: get(row, 3)?,
            status: status.map(u16::try_from).transpose().map_err(Failure::row)?,
            error: get(row, 5)?,
            answer: get::<Option<_>>(row, 6)?.unwrap_or_default(),
        });
    }
    Ok(attempts)
}

fn logged(row: &Row, attempts: &mut HashMap<i64, Vec<LoggedAttempt>>) -> DbResult<LoggedDelivery> {
    let status = usize::try_from(get::<i16>(row, 4)?).map_err(Failure::row)?;
    Ok(LoggedDelivery {
        event: Ulid::from_bytes(bytes(row, 1)?),
        kind: read_kind(row, 2)?,
        tracking_number: get(row, 3)?,
        delivery_status: DeliveryStatus::ALL.get(status).copied().unwrap_or(DeliveryStatus::Failed),
        created_at: Millis(get(row, 5)?),
        due: get::<Option<_>>(row, 6)?.map(Millis),
        attempts: attempts.remove(&get(row, 0)?).unwrap_or_default(),
    })
}
