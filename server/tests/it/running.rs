//! The real server binary as a process, on a database and free ports: on a file, or on PostgreSQL with
//! `PARCELO_TEST_DATABASE=postgres`.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use parcelo::ApiKey;
use parcelo_server::internals::{Address, Store};
use rusqlite::Connection;
use serde_json::Value;

use crate::{
    api::Api,
    cluster::{self, Database},
    waiting::block_for_value,
};

pub(crate) const BINARY: &str = env!("CARGO_BIN_EXE_parcelo-server");

/// The environment variable that allows sandbox webhooks to loopback addresses.
const LOOPBACK: &str = "PARCELO_SANDBOX_WEBHOOKS_ALLOW_LOOPBACK";

/// A database and a folder for servers that are started one after another.
pub(crate) struct TestSetup {
    // Outlives the servers of a test, which are declared later and so dropped first.
    database: SetupDatabase,
    folder: tempfile::TempDir,
}

/// The database of a setup.
enum SetupDatabase {
    File(PathBuf),
    Postgres(Database),
}

/// A running server, which is killed when this is dropped.
pub(crate) struct RunningServer {
    pub(crate) child: Child,
    pub(crate) ready: Value,
}

impl TestSetup {
    /// Creates a new database in the engine that the tests run on.
    pub(crate) fn new() -> Self {
        match cluster::test_database() {
            None => Self::new_on_file(),
            Some(database) => {
                let folder = tempfile::tempdir().unwrap();
                Self { database: SetupDatabase::Postgres(database), folder }
            }
        }
    }

    /// Creates a new database and starts a server on it.
    pub(crate) fn new_and_start() -> (Self, RunningServer) {
        let setup = Self::new();
        let running = setup.start(&[]);
        (setup, running)
    }

    /// Creates a new database file, whichever engine the tests run on: for tests of the file itself. The reason says
    /// why PostgreSQL has no equivalent.
    pub(crate) fn on_file(_reason: &str) -> Self {
        Self::new_on_file()
    }

    fn new_on_file() -> Self {
        let folder = tempfile::tempdir().unwrap();
        Self { database: SetupDatabase::File(folder.path().join("parcelo.db")), folder }
    }

    /// Uses an existing database file.
    pub(crate) fn at(file: PathBuf) -> Self {
        Self { database: SetupDatabase::File(file), folder: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Leaves a log beside the file of a killed server. The server's own may be empty, because a server truncates its
    /// log at times.
    pub(crate) fn leave_log(&self) {
        let db = Connection::open(self.path("parcelo.db")).unwrap();
        db.execute_batch("UPDATE meta SET value = value").unwrap();
        let files = ["parcelo.db-wal", "parcelo.db-shm"].map(|name| self.path(name));
        let contents = files.each_ref().map(|file| fs::read(file).unwrap());
        // The last connection moves the log into the file, and deletes it.
        drop(db);
        for (file, content) in files.iter().zip(contents) {
            fs::write(file, content).unwrap();
        }
    }

    pub(crate) fn database(&self) -> String {
        match &self.database {
            SetupDatabase::File(file) => format!("sqlite:{}", file.display()),
            SetupDatabase::Postgres(database) => database.url(),
        }
    }

    /// Opens the database in this process, to read it while servers run or after they have ended.
    async fn store(&self) -> Store {
        match &self.database {
            SetupDatabase::File(file) => Store::open_for_admin(file, [0; 32]).unwrap(),
            SetupDatabase::Postgres(database) => {
                Store::connect(Address::parse(&database.url()).unwrap(), [0; 32]).await.unwrap()
            }
        }
    }

    /// Returns the command that starts a server on this database and free ports.
    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new(BINARY);
        command.args(["serve", "--database", &self.database()]);
        for listener in ["--listen", "--sandbox-listen", "--admin-listen"] {
            command.args([listener, "127.0.0.1:0"]);
        }
        command.env_clear().env("PARCELO_LOG", "warn").stdin(Stdio::null());
        // The webhook receivers of the tests are on this machine.
        command.env(LOOPBACK, "true");
        command
    }

    /// Starts a server with these arguments too, and waits until it listens.
    pub(crate) fn start(&self, arguments: &[&str]) -> RunningServer {
        self.start_with(&[], arguments)
    }

    /// Starts a server with these environment variables and arguments, and waits until it listens.
    pub(crate) fn start_with(
        &self,
        variables: &[(&str, &str)],
        arguments: &[&str],
    ) -> RunningServer {
        let ready_file = self.path("ready.json");
        let _ = fs::remove_file(&ready_file);
        let output =
            fs::OpenOptions::new().create(true).append(true).open(self.path("out.txt")).unwrap();
        let mut command = self.command();
        command.envs(variables.iter().copied()).arg("--ready-file").arg(&ready_file);
        let (stdout, stderr) = (output.try_clone().unwrap(), output);
        let child = command.args(arguments).stdout(stdout).stderr(stderr).spawn().unwrap();
        wait_for(&ready_file, child)
    }

    /// Tries to start a server, which must fail. Returns its error message.
    pub(crate) fn start_error(&self) -> String {
        let errors = self.path("refused.txt");
        let mut command = self.command();
        command.stdout(Stdio::null()).stderr(fs::File::create(&errors).unwrap());
        let child = command.spawn().unwrap();
        assert_ne!(RunningServer { child, ready: Value::Null }.wait(), Some(0));
        fs::read_to_string(errors).unwrap()
    }

    /// Returns the output and the logs of all its servers.
    pub(crate) fn output(&self) -> String {
        fs::read_to_string(self.path("out.txt")).unwrap_or_default()
    }

    /// Runs an admin command with these arguments on the database, and returns its JSON output.
    pub(crate) fn admin(&self, command: &str, arguments: &[&str]) -> Value {
        self.admin_with(&[], command, arguments)
    }

    /// Runs an admin command that may fail. Returns whether it succeeded, and its error output.
    pub(crate) fn try_admin(&self, arguments: &[&str]) -> (bool, String) {
        let mut command = Command::new(BINARY);
        command.env_clear().args(arguments).args(["--database", &self.database()]);
        let output = command.output().unwrap();
        (output.status.success(), String::from_utf8(output.stderr).unwrap())
    }

    /// Backs the database up to a file, and returns the JSON output.
    pub(crate) fn backup(&self, file: &Path) -> Value {
        self.admin("backup", &[file.to_str().unwrap()])
    }

    /// Backs the database up to a file, which must fail. Returns the error message.
    pub(crate) fn backup_error(&self, file: &Path) -> String {
        let (is_done, error) = self.try_admin(&["backup", file.to_str().unwrap()]);
        assert!(!is_done, "{error}");
        error
    }

    /// Creates the database as a server would, for tests that need keys before they start one.
    pub(crate) fn create_database(&self) {
        std::thread::scope(|scope| {
            let make = || tokio::runtime::Runtime::new().unwrap().block_on(self.store());
            drop(scope.spawn(make).join().unwrap());
        });
    }

    /// Runs an admin command with these environment variables too.
    pub(crate) fn admin_with(
        &self,
        variables: &[(&str, &str)],
        command: &str,
        arguments: &[&str],
    ) -> Value {
        if !matches!(&self.database, SetupDatabase::File(file) if file.exists()) {
            self.create_database();
        }
        let mut process = Command::new(BINARY);
        process.env_clear().env(LOOPBACK, "true").envs(variables.iter().copied());
        process.arg(command).args(arguments);
        let output = process.args(["--database", &self.database(), "--json"]).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice(&output.stdout).unwrap()
    }

    pub(crate) fn new_key(&self, environment: &str) -> (String, ApiKey) {
        self.new_key_with(environment, &[])
    }

    /// Creates a key with further options.
    pub(crate) fn new_key_with(&self, environment: &str, options: &[&str]) -> (String, ApiKey) {
        let arguments =
            ["create", "--environment", environment, "--name", "Test", "--countries", "*"];
        let created = self.admin("keys", &[&arguments[..], options].concat());
        let text = |name: &str| created[name].as_str().unwrap().to_owned();
        (text("keyId"), ApiKey::parse(&text("key")).unwrap())
    }
}

impl RunningServer {
    pub(crate) fn sandbox(&self) -> &str {
        self.ready["sandbox"].as_str().unwrap()
    }

    pub(crate) fn url(&self, listener: &str) -> &str {
        self.ready[listener].as_str().unwrap()
    }

    pub(crate) fn api(&self, key: &ApiKey) -> Api {
        Api::with_key(self.sandbox(), key)
    }

    /// Kills the process with SIGKILL, so that it cannot finish anything.
    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    pub(crate) fn signal(&self, signal: &str) {
        let status =
            Command::new("kill").args([signal, &self.child.id().to_string()]).status().unwrap();
        assert!(status.success());
    }

    pub(crate) fn is_alive(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    /// Stops the process gracefully. After that its log is complete: lines are written a moment after each response.
    pub(crate) fn stop(mut self) {
        self.signal("-INT");
        assert_eq!(self.wait(), Some(0));
    }

    pub(crate) fn wait(&mut self) -> Option<i32> {
        let ended = || self.child.try_wait().unwrap();
        block_for_value("the process ends", ended).code()
    }
}

impl Drop for RunningServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Waits for the ready file of a server that was just started. It fails at once if the process ends.
pub(crate) fn wait_for(ready_file: &Path, child: Child) -> RunningServer {
    let mut running = RunningServer { child, ready: Value::Null };
    running.ready = block_for_value("the server is ready", || {
        if let Ok(content) = fs::read(ready_file) {
            return Some(serde_json::from_slice(&content).unwrap());
        }
        if let Some(status) = running.child.try_wait().unwrap() {
            panic!("the server ended with {status} before it listened");
        }
        None
    });
    running
}
