//! Calls to either engine's database, with statements that both engines understand.

use std::{sync::PoisonError, time::Duration};

use parcelo_domain::Tenant;

#[cfg(feature = "postgres")]
use super::postgres::{self, connection::Connection};
use super::{
    Engine, Store, StoreError, WRITE_TIMEOUT,
    old_rows::OldRows,
    pages::Budget,
    sql::{Sql, SqlError, SqlResult, poll_now},
    sqlite,
};

impl Store {
    /// Reads a few rows.
    pub(super) async fn query<T, F>(&self, run: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: AsyncFn(Sql<'_>) -> SqlResult<T> + Send + 'static,
    {
        let call = async {
            match &self.0 {
                Engine::Sqlite(engine) => engine.read(|db| poll_now(run(Sql::Sqlite(db)))),
                #[cfg(feature = "postgres")]
                Engine::Postgres(engine) => {
                    engine.read(async move |db| Ok(run(Sql::Postgres(db)).await?)).await
                }
            }
        };
        #[cfg(any(test, feature = "test-util"))]
        let call = crate::test_util::delays::around(call);
        call.await
    }

    /// Writes everything or nothing. Once polled it completes, even if this future is dropped.
    pub(super) async fn write<T, F>(&self, run: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: AsyncFn(Sql<'_>) -> SqlResult<T> + Send + 'static,
    {
        self.write_within(Some(WRITE_TIMEOUT), run).await
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
                    move |store: &sqlite::Store| store.read(|db| poll_now(run(Sql::Sqlite(db))));
                engine.scan(tenant, read).await
            }
            #[cfg(feature = "postgres")]
            Engine::Postgres(engine) => {
                let run = async move |db: &Connection| Ok(run(Sql::Postgres(db)).await?);
                engine.scan(tenant, run).await
            }
        }
    }

    /// Writes like [`Store::write`], with another timeout. `None` waits for the outcome, however long it takes.
    pub(super) async fn write_within<T, F>(
        &self,
        timeout: Option<Duration>,
        run: F,
    ) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: AsyncFn(Sql<'_>) -> SqlResult<T> + Send + 'static,
    {
        match &self.0 {
            Engine::Sqlite(engine) => {
                engine.call_within(timeout, move |db| poll_now(run(Sql::Sqlite(db)))).await
            }
            #[cfg(feature = "postgres")]
            Engine::Postgres(engine) => {
                let run = async move |db: &Connection| Ok(run(Sql::Postgres(db)).await?);
                engine.call_within(timeout, run).await
            }
        }
    }

    /// Writes everything or nothing without a timeout. On PostgreSQL the transaction is separate
    /// from those of orders, which do not wait for it.
    pub(super) async fn write_in_own_transaction<T, F>(&self, run: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: AsyncFn(Sql<'_>) -> SqlResult<T> + Send + 'static,
    {
        match &self.0 {
            Engine::Sqlite(_) => self.write_within(None, run).await,
            #[cfg(feature = "postgres")]
            Engine::Postgres(engine) => {
                engine.in_transaction(async move |db| Ok(run(Sql::Postgres(db)).await?)).await
            }
        }
    }

    /// Writes one page of a mass write when its turn comes.
    pub(super) async fn page<T, F>(&self, run: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: AsyncFn(Sql<'_>) -> SqlResult<T> + Send + 'static,
    {
        self.page_within(async move |db, _budget: &mut Budget| run(db).await).await
    }

    /// Writes one page of a mass write, which ends when its budget is spent.
    pub(super) async fn page_within<T, F>(&self, run: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: AsyncFn(Sql<'_>, &mut Budget) -> SqlResult<T> + Send + 'static,
    {
        match &self.0 {
            Engine::Sqlite(engine) => {
                engine.page(move |db, budget| poll_now(run(Sql::Sqlite(db), budget))).await
            }
            #[cfg(feature = "postgres")]
            Engine::Postgres(engine) => {
                let page = async move |db: &Connection| {
                    let mut budget = Budget::for_rows(postgres::ROWS_PER_PAGE.unsigned_abs());
                    Ok(run(Sql::Postgres(db), &mut budget).await?)
                };
                engine.page(page).await
            }
        }
    }

    /// Returns the readable rows. An unreadable row does not hide others; each read of it is counted, and the first
    /// one is logged.
    pub(super) fn readable_rows<T>(
        &self,
        rows: Vec<SqlResult<T>>,
        context: &'static str,
    ) -> Vec<T> {
        let readable = |row: SqlResult<T>| match row {
            Ok(row) => Some(row),
            Err(error) => {
                let text = format!("{context}: {error}");
                let error = self.error(error);
                if self.should_log(text) {
                    tracing::error!(%error, "{context}");
                }
                None
            }
        };
        rows.into_iter().filter_map(readable).collect()
    }

    /// Returns `true` the first time that it is called with this text about an unreadable row.
    pub(super) fn should_log(&self, text: String) -> bool {
        self.state().logged_unreadable.lock().unwrap_or_else(PoisonError::into_inner).insert(text)
    }

    /// Returns the error for the caller. A parcel that cannot be read is counted.
    pub(super) fn error(&self, error: SqlError) -> StoreError {
        match &self.0 {
            Engine::Sqlite(engine) => engine.read_error(error.into()),
            #[cfg(feature = "postgres")]
            Engine::Postgres(engine) => engine.error(error.into()),
        }
    }

    /// Deletes the rows of a table that are as old as `cutoff`, page by page, and returns their number.
    pub(super) async fn delete_old(&self, old: OldRows, cutoff: i64) -> Result<u64, StoreError> {
        match &self.0 {
            Engine::Sqlite(engine) => {
                let page = move |db: &rusqlite::Connection, max: i64| {
                    let mut rows = 0;
                    for sql in old.sqlite {
                        rows = db.prepare_cached(sql)?.execute([cutoff, max])?;
                    }
                    Ok(rows)
                };
                let deleted = engine.in_pages(page).await;
                // After an error, the pages before it may have deleted rows.
                engine.mark_erased(!matches!(deleted, Ok(0)));
                deleted
            }
            #[cfg(feature = "postgres")]
            Engine::Postgres(engine) => engine.delete_old(old.postgres, cutoff).await,
        }
    }
}
