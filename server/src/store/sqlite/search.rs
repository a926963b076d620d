//! A search in the file: in the runs of its index ([`super::term_runs`]), and among the parcels that are in none yet.

use parcelo::rules::ListQuery;
use rusqlite::{Connection, Row, named_params, params};

use super::{
    Store, StoreError,
    parcels::{self, read_state},
    resets,
    term_runs::{count, read_order, sweep},
};
use crate::{
    domain::{
        Tenant,
        search::{Search, Word},
    },
    store::{
        generations::is_current,
        search::{
            Findings, Loaded, MAX_LOADED, MAX_TAIL, MAX_TERMS, Narrowing, Place, SearchPage,
            bounds, has_filters, to_load,
        },
        term_runs::{Bounds, sorting},
    },
};

/// The pieces that may have entries between two bounds: those of a run begin with the last one that begins before.
pub(super) const PIECES: &str = "SELECT p.entries FROM term_runs AS r \
     CROSS JOIN term_pieces AS p ON p.run = r.id AND p.first < ?2 AND p.first >= coalesce( \
     (SELECT max(q.first) FROM term_pieces AS q WHERE q.run = r.id AND q.first <= ?1), x'') \
     WHERE r.is_live";
/// The parcels of air waybills that begin so, and that end so. The order of the tables is ours: from the few
/// manifests to their parcels.
pub(super) const AWB_BEGINS: &str = "SELECT p.created_at, p.id FROM manifests AS m \
     CROSS JOIN manifest_parcels AS mp ON mp.manifest = m.id \
     CROSS JOIN parcels AS p ON p.id = mp.parcel \
     WHERE m.tenant = ?1 AND m.awb >= ?2 AND m.awb < ?3 LIMIT ?4";
pub(super) const AWB_ENDS: &str = "SELECT p.created_at, p.id FROM manifests AS m \
     CROSS JOIN manifest_parcels AS mp ON mp.manifest = m.id \
     CROSS JOIN parcels AS p ON p.id = mp.parcel \
     WHERE m.tenant = ?1 AND substr(m.awb, -4) = ?2 \
     AND substr(replace(m.awb, '-', ''), -length(?3)) = ?3 LIMIT ?4";
const NEWEST: &str = "SELECT created_at, id FROM parcels \
     WHERE tenant = :tenant AND created_at >= :from AND created_at < :to \
     ORDER BY created_at DESC, id DESC LIMIT :limit";
/// The tenant's parcels among the newest of all that are after a row.
pub(super) const TAIL: &str = concat!(
    "SELECT created_at, id FROM (SELECT created_at, id, tenant FROM parcels WHERE id > ?2 AND ",
    is_current!("tenant"),
    " ORDER BY id DESC LIMIT ?3) WHERE tenant = ?1"
);
const LOAD: &str = "SELECT number, state, country, external_order_id, order_json, \
     (SELECT m.awb FROM manifest_parcels AS mp JOIN manifests AS m ON m.id = mp.manifest \
      WHERE mp.parcel = p.id) \
     FROM parcels AS p WHERE p.id = ?1";

/// Parcels that are in no run yet, loaded, and whether those are all of them.
type Tail = (Vec<(Place, Loaded)>, bool);

impl Store {
    /// A page of the tenant's parcels that a search finds, newest first.
    pub async fn search(
        &self,
        tenant: Tenant,
        query: ListQuery,
        search: Search,
    ) -> Result<SearchPage, StoreError> {
        self.scan(Some(tenant), move |store| store.search_now(tenant, &query, &search)).await
    }

    fn search_now(
        &self,
        tenant: Tenant,
        query: &ListQuery,
        search: &Search,
    ) -> Result<SearchPage, StoreError> {
        self.read(|db| {
            // All of one moment.
            let moment = db.unchecked_transaction()?;
            let tenant = resets::current(&moment, tenant)?;
            let (tail, is_whole) = self.tail(&moment, tenant)?;
            let mut findings = Findings::new();
            findings.is_complete = is_whole;
            for words in &search.alternatives {
                self.find(&moment, (tenant, query), words, &mut findings)?;
                findings.add_wanted(&tail, words, query);
            }
            let parcels = self.listed(&moment, findings.page(query))?;
            let is_complete = findings.is_complete;
            Ok(SearchPage { parcels, total: findings.total(), is_complete })
        })
    }

    /// Adds the parcels of the runs that have all the words.
    fn find(
        &self,
        db: &Connection,
        (tenant, query): (i64, &ListQuery),
        words: &[Word],
        findings: &mut Findings,
    ) -> rusqlite::Result<()> {
        let mut narrowing = Narrowing::new(query);
        for word in words {
            if narrowing.wants_more() {
                narrowing.meet(places(db, tenant, word)?);
            }
        }
        let (places, has_unmet) = narrowing.end();
        let places = match places {
            Some(places) if !has_unmet && !has_filters(query) => {
                findings.add(places);
                return Ok(());
            }
            Some(places) => places,
            None => newest(db, tenant, query)?,
        };
        let (places, are_all) = to_load(places);
        findings.is_complete &= are_all;
        findings.add_wanted(&self.load(db, places)?, words, query);
        Ok(())
    }

    fn tail(&self, db: &Connection, tenant: i64) -> rusqlite::Result<Tail> {
        let (next, highest) = sweep(db)?;
        let mut find = db.prepare_cached(TAIL)?;
        let rows = find.query_map([tenant, next, MAX_TAIL], read_place)?;
        let places = rows.collect::<rusqlite::Result<Vec<_>>>()?;
        let is_whole = count(db, (next, highest), MAX_TAIL + 1)? <= MAX_TAIL;
        Ok((self.load(db, places)?, is_whole))
    }

    /// Loads parcels to be looked at. What cannot be read is left out, logged and counted.
    fn load(&self, db: &Connection, places: Vec<Place>) -> rusqlite::Result<Vec<(Place, Loaded)>> {
        let mut all = Vec::with_capacity(places.len());
        for place in places {
            match parcels::by_id(db, LOAD, place.1, read_loaded)? {
                Some(Ok(loaded)) => all.push((place, loaded)),
                Some(Err(unread)) => {
                    let error = self.read_error(unread.error);
                    tracing::error!(%error, "a parcel is left out of a search");
                }
                None => {}
            }
        }
        Ok(all)
    }
}

/// The places of a word's parcels; none when they are too many to be read.
fn places(db: &Connection, tenant: i64, word: &Word) -> rusqlite::Result<Option<Vec<Place>>> {
    let mut places = Vec::new();
    let mut find = db.prepare_cached(PIECES)?;
    for term in &word.terms {
        let bounds = Bounds::new(&sorting(tenant), term);
        let mut pieces = find.query(params![bounds.from, bounds.to])?;
        while let Some(piece) = pieces.next()? {
            bounds.add_places(piece.get_ref(0)?.as_blob()?, &mut places);
            if places.len() > MAX_TERMS {
                return Ok(None);
            }
        }
    }
    let Some(awb) = word.awb_bounds() else { return Ok(Some(places)) };
    let mut read = |sql: &str, from: &str, to: &str| -> rusqlite::Result<bool> {
        let most = i64::try_from(MAX_TERMS + 1 - places.len()).unwrap_or(i64::MAX);
        let mut find = db.prepare_cached(sql)?;
        for place in find.query_map(params![tenant, from, to, most], read_place)? {
            places.push(place?);
        }
        Ok(places.len() <= MAX_TERMS)
    };
    let is_all = read(AWB_BEGINS, &awb.from, &awb.to)?
        && awb.last.map_or(Ok(true), |last| read(AWB_ENDS, &last, &awb.digits))?;
    Ok(is_all.then_some(places))
}

/// The newest of the tenant's parcels, one more than may be loaded.
fn newest(db: &Connection, tenant: i64, query: &ListQuery) -> rusqlite::Result<Vec<Place>> {
    let (from, to) = bounds(query);
    let limit = i64::try_from(MAX_LOADED + 1).unwrap_or(i64::MAX);
    let mut find = db.prepare_cached(NEWEST)?;
    let bound = named_params! {
        ":tenant": tenant, ":from": from, ":to": to, ":limit": limit,
    };
    find.query_map(bound, read_place)?.collect()
}

fn read_place(row: &Row<'_>) -> rusqlite::Result<Place> {
    Ok((row.get(0)?, row.get(1)?))
}

fn read_loaded(row: &Row<'_>) -> rusqlite::Result<Loaded> {
    Ok(Loaded {
        number: row.get(0)?,
        state: read_state(row, 1)?,
        country: row.get(2)?,
        external_order_id: row.get(3)?,
        order: read_order(row, 4)?,
        awb: row.get(5)?,
    })
}
