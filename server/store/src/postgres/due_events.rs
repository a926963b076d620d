//! Finds the tenants with due events, and tracks where in the queue the next search begins.
//!
//! Delivered events leave dead rows. Their index entries remain while any transaction can still see them: during an
//! hour-long dump, for an hour. A search from the beginning of the queue would read all these entries each time, so a
//! search begins at a floor, shortly before the first due event of the previous search. An event may become due below
//! the floor when a lease ends or a slow server commits late; the next search from the beginning finds it.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use parcelo_domain::{Millis, Tenant};

use super::{Store, connection::get};
use crate::{StoreError, generations::current_generation};

/// Distance of the floor below the first due event. An event is due at the time at which its change was decided, and is
/// usually committed within this margin. An event that is committed later is found by the next search from the
/// beginning.
const MARGIN: i64 = Millis::SECOND;
/// Interval between searches from the beginning of the queue. When the leases of a server that has ended expire, their
/// events are found within this time.
const FULL_SEARCH_INTERVAL: i64 = 15 * Millis::SECOND;

/// The times before which no event was due at the last search.
#[derive(Debug, Default)]
pub(super) struct SearchFloors(Mutex<State>);

#[derive(Debug)]
struct State {
    /// Time of the last search from the beginning.
    full_search: Millis,
    /// The floor of each tenant that had due events.
    by_tenant: HashMap<i64, i64>,
    /// The floor of all other tenants.
    default_floor: i64,
}

impl Default for State {
    fn default() -> Self {
        Self { full_search: Millis(i64::MIN), by_tenant: HashMap::new(), default_floor: i64::MIN }
    }
}

impl SearchFloors {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds to each tenant's share of a lease the floor of that tenant.
    pub(super) fn add_to(&self, shares: Vec<(Tenant, usize)>) -> Vec<(Tenant, usize, i64)> {
        let state = self.state();
        let floor = |tenant: Tenant| state.by_tenant.get(&tenant.number()).copied();
        let with_floor =
            |(tenant, max)| (tenant, max, floor(tenant).unwrap_or(state.default_floor));
        shares.into_iter().map(with_floor).collect()
    }

    /// Returns, for a search at `now`, the tenants that have a floor, their floors, and the floor of all other tenants.
    /// Floors are reset periodically, and when the clock is set back.
    fn at(&self, now: Millis) -> (Vec<i64>, Vec<i64>, i64) {
        let mut state = self.state();
        if now < state.full_search || now >= state.full_search.plus(FULL_SEARCH_INTERVAL) {
            *state = State { full_search: now, ..State::default() };
        }
        let (tenants, floors) = state.by_tenant.iter().unzip();
        (tenants, floors, state.default_floor)
    }

    /// Records the result of a search: the first due event of each tenant that has one. If the search `is_complete`,
    /// the other tenants have none.
    fn record_search(&self, first_due: &[(i64, i64)], is_complete: bool, now: Millis) {
        let below = |due: i64| due.saturating_sub(MARGIN);
        let mut state = self.state();
        if is_complete {
            state.by_tenant.clear();
            state.default_floor = below(now.0);
        }
        state.by_tenant.extend(first_due.iter().map(|(tenant, due)| (*tenant, below(*due))));
    }
}

impl Store {
    pub(crate) async fn tenants_with_due(
        &self,
        now: Millis,
        max: usize,
    ) -> Result<Vec<Tenant>, StoreError> {
        let limit = i64::try_from(max).unwrap_or(i64::MAX);
        let (clock, (tenants, floors, default_floor)) =
            (self.lease_clock(now), self.0.floors.at(now));
        let first_due = self
            .read(async move |db| {
                // One index lookup for each endpoint, however many events wait.
                let sql = concat!(
                    "SELECT e.tenant, first.due FROM webhook_endpoints AS e \
                     LEFT JOIN unnest($2::bigint[], $3::bigint[]) AS f (tenant, floor) \
                     ON f.tenant = e.tenant CROSS JOIN LATERAL \
                     (SELECT due FROM outbox WHERE tenant = ",
                    current_generation!("e.tenant"),
                    " AND state = 1 AND due >= coalesce(f.floor, $4) AND due <= $5 \
                     AND (lease_until IS NULL OR lease_until <= coalesce($1::bigint, \
                     (extract(epoch FROM now()) * 1000)::bigint)) ORDER BY due LIMIT 1) AS first \
                     WHERE e.enabled ORDER BY first.due LIMIT $6"
                );
                db.query_map(
                    sql,
                    &[&clock, &tenants, &floors, &default_floor, &now.0, &limit],
                    |row| Ok((get::<i64>(row, 0)?, get::<i64>(row, 1)?)),
                )
                .await
            })
            .await?;
        self.0.floors.record_search(&first_due, first_due.len() < max, now);
        Ok(first_due.into_iter().map(|(tenant, _)| Tenant::from_number(tenant)).collect())
    }

    /// Returns the time by which leases begin and end, or `None` for the database's clock. By the database's clock, a
    /// server whose own clock is wrong neither takes over another server's lease early nor keeps a lease too long.
    #[cfg_attr(
        not(any(test, feature = "test-util")),
        expect(clippy::unused_self, clippy::missing_const_for_fn, reason = "only tests choose")
    )]
    pub(crate) fn lease_clock(&self, now: Millis) -> Option<i64> {
        #[cfg(any(test, feature = "test-util"))]
        if !self.0.leases_by_database.load(std::sync::atomic::Ordering::Relaxed) {
            return Some(now.0);
        }
        let _ = now;
        None
    }

    /// Makes leases begin and end by the database's clock, as they do outside tests.
    #[cfg(test)]
    pub(crate) fn lease_by_database_clock(&self) {
        self.0.leases_by_database.store(true, std::sync::atomic::Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the floors of the tenants 2 and 4.
    fn floors_of_2_and_4(floors: &SearchFloors) -> Vec<i64> {
        let shares = [2, 4].map(|tenant| (Tenant::from_number(tenant), 1)).to_vec();
        floors.add_to(shares).into_iter().map(|(_, _, floor)| floor).collect()
    }

    #[test]
    fn a_search_begins_shortly_before_the_first_due_event() {
        let floors = SearchFloors::default();
        let now = Millis(1_000_000);
        assert_eq!(floors.at(now), (vec![], vec![], i64::MIN), "the first search has no floor");
        floors.record_search(&[(2, 900_000)], true, now);
        assert_eq!(floors.at(now.plus(1)), (vec![2], vec![899_000], 999_000));
        assert_eq!(floors_of_2_and_4(&floors), [899_000, 999_000]);
        floors.record_search(&[(2, 950_000)], false, now.plus(2));
        assert_eq!(floors_of_2_and_4(&floors), [949_000, 999_000], "an incomplete search keeps it");
    }

    #[test]
    fn floors_are_reset_periodically_and_when_the_clock_is_set_back() {
        let floors = SearchFloors::default();
        let now = Millis(1_000_000);
        for (difference, default_floor) in
            [(FULL_SEARCH_INTERVAL - 1, 999_000), (FULL_SEARCH_INTERVAL, i64::MIN), (-1, i64::MIN)]
        {
            floors.at(now.plus(-FULL_SEARCH_INTERVAL));
            floors.at(now);
            floors.record_search(&[], true, now);
            assert_eq!(floors.at(now.plus(difference)).2, default_floor, "{difference}");
        }
    }
}
