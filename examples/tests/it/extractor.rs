//! The extractor for axum: the handler is called only for signed JSON messages within the size limit.

use std::{
    io::{BufRead, BufReader, Write},
    net::TcpStream,
    time::{SystemTime, UNIX_EPOCH},
};

use parcelo::webhook::Secret;

use super::{example_command, start};

const BODY: &[u8] = br#"{"event":"webhook.test","environment":"sandbox","timestamp":"2026-01-10T15:05:00.000Z","data":{}}"#;
const MAX_BODY_BYTES: usize = 64 * 1024;

/// A running receiver and its secret.
struct Receiver {
    child: std::process::Child,
    lines: Box<dyn Iterator<Item = String>>,
    address: String,
    secret: Secret,
}

impl Drop for Receiver {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Receiver {
    fn start() -> Self {
        let secret = Secret::from_random(&[7; 32]);
        let mut program = example_command("webhook_extractor");
        program.arg("127.0.0.1:0").env("PARCELO_WEBHOOK_SECRETS", secret.expose());
        let (child, mut lines) = start(program);
        let address = lines.next().unwrap().split_off("listening on http://".len());
        let address = address.trim_end_matches('/').to_owned();
        Self { child, lines: Box::new(lines), address, secret }
    }

    /// Returns the head of a request with the headers of a message that is signed now.
    fn head(&self, id: &str, body: &[u8], more: &str) -> String {
        #[expect(clippy::disallowed_methods, reason = "a receiver judges by the machine's clock")]
        let sent = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
        let signature = self.secret.sign(id, i64::try_from(sent).unwrap(), body);
        format!(
            "POST / HTTP/1.1\r\nhost: h\r\nwebhook-id: {id}\r\nwebhook-timestamp: {sent}\r\n\
             webhook-signature: {signature}\r\n{more}\r\n"
        )
    }

    /// Sends a head and the pieces of a body, each in a separate packet. Returns the response's status.
    fn post<'b>(&self, head: &str, pieces: impl IntoIterator<Item = &'b [u8]>) -> u16 {
        let mut socket = TcpStream::connect(&self.address).unwrap();
        socket.set_nodelay(true).unwrap();
        socket.write_all(head.as_bytes()).unwrap();
        for piece in pieces {
            socket.write_all(piece).unwrap();
        }
        let line = BufReader::new(socket).lines().next().unwrap().unwrap();
        line.split(' ').nth(1).unwrap().parse().unwrap()
    }

    /// Sends a signed message with the correct length and type, in this number of pieces. Returns the
    /// response's status.
    fn send(&self, id: &str, body: &[u8], pieces: usize) -> u16 {
        let more = format!("content-type: application/json\r\ncontent-length: {}\r\n", body.len());
        self.post(&self.head(id, body, &more), body.chunks(body.len().div_ceil(pieces).max(1)))
    }
}

const JSON: &str = "content-type: application/json\r\n";
const CHUNKED: &str =
    "content-type: Application/JSON; charset=utf-8\r\ntransfer-encoding: chunked\r\n";

#[test]
fn a_signed_body_in_one_byte_packets_reaches_the_handler() {
    let mut receiver = Receiver::start();
    assert_eq!(receiver.send("evt_1", BODY, 1), 200);
    assert_eq!(receiver.send("evt_2", BODY, BODY.len()), 200);
    let head = receiver.head("evt_3", BODY, CHUNKED);
    let chunks: Vec<_> =
        BODY.iter().map(|byte| [b"1\r\n", &[*byte][..], b"\r\n"].concat()).collect();
    let chunks = chunks.iter().map(Vec::as_slice).chain([&b"0\r\n\r\n"[..]]);
    assert_eq!(receiver.post(&head, chunks), 200);
    let printed: Vec<_> = receiver.lines.by_ref().take(3).collect();
    assert_eq!(printed, ["evt_1", "evt_2", "evt_3"].map(|id| format!("{id} is webhook.test")));
}

#[test]
fn an_unsigned_or_non_json_body_is_refused() {
    let mut receiver = Receiver::start();
    let length = format!("content-length: {}\r\n", BODY.len());
    let right = format!("{JSON}{length}");
    let ours = std::mem::replace(&mut receiver.secret, Secret::from_random(&[8; 32]));
    let forged = receiver.head("evt_1", BODY, &right);
    receiver.secret = ours;
    let table = [
        ("a stranger's signature", forged, 400),
        ("of another body", receiver.head("evt_1", b"{}", &right), 400),
        ("without headers", format!("POST / HTTP/1.1\r\nhost: h\r\n{right}\r\n"), 400),
        (
            "a form",
            receiver.head("evt_1", BODY, &format!("content-type: text/plain\r\n{length}")),
            415,
        ),
        ("no type", receiver.head("evt_1", BODY, &length), 415),
        (
            "another type",
            receiver.head("evt_1", BODY, &format!("content-type: application/jsonp\r\n{length}")),
            415,
        ),
    ];
    for (what, head, status) in table {
        assert_eq!(receiver.post(&head, [BODY]), status, "{what}");
    }
    assert_eq!(receiver.send("evt_2", b"no event", 1), 400);
    assert_eq!(receiver.send("evt_3", BODY, 1), 200);
    assert_eq!(receiver.lines.next().unwrap(), "evt_3 is webhook.test", "and nothing before");
}

#[test]
fn an_oversized_body_is_refused_before_it_is_read() {
    let mut receiver = Receiver::start();
    let fits = [BODY, &b" ".repeat(MAX_BODY_BYTES - BODY.len())].concat();
    assert_eq!(receiver.send("evt_1", &fits, 100), 200);
    // Signed and of unknown length: one byte too many, and without an end.
    let long = [&fits[..], b" "].concat();
    let chunk = [format!("{:x}\r\n", long.len()).as_bytes(), &long].concat();
    let head = receiver.head("evt_2", &long, CHUNKED);
    assert_eq!(receiver.post(&head, [&chunk[..]]), 413);
    // Of a known length; the receiver waits for none of its bytes.
    let head = receiver.head("evt_3", &long, &format!("{JSON}content-length: {}\r\n", long.len()));
    assert_eq!(receiver.post(&head, []), 413);
    assert_eq!(receiver.lines.next().unwrap(), "evt_1 is webhook.test");
}
