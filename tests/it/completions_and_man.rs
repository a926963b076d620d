//! Shell completions and manual pages, checked with the programs that read them.

use std::{fs, process::Command};

use crate::shop::Workdir;

/// Runs a program. Returns whether it succeeded, and its output.
fn run_program(program: &str, arguments: &[&str]) -> (bool, String) {
    let output = Command::new(program).args(arguments).output();
    let output = output.unwrap_or_else(|err| panic!("{program}: {err}"));
    let printed = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8_lossy(&printed).into_owned())
}

fn completions(shell: &str) -> (Workdir, String) {
    let dir = Workdir::new("", "");
    let output = dir.run(&format!("completions {shell}"));
    assert_eq!((output.code, &*output.stderr), (0, ""));
    fs::write(dir.path("script"), output.text()).unwrap();
    let path = dir.path("script").to_str().unwrap().to_owned();
    (dir, path)
}

#[test]
fn the_completions_of_every_shell_have_every_command() {
    let dir = Workdir::new("", "");
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let output = dir.run(&format!("completions {shell}"));
        for word in ["reprint", "listen", "doctor", "dry-run", "forward-to"] {
            assert!(output.text().contains(word), "{shell}: {word}");
        }
    }
    let spanish = dir.run("completions fish --lang es");
    assert!(spanish.text().contains("Mostrar dónde están los paquetes"));
}

#[cfg(unix)]
#[test]
fn bash_loads_its_completions_and_completes() {
    let (_dir, script) = completions("bash");
    let ask = format!(
        "source {script}; COMP_WORDS=(parcelo la); COMP_CWORD=1; _parcelo parcelo la parcelo; \
         echo \"${{COMPREPLY[@]}}\""
    );
    assert_eq!(run_program("bash", &["--norc", "-c", &ask]), (true, "label\n".to_owned()));
}

#[cfg(unix)]
#[test]
fn bash_completes_statuses_countries_and_profiles() {
    let (dir, script) = completions("bash");
    let folder = dir.path(".config/parcelo");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("config.toml"), "[profiles.live]\n[profiles.test]\n").unwrap();
    let binary = std::path::Path::new(env!("CARGO_BIN_EXE_parcelo")).parent().unwrap();
    for (words, expected) in [
        ("parcelo parcel list --status CUSTOMS_H", "CUSTOMS_HOLD"),
        ("parcelo parcel list --country EC", "EC"),
        ("parcelo order template --country EC", "EC"),
        ("parcelo health --profile l", "live"),
        ("parcelo --profile te", "test"),
        ("parcelo config use te", "test"),
    ] {
        let (current, at) = (words.rsplit(' ').next().unwrap(), words.split(' ').count() - 1);
        let previous = words.split(' ').nth(at - 1).unwrap();
        let ask = format!(
            "export PATH={}:$PATH HOME={}; unset XDG_CONFIG_HOME; source {script}; COMP_WORDS=({words}); \
             COMP_CWORD={at}; _parcelo parcelo {current} {previous}; echo \"${{COMPREPLY[@]}}\"",
            binary.display(),
            dir.path(".").display(),
        );
        let output = run_program("bash", &["--norc", "-c", &ask]);
        assert_eq!(output, (true, format!("{expected}\n")), "{words}");
    }
    for (shell, names) in [
        ("zsh", "'--profile=["),
        ("zsh", "':other_profile "),
        ("fish", "-l profile -x"),
        ("fish", "from use\" -f -a"),
    ] {
        let script = dir.run(&format!("completions {shell}"));
        let is_listed = |line: &str| line.contains(names) && line.contains("(parcelo config list");
        assert!(script.text().lines().any(is_listed), "{shell}: {names}");
    }
}

#[test]
#[ignore = "needs zsh: `.ci/prove browser` installs it and runs this"]
fn zsh_loads_its_completions() {
    let (_dir, script) = completions("zsh");
    let ask = format!(
        "autoload -U compinit && compinit -u -D && source {script} && echo ${{_comps[parcelo]}}"
    );
    assert_eq!(run_program("zsh", &["-f", "-c", &ask]), (true, "_parcelo\n".to_owned()));
}

#[test]
#[ignore = "needs fish: `.ci/prove browser` installs it and runs this"]
fn fish_loads_its_completions_and_completes() {
    let (_dir, script) = completions("fish");
    let ask = format!("source {script}; complete -C 'parcelo lab'");
    let (done, printed) = run_program("fish", &["--no-config", "-c", &ask]);
    assert!(done && printed.starts_with("label\t"), "{printed}");
}

#[test]
fn a_manual_page_is_complete_in_both_languages() {
    let dir = Workdir::new("", "");
    let page = |line: &str| {
        let output = dir.run(line);
        assert_eq!((output.code, &*output.stderr), (0, ""), "{line}");
        output.text().to_owned()
    };
    let english = page("man");
    for part in
        ["NAME", "SYNOPSIS", "OPTIONS", "COMMANDS", "\"EXIT STATUS\"", "ENVIRONMENT", "FILES"]
    {
        assert!(english.contains(&format!(".SH {part}\n")), "{part}: {english}");
    }
    for code in ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "130"] {
        assert!(english.contains(&format!(".TP\n\\fB{code}\\fR\n")), "{code}");
    }
    assert!(english.contains("parcelo\\-label(1)"), "{english}");
    let spanish = page("man order create --lang es");
    for part in ["NOMBRE", "SINOPSIS", "OPCIONES", "ARGUMENTOS", "ENTORNO", "ARCHIVOS"] {
        assert!(spanish.contains(&format!(".SH {part}\n")), "{part}: {spanish}");
    }
    assert!(spanish.contains("parcelo\\-order\\-create"), "{spanish}");
    for word in ["OPTIONS", "SYNOPSIS", "Possible", "default:"] {
        assert!(!spanish.contains(word), "{word}: {spanish}");
    }
}

#[test]
fn every_command_has_a_manual_page() {
    let dir = Workdir::new("", "");
    let output = dir.run("man --dir pages");
    assert_eq!((output.code, &*output.stderr), (0, ""));
    assert!(output.text().lines().any(|line| line == "pages/parcelo-label-get.1"), "{output:?}");
    for file in output.text().lines() {
        let page = String::from_utf8(dir.read(file)).unwrap();
        assert!(page.contains(".TH PARCELO") && page.contains("EXIT STATUS"), "{file}");
    }
    assert_eq!(dir.run("man --dir pages -o json").json()[0]["file"], "pages/parcelo.1");
    assert_eq!(dir.run("man --dir order.json").code, 2);
}

#[test]
#[ignore = "needs groff: `.ci/prove browser` installs it and runs this"]
fn groff_reads_every_page_without_a_warning() {
    let dir = Workdir::new("", "");
    for language in ["en", "es"] {
        let output = dir.run(&format!("man --dir {language} --lang {language}"));
        for file in output.text().lines() {
            let path = dir.path(file);
            let printed =
                run_program("groff", &["-man", "-Kutf8", "-ww", "-z", path.to_str().unwrap()]);
            assert_eq!(printed, (true, String::new()), "{file}");
        }
    }
}
