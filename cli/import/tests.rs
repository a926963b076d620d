//! Tests that any file is read without a panic and in the same way twice, and that rows are read as a spreadsheet
//! writes them.

use std::{fs, str};

use csv::{QuoteStyle, Terminator, WriterBuilder};
use parcelo_fuzz::{FuzzRun, Target};
use serde_json::Value;

use super::{
    columns, csv_rows::CsvRows, file::ImportFile, row::RawRow, row_reader::RowReader,
    row_settings::RowSettings,
};
use crate::input::Source;

const TARGET: Target = Target { name: "csv_import", check, cases: 150 };

#[test]
fn the_rows_of_a_file_are_read_as_written() {
    let trial = FuzzRun::new(TARGET, &check);
    trial.replay();
    trial.mutate();
}

#[test]
fn rows_keep_their_numbers_with_mixed_line_endings() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("orders.csv");
    let names: Vec<String> = columns::sample().into_iter().map(|[name, _]| name).collect();
    let rows = "\r\nA-1\nA-2\r\n\r\n\"A\r\n3\"\n\nA-4\r\nA-5";
    fs::write(&path, names.join(",") + rows).unwrap();
    let numbers: Vec<_> = self::rows(&Source::File(path)).into_iter().map(|row| row.0).collect();
    assert_eq!(numbers, [2, 3, 5, 7, 8]);
}

/// Checks the input as a file, and as the cells of a file.
fn check(input: &[u8]) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("orders.csv");
    fs::write(&path, input).unwrap();
    let source = Source::File(path.clone());
    assert_eq!(rows(&source), rows(&source));
    let Ok(text) = str::from_utf8(input) else { return };
    let table: Vec<Vec<&str>> =
        text.split('\n').map(|row| row.splitn(FIELDS.len(), ',').collect()).collect();
    for dialect in DIALECTS {
        fs::write(&path, written(&table, dialect)).unwrap();
        assert_eq!(cells(&source), expected(&table), "{dialect:?}");
    }
}

/// Reads a file. Returns each row's number, reference, digest and key.
fn rows(source: &Source) -> Vec<(u64, String, String, String)> {
    let Ok(file) = ImportFile::open_source(source, None) else { return Vec::new() };
    let settings = RowSettings::default();
    let Ok(mut reader) = RowReader::new(&file, &settings, None) else { return Vec::new() };
    let mut found = Vec::<(u64, String, String, String)>::new();
    while let Ok(Some(row)) = reader.next() {
        assert!(found.last().is_none_or(|(number, ..)| *number < row.number), "{}", row.number);
        found.push((row.number, row.reference, row.digest, row.key.to_string()));
    }
    found
}

/// The form in which a program writes CSV: separator, line end, quotes, and the text before the headings.
type Dialect = (u8, Terminator, QuoteStyle, &'static str);

const DIALECTS: [Dialect; 4] = [
    (b',', Terminator::Any(b'\n'), QuoteStyle::Necessary, ""),
    (b';', Terminator::CRLF, QuoteStyle::Always, "\u{feff}sep=;\r\n"),
    (b'\t', Terminator::Any(b'\n'), QuoteStyle::Always, "\u{feff}"),
    (b'|', Terminator::CRLF, QuoteStyle::Necessary, ""),
];

/// The fields that the cells of a row fill.
const FIELDS: [&str; 4] =
    ["/externalOrderId", "/sender/fullName", "/receiver/address/line1", "/customsInfo/description"];
const HEADINGS: [&str; 4] = ["reference", "sender_name", "receiver_line1", "customs_description"];

fn written(table: &[Vec<&str>], (separator, end, quotes, start): Dialect) -> Vec<u8> {
    let mut writer = WriterBuilder::new();
    let writer = writer.delimiter(separator).terminator(end).quote_style(quotes);
    let mut writer = writer.from_writer(start.as_bytes().to_vec());
    let names: Vec<String> = columns::sample().into_iter().map(|[name, _]| name).collect();
    writer.write_record(&names).unwrap();
    for row in table {
        let cell = |name: &String| {
            let index = HEADINGS.iter().position(|heading| heading == name);
            index.and_then(|index| row.get(index).copied()).unwrap_or_default()
        };
        writer.write_record(names.iter().map(cell)).unwrap();
    }
    writer.into_inner().unwrap()
}

/// Reads a file. Returns the fields of each row.
fn cells(source: &Source) -> Vec<Vec<String>> {
    let file =
        ImportFile::open_source(source, None).unwrap_or_else(|_| panic!("it is a file of rows"));
    let mut rows = CsvRows::new(&file, &RowSettings::default())
        .unwrap_or_else(|_| panic!("it has its headings"));
    let mut found = Vec::new();
    while let Some(RawRow { body, .. }) = rows.next().unwrap() {
        let body = body.unwrap_or_else(|_| panic!("it is text"));
        let text = |field: &&str| body.pointer(field).and_then(Value::as_str).unwrap_or_default();
        found.push(FIELDS.iter().map(text).map(str::to_owned).collect());
    }
    found
}

/// Returns each row that is not empty, with its cells trimmed.
fn expected(table: &[Vec<&str>]) -> Vec<Vec<String>> {
    let cell =
        |row: &Vec<&str>, index: usize| row.get(index).map_or("", |cell| cell.trim()).to_owned();
    let rows = table.iter().map(|row| (0..FIELDS.len()).map(|index| cell(row, index)).collect());
    rows.filter(|row: &Vec<String>| row.iter().any(|cell| !cell.is_empty())).collect()
}
