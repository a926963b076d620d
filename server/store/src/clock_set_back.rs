//! Corrections of the outbox after the clock was set back, because times that were written before lie too far ahead.

use parcelo_domain::{Millis, webhooks::LEASE_MILLIS};

use super::{
    Store, StoreError,
    generations::is_current,
    row_sets::column,
    sql::{Sql, SqlResult, params},
};

/// Maximum number of rows that one commit moves.
const MAX_ROWS_PER_COMMIT: usize = 500;

impl Store {
    /// Reschedules deliveries whose last attempt lies in the future: each waits its usual pause from `now`. Returns
    /// their number.
    pub async fn reschedule_deliveries(&self, now: Millis) -> Result<usize, StoreError> {
        let (mut after, mut moved) = (0, 0);
        loop {
            let page = self.query(async move |db| next_page(db, after, now).await).await?;
            let Some(last) = page.last() else { break };
            after = *last;
            moved += self.write(async move |db| bring_forward(db, &page, now).await).await?;
        }
        // Success times are compared by order, and times in the future would invert it.
        self.write(async move |db| {
            let sql = "UPDATE {webhook_successes SET at = $1 WHERE at|\
                 webhook_endpoints SET last_success = $1 WHERE last_success} > $1";
            db.execute(sql, params![now]).await.map(drop)
        })
        .await?;
        self.notify_outbox();
        Ok(usize::try_from(moved).unwrap_or(usize::MAX))
    }
}

async fn next_page(db: Sql<'_>, after: i64, now: Millis) -> SqlResult<Vec<i64>> {
    // With `+`, SQLite reads the events that have a due time, and not the whole log by its ids.
    let sql = concat!(
        "SELECT id FROM outbox WHERE {state = 1 AND greatest(due, lease_until)|due IS NOT NULL AND due} > $1 AND ",
        is_current!("tenant"),
        " AND {|+}id > $2 ORDER BY {|+}id LIMIT $3"
    );
    db.query_map(sql, params![now, after, MAX_ROWS_PER_COMMIT], |row| row.get(0)).await
}

/// Moves rows to earlier times. A first attempt becomes due at once, and a lease ends after its usual duration. A retry
/// keeps its pause, which is now counted from `now` instead of from the previous attempt. The time of that attempt is
/// corrected too, because the pause is computed from it if the clock is set back again. `SQLite` keeps the end of a
/// lease in `due`, and so do servers of schema 1 on PostgreSQL.
async fn bring_forward(db: Sql<'_>, rows: &[i64], now: Millis) -> SqlResult<u64> {
    let sql = "UPDATE outbox AS o SET first_attempt = CASE WHEN o.first_attempt > $2 THEN $2 \
         ELSE o.first_attempt END, {lease_until = CASE WHEN o.lease_until > $3 THEN $3 \
         ELSE o.lease_until END, |}due = CASE WHEN o.due <= $2 THEN o.due \
         WHEN o.leased{ AND o.lease_until IS NULL|} THEN {least|min}(o.due, $3) \
         WHEN o.attempts = 0 THEN $2 ELSE $2 + o.due - made.at END \
         FROM (SELECT n.id, (SELECT at FROM webhook_attempts WHERE outbox = n.id \
         ORDER BY id DESC LIMIT 1) AS at FROM {unnest($1::bigint[]) AS n (id)|(SELECT $1 AS id) AS n}) AS made \
         WHERE o.id = made.id AND o.state = 1 AND ({o.lease_until > $3::bigint OR |}\
         o.due > CASE WHEN o.leased{ AND o.lease_until IS NULL|} THEN $3{::bigint|} ELSE $2 END \
         AND (o.leased OR o.attempts = 0 OR made.at > $2))";
    let rows = column(rows);
    let moved = db.execute_rows(sql, &rows, params![now, now.plus(LEASE_MILLIS)]).await?;
    let move_attempts =
        "UPDATE webhook_attempts SET at = $2 WHERE outbox {= ANY($1)|= $1} AND at > $2";
    db.execute_rows(move_attempts, &rows, params![now]).await?;
    Ok(moved)
}
