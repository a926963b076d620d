//! `sandbox reset`: empties the sandbox. `resolve` has asked for confirmation.

use parcelo::Client;

use super::call;
use crate::{failure::Failure, results::CommandOutcome, resume::ResumeHint};

pub(super) async fn reset(client: &Client) -> Result<CommandOutcome, Failure> {
    let reset = call::execute(client.sandbox().reset(), ResumeHint::CheckFirst).await?.into_inner();
    Ok(CommandOutcome::report(reset))
}
