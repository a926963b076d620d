//! Cells of CSV files that spreadsheets open: one that begins like a formula is written as text, or a reference that a
//! stranger chose could be run by the program that opens the file. The dashboard and the command line write cells
//! this way, and an import reads them back as they were.

use std::borrow::Cow;

/// Characters that begin a formula; a tab and a carriage return are dropped by some spreadsheets.
const FORMULA: [char; 6] = ['=', '+', '-', '@', '\t', '\r'];

/// Returns the text of a written cell: with an apostrophe before a text that a spreadsheet would run, and before an
/// apostrophe that would be removed.
pub fn to_cell(text: &str) -> Cow<'_, str> {
    if is_formula_behind_apostrophes(text) { format!("'{text}").into() } else { text.into() }
}

/// Returns the text of such a cell.
pub fn from_cell(cell: &str) -> &str {
    cell.strip_prefix('\'').filter(|text| is_formula_behind_apostrophes(text)).unwrap_or(cell)
}

fn is_formula_behind_apostrophes(text: &str) -> bool {
    text.trim_start_matches('\'').starts_with(FORMULA)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_is_never_a_formula_and_survives_a_round_trip() {
        let table = [
            ("=HYPERLINK(\"https://evil.example\")", "'=HYPERLINK(\"https://evil.example\")"),
            ("+1", "'+1"),
            ("-2+3", "'-2+3"),
            ("@SUM(A1)", "'@SUM(A1)"),
            ("\t=1", "'\t=1"),
            ("\r=1", "'\r=1"),
            ("'=1", "''=1"),
            ("''@", "'''@"),
            ("'t Hooft", "'t Hooft"),
            ("'", "'"),
            ("1001", "1001"),
            ("A-1=2", "A-1=2"),
            ("", ""),
        ];
        for (text, cell) in table {
            assert_eq!(to_cell(text), cell);
            assert_eq!(from_cell(cell), text);
        }
    }
}
