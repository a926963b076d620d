//! What commands hand over to be written: results, what else there is to say, and how it ended.

use std::path::PathBuf;

use crate::{failure::Failure, texts::Said};
use parcelo::{
    CreatedOrder, FieldFault, Health, IdempotencyKey, LabelFormat, OrderRequest, Outcome,
    TrackingNumber, TrackingRecord, Warning,
};

/// The end of a run. Results and a failure can both be there: some of it was done.
#[derive(Debug, Default)]
pub(crate) struct Done {
    pub(crate) results: Option<Results>,
    /// What people may want to know besides.
    pub(crate) notes: Vec<Said>,
    pub(crate) failure: Option<Failure>,
}

/// What a command has found or made.
#[derive(Debug)]
pub(crate) enum Results {
    /// Help or version, as it is to be shown.
    Help(String),
    /// A sample order.
    Sample(Box<OrderRequest>),
    /// A file's content, as it is.
    File(Vec<u8>),
    Created(Box<Created>),
    Verdicts(Vec<Verdict>),
    Tracked(List<TrackingRecord>),
    Labels(List<SavedLabel>),
    Health(Box<Health>),
}

/// What was found of the things that were asked for. One that was asked for is one document in
/// JSON; several are an array.
#[derive(Debug)]
pub(crate) struct List<T> {
    pub(crate) asked: usize,
    pub(crate) found: Vec<T>,
}

/// An order that now exists.
#[derive(Debug)]
pub(crate) struct Created {
    pub(crate) order: CreatedOrder,
    pub(crate) outcome: Outcome,
    pub(crate) idempotency_key: IdempotencyKey,
    pub(crate) request_id: Option<String>,
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

impl Done {
    pub(crate) fn with(results: Results) -> Self {
        Self { results: Some(results), ..Self::default() }
    }

    pub(crate) fn note(mut self, note: Said) -> Self {
        self.notes.push(note);
        self
    }
}

impl From<Failure> for Done {
    fn from(failure: Failure) -> Self {
        Self { failure: Some(failure), ..Self::default() }
    }
}
