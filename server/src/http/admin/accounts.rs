//! Accounts: made and listed.

use axum::{
    Extension,
    extract::{Request, State},
    http::StatusCode,
    response::Response,
};

use super::invalid;
use crate::{
    domain::admin::AccountView,
    http::{
        Api, Refused,
        answer::{self, RequestId},
        body,
    },
};

/// An account that exists already is answered as it is.
pub(super) async fn create(
    State(api): State<Api>,
    Extension(id): Extension<RequestId>,
    request: Request,
) -> Result<Response, Refused> {
    let body = body::json_object(request).await?;
    let asked = parcelo::admin::check_account(&body).map_err(invalid)?;
    let (account, is_new) = api.service.issuer().account(asked.name, api.service.now()).await?;
    let status = if is_new { StatusCode::CREATED } else { StatusCode::OK };
    Ok(answer::data_as(status, AccountView::from(&account), id))
}

pub(super) async fn list(
    State(api): State<Api>,
    Extension(id): Extension<RequestId>,
) -> Result<Response, Refused> {
    let accounts = api.service.store().accounts()?;
    Ok(answer::data(accounts.iter().map(AccountView::from).collect::<Vec<_>>(), id))
}
