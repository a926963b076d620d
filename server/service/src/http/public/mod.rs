//! GET /track/{trackingNumber}: a parcel's status for anyone who has its number, as a page for people and as JSON for
//! programs. It shows only the public record. `/` and `/track` have a field for the number; links in e-mails lead to
//! `/unsubscribe/…`.

mod typed_number;
mod unsubscribe;
mod view;

use std::sync::Arc;

use axum::{
    Extension, Router,
    extract::{Path, Request, State, rejection::PathRejection},
    http::{HeaderMap, HeaderName, HeaderValue, header},
    response::{IntoResponse, Redirect, Response},
    routing::get,
};
use parcelo_types::{Environment, ErrorCode, Language, Operation, TrackingNumber};
use url::{Url, form_urlencoded};

use super::{
    Api, HttpRefusal,
    area::{AddressLimit, Area, FinishResponse, Policy, ResponseStyle, not_found},
    body, response,
};
use crate::service::PublicParcel;
use view::{Frame, LookupForm, LookupPage, NoticePage, ParcelPage};

/// The path of the page, without the number.
const PATH_PREFIX: &str = "/track";

/// The headers of every response for browsers, caches and search engines.
const PRIVACY_HEADERS: [(&str, &str); 3] = [
    ("cache-control", "no-store"),
    ("x-robots-tag", "noindex, nofollow"),
    ("referrer-policy", "no-referrer"),
];

/// Interval in seconds after which a browser reloads the page of a parcel in transit: long enough to read it.
const RELOAD_AFTER: HeaderValue = HeaderValue::from_static("300");

/// The name of the form's field and query parameter.
const NUMBER: &str = "number";

/// User agents that fetch a link to show its title. Their `Accept` is that of programs that want JSON, so only the
/// name tells them apart.
const LINK_PREVIEWS: [&str; 9] = [
    "whatsapp",
    "facebookexternalhit",
    "telegrambot",
    "twitterbot",
    "slackbot",
    "linkedinbot",
    "discordbot",
    "skypeuripreview",
    "applebot",
];

/// The format, language and number that a request to the page asks for.
#[derive(Debug, Clone)]
struct PageContext {
    format: ResponseFormat,
    language: Language,
    /// `true` if the URL names the language. Links to other pages then name it too.
    is_chosen: bool,
    environment: Environment,
    /// The path prefix of the service's public address.
    base_path: String,
    /// The text that was typed in place of a number.
    typed: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ResponseFormat {
    Page,
    Json,
}

/// Returns the routes of the public pages. Refusals are pages too, also for unknown paths.
pub(super) fn area() -> Area {
    let policy = Policy {
        style: ResponseStyle::Custom(Arc::new(style_response)),
        ..Policy::open(AddressLimit::PublicPages)
    };
    Area::new(policy)
        .map_routes(|routes| routes.nest(PATH_PREFIX, Router::new().fallback(not_found)))
        .route("/", get(lookup_page))
        .route(PATH_PREFIX, get(lookup_page))
        .route("/track/", get(lookup_page))
        .route(unsubscribe::ROUTE, get(unsubscribe::show).post(unsubscribe::unsubscribe))
        .operation(Operation::PublicTracking, track)
}

fn style_response(api: &Api, request: &mut Request) -> FinishResponse {
    let site = api.service.settings().site(api.environment);
    let base_path =
        Url::parse(site.base_url()).map(|url| url.path().trim_end_matches('/').to_owned());
    let context = PageContext::new((api.environment, base_path.unwrap_or_default()), request);
    request.extensions_mut().insert(context.clone());
    Box::new(move |response| context.restyle(response))
}

/// Shows the page with a field for the number. A number that was typed redirects to its parcel's page.
async fn lookup_page(Extension(context): Extension<PageContext>) -> Result<Response, HttpRefusal> {
    match context.format {
        ResponseFormat::Json => Err(ErrorCode::NotFound.into()),
        ResponseFormat::Page if context.typed.is_empty() => {
            let page = LookupPage { frame: context.frame(), lookup: context.lookup_form() };
            Ok(context.page_with_form(response::render(&page)?))
        }
        ResponseFormat::Page => {
            context.redirect_to_typed_number().ok_or_else(|| ErrorCode::ParcelNotFound.into())
        }
    }
}

/// Handles GET /track/{trackingNumber}.
async fn track(
    State(api): State<Api>,
    Extension(context): Extension<PageContext>,
    path: Result<Path<String>, PathRejection>,
) -> Result<Response, HttpRefusal> {
    let number = body::path_parameter(path);
    if context.format == ResponseFormat::Page && TrackingNumber::parse(&number).is_err() {
        return context.redirect_to_typed_number().ok_or_else(|| ErrorCode::ParcelNotFound.into());
    }
    let parcel = api.service.track_publicly(context.environment, &number, context.language).await?;
    let PublicParcel { record, account } = parcel;
    match context.format {
        ResponseFormat::Json => Ok(response::json_ok(&record)),
        ResponseFormat::Page => {
            let shop = api.service.store().shop(account).await?;
            let page = ParcelPage::new(context.frame(), &record, (shop, api.service.now()));
            let mut response = context.page(response::render(&page)?);
            if !record.status.is_final() {
                response.headers_mut().insert(header::REFRESH, RELOAD_AFTER);
            }
            Ok(response)
        }
    }
}

impl PageContext {
    fn new((environment, base_path): (Environment, String), request: &Request) -> Self {
        let (headers, query) = (request.headers(), request.uri().query());
        let chosen = body::query_parameter(query, "lang").and_then(|tag| parse_language(&tag));
        let is_json = body::query_parameter(query, "format").is_some_and(|format| format == "json");
        let is_page = !is_json && (accepts_html(headers) || is_link_preview(headers));
        let typed = match request.uri().path().strip_prefix("/track/") {
            Some(path) if !path.is_empty() => decode_path_segment(path),
            _ => body::query_parameter(query, NUMBER).unwrap_or_default(),
        };
        Self {
            format: if is_page { ResponseFormat::Page } else { ResponseFormat::Json },
            language: chosen.unwrap_or_else(|| body::preferred_language(headers)),
            is_chosen: chosen.is_some(),
            environment,
            base_path,
            typed: typed_number::displayable(&typed),
        }
    }

    /// Redirects to the page of the number that was typed. Does not check whether a parcel has the number, so that the
    /// redirect reveals nothing.
    fn redirect_to_typed_number(&self) -> Option<Response> {
        let number = typed_number::parse(&self.typed)?;
        let language = if self.is_chosen { self.language.code() } else { "" };
        let query = if self.is_chosen { "?lang=" } else { "" };
        let url = format!("{}{PATH_PREFIX}/{number}{query}{language}", self.base_path);
        Some(Redirect::to(&url).into_response())
    }

    /// Adds the public pages' headers to a response. A refusal becomes a page if the request asks for one.
    fn restyle(&self, response: Response) -> Response {
        let refused = response.extensions().get::<HttpRefusal>().cloned();
        let mut response = match refused {
            Some(refused) if self.format == ResponseFormat::Page => {
                self.refusal(&refused).unwrap_or(response)
            }
            _ => response,
        };
        for (name, value) in PRIVACY_HEADERS {
            let name = HeaderName::from_static(name);
            response.headers_mut().insert(name, HeaderValue::from_static(value));
        }
        let policy = response.headers_mut().entry(header::CONTENT_SECURITY_POLICY);
        policy.or_insert_with(|| view::POLICY.clone());
        response
    }

    fn refusal(&self, HttpRefusal(refusal): &HttpRefusal) -> Option<Response> {
        let mut response = match refusal.code {
            ErrorCode::ParcelNotFound | ErrorCode::NotFound => {
                let notice = NoticePage::not_found(self.frame(), self.lookup_form());
                self.page_with_form(response::render(&notice).ok()?)
            }
            _ => {
                let notice = NoticePage::for_refusal(self.frame(), refusal.text(self.language));
                self.page(response::render(&notice).ok()?)
            }
        };
        *response.status_mut() = response::http_status(refusal.code);
        if let Some(seconds) = refusal.retry_after {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        Some(response)
    }

    fn page(&self, html: String) -> Response {
        let headers = [
            (header::CONTENT_TYPE, "text/html; charset=utf-8"),
            (header::CONTENT_LANGUAGE, self.language.code()),
            (header::VARY, "Accept, Accept-Language, User-Agent"),
        ];
        (headers, html).into_response()
    }

    /// Returns a page that may send its form, to this site only.
    fn page_with_form(&self, html: String) -> Response {
        let mut response = self.page(html);
        let policy = view::POLICY_WITH_FORM.clone();
        response.headers_mut().insert(header::CONTENT_SECURITY_POLICY, policy);
        response
    }

    fn frame(&self) -> Frame {
        let lookup_url = format!("{}{PATH_PREFIX}", self.base_path);
        Frame::new((self.language, self.is_chosen), self.environment, lookup_url)
    }

    /// Returns the form with the text that was typed.
    fn lookup_form(&self) -> LookupForm {
        let language = self.is_chosen.then_some(self.language);
        LookupForm { typed: self.typed.clone(), language, is_invalid: false }
    }
}

/// Decodes a part of a path like a form's field, but keeps the characters that separate a form's fields.
fn decode_path_segment(path: &str) -> String {
    let path = path.replace('+', "%2B").replace('&', "%26").replace('=', "%3D");
    form_urlencoded::parse(path.as_bytes()).map(|(text, _)| text).collect()
}

fn is_link_preview(headers: &HeaderMap) -> bool {
    let agent = body::header_text(headers, "user-agent").unwrap_or_default().to_ascii_lowercase();
    LINK_PREVIEWS.iter().any(|name| agent.contains(name))
}

/// Returns the language of a tag such as `es-MX`, if it is one of ours.
pub fn parse_language(tag: &str) -> Option<Language> {
    let tag = tag.split('-').next().unwrap_or_default();
    [Language::En, Language::Es].into_iter().find(|known| tag.eq_ignore_ascii_case(known.code()))
}

/// Returns `true` if `Accept` names HTML, as browsers do; `*/*` does not.
fn accepts_html(headers: &HeaderMap) -> bool {
    let accept = body::header_text(headers, "accept").unwrap_or_default();
    accept.split(',').any(|entry| {
        let mut parts = entry.split(';').map(str::trim);
        let is_html = parts.next().is_some_and(|kind| kind.eq_ignore_ascii_case("text/html"));
        let is_refused = |part: &str| {
            let weight = part.strip_prefix(['q', 'Q']).and_then(|rest| rest.strip_prefix('='));
            weight.is_some_and(|weight| weight.chars().all(|c| matches!(c, '0' | '.')))
        };
        is_html && !parts.any(is_refused)
    })
}

/// The description of these calls for the OpenAPI document.
#[cfg(test)]
pub(super) mod description {
    use parcelo_types::{ErrorCode, Operation, model::TrackingRecord};

    use crate::http::openapi::{
        call::Call,
        operation_doc::{QueryParameter, ResponseDoc, text_schema},
    };

    pub(in crate::http) fn calls() -> Vec<Call> {
        let record =
            ResponseDoc::without_envelope::<TrackingRecord>("200", "What everyone may know.");
        let call = Call::new(Operation::PublicTracking, "Track one parcel without a key")
            .query(&[
                QueryParameter(
                    "format",
                    "`json` for the record; browsers get a page otherwise.",
                    text_schema,
                ),
                QueryParameter(
                    "lang",
                    "`en` or `es`; `Accept-Language` counts when absent.",
                    text_schema,
                ),
            ])
            .with_response(record.with_html_page())
            .with_refusals(&[ErrorCode::ParcelNotFound]);
        vec![call]
    }
}

#[cfg(test)]
mod tests {
    use axum::{body::Body, http};

    use super::*;

    fn context(uri: &str, accept: &str, languages: &str) -> (ResponseFormat, Language) {
        let request =
            http::Request::get(uri).header("accept", accept).header("accept-language", languages);
        let request = request.body(Body::empty()).unwrap();
        let context = PageContext::new((Environment::Sandbox, String::new()), &request);
        (context.format, context.language)
    }

    #[test]
    fn requests_that_name_html_get_a_page_and_others_json() {
        let browser = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8";
        let table = [
            ("/track/X", browser, ResponseFormat::Page),
            ("/track/X", "Text/HTML", ResponseFormat::Page),
            ("/track/X", "application/json, text/html;q=0.1", ResponseFormat::Page),
            ("/track/X", "text/html;level=1;q=0", ResponseFormat::Json),
            ("/track/X", "text/html; q=0.000", ResponseFormat::Json),
            ("/track/X", "*/*", ResponseFormat::Json),
            ("/track/X", "text/*", ResponseFormat::Json),
            ("/track/X", "application/json", ResponseFormat::Json),
            ("/track/X", "", ResponseFormat::Json),
            ("/track/X?format=json", browser, ResponseFormat::Json),
            ("/track/X?format=html", browser, ResponseFormat::Page),
        ];
        for (uri, accept, format) in table {
            assert_eq!(context(uri, accept, "").0, format, "{uri} {accept}");
        }
    }

    #[test]
    fn a_language_in_the_url_overrides_accept_language() {
        let table = [
            ("/track/X", "es-EC, en;q=0.5", Language::Es),
            ("/track/X?lang=en", "es", Language::En),
            ("/track/X?lang=ES-mx", "en", Language::Es),
            ("/track/X?lang=fr", "es", Language::Es),
            ("/track/X?lang=", "fr", Language::En),
        ];
        for (uri, languages, language) in table {
            assert_eq!(context(uri, "*/*", languages).1, language, "{uri} {languages}");
        }
    }
}
