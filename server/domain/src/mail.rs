//! E-mails about parcels: the changes that trigger them, their recipients, their schedule and the result of an attempt.
//!
//! An e-mail is stored in the commit of its change, without an address. The address is read from the order when the
//! e-mail is sent, so it is deleted with the parcel. News that is then out of date is not sent.

use super::{
    State,
    parcel::{Event, ParcelRow, ParcelRowId},
};
use crate::Millis;

/// Time for which an e-mail waits for the next event of its parcel, in milliseconds. A burst of events sends only the
/// last e-mail.
pub const BURST_DELAY_MILLIS: i64 = 60 * Millis::SECOND;
/// Time for which an e-mail is leased to one server, in milliseconds; longer than any attempt takes.
pub const LEASE_MILLIS: i64 = 2 * Millis::MINUTE;
/// Time for which the result of an e-mail is kept, in milliseconds; the same as for webhooks.
pub const RETENTION_MILLIS: i64 = 30 * Millis::DAY;
/// Maximum number of e-mails from a tenant to an address in a day. A parcel has at most six.
pub const MAX_DAILY_PER_ADDRESS: u32 = 30;
/// Maximum number of e-mails from a tenant in an hour.
pub const MAX_HOURLY_PER_TENANT: u32 = 10_000;

/// The pauses after attempts that failed temporarily, in milliseconds. After the last attempt, about two days later,
/// the e-mail is given up; a relay that is down can be repaired in that time.
const PAUSES: [i64; 9] = [
    Millis::MINUTE,
    5 * Millis::MINUTE,
    15 * Millis::MINUTE,
    Millis::HOUR,
    3 * Millis::HOUR,
    6 * Millis::HOUR,
    12 * Millis::HOUR,
    12 * Millis::HOUR,
    12 * Millis::HOUR,
];

/// The person who gets an e-mail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MailRecipient {
    /// The parcel's receiver.
    Receiver,
    /// The parcel's sender, who gets e-mails about exceptions only.
    Sender,
}

/// The news that an e-mail reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum MailKind {
    /// The carrier has the parcel. Sent once for each parcel.
    OnItsWay,
    /// The parcel is held by customs.
    Held,
    /// The parcel arrives today.
    OutForDelivery,
    /// The parcel has arrived.
    Delivered,
    /// The parcel could not be delivered.
    Failed,
    /// The parcel goes back to its sender.
    Returning,
}

use MailKind::{Delivered, Failed, Held, OnItsWay, OutForDelivery, Returning};
use MailRecipient::{Receiver, Sender};

/// Each state with the e-mails that it triggers.
const MAILS_BY_STATE: [(State, MailKind, &[MailRecipient]); 8] = [
    (State::PickedUp, OnItsWay, &[Receiver]),
    (State::InTransit, OnItsWay, &[Receiver]),
    (State::CustomsHold, Held, &[Receiver, Sender]),
    (State::OutForDelivery, OutForDelivery, &[Receiver]),
    (State::DeliveryAttempted, Failed, &[Receiver]),
    (State::DeliveryFailed, Failed, &[Receiver, Sender]),
    (State::ReturnToSender, Returning, &[Receiver, Sender]),
    (State::Delivered, Delivered, &[Receiver]),
];

impl MailRecipient {
    /// Returns the number in the database.
    pub const fn number(self) -> u8 {
        self as u8
    }

    /// Converts from the number in the database.
    pub const fn from_number(number: u8) -> Option<Self> {
        match number {
            0 => Some(Receiver),
            1 => Some(Sender),
            _ => None,
        }
    }

    /// Returns the stable code.
    pub const fn code(self) -> &'static str {
        match self {
            Receiver => "receiver",
            Sender => "sender",
        }
    }
}

impl MailKind {
    /// Every kind.
    pub const ALL: [Self; 6] = [OnItsWay, Held, OutForDelivery, Delivered, Failed, Returning];

    /// Returns the number in the database.
    pub const fn number(self) -> u8 {
        self as u8
    }

    /// Converts from the number in the database.
    pub fn from_number(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.number() == number)
    }

    /// Returns the stable code.
    pub const fn code(self) -> &'static str {
        match self {
            OnItsWay => "on-its-way",
            Held => "held",
            OutForDelivery => "out-for-delivery",
            Delivered => "delivered",
            Failed => "failed",
            Returning => "returning",
        }
    }
}

/// The kinds of e-mails that an account has switched off.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DisabledMailKinds(u8);

impl DisabledMailKinds {
    /// Reads the number in the database. Unknown bits are ignored.
    pub const fn from_number(number: u8) -> Self {
        Self(number & 0b11_1111)
    }

    /// Returns the number in the database.
    pub const fn number(self) -> u8 {
        self.0
    }

    /// Returns `true` if a kind is switched off.
    pub const fn contains(self, kind: MailKind) -> bool {
        self.0 & (1 << kind.number()) != 0
    }

    /// Adds a kind.
    #[must_use]
    pub const fn with(self, kind: MailKind) -> Self {
        Self(self.0 | 1 << kind.number())
    }
}

/// An e-mail that a change triggers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NewMail {
    /// The parcel that changed.
    pub parcel: ParcelRowId,
    /// The sequence of the event.
    pub sequence: u32,
    /// The person who gets it.
    pub recipient: MailRecipient,
    /// The news that it reports.
    pub kind: MailKind,
    /// The time of the change.
    pub at: Millis,
}

/// Returns the e-mails that a move of a parcel triggers.
pub(super) fn triggered_mails(
    parcel: ParcelRowId,
    event: &Event,
    at: Millis,
) -> impl Iterator<Item = NewMail> {
    let (state, sequence) = (event.state, event.sequence);
    let triggered = MAILS_BY_STATE.into_iter().filter(move |(trigger, ..)| *trigger == state);
    triggered.flat_map(move |(_, kind, recipients)| {
        recipients.iter().map(move |&recipient| NewMail { parcel, sequence, recipient, kind, at })
    })
}

/// An e-mail that is leased to be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MailLease {
    /// The row id.
    pub id: i64,
    /// The lease number, which is never used again.
    pub number: i64,
    /// The parcel it is about.
    pub parcel: ParcelRowId,
    /// The sequence of the event.
    pub sequence: u32,
    /// The recipient.
    pub recipient: MailRecipient,
    /// The news that it reports.
    pub kind: MailKind,
    /// The time of the change that it reports.
    pub at: Millis,
    /// The number of the attempt, from 1.
    pub attempt: u32,
}

/// A reason not to send an e-mail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DropReason {
    /// The parcel has moved on, or a later e-mail says more.
    Superseded,
    /// The parcel was created before e-mails were switched on.
    Older,
    /// The order has no address for it.
    NoAddress,
    /// The recipient unsubscribed, or the address does not exist.
    OptedOut,
    /// The account has switched the kind off.
    SwitchedOff,
    /// The sandbox may not write to the address.
    NotAllowed,
    /// The address or the tenant has reached its limit.
    TooMany,
}

/// The outcome of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MailOutcome {
    /// The relay accepted it.
    Sent,
    /// The relay reported that the address does not exist.
    Bounced,
    /// The relay refused this e-mail permanently.
    Refused,
    /// It failed temporarily, or the outcome is unknown.
    Failed,
    /// It was not sent, for this reason.
    Dropped(DropReason),
}

/// The status of an e-mail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MailStatus {
    /// It is still to be sent.
    Waiting,
    /// The relay accepted it.
    Sent,
    /// The address does not exist.
    Bounced,
    /// It was refused permanently, or given up.
    GivenUp,
    /// It was not sent, for this reason.
    Dropped(DropReason),
}

impl MailStatus {
    /// Every status, with its number in the database and its stable code.
    const ALL: [(Self, u8, &str); 11] = [
        (Self::Waiting, 0, "waiting"),
        (Self::Sent, 1, "sent"),
        (Self::Bounced, 2, "bounced"),
        (Self::GivenUp, 3, "given-up"),
        (Self::Dropped(DropReason::Superseded), 10, "superseded"),
        (Self::Dropped(DropReason::Older), 11, "older-than-e-mail"),
        (Self::Dropped(DropReason::NoAddress), 12, "no-address"),
        (Self::Dropped(DropReason::OptedOut), 13, "unsubscribed"),
        (Self::Dropped(DropReason::SwitchedOff), 14, "switched-off"),
        (Self::Dropped(DropReason::NotAllowed), 15, "not-allowed"),
        (Self::Dropped(DropReason::TooMany), 16, "too-many"),
    ];

    fn row(self) -> (Self, u8, &'static str) {
        let found = Self::ALL.into_iter().find(|(status, ..)| *status == self);
        found.unwrap_or((self, 0, "waiting"))
    }

    /// Returns the number in the database.
    pub fn number(self) -> u8 {
        self.row().1
    }

    /// Converts from the number in the database.
    pub fn from_number(number: u8) -> Option<Self> {
        Self::ALL.iter().find(|(_, known, _)| *known == number).map(|(status, ..)| *status)
    }

    /// Returns the stable code.
    pub fn code(self) -> &'static str {
        self.row().2
    }
}

/// The decision after an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MailDecision {
    /// The e-mail is tried again at this time.
    Retry(Millis),
    /// The e-mail has this final status.
    Done(MailStatus),
}

impl MailDecision {
    /// Returns the name in the metrics.
    pub fn code(self) -> &'static str {
        match self {
            Self::Retry(_) => "failed",
            Self::Done(status) => status.code(),
        }
    }
}

/// Decides what follows an attempt. Attempts are numbered from 1.
pub fn decide(attempt: u32, outcome: MailOutcome, now: Millis) -> MailDecision {
    MailDecision::Done(match outcome {
        MailOutcome::Sent => MailStatus::Sent,
        MailOutcome::Bounced => MailStatus::Bounced,
        MailOutcome::Refused => MailStatus::GivenUp,
        MailOutcome::Dropped(reason) => MailStatus::Dropped(reason),
        MailOutcome::Failed => {
            let index = usize::try_from(attempt.saturating_sub(1)).unwrap_or(usize::MAX);
            match PAUSES.get(index) {
                Some(pause) => return MailDecision::Retry(now.plus(*pause)),
                None => MailStatus::GivenUp,
            }
        }
    })
}

/// Returns the reason not to send an e-mail about a parcel in its current state, if there is one.
pub fn reason_to_drop(mail: &MailLease, parcel: &ParcelRow, since: Millis) -> Option<DropReason> {
    if parcel.created_at < since {
        return Some(DropReason::Older);
    }
    let is_current =
        |(state, kind, _): &(State, MailKind, _)| *state == parcel.state && *kind == mail.kind;
    // A parcel in customs clearance is still on its way, and there is no e-mail about clearance.
    let is_still_true = MAILS_BY_STATE.iter().any(is_current)
        || (mail.kind == OnItsWay && parcel.state == State::CustomsClearance);
    (!is_still_true).then_some(DropReason::Superseded)
}

/// One of a parcel's e-mails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LoggedMail {
    /// The recipient.
    pub recipient: MailRecipient,
    /// The news that it reports.
    pub kind: MailKind,
    /// The time of its change.
    pub at: Millis,
    /// The number of attempts.
    pub attempts: u32,
    /// The status.
    pub status: MailStatus,
}

/// A reason why an address gets no e-mails from an account.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OptOut {
    /// The recipient unsubscribed.
    Unsubscribed,
    /// The relay reported that it does not exist.
    Bounced,
}

impl OptOut {
    /// Returns the number in the database.
    pub const fn number(self) -> u8 {
        self as u8
    }
}

/// Returns `true` if an e-mail is within the limits. Both counts include the e-mail itself.
pub const fn is_within_limits(daily_to_address: u32, hourly_from_tenant: u32) -> bool {
    daily_to_address <= MAX_DAILY_PER_ADDRESS && hourly_from_tenant <= MAX_HOURLY_PER_TENANT
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::{Cause, parcel::tests::parcel};

    #[test]
    fn each_state_triggers_e_mails_to_its_recipients() {
        let table: [(State, &[(MailRecipient, MailKind)]); 13] = [
            (State::Ordered, &[]),
            (State::LabelGenerated, &[]),
            (State::ManifestSubmitted, &[]),
            (State::PickedUp, &[(Receiver, OnItsWay)]),
            (State::CustomsClearance, &[]),
            (State::CustomsHold, &[(Receiver, Held), (Sender, Held)]),
            (State::InTransit, &[(Receiver, OnItsWay)]),
            (State::OutForDelivery, &[(Receiver, OutForDelivery)]),
            (State::DeliveryAttempted, &[(Receiver, Failed)]),
            (State::Delivered, &[(Receiver, Delivered)]),
            (State::DeliveryFailed, &[(Receiver, Failed), (Sender, Failed)]),
            (State::ReturnToSender, &[(Receiver, Returning), (Sender, Returning)]),
            (State::Voided, &[]),
        ];
        for (state, expected) in table {
            let event = Event {
                sequence: 3,
                state,
                at: Millis(5),
                location: String::new(),
                description: None,
            };
            let found: Vec<_> = triggered_mails(ParcelRowId(1), &event, Millis(9)).collect();
            let short: Vec<_> = found.iter().map(|mail| (mail.recipient, mail.kind)).collect();
            assert_eq!(short, expected, "{state:?}");
            assert!(found.iter().all(|mail| (mail.sequence, mail.at) == (3, Millis(9))));
            assert!(found.is_empty() || Cause::Carrier.allows(state));
        }
    }

    #[test]
    fn temporary_failures_are_tried_for_two_days() {
        let now = Millis(0);
        let mut waited = 0;
        for attempt in 1..=9 {
            let MailDecision::Retry(due) = decide(attempt, MailOutcome::Failed, now) else {
                panic!("attempt {attempt} is the last")
            };
            waited += due.0;
        }
        assert_eq!(waited, 2_781 * Millis::MINUTE, "a minute at first, 12 hours at last");
        let last = decide(10, MailOutcome::Failed, now);
        assert_eq!(last, MailDecision::Done(MailStatus::GivenUp));
        for (outcome, status) in [
            (MailOutcome::Sent, MailStatus::Sent),
            (MailOutcome::Bounced, MailStatus::Bounced),
            (MailOutcome::Refused, MailStatus::GivenUp),
            (MailOutcome::Dropped(DropReason::TooMany), MailStatus::Dropped(DropReason::TooMany)),
        ] {
            assert_eq!(decide(1, outcome, now), MailDecision::Done(status));
        }
    }

    #[test]
    fn news_that_is_out_of_date_is_not_sent() {
        let lease = |kind| MailLease {
            id: 1,
            number: 1,
            parcel: ParcelRowId(1),
            sequence: 3,
            recipient: Receiver,
            kind,
            at: Millis(0),
            attempt: 1,
        };
        let table = [
            (OnItsWay, State::InTransit, None),
            (OnItsWay, State::CustomsClearance, None),
            (OnItsWay, State::OutForDelivery, Some(DropReason::Superseded)),
            (Held, State::CustomsHold, None),
            (Held, State::CustomsClearance, Some(DropReason::Superseded)),
            (Failed, State::DeliveryAttempted, None),
            (Failed, State::DeliveryFailed, None),
            (Delivered, State::Delivered, None),
            (Delivered, State::Voided, Some(DropReason::Superseded)),
        ];
        for (kind, state, expected) in table {
            let parcel = parcel(state, Millis(1_000));
            let since = parcel.created_at;
            assert_eq!(
                reason_to_drop(&lease(kind), &parcel, since),
                expected,
                "{kind:?} {state:?}"
            );
            let older = reason_to_drop(&lease(kind), &parcel, since.plus(1));
            assert_eq!(older, Some(DropReason::Older));
        }
    }

    #[test]
    fn numbers_and_codes_round_trip() {
        for kind in MailKind::ALL {
            assert_eq!(MailKind::from_number(kind.number()), Some(kind));
            assert!(DisabledMailKinds::default().with(kind).with(kind).contains(kind));
            let others = MailKind::ALL.into_iter().filter(|other| *other != kind);
            let others = others.fold(DisabledMailKinds::default(), DisabledMailKinds::with);
            assert!(!DisabledMailKinds::from_number(others.number()).contains(kind));
        }
        for (status, number, code) in MailStatus::ALL {
            assert_eq!(MailStatus::from_number(number), Some(status));
            assert_eq!((status.number(), status.code()), (number, code));
        }
        for recipient in [Receiver, Sender] {
            assert_eq!(MailRecipient::from_number(recipient.number()), Some(recipient));
        }
        assert_eq!(DisabledMailKinds::from_number(0xff).number(), 0b11_1111);
        let codes = BTreeSet::from(MailKind::ALL.map(MailKind::code));
        assert_eq!(codes.len(), MailKind::ALL.len(), "{codes:?}");
        assert_eq!([Receiver, Sender].map(MailRecipient::code), ["receiver", "sender"]);
        assert_eq!([OptOut::Unsubscribed, OptOut::Bounced].map(OptOut::number), [0, 1]);
        let decisions = [MailDecision::Retry(Millis(0)), MailDecision::Done(MailStatus::Sent)];
        assert_eq!(decisions.map(MailDecision::code), ["failed", "sent"]);
    }

    #[test]
    fn e_mails_up_to_the_limits_are_allowed() {
        assert!(is_within_limits(MAX_DAILY_PER_ADDRESS, MAX_HOURLY_PER_TENANT));
        assert!(!is_within_limits(MAX_DAILY_PER_ADDRESS + 1, 1));
        assert!(!is_within_limits(1, MAX_HOURLY_PER_TENANT + 1));
    }
}
