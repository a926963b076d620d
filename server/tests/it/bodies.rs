//! Memory for a request's body: proportional to its length, however small the packets are.
#![cfg(target_os = "linux")]

use std::{fs, io::Write, net::TcpStream};

use crate::running::{RunningServer, TestSetup};

const CONNECTIONS: usize = 64;
/// Maximum growth of the server's resident memory.
const MAX_GROWTH_BYTES: u64 = 32 << 20;

/// The framing in which each byte of a body is sent.
#[derive(Clone, Copy)]
enum Framing {
    Bare,
    Chunk,
}

impl Framing {
    fn bytes(self) -> &'static [u8] {
        match self {
            Self::Bare => b"x",
            Self::Chunk => b"1\r\nx\r\n",
        }
    }

    fn header(self, length: usize) -> String {
        match self {
            Self::Bare => format!("Content-Length: {}\r\n\r\n", length + 1),
            Self::Chunk => "Transfer-Encoding: chunked\r\n\r\n".to_owned(),
        }
    }
}

/// Returns the server's memory in use, in bytes.
fn resident_bytes(server: &RunningServer) -> u64 {
    let pid = server.ready["pid"].as_u64().unwrap();
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024
}

/// Returns the growth of the server's memory while unfinished bodies of this length arrive, each byte in a separate
/// packet.
fn measure_growth(
    server: &RunningServer,
    url: &str,
    head: &str,
    (framing, length): (Framing, usize),
) -> u64 {
    let before = resident_bytes(server);
    let connect = || TcpStream::connect(url.trim_start_matches("http://")).unwrap();
    let mut streams: Vec<_> = (0..CONNECTIONS).map(|_| connect()).collect();
    let head = format!("{head}{}", framing.header(length));
    for stream in &mut streams {
        stream.set_nodelay(true).unwrap();
        stream.write_all(head.as_bytes()).unwrap();
    }
    for _ in 0..length {
        for stream in &mut streams {
            // The rate limit may have refused this connection; the others go on.
            let _ = stream.write_all(framing.bytes());
        }
    }
    resident_bytes(server).saturating_sub(before)
}

fn assert_small_growth(listener: &str, head: &str, length: usize) {
    let (setup, server) = TestSetup::new_and_start();
    let head = head.replace("KEY", setup.new_key("sandbox").1.secret());
    for framing in [Framing::Bare, Framing::Chunk] {
        let grown = measure_growth(&server, server.url(listener), &head, (framing, length));
        assert!(grown < MAX_GROWTH_BYTES, "{} MB", grown >> 20);
    }
}

#[test]
#[ignore = "long: `.ci/prove proofs` runs it"]
fn orders_of_64_kb_in_tiny_packets_use_less_than_32_mb() {
    let head = "POST /api/v1/orders/create HTTP/1.1\r\nHost: parcelo.test\r\n\
                Content-Type: application/json\r\nX-API-Key: KEY\r\n";
    assert_small_growth("sandbox", head, 64 << 10);
}

#[test]
#[ignore = "long: `.ci/prove proofs` runs it"]
fn a_sign_in_form_in_tiny_packets_uses_memory_of_its_length() {
    let head = "POST /dashboard/sign-in HTTP/1.1\r\nHost: parcelo.test\r\n\
                Content-Type: application/x-www-form-urlencoded\r\n";
    assert_small_growth("admin", head, 4 << 10);
}
