//! Corrections of the outbox after the clock was set back, because times that were written before lie too far ahead.

use super::{Store, connection::Connection, error::DbResult, pages::ROWS_PER_PAGE};
use crate::{clock::Millis, domain::webhooks::LEASE, store::StoreError};

impl Store {
    pub(crate) async fn bring_deliveries_forward(&self, now: Millis) -> Result<usize, StoreError> {
        let (mut after, mut moved) = (0, 0);
        loop {
            let page = self.read(async move |db| next_page(db, after, now).await).await?;
            let Some(last) = page.last() else { break };
            after = *last;
            moved += self.call(async move |db| bring_forward(db, &page, now).await).await?;
        }
        // Success times are compared by order, and times in the future would invert it.
        self.call(async move |db| {
            let sql = "UPDATE webhook_successes SET at = $1 WHERE at > $1";
            db.execute(sql, &[&now.0]).await.map(drop)
        })
        .await?;
        self.notify_outbox();
        Ok(usize::try_from(moved).unwrap_or(usize::MAX))
    }
}

async fn next_page(db: &Connection, after: i64, now: Millis) -> DbResult<Vec<i64>> {
    let sql = "SELECT id FROM outbox WHERE state = 1 AND greatest(due, lease_until) > $1 AND id > $2 \
         ORDER BY id LIMIT $3";
    db.each(sql, &[&now.0, &after, &ROWS_PER_PAGE], |row| super::connection::get(row, 0)).await
}

/// Moves rows to earlier times. A first attempt becomes due at once, and a lease ends after its usual duration. A retry
/// keeps its pause: it is due as long after now as it was due after the previous attempt. The time of that attempt is
/// corrected too, because the pause is computed from it if the clock is set back again. A lease of a server of schema 1
/// is in `due`.
async fn bring_forward(db: &Connection, rows: &[i64], now: Millis) -> DbResult<u64> {
    let sql = "UPDATE outbox AS o SET first_attempt = CASE WHEN o.first_attempt > $2 THEN $2 \
         ELSE o.first_attempt END, lease_until = CASE WHEN o.lease_until > $3 THEN $3 \
         ELSE o.lease_until END, due = CASE \
         WHEN o.due <= $2 THEN o.due \
         WHEN o.leased AND o.lease_until IS NULL THEN least(o.due, $3) WHEN o.attempts = 0 THEN $2 \
         ELSE $2 + o.due - made.at END \
         FROM (SELECT id, (SELECT at FROM webhook_attempts WHERE outbox = ids.id \
         ORDER BY id DESC LIMIT 1) AS at FROM unnest($1::bigint[]) AS ids (id)) AS made \
         WHERE o.id = made.id AND o.state = 1 AND (o.lease_until > $3::bigint OR \
         o.due > CASE WHEN o.leased AND o.lease_until IS NULL THEN $3::bigint ELSE $2 END \
         AND (o.leased OR o.attempts = 0 OR made.at > $2))";
    let moved = db.execute(sql, &[&rows, &now.0, &now.plus(LEASE).0]).await?;
    let made = "UPDATE webhook_attempts SET at = $2 WHERE outbox = ANY($1) AND at > $2";
    db.execute(made, &[&rows, &now.0]).await?;
    Ok(moved)
}
