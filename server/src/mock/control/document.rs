//! What the controls are, for the OpenAPI document, where they stand beside the service's operations.

use parcelo::{ErrorCode, ErrorEnvelope, Language};
use serde_json::{Value, json};
use utoipa::{
    ToSchema,
    openapi::{
        ComponentsBuilder, ContentBuilder, HttpMethod, InfoBuilder, OpenApi, OpenApiBuilder,
        PathItem, PathsBuilder, RefOr, Required, Response, ResponseBuilder, Responses,
        path::{OperationBuilder, Parameter, ParameterBuilder, ParameterIn},
        request_body::RequestBodyBuilder,
        schema::{ObjectBuilder, Ref, Schema, SchemaType, Type},
    },
};

use super::{
    asked::{ClockMove, PlannedFault, WantedInbox, WantedKey, WantedStatus, operation_names},
    told::{
        ClockShown, InboxShown, InboxStarted, IssuedKey, RequestLog, ResetDone, StatusPut,
        UnusedFaults,
    },
};

const JSON: &str = "application/json";

/// A type in the document: its name, its schema, and those that it refers to.
type Schemas = Vec<(String, RefOr<Schema>)>;

/// A control: how it is called, what it does, takes and answers.
struct Control {
    call: (HttpMethod, &'static str),
    id: &'static str,
    summary: &'static str,
    takes: Option<(Schemas, Value)>,
    answers: Schemas,
    refusals: &'static [ErrorCode],
}

/// The controls, to be joined to the service's document.
pub(super) fn document() -> OpenApi {
    let (mut paths, mut schemas) = (PathsBuilder::new(), Schemas::new());
    for control in controls() {
        let (method, path) = control.call.clone();
        paths = paths
            .path(format!("{}{path}", super::FOLDER), PathItem::new(method, describe(&control)));
        schemas.extend(control.takes.map(|(takes, _)| takes).unwrap_or_default());
        schemas.extend(control.answers);
    }
    let components = ComponentsBuilder::new().schemas_from_iter(schemas).build();
    let info = InfoBuilder::new().build();
    OpenApiBuilder::new().info(info).paths(paths).components(Some(components)).build()
}

fn controls() -> Vec<Control> {
    [clock(), faults(), requests(), data(), webhooks()].into_iter().flatten().collect()
}

fn clock() -> Vec<Control> {
    vec![
        reads("/clock", "MockReadClock", "Read the clock", of::<ClockShown>()),
        takes("/clock", "MockMoveClock", "Move the clock; all that falls due on the way is done")
            .with::<ClockMove>(json!({ "advance": "PT25M" }), of::<ClockShown>()),
    ]
}

fn faults() -> Vec<Control> {
    let forget = reads(
        "/faults",
        "MockForgetFaults",
        "Forget all faults; answers with those that no request has met",
        of::<UnusedFaults>(),
    );
    vec![
        reads(
            "/faults",
            "MockReadFaults",
            "List the faults that no request has met",
            of::<UnusedFaults>(),
        ),
        takes("/faults", "MockPlanFault", "Plan a fault").with::<PlannedFault>(
            json!({ "operation": "CreateOrder", "nth": 1, "afterCommit": true, "fault": "reset" }),
            of::<UnusedFaults>(),
        ),
        Control { call: (HttpMethod::Delete, "/faults"), ..forget },
    ]
}

fn requests() -> Vec<Control> {
    let list =
        reads("/requests", "MockListRequests", "List the requests so far", of::<RequestLog>());
    vec![Control { refusals: &[ErrorCode::ValidationFailed], ..list }]
}

fn data() -> Vec<Control> {
    let put =
        takes("/parcels/{trackingNumber}/status", "MockPutStatus", "Bring a parcel into a status")
            .with::<WantedStatus>(json!({ "status": "DELIVERED" }), of::<StatusPut>());
    let reset = reads(
        "/reset",
        "MockReset",
        "Delete all data and faults; keys and clock stay",
        of::<ResetDone>(),
    );
    vec![
        takes("/keys", "MockMakeKey", "Make an API key")
            .with::<WantedKey>(json!({ "allowedCountries": ["EC", "CO"] }), of::<IssuedKey>()),
        Control {
            refusals: &[
                ErrorCode::ValidationFailed,
                ErrorCode::ParcelNotFound,
                ErrorCode::PayloadTooLarge,
                ErrorCode::UnsupportedMediaType,
            ],
            ..put
        },
        Control { call: (HttpMethod::Post, "/reset"), ..reset },
    ]
}

fn webhooks() -> Vec<Control> {
    vec![
        reads("/webhooks", "MockReadInbox", "List what the inbox has received", of::<InboxShown>()),
        takes(
            "/webhooks",
            "MockStartInbox",
            "Send webhooks to an inbox of this server from now on",
        )
        .with::<WantedInbox>(json!({ "reply": [503, 200] }), of::<InboxStarted>()),
    ]
}

fn of<T: ToSchema>() -> Schemas {
    let mut schemas = vec![(T::name().into_owned(), T::schema())];
    T::schemas(&mut schemas);
    schemas
}

/// A control without a body.
fn reads(path: &'static str, id: &'static str, summary: &'static str, answers: Schemas) -> Control {
    let call = (HttpMethod::Get, path);
    Control { call, id, summary, takes: None, answers, refusals: &[] }
}

/// A control with a body, which [`Control::with`] names.
fn takes(path: &'static str, id: &'static str, summary: &'static str) -> Control {
    let refusals =
        &[ErrorCode::ValidationFailed, ErrorCode::PayloadTooLarge, ErrorCode::UnsupportedMediaType];
    let call = (HttpMethod::Post, path);
    Control { call, id, summary, takes: None, answers: Schemas::new(), refusals }
}

impl Control {
    fn with<T: ToSchema>(self, example: Value, answers: Schemas) -> Self {
        Self { takes: Some((of::<T>(), example)), answers, ..self }
    }
}

fn describe(control: &Control) -> utoipa::openapi::path::Operation {
    let mut operation = OperationBuilder::new()
        .operation_id(Some(control.id))
        .tag("mock")
        .summary(Some(control.summary))
        .parameters(Some(parameters(control)))
        .responses(responses(control));
    if let Some((schemas, example)) = &control.takes {
        let content =
            ContentBuilder::new().schema(reference(schemas)).example(Some(example.clone()));
        let body = RequestBodyBuilder::new().content(JSON, content.build());
        operation = operation.request_body(Some(body.required(Some(Required::True)).build()));
    }
    operation.build()
}

fn parameters(control: &Control) -> Vec<Parameter> {
    let text = ObjectBuilder::new().schema_type(SchemaType::from(Type::String));
    let (_, path) = control.call;
    let mut parameters = Vec::new();
    if path.contains("{trackingNumber}") {
        let number = ParameterBuilder::new().name("trackingNumber").parameter_in(ParameterIn::Path);
        let number = number.required(Required::True).schema(Some(text.min_length(Some(1))));
        parameters.push(number.build());
    }
    if path == "/requests" {
        let operation = ParameterBuilder::new().name("operation").parameter_in(ParameterIn::Query);
        let operation = operation.description(Some("Only requests of this operation."));
        parameters.push(operation.schema(Some(operation_names())).build());
    }
    parameters
}

fn responses(control: &Control) -> Responses {
    let done = ResponseBuilder::new().description("Done.");
    let content = ContentBuilder::new().schema(reference(&control.answers)).build();
    let mut responses = Responses::new();
    responses.responses.insert("200".to_owned(), done.content(JSON, content).build().into());
    for code in control.refusals.iter().chain(&[ErrorCode::MethodNotAllowed]) {
        responses.responses.insert(code.status().to_string(), refusal(*code).into());
    }
    responses
}

fn refusal(code: ErrorCode) -> Response {
    let about = format!("`{code}`: {}", code.template(Language::En));
    let envelope = Ref::from_schema_name(ErrorEnvelope::name());
    let content = ContentBuilder::new().schema(Some(envelope)).build();
    ResponseBuilder::new().description(about).content(JSON, content).build()
}

/// A reference to the first of the schemas, whose parts the others are.
fn reference(schemas: &Schemas) -> Option<Ref> {
    schemas.first().map(|(name, _)| Ref::from_schema_name(name))
}
