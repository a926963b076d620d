//! Listing parcels.

use chrono::{DateTime, Utc};

use super::{Client, ItemIter, Request};
use crate::{
    client::ListParcels,
    model::{CountryCode, ParcelStatus, ParcelSummary},
};

/// Parcels: [`Client::parcels`].
#[derive(Debug, Clone, Copy)]
pub struct Parcels<'a> {
    client: &'a Client,
}

impl Client {
    /// Parcels: list them.
    pub fn parcels(&self) -> Parcels<'_> {
        Parcels { client: self }
    }
}

impl<'a> Parcels<'a> {
    /// A page of the list, newest first, with filters if you need them:
    /// [`Parcels::list`](crate::client::Parcels::list).
    ///
    /// ```
    /// # use parcelo_server::mock::MockServer;
    /// use parcelo::{CountryCode, ParcelStatus};
    ///
    /// # let runtime = tokio::runtime::Runtime::new()?;
    /// # let server = runtime.block_on(MockServer::start());
    /// # let client = server.in_memory_builder(&server.key().issue()).build_blocking()?;
    /// let held = client.parcels().list().status(&ParcelStatus::CustomsHold);
    /// let page = held.country(CountryCode::EC).limit(100).send()?;
    /// println!("{} of {}", page.parcels.len(), page.meta.total);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn list(self) -> Request<'a, ListParcels> {
        let Client { inner: client, driver } = self.client;
        Request { request: client.parcels().list(), driver }
    }
}

impl<'a> Request<'a, ListParcels> {
    /// All parcels of the list from its page on: [`ListParcels::stream`] as an iterator.
    ///
    /// ```
    /// # use parcelo_server::mock::MockServer;
    /// # let runtime = tokio::runtime::Runtime::new()?;
    /// # let server = runtime.block_on(MockServer::start());
    /// # let client = server.in_memory_builder(&server.key().issue()).build_blocking()?;
    /// for parcel in client.parcels().list().iter() {
    ///     println!("{}", parcel?.tracking_number);
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn iter(self) -> ItemIter<'a, ParcelSummary> {
        ItemIter::new(self.request.stream(), self.driver)
    }

    /// The page, from 1.
    pub fn page(self, page: u32) -> Self {
        self.map(|list| list.page(page))
    }

    /// Parcels on a page, 1-100. The default is 20.
    pub fn limit(self, limit: u32) -> Self {
        self.map(|list| list.limit(limit))
    }

    /// Only parcels in this status.
    pub fn status(self, status: &ParcelStatus) -> Self {
        self.map(|list| list.status(status))
    }

    /// Only parcels to this country.
    pub fn country(self, country: CountryCode) -> Self {
        self.map(|list| list.country(country))
    }

    /// Only parcels of the order with this id in your system.
    pub fn external_order_id(self, id: impl Into<String>) -> Self {
        self.map(|list| list.external_order_id(id))
    }

    /// Only parcels that people would find by this text: [`ListParcels::search`].
    pub fn search(self, text: impl Into<String>) -> Self {
        self.map(|list| list.search(text))
    }

    /// Only parcels with this reference: [`ListParcels::reference`].
    pub fn reference(self, reference: impl Into<String>) -> Self {
        self.map(|list| list.reference(reference))
    }

    /// Only parcels created at this time or later.
    pub fn created_from(self, from: DateTime<Utc>) -> Self {
        self.map(|list| list.created_from(from))
    }

    /// Only parcels created before this time.
    pub fn created_to(self, to: DateTime<Utc>) -> Self {
        self.map(|list| list.created_to(to))
    }
}
