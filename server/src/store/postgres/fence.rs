//! A connection that writes has a row of `writers`, which each of its transactions updates. The row says whether
//! its last COMMIT was done, and without it nothing is committed.

use super::{
    connection::{Backend, Connection, get},
    error::DbResult,
    writes::Stopped,
};

/// Rows of `writers` that no server has written to for so long are deleted.
const FORGET_WRITERS: &str =
    "DELETE FROM writers WHERE seen_at < now() - interval '30 days' AND writer <> $1";
/// The number of the row's last commit goes up by one, or the row is gone and nothing may be committed.
pub(super) const COUNT_BATCH: &str = "UPDATE writers SET batch = batch + 1, seen_at = now() \
     WHERE writer = $1 AND batch = $2";

/// A connection with its row of `writers`.
pub(super) struct Live {
    pub(super) db: Connection,
    pub(super) writer: i64,
    /// The number of its last commit.
    pub(super) batch: i64,
}

/// Gives a new connection its row.
pub(super) async fn begin(db: Connection) -> DbResult<Live> {
    // From the database's own randomness: no two connections of any server have the same.
    let writer = db
        .value(
            "INSERT INTO writers (writer, batch, pid) \
             VALUES (('x' || substr(md5(gen_random_uuid()::text), 1, 16))::bit(64)::bigint, 0, $1) \
             RETURNING writer",
            &[&db.backend().pid],
        )
        .await?;
    db.execute(FORGET_WRITERS, &[&writer]).await?;
    Ok(Live { db, writer, batch: 0 })
}

/// Counts the transaction as its connection's next. A row that is gone was deleted by another server, to which
/// this one had been silent for too long; the group goes again on a connection with a row of its own.
pub(super) async fn count_batch(live: &Live) -> Result<(), Stopped> {
    if live.db.execute(COUNT_BATCH, &[&live.writer, &live.batch]).await? == 1 {
        return Ok(());
    }
    tracing::warn!("this connection may not commit any more, and is replaced");
    Err(Stopped::Fenced)
}

/// Says whether the lost connection's last COMMIT was done. Asking again answers the same: its row is left
/// where it is.
pub(super) async fn settle(db: &Connection, lost: &Live) -> DbResult<bool> {
    // It may hang in a network that lost the COMMIT. One that is at work has received it, and one that does not say what it
    // does (`track_activities = off`) may have.
    let end = format!("{END} AND state LIKE 'idle%'");
    db.execute(&end, &[&lost.db.backend().pid, &lost.db.backend().started]).await?;
    // The old transaction has updated the row: this waits until it has ended, one way or the other. The lock
    // is a write: where COMMIT waits for a standby, this does too, and so the old one has reached it.
    let find = "SELECT batch FROM writers WHERE writer = $1 FOR UPDATE";
    let row = db.first(find, &[&lost.writer]).await?;
    // A commit renews its row for a month, so that one that is gone was not renewed.
    let batch: Option<i64> = row.map(|row| get(&row, 0)).transpose()?;
    Ok(batch.is_some_and(|batch| batch > lost.batch))
}

/// Ends a backend that has not been sent a COMMIT, if it lives. One that waits for a synchronous standby would commit when
/// it is ended: the rows would be seen, and acknowledged to who repeats, though the standby does not have them.
pub(super) async fn end_backend(db: &Connection, old: &Backend) -> DbResult<()> {
    db.execute(END, &[&old.pid, &old.started]).await.map(drop)
}

/// That needs no privilege: it is our own role's.
const END: &str = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
     WHERE pid = $1 AND backend_start::text = $2";
