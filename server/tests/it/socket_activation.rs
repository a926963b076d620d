//! Sockets that systemd holds and passes to each server: while none runs, connections wait in them.

use std::{
    fs::{self, File},
    io::{self, Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    os::fd::OwnedFd,
    process::{Command, Stdio},
    sync::{
        Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread,
};

use serde_json::Value;

use crate::{
    running::{RunningServer, TestSetup, wait_for},
    waiting::{LONG, block_for_value},
};

const CLIENTS: usize = 4;

/// A shell script that passes its standard input to a program as systemd passes a socket.
const PASS_SOCKET: &str = r#"exec 3<&0 </dev/null; LISTEN_FDS=1 LISTEN_PID=$$; export LISTEN_FDS LISTEN_PID; exec "$0" "$@""#;

/// Returns the command that starts a server with a socket of this name.
fn command(setup: &TestSetup, (name, socket): (&str, &TcpListener)) -> Command {
    let serve = setup.command();
    let mut command = Command::new("/bin/sh");
    command.args(["-c", PASS_SOCKET]).arg(serve.get_program()).args(serve.get_args());
    command.env_clear().env("LISTEN_FDNAMES", name);
    command.envs(serve.get_envs().filter_map(|(variable, value)| Some((variable, value?))));
    command.stdin(Stdio::from(OwnedFd::from(socket.try_clone().unwrap())));
    command
}

fn start(setup: &TestSetup, socket: &TcpListener) -> RunningServer {
    let ready_file = setup.path("ready.json");
    let _ = fs::remove_file(&ready_file);
    let mut command = command(setup, ("sandbox", socket));
    command.args(["--drain", "1", "--ready-file"]).arg(&ready_file);
    wait_for(&ready_file, command.stdout(Stdio::null()).spawn().unwrap())
}

/// Starts a server that must refuse the socket. Returns its error message.
fn start_error(setup: &TestSetup, passed: (&str, &TcpListener), arguments: &[&str]) -> String {
    let errors = setup.path("refused.txt");
    let mut command = command(setup, passed);
    command.args(arguments).stdout(Stdio::null()).stderr(File::create(&errors).unwrap());
    let child = command.spawn().unwrap();
    assert_eq!(RunningServer { child, ready: Value::Null }.wait(), Some(1), "{passed:?}");
    fs::read_to_string(errors).unwrap()
}

/// Sends a request on a connection of its own.
fn send(address: SocketAddr) -> io::Result<String> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(LONG))?;
    stream.write_all(b"GET /healthz HTTP/1.1\r\nHost: parcelo\r\nConnection: close\r\n\r\n")?;
    let mut response = String::new();
    stream.read_to_string(&mut response)?;
    Ok(response)
}

/// Ends the clients, also if the test fails.
struct EndOnDrop<'a>(&'a AtomicBool);

impl Drop for EndOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Restarts a server again and again until it has answered this many requests. None may fail.
fn restart_under_load(requests: usize) {
    let setup = TestSetup::new();
    let socket = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = socket.local_addr().unwrap();
    let mut running = start(&setup, &socket);
    assert_eq!(running.sandbox(), format!("http://{address}"));
    let (answered, is_over, failures) =
        (AtomicUsize::new(0), AtomicBool::new(false), Mutex::new(Vec::new()));
    thread::scope(|scope| {
        let _end = EndOnDrop(&is_over);
        for _ in 0..CLIENTS {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    match send(address) {
                        Ok(response) if response.starts_with("HTTP/1.1 200 ") => {
                            answered.fetch_add(1, Ordering::Relaxed);
                        }
                        failure => {
                            failures.lock().unwrap().push(format!("{failure:?}"));
                            is_over.store(true, Ordering::Relaxed);
                        }
                    }
                }
            });
        }
        let wait_for_answers = |more: usize| {
            let target = answered.load(Ordering::Relaxed) + more;
            block_for_value("requests are answered", || {
                let is_reached = answered.load(Ordering::Relaxed) >= target;
                (is_reached || is_over.load(Ordering::Relaxed)).then_some(())
            });
        };
        loop {
            wait_for_answers(100);
            running.signal("-TERM");
            assert_eq!(running.wait(), Some(0));
            running = start(&setup, &socket);
            wait_for_answers(100);
            if is_over.load(Ordering::Relaxed) || answered.load(Ordering::Relaxed) >= requests {
                break;
            }
        }
    });
    assert_eq!(failures.into_inner().unwrap(), Vec::<String>::new());
}

#[test]
fn no_request_fails_while_a_server_with_a_passed_socket_restarts() {
    restart_under_load(1);
}

#[test]
#[ignore = "long: `.ci/prove proofs` runs it"]
fn of_a_hundred_thousand_requests_none_fails_during_restarts() {
    restart_under_load(100_000);
}

#[test]
fn a_passed_socket_that_no_listener_takes_is_refused() {
    let setup = TestSetup::new();
    let socket = TcpListener::bind("127.0.0.1:0").unwrap();
    let table: [(&str, &[&str]); 2] =
        [("web", &[]), ("production", &["--environments", "sandbox"])];
    for (name, arguments) in table {
        let error = start_error(&setup, (name, &socket), arguments);
        assert!(error.contains(&format!("socket {name:?}")), "{error}");
        assert!(error.contains("FileDescriptorName= must be"), "{error}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_passed_socket_that_is_a_connection_is_refused() {
    let setup = TestSetup::new();
    let socket = TcpListener::bind("127.0.0.1:0").unwrap();
    let connection = TcpStream::connect(socket.local_addr().unwrap()).unwrap();
    let passed = TcpListener::from(OwnedFd::from(connection));
    let error = start_error(&setup, ("sandbox", &passed), &[]);
    assert!(error.contains("socket \"sandbox\"") && error.contains("does not listen"), "{error}");
}
