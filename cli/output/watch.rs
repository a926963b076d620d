//! What `track --watch` shows: on a terminal a table that is drawn anew, elsewhere a line for each
//! change.

use std::io::{self, Write};

use anstream::adapter::strip_str;
use parcelo::model::TrackingRecord;

use super::{
    csv, errors, is_terminal,
    json::{self, Layout},
    table,
};
use crate::{
    failure::Failure,
    results::{List, Results},
    voice::{Format, Voice},
};

/// Where the watched parcels are shown.
#[derive(Debug)]
pub(crate) struct Screen {
    voice: Voice,
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
    pub(crate) fn new(voice: Voice) -> Self {
        Self { voice, drawn: None }
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
        self.voice.format == Format::Table && is_terminal()
    }

    fn redraw(&mut self, out: &mut impl Write, records: Vec<TrackingRecord>) -> io::Result<()> {
        let mut text = Vec::new();
        table::write(&mut text, &tracked(records), self.voice.language)?;
        let text = String::from_utf8_lossy(&text);
        let lines = rows(&text, super::columns());
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
        let language = self.voice.language;
        match self.voice.format {
            Format::Table => records.iter().try_for_each(|record| table::write_change(out, record)),
            Format::Json | Format::Ndjson => {
                records.iter().try_for_each(|record| json::one(out, record, Layout::Lines))
            }
            Format::Csv => {
                let mut rows = Vec::new();
                csv::write(&mut rows, &tracked(records), language)?;
                let heading = rows.iter().position(|byte| *byte == b'\n').map_or(0, |at| at + 1);
                let start = if first { 0 } else { heading };
                super::write_rows(out, rows.get(start..).unwrap_or_default())
            }
        }
    }

    /// Tells of a round that failed and does not end the watch. Programs are told of the last only.
    pub(crate) fn tell(&mut self, failure: &Failure) {
        if self.voice.format.is_json() {
            return;
        }
        // Who closed standard error does not want to know.
        let _ = errors::write_failure(&mut anstream::stderr(), failure, self.voice.language);
        if self.redraws() {
            // The table stands above these words now, and stays there.
            self.drawn = None;
        }
    }
}

/// The rows that a text takes on a terminal, which goes on in the next row where a line is longer.
fn rows(text: &str, columns: usize) -> usize {
    let width = |line| strip_str(line).to_string().chars().count();
    text.lines().map(|line| width(line).div_ceil(columns.max(1)).max(1)).sum()
}

fn tracked(found: Vec<TrackingRecord>) -> Results {
    Results::Tracked(List { asked: found.len(), found })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_is_too_long_takes_several_rows() {
        let table = [
            ("", 80, 0),
            ("\n", 80, 1),
            ("a\nb\n", 80, 2),
            ("12345\n", 5, 1),
            ("123456\n\n1\n", 5, 4),
            ("\u{1b}[1mNúm.\u{1b}[0m\n", 4, 1),
            ("12345678901\n", 5, 3),
            ("12\n", 0, 2),
        ];
        for (text, columns, expected) in table {
            assert_eq!(rows(text, columns), expected, "{text:?} {columns}");
        }
    }
}
