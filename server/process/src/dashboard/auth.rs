//! Authentication of the dashboard's users, and the redirect to the sign-in page.

use axum::{
    extract::{FromRequest, FromRequestParts, Request},
    http::request::Parts,
    response::{IntoResponse, Redirect, Response},
};
use parcelo_domain::{Tenant, session::Session};
use parcelo_service::http::{Api, HttpRefusal, response};
use parcelo_types::{Environment, ErrorCode, Language};

use super::{
    context::PageContext,
    fields::FormFields,
    flash::FlashMessage,
    frame::{Frame, Section},
    interrupted::InterruptedPage,
    sign_in_form,
};

/// The path of the sign-in page.
pub(super) const SIGN_IN: &str = "/dashboard/sign-in";

/// A signed-in user.
#[derive(Clone)]
pub(super) struct SignedInUser {
    pub(super) context: PageContext,
    pub(super) session: Session,
    /// The session's token, from the cookie.
    pub(super) token: String,
    /// The token of the forms on this user's pages, derived from the session's.
    pub(super) form_token: String,
}

/// A form that a signed-in user submitted.
pub(super) struct SubmittedForm {
    pub(super) user: SignedInUser,
    pub(super) fields: FormFields,
}

/// The reason why a request does not reach its handler.
pub(super) enum Rejection {
    /// The user has to sign in first, and is redirected back afterwards.
    SignInRequired(InterruptedPage),
    /// The user has to sign in first. The response is the sign-in page, which keeps the fields of the submitted form.
    SignInShown(Response),
    /// The request is refused.
    Refused(HttpRefusal),
}

impl<T: Into<HttpRefusal>> From<T> for Rejection {
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

impl FromRequestParts<Api> for SignedInUser {
    type Rejection = Rejection;

    async fn from_request_parts(parts: &mut Parts, api: &Api) -> Result<Self, Rejection> {
        let context = context(parts)?;
        let sign_in = || Rejection::SignInRequired(InterruptedPage::from_page(&context.url));
        let token = context.session.clone().ok_or_else(sign_in)?;
        Self::with_token(api, context.clone(), token).await?.ok_or_else(sign_in)
    }
}

impl FromRequest<Api> for SubmittedForm {
    type Rejection = Rejection;

    async fn from_request(request: Request, api: &Api) -> Result<Self, Rejection> {
        let (mut parts, body) = request.into_parts();
        let user = SignedInUser::from_request_parts(&mut parts, api).await;
        if let Err(Rejection::Refused(refused)) = user {
            return Err(refused.into());
        }
        let fields = FormFields::read(&parts.headers, body).await?;
        let Ok(user) = user else {
            let interrupted = InterruptedPage::from_form(parts.uri.path(), &fields);
            let mut page = sign_in_form::show(api, &context(&parts)?, None, interrupted)?;
            *page.status_mut() = response::http_status(ErrorCode::AuthInvalidApiKey);
            return Err(Rejection::SignInShown(page));
        };
        fields.check_token(api, &user.token)?;
        Ok(Self { user, fields })
    }
}

impl SignedInUser {
    /// Returns the user whose session has this token, or `None` if the session is over.
    pub(super) async fn with_token(
        api: &Api,
        context: PageContext,
        token: String,
    ) -> Result<Option<Self>, HttpRefusal> {
        let form_token = api.service.form_token(&token);
        let session = api.service.find_session(&token).await?;
        Ok(session.map(|session| Self { context, session, token, form_token }))
    }

    pub(super) const fn language(&self) -> Language {
        self.context.language
    }

    pub(super) const fn tenant(&self, environment: Environment) -> Tenant {
        self.session.tenant(environment)
    }

    /// Returns the frame of a page in a section.
    pub(super) fn frame(&self, section: Section) -> Frame {
        let frame = self.context.frame().with_flash(self.context.flash);
        frame.for_user(&self.session.name, &self.form_token, section)
    }

    /// Returns the user for a response that shows the page at `path` with a flash message.
    pub(super) fn with_page(mut self, path: &str, flash: Option<FlashMessage>) -> Self {
        self.context.url = format!("{path}?");
        self.context.flash = flash;
        self
    }
}

/// Returns the context that the styler has added to the request.
fn context(parts: &Parts) -> Result<PageContext, HttpRefusal> {
    parts.extensions.get::<PageContext>().cloned().ok_or_else(|| ErrorCode::NotFound.into())
}

impl FromRequestParts<Api> for PageContext {
    type Rejection = HttpRefusal;

    async fn from_request_parts(parts: &mut Parts, _api: &Api) -> Result<Self, HttpRefusal> {
        context(parts)
    }
}
