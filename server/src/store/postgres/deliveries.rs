//! The log of deliveries: reading, counting, and deleting old entries.

use std::time::{Duration, Instant};

use super::{
    Store,
    connection::{Connection, get},
    error::DbResult,
    generations::{IS_CURRENT, is_held},
    outbox::delete_events,
    pages::in_page,
    settle_deliveries::Settlement,
    write_queue::Write,
};
use crate::{
    clock::{Millis, has_elapsed, stopwatch},
    domain::{
        Tenant,
        webhooks::{AttemptResult, Lease, RetryDecision},
    },
    store::{Backlog, Settled, StoreError},
};

/// Divisor of a connection's time, because counting backlogs may take at most this fraction of it.
const COUNTING_SHARE: u32 = 20;
/// Minimum duration of a count whose result is cached. Faster counts are repeated.
const WORTH_KEEPING: Duration = Duration::from_millis(100);

/// The undelivered events at the last count.
pub(super) struct Counted {
    at: Instant,
    took: Duration,
    all: Vec<Backlog>,
}

impl Store {
    /// Returns the number of undelivered events of each tenant. A slow count is cached for twenty times its duration:
    /// with a million held events it takes part of a second, and every server's metrics are read every few seconds.
    pub(crate) async fn backlogs(&self) -> Result<Vec<Backlog>, StoreError> {
        let counted = |backlogs: &Counted| {
            !has_elapsed(backlogs.at, backlogs.took * COUNTING_SHARE)
                && backlogs.took > WORTH_KEEPING
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
}

/// Counts the undelivered events of each tenant. The partition and the index that this reads contain neither delivered
/// nor failed events.
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
