//! Listing parcels.

mod walk;

use chrono::{DateTime, Utc};
use futures_util::{StreamExt, stream};
use parcelo_types::{
    CountryCode, Operation, ParcelStatus,
    internal::{rows, time},
    model::{PageMeta, ParcelSummary, Row},
};
use serde::Deserialize;

use super::{
    Client, Error, ItemStream, Reply,
    call::{CallFuture, call_settings},
    reply::HasSuccess,
    request::UnsentRequest,
};
use walk::Walk;

const MAX_PAGE_SIZE: u32 = 100;

/// The list of the account's parcels; from [`Client::parcels`].
#[derive(Debug, Clone)]
pub struct Parcels {
    client: Client,
}

/// One page of a list, newest parcels first.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Page {
    /// The parcels of this page. A row that this version cannot read is [`Unreadable`](crate::model::Unreadable).
    pub parcels: Vec<Row<ParcelSummary>>,
    /// The position of the page in the list.
    pub meta: PageMeta,
}

impl Page {
    /// Returns a page with these parcels.
    #[doc(hidden)]
    pub fn new(parcels: Vec<Row<ParcelSummary>>, meta: PageMeta) -> Self {
        Self { parcels, meta }
    }
}

impl Client {
    /// Returns the calls for the list of the account's parcels.
    pub fn parcels(&self) -> Parcels {
        Parcels { client: self.clone() }
    }
}

impl Parcels {
    /// Returns a page of the list, newest first. Add filters if you need them, then `.await` it.
    ///
    /// A page past the end is empty. Errors: `Validation`, and those of every call.
    ///
    /// ```
    #[doc = include_str!("example.txt")]
    /// # client.orders().create(&order).await?; // SB-SUCCESS-0001
    /// use parcelo::{CountryCode, ParcelStatus};
    ///
    /// let held = client.parcels().list().status(&ParcelStatus::CustomsHold);
    /// let page = held.country(CountryCode::EC).limit(100).await?;
    /// for parcel in &page.parcels {
    ///     match parcel {
    ///         Ok(parcel) => println!("{} {}", parcel.tracking_number, parcel.status_name),
    ///         Err(row) => println!("unreadable: {}", row.json()),
    ///     }
    /// }
    /// println!("page {} of {}", page.meta.page, page.meta.total_pages);
    /// # Ok(())
    /// # }
    /// ```
    pub fn list(&self) -> ListParcels {
        ListParcels { client: self.client.clone(), query: Vec::new() }
    }
}

/// A request for a page of the list: `.await` it, or stream the whole list.
#[derive(Debug, Clone)]
#[must_use = "nothing is requested until it is awaited"]
pub struct ListParcels {
    client: Client,
    query: Vec<(&'static str, String)>,
}

call_settings!(ListParcels);

impl ListParcels {
    /// Returns a stream of the parcels of this page and all later ones. It requests 100 at a time unless
    /// [`ListParcels::limit`] is set.
    ///
    /// Each parcel appears once, whatever happens to it and to others in the meantime: the loop may void the parcels of
    /// a list by status. Those that are created in the meantime are left out. (One can be missed where more parcels
    /// than [`ListParcels::limit`] were created in one millisecond, if one of these leaves the list and another enters
    /// it between two requests.) A row that this version cannot read is an error with [`Error::unreadable`], after
    /// which the stream continues; after any other error it ends, such as `Conflict` for a list that changes faster
    /// than it can be read. The stream has a clone of the client, so it can be sent to another task.
    ///
    /// ```
    #[doc = include_str!("example.txt")]
    /// # client.orders().create(&order).await?; // SB-SUCCESS-0001
    /// let mut parcels = client.parcels().list().stream();
    /// while let Some(parcel) = parcels.next().await {
    ///     println!("{}", parcel?.tracking_number);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn stream(self) -> ItemStream<Result<ParcelSummary, Error>> {
        let page = self.query.iter().rfind(|(name, _)| *name == "page");
        let page = page.and_then(|(_, page)| page.parse().ok()).unwrap_or(1);
        let list = if self.has("limit") { self } else { self.limit(MAX_PAGE_SIZE) };
        let walk = Walk::new(list, page);
        let pages = stream::unfold(Some(walk), async |walk| Some(walk?.step().await));
        ItemStream::new(pages.flat_map(stream::iter))
    }

    /// Sets the page, from 1. The default is the first one.
    pub fn page(self, page: u32) -> Self {
        self.with("page", page.to_string())
    }

    /// Sets the number of parcels on a page, 1-100. The default is 20.
    pub fn limit(self, limit: u32) -> Self {
        self.with("limit", limit.to_string())
    }

    /// Includes only parcels in this status.
    ///
    /// ```
    #[doc = include_str!("example.txt")]
    /// # server.seed_parcels(3).await;
    /// use parcelo::{CountryCode, ParcelStatus};
    ///
    /// let labelled = client.parcels().list().status(&ParcelStatus::LabelGenerated);
    /// assert_eq!(labelled.clone().await?.meta.total, 3);
    /// let to_ecuador = labelled.country(CountryCode::EC); // both
    /// assert_eq!(to_ecuador.await?.meta.total, 1);
    /// # Ok(())
    /// # }
    /// ```
    pub fn status(self, status: &ParcelStatus) -> Self {
        self.with("status", status.to_string())
    }

    /// Includes only parcels to this country.
    pub fn country(self, country: CountryCode) -> Self {
        self.with("country", country.to_string())
    }

    /// Includes only parcels of the order with this id in your system.
    pub fn external_order_id(self, id: impl Into<String>) -> Self {
        self.with("externalOrderId", id.into())
    }

    /// Includes only parcels that match this search text: each of its words is the beginning, or the last four
    /// or more characters, of the tracking number, a reference or the air waybill, or the beginning of a word of the
    /// receiver's name. Case, accents and punctuation do not count. A text in quotation marks, `"PO 1001"`, is searched
    /// for as a whole.
    ///
    /// [`PageMeta::is_partial`] says when there may be more than were found. The text is a part of the URL: proxies may
    /// log it.
    ///
    /// ```
    #[doc = include_str!("example.txt")]
    /// # client.orders().create(&order).await?; // SB-SUCCESS-0001 to Luis Paredes
    /// let found = client.parcels().list().search("paredes 0001").await?;
    /// assert_eq!(found.parcels.len(), 1);
    /// # Ok(())
    /// # }
    /// ```
    pub fn search(self, text: impl Into<String>) -> Self {
        self.with("search", text.into())
    }

    /// Includes only parcels with this customer's reference or order id in your system: its beginning, or its last four
    /// or more characters; all of it when it stands in quotation marks.
    pub fn reference(self, reference: impl Into<String>) -> Self {
        self.with("reference", reference.into())
    }

    /// Includes only parcels created at this time or later.
    ///
    /// ```
    #[doc = include_str!("example.txt")]
    /// # server.seed_parcels(3).await;
    /// use chrono::{DateTime, TimeDelta, Utc};
    ///
    /// let day: DateTime<Utc> = "2026-01-05T00:00:00Z".parse()?;
    /// let list = client.parcels().list().created_from(day).created_to(day + TimeDelta::days(1));
    /// assert_eq!(list.await?.meta.total, 3);
    /// # Ok(())
    /// # }
    /// ```
    pub fn created_from(self, from: DateTime<Utc>) -> Self {
        self.with("createdFrom", time::to_text(from))
    }

    /// Includes only parcels created before this time.
    pub fn created_to(self, to: DateTime<Utc>) -> Self {
        self.with("createdTo", time::to_text(to))
    }

    fn has(&self, name: &str) -> bool {
        self.query.iter().any(|(known, _)| *known == name)
    }

    fn with(mut self, name: &'static str, value: String) -> Self {
        self.query.retain(|(known, _)| *known != name);
        self.query.push((name, value));
        self
    }
}

impl IntoFuture for ListParcels {
    type Output = Result<Reply<Page>, Error>;
    type IntoFuture = CallFuture<Reply<Page>>;

    fn into_future(self) -> Self::IntoFuture {
        let query = self.query.iter().map(|(name, value)| (*name, value.as_str()));
        let request = UnsentRequest::new(&self.client, Operation::ListParcels).query(query);
        Box::pin(async {
            let reply: Reply<ListResponse> = self.client.json(request).await?;
            Ok(reply.map(|list| Page { parcels: list.data, meta: list.meta }))
        })
    }
}

/// A page on the wire.
#[derive(Deserialize)]
struct ListResponse {
    success: bool,
    #[serde(with = "rows")]
    data: Vec<Row<ParcelSummary>>,
    meta: PageMeta,
}

impl HasSuccess for ListResponse {
    fn is_success(&self) -> bool {
        self.success
    }
}
