//! The sign-in form.

use askama::Template;
use axum::response::Response;

use super::{
    context::{PageContext, as_guest},
    frame::{Frame, page},
    interrupted::Interrupted,
};
use crate::{
    http::{Api, Refused},
    shell,
};

#[derive(Template)]
#[template(path = "dashboard/sign_in.html")]
struct SignIn {
    frame: Frame,
    form: String,
    account: String,
    wrong: bool,
    interrupted: Interrupted,
    /// The command on the server's machine that sets a new password.
    command: Option<String>,
}

/// The previous attempt to sign in.
#[derive(Clone, Copy)]
pub(super) enum Attempt<'a> {
    First,
    /// The account or its password was wrong.
    Wrong(&'a str),
}

/// Returns the page with the form, and marks the browser as the form's guest.
pub(super) fn ask(
    api: &Api,
    context: &PageContext,
    attempt: Attempt<'_>,
    interrupted: Interrupted,
) -> Result<Response, Refused> {
    let guest = context.guest.clone().unwrap_or_else(|| api.service.fresh_token());
    let (account, wrong) = match attempt {
        Attempt::First => ("default", false),
        Attempt::Wrong(account) => (account, true),
    };
    let form = api.service.form_token(&guest);
    let frame = context.frame();
    let options = api.service.settings().database_options.as_ref();
    let command = options.map(|options| shell::set_password(account, options));
    let shown = SignIn { frame, form, account: account.to_owned(), wrong, interrupted, command };
    Ok(as_guest(page(&shown)?, &guest))
}
