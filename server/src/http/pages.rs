//! What each operation that is served does, asks for and answers, for the OpenAPI document; its
//! method, path, key and idempotency are in the table of operations.

use parcelo::{
    CountryCode,
    ErrorCode::{
        self, AuthCountryNotAllowed, IdempotencyConflict, IdempotencyInProgress, LabelNotFound,
        LabelNotReprintable, LabelVoided, ManifestAlreadySubmitted, ManifestNotFound,
        ManifestParcelsRejected, ParcelDuplicateTracking, ParcelNotFound, ParcelNotVoidable,
        PreconditionFailed, SandboxOnly, ValidationFailed, VoidFailed,
    },
    LabelFormat, ManifestRequest, Operation, OrderRequest, ParcelStatus, ReprintRequest,
    VoidRequest,
    admin::{CarrierEvents, CarrierResults},
    model::{
        BatchTracking, BatchTrackingRequest, CreatedOrder, Health, LabelMetadata, Manifest, Meta,
        PageMeta, ParcelSummary, SandboxReset, TrackingRecord, VoidedOrders,
    },
    rules::ListQuery,
};
use serde_json::{Value, json};
use utoipa::{
    PartialSchema, ToSchema,
    openapi::{
        RefOr,
        schema::{
            AllOfBuilder, ArrayBuilder, KnownFormat, ObjectBuilder, Ref, Schema, SchemaFormat,
            SchemaType, Type,
        },
    },
};

use super::described::{Answer, FILE, JSON, Query, REPLAYED, TAG, name, reference};
use super::legacy;
use crate::domain::sample;

/// What an operation does, asks for and answers; method, path, key and idempotency are in its table.
pub(super) struct Page {
    pub(super) operation: Operation,
    pub(super) summary: &'static str,
    pub(super) query: &'static [Query],
    pub(super) request: Option<(String, Value)>,
    pub(super) answers: Vec<Answer>,
    pub(super) refusals: &'static [ErrorCode],
}

impl Page {
    /// Whether it answers `If-None-Match` and `If-Match`.
    pub(super) fn is_conditional(&self) -> bool {
        self.refusals.contains(&PreconditionFailed)
    }
}

/// Every operation that is served.
pub(super) fn pages() -> Vec<Page> {
    let all = [
        orders(),
        manifests(),
        tracking(),
        labels(),
        account(),
        carriers(),
        legacy::openapi::pages(),
    ];
    all.into_iter().flatten().collect()
}

fn orders() -> Vec<Page> {
    vec![
        Page {
            operation: Operation::CreateOrder,
            summary: "Create an order with its label",
            query: &[],
            request: Some((name::<OrderRequest>(), sample::order())),
            answers: vec![
                one("201", "The order was created.", name::<CreatedOrder>()),
                again("The first answer again.", name::<CreatedOrder>()),
            ],
            refusals: &[
                AuthCountryNotAllowed,
                ParcelDuplicateTracking,
                IdempotencyConflict,
                IdempotencyInProgress,
            ],
        },
        Page {
            operation: Operation::VoidOrders,
            summary: "Void up to 100 orders",
            query: &[],
            request: Some((
                name::<VoidRequest>(),
                json!({
                    "idempotencyKey": "void-2026-01-10-0001",
                    "trackingNumbers": ["SB-SUCCESS-0001"],
                    "reason": "Customer cancelled",
                }),
            )),
            answers: vec![repeatable(data::<VoidedOrders>("At least one is void."))],
            refusals: &[
                ParcelNotFound,
                ParcelNotVoidable,
                VoidFailed,
                IdempotencyConflict,
                IdempotencyInProgress,
            ],
        },
    ]
}

fn manifests() -> Vec<Page> {
    vec![
        Page {
            operation: Operation::SubmitManifest,
            summary: "Submit a manifest under an air waybill",
            query: &[],
            request: Some((name::<ManifestRequest>(), sample::manifest())),
            answers: vec![
                data_as::<Manifest>("201", "The manifest was submitted."),
                repeatable(data::<Manifest>("It had been submitted before.")),
            ],
            refusals: &[
                ManifestParcelsRejected,
                ManifestAlreadySubmitted,
                IdempotencyConflict,
                IdempotencyInProgress,
            ],
        },
        Page {
            operation: Operation::GetManifest,
            summary: "Read a manifest",
            query: &[],
            request: None,
            answers: vec![data::<Manifest>("The manifest as it was submitted.")],
            refusals: &[ManifestNotFound],
        },
    ]
}

fn tracking() -> Vec<Page> {
    vec![
        Page {
            operation: Operation::GetTracking,
            summary: "Track one parcel",
            query: &[Query {
                name: "includeHistory",
                about: "Whether the answer has the parcel's history.",
                schema: || <bool as PartialSchema>::schema(),
            }],
            request: None,
            answers: vec![one("200", "The tracking record.", name::<TrackingRecord>())],
            refusals: &[ValidationFailed, ParcelNotFound],
        },
        Page {
            operation: Operation::BatchTracking,
            summary: "Track up to 100 parcels",
            query: &[],
            request: Some((
                name::<BatchTrackingRequest>(),
                json!({ "trackingNumbers": ["SB-SUCCESS-0001"], "includeHistory": true }),
            )),
            answers: vec![data::<BatchTracking>("A result for each number.")],
            refusals: &[],
        },
        Page {
            operation: Operation::PublicTracking,
            summary: "Track one parcel without a key",
            query: &[
                Query {
                    name: "format",
                    about: "`json` for the record; browsers get a page otherwise.",
                    schema: || <String as PartialSchema>::schema(),
                },
                Query {
                    name: "lang",
                    about: "`en` or `es`; `Accept-Language` counts when absent.",
                    schema: || <String as PartialSchema>::schema(),
                },
            ],
            request: None,
            answers: vec![public_tracking()],
            refusals: &[ParcelNotFound],
        },
    ]
}

fn public_tracking() -> Answer {
    let record = one("200", "What everybody may know.", name::<TrackingRecord>());
    let page = ("text/html", <String as PartialSchema>::schema());
    Answer { contents: record.contents.into_iter().chain([page]).collect(), ..record }
}

fn labels() -> Vec<Page> {
    vec![
        Page {
            operation: Operation::GetLabel,
            summary: "Read a label's metadata",
            query: &[],
            request: None,
            answers: vec![data::<LabelMetadata>("What is known about the label.")],
            refusals: &[ParcelNotFound, LabelNotFound],
        },
        Page {
            operation: Operation::DownloadLabel,
            summary: "Download a label file",
            query: &[Query {
                name: "format",
                about: "The file's format, in any case; PDF when absent.",
                schema: reference::<LabelFormat>,
            }],
            request: None,
            answers: vec![files("200", "The label."), unchanged()],
            refusals: &[
                ValidationFailed,
                ParcelNotFound,
                LabelNotFound,
                LabelVoided,
                PreconditionFailed,
            ],
        },
        Page {
            operation: Operation::ReprintLabel,
            summary: "Make a label anew",
            query: &[],
            request: Some((
                name::<ReprintRequest>(),
                json!({ "idempotencyKey": "reprint-0001", "reason": "Label damaged" }),
            )),
            answers: vec![repeatable(data::<LabelMetadata>("The label as it is now."))],
            refusals: &[
                ParcelNotFound,
                LabelNotFound,
                LabelVoided,
                LabelNotReprintable,
                IdempotencyConflict,
                IdempotencyInProgress,
            ],
        },
    ]
}

fn carriers() -> Vec<Page> {
    vec![Page {
        operation: Operation::PushCarrierEvents,
        summary: "Tell what a carrier has scanned",
        query: &[],
        request: Some((name::<CarrierEvents>(), sample::carrier_events())),
        answers: vec![data::<CarrierResults>("What became of each event.")],
        refusals: &[],
    }]
}

fn account() -> Vec<Page> {
    vec![
        Page {
            operation: Operation::Health,
            summary: "Check the API key",
            query: &[],
            request: None,
            answers: vec![one("200", "Which key this is, and what it may do.", name::<Health>())],
            refusals: &[],
        },
        Page {
            operation: Operation::ListParcels,
            summary: "List parcels, newest first",
            query: LIST,
            request: None,
            answers: vec![list("A page of the list.")],
            refusals: &[ValidationFailed],
        },
        Page {
            operation: Operation::ResetSandbox,
            summary: "Delete all data of the caller's sandbox",
            query: &[],
            request: None,
            answers: vec![data::<SandboxReset>("How much was deleted.")],
            refusals: &[SandboxOnly],
        },
    ]
}

const LIST: &[Query] = &[
    Query { name: "page", about: "The page, from 1; 1 when absent.", schema: || whole(u32::MAX) },
    Query {
        name: "limit",
        about: "Parcels on a page; 20 when absent.",
        schema: || whole(ListQuery::MAX_LIMIT),
    },
    Query {
        name: "status",
        about: "Only parcels in this status.",
        schema: reference::<ParcelStatus>,
    },
    Query {
        name: "country",
        about: "Only parcels to this country.",
        schema: reference::<CountryCode>,
    },
    Query {
        name: "externalOrderId",
        about: "Only parcels with exactly this id in the caller's system.",
        schema: || {
            let text = ObjectBuilder::new().schema_type(SchemaType::from(Type::String));
            text.min_length(Some(1)).max_length(Some(ListQuery::MAX_ORDER_ID)).into()
        },
    },
    Query {
        name: "createdFrom",
        about: "Only parcels created then or later: a time, or a date, which begins in UTC.",
        schema: moment,
    },
    Query {
        name: "createdTo",
        about: "Only parcels created before: a time, or a date, which begins in UTC.",
        schema: moment,
    },
];

fn whole(most: u32) -> RefOr<Schema> {
    let number = ObjectBuilder::new().schema_type(SchemaType::from(Type::Integer));
    number.minimum(Some(1)).maximum(Some(most)).into()
}

fn moment() -> RefOr<Schema> {
    let text = ObjectBuilder::new().schema_type(SchemaType::from(Type::String));
    text.pattern(Some("^[0-9]{4}-[0-9]{2}-[0-9]{2}([Tt ].+)?$")).into()
}

/// An answer that is a type of the vocabulary itself.
pub(super) fn one(status: &'static str, about: &'static str, schema: String) -> Answer {
    let contents = vec![(JSON, Ref::from_schema_name(schema).into())];
    Answer { status, about, contents, ..Answer::default() }
}

/// The answer to a write that was carried out before.
pub(super) fn again(about: &'static str, schema: String) -> Answer {
    repeatable(one("200", about, schema))
}

/// An answer to a write that says when it was carried out before.
pub(super) fn repeatable(answer: Answer) -> Answer {
    Answer { headers: REPLAYED, ..answer }
}

/// An answer in the envelope.
fn data<T: ToSchema>(about: &'static str) -> Answer {
    data_as::<T>("200", about)
}

/// The same with a status of its own.
pub(super) fn data_as<T: ToSchema>(status: &'static str, about: &'static str) -> Answer {
    enveloped(status, about, (name::<T>(), reference::<T>(), reference::<Meta>()))
}

/// A page of parcels in the envelope: paging stands beside the request's id.
fn list(about: &'static str) -> Answer {
    let items = ArrayBuilder::new().items(reference::<ParcelSummary>());
    let meta = Ref::from_schema_name(LIST_META);
    let named = format!("{}List", name::<ParcelSummary>());
    enveloped("200", about, (named, items.into(), meta.into()))
}

const LIST_META: &str = "ListMeta";

/// What a page of a list says about itself.
pub(super) fn list_meta() -> (String, RefOr<Schema>) {
    let both = AllOfBuilder::new().item(reference::<PageMeta>()).item(reference::<Meta>());
    (LIST_META.to_owned(), both.into())
}

/// What `name` means, in the envelope, which is a component of its own.
pub(super) fn enveloped(
    status: &'static str,
    about: &'static str,
    (name, data, meta): (String, RefOr<Schema>, RefOr<Schema>),
) -> Answer {
    let truth = ObjectBuilder::new().schema_type(SchemaType::from(Type::Boolean));
    let envelope = ObjectBuilder::new()
        .property("success", truth.description(Some("Always true.")))
        .property("data", data)
        .property("meta", meta)
        .required("success")
        .required("data")
        .required("meta");
    let name = format!("{name}Response");
    let answer = one(status, about, name.clone());
    Answer { component: Some((name, envelope.into())), ..answer }
}

/// The bytes of a label.
pub(super) fn files(status: &'static str, about: &'static str) -> Answer {
    let bytes = SchemaFormat::KnownFormat(KnownFormat::Binary);
    let file = ObjectBuilder::new()
        .schema_type(SchemaType::from(Type::String))
        .format(Some(bytes))
        .build();
    // Some makers of clients know bytes under this type only, and take the first that they know.
    let any = [("application/octet-stream", file.clone().into())];
    let formats = LabelFormat::ALL.map(|format| (format.content_type(), file.clone().into()));
    let contents = any.into_iter().chain(formats).collect();
    Answer { status, about, contents, headers: FILE, component: None }
}

/// For a caller who has the file already.
pub(super) fn unchanged() -> Answer {
    let about = "The file is one of those that `If-None-Match` names.";
    Answer { status: "304", about, headers: TAG, ..Answer::default() }
}
