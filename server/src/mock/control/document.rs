//! The controls in the OpenAPI document of the mock server, in addition to the service's operations.

use parcelo::ErrorCode;
use serde_json::{Value, json};
use utoipa::{
    ToSchema,
    openapi::{ComponentsBuilder, HttpMethod, OpenApi, OpenApiBuilder, PathItem, PathsBuilder},
};

use super::{
    requests::{ClockMove, KeyToRotate, PlannedFault, WantedInbox, WantedKey, WantedStatus},
    responses::{
        ClockShown, InboxShown, InboxStarted, IssuedKey, MailsShown, Offences, RequestLog,
        ResetDone, SampleOrder, StatusPut, UnusedFaults,
    },
    schemas::{operation_names, string_schema},
};
use crate::http::{
    Call,
    operation_doc::{self, OperationDoc, QueryParameter, ResponseDoc, Schemas},
};

const TAG: &str = "mock";

/// The operation of the listed requests.
const OPERATION: QueryParameter = QueryParameter {
    name: "operation",
    about: "Only requests of this operation.",
    schema: || operation_names().into(),
};

/// The order of the listed requests.
const ORDER: QueryParameter = QueryParameter {
    name: "order",
    about: "Only requests about this order: its tracking number, external order id or idempotency key.",
    schema: || string_schema().into(),
};

/// A control: its method, its path below [`PREFIX`](super::PREFIX), and its id.
struct Control(HttpMethod, &'static str, &'static str);

/// The controls, to be joined to the service's document.
pub(crate) fn document() -> OpenApi {
    let (mut paths, mut schemas) = (PathsBuilder::new(), Schemas::new());
    for call in [clock(), faults(), requests(), data(), webhooks()].into_iter().flatten() {
        let Control(method, path, _) = &call.target;
        let (method, path) = (method.clone(), format!("{}{path}", super::PREFIX));
        schemas.extend(call.schemas());
        paths = paths.path(path, PathItem::new(method, to_operation_doc(call).into_operation()));
    }
    let components = ComponentsBuilder::new().schemas_from_iter(schemas).build();
    let tags = operation_doc::tag_entries(&[(TAG, "Controls of the mock server.")]);
    OpenApiBuilder::new().tags(Some(tags)).paths(paths).components(Some(components)).build()
}

/// The refusals of a control with a body about a parcel.
const PARCEL_REFUSALS: &[ErrorCode] =
    &[ErrorCode::ValidationFailed, ErrorCode::ParcelNotFound, ErrorCode::PayloadTooLarge];
const KEY_REFUSALS: &[ErrorCode] =
    &[ErrorCode::ValidationFailed, ErrorCode::KeyNotFound, ErrorCode::PayloadTooLarge];

fn clock() -> Vec<Call<Control>> {
    let move_it = post("/clock", "MockMoveClock");
    let moves = "Move the clock; everything that falls due on the way is executed";
    vec![
        call_without_body::<ClockShown>(get("/clock", "MockReadClock"), "Read the clock"),
        call_with_body::<ClockMove, ClockShown>(move_it, moves, json!({ "advance": "PT25M" }))
            .with_refusals(PARCEL_REFUSALS),
    ]
}

fn faults() -> Vec<Call<Control>> {
    let forget = Control(HttpMethod::Delete, "/faults", "MockForgetFaults");
    let example =
        json!({ "operation": "CreateOrder", "nth": 1, "afterCommit": true, "fault": "reset" });
    vec![
        call_without_body::<UnusedFaults>(
            get("/faults", "MockReadFaults"),
            "List the faults that have hit no request",
        ),
        call_with_body::<PlannedFault, UnusedFaults>(
            post("/faults", "MockPlanFault"),
            "Plan a fault",
            example,
        ),
        call_without_body::<UnusedFaults>(
            forget,
            "Delete all faults; returns those that have hit no request",
        ),
    ]
}

fn requests() -> Vec<Call<Control>> {
    let list = get("/requests", "MockListRequests");
    let list = call_without_body::<RequestLog>(list, "List the requests so far");
    vec![list.query(&[OPERATION, ORDER]).with_refusals(&[ErrorCode::ValidationFailed])]
}

fn data() -> Vec<Call<Control>> {
    let countries = json!({ "allowedCountries": ["EC", "CO"] });
    let rotation = json!({ "key": "pk_test_…", "overlap": "PT1H" });
    let put = post("/parcels/{trackingNumber}/status", "MockPutStatus");
    let sample = get("/orders/{trackingNumber}", "MockSampleOrder");
    vec![
        call_with_body::<WantedKey, IssuedKey>(
            post("/keys", "MockMakeKey"),
            "Create an API key",
            countries,
        )
        .with_optional_body(),
        call_with_body::<KeyToRotate, IssuedKey>(
            post("/keys/rotate", "MockRotateKey"),
            "Give an API key a new secret",
            rotation,
        )
        .with_refusals(KEY_REFUSALS),
        call_with_body::<WantedStatus, StatusPut>(
            put,
            "Change a parcel's status",
            json!({ "status": "DELIVERED" }),
        )
        .with_refusals(PARCEL_REFUSALS),
        call_without_body::<ResetDone>(
            post("/reset", "MockReset"),
            "Delete all data, faults and e-mails; keys and clock stay",
        ),
        call_without_body::<MailsShown>(
            get("/mails", "MockReadMails"),
            "List the e-mails that were sent",
        ),
        call_without_body::<SampleOrder>(sample, "Get a valid sample order with a tracking number")
            .with_refusals(&[ErrorCode::ParcelNotFound]),
        call_without_body::<Offences>(
            get("/verify", "MockVerify"),
            "List what was done twice, unmet expectations, and faults that have hit no request",
        ),
    ]
}

fn webhooks() -> Vec<Call<Control>> {
    let inbox = post("/webhooks", "MockStartInbox");
    let starts = "Start an inbox for webhooks, or have them sent to a receiver of your own; it replaces an inbox started before";
    vec![
        call_without_body::<InboxShown>(
            get("/webhooks", "MockReadInbox"),
            "List what the inbox has received",
        ),
        call_with_body::<WantedInbox, InboxStarted>(inbox, starts, json!({ "reply": [503, 200] }))
            .with_optional_body(),
    ]
}

fn get(path: &'static str, id: &'static str) -> Control {
    Control(HttpMethod::Get, path, id)
}

fn post(path: &'static str, id: &'static str) -> Control {
    Control(HttpMethod::Post, path, id)
}

/// A control without a body.
fn call_without_body<A: ToSchema>(control: Control, summary: &'static str) -> Call<Control> {
    Call::new(control, summary).with_response(ResponseDoc::without_envelope::<A>("200", "Done."))
}

/// A control with a body.
fn call_with_body<T: ToSchema, A: ToSchema>(
    control: Control,
    summary: &'static str,
    example: Value,
) -> Call<Control> {
    let refusals = &[ErrorCode::ValidationFailed, ErrorCode::PayloadTooLarge];
    call_without_body::<A>(control, summary).with_body::<T>(example).with_refusals(refusals)
}

fn to_operation_doc(call: Call<Control>) -> OperationDoc {
    let (Control(_, path, id), required) = (call.target, call.required);
    OperationDoc {
        id,
        tag: TAG,
        summary: call.summary,
        about: "A control of the mock server; it needs no key.".to_owned(),
        deprecated: false,
        parameters: operation_doc::path_and_query_parameters(path, call.query),
        request: call.request.map(|(body, example)| (body, example, required)),
        answers: call.answers,
        refusals: call.refusals.iter().copied().chain([ErrorCode::MethodNotAllowed]).collect(),
        envelope: operation_doc::error_envelope_name(),
        security: None,
        is_counted: false,
    }
}
