//! A search in the database: in the runs of its index ([`super::term_runs`]), and among the parcels that are in none yet.

use std::collections::BTreeMap;

use parcelo::rules::ListQuery;
use tokio_postgres::{Row, types::ToSql};

use super::{
    Store,
    connection::{Connection, get},
    error::DbResult,
    generations::CURRENT,
    lists,
    parcels::{self, read_order, read_state},
    term_runs::pieces,
};
use crate::{
    domain::{
        ParcelListRow, Tenant,
        search::{Search, Word},
    },
    store::{
        StoreError,
        search::{
            Findings, Loaded, MAX_LOADED, MAX_TAIL, MAX_TERMS, Narrowing, Place, SearchPage,
            bounds, has_filters, to_load,
        },
        term_runs::{Bounds, sorting},
    },
};

/// The parcels of air waybills that begin so, and that end so.
const AWB_BEGINS: &str = "SELECT p.created_at, p.id FROM manifests AS m \
     JOIN manifest_parcels AS mp ON mp.manifest = m.id JOIN parcels AS p ON p.id = mp.parcel \
     WHERE m.tenant = $1 AND m.awb >= $2 AND m.awb < $3 LIMIT $4";
const AWB_ENDS: &str = "SELECT p.created_at, p.id FROM manifests AS m \
     JOIN manifest_parcels AS mp ON mp.manifest = m.id JOIN parcels AS p ON p.id = mp.parcel \
     WHERE m.tenant = $1 AND right(m.awb, 4) = $2 \
     AND right(replace(m.awb, '-', ''), length($3)) = $3 LIMIT $4";

/// Parcels of a search, loaded.
type Loading = Vec<(Place, Loaded)>;

impl Store {
    pub(crate) async fn search(
        &self,
        tenant: Tenant,
        query: ListQuery,
        search: Search,
    ) -> Result<SearchPage, StoreError> {
        let (found, total, is_complete) = self
            .scan(Some(tenant), async move |db| {
                // All of one moment.
                db.run("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY").await?;
                let found = find(db, (tenant, &query), &search).await?;
                db.run("COMMIT").await?;
                Ok(found)
            })
            .await?;
        let parcels = self.readable(found, "a parcel is left out of a search");
        Ok(SearchPage { parcels, total, is_complete })
    }
}

async fn find(
    db: &Connection,
    (tenant, query): (Tenant, &ListQuery),
    search: &Search,
) -> DbResult<(Vec<DbResult<ParcelListRow>>, u64, bool)> {
    let sql = format!("SELECT {CURRENT}, next >= until FROM term_sweep");
    let (tenant, is_swept) =
        db.only(&sql, &[&tenant.number()], |row| Ok((get(row, 0)?, get(row, 1)?))).await?;
    let (tail, is_whole) = tail(db, tenant).await?;
    let mut findings = Findings::new();
    findings.is_complete = is_swept && is_whole;
    for words in &search.alternatives {
        find_all(db, (tenant, query), words, &mut findings).await?;
        findings.add_wanted(&tail, words, query);
    }
    let rows = lists::listed(db, &findings.page(query)).await?;
    Ok((rows, findings.total(), findings.is_complete))
}

/// Adds the parcels of the runs that have all the words.
async fn find_all(
    db: &Connection,
    (tenant, query): (i64, &ListQuery),
    words: &[Word],
    findings: &mut Findings,
) -> DbResult<()> {
    let mut narrowing = Narrowing::new(query);
    for word in words {
        if narrowing.wants_more() {
            narrowing.meet(places(db, tenant, word).await?);
        }
    }
    let (places, has_unmet) = narrowing.end();
    let places = match places {
        Some(places) if !has_unmet && !has_filters(query) => {
            findings.add(places);
            return Ok(());
        }
        Some(places) => places,
        None => newest(db, tenant, query).await?,
    };
    let (places, are_all) = to_load(places);
    findings.is_complete &= are_all;
    let rows: Vec<i64> = places.iter().map(|(_, row)| *row).collect();
    findings.add_wanted(&load(db, &rows).await?, words, query);
    Ok(())
}

/// The places of a word's parcels; none when they are too many to be read.
async fn places(db: &Connection, tenant: i64, word: &Word) -> DbResult<Option<Vec<Place>>> {
    // Of one run. They hold more than may be read, unless most terms are longer than 40 characters.
    const MOST_PIECES: i64 = if cfg!(test) { 40 } else { 1_500 };
    let sql = pieces!("(SELECT id FROM term_runs WHERE is_live)");
    let mut found = Vec::new();
    for term in &word.terms {
        let bounds = Bounds::new(&sorting(tenant), term);
        let mut pieces = BTreeMap::<i64, i64>::new();
        for row in db.all(sql, &[&bounds.from, &bounds.to, &MOST_PIECES]).await? {
            *pieces.entry(get(&row, 0)?).or_default() += 1;
            bounds.add_places(get(&row, 2)?, &mut found);
        }
        // A run of which that many were read has more of them.
        if found.len() > MAX_TERMS || pieces.values().any(|count| *count == MOST_PIECES) {
            return Ok(None);
        }
    }
    if let Some(awb) = word.awb_bounds() {
        let begins = (awb.from.as_str(), awb.to.as_str());
        if !read_places(db, (tenant, AWB_BEGINS), begins, &mut found).await? {
            return Ok(None);
        }
        if let Some(last) = &awb.last
            && !read_places(db, (tenant, AWB_ENDS), (last, &awb.digits), &mut found).await?
        {
            return Ok(None);
        }
    }
    Ok(Some(found))
}

/// Adds places; false when there are too many.
async fn read_places(
    db: &Connection,
    (tenant, sql): (i64, &str),
    (from, to): (&str, &str),
    places: &mut Vec<Place>,
) -> DbResult<bool> {
    let most = i64::try_from(MAX_TERMS + 1 - places.len()).unwrap_or(i64::MAX);
    let found = db.each(sql, &[&tenant, &from, &to, &most], read_place).await?;
    places.extend(found);
    Ok(places.len() <= MAX_TERMS)
}

/// The parcels that wait for a run, and whether those are all of them. One is read beyond the most that are, in the
/// order of the index: a count would read the whole table, which has a million dead rows after a copy.
async fn tail(db: &Connection, tenant: i64) -> DbResult<(Loading, bool)> {
    let sql = "SELECT p.id FROM (SELECT parcel FROM term_queue ORDER BY parcel DESC LIMIT $2) AS q \
         LEFT JOIN parcels AS p ON p.id = q.parcel AND p.tenant = $1";
    let given: [&(dyn ToSql + Sync); 2] = [&tenant, &(MAX_TAIL + 1)];
    let waiting: Vec<Option<i64>> = db.each(sql, &given, |row| get(row, 0)).await?;
    let most = usize::try_from(MAX_TAIL).unwrap_or(usize::MAX);
    let is_whole = waiting.len() <= most;
    let own: Vec<i64> = waiting.into_iter().take(most).flatten().collect();
    Ok((load(db, &own).await?, is_whole))
}

/// The newest of the tenant's parcels, one more than may be loaded.
async fn newest(db: &Connection, tenant: i64, query: &ListQuery) -> DbResult<Vec<Place>> {
    let (from, to) = bounds(query);
    let limit = i64::try_from(MAX_LOADED + 1).unwrap_or(i64::MAX);
    let sql = "SELECT created_at, id FROM parcels \
         WHERE tenant = $1 AND created_at >= $2 AND created_at < $3 \
         ORDER BY created_at DESC, id DESC LIMIT $4";
    db.each(sql, &[&tenant, &from, &to, &limit], read_place).await
}

fn read_place(row: &Row) -> DbResult<Place> {
    Ok((get(row, 0)?, get(row, 1)?))
}

/// Loads parcels to be looked at.
async fn load(db: &Connection, rows: &[i64]) -> DbResult<Loading> {
    if rows.is_empty() {
        return Ok(Vec::new());
    }
    let sql = "SELECT p.id, p.created_at, p.number, p.state, p.country, p.external_order_id, \
         o.order_json, m.awb FROM parcels AS p JOIN orders AS o ON o.parcel = p.id \
         LEFT JOIN manifest_parcels AS mp ON mp.parcel = p.id \
         LEFT JOIN manifests AS m ON m.id = mp.manifest WHERE p.id = ANY($1)";
    let mut all = Vec::with_capacity(rows.len());
    for row in db.all(sql, &[&rows]).await? {
        match read_loaded(&row).map_err(|failure| parcels::named(&row, failure)) {
            Ok(loaded) => all.push(((get(&row, 1)?, get(&row, 0)?), loaded)),
            Err(failure) if failure.is_row() => {
                tracing::error!(error = %failure, "a parcel is left out of a search");
            }
            Err(failure) => return Err(failure),
        }
    }
    Ok(all)
}

fn read_loaded(row: &Row) -> DbResult<Loaded> {
    Ok(Loaded {
        number: get(row, 2)?,
        state: read_state(row, 3)?,
        country: get(row, 4)?,
        external_order_id: get(row, 5)?,
        order: read_order(row, 6)?,
        awb: get(row, 7)?,
    })
}
