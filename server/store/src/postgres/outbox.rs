//! The outbox of several servers: the subscriptions that a group of writes has loaded, and the search for stranded
//! events, which wait for an earlier event that does not exist.

use std::{collections::HashMap, sync::atomic::Ordering};

use parcelo_domain::{Millis, Tenant, webhooks::UNBLOCKED_AFTER_FAILURES};

use super::{
    Store,
    connection::{Connection, get},
    error::DbResult,
    generations::IS_CURRENT,
};
use crate::{
    StoreError,
    outbox::{self, Subscription},
    sql::Sql,
};

/// Number of waiting events that one search for stranded events checks.
const STRANDED_PER_SEARCH: usize = 1_000;

/// The subscriptions of tenants in a transaction.
#[derive(Debug, Default)]
pub(super) struct Subscriptions(HashMap<i64, Option<Subscription>>);

impl Subscriptions {
    /// Loads the subscriptions of these tenants that are not loaded yet, and locks them. `lock` is `SHARE`, or `UPDATE`
    /// in a transaction that may turn an endpoint off: if two transactions shared the lock of a row and then needed it
    /// exclusively, they would deadlock.
    pub(super) async fn load(
        &mut self,
        db: &Connection,
        lock: &str,
        tenants: Vec<Tenant>,
    ) -> DbResult<()> {
        let mut unknown: Vec<i64> = tenants.into_iter().map(Tenant::number).collect();
        unknown.retain(|tenant| !self.0.contains_key(tenant));
        unknown.sort_unstable();
        unknown.dedup();
        let loaded = outbox::subscriptions(Sql::Postgres(db), &unknown, lock).await?;
        self.0.extend(unknown.into_iter().map(|tenant| (tenant, None)));
        let loaded = loaded.into_iter();
        self.0.extend(loaded.map(|(tenant, subscription)| (tenant, Some(subscription))));
        Ok(())
    }

    /// Returns the tenant's subscription, which must be loaded, or `None` without an endpoint.
    pub(super) fn get(&self, tenant: Tenant) -> Option<Subscription> {
        self.0.get(&tenant.number()).copied().flatten()
    }
}

impl Store {
    pub async fn release_stranded(&self, now: Millis) -> Result<u64, StoreError> {
        let after = self.0.stranded_searched_to.load(Ordering::Relaxed);
        let page = self.read(async move |db| find_waiting_events(db, after).await).await?;
        let next = if page.len() < STRANDED_PER_SEARCH { None } else { page.last() };
        self.0.stranded_searched_to.store(next.map_or(0, |(row, _)| *row), Ordering::Relaxed);
        let mut parcels: Vec<i64> = page.into_iter().filter_map(|(_, parcel)| parcel).collect();
        parcels.sort_unstable();
        parcels.dedup();
        if parcels.is_empty() {
            return Ok(0);
        }
        let released = self
            .call(async move |db| {
                let db = Sql::Postgres(db);
                outbox::lock_parcels(db, &parcels).await?;
                let parcels: Vec<_> = parcels.iter().map(|parcel| (*parcel, now)).collect();
                Ok(outbox::release(db, &parcels).await?)
            })
            .await?;
        self.0.state.wake.notify_one();
        Ok(released)
    }
}

/// Returns a page of the waiting events after the row `after`, each with its parcel if the event is stranded.
async fn find_waiting_events(db: &Connection, after: i64) -> DbResult<Vec<(i64, Option<i64>)>> {
    let sql = format!(
        "SELECT w.id, CASE WHEN earlier.is_there IS NULL THEN w.parcel END \
         FROM (SELECT id, parcel FROM outbox WHERE state = 0 AND id > $1 AND {IS_CURRENT} \
         ORDER BY id LIMIT $3) AS w LEFT JOIN LATERAL (SELECT true AS is_there FROM outbox \
         WHERE parcel = w.parcel AND state = 1 AND attempts < $2 LIMIT 1) AS earlier ON true \
         ORDER BY w.id"
    );
    let max = i64::try_from(STRANDED_PER_SEARCH).unwrap_or(i64::MAX);
    db.query_map(&sql, &[&after, &i64::from(UNBLOCKED_AFTER_FAILURES), &max], |row| {
        Ok((get(row, 0)?, get(row, 1)?))
    })
    .await
}
