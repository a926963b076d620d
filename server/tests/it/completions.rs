//! Completions and manual pages of the server's command.

use std::{fs, process::Command};

use crate::running::BINARY;

#[test]
fn every_shell_completes_the_flags() {
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let output = Command::new(BINARY).args(["completions", shell]).output().unwrap();
        let script = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success() && script.contains("sandbox-listen"), "{shell}: {script}");
    }
}

#[test]
fn every_command_has_a_manual_page() {
    let folder = tempfile::tempdir().unwrap();
    let pages = folder.path().join("man1");
    let mut man = Command::new(BINARY);
    assert!(man.args(["man", "--dir"]).arg(&pages).status().unwrap().success());
    let serve = fs::read_to_string(pages.join("parcelo-server-serve.1")).unwrap();
    assert!(serve.contains(r"sandbox\-listen"), "{serve}");
    for page in ["parcelo-server.1", "parcelo-server-keys-create.1", "parcelo-server-backup.1"] {
        assert!(pages.join(page).exists(), "{page}");
    }
}
