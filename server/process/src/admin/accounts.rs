//! Accounts: creating and listing them.

use axum::{extract::Request, http::StatusCode, response::Response};
use parcelo_domain::admin::AccountView;
use parcelo_service::http::{HttpRefusal, body};

use super::{AdminRequest, to_refusal};

/// Creates an account. If it exists already, it is returned unchanged.
pub(super) async fn create(call: AdminRequest, request: Request) -> Result<Response, HttpRefusal> {
    let body = body::json_object(request).await?;
    let new = parcelo_wire::check_account(&body).map_err(to_refusal)?;
    let (account, is_new) = call.issuer().find_or_create_account(new.name, call.now()).await?;
    let status = if is_new { StatusCode::CREATED } else { StatusCode::OK };
    Ok(call.response_with_status(status, AccountView::from(&account)))
}

/// Lists all accounts.
pub(super) async fn list(call: AdminRequest) -> Result<Response, HttpRefusal> {
    let accounts = call.service().store().accounts().await?;
    Ok(call.ok_response(accounts.iter().map(AccountView::from).collect::<Vec<_>>()))
}

/// The description of these calls for the OpenAPI document.
#[cfg(test)]
pub(super) mod description {
    use parcelo_wire::AccountRequest;
    use serde_json::json;
    use utoipa::openapi::HttpMethod;

    use parcelo_domain::admin::AccountView;
    use parcelo_service::http::openapi::call::Call;

    pub(in crate::admin) fn calls() -> Vec<Call> {
        vec![
            Call::route(HttpMethod::Post, "/accounts", "CreateAccount", "Create an account")
                .with_body::<AccountRequest>(json!({ "name": "Acme" }))
                .with_data::<AccountView>("201", "The account was created.")
                .with_data::<AccountView>("200", "The account existed already."),
            Call::route(HttpMethod::Get, "/accounts", "ListAccounts", "List accounts")
                .with_list::<AccountView>("The accounts, oldest first."),
        ]
    }
}
