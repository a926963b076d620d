//! Many labels as one file, in their order.

use std::{
    fs, io,
    io::Write,
    path::{Path, PathBuf},
};

use parcelo::{Client, LabelFormat, TrackingNumber};

use super::{call, label, label::WantedLabels};
use crate::{
    failure::{Exit, Failure},
    pdf_join,
    results::{CommandOutcome, FoundItems, Results, SavedLabels},
    texts,
};

/// Maximum number of labels in a request.
const MAX_BATCH: usize = 100;

/// The file for all labels; standard output if `path` is `None`.
#[derive(Debug)]
pub(crate) struct MergedFile {
    pub(crate) path: Option<PathBuf>,
    pub(crate) format: LabelFormat,
}

/// Runs `label get --merge`.
pub(super) async fn get(
    client: &Client,
    wanted: &WantedLabels,
    MergedFile { path, format }: &MergedFile,
) -> Result<CommandOutcome, Failure> {
    let numbers = &*wanted.numbers(client).await?;
    let Some(path) = path else {
        return Ok(CommandOutcome::with(Results::Raw(download(client, numbers, *format).await?)));
    };
    let saved = save(client, numbers, (path, *format)).await?;
    Ok(CommandOutcome::report(FoundItems { requested_count: 1, found: vec![saved] }))
}

/// Saves all labels as one file, or none.
pub(super) async fn save(
    client: &Client,
    numbers: &[TrackingNumber],
    (file, format): (&Path, LabelFormat),
) -> Result<SavedLabels, Failure> {
    let bytes = if numbers.len() > MAX_BATCH {
        let labels = download(client, numbers, format).await?;
        write(file, &labels)
            .map_err(|err| Failure::for_unwritable_file(&file.to_string_lossy(), &err))?;
        labels.len() as u64
    } else {
        label::save_file(client.labels().batch(numbers, format), file).await?
    };
    Ok(SavedLabels { labels: numbers.len(), format, file: file.to_owned(), bytes })
}

/// Downloads labels, 100 in each request, and joins them.
async fn download(
    client: &Client,
    numbers: &[TrackingNumber],
    format: LabelFormat,
) -> Result<Vec<u8>, Failure> {
    let mut parts = Vec::new();
    for part in numbers.chunks(MAX_BATCH) {
        parts.push(call::execute_read(client.labels().batch(part, format).bytes()).await?);
    }
    match &*parts {
        [only] => Ok(only.to_vec()),
        _ if format != LabelFormat::Pdf => Ok(parts.concat()),
        _ => pdf_join::join(&parts).ok_or_else(|| {
            let failure = Failure::new(Exit::NotExecuted, "UNEXPECTED_ANSWER", texts::NOT_JOINED);
            failure.hint(texts::MERGE_FEWER)
        }),
    }
}

/// Writes a file so that it is complete or does not exist. A pipe or a device is written to directly.
fn write(file: &Path, labels: &[u8]) -> io::Result<()> {
    let target = fs::canonicalize(file).unwrap_or_else(|_| file.to_owned());
    if target.metadata().is_ok_and(|found| !found.is_file()) {
        return fs::write(target, labels);
    }
    let folder = target.parent().filter(|folder| !folder.as_os_str().is_empty());
    let mut draft = tempfile::Builder::new();
    draft.prefix(".labels-");
    // The usual mode of a new file: the user of a print queue must be able to read it.
    #[cfg(unix)]
    draft.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    let mut draft = draft.tempfile_in(folder.unwrap_or(Path::new(".")))?;
    draft.write_all(labels)?;
    draft.as_file().sync_all()?;
    draft.persist(target)?;
    Ok(())
}
