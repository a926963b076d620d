//! What the service promises about one order, as if it did one thing at a time.

use crate::linearizability::Model;

/// An order, known by its idempotency key.
pub(crate) struct Order;

/// What can be asked about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Call {
    /// The same order under the same key.
    Create,
    /// A void under a key of its own.
    Void,
    /// A reprint under a key of its own.
    Reprint,
    /// A manifest of this parcel alone, under an air waybill of its own.
    Manifest,
    /// Its status.
    Track,
}

/// What was answered. Answers that say nothing of the order (limits, failures of the server) are no
/// answers: the call may have taken effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answer {
    /// 201, and a hash of the body.
    Created(u64),
    /// 200, and a hash of the body without its request id.
    Repeated(u64),
    /// Voided by this call.
    Voided,
    /// Voided by an earlier one.
    AlreadyVoided,
    /// Printed again, as this version of the label.
    Reprinted(u32),
    /// The manifest was submitted.
    Submitted,
    /// Not in this status.
    Refused,
    /// Where the parcel stands.
    Stands(Status),
}

/// Where a parcel of production can stand as long as no carrier reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Status {
    Labelled,
    Manifested,
    Voided,
}

/// What the service knows of an order.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub(crate) enum State {
    #[default]
    Absent,
    Parcel {
        /// None until an answer of the creation was heard.
        creation: Option<u64>,
        status: Status,
        label: u32,
    },
}

impl Model for Order {
    type State = State;
    type Call = Call;
    type Answer = Answer;

    fn step(state: &State, call: &Call, answer: Option<&Answer>) -> Option<State> {
        let State::Parcel { creation, status, label } = *state else {
            return match (call, answer) {
                (Call::Create, Some(Answer::Created(body))) => Some(new_parcel(Some(*body))),
                (Call::Create, None) => Some(new_parcel(None)),
                // The others name a tracking number, which no client has before an answer.
                _ => None,
            };
        };
        let parcel = |status, label| State::Parcel { creation, status, label };
        let is_labelled = status == Status::Labelled;
        match (call, answer) {
            (Call::Create, None) => Some(*state),
            (Call::Create, Some(Answer::Repeated(body))) => creation
                .is_none_or(|known| known == *body)
                .then_some(State::Parcel { creation: Some(*body), status, label }),
            (Call::Void, None) if is_labelled => Some(parcel(Status::Voided, label)),
            (Call::Void, Some(Answer::Voided)) => {
                is_labelled.then_some(parcel(Status::Voided, label))
            }
            (Call::Void, Some(Answer::AlreadyVoided)) => {
                (status == Status::Voided).then_some(*state)
            }
            (Call::Void, Some(Answer::Refused)) => (status == Status::Manifested).then_some(*state),
            (Call::Manifest, None) if is_labelled => Some(parcel(Status::Manifested, label)),
            (Call::Manifest, Some(Answer::Submitted)) => {
                is_labelled.then_some(parcel(Status::Manifested, label))
            }
            (Call::Manifest, Some(Answer::Refused)) => (!is_labelled).then_some(*state),
            (Call::Reprint, None) if status != Status::Voided => Some(parcel(status, label + 1)),
            (Call::Reprint, Some(Answer::Reprinted(version))) => (status != Status::Voided
                && *version == label + 1)
                .then_some(parcel(status, *version)),
            (Call::Reprint, Some(Answer::Refused)) => (status == Status::Voided).then_some(*state),
            (Call::Track, Some(Answer::Stands(seen))) => (*seen == status).then_some(*state),
            // Not executed, or executed without an effect.
            (_, None) => Some(*state),
            _ => None,
        }
    }
}

fn new_parcel(creation: Option<u64>) -> State {
    State::Parcel { creation, status: Status::Labelled, label: 1 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linearizability::{Record, is_linearizable};

    /// Calls one after another.
    fn in_turn(calls: &[(Call, Option<Answer>)]) -> bool {
        let records = calls.iter().enumerate().map(|(at, (call, answer))| {
            let started = 2 * at as u64;
            Record { call: *call, started, answered: answer.map(|answer| (started + 1, answer)) }
        });
        is_linearizable::<Order>(&records.collect::<Vec<_>>())
    }

    use Answer::{AlreadyVoided, Created, Refused, Repeated, Reprinted, Stands, Submitted, Voided};
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
        let labels = |version| {
            in_turn(&[
                voided[0],
                (Reprint, Some(Reprinted(2))),
                (Reprint, Some(Reprinted(version))),
            ])
        };
        assert!(labels(3) && !labels(2) && !labels(4));
    }

    #[test]
    fn of_two_calls_at_once_either_may_be_first_but_not_both() {
        let both = |void, manifest| {
            is_linearizable::<Order>(&[
                Record { call: Create, started: 0, answered: Some((1, Created(7))) },
                Record { call: Void, started: 2, answered: Some((5, void)) },
                Record { call: Manifest, started: 3, answered: Some((4, manifest)) },
            ])
        };
        assert!(both(Voided, Refused) && both(Refused, Submitted));
        assert!(!both(Voided, Submitted) && !both(Refused, Refused));
    }
}
