//! An endpoint: the URL that a tenant's events are sent to, and the secrets that sign them.

use parcelo::webhook::Secret;
use sha2::{Digest, Sha256};
use ulid::Ulid;

use super::{DeliveryAttempt, WebhookEventKind, WebhookEventKinds};
use crate::{Millis, ParcelRowId, State, Tenant, TraceContext};

/// An endpoint of a tenant: the URL that its events are sent to, its subscriptions and its secrets.
#[derive(Debug, Clone)]
pub struct Endpoint {
    /// The tenant that owns it.
    pub tenant: Tenant,
    /// The URL that events are sent to.
    pub url: String,
    /// The kinds of event it gets.
    pub kinds: WebhookEventKinds,
    /// The secret that signs messages.
    pub secret: Secret,
    /// The replaced secrets that still sign, each with its end; the latest first.
    pub old: Vec<(Secret, Millis)>,
    /// The reason why nothing is sent to it, if nothing is.
    pub disabled: Option<DisabledBy>,
    /// The time at which it was set up.
    pub created_at: Millis,
}

/// A reason why nothing is sent to an endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DisabledBy {
    /// An operator turned it off.
    Operator,
    /// It responded with 410 Gone.
    Gone,
    /// A delivery used up its attempts, and none had succeeded since its first.
    Failures,
    /// Its settings cannot be read.
    Unreadable,
}

impl DisabledBy {
    /// Returns the code under which the reason is stored and shown.
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

    /// Returns the reason that is stored under a code.
    pub fn from_code(code: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|by| by.code() == code)
    }
}

impl Endpoint {
    /// Signs a message with each secret that is still valid.
    pub fn sign(&self, id: &str, now: Millis, body: &[u8]) -> String {
        let old = self.old.iter().filter(|(_, until)| now < *until).map(|(secret, _)| secret);
        let secrets = std::iter::once(&self.secret).chain(old);
        let all: Vec<_> = secrets.map(|secret| secret.sign(id, now.second(), body)).collect();
        all.join(" ")
    }
}

/// The status of an event in the outbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeliveryStatus {
    /// An earlier event of its parcel comes first.
    Waiting,
    /// It will be sent when it is due.
    Ready,
    /// The endpoint accepted it.
    Delivered,
    /// Its attempts are used up.
    Failed,
    /// The endpoint is disabled.
    Held,
}

impl DeliveryStatus {
    /// Every status, at the index of its stored number.
    pub const ALL: [Self; 5] =
        [Self::Waiting, Self::Ready, Self::Delivered, Self::Failed, Self::Held];

    /// Returns the status as users see it.
    pub const fn code(self) -> &'static str {
        match self {
            Self::Waiting | Self::Ready => "PENDING",
            Self::Delivered => "DELIVERED",
            Self::Failed => "FAILED",
            Self::Held => "HELD",
        }
    }
}

/// An event that is leased from the outbox for sending.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeliveryLease {
    /// The tenant that owns it.
    pub tenant: Tenant,
    /// The URL that its endpoint had when the event was leased.
    pub url: String,
    /// The attempt to make.
    pub attempt: DeliveryAttempt,
    /// The kind.
    pub kind: WebhookEventKind,
    /// The time of the event.
    pub at: Millis,
    /// The parcel it is about.
    pub parcel: Option<ParcelRowId>,
    /// The manifest it is about.
    pub manifest: Option<i64>,
    /// The sequence of the event in the parcel's history.
    pub sequence: Option<u32>,
    /// The state before the event.
    pub previous: Option<State>,
    /// The trace of the request that caused it.
    pub trace: Option<TraceContext>,
    /// The lease number, which is different in each commit.
    pub number: i64,
}

impl DeliveryLease {
    /// Returns the `traceparent` of the attempt, if the request that caused the event had one. Each attempt is another
    /// span of the trace. Its id is a hash of the event and the lease, so that sending needs no randomness.
    pub fn traceparent(&self) -> Option<String> {
        let trace = self.trace?;
        let mut hash = Sha256::new();
        hash.update(self.attempt.event.to_bytes());
        hash.update(self.number.to_be_bytes());
        let hash: [u8; 32] = hash.finalize().into();
        let span = hash.iter().take(8).fold(0_u64, |sum, byte| (sum << 8) | u64::from(*byte));
        Some(trace.traceparent(span.max(1)))
    }
}

/// An event of the outbox with its attempts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoggedDelivery {
    /// The event.
    pub event: Ulid,
    /// The kind.
    pub kind: WebhookEventKind,
    /// The tracking number of the parcel it is about.
    pub tracking_number: Option<String>,
    /// The status.
    pub delivery_status: DeliveryStatus,
    /// The time of creation.
    pub created_at: Millis,
    /// The time of the next attempt.
    pub due: Option<Millis>,
    /// Every attempt, first to last.
    pub attempts: Vec<LoggedAttempt>,
}

/// An attempt to deliver an event, as the log shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoggedAttempt {
    /// The number of the attempt: 1 for the first after the event's creation or replay.
    pub number: u32,
    /// The end of the attempt.
    pub at: Millis,
    /// The duration in milliseconds.
    pub millis: i64,
    /// The HTTP status of the response.
    pub status: Option<u16>,
    /// The error, if there is no response.
    pub error: Option<String>,
    /// The beginning of the response.
    pub response: Vec<u8>,
}

#[cfg(test)]
mod tests {
    use parcelo_types::Environment;

    use super::*;

    const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";

    #[test]
    fn each_lease_is_another_span_of_the_trace() {
        let lease = |number| DeliveryLease {
            tenant: Tenant::from_number(3),
            url: "https://shop.example/hook".to_owned(),
            attempt: DeliveryAttempt {
                environment: Environment::Sandbox,
                event: Ulid::nil(),
                number: 1,
            },
            kind: WebhookEventKind::Test,
            at: Millis(0),
            parcel: None,
            manifest: None,
            sequence: None,
            previous: None,
            trace: TraceContext::parse(&format!("00-{TRACE}-00f067aa0ba902b7-01")),
            number,
        };
        // Computed with Python's hashlib.
        for (number, span) in [(1, "ed8b7b2c2c6bae3a"), (2, "ce94bbc259479295")] {
            assert_eq!(lease(number).traceparent(), Some(format!("00-{TRACE}-{span}-01")));
        }
        let without_trace = DeliveryLease { trace: None, ..lease(1) };
        assert_eq!(without_trace.traceparent(), None);
    }

    #[test]
    fn a_replaced_secret_signs_until_its_end() {
        let [current, later, earlier] = [1, 2, 3].map(|byte| Secret::from_random(&[byte; 32]));
        let endpoint = Endpoint {
            tenant: Tenant::from_number(3),
            url: "https://shop.example/hook".to_owned(),
            kinds: WebhookEventKinds::default(),
            secret: current.clone(),
            old: vec![(later.clone(), Millis(20_000)), (earlier.clone(), Millis(10_000))],
            disabled: None,
            created_at: Millis(0),
        };
        let secrets = [&current, &later, &earlier];
        for (now, valid) in [(9_999, 3), (10_000, 2), (19_999, 2), (20_000, 1)] {
            let now = Millis(now);
            let expected: Vec<_> = secrets
                .iter()
                .take(valid)
                .map(|secret| secret.sign("evt_1", now.second(), b"{}"))
                .collect();
            assert_eq!(endpoint.sign("evt_1", now, b"{}"), expected.join(" "), "{now:?}");
        }
    }

    #[test]
    fn codes_of_reasons_round_trip_and_statuses_have_those_of_the_reference() {
        for by in DisabledBy::ALL {
            assert_eq!(DisabledBy::from_code(by.code()), Some(by));
        }
        assert_eq!(DisabledBy::from_code("of a later version"), None);
        let statuses = DeliveryStatus::ALL.map(DeliveryStatus::code);
        assert_eq!(statuses, ["PENDING", "PENDING", "DELIVERED", "FAILED", "HELD"]);
    }
}
