//! The ids of the request that a task handles, for the lines that it logs.

use axum::http::HeaderMap;
use parcelo_domain::TraceContext;

tokio::task_local! {
    static CURRENT: RequestIds;
}

/// The ids of a request.
#[derive(Debug, Clone)]
pub struct RequestIds {
    /// The service's id.
    pub request: String,
    /// The trace, if the request has a valid `traceparent`.
    pub trace: Option<TraceContext>,
}

impl RequestIds {
    pub(super) fn new(request: &str, headers: &HeaderMap) -> Self {
        let parent = headers.get(TraceContext::HEADER).and_then(|value| value.to_str().ok());
        let trace = parent.and_then(TraceContext::parse);
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

    /// Returns the trace of the current task's request.
    pub(super) fn current_trace() -> Option<TraceContext> {
        Self::read_current(|ids| ids.trace).flatten()
    }
}
