//! Tracking parcels.

use parcelo_types::{
    Operation, TrackingNumber,
    internal::{BatchTracking, BatchTrackingRequest},
    model::{BatchResult, TrackingRecord},
};

use super::{
    Client, Error, Reply,
    call::{CallFuture, call_settings},
    request::UnsentRequest,
};

/// The status and history of parcels; from [`Client::tracking`].
#[derive(Debug, Clone)]
pub struct Tracking {
    client: Client,
}

impl Client {
    /// Returns the calls for tracking: the status of one parcel, or of any number of them.
    pub fn tracking(&self) -> Tracking {
        Tracking { client: self.clone() }
    }
}

impl Tracking {
    /// Returns the status of a parcel. Request its history if you need it, then `.await` it.
    ///
    /// Errors: `NotFound`, and those of every call.
    ///
    /// ```
    #[doc = include_str!("example.txt")]
    /// # client.orders().create(&order).await?; // SB-SUCCESS-0001
    /// use parcelo::TrackingNumber;
    ///
    /// let number = TrackingNumber::parse("SB-SUCCESS-0001")?;
    /// let record = client.tracking().get(&number).history(true).await?;
    /// for event in record.history.iter().flatten().flatten() {
    ///     println!("{} {} {}", event.timestamp, event.status_name, event.location);
    /// }
    /// # assert_eq!(record.history.as_ref().map(Vec::len), Some(2));
    /// # Ok(())
    /// # }
    /// ```
    pub fn get(&self, number: &TrackingNumber) -> GetTracking {
        let operation = Operation::GetTracking;
        let request = UnsentRequest::with_parameter(&self.client, operation, number.as_str());
        GetTracking { client: self.client.clone(), request, history: false }
    }

    /// Returns the status of any number of parcels. Request their history if you need it, then `.await` it.
    ///
    /// Each request has up to 100 numbers, one request after the other. The results are in the order of the
    /// numbers, and an unknown number has a result too.
    ///
    /// Errors: those of every call; [`Error::tracked`] has the results of the requests before the one that
    /// failed.
    ///
    /// ```
    #[doc = include_str!("example.txt")]
    /// # client.orders().create(&order).await?; // SB-SUCCESS-0001
    /// use parcelo::TrackingNumber;
    /// use parcelo::model::BatchResult;
    ///
    /// let one = TrackingNumber::parse("SB-SUCCESS-0001")?;
    /// let other = TrackingNumber::parse("SB-RTS-0001")?;
    /// for result in client.tracking().batch([&one, &other]).await? {
    ///     match result {
    ///         BatchResult::Found { tracking, .. } => println!("{}", tracking.status_name),
    ///         BatchResult::NotFound { tracking_number, .. } => println!("no {tracking_number}"),
    ///         BatchResult::Unreadable { row, .. } => println!("unreadable: {}", row.json()),
    ///     }
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn batch<'n>(&self, numbers: impl IntoIterator<Item = &'n TrackingNumber>) -> TrackBatch {
        let numbers = numbers.into_iter().map(ToString::to_string).collect();
        TrackBatch { client: self.client.clone(), numbers, history: false }
    }
}

/// A request for the status of a parcel: `.await` it.
#[derive(Debug, Clone)]
#[must_use = "nothing is requested until it is awaited"]
pub struct GetTracking {
    client: Client,
    request: UnsentRequest,
    history: bool,
}

call_settings!(GetTracking);

impl GetTracking {
    /// Sets whether the record includes the history, oldest event first. The default is `false`.
    pub fn history(self, history: bool) -> Self {
        Self { history, ..self }
    }
}

impl IntoFuture for GetTracking {
    type Output = Result<Reply<TrackingRecord>, Error>;
    type IntoFuture = CallFuture<Reply<TrackingRecord>>;

    fn into_future(self) -> Self::IntoFuture {
        let query = self.history.then_some(("includeHistory", "true"));
        Box::pin(self.client.json(self.request.query(query)))
    }
}

/// The service's limit for one request.
const MAX_BATCH_SIZE: usize = 100;

/// A request for the status of many parcels: `.await` it.
#[derive(Debug, Clone)]
#[must_use = "nothing is requested until it is awaited"]
pub struct TrackBatch {
    client: Client,
    numbers: Vec<String>,
    history: bool,
}

call_settings!(TrackBatch);

impl TrackBatch {
    /// Sets whether each record includes the history, oldest event first. The default is `false`.
    pub fn history(self, history: bool) -> Self {
        Self { history, ..self }
    }

    async fn request(&self, numbers: &[String]) -> Result<Reply<BatchTracking>, Error> {
        let request =
            BatchTrackingRequest::new(numbers.to_vec()).with_include_history(self.history);
        let unsent = UnsentRequest::new(&self.client, Operation::BatchTracking);
        self.client.clone().enveloped(unsent.json_body(&request)?).await
    }
}

impl IntoFuture for TrackBatch {
    type Output = Result<Vec<BatchResult>, Error>;
    type IntoFuture = CallFuture<Vec<BatchResult>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            let mut results = Vec::with_capacity(self.numbers.len());
            for numbers in self.numbers.chunks(MAX_BATCH_SIZE) {
                match self.request(numbers).await {
                    Ok(reply) => results.extend(reply.into_inner().results),
                    Err(error) => return Err(error.with(|inner| inner.tracked = results)),
                }
            }
            Ok(results)
        })
    }
}
