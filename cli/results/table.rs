//! Results in the form that all writers take: JSON documents, and a table whose columns have a stable name for CSV and
//! a heading for people.

use chrono::{DateTime, Utc};
use parcelo::{
    Language, ParcelStatus,
    model::{FieldFault, Warning},
};
use parcelo_types::internal::time;
use serde::{Serialize, Serializer};

use crate::{output::format::Layout, texts::Text};

/// The result of a command. Each type of result implements this trait, and `output` has a writer for each format.
pub(crate) trait Report: Document + std::fmt::Debug {
    /// Returns the documents of `-o ndjson`, one for each item; `None` if the result is a single document.
    fn items(&self) -> Option<Items<'_>> {
        None
    }

    /// Returns the table for CSV, and for people unless `sections` is overridden.
    fn table(&self, language: Language) -> Table;

    /// Returns the sections for people.
    fn sections(&self, language: Language) -> Vec<Section<'_>> {
        vec![Section::Table(self.table(language))]
    }

    /// Returns warnings about the created items, for standard error.
    fn warnings(&self) -> &[Warning] {
        &[]
    }
}

/// A value that can be written as JSON. `Serialize` itself is not dyn-compatible.
pub(crate) trait Document {
    fn to_json(&self, layout: Layout) -> serde_json::Result<String>;
}

impl<T: Serialize> Document for T {
    fn to_json(&self, layout: Layout) -> serde_json::Result<String> {
        match layout {
            Layout::Document => serde_json::to_string_pretty(self),
            Layout::Lines => serde_json::to_string(self),
        }
    }
}

pub(crate) type Items<'a> = Vec<Box<dyn Document + 'a>>;

/// Boxes each value as a document of its own.
pub(crate) fn items<'a>(values: impl IntoIterator<Item: Serialize + 'a>) -> Items<'a> {
    values.into_iter().map(|value| Box::new(value) as Box<dyn Document>).collect()
}

/// The items that were found among the requested ones. As JSON, one requested item is an object, and several are an
/// array, even if only one of them was found.
#[derive(Debug)]
pub(crate) struct FoundItems<T> {
    pub(crate) requested_count: usize,
    pub(crate) found: Vec<T>,
}

impl<T: Serialize> Serialize for FoundItems<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &*self.found {
            [one] if self.requested_count == 1 => one.serialize(serializer),
            several => several.serialize(serializer),
        }
    }
}

/// A section of the output for people.
pub(crate) enum Section<'a> {
    Table(Table),
    Line(String),
    Fault(&'a FieldFault),
    Warning(&'a Warning),
}

/// Rows of cells under columns.
#[derive(Debug)]
pub(crate) struct Table {
    pub(crate) style: TableStyle,
    pub(crate) columns: Vec<Column>,
    pub(crate) rows: Vec<Vec<Cell>>,
}

/// The form of a table for people; CSV is the same in both.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TableStyle {
    /// Headings, then a line for each row.
    List,
    /// The cells of the only row, each on a line after its heading; empty cells are omitted.
    Details,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Column {
    /// The name in CSV; scripts rely on it.
    pub(crate) name: &'static str,
    /// The heading for people; `None` hides the column from them.
    pub(crate) heading: Option<Text>,
}

/// A cell: its value in CSV, and a text for people if it differs.
#[derive(Debug, Clone, Default)]
pub(crate) struct Cell {
    pub(crate) value: String,
    pub(crate) shown: Option<String>,
    pub(crate) tone: Tone,
}

/// The meaning of a value, which decides its colour on a terminal.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Tone {
    #[default]
    Plain,
    Good,
    /// The value needs attention.
    Attention,
    Bad,
    /// The value is final and of little interest.
    Muted,
}

/// Returns a column for CSV and for people.
pub(crate) const fn column(name: &'static str, heading: Text) -> Column {
    Column { name, heading: Some(heading) }
}

/// Returns a column for CSV only.
pub(crate) const fn csv_only(name: &'static str) -> Column {
    Column { name, heading: None }
}

/// Returns a column for people only.
pub(crate) const fn text_only(heading: Text) -> Column {
    Column { name: "", heading: Some(heading) }
}

impl Table {
    pub(crate) fn list<const N: usize>(
        columns: [Column; N],
        rows: impl IntoIterator<Item = [Cell; N]>,
    ) -> Self {
        let rows = rows.into_iter().map(Vec::from).collect();
        Self { style: TableStyle::List, columns: columns.into(), rows }
    }

    pub(crate) fn details(facts: impl IntoIterator<Item = (Column, Cell)>) -> Self {
        let (columns, row) = facts.into_iter().unzip();
        Self { style: TableStyle::Details, columns, rows: vec![row] }
    }
}

impl Cell {
    #[expect(clippy::needless_pass_by_value, reason = "callers pass references, numbers and texts")]
    pub(crate) fn new(value: impl ToString) -> Self {
        Self { value: value.to_string(), ..Self::default() }
    }

    pub(crate) fn optional(value: Option<impl ToString>) -> Self {
        value.map(Self::new).unwrap_or_default()
    }

    /// Sets a different text for people.
    #[expect(clippy::needless_pass_by_value, reason = "callers pass references, dates and texts")]
    pub(crate) fn shown_as(self, text: impl ToString) -> Self {
        Self { shown: Some(text.to_string()), ..self }
    }

    /// Returns a time, in milliseconds for CSV and in seconds for people.
    pub(crate) fn time(time: DateTime<Utc>) -> Self {
        Self::new(time::to_text(time)).shown_as(format_moment(time))
    }

    pub(crate) fn optional_time(time: Option<DateTime<Utc>>) -> Self {
        time.map(Self::time).unwrap_or_default()
    }

    /// Returns a status as people see it.
    pub(crate) fn status(status: &ParcelStatus, name: &str) -> Self {
        let cell = Self { tone: status_tone(status), ..Self::new(status.code()) };
        cell.shown_as(status_text(status.code(), name))
    }
}

impl From<&str> for Cell {
    fn from(value: &str) -> Self {
        Self::new(value)
    }
}

fn status_tone(status: &ParcelStatus) -> Tone {
    match status {
        ParcelStatus::Delivered => Tone::Good,
        ParcelStatus::CustomsHold | ParcelStatus::DeliveryAttempted => Tone::Attention,
        ParcelStatus::DeliveryFailed | ParcelStatus::ReturnToSender => Tone::Bad,
        ParcelStatus::Voided => Tone::Muted,
        // On its way, or in a status that this version does not know.
        _ => Tone::Plain,
    }
}

/// Returns the name of a status, followed by its code in lists and documents if its words differ.
pub(crate) fn status_text(code: &str, name: &str) -> String {
    let is_same = name.to_uppercase().replace(' ', "_") == code;
    if is_same { name.to_owned() } else { format!("{name} ({code})") }
}

/// Formats a time to the second.
pub(crate) fn format_moment(moment: DateTime<Utc>) -> String {
    format!("{} UTC", moment.format(SECONDS))
}

pub(crate) const SECONDS: &str = "%Y-%m-%d %H:%M:%S";
