//! The API's documentation for people: Swagger UI over [the document](super::openapi), with all its
//! files from this server.

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
};

/// The page, its files beside it.
pub(super) fn routes() -> Router<Api> {
    Router::new()
        .route("/docs", get(moved))
        .route("/docs/", get(page))
        .route("/docs/{file}", get(file))
}

/// GET /docs: where the page is, relative, for a proxy may have put a folder before it.
async fn moved() -> Response {
    Redirect::permanent("docs/").into_response()
}

/// GET /docs/.
async fn page() -> Response {
    let swagger = serve("index.html", Arc::new(Config::default()));
    let Ok(Some(file)) = swagger else { return Refused::from(ErrorCode::NotFound).into_response() };
    let html = String::from_utf8_lossy(&file.bytes);
    html_page(html.replace("<title>Swagger UI</title>", "<title>Parcelo API</title>"))
}

/// GET /docs/{file}.
async fn file(path: Result<Path<String>, PathRejection>) -> Response {
    let Ok(Path(name)) = path else { return Refused::from(ErrorCode::NotFound).into_response() };
    // Without this the page would send the document's address to a validator elsewhere.
    let config = Config::from("../openapi.json").validator_url("none").use_base_layout();
    match serve(&name, Arc::new(config)) {
        Ok(Some(file)) => with_policy(&file.content_type, file.bytes.into_owned()),
        Ok(None) | Err(_) => Refused::from(ErrorCode::NotFound).into_response(),
    }
}
