//! The servers of a run: real processes, each on the same address after every restart.

use std::{
    net::TcpListener,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use serde_json::Value;

use crate::stepped_clock::{SteppedClock, remove_shared_memory};

/// A server that can be killed, frozen, and started again.
pub(crate) struct Server {
    binary: PathBuf,
    database: String,
    port: u16,
    sandbox_port: u16,
    pub(crate) log: PathBuf,
    /// Its clock, if it differs from the machine's.
    pub(crate) clock: Option<Arc<SteppedClock>>,
    child: Mutex<Option<Child>>,
    /// Held while a fault affects this server, so that it has only one at a time.
    pub(crate) fault_lock: Arc<tokio::sync::Mutex<()>>,
}

impl Server {
    pub(crate) fn new(binary: &Path, database: String, log: PathBuf) -> Self {
        // The ports are free for the server as soon as the listeners are dropped.
        let listeners = [(); 2].map(|()| TcpListener::bind("127.0.0.1:0").expect("a free port"));
        let [port, sandbox_port] =
            listeners.map(|listener| listener.local_addr().expect("an address").port());
        let (binary, clock, fault_lock) = (binary.to_owned(), None, Arc::default());
        Self {
            binary,
            database,
            port,
            sandbox_port,
            log,
            clock,
            child: Mutex::default(),
            fault_lock,
        }
    }

    pub(crate) fn address(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    pub(crate) fn sandbox_address(&self) -> String {
        format!("http://127.0.0.1:{}", self.sandbox_port)
    }

    /// Starts the process, without waiting until it listens.
    pub(crate) fn start(&self) {
        let log =
            std::fs::File::options().create(true).append(true).open(&self.log).expect("a log");
        let mut serve = Command::new(&self.binary);
        serve.args(["serve", "--admin-listen", "127.0.0.1:0", "--webhooks-allow-private"]);
        serve.args(["--production-rate-limit", "1000000", "--sandbox-rate-limit", "1000000"]);
        serve.args(["--sandbox-listen", &format!("127.0.0.1:{}", self.sandbox_port)]);
        serve.args(["--base-url", "https://parcels.example", "--drain", "1"]);
        serve.args(["--database", &self.database, "--listen", &format!("127.0.0.1:{}", self.port)]);
        serve.env("PARCELO_LOG", "warn").stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        if let Some(clock) = &self.clock {
            clock.apply_to(&mut serve);
        }
        *self.child() = Some(serve.spawn().expect("the server's binary"));
    }

    /// Starts the server again if it has exited on its own, as it may when its database is unavailable for long.
    pub(crate) fn restart_if_ended(&self) {
        let has_ended =
            self.child().as_mut().is_none_or(|child| !matches!(child.try_wait(), Ok(None)));
        if has_ended {
            self.wait_for_exit();
            self.start();
        }
    }

    pub(crate) fn signal(&self, signal: &str) {
        if let Some(child) = &*self.child() {
            let id = child.id().to_string();
            let _ended_before =
                Command::new("kill").args([signal, &id]).stderr(Stdio::null()).status();
        }
    }

    /// Waits until the process has exited; after 30 seconds it is killed.
    pub(crate) fn wait_for_exit(&self) {
        let Some(mut child) = self.child().take() else { return };
        let began = Instant::now();
        while began.elapsed() < Duration::from_secs(30) {
            if !matches!(child.try_wait(), Ok(None)) {
                break;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        let _ended_before = child.kill();
        let _status = child.wait();
        remove_shared_memory(child.id());
    }

    /// Waits until the server listens, which it does only after it has created its database.
    pub(crate) fn wait_until_listening(&self) {
        let deadline = Instant::now() + Duration::from_secs(60);
        while Instant::now() < deadline {
            if std::net::TcpStream::connect(("127.0.0.1", self.port)).is_ok() {
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        panic!("see {}: the server does not listen", self.log.display());
    }

    /// Runs a command on the server's database, and returns its JSON output.
    pub(crate) fn run(&self, arguments: &[&str], environment: &str) -> Value {
        let mut command = Command::new(&self.binary);
        command.args(arguments).args(["--environment", environment, "--json"]);
        let output = command.args(["--database", &self.database]).output().expect("the binary");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice(&output.stdout).expect("JSON")
    }

    fn child(&self) -> MutexGuard<'_, Option<Child>> {
        self.child.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.signal("-KILL");
        self.wait_for_exit();
    }
}
