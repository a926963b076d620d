//! A tenant's parcels as a list: one page, and how many there are in all.

use parcelo::{Awb, rules::ListQuery};
use rusqlite::{Connection, OptionalExtension, Row, named_params, params};
use ulid::Ulid;

use super::{
    Store, StoreError,
    parcels::{self, damaged, select_parcels},
};
use crate::{
    clock::Millis,
    core::{Listed, State, Tenant, activity::Counted},
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
const ONE_ORDER_ID: &str = filter!("json_extract(order_json, '$.externalOrderId') = :order_id");

/// The rows of a page, whose ids are found without a look at any row.
const PAGE: &str = select_parcels!(
    ", json_extract(order_json, '$.externalOrderId'), json_extract(order_json, '$.customerReference'), \
     (SELECT m.public_id FROM manifest_parcels AS p JOIN living_manifests AS m ON m.id = p.manifest \
      WHERE p.parcel = parcels.id), \
     (SELECT m.awb FROM manifest_parcels AS p JOIN living_manifests AS m ON m.id = p.manifest \
      WHERE p.parcel = parcels.id)",
    "WHERE id IN (SELECT id FROM living_parcels "
);
const PAGE_END: &str = " ORDER BY created_at DESC, id DESC LIMIT :limit OFFSET :offset) \
     ORDER BY created_at DESC, id DESC";

impl Store {
    /// A page of a tenant's parcels, newest first, and how many the whole list has.
    pub fn list(
        &self,
        tenant: Tenant,
        query: &ListQuery,
    ) -> Result<(Vec<Listed>, u64), StoreError> {
        self.read(|db| {
            // Both are read at one moment.
            let moment = db.unchecked_transaction()?;
            let total = total(&moment, tenant, query)?;
            let offset = i64::from(query.page - 1) * i64::from(query.limit);
            let is_past = u64::try_from(offset).is_ok_and(|offset| offset >= total);
            let page = if is_past { Vec::new() } else { page(&moment, tenant, query, offset)? };
            Ok((page, total))
        })
    }

    /// How many of a tenant's parcels were created since then, by day and state.
    pub fn activity(&self, tenant: Tenant, since: Millis) -> Result<Vec<Counted>, StoreError> {
        self.read(|db| activity(db, tenant, since))
    }
}

/// How many of a tenant's parcels that were created since then are in which state, by day.
fn activity(db: &Connection, tenant: Tenant, since: Millis) -> rusqlite::Result<Vec<Counted>> {
    let mut find = db.prepare_cached(
        "SELECT created_at / 86400000 AS day, state, count(*) FROM living_parcels \
         WHERE tenant = ?1 AND created_at >= ?2 GROUP BY day, state ORDER BY day, state",
    )?;
    let counted = |row: &Row<'_>| {
        let (day, state) = (row.get(0)?, parcels::read_state(row, 1)?);
        Ok(Counted { day, state, parcels: row.get::<_, i64>(2)?.unsigned_abs() })
    };
    find.query_map([tenant.number(), since.0], counted)?.collect()
}

/// Counts one more parcel of a tenant.
pub(super) fn count(db: &Connection, tenant: Tenant) -> rusqlite::Result<()> {
    let mut count = db.prepare_cached(
        "INSERT INTO parcel_counts (tenant, total) VALUES (?1, 1) \
         ON CONFLICT DO UPDATE SET total = total + 1",
    )?;
    count.execute([tenant.number()]).map(drop)
}

/// Counts one parcel less, which is about to be deleted.
pub(super) fn uncount(db: &Connection, parcel: i64) -> rusqlite::Result<()> {
    let mut count = db.prepare_cached(
        "UPDATE parcel_counts SET total = total - 1 \
         WHERE tenant = (SELECT tenant FROM living_parcels WHERE id = ?1)",
    )?;
    count.execute([parcel]).map(drop)
}

/// Counts none of the parcels that a tenant has.
pub(super) fn forget_counts(db: &Connection, tenant: i64) -> rusqlite::Result<()> {
    let mut count = db.prepare_cached("UPDATE parcel_counts SET total = 0 WHERE tenant = ?1")?;
    count.execute([tenant]).map(drop)
}

fn total(db: &Connection, tenant: Tenant, query: &ListQuery) -> rusqlite::Result<u64> {
    if is_whole(query) {
        let mut find = db.prepare_cached("SELECT total FROM parcel_counts WHERE tenant = ?1")?;
        let total = find.query_row(params![tenant.number()], read_count).optional()?;
        return Ok(total.unwrap_or(0));
    }
    let filter = Filter::of(tenant, query);
    let mut count =
        db.prepare_cached(&format!("SELECT count(*) FROM living_parcels {}", filter.condition()))?;
    count.query_row(
        named_params! {
            ":tenant": filter.tenant, ":from": filter.from, ":to": filter.to,
            ":state": filter.state, ":country": filter.country, ":order_id": filter.order_id,
        },
        read_count,
    )
}

fn read_count(row: &Row<'_>) -> rusqlite::Result<u64> {
    let count: i64 = row.get(0)?;
    u64::try_from(count).map_err(|_| rusqlite::Error::IntegralValueOutOfRange(0, count))
}

fn page(
    db: &Connection,
    tenant: Tenant,
    query: &ListQuery,
    offset: i64,
) -> rusqlite::Result<Vec<Listed>> {
    let filter = Filter::of(tenant, query);
    let mut find = db.prepare_cached(&[PAGE, filter.condition(), PAGE_END].concat())?;
    let rows = find.query_map(
        named_params! {
            ":tenant": filter.tenant, ":from": filter.from, ":to": filter.to,
            ":state": filter.state, ":country": filter.country, ":order_id": filter.order_id,
            ":limit": query.limit, ":offset": offset,
        },
        read,
    )?;
    rows.collect()
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
    fn of(tenant: Tenant, query: &'a ListQuery) -> Self {
        let millis = |time| Millis::from(time).0;
        Self {
            tenant: tenant.number(),
            from: query.created_from.map_or(i64::MIN, millis),
            to: query.created_to.map_or(i64::MAX, millis),
            // A status that no state has is no parcel's.
            state: query
                .status
                .as_ref()
                .map(|status| State::of_status(status).map_or(0, State::number)),
            country: query.country.map(|country| country.as_str()),
            order_id: query.external_order_id.as_deref(),
        }
    }

    const fn condition(&self) -> &'static str {
        if self.order_id.is_some() { ONE_ORDER_ID } else { ANY_ORDER_ID }
    }
}

const fn is_whole(query: &ListQuery) -> bool {
    query.status.is_none()
        && query.country.is_none()
        && query.external_order_id.is_none()
        && query.created_from.is_none()
        && query.created_to.is_none()
}

fn read(row: &Row<'_>) -> rusqlite::Result<Listed> {
    let [order_id, reference, manifest, awb] = [0, 1, 2, 3].map(|place| parcels::MORE + place);
    let number: Option<String> = row.get(awb)?;
    let number = number.map(|number| Awb::parse(&number).map_err(|error| damaged(awb, error)));
    Ok(Listed {
        parcel: parcels::read(row)?,
        external_order_id: row.get(order_id)?,
        customer_reference: row.get(reference)?,
        manifest: row.get::<_, Option<_>>(manifest)?.map(Ulid::from_bytes).zip(number.transpose()?),
    })
}
