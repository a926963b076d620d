//! A walk through a whole list while its parcels are created, voided and moved. It follows creation times and not
//! pages: each request is for rows that are at least as old as the last one, so that parcels that enter or leave the
//! list before it do not shift the rest. Rows of the same millisecond are returned again, and skipped.

use std::collections::HashSet;

use chrono::{DateTime, TimeDelta, Utc};
use parcelo_types::model::{ParcelSummary, Row};

use super::{ListParcels, Page};
use crate::client::{Error, ErrorKind, error::Texts};

/// Maximum number of times that a walk begins again with the same millisecond and finds nothing new. It takes a change
/// between every two requests to need more.
const MAX_RESTARTS: u32 = 10;
const CHANGING: Texts = (
    "The list changes faster than it can be read.",
    "La lista cambia más rápido de lo que se puede leer.",
);

/// A walk through a list, before its next request.
pub(super) struct Walk {
    list: ListParcels,
    /// The number of the page; above 1 only if more rows of one millisecond exist than fit on a page.
    page: u32,
    /// The creation time of the last row; `list` contains nothing newer.
    oldest: Option<DateTime<Utc>>,
    /// The rows of that millisecond.
    seen: HashSet<String>,
    /// The length of the list when it was last requested.
    total: u64,
    /// The number of times that the walk restarted with that millisecond since it last found something new.
    restarts: u32,
}

impl Walk {
    pub(super) fn new(list: ListParcels, page: u32) -> Self {
        Self { list, page, oldest: None, seen: HashSet::new(), total: 0, restarts: 0 }
    }

    /// Makes the next request. Returns its rows, and the walk after it, unless the list has ended or the request
    /// failed.
    pub(super) async fn step(self) -> (Vec<Result<ParcelSummary, Error>>, Option<Self>) {
        let reply = match self.list.clone().page(self.page).await {
            Ok(reply) => reply,
            Err(error) => return (vec![Err(error)], None),
        };
        let Page { parcels, meta } = &*reply;
        let is_last = parcels.is_empty() || u64::from(self.page) >= meta.total_pages;
        // Rows that left the list since the last page have shifted others onto that page.
        let has_moved = self.page > 1 && self.oldest.is_some() && meta.total != self.total;
        let new = parcels.iter().filter(|row| !self.seen.contains(&id(row)));
        let rows = new.cloned().map(|row| row.map_err(|row| reply.unreadable_row(row)));
        let mut rows: Vec<_> = rows.collect();
        let restarts = if rows.is_empty() { self.restarts } else { 0 };
        let walk = Self { total: meta.total, restarts, ..self };
        let next = match (has_moved, is_last) {
            (true, _) if walk.restarts == MAX_RESTARTS => {
                rows.push(Err(Error::new(ErrorKind::Conflict, CHANGING)));
                None
            }
            (true, _) => Some(walk.restart(parcels)),
            (false, true) => None,
            (false, false) => Some(walk.advance(parcels)),
        };
        (rows, next)
    }

    /// Continues after the last row, or on the next page if all rows have the same millisecond or unknown times.
    fn advance(self, parcels: &[Row<ParcelSummary>]) -> Self {
        let oldest = parcels.iter().filter_map(created_at).min();
        let seen = parcels.iter().filter(|row| created_at(row).is_none_or(|at| Some(at) == oldest));
        let seen = seen.map(id);
        let from = oldest.and_then(|oldest| oldest.checked_add_signed(TimeDelta::milliseconds(1)));
        if let Some(from) = from.filter(|_| oldest != self.oldest) {
            let list = self.list.created_to(from);
            return Self { list, page: 1, oldest, seen: seen.collect(), restarts: 0, ..self };
        }
        let (page, seen) = (self.page.saturating_add(1), self.seen.into_iter().chain(seen));
        Self { page, seen: seen.collect(), ..self }
    }

    /// Restarts with the first page of the millisecond.
    fn restart(mut self, parcels: &[Row<ParcelSummary>]) -> Self {
        self.seen.extend(parcels.iter().map(id));
        Self { page: 1, restarts: self.restarts + 1, ..self }
    }
}

fn created_at(row: &Row<ParcelSummary>) -> Option<DateTime<Utc>> {
    match row {
        Ok(parcel) => Some(parcel.created_at),
        Err(row) => row.member("createdAt"),
    }
}

fn id(row: &Row<ParcelSummary>) -> String {
    match row {
        Ok(parcel) => parcel.id.to_string(),
        Err(row) => row.member("id").unwrap_or_else(|| row.json().to_string()),
    }
}
