//! What became of each row: a line of results for everyone, in the order of the file although rows
//! are done side by side, and how many ended in which way.

use std::{
    collections::BTreeMap,
    fs::File,
    io::{self, BufWriter, Read, Seek, Write},
    path::{Path, PathBuf},
};

use parcelo::{IdempotencyKey, TrackingNumber, model::Warning};
use serde::{Deserialize, Serialize};

use super::row::{Row, RowFault};
use crate::texts::Message;

/// What became of a row. The words are what scripts rely on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum RowOutcome {
    /// Its order was created now.
    Created,
    /// Its order existed already, by its key.
    Replayed,
    /// An earlier run had done it.
    DoneBefore,
    /// An earlier row is the same.
    Repeated,
    /// It was only checked, and is fine.
    Valid,
    /// It breaks rules; nothing was sent.
    Invalid,
    /// The service refused it, or could not be asked; there is no order.
    Failed,
    /// Its order exists; its label could not be saved.
    LabelMissing,
    /// Nobody knows whether its order exists.
    Unknown,
    /// It is fine, and its turn did not come.
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

    /// The outcome for programs.
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

    /// True when there is nothing left to do for the row.
    pub(crate) fn is_good(self) -> bool {
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

/// What became of one row.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RowReport {
    pub(crate) row: u64,
    pub(crate) reference: String,
    pub(crate) outcome: RowOutcome,
    pub(crate) tracking_number: Option<TrackingNumber>,
    pub(crate) label_file: Option<PathBuf>,
    pub(crate) idempotency_key: Option<IdempotencyKey>,
    /// What is wrong with it, or went wrong.
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

/// How many rows ended in which way.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct RowCounts([u64; RowOutcome::ALL.len()]);

impl RowCounts {
    fn count(&mut self, outcome: RowOutcome) {
        if let Some(count) = self.0.get_mut(outcome as usize) {
            *count += 1;
        }
    }

    pub(crate) fn get(&self, outcome: RowOutcome) -> u64 {
        self.0.get(outcome as usize).copied().unwrap_or_default()
    }

    pub(crate) fn all(&self) -> u64 {
        self.0.iter().sum()
    }

    pub(crate) fn good(&self) -> u64 {
        RowOutcome::ALL
            .into_iter()
            .filter(|outcome| outcome.is_good())
            .map(|one| self.get(one))
            .sum()
    }
}

/// The reports of a run, kept on the disk: a file may have any number of rows.
#[derive(Debug)]
pub(crate) struct ReportSpool {
    lines: BufWriter<File>,
    rows: csv::Writer<File>,
    /// Those whose turn has not come, because an earlier row is still under way.
    early: BTreeMap<u64, RowReport>,
    next: u64,
    counts: RowCounts,
}

/// What an import has to tell.
#[derive(Debug)]
pub(crate) struct ImportResults {
    pub(crate) counts: RowCounts,
    /// Where the results were written to, unless rows were only checked.
    pub(crate) file: Option<PathBuf>,
    lines: File,
    rows: File,
}

const HEADINGS: [&str; 12] = [
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
];

impl ReportSpool {
    pub(crate) fn new() -> io::Result<Self> {
        let mut rows = csv::Writer::from_writer(tempfile::tempfile()?);
        rows.write_record(HEADINGS)?;
        let lines = BufWriter::new(tempfile::tempfile()?);
        Ok(Self { lines, rows, early: BTreeMap::new(), next: 0, counts: RowCounts::default() })
    }

    /// Takes the report of the row at a place of the file, from 0; each place has one.
    pub(crate) fn add(&mut self, place: u64, report: RowReport) -> io::Result<()> {
        self.counts.count(report.outcome);
        self.early.insert(place, report);
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

    /// All reports; `results` is where they are saved for people.
    pub(crate) fn finish(mut self, results: Option<&Path>) -> io::Result<ImportResults> {
        // Rows that were left behind in the middle have no report, those after them have.
        for (_, report) in std::mem::take(&mut self.early) {
            serde_json::to_writer(&mut self.lines, &report)?;
            self.lines.write_all(b"\n")?;
            write_rows(&mut self.rows, &report)?;
        }
        let lines = self.lines.into_inner().map_err(io::IntoInnerError::into_error)?;
        let rows = self.rows.into_inner().map_err(|why| io::Error::other(why.to_string()))?;
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
    /// The reports as JSON, one a line.
    pub(crate) fn lines(&self) -> io::Result<impl Read> {
        rewound(&self.lines)
    }

    /// The reports as CSV, under headings.
    pub(crate) fn rows(&self) -> io::Result<impl Read> {
        rewound(&self.rows)
    }
}

fn rewound(file: &File) -> io::Result<File> {
    let mut file = file.try_clone()?;
    file.rewind()?;
    Ok(file)
}

/// A row for each thing that is wrong; one where nothing is.
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
    if report.errors.is_empty() {
        rows.write_record(start.into_iter().chain([""; 6]))?;
    }
    for fault in &report.errors {
        let end = [
            fault.column.as_deref().unwrap_or_default(),
            fault.field.as_deref().unwrap_or_default(),
            &*fault.code,
            &*fault.message,
            &*fault.message_es,
            fault.suggestion.as_deref().unwrap_or_default(),
        ];
        rows.write_record(start.into_iter().chain(end))?;
    }
    Ok(())
}
