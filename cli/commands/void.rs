//! `order void`.

use parcelo::{Client, VoidRequest};

use super::call;
use crate::{
    api_error,
    failure::Failure,
    results::{CommandOutcome, WriteResult},
    resume::ResumeHint,
    texts,
};

pub(super) async fn void(
    client: &Client,
    request: &VoidRequest,
) -> Result<CommandOutcome, Failure> {
    let resume = ResumeHint::WithKey(&request.idempotency_key);
    let reply = call::execute(client.orders().void(request), resume).await?;
    let voided = WriteResult::from(reply);
    let failed = api_error::unvoided_orders(&voided.value.results);
    let all = voided.value.results.len();
    let failure = (!failed.is_empty())
        .then(|| Failure::for_items(all.saturating_sub(failed.len()), all, failed));
    Ok(voided.report(texts::REPLAYED_VOID).failing(failure))
}
