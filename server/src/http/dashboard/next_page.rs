//! The page that comes after something was done, and what it says of it. That is kept by a commit of its own, which may
//! fail when what was done is done: a sentence is left out then, and a secret is shown at once, or no one would ever
//! see it.

use askama::Template;
use axum::response::{IntoResponse, Redirect, Response};

use super::{
    auth::SignedIn,
    flash::{FlashContent, FlashPage, FlashText, OneTimeSecret},
    frame::{Frame, Section, page as written},
};
use crate::{
    domain::to_body,
    http::{Api, Refused},
};

/// A secret that could not be kept for the next page.
#[derive(Template)]
#[template(path = "dashboard/secret.html")]
struct SecretPage {
    frame: Frame,
    once: OneTimeSecret,
    next: &'static str,
}

impl SignedIn {
    /// Sends the browser to a page that says this.
    pub(super) async fn go_to(
        &self,
        api: &Api,
        page: FlashPage,
        what: impl Into<FlashContent>,
    ) -> Result<Response, Refused> {
        let what = what.into();
        // What took too long to keep may be kept all the same: a secret is then shown here and once more on the next page,
        // to the same browser. The other way round it would be lost.
        if !self.keep(api, page, &what).await
            && let FlashContent::OneTimeSecret(once) = what
        {
            let frame = self.frame(section(page));
            return written(&SecretPage { frame, once, next: page.path() });
        }
        Ok(Redirect::to(page.path()).into_response())
    }

    /// Leaves a sentence for the next time that a page is shown.
    pub(super) async fn note(&self, api: &Api, page: FlashPage, text: FlashText) {
        self.keep(api, page, &text.into()).await;
    }

    /// Says whether it could.
    async fn keep(&self, api: &Api, page: FlashPage, what: &FlashContent) -> bool {
        let kept = api.service.leave_flash(&self.token, page.name(), &to_body(what)).await;
        if let Err(refusal) = &kept {
            let code = refusal.code.code();
            tracing::warn!(code, "what a page of the dashboard was to say could not be kept");
        }
        kept.is_ok()
    }
}

const fn section(page: FlashPage) -> Section {
    match page {
        FlashPage::Keys | FlashPage::NewKey => Section::Keys,
        FlashPage::Parcels | FlashPage::Parcel => Section::Parcels,
        FlashPage::Webhook(_) => Section::Webhooks,
        FlashPage::Settings => Section::Settings,
    }
}
