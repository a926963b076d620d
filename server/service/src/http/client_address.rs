//! The address of the client that sent a request, directly or through proxies.

use std::{fmt, net::IpAddr};

use axum::{extract::Request, http::HeaderName};
use ipnet::IpNet;
use parcelo_domain::access;

use super::Api;

/// The address of the connection's other end; the listener adds it to each request. A request without one did not
/// come over a socket: an embedded mock server was called in memory.
#[derive(Debug, Clone, Copy)]
pub struct PeerAddress(pub IpAddr);

/// A client as the log shows it: its address, or only its network if it visits a public page, because visitors of
/// public pages are people.
pub(super) struct LoggedClient {
    pub(super) address: IpAddr,
    pub(super) is_person: bool,
}

impl fmt::Display for LoggedClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let prefix = if self.address.is_ipv4() { 24 } else { 48 };
        match IpNet::new(self.address, prefix) {
            Ok(network) if self.is_person => write!(f, "{}", network.trunc()),
            _ => write!(f, "{}", self.address),
        }
    }
}

/// Returns the client's address: the connection's, or the one that a trusted proxy gives in `X-Forwarded-For`.
pub fn client_address(api: &Api, request: &Request) -> IpAddr {
    let peer = request
        .extensions()
        .get::<PeerAddress>()
        .map_or(IpAddr::from([127, 0, 0, 1]), |peer| peer.0);
    let name = const { HeaderName::from_static("x-forwarded-for") };
    let forwarded = request.headers().get_all(name);
    // A line that is not UTF-8 is kept: dropping it would let a forged line take its place.
    let lines: Vec<_> =
        forwarded.iter().map(|line| String::from_utf8_lossy(line.as_bytes())).collect();
    let lines = lines.iter().map(AsRef::as_ref);
    access::client_address(peer, lines, &api.service.settings().trusted_proxies)
}
