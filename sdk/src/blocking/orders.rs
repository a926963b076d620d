//! Creating, finding and voiding orders.

use super::{Client, CreateMany};
use crate::{
    client::{Error, Reply},
    model::{
        CreatedOrder, OrderRequest, ParcelSummary, VoidManyRequest, VoidRequest, VoidedOrders,
    },
};

/// Orders: [`Client::orders`].
#[derive(Debug, Clone, Copy)]
pub struct Orders<'a> {
    client: &'a Client,
}

impl Client {
    /// Orders.
    pub fn orders(&self) -> Orders<'_> {
        Orders { client: self }
    }
}

impl<'a> Orders<'a> {
    /// Creates an order: [`Orders::create`](crate::client::Orders::create).
    ///
    /// ```
    /// # use parcelo_server::mock::MockServer;
    /// # let runtime = tokio::runtime::Runtime::new()?;
    /// # let server = runtime.block_on(MockServer::start());
    /// # let client = server.in_memory_builder(&server.key().issue()).build_blocking()?;
    /// # let order = serde_json::from_str(parcelo_server::mock::sample::ORDER)?;
    /// let created = client.orders().create(&order)?;
    /// println!("{} {:?}", created.parcel.tracking_number, created.parcel.label_url);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn create(self, order: &OrderRequest) -> Result<Reply<CreatedOrder>, Error> {
        self.client.driver.call(self.client.inner.orders().create(order))
    }

    /// Creates the orders of an iterator, several at a time:
    /// [`Orders::create_many`](crate::client::Orders::create_many).
    ///
    /// ```
    /// # use parcelo_server::mock::MockServer;
    /// # let runtime = tokio::runtime::Runtime::new()?;
    /// # let server = runtime.block_on(MockServer::start());
    /// # let client = server.in_memory_builder(&server.key().issue()).build_blocking()?;
    /// # let orders: Vec<_> = [serde_json::from_str(parcelo_server::mock::sample::ORDER)?].into();
    /// for (index, created) in client.orders().create_many(orders).concurrency(16) {
    ///     match created {
    ///         Ok(created) => println!("{index}: {}", created.parcel.tracking_number),
    ///         Err(error) => eprintln!("{index}: {error}"),
    ///     }
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn create_many<I>(self, orders: I) -> CreateMany<'a, I::IntoIter>
    where
        I: IntoIterator<Item = OrderRequest>,
    {
        CreateMany::new(self.client.inner.orders().create_many(orders), &self.client.driver)
    }

    /// All parcels of an order, by its id in your system: [`Orders::find`](crate::client::Orders::find).
    ///
    /// ```
    /// # use parcelo_server::mock::MockServer;
    /// # let runtime = tokio::runtime::Runtime::new()?;
    /// # let server = runtime.block_on(MockServer::start());
    /// # let client = server.in_memory_builder(&server.key().issue()).build_blocking()?;
    /// for parcel in client.orders().find("1001")? {
    ///     println!("{} {}", parcel.tracking_number, parcel.status);
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn find(self, external_order_id: &str) -> Result<Vec<ParcelSummary>, Error> {
        self.client.driver.call(self.client.inner.orders().find(external_order_id))
    }

    /// Voids 1-100 orders: [`Orders::void`](crate::client::Orders::void).
    ///
    /// ```
    /// # use parcelo_server::mock::MockServer;
    /// use parcelo::{IdempotencyKey, VoidRequest};
    ///
    /// # let runtime = tokio::runtime::Runtime::new()?;
    /// # let server = runtime.block_on(MockServer::start());
    /// # let client = server.in_memory_builder(&server.key().issue()).build_blocking()?;
    /// # let order = serde_json::from_str(parcelo_server::mock::sample::ORDER)?;
    /// # let numbers = [client.orders().create(&order)?.into_inner().parcel.tracking_number];
    /// let request = VoidRequest::new(IdempotencyKey::random(), &numbers).with_reason("Sold out");
    /// for result in client.orders().void(&request)?.into_inner().results {
    ///     let result = result?; // an error is a row that this version cannot read
    ///     println!("{}: {}", result.tracking_number, result.voided);
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn void(self, request: &VoidRequest) -> Result<Reply<VoidedOrders>, Error> {
        self.client.driver.call(self.client.inner.orders().void(request))
    }

    /// Voids any number of orders: [`Orders::void_many`](crate::client::Orders::void_many).
    ///
    /// ```
    /// # use parcelo_server::mock::MockServer;
    /// use parcelo::{IdempotencyKey, VoidManyRequest};
    ///
    /// # let runtime = tokio::runtime::Runtime::new()?;
    /// # let server = runtime.block_on(MockServer::start());
    /// # let client = server.in_memory_builder(&server.key().issue()).build_blocking()?;
    /// # let numbers = runtime.block_on(server.seed_parcels(3));
    /// let key = IdempotencyKey::derive("recalls", "2026-01-10");
    /// let voided = client.orders().void_many(&VoidManyRequest::new(&key, &numbers))?;
    /// assert_eq!(voided.summary.voided, 3);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn void_many(self, request: &VoidManyRequest) -> Result<VoidedOrders, Error> {
        self.client.driver.call(self.client.inner.orders().void_many(request))
    }
}
