//! The base URL of the current request, for links in its response. The mock server needs it: it does not know the name
//! that a network of containers gives it.
//!
//! It is a task-local, because every function that builds a link would otherwise need it as an argument. `serve`
//! never sets it.

use std::borrow::Cow;

use parcelo_domain::Site;
use tokio::task::futures::TaskLocalFuture;

tokio::task_local! {
    static REQUEST_BASE_URL: String;
}

/// Runs a request so that the links in its response start with this base URL.
pub fn with_base_url<F: Future>(base_url: String, request: F) -> TaskLocalFuture<String, F> {
    REQUEST_BASE_URL.scope(base_url, request)
}

/// Returns the site with the base URL of the current request, if one is set.
pub(super) fn site_for_request(site: &Site) -> Cow<'_, Site> {
    let requested = REQUEST_BASE_URL.try_with(|base_url| site.with_base_url(base_url));
    requested.map_or(Cow::Borrowed(site), Cow::Owned)
}
