//! Labels: metadata, and files in memory, on disk, or as a reader.

use std::{
    io::{self, Read},
    path::{Path, PathBuf},
};

use bytes::{Buf, Bytes};

use super::{Client, driver::Driver};
use crate::{
    client,
    client::{Error, LabelStream, Reply},
    model::{LabelFormat, LabelMetadata, ReprintRequest, TrackingNumber},
};

/// Labels: [`Client::labels`].
#[derive(Debug, Clone, Copy)]
pub struct Labels<'a> {
    client: &'a Client,
}

impl Client {
    /// Labels.
    pub fn labels(&self) -> Labels<'_> {
        Labels { client: self }
    }
}

impl<'a> Labels<'a> {
    /// A label file, at most 16 MiB. The methods of [`LabelDownload`] say where to:
    /// [`Labels::download`](crate::client::Labels::download).
    ///
    /// ```
    /// # use parcelo_server::mock::MockServer;
    /// use parcelo::LabelFormat;
    ///
    /// # let runtime = tokio::runtime::Runtime::new()?;
    /// # let server = runtime.block_on(MockServer::start());
    /// # let client = server.in_memory_builder(&server.key().issue()).build_blocking()?;
    /// # let order = serde_json::from_str(parcelo_server::mock::sample::ORDER)?;
    /// # let number = client.orders().create(&order)?.into_inner().parcel.tracking_number;
    /// let label = client.labels().download(&number, LabelFormat::Pdf);
    /// let mut printer = Vec::new();
    /// std::io::copy(&mut label.reader()?, &mut printer)?;
    /// assert!(printer.starts_with(b"%PDF"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn download(self, number: &'a TrackingNumber, format: LabelFormat) -> LabelDownload<'a> {
        let Client { inner: client, driver } = self.client;
        LabelDownload { file: client.labels().download(number, format), driver }
    }

    /// The labels of 1-100 parcels as one file: [`Labels::batch`](crate::client::Labels::batch).
    ///
    /// ```
    /// # use parcelo_server::mock::MockServer;
    /// # use parcelo::LabelFormat;
    /// # let runtime = tokio::runtime::Runtime::new()?;
    /// # let server = runtime.block_on(MockServer::start());
    /// # let client = server.in_memory_builder(&server.key().issue()).build_blocking()?;
    /// # let numbers = runtime.block_on(server.seed_parcels(2));
    /// # let folder = tempfile::tempdir()?;
    /// let file = client.labels().batch(&numbers, LabelFormat::Pdf).save_in(&folder)?;
    /// assert!(file.ends_with("labels.pdf"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn batch<'n>(
        self,
        numbers: impl IntoIterator<Item = &'n TrackingNumber>,
        format: LabelFormat,
    ) -> LabelDownload<'a> {
        let Client { inner: client, driver } = self.client;
        LabelDownload { file: client.labels().batch(numbers, format), driver }
    }

    /// The commercial invoice of a parcel: [`Labels::invoice`](crate::client::Labels::invoice).
    ///
    /// ```
    /// # use parcelo_server::mock::MockServer;
    /// # let runtime = tokio::runtime::Runtime::new()?;
    /// # let server = runtime.block_on(MockServer::start());
    /// # let client = server.in_memory_builder(&server.key().issue()).build_blocking()?;
    /// # let order = serde_json::from_str(parcelo_server::mock::sample::ORDER)?;
    /// # let number = client.orders().create(&order)?.into_inner().parcel.tracking_number;
    /// assert!(client.labels().invoice(&number).bytes()?.starts_with(b"%PDF"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn invoice(self, number: &'a TrackingNumber) -> LabelDownload<'a> {
        let Client { inner: client, driver } = self.client;
        LabelDownload { file: client.labels().invoice(number), driver }
    }

    /// A label file by its link:
    /// [`Labels::download_link`](crate::client::Labels::download_link).
    ///
    /// ```
    /// # use parcelo_server::mock::MockServer;
    /// # let runtime = tokio::runtime::Runtime::new()?;
    /// # let server = runtime.block_on(MockServer::start());
    /// # let client = server.in_memory_builder(&server.key().issue()).build_blocking()?;
    /// # let order = serde_json::from_str(parcelo_server::mock::sample::ORDER)?;
    /// # let directory = tempfile::tempdir()?;
    /// let created = client.orders().create(&order)?;
    /// let link = created.parcel.label_url.as_deref().ok_or("the answer has no link")?;
    /// let label = client.labels().download_link(link)?;
    /// println!("{}", label.save_in(&directory)?.display());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn download_link(self, link: &str) -> Result<LabelDownload<'a>, Error> {
        let Client { inner: client, driver } = self.client;
        Ok(LabelDownload { file: client.labels().download_link(link)?, driver })
    }

    /// The metadata of a label: [`Labels::metadata`](crate::client::Labels::metadata).
    pub fn metadata(self, number: &TrackingNumber) -> Result<Reply<LabelMetadata>, Error> {
        self.client.driver.call(self.client.inner.labels().metadata(number))
    }

    /// Reprints a label: [`Labels::reprint`](crate::client::Labels::reprint).
    ///
    /// ```
    /// # use parcelo_server::mock::MockServer;
    /// use parcelo::{IdempotencyKey, ReprintRequest};
    ///
    /// # let runtime = tokio::runtime::Runtime::new()?;
    /// # let server = runtime.block_on(MockServer::start());
    /// # let client = server.in_memory_builder(&server.key().issue()).build_blocking()?;
    /// # let order = serde_json::from_str(parcelo_server::mock::sample::ORDER)?;
    /// # let number = client.orders().create(&order)?.into_inner().parcel.tracking_number;
    /// let request = ReprintRequest::new(IdempotencyKey::random()).with_reason("Label torn");
    /// client.labels().reprint(&number, &request)?;
    /// assert_eq!(client.labels().metadata(&number)?.reprint_count, 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn reprint(
        self,
        number: &TrackingNumber,
        request: &ReprintRequest,
    ) -> Result<Reply<LabelMetadata>, Error> {
        self.client.driver.call(self.client.inner.labels().reprint(number, request))
    }
}

/// A label or an invoice to download: into memory, to a file, or as a reader.
#[derive(Debug, Clone)]
#[must_use = "nothing is downloaded before `bytes`, `save_to`, `save_in` or `reader` is called"]
pub struct LabelDownload<'a> {
    file: client::LabelDownload<'a>,
    driver: &'a Driver,
}

impl<'a> LabelDownload<'a> {
    /// Downloads the file into memory.
    pub fn bytes(self) -> Result<Bytes, Error> {
        self.driver.call(self.file.bytes())
    }

    /// Saves the file and returns its length in bytes:
    /// [`LabelDownload::save_to`](crate::client::LabelDownload::save_to).
    ///
    /// ```
    /// # use parcelo_server::mock::MockServer;
    /// # use parcelo::LabelFormat;
    /// # let runtime = tokio::runtime::Runtime::new()?;
    /// # let server = runtime.block_on(MockServer::start());
    /// # let client = server.in_memory_builder(&server.key().issue()).build_blocking()?;
    /// # let order = serde_json::from_str(parcelo_server::mock::sample::ORDER)?;
    /// # let number = client.orders().create(&order)?.into_inner().parcel.tracking_number;
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("label.zpl");
    /// client.labels().download(&number, LabelFormat::Zpl).save_to(&path)?;
    /// assert!(std::fs::read_to_string(&path)?.starts_with("^XA"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn save_to(self, path: impl AsRef<Path>) -> Result<u64, Error> {
        self.driver.call(self.file.save_to(path))
    }

    /// Saves the file in a directory and returns its path:
    /// [`LabelDownload::save_in`](crate::client::LabelDownload::save_in).
    pub fn save_in(self, directory: impl AsRef<Path>) -> Result<PathBuf, Error> {
        self.driver.call(self.file.save_in(directory))
    }

    /// The file as a reader: [`LabelDownload::stream`](crate::client::LabelDownload::stream).
    pub fn reader(self) -> Result<LabelReader<'a>, Error> {
        let stream = self.driver.call(self.file.stream())?;
        Ok(LabelReader { stream, driver: self.driver, chunk: Bytes::new() })
    }
}

/// A label file that is being downloaded.
///
/// Reading fails when the file does not arrive whole; the [`io::Error`] wraps the [`Error`].
#[derive(Debug)]
pub struct LabelReader<'a> {
    stream: LabelStream,
    driver: &'a Driver,
    /// What was received and not read yet.
    chunk: Bytes,
}

impl LabelReader<'_> {
    /// The file's length in bytes, if the service says it.
    pub fn length(&self) -> Option<u64> {
        self.stream.length()
    }
}

impl Read for LabelReader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.chunk.is_empty() && !buffer.is_empty() {
            let next = self.driver.wait(self.stream.next()).map_err(io::Error::other)?;
            match next {
                Some(chunk) => self.chunk = chunk.map_err(io::Error::other)?,
                None => return Ok(0),
            }
        }
        let length = self.chunk.len().min(buffer.len());
        if let Some(target) = buffer.get_mut(..length) {
            self.chunk.copy_to_slice(target);
        }
        Ok(length)
    }
}
