//! A model of the service's promises about one order, as if it did one thing at a time.

use crate::linearizability::Model;

/// An order, known by its idempotency key.
pub(crate) struct Order;

/// A call on an order. A call that got no answer is repeated under its key and counts as one call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Call {
    /// The same order under the same key.
    Create,
    /// A void under a separate key.
    Void,
    /// A reprint under a separate key.
    Reprint,
    /// A manifest of this parcel alone, under a separate air waybill.
    Manifest,
    /// A carrier saw the parcel.
    Scan {
        seen: Status,
        /// The moment, later than any date of the servers. `None` if a server's clock is wrong, so that any date may be
        /// later.
        at: Option<u64>,
    },
    /// A request for the status.
    Track,
}

/// An answer to a call. Answers that say nothing about the order (limits, failures of the server) do not count: the
/// call may have taken effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answer {
    /// 201, and a hash of the body.
    Created(u64),
    /// 200, and a hash of the body.
    Repeated(u64),
    /// Voided by this call.
    Voided,
    /// Voided by an earlier one.
    AlreadyVoided,
    /// Printed again, as this version of the label.
    Reprinted(u32),
    /// The manifest was submitted.
    Submitted,
    /// The parcel has the status of the scan.
    Applied,
    /// The scan is in the history, and the parcel's status is unchanged.
    Recorded,
    /// The scan was recorded before.
    TakenBefore,
    /// Refused in the parcel's status.
    Refused,
    /// The carrier's clock is ahead of the server's.
    TooEarly,
    /// The parcel's status.
    Stands(Status),
    /// An answer that no state of the order explains, such as that the parcel does not exist.
    Unexpected,
}

impl Answer {
    /// Returns whether the answer acknowledges a change by this call.
    pub(crate) const fn is_of_write(self) -> bool {
        match self {
            Self::Created(_)
            | Self::Voided
            | Self::Reprinted(_)
            | Self::Submitted
            | Self::Applied
            | Self::Recorded => true,
            Self::Repeated(_)
            | Self::AlreadyVoided
            | Self::TakenBefore
            | Self::Refused
            | Self::TooEarly
            | Self::Stands(_)
            | Self::Unexpected => false,
        }
    }
}

/// The statuses that a parcel can have here: a part of the service's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Status {
    Labelled,
    Manifested,
    PickedUp,
    Clearance,
    InTransit,
    OutForDelivery,
    Delivered,
    Voided,
}

impl Status {
    /// The names on the wire.
    const NAMES: [(Self, &str); 8] = [
        (Self::Labelled, "LABEL_GENERATED"),
        (Self::Manifested, "MANIFEST_SUBMITTED"),
        (Self::PickedUp, "PICKED_UP"),
        (Self::Clearance, "CUSTOMS_CLEARANCE"),
        (Self::InTransit, "IN_TRANSIT"),
        (Self::OutForDelivery, "OUT_FOR_DELIVERY"),
        (Self::Delivered, "DELIVERED"),
        (Self::Voided, "VOIDED"),
    ];

    /// The statuses that carriers report.
    pub(crate) const SEEN: [Self; 5] =
        [Self::PickedUp, Self::Clearance, Self::InTransit, Self::OutForDelivery, Self::Delivered];

    pub(crate) fn parse(name: &str) -> Option<Self> {
        Self::NAMES.iter().find(|(_, known)| *known == name).map(|(status, _)| *status)
    }

    pub(crate) fn name(self) -> &'static str {
        Self::NAMES.iter().find(|(status, _)| *status == self).map_or("", |(_, name)| name)
    }

    /// Returns whether a carrier's scan can lead from this status to `seen`.
    fn leads_to(self, seen: Self) -> bool {
        use Status::{
            Clearance, Delivered, InTransit, Labelled, Manifested, OutForDelivery, PickedUp, Voided,
        };
        match self {
            Labelled | Manifested => matches!(seen, PickedUp | Clearance | InTransit),
            PickedUp => matches!(seen, Clearance | InTransit | OutForDelivery),
            Clearance => matches!(seen, InTransit | OutForDelivery),
            InTransit => matches!(seen, Clearance | OutForDelivery | Delivered),
            OutForDelivery => matches!(seen, InTransit | Delivered),
            Delivered | Voided => false,
        }
    }
}

/// The service's state of an order.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub(crate) enum State {
    #[default]
    Absent,
    Parcel(Parcel),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Parcel {
    /// The hash of the creation's answer, once one arrived.
    creation: Option<u64>,
    status: Status,
    label: u32,
    /// The moment of the newest scan.
    newest: u64,
}

impl Model for Order {
    type State = State;
    type Call = Call;
    type Answer = Answer;

    fn step(state: &State, call: &Call, answer: Option<&Answer>) -> Vec<State> {
        let State::Parcel(parcel) = *state else {
            let created = match (call, answer) {
                (Call::Create, Some(Answer::Created(body))) => Some(Parcel::new(Some(*body))),
                (Call::Create, None) => Some(Parcel::new(None)),
                // The others name a tracking number, which no client has before an answer.
                _ => None,
            };
            return created.map(State::Parcel).into_iter().collect();
        };
        let next = match (call, answer) {
            (Call::Scan { seen, at }, answer) => return parcel.scanned(*seen, *at, answer),
            (_, None) => Some(parcel.after_unheard(*call)),
            (_, Some(answer)) => parcel.after(*call, *answer),
        };
        next.map(State::Parcel).into_iter().collect()
    }
}

impl Parcel {
    const fn new(creation: Option<u64>) -> Self {
        Self { creation, status: Status::Labelled, label: 1, newest: 0 }
    }

    const fn can_be_printed(self) -> bool {
        !matches!(self.status, Status::Voided | Status::Delivered)
    }

    /// Returns the state after a call that was executed but whose answer did not arrive.
    fn after_unheard(self, call: Call) -> Self {
        let is_labelled = self.status == Status::Labelled;
        match call {
            Call::Void if is_labelled => Self { status: Status::Voided, ..self },
            Call::Manifest if is_labelled => Self { status: Status::Manifested, ..self },
            Call::Reprint if self.can_be_printed() => Self { label: self.label + 1, ..self },
            _ => self,
        }
    }

    /// Returns the state after a call, if it can have this answer.
    fn after(self, call: Call, answer: Answer) -> Option<Self> {
        let is_labelled = self.status == Status::Labelled;
        let (fits, next) = match (call, answer) {
            (Call::Create, Answer::Repeated(body)) => (
                self.creation.is_none_or(|known| known == body),
                Self { creation: Some(body), ..self },
            ),
            (Call::Void, Answer::Voided) => (is_labelled, self.after_unheard(call)),
            (Call::Void, Answer::AlreadyVoided) => (self.status == Status::Voided, self),
            (Call::Void, Answer::Refused) => (!is_labelled && self.status != Status::Voided, self),
            (Call::Manifest, Answer::Submitted) => (is_labelled, self.after_unheard(call)),
            (Call::Manifest, Answer::Refused) => (!is_labelled, self),
            (Call::Reprint, Answer::Reprinted(version)) => {
                (self.can_be_printed() && version == self.label + 1, self.after_unheard(call))
            }
            (Call::Reprint, Answer::Refused) => (!self.can_be_printed(), self),
            (Call::Track, Answer::Stands(seen)) => (seen == self.status, self),
            _ => (false, self),
        };
        fits.then_some(next)
    }

    /// Returns the possible states after a scan. A carrier's answer tells them apart.
    fn scanned(self, seen: Status, at: Option<u64>, answer: Option<&Answer>) -> Vec<State> {
        let newest = at.map_or(0, |at| at.max(self.newest));
        let is_late = at.map(|at| at < self.newest);
        let moved = Self { status: seen, newest, ..self };
        let kept = Self { newest, ..self };
        let can_move = self.status.leads_to(seen) && is_late != Some(true);
        let can_stay = self.status == seen || is_late != Some(false);
        let possible: &[(bool, Self)] = match answer {
            Some(Answer::Applied) => &[(can_move, moved)],
            Some(Answer::Recorded) => &[(can_stay, kept)],
            Some(Answer::TakenBefore) => &[(can_move, moved), (can_stay, kept)],
            Some(Answer::Refused) => {
                &[(!can_move && self.status != seen && is_late != Some(true), self)]
            }
            Some(Answer::TooEarly) => &[(at.is_none(), self)],
            None => &[(can_move, moved), (can_stay, kept), (!can_move && !can_stay, self)],
            Some(_) => &[],
        };
        possible.iter().filter(|(fits, _)| *fits).map(|(_, next)| State::Parcel(*next)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linearizability::{Record, end_states};

    fn is_linearizable(records: &[Record<Call, Answer>]) -> bool {
        !end_states::<Order>(&[State::Absent], records).is_empty()
    }

    /// Returns whether sequential calls can have these answers.
    fn in_turn(calls: &[(Call, Option<Answer>)]) -> bool {
        let records = calls.iter().enumerate().map(|(at, (call, answer))| {
            let started = 2 * at as u64;
            Record { call: *call, started, answered: answer.map(|answer| (started + 1, answer)) }
        });
        is_linearizable(&records.collect::<Vec<_>>())
    }

    use Answer::{
        AlreadyVoided, Applied, Created, Recorded, Refused, Repeated, Reprinted, Stands, Submitted,
        TakenBefore, TooEarly, Unexpected, Voided,
    };
    use Call::{Create, Manifest, Reprint, Track, Void};

    #[test]
    fn one_key_is_one_parcel_with_one_answer() {
        assert!(in_turn(&[(Create, Some(Created(7))), (Create, Some(Repeated(7)))]));
        assert!(!in_turn(&[(Create, Some(Created(7))), (Create, Some(Created(8)))]), "doubled");
        assert!(
            !in_turn(&[(Create, Some(Created(7))), (Create, Some(Repeated(8)))]),
            "another answer"
        );
        assert!(!in_turn(&[(Create, Some(Repeated(7)))]), "a repetition of nothing");
        assert!(in_turn(&[(Create, None), (Create, Some(Repeated(7)))]), "the first was executed");
        assert!(in_turn(&[(Create, None), (Create, Some(Created(7)))]), "the first was not");
        assert!(
            !in_turn(&[(Create, Some(Created(7))), (Create, None), (Create, Some(Created(7)))]),
            "lost"
        );
    }

    #[test]
    fn a_parcel_goes_its_way_once_and_is_seen_there() {
        let voided = [(Create, Some(Created(7))), (Void, Some(Voided))];
        let then = |call, answer| in_turn(&[voided[0], voided[1], (call, Some(answer))]);
        assert!(then(Void, AlreadyVoided) && then(Track, Stands(Status::Voided)));
        assert!(then(Manifest, Refused) && then(Reprint, Refused));
        assert!(!then(Void, Voided), "voided twice");
        assert!(!then(Manifest, Submitted), "shipped after it was voided");
        assert!(!then(Track, Stands(Status::Labelled)), "a stale read");
        assert!(!then(Reprint, Reprinted(2)), "a label for a voided parcel");
        assert!(!then(Track, Unexpected), "no such parcel");
        let labels = |version| {
            in_turn(&[
                (Create, Some(Created(7))),
                (Reprint, Some(Reprinted(2))),
                (Reprint, Some(Reprinted(version))),
            ])
        };
        assert!(labels(3) && !labels(2) && !labels(4));
    }

    #[test]
    fn a_scan_moves_the_parcel_once_and_a_late_one_does_not() {
        let scan = |seen, at| Call::Scan { seen, at: Some(at) };
        let picked_up = [(Create, Some(Created(7))), (scan(Status::PickedUp, 5), Some(Applied))];
        let then = |call, answer| in_turn(&[picked_up[0], picked_up[1], (call, Some(answer))]);
        assert!(then(scan(Status::InTransit, 6), Applied));
        assert!(!then(scan(Status::InTransit, 6), Recorded), "it was not late");
        assert!(!then(scan(Status::InTransit, 6), Refused), "it can follow");
        assert!(
            then(scan(Status::InTransit, 4), Recorded) && then(scan(Status::PickedUp, 6), Recorded)
        );
        assert!(!then(scan(Status::InTransit, 4), Applied), "an older scan moved it");
        assert!(then(scan(Status::Delivered, 6), Refused));
        assert!(!then(scan(Status::Delivered, 6), Applied), "against the table");
        assert!(!then(scan(Status::InTransit, 6), TooEarly), "the clocks are right");
        assert!(!then(Void, Voided) && then(Void, Refused));
        let heard_late = |seen| {
            let scan = (scan(Status::InTransit, 6), Some(TakenBefore));
            in_turn(&[picked_up[0], picked_up[1], scan, (Track, Some(Stands(seen)))])
        };
        assert!(heard_late(Status::InTransit) && !heard_late(Status::PickedUp));
        let doubtful = Call::Scan { seen: Status::InTransit, at: None };
        assert!(then(doubtful, Applied) && then(doubtful, Recorded) && then(doubtful, TooEarly));
    }

    #[test]
    fn of_two_calls_at_once_either_may_be_first_but_not_both() {
        let both = |void, manifest| {
            is_linearizable(&[
                Record { call: Create, started: 0, answered: Some((1, Created(7))) },
                Record { call: Void, started: 2, answered: Some((5, void)) },
                Record { call: Manifest, started: 3, answered: Some((4, manifest)) },
            ])
        };
        assert!(both(Voided, Refused) && both(Refused, Submitted));
        assert!(!both(Voided, Submitted) && !both(Refused, Refused));
    }
}
