//! The requests to an account's webhook, for the OpenAPI document: each kind of event with its body.

use parcelo::webhook;
use parcelo_domain::{TraceContext, webhooks::WebhookEventKind};
use parcelo_types::{
    Environment,
    internal::EventKind,
    model::{Manifest, ParcelCreated, ParcelVoided, StatusChange},
};
use utoipa::openapi::{
    ContentBuilder, HttpMethod, Object, PathItem, Paths, PathsBuilder, RefOr, Required,
    ResponseBuilder, ResponsesBuilder,
    path::{OperationBuilder, Parameter, ParameterIn},
    request_body::RequestBodyBuilder,
    schema::{KnownFormat, ObjectBuilder, Ref, Schema, SchemaFormat, Type},
};

use super::operation_doc::{
    JSON, Schemas, add_schema, header_parameter, parameter, reference, type_schema,
};

const RESPONSE_TEXT: &str = "Any 2xx: the event has arrived. Anything else, or nothing within 15 seconds, and it \
    is sent again with the same id.";

/// Returns every kind of event under its name.
pub(super) fn webhooks() -> Paths {
    let kinds = WebhookEventKind::ALL.into_iter().map(WebhookEventKind::to_wire);
    let all = kinds.fold(PathsBuilder::new(), |paths, kind| {
        let body = Ref::from_schema_name(body_name(&kind));
        let operation = OperationBuilder::new()
            .tag("webhooks")
            .operation_id(Some(format!("On{}", type_name(&kind))))
            .summary(Some(event_summary(&kind)))
            .description(Some("Sent to the account's webhook; its signature is to be verified."))
            .securities(Some([]))
            .parameters(Some(webhook_headers()))
            .request_body(Some(
                RequestBodyBuilder::new()
                    .content(JSON, ContentBuilder::new().schema(Some(body)).build())
                    .required(Some(Required::True))
                    .build(),
            ))
            .responses(
                ResponsesBuilder::new()
                    .response("2XX", ResponseBuilder::new().description(RESPONSE_TEXT)),
            );
        paths.path(kind.code(), PathItem::new(HttpMethod::Post, operation.build()))
    });
    all.build()
}

/// Returns the schemas of the bodies.
pub(super) fn schemas() -> Schemas {
    let mut schemas = Vec::new();
    add_schema::<StatusChange>(&mut schemas);
    add_schema::<ParcelCreated>(&mut schemas);
    add_schema::<ParcelVoided>(&mut schemas);
    add_schema::<Manifest>(&mut schemas);
    add_schema::<Environment>(&mut schemas);
    let kinds = WebhookEventKind::ALL.into_iter().map(WebhookEventKind::to_wire);
    schemas.extend(kinds.map(|kind| (body_name(&kind), body_schema(&kind))));
    schemas
}

fn body_name(kind: &EventKind) -> String {
    format!("{}Event", type_name(kind))
}

/// Returns the type name of a kind, such as `ParcelStatusChanged` for `parcel.status_changed`.
fn type_name(kind: &EventKind) -> String {
    let words = kind.code().split(['.', '_']).map(|word| {
        let (first, rest) = word.split_at_checked(1).unwrap_or_default();
        first.to_ascii_uppercase() + rest
    });
    words.collect()
}

fn event_summary(kind: &EventKind) -> &'static str {
    match kind {
        EventKind::ParcelStatusChanged => "A parcel's status changed; sent to every webhook",
        EventKind::ParcelCreated => "An order was created; sent when asked for",
        EventKind::ParcelVoided => "An order was voided; sent when asked for",
        EventKind::ManifestSubmitted => "A manifest was submitted; sent when asked for",
        _ => "A test, sent on request",
    }
}

/// Returns the schema of a body: the event's id, kind, time and environment, and its data.
fn body_schema(kind: &EventKind) -> RefOr<Schema> {
    let data = match kind {
        EventKind::ParcelStatusChanged => reference::<StatusChange>(),
        EventKind::ParcelCreated => reference::<ParcelCreated>(),
        EventKind::ParcelVoided => reference::<ParcelVoided>(),
        EventKind::ManifestSubmitted => reference::<Manifest>(),
        _ => Object::new().into(),
    };
    let text = || type_schema(Type::String);
    let moment = text().format(Some(SchemaFormat::KnownFormat(KnownFormat::DateTime)));
    let members: [(&str, RefOr<Schema>); 5] = [
        ("id", text().pattern(Some("^evt_[0-9A-Z]{26}$")).into()),
        ("event", text().enum_values(Some([kind.code()])).into()),
        ("environment", reference::<Environment>()),
        ("timestamp", moment.into()),
        ("data", data),
    ];
    let members = members.into_iter();
    let object = members.fold(ObjectBuilder::new(), |object, (member, schema)| {
        object.property(member, schema).required(member)
    });
    object.into()
}

fn webhook_headers() -> Vec<Parameter> {
    let all = [
        (webhook::ID, "The event's id; the same at every attempt."),
        (webhook::TIMESTAMP, "The Unix second of this attempt."),
        (
            webhook::SIGNATURE,
            "`v1,` and base64 of HMAC-SHA256 over `id.timestamp.body`; two while a secret is replaced.",
        ),
    ];
    let header = |(name, about): (&str, &str)| {
        let text = type_schema(Type::String);
        parameter(name, ParameterIn::Header, text).description(Some(about)).build()
    };
    let trace = header_parameter(
        TraceContext::HEADER,
        "The trace of the request that caused the event, if it had one (W3C Trace Context).",
        type_schema(Type::String),
    );
    all.map(header).into_iter().chain([trace]).collect()
}
