//! An endpoint: where a tenant's events go, and what they are signed with.

use parcelo::webhook::Secret;
use ulid::Ulid;

use super::{Attempt, Kind, Kinds};
use crate::{
    clock::Millis,
    domain::{ParcelRowId, State, Tenant},
};

/// A tenant's endpoint.
#[derive(Debug, Clone)]
pub struct Endpoint {
    /// Whose it is.
    pub tenant: Tenant,
    /// Its address.
    pub url: String,
    /// The kinds of event it gets.
    pub kinds: Kinds,
    /// What signs.
    pub secret: Secret,
    /// What signs beside it, each until when; the latest first.
    pub old: Vec<(Secret, Millis)>,
    /// Why nothing is sent to it, when nothing is.
    pub disabled: Option<DisabledBy>,
    /// When it was set up.
    pub created_at: Millis,
}

/// Why nothing is sent to an endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DisabledBy {
    /// An operator turned it off.
    Operator,
    /// It answered that it is gone.
    Gone,
    /// A delivery used up its attempts, and none had succeeded since its first.
    Failures,
    /// Its settings cannot be read.
    Unreadable,
}

impl DisabledBy {
    /// The word under which it is stored and shown.
    pub const fn code(self) -> &'static str {
        match self {
            Self::Operator => "OPERATOR",
            Self::Gone => "GONE",
            Self::Failures => "FAILURES",
            Self::Unreadable => "UNREADABLE",
        }
    }

    /// Every reason.
    pub const ALL: [Self; 4] = [Self::Operator, Self::Gone, Self::Failures, Self::Unreadable];

    /// The reason stored under a word.
    pub fn from_code(code: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|by| by.code() == code)
    }
}

impl Endpoint {
    /// The signatures of a message, one for each secret in force.
    pub fn sign(&self, id: &str, now: Millis, body: &[u8]) -> String {
        let old = self.old.iter().filter(|(_, until)| now < *until).map(|(secret, _)| secret);
        let secrets = std::iter::once(&self.secret).chain(old);
        let all: Vec<_> = secrets.map(|secret| secret.sign(id, now.second(), body)).collect();
        all.join(" ")
    }
}

/// Where an event of the outbox stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeliveryStatus {
    /// An earlier event of its parcel comes first.
    Waiting,
    /// It is sent when it is due.
    Ready,
    /// The endpoint took it.
    Delivered,
    /// Its attempts are used up.
    Failed,
    /// The endpoint is disabled.
    Held,
}

impl DeliveryStatus {
    /// Every status; its place is the number under which it is stored.
    pub const ALL: [Self; 5] =
        [Self::Waiting, Self::Ready, Self::Delivered, Self::Failed, Self::Held];

    /// The word for people.
    pub const fn code(self) -> &'static str {
        match self {
            Self::Waiting | Self::Ready => "PENDING",
            Self::Delivered => "DELIVERED",
            Self::Failed => "FAILED",
            Self::Held => "HELD",
        }
    }
}

/// An event leased from the outbox to be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lease {
    /// Whose it is.
    pub tenant: Tenant,
    /// The attempt that is to be made.
    pub attempt: Attempt,
    /// Its kind.
    pub kind: Kind,
    /// When it happened.
    pub at: Millis,
    /// The parcel it is about.
    pub parcel: Option<ParcelRowId>,
    /// The manifest it is about.
    pub manifest: Option<i64>,
    /// The event of the parcel's history.
    pub sequence: Option<u32>,
    /// The state before.
    pub previous: Option<State>,
    /// The lease number: no two commits have the same.
    pub number: i64,
}

/// An event of the outbox, and what became of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoggedDelivery {
    /// The event.
    pub event: Ulid,
    /// Its kind.
    pub kind: Kind,
    /// The number of the parcel it is about.
    pub tracking_number: Option<String>,
    /// Where it stands.
    pub delivery_status: DeliveryStatus,
    /// When it came about.
    pub created_at: Millis,
    /// When it is tried next.
    pub due: Option<Millis>,
    /// Every attempt, first to last.
    pub attempts: Vec<LoggedAttempt>,
}

/// An attempt as it is remembered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoggedAttempt {
    /// 1 for the first since the event came about or was replayed.
    pub number: u32,
    /// When it was over.
    pub at: Millis,
    /// How many milliseconds it took.
    pub millis: i64,
    /// The HTTP status of the answer.
    pub status: Option<u16>,
    /// Why there is no answer.
    pub error: Option<String>,
    /// The beginning of the answer.
    pub answer: Vec<u8>,
}
