//! Reads the rows of a CSV file as JSON orders with the field names of the API. It detects the separator, and cells
//! that are not text.

use std::{
    fs::File,
    io::{Chain, Read},
};

use csv::{ByteRecord, ReaderBuilder, Terminator};
use serde_json::{Value, json};

use super::{
    cell,
    column_map::ColumnMap,
    columns::{Heading, normalize},
    file::ImportFile,
    header::Header,
    row::{ProductOrigin, RawRow, RowFault},
    row_settings::RowSettings,
};
use crate::{
    failure::Failure,
    texts::{self as shared_texts, import as texts},
};

/// The rows of a CSV file after its headings.
pub(super) struct CsvRows {
    reader: Reader,
    header: Header,
    separator: u8,
    record: ByteRecord,
    /// The number of line breaks inside cells so far. It is subtracted from the parser's line number, because a
    /// spreadsheet counts rows and not lines.
    breaks: u64,
    /// The length of the file including the two line breaks that are appended.
    length: u64,
}

/// The file with two line breaks appended. Thus the parser stops before the end of the input after every complete row,
/// and reaches the end only if a quote is never closed.
type Reader = csv::Reader<Chain<File, &'static [u8]>>;

const END: &[u8] = b"\n\n";

const SEPARATORS: [u8; 4] = *b",;\t|";

impl CsvRows {
    pub(super) fn new(file: &ImportFile, settings: &RowSettings) -> Result<Self, Failure> {
        let (separator, cells) = headings(file, &settings.columns)?;
        let length = file.length().map_err(|err| file.unreadable(&err))? + END.len() as u64;
        let mut reader = reader(separator, file.open()?);
        let mut record = ByteRecord::new();
        reader.read_byte_record(&mut record).map_err(|err| file.unreadable(&err.into()))?;
        let header = Header::parse(&cells, settings).map_err(|faults| {
            let faults = faults.into_iter().map(RowFault::into).collect();
            Failure::invalid(texts::INVALID_HEADINGS, faults).hint(texts::OTHER_HEADINGS)
        })?;
        let breaks = breaks(&record);
        Ok(Self { reader, header, separator, record, breaks, length })
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
            let own = inside + u64::from(!is_open);
            // Blank lines before the row are counted too.
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
            let products =
                products.into_iter().map(|product| ProductOrigin { row: number, number: product });
            // After an open quote comes the rest of the file, not further cells of the row.
            let reference =
                if is_open { String::new() } else { self.header.reference(&self.record) };
            let products = products.collect();
            let may_contain_rows = !is_open && self.record.iter().any(|cell| self.spans_rows(cell));
            return Ok(Some(RawRow { number, reference, body, products, may_contain_rows }));
        }
    }

    /// Returns `true` for a cell with line breaks and about as many separators as a row has. An unclosed quote extends
    /// to a quote in a later row and so contains rows; an address of several lines has few separators.
    fn spans_rows(&self, cell: &[u8]) -> bool {
        let parts = cell.split(|byte| *byte == self.separator).count();
        cell.contains(&b'\n') && parts * 2 > self.header.len()
    }

    fn body(&self, products: &mut Vec<usize>) -> Result<Value, Box<RowFault>> {
        let mut surplus = self.record.iter().skip(self.header.len());
        if let Some(cell) = surplus.find(|cell| !cell.trim_ascii().is_empty()) {
            let fault = RowFault::new("TOO_MANY_CELLS", texts::TOO_MANY_CELLS);
            return Err(Box::new(fault.with_cell(&String::from_utf8_lossy(cell))));
        }
        if let Some((column, cell)) = self.header.find_forbidden_cell(&self.record) {
            let is_cancelled = normalize(column).contains("cancel");
            let text = if is_cancelled { texts::CANCELLED } else { texts::MUST_BE_EMPTY };
            let fault = RowFault::new("MUST_BE_EMPTY", text).with_cell(&cell);
            return Err(Box::new(RowFault { column: Some(column.to_owned()), ..fault }));
        }
        let mut order =
            json!({"sender": {"address": {}}, "receiver": {"address": {}}, "parcelDetails": {}});
        let mut items = std::collections::BTreeMap::<usize, Value>::new();
        for column in self.header.columns() {
            let text = column.text(&self.record).map_err(|cell| Box::new(self.not_text(cell)))?;
            match column.heading {
                Heading::Note => {}
                _ if text.is_empty() => {}
                Heading::Field(field) => cell::set(&mut order, field, &text),
                Heading::Product(number, field) => {
                    cell::set(items.entry(number).or_insert_with(|| json!({})), field, &text);
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

/// Returns a CSV reader. A row ends at LF; a CR before it is trimmed from the last cell. A file may have both kinds of
/// line breaks, and the LF is counted with its row.
fn reader(separator: u8, file: File) -> Reader {
    let mut builder = ReaderBuilder::new();
    let builder = builder.delimiter(separator).has_headers(false).flexible(true);
    builder.terminator(Terminator::Any(b'\n')).from_reader(file.chain(END))
}

/// Returns the header row, split at the separator that yields the most known columns, and that separator.
pub(super) fn headings(file: &ImportFile, map: &ColumnMap) -> Result<(u8, Vec<String>), Failure> {
    let mut best = ((0, 0), SEPARATORS[0], Vec::new());
    for separator in SEPARATORS {
        let mut record = ByteRecord::new();
        let mut reader = reader(separator, file.open()?);
        reader.read_byte_record(&mut record).map_err(|err| file.unreadable(&err.into()))?;
        let cells: Vec<_> =
            record.iter().map(|cell| String::from_utf8_lossy(cell).into_owned()).collect();
        // Without a known heading, the separator is probably the character that splits the line into the most cells.
        let rank = (Header::count_known(&cells, map), cells.len());
        if rank > best.0 || best.2.is_empty() {
            best = (rank, separator, cells);
        }
    }
    if best.2.iter().all(|cell| cell.trim().is_empty()) {
        return Err(Failure::invalid(shared_texts::NO_ORDERS, Vec::new()).hint(texts::SEE_COLUMNS));
    }
    Ok((best.1, best.2))
}

fn breaks(record: &ByteRecord) -> u64 {
    record.iter().flatten().filter(|byte| **byte == b'\n').count() as u64
}
