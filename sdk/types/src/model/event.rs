//! Webhook events (spec: Events).

use chrono::{DateTime, Utc};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use super::{
    CountryCode, Environment, EventId, Manifest, MaybeKnown, ParcelId, ParcelStatus,
    TrackingNumber, Unreadable, lenient, macros::setters, macros::wire_enum, time,
};

wire_enum! {
    /// The kinds of webhook events.
    EventKind [doc(hidden)] {
        /// A parcel's status changed.
        ParcelStatusChanged = "parcel.status_changed",
        /// An order was created; sent to webhooks that have subscribed to it.
        ParcelCreated = "parcel.created",
        /// An order was voided; sent to webhooks that have subscribed to it.
        ParcelVoided = "parcel.voided",
        /// A manifest was submitted; sent to webhooks that have subscribed to it.
        ManifestSubmitted = "manifest.submitted",
        /// A test event, sent on request.
        WebhookTest = "webhook.test",
    }
}

/// The body of a webhook (docs/api.md, Webhooks); parse it only after verifying the signature.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct WebhookEvent {
    /// The event's id, `evt_…`; the same on every attempt.
    pub id: Option<EventId>,
    /// The environment of the event.
    pub environment: MaybeKnown<Environment>,
    /// Time of the event.
    pub timestamp: DateTime<Utc>,
    /// Details of the event.
    pub data: EventData,
}

#[doc(hidden)]
impl WebhookEvent {
    /// Returns an event without an id.
    pub fn new(environment: Environment, timestamp: DateTime<Utc>, data: EventData) -> Self {
        Self { id: None, environment: environment.into(), timestamp, data }
    }

    setters! {
        /// Sets the id.
        with_id(id: some EventId);
    }
}

/// The data of an event, by its kind.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum EventData {
    /// A parcel's status changed.
    StatusChanged(StatusChange),
    /// An order was created.
    ParcelCreated(ParcelCreated),
    /// An order was voided.
    ParcelVoided(ParcelVoided),
    /// A manifest was submitted.
    ManifestSubmitted(Box<Manifest>),
    /// A test event, without data.
    Test,
    /// A kind that this version does not know, or whose data it cannot read.
    #[non_exhaustive]
    Unknown {
        /// The code of the kind.
        kind: String,
        /// The data of the event, unchanged.
        data: Value,
    },
}

/// A change of a parcel's status.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "utoipa", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct StatusChange {
    /// The parcel.
    pub tracking_number: TrackingNumber,
    /// The status before.
    pub previous_status: ParcelStatus,
    /// The status after.
    pub new_status: ParcelStatus,
    /// City and country of the event.
    pub location: String,
    /// The position of the event in the parcel's history, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sequence: Option<u32>,
    /// Further details.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The order's id in the caller's system.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub external_order_id: Option<String>,
}

#[doc(hidden)]
impl StatusChange {
    /// Returns a change from one status to another, at a city and country.
    pub fn new(
        tracking_number: TrackingNumber,
        previous_status: ParcelStatus,
        new_status: ParcelStatus,
        location: impl Into<String>,
    ) -> Self {
        Self {
            tracking_number,
            previous_status,
            new_status,
            location: location.into(),
            sequence: None,
            description: None,
            external_order_id: None,
        }
    }

    setters! {
        /// Sets the position in the parcel's history, from 1.
        with_sequence(sequence: some u32);
        /// Sets further details.
        with_description(description: text);
        /// Sets the order's id in the caller's system.
        with_external_order_id(external_order_id: text);
    }
}

/// The data of an event about a created order.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "utoipa", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ParcelCreated {
    /// The parcel's id, `par_…`.
    #[cfg_attr(feature = "utoipa", schema(value_type = String))]
    pub id: ParcelId,
    /// The parcel.
    pub tracking_number: TrackingNumber,
    /// Its status.
    pub status: ParcelStatus,
    /// The destination country.
    #[cfg_attr(feature = "utoipa", schema(value_type = CountryCode))]
    pub country: MaybeKnown<CountryCode>,
    /// The order's id in the caller's system.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub external_order_id: Option<String>,
}

#[doc(hidden)]
impl ParcelCreated {
    /// Returns a created order: its label is generated.
    pub fn new(id: ParcelId, tracking_number: TrackingNumber, country: CountryCode) -> Self {
        let status = ParcelStatus::LabelGenerated;
        let country = country.into();
        Self { id, tracking_number, status, country, external_order_id: None }
    }

    setters! {
        /// Sets the status.
        with_status(status: ParcelStatus);
        /// Sets the order's id in the caller's system.
        with_external_order_id(external_order_id: text);
    }
}

/// The data of an event about a voided order.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "utoipa", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ParcelVoided {
    /// The parcel.
    pub tracking_number: TrackingNumber,
    /// The status before.
    pub previous_status: ParcelStatus,
    /// The reason, if one was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The order's id in the caller's system.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub external_order_id: Option<String>,
}

#[doc(hidden)]
impl ParcelVoided {
    /// Returns a voided order with its previous status.
    pub fn new(tracking_number: TrackingNumber, previous_status: ParcelStatus) -> Self {
        Self { tracking_number, previous_status, reason: None, external_order_id: None }
    }

    setters! {
        /// Sets the reason.
        with_reason(reason: text);
        /// Sets the order's id in the caller's system.
        with_external_order_id(external_order_id: text);
    }
}

impl EventData {
    /// Returns the code of the kind in JSON, such as `parcel.created`.
    ///
    /// ```
    /// use parcelo::model::{EventData, WebhookEvent};
    ///
    /// let body = r#"{"event": "parcel.weighed", "environment": "sandbox",
    ///     "timestamp": "2026-01-10T15:05:00.000Z", "data": {"grams": 1250}}"#;
    /// let event: WebhookEvent = serde_json::from_str(body)?; // a kind from the future
    /// assert_eq!(event.data.code(), "parcel.weighed");
    /// assert!(matches!(event.data, EventData::Unknown { data, .. } if data["grams"] == 1250));
    /// # Ok::<(), serde_json::Error>(())
    /// ```
    pub fn code(&self) -> &str {
        match self {
            Self::StatusChanged(_) => EventKind::ParcelStatusChanged.code(),
            Self::ParcelCreated(_) => EventKind::ParcelCreated.code(),
            Self::ParcelVoided(_) => EventKind::ParcelVoided.code(),
            Self::ManifestSubmitted(_) => EventKind::ManifestSubmitted.code(),
            Self::Test => EventKind::WebhookTest.code(),
            Self::Unknown { kind, .. } => kind,
        }
    }

    /// Returns the kind.
    #[doc(hidden)]
    pub fn kind(&self) -> EventKind {
        match self {
            Self::StatusChanged(_) => EventKind::ParcelStatusChanged,
            Self::ParcelCreated(_) => EventKind::ParcelCreated,
            Self::ParcelVoided(_) => EventKind::ParcelVoided,
            Self::ManifestSubmitted(_) => EventKind::ManifestSubmitted,
            Self::Test => EventKind::WebhookTest,
            Self::Unknown { kind, .. } => EventKind::from(kind.as_str()),
        }
    }

    /// Parses the data of an event. Data that cannot be parsed is kept unchanged: if the receiver rejected it, the
    /// service would send it again for days.
    fn parse(kind: &EventKind, data: Value) -> Self {
        let read = match kind {
            EventKind::ParcelStatusChanged => lenient::row(data).map(Self::StatusChanged),
            EventKind::ParcelCreated => lenient::row(data).map(Self::ParcelCreated),
            EventKind::ParcelVoided => lenient::row(data).map(Self::ParcelVoided),
            EventKind::ManifestSubmitted => lenient::row(data).map(Self::ManifestSubmitted),
            EventKind::WebhookTest => Ok(Self::Test),
            EventKind::Unknown(_) => Err(Unreadable::new(data)),
        };
        read.unwrap_or_else(|data| Self::Unknown {
            kind: kind.code().to_owned(),
            data: data.into_json(),
        })
    }
}

impl Serialize for EventData {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::StatusChanged(change) => change.serialize(serializer),
            Self::ParcelCreated(created) => created.serialize(serializer),
            Self::ParcelVoided(voided) => voided.serialize(serializer),
            Self::ManifestSubmitted(manifest) => manifest.serialize(serializer),
            Self::Test => serde_json::Map::new().serialize(serializer),
            Self::Unknown { data, .. } => data.serialize(serializer),
        }
    }
}

/// The members of the body, in the order of the documentation.
#[derive(Serialize, Deserialize)]
struct Wire<D> {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    id: Option<EventId>,
    event: EventKind,
    environment: MaybeKnown<Environment>,
    #[serde(with = "time")]
    timestamp: DateTime<Utc>,
    data: D,
}

impl Serialize for WebhookEvent {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let wire = Wire {
            id: self.id.clone(),
            event: self.data.kind(),
            environment: self.environment.clone(),
            timestamp: self.timestamp,
            data: &self.data,
        };
        wire.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for WebhookEvent {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Wire { id, event, environment, timestamp, data } =
            Wire::<Value>::deserialize(deserializer)?;
        Ok(Self { id, environment, timestamp, data: EventData::parse(&event, data) })
    }
}
