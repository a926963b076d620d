//! The activity of an account: counts of parcels by day, state and country, and how many are late.

use parcelo_types::CountryCode;

use super::{State, delivery};
use crate::Millis;

/// The number of parcels that were created on one day and are in one state now. A parcel voided today counts under the
/// day of its creation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ParcelCount {
    /// The day of creation in UTC, in days since 1970-01-01.
    pub created_day: i64,
    /// The state that the parcels are in now.
    pub state: State,
    /// The destination country.
    pub country: CountryCode,
    /// The number of parcels.
    pub parcels: u64,
}

/// Returns the day that contains a time.
pub const fn epoch_day(at: Millis) -> i64 {
    at.0.div_euclid(Millis::DAY)
}

/// Returns the time at which a day begins.
pub const fn day_start(day: i64) -> Millis {
    Millis(day.saturating_mul(Millis::DAY))
}

/// Counts the late parcels by state. Because the counts have no times of day, a parcel is late once every parcel of its
/// day is late: at most a day after its promised day has passed at the destination. A parcel that is out for delivery
/// is not late, because it arrives today.
pub fn count_late_parcels(counts: &[ParcelCount], now: Millis) -> Vec<(State, u64)> {
    let is_late = |count: &&ParcelCount| {
        let last_order = day_start(count.created_day + 1).plus(-1);
        let promised = delivery::promised_day(count.country, last_order);
        promised < delivery::zones(count.country).earliest_date(now).to_epoch_days()
    };
    let waiting = [
        State::LabelGenerated,
        State::ManifestSubmitted,
        State::PickedUp,
        State::CustomsClearance,
        State::InTransit,
    ];
    let late_in = |state| {
        let late = counts.iter().filter(|count| count.state == state).filter(is_late);
        (state, late.map(|count| count.parcels).sum())
    };
    waiting.map(late_in).into_iter().filter(|(_, parcels)| *parcels > 0).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_parcel_is_late_once_its_promised_day_is_over_everywhere() {
        let at = |text: &str| {
            Millis(text.parse::<chrono::DateTime<chrono::Utc>>().unwrap().timestamp_millis())
        };
        let created_day = epoch_day(at("2026-01-10T15:05:00Z"));
        let count = |state, country| ParcelCount { created_day, state, country, parcels: 2 };
        let ecuador = count(State::InTransit, CountryCode::EC);
        // Promised for January 18, which ends in the Galápagos at 06:00 UTC.
        assert_eq!(count_late_parcels(&[ecuador], at("2026-01-19T05:59:59Z")), []);
        assert_eq!(
            count_late_parcels(&[ecuador], at("2026-01-19T06:00:00Z")),
            [(State::InTransit, 2)]
        );
        // Promised for January 15 however late on the day of the order, and over in Honolulu at 10:00 UTC.
        let usa = count(State::InTransit, CountryCode::US);
        assert_eq!(count_late_parcels(&[usa], at("2026-01-16T09:59:59Z")), []);
        assert_eq!(count_late_parcels(&[usa], at("2026-01-16T10:00:00Z")), [(State::InTransit, 2)]);
        let now = at("2026-03-01T00:00:00Z");
        let over = [State::Delivered, State::Voided, State::CustomsHold, State::OutForDelivery];
        assert_eq!(count_late_parcels(&over.map(|state| count(state, CountryCode::EC)), now), []);
        let many = [
            count(State::InTransit, CountryCode::MX),
            count(State::PickedUp, CountryCode::EC),
            ecuador,
        ];
        assert_eq!(count_late_parcels(&many, now), [(State::PickedUp, 2), (State::InTransit, 4)]);
    }

    #[test]
    fn a_day_begins_at_midnight_also_before_1970() {
        for day in [-2, -1, 0, 1, 20_000] {
            let begin = day_start(day);
            assert_eq!([epoch_day(begin.plus(-1)), epoch_day(begin)], [day - 1, day]);
        }
    }
}
