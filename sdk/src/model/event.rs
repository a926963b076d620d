//! Webhook events (spec: Events; api: 9).

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use super::{Environment, ParcelStatus, TrackingNumber, macros::wire_enum, time};

wire_enum! {
    /// What a webhook tells.
    EventKind {
        /// A parcel's status changed.
        ParcelStatusChanged = "parcel.status_changed",
        /// An order was created; sent when asked for.
        ParcelCreated = "parcel.created",
        /// An order was voided; sent when asked for.
        ParcelVoided = "parcel.voided",
        /// A manifest was submitted; sent when asked for.
        ManifestSubmitted = "manifest.submitted",
        /// A test from the dashboard.
        WebhookTest = "webhook.test",
    }
}

/// A change of status, as a webhook carries it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct StatusChangedEvent {
    /// The event's id, `evt_…`; the same on every retry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// `parcel.status_changed`.
    pub event: EventKind,
    /// Where the parcel belongs.
    pub environment: Environment,
    /// When it happened.
    #[serde(with = "time")]
    pub timestamp: DateTime<Utc>,
    /// What happened.
    pub data: StatusChange,
}

/// What changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct StatusChange {
    /// The parcel.
    pub tracking_number: TrackingNumber,
    /// The status before.
    pub previous_status: ParcelStatus,
    /// The status after.
    pub new_status: ParcelStatus,
    /// City and country of the event.
    pub location: String,
    /// The event's place in the parcel's history.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sequence: Option<u32>,
    /// More, when there is more to say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The order's id in the caller's system.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub external_order_id: Option<String>,
}
