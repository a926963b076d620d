//! Results for people: aligned columns without a frame, headings in bold.

use std::io::{self, Write};

use anstream::adapter::strip_str;
use comfy_table::{Attribute, Cell as StyledCell, Table as TextTable, presets};
use parcelo::{Language, model::TrackingRecord};

use super::errors;
use crate::{
    results::table::{Cell, Report, Section, Table, TableStyle, moment, status_text},
    sanitize::plain,
};

pub(super) fn write(
    out: &mut impl Write,
    report: &dyn Report,
    language: Language,
) -> io::Result<()> {
    report.sections(language).iter().try_for_each(|section| match section {
        Section::Table(table) => write_table(out, table, language),
        Section::Line(line) => writeln!(out, "{}", plain(line)),
        Section::Fault(fault) => errors::write_fault(out, fault, language),
        Section::Warning(warning) => {
            write!(out, "  ")?;
            errors::write_warning(out, warning, language)
        }
    })
}

/// Writes a table; one without rows is left out.
pub(super) fn write_table(
    out: &mut impl Write,
    table: &Table,
    language: Language,
) -> io::Result<()> {
    let mut text = TextTable::new();
    // No frame, so that a number can be copied and a line be searched. Styles are taken out where
    // they are not wanted, when all is written.
    text.load_style(presets::NOTHING).enforce_styling().style_text_only();
    let shown = |cell: &Cell| plain(cell.shown.as_ref().unwrap_or(&cell.value));
    for row in &table.rows {
        let cells = table.columns.iter().zip(row);
        let cells = cells.filter_map(|(column, cell)| Some((column.heading?.pick(language), cell)));
        match table.style {
            TableStyle::Details => {
                for (heading, cell) in cells.map(|(heading, cell)| (heading, shown(cell))) {
                    if !cell.is_empty() {
                        text.add_row([bold(heading), StyledCell::new(cell)]);
                    }
                }
            }
            TableStyle::List => {
                text.add_row(cells.map(|(_, cell)| shown(cell)));
            }
        }
    }
    if table.style == TableStyle::List && !table.rows.is_empty() {
        let headings = table.columns.iter().filter_map(|column| column.heading);
        text.set_header(headings.map(|heading| bold(heading.pick(language))));
    }
    for column in text.column_iter_mut() {
        column.set_padding((0, 2));
    }
    text.lines()
        .filter(|_| !text.is_empty())
        .try_for_each(|line| writeln!(out, "{}", line.trim_end()))
}

fn bold(text: &str) -> StyledCell {
    StyledCell::new(text).add_attribute(Attribute::Bold)
}

/// Where a watched parcel is now, in one line.
pub(super) fn write_change(out: &mut impl Write, record: &TrackingRecord) -> io::Result<()> {
    let status = plain(&status_text(&record.status, &record.status_name));
    let last = record.history.iter().flatten().flatten().last();
    let last = last
        .map(|event| format!("  {}  {}", moment(event.timestamp.to_utc()), plain(&event.location)));
    writeln!(out, "{}  {status}{}", record.tracking_number, last.unwrap_or_default())
}

/// The rows that a text takes up on a terminal, which wraps lines that are too long for it.
pub(super) fn terminal_rows(text: &str, columns: usize) -> usize {
    let width = |line| strip_str(line).to_string().chars().count();
    text.lines().map(|line| width(line).div_ceil(columns.max(1)).max(1)).sum()
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
            assert_eq!(terminal_rows(text, columns), expected, "{text:?} {columns}");
        }
    }
}
