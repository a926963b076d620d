//! POST /api/v1/sandbox/reset.

use axum::{Extension, extract::State, response::Response};

use super::{
    Api, Refused,
    answer::{self, RequestId},
};
use crate::service::Caller;

pub(super) async fn reset(
    State(api): State<Api>,
    Extension(caller): Extension<Caller>,
    Extension(id): Extension<RequestId>,
) -> Result<Response, Refused> {
    Ok(answer::data(api.service.reset_sandbox(&caller).await?, id))
}
