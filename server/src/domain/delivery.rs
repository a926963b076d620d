//! When a parcel is promised to arrive, and whose day it is at the destination (docs/api.md, Conventions, Arrival).

use chrono::{DateTime, Days, FixedOffset, NaiveDate, Offset, TimeZone, Utc};
use parcelo::CountryCode;

use crate::clock::Millis;

/// A destination: country, days on the way, hours that `estimatedDelivery` is behind UTC, and its zones.
struct Destination(&'static str, u64, i32, Zones);

/// Hours that a country is behind UTC, in two of its zones. None of these countries that has one zone has summer time;
/// of the others, offsets on both sides are right where a database of zones would still need an address's own.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Zones {
    /// Dates are this zone's. From 8 to 21 o'clock, when parcels are delivered, its date is that of all other zones
    /// of the country, in summer too: so `US` and `CA`, which span five hours and more, have one in the west.
    dates: i32,
    /// A day has passed when it has in the last of the country's zones: nothing is late before that.
    last: i32,
}

/// Their second zones are the Galápagos, Tijuana, Honolulu and Vancouver.
const DESTINATIONS: [Destination; 6] = [
    Destination("EC", 8, 5, Zones { dates: 5, last: 6 }),
    Destination("CO", 8, 5, Zones { dates: 5, last: 5 }),
    Destination("MX", 6, 6, Zones { dates: 6, last: 8 }),
    Destination("PE", 10, 5, Zones { dates: 5, last: 5 }),
    Destination("US", 5, 0, Zones { dates: 8, last: 10 }),
    Destination("CA", 6, 0, Zones { dates: 8, last: 8 }),
];
/// Dates are in UTC, and a day has passed when it has on the whole Earth.
const ELSEWHERE: Destination = Destination("", 12, 0, Zones { dates: 0, last: 12 });

/// The promised day at the destination, in days since 1970 began: the local date of the order,
/// and the days on the way.
pub(crate) fn promised_day(country: CountryCode, created: Millis) -> i32 {
    let destination = destination(country);
    (date_in(destination.2, created) + Days::new(destination.1)).to_epoch_days()
}

/// The end of a promised day, with the destination's own offset.
pub(crate) fn estimated_delivery(country: CountryCode, day: i32) -> DateTime<FixedOffset> {
    let last_second = NaiveDate::from_epoch_days(day).and_then(|date| date.and_hms_opt(23, 59, 59));
    behind_utc(destination(country).2)
        .from_local_datetime(&last_second.unwrap_or_default())
        .earliest()
        .unwrap_or_default()
}

fn destination(country: CountryCode) -> &'static Destination {
    DESTINATIONS.iter().find(|known| known.0 == country.as_str()).unwrap_or(&ELSEWHERE)
}

/// The zones by which "today" and "passed" are judged at a destination.
pub(crate) fn zones(country: CountryCode) -> Zones {
    destination(country).3
}

impl Zones {
    /// The date of a moment.
    pub(crate) fn date_of(self, at: Millis) -> NaiveDate {
        date_in(self.dates, at)
    }

    /// The earliest date that it is anywhere in the country.
    pub(crate) fn earliest_date(self, now: Millis) -> NaiveDate {
        date_in(self.last, now)
    }
}

fn date_in(hours: i32, at: Millis) -> NaiveDate {
    at.to_utc().with_timezone(&behind_utc(hours)).date_naive()
}

fn behind_utc(hours: i32) -> FixedOffset {
    FixedOffset::west_opt(hours * 3_600).unwrap_or(Utc.fix())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_promise_counts_from_the_local_date_and_ends_its_day_there() {
        let table = [
            ("EC", "2026-01-10T15:05:00Z", "2026-01-18T23:59:59-05:00"),
            ("EC", "2026-01-10T03:00:00Z", "2026-01-17T23:59:59-05:00"),
            ("MX", "2026-01-10T15:05:00Z", "2026-01-16T23:59:59-06:00"),
            ("PE", "2026-02-25T15:05:00Z", "2026-03-07T23:59:59-05:00"),
            ("US", "2026-12-30T15:05:00Z", "2027-01-04T23:59:59+00:00"),
            ("JP", "2026-01-10T23:59:59Z", "2026-01-22T23:59:59+00:00"),
        ];
        for (country, created, promised) in table {
            let country = CountryCode::parse(country).unwrap();
            let created = Millis::from(DateTime::parse_from_rfc3339(created).unwrap().to_utc());
            let day = promised_day(country, created);
            assert_eq!(estimated_delivery(country, day).to_rfc3339(), promised, "{country}");
        }
    }
}
