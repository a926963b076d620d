//! The server as a process with a database file, and requests of the people who use it: the operator in a browser, the
//! carrier, and the receivers.

use std::{
    fs,
    io::Write,
    path::PathBuf,
    process::{Child, Command, Stdio},
};

use parcelo_server::{
    internals::{Clock, SystemClock},
    process::{Args, fail, run},
};
use serde_json::{Value, json};

use super::relay::Relay;
use crate::waiting::{LONG, block_for_value};

const PASSWORD: &str = "a day in the life";
/// Maximum number of scans that a carrier sends at once.
const MAX_SCANS: usize = 100;
const ARGUMENTS: &str = "PARCELO_TEST_SERVER";

/// A running server, its folder, and an HTTP client that follows no redirects.
pub(super) struct ServerProcess {
    folder: tempfile::TempDir,
    child: Option<Child>,
    pub(super) ready: Value,
    http: reqwest::Client,
}

/// A response to one of these people.
pub(super) struct Page {
    pub(super) status: u16,
    pub(super) text: String,
    cookie: Option<String>,
}

/// Runs the server when [`ServerProcess`] starts this test binary again. Cargo builds no binary of another package for
/// a test, and one that is in its folder may be out of date.
#[test]
fn serves_the_shop_until_it_is_stopped() {
    let Ok(arguments) = std::env::var(ARGUMENTS) else { return };
    let args = Args::read_from(["parcelo-server"].into_iter().chain(arguments.lines()));
    let ended = tokio::runtime::Runtime::new().unwrap().block_on(Box::pin(run(args)));
    if let Err(error) = ended {
        fail(&error);
        panic!("{error}");
    }
}

impl ServerProcess {
    /// Starts a server on an empty database that sends its e-mails to the relay.
    pub(super) fn open(relay: &Relay) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let http = reqwest::Client::builder().redirect(reqwest::redirect::Policy::none());
        let http = http.build().unwrap();
        let mut server = Self { folder, child: None, ready: Value::Null, http };
        let (smtp, ready) = (relay.url(), server.path("ready.json"));
        let ready_file = ready.to_str().unwrap();
        let flags =
            ["--mail-from", "Shop <parcels@shop.example>", "--smtp-url", &smtp, "--base-url"];
        let all = ["--listen", "127.0.0.1:0", "--sandbox-listen", "127.0.0.1:0", "--admin-listen"];
        let limits = ["127.0.0.1:0", "--production-rate-limit", "2000", "--webhooks-allow-private"];
        let files = ["https://parcelo.example", "--ready-file", ready_file];
        let serve = [&["serve"], &all[..], &limits, &flags, &files].concat();
        let mut child = server.command(&serve).stdout(Stdio::null()).spawn().unwrap();
        block_for_value("the server is ready", || {
            assert!(child.try_wait().unwrap().is_none(), "{}", server.log());
            ready.is_file().then_some(())
        });
        server.ready = serde_json::from_slice(&fs::read(ready).unwrap()).unwrap();
        server.child = Some(child);
        server.admin(&["accounts", "password"], PASSWORD);
        server
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let database = format!("sqlite:{}", self.path("parcelo.db").display());
        let arguments = [arguments, &["--database", &database]].concat().join("\n");
        let mut command = Command::new(std::env::current_exe().unwrap());
        command
            .args(["--exact", "day::office::serves_the_shop_until_it_is_stopped", "--nocapture"])
            .env_clear();
        command.env(ARGUMENTS, arguments).env("PARCELO_LOG", "info");
        let log = fs::OpenOptions::new().create(true).append(true).open(self.path("log.txt"));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(log.unwrap());
        command
    }

    /// Returns the server's log.
    pub(super) fn log(&self) -> String {
        fs::read_to_string(self.path("log.txt")).unwrap()
    }

    /// Returns the output of an admin command, without that of the test harness.
    fn admin(&self, arguments: &[&str], input: &str) -> String {
        let mut child = self.command(arguments).spawn().unwrap();
        child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success(), "{text}{}", self.log());
        text
    }

    /// Returns a member of the JSON that an admin command prints.
    pub(super) fn admin_member(&self, arguments: &[&str], member: &str) -> String {
        let text = self.admin(&[arguments, &["--json"]].concat(), "");
        let printed = &text[text.find('{').unwrap()..=text.rfind('}').unwrap()];
        let printed: Value = serde_json::from_str(printed).unwrap();
        printed[member].as_str().unwrap_or_else(|| panic!("{printed}")).to_owned()
    }

    pub(super) fn url(&self, listener: &str) -> &str {
        self.ready[listener].as_str().unwrap()
    }

    /// Makes every e-mail due, as if a minute had passed: each one waits that long for further news of its parcel.
    pub(super) fn make_mails_due(&self) {
        let file = rusqlite::Connection::open(self.path("parcelo.db")).unwrap();
        file.busy_timeout(LONG).unwrap();
        file.execute("UPDATE mails SET due = 1 WHERE due IS NOT NULL", []).unwrap();
    }

    /// Reports a scan of these parcels as the carrier. Returns each distinct outcome.
    pub(super) async fn scan(&self, key: &str, status: &str, numbers: &[String]) -> Vec<String> {
        let mut outcomes = Vec::new();
        for numbers in numbers.chunks(MAX_SCANS) {
            let now = SystemClock.now().to_utc().to_rfc3339();
            let event = |number: &String| {
                json!({"eventId": format!("{number}-{status}-{now}"), "trackingNumber": number,
                    "status": status, "occurredAt": now, "location": "Quito, EC"})
            };
            let events: Vec<_> = numbers.iter().map(event).collect();
            let url = format!("{}/carrier/v1/events", self.url("production"));
            let request = self.http.post(url).header("X-Carrier-Key", key);
            let request = request.header("content-type", "application/json");
            let response = send(request.body(json!({ "events": events }).to_string())).await;
            let body: Value = serde_json::from_str(&response.text).unwrap();
            let results = body["data"]["results"].as_array().unwrap_or_else(|| panic!("{body}"));
            outcomes.extend(results.iter().map(|one| one["outcome"].as_str().unwrap().to_owned()));
        }
        outcomes.sort();
        outcomes.dedup();
        outcomes
    }

    /// Opens a link of an e-mail, as a receiver's phone does.
    pub(super) async fn open_link(&self, path: &str) -> Page {
        let request = self.http.get(format!("{}{path}", self.url("production")));
        send(request.header("accept", "text/html")).await
    }

    /// Unsubscribes as a mail program does when its user presses the button (RFC 8058).
    pub(super) async fn unsubscribe(&self, path: &str) -> Page {
        let request = self.http.post(format!("{}{path}", self.url("production")));
        let request = request.header("content-type", "application/x-www-form-urlencoded");
        send(request.body("List-Unsubscribe=One-Click")).await
    }

    /// Signs in, and returns the first page of the dashboard.
    pub(super) async fn overview(&self) -> Page {
        let url = |path: &str| format!("{}/dashboard{path}", self.url("admin"));
        let form = send(self.http.get(url("/sign-in"))).await;
        let token = form.text.split("name=\"form\" value=\"").nth(1).unwrap().split('"').next();
        let fields = format!("form={}&account=default&password={PASSWORD}", token.unwrap());
        let request = self.http.post(url("/sign-in")).header("cookie", form.cookie.unwrap());
        let request = request.header("content-type", "application/x-www-form-urlencoded");
        let session = send(request.body(fields.replace(' ', "+"))).await;
        assert_eq!(session.status, 303, "{}", session.text);
        send(self.http.get(url("")).header("cookie", session.cookie.unwrap())).await
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

async fn send(request: reqwest::RequestBuilder) -> Page {
    let response = request.send().await.unwrap();
    let cookies = response.headers().get_all("set-cookie").iter();
    let mut cookies = cookies.map(|line| line.to_str().unwrap().split(';').next().unwrap());
    let cookie = cookies.rfind(|cookie| !cookie.ends_with('=')).map(str::to_owned);
    Page { status: response.status().as_u16(), cookie, text: response.text().await.unwrap() }
}
