//! `label`: label files in a directory or on standard output, what is known about a label, and a
//! label made anew.

use std::{fs, io, path::Path};

use parcelo::{Client, LabelFormat, Outcome, ReprintRequest, TrackingNumber, model::LabelStatus};

use super::call;
use crate::{
    failure::{Exit, Failure},
    findings::{Drawn, Finding},
    picture,
    resolve::LabelTarget,
    results::{CommandOutcome, Results, SavedLabel, Written},
    resume::ResumeHint,
    texts,
};

/// Makes the directory that files are saved in, unless it is there.
pub(super) fn make_directory(directory: &Path) -> Result<(), Failure> {
    fs::create_dir_all(directory).map_err(|why| {
        // It is there then, as something else.
        let is_file = why.kind() == io::ErrorKind::AlreadyExists;
        let why = if is_file { io::ErrorKind::NotADirectory.into() } else { why };
        Failure::unwritable(&directory.to_string_lossy(), &why)
    })
}

pub(super) async fn get(
    client: &Client,
    numbers: &[TrackingNumber],
    format: LabelFormat,
    target: &LabelTarget,
) -> Result<CommandOutcome, Failure> {
    let (results, failure) = match target {
        LabelTarget::Directory(directory) => {
            make_directory(directory)?;
            let (labels, failure) = call::each(numbers, async |number| {
                let name = format!("label-{number}.{}", format.extension());
                save(client, number, format, &directory.join(name)).await
            })
            .await;
            (Results::Labels(labels), failure)
        }
        LabelTarget::Output => {
            let (files, failure) = call::each(numbers, async |number| {
                call::read(client.labels().download(number, format).bytes()).await
            })
            .await;
            (Results::File(files.found.concat()), failure)
        }
    };
    Ok(CommandOutcome { failure, ..CommandOutcome::with(results) })
}

/// Saves one label.
pub(super) async fn save(
    client: &Client,
    number: &TrackingNumber,
    format: LabelFormat,
    file: &Path,
) -> Result<SavedLabel, Failure> {
    let download = client.labels().download(number, format);
    let bytes = match fs::metadata(file) {
        // A pipe or a device takes the bytes; a file must not stand in its place afterwards.
        Ok(there) if !there.is_file() => {
            let bytes = call::read(download.bytes()).await?;
            fs::write(file, &bytes)
                .map_err(|why| Failure::unwritable(&file.to_string_lossy(), &why))?;
            bytes.len() as u64
        }
        // A link to a file stays a link.
        Ok(_) => {
            let place = fs::canonicalize(file).unwrap_or_else(|_| file.to_owned());
            call::read(download.save_to(place)).await?
        }
        Err(_) => call::read(download.save_to(file)).await?,
    };
    Ok(SavedLabel { number: number.clone(), format, file: file.to_owned(), bytes })
}

pub(super) async fn info(
    client: &Client,
    number: &TrackingNumber,
) -> Result<CommandOutcome, Failure> {
    let label = call::read(client.labels().metadata(number)).await?.into_inner();
    Ok(CommandOutcome::with(Results::Label(Box::new(label))))
}

/// The label as characters, above what is known about it. A void one is not drawn: the service
/// gives it out no more.
pub(super) async fn draw(
    client: &Client,
    number: &TrackingNumber,
    columns: usize,
) -> Result<CommandOutcome, Failure> {
    let label = call::read(client.labels().metadata(number)).await?.into_inner();
    if label.status == LabelStatus::Voided {
        let done = CommandOutcome::with(Results::Label(Box::new(label)));
        return Ok(done.note(texts::NOT_DRAWN.into()));
    }
    let file = call::read(client.labels().download(number, LabelFormat::Png).bytes()).await?;
    let lines = picture::lines(&file, columns)
        .ok_or_else(|| Failure::new(Exit::NotExecuted, "UNREADABLE_ANSWER", texts::NO_PICTURE))?;
    Ok(CommandOutcome::with(Results::Finding(Finding::Drawn(Box::new(Drawn { lines, label })))))
}

pub(super) async fn reprint(
    client: &Client,
    number: &TrackingNumber,
    request: &ReprintRequest,
) -> Result<CommandOutcome, Failure> {
    let resume = ResumeHint::WithKey(&request.idempotency_key);
    let reply = call::answer(client.labels().reprint(number, request), resume).await?;
    let reprinted = Written::of(reply);
    let replayed = reprinted.outcome == Outcome::Replayed;
    let done = CommandOutcome::with(Results::Reprinted(Box::new(reprinted)));
    let done = if replayed { done.note(texts::REPLAYED_LABEL.into()) } else { done };
    Ok(done.note(texts::GET_LABEL.with(&[("number", number.as_str())])))
}
