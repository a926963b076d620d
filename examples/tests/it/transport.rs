//! The examples with layers around the client's transport.

use std::{
    io::{BufRead, BufReader, Write},
    net::TcpListener,
    thread,
};

use super::{Setup, error_message, example_command};

/// Starts a server that refuses the first request and accepts the others. Returns its address, and a task that ends
/// with the heads of the requests.
fn start_refusing_once() -> (String, thread::JoinHandle<Vec<String>>) {
    const HEALTH: &str = r#"{"success":true,"status":"ok","authenticated":true,
        "keyName":"Test","allowedCountries":["*"]}"#;
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let heads = thread::spawn(move || {
        let respond = |(status, body): (&str, &str)| {
            let mut socket = listener.accept().unwrap().0;
            let lines = BufReader::new(&socket).lines().map(Result::unwrap);
            let head: Vec<_> = lines.take_while(|line| !line.is_empty()).collect();
            let length = body.len();
            write!(
                socket,
                "HTTP/1.1 {status}\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}"
            )
            .unwrap();
            head.join("\n")
        };
        [("503 No", ""), ("200 OK", HEALTH)].map(respond).into()
    });
    (address, heads)
}

#[tokio::test(flavor = "multi_thread")]
async fn trace_context_gives_each_attempt_a_traceparent_of_one_trace() {
    let setup = Setup::open().await;
    let (address, heads) = start_refusing_once();
    let mut program = setup.example("trace_context", &[]);
    let output = program.env("PARCELO_BASE_URL", address).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    let (trace, rest) = text.split_once(": ").unwrap();
    assert_eq!(rest, "2 attempts, Test\n");
    let parents: Vec<_> = heads.join().unwrap().iter().map(|head| parent(head, trace)).collect();
    assert_ne!(parents[0], parents[1], "each attempt is a span of its own");
}

/// Returns the parent in a head's one `traceparent`, which must have the form of W3C Trace Context.
fn parent(head: &str, trace: &str) -> u64 {
    let mut lines = head.lines().filter_map(|line| line.strip_prefix("traceparent: "));
    let (value, second) = (lines.next().unwrap(), lines.next());
    assert_eq!((value.len(), second), (55, None), "{head}");
    let parent = value.strip_prefix(&format!("00-{trace}-")).unwrap();
    let parent = parent.strip_suffix("-01").unwrap();
    assert!(!parent.chars().any(char::is_uppercase) && trace.len() == 32);
    let parent = u64::from_str_radix(parent, 16).unwrap();
    assert_ne!(parent, 0);
    parent
}

#[tokio::test(flavor = "multi_thread")]
async fn transport_layer_prints_requests_and_refuses_when_read_only() {
    let setup = Setup::open().await;
    let number = setup.order("SB-NORMAL-0001").await;
    let quiet =
        setup.example("transport_layer", &[number.as_str(), "--read-only"]).output().unwrap();
    let seen = format!("GET: 200 OK\n{number} is LABEL_GENERATED\n");
    assert_eq!(
        error_message(&quiet),
        "A transport layer of this program refused the request; nothing was sent. [1 attempt]\n"
    );
    assert_eq!(String::from_utf8(quiet.stdout).unwrap(), seen);
    let printed = setup.run("transport_layer", &[number.as_str()]);
    assert_eq!(printed, format!("{seen}POST: 200 OK\n{number} is voided\n"));
    let none = example_command("transport_layer").output().unwrap();
    assert_eq!(error_message(&none), "usage: transport_layer NUMBER [--read-only]\n");
}
