//! Signing in and out.

use askama::Template;
use axum::{
    extract::{Request, State},
    response::{IntoResponse, Redirect, Response},
};
use parcelo::ErrorCode;

use super::{
    FOLDER,
    auth::{Fields, SIGN_IN, SubmittedForm},
    context::{PageContext, as_guest, signed_in, signed_out},
    frame::{Frame, page as written},
};
use crate::{
    domain::Refusal,
    http::{Api, Refused, answer},
    service::{LoginOutcome, LoginRequest},
};

#[derive(Template)]
#[template(path = "dashboard/sign_in.html")]
struct SignIn {
    frame: Frame,
    form: String,
    account: String,
    wrong: bool,
}

/// The sign-in form; a signed-in user is sent to the overview.
pub(super) async fn page(
    State(api): State<Api>,
    context: PageContext,
) -> Result<Response, Refused> {
    if let Some(token) = &context.session
        && api.service.session(token).await?.is_some()
    {
        return Ok(Redirect::to(FOLDER).into_response());
    }
    let guest = context.guest.clone().unwrap_or_else(|| api.service.fresh_token());
    let form = api.service.form_token(&guest);
    let account = "default".to_owned();
    let page = SignIn { frame: context.frame(), form, account, wrong: false };
    Ok(as_guest(written(&page)?, &guest))
}

/// Signs in with a new session, so that one planted by someone else is worth nothing.
pub(super) async fn enter(
    State(api): State<Api>,
    context: PageContext,
    request: Request,
) -> Result<Response, Refused> {
    let (parts, body) = request.into_parts();
    let fields = Fields::read(&parts.headers, body).await?;
    let guest = context.guest.clone().ok_or(ErrorCode::FormNotAccepted)?;
    fields.check(&api, &guest)?;
    let request = LoginRequest {
        client: context.client,
        account: fields.text("account").trim(),
        password: fields.text("password"),
        before: context.session.as_deref(),
    };
    match api.service.sign_in(request).await? {
        LoginOutcome::SignedIn(token) => {
            Ok(signed_in(Redirect::to(FOLDER).into_response(), &token))
        }
        LoginOutcome::Wait(seconds) => Err(Refusal::rate_limited(seconds).into()),
        LoginOutcome::Rejected => {
            let form = api.service.form_token(&guest);
            let account = request.account.to_owned();
            let page = SignIn { frame: context.frame(), form, account, wrong: true };
            let mut response = written(&page)?;
            *response.status_mut() = answer::status_of(ErrorCode::AuthInvalidApiKey);
            Ok(response)
        }
    }
}

/// Signs out.
pub(super) async fn leave(
    State(api): State<Api>,
    submitted: SubmittedForm,
) -> Result<Response, Refused> {
    api.service.sign_out(&submitted.member.token).await?;
    Ok(signed_out(Redirect::to(SIGN_IN).into_response()))
}
