//! The format and language of the output.

use clap::ValueEnum;
use parcelo::Language;
use serde::Serialize;

/// The format of results.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Format {
    /// Text for people.
    Table,
    /// One JSON document.
    Json,
    /// One JSON document per line.
    Ndjson,
    /// Comma-separated values with a heading.
    Csv,
    /// Tracking numbers, one per line.
    Numbers,
}

impl Format {
    /// Returns `true` for a JSON format, with which errors are JSON too, and notes and progress are omitted.
    pub(crate) fn is_json(self) -> bool {
        match self {
            Self::Json | Self::Ndjson => true,
            Self::Table | Self::Csv | Self::Numbers => false,
        }
    }

    /// Returns the format as `--output` and the configuration file spell it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Table => "table",
            Self::Json => "json",
            Self::Ndjson => "ndjson",
            Self::Csv => "csv",
            Self::Numbers => "numbers",
        }
    }
}

/// The arrangement of several JSON values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Layout {
    /// One JSON value: an object for one requested item, an array for several.
    Document,
    /// One document per line.
    Lines,
}

/// Format and language of all output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OutputOptions {
    pub(crate) format: Format,
    pub(crate) language: Language,
}
