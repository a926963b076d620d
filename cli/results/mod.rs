//! The results of commands: documents, notes, and the end of the run.
//!
//! | command | result |
//! |---|---|
//! | `order create`, `void`, `validate` | [`Created`], [`WriteResult<VoidedOrders>`](WriteResult), [`Verdicts`] |
//! | `order template`, `import` | [`Results::Sample`], [`Results::Imported`] |
//! | `manifest submit`, `show` | [`WriteResult<Manifest>`](WriteResult), `Manifest` |
//! | `track`, `parcel list` | [`FoundItems<TrackingRecord>`](FoundItems), [`Listing`] |
//! | `parcel show` | [`ShownParcel`] |
//! | `invoice get` | [`FoundItems<SavedLabel>`](FoundItems) |
//! | `label get`, `show`, `reprint` | [`FoundItems<SavedLabel>`](FoundItems), [`ShownLabel`], [`WriteResult<LabelMetadata>`](WriteResult) |
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
pub(crate) use written::WriteResult;

use parcelo::{OrderRequest, model::Warning};

use crate::{failure::Failure, import::ImportResults, texts::Message};
pub(crate) use table::FoundItems;
use table::Report;

/// The outcome of a command. It can have both results and a failure, if it succeeded in part.
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
    /// Bytes that are written unchanged in every format.
    Raw(Vec<u8>),
    /// An order to edit, as JSON in every format.
    Sample(Box<OrderRequest>),
    /// The rows of an import, which are on disk because there may be any number of them.
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
