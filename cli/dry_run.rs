//! `--dry-run`: a transport that records requests instead of sending them. Each gets the response
//! "not found", so that nothing waits and nothing is retried.

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use http::{HeaderMap, Request, Response, StatusCode};
use parcelo::{
    ErrorCode,
    transport::{ResponseFuture, Transport},
};

use crate::sanitize::mask_key;

/// The recorded requests. Clones share one list.
#[derive(Debug, Clone, Default)]
pub(crate) struct DryRun(Arc<Mutex<Vec<UnsentRequest>>>);

/// A request that was not sent, with the API key masked.
#[derive(Debug, Clone)]
pub(crate) struct UnsentRequest {
    pub(crate) method: String,
    pub(crate) url: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Option<String>,
}

impl DryRun {
    /// Takes the recorded requests.
    pub(crate) fn requests(&self) -> Vec<UnsentRequest> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Transport for DryRun {
    fn send(&self, request: Request<Bytes>) -> ResponseFuture<'_> {
        let body = request.body();
        let unsent = UnsentRequest {
            method: request.method().to_string(),
            url: request.uri().to_string(),
            headers: visible_headers(request.headers()),
            body: (!body.is_empty()).then(|| String::from_utf8_lossy(body).into_owned()),
        };
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(unsent);
        // It has an error body like the service's; without one, the 404 would look like another server's.
        let code = ErrorCode::ParcelNotFound.code();
        let error = serde_json::json!({"success": false, "error": {"code": code, "message": ""}});
        let mut response = Response::new(Bytes::from(error.to_string()).into());
        let status = StatusCode::from_u16(ErrorCode::ParcelNotFound.status());
        *response.status_mut() = status.unwrap_or_default();
        Box::pin(async { Ok(response) })
    }
}

fn visible_headers(headers: &HeaderMap) -> Vec<(String, String)> {
    let text = |value: &http::HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    let shown = |value| match text(value) {
        secret if value.is_sensitive() => mask_key(&secret),
        plain => plain,
    };
    headers.iter().map(|(name, value)| (name.to_string(), shown(value))).collect()
}

impl UnsentRequest {
    /// Returns the request as a curl command.
    pub(crate) fn curl(&self) -> String {
        let mut line = format!("curl -X {} {}", self.method, quote_for_shell(&self.url));
        for (name, value) in &self.headers {
            line.push_str(" \\\n  -H ");
            line.push_str(&quote_for_shell(&format!("{name}: {value}")));
        }
        if let Some(body) = &self.body {
            line.push_str(" \\\n  --data-raw ");
            line.push_str(&quote_for_shell(body));
        }
        line
    }
}

/// Returns a text quoted for a POSIX shell.
fn quote_for_shell(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_a_shell_line_without_the_key() {
        let mut headers = HeaderMap::new();
        let mut key = http::HeaderValue::from_static("pk_test_secret");
        key.set_sensitive(true);
        headers.insert("x-api-key", key);
        let unsent = UnsentRequest {
            method: "POST".to_owned(),
            url: "http://h/a?b=c&d".to_owned(),
            headers: visible_headers(&headers),
            body: Some(r#"{"name":"O'Neil"}"#.to_owned()),
        };
        let expected = "curl -X POST 'http://h/a?b=c&d' \\\n  -H 'x-api-key: pk_test_***' \\\n  \
            --data-raw '{\"name\":\"O'\\''Neil\"}'";
        assert_eq!(unsent.curl(), expected);
    }
}
