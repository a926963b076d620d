//! Label files: in memory, piece by piece, or on disk, where a file is whole or not there.

use std::{
    fs, io,
    io::Write,
    path::{Path, PathBuf},
};

use bytes::Bytes;
use futures_util::{StreamExt, stream, stream::BoxStream};

use super::{
    Client, Error, ErrorKind, Failure, Reply, StopReason, body::Reader, call::Call, error::Texts,
    failure::Trace, send::Answer,
};
use crate::{LabelFormat, LabelMetadata, Operation, ReprintRequest, TrackingNumber};

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
    /// A label file, at most 16 MiB; say where it shall go.
    ///
    /// Errors: `NotFound` (no parcel, or no label yet), `Conflict` (the parcel was voided), and
    /// those of every call.
    ///
    /// ```no_run
    /// # async fn example(client: parcelo::Client) -> Result<(), parcelo::Error> {
    /// use parcelo::{LabelFormat, TrackingNumber};
    ///
    /// let number = TrackingNumber::parse("SB-SUCCESS-0001")?;
    /// let bytes = client.labels().download(&number, LabelFormat::Pdf).save_to("label.pdf").await?;
    /// let zpl = client.labels().download(&number, LabelFormat::Zpl).bytes().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn download(self, number: &'a TrackingNumber, format: LabelFormat) -> LabelDownload<'a> {
        LabelDownload { client: self.client, number, format }
    }

    /// What is known about a label; readable also after its order was voided.
    ///
    /// Errors: `NotFound` (no parcel, or no label yet), and those of every call.
    ///
    /// ```no_run
    /// # async fn example(client: parcelo::Client) -> Result<(), parcelo::Error> {
    /// use parcelo::{LabelStatus, TrackingNumber};
    ///
    /// let label = client.labels().metadata(&TrackingNumber::parse("SB-SUCCESS-0001")?).await?;
    /// if label.status == LabelStatus::Active {
    ///     println!("version {}: {:?}", label.version, label.label_url);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn metadata(self, number: &TrackingNumber) -> Result<Reply<LabelMetadata>, Error> {
        self.client.data(Call::new(Operation::GetLabel).parameter(number.as_str())).await
    }

    /// Makes a label anew: the same number and address, a mark `R1`, `R2`… on the paper.
    ///
    /// Errors: `NotFound`, `Conflict` (voided, or the parcel's journey is over), `Validation`, and
    /// those of every call.
    ///
    /// ```no_run
    /// # async fn example(client: parcelo::Client) -> Result<(), parcelo::Error> {
    /// use parcelo::{IdempotencyKey, LabelFormat, ReprintRequest, TrackingNumber};
    ///
    /// let number = TrackingNumber::parse("SB-SUCCESS-0001")?;
    /// let request = ReprintRequest::new(IdempotencyKey::random()).reason("Label torn");
    /// client.labels().reprint(&number, &request).await?;
    /// client.labels().download(&number, LabelFormat::Zpl).save_to("label.zpl").await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn reprint(
        self,
        number: &TrackingNumber,
        request: &ReprintRequest,
    ) -> Result<Reply<LabelMetadata>, Error> {
        let call = Call::new(Operation::ReprintLabel).parameter(number.as_str());
        self.client.data(call.keyed(&request.idempotency_key).body(request)?).await
    }
}

/// A label file that is about to be downloaded.
#[derive(Debug, Clone, Copy)]
#[must_use = "nothing is downloaded until it is said where to"]
pub struct LabelDownload<'a> {
    client: &'a Client,
    number: &'a TrackingNumber,
    format: LabelFormat,
}

impl LabelDownload<'_> {
    /// The file in memory. A download that breaks off is begun again.
    pub async fn bytes(self) -> Result<Bytes, Error> {
        let query = [("format", self.format.code())];
        let answer = self.client.answer(&self.call(&query), Reader::whole).await?;
        Ok(answer.body)
    }

    /// Writes the file and tells its length in bytes.
    ///
    /// The file appears at `path` whole or not at all, in place of one that was there. It is written
    /// beside it under another name first, which needs the right to create files in the directory.
    ///
    /// Errors: `File` when it cannot be written.
    pub async fn save_to(self, path: impl AsRef<Path>) -> Result<u64, Error> {
        let path = path.as_ref().to_owned();
        let draft = draft_of(&path, self.client.random()).ok_or_else(|| unwritten(BAD_NAME))?;
        let file = self.bytes().await?;
        let length = file.len() as u64;
        // On a thread of its own it runs to its end, even when this future is dropped.
        match tokio::task::spawn_blocking(move || write_whole(&path, &draft, &file)).await {
            Ok(written) => written.map_err(|fault| unwritten(UNWRITTEN).because(fault))?,
            Err(fault) => return Err(unwritten(UNWRITTEN).because(fault)),
        }
        Ok(length)
    }

    /// The file piece by piece, as it comes. It is not begun again when it breaks off.
    pub async fn stream(self) -> Result<LabelStream, Error> {
        let query = [("format", self.format.code())];
        let call = self.call(&query);
        let answer = self.client.answer(&call, |reader| std::future::ready(Ok(reader))).await?;
        Ok(LabelStream::new(Trace::new(&call), answer))
    }

    fn call<'c>(&'c self, query: &'c [(&'c str, &'c str)]) -> Call<'c> {
        Call::new(Operation::DownloadLabel).parameter(self.number.as_str()).query(query)
    }
}

/// A label file that is coming in, as a `Stream` of its pieces.
///
/// Its last item is an error when the file did not arrive whole.
pub struct LabelStream {
    pieces: BoxStream<'static, Result<Bytes, Error>>,
    length: Option<u64>,
}

impl LabelStream {
    fn new(trace: Trace, answer: Answer<Reader>) -> Self {
        let trace = Trace { attempts: answer.attempts, ..trace };
        let length = answer.body.promised();
        let pieces = stream::unfold(Some((answer.body, trace)), async |state| {
            let (mut reader, trace) = state?;
            match reader.next().await {
                Ok(piece) => Some((Ok(piece?), Some((reader, trace)))),
                Err(failure) => Some((Err(broken(failure, trace)), None)),
            }
        });
        Self { pieces: pieces.fuse().boxed(), length }
    }

    /// The next piece; none at the end of the whole file.
    pub async fn next(&mut self) -> Option<Result<Bytes, Error>> {
        self.pieces.next().await
    }

    /// The file's length in bytes, when the service says it.
    pub fn length(&self) -> Option<u64> {
        self.length
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
        self.pieces.poll_next_unpin(context)
    }
}

/// The pieces that were handed over cannot be taken back, so nothing is tried again.
fn broken(failure: Failure, trace: Trace) -> Error {
    failure.into_error(trace, StopReason::NotRepeatable)
}

const BAD_NAME: Texts = ("The path names no file.", "La ruta no nombra un archivo.");
const UNWRITTEN: Texts =
    ("The label file could not be written.", "No se pudo escribir el archivo de la etiqueta.");

fn unwritten(texts: Texts) -> Error {
    Error::new(ErrorKind::File, texts)
}

/// A name beside `path` that nobody else uses.
fn draft_of(path: &Path, random: u64) -> Option<PathBuf> {
    let mut name = std::ffi::OsString::from(".");
    name.push(path.file_name()?);
    name.push(format!(".{random:016x}.part"));
    Some(path.with_file_name(name))
}

fn write_whole(path: &Path, draft: &Path, content: &[u8]) -> io::Result<()> {
    let mut file = fs::File::create_new(draft)?;
    let written = file
        .write_all(content)
        .and_then(|()| file.sync_all())
        .and_then(|()| fs::rename(draft, path));
    if written.is_err() {
        // The first fault is the one to tell; a draft that stays behind does no harm.
        let _ = fs::remove_file(draft);
    }
    written
}
