//! A parcel's arrival as pages and responses present it. The promised day (`estimatedDelivery`) never changes; the
//! arrival also depends on the parcel's state and on the current date at the destination.

use chrono::NaiveDate;
use parcelo_types::model::{Arrival, ArrivalKind};

use super::{ParcelRow, State, delivery};
use crate::Millis;

/// Returns the day on which the parcel arrives, is late, or was delivered; `None` while no day can be promised.
pub fn arrival(parcel: &ParcelRow, now: Millis) -> Option<Arrival> {
    let zones = delivery::zones(parcel.country);
    let promised = NaiveDate::from_epoch_days(parcel.promised_day)?;
    // The newest event led to the current state.
    let since = zones.date_of(parcel.updated_at);
    let today = zones.earliest_date(now);
    let (kind, date) = match parcel.state {
        State::Ordered
        | State::LabelGenerated
        | State::ManifestSubmitted
        | State::PickedUp
        | State::CustomsClearance
        | State::InTransit
            if today <= promised =>
        {
            (ArrivalKind::Expected, promised)
        }
        State::OutForDelivery if today <= since => (ArrivalKind::Today, since),
        State::Ordered
        | State::LabelGenerated
        | State::ManifestSubmitted
        | State::PickedUp
        | State::CustomsClearance
        | State::InTransit => (ArrivalKind::Delayed, promised),
        // A driver who did not arrive by the end of the day is late, even before the promised day.
        State::OutForDelivery => (ArrivalKind::Delayed, promised.min(since)),
        State::Delivered => (ArrivalKind::Delivered, since),
        // While the parcel is held by customs, or after a missed delivery, the day depends on customs or on the
        // receiver. In the other states, no delivery follows.
        State::CustomsHold
        | State::DeliveryAttempted
        | State::DeliveryFailed
        | State::ReturnToSender
        | State::Voided => return None,
    };
    Some(Arrival::new(kind, date))
}

#[cfg(test)]
mod tests {
    use parcelo_types::CountryCode;

    use super::*;
    use crate::parcel::tests::parcel;

    fn at(time: &str) -> Millis {
        Millis::from(time.parse::<chrono::DateTime<chrono::Utc>>().unwrap())
    }

    /// Returns kind and date of the arrival of a parcel that was promised for 2026-01-13.
    fn arrival_of(country: &str, state: State, since: &str, now: &str) -> Option<(String, String)> {
        let (country, promised) =
            (CountryCode::parse(country).unwrap(), "2026-01-13".parse::<NaiveDate>().unwrap());
        let promised_day = promised.to_epoch_days();
        let parcel = ParcelRow { country, promised_day, ..parcel(state, at(since)) };
        let arrival = arrival(&parcel, at(now))?;
        Some((arrival.kind.code().to_owned(), arrival.date.to_string()))
    }

    /// Tries every state before, on and after the promised day. The parcel reached it at noon of January 8 in Quito.
    #[test]
    fn each_state_has_its_arrival_before_and_after_the_promise() {
        use State::{
            CustomsClearance, CustomsHold, Delivered, DeliveryAttempted, DeliveryFailed, InTransit,
            LabelGenerated, ManifestSubmitted, Ordered, OutForDelivery, PickedUp, ReturnToSender,
            Voided,
        };
        let (expected, delayed) = (Some(("EXPECTED", "13")), Some(("DELAYED", "13")));
        let table = [
            (Ordered, [expected, expected, delayed]),
            (LabelGenerated, [expected, expected, delayed]),
            (ManifestSubmitted, [expected, expected, delayed]),
            (PickedUp, [expected, expected, delayed]),
            (CustomsClearance, [expected, expected, delayed]),
            (CustomsHold, [None; 3]),
            (InTransit, [expected, expected, delayed]),
            (
                OutForDelivery,
                [Some(("TODAY", "08")), Some(("DELAYED", "08")), Some(("DELAYED", "08"))],
            ),
            (DeliveryAttempted, [None; 3]),
            (Delivered, [Some(("DELIVERED", "08")); 3]),
            (DeliveryFailed, [None; 3]),
            (ReturnToSender, [None; 3]),
            (Voided, [None; 3]),
        ];
        assert_eq!(table.len(), parcelo_types::ParcelStatus::KNOWN.len());
        let moments = ["2026-01-08T18:00:00Z", "2026-01-13T18:00:00Z", "2026-01-26T18:00:00Z"];
        for (state, expected) in table {
            for (now, expected) in moments.iter().zip(expected) {
                let expected =
                    expected.map(|(kind, day)| (kind.to_owned(), format!("2026-01-{day}")));
                assert_eq!(
                    arrival_of("EC", state, "2026-01-08T17:00:00Z", now),
                    expected,
                    "{state:?} {now}"
                );
            }
        }
    }

    /// Checks that the promised day ends when it has ended everywhere in the country.
    #[test]
    fn a_day_ends_in_the_last_time_zone_of_the_destination() {
        let table = [
            ("EC", "2026-01-14T05:59:59Z", "2026-01-14T06:00:00Z"),
            ("CO", "2026-01-14T04:59:59Z", "2026-01-14T05:00:00Z"),
            ("PE", "2026-01-14T04:59:59Z", "2026-01-14T05:00:00Z"),
            ("MX", "2026-01-14T07:59:59Z", "2026-01-14T08:00:00Z"),
            ("US", "2026-01-14T09:59:59Z", "2026-01-14T10:00:00Z"),
            ("CA", "2026-01-14T07:59:59Z", "2026-01-14T08:00:00Z"),
            ("JP", "2026-01-14T11:59:59Z", "2026-01-14T12:00:00Z"),
        ];
        for (country, still, over) in table {
            let kind =
                |now| arrival_of(country, State::InTransit, "2026-01-08T17:00:00Z", now).unwrap().0;
            assert_eq!((&*kind(still), &*kind(over)), ("EXPECTED", "DELAYED"), "{country}");
        }
    }

    /// Checks that from eight in the morning to nine in the evening, all zones of the country have the shown date.
    #[test]
    fn a_delivery_has_the_date_at_the_destination() {
        let table = [
            // Quito; the evening there is the next day in UTC.
            ("EC", "2026-01-13T02:00:00Z", "2026-01-12"),
            ("EC", "2026-01-12T13:00:00Z", "2026-01-12"),
            // Cancún and Tijuana.
            ("MX", "2026-01-12T13:00:00Z", "2026-01-12"),
            ("MX", "2026-01-13T05:00:00Z", "2026-01-12"),
            // San Juan and Honolulu.
            ("US", "2026-01-12T12:00:00Z", "2026-01-12"),
            ("US", "2026-01-13T07:00:00Z", "2026-01-12"),
            // St. John's and Vancouver.
            ("CA", "2026-01-12T10:30:00Z", "2026-01-12"),
            ("CA", "2026-01-13T05:00:00Z", "2026-01-12"),
            // Countries whose zone the table lacks have dates in UTC.
            ("JP", "2026-01-13T02:00:00Z", "2026-01-13"),
        ];
        for (country, since, date) in table {
            let (kind, day) =
                arrival_of(country, State::Delivered, since, "2026-02-01T00:00:00Z").unwrap();
            assert_eq!((&*kind, &*day), ("DELIVERED", date), "{country} {since}");
        }
    }

    #[test]
    fn a_late_parcel_that_is_out_for_delivery_arrives_today() {
        let out =
            |now| arrival_of("EC", State::OutForDelivery, "2026-01-26T12:00:00Z", now).unwrap();
        // Midnight in Quito; on the Galápagos it is an hour earlier.
        assert_eq!(out("2026-01-27T05:59:59Z"), ("TODAY".to_owned(), "2026-01-26".to_owned()));
        assert_eq!(out("2026-01-27T06:00:00Z"), ("DELAYED".to_owned(), "2026-01-13".to_owned()));
    }
}
