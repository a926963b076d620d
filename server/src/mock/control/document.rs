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
    schemas::{operation_names, text},
};
use crate::http::{
    Call,
    described::{self, Answer, Described, Query, Schemas},
};

const TAG: &str = "mock";

/// The operation of the listed requests.
const OPERATION: Query = Query {
    name: "operation",
    about: "Only requests of this operation.",
    schema: || operation_names().into(),
};

/// The order of the listed requests.
const ORDER: Query = Query {
    name: "order",
    about: "Only requests about this order: its tracking number, external order id or idempotency key.",
    schema: || text().into(),
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
        paths = paths.path(path, PathItem::new(method, describe(call).into_operation()));
    }
    let components = ComponentsBuilder::new().schemas_from_iter(schemas).build();
    let tags = described::tags(&[(TAG, "Controls of the mock server.")]);
    OpenApiBuilder::new().tags(Some(tags)).paths(paths).components(Some(components)).build()
}

/// The refusals of a control with a body about a parcel.
const ABOUT_A_PARCEL: &[ErrorCode] =
    &[ErrorCode::ValidationFailed, ErrorCode::ParcelNotFound, ErrorCode::PayloadTooLarge];
const ABOUT_A_KEY: &[ErrorCode] =
    &[ErrorCode::ValidationFailed, ErrorCode::KeyNotFound, ErrorCode::PayloadTooLarge];

fn clock() -> Vec<Call<Control>> {
    let move_it = post("/clock", "MockMoveClock");
    let moves = "Move the clock; everything that falls due on the way is executed";
    vec![
        reads::<ClockShown>(get("/clock", "MockReadClock"), "Read the clock"),
        takes::<ClockMove, ClockShown>(move_it, moves, json!({ "advance": "PT25M" }))
            .refuses(ABOUT_A_PARCEL),
    ]
}

fn faults() -> Vec<Call<Control>> {
    let forget = Control(HttpMethod::Delete, "/faults", "MockForgetFaults");
    let example =
        json!({ "operation": "CreateOrder", "nth": 1, "afterCommit": true, "fault": "reset" });
    vec![
        reads::<UnusedFaults>(
            get("/faults", "MockReadFaults"),
            "List the faults that have hit no request",
        ),
        takes::<PlannedFault, UnusedFaults>(
            post("/faults", "MockPlanFault"),
            "Plan a fault",
            example,
        ),
        reads::<UnusedFaults>(forget, "Delete all faults; returns those that have hit no request"),
    ]
}

fn requests() -> Vec<Call<Control>> {
    let list = get("/requests", "MockListRequests");
    let list = reads::<RequestLog>(list, "List the requests so far");
    vec![list.query(&[OPERATION, ORDER]).refuses(&[ErrorCode::ValidationFailed])]
}

fn data() -> Vec<Call<Control>> {
    let countries = json!({ "allowedCountries": ["EC", "CO"] });
    let rotation = json!({ "key": "pk_test_…", "overlap": "PT1H" });
    let put = post("/parcels/{trackingNumber}/status", "MockPutStatus");
    let sample = get("/orders/{trackingNumber}", "MockSampleOrder");
    vec![
        takes::<WantedKey, IssuedKey>(post("/keys", "MockMakeKey"), "Create an API key", countries)
            .or_nothing(),
        takes::<KeyToRotate, IssuedKey>(
            post("/keys/rotate", "MockRotateKey"),
            "Give an API key a new secret",
            rotation,
        )
        .refuses(ABOUT_A_KEY),
        takes::<WantedStatus, StatusPut>(
            put,
            "Change a parcel's status",
            json!({ "status": "DELIVERED" }),
        )
        .refuses(ABOUT_A_PARCEL),
        reads::<ResetDone>(
            post("/reset", "MockReset"),
            "Delete all data, faults and e-mails; keys and clock stay",
        ),
        reads::<MailsShown>(get("/mails", "MockReadMails"), "List the e-mails that were sent"),
        reads::<SampleOrder>(sample, "Get a valid sample order with a tracking number")
            .refuses(&[ErrorCode::ParcelNotFound]),
        reads::<Offences>(
            get("/verify", "MockVerify"),
            "List what was done twice, unmet expectations, and faults that have hit no request",
        ),
    ]
}

fn webhooks() -> Vec<Call<Control>> {
    let inbox = post("/webhooks", "MockStartInbox");
    let starts = "Start an inbox for webhooks, or have them sent to a receiver of your own; it replaces an inbox started before";
    vec![
        reads::<InboxShown>(get("/webhooks", "MockReadInbox"), "List what the inbox has received"),
        takes::<WantedInbox, InboxStarted>(inbox, starts, json!({ "reply": [503, 200] }))
            .or_nothing(),
    ]
}

fn get(path: &'static str, id: &'static str) -> Control {
    Control(HttpMethod::Get, path, id)
}

fn post(path: &'static str, id: &'static str) -> Control {
    Control(HttpMethod::Post, path, id)
}

/// A control without a body.
fn reads<A: ToSchema>(control: Control, summary: &'static str) -> Call<Control> {
    Call::new(control, summary).answers(Answer::bare::<A>("200", "Done."))
}

/// A control with a body.
fn takes<T: ToSchema, A: ToSchema>(
    control: Control,
    summary: &'static str,
    example: Value,
) -> Call<Control> {
    let refusals = &[ErrorCode::ValidationFailed, ErrorCode::PayloadTooLarge];
    reads::<A>(control, summary).takes::<T>(example).refuses(refusals)
}

fn describe(call: Call<Control>) -> Described {
    let (Control(_, path, id), required) = (call.target, call.required);
    Described {
        id,
        tag: TAG,
        summary: call.summary,
        about: "A control of the mock server; it needs no key.".to_owned(),
        deprecated: false,
        parameters: described::parameters(path, call.query),
        request: call.request.map(|(body, example)| (body, example, required)),
        answers: call.answers,
        refusals: call.refusals.iter().copied().chain([ErrorCode::MethodNotAllowed]).collect(),
        envelope: described::envelope(),
        security: None,
        is_counted: false,
    }
}
