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
use parcelo::{Environment, ErrorCode, Language, Operation, TrackingNumber};
use url::{Url, form_urlencoded};

use super::{
    Api, Refused, answer,
    area::{AddressLimit, Area, FinishResponse, Policy, ResponseStyle, not_found},
    body,
};
use crate::service::PublicParcel;
use view::{Frame, FrontDoor, Lookup, Notice, ParcelPage};

/// The path of the page, without the number.
const FOLDER: &str = "/track";

/// The headers of every answer for browsers, caches and search engines.
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

/// The form, language and number that a request to the page asks for.
#[derive(Debug, Clone)]
struct PageContext {
    form: Form,
    language: Language,
    /// `true` if the address names the language. Links to further pages then name it too.
    is_chosen: bool,
    environment: Environment,
    /// The path prefix of the service's public address.
    base: String,
    /// The text in place of the number, as it was typed.
    typed: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Page,
    Json,
}

/// Returns the routes of the public pages. Refusals are pages too, also for unknown paths.
pub(super) fn area() -> Area {
    let policy = Policy {
        style: ResponseStyle::Custom(Arc::new(style)),
        ..Policy::open(AddressLimit::PublicPages)
    };
    Area::new(policy)
        .map_routes(|routes| routes.nest(FOLDER, Router::new().fallback(not_found)))
        .route("/", get(front_door))
        .route(FOLDER, get(front_door))
        .route("/track/", get(front_door))
        .route(unsubscribe::ROUTE, get(unsubscribe::ask).post(unsubscribe::act))
        .operation(Operation::PublicTracking, track)
}

fn style(api: &Api, request: &mut Request) -> FinishResponse {
    let site = api.service.settings().site(api.environment);
    let base = Url::parse(site.base_url()).map(|url| url.path().trim_end_matches('/').to_owned());
    let context = PageContext::new((api.environment, base.unwrap_or_default()), request);
    request.extensions_mut().insert(context.clone());
    Box::new(move |response| context.restyle(response))
}

/// Shows the page with a field for the number. A number that was typed redirects to its parcel's page.
async fn front_door(Extension(context): Extension<PageContext>) -> Result<Response, Refused> {
    match context.form {
        Form::Json => Err(ErrorCode::NotFound.into()),
        Form::Page if context.typed.is_empty() => {
            let page = view::render(&FrontDoor::new(context.frame(), context.lookup()));
            Ok(context.page_with_form(page.ok_or(ErrorCode::InternalError)?))
        }
        Form::Page => context.forgiving_redirect().ok_or_else(|| ErrorCode::ParcelNotFound.into()),
    }
}

async fn track(
    State(api): State<Api>,
    Extension(context): Extension<PageContext>,
    path: Result<Path<String>, PathRejection>,
) -> Result<Response, Refused> {
    let number = body::parameter(path);
    if context.form == Form::Page && TrackingNumber::parse(&number).is_err() {
        return context.forgiving_redirect().ok_or_else(|| ErrorCode::ParcelNotFound.into());
    }
    let found = api.service.track_publicly(context.environment, &number, context.language).await?;
    let PublicParcel { record, account } = found;
    match context.form {
        Form::Json => Ok(answer::json_ok(&record)),
        Form::Page => {
            let shop = api.service.store().shop(account).await?;
            let page = ParcelPage::new(context.frame(), &record, (shop, api.service.now()));
            let page = view::render(&page).ok_or(ErrorCode::InternalError)?;
            let mut response = context.page(page);
            if !record.status.is_final() {
                response.headers_mut().insert(header::REFRESH, RELOAD_AFTER);
            }
            Ok(response)
        }
    }
}

impl PageContext {
    fn new((environment, base): (Environment, String), request: &Request) -> Self {
        let (headers, query) = (request.headers(), request.uri().query());
        let chosen = body::query(query, "lang").and_then(|tag| language_of(&tag));
        let is_json = body::query(query, "format").is_some_and(|form| form == "json");
        let is_page = !is_json && (names_html(headers) || is_link_preview(headers));
        let typed = match request.uri().path().strip_prefix("/track/") {
            Some(path) if !path.is_empty() => decoded(path),
            _ => body::query(query, NUMBER).unwrap_or_default(),
        };
        Self {
            form: if is_page { Form::Page } else { Form::Json },
            language: chosen.unwrap_or_else(|| body::language(headers)),
            is_chosen: chosen.is_some(),
            environment,
            base,
            typed: typed_number::shown(&typed),
        }
    }

    /// Redirects to the page of the number that was meant. It does not check whether a parcel has the number, so that
    /// the redirect reveals nothing and a guess costs as much as any other.
    fn forgiving_redirect(&self) -> Option<Response> {
        let number = typed_number::read(&self.typed)?;
        let language = if self.is_chosen { self.language.code() } else { "" };
        let query = if self.is_chosen { "?lang=" } else { "" };
        let place = format!("{}{FOLDER}/{number}{query}{language}", self.base);
        Some(Redirect::to(&place).into_response())
    }

    /// Adds the public pages' headers to a response. A refusal becomes a page if the request asks for one.
    fn restyle(&self, response: Response) -> Response {
        let refused = response.extensions().get::<Refused>().cloned();
        let mut response = match refused {
            Some(refused) if self.form == Form::Page => self.refusal(&refused).unwrap_or(response),
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

    fn refusal(&self, Refused(refusal): &Refused) -> Option<Response> {
        let mut response = match refusal.code {
            ErrorCode::ParcelNotFound | ErrorCode::NotFound => {
                let notice = Notice::not_found(self.frame(), self.lookup());
                self.page_with_form(view::render(&notice)?)
            }
            _ => {
                let notice = Notice::refused(self.frame(), refusal.text(self.language));
                self.page(view::render(&notice)?)
            }
        };
        *response.status_mut() = answer::status_of(refusal.code);
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
        let front_door = format!("{}{FOLDER}", self.base);
        Frame::new((self.language, self.is_chosen), self.environment, front_door)
    }

    /// Returns the form with the text that was typed.
    fn lookup(&self) -> Lookup {
        let language = self.is_chosen.then_some(self.language);
        Lookup::new(self.typed.clone(), language)
    }
}

/// Decodes a part of a path like a form's field, but keeps the characters that separate a form's fields.
fn decoded(path: &str) -> String {
    let path = path.replace('+', "%2B").replace('&', "%26").replace('=', "%3D");
    form_urlencoded::parse(path.as_bytes()).map(|(text, _)| text).collect()
}

fn is_link_preview(headers: &HeaderMap) -> bool {
    let agent = body::header_text(headers, "user-agent").unwrap_or_default().to_ascii_lowercase();
    LINK_PREVIEWS.iter().any(|name| agent.contains(name))
}

pub(super) fn language_of(tag: &str) -> Option<Language> {
    let tag = tag.split('-').next().unwrap_or_default();
    [Language::En, Language::Es].into_iter().find(|known| tag.eq_ignore_ascii_case(known.code()))
}

/// Returns `true` if `Accept` names HTML, as browsers do; `*/*` does not.
fn names_html(headers: &HeaderMap) -> bool {
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

/// The description for the OpenAPI document.
#[cfg(test)]
pub(super) mod description {
    use parcelo::{ErrorCode, Operation, model::TrackingRecord};
    use utoipa::PartialSchema;

    use crate::http::openapi::{
        call::Call,
        described::{Answer, Query},
    };

    pub(in crate::http) fn calls() -> Vec<Call<Operation>> {
        let record = Answer::bare::<TrackingRecord>("200", "What everyone may know.");
        let call = Call::new(Operation::PublicTracking, "Track one parcel without a key")
            .query(&[
                Query {
                    name: "format",
                    about: "`json` for the record; browsers get a page otherwise.",
                    schema: || <String as PartialSchema>::schema(),
                },
                Query {
                    name: "lang",
                    about: "`en` or `es`; `Accept-Language` counts when absent.",
                    schema: || <String as PartialSchema>::schema(),
                },
            ])
            .answers(record.or_page())
            .refuses(&[ErrorCode::ParcelNotFound]);
        vec![call]
    }
}

#[cfg(test)]
mod tests {
    use axum::{body::Body, http};

    use super::*;

    fn context(uri: &str, accept: &str, languages: &str) -> (Form, Language) {
        let request =
            http::Request::get(uri).header("accept", accept).header("accept-language", languages);
        let request = request.body(Body::empty()).unwrap();
        let context = PageContext::new((Environment::Sandbox, String::new()), &request);
        (context.form, context.language)
    }

    #[test]
    fn requests_that_name_html_get_a_page_and_others_json() {
        let browser = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8";
        let table = [
            ("/track/X", browser, Form::Page),
            ("/track/X", "Text/HTML", Form::Page),
            ("/track/X", "application/json, text/html;q=0.1", Form::Page),
            ("/track/X", "text/html;level=1;q=0", Form::Json),
            ("/track/X", "text/html; q=0.000", Form::Json),
            ("/track/X", "*/*", Form::Json),
            ("/track/X", "text/*", Form::Json),
            ("/track/X", "application/json", Form::Json),
            ("/track/X", "", Form::Json),
            ("/track/X?format=json", browser, Form::Json),
            ("/track/X?format=html", browser, Form::Page),
        ];
        for (uri, accept, form) in table {
            assert_eq!(context(uri, accept, "").0, form, "{uri} {accept}");
        }
    }

    #[test]
    fn the_language_of_the_address_comes_before_the_browsers() {
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
