//! The log of deliveries: reading, counting, and deleting old entries.

use std::collections::HashMap;

use parcelo_domain::{
    Millis, ParcelRowId, Tenant,
    webhooks::{DeliveryStatus, LoggedAttempt, LoggedDelivery, WebhookEventKind},
};
use ulid::Ulid;

#[cfg(feature = "postgres")]
use super::generations::is_current_locked;
use super::{
    Backlog, Engine, Store, StoreError,
    generations::{current_generation, is_current},
    old_rows::OldRows,
    outbox,
    sql::{Row, Sql, SqlResult, params},
    values::Value,
};

/// A file's oldest events. Rows are appended in order of time, so if the first rows are young, all are.
macro_rules! first_rows {
    () => {
        concat!(
            "(SELECT id FROM (SELECT id, created_at FROM outbox WHERE ",
            is_current!("tenant"),
            " ORDER BY id LIMIT ?2) WHERE created_at <= ?1)"
        )
    };
}

/// Selects the rows of a page of events.
macro_rules! page {
    ($($condition:tt)+) => {
        concat!("(SELECT id FROM outbox WHERE ", $($condition)+, ")")
    };
}

impl Store {
    /// Returns the number of undelivered events of each tenant.
    pub async fn backlogs(&self) -> Result<Vec<Backlog>, StoreError> {
        let count = self.long_query(None, async |db| count_backlogs(db).await);
        match &self.0 {
            Engine::Sqlite(_) => count.await,
            #[cfg(feature = "postgres")]
            Engine::Postgres(engine) => engine.cached_backlogs(count).await,
        }
    }

    /// Deletes events from `cutoff` or earlier with their logs, page by page.
    pub async fn purge_outbox(&self, cutoff: Millis) -> Result<usize, StoreError> {
        let old = OldRows {
            sqlite: &[
                concat!("DELETE FROM webhook_attempts WHERE outbox IN ", first_rows!()),
                concat!("DELETE FROM outbox WHERE id IN ", first_rows!()),
            ],
            #[cfg(feature = "postgres")]
            postgres: super::postgres::delete_events!(super::postgres::in_page!(
                "id",
                "outbox WHERE ",
                is_current_locked!("tenant"),
                " AND created_at >= $2 AND created_at <= $1 ORDER BY created_at LIMIT $3"
            )),
        };
        Ok(usize::try_from(self.delete_old(old, cutoff.0).await?).unwrap_or(usize::MAX))
    }

    /// Returns the tenant's latest events and their attempts, newest first.
    pub async fn deliveries(
        &self,
        tenant: Tenant,
        max: usize,
    ) -> Result<Vec<LoggedDelivery>, StoreError> {
        self.older_deliveries(tenant, 0, max).await
    }

    /// Returns the same as [`Store::deliveries`], after skipping the latest `skipped` events.
    pub async fn older_deliveries(
        &self,
        tenant: Tenant,
        skipped: usize,
        max: usize,
    ) -> Result<Vec<LoggedDelivery>, StoreError> {
        let [max, skipped] = [max, skipped].map(|n| i64::try_from(n).unwrap_or(i64::MAX));
        self.long_query(Some(tenant), async move |db| {
            let page = page!(
                "tenant = ",
                current_generation!("$1"),
                " ORDER BY id DESC LIMIT $2 OFFSET $3"
            );
            read_deliveries(db, page, params![tenant.number(), max, skipped]).await
        })
        .await
    }

    /// Returns the latest events of one of the tenant's parcels and their attempts, newest first.
    pub async fn parcel_deliveries(
        &self,
        tenant: Tenant,
        parcel: ParcelRowId,
        max: usize,
    ) -> Result<Vec<LoggedDelivery>, StoreError> {
        self.long_query(Some(tenant), async move |db| {
            // With a plain `tenant`, SQLite would read the tenant's events instead of the parcel's, since their index
            // has the order of the page.
            let page = page!(
                "parcel = $3 AND +tenant = ",
                current_generation!("$1"),
                " ORDER BY id DESC LIMIT $2"
            );
            read_deliveries(db, page, params![tenant.number(), max, parcel]).await
        })
        .await
    }

    /// Returns the earliest first attempt of the tenant's events that are still tried after a failure, or `None` if
    /// there are none.
    pub async fn failing_since(&self, tenant: Tenant) -> Result<Option<Millis>, StoreError> {
        // The condition on `due` leads SQLite to the index of unsent events, instead of all events of the tenant.
        let sql = concat!(
            "SELECT min(first_attempt) FROM outbox WHERE tenant = ",
            current_generation!("$1"),
            " AND state = 1 AND due IS NOT NULL AND attempts > 0"
        );
        self.long_query(Some(tenant), async move |db| db.value(sql, params![tenant.number()]).await)
            .await
    }

    /// Returns `true` if the tenant has an event that failed or is held.
    pub async fn has_missed(&self, tenant: Tenant) -> Result<bool, StoreError> {
        self.long_query(Some(tenant), async move |db| {
            outbox::has_event(db, "state > 2", params![tenant.number()]).await
        })
        .await
    }
}

/// Returns the events of a page with their attempts, newest first.
async fn read_deliveries(
    db: Sql<'_>,
    page: &str,
    params: &[Value],
) -> SqlResult<Vec<LoggedDelivery>> {
    let due = if db.is_postgres() {
        "CASE WHEN o.lease_until > o.due THEN o.lease_until ELSE o.due END"
    } else {
        "o.due"
    };
    let sql = format!(
        "SELECT o.id, o.event_id, o.kind, p.number, o.state, o.created_at, {due} \
         FROM outbox AS o LEFT JOIN parcels AS p ON p.id = o.parcel WHERE o.id IN {page} \
         ORDER BY o.id DESC"
    );
    let read = |row: &Row<'_>| Ok((row.get::<i64>(0)?, read_delivery(row)));
    let found = db.query_map(&sql, params, read).await?;
    let sql = format!(
        "SELECT outbox, number, at, millis, status, error, answer FROM webhook_attempts \
         WHERE outbox IN {page} ORDER BY id"
    );
    let mut attempts = HashMap::<i64, Vec<LoggedAttempt>>::new();
    for attempt in db.query_map(&sql, params, |row| Ok(read_attempt(row))).await? {
        if let Some((event, attempt)) = skip_unreadable(attempt)? {
            attempts.entry(event).or_default().push(attempt);
        }
    }
    let mut deliveries = Vec::new();
    for (event, delivery) in found {
        let Some(delivery) = skip_unreadable(delivery)? else { continue };
        let attempts = attempts.remove(&event).unwrap_or_default();
        deliveries.push(LoggedDelivery { attempts, ..delivery });
    }
    Ok(deliveries)
}

/// Counts the undelivered events of each tenant. Triggers count a file's events; on PostgreSQL the partition and the
/// index that this reads contain neither delivered nor failed events.
async fn count_backlogs(db: Sql<'_>) -> SqlResult<Vec<Backlog>> {
    let sql = if db.is_postgres() {
        concat!(
            "SELECT tenant, false, count(*), min(created_at) FROM outbox WHERE state IN (0, 1) AND ",
            is_current!("tenant"),
            " GROUP BY tenant UNION ALL \
             SELECT tenant, true, count(*), min(created_at) FROM outbox WHERE state = 4 AND ",
            is_current!("tenant"),
            " GROUP BY tenant ORDER BY 1, 2"
        )
    } else {
        concat!(
            "SELECT tenant, held, events, iif(held, \
             (SELECT min(created_at) FROM outbox WHERE tenant = c.tenant AND state = 4), \
             (SELECT min(created_at) FROM outbox WHERE tenant = c.tenant AND state < 2)) \
             FROM outbox_counts AS c WHERE events > 0 AND ",
            is_current!("tenant")
        )
    };
    db.query_map(sql, &[], |row| {
        Ok(Backlog {
            tenant: Tenant::from_number(row.get(0)?),
            is_held: row.get(1)?,
            events: row.get(2)?,
            since: row.get(3)?,
        })
    })
    .await
}

/// Returns `None` for a row of the log that cannot be read, so that it does not hide others.
fn skip_unreadable<T>(read: SqlResult<T>) -> SqlResult<Option<T>> {
    match read {
        Err(error) if error.is_row_error() => {
            tracing::error!("a row of a webhook's log cannot be read, and is left out");
            Ok(None)
        }
        read => read.map(Some),
    }
}

/// Reads an event without its attempts.
fn read_delivery(row: &Row<'_>) -> SqlResult<LoggedDelivery> {
    let status: u8 = row.get(4)?;
    Ok(LoggedDelivery {
        event: Ulid::from_bytes(row.get(1)?),
        kind: row.parse_number(2, WebhookEventKind::from_number)?,
        tracking_number: row.get(3)?,
        delivery_status: DeliveryStatus::ALL
            .get(usize::from(status))
            .copied()
            .unwrap_or(DeliveryStatus::Failed),
        created_at: row.get(5)?,
        due: row.get(6)?,
        attempts: Vec::new(),
    })
}

/// Reads an attempt, and the row id of its event.
fn read_attempt(row: &Row<'_>) -> SqlResult<(i64, LoggedAttempt)> {
    let attempt = LoggedAttempt {
        number: row.get(1)?,
        at: row.get(2)?,
        millis: row.get(3)?,
        status: row.get(4)?,
        error: row.get(5)?,
        response: row.get::<Option<_>>(6)?.unwrap_or_default(),
    };
    Ok((row.get(0)?, attempt))
}
