//! `track`: the status of parcels. One number is a single call, several are a batch.

use parcelo::{
    Client, TrackingNumber,
    model::{BatchResult, TrackingRecord},
};

use super::call;
use crate::{
    failure::{Exit, Failure},
    results::{CommandOutcome, FoundItems},
};

pub(super) async fn track(
    client: &Client,
    numbers: &[TrackingNumber],
    history: bool,
) -> Result<CommandOutcome, Failure> {
    let (tracked, failure) = records(client, numbers, history).await?;
    Ok(CommandOutcome::report(tracked).failing(failure))
}

/// Fetches the parcels; a failure names those that were not found.
pub(super) async fn records(
    client: &Client,
    numbers: &[TrackingNumber],
    history: bool,
) -> Result<(FoundItems<TrackingRecord>, Option<Failure>), Failure> {
    if let [number] = numbers {
        let request = client.tracking().get(number).history(history);
        let record = call::execute_read(request).await?.into_inner();
        return Ok((FoundItems { requested_count: 1, found: vec![record] }, None));
    }
    let results = call::execute_read(client.tracking().batch(numbers).history(history)).await?;
    let (mut found, mut failed) = (Vec::new(), Vec::new());
    for result in results {
        match result {
            BatchResult::Found { tracking, .. } => found.push(*tracking),
            BatchResult::NotFound { tracking_number, error, .. } => {
                failed.push((tracking_number, Failure::from(&error)));
            }
            BatchResult::Unreadable { tracking_number, row, .. } => {
                let failure = Failure::for_unreadable_row(Exit::NotExecuted, &row);
                failed.push((tracking_number.unwrap_or_default(), failure));
            }
        }
    }
    let requested_count = numbers.len();
    let failure =
        (!failed.is_empty()).then(|| Failure::for_items(found.len(), requested_count, failed));
    Ok((FoundItems { requested_count, found }, failure))
}
