//! The current generations of sandboxes, for writers. They are read under a lock that a reset waits for, so that
//! nothing is written into an ended generation, and only its reset removes anything from it.

use std::collections::{BTreeSet, HashMap};

use futures_util::future::try_join;
use parcelo_domain::Tenant;

use super::{
    connection::{Connection, get},
    error::DbResult,
};
use crate::generations::is_current;

/// Condition that a row is of a current generation.
pub(super) const IS_CURRENT: &str = is_current!("tenant");

/// Selects the sandboxes that a statement concerns: the sandboxes `$1`, and the owners of the parcels `$2`. A sub-select
/// with LIMIT is run for each parcel. With `id = ANY($2)`, PostgreSQL would read the whole table of a new database until
/// it has statistics, even for groups without such parcels, which only create orders.
macro_rules! affected {
    () => {
        "(SELECT unnest($1::bigint[]) AS home UNION SELECT p.tenant & 4294967295 \
         FROM unnest($2::bigint[]) AS n (id) CROSS JOIN LATERAL (SELECT tenant FROM parcels \
         WHERE id = n.id AND tenant % 2 = 1 LIMIT 1) AS p)"
    };
}

/// Adds rows for the sandboxes that have none, because only a row can be locked.
const INSERT_MISSING: &str = concat!(
    "INSERT INTO generations (home, current) SELECT home, home FROM ",
    affected!(),
    " AS affected WHERE NOT EXISTS (SELECT 1 FROM generations AS g WHERE g.home = affected.home) \
     ORDER BY home ON CONFLICT DO NOTHING"
);

/// Reads and locks the current generations. A reset's UPDATE waits for the lock.
const LOCK_CURRENT: &str = concat!(
    "SELECT home, current FROM generations WHERE home = ANY (ARRAY ",
    affected!(),
    ") ORDER BY home FOR SHARE"
);

/// The current generations of sandboxes, by the sandboxes' own numbers. None of them ends before the commit.
#[derive(Debug, Default)]
pub(crate) struct Generations(HashMap<i64, i64>);

impl Generations {
    /// Reads and locks the generations of the sandboxes among these tenants and among the owners of these parcels.
    pub(crate) async fn lock_current(
        db: &Connection,
        tenants: impl IntoIterator<Item = Tenant>,
        parcels: &[i64],
    ) -> DbResult<Self> {
        let sandboxes: BTreeSet<i64> = tenants.into_iter().map(Tenant::number).collect();
        let sandboxes: Vec<i64> = sandboxes.into_iter().filter(|tenant| tenant % 2 == 1).collect();
        if sandboxes.is_empty() && parcels.is_empty() {
            return Ok(Self::default());
        }
        let (_, locked) = try_join(
            db.execute(INSERT_MISSING, &[&sandboxes, &parcels]),
            db.query_map(LOCK_CURRENT, &[&sandboxes, &parcels], |row| {
                Ok((get(row, 0)?, get(row, 1)?))
            }),
        )
        .await?;
        Ok(Self(locked.into_iter().collect()))
    }

    /// Returns the number under which a tenant's rows are written. Production has no generations.
    pub(crate) fn storage_tenant_id(&self, tenant: Tenant) -> i64 {
        let home = tenant.number();
        self.0.get(&home).copied().unwrap_or(home)
    }

    /// Returns `true` if rows with this number belong to a current generation.
    pub(super) fn has(&self, number: i64) -> bool {
        self.storage_tenant_id(Tenant::from_number(number)) == number
    }
}
