//! A tenant's parcels as a list: one page, and how many there are in all, found by the counts of days as in
//! the other engine ([`parts`]).

use parcelo::{Awb, rules::ListQuery};
use serde::Deserialize;
use tokio_postgres::{Row, types::ToSql};
use ulid::Ulid;

use super::{
    Store,
    connection::{Connection, get, optional_bytes},
    counts,
    error::{DbResult, Failure},
    parcels::{self, read_order, select_parcels},
};
use crate::{
    clock::Millis,
    domain::{
        ParcelListRow, State, Tenant,
        activity::{ParcelCount, begin_of, day_of},
    },
    store::{
        StoreError,
        generations::current,
        search::bounds,
        sqlite::lists::{Part, Span, parts},
    },
};

/// What the list is of; the last part is one of two, so that each has a plan of its own.
macro_rules! filter {
    ($order_id:literal) => {
        concat!(
            "WHERE tenant = ",
            current!("$1"),
            " AND created_at >= $2 AND created_at < $3 \
             AND ($4::smallint IS NULL OR state = $4) AND ($5::text IS NULL OR country = $5) \
             AND ",
            $order_id
        )
    };
}

const ANY_ORDER_ID: &str = filter!("$6::text IS NULL");
const ONE_ORDER_ID: &str = filter!("external_order_id = $6");

/// The rows of a page, whose ids are found without them.
const ROWS: &str = select_parcels!(
    ", external_order_id, order_json, m.public_id, m.awb",
    "JOIN ids ON ids.id = parcels.id JOIN orders ON orders.parcel = parcels.id LEFT JOIN (SELECT p.parcel, m.public_id, m.awb \
     FROM manifest_parcels AS p JOIN manifests AS m ON m.id = p.manifest) AS m \
     ON m.parcel = parcels.id ORDER BY created_at DESC, parcels.id DESC"
);

impl Store {
    pub(crate) async fn list(
        &self,
        tenant: Tenant,
        query: ListQuery,
    ) -> Result<(Vec<ParcelListRow>, u64), StoreError> {
        let (found, total) = self
            .scan(Some(tenant), async move |db| {
                // Page and total are of one moment.
                db.run("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY").await?;
                let listed = list(db, &Filter::new(tenant, &query), &query).await?;
                db.run("COMMIT").await?;
                Ok(listed)
            })
            .await?;
        Ok((self.readable(found, "a parcel is left out of a list"), total))
    }

    pub(crate) async fn activity(
        &self,
        tenant: Tenant,
        first: i64,
    ) -> Result<Vec<ParcelCount>, StoreError> {
        self.scan(Some(tenant), async move |db| counts::activity(db, tenant, first).await).await
    }
}

async fn list(
    db: &Connection,
    filter: &Filter,
    query: &ListQuery,
) -> DbResult<(Vec<DbResult<ParcelListRow>>, u64)> {
    let spans = spans(db, filter).await?;
    let total = spans.iter().map(|span| span.parcels).sum();
    let limit = u64::from(query.limit);
    let mut rows = Vec::new();
    for part in parts(&spans, u64::from(query.page - 1) * limit, limit) {
        rows.extend(page(db, filter, &part).await?);
    }
    let listed = rows.iter().map(|row| read(row).map_err(|failure| parcels::named(row, failure)));
    Ok((listed.collect(), total))
}

/// The parcels of a page of a search, in the order of a list.
pub(super) async fn listed(
    db: &Connection,
    rows: &[i64],
) -> DbResult<Vec<DbResult<ParcelListRow>>> {
    let sql = ["WITH ids AS (SELECT unnest($1::bigint[]) AS id) ", ROWS].concat();
    let rows = db.all(&sql, &[&rows]).await?;
    Ok(rows.iter().map(|row| read(row).map_err(|failure| parcels::named(row, failure))).collect())
}

/// The times that make up the list, the latest first: whole days, whose counts are kept, and what the
/// filter leaves of a first and a last day, where parcels are counted.
async fn spans(db: &Connection, filter: &Filter) -> DbResult<Vec<Span>> {
    let first = day_of(Millis(filter.from.saturating_sub(1))).saturating_add(1);
    let end = day_of(Millis(filter.to));
    // The counts know nothing of the callers' own ids, nor of parts of a day.
    if filter.order_id.is_some() || first > end {
        return Ok(vec![counted(db, filter, (filter.from, filter.to)).await?]);
    }
    let Filter { tenant, state, country, .. } = *filter;
    let wanted = counts::Wanted { tenant, first, end, state, country };
    let day = |(day, parcels)| Span { from: begin_of(day).0, to: begin_of(day + 1).0, parcels };
    let mut spans = vec![counted(db, filter, (begin_of(end).0, filter.to)).await?];
    spans.extend(counts::by_day(db, wanted).await?.into_iter().map(day));
    spans.push(counted(db, filter, (filter.from, begin_of(first).0)).await?);
    Ok(spans)
}

async fn counted(db: &Connection, filter: &Filter, (from, to): (i64, i64)) -> DbResult<Span> {
    let mut parcels = 0;
    if from < to {
        let sql = ["SELECT count(*) FROM parcels ", filter.condition()].concat();
        parcels = db.value::<i64>(&sql, &filter.given(&from, &to)).await?.unsigned_abs();
    }
    Ok(Span { from, to, parcels })
}

async fn page(db: &Connection, filter: &Filter, part: &Part) -> DbResult<Vec<Row>> {
    let sql = [
        "WITH ids AS (SELECT id FROM parcels ",
        filter.condition(),
        " ORDER BY created_at DESC, id DESC LIMIT $7 OFFSET $8) ",
        ROWS,
    ]
    .concat();
    let signed = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
    let (limit, offset) = (signed(part.parcels), signed(part.skipped));
    let [tenant, from, to, state, country, order_id] = filter.given(&part.from, &part.to);
    db.all(&sql, &[tenant, from, to, state, country, order_id, &limit, &offset]).await
}

/// The filters as they are bound.
struct Filter {
    tenant: i64,
    from: i64,
    to: i64,
    state: Option<i16>,
    country: Option<&'static str>,
    order_id: Option<String>,
}

impl Filter {
    fn new(tenant: Tenant, query: &ListQuery) -> Self {
        let (from, to) = bounds(query);
        Self {
            tenant: tenant.number(),
            from,
            to,
            // No parcel has a status that is not one of our states.
            state: query
                .status
                .as_ref()
                .map(|status| State::from_status(status).map_or(0, counts::state_number)),
            country: query.country.map(|country| country.as_str()),
            order_id: query.external_order_id.clone(),
        }
    }

    const fn condition(&self) -> &'static str {
        if self.order_id.is_some() { ONE_ORDER_ID } else { ANY_ORDER_ID }
    }

    fn given<'a>(&'a self, from: &'a i64, to: &'a i64) -> [&'a (dyn ToSql + Sync); 6] {
        [&self.tenant, from, to, &self.state, &self.country, &self.order_id]
    }
}

/// What a list shows of an order.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ListedOrder {
    customer_reference: Option<String>,
}

fn read(row: &Row) -> DbResult<ParcelListRow> {
    let [order_id, order, manifest, awb] = [0, 1, 2, 3].map(|place| parcels::MORE + place);
    let number: Option<&str> = get(row, awb)?;
    let number = number.map(|number| Awb::parse(number).map_err(Failure::row)).transpose()?;
    Ok(ParcelListRow {
        parcel: parcels::read(row)?,
        external_order_id: get(row, order_id)?,
        customer_reference: read_order::<ListedOrder>(row, order)?.customer_reference,
        manifest: optional_bytes(row, manifest)?.map(Ulid::from_bytes).zip(number),
    })
}
