//! Importing orders from a file: columns, rows, duplicates, the journal, and reports.
//! `commands::import` sends the orders.

mod cell;
mod column_map;
mod columns;
mod csv_rows;
mod damaged_text;
mod file;
mod header;
mod journal;
mod map_template;
mod order_rows;
mod prescan;
mod reports;
mod row;
mod row_reader;
mod row_settings;
mod sender;
mod spoiled;
#[cfg(test)]
mod tests;

pub(crate) use column_map::{ColumnMap, Preset};
pub(crate) use columns::{nearest_field, sample};
pub(crate) use damaged_text::{lost_characters, misread};
pub(crate) use file::ImportFile;
pub(crate) use journal::{Journal, JournalEntry, Origin, Recorded, RecordedOrders, ResumeMode};
pub(crate) use map_template::map_template;
pub(crate) use prescan::{Duplicate, Prescan};
pub(crate) use reports::{ImportResults, ReportSpool, RowCounts, RowOutcome, RowReport};
pub(crate) use row::{Row, RowFault};
pub(crate) use row_reader::RowReader;
pub(crate) use row_settings::RowSettings;
pub(crate) use sender::read as read_sender;

use std::path::PathBuf;

use parcelo::{LabelFormat, model::fingerprint};
use serde_json::Value;

use crate::{encoding::Encoding, input::Source};

/// What an import was asked to do.
#[derive(Debug)]
pub(crate) struct ImportPlan {
    pub(crate) source: Source,
    /// In which the file is written; by its bytes if absent.
    pub(crate) encoding: Option<Encoding>,
    pub(crate) settings: RowSettings,
    pub(crate) labels: PathBuf,
    /// A file of all labels too.
    pub(crate) merge: Option<(PathBuf, LabelFormat)>,
    pub(crate) format: LabelFormat,
    pub(crate) concurrency: usize,
    pub(crate) mode: ImportMode,
    pub(crate) resume: ResumeMode,
    /// Without progress.
    pub(crate) quiet: bool,
}

/// How far an import goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ImportMode {
    /// Valid rows are created, whatever the others are.
    ValidRows,
    /// Nothing is created unless every row is valid.
    AllOrNothing,
    /// Rows are only checked.
    CheckOnly,
}

impl ImportPlan {
    /// What the names of journal and results start with.
    fn name(&self) -> String {
        match &self.source {
            Source::File(path) => path.file_name().unwrap_or_default().to_string_lossy().into(),
            Source::Stdin => "stdin".to_owned(),
        }
    }

    /// The path of this import's journal.
    pub(crate) fn journal(&self) -> PathBuf {
        self.labels.join(format!("{}.journal", self.name()))
    }

    /// The path of its results.
    pub(crate) fn results(&self) -> PathBuf {
        self.labels.join(format!("{}.results.csv", self.name()))
    }
}

/// Half of a fingerprint, in hexadecimal: 128 bits are enough to tell the rows of a file apart.
fn short_digest(value: &Value, subject: &str) -> String {
    let half = fingerprint(value, subject).first_chunk().copied().unwrap_or_default();
    format!("{:032x}", u128::from_be_bytes(half))
}
