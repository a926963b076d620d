//! What a watchdog asks before it lets a server go on: whether a restart would help.

use super::{Engine, Store};

impl Store {
    /// Returns `true` once the writer has done everything that was queued before, or `false` if its queue is full or
    /// the store is closed. A writer that is stuck never answers, and only a restart helps. PostgreSQL's writer is
    /// not waited for, because it waits for PostgreSQL, which no restart of a server brings back.
    pub async fn writer_answers(&self) -> bool {
        match &self.0 {
            Engine::Sqlite(engine) => engine.writer_answers().await,
            #[cfg(feature = "postgres")]
            Engine::Postgres(engine) => engine.read_only_reason().is_none(),
        }
    }
}
