//! The headings of a file. They assign the cells of a row to fields, by name or through a column map.

use std::borrow::Cow;

use csv::ByteRecord;
use parcelo_types::internal::spreadsheet::from_cell;

use super::{
    column_map::{ColumnMap, MappedColumn, OtherColumns, is_same_heading},
    columns::{
        COLUMNS, CellType, Column, Heading, PRODUCT_COLUMNS, REFERENCE, most_similar,
        nearest_column, parse_heading,
    },
    row::RowFault,
    row_settings::RowSettings,
};
use crate::texts::{Text, import as texts};

/// The headings of a file, and the fields that its columns fill.
#[derive(Debug)]
pub(crate) struct Header {
    /// The headings, spelled as in the file.
    cells: Vec<String>,
    columns: Vec<FilledColumn>,
    /// The cells that must be empty in the row of an order that may be sent.
    must_be_empty: Vec<usize>,
}

/// A field and its sources.
#[derive(Debug)]
pub(super) struct FilledColumn {
    pub(super) heading: Heading,
    /// The first alternative that is not empty fills the field.
    alternatives: Vec<Vec<Part>>,
}

/// A part of a field's text.
#[derive(Debug)]
enum Part {
    Cell(usize),
    Text(String),
}

impl Header {
    /// Parses the header row. The error contains all of its faults.
    pub(crate) fn parse(cells: &[String], settings: &RowSettings) -> Result<Self, Vec<RowFault>> {
        let cells: Vec<_> = cells.iter().map(|cell| cell.trim().to_owned()).collect();
        let map = &settings.columns;
        let (mut columns, mut faults) = (Vec::new(), Vec::new());
        for column in &map.columns {
            match map_column(column, &cells) {
                Ok(alternatives) if alternatives.is_empty() => {}
                Ok(alternatives) => {
                    columns.push(FilledColumn { heading: column.heading, alternatives });
                }
                Err(fault) => faults.push(*fault),
            }
        }
        let used: Vec<usize> = columns.iter().flat_map(FilledColumn::cells).collect();
        for (index, cell) in cells.iter().enumerate().filter(|(index, _)| !used.contains(index)) {
            match find_field(cell, map, &columns) {
                Ok(None) => {}
                Ok(Some(heading)) => {
                    let alternatives = vec![vec![Part::Cell(index)]];
                    columns.push(FilledColumn { heading, alternatives });
                }
                Err(fault) => faults.push(*fault),
            }
        }
        faults.extend(missing_fields(&columns, settings));
        let must_be_empty = cells.iter().enumerate().filter(|(_, cell)| {
            map.must_be_empty.iter().any(|heading| is_same_heading(heading, cell))
        });
        let must_be_empty = must_be_empty.map(|(index, _)| index).collect();
        if faults.is_empty() { Ok(Self { cells, columns, must_be_empty }) } else { Err(faults) }
    }

    /// Counts the headings that are known.
    pub(crate) fn count_known(cells: &[String], map: &ColumnMap) -> usize {
        let is_mapped = |cell: &str| {
            let mut sources = map.columns.iter().flat_map(|column| &column.sources);
            sources.any(|source| is_same_heading(source, cell))
        };
        let is_known = |cell: &&String| {
            matches!(parse_heading(cell), Some(Heading::Field(_))) || is_mapped(cell)
        };
        cells.iter().filter(is_known).count()
    }

    pub(super) fn columns(&self) -> &[FilledColumn] {
        &self.columns
    }

    pub(crate) fn len(&self) -> usize {
        self.cells.len()
    }

    /// Returns the heading of a cell, spelled as in the file.
    pub(crate) fn spelling(&self, cell: usize) -> Option<&str> {
        self.cells.get(cell).map(String::as_str)
    }

    /// Returns the heading and the content of a cell that must be empty and is not.
    pub(super) fn find_forbidden_cell(&self, record: &ByteRecord) -> Option<(&str, String)> {
        self.must_be_empty.iter().find_map(|cell| {
            let text = record.get(*cell)?.trim_ascii();
            let heading = self.spelling(*cell).filter(|_| !text.is_empty())?;
            Some((heading, String::from_utf8_lossy(text).into_owned()))
        })
    }

    /// Returns the row's reference, even if other cells cannot be read.
    pub(super) fn reference(&self, record: &ByteRecord) -> String {
        let column = self.columns.iter().find(|column| column.heading.name() == REFERENCE);
        let text = column.and_then(|column| column.text(record).ok()).unwrap_or_default();
        text.into_owned()
    }

    /// Returns the column that fills a field; `products` are the numbers of the order's products.
    pub(crate) fn column_of(&self, path: &str, products: &[usize]) -> Option<String> {
        let wanted = if let Some(rest) = path.strip_prefix("products[") {
            let (index, field) = rest.split_once("].")?;
            let number = *products.get(index.parse::<usize>().ok()?)?;
            let column = PRODUCT_COLUMNS.iter().find(|column| column.path == field)?;
            Heading::Product(number, column)
        } else {
            Heading::Field(COLUMNS.iter().find(|column| column.path == path)?)
        };
        let filled = self.columns.iter().find(|column| column.heading.is_same(wanted));
        Some(filled.map_or_else(|| wanted.name(), |column| self.spellings(column)))
    }

    fn spellings(&self, column: &FilledColumn) -> String {
        let first = column.alternatives.first().into_iter().flatten();
        let spelled = first.filter_map(|part| match part {
            Part::Cell(cell) => self.spelling(*cell),
            Part::Text(_) => None,
        });
        spelled.collect::<Vec<_>>().join(" + ")
    }

    /// Returns `true` if this field's column must be a number.
    pub(super) fn is_number(path: &str) -> bool {
        let is_number = |column: &Column| column.kind == CellType::Number;
        match path.strip_prefix("products[").and_then(|rest| rest.split_once("].")) {
            Some((_, field)) => {
                PRODUCT_COLUMNS.iter().any(|column| column.path == field && is_number(column))
            }
            None => COLUMNS.iter().any(|column| column.path == path && is_number(column)),
        }
    }
}

impl FilledColumn {
    fn cells(&self) -> impl Iterator<Item = usize> + '_ {
        self.alternatives.iter().flatten().filter_map(|part| match part {
            Part::Cell(cell) => Some(*cell),
            Part::Text(_) => None,
        })
    }

    /// Returns the row's text for the field. The error is the index of a cell that is not text.
    pub(super) fn text<'r>(&self, record: &'r ByteRecord) -> Result<Cow<'r, str>, usize> {
        for parts in &self.alternatives {
            let text = join_cells(parts, record)?;
            if !text.is_empty() {
                return Ok(text);
            }
        }
        Ok(Cow::Borrowed(""))
    }
}

fn join_cells<'r>(parts: &[Part], record: &'r ByteRecord) -> Result<Cow<'r, str>, usize> {
    let cell = |cell: usize| {
        let text = std::str::from_utf8(record.get(cell).unwrap_or_default()).map_err(|_| cell)?;
        Ok(strip_text_marks(text.trim()))
    };
    if let [Part::Cell(only)] = parts {
        return cell(*only).map(Cow::Borrowed);
    }
    let (mut text, mut is_empty) = (String::new(), true);
    for part in parts {
        match part {
            Part::Text(between) => text.push_str(between),
            Part::Cell(index) => {
                let cell = cell(*index)?;
                is_empty &= cell.is_empty();
                text.push_str(cell);
            }
        }
    }
    // If all cells are empty, the text between them is dropped.
    Ok(if is_empty { Cow::Borrowed("") } else { Cow::Owned(text.trim().to_owned()) })
}

/// Removes the marks that keep a spreadsheet from changing a cell: `="170515"`, or an apostrophe.
fn strip_text_marks(cell: &str) -> &str {
    let quoted = cell.strip_prefix("=\"").and_then(|rest| rest.strip_suffix('"'));
    quoted.filter(|text| !text.contains('"')).unwrap_or_else(|| from_cell(cell)).trim()
}

/// Returns the sources of a mapped field among the headings of the file.
fn map_column(column: &MappedColumn, cells: &[String]) -> Result<Vec<Vec<Part>>, Box<RowFault>> {
    let mut found = Vec::new();
    for source in &column.sources {
        match parse_source(source, cells) {
            Ok(parts) => found.push(parts),
            Err(_) if column.is_list => {}
            Err(heading) => {
                let suggestion = most_similar(&heading, cells.iter().cloned());
                let field = [("field", &*column.heading.name())];
                let missing = fault(&heading, "UNKNOWN_COLUMN", texts::MAPPED_COLUMN_MISSING);
                let message = texts::MAPPED_COLUMN_MISSING.with(&field);
                return Err(Box::new(RowFault { suggestion, ..missing }.with_message(message)));
            }
        }
    }
    Ok(found)
}

/// Returns the cells of a heading, or of the headings in `{First name} {Last name}`. The error is a heading that the
/// file lacks.
fn parse_source(source: &str, cells: &[String]) -> Result<Vec<Part>, String> {
    let cell = |heading: &str| {
        let exact = cells.iter().position(|cell| cell == heading.trim());
        exact.or_else(|| cells.iter().position(|cell| is_same_heading(cell, heading)))
    };
    if let Some(cell) = cell(source) {
        return Ok(vec![Part::Cell(cell)]);
    }
    let (mut parts, mut rest) = (Vec::new(), source);
    while let Some((before, (heading, after))) =
        rest.split_once('{').and_then(|(before, rest)| Some((before, rest.split_once('}')?)))
    {
        parts.push(Part::Text(before.to_owned()));
        parts.push(Part::Cell(cell(heading).ok_or_else(|| heading.to_owned())?));
        rest = after;
    }
    if parts.is_empty() {
        return Err(source.to_owned());
    }
    parts.push(Part::Text(rest.to_owned()));
    Ok(parts)
}

/// Returns the field that a heading names, unless its column is not read.
fn find_field(
    cell: &str,
    map: &ColumnMap,
    columns: &[FilledColumn],
) -> Result<Option<Heading>, Box<RowFault>> {
    if map.ignores(cell) {
        return Ok(None);
    }
    match parse_heading(cell) {
        Some(Heading::Note) => Ok(None),
        Some(heading) if columns.iter().any(|column| column.heading.is_same(heading)) => {
            Err(Box::new(fault(cell, "DUPLICATE_COLUMN", texts::COLUMN_REPEATED)))
        }
        Some(heading) => Ok(Some(heading)),
        None if map.other_columns == Some(OtherColumns::Ignore) => Ok(None),
        None => {
            let suggestion = nearest_column(cell);
            let unknown = fault(cell, "UNKNOWN_COLUMN", texts::COLUMN_UNKNOWN);
            Err(Box::new(RowFault { suggestion, ..unknown }))
        }
    }
}

/// The columns for weights, one of which is required.
const WEIGHTS: [&str; 2] = ["weight_kg", "weight_lbs"];

/// Returns a fault for each required field that neither the file nor the settings provide.
fn missing_fields<'a>(
    columns: &'a [FilledColumn],
    settings: &'a RowSettings,
) -> impl Iterator<Item = RowFault> + 'a {
    let has = move |column: &Column| {
        settings.provides(column) || columns.iter().any(|one| one.heading.is_column(column))
    };
    let mut weights = COLUMNS.iter().filter(|column| WEIGHTS.contains(&column.name));
    let has_weight = weights.any(has);
    let is_needed = move |column: &Column| match column.name {
        name if name == WEIGHTS[0] => !has_weight,
        _ => column.is_required && !has(column),
    };
    let missing = COLUMNS.iter().filter(move |column| is_needed(column));
    missing.map(|column| fault(column.name, "REQUIRED", texts::COLUMN_MISSING))
}

fn fault(heading: &str, code: &str, text: Text) -> RowFault {
    RowFault { column: Some(heading.trim().to_owned()), ..RowFault::new(code, text) }
}

#[cfg(test)]
mod tests {
    use super::{super::columns::sample, *};

    fn cells(line: &str) -> Vec<String> {
        line.split(',').map(str::to_owned).collect()
    }

    #[test]
    fn text_marks_of_cells_are_removed() {
        let table = [
            ("=\"170515\"", "170515"),
            ("=\" A-1 \"", "A-1"),
            ("=\"\"", ""),
            ("'=1+1", "=1+1"),
            ("'=\"1\"", "=\"1\""),
            ("=\"a\"&\"b\"", "=\"a\"&\"b\""),
            ("=1+1", "=1+1"),
            ("170515", "170515"),
        ];
        for (cell, text) in table {
            assert_eq!(strip_text_marks(cell), text, "{cell}");
        }
    }

    type Found<'a> = Vec<(&'a str, &'a str, Option<&'a str>)>;

    fn found(faults: &[RowFault]) -> Found<'_> {
        let found = faults.iter().map(|fault| {
            (fault.column.as_deref().unwrap(), &*fault.code, fault.suggestion.as_deref())
        });
        found.collect()
    }

    fn settings(map: &str) -> RowSettings {
        RowSettings { columns: ColumnMap::parse(map).unwrap(), sender: None }
    }

    #[test]
    fn a_wrong_header_reports_all_faults_with_suggestions() {
        let plain = RowSettings::default();
        let mut names: Vec<_> = sample().into_iter().map(|[name, _]| name).collect();
        assert!(Header::parse(&names, &plain).is_ok());
        names[3] = "sendr_name".to_owned();
        names.extend(cells("Currency,# my note,,colour"));
        let faults = Header::parse(&names, &plain).unwrap_err();
        let expected = [
            ("sendr_name", "UNKNOWN_COLUMN", Some("sender_name")),
            ("Currency", "DUPLICATE_COLUMN", None),
            ("colour", "UNKNOWN_COLUMN", None),
            ("sender_name", "REQUIRED", None),
        ];
        assert_eq!(found(&faults), expected);
    }

    #[test]
    fn a_map_names_headings_and_supplies_missing_fields() {
        let map = "ignore = ['Colour']\n[columns]\nreference = 'Order Nr'\n\
            receiver_name = '{First} {Last}'\nreceiver_line1 = ['Street 2', 'Street']\n\
            [defaults]\nreceiver_phone = '+593991234567'\nreceiver_city = 'Quito'\n\
            receiver_country = 'EC'\ndeclared_value = 5\nweight_lbs = 2\n";
        let mut settings = settings(map);
        settings.sender = Some(serde_json::json!({}));
        let header = Header::parse(&cells("order nr,First,Last,Street,Colour"), &settings).unwrap();
        let text = |row: &str, name: &str| {
            let record = ByteRecord::from(cells(row));
            let column = header.columns.iter().find(|one| one.heading.name() == name).unwrap();
            column.text(&record).unwrap().into_owned()
        };
        assert_eq!(text("A-1,Ana,Ruiz,,", "receiver_name"), "Ana Ruiz");
        assert_eq!(text("A-1,, Ruiz ,,", "receiver_name"), "Ruiz");
        assert_eq!(text("A-1,,,Amazonas 5,", "receiver_line1"), "Amazonas 5");
        assert_eq!(text("A-1,,,,", "receiver_name"), "");
        assert_eq!(header.column_of("receiver.fullName", &[]).as_deref(), Some("First + Last"));

        settings.columns.defaults.pop();
        let faults = Header::parse(&cells("Oder Nr,First,Last,Size"), &settings).unwrap_err();
        let expected = [
            ("Order Nr", "UNKNOWN_COLUMN", Some("Oder Nr")),
            ("Oder Nr", "UNKNOWN_COLUMN", None),
            ("Size", "UNKNOWN_COLUMN", None),
            ("reference", "REQUIRED", None),
            ("receiver_line1", "REQUIRED", None),
            ("weight_kg", "REQUIRED", None),
        ];
        assert_eq!(found(&faults), expected);
    }
}
