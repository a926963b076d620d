//! `webhook listen`: signed webhooks are shown and forwarded, and get a response; all others are refused.

use std::{
    io::{BufRead, BufReader, Lines},
    process::{Child, ChildStderr, ChildStdout, Stdio},
};

use parcelo::webhook::{ID, SIGNATURE, Secret, TIMESTAMP};
use parcelo_server::internals::{Clock, SystemClock};
use reqwest::StatusCode;
use serde_json::{Value, json};

use crate::{
    fake_servers,
    shop::{Workdir, interrupt},
};

const STATUS_CHANGE_EVENT: &str = r#"{"id":"evt_1","event":"parcel.status_changed","environment":"sandbox",
    "timestamp":"2026-01-10T15:05:00.000Z","data":{"trackingNumber":"SB-SUCCESS-0001",
    "previousStatus":"IN_TRANSIT","newStatus":"DELIVERED","location":"Quito, EC"}}"#;
const TEST_EVENT: &str = r#"{"event":"webhook.test","environment":"sandbox",
    "timestamp":"2026-01-10T15:05:00.000Z","data":{}}"#;

/// A running `webhook listen`, with its output.
struct ListenCommand {
    child: Child,
    url: String,
    stdout: Lines<BufReader<ChildStdout>>,
    stderr: Lines<BufReader<ChildStderr>>,
}

fn secret() -> Secret {
    Secret::from_random(&[7; 32])
}

fn listen(dir: &Workdir, options: &str) -> ListenCommand {
    listen_with(dir, options, &secret().expose())
}

fn listen_with(dir: &Workdir, options: &str, secret: &str) -> ListenCommand {
    listen_with_variables(dir, options, &[("PARCELO_WEBHOOK_SECRET", secret)])
}

fn listen_with_variables(
    dir: &Workdir,
    options: &str,
    variables: &[(&str, &str)],
) -> ListenCommand {
    let line = format!("webhook listen --port 0 {options}");
    let mut child = dir.start_with(&line, variables, Stdio::piped());
    let stdout = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut stderr = BufReader::new(child.stderr.take().unwrap()).lines();
    let first = stderr.next().unwrap().unwrap();
    let url = first.split("http://").nth(1).unwrap_or_else(|| panic!("{first}"));
    let url = url.split(['/', '"', ' ']).next().unwrap();
    ListenCommand { child, url: format!("http://{url}/hook"), stdout, stderr }
}

impl ListenCommand {
    fn next_line(&mut self) -> String {
        self.stdout.next().unwrap().unwrap()
    }

    fn stderr_line(&mut self) -> String {
        self.stderr.next().unwrap().unwrap()
    }

    /// Sends Ctrl-C and waits. Returns the exit code and the rest of the output.
    fn interrupt_and_wait(mut self) -> (Option<i32>, Vec<String>) {
        interrupt(&self.child);
        let rest = self.stdout.chain(self.stderr).map(Result::unwrap).collect();
        (self.child.wait().unwrap().code(), rest)
    }
}

/// Ends a listener with output for people, which then says how to turn the webhook off.
fn assert_ended(listener: ListenCommand) {
    let (code, rest) = listener.interrupt_and_wait();
    assert!(code == Some(0) && rest.len() == 1, "{rest:?}");
    assert!(rest[0].contains("turns the webhook off") && rest[0].contains("dashboard"), "{rest:?}");
}

/// Sends a body signed with this secret, as the service does.
async fn send(url: &str, secret: &Secret, body: &str) -> StatusCode {
    let now = SystemClock.now().second();
    let request = reqwest::Client::new()
        .post(url)
        .header(ID, "evt_1")
        .header(TIMESTAMP, now.to_string())
        .header(SIGNATURE, secret.sign("evt_1", now, body.as_bytes()))
        .header("content-type", "application/json")
        .body(body.to_owned());
    request.send().await.unwrap().status()
}

#[tokio::test(flavor = "multi_thread")]
async fn signed_events_are_shown_in_every_format_until_ctrl_c() {
    let dir = Workdir::new("", "");
    let mut listener = listen(&dir, "");
    assert_eq!(send(&listener.url, &secret(), STATUS_CHANGE_EVENT).await, StatusCode::OK);
    let expected = "2026-01-10 15:05:00 UTC  parcel.status_changed  SB-SUCCESS-0001  \
        In transit → Delivered  Quito, EC";
    assert_eq!(listener.next_line(), expected);
    assert_eq!(send(&listener.url, &secret(), TEST_EVENT).await, StatusCode::OK);
    assert_eq!(listener.next_line(), "2026-01-10 15:05:00 UTC  webhook.test");
    assert_ended(listener);

    let mut spanish = listen(&dir, "--lang es");
    send(&spanish.url, &secret(), STATUS_CHANGE_EVENT).await;
    assert!(spanish.next_line().contains("En tránsito → Entregado"));
    spanish.interrupt_and_wait();

    for format in ["json", "ndjson"] {
        let mut program = listen(&dir, &format!("-o {format}"));
        send(&program.url, &secret(), STATUS_CHANGE_EVENT).await;
        let event: Value = serde_json::from_str(&program.next_line()).unwrap();
        let expected: Value = serde_json::from_str(STATUS_CHANGE_EVENT).unwrap();
        assert_eq!(event, json!({"id": "evt_1", "event": expected, "forwardedStatus": null}));
        assert_eq!(program.interrupt_and_wait(), (Some(0), vec![]));
    }

    let mut sheet = listen(&dir, "-o csv");
    assert_eq!(sheet.next_line(), "id,event,timestamp,trackingNumber,forwarded");
    send(&sheet.url, &secret(), STATUS_CHANGE_EVENT).await;
    let row = "evt_1,parcel.status_changed,2026-01-10T15:05:00.000Z,SB-SUCCESS-0001,";
    assert_eq!(sheet.next_line(), row);
    sheet.interrupt_and_wait();
}

#[tokio::test(flavor = "multi_thread")]
async fn listening_and_forwarding_need_no_root_certificates() {
    let (dir, secret) = (Workdir::new("", ""), secret().expose().clone());
    let variables = [
        ("PARCELO_WEBHOOK_SECRET", secret.as_str()),
        ("SSL_CERT_FILE", "/nowhere/certificates"),
        ("SSL_CERT_DIR", "/nowhere"),
    ];
    let receiver = listen(&dir, "");
    let target = format!("--forward-to {}", receiver.url);
    let mut forwarder = listen_with_variables(&dir, &target, &variables);
    assert_eq!(send(&forwarder.url, &self::secret(), TEST_EVENT).await, StatusCode::OK);
    assert!(forwarder.next_line().contains("webhook.test"));
    assert_eq!(forwarder.interrupt_and_wait().0, Some(0));
    receiver.interrupt_and_wait();
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unsigned_event_is_rejected_with_a_reason_and_not_shown() {
    let dir = Workdir::new("", "");
    let other = Secret::from_random(&[8; 32]);
    let mut listener = listen(&dir, "");
    assert_eq!(send(&listener.url, &other, STATUS_CHANGE_EVENT).await, StatusCode::UNAUTHORIZED);
    assert!(listener.stderr_line().contains("rejected: signature mismatch"));
    let bare =
        reqwest::Client::new().post(&listener.url).body(STATUS_CHANGE_EVENT).send().await.unwrap();
    assert_eq!(bare.status(), StatusCode::BAD_REQUEST);
    assert!(listener.stderr_line().contains("rejected: missing header webhook-id"));
    assert_eq!(send(&listener.url, &secret(), "{}").await, StatusCode::BAD_REQUEST);
    assert!(listener.stderr_line().contains("rejected: the body is not a valid event"));
    let get = reqwest::get(&listener.url).await.unwrap().status();
    assert_eq!(get, StatusCode::METHOD_NOT_ALLOWED);
    let large = "x".repeat((1 << 20) + 1);
    assert_eq!(send(&listener.url, &secret(), &large).await, StatusCode::PAYLOAD_TOO_LARGE);
    assert_ended(listener);

    let mut program = listen(&dir, "-o ndjson --lang es");
    send(&program.url, &other, STATUS_CHANGE_EVENT).await;
    let line: Value = serde_json::from_str(&program.stderr_line()).unwrap();
    assert!(line["refused_es"].as_str().unwrap().contains("la firma no coincide"), "{line}");
    program.interrupt_and_wait();
}

#[tokio::test(flavor = "multi_thread")]
async fn several_secrets_are_accepted_during_a_rotation() {
    let dir = Workdir::new("", "");
    let (old, new) = (Secret::from_random(&[1; 32]), Secret::from_random(&[2; 32]));
    let both = format!("{},{}", old.expose(), new.expose());
    let mut listening = listen_with(&dir, "", &both);
    for secret in [&old, &new] {
        assert_eq!(send(&listening.url, secret, TEST_EVENT).await, StatusCode::OK);
        listening.next_line();
    }
    listening.interrupt_and_wait();
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_is_forwarded_unchanged_and_its_status_returned() {
    let dir = Workdir::new("", "");
    for (status, code) in [("204 No Content", 204), ("500 Internal Server Error", 500)] {
        let (target, mut received) = fake_servers::start_recording(status).await;
        let mut listening = listen(&dir, &format!("-o ndjson --forward-to {target}/hooks?a=b"));
        assert_eq!(send(&listening.url, &secret(), STATUS_CHANGE_EVENT).await.as_u16(), code);
        let event: Value = serde_json::from_str(&listening.next_line()).unwrap();
        assert_eq!(event["forwardedStatus"], code);
        let request = String::from_utf8(received.recv().await.unwrap()).unwrap();
        assert!(request.starts_with("POST /hooks?a=b HTTP/1.1\r\n"), "{request}");
        let (head, body) = request.split_once("\r\n\r\n").unwrap();
        assert_eq!(body, STATUS_CHANGE_EVENT, "byte for byte");
        for header in
            ["webhook-id: evt_1", "webhook-signature: v1,", "content-type: application/json"]
        {
            assert!(head.contains(header), "{header}: {head}");
        }
        assert!(head.contains(target.strip_prefix("http://").unwrap()), "its own host: {head}");
        listening.interrupt_and_wait();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_that_cannot_be_forwarded_gets_a_503() {
    let dir = Workdir::new("", "");
    let target = fake_servers::unused_address();
    let mut listening = listen(&dir, &format!("--forward-to {target}"));
    let response = send(&listening.url, &secret(), STATUS_CHANGE_EVENT).await;
    assert_eq!(response, StatusCode::SERVICE_UNAVAILABLE);
    let shown = listening.next_line();
    assert!(shown.contains("parcel.status_changed") && shown.contains("→ 503"), "{shown}");
    assert!(listening.stderr_line().contains("Cannot forward the event"));
    listening.interrupt_and_wait();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_taken_port_exits_with_2_and_shows_no_secret() {
    let dir = Workdir::new("", "");
    let taken = listen(&dir, "");
    let port = taken.url.rsplit(':').next().unwrap().split('/').next().unwrap().to_owned();
    let exposed = secret().expose();
    let output = dir.run(&format!("webhook listen --port {port} --secret {exposed} -v"));
    assert_eq!(output.code, 2, "{output:?}");
    assert!(output.stderr.contains(&port) && output.stderr.contains("--port"), "{output:?}");
    assert!(!output.shows(&exposed));
    let output = dir.run_with(&format!("webhook listen --port {port} --secret -"), &[], &exposed);
    assert!(output.stderr.contains("--port"), "the secret was read: {output:?}");
    for bad in ["nonsense", "whsec_", "whsec_%%%"] {
        let output = dir.run(&format!("webhook listen --secret {bad}"));
        assert_eq!(
            (output.code, output.stderr.contains(&format!("{bad}."))),
            (2, false),
            "{output:?}"
        );
    }
    taken.interrupt_and_wait();
}

#[cfg(target_os = "linux")]
#[test]
fn events_that_cannot_be_written_exit_with_1() {
    let secret = secret().expose();
    let variables = [("PARCELO_WEBHOOK_SECRET", secret.as_str())];
    Workdir::new("", "").assert_full_output_fails("webhook listen --port 0 -o csv", &variables);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_closed_pipe_ends_listening_without_an_error() {
    let dir = Workdir::new("", "");
    let mut listening = listen(&dir, "");
    send(&listening.url, &secret(), TEST_EVENT).await;
    listening.next_line();
    drop(listening.stdout);
    send(&listening.url, &secret(), TEST_EVENT).await;
    assert_eq!(listening.child.wait().unwrap().code(), Some(0));
}
