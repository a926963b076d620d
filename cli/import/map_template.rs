//! `order import FILE --map-template`: a template of a column map, from the headings of a file.

use parcelo::Language;

use super::{
    column_map::ColumnMap,
    columns::{COLUMNS, Column, Heading, nearest_column, parse_heading},
    csv_rows,
    file::{ImportFile, RowFormat},
};
use crate::{
    failure::Failure,
    texts::{Text, import as texts},
};

/// Returns a map with every heading of a file: known columns, and suggestions for the others.
pub(crate) fn map_template(file: &ImportFile, language: Language) -> Result<String, Failure> {
    if file.format() == RowFormat::Ndjson {
        return Err(Failure::usage(texts::MAP_OF_LINES, texts::ONLY_SENDER_OF_LINES));
    }
    let (_, cells) = csv_rows::headings(file, &ColumnMap::default())?;
    Ok(template(&cells, language))
}

fn template(cells: &[String], language: Language) -> String {
    let comment = |text: Text| format!("# {}", text.pick(language));
    let named = |cell: &&String| !matches!(parse_heading(cell), Some(Heading::Note));
    let columns = cells.iter().filter(named).map(|cell| {
        if let Some(heading) = parse_heading(cell) {
            return format!("{} = {}", heading.name(), quote_toml(cell));
        }
        let field =
            nearest_column(cell).unwrap_or_else(|| texts::MAP_FIELD.pick(language).to_owned());
        format!("# {field} = {}", quote_toml(cell))
    });
    let has = |column: &Column| {
        cells
            .iter()
            .any(|cell| parse_heading(cell).is_some_and(|heading| heading.is_column(column)))
    };
    let is_needed = |column: &&Column| column.is_required || column.name == "weight_kg";
    let missing = COLUMNS.iter().filter(is_needed).filter(|column| !has(column));
    let missing =
        missing.map(|column| format!("# {} = {}", column.name, quote_toml(column.sample)));
    let lines = [comment(texts::MAP_INTRO), comment(texts::MAP_IGNORE), "ignore = []".to_owned()]
        .into_iter()
        .chain([comment(texts::MAP_ROWS), "one_row_per = \"order\"".to_owned(), String::new()])
        .chain(["[columns]".to_owned(), comment(texts::MAP_COLUMNS)])
        .chain(columns)
        .chain([String::new(), "[defaults]".to_owned(), comment(texts::MAP_DEFAULTS)])
        .chain(missing);
    lines.map(|line| line + "\n").collect()
}

/// Quotes a text as TOML.
fn quote_toml(text: &str) -> String {
    toml_edit::Value::from(text.trim()).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_template_is_a_map_with_known_and_suggested_columns() {
        let cells = ["reference", "Receiver ZIP", "Reciever name", "Colour \"x\"", "# mine", ""];
        let cells = cells.map(str::to_owned);
        for language in [Language::En, Language::Es] {
            let text = template(&cells, language);
            let map = ColumnMap::parse(&text).unwrap();
            let names: Vec<_> = map.columns.iter().map(|one| one.heading.name()).collect();
            assert_eq!(names, ["reference", "receiver_zip"], "{text}");
            assert!(text.contains("\n# receiver_name = \"Reciever name\"\n"), "{text}");
            assert!(text.contains("\n# weight_kg = \"1.25\"\n"), "{text}");
            assert!(!text.contains("mine"), "{text}");
            // Each commented line belongs to a valid map.
            let whole =
                text.replace("\n# r", "\nr").replace("\n# s", "\ns").replace("\n# w", "\nw");
            assert!(ColumnMap::parse(&whole).is_ok(), "{whole}");
        }
    }
}
