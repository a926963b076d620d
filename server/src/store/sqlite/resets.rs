//! Resets of sandboxes. A reset begins a new generation ([`generations`](crate::store::generations)) in one small
//! commit. From then on no read finds the sandbox's earlier data, and every number, key and air waybill is free. The
//! rows of the ended generation are counted for the answer. Then a background task deletes them page by page. It
//! outlives the request, and continues after a restart.
//!
//! If a reset is requested before the previous reset is counted, its answer covers both.

use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, MutexGuard, PoisonError, Weak},
    time::Duration,
};

use parcelo::{Environment, model::Deleted};
use rusqlite::{Connection, OptionalExtension};

use super::{
    Mode, Store, StoreError, counts,
    erase::{Eraser, sum},
    outbox,
    pages::Budget,
};
use crate::{
    domain::{AccountRowId, Tenant},
    store::generations::{GENERATION, current, home},
};

/// Pause before a page is retried, because the database was busy or the sandbox is being counted.
const RETRY_PAUSE: Duration = Duration::from_millis(100);
/// Maximum number of parcels that one read counts.
const PARCELS_PER_COUNT: u64 = 2_000;

/// The resets of this process, by the tenant numbers of their sandboxes.
#[derive(Debug, Default)]
pub(super) struct ActiveResets {
    /// The counts that the requests of each sandbox share; they are dropped with the last request.
    counting: HashMap<i64, Weak<Counted>>,
    /// The sandboxes whose rows a task is deleting.
    erasing: HashSet<i64>,
}

/// The counts of ended generations, by their numbers. Requests of one sandbox count one after another.
pub(super) type Counted = tokio::sync::Mutex<HashMap<i64, Deleted>>;

impl ActiveResets {
    pub(super) fn counted(&mut self, home: i64) -> Arc<Counted> {
        self.counting.retain(|_, counted| counted.strong_count() > 0);
        self.counting.get(&home).and_then(Weak::upgrade).unwrap_or_else(|| {
            let counted = Arc::default();
            self.counting.insert(home, Arc::downgrade(&counted));
            counted
        })
    }

    fn is_counting(&self, home: i64) -> bool {
        self.counting.get(&home).is_some_and(|counted| counted.strong_count() > 0)
    }
}

/// The outcome of a step of the erasing task.
enum Next {
    /// There are more rows.
    Page,
    /// A request is still counting.
    Wait,
    /// Nothing is left.
    End,
}

impl Store {
    /// Deletes all data that a sandbox has at this moment, except its keys and settings. Once this future is polled,
    /// the reset completes, even if the future is dropped.
    pub async fn reset(&self, tenant: Tenant) -> Result<Deleted, StoreError> {
        if tenant.environment == Environment::Production {
            return Ok(Deleted::default());
        }
        let home = tenant.number();
        if let Mode::Inline(_) = self.0.mode {
            let deleted = self.call(move |db| at_once(db, home)).await?;
            return self.forget_dead_keys().await.map(|()| deleted);
        }
        let reset = tokio::spawn(self.clone().count_and_erase(home));
        reset.await.map_err(|_panicked| StoreError::Broken { database: self.database() })?
    }

    /// Resets every sandbox in one commit, for a test server.
    pub async fn reset_all(&self) -> Result<Deleted, StoreError> {
        let deleted = self.call(|db| {
            let mut find = db.prepare_cached("SELECT id FROM accounts ORDER BY id")?;
            let accounts = find.query_map([], |row| row.get(0).map(AccountRowId))?;
            let mut all = Deleted::default();
            for account in accounts.collect::<Result<Vec<_>, _>>()? {
                let tenant = Tenant { account, environment: Environment::Sandbox };
                all = sum(all, at_once(db, tenant.number())?);
            }
            Ok(all)
        });
        let deleted = deleted.await?;
        self.forget_dead_keys().await.map(|()| deleted)
    }

    /// Continues the resets that an earlier server began.
    pub async fn resume_resets(&self) -> Result<(), StoreError> {
        let sql = concat!("SELECT DISTINCT ", home!("number"), " FROM ended_generations");
        let sandboxes = self.read(|db| {
            let mut find = db.prepare_cached(sql)?;
            find.query_map([], |row| row.get(0))?.collect::<Result<Vec<i64>, _>>()
        })?;
        for home in sandboxes {
            self.erase_in_background(home);
        }
        Ok(())
    }

    async fn count_and_erase(self, home: i64) -> Result<Deleted, StoreError> {
        // Taken first, because while it is held, no data is erased that may be counted through it.
        let counted = self.active_resets().counted(home);
        let ended = self.call_within(None, move |db| begin(db, home)).await?;
        self.erase_in_background(home);
        let mut counted = counted.lock().await;
        let mut all = Deleted::default();
        for number in ended {
            let known = counted.get(&number).copied();
            let deleted = if let Some(known) = known { known } else { self.count(number).await? };
            counted.insert(number, deleted);
            all = sum(all, deleted);
        }
        Ok(all)
    }

    /// Counts the data of an ended generation, while writes continue.
    pub(super) async fn count(&self, number: i64) -> Result<Deleted, StoreError> {
        let store = self.clone();
        let count = move || {
            let mut all = store.read(|db| count_others(db, number))?;
            let mut after = Some((i64::MIN, 0));
            while let Some(from) = after {
                let (counted, last) = store.read(|db| count_parcels(db, number, from))?;
                (all, after) = (sum(all, counted), last);
            }
            Ok(all)
        };
        let counted = tokio::task::spawn_blocking(count).await;
        let all =
            counted.map_err(|_panicked| StoreError::Broken { database: self.database() })??;
        self.call_within(None, move |db| keep(db, number, all)).await?;
        Ok(all)
    }

    pub(super) fn is_erasing(&self) -> bool {
        !self.active_resets().erasing.is_empty()
    }

    pub(super) fn active_resets(&self) -> MutexGuard<'_, ActiveResets> {
        self.0.resets.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn erase_in_background(&self, home: i64) {
        if self.active_resets().erasing.insert(home) {
            tokio::spawn(self.clone().erase(home));
        }
    }

    /// Erases the rows that a sandbox's resets have left behind.
    async fn erase(self, home: i64) {
        loop {
            match self.erase_page(home).await {
                Ok(Next::Page) => {}
                Ok(Next::Wait) | Err(StoreError::Busy { .. } | StoreError::Full { .. }) => {
                    tokio::time::sleep(RETRY_PAUSE).await;
                }
                Ok(Next::End) => break,
                Err(error) => {
                    // An error of a closed store needs no message.
                    if self.is_writable() {
                        tracing::error!(%error, "a reset stopped; it goes on within a minute");
                    }
                    self.active_resets().erasing.remove(&home);
                    break;
                }
            }
        }
        // If this fails, the next purge does it.
        let _ = self.forget_dead_keys().await;
        self.truncate_log().await;
    }

    async fn erase_page(&self, home: i64) -> Result<Next, StoreError> {
        let store = self.clone();
        let page = self.page(move |db, budget| {
            // This runs on the writer's thread, so a reset begins either before this page or after it.
            let which = if store.active_resets().is_counting(home) { COUNTED } else { ANY };
            page(db, (home, which), budget)
        });
        if page.await?.is_some() {
            self.erased(true);
            return Ok(Next::Page);
        }
        // Under this lock, a reset that has begun since the page either finds the task still here, or finds it gone and
        // starts another.
        let mut active_resets = self.active_resets();
        if self.read(|db| ended(db, home, ANY))?.is_some() {
            return Ok(Next::Wait);
        }
        active_resets.erasing.remove(&home);
        Ok(Next::End)
    }
}

/// Returns the number of a tenant's current generation, which is valid for this transaction.
pub(super) fn current(db: &Connection, tenant: Tenant) -> rusqlite::Result<i64> {
    if tenant.environment == Environment::Production {
        return Ok(tenant.number());
    }
    let sql = concat!("SELECT ", current!("?1"));
    db.prepare_cached(sql)?.query_row([tenant.number()], |row| row.get(0))
}

/// Begins a sandbox's next generation. Returns the ended generations that are not counted yet, including the one that
/// this call ends.
pub(super) fn begin(db: &Connection, home: i64) -> rusqlite::Result<Vec<i64>> {
    let mut next = db.prepare_cached(
        "INSERT INTO generations (home, current) VALUES (?1, ?1 + ?2) \
         ON CONFLICT (home) DO UPDATE SET current = current + ?2 RETURNING current - ?2",
    )?;
    let ended: i64 = next.query_row([home, GENERATION], |row| row.get(0))?;
    db.prepare_cached("INSERT INTO ended_generations (number) VALUES (?1)")?.execute([ended])?;
    outbox::forget_due(db, home)?;
    uncounted(db, home)
}

fn uncounted(db: &Connection, home: i64) -> rusqlite::Result<Vec<i64>> {
    let sql = concat!(
        "SELECT number FROM ended_generations WHERE ",
        home!("number"),
        " = ?1 AND parcels IS NULL ORDER BY number"
    );
    db.prepare_cached(sql)?.query_map([home], |row| row.get(0))?.collect()
}

/// Selects the first ended generation of a sandbox that may be erased while a request counts, because it is already
/// counted.
const COUNTED: &str = concat!(
    "SELECT number FROM ended_generations WHERE ",
    home!("number"),
    " = ?1 AND parcels IS NOT NULL ORDER BY number LIMIT 1"
);
/// Selects the first ended generation of a sandbox, which may be erased only while no request counts.
pub(super) const ANY: &str = concat!(
    "SELECT number FROM ended_generations WHERE ",
    home!("number"),
    " = ?1 ORDER BY number LIMIT 1"
);

/// Returns the first of a sandbox's ended generations that `which` selects.
fn ended(db: &Connection, home: i64, which: &str) -> rusqlite::Result<Option<i64>> {
    db.prepare_cached(which)?.query_row([home], |row| row.get(0)).optional()
}

/// Erases a page of the data that a sandbox's resets have left behind, in the first generation that `which` selects.
/// Returns the counts of the erased data, or `None` if there is no such generation.
pub(super) fn page(
    db: &Connection,
    (home, which): (i64, &str),
    budget: &mut Budget,
) -> rusqlite::Result<Option<Deleted>> {
    let Some(number) = ended(db, home, which)? else { return Ok(None) };
    // Marks the generation as counted, so that a reset that begins after this page does not count the remaining rows.
    let begun = "UPDATE ended_generations SET parcels = 0 WHERE number = ?1 AND parcels IS NULL";
    db.prepare_cached(begun)?.execute([number])?;
    let mut eraser = Eraser::new(db, budget);
    let is_more = eraser.generation(number)?;
    let deleted = eraser.finish()?;
    if !is_more {
        counts::forget(db, number)?;
        outbox::forget_counts(db, number)?;
        db.prepare_cached("DELETE FROM ended_generations WHERE number = ?1")?.execute([number])?;
    }
    Ok(Some(deleted))
}

fn at_once(db: &Connection, home: i64) -> rusqlite::Result<Deleted> {
    begin(db, home)?;
    let mut all = Deleted::default();
    while let Some(deleted) = page(db, (home, ANY), &mut Budget::unlimited())? {
        all = sum(all, deleted);
    }
    Ok(all)
}

/// Counts some parcels after a creation time and row, with their histories. Returns the place of the last parcel if
/// there may be more.
fn count_parcels(
    db: &Connection,
    number: i64,
    after: (i64, i64),
) -> rusqlite::Result<(Deleted, Option<(i64, i64)>)> {
    let mut find = db.prepare_cached(
        "SELECT created_at, id, (SELECT count(*) FROM events WHERE parcel = p.id) FROM parcels AS p \
         WHERE tenant = ?1 AND (created_at, id) > (?2, ?3) ORDER BY created_at, id LIMIT ?4",
    )?;
    let mut rows = find.query([number, after.0, after.1, PARCELS_PER_COUNT.cast_signed()])?;
    let (mut parcels, mut events, mut last) = (0, 0, None);
    while let Some(row) = rows.next()? {
        (parcels, last) = (parcels + 1, Some((row.get(0)?, row.get(1)?)));
        events += row.get::<_, i64>(2)?.unsigned_abs();
    }
    // Each parcel has two events that its row implies.
    let counted = of_parcels(parcels, events + 2 * parcels);
    Ok((counted, last.filter(|_| parcels == PARCELS_PER_COUNT)))
}

/// Counts the other data of a generation.
fn count_others(db: &Connection, number: i64) -> rusqlite::Result<Deleted> {
    let count = |sql: &str| -> rusqlite::Result<u64> {
        let mut count = db.prepare_cached(sql)?;
        count.query_row([number], |row| row.get::<_, i64>(0).map(i64::unsigned_abs))
    };
    // The second condition matches the condition of the index.
    let keys = "SELECT count(*) FROM idempotency WHERE tenant = ?1 AND tenant % 2 = 1";
    Ok(Deleted::default()
        .with_manifests(count("SELECT count(*) FROM manifests WHERE tenant = ?1")?)
        .with_idempotency_keys(count(keys)?)
        .with_webhook_deliveries(count("SELECT count(*) FROM outbox WHERE tenant = ?1")?))
}

/// Records that a generation is counted, and may be erased.
fn keep(db: &Connection, number: i64, counted: Deleted) -> rusqlite::Result<()> {
    let mut update = db.prepare_cached(
        "UPDATE ended_generations SET parcels = ?2, events = ?3, manifests = ?4, keys = ?5, \
         deliveries = ?6 WHERE number = ?1",
    )?;
    let Deleted { parcels, tracking_events, manifests, .. } = counted;
    let Deleted { idempotency_keys, webhook_deliveries, .. } = counted;
    let [parcels, events, manifests, keys, deliveries] =
        [parcels, tracking_events, manifests, idempotency_keys, webhook_deliveries]
            .map(u64::cast_signed);
    update.execute([number, parcels, events, manifests, keys, deliveries]).map(drop)
}

/// Returns the counts of parcels, each with one label, and of events.
fn of_parcels(parcels: u64, events: u64) -> Deleted {
    Deleted::default().with_parcels(parcels).with_labels(parcels).with_tracking_events(events)
}
