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
fn bash_completes_what_comes_after_a_subcommand() {
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("script");
    let output = Command::new(BINARY).args(["completions", "bash"]).output().unwrap();
    fs::write(&script, output.stdout).unwrap();
    for (words, expected) in [
        ("ba", "backup"),
        ("backup --fold", "--folder"),
        ("--config server.toml backup --fold", "--folder"),
        ("keys cre", "create"),
        ("keys create --environment san", "sandbox"),
    ] {
        let words: Vec<_> = ["parcelo-server"].into_iter().chain(words.split(' ')).collect();
        let ask = format!(
            "source {}; COMP_WORDS=({}); COMP_CWORD={}; _parcelo__server parcelo-server {} {}; \
             echo \"${{COMPREPLY[@]}}\"",
            script.display(),
            words.join(" "),
            words.len() - 1,
            words[words.len() - 1],
            words[words.len() - 2],
        );
        let output = Command::new("bash").args(["--norc", "-c", &ask]).output().unwrap();
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!(String::from_utf8_lossy(&output.stdout), format!("{expected}\n"), "{error}");
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
    assert!(serve.contains("\n.TH PARCELO-SERVER-SERVE 1 "), "{serve}");
    for page in ["parcelo-server.1", "parcelo-server-keys-create.1", "parcelo-server-backup.1"] {
        assert!(pages.join(page).exists(), "{page}");
    }
}
