//! Figures for operators about the database and the writes to it.

use std::time::Duration;

use super::{Engine, Store, StoreError};

/// Statistics of reads and writes since the store was opened, and the length of the queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stats {
    /// Number of transactions.
    pub commits: u64,
    /// Number of writes in them.
    pub changes: u64,
    /// Number of orders among these writes.
    pub orders: u64,
    /// Time spent in transactions, also in those that were rolled back.
    pub commit_time: Duration,
    /// Number of writes that wait for their transaction now.
    pub queued: u64,
    /// Number of reads that were not part of a write.
    pub reads: u64,
    /// Number of reads that met an unreadable parcel, by the table that holds the damage.
    pub unreadable: [(&'static str, u64); 2],
}

impl Store {
    /// Returns the statistics.
    pub fn stats(&self) -> Stats {
        engine!(self, engine => engine.stats())
    }

    /// Returns the size of the database in bytes: the file and its log, or all that PostgreSQL stores for it.
    pub async fn size(&self) -> Result<u64, StoreError> {
        let (sql, log) = match &self.0 {
            Engine::Sqlite(engine) => {
                let sql = "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size";
                (sql, engine.log_size())
            }
            #[cfg(feature = "postgres")]
            Engine::Postgres(_) => ("SELECT pg_database_size(current_database())", 0),
        };
        let size: i64 = self.query(async move |db| db.value(sql, &[]).await).await?;
        Ok(size.unsigned_abs() + log)
    }
}
