//! Responses with pages of the documentation. The pages may load files of this server and nothing else.

use axum::{
    http::header,
    response::{IntoResponse, Response},
};

/// The content security policy: the page may load files from its own server and call it, nothing else.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; \
                      img-src 'self' data:; connect-src 'self'; base-uri 'none'; \
                      form-action 'none'; frame-ancestors 'none'";

/// Returns a page.
pub(super) fn html_page(html: String) -> Response {
    with_policy("text/html; charset=utf-8", html.into_bytes())
}

/// Returns a page, or a file that a page loads.
pub(super) fn with_policy(content_type: &str, bytes: Vec<u8>) -> Response {
    let headers = [
        (header::CONTENT_TYPE, content_type),
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::REFERRER_POLICY, "no-referrer"),
    ];
    (headers, bytes).into_response()
}
