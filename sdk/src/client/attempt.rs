//! What observers and traces see of each attempt.

use std::{fmt, sync::Arc, time::Duration};

use http::Method;
use tracing::{Span, debug_span, field::Empty};
use url::Url;

use super::{FailureClass, StopReason, attempt_error::AttemptError, response::ServiceResponse};
use crate::model::Operation;

/// One attempt of a call, for counters and logs; it holds no secret and no personal data.
///
/// ```
/// # use parcelo::{ApiKey, Client, Environment};
/// # let key = ApiKey::from_random(Environment::Sandbox, &[7; 32]);
/// let client = Client::builder(key)
///     .base_url("http://127.0.0.1:8081")?
///     .on_attempt(|attempt| {
///         if let (Some(class), Some(wait)) = (attempt.failure, attempt.wait) {
///             let name = attempt.operation.name();
///             eprintln!("{name} {}: {class:?}, retrying in {wait:?}", attempt.number);
///         }
///     })
///     .build()?;
/// # Ok::<(), parcelo::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Attempt {
    /// The operation that was called.
    pub operation: Operation,
    /// 1 for the first attempt of a call.
    pub number: u32,
    /// The HTTP status; `None` when no answer came.
    pub status: Option<u16>,
    /// How it failed; `None` when it succeeded.
    pub failure: Option<FailureClass>,
    /// How long it took.
    pub took: Duration,
    /// How long the call waits before its next attempt; `None` when there is none.
    pub wait: Option<Duration>,
    /// Why there is no next attempt; `None` after a success and when there is one.
    pub stopped: Option<StopReason>,
}

/// The closure that sees each attempt.
#[derive(Clone)]
pub(super) struct Observer(pub(super) Arc<dyn Fn(&Attempt) + Send + Sync>);

impl fmt::Debug for Observer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Observer")
    }
}

/// The span of one attempt, with OpenTelemetry's names for HTTP. It has the path's template and not the
/// address, which holds tracking numbers.
pub(super) fn attempt_span(
    method: &Method,
    template: &'static str,
    base: &Url,
    number: u32,
) -> Span {
    let method = method.as_str();
    debug_span!(
        "parcelo.attempt",
        otel.name = format_args!("{method} {template}"),
        otel.kind = "client",
        "http.request.method" = method,
        "url.template" = template,
        "server.address" = base.host_str(),
        "server.port" = base.port_or_known_default(),
        "http.request.resend_count" = number.saturating_sub(1),
        "http.response.status_code" = Empty,
        "error.type" = Empty,
    )
}

/// Records in the span how its attempt ended.
pub(super) fn record_result<T>(span: &Span, result: &Result<ServiceResponse<T>, AttemptError>) {
    if span.is_disabled() {
        return;
    }
    match result {
        Ok(response) => span.record("http.response.status_code", response.status.as_u16()),
        Err(error) => span
            .record("http.response.status_code", error.status())
            .record("error.type", error.error_type()),
    };
}
