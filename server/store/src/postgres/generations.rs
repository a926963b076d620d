//! The current generations of sandboxes, for writers. They are read under a lock that a reset waits for, so that
//! nothing is written into an ended generation, and only its reset removes anything from it.

use std::collections::{BTreeSet, HashMap};

use futures_util::future::try_join;
use parcelo_domain::Tenant;

use super::{
    connection::{Connection, Params, get},
    error::DbResult,
};
use crate::generations::is_current;

/// Condition that a row is of a current generation.
pub(super) const IS_CURRENT: &str = is_current!("tenant");

/// Builds the statement that adds rows for the affected sandboxes that have none, because only a row can be locked, and
/// the one that reads and locks the rows. A reset's UPDATE waits for the lock.
macro_rules! statements {
    ($affected:literal) => {
        [
            concat!(
                "INSERT INTO generations (home, current) SELECT home, home FROM ",
                $affected,
                " AS affected WHERE NOT EXISTS (SELECT 1 FROM generations AS g WHERE g.home = affected.home) \
                 ORDER BY home ON CONFLICT DO NOTHING"
            ),
            concat!(
                "SELECT home, current FROM generations WHERE home = ANY (ARRAY ",
                $affected,
                ") ORDER BY home FOR SHARE"
            ),
        ]
    };
}

/// For the sandboxes `$1`.
const OF_SANDBOXES: [&str; 2] = statements!("(SELECT unnest($1::bigint[]) AS home)");

/// For the sandboxes `$1` and the owners of the parcels `$2`. Groups that only create orders have no such parcels, and
/// on a new database these statements read the whole table of parcels until PostgreSQL has statistics.
const OF_SANDBOXES_AND_PARCELS: [&str; 2] = statements!(
    "(SELECT unnest($1::bigint[]) AS home UNION SELECT tenant & 4294967295 FROM parcels \
     WHERE id = ANY($2) AND tenant % 2 = 1)"
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
        let both: Params<'_> = &[&sandboxes, &parcels];
        let ([insert_missing, lock_current], params) = if parcels.is_empty() {
            (OF_SANDBOXES, both.split_at(1).0)
        } else {
            (OF_SANDBOXES_AND_PARCELS, both)
        };
        let (_, locked) = try_join(
            db.execute(insert_missing, params),
            db.query_map(lock_current, params, |row| Ok((get(row, 0)?, get(row, 1)?))),
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
