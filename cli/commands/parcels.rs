//! `parcel list`: a page of the parcels, or all of them.

use std::collections::HashSet;

use parcelo::{Client, ListParcels, Page};

use super::service;
use crate::{
    failure::Failure,
    resolve::{Filter, Pages},
    results::{Done, Listing, Results},
    texts,
};

pub(super) async fn list(client: &Client, filter: &Filter, pages: &Pages) -> Result<Done, Failure> {
    match *pages {
        Pages::One { page, limit } => {
            let question = narrowed(client, filter).page(page);
            let question = match limit {
                Some(limit) => question.limit(limit),
                None => question,
            };
            Ok(one_of_many(service::read(question).await?.into_inner()))
        }
        Pages::All { limit } => all(client, filter, limit).await,
    }
}

fn narrowed<'a>(client: &'a Client, filter: &Filter) -> ListParcels<'a> {
    let list = client.parcels().list();
    let list = filter.status.iter().fold(list, ListParcels::status);
    filter.country.iter().fold(list, |list, country| list.country(*country))
}

fn one_of_many(Page { parcels, meta }: Page) -> Done {
    let texts = [
        ("page", meta.page.to_string()),
        ("pages", meta.total_pages.to_string()),
        ("total", meta.total.to_string()),
    ];
    let texts: Vec<_> = texts.iter().map(|(name, text)| (*name, &**text)).collect();
    Done::with(Results::Listed(Listing { parcels, meta: Some(meta) }))
        .note(texts::PAGE_OF.with(&texts))
}

/// All pages, one after the other. An order that is created meanwhile moves the others down the
/// list, so that some of them come twice.
async fn all(client: &Client, filter: &Filter, limit: u32) -> Result<Done, Failure> {
    let (mut parcels, mut seen) = (Vec::new(), HashSet::new());
    for page in 1.. {
        let question = narrowed(client, filter).page(page).limit(limit);
        let answer = service::read(question).await?.into_inner();
        let is_last = answer.parcels.is_empty() || u64::from(page) >= answer.meta.total_pages;
        parcels.extend(answer.parcels.into_iter().filter(|parcel| seen.insert(parcel.id.clone())));
        if is_last {
            break;
        }
    }
    Ok(Done::with(Results::Listed(Listing { parcels, meta: None })))
}
