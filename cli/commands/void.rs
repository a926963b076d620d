//! `order void`: orders that are not to be shipped.

use parcelo::{Client, Outcome, VoidRequest};

use super::service;
use crate::{
    calls,
    failure::Failure,
    results::{Done, Results, Written},
    resume::Resume,
    texts,
};

pub(super) async fn void(client: &Client, request: &VoidRequest) -> Result<Done, Failure> {
    let resume = Resume::WithKey(&request.idempotency_key);
    let reply = service::answer(client.orders().void(request), resume).await?;
    let voided = Written::of(reply);
    let failed = calls::unvoided(&voided.value.results);
    let all = voided.value.results.len();
    let failure = (!failed.is_empty())
        .then(|| Failure::of_items(all.saturating_sub(failed.len()), all, failed));
    let replayed = voided.outcome == Outcome::Replayed;
    let done = Done { failure, ..Done::with(Results::Voided(Box::new(voided))) };
    Ok(if replayed { done.note(texts::REPLAYED_VOID.into()) } else { done })
}
