//! A model of what the service promises about one order: the answers of a service that executes one call at a time.
//! `linearizability.rs` checks that the answers of the real service fit it.

use crate::linearizability::Model;

/// The model of an order, which is identified by its idempotency key.
pub(crate) struct Order;

/// A call on an order. Attempts without an answer are repeated under the same key and count as one call.
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
    /// A carrier's scan of the parcel.
    Scan {
        reported: Status,
        /// The moment of the scan, which is later than any date of the servers; `None` if a server's clock is stepped
        /// and its dates may be later.
        at: Option<u64>,
    },
    /// A request for the status.
    Track,
}

/// An answer to a call. Responses that say nothing about the order, such as server errors, are not recorded as answers,
/// because the call may have taken effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answer {
    /// 201, and a hash of the body.
    Created(u64),
    /// 200, and a hash of the body.
    Repeated(u64),
    /// Voided by this call.
    Voided,
    /// Voided before, by an earlier call.
    AlreadyVoided,
    /// Printed again, as this version of the label.
    Reprinted(u32),
    /// The manifest was submitted.
    Submitted,
    /// The parcel now has the status of the scan.
    Applied,
    /// The scan is in the history, and the parcel's status is unchanged.
    Recorded,
    /// The scan was recorded before.
    DuplicateScan,
    /// The parcel's status does not allow the call.
    Refused,
    /// The scan's time is too far in the future for the server's clock.
    TooEarly,
    /// The parcel's status.
    HasStatus(Status),
    /// An answer that is impossible in every state, such as that the parcel does not exist.
    Unexpected,
}

impl Answer {
    /// Returns `true` if the answer acknowledges a change by this call.
    pub(crate) const fn is_acknowledged_write(self) -> bool {
        match self {
            Self::Created(_)
            | Self::Voided
            | Self::Reprinted(_)
            | Self::Submitted
            | Self::Applied
            | Self::Recorded => true,
            Self::Repeated(_)
            | Self::AlreadyVoided
            | Self::DuplicateScan
            | Self::Refused
            | Self::TooEarly
            | Self::HasStatus(_)
            | Self::Unexpected => false,
        }
    }
}

/// The statuses that a parcel can have in this test, a subset of the service's.
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
    pub(crate) const REPORTED_BY_CARRIERS: [Self; 5] =
        [Self::PickedUp, Self::Clearance, Self::InTransit, Self::OutForDelivery, Self::Delivered];

    pub(crate) fn parse(name: &str) -> Option<Self> {
        Self::NAMES.iter().find(|(_, known)| *known == name).map(|(status, _)| *status)
    }

    pub(crate) fn name(self) -> &'static str {
        Self::NAMES.iter().find(|(status, _)| *status == self).map_or("", |(_, name)| name)
    }

    /// Returns `true` if a scan can change this status to `reported`.
    fn allows_scan(self, reported: Self) -> bool {
        use Status::{
            Clearance, Delivered, InTransit, Labelled, Manifested, OutForDelivery, PickedUp, Voided,
        };
        match self {
            Labelled | Manifested => matches!(reported, PickedUp | Clearance | InTransit),
            PickedUp => matches!(reported, Clearance | InTransit | OutForDelivery),
            Clearance => matches!(reported, InTransit | OutForDelivery),
            InTransit => matches!(reported, Clearance | OutForDelivery | Delivered),
            OutForDelivery => matches!(reported, InTransit | Delivered),
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
    /// The hash of the creation's response; `None` until one has arrived.
    creation: Option<u64>,
    status: Status,
    label: u32,
    /// The moment of the newest scan.
    newest_scan: u64,
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
                // Every other call needs a tracking number, which no client has before an answer.
                _ => None,
            };
            return created.map(State::Parcel).into_iter().collect();
        };
        let next = match (call, answer) {
            (Call::Scan { reported, at }, answer) => {
                return parcel.after_scan(*reported, *at, answer);
            }
            (_, None) => Some(parcel.after_unanswered(*call)),
            (_, Some(answer)) => parcel.after_answer(*call, *answer),
        };
        next.map(State::Parcel).into_iter().collect()
    }
}

impl Parcel {
    const fn new(creation: Option<u64>) -> Self {
        Self { creation, status: Status::Labelled, label: 1, newest_scan: 0 }
    }

    const fn can_be_printed(self) -> bool {
        !matches!(self.status, Status::Voided | Status::Delivered)
    }

    /// Returns the state after a call that was executed, but whose answer was lost.
    fn after_unanswered(self, call: Call) -> Self {
        let is_labelled = self.status == Status::Labelled;
        match call {
            Call::Void if is_labelled => Self { status: Status::Voided, ..self },
            Call::Manifest if is_labelled => Self { status: Status::Manifested, ..self },
            Call::Reprint if self.can_be_printed() => Self { label: self.label + 1, ..self },
            _ => self,
        }
    }

    /// Returns the state after a call; `None` if the call cannot have this answer.
    fn after_answer(self, call: Call, answer: Answer) -> Option<Self> {
        let is_labelled = self.status == Status::Labelled;
        let (fits, next) = match (call, answer) {
            (Call::Create, Answer::Repeated(body)) => (
                self.creation.is_none_or(|known| known == body),
                Self { creation: Some(body), ..self },
            ),
            (Call::Void, Answer::Voided) => (is_labelled, self.after_unanswered(call)),
            (Call::Void, Answer::AlreadyVoided) => (self.status == Status::Voided, self),
            (Call::Void, Answer::Refused) => (!is_labelled && self.status != Status::Voided, self),
            (Call::Manifest, Answer::Submitted) => (is_labelled, self.after_unanswered(call)),
            (Call::Manifest, Answer::Refused) => (!is_labelled, self),
            (Call::Reprint, Answer::Reprinted(version)) => {
                (self.can_be_printed() && version == self.label + 1, self.after_unanswered(call))
            }
            (Call::Reprint, Answer::Refused) => (!self.can_be_printed(), self),
            (Call::Track, Answer::HasStatus(reported)) => (reported == self.status, self),
            _ => (false, self),
        };
        fits.then_some(next)
    }

    /// Returns the possible states after a scan with this answer.
    fn after_scan(self, reported: Status, at: Option<u64>, answer: Option<&Answer>) -> Vec<State> {
        let newest_scan = at.map_or(0, |at| at.max(self.newest_scan));
        let is_late = at.map(|at| at < self.newest_scan);
        let moved = Self { status: reported, newest_scan, ..self };
        let recorded = Self { newest_scan, ..self };
        let can_move = self.status.allows_scan(reported) && is_late != Some(true);
        let can_stay = self.status == reported || is_late != Some(false);
        let possible: &[(bool, Self)] = match answer {
            Some(Answer::Applied) => &[(can_move, moved)],
            Some(Answer::Recorded) => &[(can_stay, recorded)],
            Some(Answer::DuplicateScan) => &[(can_move, moved), (can_stay, recorded)],
            Some(Answer::Refused) => {
                &[(!can_move && self.status != reported && is_late != Some(true), self)]
            }
            Some(Answer::TooEarly) => &[(at.is_none(), self)],
            None => &[(can_move, moved), (can_stay, recorded), (!can_move && !can_stay, self)],
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

    /// Returns `true` if sequential calls can have these answers.
    fn accepts_sequence(calls: &[(Call, Option<Answer>)]) -> bool {
        let records = calls.iter().enumerate().map(|(at, (call, answer))| {
            let started = 2 * at as u64;
            Record { call: *call, started, answered: answer.map(|answer| (started + 1, answer)) }
        });
        is_linearizable(&records.collect::<Vec<_>>())
    }

    use Answer::{
        AlreadyVoided, Applied, Created, DuplicateScan, HasStatus, Recorded, Refused, Repeated,
        Reprinted, Submitted, TooEarly, Unexpected, Voided,
    };
    use Call::{Create, Manifest, Reprint, Track, Void};

    #[test]
    fn a_repeat_under_a_key_gets_the_first_answer() {
        assert!(accepts_sequence(&[(Create, Some(Created(7))), (Create, Some(Repeated(7)))]));
        assert!(
            !accepts_sequence(&[(Create, Some(Created(7))), (Create, Some(Created(8)))]),
            "doubled"
        );
        assert!(
            !accepts_sequence(&[(Create, Some(Created(7))), (Create, Some(Repeated(8)))]),
            "another answer"
        );
        assert!(!accepts_sequence(&[(Create, Some(Repeated(7)))]), "a repetition of nothing");
        assert!(
            accepts_sequence(&[(Create, None), (Create, Some(Repeated(7)))]),
            "the first was executed"
        );
        assert!(
            accepts_sequence(&[(Create, None), (Create, Some(Created(7)))]),
            "the first was not"
        );
        assert!(
            !accepts_sequence(&[
                (Create, Some(Created(7))),
                (Create, None),
                (Create, Some(Created(7)))
            ]),
            "lost"
        );
    }

    #[test]
    fn a_voided_parcel_is_never_shipped_or_printed() {
        let voided = [(Create, Some(Created(7))), (Void, Some(Voided))];
        let accepts_next =
            |call, answer| accepts_sequence(&[voided[0], voided[1], (call, Some(answer))]);
        assert!(
            accepts_next(Void, AlreadyVoided) && accepts_next(Track, HasStatus(Status::Voided))
        );
        assert!(accepts_next(Manifest, Refused) && accepts_next(Reprint, Refused));
        assert!(!accepts_next(Void, Voided), "voided twice");
        assert!(!accepts_next(Manifest, Submitted), "shipped after it was voided");
        assert!(!accepts_next(Track, HasStatus(Status::Labelled)), "a stale read");
        assert!(!accepts_next(Reprint, Reprinted(2)), "a label for a voided parcel");
        assert!(!accepts_next(Track, Unexpected), "no such parcel");
        let accepts_second_reprint = |version| {
            accepts_sequence(&[
                (Create, Some(Created(7))),
                (Reprint, Some(Reprinted(2))),
                (Reprint, Some(Reprinted(version))),
            ])
        };
        assert!(
            accepts_second_reprint(3) && !accepts_second_reprint(2) && !accepts_second_reprint(4)
        );
    }

    #[test]
    fn a_late_scan_does_not_change_the_status() {
        let scan = |reported, at| Call::Scan { reported, at: Some(at) };
        let picked_up = [(Create, Some(Created(7))), (scan(Status::PickedUp, 5), Some(Applied))];
        let accepts_next =
            |call, answer| accepts_sequence(&[picked_up[0], picked_up[1], (call, Some(answer))]);
        assert!(accepts_next(scan(Status::InTransit, 6), Applied));
        assert!(!accepts_next(scan(Status::InTransit, 6), Recorded), "it was not late");
        assert!(!accepts_next(scan(Status::InTransit, 6), Refused), "it can follow");
        assert!(
            accepts_next(scan(Status::InTransit, 4), Recorded)
                && accepts_next(scan(Status::PickedUp, 6), Recorded)
        );
        assert!(!accepts_next(scan(Status::InTransit, 4), Applied), "an older scan moved it");
        assert!(accepts_next(scan(Status::Delivered, 6), Refused));
        assert!(!accepts_next(scan(Status::Delivered, 6), Applied), "against the table");
        assert!(!accepts_next(scan(Status::InTransit, 6), TooEarly), "the clocks are right");
        assert!(!accepts_next(Void, Voided) && accepts_next(Void, Refused));
        let reported_late = |reported| {
            let scan = (scan(Status::InTransit, 6), Some(DuplicateScan));
            accepts_sequence(&[
                picked_up[0],
                picked_up[1],
                scan,
                (Track, Some(HasStatus(reported))),
            ])
        };
        assert!(reported_late(Status::InTransit) && !reported_late(Status::PickedUp));
        let doubtful = Call::Scan { reported: Status::InTransit, at: None };
        assert!(
            accepts_next(doubtful, Applied)
                && accepts_next(doubtful, Recorded)
                && accepts_next(doubtful, TooEarly)
        );
    }

    #[test]
    fn a_concurrent_void_and_manifest_cannot_both_succeed() {
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
