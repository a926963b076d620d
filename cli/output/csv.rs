//! Results as CSV: stable column names, then the rows.

use std::io::{self, Write};

use csv::Writer;
use parcelo_types::internal::spreadsheet::to_cell;

use crate::{results::table::Table, sanitize::plain};

/// Writes a table under its column names.
pub(super) fn write(out: &mut impl Write, table: &Table) -> io::Result<()> {
    let mut writer = Writer::from_writer(out);
    writer.write_record(table.columns.iter().map(|column| column.name))?;
    for row in &table.rows {
        writer.write_record(row.iter().map(|cell| to_cell(&cell.value).into_owned()))?;
    }
    writer.flush()
}

/// Writes the tracking numbers of a table, one per line, as input for other commands.
pub(super) fn write_numbers(out: &mut impl Write, table: &Table) -> io::Result<()> {
    let column = table.columns.iter().position(|column| column.name == "trackingNumber");
    let numbers = table.rows.iter().filter_map(|row| row.get(column?));
    let mut numbers = numbers.filter(|cell| !cell.value.is_empty());
    numbers.try_for_each(|cell| writeln!(out, "{}", plain(&cell.value)))
}

/// Returns the I/O error inside a CSV error.
pub(super) fn cause(error: &io::Error) -> Option<&io::Error> {
    match error.get_ref()?.downcast_ref::<csv::Error>()?.kind() {
        csv::ErrorKind::Io(cause) => Some(cause),
        _ => None,
    }
}
