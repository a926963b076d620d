//! The runs of the search's index in the database: how parcels come into them, how they are merged, and how a parcel leaves
//! them ([`term_runs`](crate::store::term_runs)).
//!
//! Any server may do a page of that work. Who does has locked the row of `term_sweep`, and so has who deletes parcels: a
//! run never gets a parcel back that was taken out of another one meanwhile.

use tokio_postgres::{Row, types::ToSql};

use super::{
    Store,
    connection::{Connection, get},
    error::DbResult,
    generations::IS_CURRENT,
    parcels::{self, read_order},
};
use crate::{
    domain::search::FindableOrder,
    store::{
        StoreError,
        term_runs::{
            Bounds, Entry, PARCELS_PER_RUN, PIECES_PER_READ, RUNS_PER_MERGE, entry, merge, pack,
            place, sorting, unpack, without,
        },
    },
};

/// How many pieces of a run that was merged are deleted at a time.
const PIECES_PER_DELETE: i64 = 500;
/// How many steps of a merge a page does.
const STEPS_PER_PAGE: usize = 8;

/// The pieces of some runs, which follow it, that may have entries from `$1` on: those of a run begin with the last one
/// that begins before.
macro_rules! pieces {
    ($runs:literal) => {
        concat!(
            "SELECT p.run, p.first, p.entries FROM ",
            $runs,
            " AS r CROSS JOIN LATERAL (SELECT run, first, entries FROM term_pieces \
             WHERE run = r.id AND first < $2 AND first >= coalesce((SELECT q.first FROM term_pieces AS q \
             WHERE q.run = r.id AND q.first <= $1 ORDER BY q.first DESC LIMIT 1), '') \
             ORDER BY first LIMIT $3) AS p"
        )
    };
}
pub(super) use pieces;

impl Store {
    pub(crate) async fn tend_search(&self) -> Result<bool, StoreError> {
        // Without a lock: most often there is nothing to do.
        if !self.read(async |db| has_work(db).await).await? {
            return Ok(false);
        }
        self.page(async |db| tend(db).await).await
    }
}

async fn has_work(db: &Connection) -> DbResult<bool> {
    let sql = "SELECT EXISTS (SELECT FROM term_sweep WHERE next < until) \
         OR EXISTS (SELECT FROM term_runs WHERE NOT is_live) \
         OR (SELECT count(*) FROM (SELECT FROM term_queue LIMIT $1::bigint) AS q) >= $1";
    db.value(sql, &[&PARCELS_PER_RUN]).await
}

/// Does a page of the work; says whether there may be more. Another server that does the same is not waited for.
async fn tend(db: &Connection) -> DbResult<bool> {
    let sweep = "SELECT next, until FROM term_sweep FOR UPDATE SKIP LOCKED";
    let Some(sweep) = db.first(sweep, &[]).await? else { return Ok(false) };
    let (next, until) = (get(&sweep, 0)?, get(&sweep, 1)?);
    let mut is_more = add_new(db).await?;
    if next < until {
        add_old(db, next, until).await?;
        is_more = true;
    }
    for _ in 0..STEPS_PER_PAGE {
        if !tend_runs(db).await? {
            return Ok(is_more);
        }
        is_more = true;
    }
    Ok(is_more)
}

/// Locks the runs until the end of the transaction: no parcel comes into one, nor from one into another.
pub(super) async fn lock(db: &Connection) -> DbResult<()> {
    db.run("SELECT FROM term_sweep FOR UPDATE").await
}

/// Adds a run of parcels that wait for it, if they are enough.
async fn add_new(db: &Connection) -> DbResult<bool> {
    let sql = "SELECT parcel FROM term_queue ORDER BY parcel LIMIT $1";
    let ids: Vec<i64> = db.each(sql, &[&PARCELS_PER_RUN], |row| get(row, 0)).await?;
    if !is_whole_run(&ids) {
        return Ok(false);
    }
    add_run(db, &ids).await?;
    db.execute("DELETE FROM term_queue WHERE parcel = ANY($1)", &[&ids]).await?;
    Ok(true)
}

/// Adds a run of the next parcels from before there were any.
async fn add_old(db: &Connection, next: i64, until: i64) -> DbResult<()> {
    let sql = "SELECT id FROM parcels WHERE id > $1 AND id <= $2 ORDER BY id LIMIT $3";
    let given: [&(dyn ToSql + Sync); 3] = [&next, &until, &PARCELS_PER_RUN];
    let ids: Vec<i64> = db.each(sql, &given, |row| get(row, 0)).await?;
    add_run(db, &ids).await?;
    let last = ids.last().copied().filter(|_| is_whole_run(&ids));
    db.execute("UPDATE term_sweep SET next = $1", &[&last.unwrap_or(until)]).await.map(drop)
}

fn is_whole_run(ids: &[i64]) -> bool {
    i64::try_from(ids.len()) == Ok(PARCELS_PER_RUN)
}

async fn add_run(db: &Connection, ids: &[i64]) -> DbResult<()> {
    let (Some(first), Some(last)) = (ids.first(), ids.last()) else { return Ok(()) };
    let sql = format!(
        "SELECT id, tenant, number, created_at, order_json FROM parcels \
         JOIN orders ON parcel = id WHERE id = ANY($1) AND {IS_CURRENT}"
    );
    let mut entries = Vec::new();
    for row in db.all(&sql, &[&ids]).await? {
        match read_entries(&row).map_err(|failure| parcels::named(&row, failure)) {
            Ok(own) => entries.extend(own),
            Err(failure) if failure.is_row() => {
                tracing::error!(error = %failure, "a damaged parcel will not be found by a search");
            }
            Err(failure) => return Err(failure),
        }
    }
    entries.sort_unstable();
    if entries.is_empty() {
        return Ok(());
    }
    let run = insert_run(db, (0, *first, *last), true).await?;
    insert_pieces(db, run, &entries).await
}

/// The entries of a parcel whose row has these columns: id, tenant, number, time of creation, order.
fn read_entries(row: &Row) -> DbResult<Vec<Entry>> {
    let tenant = sorting(get(row, 1)?);
    let place = (get(row, 3)?, get(row, 0)?);
    let order: FindableOrder = read_order(row, 4)?;
    let terms = order.findable(get(row, 2)?).terms();
    Ok(terms.iter().map(|term| entry(&tenant, term, place)).collect())
}

async fn insert_run(
    db: &Connection,
    (level, first, last): (i64, i64, i64),
    is_live: bool,
) -> DbResult<i64> {
    let sql =
        "INSERT INTO term_runs (level, first, last, is_live) VALUES ($1, $2, $3, $4) RETURNING id";
    db.value(sql, &[&level, &first, &last, &is_live]).await
}

async fn insert_pieces(db: &Connection, run: i64, entries: &[Entry]) -> DbResult<()> {
    let pieces = pack(entries);
    let firsts: Vec<&[u8]> = pieces.iter().map(|piece| &piece.first[..]).collect();
    let entries: Vec<&[u8]> = pieces.iter().map(|piece| &piece.entries[..]).collect();
    let sql = "INSERT INTO term_pieces (run, first, entries) \
         SELECT $1, * FROM unnest($2::bytea[], $3::bytea[])";
    db.execute(sql, &[&run, &firsts, &entries]).await.map(drop)
}

/// One step towards fewer runs; says whether there was one to do.
async fn tend_runs(db: &Connection) -> DbResult<bool> {
    let sql = "SELECT id, target FROM term_runs WHERE NOT is_live ORDER BY target IS NULL LIMIT 1";
    let Some(row) = db.first(sql, &[]).await? else { return begin_merge(db).await };
    let run = get(&row, 0)?;
    match get::<Option<i64>>(&row, 1)? {
        Some(_) => delete_some(db, run).await?,
        None => merge_some(db, run).await?,
    }
    Ok(true)
}

/// Begins to merge the runs of the lowest level that has enough of them.
async fn begin_merge(db: &Connection) -> DbResult<bool> {
    let full = "SELECT level, min(first), max(last) FROM term_runs WHERE is_live \
         GROUP BY level HAVING count(*) >= $1 ORDER BY level LIMIT 1";
    let Some(full) = db.first(full, &[&RUNS_PER_MERGE]).await? else { return Ok(false) };
    let level: i64 = get(&full, 0)?;
    let target = insert_run(db, (level + 1, get(&full, 1)?, get(&full, 2)?), false).await?;
    let sql = "UPDATE term_runs SET target = $1 WHERE is_live AND level = $2";
    db.execute(sql, &[&target, &level]).await?;
    Ok(true)
}

/// Merges what comes next, or ends the merge. It goes on after the last entry that the new run has: what it had after
/// that has left the other runs too.
async fn merge_some(db: &Connection, target: i64) -> DbResult<()> {
    let last = "SELECT entries FROM term_pieces WHERE run = $1 ORDER BY first DESC LIMIT 1";
    let last = db.first(last, &[&target]).await?;
    let last: Option<&[u8]> = last.as_ref().map(|row| get(row, 0)).transpose()?;
    let after: Entry = last.and_then(|piece| unpack(piece).pop()).unwrap_or_default();
    let sql = pieces!("(SELECT id FROM term_runs WHERE target = $4)");
    let most = i64::try_from(PIECES_PER_READ).unwrap_or(i64::MAX);
    let given: [&(dyn ToSql + Sync); 4] = [&after, &&[0xff_u8][..], &most, &target];
    let mut runs: Vec<(i64, Vec<Vec<u8>>)> = Vec::new();
    for row in db.all(sql, &given).await? {
        let (run, piece) = (get(&row, 0)?, get(&row, 2)?);
        match runs.iter_mut().find(|(one, _)| *one == run) {
            Some((_, pieces)) => pieces.push(piece),
            None => runs.push((run, vec![piece])),
        }
    }
    let runs: Vec<_> = runs.into_iter().map(|(_, pieces)| pieces).collect();
    let next = merge(&after, &runs);
    if !next.is_empty() {
        return insert_pieces(db, target, &next).await;
    }
    let sql = "UPDATE term_runs SET is_live = (id = $1) WHERE id = $1 OR target = $1";
    db.execute(sql, &[&target]).await.map(drop)
}

/// Deletes some pieces of a run that was merged, and the run when it has no more.
async fn delete_some(db: &Connection, run: i64) -> DbResult<()> {
    let sql = "DELETE FROM term_pieces WHERE run = $1 AND first = ANY (ARRAY ( \
         SELECT first FROM term_pieces WHERE run = $1 ORDER BY first LIMIT $2))";
    let deleted = db.execute(sql, &[&run, &PIECES_PER_DELETE]).await?;
    if deleted < PIECES_PER_DELETE.unsigned_abs() {
        db.execute("DELETE FROM term_runs WHERE id = $1", &[&run]).await?;
    }
    Ok(())
}

/// Takes parcels out of the runs, before they are deleted. The runs are locked. The entries of a damaged order are
/// looked for among all of its tenant's.
pub(super) async fn remove(db: &Connection, parcels: &[i64]) -> DbResult<()> {
    let sql = "SELECT id, tenant, number, created_at, order_json FROM parcels \
         JOIN orders ON parcel = id WHERE id = ANY($1)";
    for row in db.all(sql, &[&parcels]).await? {
        let id: i64 = get(&row, 0)?;
        let bounds = match read_entries(&row) {
            // The entry itself, and nothing after it.
            Ok(entries) => {
                let after = |own: &Entry| [&own[..], &[0]].concat();
                entries
                    .into_iter()
                    .map(|own| (after(&own), own))
                    .map(|(to, from)| (from, to))
                    .collect()
            }
            Err(failure) if failure.is_row() => {
                let whole = Bounds::new(&sorting(get(&row, 1)?), "");
                vec![(whole.from, whole.to)]
            }
            Err(failure) => return Err(failure),
        };
        for (from, to) in bounds {
            remove_within(db, id, (&from, &to)).await?;
        }
    }
    Ok(())
}

/// Writes the pieces that have entries of a parcel between two bounds again, without them.
async fn remove_within(db: &Connection, parcel: i64, (from, to): (&[u8], &[u8])) -> DbResult<()> {
    let sql = pieces!("(SELECT id FROM term_runs WHERE first <= $4 AND last >= $4)");
    let given: [&(dyn ToSql + Sync); 4] = [&from, &to, &i64::MAX, &parcel];
    let is_gone = |entry: &Entry| place(entry).is_some_and(|place| place.1 == parcel);
    for row in db.all(sql, &given).await? {
        let Some(rest) = without(get(&row, 2)?, is_gone) else { continue };
        let (run, first): (i64, &[u8]) = (get(&row, 0)?, get(&row, 1)?);
        let sql = "DELETE FROM term_pieces WHERE run = $1 AND first = $2";
        db.execute(sql, &[&run, &first]).await?;
        for piece in rest {
            let sql = "INSERT INTO term_pieces (run, first, entries) VALUES ($1, $2, $3)";
            db.execute(sql, &[&run, &piece.first, &piece.entries]).await?;
        }
    }
    Ok(())
}
