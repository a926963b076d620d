//! GET /track/{trackingNumber}: where a parcel stands, for anyone who has its number; as a page
//! for people and as JSON for programs. It shows what the public record has, and nothing else.

mod dates;
mod view;
mod words;

use std::sync::Arc;

use axum::{
    Extension,
    extract::{Path, Request, State, rejection::PathRejection},
    http::{HeaderMap, HeaderName, HeaderValue, header},
    response::{IntoResponse, Response},
};
use parcelo::{Environment, ErrorCode, Language, Operation, TrackingNumber};

use super::{
    Api, Refused, answer,
    area::{AddressLimit, Area, FinishResponse, Policy, ResponseStyle},
    body,
};
#[cfg(feature = "server")]
pub(super) use dates::in_words;
use view::{Frame, Notice, ParcelPage};

/// Where the page is, with its number below.
const FOLDER: &str = "/track";

/// What every answer says to browsers, caches and search engines.
const PRIVACY_HEADERS: [(&str, &str); 3] = [
    ("cache-control", "no-store"),
    ("x-robots-tag", "noindex, nofollow"),
    ("referrer-policy", "no-referrer"),
];

/// What a request to the page asks for: its form and language, and which number.
#[derive(Debug, Clone)]
struct PageContext {
    form: Form,
    language: Language,
    environment: Environment,
    number: Option<TrackingNumber>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Page,
    Json,
}

/// The page's route. Refusals are pages too, also those of paths that lead nowhere.
pub(super) fn area() -> Area {
    let policy = Policy {
        style: ResponseStyle::Custom(Arc::new(style)),
        ..Policy::open(AddressLimit::PublicPages)
    };
    Area::new(policy).path_prefix(FOLDER).operation(Operation::PublicTracking, track)
}

fn style(api: &Api, request: &mut Request) -> FinishResponse {
    let context = PageContext::new(api.environment, request);
    request.extensions_mut().insert(context.clone());
    Box::new(move |response| context.restyle(response))
}

async fn track(
    State(api): State<Api>,
    Extension(context): Extension<PageContext>,
    path: Result<Path<String>, PathRejection>,
) -> Result<Response, Refused> {
    let number = body::parameter(path);
    let record = api.service.track_publicly(context.environment, &number, context.language).await?;
    match context.form {
        Form::Json => Ok(answer::json_ok(&record)),
        Form::Page => {
            let page = view::render(&ParcelPage::new(context.frame(), &record));
            Ok(context.page(page.ok_or(ErrorCode::InternalError)?))
        }
    }
}

impl PageContext {
    fn new(environment: Environment, request: &Request) -> Self {
        let (headers, query) = (request.headers(), request.uri().query());
        let asked = body::query(query, "lang").and_then(|tag| language_of(&tag));
        let is_json = body::query(query, "format").is_some_and(|form| form == "json");
        let form = if !is_json && names_html(headers) { Form::Page } else { Form::Json };
        let number = request.uri().path().strip_prefix("/track/");
        Self {
            form,
            language: asked.unwrap_or_else(|| body::language(headers)),
            environment,
            number: number.and_then(|number| TrackingNumber::parse(number).ok()),
        }
    }

    /// Makes an answer fit for the public: refusals become a page for those who want one.
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
        response.headers_mut().insert(header::CONTENT_SECURITY_POLICY, view::POLICY.clone());
        response
    }

    fn refusal(&self, Refused(refusal): &Refused) -> Option<Response> {
        let notice = match refusal.code {
            ErrorCode::ParcelNotFound | ErrorCode::NotFound => {
                Notice::not_found(self.frame(), self.number.as_ref())
            }
            _ => Notice::refused(self.frame(), refusal.text(self.language)),
        };
        let mut response = self.page(view::render(&notice)?);
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
            (header::VARY, "Accept, Accept-Language"),
        ];
        (headers, html).into_response()
    }

    const fn frame(&self) -> Frame {
        Frame::new(self.language, self.environment)
    }
}

pub(super) fn language_of(tag: &str) -> Option<Language> {
    let tag = tag.split('-').next().unwrap_or_default();
    [Language::En, Language::Es].into_iter().find(|known| tag.eq_ignore_ascii_case(known.code()))
}

/// Whether `Accept` names HTML, as browsers do; `*/*` does not.
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

/// For the OpenAPI document.
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
        let context = PageContext::new(Environment::Sandbox, &request.body(Body::empty()).unwrap());
        (context.form, context.language)
    }

    #[test]
    fn a_page_for_those_who_name_html_and_json_for_all_others() {
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
