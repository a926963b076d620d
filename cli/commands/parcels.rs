//! `parcel list`: a page of the parcels, or all of them; `parcel show`: everything about one of them.

use std::collections::HashSet;

use chrono::{DateTime, Utc};
use parcelo::{
    Client, CountryCode, ParcelStatus, TrackingNumber,
    calls::{ListParcels, Page},
    model::{PageMeta, ParcelSummary, Row},
};
use parcelo_types::internal::ListQuery;

use super::{MAX_PAGE_SIZE, call};
use crate::{
    failure::{Exit, Failure},
    results::{CommandOutcome, Listing, ShownParcel},
    texts::{self, Message},
};

/// The filter of a list.
#[derive(Debug)]
pub(crate) struct ParcelFilter {
    pub(crate) status: Option<ParcelStatus>,
    pub(crate) country: Option<CountryCode>,
    pub(crate) search: Option<String>,
    pub(crate) reference: Option<String>,
    pub(crate) created_from: Option<DateTime<Utc>>,
    /// Only parcels created before this time.
    pub(crate) created_to: Option<DateTime<Utc>>,
}

/// The pages of a list. Without a limit, the service's default page size applies.
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
            let request = apply_filter(client, filter).page(page);
            let request = match limit {
                Some(limit) => request.limit(limit),
                None => request,
            };
            Ok(page_outcome(call::execute_read(request).await?.into_inner()))
        }
        PageSelection::All { limit } => list_all(client, filter, limit).await,
    }
}

fn apply_filter(client: &Client, filter: &ParcelFilter) -> ListParcels {
    let list = client.parcels().list();
    let list = filter.status.iter().fold(list, ListParcels::status);
    let list = filter.country.iter().fold(list, |list, country| list.country(*country));
    let list = filter.search.iter().fold(list, ListParcels::search);
    let list = filter.reference.iter().fold(list, ListParcels::reference);
    let list = filter.created_from.iter().fold(list, |list, from| list.created_from(*from));
    filter.created_to.iter().fold(list, |list, to| list.created_to(*to))
}

fn page_outcome(Page { parcels, meta, .. }: Page) -> CommandOutcome {
    let notes = [page_note(&parcels, &meta), partial_search_warning(meta.is_partial)];
    let done = list_outcome(Listing { parcels, meta: Some(meta) });
    notes.into_iter().flatten().fold(done, CommandOutcome::note)
}

/// Returns the warning that a search may not have found everything.
fn partial_search_warning(is_partial: bool) -> Option<Message> {
    is_partial.then(|| texts::PARTIAL_SEARCH.into())
}

/// Returns the outcome of a list, which is a partial failure if some rows cannot be read.
fn list_outcome(listing: Listing) -> CommandOutcome {
    let (all, rows) = (listing.parcels.len(), listing.parcels.iter());
    let unreadable = rows.filter_map(|row| row.as_ref().err());
    let unreadable = unreadable.map(|row| Failure::for_unreadable_row(Exit::NotExecuted, row));
    let failed: Vec<_> = unreadable.map(|failure| (String::new(), failure)).collect();
    let failure = (!failed.is_empty()).then(|| Failure::for_items(all - failed.len(), all, failed));
    CommandOutcome::report(listing).failing(failure)
}

/// Returns a note about the page's position in the list.
fn page_note(parcels: &[Row<ParcelSummary>], meta: &PageMeta) -> Option<Message> {
    if meta.total == 0 {
        return Some(texts::NO_PARCELS.into());
    }
    let [page, pages, total] =
        [u64::from(meta.page), meta.total_pages, meta.total].map(|number| number.to_string());
    let values = [("page", &*page), ("pages", &*pages), ("total", &*total)];
    (meta.total > parcels.len() as u64).then(|| texts::PAGE_OF.with(&values))
}

/// Fetches all pages, one after the other. New orders move the others down in the meantime, so that a parcel may be on
/// two pages; it is listed once.
async fn list_all(
    client: &Client,
    filter: &ParcelFilter,
    limit: u32,
) -> Result<CommandOutcome, Failure> {
    let (mut parcels, mut seen, mut is_partial) = (Vec::new(), HashSet::new(), false);
    for page in 1.. {
        let request = apply_filter(client, filter).page(page).limit(limit);
        let reply = call::execute_read(request).await?.into_inner();
        is_partial |= reply.meta.is_partial;
        let is_last = reply.parcels.is_empty() || u64::from(page) >= reply.meta.total_pages;
        let mut is_new = |row: &Row<ParcelSummary>| {
            row.as_ref().map_or(true, |parcel| seen.insert(parcel.tracking_number.clone()))
        };
        parcels.extend(reply.parcels.into_iter().filter(&mut is_new));
        if is_last {
            break;
        }
    }
    let notes =
        [parcels.is_empty().then(|| texts::NO_PARCELS.into()), partial_search_warning(is_partial)];
    let done = list_outcome(Listing { parcels, meta: None });
    Ok(notes.into_iter().flatten().fold(done, CommandOutcome::note))
}

/// Shows the parcel whose number, reference or name is the given text; otherwise the only parcel that the search finds.
pub(super) async fn show(client: &Client, wanted: &str) -> Result<CommandOutcome, Failure> {
    let quoted = match ListQuery::quoted(wanted) {
        Some(_) => wanted.to_owned(),
        None => format!("\"{}\"", wanted.trim()),
    };
    let Page { mut parcels, mut meta, .. } = search(client, &quoted).await?;
    // A tracking number identifies one parcel, even if the same text is a reference or a name elsewhere.
    if let Ok(number) = TrackingNumber::parse(wanted) {
        let has_it = |parcel: &&ParcelSummary| parcel.tracking_number == number;
        if let Some(parcel) = parcels.iter().flatten().find(has_it) {
            return show_outcome(client, parcel).await;
        }
    }
    if parcels.is_empty() {
        Page { parcels, meta, .. } = search(client, wanted).await?;
    }
    match &*parcels {
        [] if !meta.is_partial => {
            Err(Failure::new(Exit::NotFound, "PARCEL_NOT_FOUND", texts::NO_PARCELS)
                .hint(texts::SEARCH_HINT))
        }
        [Ok(parcel)] if !meta.is_partial => show_outcome(client, parcel).await,
        _ => Ok(several_matches(parcels, meta)),
    }
}

async fn show_outcome(client: &Client, parcel: &ParcelSummary) -> Result<CommandOutcome, Failure> {
    let request = client.tracking().get(&parcel.tracking_number).history(true);
    let tracking = call::execute_read(request).await?.into_inner();
    Ok(CommandOutcome::report(ShownParcel { parcel: parcel.clone(), tracking }))
}

async fn search(client: &Client, text: &str) -> Result<Page, Failure> {
    Ok(call::execute_read(client.parcels().list().search(text).limit(MAX_PAGE_SIZE))
        .await?
        .into_inner())
}

/// Returns the matching parcels as the outcome, at most the newest ones.
fn several_matches(parcels: Vec<Row<ParcelSummary>>, meta: PageMeta) -> CommandOutcome {
    let (text, hint) = match meta {
        PageMeta { is_partial: true, total: 0, .. } => {
            (texts::NONE_SO_FAR, texts::NOT_ALL_SEARCHED)
        }
        PageMeta { is_partial: true, .. } => (texts::AT_LEAST_PARCELS, texts::NOT_ALL_SEARCHED),
        PageMeta { total, .. } if total > parcels.len() as u64 => {
            (texts::SEVERAL_PARCELS, texts::NARROW_SEARCH)
        }
        _ => (texts::SEVERAL_PARCELS, texts::SHOW_BY_NUMBER),
    };
    let failure = Failure::new(
        Exit::Several,
        "SEVERAL_PARCELS",
        text.with(&[("found", &meta.total.to_string())]),
    );
    let done = list_outcome(Listing { parcels, meta: Some(meta) });
    done.failing(Some(failure.hint(hint)))
}
