//! What `track --watch` shows: on a terminal a table that is drawn anew, elsewhere a line for each
//! change.

use std::io::{self, Write};

use parcelo::model::TrackingRecord;

use super::{
    csv, errors,
    format::{Format, Layout, OutputOptions},
    is_terminal, json, text,
};
use crate::{
    failure::Failure,
    results::{Tracked, table::Report},
};

/// Where the watched parcels are shown.
#[derive(Debug)]
pub(crate) struct Screen {
    options: OutputOptions,
    /// Lines that the last table took; none before it.
    drawn: Option<usize>,
}

/// Back to the beginning of the line so many lines above.
fn back(lines: usize) -> String {
    format!("\r\u{1b}[{lines}A")
}

/// Away with what stands to the right, and below.
const REST_OF_LINE: &str = "\u{1b}[K";
const REST_OF_SCREEN: &str = "\u{1b}[J";

/// Home, and away with everything: for a table that is taller than the terminal.
const CLEAR: &str = "\u{1b}[H\u{1b}[2J";

impl Screen {
    pub(crate) fn new(options: OutputOptions) -> Self {
        Self { options, drawn: None }
    }

    /// Shows the parcels, or the changed ones among them where nothing can be drawn anew.
    pub(crate) fn show(&mut self, records: &[TrackingRecord], changed: &[usize]) -> io::Result<()> {
        let redraws = self.redraws();
        let news: Vec<_> = if redraws {
            records.to_vec()
        } else {
            changed.iter().filter_map(|place| records.get(*place)).cloned().collect()
        };
        if news.is_empty() {
            return Ok(());
        }
        let mut out = io::BufWriter::new(anstream::stdout());
        if redraws {
            self.redraw(&mut out, news)?;
        } else {
            self.append(&mut out, news)?;
        }
        out.flush()
    }

    fn redraws(&self) -> bool {
        self.options.format == Format::Table && is_terminal()
    }

    fn redraw(&mut self, out: &mut impl Write, records: Vec<TrackingRecord>) -> io::Result<()> {
        let mut text = Vec::new();
        text::write(&mut text, &tracked(records), self.options.language)?;
        let text = String::from_utf8_lossy(&text);
        let lines = text::terminal_rows(&text, super::columns());
        let height = terminal_size::terminal_size().map_or(24, |(_, height)| height.0.into());
        match self.drawn {
            Some(drawn) if drawn.max(lines) < height => write!(out, "{}", back(drawn))?,
            Some(_) => write!(out, "{CLEAR}")?,
            None => {}
        }
        self.drawn = Some(lines);
        // Line over line: a screen that is cleared first flickers.
        for line in text.lines() {
            writeln!(out, "{line}{REST_OF_LINE}")?;
        }
        write!(out, "{REST_OF_SCREEN}")
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
            Format::Csv => {
                let mut rows = Vec::new();
                csv::write(&mut rows, &tracked(records).table(language))?;
                let heading = rows.iter().position(|byte| *byte == b'\n').map_or(0, |at| at + 1);
                let start = if first { 0 } else { heading };
                super::write_rows(out, rows.get(start..).unwrap_or_default())
            }
        }
    }

    /// Shows a round that failed and does not end the watch. Programs get the last failure only.
    pub(crate) fn show_failure(&mut self, failure: &Failure) {
        if self.options.format.is_json() {
            return;
        }
        // Without a standard error there is nowhere to show it.
        let _ = errors::write_failure(&mut anstream::stderr(), failure, self.options.language);
        if self.redraws() {
            // The failure was written below the table, so the next table starts below the failure.
            self.drawn = None;
        }
    }
}

fn tracked(found: Vec<TrackingRecord>) -> Tracked {
    Tracked { asked: found.len(), found }
}
