//! Group commit: many writes, one transaction, one fsync.
//!
//! Each write has a savepoint, so that one which refuses or panics takes nothing with it. Nobody
//! is answered before the commit, refusals included: one may point at a row of the same group.

use std::panic::{AssertUnwindSafe, catch_unwind};

use rusqlite::Connection;

use super::{
    error::{is_busy, is_corrupt, is_fatal},
    health::{Health, Lost},
};

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
    /// It failed and is not acknowledged. Nothing was done, unless it was the commit's own fsync that
    /// failed: then the next start may find it done.
    Broken,
}

/// Does all of `works` in one transaction, then answers each.
pub(super) fn commit(db: &Connection, health: &Health, mut works: Vec<Box<dyn Work>>) {
    let fates = fates(db, health, &mut works);
    for (work, fate) in works.into_iter().zip(fates) {
        work.answer(fate);
    }
}

fn fates(db: &Connection, health: &Health, works: &mut [Box<dyn Work>]) -> Vec<Fate> {
    let mut hurt = Vec::new();
    while health.is_writable() {
        match transact(db, works, &hurt) {
            // A commit into a file that is no longer there is gone with the process.
            Ok(_) if !health.check_place() => break,
            Ok(fates) => {
                count(health, &fates, works);
                return fates;
            }
            // A bad page hurts those whose rows are on it, and nobody else: all is done again without
            // them, for after such an error SQLite takes no write before a rollback.
            Err(Failed { error, by: Some(by) }) if is_corrupt(&error) && is_cleared(db) => {
                tracing::error!(%error, "a write met a page that is damaged, and was undone");
                hurt.push(by);
            }
            Err(Failed { error, .. }) => return vec![fail(db, health, &error); works.len()],
        }
    }
    vec![Fate::Broken; works.len()]
}

/// What an error of the whole group means for all of it.
fn fail(db: &Connection, health: &Health, error: &rusqlite::Error) -> Fate {
    let is_cleared = is_cleared(db);
    if is_fatal(error) || !is_cleared {
        health.end(Lost::Disk);
        tracing::error!(%error, "the database failed: it is read-only from now on");
    } else {
        tracing::warn!(%error, "a group of writes was rolled back");
    }
    if is_busy(error) { Fate::Busy } else { Fate::Broken }
}

/// `SQLite` rolls back by itself after some errors; where it did not, it is done here.
fn is_cleared(db: &Connection) -> bool {
    db.is_autocommit() || run(db, "ROLLBACK").is_ok()
}

fn count(health: &Health, fates: &[Fate], works: &[Box<dyn Work>]) {
    let kept = works.iter().zip(fates).filter(|(_, f)| **f == Fate::Settled(Applied::Keep));
    let orders: Vec<_> = kept.map(|(work, _)| work.orders()).collect();
    health.count(&orders);
}

/// An error of the whole group, and the write that brought it about.
struct Failed {
    error: rusqlite::Error,
    by: Option<usize>,
}

impl From<rusqlite::Error> for Failed {
    fn from(error: rusqlite::Error) -> Self {
        Self { error, by: None }
    }
}

/// Does all but those that are `hurt`.
fn transact(
    db: &Connection,
    works: &mut [Box<dyn Work>],
    hurt: &[usize],
) -> Result<Vec<Fate>, Failed> {
    run(db, "BEGIN IMMEDIATE")?;
    let fates = works.iter_mut().enumerate().map(|(at, work)| {
        if hurt.contains(&at) {
            return Ok(Fate::Broken);
        }
        one(db, work.as_mut()).map_err(|error| Failed { error, by: Some(at) })
    });
    let fates = fates.collect::<Result<_, _>>()?;
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
