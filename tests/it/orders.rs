//! `order create`, `order validate`, `order template`: valid and invalid uses of each.

use std::fs;

use parcelo::CountryCode;
use serde_json::{Value, json};

use crate::shop::{TestShop, Workdir, order, order_with};

/// Returns a folder without a key or an address, for commands that work offline.
fn offline_dir() -> Workdir {
    Workdir::new("", "")
}

#[tokio::test(flavor = "multi_thread")]
async fn create_prints_the_number_and_saves_the_label() {
    let shop = TestShop::open().await;
    let output = shop.run("order create order.json --label label.pdf");
    assert_eq!((output.code, &*output.stderr), (0, ""));
    assert!(output.text().contains("SB-SUCCESS-0001"), "{output:?}");
    assert!(output.text().contains("Label generated\n"), "{output:?}");
    assert!(shop.dir.read("label.pdf").starts_with(b"%PDF-"));
    let text = output.text().replace(shop.server.url(), "http://server");
    let (before, signature) = text.split_once("sig=").unwrap();
    let (_, after) = signature.split_once('\n').unwrap();
    insta::assert_snapshot!("create", format!("{before}sig=…\n{after}"));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_label_format_follows_the_option_or_the_file_name() {
    let shop = TestShop::open().await;
    let table: [(&str, &[u8]); 6] = [
        ("--label label.pdf", b"%PDF-"),
        ("--label label.png", b"\x89PNG\r\n\x1a\n"),
        ("--label label.ZPL", b"^XA"),
        ("--label label", b"%PDF-"),
        ("--label label.pdf --format zpl", b"^XA"),
        ("--label label.txt -f PNG", b"\x89PNG\r\n\x1a\n"),
    ];
    for (label, magic) in table {
        let output = shop.run(&format!("order create order.json {label} -o json"));
        assert_eq!(output.code, 0, "{label}: {output:?}");
        let file = output.json()["label"]["file"].as_str().unwrap().to_owned();
        let content = shop.dir.read(&file);
        assert!(content.starts_with(magic), "{label}");
        assert_eq!(output.json()["label"]["bytes"], content.len(), "{label}");
    }
    let before = shop.server.requests().count();
    for wrong in
        ["order create order.json --label label.doc", "label get SB-SUCCESS-0001 --merge all.txt"]
    {
        let output = shop.run(wrong);
        assert_eq!(output.code, 2, "{wrong}: {output:?}");
        assert!(output.stderr.contains(".pdf, .zpl or .png"), "{output:?}");
    }
    assert_eq!(shop.server.requests().count(), before, "nothing was sent");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_order_comes_from_standard_input_too() {
    let shop = TestShop::open().await;
    let input = order("SB-STDIN-0001").to_string();
    let output = shop.dir.run_with("order create - -o json", &[], &input);
    assert_eq!(
        (output.code, &output.json()["parcel"]["trackingNumber"]),
        (0, &json!("SB-STDIN-0001"))
    );
    let bom = format!("\u{feff}{}", order("SB-STDIN-0002"));
    assert_eq!(shop.dir.run_with("order create -", &[], &bom).code, 0);
}

/// PowerShell writes UTF-16 with `>`; old editors write windows-1252.
#[tokio::test(flavor = "multi_thread")]
async fn an_order_in_utf_16_is_read_and_other_encodings_are_named() {
    let shop = TestShop::open().await;
    let text = order("SB-WIDE-00001").to_string();
    let little: Vec<u8> =
        "\u{feff}".encode_utf16().chain(text.encode_utf16()).flat_map(u16::to_le_bytes).collect();
    let big: Vec<u8> = little.chunks(2).flat_map(|unit| [unit[1], unit[0]]).collect();
    for (name, bytes) in [("little.json", &little), ("big.json", &big)] {
        fs::write(shop.dir.path(name), bytes).unwrap();
        for command in ["order validate", "order create"] {
            let output = shop.run(&format!("{command} {name} -o json"));
            assert_eq!(output.code, 0, "{command} {name}: {output:?}");
        }
    }
    let latin: Vec<u8> = text.replacen("Ana", "An\u{e9}", 1).chars().map(|one| one as u8).collect();
    assert!(std::str::from_utf8(&latin).is_err(), "{text}");
    fs::write(shop.dir.path("latin.json"), latin).unwrap();
    for command in ["order validate", "order create"] {
        let output = shop.run(&format!("{command} latin.json"));
        assert_eq!(output.code, 2, "{output:?}");
        assert!(output.stderr.contains("latin.json: it is not UTF-8 text"), "{output:?}");
        assert!(output.stderr.contains("Save it as UTF-8"), "{output:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn create_prints_every_format() {
    let shop = TestShop::open().await;
    let first = shop.run("order create order.json -o json");
    let created = first.json();
    assert_eq!(created["outcome"], "created");
    assert_eq!(created["parcel"]["status"], "LABEL_GENERATED");
    assert_eq!(created["idempotencyKey"], "order-SB-SUCCESS-0001");
    assert_eq!(created["warnings"], json!([]));
    assert_eq!(created["label"], Value::Null);
    assert!(created["requestId"].as_str().unwrap().starts_with("req_"));
    assert_eq!(first.stderr, "");

    let line = shop.run("order create order.json -o ndjson");
    assert_eq!(line.lines().len(), 1);
    assert_eq!(line.lines()[0]["outcome"], "replayed");

    let csv = shop.run("order create order.json -o csv");
    let rows: Vec<_> = csv.text().lines().collect();
    let heading = "trackingNumber,status,labelUrl,createdAt,id,outcome,idempotencyKey,labelFile";
    assert_eq!(rows[0], heading);
    assert!(rows[1].starts_with("SB-SUCCESS-0001,LABEL_GENERATED,http"), "{csv:?}");
    assert_eq!(rows.len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn creating_again_says_that_the_order_exists() {
    let shop = TestShop::open().await;
    assert_eq!(shop.run("order create order.json").stderr, "");
    let again = shop.run("order create order.json");
    assert_eq!(again.code, 0);
    assert!(again.stderr.contains("no new order was created"), "{again:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_warning_is_shown_and_the_order_is_created() {
    let shop = TestShop::open().await;
    let mut odd = order("SB-ODD-000001");
    odd["reciever"] = json!({});
    shop.dir.write("odd.json", &odd);
    let found = shop.run("order create odd.json");
    assert_eq!(found.code, 0);
    assert!(found.stderr.contains("warning: reciever:"), "{found:?}");
    let silent = shop.run("order create odd.json -o json");
    assert_eq!((silent.code, &*silent.stderr), (0, ""));
    assert_eq!(silent.json()["warnings"][0]["code"], "UNKNOWN_FIELD");
}

#[tokio::test(flavor = "multi_thread")]
async fn create_fails_with_the_exit_code_of_the_reason() {
    let shop = TestShop::open().await;
    shop.create("SB-TAKEN-0001");
    let no_zip = order_with("SB-FAULTY-001", "/receiver/address/zipCode", json!("090101"));
    let taken = order_with("SB-TAKEN-0001", "/idempotencyKey", json!("another-key-0001"));
    let changed = order_with("SB-TAKEN-0001", "/parcelDetails/declaredValue", json!(99));
    let foreign = order("EC7K2M9QX4T8WD0");
    let table = [
        (no_zip.to_string(), 3, "VALIDATION_FAILED", "receiver.address.zipCode"),
        (foreign.to_string(), 3, "VALIDATION_FAILED", "trackingNumber"),
        ("{".to_owned(), 3, "VALIDATION_FAILED", "body"),
        ("[]".to_owned(), 3, "VALIDATION_FAILED", "body"),
        (String::new(), 3, "VALIDATION_FAILED", "body"),
        (taken.to_string(), 6, "PARCEL_DUPLICATE_TRACKING", ""),
        (changed.to_string(), 6, "IDEMPOTENCY_CONFLICT", ""),
    ];
    for (content, code, word, field) in table {
        fs::write(shop.dir.path("bad.json"), content).unwrap();
        let text_output = shop.run("order create bad.json");
        assert_eq!((text_output.code, &*text_output.stdout), (code, &b""[..]), "{text_output:?}");
        assert!(
            text_output.stderr.contains(word) && text_output.stderr.contains("hint:"),
            "{text_output:?}"
        );
        assert!(text_output.stderr.contains(field), "{text_output:?}");
        let machine = shop.run("order create bad.json -o json");
        assert_eq!((machine.code, &*machine.stdout), (code, &b""[..]), "{machine:?}");
        assert_eq!(machine.error()["code"], word);
        assert_eq!(machine.error()["fields"][0]["field"].as_str().unwrap_or_default(), field);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_changed_order_names_the_existing_parcel() {
    let shop = TestShop::open().await;
    let with_reference = |value: i64, reference: Value| {
        let mut order = order_with("SB-TAKEN-0001", "/parcelDetails/declaredValue", json!(value));
        order["externalOrderId"] = reference;
        order
    };
    for reference in [json!("PO-77"), Value::Null] {
        shop.run("sandbox reset --yes");
        shop.dir.write("order.json", &with_reference(50, reference.clone()));
        assert_eq!(shop.run("order create order.json").code, 0);
        shop.dir.write("order.json", &with_reference(51, reference.clone()));
        let named = reference.as_str().unwrap_or_default();
        for (language, words) in [("en", "with different content"), ("es", "con otro contenido")] {
            let again = shop.run(&format!("order create order.json --lang {language}"));
            assert_eq!(again.code, 6, "{again:?}");
            let (message, hint) = again.stderr.split_once('\n').unwrap();
            for word in [words, "SB-TAKEN-0001", named] {
                assert!(message.contains(word), "{word}: {again:?}");
            }
            assert!(
                !message.contains("idempot"),
                "the message does not mention the key: {message}"
            );
            assert!(hint.contains("idempotencyKey"), "{hint}");
        }
        // Following the advice works: the command that it names succeeds.
        assert_eq!(shop.run("order void SB-TAKEN-0001").code, 0);
        let again = shop.run("order create order.json");
        assert!(again.stderr.contains("is void already"), "{again:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_order_repeated_after_a_void_says_that_it_is_void() {
    let shop = TestShop::open().await;
    assert_eq!(shop.run("order create order.json").code, 0);
    assert_eq!(shop.run("order void SB-SUCCESS-0001").code, 0);
    let again = shop.run("order create order.json");
    assert_eq!(again.code, 0, "{again:?}");
    for words in ["the answer from then", "parcelo parcel show SB-SUCCESS-0001"] {
        assert!(again.stderr.contains(words), "{words}: {again:?}");
    }
    for (language, words) in
        [("en", "parcel was voided"), ("es", "paquete se anuló"), ("en", "create a new order")]
    {
        let line = format!("order create order.json --label label.pdf --lang {language}");
        let labelled = shop.run(&line);
        assert_eq!(labelled.code, 10, "{labelled:?}");
        assert!(labelled.stderr.contains(words), "{labelled:?}");
        assert!(!labelled.stderr.contains("could not be saved"), "{labelled:?}");
        assert!(!labelled.stderr.contains("parcelo label get"), "{labelled:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_with_several_orders_suggests_an_import() {
    let shop = TestShop::open().await;
    let orders = ["SB-MANY-00001", "SB-MANY-00002"].map(order);
    fs::write(shop.dir.path("lines.ndjson"), format!("{}\n{}\n", orders[0], orders[1])).unwrap();
    fs::write(shop.dir.path("array.json"), json!(orders).to_string()).unwrap();
    fs::write(shop.dir.path("one.json"), format!("[{}]", orders[0])).unwrap();
    for file in ["lines.ndjson", "array.json"] {
        assert_eq!(shop.run(&format!("order validate {file}")).code, 0, "{file}");
        let output = shop.run(&format!("order create {file}"));
        assert_eq!(output.code, 2, "{output:?}");
        assert!(
            output.stderr.contains("2 orders") && output.stderr.contains("order import"),
            "{output:?}"
        );
        let output = shop.run(&format!("order create {file} --lang es"));
        assert!(output.stderr.contains("2 pedidos"), "{output:?}");
    }
    assert_eq!(
        shop.run("order create one.json").code,
        0,
        "create accepts the same file as validate"
    );
    assert_eq!(shop.server.requests().of(parcelo::Operation::CreateOrder).count(), 1);
    // The suggested command accepts both files.
    for file in ["lines.ndjson", "array.json"] {
        let output = shop.run(&format!("order import {file} --labels out"));
        assert_eq!(output.code, 0, "{output:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_csv_file_suggests_an_import() {
    let shop = TestShop::open().await;
    fs::write(shop.dir.path("orders.csv"), b"reference;receiver_name\nA-1;Mar\xeda\n").unwrap();
    for command in ["order create", "order validate"] {
        let file = shop.run(&format!("{command} orders.csv"));
        let piped = shop.dir.run_with(&format!("{command} -"), &[], "reference,name\nA-1,Ana\n");
        for output in [file, piped] {
            assert_eq!((output.code, output.text()), (2, ""), "{output:?}");
            assert!(output.stderr.contains("is a table"), "{output:?}");
            assert!(output.stderr.contains("order import"), "{output:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn damaged_text_is_refused_or_warned_about() {
    let shop = TestShop::open().await;
    for (name, text) in [("lost", "Luis Pe\u{FFFD}a"), ("misread", "Luis PeÃ±a")] {
        let order = order_with("SB-DAMAGED-001", "/receiver/fullName", json!(text));
        shop.dir.write(&format!("{name}.json"), &order);
    }
    let lost = shop.run("order create lost.json -o json");
    assert_eq!(lost.code, 3, "{lost:?}");
    let faults = json!([
        lost.error()["fields"],
        shop.run("order validate lost.json -o json").json()[0]["errors"]
    ]);
    for fault in [&faults[0][0], &faults[1][0]] {
        assert_eq!(fault["code"], "LOST_CHARACTER", "{faults}");
        assert_eq!(fault["field"], "receiver.fullName");
    }
    let valid = shop.run("order validate misread.json -o json");
    let created = shop.run("order create misread.json -o json");
    assert_eq!((valid.code, created.code), (0, 0), "{created:?}");
    for warnings in [&valid.json()[0]["warnings"], &created.json()["warnings"]] {
        let warning = warnings.as_array().unwrap().iter().find(|one| one["code"] == "TEXT_MISREAD");
        assert!(warning.unwrap()["message"].as_str().unwrap().contains("Luis Peña"), "{warnings}");
    }
}

#[test]
fn fields_are_set_in_every_order_that_is_validated() {
    let dir = offline_dir();
    dir.write("two.json", &json!([order("SB-SUCCESS-0001"), order("SB-SUCCESS-0002")]));
    let line = "order validate two.json -o json --set parcelDetails.weightKg";
    assert_eq!(dir.run(&format!("{line}=2.5")).code, 0);
    let wrong = dir.run(&format!("{line}=0"));
    assert_eq!(wrong.code, 3, "{wrong:?}");
    for verdict in wrong.json().as_array().unwrap() {
        assert_eq!(verdict["errors"][0]["field"], "parcelDetails.weightKg");
    }
    let fields = dir.run("order validate --set idempotencyKey=order-1002 -o json");
    assert_eq!((fields.code, &fields.json()[0]["file"]), (3, &json!("--set")), "{fields:?}");
    assert_eq!(dir.run(&format!("{line}x=2")).code, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_misspelt_field_is_named_with_the_missing_one() {
    let shop = TestShop::open().await;
    let misspelt = order("SB-ODD-000001").to_string().replace("receiver", "reciever");
    fs::write(shop.dir.path("odd.json"), misspelt).unwrap();
    let text_output = shop.run("order create odd.json");
    assert!(text_output.stderr.contains("warning: reciever:"), "{text_output:?}");
    let error = shop.run("order create odd.json -o json").error();
    assert_eq!(error["fields"][0]["field"], "receiver");
    assert_eq!(error["warnings"][0]["field"], "reciever");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_corrected_order_succeeds_under_the_same_key() {
    let shop = TestShop::open().await;
    let faulty = order_with("SB-FAULTY-001", "/receiver/address/zipCode", json!("1705"));
    shop.dir.write("order.json", &faulty);
    assert_eq!(shop.run("order create order.json").code, 3);
    shop.dir.write("order.json", &order("SB-FAULTY-001"));
    assert_eq!(shop.run("order create order.json -o json").json()["outcome"], "created");
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_created_if_the_label_cannot_be_saved() {
    let shop = TestShop::open().await;
    fs::create_dir(shop.dir.path("folder")).unwrap();
    for label in ["nowhere/label.pdf", "folder", "order.json/label.pdf", "-"] {
        let output = shop.run(&format!("order create order.json --label {label}"));
        assert_eq!(output.code, 2, "{label}: {output:?}");
        assert_eq!(output.stderr.contains("it is a directory"), label == "folder", "{output:?}");
    }
    assert_eq!(shop.run("track SB-SUCCESS-0001").code, 5);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unsaved_label_says_how_to_get_it() {
    let shop = TestShop::open().await;
    let name = "x".repeat(300);
    let output = shop.run(&format!("order create order.json --label {name} -o json"));
    assert_eq!(output.code, 10, "{output:?}");
    assert_eq!(output.json()["parcel"]["trackingNumber"], "SB-SUCCESS-0001");
    let hint = output.error()["hint"].as_str().unwrap().to_owned();
    assert!(hint.contains("parcelo label get SB-SUCCESS-0001"), "{hint}");
    assert_eq!(shop.run("label get SB-SUCCESS-0001").code, 0);
}

#[test]
fn validate_prints_a_line_for_each_order() {
    let dir = offline_dir();
    let bad = order_with("SB-SUCCESS-0002", "/receiver/address/zipCode", json!("090101"));
    let lines = format!("{}\n\n{bad}\n{{\n", order("SB-SUCCESS-0001"));
    fs::write(dir.path("orders.ndjson"), lines).unwrap();
    let output = dir.run("order validate orders.ndjson -o ndjson");
    assert_eq!(output.code, 3, "{output:?}");
    let verdicts = output.lines();
    assert_eq!(verdicts.len(), 3);
    let expected =
        json!({"file": "orders.ndjson", "index": 0, "valid": true, "errors": [], "warnings": []});
    assert_eq!(verdicts[0], expected);
    let fault = &verdicts[1]["errors"][0];
    assert_eq!((&verdicts[1]["index"], &verdicts[1]["valid"]), (&json!(1), &json!(false)));
    assert_eq!(
        (&fault["field"], &fault["code"]),
        (&json!("receiver.address.zipCode"), &json!("MISMATCH"))
    );
    assert!(fault["message"].is_string() && fault["message_es"].is_string());
    assert_eq!(verdicts[2]["errors"][0]["code"], "MALFORMED_JSON");
    assert_eq!(output.error()["message"], "Invalid orders: 2 of 3.");
}

#[test]
fn validate_reads_arrays_several_files_and_standard_input() {
    let dir = offline_dir();
    dir.write("two.json", &json!([order("SB-SUCCESS-0001"), order("SB-SUCCESS-0002")]));
    let input = order("SB-SUCCESS-0003").to_string();
    let output = dir.run_with("order validate two.json - order.json -o json", &[], &input);
    assert_eq!(output.code, 0, "{output:?}");
    let verdicts = output.json();
    let places: Vec<_> =
        verdicts.as_array().unwrap().iter().map(|v| (&v["file"], &v["index"])).collect();
    let expected = json!([["two.json", 0], ["two.json", 1], ["-", 0], ["order.json", 0]]);
    assert_eq!(json!(places), expected);
    assert!(verdicts.as_array().unwrap().iter().all(|v| v["valid"] == true));
}

#[test]
fn validate_prints_text_and_csv() {
    let dir = offline_dir();
    let mut bad = order("SB-SUCCESS-0002");
    bad["receiver"]["address"]["province"] = Value::Null;
    bad["colour"] = json!("red");
    dir.write("bad.json", &bad);
    let text_output = dir.run("order validate order.json bad.json");
    assert_eq!(text_output.code, 3);
    insta::assert_snapshot!(
        "validate",
        format!("{}---\n{}", text_output.text(), text_output.stderr)
    );
    let csv = dir.run("order validate order.json bad.json -o csv");
    let rows: Vec<_> = csv.text().lines().collect();
    assert_eq!(rows[0], "file,index,valid,severity,field,code,message,suggestion");
    assert_eq!(rows[1], "order.json,0,true,,,,,");
    assert!(rows[2].starts_with("bad.json,0,false,error,receiver.address.province,REQUIRED,"));
    assert!(rows[3].starts_with("bad.json,0,false,warning,colour,UNKNOWN_FIELD,"));
}

#[test]
fn validate_refuses_unreadable_input() {
    let dir = offline_dir();
    fs::write(dir.path("empty.json"), " \n").unwrap();
    for (line, code) in [
        ("order validate missing.json", 2),
        ("order validate order.json missing.json", 2),
        ("order validate .", 2),
        ("order validate - -", 2),
        ("order validate", 2),
        ("order validate empty.json", 3),
    ] {
        let output = dir.run(line);
        assert_eq!(output.code, code, "{line}: {output:?}");
        assert!(!output.stderr.is_empty(), "{line}");
    }
}

#[test]
fn every_template_is_valid_unchanged() {
    let dir = offline_dir();
    for country in ["EC", "MX", "CO", "PE", "US", "CA", "ES", "JP", "GB"] {
        let sample = dir.run(&format!("order template --country {country}"));
        assert_eq!(sample.code, 0, "{sample:?}");
        assert_eq!(sample.json()["receiver"]["address"]["country"], country);
        let verdict = dir.run_with("order validate - -o json", &[], sample.text());
        assert_eq!(verdict.code, 0, "{country}: {verdict:?}");
    }
    assert_eq!(dir.run("order template").json()["receiver"]["address"]["country"], "EC");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_template_copies_an_earlier_order_with_a_new_key() {
    let shop = TestShop::open().await;
    let mut sent = order("SB-SUCCESS-0001");
    sent["externalOrderId"] = json!("shop-1");
    sent["customerReference"] = json!("PO-1");
    shop.dir.write("new.json", &sent);
    assert_eq!(shop.run("order create new.json").code, 0);
    let copy = shop.run("order template --from SB-SUCCESS-0001");
    assert_eq!(copy.code, 0, "{copy:?}");
    assert!(copy.stderr.contains("The order of SB-SUCCESS-0001"), "{copy:?}");
    let copied = copy.json();
    assert_ne!(copied["idempotencyKey"], sent["idempotencyKey"]);
    for dropped in ["trackingNumber", "externalOrderId"] {
        assert_eq!(copied[dropped], Value::Null, "{dropped}");
    }
    for kept in ["customerReference", "sender", "receiver", "customsInfo"] {
        assert_eq!(copied[kept], sent[kept], "{kept}");
    }
    let created = shop.dir.run_with("order create - -o json", &[], copy.text());
    assert_eq!(created.code, 0, "{created:?}");
    assert_eq!(shop.run("parcel list -o json").json()["meta"]["total"], 2);

    shop.run("order template --from SB-UNKNOWN-0001 -o json").assert_error(5, "PARCEL_NOT_FOUND");
    assert_eq!(shop.run("order template --from shop-1").code, 3, "it is no tracking number");
    for other in ["--country CO", "--csv"] {
        let both = shop.run(&format!("order template --from SB-SUCCESS-0001 {other}"));
        assert_eq!(both.code, 2, "{both:?}");
    }
    let spanish = shop.run("order template --from SB-SUCCESS-0001 --lang es");
    assert!(spanish.stderr.contains("El pedido de SB-SUCCESS-0001"), "{spanish:?}");
}

#[test]
fn a_template_has_a_new_key_and_an_explanation() {
    let dir = offline_dir();
    let (one, other) = (dir.run("order template"), dir.run("order template --lang es"));
    assert_ne!(one.json()["idempotencyKey"], other.json()["idempotencyKey"]);
    let name = |language| CountryCode::EC.name(language);
    assert!(
        one.stderr.contains(&format!("sample order, destination: {}", name(parcelo::Language::En)))
    );
    assert!(other.stderr.contains("pedido de ejemplo"), "{other:?}");
    assert_eq!(dir.run("order template -o json").stderr, "");
    assert_eq!(dir.run("order template --country mx").code, 0);
    for line in ["order template --country xx", "order template --country XXX"] {
        assert_eq!(dir.run(line).code, 2, "{line}");
    }
    let meant = dir.run("order template --country UK");
    assert!(meant.code == 2 && meant.stderr.contains("Did you mean GB?"), "{meant:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn set_options_change_the_file_or_replace_it() {
    let shop = TestShop::open().await;
    let line = "order create order.json --set idempotencyKey=order-0002 \
        --set trackingNumber=SB-SUCCESS-0002 --set receiver.fullName=Rosa --dry-run -o json";
    let body = shop.run(line).json()[0]["body"].clone();
    assert_eq!(body["receiver"]["fullName"], "Rosa");
    assert_eq!(body["trackingNumber"], "SB-SUCCESS-0002");
    let whole = "order create --set idempotencyKey=order-0003 --set trackingNumber=SB-SUCCESS-0003 \
        --set sender.fullName=Ana --set sender.phone=+13055550100 --set sender.address.line1=NW25 \
        --set sender.address.city=Miami --set sender.address.state=FL --set sender.address.country=US \
        --set receiver.fullName=Luis --set receiver.phone=+593991234567 --set receiver.nationalId=1714307103 \
        --set receiver.idType=cedula --set receiver.address.line1=Amazonas --set receiver.address.city=Quito \
        --set receiver.address.province=Pichincha --set receiver.address.zipCode=170515 \
        --set receiver.address.country=EC --set parcelDetails.weightKg=1.25 \
        --set parcelDetails.declaredValue=45.5 --set customsInfo.description=Shirts \
        --set customsInfo.hsCode=610910 -o json";
    let created = shop.run(whole);
    assert_eq!(created.json()["parcel"]["trackingNumber"], "SB-SUCCESS-0003", "{created:?}");
    let bare = shop.run("order create --set idempotencyKey=order-0004 -o json");
    bare.assert_fault("sender");
    for wrong in ["city", "a..b=c", "products[x].sku=1"] {
        assert_eq!(shop.run(&format!("order create order.json --set {wrong}")).code, 2, "{wrong}");
    }
}
