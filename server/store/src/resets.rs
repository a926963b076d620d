//! Resets of sandboxes. A reset begins a new generation ([`generations`](super::generations)) in one small transaction,
//! which on PostgreSQL waits for writes into the previous generation. Once it has committed, no read finds the
//! sandbox's earlier data, and every number, key and air waybill is free. The rows of the ended generation are counted
//! for the answer. Then a background task erases them page by page, while orders go on. It outlives the request, and
//! continues after a restart.
//!
//! If a reset is requested before the previous one has been counted, its answer includes both.

use std::sync::{MutexGuard, PoisonError};

use parcelo_domain::{AccountRecord, Tenant};
use parcelo_types::{Environment, model::Deleted};

use super::{
    Engine, Store, StoreError,
    active_resets::ActiveResets,
    counts,
    erase::{Eraser, add_counts},
    generations::own_number,
    pages::Budget,
    reset_counts::{RETRY_PAUSE, record_counts, recorded_counts},
    sql::{Sql, SqlResult, params},
    sqlite,
    values::Value,
};

impl Store {
    /// Deletes all data that a sandbox has at the moment; its keys and settings stay. Once polled it completes, even if
    /// this future is dropped.
    pub async fn reset(&self, tenant: Tenant) -> Result<Deleted, StoreError> {
        if tenant.environment == Environment::Production {
            return Ok(Deleted::default());
        }
        if self.is_inline() {
            return self.reset_inline(vec![tenant]).await;
        }
        // A separate task, so that the reset completes even if this future is dropped.
        let reset = tokio::spawn(self.clone().count_and_erase(tenant));
        let broken = |_panicked| StoreError::Broken { database: self.name() };
        reset.await.map_err(broken)?
    }

    /// Resets every sandbox, in a file or in memory in one commit, for test servers.
    pub async fn reset_all(&self) -> Result<Deleted, StoreError> {
        let sandbox = |account: AccountRecord| Tenant {
            account: account.key,
            environment: Environment::Sandbox,
        };
        let sandboxes: Vec<_> = self.accounts().await?.into_iter().map(sandbox).collect();
        match &self.0 {
            Engine::Sqlite(_) => self.reset_inline(sandboxes).await,
            #[cfg(feature = "postgres")]
            Engine::Postgres(_) => {
                let mut all = Deleted::default();
                for sandbox in sandboxes {
                    all = add_counts(all, self.reset(sandbox).await?);
                }
                Ok(all)
            }
        }
    }

    /// Continues resets that an earlier server began. On PostgreSQL they are older than a minute: their callers have
    /// gone, because a request waits for half a minute at most.
    pub async fn resume_resets(&self) -> Result<(), StoreError> {
        let old = "{changed_at < now() - interval '1 minute'|TRUE} ORDER BY number";
        self.erase_in_background(self.query(async move |db| find_ended(db, old, &[]).await).await?);
        Ok(())
    }

    /// Truncates the log of a file if it may contain erased data, nothing is being erased, and no reader is using it.
    /// PostgreSQL keeps its log: the manual says what it retains of erased rows.
    pub async fn truncate_log(&self) {
        if let Ok(engine) = self.sqlite() {
            engine.truncate_log().await;
        }
    }

    async fn reset_inline(&self, sandboxes: Vec<Tenant>) -> Result<Deleted, StoreError> {
        let reset = async move |db: Sql<'_>| {
            let mut all = Deleted::default();
            for sandbox in &sandboxes {
                all = add_counts(all, reset_in_transaction(db, *sandbox).await?);
            }
            Ok(all)
        };
        let deleted = self.write(reset).await?;
        self.forget_deleted_keys().await.map(|()| deleted)
    }

    async fn count_and_erase(self, sandbox: Tenant) -> Result<Deleted, StoreError> {
        // First, because while there is a request, no counts are deleted that it may need.
        let _request = self.active_resets().add_request(sandbox);
        let ended = self
            .write_in_own_transaction(async move |db| begin_generation(db, sandbox).await)
            .await?;
        let counts = async {
            let mut all = Deleted::default();
            for number in &ended {
                all = add_counts(all, self.count_once(*number).await?);
            }
            Ok(all)
        };
        let counts = counts.await;
        self.erase_in_background(ended);
        counts
    }

    /// Returns the counts of an ended generation. The first call counts it.
    pub(super) async fn count_once(&self, number: i64) -> Result<Deleted, StoreError> {
        let known = async || self.query(async move |db| recorded_counts(db, number).await).await;
        if let Some(known) = known().await? {
            return Ok(known);
        }
        let turn = self.active_resets().add_request(Tenant::from_number(number));
        let _turn = turn.lock().await;
        // Another request may have counted it in between.
        if let Some(known) = known().await? {
            return Ok(known);
        }
        let counted = self.count(number).await?;
        // If another server was faster, its counts apply, because it may be erasing already.
        self.write_in_own_transaction(async move |db| {
            record_counts(db, number, counted).await?;
            Ok(recorded_counts(db, number).await?.unwrap_or_default())
        })
        .await
    }

    /// Returns `true` if calls are answered at once, by a database that no server shares with callers.
    pub(super) fn is_inline(&self) -> bool {
        self.sqlite().is_ok_and(sqlite::Store::is_inline)
    }

    pub(super) fn active_resets(&self) -> MutexGuard<'_, ActiveResets> {
        self.state().resets.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn erase_in_background(&self, ended: Vec<i64>) {
        for number in ended {
            let is_new = self.active_resets().erasing.insert(number);
            if is_new {
                tokio::spawn(self.clone().erase(number));
            }
        }
    }

    /// Erases an ended generation until nothing is left or another server is erasing it.
    async fn erase(self, number: i64) {
        loop {
            match self.erase_pages(number).await {
                Ok(()) => break,
                Err(
                    StoreError::Busy { .. } | StoreError::Crowded { .. } | StoreError::Full { .. },
                ) => tokio::time::sleep(RETRY_PAUSE).await,
                Err(error) => {
                    // An error of a closed store needs no message.
                    if self.is_writable() {
                        tracing::error!(%error, "a reset stopped; it goes on within minutes");
                    }
                    break;
                }
            }
        }
        self.active_resets().erasing.remove(&number);
        // If this fails, the next purge does it.
        let _ = self.forget_deleted_keys().await;
        self.truncate_log().await;
    }

    async fn erase_pages(&self, number: i64) -> Result<(), StoreError> {
        self.count_once(number).await?;
        let mut stage = Some(0);
        while let Some(from) = stage {
            let page = async move |db: Sql<'_>, budget: &mut Budget| {
                erase_page(db, (number, from), budget).await
            };
            let Some(next) = self.page_within(page).await? else { return Ok(()) };
            self.mark_erased(true);
            stage = next;
        }
        // Requests that began before may still ask for the counts.
        while self.active_resets().has_request(Tenant::from_number(number)) {
            tokio::time::sleep(RETRY_PAUSE).await;
        }
        self.page(async move |db| finish_erasure(db, number).await).await
    }

    async fn forget_deleted_keys(&self) -> Result<(), StoreError> {
        match self.sqlite() {
            Ok(engine) => engine.forget_deleted_keys().await,
            Err(_) => Ok(()),
        }
    }
}

/// Begins a sandbox's next generation. Returns the earlier generations that are not counted yet, in order.
pub(super) async fn begin_generation(db: Sql<'_>, sandbox: Tenant) -> SqlResult<Vec<i64>> {
    let params = params![sandbox.number()];
    let next = "INSERT INTO generations AS g (home, current) VALUES ($1, CAST($1 AS bigint) + 4294967296) \
         ON CONFLICT (home) DO UPDATE SET current = g.current + 4294967296 \
         RETURNING current - 4294967296";
    let number: i64 = db.value(next, params).await?;
    db.execute("INSERT INTO ended_generations (number) VALUES ($1)", params![number]).await?;
    if !db.is_postgres() {
        // Nothing is leased any more. A trigger sets the time again for new events.
        let none_due = "UPDATE webhook_endpoints SET next_due = NULL WHERE tenant = $1";
        db.execute(none_due, params).await?;
    }
    let uncounted = concat!("parcels IS NULL AND ", own_number!("number"), " = $1 ORDER BY number");
    find_ended(db, uncounted, params).await
}

/// Returns the numbers of the ended generations that a condition selects.
async fn find_ended(db: Sql<'_>, condition: &str, params: &[Value]) -> SqlResult<Vec<i64>> {
    let sql = format!("SELECT number FROM ended_generations WHERE {condition}");
    db.query_map(&sql, params, |row| row.get(0)).await
}

/// Resets a sandbox within the caller's transaction.
async fn reset_in_transaction(db: Sql<'_>, sandbox: Tenant) -> SqlResult<Deleted> {
    let mut all = Deleted::default();
    for number in begin_generation(db, sandbox).await? {
        let mut budget = Budget::unlimited();
        let mut eraser = Eraser::new(db, &mut budget);
        eraser.erase_generation(number, 0).await?;
        all = add_counts(all, eraser.finish().await?);
        finish_erasure(db, number).await?;
    }
    Ok(all)
}

/// Erases a page of an ended generation, which waits for rows that someone has locked. Returns the stage of the next
/// page, if anything is left, or `None` if another server is erasing it.
pub(super) async fn erase_page(
    db: Sql<'_>,
    (number, stage): (i64, u8),
    budget: &mut Budget,
) -> SqlResult<Option<Option<u8>>> {
    if find_ended(db, "number = $1{ FOR UPDATE SKIP LOCKED|}", params![number]).await?.is_empty() {
        return Ok(None);
    }
    let mut eraser = Eraser::new(db, budget);
    let next = eraser.erase_generation(number, stage).await?;
    eraser.finish().await?;
    Ok(Some(next))
}

/// Finishes the erasure of a generation of which no rows are left. On PostgreSQL its own row stays until the reset is
/// resumed, because other servers' callers may still read the counts.
pub(super) async fn finish_erasure(db: Sql<'_>, number: i64) -> SqlResult<()> {
    counts::delete_generation_counts(db, number).await?;
    let row = "DELETE FROM ended_generations \
         WHERE number = $1{ AND changed_at < now() - interval '1 minute'|}";
    db.execute(row, params![number]).await.map(drop)
}
