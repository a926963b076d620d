//! `manifest submit` and `manifest show`.

use parcelo::{Client, ManifestRequest, Outcome, model::ManifestId};

use super::call;
use crate::{
    failure::Failure,
    results::{CommandOutcome, Written},
    resume::ResumeHint,
    texts,
};

pub(super) async fn submit(
    client: &Client,
    request: &ManifestRequest,
) -> Result<CommandOutcome, Failure> {
    let reply = call::execute(client.manifests().submit(request), ResumeHint::SameManifest).await?;
    let submitted = Written::from(reply);
    let replayed = submitted.outcome == Outcome::Replayed;
    let done = CommandOutcome::report(submitted);
    Ok(if replayed { done.note(texts::REPLAYED_MANIFEST) } else { done })
}

pub(super) async fn show(client: &Client, id: &ManifestId) -> Result<CommandOutcome, Failure> {
    let manifest = call::read(client.manifests().get(id)).await?.into_inner();
    Ok(CommandOutcome::report(manifest))
}
