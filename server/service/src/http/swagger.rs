//! The API's documentation for people: [a guide](super::guide), and a reference by Swagger UI from [the OpenAPI
//! document](super::openapi). All of its files are served by this server.

use std::sync::Arc;

use axum::{
    Router,
    extract::{Path, rejection::PathRejection},
    response::{IntoResponse, Redirect, Response},
    routing::get,
};
use parcelo_types::ErrorCode;
use utoipa_swagger_ui::{Config, serve};

use super::{
    Api, HttpRefusal,
    docs::{html_page, with_policy},
    guide,
};

/// The page's colours and widths, in addition to Swagger UI's style sheet.
const STYLE: &str = include_str!("../../templates/docs/reference.css");

/// A script that follows the system's dark mode, which Swagger UI does only for pages with its top bar.
const THEME: &str = include_str!("../../templates/docs/reference.js");

/// Returns the routes of the guide, the reference and its files.
pub(super) fn routes() -> Router<Api> {
    Router::new()
        .route("/docs", get(redirect_to_guide))
        .route("/docs/", get(guide::page))
        .route("/docs/reference", get(reference))
        .route("/docs/{file}", get(documentation_file))
}

/// Handles GET /docs with a redirect to the guide. It is relative, since a proxy may add a folder in front.
async fn redirect_to_guide() -> Response {
    Redirect::permanent("docs/").into_response()
}

/// Handles GET /docs/reference.
async fn reference() -> Response {
    html_page(include_str!("../../templates/docs/reference.html").to_owned())
}

/// Handles GET /docs/{file}.
async fn documentation_file(path: Result<Path<String>, PathRejection>) -> Response {
    let Ok(Path(name)) = path else {
        return HttpRefusal::from(ErrorCode::NotFound).into_response();
    };
    match name.as_str() {
        "reference.css" => return with_policy("text/css", STYLE.into()),
        "reference.js" => return with_policy("text/javascript", THEME.into()),
        // Swagger UI's own page does not adapt to phones.
        "index.html" => return Redirect::permanent("reference").into_response(),
        _ => {}
    }
    // Without this the page would send the document's address to an external validator.
    let config = Config::from("../openapi.json").validator_url("none").use_base_layout();
    match serve(&name, Arc::new(config)) {
        Ok(Some(file)) => with_policy(&file.content_type, file.bytes.into_owned()),
        Ok(None) | Err(_) => HttpRefusal::from(ErrorCode::NotFound).into_response(),
    }
}
