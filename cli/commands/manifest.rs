//! `manifest`: parcels that leave together under an air waybill.

use parcelo::{Client, ManifestRequest, Outcome, model::ManifestId};

use super::service;
use crate::{
    failure::Failure,
    results::{Done, Results, Written},
    resume::Resume,
    texts,
};

pub(super) async fn submit(client: &Client, request: &ManifestRequest) -> Result<Done, Failure> {
    let reply = service::answer(client.manifests().submit(request), Resume::SameManifest).await?;
    let submitted = Written::of(reply);
    let replayed = submitted.outcome == Outcome::Replayed;
    let done = Done::with(Results::Submitted(Box::new(submitted)));
    Ok(if replayed { done.note(texts::REPLAYED_MANIFEST.into()) } else { done })
}

pub(super) async fn show(client: &Client, id: &ManifestId) -> Result<Done, Failure> {
    let manifest = service::read(client.manifests().get(id)).await?.into_inner();
    Ok(Done::with(Results::Manifest(Box::new(manifest))))
}
