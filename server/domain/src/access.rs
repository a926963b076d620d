//! The addresses from which a key may be used: the client's address and the key's IP list
//! (spec: API key properties; docs/api.md, IP list).

use std::net::{IpAddr, SocketAddr};

use ipnet::IpNet;

/// Returns the address of the client: the socket's peer or, if the peer is a trusted proxy, the right-most entry of
/// `X-Forwarded-For` that is not a trusted proxy.
pub fn client_address<'a>(
    peer: IpAddr,
    forwarded_for: impl DoubleEndedIterator<Item = &'a str>,
    trusted: &[IpNet],
) -> IpAddr {
    let mut client = peer.to_canonical();
    let hops = forwarded_for.flat_map(|line| line.split(',')).rev();
    for hop in hops {
        if !contains(trusted, client) {
            break;
        }
        let Some(address) = hop_address(hop.trim()) else { break };
        client = address.to_canonical();
    }
    client
}

/// Parses an entry's address. Some proxies append the client's port.
fn hop_address(hop: &str) -> Option<IpAddr> {
    let bare = hop.strip_prefix('[').and_then(|hop| hop.strip_suffix(']')).unwrap_or(hop);
    bare.parse().ok().or_else(|| Some(hop.parse::<SocketAddr>().ok()?.ip()))
}

/// Returns `true` if a key with this list may be used from `client`. An empty list allows any address.
pub fn is_allowed(list: &[IpNet], client: IpAddr) -> bool {
    list.is_empty() || contains(list, client)
}

/// Returns the network whose requests and attempts are counted together: an IPv4 address, or an IPv6 /64, which is the
/// smallest network that a household or a rented server gets.
pub fn client_network(client: IpAddr) -> IpAddr {
    match client.to_canonical() {
        IpAddr::V6(address) => {
            let [a, b, c, d, ..] = address.segments();
            IpAddr::from([a, b, c, d, 0, 0, 0, 0])
        }
        address @ IpAddr::V4(_) => address,
    }
}

/// Parses a network, or an address as a network with a single address. IPv4 written as IPv6 becomes IPv4, as in
/// [`client_address`].
pub fn parse_network(text: &str) -> Option<IpNet> {
    if let Ok(address) = text.parse::<IpAddr>() {
        return Some(address.to_canonical().into());
    }
    match text.parse().ok()? {
        IpNet::V6(net) if net.prefix_len() >= 96 => match net.addr().to_ipv4_mapped() {
            Some(address) => IpNet::new(address.into(), net.prefix_len() - 96).ok(),
            None => Some(net.into()),
        },
        net => Some(net),
    }
}

fn contains(list: &[IpNet], address: IpAddr) -> bool {
    list.iter().any(|net| net.contains(&address))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn the_client_is_the_last_hop_that_is_not_a_trusted_proxy() {
        let trusted: Vec<IpNet> = vec!["10.0.0.0/8".parse().unwrap()];
        let table = [
            ("203.0.113.9", vec!["198.51.100.1"], "203.0.113.9"),
            ("10.0.0.1", vec![], "10.0.0.1"),
            ("10.0.0.1", vec!["198.51.100.1"], "198.51.100.1"),
            ("10.0.0.1", vec!["1.2.3.4, 198.51.100.1, 10.9.9.9"], "198.51.100.1"),
            ("10.0.0.1", vec!["1.2.3.4", "198.51.100.1"], "198.51.100.1"),
            ("10.0.0.1", vec!["garbage"], "10.0.0.1"),
            ("10.0.0.1", vec!["198.51.100.1:5678"], "198.51.100.1"),
            ("10.0.0.1", vec!["198.51.100.1:5678, 10.9.9.9:80"], "198.51.100.1"),
            ("10.0.0.1", vec!["[2001:db8::1]:80"], "2001:db8::1"),
            ("10.0.0.1", vec!["[2001:db8::1]"], "2001:db8::1"),
            ("10.0.0.1", vec!["[::ffff:198.51.100.1]:80"], "198.51.100.1"),
            ("10.0.0.1", vec!["198.51.100.1:70000"], "10.0.0.1"),
            ("10.0.0.1", vec!["198.51.100.1:"], "10.0.0.1"),
            ("::ffff:10.0.0.1", vec!["::ffff:198.51.100.1"], "198.51.100.1"),
        ];
        for (peer, header, client) in table {
            let found = client_address(ip(peer), header.iter().copied(), &trusted);
            assert_eq!(found, ip(client), "{peer} {header:?}");
        }
    }

    #[test]
    fn addresses_of_one_ipv6_network_are_counted_together() {
        let of = |text: &str| client_network(ip(text));
        assert_eq!(of("2001:db8:1:2:3::1"), of("2001:db8:1:2::9"));
        assert_ne!(of("2001:db8:1:2::1"), of("2001:db8:1:3::1"));
        assert_eq!(of("::ffff:10.0.0.7"), of("10.0.0.7"));
        assert_ne!(of("10.0.0.7"), of("10.0.0.8"));
    }

    #[test]
    fn a_single_address_parses_as_a_network() {
        let read = |text| parse_network(text).map(|net| net.to_string());
        let table = [
            ("192.0.2.1", Some("192.0.2.1/32")),
            ("::ffff:192.0.2.1", Some("192.0.2.1/32")),
            ("::ffff:10.0.0.0/104", Some("10.0.0.0/8")),
            ("::ffff:0.0.0.0/95", Some("::ffff:0.0.0.0/95")),
            ("2001:db8::/32", Some("2001:db8::/32")),
            ("2001:db8::1", Some("2001:db8::1/128")),
            ("10.0.0.0/33", None),
            ("localhost", None),
        ];
        for (text, net) in table {
            assert_eq!(read(text).as_deref(), net, "{text}");
        }
    }

    #[test]
    fn an_empty_list_allows_all_and_any_other_only_its_own() {
        let list: Vec<IpNet> =
            vec!["192.0.2.0/24".parse().unwrap(), "2001:db8::/32".parse().unwrap()];
        assert!(is_allowed(&[], ip("203.0.113.9")));
        assert!(is_allowed(&list, ip("192.0.2.77")));
        assert!(is_allowed(&list, ip("2001:db8::1")));
        assert!(!is_allowed(&list, ip("203.0.113.9")));
    }
}
