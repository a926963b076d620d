//! The servers that are measured, each a process of its own.

use std::{
    fs::{self, File},
    io::{BufRead as _, BufReader, Read as _, Seek as _, SeekFrom},
    net::SocketAddr,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::Arc,
    time::Duration,
};

use axum::{Router, routing::post};
use bytes::Bytes;
use parcelo_server::internals::{Listener, Stop};
use tokio::net::TcpListener;

use crate::client::{Ask, CREATE, Target};

/// The argument by which this program serves a constant.
pub(crate) const STATIC: &str = "--static";
const SERVER: &str = env!("CARGO_BIN_EXE_parcelo-server");
const DOCUMENT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/openapi.json");
const ANSWER: &str = r#"{"success":true,"parcel":{"id":"par_01JH8Z0000000000000000000A","trackingNumber":"SBEC7K2M9QX4T8WD0","status":"LABEL_GENERATED","labelUrl":"http://127.0.0.1:8081/files/SBEC7K2M9QX4T8WD0.pdf?sig=0000000000000000000000","createdAt":"2026-01-10T15:05:00.000Z"}}"#;

pub(crate) struct Peer {
    name: &'static str,
    child: Child,
    pub(crate) target: Target,
    log: Option<PathBuf>,
}

impl Peer {
    /// An axum handler that reads the request and answers a constant, on the service's own accept loop.
    pub(crate) fn start_static(folder: &Path) -> Self {
        let ready = folder.join("static.json");
        let mut command = Command::new(std::env::current_exe().unwrap());
        let mut child = command.arg(STATIC).arg(&ready).spawn().unwrap();
        let address = wait_for(&ready, &mut child).parse().unwrap();
        let target = Target { address, key: "pk_test_".into() };
        Self { name: "a static axum handler", child, target, log: None }
    }

    /// prism, which answers from the OpenAPI document; None where it is not installed.
    pub(crate) async fn start_prism(folder: &Path) -> Option<Self> {
        let address = {
            let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
            free.local_addr().unwrap()
        };
        let mut command = Command::new("prism");
        command.args(["mock", "--host", "127.0.0.1", "--port", &address.port().to_string()]);
        let log = File::create(folder.join("prism.log")).unwrap();
        command.arg(DOCUMENT).stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log);
        let Ok(child) = command.spawn() else {
            eprintln!("prism is not on the path, and is left out");
            return None;
        };
        // Made before it listens, so that it is stopped should it never do so.
        let key = format!("pk_test_{}", "a".repeat(38)).into();
        let peer = Self { name: "prism", child, target: Target { address, key }, log: None };
        for _ in 0..600 {
            if tokio::net::TcpStream::connect(address).await.is_ok() {
                return Some(peer);
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        panic!("prism did not listen within a minute");
    }

    /// The durable server on a file.
    pub(crate) fn start_server(folder: &Path, database: &Path, key: &mut Option<String>) -> Self {
        let url = format!("sqlite:{}", database.display());
        Self::start_on(folder, ("SQLite", &url), key)
    }

    /// The durable server on a database, with its log as shipped, into a file. The first start on a database makes the
    /// key.
    pub(crate) fn start_on(
        folder: &Path,
        (name, url): (&'static str, &str),
        key: &mut Option<String>,
    ) -> Self {
        let mut command = Command::new(SERVER);
        let (ready, log) =
            (folder.join(format!("{name}.ready")), folder.join(format!("{name}.log")));
        command.args(["serve", "--database", url]);
        command.args(["--sandbox-rate-limit", "100000000"]);
        for listener in ["--listen", "--sandbox-listen", "--admin-listen"] {
            command.args([listener, "127.0.0.1:0"]);
        }
        command.arg("--ready-file").arg(&ready);
        command.stdout(Stdio::piped()).stderr(File::create(&log).unwrap());
        let mut child = command.spawn().unwrap();
        let addresses: serde_json::Value =
            serde_json::from_str(&wait_for(&ready, &mut child)).unwrap();
        let output = child.stdout.take().unwrap();
        let key = key.get_or_insert_with(|| printed_key(output)).as_str().into();
        let address = address(&addresses["sandbox"]);
        Self { name, child, target: Target { address, key }, log: Some(log) }
    }

    pub(crate) fn start_mock(folder: &Path) -> Self {
        let ready = folder.join("mock.json");
        let mut command = Command::new(SERVER);
        command.args(["mock", "--no-rate-limit", "--ready-file"]).arg(&ready);
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let ready: serde_json::Value = serde_json::from_str(&wait_for(&ready, &mut child)).unwrap();
        let key = ready["apiKey"].as_str().unwrap().into();
        let address = address(&ready["sandbox"]);
        Self {
            name: "the mock server, in memory",
            child,
            target: Target { address, key },
            log: None,
        }
    }

    /// A key of an account of its own, made by the command.
    pub(crate) fn key_of_another_account(database: &str) -> Arc<str> {
        let mut command = Command::new(SERVER);
        command.args(["keys", "create", "--account", "Neighbour", "--environment", "sandbox"]);
        command.args(["--name", "Lists", "--countries", "*", "--json", "--database"]);
        command.arg(database);
        let key: serde_json::Value =
            serde_json::from_slice(&command.output().unwrap().stdout).unwrap();
        key["key"].as_str().unwrap().into()
    }

    pub(crate) fn name(&self, ask: Ask) -> String {
        match self.log {
            Some(_) => format!("{}: {}", self.name, ask.name()),
            None => self.name.to_owned(),
        }
    }

    /// Whether it commits to a disk.
    pub(crate) const fn is_durable(&self) -> bool {
        self.log.is_some()
    }

    /// The CPU time that the process has used, in microseconds: exact to a clock tick of 10 ms.
    pub(crate) fn cpu_micros(&self) -> f64 {
        const MICROS_A_TICK: f64 = 10_000.0;
        let stat = self.proc("stat");
        // After the command's name, which is in brackets and may hold blanks.
        let (_, fields) = stat.rsplit_once(") ").unwrap();
        let ticks = fields.split(' ').skip(11).take(2).map(|ticks| ticks.parse::<f64>().unwrap());
        ticks.sum::<f64>() * MICROS_A_TICK
    }

    /// What it holds in memory, in MiB.
    pub(crate) fn resident_mib(&self) -> f64 {
        self.number("status", "VmRSS:") / 1024.0
    }

    /// What it has had written to the disk, in bytes: pages of the file and of its log.
    pub(crate) fn written_bytes(&self) -> f64 {
        self.number("io", "write_bytes:")
    }

    /// Stops the server in order; its last line of the log says how many orders went into how many
    /// commits.
    pub(crate) fn orders_per_commit(&mut self) -> Option<f64> {
        const LAST_LINES: i64 = 16 * 1024;
        let log = self.log.clone()?;
        self.stop();
        let mut file = File::open(log).unwrap();
        // A log of millions of lines is not read whole.
        let _ = file.seek(SeekFrom::End(-LAST_LINES));
        let mut text = String::new();
        file.read_to_string(&mut text).unwrap();
        let number = |name: &str| -> Option<f64> {
            let (_, rest) = text.rsplit_once(&format!("\"{name}\":"))?;
            rest.split([',', '}']).next()?.parse().ok()
        };
        Some(number("changes")? / number("commits")?)
    }

    pub(crate) fn stop(&mut self) {
        Command::new("kill").arg(self.child.id().to_string()).status().unwrap();
        self.child.wait().unwrap();
    }

    fn number(&self, file: &str, field: &str) -> f64 {
        let text = self.proc(file);
        let value = text.lines().find_map(|line| line.strip_prefix(field)).unwrap();
        value.trim().trim_end_matches(" kB").parse().unwrap()
    }

    fn proc(&self, file: &str) -> String {
        fs::read_to_string(format!("/proc/{}/{file}", self.child.id())).unwrap()
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Serves a constant until it is killed.
pub(crate) async fn serve_static(ready: &Path) {
    let socket = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = socket.local_addr().unwrap();
    let created = async |_: Bytes| (axum::http::StatusCode::CREATED, ANSWER);
    let routes = Router::new().route(CREATE, post(created));
    fs::write(ready, address.to_string()).unwrap();
    Listener::start(socket, routes, Stop::default()).finish().await;
}

fn printed_key(output: impl std::io::Read) -> String {
    let lines = BufReader::new(output).lines().map_while(Result::ok);
    let key = lines.into_iter().find_map(|line| {
        let start = line.find("pk_test_")?;
        let key = line[start..].split(|c: char| !c.is_alphanumeric() && c != '_').next()?;
        Some(key.to_owned())
    });
    key.unwrap()
}

fn address(url: &serde_json::Value) -> SocketAddr {
    url.as_str().unwrap().trim_start_matches("http://").parse().unwrap()
}

fn wait_for(file: &Path, writer: &mut Child) -> String {
    loop {
        let ended = writer.try_wait().unwrap();
        assert_eq!(ended, None, "it ended and is not ready; its log is beside {}", file.display());
        match fs::read_to_string(file) {
            Ok(text) if !text.is_empty() => {
                fs::remove_file(file).unwrap();
                return text;
            }
            _ => std::thread::sleep(Duration::from_millis(1)),
        }
    }
}
