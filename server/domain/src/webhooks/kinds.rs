//! The kinds of events, and the subscriptions of an endpoint.

use parcelo_types::internal::EventKind;

/// A kind of event that this service sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WebhookEventKind {
    /// A parcel's status changed; sent to every endpoint.
    StatusChanged,
    /// An order was created; sent to endpoints that subscribe to it.
    ParcelCreated,
    /// An order was voided; sent to endpoints that subscribe to it.
    ParcelVoided,
    /// A manifest was submitted; sent to endpoints that subscribe to it.
    ManifestSubmitted,
    /// A test of the endpoint.
    Test,
}

impl WebhookEventKind {
    /// Every kind, at the index of its stored number.
    pub const ALL: [Self; 5] = [
        Self::StatusChanged,
        Self::ParcelCreated,
        Self::ParcelVoided,
        Self::ManifestSubmitted,
        Self::Test,
    ];

    /// Returns the number under which it is stored.
    pub const fn number(self) -> u8 {
        self as u8
    }

    /// Returns the kind stored under a number.
    pub fn from_number(number: u8) -> Option<Self> {
        Self::ALL.get(usize::from(number)).copied()
    }

    /// Returns the kind on the wire.
    pub const fn to_wire(self) -> EventKind {
        match self {
            Self::StatusChanged => EventKind::ParcelStatusChanged,
            Self::ParcelCreated => EventKind::ParcelCreated,
            Self::ParcelVoided => EventKind::ParcelVoided,
            Self::ManifestSubmitted => EventKind::ManifestSubmitted,
            Self::Test => EventKind::WebhookTest,
        }
    }

    const fn is_always_sent(self) -> bool {
        matches!(self, Self::StatusChanged | Self::Test)
    }
}

/// The kinds of event that an endpoint gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct WebhookEventKinds(u8);

impl WebhookEventKinds {
    /// Returns the kinds with these codes, and the kinds that every endpoint gets; `None` if a code is unknown.
    pub fn from_codes<'c>(codes: impl IntoIterator<Item = &'c str>) -> Option<Self> {
        let mut kinds = Self::default();
        for code in codes {
            let kind =
                WebhookEventKind::ALL.into_iter().find(|kind| kind.to_wire().code() == code)?;
            kinds.0 |= 1 << kind.number();
        }
        Some(kinds)
    }

    /// Returns `true` if events of this kind are sent.
    pub const fn contains(self, kind: WebhookEventKind) -> bool {
        kind.is_always_sent() || self.0 & (1 << kind.number()) != 0
    }

    /// Returns the kinds for the wire. Tests are left out, because they are always possible.
    pub fn to_wire(self) -> Vec<EventKind> {
        let sent = WebhookEventKind::ALL
            .into_iter()
            .filter(|kind| *kind != WebhookEventKind::Test && self.contains(*kind));
        sent.map(WebhookEventKind::to_wire).collect()
    }

    /// Returns the number under which they are stored.
    pub const fn number(self) -> u8 {
        self.0
    }

    /// Returns the kinds stored under a number.
    pub const fn from_number(number: u8) -> Self {
        Self(number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_codes_round_trip() {
        for kind in WebhookEventKind::ALL {
            assert_eq!(WebhookEventKind::from_number(kind.number()), Some(kind));
            let kinds = WebhookEventKinds::from_codes([kind.to_wire().code()]).unwrap();
            let wanted: Vec<_> =
                WebhookEventKind::ALL.into_iter().filter(|kind| kinds.contains(*kind)).collect();
            assert!(wanted.contains(&kind) && wanted.contains(&WebhookEventKind::StatusChanged));
            assert_eq!(wanted.len(), if kind.is_always_sent() { 2 } else { 3 });
            assert_eq!(WebhookEventKinds::from_number(kinds.number()), kinds);
        }
        assert_eq!(WebhookEventKind::from_number(5), None);
        assert_eq!(WebhookEventKinds::from_codes(["parcel.lost"]), None);
        assert_eq!(EventKind::KNOWN.len(), WebhookEventKind::ALL.len());
    }

    #[test]
    fn a_subscription_shows_what_every_endpoint_gets_but_no_tests() {
        let wire = |codes: &[&str]| {
            WebhookEventKinds::from_codes(codes.iter().copied()).unwrap().to_wire()
        };
        assert_eq!(wire(&[]), [EventKind::ParcelStatusChanged]);
        assert_eq!(
            wire(&["webhook.test", "parcel.voided", "parcel.voided"]),
            [EventKind::ParcelStatusChanged, EventKind::ParcelVoided]
        );
    }
}
