//! Creating, finding, reading and voiding orders.

use futures_util::{Stream, stream};
use parcelo_types::{
    Operation, OrderRequest, TrackingNumber, VoidManyRequest, VoidRequest,
    model::{CreatedOrder, ErrorBody, ParcelSummary, Row, VoidResult, VoidedOrders},
};

use super::{Call, Client, CreateMany, Error, ListParcels, Reply, request::UnsentRequest};

/// Creating, shipping, finding, reading and voiding orders; from [`Client::orders`].
#[derive(Debug, Clone)]
pub struct Orders {
    pub(super) client: Client,
}

impl Client {
    /// Returns the calls for orders: create one or many, find, read and void them.
    pub fn orders(&self) -> Orders {
        Orders { client: self.clone() }
    }
}

impl Orders {
    /// Creates an order: the parcel gets its tracking number and its label (docs/api.md, Create an
    /// order).
    ///
    /// For 24 hours, sending the same request again creates no second parcel, even from another process: the service
    /// recognises its idempotency key, and returns the first response again. This holds for one API key, whose secret
    /// may be rotated in between.
    ///
    /// Errors: `Validation` with the invalid fields, `CountryNotAllowed`, `Conflict` (the tracking
    /// number exists), `KeyReused` (the idempotency key was used for another request), and those of every call.
    ///
    /// ```
    #[doc = include_str!("example.txt")]
    /// let created = client.orders().create(&order).await?;
    /// println!("{} {:?}", created.parcel.tracking_number, created.parcel.label_url);
    /// for warning in &created.warnings {
    ///     println!("{}: {}", warning.field, warning.message);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn create(&self, order: &OrderRequest) -> Call<Reply<CreatedOrder>> {
        let request = UnsentRequest::new(&self.client, Operation::CreateOrder)
            .idempotency_key(&order.idempotency_key)
            .json_body(order);
        Call::json(&self.client, request)
    }

    /// Creates the orders of an iterator, 8 at a time by default
    /// ([`CreateMany::concurrency`](crate::client::CreateMany::concurrency)): a stream of each order's index in
    /// the iterator and its result.
    ///
    /// The calls run on the tokio runtime that polls the stream, and make progress while the loop saves a label or
    /// makes another call. For 24 hours, orders with derived keys can be sent again after a crash: those that were
    /// created are replayed.
    ///
    /// When one order fails, the others continue; errors are those of [`Orders::create`]. A panic is not confined to
    /// its order: one in a closure of yours, such as that of
    /// [`ClientBuilder::on_attempt`](crate::client::ClientBuilder::on_attempt), resumes in `next`, and unwinding drops
    /// the stream, which aborts the other calls.
    ///
    /// ```
    #[doc = include_str!("example.txt")]
    /// # let mut other = order.clone().with_idempotency_key(parcelo::IdempotencyKey::random());
    /// # other.tracking_number = None;
    /// # let orders = [order, other];
    /// let mut creations = client.orders().create_many(orders).concurrency(16);
    /// while let Some((index, created)) = creations.next().await {
    ///     match created {
    ///         Ok(created) => println!("{index}: {}", created.parcel.tracking_number),
    ///         Err(error) => eprintln!("{index}: {error}"),
    ///     }
    /// }
    /// # assert_eq!(client.parcels().list().await?.meta.total, 2);
    /// # Ok(())
    /// # }
    /// ```
    pub fn create_many<'a, I>(&self, orders: I) -> CreateMany<'a>
    where
        I: IntoIterator<Item = OrderRequest, IntoIter: Send + 'a>,
    {
        CreateMany::new(&self.client, stream::iter(orders.into_iter().enumerate()))
    }

    /// Creates the orders of a stream, such as a queue or the rows of a database, as [`create_many`](Self::create_many)
    /// does those of an iterator. Each order comes with a value of yours, which comes back with its result: a row's
    /// id, the order itself, or its idempotency key.
    ///
    /// It waits for the stream and for its calls at once, and ends when the stream has ended and all results are read.
    ///
    /// ```
    #[doc = include_str!("example.txt")]
    /// use futures_util::StreamExt;
    ///
    /// # let orders = futures_util::stream::iter([order]);
    /// let orders = orders.map(|order| (order.idempotency_key.clone(), order));
    /// let mut creations = client.orders().create_stream(orders);
    /// while let Some((key, created)) = creations.next().await {
    ///     println!("{key}: {}", created?.parcel.tracking_number);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn create_stream<'a, T>(
        &self,
        orders: impl Stream<Item = (T, OrderRequest)> + Send + 'a,
    ) -> CreateMany<'a, T> {
        CreateMany::new(&self.client, orders)
    }

    /// Returns all parcels that the account has of an order, by the order's id in your system (`external_order_id`),
    /// newest first. Voided parcels are included; see their status.
    ///
    /// This outlives the idempotency key. The service forgets a key after 24 hours and knows it for one API key only;
    /// the parcel is found for as long as it exists (in the sandbox for 30 days), with every API key of the account. So
    /// call this before you send an order with a new idempotency key or another API key. It finds parcels that exist; a
    /// request that is still in progress is settled by sending it again with its key.
    ///
    /// The id is compared exactly, without surrounding white space.
    ///
    /// Errors: `Validation` when it is blank or has more than 100 characters, `Decode` when a parcel cannot be
    /// read ([`Error::found`] has the others), and those of every call. So an empty response means that the order has
    /// no parcel.
    ///
    /// ```
    #[doc = include_str!("example.txt")]
    /// use parcelo::{ErrorKind, IdempotencyKey, ParcelStatus};
    ///
    /// # let mut order = order;
    /// # order.external_order_id = Some("1001".into());
    /// # client.orders().create(&order).await?;
    /// # server.clock().advance(std::time::Duration::from_secs(24 * 3600)).await;
    /// let error = client.orders().create(&order).await.unwrap_err(); // yesterday's order 1001
    /// assert_eq!(error.kind(), ErrorKind::KeyExpired);
    /// let parcels = client.orders().find("1001").await?;
    /// match parcels.iter().find(|parcel| parcel.status != ParcelStatus::Voided) {
    ///     Some(parcel) => println!("shipped as {}", parcel.tracking_number),
    ///     None => {
    ///         order.idempotency_key = IdempotencyKey::random(); // save it before sending
    ///         client.orders().create(&order).await?;
    ///     }
    /// }
    /// # server.assert_exactly_once();
    /// # Ok(())
    /// # }
    /// ```
    pub fn find(&self, external_order_id: &str) -> Call<Vec<ParcelSummary>> {
        // The service stores the id trimmed and compares it exactly.
        let id = external_order_id.trim().to_owned();
        Call::composed(self.client.clone(), move |client| {
            collect(client.parcels().list().external_order_id(&*id))
        })
    }

    /// Reads the order of a parcel as it was accepted, with its idempotency key, also after it was voided.
    ///
    /// Errors: `NotFound`, and those of every call.
    ///
    /// ```
    #[doc = include_str!("example.txt")]
    /// # client.orders().create(&order).await?; // SB-SUCCESS-0001
    /// use parcelo::{IdempotencyKey, TrackingNumber};
    ///
    /// let earlier = client.orders().get(&TrackingNumber::parse("SB-SUCCESS-0001")?).await?;
    /// // The same again: another order, so with another key.
    /// let mut again = earlier.into_inner();
    /// (again.idempotency_key, again.tracking_number) = (IdempotencyKey::random(), None);
    /// client.orders().create(&again).await?;
    /// # assert_eq!(client.parcels().list().await?.meta.total, 2);
    /// # Ok(())
    /// # }
    /// ```
    pub fn get(&self, number: &TrackingNumber) -> Call<Reply<OrderRequest>> {
        let operation = Operation::GetOrder;
        let request = UnsentRequest::with_parameter(&self.client, operation, number.as_str());
        Call::enveloped(&self.client, Ok(request))
    }

    /// Voids 1-100 orders: their labels can no longer be used.
    ///
    /// An order can be voided until its parcel is in a manifest or with the carrier (docs/api.md, Void
    /// orders). Each order has its own result, and some may fail. An order that was voided before counts as
    /// voided.
    ///
    /// Errors: `NotFound` or `Conflict` when none could be voided
    /// ([`ErrorBody::void_results`](crate::model::ErrorBody::void_results) has the reason for each), `Validation`,
    /// and those of every call.
    ///
    /// ```
    #[doc = include_str!("example.txt")]
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
    ///         Err(row) => println!("unreadable: {}", row.json()),
    ///     }
    /// }
    /// # assert_eq!(voided.summary.voided, 1);
    /// # Ok(())
    /// # }
    /// ```
    pub fn void(&self, request: &VoidRequest) -> Call<Reply<VoidedOrders>> {
        Call::enveloped(&self.client, unsent_void(&self.client, request))
    }

    /// Voids any number of orders, 100 per request, one request after the other.
    ///
    /// The results are in the order of the numbers. A number that could not be voided has a result too, even if
    /// no number of its request could. Sending the same request again is safe: see [`VoidManyRequest`].
    ///
    /// Errors: those of every call. The error is that of the first request that failed, and those after it were not
    /// sent; [`Error::voided`] has the results of those before it.
    ///
    /// ```
    #[doc = include_str!("example.txt")]
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
    pub fn void_many(&self, request: &VoidManyRequest) -> Call<VoidedOrders> {
        let requests = request.requests().iter();
        let requests: Result<Vec<_>, _> =
            requests.map(|request| unsent_void(&self.client, request)).collect();
        Call::composed(self.client.clone(), move |client| void_all(client, requests.clone()))
    }
}

/// Returns all parcels of a list.
async fn collect(list: ListParcels) -> Result<Vec<ParcelSummary>, Error> {
    let (mut parcels, mut found, mut first_error) = (list.stream(), Vec::new(), None);
    while let Some(parcel) = parcels.next().await {
        match parcel {
            Ok(parcel) => found.push(parcel),
            // The stream continues after a row that cannot be read. Of several errors the first is returned.
            Err(error) => first_error = first_error.or(Some(error)),
        }
    }
    match first_error {
        Some(error) => Err(error.with(|inner| inner.found = found)),
        None => Ok(found),
    }
}

fn unsent_void(client: &Client, request: &VoidRequest) -> Result<UnsentRequest, Error> {
    UnsentRequest::new(client, Operation::VoidOrders)
        .idempotency_key(&request.idempotency_key)
        .json_body(request)
}

/// Voids the orders of several requests, one request after the other.
async fn void_all(
    client: Client,
    requests: Result<Vec<UnsentRequest>, Error>,
) -> Result<VoidedOrders, Error> {
    let mut results = Vec::new();
    for request in requests? {
        match client.clone().enveloped::<VoidedOrders>(request).await {
            Ok(reply) => results.extend(reply.into_inner().results),
            Err(error) => match none_voided(&error) {
                Some(unvoided) => results.extend(unvoided),
                None => return Err(error.with(|inner| inner.voided = results)),
            },
        }
    }
    Ok(VoidedOrders::new(results))
}

/// Returns the results of a request of which no order could be voided; `None` if it failed for another reason.
fn none_voided(error: &Error) -> Option<Vec<Row<VoidResult>>> {
    error.body().map(ErrorBody::void_results).filter(|results| !results.is_empty())
}
