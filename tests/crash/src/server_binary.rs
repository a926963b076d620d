//! The same checks with the server's binary, which is then killed.

use std::{
    fs,
    io::{Read as _, Write as _},
    net::TcpStream,
    path::Path,
    process::{Child, Command, Stdio},
    thread,
    time::Duration,
};

use crate::{
    check::{self, Client, Guarantee, Violation},
    recording::{DATABASE, Expected, Run},
    server::{Answer, Keys, Post},
};

/// Maximum duration of a start on a busy machine.
const START_TIMEOUT: Duration = Duration::from_secs(60);

/// Starts the binary on a folder's files, repeats every request, kills the binary, and checks the files that it leaves.
pub fn check(
    binary: &Path,
    (run, expected): (&Run, &Expected),
    folder: &Path,
) -> Result<(), Violation> {
    if !expected.has_keys || expected.is_resetting {
        return check::check(run, expected, folder);
    }
    let mut server = Server::start(binary, folder)?;
    let repeated = check::repeat(run, expected, &mut server);
    // Dropping the server kills it.
    drop(server);
    repeated?;
    // Orders that the binary has created now have answers that this process does not know.
    let is_created_now =
        |at: &&usize| !expected.acknowledged.contains(at) && run.requests[**at].what.creates();
    let created = expected.sent.iter().filter(is_created_now).count();
    let sent = expected.acknowledged.clone();
    let expected = Expected { sent, parcels: expected.parcels + created, ..expected.clone() };
    check::check(run, &expected, folder)
}

struct Server {
    process: Child,
    address: String,
}

impl Server {
    fn start(binary: &Path, folder: &Path) -> Result<Self, Violation> {
        let ready = folder.with_extension("ready");
        let _ = fs::remove_file(&ready);
        let mut command = Command::new(binary);
        command.args(["serve", "--environments", "sandbox", "--sandbox-listen", "127.0.0.1:0"]);
        command.args(["--admin-listen", "127.0.0.1:0", "--sandbox-rate-limit", "1000000"]);
        command.arg("--database").arg(format!("sqlite:{}", folder.join(DATABASE).display()));
        command.arg("--ready-file").arg(&ready).env("PARCELO_LOG", "error");
        let process = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let mut server = Self { process, address: String::new() };
        for _ in 0..START_TIMEOUT.as_millis() / 10 {
            if let Some(address) = fs::read_to_string(&ready).ok().and_then(|text| sandbox(&text)) {
                server.address = address;
                return Ok(server);
            }
            if let Ok(Some(status)) = server.process.try_wait() {
                let what = format!("the server ended: {status}");
                return Err(Violation { guarantee: Guarantee::Unreadable, what });
            }
            #[expect(clippy::disallowed_methods, reason = "another process has no clock to move")]
            thread::sleep(Duration::from_millis(10));
        }
        Err(Violation {
            guarantee: Guarantee::Unreadable,
            what: "the server does not start".to_owned(),
        })
    }
}

fn sandbox(ready: &str) -> Option<String> {
    let ready: serde_json::Value = serde_json::from_str(ready).ok()?;
    let url =
        ready.pointer("/sandbox").or_else(|| ready.pointer("/listeners/sandbox"))?.as_str()?;
    Some(url.trim_start_matches("http://").trim_end_matches('/').to_owned())
}

impl Client for &mut Server {
    fn send(&mut self, post: &Post, keys: &Keys) -> Result<Answer, String> {
        let ask = || {
            let mut stream = TcpStream::connect(&self.address)?;
            let Post { path, header, body } = post;
            write!(
                stream,
                "POST {path} HTTP/1.1\r\nhost: crash\r\n{header}: {}\r\nconnection: close\r\n\
                 content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
                keys.for_header(header),
                body.len()
            )?;
            let mut answer = Vec::new();
            stream.read_to_end(&mut answer)?;
            Ok::<_, std::io::Error>(answer)
        };
        let bytes = ask().map_err(|error| error.to_string())?;
        let end = bytes.windows(4).position(|four| four == b"\r\n\r\n").ok_or("no answer")?;
        let status = std::str::from_utf8(&bytes[9..12]).ok().and_then(|status| status.parse().ok());
        Ok(Answer { status: status.ok_or("no status")?, body: bytes[end + 4..].to_vec() })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
