//! A tenant's parcels as a list: one page, and how many there are in all.
//!
//! The counts of [`counts`] say how many of the wanted parcels each day has. So a total needs a look at the
//! parcels of the two days that the filter cuts through, at most, and a page at those of its own days,
//! however deep it lies.

use parcelo::{Awb, rules::ListQuery};
use rusqlite::{Connection, Row, named_params};
use ulid::Ulid;

use super::{
    Store, StoreError, counts,
    parcels::{self, damaged, select_parcels},
};
use crate::{
    clock::Millis,
    domain::{
        ParcelListRow, State, Tenant,
        activity::{ParcelCount, begin_of, day_of},
    },
};

/// What the list is of; the last part is [`ANY_ORDER_ID`] or [`ONE_ORDER_ID`].
macro_rules! filter {
    ($order_id:literal) => {
        concat!(
            "WHERE tenant = :tenant AND created_at >= :from AND created_at < :to \
             AND (:state IS NULL OR state = :state) AND (:country IS NULL OR country = :country) \
             AND ",
            $order_id
        )
    };
}

const ANY_ORDER_ID: &str = filter!(":order_id IS NULL");
const ONE_ORDER_ID: &str = filter!("external_order_id = :order_id");

/// A row of a page: each is read alone, for one that cannot be read is to hide no others.
const ROW: &str = select_parcels!(
    ", external_order_id, json_extract(order_json, '$.customerReference'), \
     (SELECT m.public_id FROM manifest_parcels AS p JOIN living_manifests AS m ON m.id = p.manifest \
      WHERE p.parcel = parcels.id), \
     (SELECT m.awb FROM manifest_parcels AS p JOIN living_manifests AS m ON m.id = p.manifest \
      WHERE p.parcel = parcels.id)",
    "WHERE id = ?1"
);
/// The ids of a page's rows are found without a look at any row.
const IDS: &str = "SELECT id FROM living_parcels ";
const IDS_END: &str = " ORDER BY created_at DESC, id DESC LIMIT :limit OFFSET :offset";

impl Store {
    /// A page of a tenant's parcels, newest first, and how many the whole list has. What cannot be read is
    /// left out, logged and counted.
    pub async fn list(
        &self,
        tenant: Tenant,
        query: ListQuery,
    ) -> Result<(Vec<ParcelListRow>, u64), StoreError> {
        self.scan(Some(tenant), move |store| store.list_now(tenant, &query)).await
    }

    fn list_now(
        &self,
        tenant: Tenant,
        query: &ListQuery,
    ) -> Result<(Vec<ParcelListRow>, u64), StoreError> {
        self.read(|db| {
            #[cfg(test)]
            super::tests::reads::wait_if_asked(query);
            // Page and total are of one moment.
            let moment = db.unchecked_transaction()?;
            let filter = Filter::new(tenant, query);
            let spans = spans(&moment, &filter)?;
            let total = spans.iter().map(|span| span.parcels).sum();
            let offset = u64::from(query.page - 1) * u64::from(query.limit);
            let Some(stretch) = Stretch::covering(&spans, offset, query.limit.into()) else {
                return Ok((Vec::new(), total));
            };
            let mut listed = Vec::new();
            for id in page(&moment, &filter, &stretch)? {
                match parcels::by_id(&moment, ROW, id, read)? {
                    Some(Ok(parcel)) => listed.push(parcel),
                    Some(Err(unread)) => {
                        let error = self.read_error(unread.error);
                        tracing::error!(%error, "a parcel is left out of a list");
                    }
                    None => {}
                }
            }
            Ok((listed, total))
        })
    }

    /// How many of a tenant's parcels were created on that day or later, by day and state.
    pub async fn activity(
        &self,
        tenant: Tenant,
        first: i64,
    ) -> Result<Vec<ParcelCount>, StoreError> {
        let read = move |store: &Self| store.read(|db| counts::activity(db, tenant, first));
        self.scan(Some(tenant), read).await
    }
}

/// A time, and how many of the wanted parcels were created in it.
struct Span {
    from: i64,
    /// The first moment after it.
    to: i64,
    parcels: u64,
}

/// The times that make up the list, the latest first: whole days, whose counts are kept, and what the
/// filter leaves of a first and a last day, where parcels are counted.
fn spans(db: &Connection, filter: &Filter<'_>) -> rusqlite::Result<Vec<Span>> {
    let counted = |from: i64, to: i64| -> rusqlite::Result<Span> {
        let parcels = if from < to { count(db, filter, (from, to))? } else { 0 };
        Ok(Span { from, to, parcels })
    };
    let first = day_of(Millis(filter.from.saturating_sub(1))).saturating_add(1);
    let end = day_of(Millis(filter.to));
    // The counts know nothing of the callers' own ids, nor of parts of a day.
    if filter.order_id.is_some() || first > end {
        return Ok(vec![counted(filter.from, filter.to)?]);
    }
    let Filter { tenant, state, country, .. } = *filter;
    let wanted = counts::Wanted { tenant, first, end, state, country };
    let day = |(day, parcels)| Span { from: begin_of(day).0, to: begin_of(day + 1).0, parcels };
    let mut spans = vec![counted(begin_of(end).0, filter.to)?];
    spans.extend(counts::by_day(db, wanted)?.into_iter().map(day));
    spans.push(counted(filter.from, begin_of(first).0)?);
    Ok(spans)
}

fn count(db: &Connection, filter: &Filter<'_>, (from, to): (i64, i64)) -> rusqlite::Result<u64> {
    let mut count =
        db.prepare_cached(&format!("SELECT count(*) FROM living_parcels {}", filter.condition()))?;
    let bound = named_params! {
        ":tenant": filter.tenant, ":from": from, ":to": to,
        ":state": filter.state, ":country": filter.country, ":order_id": filter.order_id,
    };
    count.query_row(bound, |row| row.get::<_, i64>(0).map(i64::unsigned_abs))
}

/// The part of a list that a page is read from.
#[derive(Debug, PartialEq, Eq)]
struct Stretch {
    from: i64,
    to: i64,
    /// How many of its parcels come before the page.
    skipped: u64,
    /// How many the page has: with the last one the search is over.
    parcels: u64,
}

impl Stretch {
    /// The spans that hold `limit` parcels from `offset` on, or what is left; none past the end.
    fn covering(spans: &[Span], offset: u64, limit: u64) -> Option<Self> {
        let mut skipped = offset;
        let place = spans.iter().position(|span| {
            let is_here = skipped < span.parcels;
            skipped -= if is_here { 0 } else { span.parcels };
            is_here
        })?;
        let (newest, older) = spans.get(place..)?.split_first()?;
        let (mut from, mut parcels) = (newest.from, newest.parcels - skipped);
        for span in older {
            if parcels >= limit {
                break;
            }
            (from, parcels) = (span.from, parcels + span.parcels);
        }
        Some(Self { from, to: newest.to, skipped, parcels: parcels.min(limit) })
    }
}

fn page(db: &Connection, filter: &Filter<'_>, stretch: &Stretch) -> rusqlite::Result<Vec<i64>> {
    let mut find = db.prepare_cached(&[IDS, filter.condition(), IDS_END].concat())?;
    let signed = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
    let bound = named_params! {
        ":tenant": filter.tenant, ":from": stretch.from, ":to": stretch.to,
        ":state": filter.state, ":country": filter.country, ":order_id": filter.order_id,
        ":limit": signed(stretch.parcels), ":offset": signed(stretch.skipped),
    };
    find.query_map(bound, |row| row.get(0))?.collect()
}

/// The filters as they are bound.
struct Filter<'a> {
    tenant: i64,
    from: i64,
    to: i64,
    state: Option<u8>,
    country: Option<&'static str>,
    order_id: Option<&'a str>,
}

impl<'a> Filter<'a> {
    fn new(tenant: Tenant, query: &'a ListQuery) -> Self {
        let millis = |time| Millis::from(time).0;
        Self {
            tenant: tenant.number(),
            from: query.created_from.map_or(i64::MIN, millis),
            to: query.created_to.map_or(i64::MAX, millis),
            // A status that no state has is no parcel's.
            state: query
                .status
                .as_ref()
                .map(|status| State::from_status(status).map_or(0, State::number)),
            country: query.country.map(|country| country.as_str()),
            order_id: query.external_order_id.as_deref(),
        }
    }

    const fn condition(&self) -> &'static str {
        if self.order_id.is_some() { ONE_ORDER_ID } else { ANY_ORDER_ID }
    }
}

fn read(row: &Row<'_>) -> rusqlite::Result<ParcelListRow> {
    let [order_id, reference, manifest, awb] = [0, 1, 2, 3].map(|place| parcels::MORE + place);
    let number: Option<String> = row.get(awb)?;
    let number = number.map(|number| Awb::parse(&number).map_err(|error| damaged(awb, error)));
    Ok(ParcelListRow {
        parcel: parcels::read(row)?,
        external_order_id: row.get(order_id)?,
        customer_reference: row.get(reference)?,
        manifest: row.get::<_, Option<_>>(manifest)?.map(Ulid::from_bytes).zip(number.transpose()?),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_looked_for_on_its_own_days() {
        let day = |day: i64, parcels| Span { from: day, to: day + 1, parcels };
        let spans = [day(9, 0), day(8, 30), day(5, 10), day(4, 0), day(2, 60)];
        let stretch = |from, to, skipped, parcels| Some(Stretch { from, to, skipped, parcels });
        let table = [
            ((0, 20), stretch(8, 9, 0, 20)),
            ((10, 20), stretch(8, 9, 10, 20)),
            ((20, 20), stretch(5, 9, 20, 20)),
            ((30, 10), stretch(5, 6, 0, 10)),
            ((25, 20), stretch(2, 9, 25, 20)),
            ((40, 20), stretch(2, 3, 0, 20)),
            ((90, 20), stretch(2, 3, 50, 10)),
            ((99, 20), stretch(2, 3, 59, 1)),
            ((100, 20), None),
            ((u64::MAX, 100), None),
        ];
        for ((offset, limit), expected) in table {
            assert_eq!(Stretch::covering(&spans, offset, limit), expected, "{offset} {limit}");
        }
        assert_eq!(Stretch::covering(&[], 0, 20), None);
    }
}
