//! `doctor`: every problem that it finds, with its remedy and an exit code for scripts.

use serde_json::{Value, json};

use crate::{
    fake_servers,
    shop::{RunOutput, TestShop, Workdir},
};

const CHECKS: [&str; 8] =
    ["profile", "address", "key", "environment", "dns", "service", "clock", "limits"];

fn check_states(output: &RunOutput) -> Vec<String> {
    let checks = output.json();
    let checks = checks.as_array().unwrap();
    let text = |check: &Value, name: &str| check[name].as_str().unwrap().to_owned();
    assert_eq!(checks.iter().map(|check| text(check, "check")).collect::<Vec<_>>(), CHECKS);
    checks.iter().map(|check| text(check, "state")).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_check_passes_except_a_clock_months_ahead() {
    let shop = TestShop::open().await;
    let output = shop.run("doctor -o json");
    assert_eq!((output.code, &*output.stderr), (0, ""), "{output:?}");
    let expected = ["ok", "ok", "ok", "ok", "ok", "ok", "warning", "ok"];
    assert_eq!(check_states(&output), expected);
    assert!(output.json()[6]["hint"].as_str().unwrap().contains("clock"), "{output:?}");
    assert!(output.json()[6]["detail"].as_str().unwrap().ends_with(" days fast"), "{output:?}");
    assert!(output.json()[7]["detail"].as_str().unwrap().starts_with("100 requests per second, "));
    assert_eq!(shop.run("doctor -o ndjson").lines().len(), CHECKS.len());
    let csv = shop.run("doctor -o csv");
    assert!(csv.text().starts_with("check,state,detail,hint\nprofile,ok,"), "{csv:?}");
    let text_output = ["en", "es"].map(|language| {
        let text = shop.run(&format!("doctor --lang {language}")).text().to_owned();
        let text = text.replace(shop.server.url(), "http://127.0.0.1:8081");
        let mut lines: Vec<_> = text.lines().map(str::trim_end).collect();
        // The machine's clock and the rate limit window differ between runs of the test.
        lines.retain(|line| {
            !["Clock  ", "Reloj  ", "Limits  ", "Límites  "]
                .iter()
                .any(|name| line.starts_with(name))
        });
        lines.join("\n") + "\n"
    });
    insta::assert_snapshot!("doctor", text_output.join("---\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_failed_check_sets_the_exit_code() {
    let shop = TestShop::open().await;
    let (url, secret) = (shop.server.url(), shop.key.secret());
    let foreign = TestShop::open().await.server.key().name("Other").issue();
    let missing = fake_servers::unused_address();
    let table = [
        (secret, "", 2, "ok failed ok skipped skipped skipped skipped skipped"),
        (secret, "ftp://h", 2, "ok failed ok skipped skipped skipped skipped skipped"),
        ("", url, 4, "ok ok failed skipped skipped skipped skipped skipped"),
        ("", "ftp://h", 2, "ok failed failed skipped skipped skipped skipped skipped"),
        ("nonsense", url, 4, "ok ok failed skipped skipped skipped skipped skipped"),
        (secret, "https://live.example", 2, "ok ok ok failed skipped skipped skipped skipped"),
        (secret, "http://nowhere.invalid", 8, "ok ok ok ok failed skipped skipped skipped"),
        (secret, &*missing, 8, "ok ok ok ok ok failed skipped skipped"),
        (foreign.secret(), url, 4, "ok ok ok ok ok failed skipped skipped"),
        (secret, &*url.replace("http:", "https:"), 8, "ok ok ok ok ok failed skipped skipped"),
    ];
    for (key, address, code, expected) in table {
        let dir = Workdir::new(key, address);
        let output = dir.run("doctor -o json");
        assert_eq!(
            (output.code, &*check_states(&output).join(" ")),
            (code, expected),
            "{address}: {output:?}"
        );
        assert_eq!(output.error()["code"], json!("DOCTOR"), "{address}");
        let text_output = dir.run("doctor --lang es");
        assert_eq!(text_output.code, code, "{address}");
        assert!(text_output.text().contains("falló"), "{text_output:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mistyped_key_is_shown_with_its_source() {
    let shop = TestShop::open().await;
    let typo = shop.key.secret().replace("pk_test_", "pk_test_x");
    let dir = Workdir::new("", "");
    let line = format!("config init home --api-key-stdin --base-url {}", shop.server.url());
    assert_eq!(dir.run_with(&line, &[], &typo).code, 0);
    let places = [
        ("doctor -o json", vec![("PARCELO_API_KEY", &*typo)], "", "PARCELO_API_KEY"),
        ("doctor -o json", vec![], "", "the profile home"),
        ("doctor -o json --api-key-stdin", vec![], &*typo, "standard input"),
        ("doctor -o json --api-key-stdin", vec![], "nonsense", "standard input"),
    ];
    for (line, variables, input, place) in places {
        let output = dir.run_with(line, &variables, input);
        assert_eq!(output.code, 4, "{output:?}");
        let row = &output.json()[2];
        let expected = if input == "nonsense" { "failed" } else { "warning" };
        assert_eq!((&row["check"], &row["state"]), (&json!("key"), &json!(expected)), "{row}");
        let detail = row["detail"].as_str().unwrap();
        assert!(detail.contains("mistyped") || expected == "failed", "{detail}");
        assert!(detail.contains(place), "{detail}");
        assert!(!output.shows(&typo), "{output:?}");
    }
    let text_output = dir.run("doctor");
    let printed = format!("{}{}", text_output.text(), text_output.stderr);
    assert_eq!(printed.matches("looks mistyped").count(), 1, "{printed}");
}

#[tokio::test(flavor = "multi_thread")]
async fn credentials_in_the_address_are_never_printed() {
    let dir = Workdir::new(TestShop::open().await.key.secret(), "http://ana:geheim@127.0.0.1:1");
    let output = dir.run("doctor -o json");
    assert_eq!(output.code, 2);
    assert!(!output.shows("geheim"), "{output:?}");
}
