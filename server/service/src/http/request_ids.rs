//! The ids of the request that a task handles, for the lines that it logs.

use axum::http::{HeaderMap, HeaderName};
use parcelo_domain::TraceContext;

tokio::task_local! {
    static CURRENT: RequestIds;
}

/// The ids of a request.
#[derive(Debug, Clone)]
pub struct RequestIds {
    /// The service's id.
    pub request: String,
    /// The trace, if the request has one `traceparent`, which is valid.
    pub trace: Option<TraceContext>,
}

impl RequestIds {
    pub(super) fn new(request: String, headers: &HeaderMap) -> Self {
        let name = const { HeaderName::from_static(TraceContext::HEADER) };
        let mut parents = headers.get_all(name).iter();
        // Two would name two callers: as with an invalid one, the request has no trace.
        let parent = parents.next().filter(|_| parents.next().is_none());
        let trace = parent.and_then(|value| value.to_str().ok()).and_then(TraceContext::parse);
        Self { request, trace }
    }

    /// Runs a part of the request's work.
    pub(super) async fn scope<T>(self, work: impl Future<Output = T>) -> T {
        CURRENT.scope(self, work).await
    }

    /// Passes the ids of the current task's request to `read`. Returns `None` outside of a request.
    pub fn read_current<T>(read: impl FnOnce(&Self) -> T) -> Option<T> {
        CURRENT.try_with(read).ok()
    }

    /// Returns the trace of the current task's request. Returns `None` outside of a request.
    pub fn current_trace() -> Option<TraceContext> {
        Self::read_current(|ids| ids.trace).flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_with_several_traceparents_has_no_trace() {
        for (count, is_traced) in [(0, false), (1, true), (2, false)] {
            let mut headers = HeaderMap::new();
            for span in 1..=count {
                let parent = format!("00-4bf92f3577b34da6a3ce929d0e0e4736-{span:016x}-01");
                headers.append(TraceContext::HEADER, parent.parse().unwrap());
            }
            let ids = RequestIds::new("req_1".to_owned(), &headers);
            assert_eq!(ids.trace.is_some(), is_traced, "{count} headers");
        }
    }
}
