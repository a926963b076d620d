//! An SMTP relay on this machine that accepts and keeps every message, as a mailbox for everyone.

use std::{
    io::{BufRead, BufReader, Write},
    net::{TcpListener, TcpStream},
    sync::{Arc, Condvar, Mutex},
};

use crate::waiting::LONG;

/// The relay.
pub(super) struct Relay {
    port: u16,
    inbox: Arc<Inbox>,
}

/// The messages, and a condition variable that is notified of each new one.
#[derive(Default)]
struct Inbox {
    messages: Mutex<Vec<Message>>,
    arrived: Condvar,
}

/// An e-mail as received.
#[derive(Debug, Clone)]
pub(super) struct Message {
    /// The recipient in the envelope.
    pub(super) to: String,
    /// Headers and parts, without the line breaks of quoted-printable.
    pub(super) text: String,
}

impl Relay {
    pub(super) fn start() -> Self {
        let socket = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let relay = Self { port: socket.local_addr().unwrap().port(), inbox: Arc::default() };
        let inbox = Arc::clone(&relay.inbox);
        std::thread::spawn(move || {
            for stream in socket.incoming().map_while(Result::ok) {
                let inbox = Arc::clone(&inbox);
                std::thread::spawn(move || serve_connection(stream, &inbox));
            }
        });
        relay
    }

    pub(super) fn url(&self) -> String {
        format!("smtp://127.0.0.1:{}", self.port)
    }

    /// Waits until this many messages have arrived, and returns them.
    pub(super) fn wait_for(&self, count: usize) -> Vec<Message> {
        let messages = self.inbox.messages.lock().unwrap();
        let waiting = |messages: &mut Vec<Message>| messages.len() < count;
        let arrived = self.inbox.arrived.wait_timeout_while(messages, LONG, waiting).unwrap();
        assert!(!arrived.1.timed_out(), "{} of {count}", arrived.0.len());
        arrived.0.clone()
    }
}

impl Message {
    /// Returns a link in the e-mail that starts with `start`.
    pub(super) fn link(&self, start: &str) -> &str {
        let (_, rest) = self.text.split_once(start).unwrap_or_else(|| panic!("{}", self.text));
        rest.split(['>', '"', '<', '\r', '\n', ' ']).next().unwrap()
    }
}

fn serve_connection(stream: TcpStream, inbox: &Inbox) -> Option<()> {
    let mut writer = stream.try_clone().ok()?;
    let mut lines = BufReader::new(stream).lines();
    let (mut reply, mut to) = ("220 relay.test", String::new());
    loop {
        writer.write_all(format!("{reply}\r\n").as_bytes()).ok()?;
        let line = lines.next()?.ok()?;
        reply = match line.split([' ', ':']).next()? {
            "RCPT" => {
                line.split(['<', '>']).nth(1)?.clone_into(&mut to);
                "250 ok"
            }
            "DATA" => {
                writer.write_all(b"354 go on\r\n").ok()?;
                let content = lines.by_ref().map_while(Result::ok).take_while(|line| line != ".");
                let text = content.collect::<Vec<_>>().join("\r\n");
                let text = text.replace("=\r\n", "").replace("=3D", "=");
                inbox.messages.lock().unwrap().push(Message { to: std::mem::take(&mut to), text });
                inbox.arrived.notify_all();
                "250 taken"
            }
            _ => "250 ok",
        };
    }
}
