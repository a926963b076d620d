//! When a parcel is promised to arrive (docs/api.md, Conventions).

use chrono::{DateTime, FixedOffset, NaiveDate, Offset, TimeZone, Utc};
use parcelo::CountryCode;

use crate::clock::Millis;

/// A destination whose days are known: country, days on the way, hours that it is behind UTC.
struct Destination(&'static str, i32, i32);

const DESTINATIONS: [Destination; 6] = [
    Destination("EC", 8, 5),
    Destination("CO", 8, 5),
    Destination("MX", 6, 6),
    Destination("PE", 10, 5),
    Destination("US", 5, 0),
    Destination("CA", 6, 0),
];
const ELSEWHERE: Destination = Destination("", 12, 0);

/// The promised day at the destination, in days since 1970 began: the local date of the order,
/// and the days on the way.
pub(crate) fn promised_day(country: CountryCode, created: Millis) -> i32 {
    let destination = destination(country);
    let local = created.to_utc().with_timezone(&offset(destination)).date_naive();
    (local + chrono::Days::new(destination.1.unsigned_abs().into())).to_epoch_days()
}

/// The end of a promised day, with the destination's own offset.
pub(crate) fn estimated_delivery(country: CountryCode, day: i32) -> DateTime<FixedOffset> {
    let last_second = NaiveDate::from_epoch_days(day).and_then(|date| date.and_hms_opt(23, 59, 59));
    offset(destination(country))
        .from_local_datetime(&last_second.unwrap_or_default())
        .earliest()
        .unwrap_or_default()
}

fn destination(country: CountryCode) -> &'static Destination {
    DESTINATIONS.iter().find(|known| known.0 == country.as_str()).unwrap_or(&ELSEWHERE)
}

fn offset(destination: &Destination) -> FixedOffset {
    FixedOffset::west_opt(destination.2 * 3_600).unwrap_or(Utc.fix())
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
