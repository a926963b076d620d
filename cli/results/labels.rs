//! Saved label files, and a label's details.

use std::path::{Path, PathBuf};

use parcelo::{
    IdempotencyKey, LabelFormat, Language, TrackingNumber,
    model::{LabelMetadata, LabelStatus},
};
use serde::{Serialize, Serializer};

use super::{
    table::{
        Cell, FoundItems, Items, Report, Section, Table, column, csv_only, items, status_text,
    },
    written::WriteResult,
};
use crate::texts;

/// A saved label or invoice.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SavedLabel {
    pub(crate) tracking_number: TrackingNumber,
    pub(crate) format: LabelFormat,
    #[serde(serialize_with = "path_text")]
    pub(crate) file: PathBuf,
    pub(crate) bytes: u64,
}

/// A saved file of many labels.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SavedLabels {
    pub(crate) labels: usize,
    pub(crate) format: LabelFormat,
    #[serde(serialize_with = "path_text")]
    pub(crate) file: PathBuf,
    pub(crate) bytes: u64,
}

/// `label show`: a label's details, and for people its text.
#[derive(Debug, Serialize)]
#[serde(transparent)]
pub(crate) struct ShownLabel {
    pub(crate) label: LabelMetadata,
    #[serde(skip)]
    pub(crate) lines: Vec<String>,
}

/// Serializes a path as text; the serialization of `Path` fails if a name is not UTF-8.
fn path_text<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&path.to_string_lossy())
}

/// The result of `label get` and `invoice get`.
impl Report for FoundItems<SavedLabel> {
    fn items(&self) -> Option<Items<'_>> {
        Some(items(&self.found))
    }

    fn table(&self, _: Language) -> Table {
        let columns = [
            column("trackingNumber", texts::TRACKING_NUMBER),
            column("format", texts::FORMAT),
            column("file", texts::FILE),
            column("bytes", texts::BYTES),
        ];
        let rows = self.found.iter().map(|label| {
            [
                Cell::new(&label.tracking_number),
                Cell::new(label.format.code()),
                Cell::new(label.file.to_string_lossy()),
                Cell::new(label.bytes),
            ]
        });
        Table::list(columns, rows)
    }
}

/// The result of `label get --merge`.
impl Report for FoundItems<SavedLabels> {
    fn items(&self) -> Option<Items<'_>> {
        Some(items(&self.found))
    }

    fn table(&self, _: Language) -> Table {
        let columns = [
            column("labels", texts::LABELS),
            column("format", texts::FORMAT),
            column("file", texts::FILE),
            column("bytes", texts::BYTES),
        ];
        let rows = self.found.iter().map(|saved| {
            [
                Cell::new(saved.labels),
                Cell::new(saved.format.code()),
                Cell::new(saved.file.to_string_lossy()),
                Cell::new(saved.bytes),
            ]
        });
        Table::list(columns, rows)
    }
}

impl Report for ShownLabel {
    fn table(&self, language: Language) -> Table {
        label_table(&self.label, None, language)
    }

    fn sections(&self, language: Language) -> Vec<Section<'_>> {
        let text = self.lines.iter().cloned();
        let blank = (!self.lines.is_empty()).then(String::new);
        let facts = Section::Table(self.table(language));
        text.chain(blank).map(Section::Line).chain([facts]).collect()
    }
}

/// The result of `label reprint`.
impl Report for WriteResult<LabelMetadata> {
    fn table(&self, language: Language) -> Table {
        label_table(&self.value, self.idempotency_key.as_ref(), language)
    }
}

fn label_table(label: &LabelMetadata, key: Option<&IdempotencyKey>, language: Language) -> Table {
    Table::details([
        (csv_only("labelId"), Cell::new(&label.label_id)),
        (column("trackingNumber", texts::TRACKING_NUMBER), Cell::new(&label.tracking_number)),
        (column("status", texts::STATUS), status_cell(&label.status, language)),
        (column("version", texts::VERSION), Cell::new(label.version)),
        (column("labelUrl", texts::LABEL), Cell::optional(label.label_url.as_ref())),
        (column("createdAt", texts::CREATED), Cell::time(label.created_at)),
        (column("lastReprintedAt", texts::REPRINTED), Cell::optional_time(label.last_reprinted_at)),
        (column("voidedAt", texts::VOIDED), Cell::optional_time(label.voided_at)),
        (column("idempotencyKey", texts::IDEMPOTENCY_KEY), Cell::optional(key)),
    ])
}

fn status_cell(status: &LabelStatus, language: Language) -> Cell {
    let cell = Cell::new(status.code());
    let name = match status {
        LabelStatus::Active => texts::ACTIVE,
        LabelStatus::Voided => texts::VOIDED,
        _ => return cell,
    };
    cell.shown_as(status_text(status.code(), name.pick(language)))
}
