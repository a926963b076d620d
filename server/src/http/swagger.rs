//! The API's documentation for people: [a guide](super::guide), and as its reference Swagger UI over [the
//! document](super::openapi), with all its files from this server.

use std::sync::Arc;

use axum::{
    Router,
    extract::{Path, rejection::PathRejection},
    response::{IntoResponse, Redirect, Response},
    routing::get,
};
use parcelo::ErrorCode;
use utoipa_swagger_ui::{Config, serve};

use super::{
    Api, Refused,
    docs::{html_page, with_policy},
    guide,
};

/// Beyond Swagger UI's own: the page's colours and widths.
const STYLE: &str = include_str!("../../templates/docs/reference.css");

/// Switches Swagger UI's dark colours on and off, as the reader's system has it: it does so for no page without its top bar.
const THEME: &str = include_str!("../../templates/docs/reference.js");

/// The guide, the reference and its files.
pub(super) fn routes() -> Router<Api> {
    Router::new()
        .route("/docs", get(moved))
        .route("/docs/", get(guide::page))
        .route("/docs/reference", get(reference))
        .route("/docs/{file}", get(file))
}

/// GET /docs: where the page is, relative, for a proxy may have put a folder before it.
async fn moved() -> Response {
    Redirect::permanent("docs/").into_response()
}

/// GET /docs/reference.
async fn reference() -> Response {
    html_page(include_str!("../../templates/docs/reference.html").to_owned())
}

/// GET /docs/{file}.
async fn file(path: Result<Path<String>, PathRejection>) -> Response {
    let Ok(Path(name)) = path else { return Refused::from(ErrorCode::NotFound).into_response() };
    match name.as_str() {
        "reference.css" => return with_policy("text/css", STYLE.into()),
        "reference.js" => return with_policy("text/javascript", THEME.into()),
        // Its own page has nothing for phones.
        "index.html" => return Redirect::permanent("reference").into_response(),
        _ => {}
    }
    // Without this the page would send the document's address to a validator elsewhere.
    let config = Config::from("../openapi.json").validator_url("none").use_base_layout();
    match serve(&name, Arc::new(config)) {
        Ok(Some(file)) => with_policy(&file.content_type, file.bytes.into_owned()),
        Ok(None) | Err(_) => Refused::from(ErrorCode::NotFound).into_response(),
    }
}
