//! Profiles: creating, listing and choosing them, settings that take precedence, and a key that is never shown.

use std::{fs, path::PathBuf};

use serde_json::json;

use crate::shop::{TestShop, Workdir};

/// Returns a folder without a key or an address in its environment.
fn unconfigured_dir() -> Workdir {
    Workdir::new("", "")
}

fn file(dir: &Workdir) -> PathBuf {
    dir.path(".config/parcelo/config.toml")
}

fn write_profiles(dir: &Workdir, content: &str) {
    fs::create_dir_all(file(dir).parent().unwrap()).unwrap();
    fs::write(file(dir), content).unwrap();
}

/// Creates a profile with the shop's key and address.
fn init_profile(dir: &Workdir, shop: &TestShop, options: &str) {
    let line = format!("config init {options} --api-key-stdin --base-url {}", shop.server.url());
    let output = dir.run_with(&line, &[], &format!("{}\n", shop.key.secret()));
    assert_eq!(output.code, 0, "{output:?}");
    assert!(!output.shows(shop.key.secret()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_profile_is_created_once_and_used_by_every_command() {
    let (shop, dir) = (TestShop::open().await, unconfigured_dir());
    assert_eq!(dir.run("health").code, 4);
    init_profile(&dir, &shop, "");
    assert_eq!(dir.run("health").code, 0);
    assert_eq!(dir.run("order create order.json").code, 0);
    let url = shop.server.url();
    let again = format!("config init --api-key-stdin --base-url {url}");
    let output = dir.run_with(&again, &[], shop.key.secret());
    assert_eq!(output.code, 2, "{output:?}");
    assert!(output.stderr.contains("--force"), "{output:?}");
    init_profile(&dir, &shop, "--force");
}

#[cfg(unix)]
#[tokio::test(flavor = "multi_thread")]
async fn the_profile_file_is_private_or_a_warning_is_shown() {
    use std::os::unix::fs::PermissionsExt;
    let (shop, dir) = (TestShop::open().await, unconfigured_dir());
    init_profile(&dir, &shop, "");
    let mode = |path: &PathBuf| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let file = file(&dir);
    assert_eq!((mode(&file), mode(&file.parent().unwrap().to_path_buf())), (0o600, 0o700));
    let files = fs::read_dir(file.parent().unwrap()).unwrap().count();
    assert_eq!(files, 1, "no draft is left");
    assert_eq!(dir.run("health").stderr, "");
    for (mode, warned) in [(0o644, true), (0o640, true), (0o600, false), (0o400, false)] {
        fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
        for (line, word) in [("health", "warning:"), ("health --lang es", "aviso:")] {
            let output = dir.run(line);
            assert_eq!(
                (output.code, output.stderr.contains(word)),
                (0, warned),
                "{mode:o}: {output:?}"
            );
        }
        assert_eq!(dir.run("health -o json").stderr, "", "programs read JSON only");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flag_overrides_a_variable_and_a_variable_the_profile() {
    let (shop, dir) = (TestShop::open().await, unconfigured_dir());
    init_profile(&dir, &shop, "home --lang es -o json");
    assert!(dir.run("health").stdout.starts_with(b"{"));
    assert!(dir.run("track short").error()["code"].is_string());
    let table = dir.run("health -o table");
    assert!(table.text().contains("Estado"), "{table:?}");
    let english =
        dir.run_with("health", &[("PARCELO_LANG", "en"), ("PARCELO_OUTPUT", "table")], "");
    assert!(english.text().contains("Status"), "{english:?}");
    let both = [("PARCELO_LANG", "en"), ("PARCELO_OUTPUT", "table")];
    assert!(dir.run_with("health --lang es -o csv", &both, "").text().starts_with("status,"));
    for (name, value) in [("PARCELO_OUTPUT", "yaml"), ("PARCELO_LANG", "fr")] {
        let output = dir.run_with("health -o table", &[(name, value)], "");
        assert_eq!((output.code, output.stderr.contains(name)), (2, true), "{output:?}");
    }
    let elsewhere = [("PARCELO_BASE_URL", "http://127.0.0.1:1")];
    assert_eq!(dir.run_with("health", &elsewhere, "").code, 8);
    let line = format!("health --base-url {}", shop.server.url());
    assert_eq!(dir.run_with(&line, &elsewhere, "").code, 0);
    let other = shop.server.key().name("Other").issue();
    let output = dir.run_with("health", &[("PARCELO_API_KEY", other.secret())], "");
    assert_eq!(output.json()["keyName"], "Other");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_profile_comes_from_flag_variable_or_selection() {
    let (shop, other, dir) = (TestShop::open().await, TestShop::open().await, unconfigured_dir());
    init_profile(&dir, &shop, "one");
    init_profile(&dir, &other, "two -o csv");
    let url = |line: &str, variables: &[(&str, &str)]| {
        let output = dir.run_with(
            &format!("{line} api GET /api/v1/health --dry-run -o json"),
            variables,
            "",
        );
        output.json()[0]["url"].as_str().unwrap().to_owned()
    };
    let (first, second) = (shop.server.url(), other.server.url());
    assert!(url("", &[]).starts_with(first), "the first one is chosen");
    assert!(url("--profile two", &[]).starts_with(second));
    assert!(url("", &[("PARCELO_PROFILE", "two")]).starts_with(second));
    assert!(url("--profile=one", &[("PARCELO_PROFILE", "two")]).starts_with(first));
    assert_eq!(dir.run("config use two").code, 0);
    assert!(url("", &[]).starts_with(second));
    assert_eq!(dir.run_with("health", &[("PARCELO_PROFILE", "three")], "").code, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn profiles_are_listed_without_their_keys() {
    let (shop, dir) = (TestShop::open().await, unconfigured_dir());
    let none = dir.run("config list");
    assert_eq!((none.code, none.text()), (0, ""));
    assert!(none.stderr.contains("config init"), "{none:?}");
    init_profile(&dir, &shop, "one --lang es");
    write_profiles(
        &dir,
        &format!("{}\n# mine\n[profiles.two]\n", fs::read_to_string(file(&dir)).unwrap()),
    );
    let text_output = dir.run("config list --lang en");
    let expected = format!(
        "Profile  Current  Address{:pad$}API key      Language  Output\none      *        {url}  pk_test_***  es\ntwo\n",
        "",
        url = shop.server.url(),
        pad = shop.server.url().len() - 5,
    );
    assert_eq!(text_output.text(), expected);
    let expected = json!({"name": "one", "current": true, "baseUrl": shop.server.url(),
        "key": "pk_test_***", "language": "es", "output": null});
    assert_eq!(dir.run("config list -o json").json()[0], expected);
    assert_eq!(dir.run("config list -o ndjson").lines()[0], expected);
    let csv = dir.run("config list -o csv");
    assert!(
        csv.text().starts_with("name,current,baseUrl,key,language,output\none,true,"),
        "{csv:?}"
    );
    for format in ["table", "json", "ndjson", "csv"] {
        let output = dir.run(&format!("config list -o {format}"));
        assert!(!output.shows(shop.key.secret()), "{format}");
    }
    assert_eq!(dir.run("config use two").code, 0);
    let kept = fs::read_to_string(file(&dir)).unwrap();
    assert!(kept.contains("# mine") && kept.contains("profile = \"two\""), "{kept}");
}

#[test]
fn config_path_works_for_missing_and_broken_files() {
    let dir = unconfigured_dir();
    let path = file(&dir);
    let path = path.to_str().unwrap();
    assert_eq!(dir.run("config path").text(), format!("{path}\n"));
    let absent = json!({"path": path, "exists": false});
    assert_eq!(dir.run("config path -o json").json(), absent);
    write_profiles(&dir, "[");
    assert_eq!(dir.run("config path").code, 0);
    let elsewhere = [("XDG_CONFIG_HOME", "/nowhere")];
    let output = dir.run_with("config path", &elsewhere, "");
    assert_eq!(output.text(), "/nowhere/parcelo/config.toml\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_broken_file_exits_with_2_and_shows_no_key() {
    let (shop, dir) = (TestShop::open().await, unconfigured_dir());
    let secret = shop.key.secret();
    let table = [
        (format!("[profiles.default]\napi_key = {secret}\n"), "line 2"),
        (format!("[profiles.default]\napikey = '{secret}'\n"), "profiles.default.apikey"),
        (format!("[profiles.default]\napi_key = ['{secret}']\n"), "profiles.default.api_key"),
        (format!("[profiles.default]\nlanguage = '{secret}'\n"), "profiles.default.language"),
        ("profile = 'gone'\n".to_owned(), "Profile gone does not exist"),
    ];
    for (content, place) in table {
        write_profiles(&dir, &content);
        for line in ["health", "health -o json -v", "doctor", "config list"] {
            let output = dir.run(line);
            assert!(!output.shows(secret), "{line}: {output:?}");
            assert!(line == "config list" || output.code == 2, "{line}: {output:?}");
        }
        assert!(dir.run("health").stderr.contains(place), "{content}");
        assert_eq!(dir.run("order template").code, 0, "a command that needs no profile works");
        assert_eq!(dir.run("--version").code, 0);
    }
}

/// PowerShell writes UTF-16 with `>`; old editors write windows-1252.
#[tokio::test(flavor = "multi_thread")]
async fn a_file_in_utf_16_is_read_and_other_encodings_are_named() {
    let (shop, dir) = (TestShop::open().await, unconfigured_dir());
    init_profile(&dir, &shop, "");
    let text = format!("# piñata\n{}", fs::read_to_string(file(&dir)).unwrap());
    let wide =
        format!("\u{feff}{text}").encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<_>>();
    fs::write(file(&dir), wide).unwrap();
    assert_eq!(dir.run("health").code, 0);
    assert_eq!(dir.run("config use default").code, 0);
    assert!(fs::read_to_string(file(&dir)).unwrap().contains("piñata"), "it is UTF-8 now");
    let latin: Vec<u8> = text.chars().map(|one| u8::try_from(u32::from(one)).unwrap()).collect();
    fs::write(file(&dir), latin).unwrap();
    for (language, words) in [("en", "it is not UTF-8 text"), ("es", "no es texto UTF-8")] {
        let output = dir.run(&format!("health --lang {language}"));
        assert!(output.code == 2 && output.stderr.contains(words), "{output:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn init_refuses_unusable_values_and_a_key_as_argument() {
    let (shop, dir) = (TestShop::open().await, unconfigured_dir());
    let (url, secret) = (shop.server.url(), shop.key.secret());
    let table = [
        (format!("config init --base-url {url}"), "", 2),
        (format!("config init --base-url {url} --api-key-stdin"), "", 4),
        (format!("config init --base-url {url} --api-key-stdin"), "nonsense", 4),
        ("config init --api-key-stdin".to_owned(), secret, 2),
        ("config init --base-url ftp://h --api-key-stdin".to_owned(), secret, 2),
        ("config init --base-url https://live.example --api-key-stdin".to_owned(), secret, 2),
        (format!("config init {secret} --base-url {url} --api-key-stdin"), secret, 2),
        (format!("config init --base-url {url} --api-key {secret}"), "", 2),
        (format!("config init --profile a/b --base-url {url} --api-key-stdin"), secret, 2),
    ];
    for (line, input, code) in table {
        let output = dir.run_with(&line, &[], input);
        assert_eq!(output.code, code, "{line}: {output:?}");
        assert!(!output.shows(secret), "{line}");
        assert!(!file(&dir).exists(), "{line}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn init_completes_an_address_without_a_scheme() {
    let (shop, dir) = (TestShop::open().await, unconfigured_dir());
    let here = shop.server.url().strip_prefix("http://").unwrap();
    let line = format!("config init --api-key-stdin --base-url {here}");
    assert_eq!(dir.run_with(&line, &[], shop.key.secret()).code, 0);
    assert_eq!(dir.run("config list -o json").json()[0]["baseUrl"], shop.server.url());
    assert_eq!(dir.run("health").code, 0);
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread")]
async fn the_address_is_checked_before_the_key_is_prompted_for() {
    let (shop, dir) = (TestShop::open().await, unconfigured_dir());
    let address = shop.server.url().strip_prefix("http://").unwrap();
    let typed = format!("\nftp://{address}\n{address}\n\n{}\n", shop.key.secret());
    let output = dir.run_on_terminal("config init", &typed);
    assert_eq!(output.code, 0, "{output:?}");
    let (before, keys) = output.text().split_once("API key (hidden)").unwrap();
    assert_eq!(before.matches("Service address").count(), 3, "{output:?}");
    assert_eq!(keys.matches("API key (hidden)").count(), 1, "{output:?}");
    assert!(before.contains("not an http or https address"), "{output:?}");
    assert_eq!(dir.run("health").code, 0);
    // At the end of the input there is no address.
    assert_eq!(unconfigured_dir().run_on_terminal("config init", "\n").code, 2);
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread")]
async fn a_terminal_prompts_for_address_and_hidden_key() {
    let (shop, dir) = (TestShop::open().await, unconfigured_dir());
    let typed = format!("{}\n{}\n", shop.server.url(), shop.key.secret());
    let output = dir.run_on_terminal("config init", &typed);
    assert_eq!(output.code, 0, "{output:?}");
    assert!(output.text().contains("API key (hidden)"), "{output:?}");
    assert!(!output.text().contains(shop.key.secret()), "{output:?}");
    assert_eq!(dir.run("health").code, 0);
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread")]
async fn a_mistyped_key_is_prompted_for_again_and_can_be_confirmed() {
    let shop = TestShop::open().await;
    let (url, secret) = (shop.server.url(), shop.key.secret());
    let wrong =
        format!("{}{}", &secret[..secret.len() - 1], if secret.ends_with('a') { 'b' } else { 'a' });
    let dir = unconfigured_dir();
    let output =
        dir.run_on_terminal("config init", &format!("{url}\nnonsense\n{wrong}\n{secret}\n"));
    assert_eq!(
        (output.code, output.text().matches("API key (hidden)").count()),
        (0, 3),
        "{output:?}"
    );
    assert_eq!(dir.run("health").code, 0);
    let dir = unconfigured_dir();
    let output = dir.run_on_terminal("config init", &format!("{url}\n{wrong}\n{wrong}\n"));
    assert!(fs::read_to_string(file(&dir)).unwrap().contains(&wrong), "{output:?}");
}
