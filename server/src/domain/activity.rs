//! What an account's parcels have been doing: counts by day, state and country, and which of them are late.

use parcelo::CountryCode;

use super::{State, delivery};
use crate::clock::Millis;

/// How many of the parcels created on a day are in a state now: a parcel voided today counts under the day it was
/// created.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ParcelCount {
    /// The day of creation, since 1970 began, in UTC.
    pub created_day: i64,
    /// The state.
    pub state: State,
    /// The destination.
    pub country: CountryCode,
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

/// How many parcels are late, by state, of those created on the same days. A count has no times of day: a parcel is
/// late when every parcel of its day is, which is at most a day after its own promised day has passed at the
/// destination. One that is out for delivery is not among them: it arrives today.
pub(crate) fn late(counted: &[ParcelCount], now: Millis) -> Vec<(State, u64)> {
    let is_late = |one: &&ParcelCount| {
        let last_order = begin_of(one.created_day + 1).plus(-1);
        let promised = delivery::promised_day(one.country, last_order);
        promised < delivery::zones(one.country).earliest_date(now).to_epoch_days()
    };
    let waiting = [
        State::LabelGenerated,
        State::ManifestSubmitted,
        State::PickedUp,
        State::CustomsClearance,
        State::InTransit,
    ];
    let late_in = |state| {
        let of_it = counted.iter().filter(|one| one.state == state).filter(is_late);
        (state, of_it.map(|one| one.parcels).sum())
    };
    waiting.map(late_in).into_iter().filter(|(_, parcels)| *parcels > 0).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_parcel_is_late_when_the_promised_day_of_its_day_has_passed_in_all_of_its_country() {
        let at = |text: &str| {
            Millis(text.parse::<chrono::DateTime<chrono::Utc>>().unwrap().timestamp_millis())
        };
        let created_day = day_of(at("2026-01-10T15:05:00Z"));
        let one = |state, country| ParcelCount { created_day, state, country, parcels: 2 };
        let ecuador = one(State::InTransit, CountryCode::EC);
        // Promised for January 18, which ends in the Galápagos at 6 o'clock UTC.
        assert_eq!(late(&[ecuador], at("2026-01-19T05:59:59Z")), []);
        assert_eq!(late(&[ecuador], at("2026-01-19T06:00:00Z")), [(State::InTransit, 2)]);
        let now = at("2026-03-01T00:00:00Z");
        let over = [State::Delivered, State::Voided, State::CustomsHold, State::OutForDelivery];
        assert_eq!(late(&over.map(|state| one(state, CountryCode::EC)), now), []);
        let many = [
            one(State::InTransit, CountryCode::MX),
            one(State::PickedUp, CountryCode::EC),
            ecuador,
        ];
        assert_eq!(late(&many, now), [(State::PickedUp, 2), (State::InTransit, 4)]);
    }

    #[test]
    fn a_day_begins_at_midnight_also_before_1970() {
        for day in [-2, -1, 0, 1, 20_000] {
            let begin = begin_of(day);
            assert_eq!([day_of(begin.plus(-1)), day_of(begin)], [day - 1, day]);
        }
    }
}
