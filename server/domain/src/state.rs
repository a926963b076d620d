//! The state machine of a parcel: one table for production and sandbox (docs/api.md, State machine).

use std::collections::VecDeque;

use parcelo_types::ParcelStatus;

/// The state of a parcel: the closed counterpart of [`ParcelStatus`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
#[expect(missing_docs, reason = "each is documented at the status it stands for")]
pub enum State {
    Ordered = 1,
    LabelGenerated = 2,
    ManifestSubmitted = 3,
    PickedUp = 4,
    CustomsClearance = 5,
    CustomsHold = 6,
    InTransit = 7,
    OutForDelivery = 8,
    DeliveryAttempted = 9,
    Delivered = 10,
    DeliveryFailed = 11,
    ReturnToSender = 12,
    Voided = 13,
}

use State::{
    CustomsClearance, CustomsHold, Delivered, DeliveryAttempted, DeliveryFailed, InTransit,
    LabelGenerated, ManifestSubmitted, Ordered, OutForDelivery, PickedUp, ReturnToSender, Voided,
};

/// Each state with the states that may follow it.
pub const TRANSITIONS: [(State, &[State]); 13] = [
    (Ordered, &[LabelGenerated, Voided]),
    (LabelGenerated, &[ManifestSubmitted, PickedUp, CustomsClearance, InTransit, Voided]),
    (ManifestSubmitted, &[PickedUp, CustomsClearance, InTransit]),
    (PickedUp, &[CustomsClearance, CustomsHold, InTransit, OutForDelivery, ReturnToSender]),
    (CustomsClearance, &[CustomsHold, InTransit, OutForDelivery, ReturnToSender]),
    (CustomsHold, &[CustomsClearance, InTransit, ReturnToSender]),
    (
        InTransit,
        &[
            CustomsClearance,
            CustomsHold,
            OutForDelivery,
            DeliveryAttempted,
            Delivered,
            DeliveryFailed,
            ReturnToSender,
        ],
    ),
    (OutForDelivery, &[Delivered, DeliveryAttempted, DeliveryFailed, InTransit, ReturnToSender]),
    (DeliveryAttempted, &[OutForDelivery, InTransit, Delivered, DeliveryFailed, ReturnToSender]),
    (DeliveryFailed, &[OutForDelivery, Delivered, ReturnToSender]),
    (Delivered, &[]),
    (ReturnToSender, &[]),
    (Voided, &[]),
];

/// The cause of a change of a parcel's state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Cause {
    /// The order is created.
    Create,
    /// The order is voided.
    Void,
    /// The parcel joins a manifest.
    Manifest,
    /// A carrier reports a scan, or the sandbox simulates one.
    Carrier,
}

impl Cause {
    /// Every cause.
    pub const ALL: [Self; 4] = [Self::Create, Self::Void, Self::Manifest, Self::Carrier];

    /// Returns `true` if this cause can lead to `to` from any state. Each state has exactly one cause.
    pub const fn allows(self, to: State) -> bool {
        match to {
            Ordered | LabelGenerated => matches!(self, Self::Create),
            Voided => matches!(self, Self::Void),
            ManifestSubmitted => matches!(self, Self::Manifest),
            PickedUp | CustomsClearance | CustomsHold | InTransit | OutForDelivery
            | DeliveryAttempted | Delivered | DeliveryFailed | ReturnToSender => {
                matches!(self, Self::Carrier)
            }
        }
    }
}

impl State {
    /// Returns `true` if `to` may follow.
    pub fn can_become(self, to: Self) -> bool {
        TRANSITIONS.iter().any(|(from, next)| *from == self && next.contains(&to))
    }

    /// Returns the shortest path to `to`, without `self` and including `to`; `None` if no path exists.
    pub fn shortest_path_to(self, to: Self) -> Option<Vec<Self>> {
        let (mut seen, mut ways) = (vec![self], VecDeque::from([Vec::new()]));
        while let Some(way) = ways.pop_front() {
            let here = way.last().copied().unwrap_or(self);
            if here == to {
                return Some(way);
            }
            let next = TRANSITIONS.iter().filter(|(from, _)| *from == here);
            for step in next.flat_map(|(_, next)| *next) {
                if !seen.contains(step) {
                    seen.push(*step);
                    ways.push_back([way.as_slice(), &[*step]].concat());
                }
            }
        }
        None
    }

    /// Returns the cause that leads to this state.
    pub fn cause(self) -> Cause {
        let cause = Cause::ALL.into_iter().find(|cause| cause.allows(self));
        cause.unwrap_or(Cause::Create)
    }

    /// Returns `true` if `to` may follow because of `cause`.
    pub fn can_become_by(self, cause: Cause, to: Self) -> bool {
        cause.allows(to) && self.can_become(to)
    }

    /// Returns the state for a status on the wire, or `None` for a status that this version does not know.
    pub fn from_status(status: &ParcelStatus) -> Option<Self> {
        TRANSITIONS
            .iter()
            .map(|(state, _)| *state)
            .find(|state| ParcelStatus::from(*state) == *status)
    }

    /// Returns the number under which the state is stored.
    pub const fn number(self) -> u8 {
        self as u8
    }

    /// Returns the state stored under a number.
    pub fn from_number(number: u8) -> Option<Self> {
        TRANSITIONS.iter().map(|(state, _)| *state).find(|state| state.number() == number)
    }
}

impl From<State> for ParcelStatus {
    fn from(state: State) -> Self {
        match state {
            Ordered => Self::Ordered,
            LabelGenerated => Self::LabelGenerated,
            ManifestSubmitted => Self::ManifestSubmitted,
            PickedUp => Self::PickedUp,
            CustomsClearance => Self::CustomsClearance,
            CustomsHold => Self::CustomsHold,
            InTransit => Self::InTransit,
            OutForDelivery => Self::OutForDelivery,
            DeliveryAttempted => Self::DeliveryAttempted,
            Delivered => Self::Delivered,
            DeliveryFailed => Self::DeliveryFailed,
            ReturnToSender => Self::ReturnToSender,
            Voided => Self::Voided,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn the_table_has_every_state_once_and_42_transitions() {
        let arrows: usize = TRANSITIONS.iter().map(|(_, next)| next.len()).sum();
        assert_eq!(arrows, 42);
        for (place, (state, _)) in TRANSITIONS.iter().enumerate() {
            assert_eq!(State::from_number(state.number()), Some(*state));
            assert!(TRANSITIONS[place + 1..].iter().all(|(other, _)| other != state));
        }
        assert_eq!(State::from_number(0), None);
    }

    #[test]
    fn the_reference_has_these_transitions() {
        let reference = include_str!("../../../docs/api.md");
        let table = reference.split("\n| from | to |\n|---|---|\n").nth(1).unwrap();
        let mut documented = BTreeSet::new();
        for line in table.lines().take_while(|line| line.starts_with('|')) {
            let [from, to] = [1, 2].map(|cell| line.split('|').nth(cell).unwrap().trim());
            for from in from.split(", ") {
                let next = to.split(", ").filter(|to| *to != "final");
                documented.extend(next.map(|to| format!("{from} > {to}")));
            }
        }
        let mut allowed = BTreeSet::from(["(none) > ORDERED".to_owned()]);
        for (from, next) in TRANSITIONS {
            let name = |state: &State| ParcelStatus::from(*state).to_string();
            allowed.extend(next.iter().map(|to| format!("{} > {}", name(&from), name(to))));
        }
        assert_eq!(documented, allowed, "the table of transitions in docs/api.md");
    }

    #[test]
    fn states_and_wire_statuses_are_the_same_thirteen() {
        let states: Vec<_> = TRANSITIONS.iter().map(|(s, _)| ParcelStatus::from(*s)).collect();
        assert_eq!(states.len(), ParcelStatus::KNOWN.len());
        assert!(ParcelStatus::KNOWN.iter().all(|status| states.contains(status)));
        for (state, _) in TRANSITIONS {
            assert_eq!(State::from_status(&ParcelStatus::from(state)), Some(state));
        }
        assert_eq!(State::from_status(&ParcelStatus::from("LOST_AT_SEA")), None);
    }

    #[test]
    fn final_statuses_are_states_without_successors() {
        for (state, next) in TRANSITIONS {
            assert_eq!(ParcelStatus::from(state).is_final(), next.is_empty(), "{state:?}");
        }
        assert!(!ParcelStatus::from("LOST_AT_SEA").is_final());
    }

    /// The reference lists the transitions; this table has the cause that leads to each state.
    const CAUSES: [(Cause, &[State]); 4] = [
        (Cause::Create, &[Ordered, LabelGenerated]),
        (Cause::Void, &[Voided]),
        (Cause::Manifest, &[ManifestSubmitted]),
        (
            Cause::Carrier,
            &[
                PickedUp,
                CustomsClearance,
                CustomsHold,
                InTransit,
                OutForDelivery,
                DeliveryAttempted,
                Delivered,
                DeliveryFailed,
                ReturnToSender,
            ],
        ),
    ];

    #[test]
    fn every_pair_of_states_is_decided_for_each_cause() {
        for (to, _) in TRANSITIONS {
            let (cause, _) = CAUSES.into_iter().find(|(_, states)| states.contains(&to)).unwrap();
            assert_eq!(to.cause(), cause, "{to:?}");
            for other in Cause::ALL {
                assert_eq!(other.allows(to), other == cause, "{other:?}: {to:?}");
                for (from, next) in TRANSITIONS {
                    let may = next.contains(&to) && other == cause;
                    assert_eq!(from.can_become_by(other, to), may, "{other:?}: {from:?} to {to:?}");
                }
            }
        }
    }

    #[test]
    fn the_shortest_path_is_legal_and_found_if_it_exists() {
        let ways = [
            (LabelGenerated, Delivered, Some(vec![InTransit, Delivered])),
            (LabelGenerated, ManifestSubmitted, Some(vec![ManifestSubmitted])),
            (CustomsHold, DeliveryFailed, Some(vec![InTransit, DeliveryFailed])),
            (Delivered, Delivered, Some(vec![])),
            (Delivered, InTransit, None),
            (InTransit, Voided, None),
        ];
        for (from, to, way) in ways {
            assert_eq!(from.shortest_path_to(to), way, "{from:?} {to:?}");
        }
        for (from, next) in TRANSITIONS {
            for (to, _) in TRANSITIONS {
                let through = next.iter().any(|next| next.shortest_path_to(to).is_some());
                let way = from.shortest_path_to(to);
                assert_eq!(way.is_some(), from == to || through, "{from:?} {to:?}");
                let states = [vec![from], way.unwrap_or_default()].concat();
                assert!(states.windows(2).all(|two| two[0].can_become(two[1])), "{states:?}");
            }
        }
    }
}
