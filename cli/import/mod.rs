//! Importing orders from a file: what its columns are, how its rows become orders, which of them go
//! together, what the journal remembers of them, what is reported of each. `commands::import` does it.

mod columns;
mod csv_rows;
mod file;
mod journal;
mod prescan;
mod reports;
mod row;
mod row_reader;

pub(crate) use columns::sample;
pub(crate) use file::ImportFile;
pub(crate) use journal::{Journal, JournalEntry, Origin, Recorded, RecordedOrders, ResumeMode};
pub(crate) use prescan::{Duplicate, Prescan};
pub(crate) use reports::{ImportResults, ReportSpool, RowCounts, RowOutcome, RowReport};
pub(crate) use row::{Row, RowFault};
pub(crate) use row_reader::RowReader;

use std::path::PathBuf;

use parcelo::LabelFormat;

use crate::input::Source;

/// What an import was asked to do.
#[derive(Debug)]
pub(crate) struct ImportPlan {
    pub(crate) source: Source,
    pub(crate) labels: PathBuf,
    pub(crate) format: LabelFormat,
    pub(crate) concurrency: usize,
    pub(crate) mode: ImportMode,
    pub(crate) resume: ResumeMode,
    /// Without a word on how it goes.
    pub(crate) quiet: bool,
}

/// How far an import goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ImportMode {
    /// Whatever is valid is created.
    ValidRows,
    /// Nothing is created unless every row is valid.
    AllOrNothing,
    /// Rows are only checked.
    CheckOnly,
}

impl ImportPlan {
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
