//! Downloads of a label, of a file with many labels, or of an invoice: into memory, as a stream, or to disk. An
//! interrupted download is started again, and the bytes that were already delivered are skipped. It requests no
//! `Range`, because the service draws a label for each request, and a file has tens of KB at most.

use std::{
    io, mem,
    path::{Path, PathBuf},
};

use bytes::{Buf, Bytes};
use futures_util::{StreamExt, stream, stream::BoxStream};
use http::{
    HeaderMap, StatusCode,
    header::{CONTENT_ENCODING, CONTENT_TYPE},
};
use sha2::{Digest, Sha256};

use super::{
    Client, Error, ErrorKind,
    attempt_error::AttemptError,
    body::BodyReader,
    call::{Call, call_settings},
    call_state::CallState,
    error::Texts,
    execute::CallExecution,
    request::UnsentRequest,
    response::ServiceResponse,
    temp_file::{TempFile, safe_file_name},
};

/// A label, a file of many, or an invoice to download: into memory, to a file, or as a stream.
#[derive(Debug, Clone)]
#[must_use = "nothing is downloaded before `bytes`, `save_to`, `save_in` or `stream` is awaited"]
pub struct LabelDownload {
    client: Client,
    request: Result<UnsentRequest, Error>,
    /// The name of the file in a directory, before it is made safe.
    file_name: String,
}

call_settings!(LabelDownload);

impl LabelDownload {
    pub(super) fn new(
        client: &Client,
        request: Result<UnsentRequest, Error>,
        file_name: String,
    ) -> Self {
        Self { client: client.clone(), request, file_name }
    }

    /// Downloads the file into memory.
    ///
    /// Errors: those of [`Labels::download`](crate::client::Labels::download).
    ///
    /// ```
    #[doc = include_str!("example.txt")]
    /// # let number = server.seed_parcels(1).await.remove(0);
    /// use parcelo::LabelFormat;
    ///
    /// let png = client.labels().download(&number, LabelFormat::Png).bytes().await?;
    /// assert_eq!(&png[1..4], b"PNG");
    /// # Ok(())
    /// # }
    /// ```
    pub fn bytes(self) -> Call<Bytes> {
        Call::new(self.client, self.request, |client, request| {
            Box::pin(async {
                let (response, execution) = client.execute(request, BodyReader::read_all).await?;
                label_body(response, &execution)
            })
        })
    }

    /// Saves the file and returns its length in bytes.
    ///
    /// The file appears at `path` complete or not at all, and replaces any existing file. It is first written under
    /// a temporary name in the same directory, in which the program must be allowed to create files.
    ///
    /// Errors: `File` when it cannot be written, and those of [`LabelDownload::stream`].
    ///
    /// ```
    #[doc = include_str!("example.txt")]
    /// # let number = server.seed_parcels(1).await.remove(0);
    /// # let folder = tempfile::tempdir()?;
    /// use parcelo::LabelFormat;
    ///
    /// let path = folder.path().join("label.pdf");
    /// let length = client.labels().download(&number, LabelFormat::Pdf).save_to(&path).await?;
    /// assert_eq!(std::fs::metadata(path)?.len(), length);
    /// # Ok(())
    /// # }
    /// ```
    pub fn save_to(self, path: impl AsRef<Path>) -> Call<u64> {
        let (request, path) = (self.request, path.as_ref().to_owned());
        Call::composed(self.client, move |client| save(client, request.clone(), path.clone()))
    }

    /// Saves the file in a directory, as [`LabelDownload::save_to`] does, and returns its path.
    ///
    /// It is named after its tracking number (an invoice `invoice-{number}.pdf`, many labels `labels.pdf`), or after
    /// the end of its link, which cannot lead out of the directory. Errors: as [`LabelDownload::save_to`].
    ///
    /// ```
    #[doc = include_str!("example.txt")]
    /// # let number = server.seed_parcels(1).await.remove(0);
    /// # let folder = tempfile::tempdir()?;
    /// use parcelo::LabelFormat;
    ///
    /// let path = client.labels().download(&number, LabelFormat::Zpl).save_in(&folder).await?;
    /// assert!(path.ends_with(format!("{number}.zpl")));
    /// # Ok(())
    /// # }
    /// ```
    pub fn save_in(self, directory: impl AsRef<Path>) -> Call<PathBuf> {
        let path = directory.as_ref().join(safe_file_name(&self.file_name));
        let request = self.request;
        Call::composed(self.client, move |client| {
            let (saved, path) = (save(client, request.clone(), path.clone()), path.clone());
            async move { saved.await.map(|_length| path) }
        })
    }

    /// Returns the file as a stream of chunks.
    ///
    /// When the connection breaks, the file is requested again, as often as [`Retry`](crate::client::Retry) allows, and
    /// the stream continues where it was. Errors: as [`LabelDownload::bytes`], here or from the stream; `Conflict` from
    /// the stream when the label was reprinted in between.
    ///
    /// ```
    #[doc = include_str!("example.txt")]
    /// # let number = server.seed_parcels(1).await.remove(0);
    /// use parcelo::LabelFormat;
    ///
    /// let mut chunks = client.labels().download(&number, LabelFormat::Png).stream().await?;
    /// let (length, mut received) = (chunks.length(), 0);
    /// while let Some(chunk) = chunks.next().await {
    ///     received += chunk?.len() as u64;
    /// }
    /// assert_eq!(length, Some(received));
    /// # Ok(())
    /// # }
    /// ```
    pub fn stream(self) -> Call<LabelStream> {
        Call::new(self.client, self.request, |client, request| Box::pin(open(client, request)))
    }
}

async fn open(client: Client, request: UnsentRequest) -> Result<LabelStream, Error> {
    let (response, execution) =
        client.execute(request, |reader| std::future::ready(Ok(reader))).await?;
    Ok(LabelStream::new(label_body(response, &execution)?, execution))
}

async fn save(
    client: Client,
    request: Result<UnsentRequest, Error>,
    path: PathBuf,
) -> Result<u64, Error> {
    let random = client.retry_policy().random();
    let temporary = TempFile::path_beside(&path, random).ok_or_else(|| file_error(NO_FILE_NAME))?;
    let mut stream = open(client, request?).await?;
    let mut file = spawn_blocking(|| TempFile::create(temporary)).await?;
    let mut length = 0;
    while let Some(chunk) = stream.next().await.transpose()? {
        length += chunk.len() as u64;
        file = spawn_blocking(move || file.append(&chunk)).await?;
    }
    spawn_blocking(move || file.persist(&path)).await?;
    Ok(length)
}

/// A file that is being downloaded, as a stream of chunks.
///
/// Its last item is an error when the file did not arrive whole.
pub struct LabelStream {
    chunks: BoxStream<'static, Result<Bytes, Error>>,
    length: Option<u64>,
    /// The rest of a chunk that was read in part.
    unread: Bytes,
}

impl LabelStream {
    fn new(reader: BodyReader, execution: CallExecution) -> Self {
        let length = reader.content_length();
        let (hash, held_back) = (Sha256::new(), None);
        let download = Download { reader, execution, delivered_bytes: 0, hash, held_back };
        let chunks = stream::unfold(Some(download), async |download| {
            let mut download = download?;
            match download.next().await {
                Ok(chunk) => Some((Ok(chunk?), Some(download))),
                Err(error) => Some((Err(error), None)),
            }
        });
        Self { chunks: chunks.fuse().boxed(), length, unread: Bytes::new() }
    }

    /// Returns the next chunk; `None` at the end of the whole file.
    pub async fn next(&mut self) -> Option<Result<Bytes, Error>> {
        StreamExt::next(self).await
    }

    /// Returns the file's length in bytes, if the service states it.
    pub fn length(&self) -> Option<u64> {
        self.length
    }

    /// Removes the rest of a chunk that was read in part.
    pub(crate) fn take_unread(&mut self) -> Bytes {
        mem::take(&mut self.unread)
    }

    /// Puts the rest of a chunk back, to be returned next.
    #[cfg(feature = "blocking")]
    pub(crate) fn put_back(&mut self, unread: Bytes) {
        self.unread = unread;
    }
}

impl std::fmt::Debug for LabelStream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LabelStream").field("length", &self.length).finish_non_exhaustive()
    }
}

impl futures_util::Stream for LabelStream {
    type Item = Result<Bytes, Error>;

    fn poll_next(
        mut self: std::pin::Pin<&mut Self>,
        context: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Self::Item>> {
        let unread = self.take_unread();
        if unread.is_empty() {
            self.chunks.poll_next_unpin(context)
        } else {
            std::task::Poll::Ready(Some(Ok(unread)))
        }
    }
}

/// A download in progress, with the amount and the hash of the bytes that were delivered to the caller.
struct Download {
    reader: BodyReader,
    execution: CallExecution,
    delivered_bytes: u64,
    /// The hash of the delivered bytes.
    hash: Sha256,
    /// A chunk that was received, but not yet delivered.
    held_back: Option<Bytes>,
}

impl Download {
    async fn next(&mut self) -> Result<Option<Bytes>, Error> {
        loop {
            let next = match self.held_back.take() {
                Some(chunk) => Ok(Some(chunk)),
                None => self.reader.next().await,
            };
            match next {
                Ok(Some(chunk)) => {
                    self.delivered_bytes += chunk.len() as u64;
                    self.hash.update(&chunk);
                    return Ok(Some(chunk));
                }
                Ok(None) => return Ok(None),
                Err(error) => {
                    let restarted = self.restart(error).await;
                    restarted.inspect_err(|error| self.execution.record_error(error))?;
                }
            }
        }
    }

    /// Requests the file again and skips the delivered bytes, if it is the same.
    async fn restart(&mut self, error: AttemptError) -> Result<(), Error> {
        let mut error = error;
        loop {
            self.execution.restart_deadline();
            self.execution.recover(error).await?;
            let response = self.execution.run(|reader| std::future::ready(Ok(reader))).await?;
            self.reader = label_body(response, &self.execution)?;
            match self.skip_delivered().await {
                Ok(true) => return Ok(()),
                Ok(false) => return Err(self.label_changed()),
                Err(again) => error = again,
            }
        }
    }

    /// Returns `true` if the new file begins with the bytes that were delivered of the old one.
    async fn skip_delivered(&mut self) -> Result<bool, AttemptError> {
        let (mut left, mut hash) = (self.delivered_bytes, Sha256::new());
        while left > 0 {
            let Some(mut chunk) = self.reader.next().await? else { return Ok(false) };
            let delivered = usize::try_from(left).unwrap_or(usize::MAX).min(chunk.len());
            hash.update(chunk.split_to(delivered));
            left -= delivered as u64;
            self.held_back = Some(chunk).filter(Buf::has_remaining);
        }
        Ok(hash.finalize() == self.hash.clone().finalize())
    }

    fn label_changed(&self) -> Error {
        const CHANGED: Texts = (
            "The label was reprinted during the download: start again.",
            "La etiqueta se reimprimió durante la descarga: empiece de nuevo.",
        );
        self.execution.state.error(ErrorKind::Conflict, CHANGED)
    }
}

/// Media types that neither labels nor invoices have. A response that declares one of them comes from another server in
/// between, such as the login page of a proxy.
const NON_LABEL_TYPES: [&str; 2] = ["text/html", "application/json"];

/// Returns the body of a response, if it is a label or an invoice.
fn label_body<T>(response: ServiceResponse<T>, execution: &CallExecution) -> Result<T, Error> {
    let body = checked_body(response, &execution.state);
    execution.finish(body.as_ref().err());
    body
}

fn checked_body<T>(response: ServiceResponse<T>, state: &CallState) -> Result<T, Error> {
    const NOT_THE_FILE: Texts = (
        "The response is not the file that was requested: check which server is at this address.",
        "La respuesta no es el archivo solicitado: revise qué responde en esa dirección.",
    );
    let declared = response.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let media_type = declared.unwrap_or_default().split(';').next().unwrap_or_default().trim();
    // Only 200 is the whole file: a 206 is a part of it, which was not requested.
    if response.status == StatusCode::OK
        && !NON_LABEL_TYPES.iter().any(|other| media_type.eq_ignore_ascii_case(other))
        && !is_encoded(&response.headers)
    {
        return Ok(response.body);
    }
    Err(state.decode_error(&response.summary(), NOT_THE_FILE))
}

/// Returns `true` if the body is compressed, which was not requested.
fn is_encoded(headers: &HeaderMap) -> bool {
    headers.get(CONTENT_ENCODING).is_some_and(|encoding| encoding != "identity")
}

const NO_FILE_NAME: Texts = ("The path does not name a file.", "La ruta no indica un archivo.");
const NOT_WRITTEN: Texts = ("The file could not be written.", "No se pudo escribir el archivo.");

/// Runs file operations on a blocking thread. They complete even if this future is dropped.
async fn spawn_blocking<T: Send + 'static>(
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> Result<T, Error> {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result.map_err(|error| file_error(NOT_WRITTEN).with_source(error)),
        Err(error) => Err(file_error(NOT_WRITTEN).with_source(error)),
    }
}

fn file_error(texts: Texts) -> Error {
    Error::new(ErrorKind::File, texts)
}
