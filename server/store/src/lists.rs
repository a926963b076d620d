//! A tenant's parcels as a list: one page, and the total.
//!
//! The counts of [`counts`] have the number of matching parcels, by day and in total. So for a total, parcels are
//! counted only on the at most two days that the filter includes in part. A page reads only the days that it shows,
//! however far back they are and however few days have parcels.

use parcelo_domain::{
    Millis, ParcelListRow, State, Tenant,
    activity::{ParcelCount, day_start, epoch_day},
};
use parcelo_types::{Awb, internal::ListQuery};
use serde::Deserialize;
use ulid::Ulid;

use super::{
    Store, StoreError, counts,
    generations::current_generation,
    parcels::{self, by_ids, select_parcels, with_order},
    search_hits::bounds,
    sql::{Row, Sql, SqlResult, params},
    values::Value,
};

/// Returns the condition of a list. The last part is one of two texts, so that each case gets a suitable plan.
macro_rules! filter {
    ($order_id:literal) => {
        concat!(
            "WHERE tenant = ",
            current_generation!("$1"),
            " AND created_at >= $2 AND created_at < $3 \
             AND ({$4::smallint|$4} IS NULL OR state = $4) AND ({$5::text|$5} IS NULL OR country = $5) \
             AND ",
            $order_id
        )
    };
}

const ANY_ORDER_ID: &str = filter!("{$6::text|$6} IS NULL");
const ONE_ORDER_ID: &str = filter!("external_order_id = $6");

/// Selects the rows of a page.
const ROWS: &str = select_parcels!(
    ", external_order_id, order_json, m.public_id, m.awb",
    with_order!(),
    "LEFT JOIN manifest_parcels AS p ON p.parcel = parcels.id \
     LEFT JOIN manifests AS m ON m.id = p.manifest ",
    by_ids!()
);

impl Store {
    /// Returns a page of a tenant's parcels, newest first, and the total of the list. An unreadable parcel is omitted,
    /// logged and counted.
    pub async fn list(
        &self,
        tenant: Tenant,
        query: ListQuery,
    ) -> Result<(Vec<ParcelListRow>, u64), StoreError> {
        let listed = self.long_query(Some(tenant), async move |db| {
            #[cfg(any(test, feature = "test-util"))]
            crate::test_util::wait_if_requested(&query);
            db.in_snapshot(async || page(db, &Filter::new(tenant, &query), &query).await).await
        });
        let (rows, total) = listed.await?;
        Ok((self.readable_rows(rows, "a parcel is left out of a list"), total))
    }

    /// Counts a tenant's parcels created on that day or later, by day, state and country.
    pub async fn activity(
        &self,
        tenant: Tenant,
        first: i64,
    ) -> Result<Vec<ParcelCount>, StoreError> {
        self.long_query(Some(tenant), async move |db| counts::activity(db, tenant, first).await)
            .await
    }
}

/// Returns a page of the list, and its total.
async fn page(
    db: Sql<'_>,
    filter: &Filter,
    query: &ListQuery,
) -> SqlResult<(Vec<SqlResult<ParcelListRow>>, u64)> {
    let limit = u64::from(query.limit);
    let offset = u64::from(query.page - 1) * limit;
    let (periods, total) = find_periods(db, filter, offset + limit).await?;
    let mut ids = Vec::new();
    for part in page_parts(&periods, offset, limit) {
        let mut params = filter.params(part.from, part.to);
        params.extend([part.parcels, part.skipped].map(Value::from));
        ids.extend(db.query_map(&page_sql(filter), &params, |row| row.get::<i64>(0)).await?);
    }
    Ok((read_listed(db, &ids).await?, total))
}

fn page_sql(filter: &Filter) -> String {
    let page = " ORDER BY created_at DESC, id DESC LIMIT $7 OFFSET $8";
    ["SELECT id FROM parcels ", filter.condition(), page].concat()
}

/// Returns the parcels of a page, in order.
pub(super) async fn read_listed(
    db: Sql<'_>,
    ids: &[i64],
) -> SqlResult<Vec<SqlResult<ParcelListRow>>> {
    parcels::read_each(db, ROWS, ids, read_list_row).await
}

/// A period, and the number of matching parcels created in it.
struct Period {
    from: i64,
    /// The first millisecond after the period.
    to: i64,
    parcels: u64,
}

/// Returns the periods of the list, latest first, until they have `needed` parcels, and the list's total. The periods
/// are whole days, whose counts are stored, and parts of the first and the last day, in which parcels are counted.
async fn find_periods(db: Sql<'_>, filter: &Filter, needed: u64) -> SqlResult<(Vec<Period>, u64)> {
    let first = epoch_day(Millis(filter.from.saturating_sub(1))).saturating_add(1);
    let end = epoch_day(Millis(filter.to));
    // The counts contain neither the callers' own ids nor parts of a day.
    if filter.order_id.is_some() || first > end {
        let all = count_period(db, filter, (filter.from, filter.to)).await?;
        let total = all.parcels;
        return Ok((vec![all], total));
    }
    let Filter { tenant, state, country, .. } = *filter;
    let query = counts::TotalsQuery { tenant, first, end, state, country };
    let newest = count_period(db, filter, (day_start(end).0, filter.to)).await?;
    let oldest = count_period(db, filter, (filter.from, day_start(first).0)).await?;
    let needed = needed.saturating_sub(newest.parcels);
    let (days, in_days) = counts::count_by_day(db, query, needed).await?;
    let total = newest.parcels + in_days + oldest.parcels;
    let day = |(day, parcels)| Period { from: day_start(day).0, to: day_start(day + 1).0, parcels };
    let mut periods = vec![newest];
    periods.extend(days.into_iter().map(day));
    // If earlier days were omitted, the later days have enough parcels, and this period is not reached.
    periods.push(oldest);
    Ok((periods, total))
}

async fn count_period(db: Sql<'_>, filter: &Filter, (from, to): (i64, i64)) -> SqlResult<Period> {
    let mut parcels = 0;
    if from < to {
        let sql = ["SELECT count(*) FROM parcels ", filter.condition()].concat();
        parcels = db.value::<i64>(&sql, &filter.params(from, to)).await?.unsigned_abs();
    }
    Ok(Period { from, to, parcels })
}

/// The part of a page that lies in one period. The days between a page's first and last parcel are not read through,
/// because a tenant may have a million other parcels between two matching ones.
#[derive(Debug, PartialEq, Eq)]
struct Part {
    from: i64,
    to: i64,
    /// Number of the period's parcels that precede the page.
    skipped: u64,
    /// Number of the period's parcels on the page; the search ends after the last of them.
    parcels: u64,
}

/// Returns the parts that have the `limit` parcels from `offset` on, or as many as there are: no parts past the end.
fn page_parts(periods: &[Period], offset: u64, limit: u64) -> Vec<Part> {
    let (mut skipped, mut missing) = (offset, limit);
    let mut parts = Vec::new();
    for period in periods {
        if missing == 0 {
            break;
        }
        let here = period.parcels.saturating_sub(skipped).min(missing);
        if here > 0 {
            parts.push(Part { from: period.from, to: period.to, skipped, parcels: here });
        }
        skipped = skipped.saturating_sub(period.parcels);
        missing -= here;
    }
    parts
}

/// The filters as they are bound to parameters.
struct Filter {
    tenant: Tenant,
    from: i64,
    to: i64,
    state: Option<u8>,
    country: Option<&'static str>,
    order_id: Option<String>,
}

impl Filter {
    fn new(tenant: Tenant, query: &ListQuery) -> Self {
        let (from, to) = bounds(query);
        let number = |status| State::from_status(status).map_or(0, State::number);
        Self {
            tenant,
            from,
            to,
            // A status that is not one of our states matches no parcel.
            state: query.status.as_ref().map(number),
            country: query.country.map(|country| country.as_str()),
            order_id: query.external_order_id.clone(),
        }
    }

    const fn condition(&self) -> &'static str {
        if self.order_id.is_some() { ONE_ORDER_ID } else { ANY_ORDER_ID }
    }

    fn params(&self, from: i64, to: i64) -> Vec<Value> {
        let order_id = self.order_id.as_ref();
        params![self.tenant.number(), from, to, self.state, self.country, order_id].to_vec()
    }
}

/// The part of an order that a list shows.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ListedOrder {
    customer_reference: Option<String>,
}

fn read_list_row(row: &Row<'_>) -> SqlResult<ParcelListRow> {
    let [order_id, order, manifest, awb] =
        [0, 1, 2, 3].map(|offset| parcels::FIRST_EXTRA_COLUMN + offset);
    let manifest = row.get::<Option<[u8; 16]>>(manifest)?.map(Ulid::from_bytes);
    let number = manifest.map(|_| row.parse(awb, Awb::parse)).transpose()?;
    Ok(ParcelListRow {
        parcel: parcels::read(row)?,
        external_order_id: row.get(order_id)?,
        customer_reference: parcels::read_order::<ListedOrder>(row, order)?.customer_reference,
        manifest: manifest.zip(number),
    })
}

#[cfg(test)]
mod tests {
    use parcelo_types::CountryCode;
    use rusqlite::StatementStatus::VmStep;

    use super::*;
    use crate::tests::conformance::{NOW, SECRET, create, sandbox};
    use parcelo_domain::StoreOp;

    /// Returns a store with four parcels to Mexico on the first day, and ten to Ecuador on each day.
    async fn store_with_days(days: i64) -> Store {
        let store = Store::memory(SECRET).unwrap();
        let mut number = 0;
        for day in 0..days {
            let mexico = [CountryCode::MX; 4].into_iter().filter(|_| day == 0);
            for country in mexico.chain([CountryCode::EC; 10]) {
                number += 1;
                let mut changes = create(sandbox(1), &format!("SB-LISTED-{number:06}"), number);
                if let StoreOp::InsertParcel(parcel) = &mut changes.ops[0] {
                    parcel.created_at = NOW.plus(day * Millis::DAY);
                    parcel.country = country;
                }
                store.commit(changes).await;
            }
        }
        store
    }

    /// Returns the cost of a query's first page in steps of `SQLite`'s virtual machine: for its days, and its rows.
    async fn steps(store: &Store, query: &ListQuery) -> [i32; 2] {
        let filter = Filter::new(sandbox(1), query);
        let Filter { tenant, state, country, .. } = filter;
        let totals = counts::TotalsQuery { tenant, first: 0, end: 0, state, country };
        let texts = [counts::count_statements(totals)[1].to_owned(), page_sql(&filter)];
        let taken = || {
            let taken = |sql: &String| {
                let steps = |db: &rusqlite::Connection| {
                    let sql = Sql::Sqlite(db).in_dialect(sql);
                    Ok(db.prepare_cached(&sql)?.get_status(VmStep))
                };
                store.read(steps).unwrap()
            };
            [taken(&texts[0]), taken(&texts[1])]
        };
        let before = taken();
        assert!(!store.list(sandbox(1), query.clone()).await.unwrap().0.is_empty());
        let after = taken();
        [after[0] - before[0], after[1] - before[1]]
    }

    #[tokio::test]
    async fn a_first_page_costs_the_same_however_many_days_there_are() {
        let (few, many) = (store_with_days(50).await, store_with_days(200).await);
        let mut all = ListQuery::default();
        all.limit = 4;
        let mut mexico = all.clone();
        mexico.country = Some(CountryCode::MX);
        let mut generated = all.clone();
        generated.status = Some(State::LabelGenerated.into());
        let mut both = mexico.clone();
        both.status = generated.status.clone();
        for query in [all, mexico, generated, both] {
            let (of_few, of_many) = (steps(&few, &query).await, steps(&many, &query).await);
            assert_eq!(of_few, of_many, "{query:?}");
            assert!(of_many.iter().all(|steps| (1..2_000).contains(steps)), "{of_many:?}");
        }
    }

    #[test]
    fn a_page_reads_only_the_days_it_shows() {
        let day = |day: i64, parcels| Period { from: day, to: day + 1, parcels };
        let periods = [day(9, 0), day(8, 30), day(5, 10), day(4, 0), day(2, 60)];
        let part = |day, skipped, parcels| Part { from: day, to: day + 1, skipped, parcels };
        let table = [
            ((0, 20), vec![part(8, 0, 20)]),
            ((10, 20), vec![part(8, 10, 20)]),
            ((20, 20), vec![part(8, 20, 10), part(5, 0, 10)]),
            ((30, 10), vec![part(5, 0, 10)]),
            ((25, 20), vec![part(8, 25, 5), part(5, 0, 10), part(2, 0, 5)]),
            ((40, 20), vec![part(2, 0, 20)]),
            ((90, 20), vec![part(2, 50, 10)]),
            ((99, 20), vec![part(2, 59, 1)]),
            ((100, 20), vec![]),
            ((u64::MAX, 100), vec![]),
        ];
        for ((offset, limit), expected) in table {
            assert_eq!(page_parts(&periods, offset, limit), expected, "{offset} {limit}");
        }
        assert_eq!(page_parts(&[], 0, 20), []);
    }
}
