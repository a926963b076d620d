//! The results of an import: a summary and the first failed rows for people, all rows for programs.

use std::io::{self, BufRead, BufReader, Write};

use parcelo::Language;
use serde::Serialize;

use super::{
    format::{Format, OutputOptions},
    text::{write_table, write_wrapped},
};
use crate::{
    import::{ImportResults, RowOutcome, RowReport},
    results::table::{Cell, Table, text_only},
    sanitize::plain,
    texts::{self as general, Text, import as texts},
};

/// Maximum number of rows shown to people; the results file has all rows.
const MAX_SHOWN_ROWS: usize = 20;

const NAMES: [(RowOutcome, Text); RowOutcome::ALL.len()] = [
    (RowOutcome::Created, texts::CREATED_ROWS),
    (RowOutcome::Replayed, texts::REPLAYED_ROWS),
    (RowOutcome::DoneBefore, texts::DONE_BEFORE_ROWS),
    (RowOutcome::Repeated, texts::REPEATED_ROWS),
    (RowOutcome::Valid, texts::VALID_ROWS),
    (RowOutcome::Invalid, texts::INVALID_ROWS),
    (RowOutcome::Failed, texts::FAILED_ROWS),
    (RowOutcome::LabelMissing, texts::LABEL_MISSING_ROWS),
    (RowOutcome::Unknown, texts::UNKNOWN_ROWS),
    (RowOutcome::NotSent, texts::NOT_SENT_ROWS),
];

pub(super) fn write(
    out: &mut impl Write,
    results: &ImportResults,
    options: OutputOptions,
) -> io::Result<()> {
    match options.format {
        Format::Table => write_text(out, results, options.language),
        Format::Json => write_document(out, results),
        Format::Ndjson => io::copy(&mut results.lines()?, out).map(drop),
        // The same as the file of results.
        Format::Csv => io::copy(&mut results.rows()?, out).map(drop),
        // People also see the summary, because faults and warnings have no tracking number.
        Format::Numbers => {
            write_text(&mut anstream::stderr(), results, options.language)?;
            write_numbers(out, results)
        }
    }
}

fn write_numbers(out: &mut impl Write, results: &ImportResults) -> io::Result<()> {
    for line in BufReader::new(results.lines()?).lines() {
        let report: RowReport = serde_json::from_str(&line?)?;
        if let Some(number) = report.tracking_number {
            writeln!(out, "{number}")?;
        }
    }
    Ok(())
}

fn write_text(out: &mut impl Write, results: &ImportResults, language: Language) -> io::Result<()> {
    let counts = &results.counts;
    let rows = (texts::ROWS, Cell::new(counts.all()));
    let outcomes = NAMES.into_iter().map(|(outcome, name)| (name, counts.get(outcome)));
    let outcomes = outcomes.filter(|(_, count)| *count > 0);
    let warned = (counts.warned > 0).then(|| (texts::WARNED_ROWS, Cell::new(counts.warned)));
    let file = results.file.as_ref().map(|file| file.to_string_lossy());
    let facts = [rows]
        .into_iter()
        .chain(outcomes.map(|(name, count)| (name, Cell::new(count))))
        .chain(warned)
        .chain([(texts::RESULTS_FILE, Cell::optional(file))]);
    let facts = facts.map(|(heading, cell)| (text_only(heading), cell));
    let width = super::table_width();
    write_table(out, &Table::details(facts), language, width)?;
    write_noted_rows(out, results, language, width)
}

/// Writes the failed rows, then those with only warnings. If every row has a warning, the failed ones are still
/// visible.
fn write_noted_rows(
    out: &mut impl Write,
    results: &ImportResults,
    language: Language,
    width: Option<usize>,
) -> io::Result<()> {
    let mut noted = 0_usize;
    for wants_failed in [true, false] {
        for line in BufReader::new(results.lines()?).lines() {
            let report: RowReport = serde_json::from_str(&line?)?;
            let has_failed = !report.outcome.is_complete() && !report.errors.is_empty();
            if has_failed != wants_failed || (!has_failed && report.warnings.is_empty()) {
                continue;
            }
            noted += 1;
            if noted <= MAX_SHOWN_ROWS {
                let mut lines = Vec::new();
                write_report(&mut lines, &report, language)?;
                write_wrapped(out, &lines, width)?;
            }
        }
    }
    match noted.saturating_sub(MAX_SHOWN_ROWS) {
        0 => Ok(()),
        more => {
            let more = texts::MORE_ROWS.with(&[("n", &more.to_string())]);
            writeln!(out, "{}", more.pick(language))
        }
    }
}

fn write_report(out: &mut impl Write, report: &RowReport, language: Language) -> io::Result<()> {
    let row = texts::ROW_NUMBER.with(&[("row", &report.row.to_string())]);
    write!(out, "{}", row.pick(language))?;
    match &*report.reference {
        "" => writeln!(out)?,
        reference => writeln!(out, " ({})", plain(reference))?,
    }
    for fault in &report.errors {
        let value = fault.value.as_deref().map(plain);
        let location = match (fault.location(), value) {
            ("", None) => String::new(),
            ("", Some(value)) => format!("{value}: "),
            (location, None) => format!("{}: ", plain(location)),
            (location, Some(value)) => format!("{} {value}: ", plain(location)),
        };
        let message = plain(language.pick(&fault.message, &fault.message_es));
        write!(out, "  {location}{message}")?;
        if let Some(suggestion) = &fault.suggestion {
            let meant = general::SUGGESTION.with(&[("value", &plain(suggestion))]);
            write!(out, " {}", meant.pick(language))?;
        }
        writeln!(out)?;
    }
    for warning in &report.warnings {
        let text = plain(warning.text(language));
        let text = texts::WARNING.with(&[("message", &text)]);
        writeln!(out, "  {}: {}", plain(&warning.field), text.pick(language))?;
    }
    Ok(())
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Summary {
    rows: u64,
    counts: serde_json::Map<String, serde_json::Value>,
    /// Rows with warnings, which are counted by their outcome too.
    warned: u64,
    results_file: Option<String>,
}

/// Writes a summary and all rows.
fn write_document(out: &mut impl Write, results: &ImportResults) -> io::Result<()> {
    write!(out, "{{\n\"summary\": ")?;
    serde_json::to_writer(&mut *out, &summary(results))?;
    write!(out, ",\n\"rows\": [")?;
    for (index, line) in BufReader::new(results.lines()?).lines().enumerate() {
        write!(out, "{}\n{}", if index == 0 { "" } else { "," }, line?)?;
    }
    writeln!(out, "\n]\n}}")
}

fn summary(results: &ImportResults) -> Summary {
    let counts = &results.counts;
    let count = |outcome: RowOutcome| (outcome.code().to_owned(), counts.get(outcome).into());
    Summary {
        rows: counts.all(),
        counts: RowOutcome::ALL.into_iter().map(count).collect(),
        warned: counts.warned,
        results_file: results.file.as_ref().map(|file| file.to_string_lossy().into_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::import::ReportSpool;

    #[test]
    fn the_rows_of_an_import_fit_its_terminal() {
        let fault = serde_json::json!({ "row": 2, "reference": "A-1", "outcome": "invalid",
            "trackingNumber": null, "labelFile": null, "idempotencyKey": null, "warnings": [],
            "errors": [{ "column": "receiver_phone", "field": "receiver.phone", "code": "SHORTENED_NUMBER",
                "message": "A spreadsheet shortened this number: enter the number again.",
                "message_es": "", "suggestion": null, "value": null }] });
        let mut reports = ReportSpool::new().unwrap();
        reports.add(0, serde_json::from_value(fault).unwrap()).unwrap();
        let mut out = Vec::new();
        write_noted_rows(&mut out, &reports.finish(None).unwrap(), Language::En, Some(40)).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert!(text.lines().count() > 2, "{text}");
        assert!(text.lines().all(|line| line.len() <= 40), "{text}");
    }
}
