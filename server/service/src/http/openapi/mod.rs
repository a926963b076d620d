//! GET /openapi.json: the checked-in documents. A test writes them from the code (`PARCELO_BLESS=1`) and fails if they
//! differ, so only test builds need the code that writes them.

#[cfg(any(test, feature = "test-util"))]
#[allow(
    missing_docs,
    missing_debug_implementations,
    clippy::return_self_not_must_use,
    reason = "only tests describe calls"
)]
pub mod call;
#[cfg(test)]
mod document;
#[cfg(any(test, feature = "test-util"))]
#[allow(
    missing_docs,
    missing_debug_implementations,
    clippy::return_self_not_must_use,
    reason = "only tests describe calls"
)]
pub mod operation_doc;
#[cfg(test)]
mod webhooks;

use std::sync::OnceLock;

use axum::{
    Extension,
    body::Bytes,
    extract::State,
    http::{HeaderMap, StatusCode, header as http},
    response::{IntoResponse, Response},
    routing::{MethodRouter, get},
};
use parcelo_domain::to_body;
use parcelo_types::ErrorCode;
#[cfg(any(test, feature = "docs"))]
use parcelo_types::Operation;
use serde_json::Value;
use url::Url;

use super::{
    Api, HttpRefusal,
    precondition::{Precondition, etag},
};

/// The path of the document on every listener.
pub const PATH: &str = "/openapi.json";

/// The document that a listener serves. A request's extensions have it if it is not the service's.
#[derive(Debug, Clone, Copy)]
pub enum Document {
    /// The API.
    Service,
    /// The API, and the mock server's controls.
    WithControls,
}

// The checked-in documents. The link in `server/service/openapi` points to `docs`, since a package cannot contain files from
// outside its folder.
const SERVICE: &str = include_str!("../../../openapi/openapi.json");
/// Paths, schemas and tags of the controls, which the service's document lacks.
const CONTROLS: &str = include_str!("../../../openapi/controls.json");

impl Document {
    /// Returns the document, for callers who reach the API under `/`.
    pub(crate) fn read(self) -> Value {
        match self {
            Self::Service => parse(SERVICE),
            Self::WithControls => with_controls(parse(SERVICE), parse(CONTROLS)),
        }
    }

    /// Returns the document for callers who reach the API under this path.
    fn with_base_path(self, path: &str) -> Bytes {
        let mut document = self.read();
        if let Some(url) = document.pointer_mut("/servers/0/url") {
            *url = path.into();
        }
        to_body(&document).into()
    }
}

/// Parses a checked-in document. A test compares each with the code, so parsing cannot fail.
fn parse(document: &str) -> Value {
    serde_json::from_str(document).unwrap_or_default()
}

/// Adds the controls' paths, schemas and tags to the service's document.
fn with_controls(mut service: Value, mut controls: Value) -> Value {
    for part in ["/paths", "/components/schemas", "/tags"] {
        match (service.pointer_mut(part), controls.pointer_mut(part).map(Value::take)) {
            (Some(Value::Object(all)), Some(Value::Object(more))) => all.extend(more),
            (Some(Value::Array(all)), Some(Value::Array(more))) => all.extend(more),
            _ => {}
        }
    }
    service
}

/// A document as it is sent, rendered at the first request, once for each listener.
#[derive(Default)]
struct CachedDocument(OnceLock<(Bytes, String)>);

impl CachedDocument {
    /// Returns the document, or 304 if the client has it already.
    fn response(&self, headers: &HeaderMap, write: impl FnOnce() -> Bytes) -> Response {
        let (json, tag) = self.0.get_or_init(|| {
            let json = write();
            let tag = etag(&json);
            (json, tag)
        });
        // A cache may keep the document, but must check each time that it is still current.
        let about = [(http::ETAG, tag.as_str()), (http::CACHE_CONTROL, "no-cache")];
        match Precondition::for_tag(headers, tag) {
            Precondition::Met => {
                (about, [(http::CONTENT_TYPE, "application/json")], json.clone()).into_response()
            }
            Precondition::Unchanged => (StatusCode::NOT_MODIFIED, about).into_response(),
            Precondition::Failed => {
                HttpRefusal::from(ErrorCode::PreconditionFailed).into_response()
            }
        }
    }
}

/// Returns the route on a listener of the API.
pub(super) fn route() -> MethodRouter<Api> {
    let cached = std::sync::Arc::new(CachedDocument::default());
    get(
        |State(api): State<Api>, other: Option<Extension<Document>>, headers: HeaderMap| async move {
            let document = other.map_or(Document::Service, |Extension(document)| document);
            let site = api.service.settings().site(api.environment);
            cached.response(&headers, || document.with_base_path(&base_path(site.base_url())))
        },
    )
}

/// Returns the route of another checked-in document.
pub fn fixed_route(document: &'static str) -> MethodRouter<Api> {
    let cached = std::sync::Arc::new(CachedDocument::default());
    // It is sent without the line breaks that make the file readable.
    let compact = move || to_body(&parse(document)).into();
    get(move |headers: HeaderMap| async move { cached.response(&headers, compact) })
}

/// Returns the group of an operation: the first segment of its path after the version.
#[cfg(any(test, feature = "docs"))]
pub(super) fn operation_group(operation: Operation) -> &'static str {
    if operation.is_legacy() {
        return "legacy";
    }
    let path = operation.path();
    let path = path.strip_prefix("/api/v1").unwrap_or(path);
    path.split('/').nth(1).unwrap_or_default()
}

/// Returns the path that a proxy adds before the API's, or `/`.
fn base_path(base_url: &str) -> String {
    let path = Url::parse(base_url).map(|url| url.path().trim_end_matches('/').to_owned());
    path.ok().filter(|path| !path.is_empty()).unwrap_or_else(|| "/".to_owned())
}

#[cfg(test)]
mod tests {
    use axum::{body::Body, http::Request};
    use http_body_util::BodyExt;
    use tower::ServiceExt;

    use super::*;
    use crate::mock::MockServer;

    #[tokio::test]
    async fn behind_a_proxy_the_document_has_the_public_path() {
        let builder = MockServer::builder().base_url("https://shop.example/parcelo/");
        let request = Request::get("/openapi.json").body(Body::empty()).unwrap();
        let answer = builder.start().await.routes().oneshot(request).await.unwrap();
        let body = answer.into_body().collect().await.unwrap().to_bytes();
        let document: Value = serde_json::from_slice(&body).unwrap();
        assert_eq!(document["servers"][0]["url"], "/parcelo");
    }
}
