//! Requests over a real socket: each gets the same response, however its bytes are split into packets and chunks, and
//! whatever follows on the connection.

use std::time::Duration;

use parcelo::ApiKey;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    time::timeout,
};

use crate::{
    Target,
    service::{Service, with_service},
};

pub(crate) const TARGET: Target = Target { name: "http_packets", check, cases: 100 };

const MAX_WAIT: Duration = Duration::from_secs(120);
/// Number of pieces after which the rest is not split.
const MAX_SPLITS: usize = 64;

/// The way in which the length of a body is announced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Framing {
    Length,
    Chunked,
    /// Chunks, and a `Content-Length` that would end the body elsewhere; by RFC 9112 the chunks take precedence.
    Both,
}

/// Checks an input: the sizes of the packets on its first line, then the body.
fn check(input: &[u8]) {
    let end = input.iter().position(|byte| *byte == b'\n').unwrap_or(0);
    let sizes = String::from_utf8_lossy(&input[..end]);
    let sizes: Vec<usize> = sizes
        .split(',')
        .filter_map(|size| size.trim().parse().ok())
        .filter(|size| *size > 0)
        .collect();
    let body = input.get(end + 1..).unwrap_or_default();
    with_service(|service| service.runtime.block_on(assert_same_responses(service, &sizes, body)));
}

async fn assert_same_responses(service: &Service, sizes: &[usize], body: &[u8]) {
    let key = service.server.key().issue();
    let send = async |framing, sizes: &[usize], count| {
        let bytes = requests(&key, framing, &split(body, sizes), count);
        read_responses(service.server.url(), &split(&bytes, sizes)).await
    };
    // The first request creates the order, and each further one repeats it.
    send(Framing::Length, &[], 1).await;
    let whole = send(Framing::Length, &[], 1).await;
    assert_eq!(whole.len(), 1, "{whole:?}");
    for framing in [Framing::Length, Framing::Chunked, Framing::Both] {
        assert_eq!(send(framing, sizes, 1).await, whole, "{framing:?} in packets of {sizes:?}");
        let pipelined = send(framing, sizes, 3).await;
        // RFC 9112 requires the connection to be closed after a request with both framings.
        let count = if framing == Framing::Both { 1 } else { 3 };
        assert_eq!(pipelined, vec![whole[0].clone(); count], "{framing:?} in packets of {sizes:?}");
    }
}

/// Returns `count` requests whose body consists of these chunks. The last request closes the connection.
fn requests(key: &ApiKey, framing: Framing, chunks: &[&[u8]], count: usize) -> Vec<u8> {
    let body = chunks.concat();
    let mut bytes = Vec::new();
    for number in 1..=count {
        let connection = if number == count { "close" } else { "keep-alive" };
        let head = format!(
            "POST /api/v1/orders/create HTTP/1.1\r\nHost: a.test\r\nX-API-Key: {}\r\n\
             Content-Type: application/json\r\nConnection: {connection}\r\n",
            key.secret()
        );
        bytes.extend_from_slice(head.as_bytes());
        let framing_lines = match framing {
            Framing::Length => format!("Content-Length: {}\r\n\r\n", body.len()),
            Framing::Chunked => "Transfer-Encoding: chunked\r\n\r\n".to_owned(),
            Framing::Both => "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n".to_owned(),
        };
        bytes.extend_from_slice(framing_lines.as_bytes());
        if framing == Framing::Length {
            bytes.extend_from_slice(&body);
            continue;
        }
        for chunk in chunks {
            bytes.extend_from_slice(format!("{:X};x=\"y\"\r\n", chunk.len()).as_bytes());
            bytes.extend_from_slice(chunk);
            bytes.extend_from_slice(b"\r\n");
        }
        bytes.extend_from_slice(b"0\r\nX-Trailer: unused\r\n\r\n");
    }
    bytes
}

/// Splits the bytes into pieces of these sizes, starting over after the last size.
fn split<'b>(bytes: &'b [u8], sizes: &[usize]) -> Vec<&'b [u8]> {
    let (mut pieces, mut rest) = (Vec::new(), bytes);
    let mut sizes = sizes.iter().cycle().take(MAX_SPLITS);
    while !rest.is_empty() {
        let (piece, after) =
            rest.split_at(sizes.next().map_or(rest.len(), |size| *size).min(rest.len()));
        pieces.push(piece);
        rest = after;
    }
    pieces
}

/// Returns the status and the body of each response, without the request id.
async fn read_responses(url: &str, packets: &[&[u8]]) -> Vec<(u16, String)> {
    let mut stream = TcpStream::connect(url.trim_start_matches("http://")).await.unwrap();
    stream.set_nodelay(true).unwrap();
    for packet in packets {
        // If the server has closed the connection, the next read notices it.
        let _ = stream.write_all(packet).await;
        // The server runs in this thread, and reads the packet before the next one is sent.
        tokio::task::yield_now().await;
    }
    let mut bytes = Vec::new();
    let read = timeout(MAX_WAIT, stream.read_to_end(&mut bytes)).await;
    read.expect("the connection ends in time").unwrap();
    let mut rest = String::from_utf8(bytes).unwrap();
    let mut responses = Vec::new();
    while !rest.is_empty() {
        let (head, after) = rest.split_once("\r\n\r\n").unwrap();
        let head = head.to_lowercase();
        let value =
            |name: &str| head.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default();
        let status: u16 = head.split(' ').nth(1).unwrap().parse().unwrap();
        assert!((200..500).contains(&status), "{rest}");
        let (body, after) = after.split_at(value("content-length: ").parse().unwrap());
        let id = body.split("\"requestId\":\"").nth(1).and_then(|rest| rest.split('"').next());
        responses.push((status, body.replace(id.unwrap_or("no id"), "…")));
        rest = after.to_owned();
    }
    responses
}
