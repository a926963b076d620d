//! The controls' responses.

use std::collections::BTreeMap;

use parcelo_domain::TraceContext;
use parcelo_types::{OrderRequest, ParcelStatus, TrackingNumber, internal::time, model::Deleted};
use serde::Serialize;
use serde_json::Value;

use crate::mock::{
    Fired, MockServer, Received, ReceivedMail, RecordedRequest, WebhookDelivery,
    webhook_chaos::WebhookFault,
};

/// The clock's time, and what happened while it was moved.
#[derive(Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub(super) struct ClockShown {
    #[cfg_attr(test, schema(format = DateTime))]
    now: String,
    /// The parcels' steps that fell due on the way, in order.
    fired: Vec<FiredStep>,
}

/// A step of a parcel's simulated journey.
#[derive(Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
struct FiredStep {
    #[cfg_attr(test, schema(format = DateTime))]
    at: String,
    tracking_number: TrackingNumber,
    status: ParcelStatus,
}

/// Descriptions of the planned faults that have hit no request.
#[derive(Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub(super) struct UnusedFaults {
    pub(super) unused: Vec<String>,
}

/// The requests in the log, oldest first.
#[derive(Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub(super) struct RequestLog {
    count: usize,
    requests: Vec<RecordedRequest>,
}

/// Descriptions of writes that were done twice, of unmet expectations and of faults that have hit no request.
#[derive(Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub(super) struct Offences {
    pub(super) offences: Vec<String>,
}

/// A valid order.
#[derive(Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub(super) struct SampleOrder {
    pub(super) order: OrderRequest,
}

/// A new API key.
#[derive(Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub(super) struct IssuedKey {
    pub(super) key: String,
}

/// The API keys of the scenario that the server was started with, in its order.
#[derive(Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub(super) struct KeysShown {
    pub(super) keys: Vec<String>,
}

/// A further server.
#[derive(Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub(super) struct StartedServer {
    /// The port that it listens on, by which it is stopped.
    pub(super) port: u16,
    /// Its base URL.
    pub(super) url: String,
    /// An API key of it.
    pub(super) key: String,
}

/// The numbers of objects that a reset deleted.
#[derive(Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub(super) struct ResetDone {
    pub(super) deleted: Deleted,
}

/// The e-mails so far, oldest first.
#[derive(Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub(super) struct MailsShown {
    pub(super) mails: Vec<ReceivedMail>,
}

/// The statuses that a parcel went through.
#[derive(Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub(super) struct StatusPut {
    pub(super) tracking_number: TrackingNumber,
    /// The statuses on the path; empty if it had the status already.
    pub(super) statuses: Vec<ParcelStatus>,
}

/// The address that webhooks go to from now on.
#[derive(Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub(super) struct InboxStarted {
    pub(super) url: String,
    /// The secret with which the suite's own receiver verifies deliveries; absent for the mock server's inbox.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) secret: Option<String>,
}

/// The endpoint's new secret.
#[derive(Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub(super) struct RotatedSecret {
    pub(super) secret: String,
}

/// The deliveries to the inbox, or to the suite's own handler.
#[derive(Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub(super) struct InboxShown {
    /// True if webhooks go to the receiver that the last POST webhooks chose; false too while they are disabled.
    pub(super) listening: bool,
    pub(super) deliveries: Vec<InboxDelivery>,
    /// The fault of the events from now on, if one is planned.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) fault: Option<WebhookFault>,
    /// Explanations why an expected event may never arrive.
    pub(super) hints: Vec<String>,
}

/// One delivery, with any response.
#[derive(Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub(super) struct InboxDelivery {
    /// The event's id, the same in every attempt.
    id: String,
    #[cfg_attr(test, schema(format = DateTime))]
    at: String,
    /// True if its signature and timestamp were valid; only in the mock server's inbox.
    #[serde(skip_serializing_if = "Option::is_none")]
    verified: Option<bool>,
    /// The headers that the handler verifies, and `traceparent` if there is one; absent in the mock server's inbox, as
    /// are `answer` and `fault`.
    #[serde(skip_serializing_if = "Option::is_none")]
    headers: Option<BTreeMap<String, String>>,
    /// The `traceparent` header, if it had one; only in the mock server's inbox.
    #[serde(skip_serializing_if = "Option::is_none")]
    traceparent: Option<String>,
    /// The JSON as it was sent.
    body: Value,
    /// The status of the response; 0 if there was none.
    status: u16,
    /// The first 1,024 bytes of the response's body, or the reason why there was no response.
    #[serde(skip_serializing_if = "Option::is_none")]
    answer: Option<String>,
    /// The planned fault that it had: `duplicate`, `reorder`, `delay`, `wrongSignature` or `oldSignature`.
    #[serde(skip_serializing_if = "Option::is_none")]
    fault: Option<&'static str>,
}

impl ClockShown {
    pub(super) fn new(server: &MockServer, fired: &[Fired]) -> Self {
        let fired = fired.iter().map(|one| FiredStep {
            at: time::to_text(one.at.to_utc()),
            tracking_number: one.tracking_number.clone(),
            status: one.status.clone(),
        });
        Self { now: time::to_text(server.clock().now()), fired: fired.collect() }
    }
}

impl RequestLog {
    pub(super) fn new(requests: Vec<RecordedRequest>) -> Self {
        Self { count: requests.len(), requests }
    }
}

impl InboxDelivery {
    /// Returns a delivery to the mock server's inbox.
    pub(super) fn received(received: &Received) -> Self {
        Self {
            id: received.id.clone(),
            at: time::to_text(received.at),
            verified: Some(received.event.is_ok()),
            headers: None,
            traceparent: received.traceparent.clone(),
            body: serde_json::from_slice(&received.body).unwrap_or_default(),
            status: received.status,
            answer: None,
            fault: None,
        }
    }

    /// Returns a delivery to the suite's own handler.
    pub(super) fn sent(sent: &WebhookDelivery) -> Self {
        let parent = sent.traceparent.clone().map(|parent| (TraceContext::HEADER, parent));
        let headers = sent.headers.iter().cloned().chain(parent);
        Self {
            id: sent.id.clone(),
            at: time::to_text(sent.at),
            verified: None,
            headers: Some(headers.map(|(name, value)| (name.to_owned(), value)).collect()),
            traceparent: None,
            body: serde_json::from_slice(&sent.body).unwrap_or_default(),
            status: sent.status,
            answer: Some(sent.answer.clone()),
            fault: sent.fault,
        }
    }
}
