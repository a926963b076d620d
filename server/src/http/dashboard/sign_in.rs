//! Signing in and out.

use axum::{
    extract::{Path, RawQuery, Request, State},
    response::{IntoResponse, Redirect, Response},
};
use parcelo::ErrorCode;

use super::{
    auth::{SIGN_IN, SignedIn, SubmittedForm},
    context::{PageContext, go_to, signed_in, signed_out},
    fields::Fields,
    flash::Flash,
    interrupted::{FormPage, Interrupted},
    keys, parcels, settings,
    sign_in_form::{Attempt, ask},
    webhooks,
};
use crate::{
    domain::Refusal,
    http::{Api, Refused, answer},
    service::{LoginOutcome, LoginRequest},
};

/// Shows the sign-in form; a signed-in user is redirected.
pub(super) async fn page(
    State(api): State<Api>,
    RawQuery(query): RawQuery,
    context: PageContext,
) -> Result<Response, Refused> {
    let asked = Fields::parse(query.unwrap_or_default().as_bytes());
    // Ignore fields in the address: a link could fill in the form as its author wants.
    let interrupted = Interrupted { filled: String::new(), ..Interrupted::from_fields(&asked) };
    if let Some(token) = &context.session
        && api.service.session(token).await?.is_some()
    {
        return Ok(Redirect::to(interrupted.address()).into_response());
    }
    ask(&api, &context, Attempt::First, interrupted)
}

/// Signs in with a new session, so that a session planted by someone else is worthless.
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
            Ok(signed_in(next_page(api, context, &token, &interrupted).await, &token))
        }
        LoginOutcome::Wait(seconds) => Err(Refusal::rate_limited(seconds).into()),
        LoginOutcome::Rejected => {
            let mut response = ask(&api, &context, Attempt::Wrong(request.account), interrupted)?;
            *response.status_mut() = answer::status_of(ErrorCode::AuthInvalidApiKey);
            Ok(response)
        }
    }
}

/// Redirects to the requested page, or renders its form as it was filled in; the fields are stored nowhere.
async fn next_page(
    api: Api,
    context: PageContext,
    token: &str,
    interrupted: &Interrupted,
) -> Response {
    if interrupted.is_button() {
        return go_to(interrupted.address(), Flash::NothingDone);
    }
    // Without the fields the page is blank; signing in has succeeded in any case.
    let filled = filled_page(api, context, token, interrupted).await;
    filled.unwrap_or_else(|| Redirect::to(interrupted.address()).into_response())
}

async fn filled_page(
    api: Api,
    mut context: PageContext,
    token: &str,
    interrupted: &Interrupted,
) -> Option<Response> {
    let (form, typed) = interrupted.filled_form()?;
    context.typed = Some(typed);
    let member = SignedIn::with_token(&api, context, token.to_owned()).await.ok()??;
    let (member, api) = (member.at(form.path(), Some(Flash::FormRestored)), State(api));
    let page = match form {
        FormPage::NewKey => keys::blank(api, member).await,
        FormPage::Webhook(environment) => {
            let environment = Path(environment.code().to_owned());
            webhooks::show(api, environment, RawQuery(None), member).await
        }
        FormPage::Settings => settings::show(api, member).await,
        FormPage::Parcels => parcels::list(api, RawQuery(None), member).await,
    };
    page.ok()
}

/// Signs out.
pub(super) async fn leave(
    State(api): State<Api>,
    submitted: SubmittedForm,
) -> Result<Response, Refused> {
    api.service.sign_out(&submitted.member.token).await?;
    Ok(signed_out(Redirect::to(SIGN_IN).into_response()))
}
