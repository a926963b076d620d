//! `parcelo-server mock`: the mock server as a process, and the test suite that it runs with `--exec`.

use std::{io::IsTerminal, path::Path, process::ExitStatus, time::Duration};

use parcelo_service::mock::{Clock, MockServer, Scenario, ScenarioError};
use parcelo_types::ApiKey;
use rustix::process::{Pid, Signal, kill_process, kill_process_group, test_kill_process_group};
use serde_json::json;
use tokio::{
    process::Command,
    signal::unix::{SignalKind, signal},
};

use super::{Failure, mock_args::Mock, print, ready_file::write_atomically};

/// Maximum time for a suite to end after a signal.
const SUITE_GRACE: Duration = Duration::from_secs(5);

/// Interval of checks for processes that a suite has left running.
const EXIT_POLL_INTERVAL: Duration = Duration::from_millis(20);

pub(super) async fn run(options: Mock) -> Result<(), Failure> {
    if options.scenario_schema {
        return Ok(print::json(&Scenario::json_schema())?);
    }
    let mut builder = MockServer::builder().clock(Clock::system()).seed(options.seed);
    if let Some(path) = &options.scenario {
        builder = builder.scenario(read_scenario(path)?);
    }
    if let Some(clock) = options.clock {
        builder = builder.clock(clock);
    }
    if options.no_rate_limit {
        builder = builder.rate_limits(false);
    }
    if options.production {
        builder = builder.production();
    }
    if let Some(url) = &options.base_url {
        builder = builder.base_url(url.as_str());
    }
    let address = options.listen;
    let started = builder.start_controlled(address).await;
    let server = started.map_err(|source| match source.downcast::<ScenarioError>() {
        Ok(error) => scenario_failure(options.scenario.as_deref(), &error),
        Err(source) => Failure::Listen { address, source },
    })?;
    let key = server.key().issue();
    // Signals are caught before the ready file is written, after which other programs may send one.
    let mut signals = Signals::listen()?;
    write_ready_file(options.ready_file.as_deref(), server.url(), &key)?;
    print::mock_variables(server.url(), &key)?;
    let Some(command) = &options.exec else {
        signals.next().await;
        return Ok(());
    };
    exec(command, (server.url(), &key), &mut signals).await
}

fn read_scenario(path: &Path) -> Result<Scenario, Failure> {
    let json = std::fs::read_to_string(path);
    let json = json
        .map_err(|error| Failure::Scenario { path: path.to_owned(), reason: error.to_string() })?;
    Scenario::parse(&json).map_err(|error| scenario_failure(Some(path), &error))
}

fn scenario_failure(path: Option<&Path>, error: &ScenarioError) -> Failure {
    let path = path.map(Path::to_owned).unwrap_or_default();
    let reason =
        format!("{error}; `parcelo-server mock --scenario-schema` prints the schema of such files");
    Failure::Scenario { path, reason }
}

/// The signals that end the process.
struct Signals([(Signal, tokio::signal::unix::Signal); 3]);

impl Signals {
    fn listen() -> Result<Self, Failure> {
        Ok(Self([
            (Signal::TERM, signal(SignalKind::terminate())?),
            (Signal::INT, signal(SignalKind::interrupt())?),
            (Signal::HUP, signal(SignalKind::hangup())?),
        ]))
    }

    async fn next(&mut self) -> Signal {
        let [(one, terminate), (two, interrupt), (three, hangup)] = &mut self.0;
        tokio::select! {
            _ = terminate.recv() => *one,
            _ = interrupt.recv() => *two,
            _ = hangup.recv() => *three,
        }
    }
}

/// Runs the suite, whose exit code becomes this process's. A signal is passed on to the suite, which is killed if it
/// does not end then. An interrupted suite counts as failed.
async fn exec(
    command: &str,
    (url, key): (&str, &ApiKey),
    signals: &mut Signals,
) -> Result<(), Failure> {
    let mut shell = Command::new("sh");
    shell.args(["-c", command]).kill_on_drop(true);
    shell.env("PARCELO_BASE_URL", url).env("PARCELO_API_KEY", key.secret());
    // At a terminal the suite stays in this process group, where it can read and receives Ctrl-C directly.
    let has_own_group = !std::io::stdin().is_terminal();
    if has_own_group {
        shell.process_group(0);
    }
    let mut suite = shell.spawn().map_err(Failure::Exec)?;
    let received = tokio::select! {
        status = suite.wait() => return check_exit_status(status.map_err(Failure::Exec)?),
        received = signals.next() => received,
    };
    let id = suite.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
    // A suite that has just ended has no id any more.
    let send = |signal| match id {
        Some(id) if has_own_group => drop(kill_process_group(id, signal)),
        Some(id) => drop(kill_process(id, signal)),
        None => {}
    };
    send(received);
    let group_end = async {
        let _ = suite.wait().await;
        while id.is_some_and(|id| has_own_group && test_kill_process_group(id).is_ok()) {
            tokio::time::sleep(EXIT_POLL_INTERVAL).await;
        }
    };
    if tokio::time::timeout(SUITE_GRACE, group_end).await.is_err() {
        send(Signal::KILL);
    }
    Err(Failure::ExecFailed(u8::try_from(128 + received.as_raw()).unwrap_or(1)))
}

fn check_exit_status(status: ExitStatus) -> Result<(), Failure> {
    if status.success() { Ok(()) } else { Err(Failure::ExecFailed(exit_code(status))) }
}

/// Returns a suite's exit code; after a signal, the code that a shell would report.
fn exit_code(status: ExitStatus) -> u8 {
    use std::os::unix::process::ExitStatusExt;
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1)
}

fn write_ready_file(path: Option<&Path>, url: &str, key: &ApiKey) -> Result<(), Failure> {
    let Some(path) = path else { return Ok(()) };
    let environment = key.environment().code();
    let content = json!({ environment: url, "apiKey": key.secret(), "pid": std::process::id() });
    write_atomically(path, &content.to_string())
}
