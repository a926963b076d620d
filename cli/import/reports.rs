//! The outcome of each row, in the order of the file even though rows are sent concurrently, and the number of rows
//! with each outcome.

use std::{
    borrow::Cow,
    collections::{BTreeMap, HashSet},
    fs::File,
    io::{self, BufRead, BufReader, BufWriter, Read, Seek, Write},
    path::{Path, PathBuf},
};

use parcelo::{IdempotencyKey, Language, TrackingNumber, model::Warning};
use parcelo_types::internal::spreadsheet::to_cell;
use serde::{Deserialize, Serialize};

use super::row::{Row, RowFault};
use crate::texts::Message;

/// The outcome of a row. Scripts rely on the names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum RowOutcome {
    /// Its order was created in this run.
    Created,
    /// Its order had been created before under the same idempotency key.
    Replayed,
    /// An earlier run completed it.
    DoneBefore,
    /// An earlier row has the same content.
    Repeated,
    /// It was only checked, and is valid.
    Valid,
    /// It breaks rules; nothing was sent.
    Invalid,
    /// The service rejected it or could not be reached; there is no order.
    Failed,
    /// Its order exists; its label could not be saved.
    LabelMissing,
    /// It is unknown whether its order exists.
    Unknown,
    /// It is valid, but the import stopped before it.
    NotSent,
}

impl RowOutcome {
    pub(crate) const ALL: [Self; 10] = [
        Self::Created,
        Self::Replayed,
        Self::DoneBefore,
        Self::Repeated,
        Self::Valid,
        Self::Invalid,
        Self::Failed,
        Self::LabelMissing,
        Self::Unknown,
        Self::NotSent,
    ];

    /// Returns the outcome for programs.
    pub(crate) fn code(self) -> &'static str {
        match self {
            Self::Created => "created",
            Self::Replayed => "replayed",
            Self::DoneBefore => "done_before",
            Self::Repeated => "repeated",
            Self::Valid => "valid",
            Self::Invalid => "invalid",
            Self::Failed => "failed",
            Self::LabelMissing => "label_missing",
            Self::Unknown => "unknown",
            Self::NotSent => "not_sent",
        }
    }

    /// Returns `true` if nothing is left to do for the row.
    pub(crate) fn is_complete(self) -> bool {
        match self {
            Self::Created | Self::Replayed | Self::DoneBefore | Self::Repeated | Self::Valid => {
                true
            }
            Self::Invalid | Self::Failed | Self::LabelMissing | Self::Unknown | Self::NotSent => {
                false
            }
        }
    }
}

/// The report of one row.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RowReport {
    pub(crate) row: u64,
    pub(crate) reference: String,
    pub(crate) outcome: RowOutcome,
    pub(crate) tracking_number: Option<TrackingNumber>,
    pub(crate) label_file: Option<PathBuf>,
    pub(crate) idempotency_key: Option<IdempotencyKey>,
    /// The row's faults, or the reason that it failed.
    pub(crate) errors: Vec<RowFault>,
    pub(crate) warnings: Vec<Warning>,
}

impl RowReport {
    pub(crate) fn new(row: &Row, outcome: RowOutcome) -> Self {
        let sent = !matches!(outcome, RowOutcome::Invalid | RowOutcome::Repeated);
        Self {
            row: row.number,
            reference: row.reference.clone(),
            outcome,
            tracking_number: None,
            label_file: None,
            idempotency_key: sent.then(|| row.key.clone()),
            errors: Vec::new(),
            warnings: row.warnings.clone(),
        }
    }

    pub(crate) fn with_fault(mut self, fault: RowFault) -> Self {
        self.errors.push(fault);
        self
    }

    pub(crate) fn with_message(self, code: &str, message: impl Into<Message>) -> Self {
        self.with_fault(RowFault::new(code, message))
    }
}

/// The number of rows with each outcome.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct RowCounts {
    outcomes: [u64; RowOutcome::ALL.len()],
    /// Rows with warnings, whatever their outcome.
    pub(crate) warned: u64,
}

impl RowCounts {
    fn count(&mut self, report: &RowReport) {
        if let Some(count) = self.outcomes.get_mut(report.outcome as usize) {
            *count += 1;
        }
        self.warned += u64::from(!report.warnings.is_empty());
    }

    pub(crate) fn get(&self, outcome: RowOutcome) -> u64 {
        self.outcomes.get(outcome as usize).copied().unwrap_or_default()
    }

    /// Returns the number of all rows.
    pub(crate) fn all(&self) -> u64 {
        self.outcomes.iter().sum()
    }

    /// Returns the number of orders that are known to exist, including those whose label is missing.
    pub(crate) fn existing(&self) -> u64 {
        use RowOutcome::{Created, DoneBefore, LabelMissing, Replayed};
        [Created, Replayed, DoneBefore, LabelMissing].map(|outcome| self.get(outcome)).iter().sum()
    }

    /// Returns the number of rows for which nothing is left to do.
    pub(crate) fn complete(&self) -> u64 {
        RowOutcome::ALL
            .into_iter()
            .filter(|outcome| outcome.is_complete())
            .map(|one| self.get(one))
            .sum()
    }
}

/// The reports of a run. They are in temporary files, because a file may have any number of rows.
#[derive(Debug)]
pub(crate) struct ReportSpool {
    lines: BufWriter<File>,
    rows: csv::Writer<File>,
    /// Reports that wait for the report of an earlier row.
    early: BTreeMap<u64, RowReport>,
    next: u64,
    counts: RowCounts,
}

/// The results of an import.
#[derive(Debug)]
pub(crate) struct ImportResults {
    pub(crate) counts: RowCounts,
    /// The file of results, unless rows were only checked.
    pub(crate) file: Option<PathBuf>,
    lines: File,
    rows: File,
}

const HEADINGS: [&str; 15] = [
    "row",
    "reference",
    "outcome",
    "trackingNumber",
    "labelFile",
    "idempotencyKey",
    "column",
    "field",
    "code",
    "message",
    "message_es",
    "suggestion",
    "warnings",
    "warnings_es",
    "value",
];

impl ReportSpool {
    pub(crate) fn new() -> io::Result<Self> {
        let mut rows = csv::Writer::from_writer(tempfile::tempfile()?);
        rows.write_record(HEADINGS)?;
        let lines = BufWriter::new(tempfile::tempfile()?);
        Ok(Self { lines, rows, early: BTreeMap::new(), next: 0, counts: RowCounts::default() })
    }

    /// Adds the report of the row at a position in the file, from 0; each position has one report.
    pub(crate) fn add(&mut self, position: u64, report: RowReport) -> io::Result<()> {
        self.counts.count(&report);
        self.early.insert(position, report);
        while let Some(report) = self.early.remove(&self.next) {
            self.next += 1;
            serde_json::to_writer(&mut self.lines, &report)?;
            self.lines.write_all(b"\n")?;
            write_rows(&mut self.rows, &report)?;
        }
        Ok(())
    }

    pub(crate) fn counts(&self) -> RowCounts {
        self.counts
    }

    /// Completes the spool, and saves the reports as CSV at `results`.
    pub(crate) fn finish(mut self, results: Option<&Path>) -> io::Result<ImportResults> {
        // After a second Ctrl-C or a failed write, the reports of earlier rows may be missing.
        for (_, report) in std::mem::take(&mut self.early) {
            serde_json::to_writer(&mut self.lines, &report)?;
            self.lines.write_all(b"\n")?;
            write_rows(&mut self.rows, &report)?;
        }
        let lines = self.lines.into_inner().map_err(io::IntoInnerError::into_error)?;
        let rows = self.rows.into_inner().map_err(|err| io::Error::other(err.to_string()))?;
        let imported =
            ImportResults { counts: self.counts, file: results.map(Path::to_owned), lines, rows };
        if let Some(path) = results {
            let folder = path.parent().unwrap_or(Path::new("."));
            let mut draft = tempfile::Builder::new().prefix(".results-").tempfile_in(folder)?;
            io::copy(&mut imported.rows()?, &mut draft)?;
            draft.as_file().sync_all()?;
            draft.persist(path)?;
        }
        Ok(imported)
    }
}

impl ImportResults {
    /// Returns the reports as JSON, one per line.
    pub(crate) fn lines(&self) -> io::Result<impl Read> {
        rewind(&self.lines)
    }

    /// Returns the tracking numbers of the rows in their order, each once: rows of earlier runs may occur twice.
    pub(crate) fn tracking_numbers(&self) -> io::Result<Vec<TrackingNumber>> {
        let (mut numbers, mut seen) = (Vec::new(), HashSet::new());
        for line in BufReader::new(self.lines()?).lines() {
            let report: RowReport = serde_json::from_str(&line?)?;
            let is_new = |number: &TrackingNumber| seen.insert(number.clone());
            numbers.extend(report.tracking_number.filter(is_new));
        }
        Ok(numbers)
    }

    /// Returns the reports as CSV, under headings.
    pub(crate) fn rows(&self) -> io::Result<impl Read> {
        rewind(&self.rows)
    }
}

fn rewind(file: &File) -> io::Result<File> {
    let mut file = file.try_clone()?;
    file.rewind()?;
    Ok(file)
}

/// Writes a line for each fault, or one line if there are none. The first line has all warnings.
fn write_rows(rows: &mut csv::Writer<File>, report: &RowReport) -> io::Result<()> {
    let label = report.label_file.as_ref().map(|file| file.to_string_lossy());
    let row = report.row.to_string();
    let start = [
        &*row,
        &*report.reference,
        report.outcome.code(),
        report.tracking_number.as_ref().map_or("", TrackingNumber::as_str),
        label.as_deref().unwrap_or_default(),
        report.idempotency_key.as_ref().map_or("", IdempotencyKey::as_str),
    ];
    let mut warnings =
        [Language::En, Language::Es].map(|language| format_warnings(report, language));
    let faults = report.errors.iter().map(Some);
    let faults = if report.errors.is_empty() { vec![None] } else { faults.collect() };
    for fault in faults {
        let end = fault.map_or([""; 6], |fault| {
            [
                fault.column.as_deref().unwrap_or_default(),
                fault.field.as_deref().unwrap_or_default(),
                &*fault.code,
                &*fault.message,
                &*fault.message_es,
                fault.suggestion.as_deref().unwrap_or_default(),
            ]
        });
        let warnings = warnings.each_mut().map(std::mem::take);
        let value = fault.and_then(|fault| fault.value.as_deref()).unwrap_or_default();
        let end = end.into_iter().chain(warnings.each_ref().map(|text| &**text)).chain([value]);
        let cells = start.into_iter().chain(end).map(to_cell);
        rows.write_record(cells.map(Cow::into_owned))?;
    }
    Ok(())
}

/// Returns a row's warnings in one cell, each with its field.
fn format_warnings(report: &RowReport, language: Language) -> String {
    let warnings = report.warnings.iter();
    let texts = warnings.map(|one| format!("{}: {}", one.field, one.text(language)));
    texts.collect::<Vec<_>>().join("; ")
}
