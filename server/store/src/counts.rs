//! The number of a tenant's parcels by day, state and country. Each engine maintains these counts in its own way, in
//! the commit that changes them, so that a list knows its total without reading the parcels. Here they are read, and
//! parcels are subtracted when they are erased.

use parcelo_domain::{
    Millis, State, Tenant,
    activity::{ParcelCount, epoch_day},
};
use parcelo_types::CountryCode;

use super::{
    columns::{is_among, join_with_commas},
    generations::current_generation,
    sql::{Row, Sql, SqlResult, params},
};

/// The filter for counting a tenant's parcels: the days from `first` to before `end`, and optionally state and country.
#[derive(Debug, Clone, Copy)]
pub(super) struct TotalsQuery {
    pub(super) tenant: Tenant,
    pub(super) first: i64,
    pub(super) end: i64,
    pub(super) state: Option<u8>,
    pub(super) country: Option<&'static str>,
}

/// The days of a list without dates, which contain all parcels.
const ALL_DAYS: (i64, i64) = (epoch_day(Millis(i64::MIN)) + 1, epoch_day(Millis(i64::MAX)));

/// The lock of PostgreSQL's only transaction that writes totals: "coun" in ASCII, twice.
pub(super) const TOTALS_LOCK: i64 = 0x636F_756E_636F_756E;

/// Returns the day, since 1970 began, on which a row of `parcels` was created, as [`epoch_day`] computes it.
macro_rules! day {
    () => {
        "(created_at / 86400000 \
         - CASE WHEN created_at < 0 AND created_at % 86400000 <> 0 THEN 1 ELSE 0 END)"
    };
}
pub(super) use day;

/// Selects the matching counts. On `SQLite` a filter is only in the text if it applies, because no index would be used
/// for `$4 IS NULL OR …`. The index is named, because `SQLite` would otherwise scan all days with the primary key,
/// which includes the totals and so looks slightly cheaper.
macro_rules! counts {
    ($index:literal, $filter:literal) => {
        [
            counts!("coalesce(sum(total), 0)", $index, $filter, ""),
            counts!(
                "day, sum(total){::bigint|}",
                $index,
                $filter,
                " GROUP BY day HAVING sum(total) > 0 ORDER BY day DESC{| LIMIT $6}"
            ),
        ]
    };
    ($select:literal, $index:literal, $filter:literal, $rest:literal) => {
        concat!(
            "SELECT ",
            $select,
            " FROM {all_counts|parcel_counts ",
            $index,
            "} WHERE tenant = ",
            current_generation!("$1"),
            " AND day >= $2 AND day < $3 \
             AND {($4::smallint IS NULL OR state = $4) AND ($5::text IS NULL OR country = $5)|",
            $filter,
            "}",
            $rest
        )
    };
}

/// Returns the two statements that count the matching parcels: over all days, and by day.
pub(super) const fn count_statements(query: TotalsQuery) -> [&'static str; 2] {
    match (query.state, query.country) {
        (None, None) => counts!("", "$4 IS NULL AND $5 IS NULL"),
        (Some(_), None) => counts!("INDEXED BY parcel_counts_state", "state = $4 AND $5 IS NULL"),
        (None, Some(_)) => {
            counts!("INDEXED BY parcel_counts_country", "$4 IS NULL AND country = $5")
        }
        (Some(_), Some(_)) => {
            counts!("INDEXED BY parcel_counts_both", "state = $4 AND country = $5")
        }
    }
}

/// Returns the number of parcels of each day, latest first, and their total. `SQLite` reads days only until they have
/// `needed` parcels. Days without parcels are omitted.
pub(super) async fn count_by_day(
    db: Sql<'_>,
    query: TotalsQuery,
    needed: u64,
) -> SqlResult<(Vec<(i64, u64)>, u64)> {
    let [all, by_day] = count_statements(query);
    let TotalsQuery { tenant, first, end, state, country } = query;
    let mut params = params![tenant.number(), first, end, state, country].to_vec();
    if !db.is_postgres() {
        params.push(needed.into());
    }
    let number = |row: &Row<'_>, column| row.get::<i64>(column).map(i64::unsigned_abs);
    let days = db.query_map(by_day, &params, |row| Ok((row.get(0)?, number(row, 1)?))).await?;
    let total = if db.is_postgres() {
        days.iter().map(|(_, parcels)| parcels).sum()
    } else if (first, end) == ALL_DAYS {
        let sql = concat!(
            "SELECT coalesce(sum(total), 0) FROM parcel_totals WHERE tenant = ",
            current_generation!("$1"),
            " AND ($2 IS NULL OR state = $2) AND ($3 IS NULL OR country = $3)"
        );
        db.query_one(sql, params![tenant.number(), state, country], |row| number(row, 0)).await?
    } else {
        db.query_one(all, &params, |row| number(row, 0)).await?
    };
    Ok((days, total))
}

/// Returns the number of parcels created on `first` or later, by day, state and country.
pub(super) async fn activity(
    db: Sql<'_>,
    tenant: Tenant,
    first: i64,
) -> SqlResult<Vec<ParcelCount>> {
    let sql = concat!(
        "SELECT day, state, country, sum(total){::bigint|} FROM {all_counts|parcel_counts} WHERE tenant = ",
        current_generation!("$1"),
        " AND day >= $2 GROUP BY day, state, country HAVING sum(total) > 0 ORDER BY day, state, country"
    );
    db.query_map(sql, params![tenant.number(), first], |row| {
        Ok(ParcelCount {
            created_day: row.get(0)?,
            state: row.parse_number(1, State::from_number)?,
            country: row.parse(2, CountryCode::parse)?,
            parcels: row.get::<i64>(3)?.unsigned_abs(),
        })
    })
    .await
}

/// Subtracts parcels that are about to be deleted. A count may be 0 until [`delete_zero_counts`].
pub(super) async fn subtract(db: Sql<'_>, parcels: &[i64]) -> SqlResult<()> {
    let sql = concat!(
        "{INSERT INTO parcel_count_changes (tenant, day, state, country, difference) \
         SELECT tenant, day, state, country, -parcels|\
         UPDATE parcel_counts AS c SET total = c.total - gone.parcels} \
         FROM (SELECT tenant, ",
        day!(),
        " AS day, state, country, count(*) AS parcels FROM parcels WHERE id ",
        is_among!("$1"),
        " GROUP BY 1, 2, 3, 4) AS gone{| WHERE c.tenant = gone.tenant AND c.day = gone.day \
         AND c.state = gone.state AND c.country = gone.country}"
    );
    db.execute(sql, params![&join_with_commas(parcels)]).await.map(drop)
}

/// Deletes the counts of these tenants that have become 0.
pub(super) async fn delete_zero_counts(db: Sql<'_>, tenants: &[i64]) -> SqlResult<()> {
    // Waits until no server is adding pending changes to the totals (a fold), and prevents that until the commit,
    // because folds lock rows of totals in no fixed order.
    db.lock_number(TOTALS_LOCK).await?;
    let sql = "DELETE FROM parcel_counts \
         WHERE total = 0{ AND tenant = ANY ((SELECT string_to_array($1, ',')::bigint[])::bigint[])|}";
    db.execute(sql, params![&join_with_commas(tenants)]).await.map(drop)
}

/// Deletes the counts of a generation whose data is deleted.
pub(super) async fn delete_generation_counts(db: Sql<'_>, number: i64) -> SqlResult<()> {
    db.lock_number(TOTALS_LOCK).await?;
    let others: &[&str] = if db.is_postgres() {
        &["parcel_count_changes"]
    } else {
        &["parcel_totals", "outbox_counts"]
    };
    for table in ["parcel_counts"].iter().chain(others) {
        db.delete_tenant_rows(table, number).await?;
    }
    Ok(())
}
