//! The sandbox's simulated journeys, as a table of steps with their times
//! (spec: States and transitions; docs/api.md, Sandbox).

use parcelo_types::TrackingNumber;

use super::State::{
    self, CustomsClearance, CustomsHold, Delivered, DeliveryAttempted, DeliveryFailed, InTransit,
    OutForDelivery, ReturnToSender,
};
use super::{
    ParcelRow, Scan, Step, StoreOp,
    carrier::{self, ScanOutcome},
};
use crate::Millis;

/// A simulated journey: the prefix of the tracking numbers that choose it, and its steps.
#[derive(Debug)]
pub struct Scenario {
    /// The prefix of a tracking number.
    pub prefix: &'static str,
    /// The minutes after creation, and the state that is reached then.
    pub steps: &'static [(i64, State)],
}

/// Every simulated journey.
pub const SCENARIOS: [Scenario; 4] = [
    Scenario {
        prefix: "SB-SUCCESS-",
        steps: &[(5, CustomsClearance), (10, InTransit), (15, OutForDelivery), (20, Delivered)],
    },
    Scenario {
        prefix: "SB-FAIL-",
        steps: &[(5, InTransit), (10, DeliveryAttempted), (15, DeliveryFailed)],
    },
    Scenario {
        prefix: "SB-CUSTOMS-",
        steps: &[(5, CustomsClearance), (10, CustomsHold), (70, CustomsClearance), (75, InTransit)],
    },
    Scenario {
        prefix: "SB-RTS-",
        steps: &[(5, InTransit), (10, DeliveryAttempted), (15, ReturnToSender)],
    },
];

impl Scenario {
    /// Returns the journey that a tracking number chooses; `None` for most numbers.
    pub fn for_number(number: &TrackingNumber) -> Option<&'static Self> {
        SCENARIOS.iter().find(|scenario| number.starts_with(scenario.prefix))
    }

    /// Returns the step with this index for an order created at `created`.
    pub fn step(&self, index: u8, created: Millis) -> Option<Step> {
        let (minutes, _) = self.steps.get(usize::from(index))?;
        Some(Step { index, due: created.plus(minutes * Millis::MINUTE) })
    }
}

/// Takes a step that is due: evaluates its scan like a carrier's at the scheduled time, and schedules the next step.
/// The journey ends if the parcel's state does not allow the step.
pub fn take_step(parcel: &ParcelRow, step: Step) -> Vec<StoreOp> {
    let end = StoreOp::CancelSteps { parcel: parcel.key };
    let Some(scenario) = Scenario::for_number(&parcel.tracking_number) else { return vec![end] };
    let Some((_, state)) = scenario.steps.get(usize::from(step.index)) else { return vec![end] };
    let location = parcel.destination.clone();
    let scan = Scan { state: *state, at: step.due, location, description: None };
    match carrier::evaluate_scan(parcel, scan) {
        ScanOutcome::Applied(mut ops) | ScanOutcome::Recorded(mut ops) => {
            ops.push(match scenario.step(step.index + 1, parcel.created_at) {
                Some(step) => StoreOp::Schedule { parcel: parcel.key, step },
                None => end,
            });
            ops
        }
        ScanOutcome::Rejected(_) => vec![end],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_journey_is_legal_from_the_label_on() {
        for scenario in &SCENARIOS {
            let mut state = State::LabelGenerated;
            let mut last = 0;
            for (minutes, next) in scenario.steps {
                assert!(state.can_become(*next), "{} {state:?} {next:?}", scenario.prefix);
                let pause = if state == CustomsHold { 60 } else { 5 };
                assert_eq!(minutes - last, pause, "{} {next:?}", scenario.prefix);
                (state, last) = (*next, *minutes);
            }
        }
    }

    #[test]
    fn the_prefix_chooses_the_scenario_in_any_case() {
        let prefix = |text| {
            TrackingNumber::parse(text)
                .ok()
                .and_then(|n| Scenario::for_number(&n))
                .map(|s| s.prefix)
        };
        assert_eq!(prefix("sb-success-0001"), Some("SB-SUCCESS-"));
        assert_eq!(prefix("SB-CUSTOMS-1"), Some("SB-CUSTOMS-"));
        assert_eq!(prefix("SB-SUCCESSFUL1"), None);
        assert_eq!(prefix("SBEC7K2M9QX4T8"), None);
    }
}
