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
    let order = body::json_object(request).await?;
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
