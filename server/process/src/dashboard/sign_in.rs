//! Signing in and out.

use axum::{
    extract::{Path, RawQuery, Request, State},
    response::{IntoResponse, Redirect, Response},
};
use parcelo_domain::Refusal;
use parcelo_service::http::{Api, HttpRefusal, response};
use parcelo_types::ErrorCode;

use super::{
    auth::{SIGN_IN, SignedInUser, SubmittedForm},
    context::{PageContext, redirect_with_flash, with_session_cookie, without_session_cookie},
    fields::FormFields,
    flash::FlashMessage,
    interrupted::{FormPage, InterruptedPage},
    keys, parcels, settings, sign_in_form, webhooks,
};
use crate::sign_in::{LoginOutcome, LoginRequest};

/// Shows the sign-in form; a signed-in user is redirected.
pub(super) async fn page(
    State(api): State<Api>,
    RawQuery(query): RawQuery,
    context: PageContext,
) -> Result<Response, HttpRefusal> {
    let query = FormFields::parse(query.unwrap_or_default().as_bytes());
    // Ignore fields in the address: a link could fill in the form with values that its author chose.
    let interrupted =
        InterruptedPage { filled: String::new(), ..InterruptedPage::from_fields(&query) };
    if let Some(token) = &context.session
        && api.service.find_session(token).await?.is_some()
    {
        return Ok(Redirect::to(interrupted.address()).into_response());
    }
    sign_in_form::show(&api, &context, None, interrupted)
}

/// Signs in with a new session, so that a session that an attacker has planted is worthless.
pub(super) async fn sign_in(
    State(api): State<Api>,
    context: PageContext,
    request: Request,
) -> Result<Response, HttpRefusal> {
    let (parts, body) = request.into_parts();
    let fields = FormFields::read(&parts.headers, body).await?;
    let guest = context.guest.clone().ok_or(ErrorCode::FormNotAccepted)?;
    fields.check_token(&api, &guest)?;
    let interrupted = InterruptedPage::from_fields(&fields);
    let request = LoginRequest {
        client: context.client,
        account: fields.text("account").trim(),
        password: fields.text("password"),
        previous_token: context.session.as_deref(),
    };
    match crate::sign_in::sign_in(&api.service, request).await? {
        LoginOutcome::SignedIn(token) => Ok(with_session_cookie(
            resume_after_sign_in(api, context, &token, &interrupted).await,
            &token,
        )),
        LoginOutcome::Wait(seconds) => Err(Refusal::rate_limited(seconds).into()),
        LoginOutcome::Rejected => {
            let mut response =
                sign_in_form::show(&api, &context, Some(request.account), interrupted)?;
            *response.status_mut() = response::http_status(ErrorCode::AuthInvalidApiKey);
            Ok(response)
        }
    }
}

/// Redirects to the requested page, or renders its form with the fields that were filled in, which are not stored.
async fn resume_after_sign_in(
    api: Api,
    context: PageContext,
    token: &str,
    interrupted: &InterruptedPage,
) -> Response {
    if interrupted.is_button() {
        return redirect_with_flash(interrupted.address(), FlashMessage::ActionNotPerformed);
    }
    // Without the fields the page is blank; signing in has succeeded in any case.
    let filled = render_interrupted_form(api, context, token, interrupted).await;
    filled.unwrap_or_else(|| Redirect::to(interrupted.address()).into_response())
}

/// Renders the page whose form was interrupted, with the fields that were filled in; `None` if there is no such form.
async fn render_interrupted_form(
    api: Api,
    mut context: PageContext,
    token: &str,
    interrupted: &InterruptedPage,
) -> Option<Response> {
    let (form, fields) = interrupted.filled_form()?;
    context.restored_form = Some(fields);
    let user = SignedInUser::with_token(&api, context, token.to_owned()).await.ok()??;
    let (user, api) = (user.with_page(form.path(), Some(FlashMessage::FormRestored)), State(api));
    let page = match form {
        FormPage::NewKey => keys::new_form(api, user).await,
        FormPage::Webhook(environment) => {
            let environment = Path(environment.code().to_owned());
            webhooks::show(api, environment, RawQuery(None), user).await
        }
        FormPage::Settings => settings::show(api, user).await,
        FormPage::Parcels => parcels::list(api, RawQuery(None), user).await,
    };
    page.ok()
}

/// Signs out.
pub(super) async fn sign_out(
    State(api): State<Api>,
    submitted: SubmittedForm,
) -> Result<Response, HttpRefusal> {
    api.service.sign_out(&submitted.user.token).await?;
    Ok(without_session_cookie(Redirect::to(SIGN_IN).into_response()))
}
