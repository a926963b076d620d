//! What became of an import's rows: a summary and the first faults for people, all rows for programs.

use std::io::{self, BufRead, BufReader, Write};

use parcelo::Language;
use serde::Serialize;

use super::{grid::write_facts, json::Layout, plain};
use crate::{
    import::{ImportResults, RowOutcome, RowReport},
    texts::{self as words, Text, import as texts},
};

/// The most rows that people are shown; the file of results has all.
const MAX_SHOWN_ROWS: usize = 20;

const NAMES: [(RowOutcome, Text); RowOutcome::ALL.len()] = [
    (RowOutcome::Created, texts::MADE),
    (RowOutcome::Replayed, texts::EXISTED),
    (RowOutcome::DoneBefore, texts::BEFORE_THIS),
    (RowOutcome::Repeated, texts::REPEATED),
    (RowOutcome::Valid, texts::VALID_ROWS),
    (RowOutcome::Invalid, texts::INVALID_ROWS),
    (RowOutcome::Failed, texts::FAILED_ROWS),
    (RowOutcome::LabelMissing, texts::NO_LABEL),
    (RowOutcome::Unknown, texts::UNKNOWN_ROWS),
    (RowOutcome::NotSent, texts::UNSENT_ROWS),
];

/// For people.
pub(super) fn write_people(
    out: &mut impl Write,
    imported: &ImportResults,
    language: Language,
) -> io::Result<()> {
    let counts = &imported.counts;
    let mut facts = vec![(texts::ROWS, counts.all().to_string())];
    let counts = NAMES.into_iter().map(|(outcome, name)| (name, counts.of(outcome)));
    facts.extend(
        counts.filter(|(_, count)| *count > 0).map(|(name, count)| (name, count.to_string())),
    );
    if let Some(file) = &imported.results {
        facts.push((texts::RESULTS_FILE, file.to_string_lossy().into_owned()));
    }
    write_facts(out, &facts, language)?;
    write_bad(out, imported, language)
}

fn write_bad(out: &mut impl Write, imported: &ImportResults, language: Language) -> io::Result<()> {
    let mut bad = 0;
    for line in BufReader::new(imported.lines()?).lines() {
        let report: RowReport = serde_json::from_str(&line?)?;
        if report.outcome.is_good() || report.errors.is_empty() {
            continue;
        }
        bad += 1;
        if bad <= MAX_SHOWN_ROWS {
            write_report(out, &report, language)?;
        }
    }
    match bad.saturating_sub(MAX_SHOWN_ROWS) {
        0 => Ok(()),
        more => {
            let said = texts::MORE_FAULTS.with(&[("n", &more.to_string())]);
            writeln!(out, "{}", said.pick(language))
        }
    }
}

fn write_report(out: &mut impl Write, report: &RowReport, language: Language) -> io::Result<()> {
    let row = texts::ROW_OF.with(&[("row", &report.row.to_string())]);
    write!(out, "{}", row.pick(language))?;
    match &*report.reference {
        "" => writeln!(out)?,
        reference => writeln!(out, " ({})", plain(reference))?,
    }
    for fault in &report.errors {
        let place = match fault.place() {
            "" => String::new(),
            place => format!("{}: ", plain(place)),
        };
        let message = plain(language.pick(&fault.message, &fault.message_es));
        write!(out, "  {place}{message}")?;
        if let Some(suggestion) = &fault.suggestion {
            let meant = words::SUGGESTION.with(&[("value", &plain(suggestion))]);
            write!(out, " {}", meant.pick(language))?;
        }
        writeln!(out)?;
    }
    Ok(())
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Summary {
    rows: u64,
    counts: serde_json::Map<String, serde_json::Value>,
    results_file: Option<String>,
}

/// As JSON: a summary and all rows, or a row a line.
pub(super) fn write_json(
    out: &mut impl Write,
    imported: &ImportResults,
    layout: Layout,
) -> io::Result<()> {
    let mut lines = imported.lines()?;
    match layout {
        Layout::Lines => io::copy(&mut lines, out).map(drop),
        Layout::Document => {
            write!(out, "{{\n\"summary\": ")?;
            serde_json::to_writer(&mut *out, &summary(imported))?;
            write!(out, ",\n\"rows\": [")?;
            for (index, line) in BufReader::new(lines).lines().enumerate() {
                write!(out, "{}\n{}", if index == 0 { "" } else { "," }, line?)?;
            }
            writeln!(out, "\n]\n}}")
        }
    }
}

fn summary(imported: &ImportResults) -> Summary {
    let counts = &imported.counts;
    let count = |outcome: RowOutcome| (outcome.word().to_owned(), counts.of(outcome).into());
    Summary {
        rows: counts.all(),
        counts: RowOutcome::ALL.into_iter().map(count).collect(),
        results_file: imported.results.as_ref().map(|file| file.to_string_lossy().into_owned()),
    }
}

/// As CSV: the file of results.
pub(super) fn write_csv(out: &mut impl Write, imported: &ImportResults) -> io::Result<()> {
    io::copy(&mut imported.rows()?, out).map(drop)
}

/// A file to fill in.
pub(super) fn write_sample(out: &mut impl Write, columns: &[[String; 2]]) -> io::Result<()> {
    let mut rows = csv::Writer::from_writer(out);
    rows.write_record(columns.iter().map(|[name, _]| name))?;
    rows.write_record(columns.iter().map(|[_, sample]| sample))?;
    rows.flush()
}
