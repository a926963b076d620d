//! Tracking records: a parcel's status and history in the reader's language (spec: Tracking record).

use parcelo_types::{
    Language, ParcelStatus,
    model::{BatchResult, HistoryEntry, TrackingRecord},
};

use super::{Event, ParcelRow, Refusal, State, arrival::arrival, delivery};
use crate::Millis;

/// Returns the two events that every parcel begins with. They are not stored, because the row implies them.
pub fn first_events(parcel: &ParcelRow) -> [Event; 2] {
    [(1, State::Ordered), (2, State::LabelGenerated)].map(|(sequence, state)| Event {
        sequence,
        state,
        at: parcel.created_at,
        location: parcel.origin.clone(),
        description: None,
    })
}

/// Returns the tracking record of a parcel as of `now`, with its history if `events` is given.
pub fn tracking_record(
    parcel: &ParcelRow,
    events: Option<&[Event]>,
    language: Language,
    now: Millis,
) -> TrackingRecord {
    let status = ParcelStatus::from(parcel.state);
    let estimated = delivery::estimated_delivery(parcel.country, parcel.promised_day);
    let mut record = TrackingRecord::new(parcel.tracking_number.clone(), status, estimated);
    record.status.name(language).clone_into(&mut record.status_name);
    record.arrival = arrival(parcel, now);
    record.history = events
        .map(|events| events.iter().map(|event| Ok(history_entry(event, language))).collect());
    record
}

/// Returns the tracking record that anyone may see: its events have only status, time and city.
pub fn public_tracking_record(
    parcel: &ParcelRow,
    events: &[Event],
    language: Language,
    now: Millis,
) -> TrackingRecord {
    let mut record = tracking_record(parcel, Some(events), language, now);
    for entry in record.history.iter_mut().flatten().flatten() {
        entry.description = None;
        entry.sequence = None;
    }
    record
}

fn history_entry(event: &Event, language: Language) -> HistoryEntry {
    let status = ParcelStatus::from(event.state);
    let name = status.name(language).to_owned();
    let mut entry = HistoryEntry::new(status, event.at.to_utc(), event.location.as_str())
        .with_status_name(name)
        .with_sequence(event.sequence);
    entry.description.clone_from(&event.description);
    entry
}

/// Returns the result for one number of a batch: its record, or the error.
pub fn batch_result(
    tracking_number: String,
    tracking: Result<TrackingRecord, Refusal>,
) -> BatchResult {
    match tracking {
        Ok(tracking) => BatchResult::found(tracking_number, tracking),
        Err(refusal) => BatchResult::not_found(tracking_number, refusal.to_item()),
    }
}
