//! `label`: saves label files, shows a label's text and details, and reprints.

use std::{
    borrow::Cow,
    fs, io,
    path::{Path, PathBuf},
};

use parcelo::{
    Client, LabelFormat, ReprintRequest, TrackingNumber, calls::LabelDownload, model::LabelStatus,
};

use super::{call, label_text, manifest, opener};
use crate::{
    failure::Failure,
    requests::{self, ManifestName},
    results::{CommandOutcome, FoundItems, Results, SavedLabel, ShownLabel, WriteResult},
    resume::ResumeHint,
    texts,
};

/// The destination of label files.
#[derive(Debug)]
pub(crate) enum LabelTarget {
    Directory(PathBuf),
    Stdout,
}

/// The parcels whose labels are requested.
#[derive(Debug)]
pub(crate) enum WantedLabels {
    Of(Vec<TrackingNumber>),
    OfManifest(ManifestName),
}

impl WantedLabels {
    /// Returns `true` if this is known to be at most one label, without asking the service.
    pub(crate) fn is_one(&self) -> bool {
        matches!(self, Self::Of(numbers) if numbers.len() <= 1)
    }

    /// Returns the parcels, in the manifest's order if it is one.
    pub(super) async fn numbers(
        &self,
        client: &Client,
    ) -> Result<Cow<'_, [TrackingNumber]>, Failure> {
        match self {
            Self::Of(numbers) => Ok(Cow::Borrowed(numbers)),
            Self::OfManifest(name) => {
                let manifest = manifest::find(client, name).await?;
                let numbers = manifest.tracking_numbers.iter();
                numbers.map(|number| requests::parse_number(number.as_str())).collect()
            }
        }
    }
}

/// The views of `label show`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LabelView {
    /// The label's details.
    Details,
    /// The label's text too.
    Text,
    /// The details, and the label itself in the system's viewer.
    Open,
}

/// Creates the directory for saved files, unless it exists.
pub(super) fn make_directory(directory: &Path) -> Result<(), Failure> {
    fs::create_dir_all(directory).map_err(|err| {
        // A file is in the place of the directory.
        let is_file = err.kind() == io::ErrorKind::AlreadyExists;
        let err = if is_file { io::ErrorKind::NotADirectory.into() } else { err };
        Failure::for_unwritable_file(&directory.to_string_lossy(), &err)
    })
}

/// Runs a future that saves files in a directory. The directory is created first, and removed again if no file was
/// saved.
async fn in_directory<T>(
    directory: &Path,
    work: impl Future<Output = Result<T, Failure>>,
) -> Result<T, Failure> {
    let is_new = |path: &&Path| !path.as_os_str().is_empty() && !path.exists();
    let new: Vec<_> = directory.ancestors().take_while(is_new).collect();
    make_directory(directory)?;
    let done = work.await;
    for path in new {
        // Removing fails if the directory has a file, so it stays.
        let _ = fs::remove_dir(path);
    }
    done
}

pub(super) async fn get(
    client: &Client,
    wanted: &WantedLabels,
    format: LabelFormat,
    target: &LabelTarget,
) -> Result<CommandOutcome, Failure> {
    let numbers = &wanted.numbers(client).await?;
    let labels = client.labels();
    get_documents(numbers, format, target, |number| {
        (file_name(number, format), labels.download(number, format))
    })
    .await
}

/// Saves or prints a document of each parcel; `document` returns the name of its file and its download.
pub(super) async fn get_documents<'a>(
    numbers: &'a [TrackingNumber],
    format: LabelFormat,
    target: &LabelTarget,
    document: impl Fn(&'a TrackingNumber) -> (String, LabelDownload),
) -> Result<CommandOutcome, Failure> {
    match target {
        LabelTarget::Directory(directory) => {
            let saved = call::for_each(numbers, async |number| {
                let (name, download) = document(number);
                let file = directory.join(name);
                let bytes = save_file(download, &file).await?;
                Ok(SavedLabel { tracking_number: number.clone(), format, file, bytes })
            });
            let (found, failure) = in_directory(directory, Box::pin(saved)).await?;
            let saved = FoundItems { requested_count: numbers.len(), found };
            Ok(CommandOutcome::report(saved).failing(failure))
        }
        LabelTarget::Stdout => {
            let read = async |number| call::execute_read(document(number).1.bytes()).await;
            let (files, failure) = call::for_each(numbers, read).await?;
            Ok(CommandOutcome::with(Results::Raw(files.concat())).failing(failure))
        }
    }
}

/// Returns the name of a label's file.
pub(super) fn file_name(number: &TrackingNumber, format: LabelFormat) -> String {
    format!("label-{number}.{}", format.extension())
}

/// Saves one label.
pub(super) async fn save(
    client: &Client,
    number: &TrackingNumber,
    format: LabelFormat,
    file: &Path,
) -> Result<SavedLabel, Failure> {
    let bytes = save_file(client.labels().download(number, format), file).await?;
    Ok(SavedLabel { tracking_number: number.clone(), format, file: file.to_owned(), bytes })
}

/// Saves a file, and returns its length in bytes.
pub(super) async fn save_file(download: LabelDownload, file: &Path) -> Result<u64, Failure> {
    match fs::metadata(file) {
        // A pipe or a device is written to directly, because `save_to` would replace it with a file.
        Ok(found) if !found.is_file() => {
            let bytes = call::execute_read(download.bytes()).await?;
            fs::write(file, &bytes)
                .map_err(|err| Failure::for_unwritable_file(&file.to_string_lossy(), &err))?;
            Ok(bytes.len() as u64)
        }
        // `save_to` replaces the path that it is given, so a symbolic link is resolved first and stays a link.
        Ok(_) => {
            let target = fs::canonicalize(file).unwrap_or_else(|_| file.to_owned());
            call::execute_read(download.save_to(target)).await
        }
        Err(_) => call::execute_read(download.save_to(file)).await,
    }
}

pub(super) async fn show(
    client: &Client,
    number: &TrackingNumber,
    view: LabelView,
) -> Result<CommandOutcome, Failure> {
    let label = call::execute_read(client.labels().metadata(number)).await?.into_inner();
    // The service does not serve the file of a void label.
    let is_void = label.status == LabelStatus::Voided;
    let download = |format| client.labels().download(number, format).bytes();
    match view {
        LabelView::Text if !is_void => {
            let lines = label_text::lines(&call::execute_read(download(LabelFormat::Zpl)).await?);
            Ok(CommandOutcome::report(ShownLabel { label, lines }))
        }
        LabelView::Open if !is_void => {
            let file = call::execute_read(download(LabelFormat::Pdf)).await?;
            let opened = opener::open(&file_name(number, LabelFormat::Pdf), &file)?;
            let note = texts::OPENED.with(&[("file", &opened.to_string_lossy())]);
            Ok(CommandOutcome::report(ShownLabel { label, lines: Vec::new() }).note(note))
        }
        LabelView::Details | LabelView::Text | LabelView::Open => {
            let shown = CommandOutcome::report(ShownLabel { label, lines: Vec::new() });
            Ok(if view == LabelView::Details { shown } else { shown.note(texts::LABEL_IS_VOID) })
        }
    }
}

pub(super) async fn reprint(
    client: &Client,
    number: &TrackingNumber,
    request: &ReprintRequest,
) -> Result<CommandOutcome, Failure> {
    let resume = ResumeHint::WithKey(&request.idempotency_key);
    let reply = call::execute(client.labels().reprint(number, request), resume).await?;
    let done = WriteResult::from(reply).report(texts::REPLAYED_LABEL);
    Ok(done.note(texts::GET_LABEL.with(&[("number", number.as_str())])))
}
