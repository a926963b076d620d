//! The file of `--config`, and where `config show` says that each setting was set.

use std::{
    fs::{self, Permissions},
    os::unix::fs::PermissionsExt,
    path::Path,
    process::{Command, Output},
};

use serde_json::{Value, json};

use crate::{
    process::deployment,
    running::{BINARY, TestSetup},
};

/// Runs `config show` with a file that has this text.
fn show(file: &Path, text: &str, (variables, flags): (&[(&str, &str)], &[&str])) -> Output {
    fs::write(file, text).unwrap();
    let mut command = Command::new(BINARY);
    command.env_clear().envs(variables.iter().copied());
    command.args(["config", "show", "--json", "--config"]).arg(file).args(flags);
    command.output().unwrap()
}

/// Returns the name, value and source of each setting.
fn settings(output: &Output) -> Vec<(String, Value, String)> {
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{error}");
    let settings: Vec<Value> = serde_json::from_slice(&output.stdout).unwrap();
    let text = |setting: &Value, member: &str| setting[member].as_str().unwrap().to_owned();
    let fields = |setting: &Value| {
        (text(setting, "name"), setting["value"].clone(), text(setting, "source"))
    };
    settings.iter().map(fields).collect()
}

#[test]
fn a_flag_overrides_a_variable_and_a_variable_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("server.toml");
    let text = r#"
        listen = "0.0.0.0:1"
        sandbox-listen = "0.0.0.0:2"
        admin-listen = "0.0.0.0:3"
        countries = ["EC", "MX"]
        drain = 7
        webhooks-allow-private = true
        legacy-sunset = 2027-06-30
    "#;
    let variables =
        [("PARCELO_SANDBOX_LISTEN", "127.0.0.1:22"), ("PARCELO_ADMIN_LISTEN", "127.0.0.1:33")];
    let output = show(&file, text, (&variables, &["--admin-listen", "127.0.0.1:3"]));
    let settings = settings(&output);
    let from_file = |name: &str| format!("{}:{name}", file.display());
    for (name, value, source) in [
        ("listen", json!("0.0.0.0:1"), from_file("listen")),
        ("sandbox-listen", json!("127.0.0.1:22"), "PARCELO_SANDBOX_LISTEN".to_owned()),
        ("admin-listen", json!("127.0.0.1:3"), "flag".to_owned()),
        ("countries", json!("EC,MX"), from_file("countries")),
        ("drain", json!("7"), from_file("drain")),
        ("webhooks-allow-private", json!("true"), from_file("webhooks-allow-private")),
        ("legacy-sunset", json!("2027-06-30"), from_file("legacy-sunset")),
        ("sandbox-rate-limit", json!("100"), "default".to_owned()),
        ("base-url", Value::Null, "default".to_owned()),
    ] {
        let expected = (name.to_owned(), value, source);
        assert!(settings.contains(&expected), "{expected:?}: {settings:?}");
    }
}

#[test]
fn a_setting_that_cannot_be_used_is_named_with_its_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("server.toml");
    for (text, expected) in [
        ("lisen = \"0.0.0.0:80\"", "lisen: unknown setting; did you mean listen?"),
        ("base_url = \"https://a.example\"", "base_url: unknown setting; did you mean base-url?"),
        (
            "production-base-url = \"https://a.example\"",
            "production-base-url: unknown setting; did you mean base-url?",
        ),
        ("config = \"other.toml\"", "config: unknown setting"),
        ("[serve]\nlisten = \"0.0.0.0:80\"", "serve: unknown setting"),
        ("drain = 26", "drain: invalid value '26'"),
        ("drain = [5]", "drain: expected one text, number or date"),
        ("drain = 7.5", "drain: a number must be whole"),
        ("drain = 5\ndrain = 6", "line 2 is not TOML: duplicate key"),
        ("drain = 99999999999999999999", "line 1 is not TOML: integer number overflowed"),
        ("webhooks-allow-private = \"yes\"", "webhooks-allow-private: expected true or false"),
        ("countries = [\"EC\", \"ZZ\"]", "countries: invalid value 'ZZ'"),
        ("countries = []", "countries: the list is empty: leave the setting out"),
        ("trusted-proxies = []", "trusted-proxies: the list is empty: leave the setting out"),
        ("countries = [true]", "countries: expected a text, or a list of texts"),
        ("database = \"mysql://shop:s3cret@db\"", "database: invalid value"),
        ("base-url = \"https://shop:s3cret@a.example\"", "base-url: invalid value"),
        ("labels-host = \"https://shop:s3cret@a.example\"", "labels-host: invalid value"),
        ("drain = 5\nsmtp-url = \"smtp://shop:s3cret", "line 2 is not TOML"),
    ] {
        let output = show(&file, text, (&[], &[]));
        let error = String::from_utf8(output.stderr).unwrap();
        let expected = format!("error: {}: {expected}", file.display());
        assert!(error.starts_with(&expected), "{expected}: {error}");
        assert_eq!(output.status.code(), Some(2), "{error}");
        assert!(!error.contains("s3cret"), "{error}");
    }
}

#[test]
fn a_file_that_cannot_be_read_is_named_as_that_of_the_flag() {
    let folder = tempfile::tempdir().unwrap();
    let [absent, directory, latin] =
        ["absent", "directory", "latin"].map(|name| folder.path().join(name));
    fs::create_dir(&directory).unwrap();
    fs::write(&latin, b"# Env\xEDos").unwrap();
    for (file, reason) in
        [(absent, "No such file"), (directory, "Is a directory"), (latin, "valid UTF-8")]
    {
        let mut command = Command::new(BINARY);
        command.env_clear().args(["keys", "list", "--config"]).arg(&file);
        let refused = command.output().unwrap();
        let error = String::from_utf8(refused.stderr).unwrap();
        assert_eq!(refused.status.code(), Some(2), "{error}");
        let expected = format!("error: cannot read {}, the file of --config", file.display());
        assert!(error.starts_with(&expected) && error.contains(reason), "{error}");
    }
}

#[test]
fn an_error_does_not_repeat_the_password_of_a_public_address() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("server.toml");
    for flag in ["--base-url", "--sandbox-base-url", "--labels-host", "--sandbox-labels-host"] {
        let output = show(&file, "", (&[], &[flag, "https://shop:s3cret@a.example"]));
        let error = String::from_utf8(output.stderr).unwrap();
        assert!(error.contains("leave out the user and password"), "{flag}: {error}");
        assert!(!error.contains("s3cret"), "{flag}: {error}");
    }
}

#[test]
fn a_password_is_not_shown_and_not_taken_from_a_file_that_all_can_read() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("server.toml");
    let text = r#"
        base-url = "https://parcelo.example"
        database = "postgres://shop:s3cret@db/parcelo"
        smtp-url = "smtp://shop:s3cret@relay.example:587"
        mail-from = "parcels@shop.example"
    "#;
    fs::write(&file, "").unwrap();
    fs::set_permissions(&file, Permissions::from_mode(0o644)).unwrap();
    let refused = show(&file, text, (&[], &[]));
    let error = String::from_utf8(refused.stderr).unwrap();
    assert_eq!(refused.status.code(), Some(2), "{error}");
    assert!(error.contains("database: it holds a password"), "{error}");
    fs::set_permissions(&file, Permissions::from_mode(0o640)).unwrap();
    let shown = show(&file, text, (&[], &[]));
    let settings = settings(&shown);
    assert!(!format!("{settings:?}").contains("s3cret"), "{settings:?}");
    for (name, value) in
        [("database", "postgres://shop@db/parcelo"), ("smtp-url", "smtp://shop@relay.example:587")]
    {
        assert!(settings.iter().any(|(known, shown, _)| known == name && shown == value), "{name}");
    }
}

#[test]
fn settings_that_the_server_would_refuse_are_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("server.toml");
    let output = show(&file, "mail-from = \"parcels@shop.example\"", (&[], &[]));
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{error}");
    assert!(error.contains("--mail-from goes with --smtp-url"), "{error}");
}

#[test]
fn the_example_has_every_setting_with_its_default() {
    let folder = tempfile::tempdir().unwrap();
    let (file, password) = (folder.path().join("server.toml"), folder.path().join("password"));
    fs::write(&password, "s3cret\n").unwrap();
    let defaults = settings(&show(&file, "", (&[], &[])));
    let is_setting = |line: &&str| line.starts_with(|first: char| first.is_ascii_lowercase());
    let example = deployment("parcelo-server.toml");
    let lines = example.lines().filter_map(|line| line.strip_prefix('#')).filter(is_setting);
    let text = lines.collect::<Vec<_>>().join("\n");
    let text = text.replace("/etc/parcelo/smtp-password", password.to_str().unwrap());
    let set = settings(&show(&file, &text, (&[], &[])));
    assert_eq!(set.len(), defaults.len());
    for ((name, default, _), (_, value, source)) in defaults.into_iter().zip(set) {
        assert_eq!(source, format!("{}:{name}", file.display()), "{name} is not in the example");
        assert!(default.is_null() || default == value, "{name}: {default}");
    }
}

#[tokio::test]
async fn the_server_and_the_commands_beside_it_read_the_file() {
    let setup = TestSetup::new();
    let file = setup.path("server.toml");
    let text = format!("sandbox-rate-limit = 7\ndatabase = {:?}\n", setup.database());
    fs::write(&file, text).unwrap();
    let variables = [("PARCELO_CONFIG", file.to_str().unwrap()), ("PARCELO_LOG", "info")];
    let running = setup.start_with(&variables, &[]);
    let (id, key) = setup.new_key("sandbox");
    let tracked = running.api(&key).track("SB-SUCCESS-0001").await;
    assert_eq!(tracked.header("x-ratelimit-limit"), "7");
    let mut list = Command::new(BINARY);
    list.env_clear().args(["keys", "list", "--config"]).arg(&file);
    let listed = String::from_utf8(list.output().unwrap().stdout).unwrap();
    assert!(listed.contains(&id), "{listed}");
    running.stop();
    assert!(setup.output().contains("--sandbox-rate-limit=7"), "{}", setup.output());
}
