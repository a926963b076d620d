//! Shares the slots for deliveries in flight among the tenants that have events due.

use std::collections::HashMap;

use super::MAX_IN_FLIGHT;
use crate::Tenant;

/// Divisor of the free slots that one endpoint may take: a tenth, so that slots remain for endpoints that respond,
/// however many do not.
const SHARE_DIVISOR: usize = 10;

/// The slots that deliveries in flight take up.
#[derive(Debug)]
pub struct DeliverySlots {
    per_endpoint: usize,
    taken: HashMap<Tenant, usize>,
    total: usize,
}

impl DeliverySlots {
    /// Creates free slots, with a limit for each endpoint.
    pub fn new(per_endpoint: usize) -> Self {
        Self { per_endpoint, taken: HashMap::new(), total: 0 }
    }

    /// Takes a slot for a delivery to the tenant's endpoint.
    pub fn take(&mut self, tenant: Tenant) {
        *self.taken.entry(tenant).or_default() += 1;
        self.total += 1;
    }

    /// Releases the slot of a delivery to the tenant's endpoint.
    pub fn release(&mut self, tenant: Tenant) {
        let Some(taken) = self.taken.get_mut(&tenant) else { return };
        *taken -= 1;
        if *taken == 0 {
            self.taken.remove(&tenant);
        }
        self.total -= 1;
    }

    /// Returns the number of free slots.
    pub const fn free(&self) -> usize {
        MAX_IN_FLIGHT.saturating_sub(self.total)
    }

    /// Returns the number of endpoints with deliveries in flight.
    pub fn busy_endpoints(&self) -> usize {
        self.taken.len()
    }

    /// Returns how many events of each waiting tenant may be sent now, at most `limit` together. Tenants with the
    /// fewest deliveries in flight come first; ties keep the order of `waiting`.
    pub fn allocate(&self, waiting: &[Tenant], limit: usize) -> Vec<(Tenant, usize)> {
        let taken = |tenant| self.taken.get(tenant).copied().unwrap_or(0);
        let mut all: Vec<_> = waiting.iter().map(|tenant| (*tenant, taken(tenant), 0)).collect();
        let (mut free, mut left) = (self.free(), limit.min(self.free()));
        for level in 0..self.per_endpoint {
            for (_, taken, more) in &mut all {
                if left == 0 || level >= (free / SHARE_DIVISOR).max(1) {
                    break;
                }
                if *taken + *more == level {
                    *more += 1;
                    free -= 1;
                    left -= 1;
                }
            }
        }
        all.into_iter()
            .filter(|(.., more)| *more > 0)
            .map(|(tenant, _, more)| (tenant, more))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::webhooks::MAX_IN_FLIGHT_PER_ENDPOINT;

    fn tenants(count: i64) -> Vec<Tenant> {
        (0..count).map(Tenant::from_number).collect()
    }

    /// Takes shares until no slot is left for the waiting tenants.
    fn fill(slots: &mut DeliverySlots, waiting: &[Tenant]) {
        while let shares = slots.allocate(waiting, 256)
            && !shares.is_empty()
        {
            for (tenant, more) in shares {
                (0..more).for_each(|_| slots.take(tenant));
            }
        }
    }

    #[test]
    fn a_few_endpoints_get_ten_slots_each() {
        let mut slots = DeliverySlots::new(MAX_IN_FLIGHT_PER_ENDPOINT);
        let shares: Vec<_> = tenants(3).into_iter().map(|tenant| (tenant, 10)).collect();
        assert_eq!(slots.allocate(&tenants(3), 256), shares);
        fill(&mut slots, &tenants(3));
        assert_eq!(slots.allocate(&tenants(3), 256), []);
        slots.release(tenants(3)[1]);
        assert_eq!(slots.allocate(&tenants(3), 256), [(tenants(3)[1], 1)]);
    }

    #[test]
    fn every_tenant_gets_one_slot_before_any_gets_two() {
        let slots = DeliverySlots::new(MAX_IN_FLIGHT_PER_ENDPOINT);
        let shares = slots.allocate(&tenants(300), 256);
        assert!(shares.iter().all(|(_, count)| *count == 1), "{shares:?}");
        assert_eq!(shares.len(), 256);
        let shares = slots.allocate(&tenants(200), 256);
        assert_eq!(shares.iter().map(|(_, count)| count).sum::<usize>(), 256);
        assert!(shares.iter().all(|(_, count)| (1..=2).contains(count)), "{shares:?}");
    }

    #[test]
    fn tenants_with_nothing_in_flight_come_first() {
        let mut slots = DeliverySlots::new(MAX_IN_FLIGHT_PER_ENDPOINT);
        let all = tenants(3);
        (0..5).for_each(|_| slots.take(all[0]));
        slots.take(all[1]);
        assert_eq!(slots.allocate(&all, 1), [(all[2], 1)]);
        assert_eq!(slots.allocate(&all, 3), [(all[1], 1), (all[2], 2)]);
    }

    #[test]
    fn hanging_endpoints_leave_slots_for_others() {
        let mut slots = DeliverySlots::new(MAX_IN_FLIGHT_PER_ENDPOINT);
        let hanging = tenants(200);
        fill(&mut slots, &hanging);
        let peak = hanging.iter().map(|tenant| slots.taken[tenant]).max();
        assert!(
            peak < Some(MAX_IN_FLIGHT_PER_ENDPOINT) && slots.free() >= 40,
            "{peak:?}, {}",
            slots.free()
        );
        fill(&mut slots, &tenants(5_000));
        assert_eq!(slots.free(), 0, "all are taken, and no more");
        assert_eq!(slots.allocate(&tenants(9_999), 256), []);
    }

    #[test]
    fn with_one_slot_the_next_delivery_waits() {
        let mut slots = DeliverySlots::new(1);
        let one = tenants(1);
        assert_eq!(slots.allocate(&one, 256), [(one[0], 1)]);
        slots.take(one[0]);
        assert_eq!(slots.allocate(&one, 256), []);
        slots.release(one[0]);
        assert_eq!((slots.busy_endpoints(), slots.free()), (0, MAX_IN_FLIGHT));
        assert_eq!(slots.allocate(&one, 256), [(one[0], 1)]);
    }
}
