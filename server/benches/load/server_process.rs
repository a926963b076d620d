//! The measured servers, each of which is a separate process.

use std::{
    fs::{self, File},
    io::{BufRead as _, BufReader},
    path::Path,
    process::{Child, Command, Stdio},
    sync::Arc,
    time::Duration,
};

use axum::{Router, http::StatusCode, routing::post};
use bytes::Bytes;
use parcelo_server::internals::{Listener, Stop};
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};

use crate::client::{CREATE_PATH, Connection, Target};

/// Command-line argument that makes this program run as the static server, which answers every order with a constant.
pub(crate) const STATIC_ARGUMENT: &str = "--static";
const SERVER: &str = env!("CARGO_BIN_EXE_parcelo-server");
const OPENAPI_DOCUMENT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/openapi.json");
/// Constant answer of the static server.
const CREATED_BODY: &str = r#"{"success":true,"parcel":{"id":"par_01JH8Z0000000000000000000A","trackingNumber":"SBEC7K2M9QX4T8WD0","status":"LABEL_GENERATED","labelUrl":"http://127.0.0.1:8081/files/SBEC7K2M9QX4T8WD0.pdf?sig=0000000000000000000000","createdAt":"2026-01-10T15:05:00.000Z"}}"#;

/// A server in a process of its own, which is killed when this value is dropped.
pub(crate) struct ServerProcess {
    child: Child,
    pub(crate) target: Target,
    /// The operators' listener, if the server has one.
    admin: Option<Target>,
}

impl ServerProcess {
    /// Starts the static server: an axum handler that reads the request and answers with a constant, on the service's
    /// accept loop.
    pub(crate) fn start_static(folder: &Path) -> Self {
        let mut command = Command::new(std::env::current_exe().unwrap());
        Self::start(command.arg(STATIC_ARGUMENT), folder, &mut None)
    }

    pub(crate) fn start_mock(folder: &Path) -> Self {
        let mut command = Command::new(SERVER);
        command.args(["mock", "--no-rate-limit"]).stderr(Stdio::null());
        Self::start(&mut command, folder, &mut None)
    }

    /// Starts the service on a database, with its usual log in a file. The first start on a database creates the key.
    pub(crate) fn start_server(folder: &Path, database: &str, key: &mut Option<Arc<str>>) -> Self {
        let mut command = Command::new(SERVER);
        command.args(["serve", "--sandbox-rate-limit", "100000000", "--database", database]);
        for listener in ["--listen", "--sandbox-listen", "--admin-listen"] {
            command.args([listener, "127.0.0.1:0"]);
        }
        // A server that is still running keeps writing to its own log, which is unlinked.
        let _ = fs::remove_file(folder.join("log"));
        let log = File::create(folder.join("log")).unwrap();
        Self::start(command.stderr(log), folder, key)
    }

    fn start(command: &mut Command, folder: &Path, key: &mut Option<Arc<str>>) -> Self {
        let ready = folder.join("ready.json");
        let mut child =
            command.arg("--ready-file").arg(&ready).stdout(Stdio::piped()).spawn().unwrap();
        let written = wait_for_ready_file(&ready, &mut child);
        if let Some(written) = written["apiKey"].as_str() {
            *key = Some(written.into());
        }
        let key = key.get_or_insert_with(|| read_printed_key(child.stdout.take().unwrap()));
        let target = |listener: &str| {
            let address = written[listener].as_str()?.trim_start_matches("http://").parse();
            Some(Target { address: address.unwrap(), key: Arc::clone(key) })
        };
        Self { target: target("sandbox").unwrap(), admin: target("admin"), child }
    }

    /// Starts prism, which answers from the OpenAPI document. Returns `None` if prism is not installed.
    pub(crate) async fn start_prism(folder: &Path) -> Option<Self> {
        let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = free.local_addr().unwrap();
        drop(free);
        let mut command = Command::new("prism");
        command.args(["mock", "--host", "127.0.0.1", "--port", &address.port().to_string()]);
        let log = File::create(folder.join("prism.log")).unwrap();
        let Ok(child) = command.arg(OPENAPI_DOCUMENT).stdin(Stdio::null()).stdout(log).spawn()
        else {
            eprintln!("prism is not on the path, and is left out");
            return None;
        };
        let key = format!("pk_test_{}", "a".repeat(38)).into();
        let mut server = Self { child, target: Target { address, key }, admin: None };
        while TcpStream::connect(address).await.is_err() {
            assert_eq!(server.child.try_wait().unwrap(), None, "prism ended: {}", folder.display());
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        Some(server)
    }

    /// Creates a second account, and returns a target with its key.
    pub(crate) fn create_account(&self, database: &str) -> Target {
        let mut command = Command::new(SERVER);
        command.args(["keys", "create", "--account", "Neighbour", "--environment", "sandbox"]);
        command.args(["--name", "Lists", "--countries", "*", "--json", "--database", database]);
        let created: Value = serde_json::from_slice(&command.output().unwrap().stdout).unwrap();
        Target { key: created["key"].as_str().unwrap().into(), ..self.target.clone() }
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Returns the memory that the process holds, in MiB.
    pub(crate) fn resident_mib(&self) -> f64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.id())).unwrap();
        let kib = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        kib.trim().trim_end_matches(" kB").parse::<f64>().unwrap() / 1024.0
    }

    /// Returns the average number of writes per commit so far, if the server has a database.
    pub(crate) async fn writes_per_commit(&self) -> Option<f64> {
        let mut admin = Connection::open(self.admin.as_ref()?).await;
        let (_, text) = admin.send("GET", "/metrics", String::new()).await;
        let text = String::from_utf8(text.into()).unwrap();
        let [writes, commits] = ["writes", "commits"].map(|name| {
            let name = format!("parcelo_store_{name}_total ");
            let count = text.lines().find_map(|line| line.strip_prefix(&name)).unwrap();
            count.parse::<f64>().unwrap()
        });
        Some(writes / commits)
    }

    /// Stops the server gracefully.
    pub(crate) fn stop(mut self) {
        Command::new("kill").arg(self.id().to_string()).status().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns the CPU time that a process and its children have used, in microseconds, with the resolution of a 10 ms
/// clock tick.
pub(crate) fn cpu_micros(process: u32) -> f64 {
    const MICROS_PER_TICK: f64 = 10_000.0;
    let process = process.to_string();
    let ticks = fs::read_dir("/proc").unwrap().filter_map(|entry| {
        let stat = fs::read_to_string(entry.ok()?.path().join("stat")).ok()?;
        // Skip the command's name, which is in parentheses and may contain spaces.
        let (before, fields) = stat.rsplit_once(") ")?;
        let fields: Vec<&str> = fields.split(' ').collect();
        let is_included = before.split(' ').next() == Some(&process) || fields[1] == process;
        // The last two are the times of children that have ended.
        let times = fields[11..15].iter().map(|ticks| ticks.parse::<f64>().unwrap());
        is_included.then(|| times.sum::<f64>())
    });
    ticks.sum::<f64>() * MICROS_PER_TICK
}

/// Answers every order with a constant until the process is killed.
pub(crate) async fn serve_static(ready: &str) {
    let socket = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", socket.local_addr().unwrap());
    let created = async |_: Bytes| (StatusCode::CREATED, CREATED_BODY);
    let routes = Router::new().route(CREATE_PATH, post(created));
    fs::write(ready, json!({ "sandbox": address, "apiKey": "pk_test_" }).to_string()).unwrap();
    Listener::start(socket, routes, Stop::default()).finish().await;
}

fn read_printed_key(output: impl std::io::Read) -> Arc<str> {
    let is_other = |c: char| !c.is_alphanumeric() && c != '_';
    let mut lines = BufReader::new(output).lines().map_while(Result::ok);
    let key = lines.find_map(|line| {
        line.split(is_other).find(|word| word.starts_with("pk_test_")).map(Arc::from)
    });
    key.unwrap()
}

fn wait_for_ready_file(ready: &Path, writer: &mut Child) -> Value {
    loop {
        assert_eq!(
            writer.try_wait().unwrap(),
            None,
            "the server ended; its log is beside {}",
            ready.display()
        );
        let written = fs::read(ready).ok().and_then(|text| serde_json::from_slice(&text).ok());
        if let Some(written) = written {
            fs::remove_file(ready).unwrap();
            return written;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}
