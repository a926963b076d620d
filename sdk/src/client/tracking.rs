//! Tracking.

use std::future::IntoFuture;

use futures_util::{FutureExt, future::BoxFuture};

use super::{Client, Error, Reply, call::Call};
use crate::{Operation, TrackingNumber, TrackingRecord};

/// Tracking: [`Client::tracking`].
#[derive(Debug, Clone, Copy)]
pub struct Tracking<'a> {
    client: &'a Client,
}

impl Client {
    /// Tracking.
    pub fn tracking(&self) -> Tracking<'_> {
        Tracking { client: self }
    }
}

impl<'a> Tracking<'a> {
    /// Where a parcel stands; `.await` it, after asking for its history if need be.
    ///
    /// Errors: `NotFound`, and those of every call.
    ///
    /// ```no_run
    /// # async fn example(client: parcelo::Client) -> Result<(), parcelo::Error> {
    /// use parcelo::TrackingNumber;
    ///
    /// let number = TrackingNumber::parse("SB-SUCCESS-0001")?;
    /// let record = client.tracking().get(&number).history(true).await?;
    /// for event in record.history.iter().flatten() {
    ///     println!("{} {} {}", event.timestamp, event.status_name, event.location);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn get(self, number: &'a TrackingNumber) -> GetTracking<'a> {
        GetTracking { client: self.client, number, history: false }
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
    /// Whether the record has its history.
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
                Call::new(Operation::GetTracking).parameter(self.number.as_str()).query(query);
            self.client.json(call).await
        }
        .boxed()
    }
}
