//! The state machine of a parcel: one table for production and sandbox (docs/api.md, State machine).

use parcelo::ParcelStatus;

/// Where a parcel stands: the closed counterpart of [`ParcelStatus`].
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

impl State {
    /// Whether `to` may follow.
    pub fn can_become(self, to: Self) -> bool {
        TRANSITIONS.iter().any(|(from, next)| *from == self && next.contains(&to))
    }

    /// The number under which the state is stored.
    pub const fn number(self) -> u8 {
        self as u8
    }

    /// The state that a status on the wire names.
    pub fn of(status: &ParcelStatus) -> Option<Self> {
        TRANSITIONS
            .iter()
            .map(|(state, _)| *state)
            .find(|state| ParcelStatus::from(*state) == *status)
    }

    /// The state stored under a number.
    pub fn of_number(number: u8) -> Option<Self> {
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
    use super::*;

    #[test]
    fn the_table_has_every_state_once_and_42_transitions() {
        let arrows: usize = TRANSITIONS.iter().map(|(_, next)| next.len()).sum();
        assert_eq!(arrows, 42);
        for (place, (state, _)) in TRANSITIONS.iter().enumerate() {
            assert_eq!(State::of_number(state.number()), Some(*state));
            assert!(TRANSITIONS[place + 1..].iter().all(|(other, _)| other != state));
        }
        assert_eq!(State::of_number(0), None);
    }

    #[test]
    fn states_and_wire_statuses_are_the_same_thirteen() {
        let of_states: Vec<_> = TRANSITIONS.iter().map(|(s, _)| ParcelStatus::from(*s)).collect();
        assert_eq!(of_states.len(), ParcelStatus::KNOWN.len());
        assert!(ParcelStatus::KNOWN.iter().all(|status| of_states.contains(status)));
    }
}
