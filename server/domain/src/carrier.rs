//! Evaluates carriers' reports: a scan moves the parcel to a new state, is only added to its history, or is refused
//! (docs/api.md, Carrier events). The sandbox's simulated scans are evaluated here too.

use parcelo_types::TrackingNumber;
use parcelo_wire::CarrierOutcome;

use super::{
    AcceptedCarrierEvent, CarrierException, CarrierReport, Cause, Changes, Event, ParcelRow,
    Refusal, Scan, State, StoreOp,
};
use crate::Millis;

/// The effect of a scan on a parcel.
#[derive(Debug, Clone)]
pub enum ScanOutcome {
    /// The scan moves the parcel to a new state.
    Applied(Vec<StoreOp>),
    /// The scan is added to the history, and the parcel's state stays.
    Recorded(Vec<StoreOp>),
    /// The scan's state cannot follow the parcel's.
    Rejected(IllegalTransition),
}

/// A transition that the state machine does not allow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IllegalTransition {
    /// The parcel's state.
    pub from: State,
    /// The state that was reported.
    pub to: State,
}

impl From<IllegalTransition> for Refusal {
    fn from(illegal: IllegalTransition) -> Self {
        Self::illegal_transition(illegal.from, illegal.to)
    }
}

/// Evaluates a scan. A scan that is older than the newest event, or repeats its state, is only added to the history.
/// Otherwise the table of transitions decides. A state that carriers cannot cause is always refused.
pub fn evaluate_scan(parcel: &ParcelRow, scan: Scan) -> ScanOutcome {
    let illegal = IllegalTransition { from: parcel.state, to: scan.state };
    if !Cause::Carrier.allows(scan.state) {
        return ScanOutcome::Rejected(illegal);
    }
    let is_late = scan.at < parcel.updated_at;
    let is_same = scan.state == parcel.state;
    let event = scan_event(parcel, scan);
    if is_late || is_same {
        ScanOutcome::Recorded(vec![StoreOp::AddEvent { parcel: parcel.key, event }])
    } else if illegal.from.can_become(illegal.to) {
        ScanOutcome::Applied(vec![StoreOp::Move { parcel: parcel.key, event }])
    } else {
        ScanOutcome::Rejected(illegal)
    }
}

/// Evaluates a report, and returns the carrier's result and the changes. Because scans arrive out of order, a refused
/// event is not marked as accepted, so that it is evaluated again when it is sent again.
pub fn evaluate_report(
    parcel: &ParcelRow,
    report: CarrierReport,
    now: Millis,
) -> (Result<CarrierOutcome, Refusal>, Changes) {
    let (result, ops) = match evaluate_scan(parcel, report.scan.clone()) {
        ScanOutcome::Applied(ops) => {
            (Ok(CarrierOutcome::Applied), prepend_acceptance(ops, parcel, report))
        }
        ScanOutcome::Recorded(ops) => {
            (Ok(CarrierOutcome::Recorded), prepend_acceptance(ops, parcel, report))
        }
        ScanOutcome::Rejected(illegal) => {
            let exception = CarrierException {
                tenant: parcel.tenant,
                parcel: parcel.key,
                from: parcel.state,
                report,
                refused_at: now,
            };
            (Err(illegal.into()), vec![StoreOp::LogCarrierException(Box::new(exception))])
        }
    };
    let expect = vec![(parcel.key, parcel.version)];
    (result, Changes { now, trace: None, idempotency_record: None, expect, ops })
}

/// Prepends the operation that marks the event as accepted, so that a duplicate is refused before anything is written.
fn prepend_acceptance(
    ops: Vec<StoreOp>,
    parcel: &ParcelRow,
    report: CarrierReport,
) -> Vec<StoreOp> {
    let CarrierReport { carrier, event_id, code, scan: _ } = report;
    let sequence = parcel.last_sequence + 1;
    let parcel = parcel.key;
    let seen = AcceptedCarrierEvent { carrier, event_id, parcel, sequence, code };
    std::iter::once(StoreOp::RecordCarrierEvent(seen)).chain(ops).collect()
}

fn scan_event(parcel: &ParcelRow, scan: Scan) -> Event {
    let Scan { state, at, location, description } = scan;
    Event { sequence: parcel.last_sequence + 1, state, at, location, description }
}

/// A refused carrier event, as the log of exceptions shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoggedCarrierException {
    /// The carrier's name.
    pub carrier_name: String,
    /// The parcel's number.
    pub tracking_number: TrackingNumber,
    /// The refused event.
    pub exception: CarrierException,
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{
        CarrierRowId, Step, history, parcel,
        scenario::{self, SCENARIOS},
        state::TRANSITIONS,
    };

    const CREATED: Millis = Millis(1_767_600_000_000);

    fn parcel(number: &str, state: State) -> ParcelRow {
        let tracking_number = TrackingNumber::parse(number).unwrap();
        ParcelRow { tracking_number, ..parcel::tests::parcel(state, CREATED) }
    }

    fn scan(state: State, minutes: i64) -> Scan {
        let at = CREATED.plus(minutes * Millis::MINUTE);
        Scan { state, at, location: "Miami, US".to_owned(), description: None }
    }

    /// Returns `APPLIED`, `RECORDED` or `REJECTED`.
    fn outcome_name(outcome: &ScanOutcome) -> &'static str {
        match outcome {
            ScanOutcome::Applied(ops) => {
                assert!(matches!(ops.as_slice(), [StoreOp::Move { .. }]));
                "APPLIED"
            }
            ScanOutcome::Recorded(ops) => {
                assert!(matches!(ops.as_slice(), [StoreOp::AddEvent { .. }]));
                "RECORDED"
            }
            ScanOutcome::Rejected(_) => "REJECTED",
        }
    }

    #[test]
    fn newer_and_older_scans_are_evaluated_for_all_state_pairs() {
        for (from, next) in TRANSITIONS {
            for (to, _) in TRANSITIONS {
                let ours = Cause::Carrier.allows(to);
                let newer = match (ours, from == to) {
                    (true, true) => "RECORDED",
                    (true, false) if next.contains(&to) => "APPLIED",
                    _ => "REJECTED",
                };
                let older = if ours { "RECORDED" } else { "REJECTED" };
                let evaluate = |minutes| {
                    outcome_name(&evaluate_scan(&parcel("SB-A-000001", from), scan(to, minutes)))
                };
                assert_eq!(
                    (evaluate(0), evaluate(1), evaluate(-1)),
                    (newer, newer, older),
                    "{from:?} {to:?}"
                );
            }
        }
    }

    /// A parcel and its history, as the store keeps them.
    struct StoredParcel {
        row: ParcelRow,
        history: Vec<Event>,
        moves: Vec<State>,
    }

    impl StoredParcel {
        fn apply(&mut self, ops: Vec<StoreOp>) {
            for op in ops {
                match op {
                    StoreOp::Move { event, .. } => {
                        self.row.state = event.state;
                        self.moves.push(event.state);
                        self.add(event);
                    }
                    StoreOp::AddEvent { event, .. } => self.add(event),
                    StoreOp::Schedule { step, .. } => self.row.step = Some(step),
                    StoreOp::CancelSteps { .. } => self.row.step = None,
                    other => panic!("{other:?}"),
                }
            }
        }

        fn add(&mut self, event: Event) {
            self.row.updated_at = self.row.updated_at.max(event.at);
            self.row.last_sequence = event.sequence;
            self.history.push(event);
        }

        fn take_due(&mut self, now: Millis) {
            while let Some(step) = self.row.step.filter(|step| step.due <= now) {
                self.apply(scenario::take_step(&self.row, step));
            }
        }

        /// Moves the parcel as a void or a manifest does, if its state allows it.
        fn try_move(&mut self, cause: Cause, to: State, now: Millis) {
            if self.row.state.can_become_by(cause, to) {
                let event = scan_event(&self.row, Scan { at: now, ..scan(to, 0) });
                let key = self.row.key;
                self.apply(vec![
                    StoreOp::Move { parcel: key, event },
                    StoreOp::CancelSteps { parcel: key },
                ]);
            }
        }
    }

    fn state() -> impl Strategy<Value = State> {
        (1..=13_u8).prop_map(|number| State::from_number(number).unwrap())
    }

    proptest! {
        /// Mixes scans in any order with simulated steps, voids and manifests. The moves are legal, the history is
        /// complete, and its newest event has the parcel's state.
        #[test]
        fn any_scans_and_steps_leave_a_legal_history_in_time_order(
            journey in 0..SCENARIOS.len(),
            events in prop::collection::vec((state(), -30..=5_i64, 0..10_i64, 0..12_u8), 1..60),
        ) {
            let number = format!("{}0001", SCENARIOS[journey].prefix);
            let mut row = parcel(&number, State::LabelGenerated);
            row.step = SCENARIOS[journey].step(0, CREATED);
            let history = Vec::from(history::first_events(&row));
            let mut stored = StoredParcel { row, history, moves: vec![State::LabelGenerated] };
            let mut now = CREATED;
            for (state, ago, pause, kind) in events {
                now = now.plus(pause * Millis::MINUTE);
                stored.take_due(now);
                match kind {
                    0 => stored.try_move(Cause::Void, State::Voided, now),
                    1 => stored.try_move(Cause::Manifest, State::ManifestSubmitted, now),
                    _ => match evaluate_scan(&stored.row, Scan { at: now.plus(ago * Millis::MINUTE), ..scan(state, 0) }) {
                        ScanOutcome::Applied(ops) | ScanOutcome::Recorded(ops) => stored.apply(ops),
                        ScanOutcome::Rejected(_) => {}
                    },
                }
            }
            prop_assert!(stored.moves.windows(2).all(|two| two[0].can_become(two[1])), "{:?}", stored.moves);
            let mut sequences: Vec<_> = stored.history.iter().map(|event| event.sequence).collect();
            sequences.sort_unstable();
            prop_assert_eq!(sequences, (1..=stored.row.last_sequence).collect::<Vec<_>>());
            let newest = stored.history.iter().max_by_key(|event| (event.at, event.sequence)).unwrap();
            prop_assert_eq!((newest.state, newest.at), (stored.row.state, stored.row.updated_at));
        }
    }

    #[test]
    fn a_step_that_a_carrier_reported_first_is_skipped() {
        let mut row = parcel("SB-SUCCESS-0001", State::CustomsClearance);
        let step = Step { index: 0, due: CREATED.plus(5 * Millis::MINUTE) };
        for seen in [4, 5, 6] {
            row.updated_at = CREATED.plus(seen * Millis::MINUTE);
            let ops = scenario::take_step(&row, step);
            assert!(
                matches!(ops.as_slice(), [StoreOp::AddEvent { .. }, StoreOp::Schedule { .. }]),
                "{ops:?}"
            );
        }
        row.state = State::Voided;
        row.updated_at = CREATED;
        let ops = scenario::take_step(&row, step);
        assert!(matches!(ops.as_slice(), [StoreOp::CancelSteps { .. }]), "{ops:?}");
    }

    #[test]
    fn an_accepted_report_is_marked_first_and_a_refused_one_is_logged_only() {
        let row = parcel("SB-A-000001", State::InTransit);
        let evaluate = |state| {
            let report = CarrierReport {
                carrier: CarrierRowId(1),
                event_id: "scan-0001".to_owned(),
                code: None,
                scan: scan(state, 1),
            };
            let (result, changes) = evaluate_report(&row, report, CREATED);
            assert_eq!(changes.expect, [(row.key, row.version)]);
            (result, changes.ops)
        };
        let (result, ops) = evaluate(State::Delivered);
        assert_eq!(result, Ok(CarrierOutcome::Applied));
        let [StoreOp::RecordCarrierEvent(seen), StoreOp::Move { event, .. }] = ops.as_slice()
        else {
            panic!("{ops:?}")
        };
        assert_eq!((seen.sequence, event.sequence), (3, 3));
        let (result, ops) = evaluate(State::InTransit);
        assert_eq!(result, Ok(CarrierOutcome::Recorded));
        assert!(
            matches!(ops.as_slice(), [StoreOp::RecordCarrierEvent(_), StoreOp::AddEvent { .. }]),
            "{ops:?}"
        );
        let (result, ops) = evaluate(State::Voided);
        assert_eq!(result, Err(Refusal::illegal_transition(State::InTransit, State::Voided)));
        assert!(matches!(ops.as_slice(), [StoreOp::LogCarrierException(_)]), "{ops:?}");
    }
}
