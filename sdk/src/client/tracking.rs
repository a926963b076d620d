//! Tracking.

use std::future::IntoFuture;

use futures_util::{FutureExt, future::BoxFuture};

use super::{Client, Error, Reply, call::Call};
use crate::model::{
    BatchResult, BatchTracking, BatchTrackingRequest, Operation, TrackingNumber, TrackingRecord,
};

/// Where parcels stand, one or any number of them; from [`Client::tracking`].
#[derive(Debug, Clone, Copy)]
pub struct Tracking<'a> {
    client: &'a Client,
}

impl Client {
    /// Tracking: where one parcel stands, or any number of them.
    pub fn tracking(&self) -> Tracking<'_> {
        Tracking { client: self }
    }
}

impl<'a> Tracking<'a> {
    /// Where a parcel stands; `.await` it, after asking for its history if need be.
    ///
    /// Errors: `NotFound`, and those of every call.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = parcelo_server::mock::MockServer::start().await;
    /// # let client = server.client(&server.key().issue());
    /// # let order: parcelo::OrderRequest = serde_json::from_str(parcelo_server::mock::sample::ORDER)?;
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
    pub fn get(self, number: &'a TrackingNumber) -> GetTracking<'a> {
        GetTracking { client: self.client, number, history: false }
    }

    /// Where any number of parcels stand; `.await` it, after asking for their history if need be.
    ///
    /// They are asked for by the hundred, one request after the other. The results keep the order
    /// of the numbers, and a number that nobody has is a result too.
    ///
    /// Errors: those of every call; [`Error::tracked`] has the results of the hundreds that had been
    /// answered before.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = parcelo_server::mock::MockServer::start().await;
    /// # let client = server.client(&server.key().issue());
    /// # let order: parcelo::OrderRequest = serde_json::from_str(parcelo_server::mock::sample::ORDER)?;
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
    pub fn batch<'n>(
        self,
        numbers: impl IntoIterator<Item = &'n TrackingNumber>,
    ) -> TrackBatch<'a> {
        let numbers = numbers.into_iter().map(ToString::to_string).collect();
        TrackBatch { client: self.client, numbers, history: false }
    }
}

/// A question where a parcel stands; `.await` it.
#[derive(Debug, Clone, Copy)]
#[must_use = "nothing is asked until it is awaited"]
pub struct GetTracking<'a> {
    client: &'a Client,
    number: &'a TrackingNumber,
    history: bool,
}

impl GetTracking<'_> {
    /// Whether the record has its history, oldest event first; it has none unless asked for.
    pub fn history(self, history: bool) -> Self {
        Self { history, ..self }
    }
}

impl<'a> IntoFuture for GetTracking<'a> {
    type Output = Result<Reply<TrackingRecord>, Error>;
    type IntoFuture = BoxFuture<'a, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        async move {
            let query: &[_] = if self.history { &[("includeHistory", "true")] } else { &[] };
            let call =
                Call::new(Operation::GetTracking).path_parameter(self.number.as_str()).query(query);
            self.client.json(call).await
        }
        .boxed()
    }
}

/// The most numbers of one request.
const BATCH: usize = 100;

/// The records of many parcels, about to be asked for.
#[derive(Debug, Clone)]
#[must_use = "nothing is asked until it is awaited"]
pub struct TrackBatch<'a> {
    client: &'a Client,
    numbers: Vec<String>,
    history: bool,
}

impl TrackBatch<'_> {
    /// Whether each record has its history, oldest event first; they have none unless asked for.
    pub fn history(self, history: bool) -> Self {
        Self { history, ..self }
    }

    async fn ask(&self, numbers: &[String]) -> Result<Reply<BatchTracking>, Error> {
        let request = BatchTrackingRequest {
            tracking_numbers: numbers.to_vec(),
            include_history: self.history,
        };
        self.client.enveloped(Call::new(Operation::BatchTracking).json_body(&request)?).await
    }
}

impl<'a> IntoFuture for TrackBatch<'a> {
    type Output = Result<Vec<BatchResult>, Error>;
    type IntoFuture = BoxFuture<'a, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        async move {
            let mut results = Vec::with_capacity(self.numbers.len());
            for numbers in self.numbers.chunks(BATCH) {
                match self.ask(numbers).await {
                    Ok(reply) => results.extend(reply.into_inner().results),
                    Err(error) => return Err(error.with(|inner| inner.tracked = results)),
                }
            }
            Ok(results)
        }
        .boxed()
    }
}
