//! Which address a request came from, behind proxies too.

use std::net::IpAddr;

use axum::extract::Request;

use super::Api;
use crate::domain::access;

/// The other end of the connection; the listener puts it on each request. A request without one came
/// over no socket: an embedded mock server was called in memory.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Peer(pub IpAddr);

/// The client's address: the connection's, or what a trusted proxy says in `X-Forwarded-For`.
pub(super) fn client_address(api: &Api, request: &Request) -> IpAddr {
    let peer =
        request.extensions().get::<Peer>().map_or(IpAddr::from([127, 0, 0, 1]), |peer| peer.0);
    let forwarded = request.headers().get_all("x-forwarded-for");
    // A line that is not text is kept: to leave it out would move a forged one into its place.
    let lines: Vec<_> =
        forwarded.iter().map(|line| String::from_utf8_lossy(line.as_bytes())).collect();
    let lines = lines.iter().map(AsRef::as_ref);
    access::client_address(peer, lines, &api.service.settings().trusted_proxies)
}
