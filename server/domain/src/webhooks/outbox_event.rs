//! The events that a change triggers. The store asks for them when it applies the change, so that both are
//! in one commit, unless the tenant has no endpoint.

use sha2::{Digest, Sha256};
use ulid::Ulid;

use super::{WebhookEventKind, WebhookEventKinds};
use crate::{Event, Millis, NewManifest, NewParcel, State};

/// An event in the outbox. Its content is read from its parcel or manifest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutboxEvent {
    /// The id, without its prefix.
    pub event: Ulid,
    /// The kind.
    pub kind: WebhookEventKind,
    /// The sequence of the event in the parcel's history.
    pub sequence: Option<u32>,
    /// The state before the event.
    pub previous: Option<State>,
    /// The time of the event.
    pub at: Millis,
}

/// Returns the events of a new parcel: the order, then its label.
pub fn creation_events(kinds: WebhookEventKinds, parcel: &NewParcel) -> Vec<OutboxEvent> {
    let at = parcel.created_at;
    let event = |kind, sequence, previous| OutboxEvent {
        event: event_id(parcel.id, kind, sequence, at),
        kind,
        sequence: Some(sequence),
        previous,
        at,
    };
    let all = [
        event(WebhookEventKind::ParcelCreated, 1, None),
        event(WebhookEventKind::StatusChanged, 2, Some(State::Ordered)),
    ];
    all.into_iter().filter(|event| kinds.contains(event.kind)).collect()
}

/// Returns the events of a parcel's new state; `parcel` is its public id.
pub fn move_events(
    kinds: WebhookEventKinds,
    parcel: Ulid,
    previous: State,
    event: &Event,
) -> Vec<OutboxEvent> {
    let outbox_event = |kind| OutboxEvent {
        event: event_id(parcel, kind, event.sequence, event.at),
        kind,
        sequence: Some(event.sequence),
        previous: Some(previous),
        at: event.at,
    };
    let voided = (event.state == State::Voided && kinds.contains(WebhookEventKind::ParcelVoided))
        .then(|| outbox_event(WebhookEventKind::ParcelVoided));
    std::iter::once(outbox_event(WebhookEventKind::StatusChanged)).chain(voided).collect()
}

/// Returns the event of a new manifest.
pub fn manifest_event(kinds: WebhookEventKinds, manifest: &NewManifest) -> Option<OutboxEvent> {
    let (kind, at) = (WebhookEventKind::ManifestSubmitted, manifest.submitted_at);
    let event = event_id(manifest.id, kind, 0, at);
    kinds.contains(kind).then_some(OutboxEvent { event, kind, sequence: None, previous: None, at })
}

/// Returns `true` if an event is about the manifest with this public id. The row id is not enough, because another
/// manifest may have it now.
pub fn is_manifest_event(event: Ulid, manifest: Ulid, submitted_at: Millis) -> bool {
    event == event_id(manifest, WebhookEventKind::ManifestSubmitted, 0, submitted_at)
}

/// Derives an event's id from its subject, so that the writer needs no randomness and the same event
/// always has the same id.
fn event_id(subject: Ulid, kind: WebhookEventKind, sequence: u32, at: Millis) -> Ulid {
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
    use parcelo_types::Awb;

    use super::*;
    use crate::{Tenant, create::tests::created};

    const AT: Millis = Millis(1_768_057_500_000);

    fn moved(state: State) -> Event {
        Event { sequence: 3, state, at: AT, location: "Miami, US".into(), description: None }
    }

    #[test]
    fn a_void_sends_the_status_change_first() {
        let kinds = |kinds, state| {
            let events = move_events(kinds, Ulid::from(7), State::LabelGenerated, &moved(state));
            events.iter().map(|event| event.kind).collect::<Vec<_>>()
        };
        let subscribed = WebhookEventKinds::from_codes(["parcel.voided"]).unwrap();
        assert_eq!(
            kinds(WebhookEventKinds::default(), State::Voided),
            [WebhookEventKind::StatusChanged]
        );
        assert_eq!(
            kinds(subscribed, State::Voided),
            [WebhookEventKind::StatusChanged, WebhookEventKind::ParcelVoided]
        );
        assert_eq!(kinds(subscribed, State::InTransit), [WebhookEventKind::StatusChanged]);
    }

    #[test]
    fn every_event_has_its_own_stable_id() {
        let id = |subject: u128, kind, sequence| event_id(Ulid::from(subject), kind, sequence, AT);
        let ids = [
            id(1, WebhookEventKind::StatusChanged, 3),
            id(2, WebhookEventKind::StatusChanged, 3),
            id(1, WebhookEventKind::ParcelVoided, 3),
            id(1, WebhookEventKind::StatusChanged, 4),
        ];
        let different: std::collections::HashSet<_> = ids.iter().collect();
        assert_eq!(different.len(), ids.len());
        assert_eq!(ids[0], id(1, WebhookEventKind::StatusChanged, 3));
        // Computed with Python's hashlib. An event that is sent again after an update keeps its id.
        assert_eq!(ids[0].to_string(), "01KEM70WB0NMZRY88J3AR0VFNZ");
    }

    #[test]
    fn a_new_parcel_sends_its_label_and_to_subscribers_its_order() {
        let (parcel, _) = created(None);
        let sent = |codes: &[&str]| {
            let kinds = WebhookEventKinds::from_codes(codes.iter().copied()).unwrap();
            let events = creation_events(kinds, &parcel);
            let sent = events.iter().map(|event| (event.kind, event.sequence, event.previous));
            sent.collect::<Vec<_>>()
        };
        let order = (WebhookEventKind::ParcelCreated, Some(1), None);
        let label = (WebhookEventKind::StatusChanged, Some(2), Some(State::Ordered));
        assert_eq!(sent(&[]), [label]);
        assert_eq!(sent(&["parcel.created"]), [order, label]);
    }

    #[test]
    fn a_subscriber_gets_the_event_of_a_manifest_which_names_that_manifest_only() {
        let manifest = NewManifest {
            id: Ulid::nil(),
            tenant: Tenant::from_number(3),
            awb: Awb::parse("176-12345675").unwrap(),
            submitted_at: AT,
            document: Vec::new(),
            parcels: Vec::new(),
        };
        assert_eq!(manifest_event(WebhookEventKinds::default(), &manifest), None);
        let subscribed = WebhookEventKinds::from_codes(["manifest.submitted"]).unwrap();
        let OutboxEvent { event, kind, .. } = manifest_event(subscribed, &manifest).unwrap();
        assert_eq!(kind, WebhookEventKind::ManifestSubmitted);
        assert!(is_manifest_event(event, manifest.id, AT));
        assert!(!is_manifest_event(event, Ulid::max(), AT));
        assert!(!is_manifest_event(event, manifest.id, AT.plus(1)));
    }
}
