//! A parcel as the store gives it to a decision, with its events and its simulated steps.

use parcelo_types::{CountryCode, TrackingNumber};
use ulid::Ulid;

use super::{State, Tenant};
use crate::Millis;

/// A parcel's row id in the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ParcelRowId(pub i64);

/// The number of writes to a parcel's row. A decision states the version that it was based on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Version(pub i64);

/// A parcel as the store gives it to a decision. The order is read separately.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParcelRow {
    /// The row id in the database.
    pub key: ParcelRowId,
    /// The version of the row.
    pub version: Version,
    /// The public id, without its prefix.
    pub id: Ulid,
    /// The tenant that owns it.
    pub tenant: Tenant,
    /// The tracking number, as it was sent or generated.
    pub tracking_number: TrackingNumber,
    /// The current state.
    pub state: State,
    /// The time of creation.
    pub created_at: Millis,
    /// The time of the newest event in its history.
    pub updated_at: Millis,
    /// The place of its first events.
    pub origin: String,
    /// The place of simulated events.
    pub destination: String,
    /// The destination country.
    pub country: CountryCode,
    /// The promised day at the destination, in days since 1970-01-01.
    pub promised_day: i32,
    /// The version of the label: 1, and one more with each reprint.
    pub label_version: u32,
    /// The time of the label's last reprint.
    pub reprinted_at: Option<Millis>,
    /// The sequence of its last event.
    pub last_sequence: u32,
    /// Its next simulated step.
    pub step: Option<Step>,
}

/// A simulated step that is scheduled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step {
    /// Its place in the scenario, from 0.
    pub index: u8,
    /// The scheduled time.
    pub due: Millis,
}

/// One event of a parcel's history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// Its number within the parcel's history, from 1.
    pub sequence: u32,
    /// The state at this event.
    pub state: State,
    /// The time of the event.
    pub at: Millis,
    /// The place of the event: city and country.
    pub location: String,
    /// A further description, if there is one.
    pub description: Option<String>,
}

#[cfg(test)]
pub(crate) mod tests {
    use parcelo_types::Environment;

    use super::*;
    use crate::AccountRowId;

    /// Returns a parcel from Miami to Quito in the sandbox, which was created and last changed at this time.
    pub(crate) fn parcel(state: State, created_at: Millis) -> ParcelRow {
        ParcelRow {
            key: ParcelRowId(1),
            version: Version(1),
            id: Ulid::nil(),
            tenant: Tenant { account: AccountRowId(1), environment: Environment::Sandbox },
            tracking_number: TrackingNumber::parse("SB-SUCCESS-0001").unwrap(),
            state,
            created_at,
            updated_at: created_at,
            origin: "Miami, US".to_owned(),
            destination: "Quito, EC".to_owned(),
            country: CountryCode::EC,
            promised_day: 20_473,
            label_version: 1,
            reprinted_at: None,
            last_sequence: 2,
            step: None,
        }
    }
}
