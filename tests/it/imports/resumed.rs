//! Imports that were interrupted, and are continued with `--resume`.

use std::{
    fs,
    process::{Child, Stdio},
    time::Duration,
};

use chrono::{TimeDelta, Utc};
use parcelo::{ErrorCode, Operation};
use parcelo_server::mock::Clock;
use serde_json::Value;
use tokio::time::timeout;

use super::{assert_outcomes, outcomes, row, rows, sheet};
use crate::{
    fake_servers,
    shop::{RunOutput, TestShop, Workdir, interrupt},
    waiting::{LONG, block_for_value},
};

const JOURNAL: &str = "out/orders.csv.journal";

#[tokio::test(flavor = "multi_thread")]
async fn a_journal_is_resumed_only_on_request() {
    let shop = TestShop::with_rows(2).await;
    assert_eq!(shop.import("--resume").code, 0, "--resume works without a journal");
    let sent = shop.server.requests().count();
    let again = shop.import("");
    assert_eq!(again.code, 2, "{again:?}");
    assert!(again.stderr.contains("--resume"), "{again:?}");
    let resumed = shop.import("--resume");
    assert_eq!(resumed.code, 0, "{resumed:?}");
    assert!(resumed.stderr.contains("not sent again: 2"), "{resumed:?}");
    let looked_for = shop.server.requests().of(Operation::GetTracking).count();
    assert_eq!(looked_for, 2, "the first parcel and the last: a sandbox may have been reset");
    assert_eq!(shop.server.requests().count(), sent + looked_for, "nothing was left to do");
}

/// Example: an import that was sent to a wrong address.
#[tokio::test(flavor = "multi_thread")]
async fn a_journal_without_orders_can_be_continued_anywhere() {
    let shop = TestShop::with_rows(2).await;
    let nowhere = [("PARCELO_BASE_URL", "http://127.0.0.1:1")];
    let import = "order import orders.csv --labels out";
    let output = shop.dir.run_with(import, &nowhere, "");
    assert_eq!(output.code, 8, "{output:?}");
    let output = shop.dir.run_with(&format!("{import} --resume -o ndjson"), &[], "");
    assert_outcomes(&output, 0, &["created"; 2]);
    // The created orders bind it to that service again.
    let output = shop.dir.run_with(&format!("{import} --resume"), &nowhere, "");
    assert!(output.code == 2 && output.stderr.contains("another service"), "{output:?}");
}

/// Example: the disk is full.
#[tokio::test(flavor = "multi_thread")]
async fn unwritable_results_name_the_orders_and_how_to_resume() {
    let shop = TestShop::with_rows(2).await;
    let results = shop.dir.path("out/orders.csv.results.csv");
    fs::create_dir_all(&results).unwrap();
    // An order whose label is missing exists too.
    let labels = shop.server.faults();
    labels.on(Operation::DownloadLabel).first(1).error(ErrorCode::LabelNotFound);
    let output = shop.import("");
    assert_eq!(output.code, 10, "{output:?}");
    let exist = "1 of 2 rows are done. Orders known to exist: 2.";
    for words in [exist, "Cannot write", "results.csv", "--resume"] {
        assert!(output.stderr.contains(words), "{words}: {output:?}");
    }
    fs::remove_dir(&results).unwrap();
    let output = shop.import("--resume -o ndjson");
    assert_outcomes(&output, 0, &["done_before"; 2]);
    shop.server.assert_exactly_once();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_journal_from_before_a_reset_is_refused_and_kept() {
    let shop = TestShop::with_rows(2).await;
    assert_eq!(shop.import("").code, 0);
    assert_eq!(shop.run("sandbox reset --yes").code, 0);
    let (journal, created) = (shop.dir.read(JOURNAL), shop.creations());
    for (language, words) in [("en", "the sandbox was reset"), ("es", "entorno de pruebas")] {
        let output = shop.import(&format!("--resume --lang {language}"));
        assert_eq!(output.code, 2, "{output:?}");
        assert!(output.stderr.contains(words) && output.stderr.contains(JOURNAL), "{output:?}");
    }
    assert_eq!(shop.import("--resume -o json").error()["code"], "JOURNAL_OUTDATED");
    assert_eq!((shop.dir.read(JOURNAL), shop.creations()), (journal, created));
    fs::remove_file(shop.dir.path(JOURNAL)).unwrap();
    let output = shop.import("-o ndjson");
    assert_outcomes(&output, 0, &["created", "created"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_outcome_exits_with_9_and_is_resolved_later() {
    let shop = TestShop::with_rows(3).await;
    shop.server.faults().on(Operation::CreateOrder).first(4).after_commit().close();
    let output = shop.import("--concurrency 1 -o ndjson");
    assert_outcomes(&output, 9, &["unknown", "created", "created"]);
    assert_eq!(output.error()["mayHaveExecuted"], true);
    let journal = String::from_utf8(shop.dir.read(JOURNAL)).unwrap();
    let states = journal.lines().filter(|line| line.contains("\"A-1\""));
    let states = states.map(|line| serde_json::from_str::<Value>(line).unwrap()["state"].clone());
    let states: Vec<_> = states.collect();
    assert_eq!(states.len(), 2, "before it is sent, and after: {journal}");
    assert!(states.iter().all(|state| state["execution"] == "unknown"), "{states:?}");
    assert!(states[1]["request"].is_string(), "the complete state of the key: {states:?}");
    shop.server.faults().clear();
    let output = shop.import("--resume -o ndjson");
    assert_eq!((output.code, &*outcomes(&output)[0]), (0, "replayed"), "{output:?}");
    assert_eq!(shop.labels(), 3);
    shop.server.assert_exactly_once();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_changed_row_is_not_sent_again_and_a_new_one_is() {
    let shop = TestShop::with_rows(3).await;
    assert_eq!(shop.import("").code, 0);
    let changed = row("A-2").replace("45.5", "46");
    shop.write_file("orders.csv", sheet(&[row("A-1"), changed, row("A-9")]));
    let output = shop.import("--resume -o ndjson");
    assert_outcomes(&output, 10, &["done_before", "invalid", "created"]);
    assert_eq!(output.lines()[1]["errors"][0]["code"], "ROW_CHANGED");
    assert!(shop.import("--resume").stderr.contains("no longer in the file: 1"));
    assert_eq!(shop.creations(), 4);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_changed_row_names_its_existing_order() {
    let shop = TestShop::with_rows(2).await;
    // The order is created, but its response is lost.
    shop.server.faults().on(Operation::CreateOrder).first(4).after_commit().close();
    assert_eq!(outcomes(&shop.import("--concurrency 1 -o ndjson")), ["unknown", "created"]);
    shop.server.faults().clear();
    let found = shop.run("parcel list --reference A-1 -o ndjson").lines();
    let number = found[0]["trackingNumber"].clone();
    let changed = sheet(&[row("A-1").replace("45.5", "46"), row("A-2")]);
    shop.write_file("orders.csv", &changed);
    shop.write_file("corrected.csv", &changed);
    let table = [
        ("order import orders.csv --labels out --resume", "done_before"),
        ("order import orders.csv --labels out --resume", "done_before"),
        ("order import corrected.csv --labels other", "replayed"),
    ];
    for (line, of_the_other) in table {
        let output = shop.run(&format!("{line} -o ndjson"));
        assert_outcomes(&output, 10, &["failed", of_the_other]);
        let row = &output.lines()[0];
        assert_eq!(row["trackingNumber"], number, "{row}");
        assert_eq!(row["errors"][0]["code"], "ORDER_EXISTS");
        for message in ["message", "message_es"] {
            let text = row["errors"][0][message].as_str().unwrap();
            assert!(text.contains(number.as_str().unwrap()) && text.contains("A-1"), "{text}");
        }
        let text = row["errors"][0]["message"].as_str().unwrap();
        assert!(text.contains("unless it is void already"), "{text}");
    }
    shop.server.assert_exactly_once();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_foreign_damaged_or_locked_journal_is_refused() {
    let (shop, other) = (TestShop::open().await, TestShop::open().await);
    shop.write_file("orders.csv", sheet(&rows(1)));
    assert_eq!(shop.import("").code, 0);
    let url = format!("--resume --base-url {}", other.server.url());
    assert!(shop.import(&url).stderr.contains("another service"));
    let held = fs::File::open(shop.dir.path(JOURNAL)).unwrap();
    held.lock().unwrap();
    let output = shop.import("--resume");
    assert!(output.code == 2 && output.stderr.contains("in use"), "{output:?}");
    drop(held);
    let whole = fs::read_to_string(shop.dir.path(JOURNAL)).unwrap();
    shop.write_file(JOURNAL, format!("{whole}nonsense\n"));
    let output = shop.import("--resume");
    assert!(
        output.code == 2 && output.stderr.contains("line 4 is not a valid journal entry"),
        "{output:?}"
    );
    assert_eq!(other.server.requests().count(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_import_is_resumed_only_with_its_first_api_key() {
    let shop = TestShop::with_rows(2).await;
    assert_eq!(shop.import("").code, 0);
    let journal = shop.dir.read(JOURNAL);
    let secret = shop.key.secret();
    assert!(!String::from_utf8(journal.clone()).unwrap().contains(&secret[8..20]));

    let other = shop.with_key(&shop.server.key().name("Other").issue());
    let line = "order import orders.csv --labels out --resume";
    let take_over = |options: &str| other.run(&format!("{line} {options}"));
    fs::create_dir_all(other.path("out")).unwrap();
    fs::write(other.path("orders.csv"), sheet(&rows(3))).unwrap();
    fs::write(other.path(JOURNAL), &journal).unwrap();
    let requests = shop.server.requests().count();
    for (lang, sentence) in [("en", "another API key"), ("es", "otra clave de API")] {
        let refused = take_over(&format!("--lang {lang}"));
        assert!(refused.code == 2 && refused.stderr.contains(sentence), "{refused:?}");
        assert!(refused.stderr.contains("--key-rotated"), "{refused:?}");
    }
    assert_eq!(shop.server.requests().count(), requests, "nothing was sent");
    assert_eq!(other.read(JOURNAL), journal);

    let rotated = take_over("--key-rotated -o ndjson");
    assert_eq!(outcomes(&rotated)[..2], ["done_before", "done_before"], "{rotated:?}");
    let again = take_over("-o ndjson");
    assert_eq!(outcomes(&again).len(), 3, "the journal knows the key now: {again:?}");
}

/// A journal of version 0.1, which did not record the API key.
const OLD_JOURNAL: &str = include_str!("journal-0.1.ndjson");

#[tokio::test(flavor = "multi_thread")]
async fn a_journal_without_an_api_key_is_bound_to_the_first_one() {
    let shop = TestShop::with_rows(2).await;
    fs::create_dir_all(shop.dir.path("out")).unwrap();
    shop.write_file(
        JOURNAL,
        OLD_JOURNAL.replace("http://127.0.0.1:1/", &format!("{}/", shop.server.url())),
    );
    shop.create("SBECECKF6DWA4F8ZQ");
    let output = shop.import("--resume -o ndjson");
    assert_eq!(outcomes(&output), ["done_before", "created"], "{output:?}");
    let other = shop.with_key(&shop.server.key().issue());
    fs::create_dir_all(other.path("out")).unwrap();
    fs::copy(shop.dir.path(JOURNAL), other.path(JOURNAL)).unwrap();
    fs::copy(shop.dir.path("orders.csv"), other.path("orders.csv")).unwrap();
    let refused = other.run("order import orders.csv --labels out --resume");
    assert!(refused.code == 2 && refused.stderr.contains("another API key"), "{refused:?}");
}

/// Writes a journal in which the order `A-1` was sent 30 hours ago with an unknown outcome.
fn write_journal_without_responses(dir: &Workdir) {
    let journal = String::from_utf8(dir.read(JOURNAL)).unwrap();
    #[expect(clippy::disallowed_methods, reason = "the journal is written by the machine's clock")]
    let early = (Utc::now() - TimeDelta::hours(30)).to_rfc3339();
    let mut lines: Vec<_> = journal.lines().filter(|line| !line.contains("\"created\"")).collect();
    lines.truncate(2);
    let sent = lines[1].split("\"at\":\"").next().unwrap();
    let text = format!("{}\n{sent}\"at\":\"{early}\"}}\n", lines[0]);
    fs::write(dir.path(JOURNAL), text).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_row_whose_key_has_expired_is_searched_for() {
    let shop = TestShop::new(crate::embedded::builder().clock(Clock::system()).start().await);
    shop.write_file("orders.csv", sheet(&rows(1)));
    let before = shop.import("-o ndjson");
    assert_eq!(before.code, 0, "{before:?}");
    write_journal_without_responses(&shop.dir);
    let found = shop.import("--resume -o ndjson");
    assert_outcomes(&found, 0, &["replayed"]);
    assert_eq!(found.lines()[0]["trackingNumber"], before.lines()[0]["trackingNumber"]);
    assert_eq!(shop.creations(), 1);

    shop.server.reset().await;
    write_journal_without_responses(&shop.dir);
    let none = shop.import("--resume -o ndjson");
    assert_outcomes(&none, 0, &["created"]);

    shop.dir.write("other.json", &{
        let mut other = crate::shop::order("SB-OTHER-0001");
        other["externalOrderId"] = "A-1".into();
        other
    });
    assert_eq!(shop.run("order create other.json").code, 0);
    write_journal_without_responses(&shop.dir);
    let unclear = shop.import("--resume -o ndjson");
    assert_outcomes(&unclear, 9, &["unknown"]);
    assert_eq!(shop.creations(), 3, "a row with an unclear outcome is not sent");
}

/// The response of a service that accepts no more requests for an hour.
const RATE_LIMITED: &str = r#"{"success":false,"error":{"code":"RATE_LIMIT_EXCEEDED","message":"Too many.","message_es":"Demasiadas.","retryAfter":3600}}"#;

#[tokio::test(flavor = "multi_thread")]
async fn an_import_that_cannot_start_fails_like_a_single_call() {
    let shop = TestShop::open().await;
    let stranger = TestShop::open().await.server.key().name("Other").issue();
    let busy = fake_servers::start_with_response(
        "429 Too Many Requests\r\nretry-after: 3600",
        RATE_LIMITED,
    )
    .await;
    let table = [
        (4, "AUTH_INVALID_API_KEY", stranger.secret(), shop.server.url()),
        (7, "RATE_LIMIT_EXCEEDED", shop.key.secret(), &busy),
    ];
    for (code, error, key, url) in table {
        let dir = Workdir::new(key, url);
        fs::write(dir.path("orders.csv"), sheet(&rows(30))).unwrap();
        let output = dir.run("order import orders.csv --labels out -o json");
        output.assert_error(code, error);
        assert_eq!(output.error()["mayHaveExecuted"], false, "{output:?}");
        assert!(output.error()["hint"].as_str().unwrap().contains("--resume"), "{output:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_address_of_another_service_is_reported_once() {
    let shop = TestShop::with_rows(25).await;
    let other =
        fake_servers::start_with_response("404 Not Found", "<html>nothing here</html>").await;
    let table = [
        (format!("{}/elsewhere", shop.server.url()), 5, "NOT_FOUND"),
        (other, 8, "UNEXPECTED_ANSWER"),
    ];
    for (url, code, error) in table {
        let output = shop
            .run(&format!("order import orders.csv --labels {error} --base-url {url} -o ndjson"));
        output.assert_error(code, error);
        let hint = output.error()["hint"].as_str().unwrap().to_owned();
        assert!(hint.contains("Check the address") && hint.contains("--resume"), "{hint}");
        let expected = [vec!["failed".to_owned()], vec!["not_sent".to_owned(); 24]].concat();
        assert_eq!(outcomes(&output), expected);
    }
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_at_the_start_leaves_no_journal() {
    let shop = TestShop::with_rows(1).await;
    // No file may grow by a byte, and a failed write does not end the process.
    let full =
        shop.dir.run_limited("trap '' XFSZ; ulimit -f 0", "order import orders.csv --labels out");
    assert_eq!((full.code, full.text()), (2, ""), "{full:?}");
    assert!(full.stderr.contains("orders.csv.journal"), "{full:?}");
    assert_eq!(shop.import("").code, 0, "the import had not begun");
}

/// There was a response, so neither the address nor the network is to blame.
#[tokio::test(flavor = "multi_thread")]
async fn a_failing_service_is_not_blamed_on_the_network() {
    let shop = TestShop::with_rows(12).await;
    shop.server.faults().on(Operation::DownloadLabel).error(ErrorCode::ServiceUnavailable);
    let output = shop.import("-o ndjson");
    let error = output.error();
    assert_eq!(error["status"], 503, "{output:?}");
    let hint = error["hint"].as_str().unwrap();
    assert!(hint.contains("--resume") && !hint.contains("network"), "{hint}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_import_that_can_only_fail_stops_and_is_resumable() {
    let shop = TestShop::with_rows(30).await;
    let dead = fake_servers::unused_address();
    let output =
        shop.run(&format!("order import orders.csv --labels gone --base-url {dead} -o ndjson"));
    assert_eq!(output.code, 8, "{output:?}");
    let error = output.error();
    let hint = error["hint"].as_str().unwrap();
    assert!(hint.contains("--resume") && hint.matches("again with").count() == 1, "{hint}");
    assert!(!hint.contains("Nothing was executed"), "rows before it may have been: {hint}");
    shop.write_file("few.csv", sheet(&rows(3)));
    for lang in ["en", "es"] {
        let few =
            format!("order import few.csv --labels few-{lang} --base-url {dead} --lang {lang}");
        let few = shop.run(&few);
        let hint = if lang == "en" { "Check the address and the network." } else { "la red" };
        assert!(few.code == 8 && few.stderr.contains(hint), "too few for a streak: {few:?}");
        assert!(!few.stderr.contains("Correct the failed rows"), "{few:?}");
    }
    let all = outcomes(&output);
    assert!(all.len() == 30 && all.contains(&"not_sent".into()), "{all:?}");

    shop.server.faults().on(Operation::CreateOrder).nth(5).error(ErrorCode::AuthInvalidApiKey);
    let output = shop.import("--concurrency 1 -o ndjson");
    assert_eq!(output.code, 10, "{output:?}");
    assert_eq!(shop.creations(), 5);
    let foreign = shop.with_key(&shop.server.key().countries(["CO"]).issue());
    fs::copy(shop.dir.path("orders.csv"), foreign.path("orders.csv")).unwrap();
    let refused = foreign.run("order import orders.csv --labels out -o ndjson");
    assert_outcomes(&refused, 10, &["failed"; 30]);
    assert_eq!(shop.import("--resume").code, 0);
    assert_eq!(shop.labels(), 30);
    shop.server.assert_exactly_once();
}

fn wait_for_output(dir: &Workdir, child: Child) -> RunOutput {
    dir.read_output(child.wait_with_output().unwrap(), "order import")
}

#[tokio::test(flavor = "multi_thread")]
async fn ctrl_c_finishes_rows_in_progress_and_says_how_to_resume() {
    let shop = TestShop::with_rows(40).await;
    // All rows together take ten seconds, and those in flight half a second.
    shop.server
        .faults()
        .on(Operation::CreateOrder)
        .after_commit()
        .latency(Duration::from_millis(500));
    let line = "order import orders.csv --labels out --concurrency 2";
    let child = shop.dir.start(line, Stdio::piped());
    let created = shop.server.requests().of(Operation::CreateOrder);
    created.wait_for(1, LONG).await;
    interrupt(&child);
    let output = wait_for_output(&shop.dir, child);
    shop.server.faults().clear();
    assert_eq!(output.code, 130, "{output:?}");
    assert!(
        output.stderr.contains("Finishing") && output.stderr.contains("--resume"),
        "{output:?}"
    );
    let done = shop.creations();
    assert!((1..40).contains(&done), "{done}");
    assert_eq!(shop.labels(), done, "the rows in progress were finished");
    assert_eq!(shop.results().len(), 40);
    assert_eq!(shop.import("--resume").code, 0);
    assert_eq!(shop.labels(), 40);
    shop.server.assert_exactly_once();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_ctrl_c_ends_at_once() {
    let shop = TestShop::open().await;
    let (silent, taken) = fake_servers::start_silent().await;
    let dir = Workdir::new(shop.key.secret(), &silent);
    fs::write(dir.path("orders.csv"), sheet(&rows(2))).unwrap();
    let line = "order import orders.csv --labels out --concurrency 1 -o ndjson";
    let child = dir.start(line, Stdio::piped());
    timeout(LONG, taken.notified()).await.unwrap();
    interrupt(&child);
    // The first row gets its response while the second one, which waits for its turn, is abandoned.
    let journal = dir.path("out/orders.csv.journal");
    assert!(fs::read_to_string(journal).unwrap().contains("A-1"));
    let waiting = tokio::task::spawn_blocking(move || {
        let mut child = child;
        block_for_value("it ends", || {
            interrupt(&child);
            child.try_wait().unwrap()
        });
        (child, dir)
    });
    let (child, dir) = waiting.await.unwrap();
    let output = wait_for_output(&dir, child);
    assert_eq!((output.code, &*outcomes(&output)[0]), (130, "unknown"), "{output:?}");
    assert_eq!(output.error()["mayHaveExecuted"], true);
    // The second row has no report, but is counted as a row of the file.
    assert!(output.error()["message"].to_string().contains("0 of 2 rows"), "{output:?}");
}
