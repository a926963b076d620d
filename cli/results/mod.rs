//! The results of commands: documents, notes, and the end of the run.
//!
//! | command | result |
//! |---|---|
//! | `order create`, `void`, `validate` | [`Created`], [`Written<VoidedOrders>`](Written), [`Verdicts`] |
//! | `order template`, `import` | [`Results::Sample`], [`Results::Imported`] |
//! | `manifest submit`, `show` | [`Written<Manifest>`](Written), `Manifest` |
//! | `track`, `parcel list` | [`Found<TrackingRecord>`](Found), [`Listing`] |
//! | `parcel show` | [`ShownParcel`] |
//! | `invoice get` | [`Found<SavedLabel>`](Found) |
//! | `label get`, `show`, `reprint` | [`Found<SavedLabel>`](Found), [`ShownLabel`], [`Written<LabelMetadata>`](Written) |
//! | `health`, `sandbox reset` | `Health`, `SandboxReset` |
//! | `config init`, `list`, `use`; `path` | [`Profiles`]; [`ConfigFile`] |
//! | `doctor`, `man --dir` | [`Checks`], [`WrittenFiles`] |
//! | `api`, `completions`, `man`, `label get --dir -`, `invoice get --dir -`, `order template --csv` | [`Results::Raw`] |
//! | any with `--dry-run` | [`UnsentRequests`] |

mod labels;
mod orders;
mod parcels;
pub(crate) mod table;
mod tools;
mod written;

pub(crate) use labels::{SavedLabel, SavedLabels, ShownLabel};
pub(crate) use orders::{Created, Verdict, Verdicts};
pub(crate) use parcels::{Listing, ShownParcel};
pub(crate) use tools::{
    Check, CheckState, Checks, ConfigFile, ProfileSummary, Profiles, UnsentRequests, WrittenFile,
    WrittenFiles,
};
pub(crate) use written::Written;

use parcelo::{OrderRequest, model::Warning};

use crate::{failure::Failure, import::ImportResults, texts::Message};
pub(crate) use table::Found;
use table::Report;

/// The end of a run. It can have both results and a failure, if it was partly successful.
#[derive(Debug, Default)]
pub(crate) struct CommandOutcome {
    pub(crate) results: Option<Results>,
    /// Notes for people, on standard error.
    pub(crate) notes: Vec<Message>,
    pub(crate) failure: Option<Failure>,
}

/// The content of standard output.
#[derive(Debug)]
pub(crate) enum Results {
    /// Help or version, styled.
    Help(String),
    /// Bytes that are written unchanged, whatever the format.
    Raw(Vec<u8>),
    /// An order to edit: JSON, whatever the format.
    Sample(Box<OrderRequest>),
    /// The rows of an import: on disk, because a file may have any number of them.
    Imported(Box<ImportResults>),
    /// Everything else.
    Report(Box<dyn Report>),
}

impl Results {
    pub(crate) fn warnings(&self) -> &[Warning] {
        match self {
            Self::Report(report) => report.warnings(),
            Self::Help(_) | Self::Raw(_) | Self::Sample(_) | Self::Imported(_) => &[],
        }
    }
}

impl CommandOutcome {
    pub(crate) fn with(results: Results) -> Self {
        Self { results: Some(results), ..Self::default() }
    }

    pub(crate) fn report(report: impl Report + 'static) -> Self {
        Self::with(Results::Report(Box::new(report)))
    }

    pub(crate) fn note(mut self, note: impl Into<Message>) -> Self {
        self.notes.push(note.into());
        self
    }

    pub(crate) fn failing(self, failure: Option<Failure>) -> Self {
        Self { failure, ..self }
    }

    pub(crate) fn map_failure(self, change: impl FnOnce(Failure) -> Failure) -> Self {
        Self { failure: self.failure.map(change), ..self }
    }
}

impl From<Failure> for CommandOutcome {
    fn from(failure: Failure) -> Self {
        Self { failure: Some(failure), ..Self::default() }
    }
}
