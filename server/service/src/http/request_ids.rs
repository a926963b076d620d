//! The ids of the request that a task handles, for the lines that it logs.

use axum::http::HeaderMap;

tokio::task_local! {
    static CURRENT: RequestIds;
}

/// The ids of a request.
#[derive(Debug, Clone)]
pub struct RequestIds {
    /// The service's id.
    pub request: String,
    /// The trace's id of 32 hexadecimal digits, if the request has a valid `traceparent` (W3C Trace Context).
    pub trace: Option<String>,
}

impl RequestIds {
    pub(super) fn new(request: &str, headers: &HeaderMap) -> Self {
        let parent = headers.get("traceparent").and_then(|value| value.to_str().ok());
        let trace = parent.and_then(trace_id).map(str::to_owned);
        Self { request: request.to_owned(), trace }
    }

    /// Runs a part of the request's work.
    pub(super) async fn scope<T>(self, work: impl Future<Output = T>) -> T {
        CURRENT.scope(self, work).await
    }

    /// Passes the ids of the current task's request to `read`. Returns `None` outside of a request.
    pub fn read_current<T>(read: impl FnOnce(&Self) -> T) -> Option<T> {
        CURRENT.try_with(read).ok()
    }
}

/// Returns the trace's id in a `traceparent`. A later version of the format may have more parts.
fn trace_id(parent: &str) -> Option<&str> {
    let mut parts = parent.split('-');
    let mut part = |digits| {
        let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        parts.next().filter(|part| part.len() == digits && part.bytes().all(is_digit))
    };
    let (version, trace, span) = (part(2)?, part(32)?, part(16)?);
    let has_zeros_only = |part: &str| part.bytes().all(|byte| byte == b'0');
    part(2)?;
    let is_valid = version != "ff" && !has_zeros_only(trace) && !has_zeros_only(span);
    (is_valid && (version != "00" || parts.next().is_none())).then_some(trace)
}

#[cfg(test)]
mod tests {
    use super::trace_id;

    #[test]
    fn a_trace_id_is_taken_from_a_valid_traceparent() {
        const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
        let table = [
            (format!("00-{TRACE}-00f067aa0ba902b7-01"), true),
            (format!("cc-{TRACE}-00f067aa0ba902b7-01-more"), true),
            (format!("00-{TRACE}-00f067aa0ba902b7-01-more"), false),
            (format!("ff-{TRACE}-00f067aa0ba902b7-01"), false),
            (format!("00-{TRACE}-0000000000000000-01"), false),
            (format!("00-{}-00f067aa0ba902b7-01", "0".repeat(32)), false),
            (format!("00-{}-00f067aa0ba902b7-01", TRACE.to_uppercase()), false),
            (format!("00-{TRACE}\"-00f067aa0ba902b7-01"), false),
            (format!("00-{TRACE}-00f067aa0ba902b7"), false),
            (String::new(), false),
        ];
        for (parent, is_valid) in table {
            assert_eq!(trace_id(&parent), is_valid.then_some(TRACE), "{parent}");
        }
    }
}
