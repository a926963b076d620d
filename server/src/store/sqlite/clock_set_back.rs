//! Corrections of the outbox after the clock was set back, because the fast clock has written times that lie too far
//! ahead.

use rusqlite::{Connection, params};

use super::{Store, StoreError};
use crate::{clock::Millis, domain::webhooks::LEASE, store::generations::is_current};

/// Maximum number of rows that one commit moves.
const MAX_ROWS_PER_COMMIT: usize = 1_000;

impl Store {
    /// Corrects deliveries whose last attempt lies in the future: each becomes due again after its usual pause from
    /// `now`. Returns their number.
    pub async fn bring_deliveries_forward(&self, now: Millis) -> Result<usize, StoreError> {
        let ahead = self.read(|db| {
            let mut find = db.prepare(concat!(
                "SELECT id FROM outbox WHERE due IS NOT NULL AND due > ?1 AND ",
                is_current!("tenant")
            ))?;
            find.query_map([now.0], |row| row.get(0))?.collect::<rusqlite::Result<Vec<i64>>>()
        })?;
        let mut moved = 0;
        for page in ahead.chunks(MAX_ROWS_PER_COMMIT) {
            let page = page.to_vec();
            moved += self.call(move |db| bring_forward(db, &page, now)).await?;
        }
        // `last_success` is compared by order, which future times would invert.
        self.call(move |db| {
            let sql = "UPDATE webhook_endpoints SET last_success = ?1 WHERE last_success > ?1";
            db.execute(sql, [now.0]).map(drop)
        })
        .await?;
        self.notify_outbox();
        Ok(moved)
    }
}

/// Moves rows to earlier times. A first attempt is due at once, a lease ends after its usual duration, and another
/// attempt keeps its pause, which now begins at `now` instead of at the previous attempt. The previous attempt's time
/// is corrected too, because the pause is the difference of the two times, and the clock may be set back again.
fn bring_forward(db: &Connection, rows: &[i64], now: Millis) -> rusqlite::Result<usize> {
    let mut update = db.prepare_cached(
        "UPDATE outbox SET first_attempt = min(first_attempt, ?2), due = CASE \
         WHEN leased = 1 THEN min(due, ?3) WHEN attempts = 0 THEN ?2 ELSE ?2 + due - made.at END \
         FROM (SELECT (SELECT at FROM webhook_attempts WHERE outbox = ?1 \
         ORDER BY id DESC LIMIT 1) AS at) AS made \
         WHERE id = ?1 AND due > CASE leased WHEN 1 THEN ?3 ELSE ?2 END \
         AND (leased = 1 OR attempts = 0 OR made.at > ?2)",
    )?;
    let mut made =
        db.prepare_cached("UPDATE webhook_attempts SET at = ?2 WHERE outbox = ?1 AND at > ?2")?;
    let mut moved = 0;
    for row in rows {
        moved += update.execute(params![row, now.0, now.plus(LEASE).0])?;
        made.execute(params![row, now.0])?;
    }
    Ok(moved)
}
