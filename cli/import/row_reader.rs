//! Rows become orders, checked by the service's own rules. The idempotency key is derived from the
//! row's reference, so that the same row never becomes two parcels, however often it is imported.

use std::{
    fs::File,
    io::{BufRead, BufReader, Read},
};

use parcelo::{
    Environment, IdempotencyKey, OrderRequest,
    model::{FaultCode, FieldFault},
    rules::{Accepted, Destinations, OrderContext, check_order, parse_body},
};
use serde_json::{Value, json};

use super::{
    csv_rows::CsvRows,
    file::{ImportFile, RowFormat},
    row::{RawRow, Row, RowFault},
    short_digest,
};
use crate::{failure::Failure, texts::import as texts};

/// The rows of a file, one after the other.
pub(crate) struct RowReader<'a> {
    file: &'a ImportFile,
    environment: Option<Environment>,
    reader: Reader,
}

enum Reader {
    Csv(Box<CsvRows>),
    Lines(BufReader<File>, u64),
}

impl<'a> RowReader<'a> {
    /// Starts at the first row. Errors: what is wrong with the file as a whole.
    pub(crate) fn new(
        file: &'a ImportFile,
        environment: Option<Environment>,
    ) -> Result<Self, Failure> {
        let reader = match file.format() {
            RowFormat::Csv => Reader::Csv(Box::new(CsvRows::new(file)?)),
            RowFormat::Ndjson => Reader::Lines(BufReader::new(file.open()?), 0),
        };
        Ok(Self { file, environment, reader })
    }

    /// The next row; none at the end.
    pub(crate) fn next(&mut self) -> Result<Option<Row>, Failure> {
        let raw = match &mut self.reader {
            Reader::Csv(rows) => rows.next(),
            Reader::Lines(lines, number) => next_line(lines, number),
        };
        let raw = raw.map_err(|why| self.file.unreadable(&why))?;
        Ok(raw.map(|raw| self.validate(raw)))
    }

    /// The column of the reference, as the file spells it; lines have none.
    pub(crate) fn reference_column(&self) -> Option<String> {
        match &self.reader {
            Reader::Csv(rows) => rows.header().column_of(REFERENCE, &[]),
            Reader::Lines(..) => None,
        }
    }

    fn is_misread(&self, column: &str) -> bool {
        matches!(&self.reader, Reader::Csv(rows) if rows.is_misread(column))
    }

    fn validate(&self, raw: RawRow) -> Row {
        let RawRow { number, body, products, extra_lines } = raw;
        let hint = open_quote_hint(extra_lines);
        let mut body = match body {
            Ok(body) => body,
            Err(fault) => {
                return Row::unreadable(number, [*fault].into_iter().chain(hint).collect());
            }
        };
        let (reference, key) = reference_and_key(&mut body);
        let digest = short_digest(&body, "");
        let mut context = OrderContext::new(&Destinations::All);
        context.environment = self.environment;
        let column = |path: &str| match &self.reader {
            Reader::Csv(rows) => rows.header().column_of(path, &products),
            Reader::Lines(..) => None,
        };
        let locate = |fault: FieldFault| {
            let column = column(&fault.field);
            // The rules' message is about JSON types, which a spreadsheet does not have.
            let is_misread = column.as_deref().is_some_and(|column| self.is_misread(column));
            let is_format = fault.code == FaultCode::InvalidFormat;
            let fault = RowFault::from_field(fault, column);
            if is_misread && is_format { fault.with_message(texts::NOT_A_NUMBER) } else { fault }
        };
        let (order, warnings) = match check_order(&body, &context) {
            Ok(Accepted { value, warnings, .. }) => (Ok(Box::new(value)), warnings),
            Err(rejected) => {
                let faults = rejected.faults.into_iter().map(locate);
                (Err(faults.chain(hint).collect()), rejected.warnings)
            }
        };
        let (order, key) = match key {
            Some(key) => (order, key),
            None => (Err(without_reference(order, column(REFERENCE))), unused_key()),
        };
        Row { number, reference, digest, order, warnings, key }
    }
}

/// The field with the caller's own number of the order.
const REFERENCE: &str = "externalOrderId";
const KEY: &str = "idempotencyKey";
/// Namespace of the derived keys. Changing it would create every order a second time.
const NAMESPACE: &str = "parcelo order import";

/// The order's reference, and its idempotency key: its own if it has one, else derived from the
/// reference.
fn reference_and_key(body: &mut Value) -> (String, Option<IdempotencyKey>) {
    let text = |name: &str| body.get(name).and_then(Value::as_str).unwrap_or_default().trim();
    let (reference, own) = (text(REFERENCE).to_owned(), text(KEY).to_owned());
    let has_own = body.get(KEY).is_some_and(|key| !key.is_null());
    if let Ok(key) = IdempotencyKey::parse(&own) {
        return (if reference.is_empty() { own } else { reference }, Some(key));
    }
    let key = IdempotencyKey::derive(NAMESPACE, &reference);
    // An invalid key of its own stays in the body, for the rules to report.
    if !has_own && let Value::Object(order) = body {
        order.insert(KEY.to_owned(), json!(key));
    }
    let key = Some(key).filter(|_| !reference.is_empty());
    (reference, key)
}

/// The key of a row that is not sent because it has no reference.
fn unused_key() -> IdempotencyKey {
    IdempotencyKey::derive(NAMESPACE, "")
}

fn without_reference(
    order: Result<Box<OrderRequest>, Vec<RowFault>>,
    column: Option<String>,
) -> Vec<RowFault> {
    let fault = RowFault {
        column,
        field: Some(REFERENCE.to_owned()),
        ..RowFault::new("REQUIRED", texts::NO_REFERENCE)
    };
    [fault].into_iter().chain(order.err().into_iter().flatten()).collect()
}

/// Added to invalid rows only: a valid row may well have a cell of several lines.
fn open_quote_hint(extra_lines: u64) -> Option<RowFault> {
    let message = || texts::MULTILINE_CELL.with(&[("n", &extra_lines.to_string())]);
    (extra_lines > 0).then(|| RowFault::new("CELL_OF_SEVERAL_LINES", message()))
}

impl Row {
    fn unreadable(number: u64, faults: Vec<RowFault>) -> Self {
        Self {
            number,
            reference: String::new(),
            digest: String::new(),
            order: Err(faults),
            warnings: Vec::new(),
            key: unused_key(),
        }
    }
}

/// The service accepts no larger body.
const MAX_LINE_BYTES: u64 = 1 << 20;

fn next_line(lines: &mut BufReader<File>, number: &mut u64) -> std::io::Result<Option<RawRow>> {
    loop {
        let mut line = Vec::new();
        if lines.by_ref().take(MAX_LINE_BYTES).read_until(b'\n', &mut line)? == 0 {
            return Ok(None);
        }
        *number += 1;
        let is_whole = line.ends_with(b"\n") || (line.len() as u64) < MAX_LINE_BYTES;
        if !is_whole {
            lines.skip_until(b'\n')?;
        }
        let text = line.trim_ascii();
        if text.is_empty() && is_whole {
            continue;
        }
        let body = if is_whole {
            parse_body(text).map_err(|fault| Box::new(RowFault::from_field(fault, None)))
        } else {
            Err(Box::new(RowFault::new("TOO_LONG", texts::LONG_LINE)))
        };
        return Ok(Some(RawRow { number: *number, body, products: Vec::new(), extra_lines: 0 }));
    }
}
