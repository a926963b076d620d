//! The first pass over a file: it counts all rows and the invalid ones, and finds rows with the same reference.

use std::collections::HashMap;

use super::{row::Row, row_reader::RowReader};
use crate::failure::Failure;

/// The findings of the first pass. They take about a hundred bytes per row, even if it is long.
#[derive(Debug, Default)]
pub(crate) struct Prescan {
    pub(crate) rows: u64,
    /// Rows that are not sent, because they break rules or conflict with another row.
    pub(crate) invalid: u64,
    orders: HashMap<Box<str>, FirstRow>,
}

#[derive(Debug)]
struct FirstRow {
    row: u64,
    is_valid: bool,
    digest: Box<str>,
    /// Another row with the same reference and different content.
    conflict: Option<u64>,
}

/// The relation of a row to other rows with the same reference.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Duplicate {
    None,
    /// An earlier row has the same content.
    SameAs(u64),
    /// Another row has different content.
    Conflicts(u64),
}

impl Prescan {
    pub(crate) fn run(mut rows: RowReader<'_>) -> Result<Self, Failure> {
        let mut prescan = Self::default();
        while let Some(row) = rows.next()? {
            prescan.add(&row);
        }
        Ok(prescan)
    }

    fn add(&mut self, row: &Row) {
        self.rows += 1;
        let is_valid = row.order.is_ok();
        self.invalid += u64::from(!is_valid);
        if row.reference.is_empty() {
            return;
        }
        match self.orders.get_mut(row.key.as_str()) {
            None => {
                let digest = row.digest.as_str().into();
                let seen = FirstRow { row: row.number, is_valid, digest, conflict: None };
                self.orders.insert(row.key.as_str().into(), seen);
            }
            Some(seen) if *seen.digest == *row.digest => {}
            Some(seen) => {
                self.invalid += u64::from(is_valid);
                self.invalid += u64::from(seen.conflict.is_none() && seen.is_valid);
                seen.conflict.get_or_insert(row.number);
            }
        }
    }

    pub(crate) fn duplicate(&self, row: &Row) -> Duplicate {
        match self.orders.get(row.key.as_str()) {
            Some(FirstRow { row: first, conflict: Some(conflict), .. }) => {
                Duplicate::Conflicts(if *first == row.number { *conflict } else { *first })
            }
            Some(FirstRow { row: first, .. }) if *first != row.number => Duplicate::SameAs(*first),
            Some(_) | None => Duplicate::None,
        }
    }

    /// Returns `true` if the file has an order with this idempotency key.
    pub(crate) fn contains_key(&self, key: &str) -> bool {
        self.orders.contains_key(key)
    }
}
