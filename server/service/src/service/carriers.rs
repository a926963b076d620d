//! POST /carrier/v1/events. Each event is decided and committed separately, so that one that is refused does not
//! affect the others (docs/api.md, Carrier events).

use parcelo_domain::{CarrierReport, Changes, Millis, Refusal, Scan, State, carrier};
use parcelo_store::CommitOutcome;
use parcelo_types::{ErrorCode, TrackingNumber};
use parcelo_wire::{CarrierEvent, CarrierOutcome, CarrierResult, CarrierResults, CarrierSummary};
use serde_json::Value;

use super::{
    Carrier, Service, idempotency::MAX_DECISIONS, parcels::split_item_error, refusal_for_commit,
};

/// The result of one carrier event.
type EventResult = Result<CarrierOutcome, Refusal>;

impl Service {
    /// Processes a carrier's events one by one, in the order sent.
    pub async fn push_carrier_events(
        &self,
        carrier: &Carrier,
        body: &Value,
    ) -> Result<CarrierResults, Refusal> {
        let now = self.now();
        let checked = parcelo_wire::check_carrier_events(body, now.to_utc());
        let events = checked.map_err(|rejected| Refusal::invalid(&rejected.faults))?.events;
        let environment = carrier.key.scope.environment;
        let mut results = Vec::with_capacity(events.len());
        for event in events {
            let report = to_report(carrier, &event)?;
            let outcome = self.process_report(carrier, &event.tracking_number, &report, now).await;
            let result = to_result(event, split_item_error(outcome)?.flatten());
            self.metrics().count_carrier_event(environment, &result.outcome);
            results.push(result);
        }
        let summary = summarize(&results);
        // The answer has the reasons, but only the carrier sees it.
        let CarrierSummary { received, rejected, .. } = summary;
        if rejected > 0 {
            let key_id = carrier.key.id.as_str();
            tracing::info!(key_id, received, rejected, "events of a carrier were rejected");
        }
        Ok(CarrierResults { summary, results })
    }

    /// Processes one event and returns its result. An `Err` ends the whole request; an error that concerns only this
    /// event is part of the result.
    async fn process_report(
        &self,
        carrier: &Carrier,
        number: &str,
        report: &CarrierReport,
        now: Millis,
    ) -> Result<EventResult, Refusal> {
        let Ok(number) = TrackingNumber::parse(number) else {
            return Ok(Err(ErrorCode::ParcelNotFound.into()));
        };
        let _lock = self.parcel_locks.lock(&number).await;
        for _ in 0..MAX_DECISIONS {
            if self.store.has_carrier_event(report.carrier, &report.event_id).await? {
                return Ok(Ok(CarrierOutcome::Duplicate));
            }
            let Some(parcel) = self.store.parcel(carrier.key.scope.environment, &number).await?
            else {
                return Ok(Err(ErrorCode::ParcelNotFound.into()));
            };
            let parcel = self.bring_up_to_date(parcel).await?;
            let (result, changes) = carrier::evaluate_report(&parcel, report.clone(), now);
            let changes = Changes { trace: carrier.trace, ..changes };
            match self.store.commit(changes).await {
                CommitOutcome::Committed => return Ok(result),
                CommitOutcome::DuplicateCarrierEvent => return Ok(Ok(CarrierOutcome::Duplicate)),
                CommitOutcome::VersionConflict => {}
                // The event's id makes it safe to send the event again.
                CommitOutcome::Unknown => return Err(Refusal::unavailable()),
                outcome => return Err(refusal_for_commit(&outcome)),
            }
        }
        Err(Refusal::unavailable())
    }
}

fn to_report(carrier: &Carrier, event: &CarrierEvent) -> Result<CarrierReport, Refusal> {
    // The rules accept only statuses that have a state.
    let state = State::from_status(&event.status).ok_or(ErrorCode::InternalError)?;
    let scan = Scan {
        state,
        at: event.occurred_at.to_utc().into(),
        location: event.location.clone(),
        description: event.description.clone(),
    };
    Ok(CarrierReport {
        carrier: carrier.key.scope.carrier,
        event_id: event.event_id.clone(),
        code: event.carrier_code.clone(),
        scan,
    })
}

fn to_result(event: CarrierEvent, result: EventResult) -> CarrierResult {
    let CarrierEvent { event_id, tracking_number, .. } = event;
    let (outcome, error) = match result {
        Ok(outcome) => (outcome, None),
        Err(refusal) => (CarrierOutcome::Rejected, Some(refusal.to_item())),
    };
    CarrierResult { event_id, tracking_number, outcome, error }
}

fn summarize(results: &[CarrierResult]) -> CarrierSummary {
    let count = |outcome| {
        let count = results.iter().filter(|result| result.outcome == outcome).count();
        u32::try_from(count).unwrap_or(u32::MAX)
    };
    CarrierSummary {
        received: u32::try_from(results.len()).unwrap_or(u32::MAX),
        applied: count(CarrierOutcome::Applied),
        recorded: count(CarrierOutcome::Recorded),
        duplicates: count(CarrierOutcome::Duplicate),
        rejected: count(CarrierOutcome::Rejected),
    }
}
