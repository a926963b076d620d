//! Cells of CSV files that spreadsheets open. A text that begins like a formula is written with an apostrophe;
//! otherwise the spreadsheet could execute a reference that a stranger chose. The dashboard and the command line write
//! cells in this way, and an import reads them back unchanged.

use std::borrow::Cow;

/// Characters with which a formula begins; some spreadsheets drop a tab or a carriage return before one.
const FORMULA: [char; 6] = ['=', '+', '-', '@', '\t', '\r'];

/// Returns a text as a cell: with an apostrophe if a spreadsheet would execute it, or would remove the apostrophe with
/// which it begins.
pub fn to_cell(text: &str) -> Cow<'_, str> {
    if is_formula_behind_apostrophes(text) { format!("'{text}").into() } else { text.into() }
}

/// Returns the text of a cell that [`to_cell`] wrote.
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
