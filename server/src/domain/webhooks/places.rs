//! Who sends next when many have something due: the places for deliveries on their way, shared out.

use std::collections::HashMap;

use super::IN_FLIGHT_IN_ALL;
use crate::domain::Tenant;

/// An endpoint may take a tenth of the places that are free: however many endpoints hang, some are
/// left for one that answers.
const SHARE: usize = 10;

/// The places that deliveries on their way take up.
#[derive(Debug)]
pub struct Places {
    at_one: usize,
    taken: HashMap<Tenant, usize>,
    in_all: usize,
}

impl Places {
    /// All of them free, with at most so many at one endpoint.
    pub fn new(at_one: usize) -> Self {
        Self { at_one, taken: HashMap::new(), in_all: 0 }
    }

    /// A delivery to the tenant's endpoint is on its way.
    pub fn take(&mut self, tenant: Tenant) {
        *self.taken.entry(tenant).or_default() += 1;
        self.in_all += 1;
    }

    /// One to the tenant's endpoint is over.
    pub fn leave(&mut self, tenant: Tenant) {
        let Some(taken) = self.taken.get_mut(&tenant) else { return };
        *taken -= 1;
        if *taken == 0 {
            self.taken.remove(&tenant);
        }
        self.in_all -= 1;
    }

    /// How many are free.
    pub const fn free(&self) -> usize {
        IN_FLIGHT_IN_ALL.saturating_sub(self.in_all)
    }

    /// How many endpoints have something on its way.
    pub fn busy(&self) -> usize {
        self.taken.len()
    }

    /// How many events of each waiting tenant may go now, `most` together. Who has the fewest on
    /// their way comes first; among equals, the order of `waiting`.
    pub fn share_out(&self, waiting: &[Tenant], most: usize) -> Vec<(Tenant, usize)> {
        let taken = |tenant| self.taken.get(tenant).copied().unwrap_or(0);
        let mut all: Vec<_> = waiting.iter().map(|tenant| (*tenant, taken(tenant), 0)).collect();
        let (mut free, mut left) = (self.free(), most.min(self.free()));
        for level in 0..self.at_one {
            for (_, taken, more) in &mut all {
                if left == 0 || level >= (free / SHARE).max(1) {
                    break;
                }
                if *taken + *more == level {
                    *more += 1;
                    free -= 1;
                    left -= 1;
                }
            }
        }
        all.into_iter().filter(|(.., more)| *more > 0).map(|(one, _, more)| (one, more)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::webhooks::IN_FLIGHT;

    fn tenants(count: i64) -> Vec<Tenant> {
        (0..count).map(Tenant::from_number).collect()
    }

    /// Takes what is shared out, as often as a delivery waits for it.
    fn fill(places: &mut Places, waiting: &[Tenant]) {
        while let shares = places.share_out(waiting, 256)
            && !shares.is_empty()
        {
            for (tenant, more) in shares {
                (0..more).for_each(|_| places.take(tenant));
            }
        }
    }

    #[test]
    fn one_endpoint_has_ten_at_most_and_a_few_are_served_alike() {
        let mut places = Places::new(IN_FLIGHT);
        let shares: Vec<_> = tenants(3).into_iter().map(|tenant| (tenant, 10)).collect();
        assert_eq!(places.share_out(&tenants(3), 256), shares);
        fill(&mut places, &tenants(3));
        assert_eq!(places.share_out(&tenants(3), 256), []);
        places.leave(tenants(3)[1]);
        assert_eq!(places.share_out(&tenants(3), 256), [(tenants(3)[1], 1)]);
    }

    #[test]
    fn each_gets_one_before_anybody_gets_two() {
        let places = Places::new(IN_FLIGHT);
        let shares = places.share_out(&tenants(300), 256);
        assert!(shares.iter().all(|(_, more)| *more == 1), "{shares:?}");
        assert_eq!(shares.len(), 256);
        let shares = places.share_out(&tenants(200), 256);
        assert_eq!(shares.iter().map(|(_, more)| more).sum::<usize>(), 256);
        assert!(shares.iter().all(|(_, more)| (1..=2).contains(more)), "{shares:?}");
    }

    #[test]
    fn who_has_nothing_on_its_way_comes_before_who_has() {
        let mut places = Places::new(IN_FLIGHT);
        let all = tenants(3);
        (0..5).for_each(|_| places.take(all[0]));
        places.take(all[1]);
        assert_eq!(places.share_out(&all, 1), [(all[2], 1)]);
        assert_eq!(places.share_out(&all, 3), [(all[1], 1), (all[2], 2)]);
    }

    #[test]
    fn however_many_hang_there_are_places_for_others() {
        let mut places = Places::new(IN_FLIGHT);
        let hanging = tenants(200);
        fill(&mut places, &hanging);
        let most = hanging.iter().map(|tenant| places.taken[tenant]).max();
        assert!(most < Some(IN_FLIGHT) && places.free() >= 40, "{most:?}, {}", places.free());
        fill(&mut places, &tenants(5_000));
        assert_eq!(places.free(), 0, "and never more than there are");
        assert_eq!(places.share_out(&tenants(9_999), 256), []);
    }

    #[test]
    fn where_one_goes_at_a_time_the_next_waits_for_it() {
        let mut places = Places::new(1);
        let one = tenants(1);
        assert_eq!(places.share_out(&one, 256), [(one[0], 1)]);
        places.take(one[0]);
        assert_eq!(places.share_out(&one, 256), []);
        places.leave(one[0]);
        assert_eq!((places.busy(), places.share_out(&one, 256).len()), (0, 1));
    }
}
