//! Importing orders from a file: columns, rows, duplicates, journal and reports. `commands::import` sends the orders.

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
mod spreadsheet_damage;
#[cfg(test)]
mod tests;

pub(crate) use column_map::{ColumnMap, Preset};
pub(crate) use columns::{nearest_field, sample};
pub(crate) use damaged_text::{find_lost_characters, find_misread_text};
pub(crate) use file::ImportFile;
pub(crate) use journal::{
    Journal, JournalEntry, Origin, RecordedOrder, RecordedOrders, ResumeMode,
};
pub(crate) use map_template::map_template;
pub(crate) use prescan::{Duplicate, Prescan};
pub(crate) use reports::{ImportResults, ReportSpool, RowCounts, RowOutcome, RowReport};
pub(crate) use row::{Row, RowFault};
pub(crate) use row_reader::RowReader;
pub(crate) use row_settings::RowSettings;
pub(crate) use sender::read_sender;

use std::path::PathBuf;

use parcelo::LabelFormat;
use parcelo_types::internal::fingerprint;
use serde_json::Value;

use crate::{encoding::Encoding, input::Source};

/// The input and options of an import.
#[derive(Debug)]
pub(crate) struct ImportPlan {
    pub(crate) source: Source,
    /// The encoding of the file; detected from its bytes if absent.
    pub(crate) encoding: Option<Encoding>,
    pub(crate) settings: RowSettings,
    pub(crate) labels: PathBuf,
    /// The file of all labels, if one is requested.
    pub(crate) merge: Option<(PathBuf, LabelFormat)>,
    pub(crate) format: LabelFormat,
    pub(crate) concurrency: usize,
    pub(crate) mode: ImportMode,
    pub(crate) resume: ResumeMode,
    /// Hides the progress.
    pub(crate) quiet: bool,
}

/// The set of rows for which an import creates orders.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ImportMode {
    /// Valid rows are created even if others are invalid.
    ValidRows,
    /// Nothing is created unless every row is valid.
    AllOrNothing,
    /// Rows are only checked.
    CheckOnly,
}

impl ImportPlan {
    /// Returns the common stem of the file names of journal and results.
    fn name(&self) -> String {
        match &self.source {
            Source::File(path) => path.file_name().unwrap_or_default().to_string_lossy().into(),
            Source::Stdin => "stdin".to_owned(),
        }
    }

    /// Returns the path of this import's journal.
    pub(crate) fn journal(&self) -> PathBuf {
        self.labels.join(format!("{}.journal", self.name()))
    }

    /// Returns the path of this import's results.
    pub(crate) fn results(&self) -> PathBuf {
        self.labels.join(format!("{}.results.csv", self.name()))
    }
}

/// Returns half of a fingerprint in hexadecimal; 128 bits are enough to distinguish the rows of a file.
fn short_digest(value: &Value, subject: &str) -> String {
    let half = fingerprint(value, subject).first_chunk().copied().unwrap_or_default();
    format!("{:032x}", u128::from_be_bytes(half))
}
