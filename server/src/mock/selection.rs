//! Which requests a test asks about.

use std::{collections::VecDeque, fmt};

use parcelo::{ApiKey, Operation};

use super::{log::Recorded, order_names::OrderNames};

/// All requests, unless narrowed down.
#[derive(Debug, Clone, Default)]
pub(super) struct Selection {
    pub(super) operation: Option<Operation>,
    pub(super) key: Option<ApiKey>,
    /// Any name of an order.
    pub(super) order: Option<String>,
}

impl Selection {
    /// Those of the records that it selects, oldest first.
    pub(super) fn among<'r>(
        &self,
        records: &'r VecDeque<Recorded>,
    ) -> impl Iterator<Item = &'r Recorded> {
        let names = self.names(records);
        records.iter().filter(move |record| self.selects(record, names.as_ref()))
    }

    /// Whether it selects a record, which comes after the others.
    pub(super) fn has(&self, record: &Recorded, others: &VecDeque<Recorded>) -> bool {
        let names = self.names(others.iter().chain([record]));
        self.selects(record, names.as_ref())
    }

    /// All names of the order that is asked about.
    fn names<'r>(&self, records: impl IntoIterator<Item = &'r Recorded>) -> Option<OrderNames> {
        self.order.as_deref().map(|order| OrderNames::of(order).completed(records))
    }

    fn selects(&self, record: &Recorded, names: Option<&OrderNames>) -> bool {
        self.operation.is_none_or(|operation| record.operation == Some(operation))
            && self.key.as_ref().is_none_or(|key| record.key.as_ref() == Some(key))
            && names.is_none_or(|names| names.meet(&record.orders))
    }
}

impl fmt::Display for Selection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.operation.map_or("any operation", Operation::name))?;
        if self.key.is_some() {
            f.write_str(" with one key")?;
        }
        match &self.order {
            Some(order) => write!(f, " about {order}"),
            None => Ok(()),
        }
    }
}
