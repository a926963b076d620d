//! An HTTP connection over a bare socket, for tests that choose the packets.

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::timeout,
};

use crate::waiting::LONG;

/// A connection to a server.
pub(crate) struct RawConnection(TcpStream);

/// A response as received: its head and its body.
#[derive(Debug, Clone)]
pub(crate) struct RawResponse {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl RawConnection {
    /// Connects to the host of a URL such as `http://127.0.0.1:8080`.
    pub(crate) async fn open(url: &str) -> Self {
        let stream = TcpStream::connect(url.trim_start_matches("http://")).await.unwrap();
        stream.set_nodelay(true).unwrap();
        Self(stream)
    }

    /// Sends each text in a separate packet.
    pub(crate) async fn send(&mut self, packets: &[&str]) {
        for packet in packets {
            // If the server has closed the connection, the next read notices it.
            let _ = self.0.write_all(packet.as_bytes()).await;
            tokio::task::yield_now().await;
        }
    }

    /// Returns the next response, or `None` if the connection ends without one.
    pub(crate) async fn next_response(&mut self) -> Option<RawResponse> {
        timeout(LONG, self.read()).await.expect("a response in time")
    }

    async fn read(&mut self) -> Option<RawResponse> {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(self.0.read_u8().await.ok()?);
        }
        let head = String::from_utf8(head).unwrap().to_lowercase();
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
        let mut body = vec![0; length.map_or(0, |length| length.parse().unwrap())];
        self.0.read_exact(&mut body).await.ok()?;
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        Some(RawResponse { status, head, body: String::from_utf8_lossy(&body).into_owned() })
    }
}

impl RawResponse {
    /// Returns `true` if the response has `Connection: close`.
    pub(crate) fn closes_connection(&self) -> bool {
        self.head.contains("\r\nconnection: close\r\n")
    }
}
