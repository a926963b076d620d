//! Orders: POST /api/v1/orders/create and /api/v1/orders/void, GET /api/v1/parcels/{trackingNumber}/order.

use axum::{
    Extension,
    extract::{Path, Request, State, rejection::PathRejection},
    response::Response,
};

use super::{
    Api, HttpRefusal, body,
    response::{self, RequestId},
};
use crate::service::{Caller, KeyedRequest, WriteResponse};

/// Handles POST /api/v1/orders/create.
pub(super) async fn create(
    State(api): State<Api>,
    Extension(caller): Extension<Caller>,
    request: Request,
) -> Result<WriteResponse, HttpRefusal> {
    let key = body::idempotency_key(request.headers());
    let body = body::json_bytes(request).await?;
    let order = body::parse_borrowed_object(&body)?;
    Ok(api.service.create_order(&caller, &order, key.as_deref()).await?)
}

/// Handles POST /api/v1/orders/void.
pub(super) async fn void(
    State(api): State<Api>,
    Extension(caller): Extension<Caller>,
    id: RequestId,
    request: Request,
) -> Result<WriteResponse, HttpRefusal> {
    let key = body::idempotency_key(request.headers());
    let body = body::json_object(request).await?;
    let request = KeyedRequest { body: &body, header_key: key.as_deref(), request_id: &id.0 };
    Ok(api.service.void_orders(&caller, request).await?)
}

/// Handles GET /api/v1/parcels/{trackingNumber}/order.
pub(super) async fn get(
    State(api): State<Api>,
    Extension(caller): Extension<Caller>,
    id: RequestId,
    path: Result<Path<String>, PathRejection>,
) -> Result<Response, HttpRefusal> {
    let order = api.service.get_order(&caller, &body::path_parameter(path)).await?;
    Ok(response::enveloped(order, id))
}

/// The description of these calls for the OpenAPI document.
#[cfg(test)]
pub(super) mod description {
    use parcelo_types::{
        ErrorCode::{
            AuthCountryNotAllowed, ParcelDuplicateTracking, ParcelNotFound, ParcelNotVoidable,
            VoidFailed,
        },
        Operation, OrderRequest, VoidRequest,
        model::{CreatedOrder, VoidedOrders},
    };
    use serde_json::json;

    use crate::http::openapi::{call::Call, operation_doc::ResponseDoc};
    use parcelo_domain::sample;

    pub(in crate::http) fn calls() -> Vec<Call> {
        vec![
            Call::new(Operation::CreateOrder, "Create an order with its label")
                .with_body::<OrderRequest>(sample::order())
                .with_response(ResponseDoc::without_envelope::<CreatedOrder>(
                    "201",
                    "The order was created.",
                ))
                .with_response(
                    ResponseDoc::without_envelope::<CreatedOrder>(
                        "200",
                        "The first response again.",
                    )
                    .with_replay_header(),
                )
                .with_refusals(&[AuthCountryNotAllowed, ParcelDuplicateTracking]),
            Call::new(Operation::VoidOrders, "Void up to 100 orders")
                .with_body::<VoidRequest>(json!({
                    "idempotencyKey": "void-2026-01-10-0001",
                    "trackingNumbers": ["SB-SUCCESS-0001"],
                    "reason": "Customer cancelled",
                }))
                .with_response(
                    ResponseDoc::data::<VoidedOrders>("200", "At least one is void.")
                        .with_replay_header(),
                )
                .with_refusals(&[ParcelNotFound, ParcelNotVoidable, VoidFailed]),
            Call::new(Operation::GetOrder, "Read an order as it was accepted")
                .with_data::<OrderRequest>("200", "The order, with its addresses and items.")
                .with_refusals(&[ParcelNotFound]),
        ]
    }
}
