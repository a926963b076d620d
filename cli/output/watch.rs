//! The output of `track --watch`: a table that is redrawn on a terminal, a line for each change elsewhere.

use std::io::{self, Write};

use parcelo::model::TrackingRecord;

use super::{
    csv, errors,
    format::{Format, Layout, OutputOptions},
    is_terminal, json, text,
};
use crate::{
    failure::Failure,
    results::{FoundItems, table::Report},
};

/// The display of the watched parcels.
#[derive(Debug)]
pub(crate) struct Screen {
    options: OutputOptions,
    /// The number of rows of the last table; `None` before the first one.
    drawn: Option<usize>,
}

/// Returns the escape sequence that moves the cursor to the start of the line this many lines above.
fn cursor_up(lines: usize) -> String {
    format!("\r\u{1b}[{lines}A")
}

/// Erases the rest of the line.
const ERASE_LINE: &str = "\u{1b}[K";
/// Erases the rest of the screen.
const ERASE_BELOW: &str = "\u{1b}[J";

/// Clears the screen, for a table that is taller than the terminal: the cursor cannot be moved to lines that have
/// scrolled away.
const CLEAR: &str = "\u{1b}[H\u{1b}[2J";

impl Screen {
    pub(crate) fn new(options: OutputOptions) -> Self {
        Self { options, drawn: None }
    }

    /// Shows all parcels if the table can be redrawn, otherwise only the changed ones.
    pub(crate) fn show(&mut self, records: &[TrackingRecord], changed: &[usize]) -> io::Result<()> {
        let redraws = self.redraws();
        let shown: Vec<_> = if redraws {
            records.to_vec()
        } else {
            changed.iter().filter_map(|position| records.get(*position)).cloned().collect()
        };
        if shown.is_empty() {
            return Ok(());
        }
        let mut out = io::BufWriter::new(anstream::stdout());
        if redraws {
            self.redraw(&mut out, shown)?;
        } else {
            self.append(&mut out, shown)?;
        }
        out.flush()
    }

    fn redraws(&self) -> bool {
        self.options.format == Format::Table && is_terminal()
    }

    fn redraw(&mut self, out: &mut impl Write, records: Vec<TrackingRecord>) -> io::Result<()> {
        let mut text = Vec::new();
        text::write(&mut text, &tracked(records), self.options.language, super::table_width())?;
        let text = String::from_utf8_lossy(&text);
        let lines = text::terminal_rows(&text, super::columns());
        let height = terminal_size::terminal_size().map_or(24, |(_, height)| height.0.into());
        match self.drawn {
            Some(drawn) if drawn.max(lines) < height => write!(out, "{}", cursor_up(drawn))?,
            Some(_) => write!(out, "{CLEAR}")?,
            None => {}
        }
        self.drawn = Some(lines);
        // Lines are overwritten and their rest is erased, because erasing the screen first would flicker.
        for line in text.lines() {
            writeln!(out, "{line}{ERASE_LINE}")?;
        }
        write!(out, "{ERASE_BELOW}")
    }

    fn append(&mut self, out: &mut impl Write, records: Vec<TrackingRecord>) -> io::Result<()> {
        let first = self.drawn.is_none();
        self.drawn = Some(0);
        let language = self.options.language;
        match self.options.format {
            Format::Table => records.iter().try_for_each(|record| text::write_change(out, record)),
            Format::Json | Format::Ndjson => {
                records.iter().try_for_each(|record| json::write_one(out, record, Layout::Lines))
            }
            Format::Numbers => csv::write_numbers(out, &tracked(records).table(language)),
            Format::Csv => {
                let mut rows = Vec::new();
                csv::write(&mut rows, &tracked(records).table(language))?;
                let heading = rows.iter().position(|byte| *byte == b'\n').map_or(0, |at| at + 1);
                let start = if first { 0 } else { heading };
                super::write_rows(out, rows.get(start..).unwrap_or_default())
            }
        }
    }

    /// Shows the failure of a round that does not end the watch. Programs get only the last failure.
    pub(crate) fn show_failure(&mut self, failure: &Failure) {
        if self.options.format.is_json() {
            return;
        }
        // If standard error is closed, it cannot be shown.
        let _ = errors::write_failure(&mut anstream::stderr(), failure, self.options.language);
        if self.redraws() {
            // The failure is below the table, and the next table starts below the failure.
            self.drawn = None;
        }
    }
}

fn tracked(found: Vec<TrackingRecord>) -> FoundItems<TrackingRecord> {
    FoundItems { requested_count: found.len(), found }
}
