//! GET /api/v1/parcels.

use axum::{
    Extension,
    extract::{RawQuery, State},
    http::HeaderMap,
    response::Response,
};
use parcelo::{
    model::{PageMeta, ParcelSummary},
    rules,
};
use serde::Serialize;
use url::form_urlencoded;

use super::{
    Api, Refused,
    answer::{self, RequestId},
    body,
};
use crate::{domain::Refusal, service::Caller};

#[derive(Serialize)]
struct Page {
    success: bool,
    data: Vec<ParcelSummary>,
    meta: Meta,
}

/// Paging stands beside the request's id.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Meta {
    #[serde(flatten)]
    page: PageMeta,
    request_id: String,
}

pub(super) async fn list(
    State(api): State<Api>,
    Extension(caller): Extension<Caller>,
    Extension(RequestId(request_id)): Extension<RequestId>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Result<Response, Refused> {
    let pairs = form_urlencoded::parse(query.as_deref().unwrap_or_default().as_bytes());
    let query = rules::check_list(pairs).map_err(|rejected| Refusal::invalid(&rejected.faults))?;
    let language = body::language(&headers);
    let (data, page) = api.service.list_parcels(&caller, &query, language).await?;
    Ok(answer::ok(&Page { success: true, data, meta: Meta { page, request_id } }))
}
