//! The commands and the server when their output cannot be written: a closed pipe or a full disk.

use std::{
    fs::File,
    io::Read,
    process::{Command, Output, Stdio},
};

use crate::{
    api::Api,
    running::{BINARY, TestSetup, wait_for},
};

/// Returns the writing end of a pipe without a reader.
fn closed_pipe() -> Stdio {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    writer.into()
}

/// Returns a file on a full disk.
fn full_disk() -> Stdio {
    File::options().write(true).open("/dev/full").unwrap().into()
}

fn run(arguments: &[&str], stdout: Stdio) -> Output {
    let mut command = Command::new(BINARY);
    command.env_clear().env("PATH", "/usr/bin:/bin").args(arguments);
    command.stdin(Stdio::null()).stdout(stdout).stderr(Stdio::piped());
    command.spawn().unwrap().wait_with_output().unwrap()
}

fn stderr_text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn a_closed_pipe_ends_a_command_without_an_error() {
    let setup = TestSetup::new();
    setup.new_key("sandbox");
    let database = setup.database();
    for arguments in [&["keys", "list"][..], &["keys", "list", "--json"], &["accounts", "list"]] {
        let arguments = [arguments, &["--database", &database]].concat();
        let output = run(&arguments, closed_pipe());
        assert_eq!(output.status.code(), Some(0), "{arguments:?}");
        assert_eq!(stderr_text(&output).as_str(), "", "{arguments:?}");
    }
}

#[test]
fn output_that_cannot_be_written_is_an_error() {
    let setup = TestSetup::new();
    setup.new_key("sandbox");
    let database = setup.database();
    let make = ["keys", "create", "--environment", "sandbox", "--name", "n", "--countries", "*"];
    for arguments in [&["keys", "list"][..], &["keys", "list", "--json"], &make] {
        let arguments = [arguments, &["--database", &database]].concat();
        let output = run(&arguments, full_disk());
        let errors = stderr_text(&output);
        assert_eq!(output.status.code(), Some(1), "{arguments:?}: {errors}");
        assert!(errors.contains("cannot write the output: No space left"), "{errors}");
        assert!(!errors.contains("panicked"), "{errors}");
    }
}

#[test]
fn a_new_key_that_cannot_be_shown_is_an_error() {
    let setup = TestSetup::new();
    setup.create_database();
    let database = setup.database();
    let make = ["keys", "create", "--environment", "sandbox", "--name", "n", "--countries", "*"];
    let output = run(&[&make[..], &["--database", &database]].concat(), closed_pipe());
    let errors = stderr_text(&output);
    assert_eq!(output.status.code(), Some(1), "{errors}");
    assert!(errors.contains("cannot write the output") && !errors.contains("panicked"), "{errors}");
}

#[test]
fn a_mock_server_survives_a_closed_pipe_but_not_a_full_disk() {
    let output = run(&["mock", "--exec", "exit 7"], closed_pipe());
    assert_eq!(output.status.code(), Some(7), "{}", stderr_text(&output));
    let output = run(&["mock", "--exec", "exit 7"], full_disk());
    assert_eq!(output.status.code(), Some(1), "{}", stderr_text(&output));
    assert!(stderr_text(&output).contains("cannot write the output"), "{}", stderr_text(&output));
}

#[test]
fn a_server_that_cannot_show_its_first_key_does_not_start() {
    for (stdout, word) in [(full_disk(), "No space left"), (closed_pipe(), "Broken pipe")] {
        let setup = TestSetup::new();
        let mut command = setup.command();
        command.stdout(stdout).stderr(Stdio::piped());
        let output = command.spawn().unwrap().wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{}", stderr_text(&output));
        assert!(stderr_text(&output).contains(word), "{}", stderr_text(&output));
        assert!(!stderr_text(&output).contains("panicked"), "{}", stderr_text(&output));
    }
}

#[test]
fn closed_error_output_does_not_hide_the_exit_code() {
    for stderr in [closed_pipe(), full_disk()] {
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
    assert_eq!(command.stdout(writer).stderr(closed_pipe()).status().unwrap().code(), Some(0));
    drop(command);
    reader.read_to_string(&mut nothing).unwrap();
    assert!(nothing.contains("pk_test_"), "{nothing}");
}

#[tokio::test]
async fn a_server_that_cannot_write_its_log_keeps_serving() {
    let setup = TestSetup::new();
    let ready = setup.path("ready.json");
    let mut command = setup.command();
    command.env("PARCELO_LOG", "debug").stdout(Stdio::null()).stderr(full_disk());
    let child = command.arg("--ready-file").arg(&ready).spawn().unwrap();
    let running = wait_for(&ready, child);
    let api = Api::new(running.sandbox());
    for _ in 0..3 {
        assert_eq!(api.get("/api/v1/health").await.status, 401);
    }
}
