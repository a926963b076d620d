//! Who is signed in, and the forms submitted from the dashboard's pages.

use axum::{
    body::Body,
    extract::{FromRequest, FromRequestParts, Request},
    http::{HeaderMap, header, request::Parts},
    response::{IntoResponse, Redirect, Response},
};
use parcelo::{Environment, ErrorCode, Language};
use url::{Url, form_urlencoded};

use super::{
    context::PageContext,
    flash::{FlashContent, FlashPage, ShownFlashes},
    frame::{Frame, Section},
};
use crate::{
    domain::{Refusal, Tenant, session::Session, to_body},
    http::{Api, Refused, read_body},
};

/// Where one signs in.
pub(super) const SIGN_IN: &str = "/dashboard/sign-in";
/// The field of every form that says for whom it was made.
pub(super) const TOKEN: &str = "form";
/// The most bytes of a form.
const MAX_FORM_BYTES: usize = 16 * 1024;

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

/// The fields of a form.
#[derive(Default)]
pub(super) struct Fields(Vec<(String, String)>);

/// Why a request is not served.
pub(super) enum Rejection {
    /// The user has to sign in first.
    SignInRequired,
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
            Self::SignInRequired => Redirect::to(SIGN_IN).into_response(),
            Self::Refused(refused) => refused.into_response(),
        }
    }
}

impl FromRequestParts<Api> for SignedIn {
    type Rejection = Rejection;

    async fn from_request_parts(parts: &mut Parts, api: &Api) -> Result<Self, Rejection> {
        let context = context(parts)?;
        let token = context.session.clone().ok_or(Rejection::SignInRequired)?;
        let session = api.service.session(&token).await?.ok_or(Rejection::SignInRequired)?;
        let form = api.service.form_token(&token);
        Ok(Self { context, session, token, form })
    }
}

impl FromRequest<Api> for SubmittedForm {
    type Rejection = Rejection;

    async fn from_request(request: Request, api: &Api) -> Result<Self, Rejection> {
        let (mut parts, body) = request.into_parts();
        let member = SignedIn::from_request_parts(&mut parts, api).await?;
        let fields = Fields::read(&parts.headers, body).await?;
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

    /// Leaves a message for the next time that a page is shown.
    pub(super) async fn leave(
        &self,
        api: &Api,
        page: FlashPage,
        what: impl Into<FlashContent>,
    ) -> Result<(), Refused> {
        let says = to_body(&what.into());
        Ok(api.service.leave_flash(&self.token, page.name(), &says).await?)
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

impl Fields {
    /// Reads a form, if it comes from a page of this very address.
    pub(super) async fn read(headers: &HeaderMap, body: Body) -> Result<Self, Refused> {
        if !is_same_origin(headers) || !is_form(headers) {
            return Err(ErrorCode::FormNotAccepted.into());
        }
        Ok(Self::parse(&read_body(body, MAX_FORM_BYTES).await.map_err(Refusal::from)?))
    }

    pub(super) fn parse(text: &[u8]) -> Self {
        Self(form_urlencoded::parse(text).into_owned().collect())
    }

    /// Refuses a form that was not shown to the holder of this cookie.
    pub(super) fn check(&self, api: &Api, cookie: &str) -> Result<(), Refused> {
        if api.service.is_form_token(cookie, self.text(TOKEN)) {
            Ok(())
        } else {
            Err(ErrorCode::FormNotAccepted.into())
        }
    }

    /// A field as it was filled in; nothing when it is not there.
    pub(super) fn text(&self, name: &str) -> &str {
        self.all(name).next().unwrap_or_default()
    }

    /// All that was chosen under one name.
    pub(super) fn all(&self, name: &str) -> impl Iterator<Item = &str> {
        self.0.iter().filter(move |(key, _)| key == name).map(|(_, value)| value.as_str())
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

/// Whether a browser says that the form is from a page of the same origin, or says nothing. A page
/// cannot make it lie; the form's token has to be right all the same.
fn is_same_origin(headers: &HeaderMap) -> bool {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    if let Some(site) = text("sec-fetch-site") {
        return site == "same-origin";
    }
    let (Some(origin), Some(host)) = (text("origin"), text("host")) else { return true };
    let Ok(origin) = Url::parse(origin) else { return false };
    // A proxy may end TLS, so the scheme is not compared.
    let own = |scheme: &str| Url::parse(&format!("{scheme}://{host}")).ok();
    own(origin.scheme()).is_some_and(|own| own.origin() == origin.origin())
}

fn is_form(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    let kind = kind.unwrap_or_default().split(';').next().unwrap_or_default();
    kind.trim().eq_ignore_ascii_case("application/x-www-form-urlencoded")
}

#[cfg(test)]
mod tests {
    use axum::http::{HeaderName, HeaderValue};

    use super::*;

    #[test]
    fn a_form_of_another_origin_is_not_taken_for_an_own_one() {
        let table: [(&[(&str, &str)], bool); 9] = [
            (&[], true),
            (&[("sec-fetch-site", "same-origin"), ("origin", "null")], true),
            (&[("sec-fetch-site", "same-site")], false),
            (&[("sec-fetch-site", "cross-site")], false),
            (&[("sec-fetch-site", "none")], false),
            (&[("host", "127.0.0.1:8082"), ("origin", "http://127.0.0.1:8082")], true),
            (&[("host", "parcelo.example"), ("origin", "https://parcelo.example")], true),
            (&[("host", "127.0.0.1:8082"), ("origin", "http://127.0.0.1:8083")], false),
            (&[("host", "127.0.0.1:8082"), ("origin", "null")], false),
        ];
        for (pairs, own) in table {
            let mut headers = HeaderMap::new();
            for (name, value) in pairs {
                headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
            }
            assert_eq!(is_same_origin(&headers), own, "{pairs:?}");
        }
    }
}
