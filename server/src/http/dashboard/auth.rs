//! Who is signed in, and how one who is not gets there.

use axum::{
    extract::{FromRequest, FromRequestParts, Request},
    http::request::Parts,
    response::{IntoResponse, Redirect, Response},
};
use parcelo::{Environment, ErrorCode, Language};

use super::{
    context::PageContext,
    fields::Fields,
    flash::{FlashPage, ShownFlashes},
    frame::{Frame, Section},
    interrupted::Interrupted,
    sign_in_form::{self, Attempt},
};
use crate::{
    domain::{Tenant, session::Session},
    http::{Api, Refused, answer},
};

/// Where one signs in.
pub(super) const SIGN_IN: &str = "/dashboard/sign-in";

/// A signed-in user.
#[derive(Clone)]
pub(super) struct SignedIn {
    pub(super) context: PageContext,
    pub(super) session: Session,
    pub(super) token: String,
    pub(super) form: String,
}

/// A form that a signed-in user submitted.
pub(super) struct SubmittedForm {
    pub(super) member: SignedIn,
    pub(super) fields: Fields,
}

/// Why a request is not served.
pub(super) enum Rejection {
    /// The user has to sign in first, and comes back then.
    SignInRequired(Interrupted),
    /// The same, for a user who sent a form: what was typed goes along.
    SignInShown(Response),
    /// The request is refused.
    Refused(Refused),
}

impl<T: Into<Refused>> From<T> for Rejection {
    fn from(refused: T) -> Self {
        Self::Refused(refused.into())
    }
}

impl IntoResponse for Rejection {
    fn into_response(self) -> Response {
        match self {
            Self::SignInRequired(interrupted) => {
                Redirect::to(&interrupted.sign_in_address(SIGN_IN)).into_response()
            }
            Self::SignInShown(page) => page,
            Self::Refused(refused) => refused.into_response(),
        }
    }
}

impl FromRequestParts<Api> for SignedIn {
    type Rejection = Rejection;

    async fn from_request_parts(parts: &mut Parts, api: &Api) -> Result<Self, Rejection> {
        let context = context(parts)?;
        let sign_in = || Rejection::SignInRequired(Interrupted::page(&context.here));
        let token = context.session.clone().ok_or_else(sign_in)?;
        let session = api.service.session(&token).await?.ok_or_else(sign_in)?;
        let form = api.service.form_token(&token);
        Ok(Self { context, session, token, form })
    }
}

impl FromRequest<Api> for SubmittedForm {
    type Rejection = Rejection;

    async fn from_request(request: Request, api: &Api) -> Result<Self, Rejection> {
        let (mut parts, body) = request.into_parts();
        let member = SignedIn::from_request_parts(&mut parts, api).await;
        if let Err(Rejection::Refused(refused)) = member {
            return Err(refused.into());
        }
        let fields = Fields::read(&parts.headers, body).await?;
        let Ok(member) = member else {
            let interrupted = Interrupted::form(parts.uri.path(), &fields);
            let mut page = sign_in_form::ask(api, &context(&parts)?, Attempt::First, interrupted)?;
            *page.status_mut() = answer::status_of(ErrorCode::AuthInvalidApiKey);
            return Err(Rejection::SignInShown(page));
        };
        fields.check(api, &member.token)?;
        Ok(Self { member, fields })
    }
}

impl SignedIn {
    pub(super) const fn language(&self) -> Language {
        self.context.language
    }

    pub(super) const fn tenant(&self, environment: Environment) -> Tenant {
        self.session.tenant(environment)
    }

    /// What is around a page of a section.
    pub(super) fn frame(&self, section: Section) -> Frame {
        self.context.frame().of_member(&self.session.name, &self.form, section)
    }

    /// Takes what this page has to show. A HEAD request shows no page, so it uses up no flash.
    pub(super) async fn take(&self, api: &Api, page: FlashPage) -> Result<ShownFlashes, Refused> {
        if !self.context.is_seen {
            return Ok(ShownFlashes::default());
        }
        let kept = api.service.take_flashes(&self.token, page.name()).await?;
        Ok(ShownFlashes::read(&kept))
    }
}

fn context(parts: &Parts) -> Result<PageContext, Refused> {
    parts.extensions.get::<PageContext>().cloned().ok_or_else(|| ErrorCode::NotFound.into())
}

impl FromRequestParts<Api> for PageContext {
    type Rejection = Refused;

    async fn from_request_parts(parts: &mut Parts, _api: &Api) -> Result<Self, Refused> {
        context(parts)
    }
}
