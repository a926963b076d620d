//! What comes of a check: the request with its warnings, or all its faults.

use std::{cell::RefCell, fmt};

use serde_json::Value;

use super::{
    fields::Fields,
    reader::{Object, Report},
};
use crate::model::{FieldFault, Warning};

/// A request that keeps the rules; its warnings do not keep it from being carried out.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Accepted<T> {
    /// What it asks for.
    pub value: T,
    /// What is odd about it.
    pub warnings: Vec<Warning>,
}

impl<T> Accepted<T> {
    /// A request about which this is odd.
    pub fn new(value: T, warnings: Vec<Warning>) -> Self {
        Self { value, warnings }
    }
}

/// A request that breaks rules: every fault, in the order of the spec's tables.
///
/// `Display` is one line of paths and codes, without a word of what the request said; the texts of
/// single faults may repeat it.
///
/// ```
/// use parcelo::{Language, OrderRequest};
///
/// let rejected = OrderRequest::builder().build().unwrap_err();
/// let line = rejected.to_string();
/// assert!(line.starts_with("the request breaks the rules: idempotencyKey REQUIRED, sender"));
/// for fault in &rejected.faults {
///     println!("{}: {}", fault.field, fault.text(Language::Es));
/// }
/// ```
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Rejected {
    /// What is wrong with it.
    pub faults: Vec<FieldFault>,
    /// What is odd about it besides.
    pub warnings: Vec<Warning>,
}

impl Rejected {
    /// A request with these faults, and nothing odd besides.
    pub fn new(faults: Vec<FieldFault>) -> Self {
        Self { faults, warnings: Vec::new() }
    }
}

/// Reads a body; faults and warnings come out in the order of `fields`.
pub(crate) fn of<T>(
    body: &Value,
    fields: &Fields,
    read: impl FnOnce(&Object<'_>) -> Option<T>,
) -> Result<Accepted<T>, Rejected> {
    let report = RefCell::default();
    let value = Object::body(body, &report).and_then(|object| read(&object));
    let mut report = report.into_inner();
    fields.sort(&mut report);
    let Report { faults, warnings } = report;
    match value {
        Some(value) if faults.is_empty() => Ok(Accepted { value, warnings }),
        Some(_) | None => Err(Rejected { faults, warnings }),
    }
}

/// Faults that `Display` names one by one.
const NAMED: usize = 5;

impl fmt::Display for Rejected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the request breaks the rules:")?;
        for (i, fault) in self.faults.iter().take(NAMED).enumerate() {
            let comma = if i == 0 { "" } else { "," };
            write!(f, "{comma} {} {}", fault.field, fault.code)?;
        }
        match self.faults.len().saturating_sub(NAMED) {
            0 => Ok(()),
            more => write!(f, " and {more} more"),
        }
    }
}

impl fmt::Debug for Rejected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let faults = self.faults.iter().map(|fault| (&fault.field, &fault.code));
        let warnings = self.warnings.iter().map(|warning| (&warning.field, &warning.code));
        f.debug_struct("Rejected")
            .field("faults", &faults.collect::<Vec<_>>())
            .field("warnings", &warnings.collect::<Vec<_>>())
            .finish()
    }
}

impl std::error::Error for Rejected {}
