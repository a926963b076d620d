//! An answer that a test chooses: of the inbox to a webhook, or of a planned fault to a request.

use axum::{
    body::{Body, Bytes},
    http::{HeaderName, HeaderValue, Response, StatusCode},
};

/// The statuses of answers that end an exchange.
pub(super) const STATUSES: (u16, u16) = (200, 999);

/// An answer of a test's choice; a number is a status, as in [`Reply::status`].
///
/// Nothing is added to it but what HTTP itself needs.
///
/// ```
/// use parcelo_server::mock::Reply;
///
/// let gateway = Reply::status(502).header("content-type", "text/html").body("<h1>Bad Gateway</h1>");
/// # drop(gateway);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    /// None for no answer at all.
    status: Option<u16>,
    headers: Vec<(HeaderName, HeaderValue)>,
    body: Bytes,
}

impl Reply {
    /// An answer with a status.
    ///
    /// # Panics
    ///
    /// When it is none of a final answer: 200 to 999.
    pub const fn status(status: u16) -> Self {
        let (least, most) = STATUSES;
        assert!(least <= status && status <= most, "the status of a final answer is 200 to 999");
        Self { status: Some(status), headers: Vec::new(), body: Bytes::new() }
    }

    /// No answer at all: the connection stays open until the other side has enough.
    pub const fn hang() -> Self {
        Self { status: None, headers: Vec::new(), body: Bytes::new() }
    }

    /// With a header. One that is given twice is sent twice. The `content-length` of a fault's reply is sent
    /// as it is given: the connection then ends before the promised bytes, or the body is cut off there.
    ///
    /// # Panics
    ///
    /// When name or value cannot stand in one.
    #[must_use]
    pub fn header(self, name: &str, value: &str) -> Self {
        #[expect(clippy::expect_used, reason = "a test's own constant is wrong; documented")]
        self.with_header(name, value).expect("a header's name and value")
    }

    /// The same, or none when name or value cannot stand in a header.
    pub(super) fn with_header(mut self, name: &str, value: &str) -> Option<Self> {
        let header = HeaderName::try_from(name).ok().zip(HeaderValue::try_from(value).ok());
        self.headers.push(header?);
        Some(self)
    }

    /// With a body.
    #[must_use]
    pub fn body(self, body: impl Into<Vec<u8>>) -> Self {
        Self { body: body.into().into(), ..self }
    }

    /// Its status; 0 for no answer.
    pub(super) fn status_code(&self) -> u16 {
        self.status.unwrap_or_default()
    }

    /// Whether it never comes.
    pub(super) fn hangs(&self) -> bool {
        self.status.is_none()
    }

    /// The answer; what hangs never comes to one.
    pub(super) async fn response(&self) -> Response<Body> {
        let Some(status) = self.status else { return std::future::pending().await };
        let mut response = Response::new(Body::from(self.body.clone()));
        // Every number that `status` takes is one.
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
