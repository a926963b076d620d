//! `invoice get`: saves commercial invoices.

use parcelo::{Client, LabelFormat, TrackingNumber};

use super::{
    call,
    label::{LabelTarget, in_directory, save_file},
};
use crate::{
    failure::Failure,
    results::{CommandOutcome, FoundItems, Results, SavedLabel},
};

pub(super) async fn get(
    client: &Client,
    numbers: &[TrackingNumber],
    target: &LabelTarget,
) -> Result<CommandOutcome, Failure> {
    match target {
        LabelTarget::Directory(directory) => {
            let saved = call::for_each(numbers, async |number| {
                let file = directory.join(format!("invoice-{number}.pdf"));
                let bytes = save_file(client.labels().invoice(number), &file).await?;
                let (tracking_number, format) = (number.clone(), LabelFormat::Pdf);
                Ok(SavedLabel { tracking_number, format, file, bytes })
            });
            let (found, failure) = in_directory(directory, Box::pin(saved)).await?;
            let invoices = FoundItems { asked: numbers.len(), found };
            Ok(CommandOutcome::report(invoices).failing(failure))
        }
        LabelTarget::Stdout => {
            let (files, failure) = call::for_each(numbers, async |number| {
                call::read(client.labels().invoice(number).bytes()).await
            })
            .await?;
            Ok(CommandOutcome::with(Results::Raw(files.concat())).failing(failure))
        }
    }
}
