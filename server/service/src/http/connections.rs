//! Limits the connections of one address, so that none can take all of them, and counts connections that never became a
//! request.

use std::{
    collections::{HashMap, hash_map::Entry},
    net::IpAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use ipnet::IpNet;
use parcelo_domain::access::client_network;

use super::lingering_close::ConnectionState;
use crate::service::{BadHead, Metrics};

/// Maximum number of connections that a listener serves at once; further ones wait to be accepted.
pub(super) const MAX_CONNECTIONS: u32 = 10_000;
/// Maximum number of connections of one address at a listener unless an operator sets another: a quarter of all, so
/// that no single address can keep all others out.
pub const DEFAULT_CONNECTIONS_PER_ADDRESS: u32 = MAX_CONNECTIONS / 4;

/// The limit of a listener's connections for each address, and the metrics that count them.
#[derive(Debug, Clone)]
pub struct ConnectionLimits {
    /// The listener's name: `production`, `sandbox` or `operators`.
    pub listener: &'static str,
    /// Maximum number of connections of one address, or of one IPv6 /64 network.
    pub per_address: u32,
    /// Networks without a limit: this machine, and proxies, which connect for all clients.
    pub exempt: Vec<IpNet>,
    /// The metrics to count in.
    pub metrics: Metrics,
}

/// The open connections of a listener, by address.
#[derive(Debug)]
pub(super) struct OpenConnections {
    limits: Option<ConnectionLimits>,
    /// The number of connections by address. The lock is held for one map lookup only, never across an await.
    open: Mutex<HashMap<IpAddr, u32>>,
}

/// A slot that counts a connection for its address until it is dropped.
#[derive(Debug)]
pub(super) struct AddressSlot(Option<(Arc<OpenConnections>, IpAddr)>);

impl OpenConnections {
    pub(super) fn new(limits: Option<ConnectionLimits>) -> Arc<Self> {
        Arc::new(Self { limits, open: Mutex::default() })
    }

    /// Returns a slot for one more connection, unless its address has all its slots already.
    pub(super) fn admit(self: &Arc<Self>, peer: IpAddr) -> Option<AddressSlot> {
        let Some(limits) = &self.limits else { return Some(AddressSlot(None)) };
        // A dual-stack socket maps IPv4 addresses into IPv6, which no listed network contains.
        let peer = peer.to_canonical();
        if limits.exempt.iter().any(|network| network.contains(&peer)) {
            return Some(AddressSlot(None));
        }
        let address = client_network(peer);
        let mut open = self.open();
        let count = open.entry(address).or_default();
        if *count >= limits.per_address {
            limits.metrics.count_refused_connection(limits.listener);
            return None;
        }
        *count += 1;
        Some(AddressSlot(Some((Arc::clone(self), address))))
    }

    /// Counts a head that hyper rejected, which never becomes a request. The end of an idle connection is not counted.
    pub(super) fn count_bad_head(&self, fault: &hyper::Error, state: &ConnectionState) {
        let Some(limits) = &self.limits else { return };
        let bad = if fault.is_parse_too_large() {
            BadHead::TooLarge
        } else if fault.is_parse() {
            BadHead::Malformed
        } else if fault.is_timeout() && state.has_head_begun() {
            BadHead::TooSlow
        } else {
            return;
        };
        limits.metrics.count_bad_head(limits.listener, bad);
    }

    fn open(&self) -> MutexGuard<'_, HashMap<IpAddr, u32>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for AddressSlot {
    fn drop(&mut self) {
        let Some((connected, address)) = self.0.take() else { return };
        if let Entry::Occupied(mut count) = connected.open().entry(address) {
            *count.get_mut() -= 1;
            if *count.get() == 0 {
                count.remove();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use axum::{Router, routing::get};
    use tokio::{
        io::{AsyncReadExt, AsyncWriteExt},
        net::{TcpListener, TcpStream},
    };

    use super::*;
    use crate::http::{Listener, Stop};

    const GET: &str = "GET / HTTP/1.1\r\nHost: a.test\r\n\r\n";

    fn open_connections(exempt: &[&str]) -> Arc<OpenConnections> {
        let exempt = exempt.iter().map(|net| net.parse().unwrap()).collect();
        let metrics = Metrics::default();
        let limits = ConnectionLimits { listener: "production", per_address: 2, exempt, metrics };
        OpenConnections::new(Some(limits))
    }

    fn admit(connected: &Arc<OpenConnections>, peer: &str) -> Option<AddressSlot> {
        connected.admit(peer.parse().unwrap())
    }

    #[test]
    fn the_connections_of_one_address_are_limited() {
        let connected = open_connections(&[]);
        let slots = ["203.0.113.9", "::ffff:203.0.113.9"].map(|peer| admit(&connected, peer));
        assert!(slots.iter().all(Option::is_some));
        assert!(admit(&connected, "203.0.113.9").is_none(), "a third one");
        assert!(admit(&connected, "203.0.113.10").is_some(), "another address's first");
        drop(slots);
        assert!(admit(&connected, "203.0.113.9").is_some(), "slots are given back");
        assert!(connected.open().is_empty(), "no count of zero is kept");
    }

    #[test]
    fn an_ipv6_network_counts_as_one_address() {
        let connected = open_connections(&[]);
        let _slots = ["2001:db8::1", "2001:db8::2"].map(|peer| admit(&connected, peer).unwrap());
        assert!(admit(&connected, "2001:db8:0:0:ffff::3").is_none());
        assert!(admit(&connected, "2001:db8:0:1::1").is_some(), "the next network");
    }

    #[test]
    fn proxies_have_no_limit() {
        let connected = open_connections(&["10.0.0.0/8", "::1/128"]);
        for peer in ["10.1.2.3", "::ffff:10.1.2.3", "::1"] {
            let slots: Vec<_> = (0..5).map(|_| admit(&connected, peer).unwrap()).collect();
            assert_eq!(slots.len(), 5);
        }
    }

    #[tokio::test]
    async fn a_connection_above_the_limit_is_closed_and_counted() {
        let metrics = Metrics::default();
        let (listener, stop, address) = listening(&metrics).await;
        let (mut first, mut second) = (connect(address).await, connect(address).await);
        assert!(is_served(&mut first).await && is_served(&mut second).await);
        assert!(!is_served(&mut connect(address).await).await, "a third one");
        assert_eq!(metrics.refused_connections("production"), 1);
        drop(first);
        // The server needs a moment to notice that the first one is closed.
        while !is_served(&mut connect(address).await).await {}
        assert!(is_served(&mut second).await, "the other connection stays open");
        stop.now();
        drop(second);
        listener.finish().await;
    }

    /// The first packet; further packets, each with the end of its response; the last packet; the count of slow heads.
    type Row = (&'static str, &'static [(&'static str, &'static str)], &'static str, u64);

    #[tokio::test]
    async fn only_a_head_that_has_begun_counts_as_slow() {
        const UPLOAD: &str = "POST / HTTP/1.1\r\nHost: a.test\r\nExpect: 100-continue\r\n";
        let body = &[("Content-Length: 4\r\n\r\n", "\r\n\r\n"), ("body", "here")];
        let chunks = &[
            ("Transfer-Encoding: chunked\r\n\r\n", "\r\n\r\n"),
            ("4\r\nbody\r\n0\r\n\r\n", "here"),
        ];
        let table: [Row; 7] = [
            ("", &[], "", 0),
            (GET, &[("", "here")], "", 0),
            (UPLOAD, body, "", 0),
            (UPLOAD, chunks, "", 0),
            ("", &[], "G", 1),
            (GET, &[("", "here")], "GET / HTTP/1.1\r\n", 1),
            (UPLOAD, body, "P", 1),
        ];
        for (first, rest, unfinished, counted) in table {
            let metrics = Metrics::default();
            let (listener, stop, address) = listening(&metrics).await;
            let mut connection = connect(address).await;
            connection.write_all(first.as_bytes()).await.unwrap();
            for (packet, end) in rest {
                connection.write_all(packet.as_bytes()).await.unwrap();
                assert!(has_responded(&mut connection, end).await, "{first}{packet}");
            }
            connection.write_all(unfinished.as_bytes()).await.unwrap();
            // The paused clock moves on when all tasks are idle.
            tokio::time::pause();
            assert_eq!(connection.read(&mut [0; 1]).await.unwrap(), 0, "it is closed");
            stop.now();
            listener.finish().await;
            tokio::time::resume();
            let slow = metrics.bad_heads("production", BadHead::TooSlow);
            assert_eq!(slow, counted, "{first}{rest:?}{unfinished}");
        }
    }

    /// Starts a listener with two slots for each address.
    async fn listening(metrics: &Metrics) -> (Listener, Stop, SocketAddr) {
        let metrics = metrics.clone();
        let limits = ConnectionLimits {
            listener: "production",
            per_address: 2,
            exempt: Vec::new(),
            metrics,
        };
        let socket = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = socket.local_addr().unwrap();
        let here = get(|| async { "here" }).post(|_: String| async { "here" });
        let (routes, stop) = (Router::new().route("/", here), Stop::default());
        (Listener::start_within(limits, socket, routes, stop.clone()), stop, address)
    }

    async fn connect(address: SocketAddr) -> TcpStream {
        TcpStream::connect(address).await.unwrap()
    }

    async fn is_served(connection: &mut TcpStream) -> bool {
        // If the connection was closed, the read below shows it.
        let _ = connection.write_all(GET.as_bytes()).await;
        has_responded(connection, "here").await
    }

    async fn has_responded(connection: &mut TcpStream, end: &str) -> bool {
        let mut response = Vec::new();
        while !response.ends_with(end.as_bytes()) {
            if !matches!(connection.read_buf(&mut response).await, Ok(1..)) {
                return false;
            }
        }
        true
    }
}
