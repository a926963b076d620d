//! The OpenAPI document of the admin API: what each call does, takes and answers.

use parcelo::{
    Environment, ErrorCode,
    ErrorCode::{
        AccountNotFound, AdminAuthFailed, EventNotFound, InternalError, KeyNotFound, KeyRevoked,
        MethodNotAllowed, NotFound, PayloadTooLarge, RateLimitExceeded, RequestTimeout,
        ServiceUnavailable, UnsupportedMediaType, ValidationFailed, WebhookDisabled,
        WebhookNotFound, WebhookUnreadable,
    },
    admin::{AccountRequest, CarrierKeyRequest, KeyRequest, ReplayRequest, WebhookRequest},
    model::{ErrorEnvelope, Meta},
};
use serde_json::{Value, json};
use utoipa::{
    PartialSchema, ToSchema,
    openapi::{
        ComponentsBuilder, HttpMethod, OpenApi, OpenApiBuilder, PathItem, PathsBuilder, RefOr,
        Required,
        schema::{ArrayBuilder, ObjectBuilder, Schema, SchemaType, Type},
        security::{HttpAuthScheme, HttpBuilder, SecurityScheme},
    },
};

use super::FOLDER;
use crate::{
    domain::webhooks::target::MAX_URL,
    domain::{
        admin::{
            AccountView, ApiKeyView, CarrierKeyView, DeliveryView, ExceptionView, NewApiKey,
            NewCarrierKeyView, NewSecret, ReplayedView, RotatedApiKey, TestedView, WebhookView,
        },
        credentials::{DEFAULT_OVERLAP_SECONDS, MAX_OVERLAP_SECONDS},
    },
    http::{
        described::{self, Answer, Described, Query, add, name, reference},
        pages::{data_as, enveloped},
    },
};

const TOKEN: &str = "adminToken";

const ABOUT: &str = "For the operator's programs: keys, webhooks, carriers and accounts. It is served on \
    the operators' listener only; every call needs an admin token (`adm_…`).";

/// A call.
struct Call {
    method: HttpMethod,
    path: &'static str,
    id: &'static str,
    summary: &'static str,
    query: &'static [Query],
    request: Option<(String, Value)>,
    answers: Vec<Answer>,
    refusals: &'static [ErrorCode],
}

const ACCOUNT: Query = Query {
    name: "account",
    about: "The account's name; `default` when absent.",
    schema: || <String as PartialSchema>::schema(),
};

/// What calls are grouped by.
const TAGS: &[(&str, &str)] = &[
    ("keys", "API keys."),
    ("carriers", "Carriers and their keys."),
    ("carrier-exceptions", "What carriers reported that could not be true."),
    ("accounts", "Accounts."),
    ("webhooks", "Where accounts are sent events, and what was sent."),
];

/// The document.
pub(in crate::http) fn document() -> OpenApi {
    let (mut paths, mut schemas) = (PathsBuilder::new(), schemas());
    for call in [keys(), carriers(), accounts(), webhooks(), of_webhook()].into_iter().flatten() {
        let (method, path) = (call.method.clone(), call.path);
        let path = format!("{FOLDER}{path}");
        schemas.extend(call.answers.iter().filter_map(|answer| answer.component.clone()));
        paths = paths.path(path, PathItem::new(method, describe(call).into_operation()));
    }
    let token = SecurityScheme::Http(HttpBuilder::new().scheme(HttpAuthScheme::Bearer).build());
    let components = ComponentsBuilder::new().schemas_from_iter(schemas);
    OpenApiBuilder::new()
        .info(described::info("Parcelo admin", ABOUT))
        .servers(Some([described::server("/")]))
        .tags(Some(described::tags(TAGS)))
        .paths(paths)
        .components(Some(components.security_scheme(TOKEN, token).build()))
        .build()
}

fn keys() -> Vec<Call> {
    let new = json!({ "name": "Warehouse 1", "environment": "sandbox",
        "allowedCountries": ["EC", "MX"], "ipWhitelist": ["203.0.113.0/24"] });
    vec![
        call(HttpMethod::Post, "/keys", "CreateKey", "Make an API key")
            .takes::<KeyRequest>(new)
            .answers("201", "The key, shown this once.", one::<NewApiKey>()),
        call(HttpMethod::Get, "/keys", "ListKeys", "List API keys")
            .asks(&[Query { about: "Only keys of this account.", ..ACCOUNT }])
            .answers("200", "The keys, oldest first.", many::<ApiKeyView>())
            .refuses(&[AccountNotFound]),
        call(HttpMethod::Delete, "/keys/{keyId}", "RevokeKey", "Revoke an API key")
            .asks(&[Query { about: "Only a key of this account.", ..ACCOUNT }])
            .answers("200", "The key as it is now.", one::<ApiKeyView>())
            .refuses(&[KeyNotFound, AccountNotFound]),
        call(HttpMethod::Post, "/keys/{keyId}/rotate", "RotateKey", "Give an API key a new secret")
            .asks(&[
                Query { about: "Only a key of this account.", ..ACCOUNT },
                Query {
                    name: "overlapSeconds",
                    about: "How long the old secret keeps working: 24 hours when absent; 0 ends it at once.",
                    schema: overlap,
                },
            ])
            .answers("200", "The key with its new secret, shown this once.", one::<RotatedApiKey>())
            .refuses(&[KeyNotFound, AccountNotFound, KeyRevoked]),
    ]
}

fn overlap() -> RefOr<Schema> {
    let seconds = ObjectBuilder::new().schema_type(SchemaType::from(Type::Integer));
    seconds
        .minimum(Some(0))
        .maximum(Some(MAX_OVERLAP_SECONDS))
        .default(Some(DEFAULT_OVERLAP_SECONDS.into()))
        .into()
}

fn carriers() -> Vec<Call> {
    let new = json!({ "name": "Andes Cargo", "environment": "sandbox" });
    let reports = "List what carriers reported that could not be true of a parcel";
    vec![
        call(HttpMethod::Post, "/carriers", "CreateCarrierKey", "Make a carrier key")
            .takes::<CarrierKeyRequest>(new)
            .answers("201", "The key, shown this once.", one::<NewCarrierKeyView>()),
        call(HttpMethod::Get, "/carriers", "ListCarrierKeys", "List carrier keys").answers(
            "200",
            "The keys, oldest first.",
            many::<CarrierKeyView>(),
        ),
        call(HttpMethod::Delete, "/carriers/{keyId}", "RevokeCarrierKey", "Revoke a carrier key")
            .answers("200", "The key as it is now.", one::<CarrierKeyView>())
            .refuses(&[KeyNotFound]),
        call(HttpMethod::Get, "/carrier-exceptions", "ListCarrierExceptions", reports)
            .asks(&[
                ACCOUNT,
                Query {
                    name: "environment",
                    about: "Whose reports: production when absent.",
                    schema: reference::<Environment>,
                },
            ])
            .answers("200", "The latest 1,000, newest first.", many::<ExceptionView>())
            .refuses(&[AccountNotFound]),
    ]
}

fn accounts() -> Vec<Call> {
    vec![
        call(HttpMethod::Post, "/accounts", "CreateAccount", "Make an account")
            .takes::<AccountRequest>(json!({ "name": "Acme" }))
            .answers("201", "The account was made.", one::<AccountView>())
            .answers("200", "The account was there.", one::<AccountView>()),
        call(HttpMethod::Get, "/accounts", "ListAccounts", "List accounts").answers(
            "200",
            "The accounts, oldest first.",
            many::<AccountView>(),
        ),
    ]
}

const WEBHOOK: &str = "/webhooks/{environment}";
const UNSET: &[ErrorCode] = &[AccountNotFound, WebhookNotFound, WebhookUnreadable];
const UNSENT: &[ErrorCode] =
    &[AccountNotFound, WebhookNotFound, WebhookDisabled, WebhookUnreadable];

fn webhooks() -> Vec<Call> {
    let wanted = json!({ "url": "https://shop.example/parcelo", "events": ["parcel.created"] });
    vec![
        call(HttpMethod::Put, WEBHOOK, "SetWebhook", "Set the webhook up, or change it")
            .asks(&[ACCOUNT])
            .takes::<WebhookRequest>(wanted)
            .answers("201", "It was set up; its secret is shown this once.", one::<WebhookView>())
            .answers("200", "It was there, and keeps its secret.", one::<WebhookView>()),
        call(HttpMethod::Get, WEBHOOK, "ShowWebhook", "Show the webhook")
            .asks(&[ACCOUNT])
            .answers("200", "The webhook, without its secret.", one::<WebhookView>())
            .refuses(UNSET),
        call(HttpMethod::Delete, WEBHOOK, "RemoveWebhook", "Remove the webhook")
            .asks(&[ACCOUNT])
            .answers("200", "What it was. Unsent events are held.", one::<WebhookView>())
            .refuses(UNSET),
        turn("/webhooks/{environment}/enable", "EnableWebhook", "Send to the webhook again"),
        turn("/webhooks/{environment}/disable", "DisableWebhook", "Send nothing from now on"),
    ]
}

fn turn(path: &'static str, id: &'static str, summary: &'static str) -> Call {
    call(HttpMethod::Post, path, id, summary)
        .asks(&[ACCOUNT])
        .answers("200", "The webhook as it is now.", one::<WebhookView>())
        .refuses(UNSET)
}

fn of_webhook() -> Vec<Call> {
    let (rotate, test) = ("/webhooks/{environment}/rotate-secret", "/webhooks/{environment}/test");
    let (log, replay) = ("/webhooks/{environment}/deliveries", "/webhooks/{environment}/replay");
    vec![
        call(HttpMethod::Post, rotate, "RotateSecret", "Make a new secret")
            .asks(&[ACCOUNT])
            .answers("200", "The one before signs beside it for 24 hours.", one::<NewSecret>())
            .refuses(UNSET),
        call(HttpMethod::Post, test, "TestWebhook", "Send a test event")
            .asks(&[ACCOUNT])
            .answers("200", "The event is on its way.", one::<TestedView>())
            .refuses(UNSENT),
        call(
            HttpMethod::Get,
            log,
            "ListDeliveries",
            "List events and every attempt to deliver them",
        )
        .asks(&[
            ACCOUNT,
            Query {
                name: "limit",
                about: "How many: 1-1,000, 100 when absent.",
                schema: || <u16 as PartialSchema>::schema(),
            },
        ])
        .answers("200", "The latest events, newest first.", many::<DeliveryView>())
        .refuses(&[AccountNotFound]),
        call(HttpMethod::Post, replay, "ReplayEvents", "Send events again")
            .asks(&[ACCOUNT])
            .takes::<ReplayRequest>(json!({ "since": "2026-01-10T15:05:00Z" }))
            .answers("200", "How many are sent again.", one::<ReplayedView>())
            .refuses(&[
                AccountNotFound,
                WebhookNotFound,
                EventNotFound,
                WebhookDisabled,
                WebhookUnreadable,
            ]),
    ]
}

fn call(method: HttpMethod, path: &'static str, id: &'static str, summary: &'static str) -> Call {
    let (query, answers) = (&[], Vec::new());
    Call { method, path, id, summary, query, request: None, answers, refusals: &[] }
}

impl Call {
    fn asks(self, query: &'static [Query]) -> Self {
        Self { query, ..self }
    }

    fn takes<T: ToSchema>(self, example: Value) -> Self {
        Self { request: Some((name::<T>(), example)), ..self }
    }

    fn answers(mut self, status: &'static str, about: &'static str, data: Data) -> Self {
        self.answers.push(data(status, about));
        self
    }

    fn refuses(self, refusals: &'static [ErrorCode]) -> Self {
        Self { refusals, ..self }
    }
}

/// An answer by its status and what it says.
type Data = fn(&'static str, &'static str) -> Answer;

fn one<T: ToSchema>() -> Data {
    data_as::<T>
}

fn many<T: ToSchema>() -> Data {
    |status, about| {
        let all = ArrayBuilder::new().items(reference::<T>());
        let named = format!("{}List", name::<T>());
        enveloped(status, about, (named, all.into(), reference::<Meta>()))
    }
}

fn describe(call: Call) -> Described {
    let mut refusals = vec![
        AdminAuthFailed,
        RateLimitExceeded,
        MethodNotAllowed,
        InternalError,
        ServiceUnavailable,
    ];
    if call.request.is_some() {
        refusals.extend([PayloadTooLarge, RequestTimeout, UnsupportedMediaType]);
    }
    if call.request.is_some() || !call.query.is_empty() {
        refusals.push(ValidationFailed);
    }
    if call.path.contains("{environment}") || call.query.len() > 1 {
        refusals.push(NotFound);
    }
    refusals.extend(call.refusals);
    let tag = call.path.split('/').nth(1).unwrap_or_default();
    Described {
        id: call.id,
        tag,
        summary: call.summary,
        about: "Needs an admin token.".to_owned(),
        deprecated: false,
        parameters: described::parameters(call.path, call.query),
        request: call.request.map(|(body, example)| (body, example, Required::True)),
        answers: call.answers,
        refusals,
        envelope: described::envelope(),
        security: Some(TOKEN),
        is_counted: true,
    }
}

fn schemas() -> Vec<(String, RefOr<Schema>)> {
    let mut schemas = Vec::new();
    add::<KeyRequest>(&mut schemas);
    add::<NewApiKey>(&mut schemas);
    add::<RotatedApiKey>(&mut schemas);
    add::<ApiKeyView>(&mut schemas);
    add::<CarrierKeyRequest>(&mut schemas);
    add::<NewCarrierKeyView>(&mut schemas);
    add::<CarrierKeyView>(&mut schemas);
    add::<ExceptionView>(&mut schemas);
    add::<AccountRequest>(&mut schemas);
    add::<AccountView>(&mut schemas);
    add::<WebhookRequest>(&mut schemas);
    if let Some((_, schema)) = schemas.last_mut() {
        parcelo::admin::limit_length(schema, "url", MAX_URL);
    }
    add::<WebhookView>(&mut schemas);
    add::<NewSecret>(&mut schemas);
    add::<TestedView>(&mut schemas);
    add::<DeliveryView>(&mut schemas);
    add::<ReplayRequest>(&mut schemas);
    add::<ReplayedView>(&mut schemas);
    add::<Meta>(&mut schemas);
    add::<ErrorEnvelope>(&mut schemas);
    schemas
}
