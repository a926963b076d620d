//! `order void`: orders that are voided, and those that cannot be voided.

use serde_json::{Value, json};

use crate::shop::{TestShop, Workdir};

const VOID_BOTH: &str = "order void SB-SUCCESS-0001 SB-SUCCESS-0002 --idempotency-key void-0001";

#[tokio::test(flavor = "multi_thread")]
async fn void_prints_the_voided_orders_and_the_key() {
    let shop = TestShop::with_two_parcels().await;
    let output = shop.run(&format!("{VOID_BOTH} --reason Cancelled"));
    assert_eq!((output.code, &*output.stderr), (0, ""));
    insta::assert_snapshot!("void", output.text());
    let history = shop.run("track SB-SUCCESS-0001 --history -o json").json()["history"].clone();
    let last = history.as_array().unwrap().last().unwrap().clone();
    assert_eq!((&last["status"], &last["description"]), (&json!("VOIDED"), &json!("Cancelled")));
    assert_eq!(shop.run("label get SB-SUCCESS-0001").code, 6);

    let again = shop.run("order void SB-SUCCESS-0001 --lang es");
    assert_eq!(again.code, 0);
    assert!(again.text().contains("ya estaba anulado"), "{again:?}");
    assert!(again.text().contains("Anulado (VOIDED)"), "{again:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn void_prints_json_and_csv() {
    let shop = TestShop::with_two_parcels().await;
    let first = shop.run(&format!("{VOID_BOTH} -o json"));
    assert_eq!((first.code, &*first.stderr), (0, ""));
    let voided = first.json();
    assert_eq!(voided["outcome"], "created");
    assert_eq!(voided["summary"], json!({"requested": 2, "voided": 2, "failed": 0}));
    assert_eq!(voided["results"][1]["trackingNumber"], "SB-SUCCESS-0002");
    assert_eq!(voided["idempotencyKey"], "void-0001");
    assert!(voided["requestId"].as_str().unwrap().starts_with("req_"));

    let line = shop.run(&format!("{VOID_BOTH} -o ndjson"));
    assert_eq!((line.lines().len(), &line.lines()[0]["outcome"]), (1, &json!("replayed")));
    assert!(shop.run(VOID_BOTH).stderr.contains("nothing else was changed"));

    let csv = shop.run(&format!("{VOID_BOTH} -o csv"));
    let expected = "trackingNumber,voided,alreadyVoided,previousStatus,status,voidedAt,code,message,idempotencyKey\n\
        SB-SUCCESS-0001,true,false,LABEL_GENERATED,VOIDED,2026-01-05T08:00:00.000Z,,,void-0001\n\
        SB-SUCCESS-0002,true,false,LABEL_GENERATED,VOIDED,2026-01-05T08:00:00.000Z,,,void-0001\n";
    assert_eq!(csv.text(), expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_generated_key_is_shown_and_resumes_the_void() {
    let shop = TestShop::with_two_parcels().await;
    let first = shop.run("order void SB-SUCCESS-0001 -o json").json();
    let key = first["idempotencyKey"].as_str().unwrap();
    let line = format!("order void SB-SUCCESS-0001 --idempotency-key {key} -o json");
    let again = shop.run(&line).json();
    assert_eq!((&again["outcome"], &again["results"]), (&json!("replayed"), &first["results"]));
    let other = shop.run("order void SB-SUCCESS-0001 -o json").json();
    assert_ne!(other["idempotencyKey"], first["idempotencyKey"]);

    let conflict = format!("order void SB-SUCCESS-0002 --idempotency-key {key} -o json");
    let conflict = shop.run(&conflict);
    conflict.assert_error(6, "IDEMPOTENCY_CONFLICT");
    assert!(
        conflict.error()["hint"].as_str().unwrap().contains("different idempotency key"),
        "{conflict:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn voided_orders_are_shown_and_the_others_have_a_reason() {
    let shop = TestShop::with_two_parcels().await;
    shop.server.clock().advance(std::time::Duration::from_secs(5 * 60)).await;
    shop.create("SB-PLAIN-00001");
    let line = "order void SB-PLAIN-00001 SB-SUCCESS-0001 SB-UNKNOWN-01";
    let output = shop.run(&format!("{line} --idempotency-key void-0001"));
    assert_eq!(output.code, 10, "{output:?}");
    insta::assert_snapshot!("void-partly", format!("{}---\n{}", output.text(), output.stderr));

    let output = shop.run(&format!("{line} -o json --lang es"));
    assert_eq!((output.code, &output.json()["summary"]["voided"]), (10, &json!(1)));
    let error = output.error();
    assert_eq!((&error["code"], &error["status"]), (&json!("PARTLY_FAILED"), &Value::Null));
    let items: Vec<_> = error["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| (item["trackingNumber"].clone(), item["code"].clone()))
        .collect();
    assert_eq!(
        json!(items),
        json!([["SB-SUCCESS-0001", "PARCEL_NOT_VOIDABLE"], ["SB-UNKNOWN-01", "PARCEL_NOT_FOUND"]])
    );

    let csv = shop.run(&format!("{line} -o csv --lang es"));
    let row = csv.text().lines().nth(3).unwrap().to_owned();
    assert!(row.starts_with("SB-UNKNOWN-01,false,,,,,PARCEL_NOT_FOUND,No existe"), "{row}");
}

#[tokio::test(flavor = "multi_thread")]
async fn voiding_nothing_fails_with_the_exit_code_of_the_reason() {
    let shop = TestShop::with_two_parcels().await;
    shop.server.clock().advance(std::time::Duration::from_secs(5 * 60)).await;
    let table = [
        ("SB-UNKNOWN-01", 5, "PARCEL_NOT_FOUND", 1),
        ("SB-UNKNOWN-01 SB-UNKNOWN-02", 5, "PARCEL_NOT_FOUND", 2),
        ("SB-SUCCESS-0001", 6, "PARCEL_NOT_VOIDABLE", 1),
        ("SB-SUCCESS-0001 SB-UNKNOWN-01", 6, "VOID_FAILED", 2),
    ];
    for (numbers, exit, code, items) in table {
        let output = shop.run(&format!("order void {numbers} -o json"));
        output.assert_error(exit, code);
        assert_eq!(
            output.error()["items"].as_array().unwrap().len(),
            items,
            "{numbers}: {output:?}"
        );
        assert!(
            output.stdout.is_empty() && output.error()["hint"].is_string(),
            "{numbers}: {output:?}"
        );
        let text_output = shop.run(&format!("order void {numbers}"));
        for number in numbers.split(' ') {
            assert!(text_output.stderr.contains(&format!("  {number}: ")), "{text_output:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn numbers_are_read_from_standard_input_one_per_line() {
    let shop = TestShop::with_two_parcels().await;
    let input = "SB-SUCCESS-0001\r\n\n  SB-SUCCESS-0002  \n";
    let output = shop.dir.run_with("order void - -o json", &[], input);
    assert_eq!((output.code, &output.json()["summary"]["voided"]), (0, &json!(2)), "{output:?}");
}

#[test]
fn a_request_that_breaks_the_rules_is_not_sent() {
    let dir = Workdir::new("", "");
    let long = "x".repeat(256);
    let table = [
        ("short".to_owned(), "trackingNumbers[0]"),
        ("SB-SUCCESS-0001 sb-success-0001".to_owned(), "trackingNumbers[1]"),
        (format!("SB-SUCCESS-0001 --reason {long}"), "reason"),
        ("SB-SUCCESS-0001 --idempotency-key short".to_owned(), "idempotencyKey"),
    ];
    for (arguments, field) in table {
        let output = dir.run(&format!("order void {arguments} -o json"));
        output.assert_fault(field);
        assert_eq!(output.error()["fields"].as_array().unwrap().len(), 1, "{output:?}");
        assert_eq!(output.error()["mayHaveExecuted"], false);
    }
    let empty = dir.run_with("order void - -o json", &[], "\n \n");
    assert_eq!((empty.code, &empty.error()["fields"][0]["code"]), (3, &json!("REQUIRED")));
    let all = dir.run("order void short SB-SUCCESS-0001 SB-SUCCESS-0001 --idempotency-key x");
    let found = ["idempotencyKey: ", "trackingNumbers[0]: short", "trackingNumbers[2]: "];
    assert!(found.iter().all(|field| all.stderr.contains(field)), "all at once: {all:?}");
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs script (bsdutils) for a terminal: `.ci/prove proofs` runs it"]
async fn void_asks_for_confirmation_on_a_terminal_only() {
    let shop = TestShop::with_two_parcels().await;
    let status =
        |number: &str| shop.run(&format!("track {number} -o json")).json()["status"].clone();
    for (lang, words) in [("en", "Nothing was voided."), ("es", "No se anuló nada.")] {
        let line = format!("order void SB-SUCCESS-0001 --lang {lang}");
        let output = shop.dir.run_on_terminal(&line, "no\n");
        assert!(output.code == 130 && output.text().contains(words), "{output:?}");
    }
    assert_ne!(status("SB-SUCCESS-0001"), "VOIDED");
    let output = shop.dir.run_on_terminal("order void SB-SUCCESS-0001", "yes\n");
    assert!(output.code == 0 && output.text().contains("Orders to void: 1"), "{output:?}");
    assert_eq!(status("SB-SUCCESS-0001"), "VOIDED");
    let output = shop.dir.run_on_terminal("order void SB-SUCCESS-0002 --yes", "");
    assert!(output.code == 0 && !output.text().contains("Type yes"), "{output:?}");
    // Without a terminal it runs in a script, whose intention is clear.
    shop.create("SB-SUCCESS-0003");
    assert_eq!(shop.run("order void SB-SUCCESS-0003").code, 0);
}
