//! POST /api/v1/orders/create.

use axum::{
    Extension,
    extract::{Request, State},
};
use parcelo::header;

use super::{Api, Refused, body};
use crate::service::{Answer, Caller};

pub(super) async fn create(
    State(api): State<Api>,
    Extension(caller): Extension<Caller>,
    request: Request,
) -> Result<Answer, Refused> {
    let key = body::header_text(request.headers(), header::IDEMPOTENCY_KEY);
    let order = body::json_object(request).await?;
    Ok(api.service.create_order(&caller, &order, key.as_deref()).await?)
}
