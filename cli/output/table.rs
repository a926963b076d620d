//! Results for people: aligned columns, names in words, times to the second.

use std::io::{self, Write};

use comfy_table::{Attribute, Cell, Table, presets};
use parcelo::{Language, ParcelStatus, TrackingRecord};

use super::{errors, plain};
use crate::{
    results::{Created, Results, SavedLabel, Verdict},
    texts::{self, Text},
};

pub(super) fn write(out: &mut impl Write, results: &Results, language: Language) -> io::Result<()> {
    match results {
        Results::Help(_) | Results::File(_) | Results::Sample(_) => Ok(()),
        Results::Created(created) => write_created(out, created, language),
        Results::Verdicts(verdicts) => {
            verdicts.iter().try_for_each(|verdict| write_verdict(out, verdict, language))
        }
        Results::Tracked(list) => write_tracked(out, &list.found, language),
        Results::Labels(list) => write_labels(out, &list.found, language),
        Results::Health(health) => {
            let environment = health.environment.map_or("", |environment| environment.code());
            let countries = match &*health.allowed_countries {
                [all] if all == "*" => texts::EVERY_COUNTRY.pick(language).to_owned(),
                some => some.join(", "),
            };
            let facts = [
                (texts::STATUS, health.status.clone()),
                (texts::KEY_NAME, health.key_name.clone()),
                (texts::ENVIRONMENT, environment.to_owned()),
                (texts::COUNTRIES, countries),
            ];
            write_facts(out, &facts, language)
        }
    }
}

fn write_created(out: &mut impl Write, created: &Created, language: Language) -> io::Result<()> {
    let parcel = &created.order.parcel;
    let mut facts = vec![
        (texts::TRACKING_NUMBER, parcel.tracking_number.to_string()),
        (texts::STATUS, status(&parcel.status, parcel.status.name(language))),
        (texts::CREATED, format!("{} UTC", parcel.created_at.format(SECOND))),
        (texts::LABEL, parcel.label_url.clone()),
        (texts::IDEMPOTENCY_KEY, created.idempotency_key.to_string()),
    ];
    if let Some(label) = &created.label {
        facts.push((texts::LABEL_FILE, label.file.to_string_lossy().into_owned()));
    }
    write_facts(out, &facts, language)
}

fn write_verdict(out: &mut impl Write, verdict: &Verdict, language: Language) -> io::Result<()> {
    let word = if verdict.is_valid() { texts::VALID } else { texts::NOT_VALID };
    writeln!(out, "{}[{}]: {}", plain(&verdict.file), verdict.index, word.pick(language))?;
    for fault in &verdict.errors {
        errors::write_fault(out, fault, language)?;
    }
    for warning in &verdict.warnings {
        write!(out, "  ")?;
        errors::write_warning(out, warning, language)?;
    }
    Ok(())
}

fn write_tracked(
    out: &mut impl Write,
    records: &[TrackingRecord],
    language: Language,
) -> io::Result<()> {
    let mut table = headed(&[texts::TRACKING_NUMBER, texts::STATUS, texts::ESTIMATED], language);
    for record in records {
        table.add_row([
            record.tracking_number.to_string(),
            status(&record.status, &record.status_name),
            record.estimated_delivery.date_naive().to_string(),
        ]);
    }
    if !records.is_empty() {
        write_table(out, table)?;
    }
    records.iter().try_for_each(|record| write_history(out, record, language))
}

fn write_history(
    out: &mut impl Write,
    record: &TrackingRecord,
    language: Language,
) -> io::Result<()> {
    let Some(history) = &record.history else { return Ok(()) };
    let headings = [texts::TIME, texts::STATUS, texts::PLACE, texts::DETAILS];
    let mut table = headed(&headings, language);
    for event in history {
        table.add_row([
            event.timestamp.format(SECOND).to_string(),
            status(&event.status, &event.status_name),
            plain(&event.location),
            plain(event.description.as_deref().unwrap_or_default()),
        ]);
    }
    writeln!(out, "\n{}", record.tracking_number)?;
    write_table(out, table)
}

fn write_labels(out: &mut impl Write, labels: &[SavedLabel], language: Language) -> io::Result<()> {
    let headings = [texts::TRACKING_NUMBER, texts::FORMAT, texts::BYTES, texts::FILE];
    let mut table = headed(&headings, language);
    for label in labels {
        table.add_row([
            label.number.to_string(),
            label.format.to_string(),
            label.bytes.to_string(),
            plain(&label.file.to_string_lossy()),
        ]);
    }
    if labels.is_empty() { Ok(()) } else { write_table(out, table) }
}

const SECOND: &str = "%Y-%m-%d %H:%M:%S";

/// A status in words and, for those who search for it, as the API spells it.
fn status(status: &ParcelStatus, name: &str) -> String {
    match (status.code(), name) {
        (code, name) if code == name => plain(code),
        (code, name) => format!("{} ({})", plain(name), plain(code)),
    }
}

fn write_facts(
    out: &mut impl Write,
    facts: &[(Text, String)],
    language: Language,
) -> io::Result<()> {
    let mut table = bare();
    for (name, fact) in facts {
        table.add_row([bold(name.pick(language)), Cell::new(plain(fact))]);
    }
    write_table(out, table)
}

fn headed(headings: &[Text], language: Language) -> Table {
    let mut table = bare();
    table.set_header(headings.iter().map(|heading| bold(heading.pick(language))));
    table
}

fn bold(text: &str) -> Cell {
    Cell::new(text).add_attribute(Attribute::Bold)
}

/// No frame, so that a number can be copied and a line be searched. Styles are taken out where
/// they are not wanted, when all is written.
fn bare() -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).enforce_styling().style_text_only();
    table
}

fn write_table(out: &mut impl Write, mut table: Table) -> io::Result<()> {
    for column in table.column_iter_mut() {
        column.set_padding((0, 2));
    }
    table.lines().try_for_each(|line| writeln!(out, "{}", line.trim_end()))
}
