//! Files with several labels: the labels of a page of parcels, or of a manifest.

use axum::{
    extract::{Path, RawQuery, State},
    response::Response,
};
use parcelo_service::http::{Api, HttpRefusal, labels::batch_response};
use parcelo_types::{ErrorCode, LabelFormat};

use super::{
    auth::SignedInUser, fields::FormFields, search::ParcelListFilter, webhooks::parse_environment,
};

/// Downloads the labels of the parcels on one page of the list. Voided orders are left out.
pub(super) async fn download_page_labels(
    State(api): State<Api>,
    Path(file): Path<String>,
    RawQuery(query): RawQuery,
    user: SignedInUser,
) -> Result<Response, HttpRefusal> {
    let fields = FormFields::parse(query.unwrap_or_default().as_bytes());
    let filter = ParcelListFilter::from_fields(&fields).map_err(|_| ErrorCode::NotFound)?;
    let tenant = user.tenant(filter.environment);
    let labels =
        api.service.draw_page_labels(tenant, &filter.query(), parse_format(&file)?).await?;
    Ok(batch_response(labels, "labels"))
}

/// Downloads the labels of all parcels under an air waybill.
pub(super) async fn download_manifest_labels(
    State(api): State<Api>,
    Path((environment, awb, file)): Path<(String, String, String)>,
    user: SignedInUser,
) -> Result<Response, HttpRefusal> {
    let tenant = user.tenant(parse_environment(&environment)?);
    let labels = api.service.draw_manifest_labels(tenant, &awb, parse_format(&file)?).await?;
    Ok(batch_response(labels, &format!("labels-{awb}")))
}

/// Returns the format that `labels.pdf` or `labels.zpl` names.
fn parse_format(file: &str) -> Result<LabelFormat, ErrorCode> {
    match file {
        "labels.pdf" => Ok(LabelFormat::Pdf),
        "labels.zpl" => Ok(LabelFormat::Zpl),
        _ => Err(ErrorCode::NotFound),
    }
}
