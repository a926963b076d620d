//! The legacy API: its routes, its flat responses, and the headers that announce its end (docs/api.md, Legacy API).
//!
//! To remove it, delete this folder, `templates/legacy`, its lines in `http/routes.rs` and its parts in other layers:
//! `server/domain/src/legacy.rs` (the translation and the dates), `service/legacy.rs` and `server/store/src/legacy.rs`
//! (counts of its use), `dashboard/legacy.rs` with its template and `process/legacy.rs` (which show them),
//! `--legacy-deprecated` and `--legacy-sunset` of `serve`, and its rows in the table of operations.

#[cfg(test)]
pub(super) mod description;
mod handlers;

use std::sync::Arc;

use axum::{
    extract::Request,
    http::{HeaderName, HeaderValue},
    response::Response,
};
use parcelo_domain::{Millis, Refusal, legacy, to_body};
use parcelo_types::{ErrorCode, Operation};

use super::{
    Api, HttpRefusal,
    area::{Area, FinishResponse, Policy, Principal, ResponseStyle},
    response,
};
use crate::service::Caller;
pub(super) use handlers::migration;

/// The path of the guide for its users to the new API.
pub(super) const MIGRATION: &str = "/docs/migration";

/// Returns the area of the legacy API, whose path prefixes `/api/v1` does not use.
pub(super) fn area() -> Area {
    let policy = Policy {
        style: ResponseStyle::Custom(Arc::new(style_response)),
        ..Policy::json(Principal::ApiKey(Some(check)))
    };
    Area::new(policy)
        .with_fallback_under("/api/orders")
        .with_fallback_under("/api/tracking")
        .with_fallback_under("/api/labels")
        .operation(Operation::LegacyCreateOrder, handlers::create)
        .operation(Operation::LegacyCancelOrder, handlers::cancel)
        .operation(Operation::LegacyTracking, handlers::track)
        .operation(Operation::LegacyLabel, handlers::label)
}

/// Counts the request, so that operators see who still depends on the API, and refuses it from the sunset on.
fn check(api: &Api, caller: &Caller, now: Millis) -> Result<(), Refusal> {
    api.service.count_legacy_use(caller, now);
    if api.service.settings().legacy.is_over(now) {
        return Err(ErrorCode::LegacySunset.into());
    }
    Ok(())
}

/// Makes refusals flat, and adds the headers that announce the API's end.
fn style_response(api: &Api, _request: &mut Request) -> FinishResponse {
    let api = api.clone();
    Box::new(move |response| with_deprecation_headers(&api, to_legacy_format(response)))
}

fn to_legacy_format(response: Response) -> Response {
    let Some(HttpRefusal(refusal)) = response.extensions().get() else { return response };
    response::refusal_response(&response, refusal, to_body(&legacy::to_legacy_refusal(refusal)))
}

fn with_deprecation_headers(api: &Api, mut response: Response) -> Response {
    let schedule = api.service.settings().legacy;
    let base = api.service.settings().site(api.environment).base_url();
    let successor = Operation::CreateOrder.path();
    let link = format!(
        "<{base}{MIGRATION}>; rel=\"deprecation\", <{base}{successor}>; rel=\"successor-version\""
    );
    let mut set = |name: &'static str, text: String| {
        let value = HeaderValue::from_str(&text).unwrap_or(HeaderValue::from_static(""));
        response.headers_mut().insert(HeaderName::from_static(name), value);
    };
    set("deprecation", format!("@{}", schedule.deprecated.second()));
    set("link", link);
    if let Some(sunset) = schedule.sunset {
        set("sunset", response::http_date(sunset));
    }
    response
}
