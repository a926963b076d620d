//! `label get`: label files, in a directory or on standard output.

use std::{fs, path::Path};

use parcelo::{Client, LabelFormat, TrackingNumber};

use super::service;
use crate::{
    failure::Failure,
    resolve::Place,
    results::{Done, Results, SavedLabel},
};

pub(super) async fn get(
    client: &Client,
    numbers: &[TrackingNumber],
    format: LabelFormat,
    place: &Place,
) -> Result<Done, Failure> {
    let (results, failure) = match place {
        Place::Directory(directory) => {
            fs::create_dir_all(directory)
                .map_err(|why| Failure::unwritable(&directory.to_string_lossy(), &why))?;
            let (labels, failure) = service::each(numbers, async |number| {
                let name = format!("label-{number}.{}", format.extension());
                save(client, number, format, &directory.join(name)).await
            })
            .await;
            (Results::Labels(labels), failure)
        }
        Place::Output => {
            let (files, failure) = service::each(numbers, async |number| {
                service::answer(client.labels().download(number, format).bytes(), None).await
            })
            .await;
            (Results::File(files.found.concat()), failure)
        }
    };
    Ok(Done { failure, ..Done::with(results) })
}

/// Saves one label.
pub(super) async fn save(
    client: &Client,
    number: &TrackingNumber,
    format: LabelFormat,
    file: &Path,
) -> Result<SavedLabel, Failure> {
    let bytes =
        service::answer(client.labels().download(number, format).save_to(file), None).await?;
    Ok(SavedLabel { number: number.clone(), format, file: file.to_owned(), bytes })
}
