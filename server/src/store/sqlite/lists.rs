//! A tenant's parcels as a list: one page, and how many there are in all.
//!
//! The counts of [`counts`] say how many of the wanted parcels each day has, and there are in all. So a total
//! needs a look at the parcels of the two days that the filter cuts through, at most, and a page at those of
//! its own days, however deep it lies, and however few days have any.

use parcelo::{Awb, rules::ListQuery};
use rusqlite::{Connection, Row, named_params};
use ulid::Ulid;

use super::{
    Store, StoreError, counts,
    parcels::{self, damaged, select_parcels},
    resets,
};
use crate::{
    clock::Millis,
    domain::{
        ParcelListRow, State, Tenant,
        activity::{ParcelCount, begin_of, day_of},
    },
    store::search::bounds,
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
     (SELECT m.public_id FROM manifest_parcels AS p JOIN manifests AS m ON m.id = p.manifest \
      WHERE p.parcel = parcels.id), \
     (SELECT m.awb FROM manifest_parcels AS p JOIN manifests AS m ON m.id = p.manifest \
      WHERE p.parcel = parcels.id)",
    "WHERE id = ?1"
);
/// The ids of a page's rows are found without a look at any row.
const IDS: &str = "SELECT id FROM parcels ";
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
            let filter = Filter::new(resets::current(&moment, tenant)?, query);
            let limit = u64::from(query.limit);
            let offset = u64::from(query.page - 1) * limit;
            let (spans, total) = spans(&moment, &filter, offset + limit)?;
            let ids = page(&moment, &filter, &parts(&spans, offset, limit))?;
            Ok((self.listed(&moment, ids)?, total))
        })
    }

    /// The parcels of a page, in their order.
    pub(super) fn listed(
        &self,
        db: &Connection,
        ids: Vec<i64>,
    ) -> rusqlite::Result<Vec<ParcelListRow>> {
        let mut listed = Vec::new();
        for id in ids {
            match parcels::by_id(db, ROW, id, read)? {
                Some(Ok(parcel)) => listed.push(parcel),
                Some(Err(unread)) => {
                    let error = self.read_error(unread.error);
                    tracing::error!(%error, "a parcel is left out of a list");
                }
                None => {}
            }
        }
        Ok(listed)
    }

    /// How many of a tenant's parcels were created on that day or later, by day, state and country.
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
pub(in crate::store) struct Span {
    pub(in crate::store) from: i64,
    /// The first moment after it.
    pub(in crate::store) to: i64,
    pub(in crate::store) parcels: u64,
}

/// The times that make up the list, the latest first, until they have `enough` parcels: whole days, whose counts
/// are kept, and what the filter leaves of a first and a last day, where parcels are counted. And how
/// many parcels the whole list has.
fn spans(db: &Connection, filter: &Filter<'_>, enough: u64) -> rusqlite::Result<(Vec<Span>, u64)> {
    let counted = |from: i64, to: i64| -> rusqlite::Result<Span> {
        let parcels = if from < to { count(db, filter, (from, to))? } else { 0 };
        Ok(Span { from, to, parcels })
    };
    let first = day_of(Millis(filter.from.saturating_sub(1))).saturating_add(1);
    let end = day_of(Millis(filter.to));
    // The counts know nothing of the callers' own ids, nor of parts of a day.
    if filter.order_id.is_some() || first > end {
        let all = counted(filter.from, filter.to)?;
        let total = all.parcels;
        return Ok((vec![all], total));
    }
    let Filter { tenant, state, country, .. } = *filter;
    let wanted = counts::Wanted { tenant, first, end, state, country };
    let (newest, oldest) =
        (counted(begin_of(end).0, filter.to)?, counted(filter.from, begin_of(first).0)?);
    let in_days =
        if filter.has_dates() { counts::in_days(db, wanted)? } else { counts::in_all(db, wanted)? };
    let total = newest.parcels + in_days + oldest.parcels;
    let days = counts::by_day(db, wanted, enough.saturating_sub(newest.parcels))?;
    let day = |(day, parcels)| Span { from: begin_of(day).0, to: begin_of(day + 1).0, parcels };
    let mut spans = vec![newest];
    spans.extend(days.into_iter().map(day));
    // Where days are left out before it, those before them have enough, and it is not reached.
    spans.push(oldest);
    Ok((spans, total))
}

fn count(db: &Connection, filter: &Filter<'_>, (from, to): (i64, i64)) -> rusqlite::Result<u64> {
    let mut count =
        db.prepare_cached(&format!("SELECT count(*) FROM parcels {}", filter.condition()))?;
    let bound = named_params! {
        ":tenant": filter.tenant, ":from": from, ":to": to,
        ":state": filter.state, ":country": filter.country, ":order_id": filter.order_id,
    };
    count.query_row(bound, |row| row.get::<_, i64>(0).map(i64::unsigned_abs))
}

/// What a page has of one span. A page is not looked for from its first day to its last: a tenant may have a
/// million other parcels between two that are wanted.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::store) struct Part {
    pub(in crate::store) from: i64,
    pub(in crate::store) to: i64,
    /// How many of the span's parcels come before it.
    pub(in crate::store) skipped: u64,
    /// How many it has: with the last one the search is over.
    pub(in crate::store) parcels: u64,
}

/// The parts that make up the `limit` parcels from `offset` on, or what is left; none past the end.
pub(in crate::store) fn parts(spans: &[Span], offset: u64, limit: u64) -> Vec<Part> {
    let (mut skipped, mut missing) = (offset, limit);
    let mut parts = Vec::new();
    for span in spans {
        if missing == 0 {
            break;
        }
        let here = span.parcels.saturating_sub(skipped).min(missing);
        if here > 0 {
            parts.push(Part { from: span.from, to: span.to, skipped, parcels: here });
        }
        skipped = skipped.saturating_sub(span.parcels);
        missing -= here;
    }
    parts
}

fn page(db: &Connection, filter: &Filter<'_>, parts: &[Part]) -> rusqlite::Result<Vec<i64>> {
    let mut find = db.prepare_cached(&page_sql(filter))?;
    let signed = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
    let mut ids = Vec::new();
    for part in parts {
        let bound = named_params! {
            ":tenant": filter.tenant, ":from": part.from, ":to": part.to,
            ":state": filter.state, ":country": filter.country, ":order_id": filter.order_id,
            ":limit": signed(part.parcels), ":offset": signed(part.skipped),
        };
        for id in find.query_map(bound, |row| row.get(0))? {
            ids.push(id?);
        }
    }
    Ok(ids)
}

fn page_sql(filter: &Filter<'_>) -> String {
    [IDS, filter.condition(), IDS_END].concat()
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
    fn new(tenant: i64, query: &'a ListQuery) -> Self {
        let (from, to) = bounds(query);
        Self {
            tenant,
            from,
            to,
            // No parcel has a status that is not one of our states.
            state: query
                .status
                .as_ref()
                .map(|status| State::from_status(status).map_or(0, State::number)),
            country: query.country.map(|country| country.as_str()),
            order_id: query.external_order_id.as_deref(),
        }
    }

    const fn has_dates(&self) -> bool {
        self.from != i64::MIN || self.to != i64::MAX
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
    use parcelo::CountryCode;
    use rusqlite::StatementStatus::VmStep;

    use super::*;
    use crate::{
        domain::Op,
        store::tests::conformance::{NOW, SECRET, create, sandbox},
    };

    /// Four parcels to Mexico on the first of the days, and ten to Ecuador on each.
    async fn store_of(days: i64) -> Store {
        let store = Store::memory(SECRET).unwrap();
        let mut number = 0;
        for day in 0..days {
            let mexico = [CountryCode::MX; 4].into_iter().filter(|_| day == 0);
            for country in mexico.chain([CountryCode::EC; 10]) {
                number += 1;
                let mut changes = create(sandbox(1), &format!("SB-LISTED-{number:06}"), number);
                if let Op::InsertParcel(parcel) = &mut changes.ops[0] {
                    parcel.created_at = NOW.plus(day * Millis::DAY);
                    parcel.country = country;
                }
                store.commit(changes).await;
            }
        }
        store
    }

    /// What a query's first page costs: steps of `SQLite`'s machine to find its days and its rows.
    async fn steps(store: &Store, query: &ListQuery) -> [i32; 2] {
        let filter = Filter::new(sandbox(1).number(), query);
        let Filter { tenant, state, country, .. } = filter;
        let wanted = counts::Wanted { tenant, first: 0, end: 0, state, country };
        let texts = [counts::by_day_sql(wanted).to_owned(), page_sql(&filter)];
        let taken = || {
            let taken = |sql: &String| {
                store.read(|db| Ok(db.prepare_cached(sql)?.get_status(VmStep))).unwrap()
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
        let (few, many) = (store_of(50).await, store_of(200).await);
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
    fn a_page_is_looked_for_on_its_own_days() {
        let day = |day: i64, parcels| Span { from: day, to: day + 1, parcels };
        let spans = [day(9, 0), day(8, 30), day(5, 10), day(4, 0), day(2, 60)];
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
            assert_eq!(parts(&spans, offset, limit), expected, "{offset} {limit}");
        }
        assert_eq!(parts(&[], 0, 20), []);
    }
}
