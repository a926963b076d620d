//! Group commit: many writes, one transaction, one fsync.
//!
//! Each write has a savepoint, so that one which refuses or panics takes nothing with it. Nobody
//! is answered before the commit, refusals included: one may point at a row of the same group.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
};

use rusqlite::Connection;

use super::error::{is_busy, is_fatal};

/// One write: what it does to the database, and how its caller hears of it.
pub(super) trait Work: Send {
    /// Writes, inside a savepoint.
    fn apply(&mut self, db: &Connection) -> rusqlite::Result<Applied>;
    /// Tells the caller.
    fn answer(self: Box<Self>, fate: Fate);
    /// How many orders it writes.
    fn orders(&self) -> usize {
        0
    }
}

/// What becomes of a write's savepoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Applied {
    /// It is kept.
    Keep,
    /// The write refuses; whatever it did is undone.
    Undo,
}

/// What became of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    /// It was done and is durable, or it refused and the reason is durable.
    Settled(Applied),
    /// Another process held the database; nothing was done.
    Busy,
    /// It failed; nothing was done.
    Broken,
}

/// Whether the database can be written, and how much was.
#[derive(Debug, Default)]
pub(super) struct Health {
    broken: AtomicBool,
    pub(super) commits: AtomicU64,
    pub(super) changes: AtomicU64,
    pub(super) orders: AtomicU64,
}

impl Health {
    pub(super) fn is_writable(&self) -> bool {
        !self.broken.load(Ordering::Acquire)
    }

    /// No write is taken from here on.
    pub(super) fn end(&self) {
        self.broken.store(true, Ordering::Release);
    }

    fn count(&self, fates: &[Fate], works: &[Box<dyn Work>]) {
        let kept = works.iter().zip(fates).filter(|(_, f)| **f == Fate::Settled(Applied::Keep));
        let (changes, orders) =
            kept.fold((0, 0), |(changes, orders), (work, _)| (changes + 1, orders + work.orders()));
        if changes > 0 {
            self.commits.fetch_add(1, Ordering::Relaxed);
            self.changes.fetch_add(changes, Ordering::Relaxed);
            self.orders.fetch_add(orders as u64, Ordering::Relaxed);
        }
    }
}

/// Does all of `works` in one transaction, then answers each.
pub(super) fn commit(db: &Connection, health: &Health, mut works: Vec<Box<dyn Work>>) {
    let fates = fates(db, health, &mut works);
    for (work, fate) in works.into_iter().zip(fates) {
        work.answer(fate);
    }
}

fn fates(db: &Connection, health: &Health, works: &mut [Box<dyn Work>]) -> Vec<Fate> {
    if !health.is_writable() {
        return vec![Fate::Broken; works.len()];
    }
    let error = match transact(db, works) {
        Ok(fates) => {
            health.count(&fates, works);
            return fates;
        }
        Err(error) => error,
    };
    // SQLite rolls back by itself after some errors; where it did not, it is done here.
    let cleared = db.is_autocommit() || run(db, "ROLLBACK").is_ok();
    if is_fatal(&error) || !cleared {
        health.end();
        tracing::error!(%error, "the database failed: it is read-only from now on");
    } else {
        tracing::warn!(%error, writes = works.len(), "a group of writes was rolled back");
    }
    vec![if is_busy(&error) { Fate::Busy } else { Fate::Broken }; works.len()]
}

fn transact(db: &Connection, works: &mut [Box<dyn Work>]) -> rusqlite::Result<Vec<Fate>> {
    run(db, "BEGIN IMMEDIATE")?;
    let fates = works.iter_mut().map(|work| one(db, work.as_mut())).collect::<Result<_, _>>()?;
    run(db, "COMMIT")?;
    Ok(fates)
}

/// Does one write; an error is one of the whole group.
fn one(db: &Connection, work: &mut dyn Work) -> rusqlite::Result<Fate> {
    run(db, "SAVEPOINT one")?;
    match catch_unwind(AssertUnwindSafe(|| work.apply(db))) {
        Ok(Ok(Applied::Keep)) => {
            run(db, "RELEASE one")?;
            Ok(Fate::Settled(Applied::Keep))
        }
        Ok(Ok(Applied::Undo)) => undo(db, Fate::Settled(Applied::Undo)),
        Ok(Err(error)) if is_fatal(&error) || db.is_autocommit() => Err(error),
        Ok(Err(error)) => {
            tracing::error!(%error, "a write failed and was undone");
            undo(db, Fate::Broken)
        }
        Err(_panic) => {
            tracing::error!("a write panicked and was undone");
            undo(db, Fate::Broken)
        }
    }
}

fn undo(db: &Connection, fate: Fate) -> rusqlite::Result<Fate> {
    run(db, "ROLLBACK TO one")?;
    run(db, "RELEASE one")?;
    Ok(fate)
}

fn run(db: &Connection, sql: &str) -> rusqlite::Result<()> {
    db.prepare_cached(sql)?.execute([]).map(drop)
}
