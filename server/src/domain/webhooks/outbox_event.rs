//! Which events a change brings about. The store asks when it applies the change, so that event and
//! change are one commit, and asks nothing when the tenant has no endpoint.

use sha2::{Digest, Sha256};
use ulid::Ulid;

use super::{Kind, Kinds};
use crate::{
    clock::Millis,
    domain::{Event, NewManifest, NewParcel, State},
};

/// An event as the outbox keeps it; its words are found in its parcel or manifest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutboxEvent {
    /// Its id, without its prefix.
    pub event: Ulid,
    /// Its kind.
    pub kind: Kind,
    /// The event of the parcel's history that it is about.
    pub sequence: Option<u32>,
    /// The state before.
    pub previous: Option<State>,
    /// When it happened.
    pub at: Millis,
}

/// The events of a new parcel: the order, then its label.
pub(crate) fn of_creation(kinds: Kinds, parcel: &NewParcel) -> Vec<OutboxEvent> {
    let at = parcel.created_at;
    let told = |kind, sequence, previous| OutboxEvent {
        event: event_id(parcel.id, kind, sequence, at),
        kind,
        sequence: Some(sequence),
        previous,
        at,
    };
    let all =
        [told(Kind::ParcelCreated, 1, None), told(Kind::StatusChanged, 2, Some(State::Ordered))];
    all.into_iter().filter(|told| kinds.wants(told.kind)).collect()
}

/// The events of a parcel's new state; `parcel` is its public id.
pub(crate) fn of_move(
    kinds: Kinds,
    parcel: Ulid,
    previous: State,
    event: &Event,
) -> Vec<OutboxEvent> {
    let told = |kind| OutboxEvent {
        event: event_id(parcel, kind, event.sequence, event.at),
        kind,
        sequence: Some(event.sequence),
        previous: Some(previous),
        at: event.at,
    };
    let voided = (event.state == State::Voided && kinds.wants(Kind::ParcelVoided))
        .then(|| told(Kind::ParcelVoided));
    std::iter::once(told(Kind::StatusChanged)).chain(voided).collect()
}

/// The event of a new manifest.
pub(crate) fn of_manifest(kinds: Kinds, manifest: &NewManifest) -> Option<OutboxEvent> {
    let (kind, at) = (Kind::ManifestSubmitted, manifest.submitted_at);
    let event = event_id(manifest.id, kind, 0, at);
    kinds.wants(kind).then_some(OutboxEvent { event, kind, sequence: None, previous: None, at })
}

/// Whether an event is about the manifest with this public id: its row's number may have been given
/// to another since.
pub(crate) fn is_of_manifest(event: Ulid, manifest: Ulid, submitted_at: Millis) -> bool {
    event == event_id(manifest, Kind::ManifestSubmitted, 0, submitted_at)
}

/// An event's id follows from what it is about: the writer needs no randomness, and the same
/// event has the same id wherever it is sent.
fn event_id(subject: Ulid, kind: Kind, sequence: u32, at: Millis) -> Ulid {
    let mut hash = Sha256::new();
    hash.update(subject.to_bytes());
    hash.update([kind.number()]);
    hash.update(sequence.to_be_bytes());
    let hash: [u8; 32] = hash.finalize().into();
    let random = hash.iter().take(10).fold(0_u128, |sum, byte| (sum << 8) | u128::from(*byte));
    Ulid::from_parts(u64::try_from(at.0).unwrap_or(0), random)
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT: Millis = Millis(1_768_057_500_000);

    fn moved(state: State) -> Event {
        Event { sequence: 3, state, at: AT, location: "Miami, US".into(), description: None }
    }

    #[test]
    fn a_void_tells_its_status_first_and_itself_when_asked_for() {
        let kinds = |kinds, state| {
            let told = of_move(kinds, Ulid::from(7), State::LabelGenerated, &moved(state));
            told.iter().map(|told| told.kind).collect::<Vec<_>>()
        };
        let asked = Kinds::named(["parcel.voided"]).unwrap();
        assert_eq!(kinds(Kinds::default(), State::Voided), [Kind::StatusChanged]);
        assert_eq!(kinds(asked, State::Voided), [Kind::StatusChanged, Kind::ParcelVoided]);
        assert_eq!(kinds(asked, State::InTransit), [Kind::StatusChanged]);
    }

    #[test]
    fn every_event_has_an_id_of_its_own_which_it_keeps() {
        let id = |subject: u128, kind, sequence| event_id(Ulid::from(subject), kind, sequence, AT);
        let ids = [
            id(1, Kind::StatusChanged, 3),
            id(2, Kind::StatusChanged, 3),
            id(1, Kind::ParcelVoided, 3),
            id(1, Kind::StatusChanged, 4),
        ];
        let different: std::collections::HashSet<_> = ids.iter().collect();
        assert_eq!(different.len(), ids.len());
        assert_eq!(ids[0], id(1, Kind::StatusChanged, 3));
        assert_eq!(ids[0].timestamp_ms(), 1_768_057_500_000);
    }
}
