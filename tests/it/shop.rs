//! The command's binary, run in its own folder against an embedded server. Only this file starts the process.

use std::{
    fs,
    path::PathBuf,
    process::{Child, Stdio},
};

use assert_cmd::Command;
use parcelo::ApiKey;
use parcelo_server::mock::{Clock, MockServer};
use serde_json::{Value, json};
use tempfile::TempDir;

/// A server, an API key for every country, and a folder with an order to Ecuador.
pub(crate) struct TestShop {
    pub(crate) server: MockServer,
    pub(crate) key: ApiKey,
    pub(crate) dir: Workdir,
}

/// A folder in which the command is run, with a key and an address for its environment.
pub(crate) struct Workdir {
    folder: TempDir,
    key: String,
    url: String,
}

/// The output and exit code of a run of the command.
#[derive(Debug)]
pub(crate) struct RunOutput {
    /// The command line, which names the run in a failed test.
    #[expect(dead_code, reason = "shown by Debug")]
    line: String,
    pub(crate) code: i32,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: String,
}

impl TestShop {
    pub(crate) async fn open() -> Self {
        let clock = Clock::frozen("2026-01-05T08:00:00Z");
        Self::new(crate::embedded::builder().clock(clock).seed(42).start().await)
    }

    pub(crate) async fn with_two_parcels() -> Self {
        let shop = Self::open().await;
        shop.create("SB-SUCCESS-0001");
        shop.create("SB-SUCCESS-0002");
        shop
    }

    pub(crate) fn new(server: MockServer) -> Self {
        let key = server.key().issue();
        let dir = Workdir::new(key.secret(), server.url());
        Self { server, key, dir }
    }

    /// Returns a folder for the same server with another key.
    pub(crate) fn with_key(&self, key: &ApiKey) -> Workdir {
        Workdir::new(key.secret(), self.server.url())
    }

    pub(crate) fn run(&self, line: &str) -> RunOutput {
        self.dir.run(line)
    }

    /// Creates an order with this tracking number.
    pub(crate) fn create(&self, number: &str) {
        self.dir.write("new.json", &order(number));
        assert_eq!(self.run("order create new.json").code, 0, "{number}");
    }
}

impl Workdir {
    pub(crate) fn new(key: &str, url: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let dir = Self { folder, key: key.to_owned(), url: url.to_owned() };
        dir.write("order.json", &order("SB-SUCCESS-0001"));
        dir
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, content: &Value) {
        fs::write(self.path(name), content.to_string()).unwrap();
    }

    pub(crate) fn read(&self, name: &str) -> Vec<u8> {
        fs::read(self.path(name)).unwrap()
    }

    /// Runs the command with the words of `line`, which are separated by spaces.
    pub(crate) fn run(&self, line: &str) -> RunOutput {
        self.run_with(line, &[], "")
    }

    pub(crate) fn run_with(
        &self,
        line: &str,
        variables: &[(&str, &str)],
        input: &str,
    ) -> RunOutput {
        let mut command = Command::from_std(self.command(line));
        command.envs(variables.iter().copied()).write_stdin(input);
        self.read_output(command.output().unwrap(), line)
    }

    fn command(&self, line: &str) -> std::process::Command {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_parcelo"));
        command.args(line.split_whitespace()).current_dir(self.folder.path()).env_clear();
        command.env("HOME", self.folder.path());
        command.env("PARCELO_API_KEY", &self.key).env("PARCELO_BASE_URL", &self.url);
        command
    }

    /// Runs the command under resource limits, as set by the shell builtin `ulimit`.
    #[cfg(target_os = "linux")]
    pub(crate) fn run_limited(&self, limits: &str, line: &str) -> RunOutput {
        let script = format!("{limits}; exec {} {line}", env!("CARGO_BIN_EXE_parcelo"));
        let mut command = Command::new("/bin/sh");
        command.args(["-c", &script]).current_dir(self.folder.path()).env_clear();
        command.env("PARCELO_API_KEY", &self.key).env("PARCELO_BASE_URL", &self.url);
        self.read_output(command.output().unwrap(), line)
    }

    /// Starts the command without waiting for it; [`Workdir::read_output`] then reads what it printed.
    pub(crate) fn start(&self, line: &str, stdout: Stdio) -> Child {
        self.start_with(line, &[], stdout)
    }

    pub(crate) fn start_with(
        &self,
        line: &str,
        variables: &[(&str, &str)],
        stdout: Stdio,
    ) -> Child {
        let mut command = self.command(line);
        command.envs(variables.iter().copied()).stdin(Stdio::null());
        command.stdout(stdout).stderr(Stdio::piped()).spawn().unwrap()
    }

    /// Runs the command with a standard output that cannot be written. It must fail and say so.
    #[cfg(target_os = "linux")]
    pub(crate) fn assert_full_output_fails(&self, line: &str, variables: &[(&str, &str)]) {
        let full = fs::File::create("/dev/full").unwrap();
        let child = self.start_with(line, variables, full.into());
        let output = self.read_output(child.wait_with_output().unwrap(), line);
        assert!(output.code == 1 && output.stderr.contains("standard output"), "{output:?}");
    }

    /// Runs the command on a terminal, of which there is only one output.
    #[cfg(target_os = "linux")]
    pub(crate) fn run_on_terminal(&self, line: &str, input: &str) -> RunOutput {
        let path = std::env::var("PATH").unwrap_or_default();
        self.run_on_terminal_with(line, &[("PATH", &path)], input)
    }

    #[cfg(target_os = "linux")]
    pub(crate) fn run_on_terminal_with(
        &self,
        line: &str,
        variables: &[(&str, &str)],
        input: &str,
    ) -> RunOutput {
        let line = format!("{} {line}", env!("CARGO_BIN_EXE_parcelo"));
        let mut command = Command::new("script");
        command.args(["--quiet", "--return", "--echo", "never", "--command", &line, "/dev/null"]);
        command.current_dir(self.folder.path()).env_clear().env("HOME", self.folder.path());
        command.env("PARCELO_API_KEY", &self.key).env("PARCELO_BASE_URL", &self.url);
        command.envs(variables.iter().copied()).env("TERM", "xterm").write_stdin(input);
        self.read_output(command.output().unwrap(), &line)
    }

    /// Returns the output of a run, after checking that it does not contain the key.
    pub(crate) fn read_output(&self, output: std::process::Output, line: &str) -> RunOutput {
        let stderr = String::from_utf8(output.stderr).unwrap();
        let printed = format!("{}{stderr}", String::from_utf8_lossy(&output.stdout));
        assert!(self.key.is_empty() || !printed.contains(&self.key), "{line} showed the key");
        let code = output.status.code().unwrap_or(-1);
        RunOutput { line: line.to_owned(), code, stdout: output.stdout, stderr }
    }
}

impl RunOutput {
    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.stdout).unwrap()
    }

    /// Returns `true` if this text was printed.
    pub(crate) fn shows(&self, text: &str) -> bool {
        String::from_utf8_lossy(&self.stdout).contains(text) || self.stderr.contains(text)
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.stdout).unwrap_or_else(|err| panic!("{err}: {self:?}"))
    }

    /// Returns each line of standard output, parsed as JSON.
    pub(crate) fn lines(&self) -> Vec<Value> {
        self.text().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// Returns the single JSON object on standard error.
    pub(crate) fn error(&self) -> Value {
        serde_json::from_str(&self.stderr).unwrap_or_else(|err| panic!("{err}: {self:?}"))
    }

    /// Checks the exit code and the code of the error, and returns the error.
    #[track_caller]
    pub(crate) fn assert_error(&self, exit: i32, code: &str) -> Value {
        let error = self.error();
        assert_eq!((self.code, &error["code"]), (exit, &json!(code)), "{self:?}");
        error
    }

    /// Checks that the request was not sent because of this field.
    #[track_caller]
    pub(crate) fn assert_fault(&self, field: &str) {
        let error = self.error();
        assert_eq!((self.code, &error["fields"][0]["field"]), (3, &json!(field)), "{self:?}");
    }
}

/// Returns an order to Ecuador that is valid without a warning.
pub(crate) fn order(number: &str) -> Value {
    json!({
        "idempotencyKey": format!("order-{number}"),
        "trackingNumber": number,
        "sender": {"fullName": "Ana Ruiz", "phone": "+13055550100", "address":
            {"line1": "8400 NW 25th St", "city": "Miami", "state": "FL", "zipCode": "33122", "country": "US"}},
        "receiver": {"fullName": "Luis Paredes", "phone": "+593991234567", "nationalId": "1714307103",
            "idType": "cedula", "address": {"line1": "Av. Amazonas N34-451", "city": "Quito",
            "province": "Pichincha", "zipCode": "170515", "country": "EC"}},
        "parcelDetails": {"weightKg": 1.25, "declaredValue": 45.5},
        "customsInfo": {"description": "Cotton shirts", "hsCode": "610910"},
    })
}

/// Returns the order with one member replaced; the JSON pointer must lead to an existing member.
pub(crate) fn order_with(number: &str, pointer: &str, value: Value) -> Value {
    let mut order = order(number);
    *order.pointer_mut(pointer).unwrap() = value;
    order
}

/// Sends Ctrl-C to a process.
#[cfg(unix)]
pub(crate) fn interrupt(child: &Child) {
    let process = child.id().to_string();
    let kill = std::process::Command::new("kill").args(["-INT", &process]).status();
    assert!(kill.unwrap().success());
}
