//! `--dry-run`: what would be sent is written down instead. Every request is answered as if the
//! service did not have what it asks for, so that nothing waits and nothing is tried again.

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use futures_util::{FutureExt, StreamExt, future::BoxFuture, stream};
use http::{HeaderMap, Request, Response, StatusCode};
use parcelo::{
    Environment, ErrorCode,
    transport::{BodyStream, Transport, TransportError},
};

/// The requests of a run that sends none. Clones write to the same list.
#[derive(Debug, Clone, Default)]
pub(crate) struct DryRun(Arc<Mutex<Vec<Unsent>>>);

/// A request that was not sent, its key masked.
#[derive(Debug, Clone)]
pub(crate) struct Unsent {
    pub(crate) method: String,
    pub(crate) url: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Option<String>,
}

impl DryRun {
    /// What would have been sent.
    pub(crate) fn requests(&self) -> Vec<Unsent> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Transport for DryRun {
    fn send(
        &self,
        request: Request<Bytes>,
    ) -> BoxFuture<'_, Result<Response<BodyStream>, TransportError>> {
        let body = request.body();
        let unsent = Unsent {
            method: request.method().to_string(),
            url: request.uri().to_string(),
            headers: shown(request.headers()),
            body: (!body.is_empty()).then(|| String::from_utf8_lossy(body).into_owned()),
        };
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(unsent);
        // With the service's own body: without it, the 404 would be that of another server.
        let code = ErrorCode::ParcelNotFound.code();
        let error = serde_json::json!({"success": false, "error": {"code": code, "message": ""}});
        let body = Bytes::from(error.to_string());
        let mut answer = Response::new(stream::iter([Ok(body)]).boxed());
        let status = StatusCode::from_u16(ErrorCode::ParcelNotFound.status());
        *answer.status_mut() = status.unwrap_or_default();
        async { Ok(answer) }.boxed()
    }
}

fn shown(headers: &HeaderMap) -> Vec<(String, String)> {
    let text = |value: &http::HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    let shown = |value| match text(value) {
        secret if value.is_sensitive() => masked(&secret),
        plain => plain,
    };
    headers.iter().map(|(name, value)| (name.to_string(), shown(value))).collect()
}

/// A key as far as everybody may see it: which environment it is of.
pub(crate) fn masked(key: &str) -> String {
    let prefix = Environment::ALL.into_iter().map(Environment::key_prefix);
    let known = prefix.into_iter().find(|prefix| key.starts_with(prefix)).unwrap_or_default();
    format!("{known}***")
}

impl Unsent {
    /// The request as a command line of curl.
    pub(crate) fn curl(&self) -> String {
        let mut line = format!("curl -X {} {}", self.method, quoted(&self.url));
        for (name, value) in &self.headers {
            line.push_str(" \\\n  -H ");
            line.push_str(&quoted(&format!("{name}: {value}")));
        }
        if let Some(body) = &self.body {
            line.push_str(" \\\n  --data-raw ");
            line.push_str(&quoted(body));
        }
        line
    }
}

/// A text as one word of a shell.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_a_line_for_the_shell_without_the_key() {
        let mut headers = HeaderMap::new();
        let mut key = http::HeaderValue::from_static("pk_test_secret");
        key.set_sensitive(true);
        headers.insert("x-api-key", key);
        let unsent = Unsent {
            method: "POST".to_owned(),
            url: "http://h/a?b=c&d".to_owned(),
            headers: shown(&headers),
            body: Some(r#"{"name":"O'Neil"}"#.to_owned()),
        };
        let expected = "curl -X POST 'http://h/a?b=c&d' \\\n  -H 'x-api-key: pk_test_***' \\\n  \
            --data-raw '{\"name\":\"O'\\''Neil\"}'";
        assert_eq!(unsent.curl(), expected);
    }

    #[test]
    fn a_mask_shows_the_environment_and_no_more() {
        for (key, shown) in
            [("pk_live_abc", "pk_live_***"), ("pk_test_", "pk_test_***"), ("x", "***")]
        {
            assert_eq!(masked(key), shown);
        }
    }
}
