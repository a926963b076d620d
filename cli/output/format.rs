//! In which format and language the process writes.

use clap::ValueEnum;
use parcelo::Language;
use serde::Serialize;

/// How results are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Format {
    /// For people.
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
    /// True if errors are JSON too, and notes and progress are left out.
    pub(crate) fn is_json(self) -> bool {
        match self {
            Self::Json | Self::Ndjson => true,
            Self::Table | Self::Csv | Self::Numbers => false,
        }
    }

    /// The format as `--output` and the configuration file spell it.
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

/// How JSON documents follow one another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Layout {
    /// One document: an object if one thing was asked for, an array if several were.
    Document,
    /// One document per line.
    Lines,
}

/// Format and language of everything that is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OutputOptions {
    pub(crate) format: Format,
    pub(crate) language: Language,
}
