//! `parcel list`: a page of the parcels, or all of them.

use std::collections::HashSet;

use parcelo::{
    Client, CountryCode, ParcelStatus,
    calls::{ListParcels, Page},
    model::{PageMeta, ParcelSummary, Row},
};

use super::call;
use crate::{
    failure::{Exit, Failure},
    results::{CommandOutcome, Listing},
    texts::{self, Message},
};

/// Which parcels a list has.
#[derive(Debug)]
pub(crate) struct ParcelFilter {
    pub(crate) status: Option<ParcelStatus>,
    pub(crate) country: Option<CountryCode>,
}

/// Which of its pages; without a limit the service's default applies.
#[derive(Debug)]
pub(crate) enum PageSelection {
    One { page: u32, limit: Option<u32> },
    All { limit: u32 },
}

pub(super) async fn list(
    client: &Client,
    filter: &ParcelFilter,
    pages: &PageSelection,
) -> Result<CommandOutcome, Failure> {
    match *pages {
        PageSelection::One { page, limit } => {
            let request = narrowed(client, filter).page(page);
            let request = match limit {
                Some(limit) => request.limit(limit),
                None => request,
            };
            Ok(one_of_many(call::read(request).await?.into_inner()))
        }
        PageSelection::All { limit } => all(client, filter, limit).await,
    }
}

fn narrowed(client: &Client, filter: &ParcelFilter) -> ListParcels {
    let list = client.parcels().list();
    let list = filter.status.iter().fold(list, ListParcels::status);
    filter.country.iter().fold(list, |list, country| list.country(*country))
}

fn one_of_many(Page { parcels, meta, .. }: Page) -> CommandOutcome {
    let note = note(&parcels, &meta);
    let done = listed(Listing { parcels, meta: Some(meta) });
    match note {
        Some(note) => done.note(note),
        None => done,
    }
}

/// A list of parcels; rows that cannot be read make it a partial failure.
fn listed(listing: Listing) -> CommandOutcome {
    let (all, rows) = (listing.parcels.len(), listing.parcels.iter());
    let unreadable = rows.filter_map(|row| row.as_ref().err());
    let unreadable = unreadable.map(|row| Failure::unreadable_row(Exit::NotExecuted, row));
    let failed: Vec<_> = unreadable.map(|failure| (String::new(), failure)).collect();
    let failure = (!failed.is_empty()).then(|| Failure::for_items(all - failed.len(), all, failed));
    CommandOutcome::report(listing).failing(failure)
}

/// Which part of the list the page is.
fn note(parcels: &[Row<ParcelSummary>], meta: &PageMeta) -> Option<Message> {
    if meta.total == 0 {
        return Some(texts::NO_PARCELS.into());
    }
    let [page, pages, total] =
        [u64::from(meta.page), meta.total_pages, meta.total].map(|number| number.to_string());
    let places = [("page", &*page), ("pages", &*pages), ("total", &*total)];
    (meta.total > parcels.len() as u64).then(|| texts::PAGE_OF.with(&places))
}

/// All pages, one after the other. An order that is created meanwhile moves the others down the list,
/// so a parcel may be on two pages; it is listed once.
async fn all(
    client: &Client,
    filter: &ParcelFilter,
    limit: u32,
) -> Result<CommandOutcome, Failure> {
    let (mut parcels, mut seen) = (Vec::new(), HashSet::new());
    for page in 1.. {
        let request = narrowed(client, filter).page(page).limit(limit);
        let answer = call::read(request).await?.into_inner();
        let is_last = answer.parcels.is_empty() || u64::from(page) >= answer.meta.total_pages;
        let mut is_new = |row: &Row<ParcelSummary>| {
            row.as_ref().map_or(true, |parcel| seen.insert(parcel.tracking_number.clone()))
        };
        parcels.extend(answer.parcels.into_iter().filter(&mut is_new));
        if is_last {
            break;
        }
    }
    let none = parcels.is_empty();
    let done = listed(Listing { parcels, meta: None });
    Ok(if none { done.note(texts::NO_PARCELS) } else { done })
}
