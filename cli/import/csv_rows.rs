//! Rows of a CSV file become JSON orders, as the API spells them: which character separates cells,
//! which numbers a cell can hold, what is not text.

use std::{
    fs::File,
    io::{BufRead, BufReader, Chain, Read},
};

use csv::{ByteRecord, ReaderBuilder};
use parcelo::Decimal;
use serde_json::{Map, Value, json};

use super::{
    columns::{CellType, Column, Header, Heading},
    file::ImportFile,
    row::{RawRow, RowFault},
};
use crate::{
    failure::Failure,
    texts::{self as words, import as texts},
};

/// The rows of a CSV file after its headings.
pub(super) struct CsvRows {
    reader: Reader,
    /// Lines end with CR LF; the parser counts the LF as part of the next row.
    is_crlf: bool,
    header: Header,
    record: ByteRecord,
    /// Line breaks inside cells so far. They are subtracted from the parser's line number, because a
    /// spreadsheet counts rows, not lines.
    breaks: u64,
    /// The file's bytes and the line break that is appended.
    length: u64,
}

/// A line break is appended to the file, so that the parser stops before the end of the input after
/// every complete row: only a quote that is never closed reads up to it.
type Reader = csv::Reader<Chain<File, &'static [u8]>>;

const SEPARATORS: [u8; 4] = *b",;\t|";

impl CsvRows {
    pub(super) fn new(file: &ImportFile) -> Result<Self, Failure> {
        let (separator, cells) = detect_separator(file)?;
        let is_crlf = is_crlf(file.open()?).map_err(|why| file.unreadable(&why))?;
        let end: &[u8] = if is_crlf { b"\r\n" } else { b"\n\n" };
        let length = file.length().map_err(|why| file.unreadable(&why))? + end.len() as u64;
        let mut reader = reader(separator, file.open()?, end);
        let mut record = ByteRecord::new();
        reader.read_byte_record(&mut record).map_err(|why| file.unreadable(&why.into()))?;
        if cells.iter().all(|cell| cell.trim().is_empty()) {
            return Err(Failure::invalid(words::NO_ORDERS, Vec::new()).hint(texts::SEE_COLUMNS));
        }
        let header = Header::read(&cells).map_err(|faults| {
            Failure::invalid(
                texts::INVALID_HEADINGS,
                faults.into_iter().map(RowFault::into).collect(),
            )
            .hint(texts::SEE_COLUMNS)
        })?;
        let breaks = breaks(&record);
        Ok(Self { reader, is_crlf, header, record, breaks, length })
    }

    pub(super) fn header(&self) -> &Header {
        &self.header
    }

    pub(super) fn next(&mut self) -> std::io::Result<Option<RawRow>> {
        loop {
            if !self.reader.read_byte_record(&mut self.record)? {
                return Ok(None);
            }
            let inside = breaks(&self.record);
            let is_open = self.reader.position().byte() == self.length;
            let own = inside + u64::from(!self.is_crlf && !is_open);
            // Blank lines before the row count as well.
            let start = self.reader.position().line().saturating_sub(own);
            let number = start.saturating_sub(self.breaks);
            self.breaks += inside;
            if self.record.iter().all(|cell| cell.trim_ascii().is_empty()) {
                continue;
            }
            let mut products = Vec::new();
            let body = if is_open {
                Err(Box::new(RowFault::new("QUOTE_NOT_CLOSED", texts::OPEN_QUOTE)))
            } else {
                self.body(&mut products)
            };
            let extra_lines = if is_open { 0 } else { inside };
            return Ok(Some(RawRow { number, body, products, extra_lines }));
        }
    }

    /// True if the row's cell under this heading should be a number and is not.
    pub(super) fn is_misread(&self, spelling: &str) -> bool {
        self.record.iter().zip(self.header.headings()).enumerate().any(
            |(index, (cell, heading))| {
                heading.kind() == Some(CellType::Number)
                    && self.header.spelling(index) == Some(spelling)
                    && std::str::from_utf8(cell).is_ok_and(|cell| number(cell.trim()).is_none())
            },
        )
    }

    fn body(&self, products: &mut Vec<usize>) -> Result<Value, Box<RowFault>> {
        let surplus = self.record.iter().skip(self.header.len());
        if surplus.into_iter().any(|cell| !cell.trim_ascii().is_empty()) {
            return Err(Box::new(RowFault::new("TOO_MANY_CELLS", texts::TOO_MANY_CELLS)));
        }
        let mut order =
            json!({"sender": {"address": {}}, "receiver": {"address": {}}, "parcelDetails": {}});
        let mut items = std::collections::BTreeMap::<usize, Value>::new();
        for (index, (cell, heading)) in self.record.iter().zip(self.header.headings()).enumerate() {
            let cell =
                std::str::from_utf8(cell).map_err(|_| Box::new(self.not_text(index)))?.trim();
            match heading {
                Heading::Note => {}
                _ if cell.is_empty() => {}
                Heading::Field(column) => set(&mut order, column, cell),
                Heading::Product(number, column) => {
                    set(items.entry(number).or_insert_with(|| json!({})), column, cell);
                }
            }
        }
        if !items.is_empty() {
            products.extend(items.keys());
            let items = items.into_values().collect();
            order.as_object_mut().map(|order| order.insert("products".to_owned(), items));
        }
        Ok(order)
    }

    fn not_text(&self, cell: usize) -> RowFault {
        let column = self.header.spelling(cell).map(str::to_owned);
        RowFault { column, ..RowFault::new("NOT_UTF8", texts::NOT_UTF8) }
    }
}

fn reader(separator: u8, file: File, end: &'static [u8]) -> Reader {
    let mut builder = ReaderBuilder::new();
    let builder = builder.delimiter(separator).has_headers(false).flexible(true);
    builder.from_reader(file.chain(end))
}

fn is_crlf(file: File) -> std::io::Result<bool> {
    let mut line = Vec::new();
    BufReader::new(file.take(MAX_HEADER_BYTES)).read_until(b'\n', &mut line)?;
    Ok(line.ends_with(b"\r\n"))
}

/// More than any header row.
const MAX_HEADER_BYTES: u64 = 1 << 20;

/// The separator that yields the most known columns, and the header row split at it.
fn detect_separator(file: &ImportFile) -> Result<(u8, Vec<String>), Failure> {
    let mut best = (0, SEPARATORS[0], Vec::new());
    for separator in SEPARATORS {
        let mut record = ByteRecord::new();
        let mut reader = reader(separator, file.open()?, b"\n");
        reader.read_byte_record(&mut record).map_err(|why| file.unreadable(&why.into()))?;
        let cells: Vec<_> =
            record.iter().map(|cell| String::from_utf8_lossy(cell).into_owned()).collect();
        let known = Header::count_known(&cells);
        if known > best.0 || best.2.is_empty() {
            best = (known, separator, cells);
        }
    }
    Ok((best.1, best.2))
}

fn breaks(record: &ByteRecord) -> u64 {
    record.iter().flatten().filter(|byte| **byte == b'\n').count() as u64
}

/// Sets the field that a column fills.
fn set(order: &mut Value, column: &Column, cell: &str) {
    let value = match column.kind {
        CellType::Text => Value::from(cell),
        CellType::Number => number(cell).unwrap_or_else(|| Value::from(cell)),
    };
    let mut target = order;
    for name in column.path.split('.') {
        if !target.is_object() {
            *target = Value::Object(Map::new());
        }
        target = &mut target[name];
    }
    *target = value;
}

/// A number with a decimal point, or with a decimal comma and one or two digits after it. `1,250` is
/// ambiguous, so it stays text, which the rules reject.
fn number(cell: &str) -> Option<Value> {
    let text = match cell.split_once(',') {
        Some((whole, rest)) if (1..=2).contains(&rest.len()) => format!("{whole}.{rest}"),
        Some(_) => return None,
        None => cell.to_owned(),
    };
    let plain = text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.' || byte == b'-');
    let decimal = text.parse::<Decimal>().ok().filter(|_| plain)?;
    parcelo::model::decimal::to_number(decimal).map(Value::Number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_is_a_number_when_there_is_no_doubt() {
        let table = [
            ("45.50", Some(json!(45.5))),
            ("45,50", Some(json!(45.5))),
            ("7", Some(json!(7))),
            ("007", Some(json!(7))),
            ("-1", Some(json!(-1))),
            ("0,5", Some(json!(0.5))),
            ("1,250", None),
            ("1,250.00", None),
            ("1.250,00", None),
            ("$5", None),
            ("1e3", None),
            ("1_000", None),
            ("", None),
            ("kg", None),
        ];
        for (cell, expected) in table {
            assert_eq!(number(cell), expected, "{cell}");
        }
    }
}
