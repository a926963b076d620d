//! A response of the test's choice: the inbox's to a webhook, or a planned fault's to a request.

use axum::{
    body::{Body, Bytes},
    http::{HeaderName, HeaderValue, Response, StatusCode},
};

/// Minimum and maximum status of a final response: 1xx would be followed by another.
pub(super) const FINAL_STATUSES: (u16, u16) = (200, 999);

/// Returns `true` for the status of a final response.
pub(super) const fn is_final(status: u16) -> bool {
    FINAL_STATUSES.0 <= status && status <= FINAL_STATUSES.1
}

/// A response of the test's choice. A number converts to [`Reply::status`].
///
/// Nothing is added to it except what HTTP requires.
///
/// ```
/// use parcelo_server::mock::Reply;
///
/// let gateway = Reply::status(502).header("content-type", "text/html").body("<h1>Bad Gateway</h1>");
/// # drop(gateway);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    /// `None` for no response at all.
    status: Option<u16>,
    headers: Vec<(HeaderName, HeaderValue)>,
    body: Bytes,
}

impl Reply {
    /// Returns a response with a status.
    ///
    /// # Panics
    ///
    /// If it is not the status of a final response, 200 to 999.
    #[track_caller]
    pub const fn status(status: u16) -> Self {
        assert!(is_final(status), "the status of a final response is 200 to 999");
        Self { status: Some(status), headers: Vec::new(), body: Bytes::new() }
    }

    /// Returns a reply without a response: the connection stays open until the client gives up.
    pub const fn hang() -> Self {
        Self { status: None, headers: Vec::new(), body: Bytes::new() }
    }

    /// Adds a header; repeated headers are sent repeatedly. The `content-length` of a fault's reply is sent as given:
    /// the connection then ends before that many bytes, or the body is cut off there.
    ///
    /// # Panics
    ///
    /// If the name or the value is not valid.
    #[must_use]
    pub fn header(self, name: &str, value: &str) -> Self {
        #[expect(clippy::expect_used, reason = "a test's own constant is wrong; documented")]
        self.with_header(name, value).expect("a valid header name and value")
    }

    /// Adds a header like [`Reply::header`]; returns `None` if the name or the value is not valid.
    pub(super) fn with_header(mut self, name: &str, value: &str) -> Option<Self> {
        let header = HeaderName::try_from(name).ok().zip(HeaderValue::try_from(value).ok());
        self.headers.push(header?);
        Some(self)
    }

    /// Sets the body.
    #[must_use]
    pub fn body(self, body: impl Into<Vec<u8>>) -> Self {
        Self { body: body.into().into(), ..self }
    }

    /// Returns the status of the reply; 0 for no response.
    pub(super) fn status_code(&self) -> u16 {
        self.status.unwrap_or_default()
    }

    /// Returns `true` if there is no response.
    pub(super) fn hangs(&self) -> bool {
        self.status.is_none()
    }

    /// Returns the response. If the reply hangs, the future never completes.
    pub(super) async fn response(&self) -> Response<Body> {
        let Some(status) = self.status else { return std::future::pending().await };
        let mut response = Response::new(Body::from(self.body.clone()));
        // `Reply::status` accepts only valid numbers.
        *response.status_mut() = StatusCode::from_u16(status).unwrap_or_default();
        response.headers_mut().extend(self.headers.iter().cloned());
        response
    }
}

impl From<u16> for Reply {
    fn from(status: u16) -> Self {
        Self::status(status)
    }
}
