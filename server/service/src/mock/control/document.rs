//! The controls in the OpenAPI document of the mock server, in addition to the service's operations.

use parcelo_types::{CountryCode, ErrorCode};
use serde_json::json;
use utoipa::{
    ToSchema,
    openapi::{ComponentsBuilder, HttpMethod, OpenApi, OpenApiBuilder},
};

use super::{
    planned_fault::PlannedFault,
    requests::{ClockMove, KeyToRotate, WantedKey, WantedStatus},
    responses::{
        ClockShown, InboxShown, InboxStarted, IssuedKey, KeysShown, MailsShown, Offences,
        RequestLog, ResetDone, RotatedSecret, SampleOrder, StartedServer, StatusPut, UnusedFaults,
    },
    schemas::operation_names,
    servers::WantedServer,
    webhooks::WantedInbox,
};
use crate::{
    http::{
        call::{self, Call},
        operation_doc::{self, QueryParameter, ResponseDoc, Schemas, reference, text_schema},
    },
    mock::webhook_chaos::WebhookFault,
};

const TAG: &str = "mock";

/// The operation of the listed requests.
const OPERATION: QueryParameter =
    QueryParameter("operation", "Only requests of this operation.", || operation_names().into());

/// The order of the listed requests.
const ORDER: QueryParameter = QueryParameter(
    "order",
    "Only requests about this order: its tracking number, external order id or idempotency key.",
    text_schema,
);

/// The API key of the listed requests.
const KEY: QueryParameter =
    QueryParameter("key", "Only requests with this API key, which must be complete.", text_schema);

/// A header of the listed requests.
const HEADER: QueryParameter = QueryParameter(
    "header",
    "Only requests with this header and value, separated by a colon: `user-agent:shop/2.1`.",
    text_schema,
);

/// A value in the body of the listed requests.
const BODY: QueryParameter = QueryParameter(
    "body",
    "Only requests whose JSON has a value, by a JSON pointer: `/receiver/fullName=Ana`.",
    text_schema,
);
/// The country of a sample order.
const COUNTRY: QueryParameter =
    QueryParameter("country", "The receiver's country, `EC` by default.", reference::<CountryCode>);

/// The controls, to be joined to the service's document.
pub fn document() -> OpenApi {
    let mut schemas = Schemas::new();
    let calls = [clock(), faults(), requests(), data(), webhooks(), servers(), snapshots()];
    let calls = calls.into_iter().flatten().map(add_common_parts);
    let paths = call::paths(calls, super::PREFIX, &mut schemas);
    let components = ComponentsBuilder::new().schemas_from_iter(schemas).build();
    let tags = operation_doc::tag_entries(&[(TAG, "Controls of the mock server.")]);
    OpenApiBuilder::new().tags(Some(tags)).paths(paths).components(Some(components)).build()
}

/// The refusals of a control with a body.
const BODY_REFUSALS: &[ErrorCode] = &[ErrorCode::ValidationFailed, ErrorCode::PayloadTooLarge];
/// The refusals of a control with a body about a parcel.
const PARCEL_REFUSALS: &[ErrorCode] =
    &[ErrorCode::ValidationFailed, ErrorCode::ParcelNotFound, ErrorCode::PayloadTooLarge];
const KEY_REFUSALS: &[ErrorCode] =
    &[ErrorCode::ValidationFailed, ErrorCode::KeyNotFound, ErrorCode::PayloadTooLarge];

fn clock() -> Vec<Call> {
    let moves = "Move the clock; everything that falls due on the way is executed";
    vec![
        get::<ClockShown>("/clock", "MockReadClock", "Read the clock"),
        post::<ClockShown>("/clock", "MockMoveClock", moves)
            .with_body::<ClockMove>(json!({ "advance": "PT25M" }))
            .with_refusals(PARCEL_REFUSALS),
    ]
}

fn faults() -> Vec<Call> {
    let list = "List the faults that have hit no request";
    let delete = "Delete all faults; returns those that have hit no request";
    let example =
        json!({ "operation": "CreateOrder", "nth": 1, "afterCommit": true, "fault": "reset" });
    vec![
        get::<UnusedFaults>("/faults", "MockReadFaults", list),
        post::<UnusedFaults>("/faults", "MockPlanFault", "Plan a fault")
            .with_body::<PlannedFault>(example)
            .with_refusals(BODY_REFUSALS),
        control::<UnusedFaults>(HttpMethod::Delete, "/faults", "MockForgetFaults", delete),
    ]
}

fn requests() -> Vec<Call> {
    let list = get::<RequestLog>("/requests", "MockListRequests", "List the requests so far");
    let query = &[OPERATION, ORDER, KEY, HEADER, BODY];
    vec![list.query(query).with_refusals(&[ErrorCode::ValidationFailed])]
}

fn data() -> Vec<Call> {
    let put = "/parcels/{trackingNumber}/status";
    let reset = "Delete all data, faults and e-mails; keys and clock stay";
    let (order, sample) =
        ("/orders/{trackingNumber}", "Get a valid sample order with a tracking number");
    let verify =
        "List what was done twice, unmet expectations, and faults that have hit no request";
    let scenario_keys = "List the API keys of the scenario with which the server was started";
    vec![
        get::<KeysShown>("/keys", "MockScenarioKeys", scenario_keys),
        post::<IssuedKey>("/keys", "MockMakeKey", "Create an API key")
            .with_body::<WantedKey>(json!({ "allowedCountries": ["EC", "CO"] }))
            .with_refusals(BODY_REFUSALS)
            .with_optional_body(),
        post::<IssuedKey>("/keys/rotate", "MockRotateKey", "Give an API key a new secret")
            .with_body::<KeyToRotate>(json!({ "key": "pk_test_…", "overlap": "PT1H" }))
            .with_refusals(KEY_REFUSALS),
        post::<StatusPut>(put, "MockPutStatus", "Change a parcel's status")
            .with_body::<WantedStatus>(json!({ "status": "DELIVERED" }))
            .with_refusals(PARCEL_REFUSALS),
        post::<ResetDone>("/reset", "MockReset", reset),
        get::<MailsShown>("/mails", "MockReadMails", "List the e-mails that were sent"),
        get::<SampleOrder>(order, "MockSampleOrder", sample)
            .query(&[COUNTRY])
            .with_refusals(&[ErrorCode::ValidationFailed, ErrorCode::ParcelNotFound]),
        get::<Offences>("/verify", "MockVerify", verify),
    ]
}

fn webhooks() -> Vec<Call> {
    let starts = "Start an inbox for webhooks, or have them sent to a receiver of your own; it replaces an inbox started before";
    let list = "List the deliveries to the inbox, or to the receiver of your own";
    let plan =
        "Plan a fault of the first attempt of every event from now on, in place of the one before";
    let delete = "Delete the fault of webhooks; events that are held back are sent when due";
    let rotate = "Give the endpoint a new secret; the old one also signs for 24 hours";
    vec![
        get::<InboxShown>("/webhooks", "MockReadInbox", list),
        post::<InboxStarted>("/webhooks", "MockStartInbox", starts)
            .with_body::<WantedInbox>(json!({ "reply": [503, 200] }))
            .with_refusals(BODY_REFUSALS)
            .with_optional_body(),
        post::<InboxShown>("/webhooks/faults", "MockPlanWebhookFault", plan)
            .with_body::<WebhookFault>(json!({ "fault": "reorder", "seconds": 1800 }))
            .with_refusals(BODY_REFUSALS),
        control::<InboxShown>(
            HttpMethod::Delete,
            "/webhooks/faults",
            "MockForgetWebhookFault",
            delete,
        ),
        post::<RotatedSecret>("/webhooks/rotate", "MockRotateWebhookSecret", rotate)
            .with_refusals(&[ErrorCode::WebhookNotFound]),
    ]
}

fn servers() -> Vec<Call> {
    let start =
        "Start a further server, with data, clock and faults of its own, for a worker of the suite";
    let stop = "Stop a further server; returns what GET verify would list";
    vec![
        post::<StartedServer>("/servers", "MockStartServer", start)
            .with_body::<WantedServer>(json!({ "clock": "frozen=2026-01-05T08:00:00Z" }))
            .with_refusals(BODY_REFUSALS)
            .with_optional_body(),
        control::<Offences>(HttpMethod::Delete, "/servers/{port}", "MockStopServer", stop)
            .with_refusals(&[ErrorCode::NotFound]),
    ]
}

fn snapshots() -> Vec<Call> {
    let save = "Save the whole state as a file: data, keys and clock";
    let restore =
        "Restore a saved state, of this server or of one with the same seed and environment";
    let file = ResponseDoc { headers: &[], ..ResponseDoc::file("The snapshot.", &[]) };
    vec![
        Call::route(HttpMethod::Get, "/snapshot", "MockSaveSnapshot", save).with_response(file),
        control::<ClockShown>(HttpMethod::Put, "/snapshot", "MockRestoreSnapshot", restore)
            .with_file_body()
            .with_refusals(&[ErrorCode::ValidationFailed]),
    ]
}

fn get<A: ToSchema>(path: &'static str, id: &'static str, summary: &'static str) -> Call {
    control::<A>(HttpMethod::Get, path, id, summary)
}

fn post<A: ToSchema>(path: &'static str, id: &'static str, summary: &'static str) -> Call {
    control::<A>(HttpMethod::Post, path, id, summary)
}

fn control<A: ToSchema>(
    method: HttpMethod,
    path: &'static str,
    id: &'static str,
    summary: &'static str,
) -> Call {
    let done = ResponseDoc::without_envelope::<A>("200", "Done.");
    Call::route(method, path, id, summary).with_response(done)
}

/// Adds what all controls have in common.
fn add_common_parts(mut call: Call) -> Call {
    call.refusals.push(ErrorCode::MethodNotAllowed);
    call.about = "A control of the mock server; it needs no key.";
    (call.tag, call.is_counted) = (TAG, false);
    call
}
