//! The tenants with due events, and the place in the queue where a search for due events begins.
//!
//! Delivered events leave dead rows, whose index entries remain until no transaction can see them any more: during an
//! hour-long dump, for an hour. A search from the beginning of the queue would read all of them each time. So it begins
//! at a floor, shortly before the first due event of the last search. Events may become due below the floor, because a
//! lease has ended or a slow server has committed late. The next search from the beginning finds them.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use parcelo_domain::{Millis, Tenant};

use super::{Store, connection::get};
use crate::{StoreError, generations::current_generation};

/// Distance of the floor below the first due event. An event is due at the time of its change's decision, and the
/// commit may be this much later. If it is later still, the next search from the beginning finds the event.
const MARGIN: i64 = Millis::SECOND;
/// Interval of searches from the beginning of the queue. If a server has ended, its events are sent again at most this
/// much later.
const FULL_SEARCH_INTERVAL: i64 = 15 * Millis::SECOND;

/// The floors, below which nothing was due at the last search.
#[derive(Debug, Default)]
pub(super) struct SearchFloors(Mutex<State>);

#[derive(Debug)]
struct State {
    /// Time of the last search from the beginning.
    full_search: Millis,
    by_tenant: HashMap<i64, i64>,
    /// The floor of all other tenants.
    rest: i64,
}

impl Default for State {
    fn default() -> Self {
        Self { full_search: Millis(i64::MIN), by_tenant: HashMap::new(), rest: i64::MIN }
    }
}

impl SearchFloors {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds its floor to each tenant's share of a lease.
    pub(super) fn add_to(&self, shares: Vec<(Tenant, usize)>) -> Vec<(Tenant, usize, i64)> {
        let state = self.state();
        let floor = |tenant: Tenant| state.by_tenant.get(&tenant.number()).copied();
        let with_floor = |(tenant, max)| (tenant, max, floor(tenant).unwrap_or(state.rest));
        shares.into_iter().map(with_floor).collect()
    }

    /// Returns the floors for a search at `now`: the floor of each tenant, and of all others. They are reset
    /// periodically, and when the clock was set back.
    fn at(&self, now: Millis) -> (Vec<i64>, Vec<i64>, i64) {
        let mut state = self.state();
        if now < state.full_search || now >= state.full_search.plus(FULL_SEARCH_INTERVAL) {
            *state = State { full_search: now, ..State::default() };
        }
        let (tenants, floors) = state.by_tenant.iter().unzip();
        (tenants, floors, state.rest)
    }

    /// Records the results of a search: the first due event of each of these tenants, and, if the search found `all`
    /// due events, that the other tenants have none.
    fn record_search(&self, first: &[(i64, i64)], all: bool, now: Millis) {
        let below = |due: i64| due.saturating_sub(MARGIN);
        let mut state = self.state();
        if all {
            state.by_tenant.clear();
            state.rest = below(now.0);
        }
        state.by_tenant.extend(first.iter().map(|(tenant, due)| (*tenant, below(*due))));
    }
}

impl Store {
    pub(crate) async fn tenants_with_due(
        &self,
        now: Millis,
        max: usize,
    ) -> Result<Vec<Tenant>, StoreError> {
        let limit = i64::try_from(max).unwrap_or(i64::MAX);
        let (clock, (tenants, floors, rest)) = (self.lease_clock(now), self.0.floors.at(now));
        let found = self
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
                db.query_map(sql, &[&clock, &tenants, &floors, &rest, &now.0, &limit], |row| {
                    Ok((get::<i64>(row, 0)?, get::<i64>(row, 1)?))
                })
                .await
            })
            .await?;
        self.0.floors.record_search(&found, found.len() < max, now);
        Ok(found.into_iter().map(|(tenant, _)| Tenant::from_number(tenant)).collect())
    }

    /// Returns the time at which leases begin and end: `None` means the database's clock when the statement runs. So a
    /// server with a wrong clock neither takes another server's lease early nor keeps a lease too long.
    #[cfg_attr(
        not(any(test, feature = "test-util")),
        expect(clippy::unused_self, clippy::missing_const_for_fn, reason = "tests choose")
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
        assert_eq!(floors.at(now), (vec![], vec![], i64::MIN), "the first looks at all");
        floors.record_search(&[(2, 900_000)], true, now);
        assert_eq!(floors.at(now.plus(1)), (vec![2], vec![899_000], 999_000));
        assert_eq!(floors_of_2_and_4(&floors), [899_000, 999_000]);
        floors.record_search(&[(2, 950_000)], false, now.plus(2));
        assert_eq!(floors_of_2_and_4(&floors), [949_000, 999_000], "nothing is known of others");
    }

    #[test]
    fn floors_are_reset_periodically_and_when_the_clock_is_set_back() {
        let floors = SearchFloors::default();
        let now = Millis(1_000_000);
        for (moved, rest) in
            [(FULL_SEARCH_INTERVAL - 1, 999_000), (FULL_SEARCH_INTERVAL, i64::MIN), (-1, i64::MIN)]
        {
            floors.at(now.plus(-FULL_SEARCH_INTERVAL));
            floors.at(now);
            floors.record_search(&[], true, now);
            assert_eq!(floors.at(now.plus(moved)).2, rest, "{moved}");
        }
    }
}
