//! `sandbox reset`: an empty sandbox. Whether the user is sure was asked before.

use parcelo::Client;

use super::call;
use crate::{
    failure::Failure,
    results::{CommandOutcome, Results},
    resume::ResumeHint,
};

pub(super) async fn reset(client: &Client) -> Result<CommandOutcome, Failure> {
    let reset = call::answer(client.sandbox().reset(), ResumeHint::Look).await?.into_inner();
    Ok(CommandOutcome::with(Results::Reset(Box::new(reset))))
}
