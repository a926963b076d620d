//! `parcelo-server mock`: the mock server as a process, and a suite that it runs.

use std::{path::Path, process::ExitStatus};

use parcelo::ApiKey;
use serde_json::json;
use tokio::{
    process::Command,
    signal::unix::{SignalKind, signal},
};

use super::{Failure, args::Mock, print, serve::write_whole};
use crate::mock::MockServer;

pub(super) async fn run(options: Mock) -> Result<(), Failure> {
    let mut builder = MockServer::builder().clock(options.clock).seed(options.seed);
    if options.no_rate_limit {
        builder = builder.rate_limits(false);
    }
    let address = options.listen;
    let started = builder.start_controlled(address).await;
    let server = started.map_err(|source| Failure::Listen { address, source })?;
    let key = server.key().issue();
    // Signals are heard before anybody can know that there is a process to send one to.
    let (mut terminate, mut interrupt) =
        (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    write_ready_file(options.ready_file.as_deref(), server.url(), &key)?;
    print::mock(server.url(), &key);
    let suite = async {
        match &options.exec {
            Some(command) => exec(command, server.url(), &key).await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        ended = suite => ended,
        _ = terminate.recv() => Ok(()),
        _ = interrupt.recv() => Ok(()),
    }
}

/// Runs the suite; its exit code is this process's.
async fn exec(command: &str, url: &str, key: &ApiKey) -> Result<(), Failure> {
    let mut shell = Command::new("sh");
    shell.args(["-c", command]).kill_on_drop(true);
    shell.env("PARCELO_BASE_URL", url).env("PARCELO_API_KEY", key.secret());
    let ended = shell.status().await.map_err(Failure::Exec)?;
    if ended.success() { Ok(()) } else { Err(Failure::ExecFailed(code_of(ended))) }
}

/// A suite that a signal ended has the code that a shell gives it.
fn code_of(ended: ExitStatus) -> u8 {
    use std::os::unix::process::ExitStatusExt;
    let code = ended.code().or_else(|| ended.signal().map(|signal| 128 + signal));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1)
}

fn write_ready_file(path: Option<&Path>, url: &str, key: &ApiKey) -> Result<(), Failure> {
    let Some(path) = path else { return Ok(()) };
    let content = json!({ "sandbox": url, "apiKey": key.secret(), "pid": std::process::id() });
    write_whole(path, &content.to_string())
}
