//! GET /api/v1/parcels.

use axum::{
    Extension,
    extract::{RawQuery, State},
    http::HeaderMap,
    response::Response,
};
use parcelo_domain::Refusal;
use parcelo_types::{
    internal,
    model::{PageMeta, ParcelSummary},
};
use serde::Serialize;
use url::form_urlencoded;

use super::{
    Api, HttpRefusal, body,
    response::{self, RequestId},
};
use crate::service::Caller;

#[derive(Serialize)]
struct Page {
    success: bool,
    data: Vec<ParcelSummary>,
    meta: Meta,
}

/// The paging fields and the request's id.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Meta {
    #[serde(flatten)]
    page: PageMeta,
    request_id: String,
}

/// Handles GET /api/v1/parcels.
pub(super) async fn list(
    State(api): State<Api>,
    Extension(caller): Extension<Caller>,
    RequestId(request_id): RequestId,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Result<Response, HttpRefusal> {
    let pairs = form_urlencoded::parse(query.as_deref().unwrap_or_default().as_bytes());
    let query =
        internal::check_list(pairs).map_err(|rejected| Refusal::invalid(&rejected.faults))?;
    let language = body::preferred_language(&headers);
    let (data, page) = api.service.list_parcels(&caller, &query, language).await?;
    Ok(response::json_ok(&Page { success: true, data, meta: Meta { page, request_id } }))
}

/// The description of these calls for the OpenAPI document.
#[cfg(test)]
pub(super) mod description {
    use parcelo_types::{
        CountryCode, ErrorCode, Operation, ParcelStatus, internal::ListQuery, model::ParcelSummary,
    };
    use utoipa::openapi::{
        RefOr,
        schema::{Schema, Type},
    };

    use crate::http::openapi::{
        call::Call,
        operation_doc::{QueryParameter, ResponseDoc, reference, type_schema},
    };

    pub(in crate::http) fn calls() -> Vec<Call> {
        vec![
            Call::new(Operation::ListParcels, "List parcels, newest first")
                .query(LIST)
                .with_response(ResponseDoc::page::<ParcelSummary>("A page of the list."))
                .with_refusals(&[ErrorCode::ValidationFailed]),
        ]
    }

    const LIST: &[QueryParameter] = &[
        QueryParameter("page", "The page, from 1; 1 when absent.", || integer_up_to(u32::MAX)),
        QueryParameter("limit", "Parcels on a page; 20 when absent.", || {
            integer_up_to(ListQuery::MAX_LIMIT)
        }),
        QueryParameter("status", "Only parcels in this status.", reference::<ParcelStatus>),
        QueryParameter("country", "Only parcels to this country.", reference::<CountryCode>),
        QueryParameter(
            "externalOrderId",
            "Only parcels with exactly this id in the caller's system.",
            text,
        ),
        QueryParameter(
            "search",
            "Only parcels that each of these words finds: the beginning, or the last four or more \
                    characters, of the tracking number, `customerReference`, `externalOrderId` or the air waybill, \
                    or the beginning of a word of the receiver's name. Case, accents and punctuation do not count. \
                    A text in quotation marks is found as a whole only.",
            text,
        ),
        QueryParameter(
            "reference",
            "Only parcels whose `customerReference` or `externalOrderId` begins with this, or ends with these \
                    four or more characters; in quotation marks only an exact match, case, accents and punctuation aside.",
            text,
        ),
        QueryParameter(
            "createdFrom",
            "Only parcels created at or after this time; a date means 00:00 UTC.",
            moment,
        ),
        QueryParameter(
            "createdTo",
            "Only parcels created before this time; a date means 00:00 UTC.",
            moment,
        ),
    ];

    fn text() -> RefOr<Schema> {
        const { assert!(ListQuery::MAX_ORDER_ID == ListQuery::MAX_SEARCH) };
        type_schema(Type::String).min_length(Some(1)).max_length(Some(ListQuery::MAX_SEARCH)).into()
    }

    fn integer_up_to(max: u32) -> RefOr<Schema> {
        type_schema(Type::Integer).minimum(Some(1)).maximum(Some(max)).into()
    }

    fn moment() -> RefOr<Schema> {
        let pattern = "^[0-9]{4}-[0-9]{2}-[0-9]{2}([Tt ].+)?$";
        type_schema(Type::String).pattern(Some(pattern)).into()
    }
}
