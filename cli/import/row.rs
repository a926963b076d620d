//! A row of an import file, before and after validation, and its faults.

use parcelo::{
    IdempotencyKey, OrderRequest,
    model::{FaultCode, FieldFault, Warning},
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    sanitize,
    texts::{self as general, Message, import as texts},
};

/// A fault of a row.
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
    /// The cell's value, in a form that may be shown.
    #[serde(default)]
    pub(crate) value: Option<String>,
}

/// A row of the file.
#[derive(Debug)]
pub(crate) struct Row {
    /// The number of the row in a spreadsheet, or of the line in an editor, from 1.
    pub(crate) number: u64,
    /// The caller's reference for the order; empty if it is missing.
    pub(crate) reference: String,
    /// A digest that is equal for rows with the same content.
    pub(crate) digest: String,
    pub(crate) order: Result<Box<OrderRequest>, Vec<RowFault>>,
    pub(crate) warnings: Vec<Warning>,
    /// The order's idempotency key.
    pub(crate) key: IdempotencyKey,
}

impl RowFault {
    pub(crate) fn new(code: &str, message: impl Into<Message>) -> Self {
        let message = message.into();
        Self {
            column: None,
            field: None,
            code: code.to_owned(),
            message: message.en,
            message_es: message.es,
            suggestion: None,
            value: None,
        }
    }

    pub(crate) fn from_field(fault: FieldFault, column: Option<String>) -> Self {
        let message = Message { en: fault.message, es: fault.message_es };
        let (field, suggestion) = (Some(fault.field), fault.suggestion);
        Self { column, field, suggestion, ..Self::new(fault.code.code(), message) }
    }

    /// Adds the content of the faulty cell.
    pub(super) fn with_cell(self, text: &str) -> Self {
        Self { value: Some(sanitize::quoted(text)), ..self }
    }

    /// Adds the number of the order's further row that has the fault.
    pub(super) fn in_row(self, row: u64) -> Self {
        let row = general::AS_IS.with(&[("value", &row.to_string())]);
        let message = Message { en: self.message.clone(), es: self.message_es.clone() };
        self.with_message(texts::IN_ROW.with_messages(&[("row", &row), ("message", &message)]))
    }

    pub(super) fn with_message(self, message: impl Into<Message>) -> Self {
        let message = message.into();
        Self { message: message.en, message_es: message.es, ..self }
    }

    /// Returns the column, otherwise the field.
    pub(crate) fn location(&self) -> &str {
        self.column.as_deref().or(self.field.as_deref()).unwrap_or_default()
    }
}

impl From<RowFault> for FieldFault {
    fn from(fault: RowFault) -> Self {
        let (location, code) = (fault.location().to_owned(), FaultCode::from(&*fault.code));
        let mut field = Self::new(location, code, (fault.message, fault.message_es));
        field.suggestion = fault.suggestion;
        field
    }
}

/// A row before validation.
pub(super) struct RawRow {
    pub(super) number: u64,
    /// The reference, even if the rest of the row cannot be read.
    pub(super) reference: String,
    pub(super) body: Result<Value, Box<RowFault>>,
    pub(super) products: Vec<ProductOrigin>,
    /// Set if a cell seems to contain further rows, after an open quote.
    pub(super) may_contain_rows: bool,
}

/// The place in the file from which a product of an order comes.
#[derive(Debug, Clone, Copy)]
pub(super) struct ProductOrigin {
    pub(super) row: u64,
    /// The product's number in the headings.
    pub(super) number: usize,
}
