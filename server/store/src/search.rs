//! The search in the database: in the runs of its index ([`search_index`](super::search_index)), and among the parcels
//! that are not in a run yet.

use std::collections::HashMap;

use parcelo_domain::{
    ParcelListRow, State, Tenant,
    search::{Search, SearchWord},
};
use parcelo_types::internal::ListQuery;

use super::{
    Store, StoreError,
    generations::{current_generation, is_current},
    lists,
    parcels::{by_ids, read_order},
    search_hits::{
        Intersection, ListPosition, LoadedParcel, MAX_LOADED, MAX_TERMS, MAX_UNINDEXED, SearchHits,
        SearchPage, bounds, has_filters, newest_to_load,
    },
    search_index::{index_progress, parcels_in, pieces},
    sql::{Row, Sql, SqlResult, params},
    term_runs::{Bounds, sortable_bytes},
};

/// Selects the parcels of some air waybills. The join order is fixed: from the few manifests to their parcels.
macro_rules! select_by_awb {
    ($which:literal) => {
        concat!(
            "SELECT p.created_at, p.id FROM manifests AS m \
             CROSS JOIN manifest_parcels AS mp CROSS JOIN parcels AS p \
             WHERE mp.manifest = m.id AND p.id = mp.parcel AND m.tenant = $1 AND ",
            $which,
            " LIMIT $4"
        )
    };
}

pub(super) const AWB_STARTS_WITH: &str = select_by_awb!("m.awb >= $2 AND m.awb < $3");
pub(super) const AWB_ENDS_WITH: &str = select_by_awb!(
    "{right(m.awb, 4)|substr(m.awb, -4)} = $2 \
     AND {right(replace(m.awb, '-', ''), length($3))|substr(replace(m.awb, '-', ''), -length($3))} = $3"
);

/// Selects the newest parcels that are not in a run yet; in a file, those after a row. Reading one more than the
/// maximum, in index order, shows whether there are more: a count would read the whole table, which has a million dead
/// rows after a copy.
pub(super) const UNINDEXED: &str = concat!(
    "{SELECT p.id FROM (SELECT parcel FROM term_queue ORDER BY parcel DESC LIMIT $2) AS q \
     LEFT JOIN parcels AS p ON p.id = q.parcel AND p.tenant = $1|\
     SELECT id FROM (SELECT id, tenant FROM parcels WHERE id > $3 AND ",
    is_current!("tenant"),
    " ORDER BY id DESC LIMIT $2) WHERE tenant = $1}"
);

/// Loads found parcels.
const LOAD_PARCELS: &str = concat!(
    "SELECT parcels.id, created_at, number, state, country, external_order_id, order_json, m.awb \
     FROM parcels {JOIN orders ON orders.parcel = parcels.id|} \
     LEFT JOIN manifest_parcels AS mp ON mp.parcel = parcels.id \
     LEFT JOIN manifests AS m ON m.id = mp.manifest ",
    by_ids!()
);

/// The search for one tenant in one snapshot.
struct SnapshotSearch<'a> {
    db: Sql<'a>,
    /// The number of the tenant's current generation.
    tenant: i64,
    query: &'a ListQuery,
    /// Unreadable parcels, which were skipped.
    unreadable: Vec<SqlResult<ParcelListRow>>,
}

impl Store {
    /// Returns a page of the tenant's parcels that a search finds, newest first, their total, and whether the total is
    /// complete.
    pub async fn search(
        &self,
        tenant: Tenant,
        query: ListQuery,
        search: Search,
    ) -> Result<SearchPage, StoreError> {
        let found = self.long_query(Some(tenant), async move |db| {
            db.in_snapshot(async || {
                let select = concat!("SELECT ", current_generation!("$1"));
                let tenant = db.value(select, params![tenant.number()]).await?;
                let query = &query;
                SnapshotSearch { db, tenant, query, unreadable: Vec::new() }.page(&search).await
            })
            .await
        });
        let (rows, total, is_complete) = found.await?;
        let parcels = self.readable_rows(rows, "a parcel is left out of a search");
        Ok(SearchPage { parcels, total, is_complete })
    }
}

impl SnapshotSearch<'_> {
    async fn page(
        mut self,
        search: &Search,
    ) -> SqlResult<(Vec<SqlResult<ParcelListRow>>, u64, bool)> {
        let mut search_hits = SearchHits::new();
        let (unindexed, is_complete) = self.unindexed().await?;
        search_hits.is_complete = is_complete;
        for words in &search.alternatives {
            self.find(words, &mut search_hits).await?;
            search_hits.add_wanted(&unindexed, words, self.query);
        }
        let mut rows = lists::read_listed(self.db, &search_hits.page(self.query)).await?;
        rows.append(&mut self.unreadable);
        Ok((rows, search_hits.total(), search_hits.is_complete))
    }

    /// Adds the parcels in the runs that have all words.
    async fn find(&mut self, words: &[SearchWord], search_hits: &mut SearchHits) -> SqlResult<()> {
        let mut intersection = Intersection::new(self.query);
        for word in words {
            if intersection.needs_next_word() {
                intersection.intersect(self.positions(word).await?);
            }
        }
        let (positions, has_skipped_words) = intersection.into_positions();
        let positions = match positions {
            Some(positions) if !has_skipped_words && !has_filters(self.query) => {
                search_hits.add(positions);
                return Ok(());
            }
            Some(positions) => positions,
            None => self.newest().await?,
        };
        let (positions, are_all) = newest_to_load(positions);
        search_hits.is_complete &= are_all;
        let ids: Vec<i64> = positions.iter().map(|(_, row)| *row).collect();
        search_hits.add_wanted(&self.load(&ids).await?, words, self.query);
        Ok(())
    }

    /// Returns the positions of a word's parcels, or `None` if there are too many to read.
    async fn positions(&self, word: &SearchWord) -> SqlResult<Option<Vec<ListPosition>>> {
        // So many pieces have more entries than may be read, unless most terms are longer than 40 characters.
        const MAX_PIECES: usize = if cfg!(test) { 40 } else { 1_500 };
        let mut found = Vec::new();
        for term in &word.terms {
            let bounds = Bounds::new(&sortable_bytes(self.tenant), term);
            let params = params![&bounds.from, &bounds.to, MAX_PIECES];
            let mut pieces = HashMap::<i64, usize>::new();
            let each = self.db.query_map(pieces!("is_live"), params, |row| {
                *pieces.entry(row.get(0)?).or_default() += 1;
                bounds.add_positions(&row.get::<Vec<u8>>(2)?, &mut found);
                Ok(())
            });
            each.await?;
            // A run that returned this many pieces has more of them. In a file the limit applies to all runs together.
            let is_cut = pieces.values().any(|count| *count == MAX_PIECES)
                || !self.db.is_postgres() && pieces.values().sum::<usize>() == MAX_PIECES;
            if found.len() > MAX_TERMS || is_cut {
                return Ok(None);
            }
        }
        let Some(awb) = word.awb_bounds() else { return Ok(Some(found)) };
        let is_all = self.add_positions((AWB_STARTS_WITH, &awb.from, &awb.to), &mut found).await?
            && match &awb.last {
                Some(last) => {
                    self.add_positions((AWB_ENDS_WITH, last, &awb.digits), &mut found).await?
                }
                None => true,
            };
        Ok(is_all.then_some(found))
    }

    /// Adds positions. Returns `false` if there are too many.
    async fn add_positions(
        &self,
        (sql, from, to): (&str, &str, &str),
        positions: &mut Vec<ListPosition>,
    ) -> SqlResult<bool> {
        let params = params![self.tenant, from, to, MAX_TERMS + 1 - positions.len()];
        positions.extend(self.db.query_map(sql, params, read_position).await?);
        Ok(positions.len() <= MAX_TERMS)
    }

    /// Returns the parcels that are not in a run yet, and `true` if there are no others.
    async fn unindexed(&mut self) -> SqlResult<(Vec<(ListPosition, LoadedParcel)>, bool)> {
        let db = self.db;
        let mut params = params![self.tenant, MAX_UNINDEXED + 1].to_vec();
        let rows = db.require(index_progress(db, "").await?)?;
        let is_swept = if db.is_postgres() {
            rows.0 >= rows.1
        } else {
            params.push(rows.0.into());
            parcels_in(db, rows, MAX_UNINDEXED + 1).await?.len() <= MAX_UNINDEXED
        };
        let mut waiting: Vec<Option<i64>> =
            db.query_map(UNINDEXED, &params, |row| row.get(0)).await?;
        let is_whole = is_swept && waiting.len() <= MAX_UNINDEXED;
        waiting.truncate(MAX_UNINDEXED);
        let ids: Vec<i64> = waiting.into_iter().flatten().collect();
        Ok((self.load(&ids).await?, is_whole))
    }

    /// Returns the tenant's newest parcels, one more than may be loaded.
    async fn newest(&self) -> SqlResult<Vec<ListPosition>> {
        let (from, to) = bounds(self.query);
        let sql = "SELECT created_at, id FROM parcels \
             WHERE tenant = $1 AND created_at >= $2 AND created_at < $3 \
             ORDER BY created_at DESC, id DESC LIMIT $4";
        self.db.query_map(sql, params![self.tenant, from, to, MAX_LOADED + 1], read_position).await
    }

    /// Loads parcels to be checked.
    async fn load(&mut self, ids: &[i64]) -> SqlResult<Vec<(ListPosition, LoadedParcel)>> {
        let mut all = Vec::with_capacity(ids.len());
        for loaded in super::parcels::read_each(self.db, LOAD_PARCELS, ids, read_loaded).await? {
            match loaded {
                Ok(loaded) => all.push(loaded),
                Err(error) => self.unreadable.push(Err(error)),
            }
        }
        Ok(all)
    }
}

fn read_position(row: &Row<'_>) -> SqlResult<ListPosition> {
    Ok((row.get(0)?, row.get(1)?))
}

fn read_loaded(row: &Row<'_>) -> SqlResult<(ListPosition, LoadedParcel)> {
    let loaded = LoadedParcel {
        number: row.get(2)?,
        state: row.parse_number(3, State::from_number)?,
        country: row.get(4)?,
        external_order_id: row.get(5)?,
        order: read_order(row, 6)?,
        awb: row.get(7)?,
    };
    Ok(((row.get(1)?, row.get(0)?), loaded))
}
