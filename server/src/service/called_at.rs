//! The address under which the request at hand came, for a service that has no address of its own to
//! name: the mock server's, behind whatever name a network of containers gives it.
//!
//! It belongs to the request's task, since every link that an answer holds would otherwise need it as an
//! argument on the way down; `serve` never sets it.

use std::borrow::Cow;

use tokio::task::futures::TaskLocalFuture;

use crate::domain::Site;

tokio::task_local! {
    static CALLED_AT: String;
}

/// A request's answer, whose links lead to this address.
pub(crate) fn called_at<F: Future>(base_url: String, request: F) -> TaskLocalFuture<String, F> {
    CALLED_AT.scope(base_url, request)
}

/// The site, at the address that was called where that counts.
pub(super) fn seen(site: &Site) -> Cow<'_, Site> {
    let moved = CALLED_AT.try_with(|base_url| site.at(base_url));
    moved.map_or(Cow::Borrowed(site), Cow::Owned)
}
