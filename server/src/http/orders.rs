//! Orders: POST /api/v1/orders/create and /api/v1/orders/void.

use axum::{
    Extension,
    extract::{Request, State},
};

use super::{Api, Refused, answer::RequestId, body};
use crate::service::{Answer, Caller, Keyed};

pub(super) async fn create(
    State(api): State<Api>,
    Extension(caller): Extension<Caller>,
    request: Request,
) -> Result<Answer, Refused> {
    let key = body::idempotency_key(request.headers());
    let body = body::json_bytes(request).await?;
    let order = body::borrowed_object(&body)?;
    Ok(api.service.create_order(&caller, &order, key.as_deref()).await?)
}

pub(super) async fn void(
    State(api): State<Api>,
    Extension(caller): Extension<Caller>,
    Extension(id): Extension<RequestId>,
    request: Request,
) -> Result<Answer, Refused> {
    let key = body::idempotency_key(request.headers());
    let body = body::json_object(request).await?;
    let request = Keyed { body: &body, header_key: key.as_deref(), request_id: &id.0 };
    Ok(api.service.void_orders(&caller, request).await?)
}

/// The description for the OpenAPI document.
#[cfg(test)]
pub(super) mod description {
    use parcelo::{
        ErrorCode::{
            AuthCountryNotAllowed, IdempotencyConflict, IdempotencyInProgress,
            ParcelDuplicateTracking, ParcelNotFound, ParcelNotVoidable, VoidFailed,
        },
        Operation, OrderRequest, VoidRequest,
        model::{CreatedOrder, VoidedOrders},
    };
    use serde_json::json;

    use crate::{
        domain::sample,
        http::openapi::{call::Call, described::Answer},
    };

    pub(in crate::http) fn calls() -> Vec<Call<Operation>> {
        vec![
            Call::new(Operation::CreateOrder, "Create an order with its label")
                .takes::<OrderRequest>(sample::order())
                .answers(Answer::bare::<CreatedOrder>("201", "The order was created."))
                .answers(
                    Answer::bare::<CreatedOrder>("200", "The first answer again.").repeatable(),
                )
                .refuses(&[
                    AuthCountryNotAllowed,
                    ParcelDuplicateTracking,
                    IdempotencyConflict,
                    IdempotencyInProgress,
                ]),
            Call::new(Operation::VoidOrders, "Void up to 100 orders")
                .takes::<VoidRequest>(json!({
                    "idempotencyKey": "void-2026-01-10-0001",
                    "trackingNumbers": ["SB-SUCCESS-0001"],
                    "reason": "Customer cancelled",
                }))
                .answers(Answer::data::<VoidedOrders>("200", "At least one is void.").repeatable())
                .refuses(&[
                    ParcelNotFound,
                    ParcelNotVoidable,
                    VoidFailed,
                    IdempotencyConflict,
                    IdempotencyInProgress,
                ]),
        ]
    }
}
