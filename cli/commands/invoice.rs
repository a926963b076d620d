//! `invoice get`: saves commercial invoices.

use parcelo::{Client, LabelFormat, TrackingNumber};

use super::label::{LabelTarget, get_documents};
use crate::{failure::Failure, results::CommandOutcome};

pub(super) async fn get(
    client: &Client,
    numbers: &[TrackingNumber],
    target: &LabelTarget,
) -> Result<CommandOutcome, Failure> {
    let labels = client.labels();
    get_documents(numbers, LabelFormat::Pdf, target, |number| {
        (format!("invoice-{number}.pdf"), labels.invoice(number))
    })
    .await
}
