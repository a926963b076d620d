//! A selection of requests in the log.

use std::{collections::VecDeque, fmt, sync::Arc};

use parcelo_types::{ApiKey, Operation};

use super::{order_names::OrderNames, recorded_request::RecordedRequest};

/// A filter of requests; by default it selects all.
#[derive(Debug, Clone, Default)]
pub(super) struct Selection {
    pub(super) operation: Option<Operation>,
    pub(super) key: Option<ApiKey>,
    /// Any name of an order.
    pub(super) order: Option<String>,
    pub(super) predicates: Vec<Predicate>,
}

/// A condition of the test's choice, with its description for messages.
#[derive(Clone)]
pub(super) struct Predicate {
    pub(super) description: String,
    pub(super) holds: Arc<dyn Fn(&RecordedRequest) -> bool + Send + Sync>,
}

impl fmt::Debug for Predicate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.description)
    }
}

impl Selection {
    /// Returns the selected records, oldest first.
    pub(super) fn filter<'r>(
        &self,
        records: &'r VecDeque<RecordedRequest>,
    ) -> impl Iterator<Item = &'r RecordedRequest> {
        let names = self.names(records);
        records.iter().filter(move |record| self.selects(record, names.as_ref()))
    }

    /// Returns `true` if it selects a record. `others` are the earlier records, which may name the same order.
    pub(super) fn matches(
        &self,
        record: &RecordedRequest,
        others: &VecDeque<RecordedRequest>,
    ) -> bool {
        let names = self.names(others.iter().chain([record]));
        self.selects(record, names.as_ref())
    }

    /// Returns all names of the selected order.
    fn names<'r>(
        &self,
        records: impl IntoIterator<Item = &'r RecordedRequest>,
    ) -> Option<OrderNames> {
        self.order.as_deref().map(|order| related_names(&OrderNames::from_name(order), records))
    }

    fn selects(&self, record: &RecordedRequest, names: Option<&OrderNames>) -> bool {
        self.operation.is_none_or(|operation| record.operation == Some(operation))
            && self.key.as_ref().is_none_or(|key| record.key.as_ref() == Some(key))
            && names.is_none_or(|names| names.overlaps(&record.orders))
            && self.predicates.iter().all(|predicate| (predicate.holds)(record))
    }
}

/// Adds all other names of the same orders: the requests that created them contain several.
pub(super) fn related_names<'r>(
    known: &OrderNames,
    records: impl IntoIterator<Item = &'r RecordedRequest>,
) -> OrderNames {
    let mut all = known.clone();
    records
        .into_iter()
        .filter(|record| record.operation == Some(Operation::CreateOrder))
        .filter(|creation| creation.orders.overlaps(known))
        .for_each(|creation| all.extend(&creation.orders));
    all
}

impl fmt::Display for Selection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.operation.map_or("any operation", Operation::name))?;
        if self.key.is_some() {
            f.write_str(" with one key")?;
        }
        if let Some(order) = &self.order {
            write!(f, " about {order}")?;
        }
        self.predicates.iter().try_for_each(|predicate| write!(f, " {}", predicate.description))
    }
}
