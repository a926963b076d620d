//! The changes that a decision asks of the store, as plain data. They are committed together or not at all.

use parcelo_types::{Awb, CountryCode, TrackingNumber};
use ulid::Ulid;

use super::{
    IdempotencyRecord, Tenant,
    carrier_event::{AcceptedCarrierEvent, CarrierException},
    mail::{NewMail, triggered_mails},
    parcel::{Event, ParcelRowId, Step, Version},
    tracking_numbers::RemainingDraws,
};
use crate::{Millis, TraceContext};

/// The changes of one request, committed together with the response that repeated requests get.
#[derive(Debug, Clone)]
pub struct Changes {
    /// The time of the decision.
    pub now: Millis,
    /// The trace of the request, which the webhooks that the changes cause continue. A decision leaves it open, and
    /// the service adds it.
    pub trace: Option<TraceContext>,
    /// The idempotency record to be kept, for keyed writes.
    pub idempotency_record: Option<IdempotencyRecord>,
    /// The parcels that the decision read, at the versions that it saw.
    pub expect: Vec<(ParcelRowId, Version)>,
    /// The operations, in the order in which they apply.
    pub ops: Vec<StoreOp>,
}

/// The decision on a request: its response and its operations.
#[derive(Debug)]
pub struct Decision {
    /// The body of the response.
    pub body: Vec<u8>,
    /// The parcels that the decision read, at the versions that it saw.
    pub expect: Vec<(ParcelRowId, Version)>,
    /// The operations.
    pub ops: Vec<StoreOp>,
}

impl Changes {
    /// Returns the number of orders that are created.
    pub fn order_count(&self) -> usize {
        self.ops.iter().filter(|op| matches!(op, StoreOp::InsertParcel(_))).count()
    }

    /// Returns the body of the idempotency record; empty if there is no record.
    pub fn into_body(self) -> Vec<u8> {
        self.idempotency_record.map(|record| record.body).unwrap_or_default()
    }

    /// Adds the e-mails that the parcels' moves trigger.
    pub fn add_mails(&mut self) {
        let at = self.now;
        let moves = self.ops.iter().filter_map(|op| match op {
            StoreOp::Move { parcel, event } => Some((*parcel, event)),
            _ => None,
        });
        let mails: Vec<_> =
            moves.flat_map(|(parcel, event)| triggered_mails(parcel, event, at)).collect();
        self.ops.extend(mails.into_iter().map(StoreOp::InsertMail));
    }
}

/// One change of the store.
#[derive(Debug, Clone)]
pub enum StoreOp {
    /// A new parcel; its first two events are implied by its row.
    InsertParcel(Box<NewParcel>),
    /// A new manifest. Its parcels are moved by separate operations.
    InsertManifest(Box<NewManifest>),
    /// Sets the parcel's state to the event's, and adds the event to its history.
    Move {
        /// The parcel.
        parcel: ParcelRowId,
        /// The event.
        event: Event,
    },
    /// Adds the event to the parcel's history without changing its state.
    AddEvent {
        /// The parcel.
        parcel: ParcelRowId,
        /// The event.
        event: Event,
    },
    /// Marks a carrier's event as accepted, so that it is not accepted again.
    RecordCarrierEvent(AcceptedCarrierEvent),
    /// Logs a carrier's event that was refused.
    LogCarrierException(Box<CarrierException>),
    /// Schedules the parcel's next simulated step.
    Schedule {
        /// The parcel.
        parcel: ParcelRowId,
        /// The step.
        step: Step,
    },
    /// Records a reprint of the parcel's label.
    Reprint {
        /// The parcel.
        parcel: ParcelRowId,
        /// The time of the reprint.
        at: Millis,
    },
    /// Adds an e-mail about a change of the parcel, unless it was added before.
    InsertMail(NewMail),
    /// Cancels the parcel's remaining simulated steps.
    CancelSteps {
        /// The parcel.
        parcel: ParcelRowId,
    },
}

/// A parcel that does not exist yet. It starts with two events at `created_at` in `origin`:
/// `ORDERED` (sequence 1) and `LABEL_GENERATED` (sequence 2).
#[derive(Debug, Clone)]
pub struct NewParcel {
    /// The public id, without its prefix; the label's id is the same with another prefix.
    pub id: Ulid,
    /// The tenant that owns it.
    pub tenant: Tenant,
    /// The tracking number, unique in its environment regardless of case.
    pub tracking_number: TrackingNumber,
    /// The draws that are left if that number is taken; `None` for a number that the caller chose.
    pub redraws: Option<RemainingDraws>,
    /// The time of creation.
    pub created_at: Millis,
    /// The place of its first events: `Miami, US`.
    pub origin: String,
    /// The place of simulated events: `Quito, EC`.
    pub destination: String,
    /// The destination country.
    pub country: CountryCode,
    /// The promised day at the destination, in days since 1970-01-01.
    pub promised_day: i32,
    /// Its first simulated step.
    pub step: Option<Step>,
    /// The order as it was accepted, as [`StoredOrder::to_json`](crate::StoredOrder::to_json) writes it.
    pub order: String,
    /// The order's id in the caller's system.
    pub external_order_id: Option<String>,
}

/// A manifest that does not exist yet.
#[derive(Debug, Clone)]
pub struct NewManifest {
    /// The public id, without its prefix.
    pub id: Ulid,
    /// The tenant that owns it.
    pub tenant: Tenant,
    /// The air waybill. A tenant has at most one manifest under it.
    pub awb: Awb,
    /// The time of submission.
    pub submitted_at: Millis,
    /// The [`Manifest`](parcelo_types::model::Manifest) as JSON.
    pub document: Vec<u8>,
    /// Its parcels.
    pub parcels: Vec<ParcelRowId>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{State, create::tests::created, mail::MailRecipient};

    #[test]
    fn orders_are_counted_and_moves_alone_trigger_e_mails() {
        let (parcel, record) = created(None);
        let event = Event {
            sequence: 3,
            state: State::CustomsHold,
            at: Millis(5),
            location: "Quito, EC".to_owned(),
            description: None,
        };
        let mut changes = Changes {
            now: Millis(9),
            trace: None,
            idempotency_record: Some(record.clone()),
            expect: Vec::new(),
            ops: vec![
                StoreOp::InsertParcel(Box::new(parcel.clone())),
                StoreOp::InsertParcel(Box::new(parcel)),
                StoreOp::AddEvent { parcel: ParcelRowId(1), event: event.clone() },
                StoreOp::Move { parcel: ParcelRowId(2), event },
            ],
        };
        changes.add_mails();
        let mails = changes.ops.iter().filter_map(|op| match op {
            StoreOp::InsertMail(mail) => Some((mail.parcel, mail.recipient)),
            _ => None,
        });
        let recipients = [MailRecipient::Receiver, MailRecipient::Sender];
        let expected = recipients.map(|recipient| (ParcelRowId(2), recipient));
        assert_eq!(mails.collect::<Vec<_>>(), expected);
        assert_eq!(changes.order_count(), 2);
        assert_eq!(changes.into_body(), record.body);
    }
}
