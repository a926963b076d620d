//! Results for people: aligned columns without a frame, headings in bold.

use std::io::{self, Write};

use anstream::adapter::strip_str;
use comfy_table::{
    Attribute, Cell as StyledCell, Color, ColumnConstraint, ContentArrangement, Table as TextTable,
    Width, presets,
};
use parcelo::{Language, model::TrackingRecord};

use super::errors;
use crate::{
    results::table::{Cell, Report, Section, Table, TableStyle, Tone, format_moment, status_text},
    sanitize::plain,
};

/// Writes a result, in lines of at most `width` columns if it is given.
pub(super) fn write(
    out: &mut impl Write,
    report: &dyn Report,
    language: Language,
    width: Option<usize>,
) -> io::Result<()> {
    report.sections(language).iter().try_for_each(|section| {
        let mut lines = Vec::new();
        match section {
            Section::Table(table) => write_table(out, table, language, width)?,
            Section::Line(line) => writeln!(out, "{}", plain(line))?,
            Section::Fault(fault) => errors::write_fault(&mut lines, fault, language)?,
            Section::Warning(warning) => {
                write!(lines, "  ")?;
                errors::write_warning(&mut lines, warning, language)?;
            }
        }
        write_wrapped(out, &lines, width)
    })
}

/// Writes text, in lines of at most `width` columns if it is given.
pub(super) fn write_wrapped(
    out: &mut impl Write,
    lines: &[u8],
    width: Option<usize>,
) -> io::Result<()> {
    let lines = String::from_utf8_lossy(lines);
    lines.lines().try_for_each(|line| writeln!(out, "{}", wrap_text(line, width)))
}

/// Wraps a line at `width` columns, if it is given, keeping its indentation. Words are never broken.
fn wrap_text(text: &str, width: Option<usize>) -> String {
    let Some(width) = width else { return text.to_owned() };
    let words = text.trim_start_matches(' ');
    let indent = " ".repeat(text.len() - words.len());
    let (mut lines, mut line) = (Vec::new(), String::new());
    for word in words.split(' ') {
        // Colour codes take no columns.
        let shown = strip_str(&line).to_string() + strip_str(word).to_string().as_str();
        if !line.is_empty() && indent.len() + shown.chars().count() + 1 > width {
            lines.push(std::mem::take(&mut line));
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    lines.push(line);
    let lines: Vec<_> = lines.into_iter().map(|line| format!("{indent}{line}")).collect();
    lines.join("\n")
}

/// Writes a table, or nothing if it has no rows.
pub(super) fn write_table(
    out: &mut impl Write,
    table: &Table,
    language: Language,
    width: Option<usize>,
) -> io::Result<()> {
    let columns = || table.columns.iter().filter_map(|column| column.heading);
    let headings: Vec<_> = columns().map(|heading| heading.pick(language)).collect();
    let shown = |row: &Vec<Cell>| -> Vec<ShownCell> {
        let cells = table.columns.iter().zip(row).filter(|(column, _)| column.heading.is_some());
        let text = |cell: &Cell| plain(cell.shown.as_ref().unwrap_or(&cell.value));
        cells.map(|(_, cell)| (text(cell), cell.tone)).collect()
    };
    let rows: Vec<_> = table.rows.iter().map(shown).collect();
    if table.style == TableStyle::List {
        let widths = min_widths(&headings, &rows);
        let least = widths.iter().sum::<usize>() + GAP * widths.len().saturating_sub(1);
        if width.is_none_or(|width| least <= width) {
            return write_list(out, &headings, &rows, width.map(|width| (width, widths)));
        }
    }
    // A list that is too wide even with one word per line is written as details, one block for each row.
    for (index, row) in rows.iter().enumerate() {
        if index > 0 {
            writeln!(out)?;
        }
        write_details(out, &headings, row, width)?;
    }
    Ok(())
}

type ShownCell = (String, Tone);

/// The blanks between two columns.
const GAP: usize = 2;

/// Returns the minimum width of each column, such that no word is broken: tracking numbers must be copied whole.
fn min_widths(headings: &[&str], rows: &[Vec<ShownCell>]) -> Vec<usize> {
    let longest = |text: &str| text.split(' ').map(|word| word.chars().count()).max();
    let own = |column: usize, heading: &str| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        let widths = cells.filter_map(|(text, _)| longest(text));
        widths.chain(longest(heading)).max().unwrap_or_default()
    };
    headings.iter().enumerate().map(|(column, heading)| own(column, heading)).collect()
}

fn write_list(
    out: &mut impl Write,
    headings: &[&str],
    rows: &[Vec<ShownCell>],
    limit: Option<(usize, Vec<usize>)>,
) -> io::Result<()> {
    if rows.is_empty() {
        return Ok(());
    }
    let mut text = frameless_table();
    text.set_header(headings.iter().map(|heading| bold(heading)));
    for row in rows {
        text.add_row(row.iter().map(style_cell));
    }
    write_arranged(out, text, limit)
}

/// Writes each cell on a line after its heading; empty cells are omitted.
fn write_details(
    out: &mut impl Write,
    headings: &[&str],
    row: &[ShownCell],
    width: Option<usize>,
) -> io::Result<()> {
    let facts: Vec<_> =
        headings.iter().zip(row).filter(|(_, (cell, _))| !cell.is_empty()).collect();
    if facts.is_empty() {
        return Ok(());
    }
    let mut text = frameless_table();
    for (heading, cell) in &facts {
        text.add_row([bold(heading), style_cell(cell)]);
    }
    let longest = facts.iter().map(|(heading, _)| heading.chars().count()).max();
    let values: Vec<_> = facts.iter().map(|(_, cell)| vec![(*cell).clone()]).collect();
    let value = min_widths(&[""], &values).first().copied();
    let widths = vec![longest.unwrap_or_default(), value.unwrap_or_default()];
    write_arranged(out, text, width.map(|width| (width, widths)))
}

/// Returns a table without a frame, so that numbers can be copied and lines searched. Styles that are not wanted are
/// removed when the whole text is written.
fn frameless_table() -> TextTable {
    let mut text = TextTable::new();
    text.load_style(presets::NOTHING).enforce_styling().style_text_only();
    text
}

/// Writes the lines of a table, with a maximum width and minimum widths of its columns.
fn write_arranged(
    out: &mut impl Write,
    mut text: TextTable,
    limit: Option<(usize, Vec<usize>)>,
) -> io::Result<()> {
    let gap = u16::try_from(GAP).unwrap_or_default();
    for column in text.column_iter_mut() {
        column.set_padding((0, gap));
    }
    if let Some((width, widths)) = limit {
        // The gap after the last column is omitted.
        let width = u16::try_from(width + GAP).unwrap_or(u16::MAX);
        text.set_content_arrangement(ContentArrangement::Dynamic).set_width(width);
        for (column, least) in text.column_iter_mut().zip(widths) {
            let least = u16::try_from(least + GAP).unwrap_or(u16::MAX);
            column.set_constraint(ColumnConstraint::LowerBoundary(Width::Fixed(least)));
        }
    }
    text.lines().try_for_each(|line| writeln!(out, "{}", line.trim_end()))
}

fn bold(text: &str) -> StyledCell {
    StyledCell::new(text).add_attribute(Attribute::Bold)
}

fn style_cell((text, tone): &ShownCell) -> StyledCell {
    let cell = StyledCell::new(text);
    match tone {
        Tone::Plain => cell,
        Tone::Good => cell.fg(Color::DarkGreen),
        Tone::Attention => cell.fg(Color::DarkYellow),
        Tone::Bad => cell.fg(Color::DarkRed),
        Tone::Muted => cell.add_attribute(Attribute::Dim),
    }
}

/// Writes the current status of a watched parcel, on one line.
pub(super) fn write_change(out: &mut impl Write, record: &TrackingRecord) -> io::Result<()> {
    let status = plain(&status_text(record.status.code(), &record.status_name));
    let last = record.history.iter().flatten().flatten().last();
    let last = last.map(|event| {
        format!("  {}  {}", format_moment(event.timestamp.to_utc()), plain(&event.location))
    });
    writeln!(out, "{}  {status}{}", record.tracking_number, last.unwrap_or_default())
}

/// Returns the number of rows that a text takes on a terminal, which wraps long lines.
pub(super) fn terminal_rows(text: &str, columns: usize) -> usize {
    let width = |line| strip_str(line).to_string().chars().count();
    text.lines().map(|line| width(line).div_ceil(columns.max(1)).max(1)).sum()
}

#[cfg(test)]
mod tests {
    use parcelo::model::{FaultCode, FieldFault};

    use super::*;
    use crate::{
        results::{Verdict, Verdicts, table::column},
        texts,
    };

    fn listing() -> Table {
        let columns = [
            column("trackingNumber", texts::TRACKING_NUMBER),
            column("status", texts::STATUS),
            column("details", texts::DETAILS),
        ];
        let long = "Held at the airport until the receiver has paid what customs asks for";
        let rows = [
            ["SBEC7K2M9QX4T8WD0", "Held by customs (CUSTOMS_HOLD)", long],
            ["SBEC7K2M9QX4T8WD1", "Delivered (DELIVERED)", ""],
        ];
        Table::list(columns, rows.map(|row| row.map(Cell::from)))
    }

    fn written(table: &Table, width: Option<usize>) -> String {
        let mut out = Vec::new();
        write_table(&mut out, table, Language::En, width).unwrap();
        strip_str(&String::from_utf8(out).unwrap()).to_string()
    }

    #[test]
    fn a_sentence_below_a_table_fits_the_terminal() {
        let texts =
            [crate::texts::PAGE_OF.pick(Language::En), crate::texts::PAGE_OF.pick(Language::Es)];
        for (text, width) in texts.iter().flat_map(|text| [(text, 24), (text, 60), (text, 200)]) {
            let lines = wrap_text(text, Some(width));
            assert!(lines.lines().all(|line| line.chars().count() <= width), "{width}: {lines}");
            assert_eq!(lines.replace('\n', " "), **text);
        }
        assert_eq!(wrap_text("a word", None), "a word");
        assert_eq!(wrap_text("  field: a long word", Some(11)), "  field: a\n  long word");
        let coloured = format!("{RED}error:{RED:#} no", RED = anstyle::AnsiColor::Red.on_default());
        assert_eq!(wrap_text(&coloured, Some(9)), coloured, "nine columns without the colour");
        assert_eq!(wrap_text("unbreakable", Some(3)), "unbreakable");
    }

    #[test]
    fn the_faults_of_a_validation_fit_the_terminal() {
        let fault =
            FieldFault::new("receiver.phone", FaultCode::InvalidFormat, ("a b ".repeat(40), ""));
        let (file, warnings) = ("order.json".to_owned(), Vec::new());
        let verdict = Verdict { file, index: 0, valid: false, errors: vec![fault], warnings };
        let mut out = Vec::new();
        write(&mut out, &Verdicts(vec![verdict]), Language::En, Some(40)).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert!(text.lines().all(|line| line.len() <= 40), "{text}");
    }

    #[test]
    fn a_table_fits_its_terminal_and_no_word_is_broken() {
        let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        let table = listing();
        for width in [24, 30, 40, 60, 80, 120] {
            for style in [TableStyle::List, TableStyle::Details] {
                let table = Table { style, ..listing() };
                let text = written(&table, Some(width));
                let widest = text.lines().map(|line| line.chars().count()).max().unwrap();
                // The number alone takes 34 columns with its heading, and is not broken even if there is less room.
                let limit =
                    if style == TableStyle::List && width >= 60 { width } else { width.max(34) };
                assert!(widest <= limit, "{width}: {widest}\n{text}");
                for row in &table.rows {
                    for word in row.iter().flat_map(|cell| words(&cell.value)) {
                        assert!(words(&text).contains(&word), "{width}: {word}\n{text}");
                    }
                }
            }
        }
        assert!(written(&table, Some(80)).starts_with("Tracking number    Status"));
        assert!(written(&table, Some(40)).starts_with("Tracking number  SBEC7K2M9QX4T8WD0\n"));
        // In a pipe, each row stays one line.
        assert_eq!(written(&table, None).lines().count(), 3);
    }

    #[test]
    fn each_status_has_a_colour() {
        use parcelo::ParcelStatus;
        for (status, start) in [
            (ParcelStatus::Delivered, "\u{1b}[38;5;2m"),
            (ParcelStatus::CustomsHold, "\u{1b}[38;5;3m"),
            (ParcelStatus::DeliveryFailed, "\u{1b}[38;5;1m"),
            (ParcelStatus::Voided, "\u{1b}[2m"),
            (ParcelStatus::InTransit, "In transit"),
        ] {
            let cell = Cell::status(&status, status.name(Language::En));
            let table = Table::list([column("status", texts::STATUS)], [[cell]]);
            let mut out = Vec::new();
            write_table(&mut out, &table, Language::En, None).unwrap();
            let row = String::from_utf8(out).unwrap().lines().last().unwrap().to_owned();
            assert!(row.starts_with(start), "{row:?}");
        }
    }

    #[test]
    fn a_long_line_takes_several_rows() {
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
