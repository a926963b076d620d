//! The handles and methods of the blocking client, as a table with a row for each method. A method calls the
//! asynchronous method of the same name, and [`FromAsync`] converts its result. Methods without an asynchronous twin
//! are at the end.

use std::path::{Path, PathBuf};

use bytes::Bytes;
use chrono::{DateTime, Utc};
use parcelo_types::{
    CountryCode, LabelFormat, ManifestRequest, OrderRequest, ParcelStatus, ReprintRequest,
    TrackingNumber, VoidManyRequest, VoidRequest,
    model::{
        CreatedOrder, Health, LabelMetadata, Manifest, ManifestId, ParcelSummary, SandboxReset,
        VoidedOrders,
    },
};
use serde::de::DeserializeOwned;

use super::{
    Client, CreateMany, ItemIter, LabelReader,
    driver::{Driver, FromAsync},
};
use crate::client::{
    self, Error, GetTracking, ListParcels, RateLimit, Reply, Retry, Timeouts, TrackBatch,
};

/// Types that wrap their asynchronous twins, `struct Type<'a>(Twin)`, with a method for each row.
macro_rules! handles {
    ($(
        $(#[$attribute:meta])*
        struct $name:ident<$a:lifetime$(, $request:ident)?>($twin:ty) $({ $($row:tt)+ })?;
    )+) => {$(
        $(#[$attribute])*
        #[derive(Debug, Clone)]
        pub struct $name<$a$(, $request)?> {
            inner: $twin,
            driver: &$a Driver,
        }

        impl<$a$(, $request)?> FromAsync<$a, $twin> for $name<$a$(, $request)?> {
            fn from_async(inner: $twin, driver: &$a Driver) -> Self {
                Self { inner, driver }
            }
        }

        $(calls! { impl<$a> $name<$a> => $name { $($row)+ } })?
    )+};
}

/// Methods that make the same calls as the methods of the twin in `impl Type => Twin`.
macro_rules! calls {
    ($(impl$(<$a:lifetime>)? $type:ident$(<$b:lifetime$(, $request:ty)?>)? => $twin:ident {$(
        $(#[$attribute:meta])*
        pub fn $name:ident$(<$generic:tt$(: $bound:path)?>)?($($parameters:tt)*) -> $returned:ty
        $(where $bounded:ident: $bounds:path)?;
    )+})+) => {$(impl$(<$a>)? $type$(<$b$(, $request)?>)? {$(calls! {
        @method $name
        [
            $(#[$attribute])*
            #[doc = concat!(
                "\nErrors and details: [`", stringify!($twin), "::", stringify!($name),
                "`](crate::client::", stringify!($twin), "::", stringify!($name), ")."
            )]
            pub fn $name$(<$generic$(: $bound)?>)?
        ]
        ($($parameters)*)
        [-> $returned $(where $bounded: $bounds)?]
    })+})+};
    (
        @method $name:ident [$($head:tt)+] ($self:ident $(, $argument:ident: $type:ty)*) [$($tail:tt)+]
    ) => {
        $($head)+ ($self $(, $argument: $type)*) $($tail)+ {
            FromAsync::from_async($self.inner.$name($($argument),*), $self.driver)
        }
    };
    (
        @method $name:ident [$($head:tt)+] (&$self:ident $(, $argument:ident: $type:ty)*) [$($tail:tt)+]
    ) => {
        $($head)+ (&$self $(, $argument: $type)*) $($tail)+ {
            FromAsync::from_async($self.inner.$name($($argument),*), &$self.driver)
        }
    };
}

calls! {
    impl Client => Client {
        /// Checks the key and returns its name, countries and environment.
        pub fn health(&self) -> Result<Reply<Health>, Error>;
        /// Reads a path of the service that this version has no method for, as a type of your own.
        pub fn get<T: DeserializeOwned>(&self, path: &str) -> Result<Reply<T>, Error>;
        /// Returns the calls that create, find and void orders.
        pub fn orders(&self) -> Orders<'_>;
        /// Returns the calls that list parcels.
        pub fn parcels(&self) -> Parcels<'_>;
        /// Returns the calls that track parcels.
        pub fn tracking(&self) -> Tracking<'_>;
        /// Returns the calls for labels and invoices.
        pub fn labels(&self) -> Labels<'_>;
        /// Returns the calls for manifests, the parcels under an air waybill.
        pub fn manifests(&self) -> Manifests<'_>;
        /// Returns the call that resets the sandbox.
        pub fn sandbox(&self) -> Sandbox<'_>;
        /// Returns the same client with different retry settings. It shares everything else with this one, including
        /// the thread. The clients returned by the next two methods do too.
        #[must_use]
        pub fn with_retry(&self, retry: Retry) -> Self;
        /// Returns the same client with different timeouts. The timeout for connecting stays as it was built.
        #[must_use]
        pub fn with_timeouts(&self, timeouts: Timeouts) -> Self;
        /// Returns the same client with different rate limit settings.
        #[must_use]
        pub fn with_rate_limit(&self, rate_limit: RateLimit) -> Self;
    }
}

handles! {
    /// Creating, finding and voiding orders; from [`Client::orders`].
    ///
    /// ```
    #[doc = include_str!("example.txt")]
    /// # let orders = [order];
    /// for (index, created) in client.orders().create_many(orders).concurrency(16) {
    ///     match created {
    ///         Ok(created) => println!("{index}: {}", created.parcel.tracking_number),
    ///         Err(error) => eprintln!("{index}: {error}"),
    ///     }
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[derive(Copy)]
    struct Orders<'a>(client::Orders<'a>) {
        /// Creates an order.
        pub fn create(self, order: &OrderRequest) -> Result<Reply<CreatedOrder>, Error>;
        /// Creates the orders of an iterator, several at a time.
        pub fn create_many<I>(self, orders: I) -> CreateMany<'a, I::IntoIter>
        where I: IntoIterator<Item = OrderRequest>;
        /// Returns all parcels of an order, by its id in your system.
        pub fn find(self, external_order_id: &str) -> Result<Vec<ParcelSummary>, Error>;
        /// Voids 1-100 orders.
        pub fn void(self, request: &VoidRequest) -> Result<Reply<VoidedOrders>, Error>;
        /// Voids any number of orders.
        pub fn void_many(self, request: &VoidManyRequest) -> Result<VoidedOrders, Error>;
    };

    /// The list of the account's parcels; from [`Client::parcels`].
    ///
    /// ```
    #[doc = include_str!("example.txt")]
    /// let held = client.parcels().list().status(&parcelo::ParcelStatus::CustomsHold);
    /// println!("{} held", held.limit(1).send()?.meta.total);
    /// for parcel in client.parcels().list().iter() {
    ///     println!("{}", parcel?.tracking_number);
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[derive(Copy)]
    struct Parcels<'a>(client::Parcels<'a>) {
        /// Requests a page of the list, newest first, with filters if you need them.
        pub fn list(self) -> Request<'a, ListParcels>;
    };

    /// The status and history of parcels; from [`Client::tracking`].
    ///
    /// ```
    #[doc = include_str!("example.txt")]
    /// let record = client.tracking().get(&numbers[0]).history(true).send()?;
    /// for event in record.history.iter().flatten().flatten() {
    ///     println!("{} {} {}", event.timestamp, event.status_name, event.location);
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[derive(Copy)]
    struct Tracking<'a>(client::Tracking<'a>) {
        /// Requests the status of a parcel, with its history if you need it.
        pub fn get(self, number: &'a TrackingNumber) -> Request<'a, GetTracking<'a>>;
        /// Requests the status of any number of parcels, with their history if you need it.
        pub fn batch<'n>(
            self, numbers: impl IntoIterator<Item = &'n TrackingNumber>
        ) -> Request<'a, TrackBatch<'a>>;
    };

    /// Label files, metadata, reprints and invoices; from [`Client::labels`].
    ///
    /// ```
    #[doc = include_str!("example.txt")]
    /// let label = client.labels().download(&numbers[0], parcelo::LabelFormat::Pdf);
    /// let mut printer = Vec::new();
    /// std::io::copy(&mut label.reader()?, &mut printer)?;
    /// assert!(printer.starts_with(b"%PDF"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[derive(Copy)]
    struct Labels<'a>(client::Labels<'a>) {
        /// Selects a label file to download, at most 16 MiB. A method of [`LabelDownload`] downloads it.
        pub fn download(self, number: &'a TrackingNumber, format: LabelFormat) -> LabelDownload<'a>;
        /// Selects the labels of 1-100 parcels to download as one file.
        pub fn batch<'n>(
            self, numbers: impl IntoIterator<Item = &'n TrackingNumber>, format: LabelFormat
        ) -> LabelDownload<'a>;
        /// Selects the commercial invoice of a parcel to download.
        pub fn invoice(self, number: &'a TrackingNumber) -> LabelDownload<'a>;
        /// Returns the metadata of a label.
        pub fn metadata(self, number: &TrackingNumber) -> Result<Reply<LabelMetadata>, Error>;
        /// Reprints a label.
        pub fn reprint(
            self, number: &TrackingNumber, request: &ReprintRequest
        ) -> Result<Reply<LabelMetadata>, Error>;
    };

    /// A label or an invoice to download: into memory, to a file, or as a reader.
    #[must_use = "nothing is downloaded before `bytes`, `save_to`, `save_in` or `reader` is called"]
    struct LabelDownload<'a>(client::LabelDownload<'a>) {
        /// Downloads the file into memory.
        pub fn bytes(self) -> Result<Bytes, Error>;
        /// Saves the file and returns its length in bytes.
        pub fn save_to(self, path: impl AsRef<Path>) -> Result<u64, Error>;
        /// Saves the file in a directory and returns its path.
        pub fn save_in(self, directory: impl AsRef<Path>) -> Result<PathBuf, Error>;
    };

    /// Submitting and reading manifests; from [`Client::manifests`].
    ///
    /// ```
    #[doc = include_str!("example.txt")]
    /// use parcelo::{Awb, IdempotencyKey, ManifestRequest};
    ///
    /// let key = IdempotencyKey::derive("flights", "EK213 2026-01-10");
    /// let request = ManifestRequest::new(key, Awb::parse("176-12345675")?, &numbers);
    /// println!("{}", client.manifests().submit(&request)?.manifest_id);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[derive(Copy)]
    struct Manifests<'a>(client::Manifests<'a>) {
        /// Submits a manifest of 1-500 parcels: all of them, or none.
        pub fn submit(self, request: &ManifestRequest) -> Result<Reply<Manifest>, Error>;
        /// Reads a manifest by its id, `man_…`.
        pub fn get(self, manifest_id: &ManifestId) -> Result<Reply<Manifest>, Error>;
    };

    /// The sandbox; from [`Client::sandbox`].
    #[derive(Copy)]
    struct Sandbox<'a>(client::Sandbox<'a>) {
        /// Deletes all data of the account's sandbox, irrevocably.
        pub fn reset(self) -> Result<Reply<SandboxReset>, Error>;
    };

    /// A request that is not sent yet: add filters if you need them, then [`send`](Request::send) it. It wraps the
    /// request of the same name in [`calls`](crate::calls).
    #[must_use = "nothing is requested until it is sent"]
    struct Request<'a, R>(R);
}

calls! {
    impl<'a> Request<'a, ListParcels> => ListParcels {
        /// Sets the page, from 1.
        pub fn page(self, page: u32) -> Self;
        /// Sets the number of parcels on a page, 1-100. The default is 20.
        pub fn limit(self, limit: u32) -> Self;
        /// Lists only parcels in this status.
        pub fn status(self, status: &ParcelStatus) -> Self;
        /// Lists only parcels to this country.
        pub fn country(self, country: CountryCode) -> Self;
        /// Lists only parcels of the order with this id in your system.
        pub fn external_order_id(self, id: impl Into<String>) -> Self;
        /// Lists only parcels that match this text, as a person would search for them.
        pub fn search(self, text: impl Into<String>) -> Self;
        /// Lists only parcels with this reference.
        pub fn reference(self, reference: impl Into<String>) -> Self;
        /// Lists only parcels created at this time or later.
        pub fn created_from(self, from: DateTime<Utc>) -> Self;
        /// Lists only parcels created before this time.
        pub fn created_to(self, to: DateTime<Utc>) -> Self;
    }

    impl Request<'_, GetTracking<'_>> => GetTracking {
        /// Sets whether the record includes the history.
        pub fn history(self, history: bool) -> Self;
    }

    impl Request<'_, TrackBatch<'_>> => TrackBatch {
        /// Sets whether each record includes the history.
        pub fn history(self, history: bool) -> Self;
    }
}

impl<R> Request<'_, R> {
    /// Sends the request and waits for the response.
    pub fn send<T>(self) -> Result<T, Error>
    where
        R: IntoFuture<Output = Result<T, Error>>,
    {
        FromAsync::from_async(self.inner, self.driver)
    }
}

impl<'a> Request<'a, ListParcels> {
    /// Returns an iterator over the parcels of this page and all later ones: [`ListParcels::stream`] without `async`.
    pub fn iter(self) -> ItemIter<'a, ParcelSummary> {
        FromAsync::from_async(self.inner.stream(), self.driver)
    }
}

impl<'a> Labels<'a> {
    /// Selects a label file to download by its link: [`Labels::download_link`](crate::client::Labels::download_link).
    pub fn download_link(self, link: &str) -> Result<LabelDownload<'a>, Error> {
        Ok(FromAsync::from_async(self.inner.download_link(link)?, self.driver))
    }
}

impl<'a> LabelDownload<'a> {
    /// Downloads the file as a reader: [`LabelDownload::stream`](crate::client::LabelDownload::stream).
    pub fn reader(self) -> Result<LabelReader<'a>, Error> {
        let stream = Result::from_async(self.inner.stream(), self.driver)?;
        Ok(FromAsync::from_async(stream, self.driver))
    }
}
