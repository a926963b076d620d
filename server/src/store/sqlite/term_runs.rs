//! The runs of the search's index in the file: how parcels come into them, how they are merged, and how a parcel leaves
//! them ([`term_runs`](crate::store::term_runs)).

use rusqlite::{Connection, OptionalExtension, Row, params};

use super::{Store, StoreError, pages::Budget, parcels::damaged};
use crate::{
    domain::search::FindableOrder,
    store::generations::is_current,
    store::term_runs::{
        Bounds, Entry, PARCELS_PER_RUN, PIECES_PER_READ, RUNS_PER_MERGE, entry, merge, pack, place,
        sorting, unpack, without,
    },
};

/// How many of the newest rows are left out of the runs: an order with such a row may still be on its way, and no parcel
/// is created in a row that the runs have passed.
const RECENT_ROWS: i64 = if cfg!(test) { 4 } else { 64 };
/// How many pieces of a run that was merged are deleted at a time.
const PIECES_PER_DELETE: i64 = 64;

/// The pieces of a run that may have entries between two bounds, in their order: they begin with the last one that
/// begins before.
pub(super) const PIECES_OF_RUN: &str = "SELECT rowid, entries FROM term_pieces \
     WHERE run = ?1 AND first < ?3 AND first >= coalesce( \
     (SELECT max(first) FROM term_pieces WHERE run = ?1 AND first <= ?2), x'') \
     ORDER BY first LIMIT ?4";
/// How many rows there are after one, up to another, if not more than so many.
pub(super) const COUNT: &str = concat!(
    "SELECT count(*) FROM (SELECT 1 FROM parcels WHERE id > ?1 AND id <= ?2 AND ",
    is_current!("tenant"),
    " LIMIT ?3)"
);

impl Store {
    /// Does a page of the work on the search's index; says whether there is more.
    pub async fn tend_search(&self) -> Result<bool, StoreError> {
        // Without the writer: most often there is nothing to do.
        if !self.read(has_work)? {
            return Ok(false);
        }
        self.page(|db, budget| {
            let mut is_more = add_run(db)?;
            while tend_runs(db)? {
                is_more = true;
                spend_page(budget);
                if budget.is_spent() {
                    break;
                }
            }
            Ok(is_more)
        })
        .await
    }
}

/// Some rows of a page: a step writes about so many.
const fn spend_page(budget: &mut Budget) {
    budget.spend(PIECES_PER_DELETE.unsigned_abs());
}

pub(super) fn read_order(row: &Row<'_>, column: usize) -> rusqlite::Result<FindableOrder> {
    serde_json::from_str(row.get_ref(column)?.as_str()?).map_err(|error| damaged(column, error))
}

/// Up to which row parcels are in the runs, and the highest row.
pub(super) fn sweep(db: &Connection) -> rusqlite::Result<(i64, i64)> {
    let sql = "SELECT next, coalesce((SELECT max(id) FROM parcels), 0) FROM term_sweep";
    db.prepare_cached(sql)?.query_row([], |row| Ok((row.get(0)?, row.get(1)?)))
}

/// Which rows are to come into a run; none when they are too few.
fn next_rows(db: &Connection) -> rusqlite::Result<Option<(i64, i64)>> {
    let (next, highest) = sweep(db)?;
    let rows = (next, highest - RECENT_ROWS);
    let is_enough = count(db, rows, PARCELS_PER_RUN)? >= PARCELS_PER_RUN;
    Ok(is_enough.then_some(rows))
}

pub(super) fn count(
    db: &Connection,
    (after, until): (i64, i64),
    most: i64,
) -> rusqlite::Result<i64> {
    db.prepare_cached(COUNT)?.query_row([after, until, most], |row| row.get(0))
}

fn has_work(db: &Connection) -> rusqlite::Result<bool> {
    if next_rows(db)?.is_some() {
        return Ok(true);
    }
    let sql = "SELECT EXISTS (SELECT 1 FROM term_runs WHERE NOT is_live)";
    db.prepare_cached(sql)?.query_row([], |row| row.get(0))
}

/// Adds a run of the next parcels; says whether it did.
fn add_run(db: &Connection) -> rusqlite::Result<bool> {
    let Some((next, until)) = next_rows(db)? else { return Ok(false) };
    let mut find = db.prepare_cached(concat!(
        "SELECT number, order_json, tenant, created_at, id FROM parcels WHERE id > ?1 AND id <= ?2 AND ",
        is_current!("tenant"),
        " ORDER BY id LIMIT ?3"
    ))?;
    let mut rows = find.query(params![next, until, PARCELS_PER_RUN])?;
    let (mut entries, mut last, mut parcels) = (Vec::new(), next, 0_i64);
    while let Some(row) = rows.next()? {
        (last, parcels) = (row.get(4)?, parcels + 1);
        match read_entries(row) {
            Ok(own) => entries.extend(own),
            Err(error) => {
                tracing::error!(parcel = last, %error, "a damaged parcel will not be found by a search");
            }
        }
    }
    entries.sort_unstable();
    if !entries.is_empty() {
        let run = insert_run(db, (0, next + 1, last), true)?;
        insert_pieces(db, run, &entries)?;
    }
    let next = if parcels < PARCELS_PER_RUN { until } else { last };
    db.prepare_cached("UPDATE term_sweep SET next = ?1")?.execute([next])?;
    Ok(true)
}

/// The entries of a parcel whose row has these columns: number, order, tenant, time of creation, id.
fn read_entries(row: &Row<'_>) -> rusqlite::Result<Vec<Entry>> {
    let number: String = row.get(0)?;
    let scope = sorting(row.get(2)?);
    let place = (row.get(3)?, row.get(4)?);
    let terms = read_order(row, 1)?.findable(&number).terms();
    Ok(terms.iter().map(|term| entry(&scope, term, place)).collect())
}

fn insert_run(
    db: &Connection,
    (level, first, last): (i64, i64, i64),
    is_live: bool,
) -> rusqlite::Result<i64> {
    let sql = "INSERT INTO term_runs (level, first, last, is_live) VALUES (?1, ?2, ?3, ?4)";
    db.prepare_cached(sql)?.insert(params![level, first, last, is_live])
}

fn insert_pieces(db: &Connection, run: i64, entries: &[Entry]) -> rusqlite::Result<()> {
    let mut insert =
        db.prepare_cached("INSERT INTO term_pieces (run, first, entries) VALUES (?1, ?2, ?3)")?;
    for piece in pack(entries) {
        insert.execute(params![run, piece.first, piece.entries])?;
    }
    Ok(())
}

/// One step towards fewer runs; says whether there was one to do.
fn tend_runs(db: &Connection) -> rusqlite::Result<bool> {
    let find = |sql| db.prepare_cached(sql)?.query_row([], |row| row.get(0)).optional();
    if let Some(merged) = find("SELECT id FROM term_runs WHERE NOT is_live AND target > 0 LIMIT 1")?
    {
        delete_some(db, merged)?;
        return Ok(true);
    }
    if let Some(target) = find("SELECT id FROM term_runs WHERE NOT is_live")? {
        merge_some(db, target)?;
        return Ok(true);
    }
    begin_merge(db)
}

/// Begins to merge the runs of the lowest level that has enough of them.
fn begin_merge(db: &Connection) -> rusqlite::Result<bool> {
    let full = "SELECT level, min(first), max(last) FROM term_runs WHERE is_live \
         GROUP BY level HAVING count(*) >= ?1 ORDER BY level LIMIT 1";
    let full = db.prepare_cached(full)?.query_row([RUNS_PER_MERGE], |row| {
        Ok::<(i64, i64, i64), _>((row.get(0)?, row.get(1)?, row.get(2)?))
    });
    let Some((level, first, last)) = full.optional()? else { return Ok(false) };
    let target = insert_run(db, (level + 1, first, last), false)?;
    let sql = "UPDATE term_runs SET target = ?1 WHERE is_live AND level = ?2";
    db.prepare_cached(sql)?.execute([target, level])?;
    Ok(true)
}

/// Merges what comes next, or ends the merge. It goes on after the last entry that the new run has: what it had after
/// that has left the other runs too.
fn merge_some(db: &Connection, target: i64) -> rusqlite::Result<()> {
    let last = "SELECT entries FROM term_pieces WHERE run = ?1 ORDER BY first DESC LIMIT 1";
    let last = db.prepare_cached(last)?.query_row([target], |row| row.get::<_, Vec<u8>>(0));
    let after = last.optional()?.and_then(|piece| unpack(&piece).pop()).unwrap_or_default();
    let mut find = db.prepare_cached("SELECT id FROM term_runs WHERE target = ?1")?;
    let sources = find.query_map([target], |row| row.get(0))?;
    let sources = sources.collect::<rusqlite::Result<Vec<i64>>>()?;
    let mut runs = Vec::with_capacity(sources.len());
    for run in sources {
        let pieces = pieces_of(db, run, (&after, &[0xff]), PIECES_PER_READ)?;
        runs.push(pieces.into_iter().map(|(_, entries)| entries).collect());
    }
    let next = merge(&after, &runs);
    if !next.is_empty() {
        return insert_pieces(db, target, &next);
    }
    db.prepare_cached("UPDATE term_runs SET is_live = true WHERE id = ?1")?.execute([target])?;
    let sql = "UPDATE term_runs SET is_live = false WHERE target = ?1";
    db.prepare_cached(sql)?.execute([target]).map(drop)
}

/// Deletes some pieces of a run that was merged, and the run when it has no more.
fn delete_some(db: &Connection, run: i64) -> rusqlite::Result<()> {
    let sql = "DELETE FROM term_pieces WHERE rowid IN \
         (SELECT rowid FROM term_pieces WHERE run = ?1 LIMIT ?2)";
    let deleted = db.prepare_cached(sql)?.execute([run, PIECES_PER_DELETE])?;
    if i64::try_from(deleted).is_ok_and(|deleted| deleted < PIECES_PER_DELETE) {
        db.prepare_cached("DELETE FROM term_runs WHERE id = ?1")?.execute([run])?;
    }
    Ok(())
}

/// Some pieces of a run that may have entries between two bounds, each with its row.
fn pieces_of(
    db: &Connection,
    run: i64,
    (from, to): (&[u8], &[u8]),
    most: usize,
) -> rusqlite::Result<Vec<(i64, Vec<u8>)>> {
    let mut find = db.prepare_cached(PIECES_OF_RUN)?;
    let most = i64::try_from(most).unwrap_or(i64::MAX);
    let rows =
        find.query_map(params![run, from, to, most], |row| Ok((row.get(0)?, row.get(1)?)))?;
    rows.collect()
}

/// Takes a parcel out of the runs, before it is deleted; answers how many pieces were written. The entries of a
/// damaged order are looked for among all of its tenant's.
pub(super) fn remove(db: &Connection, parcel: i64) -> rusqlite::Result<u64> {
    let mut find =
        db.prepare_cached("SELECT id FROM term_runs WHERE first <= ?1 AND last >= ?1")?;
    let runs = find.query_map([parcel], |row| row.get(0))?;
    let runs = runs.collect::<rusqlite::Result<Vec<i64>>>()?;
    if runs.is_empty() {
        return Ok(0);
    }
    let sql = "SELECT number, order_json, tenant, created_at, id FROM parcels WHERE id = ?1";
    let found = db.prepare_cached(sql)?.query_row([parcel], |row| {
        let whole = Bounds::new(&sorting(row.get(2)?), "");
        Ok(read_entries(row).map_or_else(
            |_damaged| vec![(whole.from, whole.to)],
            // The entry itself, and nothing after it.
            |entries| {
                entries.into_iter().map(|own| (own.clone(), [&own[..], &[0]].concat())).collect()
            },
        ))
    });
    let mut written = 0;
    for (from, to) in found.optional()?.unwrap_or_default() {
        for run in &runs {
            for piece in pieces_of(db, *run, (&from, &to), usize::MAX)? {
                written += rewrite(db, *run, piece, parcel)?;
            }
        }
    }
    Ok(written)
}

/// Writes a piece again without a parcel, if it has it.
fn rewrite(
    db: &Connection,
    run: i64,
    (row, piece): (i64, Vec<u8>),
    parcel: i64,
) -> rusqlite::Result<u64> {
    let is_gone = |entry: &Entry| place(entry).is_some_and(|place| place.1 == parcel);
    let Some(rest) = without(&piece, is_gone) else { return Ok(0) };
    db.prepare_cached("DELETE FROM term_pieces WHERE rowid = ?1")?.execute([row])?;
    let mut insert =
        db.prepare_cached("INSERT INTO term_pieces (run, first, entries) VALUES (?1, ?2, ?3)")?;
    for piece in rest {
        insert.execute(params![run, piece.first, piece.entries])?;
    }
    Ok(1)
}
