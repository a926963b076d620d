//! The sign-in form.

use askama::Template;
use axum::response::Response;
use parcelo_service::http::{Api, HttpRefusal};

use super::{
    context::{PageContext, with_guest_cookie},
    frame::{Frame, render_page},
    interrupted::InterruptedPage,
};
use crate::shell;

#[derive(Template)]
#[template(path = "dashboard/sign_in.html")]
struct SignInPage {
    frame: Frame,
    form: String,
    account: String,
    is_rejected: bool,
    interrupted: InterruptedPage,
    /// The command on the server's machine that sets a new password.
    command: Option<String>,
}

/// Returns the page with the form, and sets the guest cookie that the form's token is bound to. If an attempt to sign
/// in was rejected, the page says so.
pub(super) fn show(
    api: &Api,
    context: &PageContext,
    rejected: Option<&str>,
    interrupted: InterruptedPage,
) -> Result<Response, HttpRefusal> {
    let guest = context.guest.clone().unwrap_or_else(|| api.service.new_token());
    let (account, is_rejected) = (rejected.unwrap_or("default"), rejected.is_some());
    let form = api.service.form_token(&guest);
    let frame = context.frame();
    let options = api.service.settings().database_options.as_ref();
    let command = options.map(|options| shell::set_password(account, options));
    let shown =
        SignInPage { frame, form, account: account.to_owned(), is_rejected, interrupted, command };
    Ok(with_guest_cookie(render_page(&shown)?, &guest))
}
