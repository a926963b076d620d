//! What each operation that is served does, asks for and answers, for the OpenAPI document; its
//! method, path, key and idempotency are in the table of operations.

use parcelo::{
    BatchTracking, BatchTrackingRequest, CarrierEvents, CarrierResults, CreatedOrder, ErrorCode,
    ErrorCode::{
        AuthCountryNotAllowed, IdempotencyConflict, IdempotencyInProgress, LabelNotFound,
        LabelNotReprintable, LabelVoided, ParcelDuplicateTracking, ParcelNotFound,
        ParcelNotVoidable, ValidationFailed, VoidFailed,
    },
    Health, LabelFormat, LabelMetadata, Meta, Operation, OrderRequest, ReprintRequest,
    TrackingRecord, VoidRequest, VoidedOrders,
};
use serde_json::{Value, json};
use utoipa::{
    PartialSchema, ToSchema,
    openapi::{
        RefOr,
        schema::{ObjectBuilder, Ref, Schema, SchemaType, Type},
    },
};

use crate::core::sample;

pub(super) const JSON: &str = "application/json";

/// What an operation does, asks for and answers; method, path, key and idempotency are in its table.
pub(super) struct Page {
    pub(super) operation: Operation,
    pub(super) summary: &'static str,
    pub(super) query: &'static [Query],
    pub(super) request: Option<(String, Value)>,
    pub(super) answers: Vec<Answer>,
    pub(super) refusals: &'static [ErrorCode],
}

/// A query parameter.
pub(super) struct Query {
    pub(super) name: &'static str,
    pub(super) about: &'static str,
    pub(super) schema: fn() -> RefOr<Schema>,
}

/// A successful answer.
pub(super) struct Answer {
    pub(super) status: &'static str,
    pub(super) about: &'static str,
    pub(super) contents: Vec<(&'static str, RefOr<Schema>)>,
}

/// Every operation that is served.
pub(super) fn pages() -> Vec<Page> {
    [orders(), tracking(), labels(), account(), carriers()].into_iter().flatten().collect()
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
    ]
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
    vec![Page {
        operation: Operation::Health,
        summary: "Check the API key",
        query: &[],
        request: None,
        answers: vec![one("200", "Which key this is, and what it may do.", name::<Health>())],
        refusals: &[],
    }]
}

/// The name of a type of the vocabulary in the document.
pub(super) fn name<T: ToSchema>() -> String {
    T::name().into_owned()
}

fn one(status: &'static str, about: &'static str, schema: String) -> Answer {
    Answer { status, about, contents: vec![(JSON, Ref::from_schema_name(schema).into())] }
}

/// An answer in the envelope.
fn data(about: &'static str, schema: String) -> Answer {
    let truth = ObjectBuilder::new().schema_type(SchemaType::from(Type::Boolean));
    let envelope = ObjectBuilder::new()
        .property("success", truth)
        .property("data", Ref::from_schema_name(schema))
        .property("meta", Ref::from_schema_name(name::<Meta>()))
        .required("success")
        .required("data")
        .required("meta");
    Answer { status: "200", about, contents: vec![(JSON, envelope.into())] }
}

fn files(status: &'static str, about: &'static str) -> Answer {
    let file = || ObjectBuilder::new().schema_type(SchemaType::from(Type::String)).build();
    let contents = LabelFormat::ALL.map(|format| (format.content_type(), file().into()));
    Answer { status, about, contents: contents.into() }
}
