//! `track`: where parcels stand, asked for one by one or by the hundred.

use parcelo::{Client, TrackingNumber, model::BatchResult};

use super::service;
use crate::{
    failure::{Exit, Failure},
    results::{Done, List, Results},
};

pub(super) async fn track(
    client: &Client,
    numbers: &[TrackingNumber],
    history: bool,
) -> Result<Done, Failure> {
    match numbers {
        [number] => one(client, number, history).await,
        many => batch(client, many, history).await,
    }
}

async fn one(client: &Client, number: &TrackingNumber, history: bool) -> Result<Done, Failure> {
    let call = client.tracking().get(number).history(history);
    let record = service::read(call).await?.into_inner();
    Ok(Done::with(Results::Tracked(List { asked: 1, found: vec![record] })))
}

async fn batch(
    client: &Client,
    numbers: &[TrackingNumber],
    history: bool,
) -> Result<Done, Failure> {
    let results = service::read(client.tracking().batch(numbers).history(history)).await?;
    let (mut found, mut failed) = (Vec::new(), Vec::new());
    for result in results {
        match result {
            BatchResult::Found { tracking, .. } => found.push(*tracking),
            BatchResult::NotFound { tracking_number, error, .. } => {
                failed.push((tracking_number, Failure::from(&error)));
            }
            BatchResult::Unreadable { tracking_number, row, .. } => {
                let failure = Failure::unreadable_row(Exit::NotExecuted, &row);
                failed.push((tracking_number.unwrap_or_default(), failure));
            }
        }
    }
    let asked = numbers.len();
    let failure = (!failed.is_empty()).then(|| Failure::of_items(found.len(), asked, failed));
    Ok(Done { failure, ..Done::with(Results::Tracked(List { asked, found })) })
}
