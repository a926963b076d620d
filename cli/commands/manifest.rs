//! `manifest submit` and `manifest show`.

use parcelo::{
    Awb, Client, ErrorCode, ManifestRequest,
    model::{Manifest, ManifestId},
};

use super::{MAX_PAGE_SIZE, call};
use crate::{
    failure::{Exit, Failure},
    requests::ManifestName,
    results::{CommandOutcome, WriteResult},
    resume::ResumeHint,
    texts,
};

pub(super) async fn submit(
    client: &Client,
    request: &ManifestRequest,
) -> Result<CommandOutcome, Failure> {
    let reply = call::execute(client.manifests().submit(request), ResumeHint::SameManifest).await?;
    Ok(WriteResult::from(reply).report(texts::REPLAYED_MANIFEST))
}

pub(super) async fn show(client: &Client, name: &ManifestName) -> Result<CommandOutcome, Failure> {
    Ok(CommandOutcome::report(find(client, name).await?))
}

/// Fetches a manifest.
pub(super) async fn find(client: &Client, name: &ManifestName) -> Result<Manifest, Failure> {
    let id = match name {
        ManifestName::Id(id) => id.clone(),
        ManifestName::Awb(awb) => find_id(client, awb).await?,
    };
    Ok(call::execute_read(client.manifests().get(&id)).await?.into_inner())
}

/// Returns the ID of the manifest with an air waybill, which the service reports with each parcel in it.
async fn find_id(client: &Client, awb: &Awb) -> Result<ManifestId, Failure> {
    let search = client.parcels().list().search(format!("\"{awb}\"")).limit(MAX_PAGE_SIZE);
    let page = call::execute_read(search).await?.into_inner();
    let mut parcels = page.parcels.into_iter().flatten();
    // Other parcels may have the number as their reference.
    let parcel = parcels.find(|parcel| parcel.awb_number.as_ref().is_some_and(|own| own == awb));
    parcel.and_then(|parcel| parcel.manifest_id).ok_or_else(|| {
        let message = texts::NO_MANIFEST.with(&[("awb", awb.as_str())]);
        Failure::new(Exit::NotFound, ErrorCode::ManifestNotFound.code(), message)
            .hint(texts::CHECK_NUMBER)
    })
}
