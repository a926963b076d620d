//! Signing in and out.

use axum::{
    extract::{RawQuery, Request, State},
    response::{IntoResponse, Redirect, Response},
};
use parcelo::ErrorCode;

use super::{
    auth::{SIGN_IN, SubmittedForm},
    context::{PageContext, signed_in, signed_out},
    fields::Fields,
    interrupted::Interrupted,
    sign_in_form::{Attempt, ask},
};
use crate::{
    domain::{Refusal, to_body},
    http::{Api, Refused, answer},
    service::{LoginOutcome, LoginRequest},
};

/// The sign-in form; a signed-in user is sent on.
pub(super) async fn page(
    State(api): State<Api>,
    RawQuery(query): RawQuery,
    context: PageContext,
) -> Result<Response, Refused> {
    let asked = Fields::parse(query.unwrap_or_default().as_bytes());
    // Nothing that an address says is filled in: a link could fill a form for its author.
    let interrupted = Interrupted { filled: String::new(), ..Interrupted::from_fields(&asked) };
    if let Some(token) = &context.session
        && api.service.session(token).await?.is_some()
    {
        return Ok(Redirect::to(interrupted.address()).into_response());
    }
    ask(&api, &context, Attempt::First, interrupted)
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
    let interrupted = Interrupted::from_fields(&fields);
    let request = LoginRequest {
        client: context.client,
        account: fields.text("account").trim(),
        password: fields.text("password"),
        before: context.session.as_deref(),
    };
    match api.service.sign_in(request).await? {
        LoginOutcome::SignedIn(token) => {
            keep_form(&api, &token, &interrupted).await;
            Ok(signed_in(Redirect::to(interrupted.address()).into_response(), &token))
        }
        LoginOutcome::Wait(seconds) => Err(Refusal::rate_limited(seconds).into()),
        LoginOutcome::Rejected => {
            let mut response = ask(&api, &context, Attempt::Wrong(request.account), interrupted)?;
            *response.status_mut() = answer::status_of(ErrorCode::AuthInvalidApiKey);
            Ok(response)
        }
    }
}

/// Leaves the interrupted form for its page. Without it the page is blank, and signing in has succeeded all the same.
async fn keep_form(api: &Api, token: &str, interrupted: &Interrupted) {
    let Some((page, form)) = interrupted.flash() else { return };
    if let Err(refusal) = api.service.leave_flash(token, page.name(), &to_body(&form)).await {
        let code = refusal.code.code();
        tracing::warn!(code, "a form that was interrupted could not be kept");
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
