//! Listing parcels.

use std::future::IntoFuture;

use chrono::{DateTime, Utc};
use futures_util::{FutureExt, future::BoxFuture};

use super::{Client, Error, Reply, call::Call};
use crate::{CountryCode, Envelope, Operation, PageMeta, ParcelStatus, ParcelSummary, model::time};

/// Parcels: [`Client::parcels`].
#[derive(Debug, Clone, Copy)]
pub struct Parcels<'a> {
    client: &'a Client,
}

/// One page of a list, newest parcels first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// The parcels of this page.
    pub parcels: Vec<ParcelSummary>,
    /// Where the page stands in the list.
    pub meta: PageMeta,
}

impl Client {
    /// The caller's parcels.
    pub fn parcels(&self) -> Parcels<'_> {
        Parcels { client: self }
    }
}

impl<'a> Parcels<'a> {
    /// A page of the list, newest first; `.await` it, after narrowing it down if need be.
    ///
    /// Past the end a page is empty. Errors: `Validation`, and those of every call.
    ///
    /// ```no_run
    /// # async fn example(client: parcelo::Client) -> Result<(), parcelo::Error> {
    /// use parcelo::{CountryCode, ParcelStatus};
    ///
    /// let held = client.parcels().list().status(&ParcelStatus::CustomsHold);
    /// let page = held.country(CountryCode::EC).limit(100).await?;
    /// for parcel in &page.parcels {
    ///     println!("{} {}", parcel.tracking_number, parcel.status_name);
    /// }
    /// println!("page {} of {}", page.meta.page, page.meta.total_pages);
    /// # Ok(())
    /// # }
    /// ```
    pub fn list(self) -> ListParcels<'a> {
        ListParcels { client: self.client, query: Vec::new() }
    }
}

/// A question for a page of the list; `.await` it.
#[derive(Debug, Clone)]
#[must_use = "nothing is asked until it is awaited"]
pub struct ListParcels<'a> {
    client: &'a Client,
    query: Vec<(&'static str, String)>,
}

impl ListParcels<'_> {
    /// The page, from 1.
    pub fn page(self, page: u32) -> Self {
        self.with("page", page.to_string())
    }

    /// Parcels on a page, 1-100; 20 when not said.
    pub fn limit(self, limit: u32) -> Self {
        self.with("limit", limit.to_string())
    }

    /// Only parcels in this status.
    pub fn status(self, status: &ParcelStatus) -> Self {
        self.with("status", status.to_string())
    }

    /// Only parcels to this country.
    pub fn country(self, country: CountryCode) -> Self {
        self.with("country", country.to_string())
    }

    /// Only parcels with this id in the caller's system.
    pub fn external_order_id(self, id: impl Into<String>) -> Self {
        self.with("externalOrderId", id.into())
    }

    /// Only parcels created at this time or later.
    pub fn created_from(self, from: DateTime<Utc>) -> Self {
        self.with("createdFrom", time::to_text(from))
    }

    /// Only parcels created before this time.
    pub fn created_to(self, to: DateTime<Utc>) -> Self {
        self.with("createdTo", time::to_text(to))
    }

    fn with(mut self, name: &'static str, value: String) -> Self {
        self.query.push((name, value));
        self
    }
}

impl<'a> IntoFuture for ListParcels<'a> {
    type Output = Result<Reply<Page>, Error>;
    type IntoFuture = BoxFuture<'a, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        async move {
            let query: Vec<_> =
                self.query.iter().map(|(name, value)| (*name, value.as_str())).collect();
            let call = Call::new(Operation::ListParcels).query(&query);
            let reply: Reply<Envelope<Vec<ParcelSummary>, PageMeta>> =
                self.client.json(call).await?;
            Ok(reply.map(|list| Page { parcels: list.data, meta: list.meta }))
        }
        .boxed()
    }
}
