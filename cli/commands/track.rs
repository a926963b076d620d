//! `track`: where parcels stand.

use parcelo::{Client, TrackingNumber};

use super::service;
use crate::{
    failure::Failure,
    results::{Done, Results},
};

pub(super) async fn track(
    client: &Client,
    numbers: &[TrackingNumber],
    history: bool,
) -> Result<Done, Failure> {
    let (records, failure) = service::each(numbers, async |number| {
        let call = client.tracking().get(number).history(history);
        Ok(service::answer(call, None).await?.into_inner())
    })
    .await;
    Ok(Done { failure, ..Done::with(Results::Tracked(records)) })
}
