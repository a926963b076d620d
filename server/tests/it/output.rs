//! The process when its output cannot be written.

use std::{
    fs::File,
    io::Read,
    process::{Command, Output, Stdio},
};

use crate::{
    api::Api,
    running::{BINARY, TestSetup, wait_for},
};

/// Returns a pipe that has no reader.
fn closed() -> Stdio {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    writer.into()
}

/// Returns a file on a full disk.
fn full() -> Stdio {
    File::options().write(true).open("/dev/full").unwrap().into()
}

fn run(arguments: &[&str], stdout: Stdio) -> Output {
    let mut command = Command::new(BINARY);
    command.env_clear().env("PATH", "/usr/bin:/bin").args(arguments);
    command.stdin(Stdio::null()).stdout(stdout).stderr(Stdio::piped());
    command.spawn().unwrap().wait_with_output().unwrap()
}

fn errors(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn a_reader_who_has_seen_enough_ends_a_command_in_silence() {
    let setup = TestSetup::new();
    setup.new_key("sandbox");
    let database = setup.database();
    for arguments in [&["keys", "list"][..], &["keys", "list", "--json"], &["accounts", "list"]] {
        let arguments = [arguments, &["--database", &database]].concat();
        let output = run(&arguments, closed());
        assert_eq!(
            (output.status.code(), errors(&output).as_str()),
            (Some(0), ""),
            "{arguments:?}"
        );
    }
}

#[test]
fn what_cannot_be_written_is_an_error() {
    let setup = TestSetup::new();
    setup.new_key("sandbox");
    let database = setup.database();
    let make = ["keys", "create", "--environment", "sandbox", "--name", "n", "--countries", "*"];
    for arguments in [&["keys", "list"][..], &["keys", "list", "--json"], &make] {
        let arguments = [arguments, &["--database", &database]].concat();
        let output = run(&arguments, full());
        let errors = errors(&output);
        assert_eq!(output.status.code(), Some(1), "{arguments:?}: {errors}");
        assert!(errors.contains("cannot write the output: No space left"), "{errors}");
        assert!(!errors.contains("panicked"), "{errors}");
    }
}

#[test]
fn an_unseen_new_key_is_an_error() {
    let setup = TestSetup::new();
    setup.make_database();
    let database = setup.database();
    let make = ["keys", "create", "--environment", "sandbox", "--name", "n", "--countries", "*"];
    let output = run(&[&make[..], &["--database", &database]].concat(), closed());
    let errors = errors(&output);
    assert_eq!(output.status.code(), Some(1), "{errors}");
    assert!(errors.contains("cannot write the output") && !errors.contains("panicked"), "{errors}");
}

#[test]
fn a_mock_server_needs_no_reader_but_room_on_the_disk() {
    let output = run(&["mock", "--exec", "exit 7"], closed());
    assert_eq!(output.status.code(), Some(7), "{}", errors(&output));
    let output = run(&["mock", "--exec", "exit 7"], full());
    assert_eq!(output.status.code(), Some(1), "{}", errors(&output));
    assert!(errors(&output).contains("cannot write the output"), "{}", errors(&output));
}

#[test]
fn a_server_that_cannot_show_its_first_key_does_not_run() {
    for (stdout, word) in [(full(), "No space left"), (closed(), "Broken pipe")] {
        let setup = TestSetup::new();
        let mut command = setup.command();
        command.stdout(stdout).stderr(Stdio::piped());
        let output = command.spawn().unwrap().wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{}", errors(&output));
        assert!(errors(&output).contains(word), "{}", errors(&output));
        assert!(!errors(&output).contains("panicked"), "{}", errors(&output));
    }
}

#[test]
fn closed_error_output_does_not_hide_the_exit_code() {
    for stderr in [closed(), full()] {
        let mut command = Command::new(BINARY);
        command.args(["keys", "list", "--database", "sqlite:/nonexistent.db"]).stderr(stderr);
        assert_eq!(command.stdout(Stdio::null()).status().unwrap().code(), Some(1));
    }
    let mut nothing = String::new();
    let (mut reader, writer) = std::io::pipe().unwrap();
    let setup = TestSetup::new();
    setup.new_key("sandbox");
    let mut command = Command::new(BINARY);
    command.args(["keys", "list", "--database", &setup.database()]);
    assert_eq!(command.stdout(writer).stderr(closed()).status().unwrap().code(), Some(0));
    drop(command);
    reader.read_to_string(&mut nothing).unwrap();
    assert!(nothing.contains("pk_test_"), "{nothing}");
}

#[tokio::test]
async fn a_server_whose_log_is_full_goes_on_answering() {
    let setup = TestSetup::new();
    let ready = setup.path("ready.json");
    let mut command = setup.command();
    command.env("PARCELO_LOG", "debug").stdout(Stdio::null()).stderr(full());
    let child = command.arg("--ready-file").arg(&ready).spawn().unwrap();
    let running = wait_for(&ready, child);
    let api = Api::new(running.sandbox());
    for _ in 0..3 {
        assert_eq!(api.get("/api/v1/health").await.status, 401);
    }
}
