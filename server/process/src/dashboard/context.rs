//! The context of a request to the dashboard: its language and cookies, and the common form of all responses,
//! refusals included.

use std::{net::IpAddr, sync::Arc};

use axum::{
    extract::Request,
    http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri, header},
    response::{IntoResponse, Redirect, Response},
};
use parcelo_service::http::{
    Api, HttpRefusal,
    area::{FinishResponse, ResponseStyler},
    body::{self, parse_environment},
    client_address::client_address,
    public, response,
};
use parcelo_types::{Environment, ErrorCode, Language};
use url::form_urlencoded;

use super::{
    fields::FormFields,
    flash::FlashMessage,
    frame::{self, Frame, NoticePage},
};

/// The cookie with the session of the signed-in user.
const SESSION_COOKIE: &str = "__Host-parcelo_session";
/// The cookie that identifies the browser to which the sign-in form was shown. No session ever has its value.
const GUEST_COOKIE: &str = "__Host-parcelo_guest";
/// The cookie with the chosen language.
const LANGUAGE_COOKIE: &str = "__Host-parcelo_language";
/// The cookie with the environment of the previous page.
const ENVIRONMENT_COOKIE: &str = "__Host-parcelo_environment";
/// The cookie with the flash message.
const FLASH_COOKIE: &str = "__Host-parcelo_flash";
/// Time for which the flash message waits for its page, in seconds.
const FLASH_SECONDS: i64 = 300;
/// Time for which a language and an environment are remembered, in seconds: a year.
const YEAR_SECONDS: i64 = 31_536_000;

/// Headers of every response, for browsers and caches.
const SECURITY_HEADERS: [(&str, &str); 5] = [
    ("cache-control", "no-store"),
    ("x-robots-tag", "noindex, nofollow"),
    ("referrer-policy", "no-referrer"),
    ("cross-origin-opener-policy", "same-origin"),
    (
        "content-security-policy",
        "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self'; \
         base-uri 'none'; frame-ancestors 'none'",
    ),
];

/// The data of a request that every page needs.
#[derive(Clone)]
pub(super) struct PageContext {
    pub(super) language: Language,
    /// `true` if the language was chosen with this request.
    is_language_chosen: bool,
    /// The address without its language, for the link to the other language.
    pub(super) url: String,
    /// The environment of this page or, if it has none, of the last page that had one; production at first.
    pub(super) environment: Environment,
    /// `true` if the request names another environment than the previous page.
    is_environment_new: bool,
    pub(super) session: Option<String>,
    pub(super) guest: Option<String>,
    pub(super) client: IpAddr,
    /// The message of this page. A `HEAD` request does not use it up.
    pub(super) flash: Option<FlashMessage>,
    /// The fields to fill the form in with, after the end of a session interrupted it.
    pub(super) restored_form: Option<FormFields>,
}

/// Returns the styler of the dashboard: it reads the context of each request, and adds the dashboard's headers and
/// refusal pages to its response.
pub(super) fn response_styler() -> ResponseStyler {
    Arc::new(|api: &Api, request: &mut Request| -> FinishResponse {
        let client = client_address(api, request);
        let context = PageContext::new(request, client);
        request.extensions_mut().insert(context.clone());
        Box::new(move |response| context.restyle(response))
    })
}

impl PageContext {
    /// Reads the context of a request.
    fn new(request: &Request, client: IpAddr) -> Self {
        let headers = request.headers();
        let requested = body::query_parameter(request.uri().query(), "lang");
        let requested = requested.and_then(|tag| public::parse_language(&tag));
        let remembered =
            cookie(headers, LANGUAGE_COOKIE).and_then(|tag| public::parse_language(&tag));
        let current = environment_in_url(request.uri());
        let last = cookie(headers, ENVIRONMENT_COOKIE).and_then(|code| parse_environment(&code));
        let flash = cookie(headers, FLASH_COOKIE).filter(|_| request.method() == Method::GET);
        Self {
            language: requested.or(remembered).unwrap_or_else(|| body::preferred_language(headers)),
            is_language_chosen: requested.is_some(),
            url: url_without_language(request.uri()),
            environment: current.or(last).unwrap_or(Environment::Production),
            is_environment_new: current.is_some() && current != last,
            session: cookie(headers, SESSION_COOKIE),
            guest: cookie(headers, GUEST_COOKIE),
            client,
            flash: flash.and_then(|flash| FlashMessage::from_cookie(&flash, request.uri().path())),
            restored_form: None,
        }
    }

    /// Adds the dashboard's headers and cookies to a response, and turns refusals into pages.
    fn restyle(&self, response: Response) -> Response {
        let refused = response.extensions().get::<HttpRefusal>().cloned();
        let mut response = match refused {
            Some(refused) => self.refusal_page(&refused, &response).unwrap_or(response),
            // The router's response to a path that is not text.
            None if response.status().is_client_error() && !is_html(&response) => {
                self.refusal_page(&ErrorCode::NotFound.into(), &response).unwrap_or(response)
            }
            None => response,
        };
        for (name, value) in SECURITY_HEADERS {
            let name = HeaderName::from_static(name);
            response.headers_mut().insert(name, HeaderValue::from_static(value));
        }
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_LANGUAGE, HeaderValue::from_static(self.language.code()));
        headers.insert(header::VARY, HeaderValue::from_static("Accept-Language, Cookie"));
        if self.is_language_chosen {
            set_cookie(headers, LANGUAGE_COOKIE, self.language.code(), YEAR_SECONDS);
        }
        if self.is_environment_new {
            set_cookie(headers, ENVIRONMENT_COOKIE, self.environment.code(), YEAR_SECONDS);
        }
        // The message was shown. A refusal does not show it, and the page may be requested again.
        if self.flash.is_some() && response.status() == StatusCode::OK {
            set_cookie(response.headers_mut(), FLASH_COOKIE, "", 0);
        }
        response
    }

    /// Returns the page for a refusal, with the headers of the original response; `None` if it cannot be rendered.
    fn refusal_page(
        &self,
        HttpRefusal(refusal): &HttpRefusal,
        original: &Response,
    ) -> Option<Response> {
        let notice = NoticePage::for_refusal(self.frame(), refusal);
        let mut response = frame::render_page(&notice).ok()?;
        *response.status_mut() = response::http_status(refusal.code);
        // Keep the headers that the router has set, such as the allowed methods.
        if let Some(methods) = original.headers().get(header::ALLOW) {
            response.headers_mut().insert(header::ALLOW, methods.clone());
        }
        if let Some(seconds) = refusal.retry_after {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        Some(response)
    }

    /// Returns the frame of a page for a user who is not signed in.
    pub(super) fn frame(&self) -> Frame {
        Frame::new(self.language, &self.url)
    }
}

/// Returns `true` if the body is HTML.
fn is_html(response: &Response) -> bool {
    let kind = response.headers().get(header::CONTENT_TYPE);
    kind.is_some_and(|kind| kind.as_bytes().starts_with(b"text/html"))
}

/// Redirects to a page that shows a flash message.
pub(super) fn redirect_with_flash(path: &str, flash: FlashMessage) -> Response {
    let mut response = Redirect::to(path).into_response();
    set_cookie(response.headers_mut(), FLASH_COOKIE, &flash.to_cookie(path), FLASH_SECONDS);
    response
}

/// Adds the cookie of a new session, which signs the browser in.
pub(super) fn with_session_cookie(mut response: Response, token: &str) -> Response {
    let seconds = parcelo_domain::session::SESSION_LIFETIME_MILLIS / parcelo_domain::Millis::SECOND;
    set_cookie(response.headers_mut(), SESSION_COOKIE, token, seconds);
    set_cookie(response.headers_mut(), GUEST_COOKIE, "", 0);
    response
}

/// Deletes the session's cookie.
pub(super) fn without_session_cookie(mut response: Response) -> Response {
    set_cookie(response.headers_mut(), SESSION_COOKIE, "", 0);
    response
}

/// Adds the cookie that identifies the browser until the sign-in form is submitted.
pub(super) fn with_guest_cookie(mut response: Response, guest: &str) -> Response {
    let seconds = parcelo_domain::session::SESSION_LIFETIME_MILLIS / parcelo_domain::Millis::SECOND;
    set_cookie(response.headers_mut(), GUEST_COOKIE, guest, seconds);
    response
}

/// Sets a cookie that is hidden from scripts, other sites and plain connections, and that only this site can set: the
/// prefix `__Host-`, which requires `Path=/`, keeps a neighbouring domain or an unencrypted page from setting one with
/// this name. Browsers treat a connection to this machine as secure.
fn set_cookie(headers: &mut HeaderMap, name: &str, value: &str, seconds: i64) {
    let cookie =
        format!("{name}={value}; Path=/; Max-Age={seconds}; HttpOnly; Secure; SameSite=Strict");
    if let Ok(cookie) = HeaderValue::from_str(&cookie) {
        headers.append(header::SET_COOKIE, cookie);
    }
}

/// Returns the value of a cookie, unless it is empty.
fn cookie(headers: &HeaderMap, name: &str) -> Option<String> {
    let lines = headers.get_all(header::COOKIE).iter().filter_map(|line| line.to_str().ok());
    let mut pairs = lines.flat_map(|line| line.split(';')).filter_map(|pair| pair.split_once('='));
    let (_, value) = pairs.find(|(key, _)| key.trim() == name)?;
    Some(value.trim().to_owned()).filter(|value| !value.is_empty())
}

/// Returns the environment that an address names, in its query or in its path.
fn environment_in_url(uri: &Uri) -> Option<Environment> {
    let in_query = body::query_parameter(uri.query(), "environment");
    let in_path = || uri.path().split('/').find_map(parse_environment);
    in_query.as_deref().and_then(parse_environment).or_else(in_path)
}

/// Returns the path and the query without `lang`.
fn url_without_language(uri: &Uri) -> String {
    let pairs = form_urlencoded::parse(uri.query().unwrap_or_default().as_bytes());
    let mut query = form_urlencoded::Serializer::new(String::new());
    query.extend_pairs(pairs.filter(|(name, _)| name != "lang"));
    format!("{}?{}", uri.path(), query.finish())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cookie_is_found_by_name_unless_it_is_empty() {
        let mut headers = HeaderMap::new();
        headers
            .append(header::COOKIE, HeaderValue::from_static("a=1; __Host-parcelo_session=tok-en"));
        headers.append(header::COOKIE, HeaderValue::from_static("__Host-parcelo_guest="));
        assert_eq!(cookie(&headers, SESSION_COOKIE).as_deref(), Some("tok-en"));
        assert_eq!(cookie(&headers, GUEST_COOKIE), None);
        assert_eq!(cookie(&headers, "session"), None);
    }

    #[test]
    fn the_environment_is_read_from_query_or_path() {
        let table = [
            ("/dashboard", None),
            ("/dashboard/parcels?environment=sandbox", Some(Environment::Sandbox)),
            ("/dashboard/parcels?environment=mars", None),
            ("/dashboard/webhooks/production", Some(Environment::Production)),
            ("/dashboard/parcels/sandbox/SB-SUCCESS-0001", Some(Environment::Sandbox)),
        ];
        for (uri, environment) in table {
            assert_eq!(environment_in_url(&uri.parse().unwrap()), environment, "{uri}");
        }
    }

    #[test]
    fn the_language_link_keeps_the_rest_of_the_query() {
        let table = [
            ("/dashboard", "/dashboard?"),
            ("/dashboard?lang=es", "/dashboard?"),
            (
                "/dashboard/parcels?page=2&lang=es&status=X%26",
                "/dashboard/parcels?page=2&status=X%26",
            ),
        ];
        for (uri, url) in table {
            assert_eq!(url_without_language(&uri.parse().unwrap()), url);
        }
    }
}
