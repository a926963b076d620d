//! What the controls answer.

use parcelo::{
    Operation, OrderRequest, ParcelStatus, TrackingNumber,
    model::{Deleted, time},
};
use serde::Serialize;
use serde_json::Value;

use crate::mock::{Fired, MockServer, Received, Recorded};

/// What the clock shows, and what moving it did.
#[derive(Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub(super) struct ClockShown {
    #[cfg_attr(test, schema(format = DateTime))]
    now: String,
    /// What fell due on the way and was done, in order.
    fired: Vec<FiredStep>,
}

/// A parcel's simulated step.
#[derive(Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
struct FiredStep {
    #[cfg_attr(test, schema(format = DateTime))]
    at: String,
    tracking_number: TrackingNumber,
    status: ParcelStatus,
}

/// Planned faults that no request has met, in words.
#[derive(Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub(super) struct UnusedFaults {
    pub(super) unused: Vec<String>,
}

/// The requests that the server remembers, oldest first.
#[derive(Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub(super) struct RequestLog {
    count: usize,
    requests: Vec<LoggedRequest>,
}

/// A request and its answer.
#[derive(Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
struct LoggedRequest {
    #[cfg_attr(test, schema(format = DateTime))]
    at: String,
    /// None for what is no operation, such as a label link.
    #[cfg_attr(test, schema(required))]
    operation: Option<&'static str>,
    method: String,
    /// The pattern of its path; empty when no route has it.
    path: String,
    /// What stood in the pattern's braces.
    #[cfg_attr(test, schema(required))]
    parameter: Option<String>,
    /// The key's prefix and last four characters.
    #[cfg_attr(test, schema(required))]
    api_key: Option<String>,
    #[cfg_attr(test, schema(required))]
    idempotency_key: Option<String>,
    /// The JSON that was sent.
    request: Value,
    /// None when the operation was not carried out.
    #[cfg_attr(test, schema(required))]
    status: Option<u16>,
    /// The JSON of the service's answer, whether or not a fault kept it from leaving.
    answer: Value,
    /// The planned faults that it met, in words.
    faults: Vec<String>,
}

/// What was done twice, and the planned faults that no request has met, in words.
#[derive(Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub(super) struct Offences {
    pub(super) offences: Vec<String>,
}

/// An order that may be sent as it is.
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

/// How much a reset deleted.
#[derive(Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub(super) struct ResetDone {
    pub(super) deleted: Deleted,
}

/// The way that a parcel went.
#[derive(Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub(super) struct StatusPut {
    pub(super) tracking_number: TrackingNumber,
    /// The statuses on the way; none when it was there.
    pub(super) statuses: Vec<ParcelStatus>,
}

/// Where webhooks go from now on.
#[derive(Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub(super) struct InboxStarted {
    pub(super) url: String,
}

/// What the inbox has received.
#[derive(Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub(super) struct InboxShown {
    /// Whether there is an inbox.
    pub(super) listening: bool,
    pub(super) deliveries: Vec<InboxDelivery>,
    /// Why an event that is waited for may never come, in words.
    pub(super) hints: Vec<String>,
}

/// One delivery as it arrived, whatever it was answered.
#[derive(Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub(super) struct InboxDelivery {
    /// The same at every attempt.
    id: String,
    #[cfg_attr(test, schema(format = DateTime))]
    at: String,
    /// Whether its signature and time were right.
    verified: bool,
    /// The JSON that came.
    body: Value,
    /// What it was answered.
    status: u16,
}

impl ClockShown {
    pub(super) fn of(server: &MockServer, fired: &[Fired]) -> Self {
        let fired = fired.iter().map(|one| FiredStep {
            at: time::to_text(one.at.to_utc()),
            tracking_number: one.tracking_number.clone(),
            status: one.status.clone(),
        });
        Self { now: time::to_text(server.clock().now()), fired: fired.collect() }
    }
}

impl RequestLog {
    pub(super) fn of(requests: &[Recorded]) -> Self {
        let requests: Vec<_> = requests.iter().map(LoggedRequest::of).collect();
        Self { count: requests.len(), requests }
    }
}

impl LoggedRequest {
    fn of(request: &Recorded) -> Self {
        Self {
            at: time::to_text(request.at),
            operation: request.operation.map(Operation::name),
            method: request.method.clone(),
            path: request.path.clone(),
            parameter: request.parameter.clone(),
            api_key: request.api_key.clone(),
            idempotency_key: request.idempotency_key.clone(),
            request: request.request.json().unwrap_or_default(),
            status: request.status,
            answer: request.answer.json().unwrap_or_default(),
            faults: request.faults.clone(),
        }
    }
}

impl InboxDelivery {
    pub(super) fn of(received: &Received) -> Self {
        Self {
            id: received.id.clone(),
            at: time::to_text(received.at),
            verified: received.event.is_ok(),
            body: serde_json::from_slice(&received.body).unwrap_or_default(),
            status: received.status,
        }
    }
}
