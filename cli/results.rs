//! What commands hand over to be written: results, what else there is to say, and how it ended.

use std::path::PathBuf;

use crate::{failure::Failure, findings::Finding, import::ImportResults, texts::Message};
use parcelo::{
    IdempotencyKey, LabelFormat, OrderRequest, Outcome, Reply, TrackingNumber,
    model::{
        CreatedOrder, FieldFault, Health, LabelMetadata, Manifest, PageMeta, ParcelSummary,
        RequestId, Row, SandboxReset, TrackingRecord, VoidedOrders, Warning,
    },
};

/// The end of a run. Results and a failure can both be there: some of it was done.
#[derive(Debug, Default)]
pub(crate) struct CommandOutcome {
    pub(crate) results: Option<Results>,
    /// What people may want to know besides.
    pub(crate) notes: Vec<Message>,
    pub(crate) failure: Option<Failure>,
}

/// What a command has found or made.
#[derive(Debug)]
pub(crate) enum Results {
    /// Help or version, as it is to be shown.
    Help(String),
    /// A file for imports to start from: each column's name and sample.
    Columns(Vec<[String; 2]>),
    Imported(Box<ImportResults>),
    /// A sample order.
    Sample(Box<OrderRequest>),
    /// A file's content, as it is.
    File(Vec<u8>),
    Created(Box<Created>),
    Voided(Box<Written<VoidedOrders>>),
    Submitted(Box<Written<Manifest>>),
    Manifest(Box<Manifest>),
    Verdicts(Vec<Verdict>),
    Tracked(List<TrackingRecord>),
    Listed(Listing),
    Labels(List<SavedLabel>),
    Label(Box<LabelMetadata>),
    Reprinted(Box<Written<LabelMetadata>>),
    Reset(Box<SandboxReset>),
    Health(Box<Health>),
    Finding(Finding),
}

/// What was found of the things that were asked for. One that was asked for is one document in
/// JSON; several are an array.
#[derive(Debug)]
pub(crate) struct List<T> {
    pub(crate) asked: usize,
    pub(crate) found: Vec<T>,
}

/// Parcels in a list; `meta` says where a single page stands in it.
#[derive(Debug)]
pub(crate) struct Listing {
    pub(crate) parcels: Vec<Row<ParcelSummary>>,
    pub(crate) meta: Option<PageMeta>,
}

/// What a write made, and the key that makes it only once.
#[derive(Debug)]
pub(crate) struct Written<T> {
    pub(crate) value: T,
    pub(crate) outcome: Outcome,
    pub(crate) idempotency_key: Option<IdempotencyKey>,
    pub(crate) request_id: Option<RequestId>,
}

/// An order that now exists.
#[derive(Debug)]
pub(crate) struct Created {
    pub(crate) order: CreatedOrder,
    pub(crate) outcome: Outcome,
    pub(crate) idempotency_key: IdempotencyKey,
    pub(crate) request_id: Option<RequestId>,
    pub(crate) label: Option<SavedLabel>,
}

/// A label file that was written.
#[derive(Debug)]
pub(crate) struct SavedLabel {
    pub(crate) number: TrackingNumber,
    pub(crate) format: LabelFormat,
    pub(crate) file: PathBuf,
    pub(crate) bytes: u64,
}

/// Whether an order in a file keeps the rules.
#[derive(Debug)]
pub(crate) struct Verdict {
    pub(crate) file: String,
    /// The order's place in its file, from 0.
    pub(crate) index: usize,
    pub(crate) errors: Vec<FieldFault>,
    pub(crate) warnings: Vec<Warning>,
}

impl Verdict {
    pub(crate) fn is_valid(&self) -> bool {
        self.errors.is_empty()
    }
}

impl Results {
    /// What is odd about what was made.
    pub(crate) fn warnings(&self) -> &[Warning] {
        match self {
            Self::Created(created) => &created.order.warnings,
            Self::Submitted(submitted) => &submitted.value.warnings,
            Self::Manifest(manifest) => &manifest.warnings,
            Self::Help(_)
            | Self::Sample(_)
            | Self::Columns(_)
            | Self::Imported(_)
            | Self::File(_)
            | Self::Voided(_)
            | Self::Verdicts(_)
            | Self::Tracked(_)
            | Self::Listed(_)
            | Self::Labels(_)
            | Self::Label(_)
            | Self::Reprinted(_)
            | Self::Reset(_)
            | Self::Health(_)
            | Self::Finding(_) => &[],
        }
    }
}

impl<T> Written<T> {
    pub(crate) fn of(reply: Reply<T>) -> Self {
        let outcome = reply.outcome();
        let (idempotency_key, request_id) =
            (reply.meta().idempotency_key.clone(), reply.meta().request_id.clone());
        Self { value: reply.into_inner(), outcome, idempotency_key, request_id }
    }
}

impl CommandOutcome {
    pub(crate) fn with(results: Results) -> Self {
        Self { results: Some(results), ..Self::default() }
    }

    pub(crate) fn note(mut self, note: Message) -> Self {
        self.notes.push(note);
        self
    }
}

impl From<Failure> for CommandOutcome {
    fn from(failure: Failure) -> Self {
        Self { failure: Some(failure), ..Self::default() }
    }
}
