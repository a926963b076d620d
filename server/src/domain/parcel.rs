//! A parcel as the store gives it to a decision, with its events and its simulated steps.

use parcelo::{CountryCode, TrackingNumber};
use ulid::Ulid;

use super::{State, Tenant};
use crate::clock::Millis;

/// A parcel's row id in the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ParcelRowId(pub i64);

/// How often a parcel's row has been written; a decision names the version it was made on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Version(pub i64);

/// A parcel as the store gives it to a decision; the order itself is read on its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParcelRow {
    /// Its number inside the database.
    pub key: ParcelRowId,
    /// How often it has been written.
    pub version: Version,
    /// The public id, without its prefix.
    pub id: Ulid,
    /// Whose it is.
    pub tenant: Tenant,
    /// Its number, as it was given.
    pub tracking_number: TrackingNumber,
    /// Where it stands.
    pub state: State,
    /// When it was created.
    pub created_at: Millis,
    /// When the newest event of its history happened.
    pub updated_at: Millis,
    /// Where its first events happened.
    pub origin: String,
    /// Where simulated events happen.
    pub destination: String,
    /// The destination country.
    pub country: CountryCode,
    /// The promised day at the destination, in days since 1970 began.
    pub promised_day: i32,
    /// 1, and one more with each reprint.
    pub label_version: u32,
    /// When its label was last reprinted.
    pub reprinted_at: Option<Millis>,
    /// The sequence of its last event.
    pub last_sequence: u32,
    /// Its next simulated step.
    pub step: Option<Step>,
}

/// A simulated step that is to come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step {
    /// Its place in the scenario, from 0.
    pub index: u8,
    /// When it happens.
    pub due: Millis,
}

/// One event of a parcel's history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// 1, 2, 3… within the parcel.
    pub sequence: u32,
    /// The state at this event.
    pub state: State,
    /// When it happened.
    pub at: Millis,
    /// City and country.
    pub location: String,
    /// More, when there is more to say.
    pub description: Option<String>,
}
