//! Many labels as one file, in their order.

use std::path::{Path, PathBuf};

use parcelo::{Client, LabelFormat, TrackingNumber};

use super::{call, label, label::WantedLabels};
use crate::{
    failure::Failure,
    results::{CommandOutcome, FoundItems, Results, SavedLabels},
    texts,
};

/// Maximum number of labels in a request, and so in a PDF, because joining PDFs would need another library.
const MAX_MERGED: usize = 100;

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
        if *format == LabelFormat::Pdf && numbers.len() > MAX_MERGED {
            return Err(Failure::usage(texts::MANY_TO_STDOUT, texts::MERGE_TO_FILE));
        }
        let mut labels = Vec::new();
        for part in numbers.chunks(MAX_MERGED) {
            labels.extend(call::execute_read(client.labels().batch(part, *format).bytes()).await?);
        }
        return Ok(CommandOutcome::with(Results::Raw(labels)));
    };
    let (found, failure) = save(client, numbers, (path, *format)).await;
    if found.is_empty()
        && let Some(failure) = failure
    {
        return Err(failure);
    }
    let requested_count = numbers.len().div_ceil(MAX_MERGED);
    let done = CommandOutcome::report(FoundItems { requested_count, found }).failing(failure);
    Ok(if requested_count > 1 { done.note(texts::SEVERAL_FILES) } else { done })
}

/// Saves labels as one file, or as numbered files if there are too many for one. If a file cannot be saved, the failure
/// is that of the first such file.
pub(super) async fn save(
    client: &Client,
    numbers: &[TrackingNumber],
    (path, format): (&Path, LabelFormat),
) -> (Vec<SavedLabels>, Option<Failure>) {
    let mut saved = Vec::new();
    for (index, part) in numbers.chunks(MAX_MERGED).enumerate() {
        let file =
            if numbers.len() > MAX_MERGED { numbered_path(path, index + 1) } else { path.into() };
        match label::save_file(client.labels().batch(part, format), &file).await {
            Ok(bytes) => saved.push(SavedLabels { labels: part.len(), format, file, bytes }),
            Err(failure) => return (saved, Some(failure)),
        }
    }
    (saved, None)
}

/// Returns `labels-2.pdf` for `labels.pdf`.
fn numbered_path(path: &Path, number: usize) -> PathBuf {
    let mut name = path.file_stem().unwrap_or_default().to_owned();
    name.push(format!("-{number}"));
    if let Some(extension) = path.extension() {
        name.push(".");
        name.push(extension);
    }
    path.with_file_name(name)
}
