//! The API's documentation for people: Swagger UI over [the document](super::document), with all its
//! files from this server.

use std::sync::Arc;

use axum::{
    extract::{Path, rejection::PathRejection},
    http::header,
    response::{IntoResponse, Redirect, Response},
};
use parcelo::ErrorCode;
use utoipa_swagger_ui::{Config, serve};

use super::Refused;

/// The page's address; its files are beside it.
pub(super) const PAGE: &str = "/docs/";

/// The page may load its own files and call its own server, nothing else.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; \
                      img-src 'self' data:; connect-src 'self'; base-uri 'none'; \
                      form-action 'none'; frame-ancestors 'none'";

/// GET /docs: where the page is, relative, for a proxy may have put a folder before it.
pub(super) async fn moved() -> Response {
    Redirect::permanent("docs/").into_response()
}

/// GET /docs/.
pub(super) async fn page() -> Response {
    let swagger = serve("index.html", Arc::new(Config::default()));
    let Ok(Some(file)) = swagger else { return Refused::from(ErrorCode::NotFound).into_response() };
    let html = String::from_utf8_lossy(&file.bytes);
    page_of(html.replace("<title>Swagger UI</title>", "<title>Parcelo API</title>"))
}

/// GET /docs/{file}.
pub(super) async fn file(path: Result<Path<String>, PathRejection>) -> Response {
    let Ok(Path(name)) = path else { return Refused::from(ErrorCode::NotFound).into_response() };
    // Without this the page would send the document's address to a validator elsewhere.
    let config = Config::from("../openapi.json").validator_url("none").use_base_layout();
    match serve(&name, Arc::new(config)) {
        Ok(Some(file)) => guarded(&file.content_type, file.bytes.into_owned()),
        Ok(None) | Err(_) => Refused::from(ErrorCode::NotFound).into_response(),
    }
}

/// A page of the documentation that is not Swagger UI's.
pub(super) fn page_of(html: String) -> Response {
    guarded("text/html; charset=utf-8", html.into_bytes())
}

fn guarded(content_type: &str, bytes: Vec<u8>) -> Response {
    let headers = [
        (header::CONTENT_TYPE, content_type),
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::REFERRER_POLICY, "no-referrer"),
    ];
    (headers, bytes).into_response()
}
