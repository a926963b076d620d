//! Data that the writes of one transaction keep in memory until it ends: the counts of parcels, and the tenants'
//! subscriptions. So the data is read or written once per commit, not once per order. It is dropped with its
//! transaction, so a rollback leaves nothing behind.

use std::collections::HashMap;

use parcelo_domain::Tenant;
use parcelo_types::Environment;
use rusqlite::Connection;

use super::counts::PendingCounts;
use crate::{
    generations::current_generation,
    outbox::{self, Subscription},
    sql::{Sql, poll_now},
};

/// The pending data of one transaction.
#[derive(Default)]
pub(super) struct Pending {
    pub(super) counts: PendingCounts,
    subscriptions: HashMap<i64, Option<Subscription>>,
    generations: HashMap<i64, i64>,
}

impl Pending {
    /// Returns the tenant's subscription, looked up once, or `None` if the tenant has no endpoint.
    pub(super) fn subscription(
        &mut self,
        db: &Connection,
        tenant: Tenant,
    ) -> rusqlite::Result<Option<Subscription>> {
        if let Some(known) = self.subscriptions.get(&tenant.number()) {
            return Ok(*known);
        }
        let found = poll_now(outbox::subscriptions(Sql::Sqlite(db), &[tenant.number()], ""))?;
        let found = found.first().map(|(_, subscription)| *subscription);
        self.subscriptions.insert(tenant.number(), found);
        Ok(found)
    }

    /// Returns the number of the tenant's current generation, looked up once.
    pub(super) fn generation(&mut self, db: &Connection, tenant: Tenant) -> rusqlite::Result<i64> {
        let own_number = tenant.number();
        if let Some(known) = self.generations.get(&own_number) {
            return Ok(*known);
        }
        let sql = concat!("SELECT ", current_generation!("?1"));
        let number = match tenant.environment {
            Environment::Production => own_number,
            Environment::Sandbox => {
                db.prepare_cached(sql)?.query_row([own_number], |row| row.get(0))?
            }
        };
        self.generations.insert(own_number, number);
        Ok(number)
    }

    /// Writes the pending data: before the commit, and before a write that may itself read or change the same rows.
    pub(super) fn write(self, db: &Connection) -> rusqlite::Result<()> {
        self.counts.write(db)
    }
}
