//! POST /api/v1/sandbox/reset.

use axum::{
    Extension,
    extract::{Request, State},
    response::Response,
};

use super::{Api, Refused, answer, body, gate::RequestId};
use crate::service::Caller;

pub(super) async fn reset(
    State(api): State<Api>,
    Extension(caller): Extension<Caller>,
    Extension(id): Extension<RequestId>,
    request: Request,
) -> Result<Response, Refused> {
    body::ignore(request).await;
    Ok(answer::data(api.service.reset_sandbox(&caller).await?, id))
}
