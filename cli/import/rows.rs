//! Rows become orders, checked by the service's own rules before anything is sent. A row names its
//! order by a reference, and the idempotency key follows from that: the same row never becomes two
//! parcels, however often the file is imported.

use std::{
    fs::File,
    io::{BufRead, BufReader, Read},
};

use parcelo::{
    Environment, IdempotencyKey, OrderRequest,
    model::{FaultCode, FieldFault, Warning, fingerprint},
    rules::{Accepted, Destinations, OrderContext, check_order, parse_body},
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{
    csv_rows::CsvRows,
    file::{ImportFile, RowFormat},
};
use crate::{
    failure::Failure,
    texts::{Message, import as texts},
};

/// What is wrong with a row.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RowFault {
    /// The column's heading; rows of NDJSON have none.
    pub(crate) column: Option<String>,
    /// The field's path in the order.
    pub(crate) field: Option<String>,
    pub(crate) code: String,
    pub(crate) message: String,
    #[serde(rename = "message_es")]
    pub(crate) message_es: String,
    pub(crate) suggestion: Option<String>,
}

/// A row of the file.
#[derive(Debug)]
pub(crate) struct Row {
    /// As a spreadsheet or an editor counts, from 1.
    pub(crate) number: u64,
    /// How the file names the order; empty when it does not.
    pub(crate) reference: String,
    /// What tells this row's content from another's.
    pub(crate) digest: String,
    pub(crate) order: Result<Box<OrderRequest>, Vec<RowFault>>,
    pub(crate) warnings: Vec<Warning>,
    /// Under which it is created.
    pub(crate) key: IdempotencyKey,
}

impl RowFault {
    pub(crate) fn new(code: &str, said: impl Into<Message>) -> Self {
        let said = said.into();
        Self {
            column: None,
            field: None,
            code: code.to_owned(),
            message: said.en,
            message_es: said.es,
            suggestion: None,
        }
    }

    pub(crate) fn of(fault: FieldFault, column: Option<String>) -> Self {
        Self {
            column,
            field: Some(fault.field),
            code: fault.code.code().to_owned(),
            message: fault.message,
            message_es: fault.message_es,
            suggestion: fault.suggestion,
        }
    }

    fn saying(self, said: impl Into<Message>) -> Self {
        let said = said.into();
        Self { message: said.en, message_es: said.es, ..self }
    }

    /// Where it is, for people: the column, else the field.
    pub(crate) fn place(&self) -> &str {
        self.column.as_deref().or(self.field.as_deref()).unwrap_or_default()
    }
}

impl From<RowFault> for FieldFault {
    fn from(fault: RowFault) -> Self {
        let (place, code) = (fault.place().to_owned(), FaultCode::from(&*fault.code));
        let mut shown = Self::new(place, code, (fault.message, fault.message_es));
        shown.suggestion = fault.suggestion;
        shown
    }
}

/// The rows of a file, one after the other.
pub(crate) struct RowReader<'a> {
    content: &'a ImportFile,
    environment: Option<Environment>,
    reader: Reader,
}

enum Reader {
    Csv(Box<CsvRows>),
    Lines(BufReader<File>, u64),
}

/// What a row holds before it is checked.
pub(super) struct RawRow {
    pub(super) number: u64,
    pub(super) body: Result<Value, Box<RowFault>>,
    /// The numbers of the products that it has.
    pub(super) products: Vec<usize>,
    /// The lines that it takes besides its first.
    pub(super) surplus: u64,
}

impl<'a> RowReader<'a> {
    /// Begins to read; what is wrong with the file as a whole is a failure.
    pub(crate) fn of(
        content: &'a ImportFile,
        environment: Option<Environment>,
    ) -> Result<Self, Failure> {
        let reader = match content.form() {
            RowFormat::Csv => Reader::Csv(Box::new(CsvRows::of(content)?)),
            RowFormat::Ndjson => Reader::Lines(BufReader::new(content.open()?), 0),
        };
        Ok(Self { content, environment, reader })
    }

    /// The next row; none at the end.
    pub(crate) fn next(&mut self) -> Result<Option<Row>, Failure> {
        let raw = match &mut self.reader {
            Reader::Csv(rows) => rows.next(),
            Reader::Lines(lines, number) => next_line(lines, number),
        };
        let raw = raw.map_err(|why| self.content.unreadable(&why))?;
        Ok(raw.map(|raw| self.checked(raw)))
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

    fn checked(&self, raw: RawRow) -> Row {
        let RawRow { number, body, products, surplus } = raw;
        let late = late_quote(surplus);
        let mut body = match body {
            Ok(body) => body,
            Err(fault) => {
                return Row::unreadable(number, [*fault].into_iter().chain(late).collect());
            }
        };
        let (reference, key) = named(&mut body);
        let digest = digest_of(&body);
        let mut context = OrderContext::new(&Destinations::All);
        context.environment = self.environment;
        let column = |path: &str| match &self.reader {
            Reader::Csv(rows) => rows.header().column_of(path, &products),
            Reader::Lines(..) => None,
        };
        let located = |fault: FieldFault| {
            let column = column(&fault.field);
            // The rules speak of JSON, which a sheet has none of.
            let is_misread = column.as_deref().is_some_and(|column| self.is_misread(column));
            let is_format = fault.code == FaultCode::InvalidFormat;
            let fault = RowFault::of(fault, column);
            if is_misread && is_format { fault.saying(texts::NO_NUMBER) } else { fault }
        };
        let (order, warnings) = match check_order(&body, &context) {
            Ok(Accepted { value, warnings, .. }) => (Ok(Box::new(value)), warnings),
            Err(rejected) => {
                let faults = rejected.faults.into_iter().map(located);
                (Err(faults.chain(late).collect()), rejected.warnings)
            }
        };
        let (order, key) = match key {
            Some(key) => (order, key),
            None => (Err(nameless(order, column(REFERENCE))), nobody()),
        };
        Row { number, reference, digest, order, warnings, key }
    }
}

/// The field that names an order in the caller's system.
const REFERENCE: &str = "externalOrderId";
const KEY: &str = "idempotencyKey";
/// What derived keys are derived within.
const NAMESPACE: &str = "parcelo order import";

/// The order's reference, and its key: its own if it brings one, else the reference's.
fn named(body: &mut Value) -> (String, Option<IdempotencyKey>) {
    let text = |name: &str| body.get(name).and_then(Value::as_str).unwrap_or_default().trim();
    let (reference, own) = (text(REFERENCE).to_owned(), text(KEY).to_owned());
    let has_own = body.get(KEY).is_some_and(|key| !key.is_null());
    if let Ok(key) = IdempotencyKey::parse(&own) {
        return (if reference.is_empty() { own } else { reference }, Some(key));
    }
    let key = IdempotencyKey::derive(NAMESPACE, &reference);
    // A key of its own that is none stays, for the rules to find.
    if !has_own && let Value::Object(order) = body {
        order.insert(KEY.to_owned(), json!(key));
    }
    let key = Some(key).filter(|_| !reference.is_empty());
    (reference, key)
}

/// Stands in the place of a key where a fault keeps the row from being sent.
fn nobody() -> IdempotencyKey {
    IdempotencyKey::derive(NAMESPACE, "")
}

fn nameless(
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

/// For an invalid row only: a right one may well have a cell of several lines.
fn late_quote(surplus: u64) -> Option<RowFault> {
    let said = || texts::LATE_QUOTE.with(&[("n", &surplus.to_string())]);
    (surplus > 0).then(|| RowFault::new("CELL_OF_SEVERAL_LINES", said()))
}

/// Half of the fingerprint is enough to tell the rows of one file apart.
fn digest_of(body: &Value) -> String {
    let half = fingerprint(body, "").first_chunk().copied().unwrap_or_default();
    format!("{:032x}", u128::from_be_bytes(half))
}

impl Row {
    fn unreadable(number: u64, faults: Vec<RowFault>) -> Self {
        Self {
            number,
            reference: String::new(),
            digest: String::new(),
            order: Err(faults),
            warnings: Vec::new(),
            key: nobody(),
        }
    }
}

/// The most bytes of a line: as many as the service takes.
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
            parse_body(text).map_err(|fault| Box::new(RowFault::of(fault, None)))
        } else {
            Err(Box::new(RowFault::new("TOO_LONG", texts::LONG_LINE)))
        };
        return Ok(Some(RawRow { number: *number, body, products: Vec::new(), surplus: 0 }));
    }
}
