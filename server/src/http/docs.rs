//! How a page of documentation leaves: as text that may load what this server has beside it, and
//! nothing else.

use axum::{
    http::header,
    response::{IntoResponse, Response},
};

/// The page may load its own files and call its own server, nothing else.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; \
                      img-src 'self' data:; connect-src 'self'; base-uri 'none'; \
                      form-action 'none'; frame-ancestors 'none'";

/// A page.
pub(super) fn html_page(html: String) -> Response {
    with_policy("text/html; charset=utf-8", html.into_bytes())
}

/// A page, or a file that one loads.
pub(super) fn with_policy(content_type: &str, bytes: Vec<u8>) -> Response {
    let headers = [
        (header::CONTENT_TYPE, content_type),
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::REFERRER_POLICY, "no-referrer"),
    ];
    (headers, bytes).into_response()
}
