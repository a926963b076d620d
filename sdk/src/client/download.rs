//! A label file: in memory, piece by piece, or on disk. A download that breaks off is begun again,
//! and what was handed over already is not handed over twice.

use std::{
    io,
    path::{Path, PathBuf},
};

use bytes::{Buf, Bytes};
use futures_util::{StreamExt, stream, stream::BoxStream};
use http::{
    HeaderMap, StatusCode,
    header::{CONTENT_ENCODING, CONTENT_TYPE},
};
use sha2::{Digest, Sha256};
use url::Url;

use super::{
    Client, Error, ErrorKind, Failure, StopReason,
    body::Reader,
    call::Call,
    course::{Answer, Course},
    error::Texts,
    failure::Trace,
    file::{self, Draft},
    reply,
};
use crate::model::{LabelFormat, Operation, TrackingNumber};

/// A label file that is about to be downloaded: into memory, into a file, or piece by piece.
#[derive(Debug, Clone)]
#[must_use = "nothing is downloaded until it is said where to"]
pub struct LabelDownload<'a> {
    client: &'a Client,
    source: Source<'a>,
}

#[derive(Debug, Clone)]
enum Source<'a> {
    Parcel(&'a TrackingNumber, [(&'static str, &'static str); 1], LabelFormat),
    Link(Url),
}

impl<'a> LabelDownload<'a> {
    pub(super) fn of(client: &'a Client, number: &'a TrackingNumber, format: LabelFormat) -> Self {
        Self { client, source: Source::Parcel(number, [("format", format.code())], format) }
    }

    pub(super) fn linked(client: &'a Client, link: Url) -> Self {
        Self { client, source: Source::Link(link) }
    }

    /// The file in memory.
    ///
    /// Errors: those of [`Labels::download`](crate::client::Labels::download).
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = parcelo_server::mock::MockServer::start().await;
    /// # let client = server.client(&server.key().issue());
    /// # let number = server.seed_parcels(1).await.remove(0);
    /// use parcelo::LabelFormat;
    ///
    /// let png = client.labels().download(&number, LabelFormat::Png).bytes().await?;
    /// assert_eq!(&png[1..4], b"PNG");
    /// # Ok(())
    /// # }
    /// ```
    pub async fn bytes(self) -> Result<Bytes, Error> {
        let (answer, course) = self.client.answer(&self.call(), Reader::whole).await?;
        label_in(answer, &course.trace)
    }

    /// Writes the file and tells its length in bytes.
    ///
    /// The file appears at `path` whole or not at all, in place of one that was there. It is written
    /// beside it under another name first, piece by piece as it comes, which needs the right to
    /// create files in the directory.
    ///
    /// Errors: `File` when it cannot be written, and those of [`LabelDownload::stream`].
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = parcelo_server::mock::MockServer::start().await;
    /// # let client = server.client(&server.key().issue());
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
    pub async fn save_to(self, path: impl AsRef<Path>) -> Result<u64, Error> {
        let (path, random) = (path.as_ref().to_owned(), self.client.decider().random());
        let name = Draft::name(&path, random).ok_or_else(|| unwritten(BAD_NAME))?;
        let mut stream = self.stream().await?;
        let mut draft = on_disk(|| Draft::create(name)).await?;
        let mut length = 0;
        while let Some(piece) = stream.next().await.transpose()? {
            length += piece.len() as u64;
            draft = on_disk(move || draft.with(&piece)).await?;
        }
        on_disk(move || draft.move_to(&path)).await?;
        Ok(length)
    }

    /// Writes the file into a directory, as [`LabelDownload::save_to`] does, and tells its path.
    ///
    /// It is named after its tracking number, or after its link; nothing in a link can lead out of
    /// the directory. Errors: as [`LabelDownload::save_to`].
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = parcelo_server::mock::MockServer::start().await;
    /// # let client = server.client(&server.key().issue());
    /// # let number = server.seed_parcels(1).await.remove(0);
    /// # let folder = tempfile::tempdir()?;
    /// use parcelo::LabelFormat;
    ///
    /// let path = client.labels().download(&number, LabelFormat::Zpl).save_in(&folder).await?;
    /// assert!(path.ends_with(format!("{number}.zpl")));
    /// # Ok(())
    /// # }
    /// ```
    pub async fn save_in(self, directory: impl AsRef<Path>) -> Result<PathBuf, Error> {
        let name = match &self.source {
            Source::Parcel(number, _, format) => format!("{number}.{}", format.extension()),
            Source::Link(link) => link.path().rsplit('/').next().unwrap_or_default().to_owned(),
        };
        let path = directory.as_ref().join(file::harmless(&name));
        self.save_to(&path).await?;
        Ok(path)
    }

    /// The file piece by piece, as it comes.
    ///
    /// When the connection breaks, the file is asked for again, as often as
    /// [`Retry`](crate::client::Retry) allows, and the stream goes on where it was. Errors: as
    /// [`LabelDownload::bytes`], here or from the stream; `Conflict` from the stream when the label was
    /// reprinted meanwhile.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = parcelo_server::mock::MockServer::start().await;
    /// # let client = server.client(&server.key().issue());
    /// # let number = server.seed_parcels(1).await.remove(0);
    /// use parcelo::LabelFormat;
    ///
    /// let mut pieces = client.labels().download(&number, LabelFormat::Png).stream().await?;
    /// let (length, mut seen) = (pieces.length(), 0);
    /// while let Some(piece) = pieces.next().await {
    ///     seen += piece?.len() as u64;
    /// }
    /// assert_eq!(length, Some(seen));
    /// # Ok(())
    /// # }
    /// ```
    pub async fn stream(self) -> Result<LabelStream, Error> {
        let read = |reader| std::future::ready(Ok(reader));
        let (answer, course) = self.client.answer(&self.call(), read).await?;
        Ok(LabelStream::new(label_in(answer, &course.trace)?, course))
    }

    fn call(&self) -> Call<'_> {
        let call = Call::new(Operation::DownloadLabel);
        match &self.source {
            Source::Parcel(number, query, _) => call.parameter(number.as_str()).query(query),
            Source::Link(link) => call.link(link),
        }
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
    fn new(reader: Reader, course: Course) -> Self {
        let length = reader.promised();
        let delivery = Delivery { reader, course, seen: 0, hash: Sha256::new(), held: None };
        let pieces = stream::unfold(Some(delivery), async |delivery| {
            let mut delivery = delivery?;
            match delivery.next().await {
                Ok(piece) => Some((Ok(piece?), Some(delivery))),
                Err(error) => Some((Err(error), None)),
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

/// A file on its way, and what of it was handed over.
struct Delivery {
    reader: Reader,
    course: Course,
    seen: u64,
    hash: Sha256,
    /// Read, but not yet handed over.
    held: Option<Bytes>,
}

impl Delivery {
    async fn next(&mut self) -> Result<Option<Bytes>, Error> {
        loop {
            let next = match self.held.take() {
                Some(piece) => Ok(Some(piece)),
                None => self.reader.next().await,
            };
            match next {
                Ok(Some(piece)) => {
                    self.seen += piece.len() as u64;
                    self.hash.update(&piece);
                    return Ok(Some(piece));
                }
                Ok(None) => return Ok(None),
                Err(failure) => self.begin_again(failure).await?,
            }
        }
    }

    /// Asks for the file once more and passes over what was handed over, if it is the same.
    async fn begin_again(&mut self, failure: Failure) -> Result<(), Error> {
        let mut failure = failure;
        loop {
            self.course.extend();
            self.course.recover(failure).await?;
            let answer = self.course.answer(|reader| std::future::ready(Ok(reader))).await?;
            self.reader = label_in(answer, &self.course.trace)?;
            match self.pass_over().await {
                Ok(true) => return Ok(()),
                Ok(false) => return Err(self.changed()),
                Err(again) => failure = again,
            }
        }
    }

    /// True when the new file begins as the one that broke off.
    async fn pass_over(&mut self) -> Result<bool, Failure> {
        let (mut left, mut hash) = (self.seen, Sha256::new());
        while left > 0 {
            let Some(mut piece) = self.reader.next().await? else { return Ok(false) };
            let known = usize::try_from(left).unwrap_or(usize::MAX).min(piece.len());
            hash.update(piece.split_to(known));
            left -= known as u64;
            self.held = Some(piece).filter(Buf::has_remaining);
        }
        Ok(hash.finalize() == self.hash.clone().finalize())
    }

    fn changed(&self) -> Error {
        const CHANGED: Texts = (
            "The label was made anew while it was downloaded: begin again.",
            "La etiqueta se volvió a generar durante la descarga: empiece de nuevo.",
        );
        Error::new(ErrorKind::Conflict, CHANGED)
            .with(|inner| inner.attempts = self.course.trace.attempts)
    }
}

/// What calls itself a page or JSON is no label, but the word of somebody between: a proxy that asks for
/// a login, say.
const NO_LABELS: [&str; 2] = ["text/html", "application/json"];

/// The file in an answer.
fn label_in<T>(answer: Answer<T>, trace: &Trace) -> Result<T, Error> {
    const NO_LABEL: Texts = (
        "The answer is no label: look at what answers at the address.",
        "La respuesta no es una etiqueta: revise qué responde en esa dirección.",
    );
    let given = answer.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let kind = given.unwrap_or_default().split(';').next().unwrap_or_default().trim();
    // A 206 is a part of the file, which nobody asked for.
    if answer.status == StatusCode::OK
        && !NO_LABELS.iter().any(|other| kind.eq_ignore_ascii_case(other))
        && !is_packed(&answer.headers)
    {
        return Ok(answer.body);
    }
    Err(Error::new(ErrorKind::Decode, NO_LABEL).with(|inner| {
        inner.status = Some(answer.status.as_u16());
        inner.request_id = reply::request_id(&answer.headers);
        inner.attempts = trace.attempts;
        inner.stop_reason = Some(StopReason::Permanent);
    }))
}

/// True when the body is the file in another form, which nobody asked for.
fn is_packed(headers: &HeaderMap) -> bool {
    headers.get(CONTENT_ENCODING).is_some_and(|encoding| encoding != "identity")
}

const BAD_NAME: Texts = ("The path names no file.", "La ruta no nombra un archivo.");
const UNWRITTEN: Texts =
    ("The label file could not be written.", "No se pudo escribir el archivo de la etiqueta.");

/// Works on a thread of its own, which goes on to its end even when this future is dropped.
async fn on_disk<T: Send + 'static>(
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> Result<T, Error> {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done.map_err(|fault| unwritten(UNWRITTEN).because(fault)),
        Err(fault) => Err(unwritten(UNWRITTEN).because(fault)),
    }
}

fn unwritten(texts: Texts) -> Error {
    Error::new(ErrorKind::File, texts)
}
