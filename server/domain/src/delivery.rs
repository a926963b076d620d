//! The promised day of a parcel's arrival, and the dates at its destination (docs/api.md, Conventions, Arrival).

use chrono::{DateTime, Days, FixedOffset, NaiveDate, Offset, TimeZone, Utc};
use parcelo_types::CountryCode;

use crate::Millis;

/// A destination with its delivery times.
struct Destination {
    country: &'static str,
    transit_days: u64,
    /// The hours that `estimatedDelivery` is behind UTC.
    hours_behind_utc: i32,
    zones: TimeZoneOffsets,
}

impl Destination {
    const fn new(
        country: &'static str,
        transit_days: u64,
        hours_behind_utc: i32,
        zones: TimeZoneOffsets,
    ) -> Self {
        Self { country, transit_days, hours_behind_utc, zones }
    }
}

/// The hours that a country is behind UTC in two of its zones. Countries with one zone have no summer time. For the
/// others, these bounds are enough; a database of time zones would need the zone of each address.
#[derive(Debug, Clone, Copy)]
pub struct TimeZoneOffsets {
    /// The zone whose dates are shown. Between 08:00 and 21:00, when parcels are delivered, every zone of the country
    /// has the same date as this one, even in summer. For `US` and `CA`, which span five hours or more, it is in the
    /// west.
    dates: i32,
    /// The zone of the country in which a day ends last: nothing is late before that.
    last: i32,
}

/// Destinations with their own times. The second zones are the Galápagos, Tijuana, Honolulu and Vancouver.
const DESTINATIONS: [Destination; 6] = [
    Destination::new("EC", 8, 5, TimeZoneOffsets { dates: 5, last: 6 }),
    Destination::new("CO", 8, 5, TimeZoneOffsets { dates: 5, last: 5 }),
    Destination::new("MX", 6, 6, TimeZoneOffsets { dates: 6, last: 8 }),
    Destination::new("PE", 10, 5, TimeZoneOffsets { dates: 5, last: 5 }),
    Destination::new("US", 5, 0, TimeZoneOffsets { dates: 8, last: 10 }),
    Destination::new("CA", 6, 0, TimeZoneOffsets { dates: 8, last: 8 }),
];
/// Any other destination: dates are in UTC, and a day is over once it is over everywhere on Earth.
const DEFAULT_DESTINATION: Destination =
    Destination::new("", 12, 0, TimeZoneOffsets { dates: 0, last: 12 });

/// Returns the promised day at the destination, in days since 1970-01-01: the local date of the order plus
/// the days in transit.
pub fn promised_day(country: CountryCode, created: Millis) -> i32 {
    let destination = destination_for(country);
    (local_date(destination.hours_behind_utc, created) + Days::new(destination.transit_days))
        .to_epoch_days()
}

/// Returns the end of a promised day, with the destination's offset.
pub fn estimated_delivery(country: CountryCode, day: i32) -> DateTime<FixedOffset> {
    let last_second = NaiveDate::from_epoch_days(day).and_then(|date| date.and_hms_opt(23, 59, 59));
    offset_behind_utc(destination_for(country).hours_behind_utc)
        .from_local_datetime(&last_second.unwrap_or_default())
        .earliest()
        .unwrap_or_default()
}

fn destination_for(country: CountryCode) -> &'static Destination {
    DESTINATIONS
        .iter()
        .find(|known| known.country == country.as_str())
        .unwrap_or(&DEFAULT_DESTINATION)
}

/// Returns the zones that determine the date at a destination, and whether a day has passed.
pub fn zones(country: CountryCode) -> TimeZoneOffsets {
    destination_for(country).zones
}

impl TimeZoneOffsets {
    /// Returns the date of a time.
    pub fn date_of(self, at: Millis) -> NaiveDate {
        local_date(self.dates, at)
    }

    /// Returns the earliest date anywhere in the country.
    pub fn earliest_date(self, now: Millis) -> NaiveDate {
        local_date(self.last, now)
    }
}

fn local_date(hours: i32, at: Millis) -> NaiveDate {
    at.to_utc().with_timezone(&offset_behind_utc(hours)).date_naive()
}

fn offset_behind_utc(hours: i32) -> FixedOffset {
    FixedOffset::west_opt(hours * 3_600).unwrap_or(Utc.fix())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_promised_day_counts_from_the_local_date() {
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
