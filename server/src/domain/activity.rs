//! What an account's parcels have been doing: counts by day and state.

use super::State;
use crate::clock::Millis;

/// How many of the parcels created on a day are in a state now: a parcel voided today counts under the day it was
/// created.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ParcelCount {
    /// The day of creation, since 1970 began, in UTC.
    pub created_day: i64,
    /// The state.
    pub state: State,
    /// How many.
    pub parcels: u64,
}

/// The day in which a moment lies.
pub(crate) const fn day_of(at: Millis) -> i64 {
    at.0.div_euclid(Millis::DAY)
}

/// When a day begins.
pub(crate) const fn begin_of(day: i64) -> Millis {
    Millis(day.saturating_mul(Millis::DAY))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_begins_at_midnight_also_before_1970() {
        for day in [-2, -1, 0, 1, 20_000] {
            let begin = begin_of(day);
            assert_eq!([day_of(begin.plus(-1)), day_of(begin)], [day - 1, day]);
        }
    }
}
