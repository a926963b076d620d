//! The texts of the command: help and errors in both languages, colours, and the attempts that `--verbose` shows.

use serde_json::json;

use crate::{
    fake_servers,
    shop::{TestShop, Workdir},
};

type Variables = &'static [(&'static str, &'static str)];

const COMMANDS: [&str; 33] = [
    "",
    "order",
    "order create",
    "order import",
    "order void",
    "order validate",
    "order template",
    "manifest",
    "manifest submit",
    "manifest show",
    "track",
    "parcel",
    "parcel list",
    "label",
    "label get",
    "label show",
    "label reprint",
    "invoice",
    "invoice get",
    "sandbox",
    "sandbox reset",
    "health",
    "webhook",
    "webhook listen",
    "api",
    "config",
    "config init",
    "config list",
    "config use",
    "config path",
    "doctor",
    "completions",
    "man",
];

#[test]
fn every_command_has_help_in_both_languages() {
    let dir = Workdir::new("", "");
    for command in COMMANDS {
        for language in ["en", "es"] {
            let output = dir.run(&format!("{command} --help --lang {language}"));
            assert_eq!((output.code, &*output.stderr), (0, ""), "{command}");
            let name = format!("help {command} {language}").replace("  ", " ").replace(' ', "-");
            insta::assert_snapshot!(name, output.text());
        }
    }
}

#[test]
fn the_version_matches_the_package() {
    for line in ["--version", "-V"] {
        let expected = format!("parcelo {}\n", env!("CARGO_PKG_VERSION"));
        assert_eq!(Workdir::new("", "").run(line).text(), expected);
    }
}

#[test]
fn the_language_comes_from_the_flag_or_the_locale() {
    let dir = Workdir::new("", "");
    let table: [(&str, Variables, &str); 8] = [
        ("track short", &[], "hint:"),
        ("track short", &[("LANG", "es_EC.UTF-8")], "sugerencia:"),
        ("track short --lang es", &[], "sugerencia:"),
        ("track short --lang en", &[("LC_ALL", "es_MX")], "hint:"),
        ("trak --lang es", &[], "comando desconocido: 'trak'"),
        ("health --fast --lang es", &[], "argumento inesperado: '--fast'"),
        ("order create a.json b.json --lang es", &[], "argumento inesperado: 'b.json'"),
        ("order create a.json b.json", &[], "unexpected argument 'b.json'"),
    ];
    for (line, variables, expected) in table {
        let output = dir.run_with(line, variables, "");
        assert!(output.stderr.contains(expected), "{line}: {output:?}");
    }
}

#[test]
fn values_out_of_range_and_conflicts_suggest_valid_ones() {
    let dir = Workdir::new("", "");
    let table = [
        ("parcel list --limit 101", "invalid value '101' for --limit <N>: expected 1-100"),
        (
            "parcel list --limit 101 --lang es",
            "valor no válido '101' para --limit <N>: se espera 1-100",
        ),
        ("parcel list --page 0", "invalid value '0' for --page <N>: expected 1 or more"),
        (
            "parcel list --page 0 --lang es",
            "valor no válido '0' para --page <N>: se espera 1 o más",
        ),
        ("order import a.csv --labels x --concurrency 65", "expected 1-64"),
        ("webhook listen --port 99999", "expected 0-65535"),
        ("parcel list --page two", "invalid value 'two' for --page <N>"),
        ("parcel list --all --page 2", "--all cannot be used with --page <N>"),
        ("parcel list --all --page 2 --lang es", "--all no se puede usar con --page <N>"),
        ("health --lang en --lang en", "--lang <LANGUAGE> cannot be used multiple times"),
        (
            "webhook listen --secret whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8= \
             --forward-to foo",
            "--forward-to http://127.0.0.1:3000/hooks",
        ),
        ("manifest list", "parcelo manifest submit, parcelo manifest show"),
        ("manifest submt", "Did you mean submit?"),
    ];
    for (line, expected) in table {
        let output = dir.run(line);
        assert_eq!(output.code, 2, "{line}");
        assert!(output.stderr.contains(expected), "{line}: {}", output.stderr);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_without_its_scheme_gets_a_suggestion() {
    let shop = TestShop::open().await;
    for (language, expected) in [("en", "begin it with http://"), ("es", "comenzar con http://")] {
        let line = format!("track SB-SUCCESS-0001 --base-url 127.0.0.1:8081 --lang {language}");
        let output = shop.run(&line);
        assert!(output.code == 2 && output.stderr.contains(expected), "{output:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_error_names_field_and_remedy_in_both_languages() {
    let shop = TestShop::open().await;
    let mut bad = crate::shop::order("SB-SUCCESS-0001");
    bad["receiver"]["address"]["zipCode"] = json!("090101");
    bad["receiver"]["nationalId"] = json!("12");
    shop.dir.write("bad.json", &bad);
    let printed = ["en", "es"]
        .map(|language| shop.run(&format!("order create bad.json --lang {language}")).stderr);
    insta::assert_snapshot!("faults", printed.join("---\n"));
    let usage = ["en", "es"].map(|language| {
        shop.run(&format!("order create order.json --format tiff --lang {language}")).stderr
    });
    insta::assert_snapshot!("usage", usage.join("---\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn verbose_shows_attempts_waits_and_the_response() {
    let shop = TestShop::open().await;
    let output = shop.run("health -v");
    assert_eq!(output.stderr, "GET /api/v1/health: status 200 on attempt 1\n");
    let dir = Workdir::new(shop.key.secret(), &fake_servers::unused_address());
    let output = dir.run("health --verbose --lang es");
    assert!(
        output.stderr.contains("GET /api/v1/health: el intento 1 falló (NotSent)"),
        "{output:?}"
    );
    assert!(output.stderr.contains("sin respuesta (intentos: 4)"), "{output:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn colours_depend_on_terminal_option_and_environment() {
    let shop = TestShop::open().await;
    let table: [(Variables, bool); 3] = [
        (&[], false),
        (&[("CLICOLOR_FORCE", "1")], true),
        (&[("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1")], false),
    ];
    for (variables, coloured) in table {
        for line in ["health", "--help", "track short"] {
            let output = shop.dir.run_with(line, variables, "");
            let printed = format!("{}{}", output.text(), output.stderr);
            assert_eq!(printed.contains('\u{1b}'), coloured, "{line} {variables:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_colour_option_overrides_the_environment() {
    let shop = TestShop::open().await;
    shop.create("SB-SUCCESS-0001");
    assert_eq!(shop.run("order void SB-SUCCESS-0001").code, 0);
    for (option, variables, coloured) in [
        ("--color always", &[("NO_COLOR", "1")] as Variables, true),
        ("--color=never", &[("CLICOLOR_FORCE", "1")], false),
        ("--color auto", &[], false),
    ] {
        for line in ["track SB-SUCCESS-0001", "track short", "trak"] {
            let output = shop.dir.run_with(&format!("{line} {option}"), variables, "");
            let printed = format!("{}{}", output.text(), output.stderr);
            assert_eq!(printed.contains('\u{1b}'), coloured, "{line} {option}");
        }
        let json =
            shop.dir.run_with(&format!("track SB-SUCCESS-0001 -o json {option}"), variables, "");
        assert_eq!(json.json()["status"], "VOIDED");
    }
    assert_eq!(shop.run("health --color blue").code, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_that_fails_names_address_and_cause() {
    let url = fake_servers::unused_address();
    let dir = Workdir::new(TestShop::open().await.key.secret(), &url);
    for (language, address) in [("en", "Address:"), ("es", "Dirección:")] {
        let output = dir.run(&format!("health --lang {language}"));
        assert!(output.stderr.contains(&format!("{address} {url}")), "{output:?}");
        assert!(output.stderr.contains("refused"), "{output:?}");
    }
    let hidden = url.replace("http://", "http://ana:secret@");
    let output = dir.run(&format!("health -o json --base-url {hidden}"));
    assert!(!output.stderr.contains("secret"), "{output:?}");
}

/// Returns every line of a table on a terminal of this width.
#[cfg(target_os = "linux")]
fn lines_on_terminal(shop: &TestShop, line: &str, columns: u16) -> Vec<String> {
    let script = format!(
        "#!/bin/sh\nstty rows 24 cols {columns}\nexec {} {line}\n",
        env!("CARGO_BIN_EXE_parcelo")
    );
    std::fs::write(shop.dir.path("run.sh"), script).unwrap();
    let mut command = std::process::Command::new("script");
    command.args(["--quiet", "--return", "--command", "sh run.sh", "/dev/null"]);
    command.current_dir(shop.dir.path(".")).env("TERM", "xterm").env("NO_COLOR", "1");
    command.env("PARCELO_API_KEY", shop.key.secret()).env("PARCELO_BASE_URL", shop.server.url());
    let output = command.stdin(std::process::Stdio::null()).output().unwrap();
    let output = shop.dir.read_output(output, line);
    assert_eq!(output.code, 0, "{output:?}");
    output.text().lines().map(|line| line.trim_end().to_owned()).collect()
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs script (bsdutils) for a terminal: `.ci/prove proofs` runs it"]
async fn a_table_fits_the_terminal_without_cutting_numbers() {
    let shop = TestShop::open().await;
    let number = "SB-SUCCESS-0001-ABCDEFGHIJKLMN";
    shop.create(number);
    let lists = [
        "parcel list --lang en",
        "parcel list --lang es",
        "track SB-SUCCESS-0001-ABCDEFGHIJKLMN --history",
    ];
    for line in lists {
        for columns in [60, 80, 120] {
            let lines = lines_on_terminal(&shop, line, columns);
            let widest = lines.iter().map(|line| line.chars().count()).max().unwrap();
            assert!(widest <= usize::from(columns), "{line} {columns}: {lines:#?}");
            assert!(lines.iter().any(|line| line.contains(number)), "{line} {columns}: {lines:#?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn server_texts_cannot_control_the_terminal() {
    let url = fake_servers::start_with_response(
        "404 Not Found",
        "{\"success\":false,\"error\":{\"code\":\"PARCEL_NOT_FOUND\",\"message\":\"\\u001b[2Jgone\"}}",
    )
    .await;
    let dir = Workdir::new(TestShop::open().await.key.secret(), &url);
    let output = dir.run_with("track SB-SUCCESS-0001", &[("CLICOLOR_FORCE", "1")], "");
    assert_eq!(output.code, 5);
    assert!(
        !output.stderr.contains("\u{1b}[2J") && output.stderr.contains("[2Jgone"),
        "{output:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn bidirectional_text_cannot_reorder_terminal_lines() {
    let url = fake_servers::start_with_response(
        "200 OK\r\ncontent-type: application/json",
        r#"{"trackingNumber":"SB-SUCCESS-0001","status":"IN_TRANSIT","statusName":"In transit",
            "estimatedDelivery":"2026-01-13T23:59:59-05:00","history":[{"sequence":1,
            "timestamp":"2026-01-05T08:00:00.000Z","status":"IN_TRANSIT","statusName":"In transit",
            "location":"Quito\u202e DEREVILED\u2066\u061c\u200f\u009b2J","description":"a\u2028b"}]}"#,
    )
    .await;
    let dir = Workdir::new(TestShop::open().await.key.secret(), &url);
    let turners = ['\u{61c}', '\u{200f}', '\u{202e}', '\u{2066}', '\u{9b}', '\u{2028}'];
    for format in ["table", "json", "ndjson"] {
        let output = dir.run(&format!("track SB-SUCCESS-0001 --history -o {format}"));
        assert_eq!(output.code, 0, "{output:?}");
        assert!(
            output.text().contains("DEREVILED") && !output.text().contains(turners),
            "{output:?}"
        );
        if format != "table" {
            assert_eq!(output.json()["history"][0]["description"], "a\u{2028}b");
        }
    }
}

#[test]
fn help_and_version_work_as_subcommands() {
    let dir = Workdir::new("", "");
    for (words, option) in [
        ("help", "--help"),
        ("help order", "order --help"),
        ("order help", "order --help"),
        ("help order create", "order create --help"),
        ("help --lang es track", "--lang es track --help"),
        ("version", "--version"),
    ] {
        let (by_word, by_option) = (dir.run(words), dir.run(option));
        assert_eq!((by_word.code, by_word.text()), (0, by_option.text()), "{words}: {by_word:?}");
    }
    assert_eq!(dir.run("help nonsense").code, 2);
}
