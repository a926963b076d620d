//! How a table for people looks: aligned columns without a frame, headings in bold.

use std::io::{self, Write};

use comfy_table::{Attribute, Cell, Table, presets};
use parcelo::Language;

use super::plain;
use crate::texts::Text;

/// Names and facts, a line for each.
pub(super) fn write_facts(
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

/// A table under its headings.
pub(super) fn headed(headings: &[Text], language: Language) -> Table {
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

pub(super) fn write_table(out: &mut impl Write, mut table: Table) -> io::Result<()> {
    for column in table.column_iter_mut() {
        column.set_padding((0, 2));
    }
    table.lines().try_for_each(|line| writeln!(out, "{}", line.trim_end()))
}
