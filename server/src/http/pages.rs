//! What each operation that is served does, asks for and answers, for the OpenAPI document; its
//! method, path, key and idempotency are in the table of operations.

use parcelo::{
    BatchTracking, BatchTrackingRequest, CarrierEvents, CarrierResults, CountryCode, CreatedOrder,
    ErrorCode,
    ErrorCode::{
        AuthCountryNotAllowed, IdempotencyConflict, IdempotencyInProgress, LabelNotFound,
        LabelNotReprintable, LabelVoided, ManifestAlreadySubmitted, ManifestNotFound,
        ManifestParcelsRejected, ParcelDuplicateTracking, ParcelNotFound, ParcelNotVoidable,
        SandboxOnly, ValidationFailed, VoidFailed,
    },
    Health, LabelFormat, LabelMetadata, Manifest, ManifestRequest, Meta, Operation, OrderRequest,
    PageMeta, ParcelStatus, ParcelSummary, ReprintRequest, SandboxReset, TrackingRecord,
    VoidRequest, VoidedOrders,
};
use serde_json::{Value, json};
use utoipa::{
    PartialSchema,
    openapi::{
        RefOr,
        schema::{AllOfBuilder, ArrayBuilder, ObjectBuilder, Ref, Schema, SchemaType, Type},
    },
};

use super::{
    described::{Answer, JSON, Query, name},
    legacy_pages,
};
use crate::core::sample;

/// What an operation does, asks for and answers; method, path, key and idempotency are in its table.
pub(super) struct Page {
    pub(super) operation: Operation,
    pub(super) summary: &'static str,
    pub(super) query: &'static [Query],
    pub(super) request: Option<(String, Value)>,
    pub(super) answers: Vec<Answer>,
    pub(super) refusals: &'static [ErrorCode],
}

/// Every operation that is served.
pub(super) fn pages() -> Vec<Page> {
    let all =
        [orders(), manifests(), tracking(), labels(), account(), carriers(), legacy_pages::pages()];
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
                one("200", "The first answer again.", name::<CreatedOrder>()),
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
            answers: vec![data("At least one is void.", name::<VoidedOrders>())],
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
                data_as("201", "The manifest was submitted.", name::<Manifest>()),
                data("It had been submitted before.", name::<Manifest>()),
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
            answers: vec![data("The manifest as it was submitted.", name::<Manifest>())],
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
            answers: vec![data("A result for each number.", name::<BatchTracking>())],
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
    let metadata = || name::<LabelMetadata>();
    vec![
        Page {
            operation: Operation::GetLabel,
            summary: "Read a label's metadata",
            query: &[],
            request: None,
            answers: vec![data("What is known about the label.", metadata())],
            refusals: &[ParcelNotFound, LabelNotFound],
        },
        Page {
            operation: Operation::DownloadLabel,
            summary: "Download a label file",
            query: &[Query {
                name: "format",
                about: "The file's format, in any case; PDF when absent.",
                schema: || <LabelFormat as PartialSchema>::schema(),
            }],
            request: None,
            answers: vec![files("200", "The label.")],
            refusals: &[ValidationFailed, ParcelNotFound, LabelNotFound, LabelVoided],
        },
        Page {
            operation: Operation::ReprintLabel,
            summary: "Make a label anew",
            query: &[],
            request: Some((
                name::<ReprintRequest>(),
                json!({ "idempotencyKey": "reprint-0001", "reason": "Label damaged" }),
            )),
            answers: vec![data("The label as it is now.", metadata())],
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
        answers: vec![data("What became of each event.", name::<CarrierResults>())],
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
            answers: vec![list("A page of the list.", name::<ParcelSummary>())],
            refusals: &[ValidationFailed],
        },
        Page {
            operation: Operation::ResetSandbox,
            summary: "Delete all data of the caller's sandbox",
            query: &[],
            request: None,
            answers: vec![data("How much was deleted.", name::<SandboxReset>())],
            refusals: &[SandboxOnly],
        },
    ]
}

const LIST: &[Query] = &[
    Query { name: "page", about: "The page, from 1; 1 when absent.", schema: || whole(u32::MAX) },
    Query { name: "limit", about: "Parcels on a page; 20 when absent.", schema: || whole(100) },
    Query {
        name: "status",
        about: "Only parcels in this status.",
        schema: || <ParcelStatus as PartialSchema>::schema(),
    },
    Query {
        name: "country",
        about: "Only parcels to this country.",
        schema: || <CountryCode as PartialSchema>::schema(),
    },
    Query {
        name: "externalOrderId",
        about: "Only parcels with exactly this id in the caller's system.",
        schema: || {
            let text = ObjectBuilder::new().schema_type(SchemaType::from(Type::String));
            text.min_length(Some(1)).max_length(Some(100)).into()
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

/// The name of a type of the vocabulary in the document.
pub(super) fn one(status: &'static str, about: &'static str, schema: String) -> Answer {
    Answer { status, about, contents: vec![(JSON, Ref::from_schema_name(schema).into())] }
}

/// An answer in the envelope.
pub(super) fn data(about: &'static str, schema: String) -> Answer {
    data_as("200", about, schema)
}

pub(super) fn data_as(status: &'static str, about: &'static str, schema: String) -> Answer {
    let meta = Ref::from_schema_name(name::<Meta>());
    enveloped(status, about, (Ref::from_schema_name(schema).into(), meta.into()))
}

/// A page of a list in the envelope: paging stands beside the request's id.
fn list(about: &'static str, schema: String) -> Answer {
    let items = ArrayBuilder::new().items(Ref::from_schema_name(schema));
    let meta = AllOfBuilder::new()
        .item(Ref::from_schema_name(name::<PageMeta>()))
        .item(Ref::from_schema_name(name::<Meta>()));
    enveloped("200", about, (items.into(), meta.into()))
}

pub(super) fn enveloped(
    status: &'static str,
    about: &'static str,
    (data, meta): (RefOr<Schema>, RefOr<Schema>),
) -> Answer {
    let truth = ObjectBuilder::new().schema_type(SchemaType::from(Type::Boolean));
    let envelope = ObjectBuilder::new()
        .property("success", truth)
        .property("data", data)
        .property("meta", meta)
        .required("success")
        .required("data")
        .required("meta");
    Answer { status, about, contents: vec![(JSON, envelope.into())] }
}

pub(super) fn files(status: &'static str, about: &'static str) -> Answer {
    let file = || ObjectBuilder::new().schema_type(SchemaType::from(Type::String)).build();
    let contents = LabelFormat::ALL.map(|format| (format.content_type(), file().into()));
    Answer { status, about, contents: contents.into() }
}
