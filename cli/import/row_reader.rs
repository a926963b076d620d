//! Reads rows as orders, validated with the service's rules. The idempotency key is derived from the row's reference,
//! so that a row never becomes two parcels, however often it is imported.

use std::{
    fs::File,
    io::{BufRead, BufReader, Read},
};

use parcelo::{
    Environment, IdempotencyKey, OrderRequest,
    model::{FaultCode, FieldFault},
    rules::{Accepted, Destinations, OrderContext, check_order},
};
use parcelo_types::internal::parse_body;
use serde_json::{Value, json};

use super::{
    cell,
    csv_rows::CsvRows,
    damaged_text,
    file::{ImportFile, RowFormat},
    header::Header,
    order_rows::OrderRows,
    row::{ProductOrigin, RawRow, Row, RowFault},
    row_settings::RowSettings,
    short_digest, spreadsheet_damage,
};
use crate::{
    failure::Failure,
    texts::{Message, import as texts},
};

/// The rows of a file, one after the other.
pub(crate) struct RowReader<'a> {
    file: &'a ImportFile,
    settings: &'a RowSettings,
    environment: Option<Environment>,
    reader: Reader,
}

enum Reader {
    Csv(Box<OrderRows>),
    Lines(BufReader<File>, u64),
}

impl<'a> RowReader<'a> {
    /// Starts at the first row. The error is a fault of the whole file.
    pub(crate) fn new(
        file: &'a ImportFile,
        settings: &'a RowSettings,
        environment: Option<Environment>,
    ) -> Result<Self, Failure> {
        let reader = match file.format() {
            RowFormat::Csv => {
                let rows = CsvRows::new(file, settings)?;
                Reader::Csv(Box::new(OrderRows::new(rows, settings.columns.one_row_per())))
            }
            RowFormat::Ndjson if !settings.columns.is_empty() => {
                return Err(Failure::usage(texts::MAP_OF_LINES, texts::ONLY_SENDER_OF_LINES));
            }
            RowFormat::Ndjson => Reader::Lines(BufReader::new(file.open()?), 0),
        };
        Ok(Self { file, settings, environment, reader })
    }

    /// Returns the next row; `None` at the end.
    pub(crate) fn next(&mut self) -> Result<Option<Row>, Failure> {
        let raw = match &mut self.reader {
            Reader::Csv(rows) => rows.next(),
            Reader::Lines(lines, number) => next_line(lines, number),
        };
        let raw = raw.map_err(|err| self.file.unreadable(&err))?;
        Ok(raw.map(|raw| self.validate(raw)))
    }

    /// Returns the heading of the reference column; NDJSON has none.
    pub(crate) fn reference_column(&self) -> Option<String> {
        match &self.reader {
            Reader::Csv(rows) => rows.header().column_of(REFERENCE, &[]),
            Reader::Lines(..) => None,
        }
    }

    fn validate(&self, raw: RawRow) -> Row {
        let RawRow { number, reference, body, products, may_contain_rows } = raw;
        let hint = open_quote_hint(may_contain_rows);
        let mut body = match body {
            Ok(body) => body,
            Err(fault) => {
                // A cancelled order was read correctly, so a hint about quotes would be wrong.
                let hint = hint.filter(|_| fault.code != "MUST_BE_EMPTY");
                let faults = [*fault].into_iter().chain(hint).collect();
                return Row::unreadable(number, reference, faults);
            }
        };
        self.settings.complete(&mut body);
        let (mut warnings, mut faults) = (Vec::new(), Vec::new());
        // NDJSON comes from programs, which write telephone numbers correctly.
        if matches!(self.reader, Reader::Csv(_)) {
            spreadsheet_damage::drop_apostrophes(&mut body);
            warnings = spreadsheet_damage::repair_phones(&mut body);
            faults.extend(spreadsheet_damage::find_shortened_numbers(&body));
        }
        faults.extend(damaged_text::find_lost_characters(&body));
        warnings.extend(damaged_text::find_misread_text(&body));
        let (reference, key) = reference_and_key(&mut body);
        let digest = short_digest(&body, "");
        let offline = OrderContext::new(&Destinations::All);
        let context = match self.environment {
            Some(environment) => offline.with_environment(environment),
            None => offline,
        };
        let (checked, more) = match check_order(&body, &context) {
            Ok(Accepted { value, warnings, .. }) => (Some(value), warnings),
            Err(rejected) => {
                // The fault about a shortened number explains more than that of the rules.
                let is_new = |fault: &FieldFault| {
                    !faults.iter().any(|known| known.field.as_ref() == Some(&fault.field))
                };
                let others = rejected.faults.into_iter().filter(is_new);
                let others = others.map(|fault| RowFault::from_field(fault, None));
                let others: Vec<_> = others.map(|fault| with_suggestion(fault, &body)).collect();
                faults.extend(others);
                (None, rejected.warnings)
            }
        };
        warnings.extend(more);
        let locate = |fault| self.locate(fault, &body, (number, &products));
        let faults = faults.into_iter().map(locate);
        let order = match checked {
            Some(order) if faults.len() == 0 => Ok(Box::new(order)),
            _ => Err(faults.chain(hint).collect()),
        };
        let (order, key) = match key {
            Some(key) => (order, key),
            None => (Err(without_reference(order, self.reference_column())), unused_key()),
        };
        Row { number, reference, digest, order, warnings, key }
    }

    /// Adds to a fault its column, its cell and, in a further row of the order, the row.
    fn locate(
        &self,
        fault: RowFault,
        body: &Value,
        (row, products): (u64, &[ProductOrigin]),
    ) -> RowFault {
        let Some(path) = fault.field.clone() else { return fault };
        let value = value_at(body, &path);
        let fault = match value.and_then(cell_text) {
            Some(text) => fault.with_cell(&text),
            None => fault,
        };
        let Reader::Csv(rows) = &self.reader else { return fault };
        let numbers: Vec<_> = products.iter().map(|product| product.number).collect();
        let fault = RowFault { column: rows.header().column_of(&path, &numbers), ..fault };
        // The message of the rules is about JSON types, which a spreadsheet does not have.
        let misread = value.and_then(Value::as_str).filter(|_| Header::is_number(&path));
        let fault = match misread {
            Some(cell) if fault.code == FaultCode::InvalidFormat.code() => {
                fault.with_message(not_a_number(cell))
            }
            Some(_) | None => fault,
        };
        let origin = product_index(&path).and_then(|index| products.get(index));
        match origin {
            Some(origin) if origin.row != row => fault.in_row(origin.row),
            Some(_) | None => fault,
        }
    }
}

fn not_a_number(cell: &str) -> Message {
    match cell::possible_numbers(cell) {
        Some([whole, decimal]) => {
            texts::AMBIGUOUS_NUMBER.with(&[("whole", &whole), ("decimal", &decimal)])
        }
        None => texts::NOT_A_NUMBER.into(),
    }
}

/// Adds suggestions that the rules cannot make: a telephone number with its country code, if the cell has it as dialled
/// within the country, and the code of a currency for its sign.
fn with_suggestion(fault: RowFault, body: &Value) -> RowFault {
    let meant = |field| {
        spreadsheet_damage::suggest_international(body, field)
            .or_else(|| spreadsheet_damage::suggest_currency(body, field))
    };
    match fault.field.as_deref().filter(|_| fault.suggestion.is_none()).and_then(meant) {
        Some(meant) => RowFault { suggestion: Some(meant), ..fault },
        None => fault,
    }
}

/// Returns the value at a path such as `products[0].quantity`.
fn value_at<'v>(body: &'v Value, path: &str) -> Option<&'v Value> {
    body.pointer(&format!("/{}", path.replace(['.', '['], "/").replace(']', "")))
}

fn product_index(path: &str) -> Option<usize> {
    path.strip_prefix("products[")?.split_once(']')?.0.parse().ok()
}

/// Returns the text of a cell; objects and arrays have none.
fn cell_text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(_) | Value::Bool(_) => Some(value.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

/// The field with the caller's reference for the order.
const REFERENCE: &str = "externalOrderId";
const KEY: &str = "idempotencyKey";
/// Namespace of the derived keys. Changing it would create every order a second time.
const NAMESPACE: &str = "parcelo order import";

/// Returns the order's reference, and its idempotency key: the given one, or one derived from the reference.
fn reference_and_key(body: &mut Value) -> (String, Option<IdempotencyKey>) {
    let text = |name: &str| body.get(name).and_then(Value::as_str).unwrap_or_default().trim();
    let (reference, own) = (text(REFERENCE).to_owned(), text(KEY).to_owned());
    let has_own = body.get(KEY).is_some_and(|key| !key.is_null());
    if let Ok(key) = IdempotencyKey::parse(&own) {
        return (if reference.is_empty() { own } else { reference }, Some(key));
    }
    let key = IdempotencyKey::derive(NAMESPACE, &reference);
    // An invalid key stays in the body, so that the rules report it.
    if !has_own && let Value::Object(order) = body {
        order.insert(KEY.to_owned(), json!(key));
    }
    let key = Some(key).filter(|_| !reference.is_empty());
    (reference, key)
}

/// Returns a key for a row that is not sent, because it has no reference.
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

/// Returns a hint for an invalid row that seems to contain other rows.
fn open_quote_hint(may_contain_rows: bool) -> Option<RowFault> {
    may_contain_rows.then(|| RowFault::new("CELL_OF_SEVERAL_LINES", texts::MULTILINE_CELL))
}

impl Row {
    fn unreadable(number: u64, reference: String, faults: Vec<RowFault>) -> Self {
        Self {
            number,
            reference,
            digest: String::new(),
            order: Err(faults),
            warnings: Vec::new(),
            key: unused_key(),
        }
    }
}

/// Maximum size of a body that the service accepts.
const MAX_LINE_BYTES: u64 = 1 << 20;

/// Reads the order in the next line that is not empty, and counts lines in `number`. A line that is too long is a fault.
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
        let (reference, products) = (String::new(), Vec::new());
        return Ok(Some(RawRow {
            number: *number,
            reference,
            body,
            products,
            may_contain_rows: false,
        }));
    }
}
