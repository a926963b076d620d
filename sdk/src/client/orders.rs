//! Orders.

use super::{Client, CreateMany, Error, Reply, call::Call};
use crate::model::{
    CreatedOrder, ErrorBody, Operation, OrderRequest, Row, VoidManyRequest, VoidRequest,
    VoidResult, VoidedOrders,
};

/// Creating orders, one or many, and voiding them; from [`Client::orders`].
#[derive(Debug, Clone, Copy)]
pub struct Orders<'a> {
    client: &'a Client,
}

impl Client {
    /// Orders: create one or many, void them.
    pub fn orders(&self) -> Orders<'_> {
        Orders { client: self }
    }
}

impl Orders<'_> {
    /// Creates an order: the parcel gets its tracking number and its label (docs/api.md, Create an
    /// order).
    ///
    /// Sending the same request again with the same API key, even from another process or after the
    /// API key got a new secret, creates nothing twice for 24 hours: its idempotency key tells the
    /// service, which answers as it did the first time.
    ///
    /// Errors: `Validation` with the fields at fault, `CountryNotAllowed`, `Conflict` (the tracking
    /// number exists, or the key was used with another request), and those of every call.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = parcelo_server::mock::MockServer::start().await;
    /// # let client = server.client(&server.key().issue());
    /// # let order: parcelo::OrderRequest = serde_json::from_str(parcelo_server::core::sample::ORDER)?;
    /// let created = client.orders().create(&order).await?;
    /// println!("{} {:?}", created.parcel.tracking_number, created.parcel.label_url);
    /// for warning in &created.warnings {
    ///     println!("{}: {}", warning.field, warning.message);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn create(self, order: &OrderRequest) -> Result<Reply<CreatedOrder>, Error> {
        let call = Call::new(Operation::CreateOrder).keyed(&order.idempotency_key).body(order)?;
        self.client.json(call).await
    }

    /// Creates the orders of an iterator, 8 at a time unless
    /// [`CreateMany::concurrency`](crate::client::CreateMany::concurrency) says otherwise: a stream of each
    /// one's place in the iterator and its result.
    ///
    /// Calls go on by themselves while the loop saves a label or asks for something else, on the tokio
    /// runtime in which the stream is polled. Orders with derived keys can be imported again after a
    /// crash: what was created is replayed. One that fails does not stop the others, and errors are
    /// those of [`Orders::create`].
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = parcelo_server::mock::MockServer::start().await;
    /// # let client = server.client(&server.key().issue());
    /// # let order: parcelo::OrderRequest = serde_json::from_str(parcelo_server::core::sample::ORDER)?;
    /// # let mut other = order.clone().with_idempotency_key(parcelo::IdempotencyKey::random());
    /// # other.tracking_number = None;
    /// # let orders = [order, other];
    /// let mut creations = client.orders().create_many(orders).concurrency(16);
    /// while let Some((place, created)) = creations.next().await {
    ///     match created {
    ///         Ok(created) => println!("{place}: {}", created.parcel.tracking_number),
    ///         Err(error) => eprintln!("{place}: {error}"),
    ///     }
    /// }
    /// # assert_eq!(client.parcels().list().await?.meta.total, 2);
    /// # Ok(())
    /// # }
    /// ```
    pub fn create_many<I>(self, orders: I) -> CreateMany<I::IntoIter>
    where
        I: IntoIterator<Item = OrderRequest>,
    {
        CreateMany::new(self.client, orders.into_iter())
    }

    /// Voids 1-100 orders: their labels can no longer be used.
    ///
    /// An order can be voided until its parcel is in a manifest or with the carrier (docs/api.md, Void
    /// orders). Some of them may fail: each has a result of its own, and an order that was void before
    /// counts as voided.
    ///
    /// Errors, when none could be voided: `NotFound` or `Conflict`, and
    /// [`ErrorBody::void_results`](crate::model::ErrorBody::void_results) says why for each; `Validation`,
    /// and those of every call.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = parcelo_server::mock::MockServer::start().await;
    /// # let client = server.client(&server.key().issue());
    /// # let order: parcelo::OrderRequest = serde_json::from_str(parcelo_server::core::sample::ORDER)?;
    /// # client.orders().create(&order).await?; // SB-SUCCESS-0001
    /// use parcelo::{IdempotencyKey, TrackingNumber, VoidRequest};
    ///
    /// let numbers = [TrackingNumber::parse("SB-SUCCESS-0001")?];
    /// let key = IdempotencyKey::derive("cancellations", "2026-01-10");
    /// let request = VoidRequest::new(key, &numbers).with_reason("Sold out");
    /// let voided = client.orders().void(&request).await?;
    /// for result in &voided.results {
    ///     match result {
    ///         Ok(result) => println!("{}: {}", result.tracking_number, result.voided),
    ///         Err(row) => println!("of a later version: {}", row.json()),
    ///     }
    /// }
    /// # assert_eq!(voided.summary.voided, 1);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn void(self, request: &VoidRequest) -> Result<Reply<VoidedOrders>, Error> {
        let call =
            Call::new(Operation::VoidOrders).keyed(&request.idempotency_key).body(request)?;
        self.client.data(call).await
    }

    /// Voids any number of orders, by the hundred, one request after the other.
    ///
    /// The results keep the order of the numbers, and a number that could not be voided is a result too, also
    /// when none of its hundred could. Sending the same request again repeats nothing that was done: see
    /// [`VoidManyRequest`].
    ///
    /// Errors: those of every call. [`Error::voided`] has the results of the hundreds before the one that
    /// failed; the rest of the error is about that one, and the others after it were not sent.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = parcelo_server::mock::MockServer::start().await;
    /// # let client = server.client(&server.key().issue());
    /// # let numbers = server.seed_parcels(120).await;
    /// use parcelo::{IdempotencyKey, VoidManyRequest};
    ///
    /// let key = IdempotencyKey::derive("recalls", "2026-01-10");
    /// let request = VoidManyRequest::new(&key, &numbers).with_reason("Recalled");
    /// let voided = client.orders().void_many(&request).await?;
    /// println!("{} of {}", voided.summary.voided, voided.summary.requested);
    /// # assert_eq!((voided.summary.voided, voided.summary.requested), (120, 120));
    /// # Ok(())
    /// # }
    /// ```
    pub async fn void_many(self, request: &VoidManyRequest) -> Result<VoidedOrders, Error> {
        let mut results = Vec::new();
        for request in request.requests() {
            match self.void(request).await {
                Ok(reply) => results.extend(reply.into_inner().results),
                Err(error) => match none_voided(&error) {
                    Some(unvoided) => results.extend(unvoided),
                    None => return Err(error.with(|inner| inner.voided = results)),
                },
            }
        }
        Ok(VoidedOrders::new(results))
    }
}

/// Why each order of a request could not be voided, when that is all that went wrong.
fn none_voided(error: &Error) -> Option<Vec<Row<VoidResult>>> {
    error.body().map(ErrorBody::void_results).filter(|results| !results.is_empty())
}
