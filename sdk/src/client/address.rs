//! Checks of URLs that a caller gives.

use url::{Host, Url};

/// Returns `true` for an address with white space or control characters. The URL parser drops line breaks and tabs
/// silently, so this check comes before it.
pub(super) fn has_whitespace_or_control(address: &str) -> bool {
    address.chars().any(|c| c.is_control() || c.is_whitespace())
}

/// Returns `true` for an address that is certainly on this machine. A name below `localhost` is not: some resolvers
/// query other machines for it.
pub(super) fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(ip)) => ip.is_loopback(),
        Some(Host::Ipv6(ip)) => ip.to_canonical().is_loopback(),
        None => false,
    }
}
