//! Importing orders from a file: what its columns are, how its rows become orders, which of them go
//! together, what the journal remembers of them, what is reported of each. `commands::import` does it.

mod columns;
mod csv_rows;
mod journal;
mod reports;
mod rows;
mod source;
mod survey;

pub(crate) use columns::sample;
pub(crate) use journal::{Entry, Journal, Known, Past};
pub(crate) use reports::{Imported, Outcome, Reports, RowReport, Tally};
pub(crate) use rows::{Row, RowFault, Rows};
pub(crate) use source::Content;
pub(crate) use survey::{Fit, Survey};

use std::path::PathBuf;

use parcelo::LabelFormat;

use crate::input::Source;

/// What an import was asked to do.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) source: Source,
    pub(crate) labels: PathBuf,
    pub(crate) format: LabelFormat,
    pub(crate) concurrency: usize,
    pub(crate) mode: Mode,
    pub(crate) past: Past,
    /// Without a word on how it goes.
    pub(crate) quiet: bool,
}

/// How far an import goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Whatever is valid is created.
    GoodRows,
    /// Nothing is created unless every row is valid.
    AllOrNothing,
    /// Rows are only checked.
    CheckOnly,
}

impl Plan {
    /// The name that journal and results are called by.
    fn name(&self) -> String {
        match &self.source {
            Source::File(path) => path.file_name().unwrap_or_default().to_string_lossy().into(),
            Source::Stdin => "stdin".to_owned(),
        }
    }

    /// Where the journal of this import is.
    pub(crate) fn journal(&self) -> PathBuf {
        self.labels.join(format!("{}.journal", self.name()))
    }

    /// Where its results go.
    pub(crate) fn results(&self) -> PathBuf {
        self.labels.join(format!("{}.results.csv", self.name()))
    }
}
