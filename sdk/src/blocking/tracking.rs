//! Tracking parcels.

use super::{Client, Request};
use crate::{
    client::{GetTracking, TrackBatch},
    model::TrackingNumber,
};

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
    /// The status of a parcel: [`Tracking::get`](crate::client::Tracking::get).
    ///
    /// ```
    /// # use parcelo_server::mock::MockServer;
    /// # let runtime = tokio::runtime::Runtime::new()?;
    /// # let server = runtime.block_on(MockServer::start());
    /// # let client = server.in_memory_builder(&server.key().issue()).build_blocking()?;
    /// # let order = serde_json::from_str(parcelo_server::mock::sample::ORDER)?;
    /// # let number = client.orders().create(&order)?.into_inner().parcel.tracking_number;
    /// let record = client.tracking().get(&number).history(true).send()?;
    /// for event in record.history.iter().flatten().flatten() {
    ///     println!("{} {} {}", event.timestamp, event.status_name, event.location);
    /// }
    /// # assert!(record.history.is_some());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn get(self, number: &'a TrackingNumber) -> Request<'a, GetTracking<'a>> {
        let Client { inner: client, driver } = self.client;
        Request { request: client.tracking().get(number), driver }
    }

    /// The status of any number of parcels: [`Tracking::batch`](crate::client::Tracking::batch).
    ///
    /// ```
    /// # use parcelo_server::mock::MockServer;
    /// use parcelo::TrackingNumber;
    /// use parcelo::model::BatchResult;
    ///
    /// # let runtime = tokio::runtime::Runtime::new()?;
    /// # let server = runtime.block_on(MockServer::start());
    /// # let client = server.in_memory_builder(&server.key().issue()).build_blocking()?;
    /// let numbers = ["SB-SUCCESS-0001", "SB-RTS-0001"].map(TrackingNumber::parse);
    /// let numbers = numbers.into_iter().collect::<Result<Vec<_>, _>>()?;
    /// for result in client.tracking().batch(&numbers).send()? {
    ///     match result {
    ///         BatchResult::Found { tracking, .. } => println!("{}", tracking.status_name),
    ///         BatchResult::NotFound { tracking_number, .. } => println!("no {tracking_number}"),
    ///         BatchResult::Unreadable { row, .. } => println!("unreadable: {}", row.json()),
    ///     }
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn batch<'n>(
        self,
        numbers: impl IntoIterator<Item = &'n TrackingNumber>,
    ) -> Request<'a, TrackBatch<'a>> {
        let Client { inner: client, driver } = self.client;
        Request { request: client.tracking().batch(numbers), driver }
    }
}

impl Request<'_, GetTracking<'_>> {
    /// Whether the record includes the history.
    pub fn history(self, history: bool) -> Self {
        self.map(|request| request.history(history))
    }
}

impl Request<'_, TrackBatch<'_>> {
    /// Whether each record includes the history.
    pub fn history(self, history: bool) -> Self {
        self.map(|request| request.history(history))
    }
}
