//! Files with several labels: of a page of parcels, or of a manifest.

use axum::{
    extract::{Path, RawQuery, State},
    http::header,
    response::{IntoResponse, Response},
};
use parcelo::{ErrorCode, LabelFormat};

use super::{auth::SignedIn, fields::Fields, search::Search, webhooks::environment_of};
use crate::{
    http::{Api, Refused},
    service::LabelBatch,
};

/// Sends the labels of the parcels on a page of the list, except for voided orders.
pub(super) async fn of_page(
    State(api): State<Api>,
    Path(file): Path<String>,
    RawQuery(query): RawQuery,
    member: SignedIn,
) -> Result<Response, Refused> {
    let fields = Fields::parse(query.unwrap_or_default().as_bytes());
    let search = Search::from_fields(&fields).map_err(|_| ErrorCode::NotFound)?;
    let tenant = member.tenant(search.environment);
    let labels = api.service.labels_of_page(tenant, &search.query(), format_of(&file)?).await?;
    Ok(as_file(labels, "labels"))
}

/// Sends the labels of all parcels under an air waybill.
pub(super) async fn of_manifest(
    State(api): State<Api>,
    Path((environment, awb, file)): Path<(String, String, String)>,
    member: SignedIn,
) -> Result<Response, Refused> {
    let tenant = member.tenant(environment_of(&environment)?);
    let labels = api.service.labels_under(tenant, &awb, format_of(&file)?).await?;
    Ok(as_file(labels, &format!("labels-{awb}")))
}

/// Returns the format that `labels.pdf` or `labels.zpl` names.
fn format_of(file: &str) -> Result<LabelFormat, ErrorCode> {
    match file {
        "labels.pdf" => Ok(LabelFormat::Pdf),
        "labels.zpl" => Ok(LabelFormat::Zpl),
        _ => Err(ErrorCode::NotFound),
    }
}

fn as_file(LabelBatch { format, bytes }: LabelBatch, name: &str) -> Response {
    let disposition = format!("attachment; filename=\"{name}.{}\"", format.extension());
    let headers = [
        (header::CONTENT_TYPE, format.content_type().to_owned()),
        (header::CONTENT_DISPOSITION, disposition),
    ];
    (headers, bytes).into_response()
}
