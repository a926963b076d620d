//! The body of an event. It has the same bytes at every attempt, because its content never changes.

use parcelo_types::{
    Environment,
    model::{
        EventData, EventId, Manifest, ParcelCreated, ParcelVoided, StatusChange, WebhookEvent,
    },
};
use ulid::Ulid;

use super::WebhookEventKind;
use crate::{
    Event, Millis, ParcelRow, State,
    ids::{parcel_id, public_id},
    to_body,
};

/// An event with the content of its body.
#[derive(Debug, Clone, PartialEq)]
pub struct EventPayload {
    /// The event's id, without its prefix.
    pub event: Ulid,
    /// The environment in which it happened.
    pub environment: Environment,
    /// The kind of event.
    pub kind: WebhookEventKind,
    /// The time of the event.
    pub at: Millis,
    /// The parcel or manifest that the event is about.
    pub subject: EventSubject,
}

/// The parcel or manifest that an event is about.
#[derive(Debug, Clone, PartialEq)]
pub enum EventSubject {
    /// A parcel, at one event of its history.
    Parcel {
        /// The parcel as it is now. Only facts that never change go into the body.
        parcel: Box<ParcelRow>,
        /// The state before the event.
        previous: State,
        /// The event.
        event: Event,
        /// The order's id in the caller's system.
        external_order_id: Option<String>,
    },
    /// A manifest.
    Manifest(Box<Manifest>),
    /// No subject: a test.
    Test,
}

/// Writes the body of an event.
pub fn event_body(payload: EventPayload) -> Vec<u8> {
    let EventPayload { event, environment, kind, at, subject } = payload;
    let data = match subject {
        EventSubject::Parcel { parcel, previous, event, external_order_id } => {
            parcel_data(kind, *parcel, (previous, event), external_order_id)
        }
        EventSubject::Manifest(manifest) => EventData::ManifestSubmitted(manifest),
        EventSubject::Test => EventData::Test,
    };
    let id = EventId::unchecked(public_id("evt", event));
    to_body(&WebhookEvent::new(environment, at.to_utc(), data).with_id(id))
}

fn parcel_data(
    kind: WebhookEventKind,
    parcel: ParcelRow,
    (previous, event): (State, Event),
    external_order_id: Option<String>,
) -> EventData {
    let tracking_number = parcel.tracking_number;
    match kind {
        WebhookEventKind::ParcelCreated => {
            let id = parcel_id(parcel.id);
            let mut created = ParcelCreated::new(id, tracking_number, parcel.country)
                .with_status(event.state.into());
            created.external_order_id = external_order_id;
            EventData::ParcelCreated(created)
        }
        WebhookEventKind::ParcelVoided => {
            let mut voided = ParcelVoided::new(tracking_number, previous.into());
            voided.reason = event.description;
            voided.external_order_id = external_order_id;
            EventData::ParcelVoided(voided)
        }
        WebhookEventKind::StatusChanged
        | WebhookEventKind::ManifestSubmitted
        | WebhookEventKind::Test => {
            let (from, to) = (previous.into(), event.state.into());
            let mut change = StatusChange::new(tracking_number, from, to, event.location)
                .with_sequence(event.sequence);
            change.description = event.description;
            change.external_order_id = external_order_id;
            EventData::StatusChanged(change)
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::parcel::tests::parcel;

    #[test]
    fn each_kind_of_event_has_its_own_data() {
        let table = [
            (
                WebhookEventKind::StatusChanged,
                "parcel.status_changed",
                json!({
                    "trackingNumber": "SB-SUCCESS-0001", "previousStatus": "LABEL_GENERATED",
                    "newStatus": "VOIDED", "location": "Miami, US", "sequence": 3,
                    "description": "Recalled", "externalOrderId": "PO-77",
                }),
            ),
            (
                WebhookEventKind::ParcelCreated,
                "parcel.created",
                json!({
                    "id": "par_00000000000000000000000000", "trackingNumber": "SB-SUCCESS-0001",
                    "status": "VOIDED", "country": "EC", "externalOrderId": "PO-77",
                }),
            ),
            (
                WebhookEventKind::ParcelVoided,
                "parcel.voided",
                json!({
                    "trackingNumber": "SB-SUCCESS-0001", "previousStatus": "LABEL_GENERATED",
                    "reason": "Recalled", "externalOrderId": "PO-77",
                }),
            ),
        ];
        for (kind, code, data) in table {
            let event = Event {
                sequence: 3,
                state: State::Voided,
                at: Millis(5),
                location: "Miami, US".to_owned(),
                description: Some("Recalled".to_owned()),
            };
            let subject = EventSubject::Parcel {
                parcel: Box::new(parcel(State::Voided, Millis(5))),
                previous: State::LabelGenerated,
                event,
                external_order_id: Some("PO-77".to_owned()),
            };
            let (event, environment) = (Ulid::nil(), Environment::Sandbox);
            let payload = EventPayload { event, environment, kind, at: Millis(5), subject };
            let body: Value = serde_json::from_slice(&event_body(payload)).unwrap();
            let expected = json!({
                "id": "evt_00000000000000000000000000", "event": code, "environment": "sandbox",
                "timestamp": "1970-01-01T00:00:00.005Z", "data": data,
            });
            assert_eq!(body, expected);
        }
    }
}
