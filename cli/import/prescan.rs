//! The first reading of a file: how many orders it has, how many can be sent, and which rows name
//! the same order.

use std::collections::HashMap;

use super::{row::Row, row_reader::RowReader};
use crate::failure::Failure;

/// What the first reading found. A row costs some hundred bytes here, whatever its length.
#[derive(Debug, Default)]
pub(crate) struct Prescan {
    pub(crate) rows: u64,
    /// Rows that will not be sent because they are wrong.
    pub(crate) faulty: u64,
    orders: HashMap<Box<str>, Seen>,
}

#[derive(Debug)]
struct Seen {
    row: u64,
    is_valid: bool,
    digest: Box<str>,
    /// Another row that says something else of the same order.
    rival: Option<u64>,
}

/// How a row goes with the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Duplicate {
    None,
    /// An earlier row is the same.
    SameAs(u64),
    /// Another row has the same reference and another content.
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
        self.faulty += u64::from(!is_valid);
        if row.reference.is_empty() {
            return;
        }
        match self.orders.get_mut(row.key.as_str()) {
            None => {
                let digest = row.digest.as_str().into();
                let seen = Seen { row: row.number, is_valid, digest, rival: None };
                self.orders.insert(row.key.as_str().into(), seen);
            }
            Some(seen) if *seen.digest == *row.digest => {}
            Some(seen) => {
                self.faulty += u64::from(is_valid);
                self.faulty += u64::from(seen.rival.is_none() && seen.is_valid);
                seen.rival.get_or_insert(row.number);
            }
        }
    }

    pub(crate) fn duplicate(&self, row: &Row) -> Duplicate {
        match self.orders.get(row.key.as_str()) {
            Some(Seen { row: first, rival: Some(rival), .. }) => {
                Duplicate::Conflicts(if *first == row.number { *rival } else { *first })
            }
            Some(Seen { row: first, .. }) if *first != row.number => Duplicate::SameAs(*first),
            Some(_) | None => Duplicate::None,
        }
    }

    /// True when the file has an order under this key.
    pub(crate) fn has(&self, key: &str) -> bool {
        self.orders.contains_key(key)
    }
}
