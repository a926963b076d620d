//! The controls in the OpenAPI document of the mock server, in addition to the service's operations.

use parcelo::ErrorCode;
use serde_json::{Value, json};
use utoipa::{
    ToSchema,
    openapi::{
        ComponentsBuilder, HttpMethod, OpenApi, OpenApiBuilder, PathItem, PathsBuilder, RefOr,
        Required,
        schema::{Ref, Schema},
    },
};

use super::{
    requests::{ClockMove, KeyToRotate, PlannedFault, WantedInbox, WantedKey, WantedStatus},
    responses::{
        ClockShown, InboxShown, InboxStarted, IssuedKey, Offences, RequestLog, ResetDone,
        SampleOrder, StatusPut, UnusedFaults,
    },
    schemas::{operation_names, text},
};
use crate::http::described::{self, Answer, Described, JSON, Query};

const TAG: &str = "mock";

/// A type in the document: its name, its schema, and those that it refers to.
type Schemas = Vec<(String, RefOr<Schema>)>;

/// Of the list of requests.
const OPERATION: Query = Query {
    name: "operation",
    about: "Only requests of this operation.",
    schema: || operation_names().into(),
};

/// Of the list of requests.
const ORDER: Query = Query {
    name: "order",
    about: "Only requests about this order: its tracking number, external order id or idempotency key.",
    schema: || text().into(),
};

/// A control: how it is called, what it does, takes and answers.
struct Control {
    call: (HttpMethod, &'static str),
    id: &'static str,
    summary: &'static str,
    takes: Option<(Schemas, Value, Required)>,
    answers: Schemas,
    refusals: &'static [ErrorCode],
    query: &'static [Query],
}

/// The controls, to be joined to the service's document.
pub(crate) fn document() -> OpenApi {
    let (mut paths, mut schemas) = (PathsBuilder::new(), Schemas::new());
    for control in controls() {
        let (method, path) = control.call.clone();
        schemas.extend(control.takes.iter().flat_map(|(takes, ..)| takes.clone()));
        schemas.extend(control.answers.clone());
        let operation = describe(control).into_operation();
        paths = paths.path(format!("{}{path}", super::PREFIX), PathItem::new(method, operation));
    }
    let components = ComponentsBuilder::new().schemas_from_iter(schemas).build();
    let tags = described::tags(&[(TAG, "Controls of the mock server.")]);
    OpenApiBuilder::new().tags(Some(tags)).paths(paths).components(Some(components)).build()
}

fn controls() -> Vec<Control> {
    [clock(), faults(), requests(), data(), webhooks()].into_iter().flatten().collect()
}

/// What a control with a body about a parcel refuses.
const ABOUT_A_PARCEL: &[ErrorCode] =
    &[ErrorCode::ValidationFailed, ErrorCode::ParcelNotFound, ErrorCode::PayloadTooLarge];

fn clock() -> Vec<Control> {
    let moves = takes(
        "/clock",
        "MockMoveClock",
        "Move the clock; everything that falls due on the way is executed",
    )
    .with::<ClockMove>(json!({ "advance": "PT25M" }), schemas_of::<ClockShown>());
    vec![
        reads("/clock", "MockReadClock", "Read the clock", schemas_of::<ClockShown>()),
        Control { refusals: ABOUT_A_PARCEL, ..moves },
    ]
}

fn faults() -> Vec<Control> {
    let forget = reads(
        "/faults",
        "MockForgetFaults",
        "Delete all faults; returns those that have hit no request",
        schemas_of::<UnusedFaults>(),
    );
    vec![
        reads(
            "/faults",
            "MockReadFaults",
            "List the faults that have hit no request",
            schemas_of::<UnusedFaults>(),
        ),
        takes("/faults", "MockPlanFault", "FaultPlan a fault").with::<PlannedFault>(
            json!({ "operation": "CreateOrder", "nth": 1, "afterCommit": true, "fault": "reset" }),
            schemas_of::<UnusedFaults>(),
        ),
        Control { call: (HttpMethod::Delete, "/faults"), ..forget },
    ]
}

fn requests() -> Vec<Control> {
    let list = reads(
        "/requests",
        "MockListRequests",
        "List the requests so far",
        schemas_of::<RequestLog>(),
    );
    vec![Control { refusals: &[ErrorCode::ValidationFailed], query: &[OPERATION, ORDER], ..list }]
}

fn data() -> Vec<Control> {
    let put =
        takes("/parcels/{trackingNumber}/status", "MockPutStatus", "Change a parcel's status")
            .with::<WantedStatus>(json!({ "status": "DELIVERED" }), schemas_of::<StatusPut>());
    let rotate = takes("/keys/rotate", "MockRotateKey", "Give an API key a new secret")
        .with::<KeyToRotate>(
            json!({ "key": "pk_test_…", "overlap": "PT1H" }),
            schemas_of::<IssuedKey>(),
        );
    let sample = reads(
        "/orders/{trackingNumber}",
        "MockSampleOrder",
        "Get a valid sample order with a tracking number",
        schemas_of::<SampleOrder>(),
    );
    let verify = reads(
        "/verify",
        "MockVerify",
        "List what was done twice, unmet expectations, and faults that have hit no request",
        schemas_of::<Offences>(),
    );
    let reset = reads(
        "/reset",
        "MockReset",
        "Delete all data and faults; keys and clock stay",
        schemas_of::<ResetDone>(),
    );
    vec![
        takes("/keys", "MockMakeKey", "Create an API key")
            .with::<WantedKey>(
                json!({ "allowedCountries": ["EC", "CO"] }),
                schemas_of::<IssuedKey>(),
            )
            .or_nothing(),
        Control {
            refusals: &[
                ErrorCode::ValidationFailed,
                ErrorCode::KeyNotFound,
                ErrorCode::PayloadTooLarge,
            ],
            ..rotate
        },
        Control { refusals: ABOUT_A_PARCEL, ..put },
        Control { call: (HttpMethod::Post, "/reset"), ..reset },
        Control { refusals: &[ErrorCode::ParcelNotFound], ..sample },
        verify,
    ]
}

fn webhooks() -> Vec<Control> {
    vec![
        reads(
            "/webhooks",
            "MockReadInbox",
            "List what the inbox has received",
            schemas_of::<InboxShown>(),
        ),
        takes(
            "/webhooks",
            "MockStartInbox",
            "Start an inbox for webhooks; it replaces an inbox started before",
        )
        .with::<WantedInbox>(json!({ "reply": [503, 200] }), schemas_of::<InboxStarted>())
        .or_nothing(),
    ]
}

fn schemas_of<T: ToSchema>() -> Schemas {
    let mut schemas = vec![(T::name().into_owned(), T::schema())];
    T::schemas(&mut schemas);
    schemas
}

/// A control without a body.
fn reads(path: &'static str, id: &'static str, summary: &'static str, answers: Schemas) -> Control {
    let call = (HttpMethod::Get, path);
    Control { call, id, summary, takes: None, answers, refusals: &[], query: &[] }
}

/// A control with a body, which [`Control::with`] names.
fn takes(path: &'static str, id: &'static str, summary: &'static str) -> Control {
    let refusals = &[ErrorCode::ValidationFailed, ErrorCode::PayloadTooLarge];
    let call = (HttpMethod::Post, path);
    Control { call, id, summary, takes: None, answers: Schemas::new(), refusals, query: &[] }
}

impl Control {
    fn with<T: ToSchema>(self, example: Value, answers: Schemas) -> Self {
        Self { takes: Some((schemas_of::<T>(), example, Required::True)), answers, ..self }
    }

    /// Whose body may be left out.
    fn or_nothing(self) -> Self {
        let takes = self.takes.map(|(schemas, example, _)| (schemas, example, Required::False));
        Self { takes, ..self }
    }
}

fn describe(control: Control) -> Described {
    let (_, path) = control.call;
    let answer = control.answers.first().map(|(name, _)| Ref::from_schema_name(name).into());
    Described {
        id: control.id,
        tag: TAG,
        summary: control.summary,
        about: "A control of the mock server; it needs no key.".to_owned(),
        deprecated: false,
        parameters: described::parameters(path, control.query),
        request: control.takes.and_then(|(schemas, example, required)| {
            schemas.into_iter().next().map(|(name, _)| (name, example, required))
        }),
        answers: vec![Answer {
            status: "200",
            about: "Done.",
            contents: answer.map(|schema| (JSON, schema)).into_iter().collect(),
            ..Answer::default()
        }],
        refusals: control.refusals.iter().copied().chain([ErrorCode::MethodNotAllowed]).collect(),
        envelope: described::envelope(),
        security: None,
        is_counted: false,
    }
}
