//! The orders of a CSV file: each row is an order, or consecutive rows with the same reference are the products of one.

use std::io;

use serde_json::Value;

use super::{
    column_map::OneRowPer,
    csv_rows::CsvRows,
    header::Header,
    row::{RawRow, RowFault},
};
use crate::texts::import as texts;

/// The orders of a CSV file, one after the other.
pub(super) struct OrderRows {
    rows: CsvRows,
    one_row_per: OneRowPer,
    /// The first row of the next order, which was read ahead.
    ahead: Option<RawRow>,
}

impl OrderRows {
    pub(super) fn new(rows: CsvRows, one_row_per: OneRowPer) -> Self {
        Self { rows, one_row_per, ahead: None }
    }

    pub(super) fn header(&self) -> &Header {
        self.rows.header()
    }

    pub(super) fn next(&mut self) -> io::Result<Option<RawRow>> {
        let first = match self.ahead.take() {
            Some(row) => Some(row),
            None => self.rows.next()?,
        };
        let Some(mut order) = first else { return Ok(None) };
        while self.one_row_per == OneRowPer::Product {
            let Some(row) = self.rows.next()? else { break };
            if !continues(&order, &row) {
                self.ahead = Some(row);
                break;
            }
            self.add(&mut order, row);
        }
        Ok(Some(order))
    }

    /// Adds a further row to an order. A fault in it is a fault of the order, which would otherwise be sent without a
    /// product.
    fn add(&self, order: &mut RawRow, row: RawRow) {
        order.may_contain_rows |= row.may_contain_rows;
        let Ok(body) = &mut order.body else { return };
        let mut more = match row.body {
            Ok(more) => more,
            Err(fault) => {
                order.body = Err(Box::new(fault.in_row(row.number)));
                return;
            }
        };
        let products = more.as_object_mut().and_then(|more| more.remove("products"));
        if let Some(path) = difference(body, &more, "") {
            let numbers: Vec<_> = order.products.iter().map(|one| one.number).collect();
            let column = self.rows.header().column_of(&path, &numbers);
            let message = texts::ROWS_DIFFER.with(&[("row", &row.number.to_string())]);
            let fault = RowFault::new("ROWS_DIFFER", message);
            order.body = Err(Box::new(RowFault { column, field: Some(path), ..fault }));
            return;
        }
        if let (Some(Value::Array(products)), Value::Object(order)) = (products, body) {
            let known = order.entry("products").or_insert_with(|| Value::Array(Vec::new()));
            if let Value::Array(known) = known {
                known.extend(products);
            }
        }
        order.products.extend(row.products);
    }
}

/// Returns `true` if the row may belong to the order; a row without a readable reference may.
fn continues(order: &RawRow, row: &RawRow) -> bool {
    let is_same = !row.reference.is_empty() && row.reference == order.reference;
    is_same || (row.reference.is_empty() && row.body.is_err())
}

/// Returns the path of a field in which a further row contradicts the first one, or which the first one lacks.
fn difference(first: &Value, more: &Value, path: &str) -> Option<String> {
    match more {
        Value::Object(members) => members.iter().find_map(|(name, value)| {
            let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
            difference(first.get(name).unwrap_or(&Value::Null), value, &path)
        }),
        leaf => (leaf != first).then(|| path.to_owned()),
    }
}
