//! Calls to either engine's database, with statements that both engines understand.

#[cfg(feature = "postgres")]
use super::postgres::connection::Connection;
use super::{
    Engine, Store, StoreError,
    sql::{Sql, SqlError, SqlResult, at_once},
    sqlite,
};
use crate::domain::Tenant;

impl Store {
    /// Reads a few rows.
    pub(super) async fn query<T, F>(&self, run: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: AsyncFn(Sql<'_>) -> SqlResult<T> + Send + 'static,
    {
        let call = async {
            match &self.0 {
                Engine::Sqlite(engine) => engine.read(|db| at_once(run(Sql::Sqlite(db)))),
                #[cfg(feature = "postgres")]
                Engine::Postgres(engine) => {
                    engine.read(async move |db| Ok(run(Sql::Postgres(db)).await?)).await
                }
            }
        };
        #[cfg(test)]
        let call = super::delays::around("query", call);
        call.await
    }

    /// Writes everything or nothing. Once polled it completes, even if this future is dropped.
    pub(super) async fn write<T, F>(&self, run: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: AsyncFn(Sql<'_>) -> SqlResult<T> + Send + 'static,
    {
        match &self.0 {
            Engine::Sqlite(engine) => engine.call(move |db| at_once(run(Sql::Sqlite(db)))).await,
            #[cfg(feature = "postgres")]
            Engine::Postgres(engine) => {
                engine.call(async move |db| Ok(run(Sql::Postgres(db)).await?)).await
            }
        }
    }

    /// Runs a read that may take long, for a tenant or (`None`) for the operators. Each of them has one such read at a
    /// time.
    pub(super) async fn long_query<T, F>(
        &self,
        tenant: Option<Tenant>,
        run: F,
    ) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: AsyncFn(Sql<'_>) -> SqlResult<T> + Send + Sync + 'static,
    {
        match &self.0 {
            Engine::Sqlite(engine) => {
                let read =
                    move |store: &sqlite::Store| store.read(|db| at_once(run(Sql::Sqlite(db))));
                engine.scan(tenant, read).await
            }
            #[cfg(feature = "postgres")]
            Engine::Postgres(engine) => {
                let run = async move |db: &Connection| Ok(run(Sql::Postgres(db)).await?);
                engine.scan(tenant, run).await
            }
        }
    }

    /// Writes like [`Store::write`], and waits for the outcome without a timeout.
    pub(super) async fn write_without_timeout<T, F>(&self, run: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: AsyncFn(Sql<'_>) -> SqlResult<T> + Send + 'static,
    {
        match &self.0 {
            Engine::Sqlite(engine) => {
                engine.call_within(None, move |db| at_once(run(Sql::Sqlite(db)))).await
            }
            #[cfg(feature = "postgres")]
            Engine::Postgres(engine) => {
                let run = async move |db: &Connection| Ok(run(Sql::Postgres(db)).await?);
                engine.call_within(None, run).await
            }
        }
    }

    /// Writes one page of a mass write when its turn comes.
    pub(super) async fn page<T, F>(&self, run: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: AsyncFn(Sql<'_>) -> SqlResult<T> + Send + 'static,
    {
        match &self.0 {
            Engine::Sqlite(engine) => {
                engine.page(move |db, _budget| at_once(run(Sql::Sqlite(db)))).await
            }
            #[cfg(feature = "postgres")]
            Engine::Postgres(engine) => {
                engine.page(async move |db| Ok(run(Sql::Postgres(db)).await?)).await
            }
        }
    }

    /// Returns the readable rows. An unreadable row does not hide others; each read of it is counted, and the first
    /// one is logged.
    pub(super) fn readable<T>(&self, rows: Vec<SqlResult<T>>, what: &'static str) -> Vec<T> {
        let readable = |row: SqlResult<T>| match row {
            Ok(row) => Some(row),
            Err(error) => {
                let text = format!("{what}: {error}");
                let error = self.error(error);
                if self.is_first(text) {
                    tracing::error!(%error, "{what}");
                }
                None
            }
        };
        rows.into_iter().filter_map(readable).collect()
    }

    /// Returns `true` the first time that it is called with this text about an unreadable row.
    pub(super) fn is_first(&self, text: String) -> bool {
        engine!(self, engine => engine.is_first(text))
    }

    /// Returns the error for the caller. A parcel that cannot be read is counted.
    pub(super) fn error(&self, error: SqlError) -> StoreError {
        match &self.0 {
            Engine::Sqlite(engine) => engine.read_error(error.into()),
            #[cfg(feature = "postgres")]
            Engine::Postgres(engine) => engine.error(error.into()),
        }
    }

    /// Deletes the rows of a table that are as old as `before`, page by page, and returns their number.
    pub(super) async fn delete_old(&self, old: OldRows, before: i64) -> Result<u64, StoreError> {
        match &self.0 {
            Engine::Sqlite(engine) => {
                let page = move |db: &rusqlite::Connection, max: i64| {
                    db.prepare_cached(old.sqlite)?.execute([before, max])
                };
                engine.in_pages(page).await
            }
            #[cfg(feature = "postgres")]
            Engine::Postgres(engine) => engine.delete_old(old.postgres, before).await,
        }
    }
}

/// The statements that delete a page of a table's old rows.
#[derive(Debug, Clone, Copy)]
pub(super) struct OldRows {
    pub(super) sqlite: &'static str,
    #[cfg(feature = "postgres")]
    pub(super) postgres: &'static str,
}

/// Defines the old rows of a table by its key and its column with the time.
macro_rules! old_rows {
    ($table:literal, $key:literal, $time:literal) => {
        $crate::store::calls::OldRows {
            sqlite: concat!(
                "DELETE FROM ",
                $table,
                " WHERE (",
                $key,
                ") IN (SELECT ",
                $key,
                " FROM ",
                $table,
                " WHERE ",
                $time,
                " <= ?1 LIMIT ?2)"
            ),
            #[cfg(feature = "postgres")]
            postgres: $crate::store::postgres::delete_old!(
                $table,
                "ctid",
                concat!($table, " WHERE "),
                $time
            ),
        }
    };
}
pub(super) use old_rows;
