//! The runs of the search index in the database: adding parcels, merging runs, and removing parcels
//! ([`term_runs`](super::term_runs)).
//!
//! On PostgreSQL any server may do a page of this work. While it does, it locks the row of `term_sweep`, and so does a
//! server that deletes parcels. So a parcel that was removed from one run is never copied back from another run. A file
//! has one writer.

use std::time::Duration;

use parcelo_domain::search::SearchableOrder;
use parcelo_system::clock::{has_elapsed, monotonic_now};

use super::{
    Store, StoreError,
    columns::{is_among, join_with_commas},
    generations::is_current,
    parcels::{self, by_ids, read_order},
    sql::{Row, Sql, SqlResult, params},
    term_runs::{
        Bounds, Entry, PARCELS_PER_RUN, PIECES_PER_READ, Piece, RUNS_PER_MERGE, entry, merge, pack,
        position, remove_entries, sortable_bytes, unpack,
    },
};

/// Number of a file's newest rows that are not added to the runs yet. An order may still be writing one of them, and no
/// parcel is created in a row that the runs have passed.
const RECENT_ROWS: i64 = if cfg!(test) { 4 } else { 64 };
/// Maximum number of a merged run's pieces that are deleted at a time.
const PIECES_PER_DELETE: u64 = 64;
/// Time after which a page of a file starts no further step, because orders wait for it.
const PAGE_TIME: Duration = Duration::from_millis(2);
/// Maximum number of a page's steps on PostgreSQL, where no order waits for it. A run needs about five steps to be
/// merged and deleted, so that a page leaves less work than it found.
const STEPS_PER_PAGE: usize = 8;

/// Selects the pieces of some runs that may have entries from `$1` on and before `$2`. Each run begins with the last
/// piece that begins before `$1`. `SQLite` reads at most `$3` in all; PostgreSQL, at most `$3` of each run, in order.
macro_rules! pieces {
    ($runs:literal) => {
        concat!(
            "SELECT p.run, p.first, p.entries FROM (SELECT id FROM term_runs WHERE ",
            $runs,
            ") AS r CROSS JOIN {LATERAL (SELECT run, first, entries FROM term_pieces|term_pieces AS p} \
             WHERE run = r.id AND first < $2 AND first >= coalesce((SELECT q.first FROM term_pieces AS q \
             WHERE q.run = r.id AND q.first <= $1 ORDER BY q.first DESC LIMIT 1), {''|x''}) \
             {ORDER BY first LIMIT $3) AS p|LIMIT $3}"
        )
    };
}
pub(super) use pieces;

/// Selects such pieces from one run (`$4`), in order.
pub(super) const PIECES_OF_RUN: &str = "SELECT entries FROM term_pieces WHERE run = $4 AND first < $2 \
     AND first >= coalesce((SELECT q.first FROM term_pieces AS q \
     WHERE q.run = $4 AND q.first <= $1 ORDER BY q.first DESC LIMIT 1), {''|x''}) \
     ORDER BY first LIMIT $3";

/// Selects the parcels after a row (`$1`) and up to another (`$2`), but at most `$3`.
pub(super) const PARCELS: &str = concat!(
    "SELECT id FROM parcels WHERE id > $1 AND id <= $2 AND ",
    is_current!("tenant"),
    " ORDER BY id LIMIT $3"
);

/// Selects the columns that [`read_entries`] reads.
macro_rules! findable {
    ($which:expr) => {
        concat!(
            "SELECT parcels.id, tenant, number, created_at, order_json FROM (SELECT * FROM parcels WHERE ",
            $which,
            ") AS parcels {JOIN orders ON orders.parcel = parcels.id|} ",
            by_ids!()
        )
    };
}

impl Store {
    /// Does a page of maintenance on the search index: adds parcels, merges runs. Returns `true` if more is left.
    pub async fn maintain_search_index(&self) -> Result<bool, StoreError> {
        // First checked without the writer or a lock, because usually there is nothing to do.
        if !self.query(async |db| has_work(db).await).await? {
            return Ok(false);
        }
        self.page(async |db| maintain_page(db).await).await
    }
}

async fn has_work(db: Sql<'_>) -> SqlResult<bool> {
    let is_enough = if db.is_postgres() {
        let sql = "SELECT EXISTS (SELECT FROM term_sweep WHERE next < until) OR \
             (SELECT count(*) FROM (SELECT FROM term_queue LIMIT $1::bigint) AS q) >= $1";
        db.value(sql, params![PARCELS_PER_RUN]).await?
    } else {
        let rows = db.require(index_progress(db, "").await?)?;
        next_rows(db, rows).await?.is_some()
    };
    Ok(is_enough || unfinished_run(db).await?.is_some() || full_level(db).await?.is_some())
}

/// Does a page of maintenance, unless another server is doing one. Returns `true` if there may be more.
async fn maintain_page(db: Sql<'_>) -> SqlResult<bool> {
    let Some(rows) = index_progress(db, "FOR UPDATE SKIP LOCKED").await? else { return Ok(false) };
    let began = monotonic_now();
    let mut is_more = add_parcels(db, rows).await?;
    let mut steps = 0;
    while maintain_runs(db).await? {
        (is_more, steps) = (true, steps + 1);
        let is_over =
            if db.is_postgres() { steps == STEPS_PER_PAGE } else { has_elapsed(began, PAGE_TIME) };
        if is_over {
            break;
        }
    }
    Ok(is_more)
}

/// Returns the row up to which parcels are in the index, and the last row: in a file its highest, on PostgreSQL that of
/// the parcels from before the index existed. There, a lock (`FOR UPDATE`) lasts until the end of the transaction: no
/// parcel is added to a run or moved between runs. Returns `None` if it skips another server's lock.
pub(super) async fn index_progress(db: Sql<'_>, lock: &str) -> SqlResult<Option<(i64, i64)>> {
    let sql = format!(
        "SELECT next, {{until|coalesce((SELECT max(id) FROM parcels), 0)}} FROM term_sweep {{{lock}|}}"
    );
    db.first(&sql, &[], |row| Ok((row.get(0)?, row.get(1)?))).await
}

/// Returns at most `max` parcels after a row and up to another row.
pub(super) async fn parcels_in(
    db: Sql<'_>,
    (after, until): (i64, i64),
    max: usize,
) -> SqlResult<Vec<i64>> {
    db.query_map(PARCELS, params![after, until, max], |row| row.get(0)).await
}

/// Returns the rows of a file that go into the next runs, as (after, up to), or `None` if there are too few.
async fn next_rows(db: Sql<'_>, (next, highest): (i64, i64)) -> SqlResult<Option<(i64, i64)>> {
    let rows = (next, highest - RECENT_ROWS);
    let is_enough = is_whole_run(&parcels_in(db, rows, PARCELS_PER_RUN).await?);
    Ok(is_enough.then_some(rows))
}

/// Adds runs of the next parcels. Returns `true` if there were any.
async fn add_parcels(db: Sql<'_>, rows: (i64, i64)) -> SqlResult<bool> {
    if !db.is_postgres() {
        let Some(rows) = next_rows(db, rows).await? else { return Ok(false) };
        return add_rows(db, rows).await.map(|()| true);
    }
    // First the parcels from before the index existed, then the parcels that wait for it.
    let is_old = rows.0 < rows.1;
    if is_old {
        add_rows(db, rows).await?;
    }
    let new = "SELECT parcel FROM term_queue ORDER BY parcel LIMIT $1";
    let ids: Vec<i64> = db.query_map(new, params![PARCELS_PER_RUN], |row| row.get(0)).await?;
    let is_new = is_whole_run(&ids);
    if is_new {
        add_run(db, &ids).await?;
        let sql = concat!("DELETE FROM term_queue WHERE parcel ", is_among!("$1"));
        db.execute(sql, params![&join_with_commas(&ids)]).await?;
    }
    Ok(is_new || is_old)
}

/// Adds a run of the first parcels within a range of rows, start excluded and end included.
async fn add_rows(db: Sql<'_>, rows: (i64, i64)) -> SqlResult<()> {
    let ids = parcels_in(db, rows, PARCELS_PER_RUN).await?;
    add_run(db, &ids).await?;
    let last = ids.last().copied().filter(|_| is_whole_run(&ids));
    let sql = "UPDATE term_sweep SET next = $1";
    db.execute(sql, params![last.unwrap_or(rows.1)]).await.map(drop)
}

fn is_whole_run(ids: &[i64]) -> bool {
    ids.len() == PARCELS_PER_RUN
}

async fn add_run(db: Sql<'_>, ids: &[i64]) -> SqlResult<()> {
    let (Some(first), Some(last)) = (ids.first(), ids.last()) else { return Ok(()) };
    let sql = findable!(is_current!("tenant"));
    let mut entries = Vec::new();
    for read in parcels::read_each(db, sql, ids, read_entries).await? {
        match read {
            Ok(of_parcel) => entries.extend(of_parcel),
            Err(error) if error.is_row_error() => {
                tracing::error!(%error, "a damaged parcel will not be found by a search");
            }
            Err(error) => return Err(error),
        }
    }
    entries.sort_unstable();
    if entries.is_empty() {
        return Ok(());
    }
    let run = insert_run(db, (0, *first, *last), true).await?;
    insert_pieces(db, run, pack(&entries)).await
}

/// Reads the entries of a parcel.
fn read_entries(row: &Row<'_>) -> SqlResult<Vec<Entry>> {
    let tenant = sortable_bytes(row.get(1)?);
    let position = (row.get(3)?, row.get(0)?);
    let order: SearchableOrder = read_order(row, 4)?;
    let terms = order.searchable_fields(&row.get::<String>(2)?).terms();
    Ok(terms.iter().map(|term| entry(&tenant, term, position)).collect())
}

async fn insert_run(
    db: Sql<'_>,
    (level, first, last): (i64, i64, i64),
    is_live: bool,
) -> SqlResult<i64> {
    let sql =
        "INSERT INTO term_runs (level, first, last, is_live) VALUES ($1, $2, $3, $4) RETURNING id";
    db.value(sql, params![level, first, last, is_live]).await
}

async fn insert_pieces(db: Sql<'_>, run: i64, pieces: Vec<Piece>) -> SqlResult<()> {
    let row = |piece: Piece| params![run, &piece.first, &piece.entries].to_vec();
    let rows: Vec<_> = pieces.into_iter().map(row).collect();
    let sql = "INSERT INTO term_pieces (run, first, entries) \
         {SELECT * FROM unnest($1::bigint[], $2::bytea[], $3::bytea[])|VALUES ($1, $2, $3)}";
    db.execute_rows(sql, &rows, &[]).await.map(drop)
}

/// Returns a run that is not live, with the run into which it was merged, if any. Merged runs come first.
async fn unfinished_run(db: Sql<'_>) -> SqlResult<Option<(i64, Option<i64>)>> {
    let sql = "SELECT id, target FROM term_runs WHERE NOT is_live ORDER BY target IS NULL LIMIT 1";
    db.first(sql, &[], |row| Ok((row.get(0)?, row.get(1)?))).await
}

/// Does one step of merging runs: deletes a part of a merged run, merges a part of its sources, or begins a merge.
/// Returns `true` if there was a step to do.
async fn maintain_runs(db: Sql<'_>) -> SqlResult<bool> {
    match unfinished_run(db).await? {
        Some((run, Some(_target))) => delete_some(db, run).await?,
        Some((run, None)) => merge_some(db, run).await?,
        None => return begin_merge(db).await,
    }
    Ok(true)
}

/// Returns the lowest level that has enough runs to be merged, with the first and the last row of these runs.
async fn full_level(db: Sql<'_>) -> SqlResult<Option<(i64, i64, i64)>> {
    let sql = "SELECT level, min(first), max(last) FROM term_runs WHERE is_live \
         GROUP BY level HAVING count(*) >= $1 ORDER BY level LIMIT 1";
    db.first(sql, params![RUNS_PER_MERGE], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?))).await
}

/// Begins to merge the runs of the lowest level that has enough of them. Returns `true` if there is one.
async fn begin_merge(db: Sql<'_>) -> SqlResult<bool> {
    let Some((level, first, last)) = full_level(db).await? else { return Ok(false) };
    let target = insert_run(db, (level + 1, first, last), false).await?;
    let sql = "UPDATE term_runs SET target = $1 WHERE is_live AND level = $2";
    db.execute(sql, params![target, level]).await?;
    Ok(true)
}

/// Merges the next entries, or ends the merge. It continues after the last entry of the new run. If later entries were
/// removed from the new run, they were removed from the other runs too.
async fn merge_some(db: Sql<'_>, target: i64) -> SqlResult<()> {
    let last = "SELECT entries FROM term_pieces WHERE run = $1 ORDER BY first DESC LIMIT 1";
    let last = db.first(last, params![target], |row| row.get::<Vec<u8>>(0)).await?;
    let after: Entry = last.and_then(|piece| unpack(&piece).pop()).unwrap_or_default();
    let sources = "SELECT id FROM term_runs WHERE target = $1";
    let sources: Vec<i64> = db.query_map(sources, params![target], |row| row.get(0)).await?;
    let mut runs = Vec::with_capacity(sources.len());
    for run in sources {
        let params = params![&after, [0xff_u8], PIECES_PER_READ, run];
        runs.push(db.query_map(PIECES_OF_RUN, params, |row| row.get(0)).await?);
    }
    let next = merge(&after, &runs);
    if !next.is_empty() {
        return insert_pieces(db, target, pack(&next)).await;
    }
    let sql = "UPDATE term_runs SET is_live = (id = $1) WHERE id = $1 OR target = $1";
    db.execute(sql, params![target]).await.map(drop)
}

/// Deletes some pieces of a merged run, and then the run itself.
async fn delete_some(db: Sql<'_>, run: i64) -> SqlResult<()> {
    let sql = "DELETE FROM term_pieces WHERE run = $1 AND first {= ANY (ARRAY (|IN (}\
         SELECT first FROM term_pieces WHERE run = $1 ORDER BY first LIMIT $2){)|}";
    let deleted = db.execute(sql, params![run, PIECES_PER_DELETE]).await?;
    if deleted < PIECES_PER_DELETE {
        db.execute("DELETE FROM term_runs WHERE id = $1", params![run]).await?;
    }
    Ok(())
}

/// Removes parcels from the runs before they are deleted, and returns the number of pieces written. The runs are
/// locked. For a damaged order, all entries of its tenant are searched.
pub(super) async fn remove(db: Sql<'_>, parcels: &[i64]) -> SqlResult<u64> {
    let sql = findable!(
        "EXISTS (SELECT 1 FROM term_runs AS r WHERE parcels.id BETWEEN r.first AND r.last)"
    );
    let bounds = |row: &Row<'_>| {
        let bounds: Vec<(Entry, Entry)> = match read_entries(row) {
            // Bounds that contain the entry itself and nothing after it.
            Ok(entries) => entries
                .into_iter()
                .map(|entry| (entry.clone(), [&entry[..], &[0]].concat()))
                .collect(),
            Err(error) if error.is_row_error() => {
                let whole = Bounds::new(&sortable_bytes(row.get(1)?), "");
                vec![(whole.from, whole.to)]
            }
            Err(error) => return Err(error),
        };
        Ok((row.get(0)?, bounds))
    };
    let mut written = 0;
    for parcel in parcels::read_each(db, sql, parcels, bounds).await? {
        let (id, bounds) = parcel?;
        for (from, to) in bounds {
            written += remove_within(db, id, (&from, &to)).await?;
        }
    }
    Ok(written)
}

/// Rewrites the pieces that have entries of a parcel between two bounds, without those entries.
async fn remove_within(db: Sql<'_>, parcel: i64, (from, to): (&Entry, &Entry)) -> SqlResult<u64> {
    let sql = pieces!("first <= $4 AND last >= $4");
    let params = params![from, to, i64::MAX, parcel];
    let found = db.query_map(sql, params, |row| {
        Ok((row.get::<i64>(0)?, row.get::<Vec<u8>>(1)?, row.get::<Vec<u8>>(2)?))
    });
    let is_gone = |entry: &Entry| position(entry).is_some_and(|position| position.1 == parcel);
    let mut written = 0;
    for (run, first, entries) in found.await? {
        let Some(rest) = remove_entries(&entries, is_gone) else { continue };
        let sql = "DELETE FROM term_pieces WHERE run = $1 AND first = $2";
        db.execute(sql, params![run, &first]).await?;
        insert_pieces(db, run, rest).await?;
        written += 1;
    }
    Ok(written)
}
