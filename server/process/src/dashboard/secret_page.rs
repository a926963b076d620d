//! The page that shows a new secret once, in the response to the form that created it. It reads nothing from the
//! database, so that every secret that is created is also shown.

use askama::Template;
use axum::response::Response;
use parcelo_service::http::HttpRefusal;

use super::{
    auth::SignedInUser,
    flash::FlashMessage,
    frame::{Frame, Section, render_page},
};

#[derive(Template)]
#[template(path = "dashboard/secret.html")]
struct SecretPage<'a> {
    frame: Frame,
    key_name: Option<&'a str>,
    secret: &'a str,
    next: &'a str,
}

/// Shows the secret of the key with this name, or of a webhook, and says how long the previous secret works. The link
/// to the other language leads to `next`.
pub(super) fn show(
    user: SignedInUser,
    (key_name, secret): (Option<&str>, &str),
    flash: Option<FlashMessage>,
    next: &str,
) -> Result<Response, HttpRefusal> {
    let section = if key_name.is_some() { Section::Keys } else { Section::Webhooks };
    let frame = user.with_page(next, flash).frame(section);
    render_page(&SecretPage { frame, key_name, secret, next })
}
