//! Files as people and programs write them: encodings, separators, damaged values, and files without orders.

use std::fs;

use serde_json::json;

use super::{HEADINGS, assert_outcomes, outcomes, row, rows, sheet};
use crate::shop::{RunOutput, TestShop, Workdir, order};

const DRY_RUN: &str = "order import orders.csv --labels out --dry-run -o ndjson";

/// Checks a file with this content, and sends nothing.
fn check(dir: &Workdir, content: impl AsRef<[u8]>) -> RunOutput {
    fs::write(dir.path("orders.csv"), content).unwrap();
    dir.run(DRY_RUN)
}

#[test]
fn a_file_is_read_in_every_encoding_and_line_ending() {
    let dir = Workdir::new("", "");
    let plain = sheet(&rows(2));
    let semicolons = plain.replace(',', ";").replace("45.5", "45,5").replace("1.25", "1,25");
    let paths = plain.replace("receiver_zip", "receiver.address.zipCode");
    let own = HEADINGS.replace("customs_hs_code", "Customs HS Code,# mine,");
    let (one, two) = (order("SB-A-000001"), order("SB-B-000001"));
    let lines = format!("{one}\n\n{two}\n");
    let announced = format!("sep=;\n{semicolons}");
    let table: [(&str, &str, Vec<u8>); 16] = [
        ("plain", "orders.csv", plain.clone().into()),
        ("marked", "orders.csv", format!("\u{feff}{plain}").into()),
        ("from Windows", "orders.csv", plain.replace('\n', "\r\n").into()),
        ("from an old Mac", "orders.csv", plain.replace('\n', "\r").into()),
        ("without a last line break", "orders.csv", plain.trim_end().to_owned().into()),
        ("with semicolons", "orders.csv", semicolons.into()),
        ("with bars", "orders.csv", plain.replace(',', "|").into()),
        ("for Excel", "orders.csv", announced.clone().into()),
        ("for Excel, marked", "orders.csv", format!("\u{feff}SEP=,\r\n{plain}").into()),
        ("for Excel on an old Mac", "orders.csv", announced.replace('\n', "\r").into()),
        ("with tabs", "orders.tsv", plain.replace(',', "\t").into()),
        ("with the API's names", "orders.csv", paths.into()),
        ("with notes", "orders.csv", format!("{own}\n{},x,y\n{}\n", row("A"), row("B")).into()),
        ("with blank rows", "orders.csv", plain.replace('\n', "\n,,,,\n\n").into()),
        ("as lines", "orders.ndjson", lines.clone().into()),
        ("as lines, marked, of no name", "orders", format!("\u{feff}{lines}").into()),
    ];
    for (how, name, content) in table {
        fs::write(dir.path(name), &content).unwrap();
        let output = dir.run(&format!("order import {name} --labels out --dry-run -o ndjson"));
        assert_eq!((output.code, outcomes(&output).len()), (0, 2), "{how}: {output:?}");
        let input = String::from_utf8(content).unwrap();
        let output = dir.run_with("order import - --labels out --dry-run -o ndjson", &[], &input);
        assert_eq!(
            (output.code, outcomes(&output).len()),
            (0, 2),
            "{how}, from a pipe: {output:?}"
        );
    }
    assert!(!dir.path("out").exists());
}

#[test]
fn a_file_from_excel_keeps_its_accents_and_names_its_encoding() {
    let dir = Workdir::new("", "");
    let text = sheet(&rows(1)).replace("Luis Paredes", "Íñigo Peña");
    let latin: Vec<u8> = text.chars().map(|c| u8::try_from(u32::from(c)).unwrap()).collect();
    let wide = |mark: char| -> Vec<u8> {
        format!("{mark}{text}").encode_utf16().flat_map(u16::to_le_bytes).collect()
    };
    let import = "order import orders.csv --labels out --dry-run -o ndjson";
    for (content, option, note) in [
        (latin.clone(), "", "windows-1252, because it is not UTF-8. If names have wrong letters"),
        (wide('\u{feff}'), "", "utf-16, as its byte order mark says.\n"),
        (latin.clone(), " --encoding windows-1252", ""),
        (text.clone().into_bytes(), "", ""),
    ] {
        fs::write(dir.path("orders.csv"), content).unwrap();
        let output = dir.run(&format!("{import}{option}"));
        assert_outcomes(&output, 0, &["valid"]);
        // A program does not get the text for people.
        let output = dir.run(&format!("order import orders.csv --labels out --dry-run{option}"));
        assert_eq!(output.stderr.contains("is read as"), !note.is_empty(), "{output:?}");
        assert!(output.stderr.contains(note), "{note}: {output:?}");
    }
    // The user's choice is followed, and no character is guessed.
    fs::write(dir.path("orders.csv"), latin).unwrap();
    let output = dir.run(&format!("{import} --encoding utf-8"));
    assert_eq!(output.lines()[0]["errors"][0]["code"], "NOT_UTF8", "{output:?}");
}

#[test]
fn numbers_changed_by_a_spreadsheet_are_repaired_or_refused() {
    let dir = Workdir::new("", "");
    let lost = row("A-1").replace("+593991234567", "593991234567");
    let short = row("A-2").replace("+593991234567", "\"5,93991E+11\"");
    let output = check(&dir, sheet(&[lost, short]));
    assert_eq!(outcomes(&output), ["valid", "invalid"], "{output:?}");
    let [repaired, named] = &output.lines()[..] else { panic!("{output:?}") };
    assert_eq!(repaired["warnings"][0]["code"], "PHONE_REPAIRED");
    assert!(repaired["warnings"][0]["message"].as_str().unwrap().contains("+593991234567"));
    let errors = named["errors"].as_array().unwrap();
    assert_eq!(errors.len(), 1, "{named}");
    assert_eq!(errors[0]["code"], "SHORTENED_NUMBER");
    assert_eq!(errors[0]["column"], "receiver_phone");
    // As references, the shortened numbers would be one order.
    let short = ["1,00E+12", "1,00E+12"].map(|reference| row(&format!("\"{reference}\"")));
    let output = check(&dir, sheet(&short));
    assert_eq!(outcomes(&output), ["invalid", "invalid"], "{output:?}");
}

#[test]
fn text_marks_are_removed_and_currency_codes_suggested() {
    let dir = Workdir::new("", "");
    let marked = row("A-1").replace(",170515,", ",=\"170515\",").replace("A-1", "=\"A-1\"");
    let sign = |sign: &str| format!("{},{sign}", row("A-2"));
    let rows = format!("{HEADINGS},currency\n{marked},USD\n{}\n{}\n", sign("us$"), sign("$"));
    let output = check(&dir, rows);
    assert_eq!(outcomes(&output), ["valid", "invalid", "invalid"], "{output:?}");
    let lines = output.lines();
    assert_eq!(lines[0]["reference"], "A-1");
    assert_eq!(lines[1]["errors"][0]["suggestion"], "USD", "{output:?}");
    assert_eq!(lines[2]["errors"][0]["suggestion"], json!(null), "{output:?}");
}

#[test]
fn damaged_text_is_refused_or_warned_about() {
    let dir = Workdir::new("", "");
    let lost = row("A-1").replace("Luis Paredes", "Luis Pe\u{FFFD}a");
    let misread = row("A-2").replace("Luis Paredes", "Luis PeÃ±a");
    let output = check(&dir, sheet(&[lost, misread]));
    assert_eq!(outcomes(&output), ["invalid", "valid"], "{output:?}");
    let [lost, misread] = &output.lines()[..] else { panic!("{output:?}") };
    assert_eq!(lost["errors"][0]["code"], "LOST_CHARACTER");
    assert_eq!(lost["errors"][0]["column"], "receiver_name");
    assert_eq!(misread["warnings"][0]["code"], "TEXT_MISREAD");
    assert!(misread["warnings"][0]["message"].as_str().unwrap().contains("Luis Peña"), "{misread}");
    assert_ne!(misread["warnings"][0]["message"], misread["warnings"][0]["message_es"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_warning_is_shown_and_written_to_the_results() {
    let shop = TestShop::open().await;
    // The last digit of the cédula is a check digit.
    let wrong = row("A-1").replace("1714307103", "1714307104");
    shop.write_file("orders.csv", sheet(&[wrong, row("A-2")]));
    let output = shop.import("");
    assert_eq!(output.code, 0, "{output:?}");
    let shown = String::from_utf8(output.stdout).unwrap();
    assert!(shown.contains("receiver.nationalId: warning: "), "{shown}");
    let results = shop.results();
    assert!(results[0]["warnings"].starts_with("receiver.nationalId: "), "{results:?}");
    assert_ne!(results[0]["warnings"], results[0]["warnings_es"]);
    assert_eq!((results[0]["outcome"].as_str(), results[1]["warnings"].as_str()), ("created", ""));
    // Only numbers are written to the pipe; the rest goes to the terminal.
    let numbers = shop.import("--resume -o numbers");
    assert_eq!(numbers.text().lines().count(), 2, "{numbers:?}");
    let dry = shop.run("order import orders.csv --labels other --dry-run -o numbers");
    assert!(dry.text().is_empty() && dry.stderr.contains("nationalId: warning: "), "{dry:?}");
}

#[test]
fn a_sample_file_can_be_imported() {
    let dir = Workdir::new("", "");
    let sample = dir.run("order template --csv");
    assert_eq!(sample.code, 0);
    let output = check(&dir, &sample.stdout);
    assert_outcomes(&output, 0, &["valid"]);
    assert_eq!(output.lines()[0]["warnings"], json!([]));
}

#[test]
fn rows_are_numbered_as_in_a_spreadsheet() {
    let dir = Workdir::new("", "");
    let note = row("A-1").replace("Cotton shirts", "\"Cotton\nshirts\"");
    let content = format!("{HEADINGS}\n\n{note}\n,,\n{}\n", row("A-2").replace(",EC,", ",XX,"));
    for content in [
        content.clone(),
        content.replace('\n', "\r\n"),
        content.trim_end().to_owned(),
        content.trim_end().replace('\n', "\r\n"),
        content.replace('\n', "\r"),
        // A spreadsheet hides this line.
        format!("sep=,\r\n{}", content.replace('\n', "\r\n")),
    ] {
        let output = check(&dir, content);
        let lines = output.lines();
        let numbers: Vec<_> = lines.iter().map(|line| line["row"].as_u64().unwrap()).collect();
        assert_eq!(numbers, [3, 5], "{output:?}");
    }
}

#[test]
fn products_and_their_faults_are_in_numbered_columns() {
    let dir = Workdir::new("", "");
    let headings =
        format!("{HEADINGS},product_quantity,product_value,product_3_quantity,product_3_value");
    let content = format!("{headings}\n{},2,10,1,five\n{},1,20,,\n", row("A-1"), row("A-2"));
    let output = check(&dir, content);
    assert_eq!(outcomes(&output), ["invalid", "valid"], "{output:?}");
    let fault = &output.lines()[0]["errors"][0];
    assert_eq!(fault["column"], "product_3_value");
    assert_eq!(fault["field"], "products[1].unitFobValue");
}

#[test]
fn a_file_without_orders_is_refused_with_the_reason() {
    let dir = Workdir::new("", "");
    let unmarked: Vec<u8> = HEADINGS.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let table: [(Vec<u8>, i32, &str); 9] = [
        (Vec::new(), 3, "contains no orders"),
        (b"\xef\xbb\xbf\r\n".to_vec(), 3, "contains no orders"),
        (format!("{HEADINGS}\n").into(), 3, "contains no orders"),
        (
            sheet(&rows(1)).replace("sender_name", "sendr_name").into(),
            3,
            "Did you mean sender_name?",
        ),
        (
            sheet(&rows(1)).replace("reference", "# reference").into(),
            3,
            "reference: Missing column",
        ),
        (sheet(&rows(1)).replace("sender_zip", "Sender Name").into(), 3, "Repeated column"),
        (b"PK\x03\x04\x14\0".to_vec(), 2, ".xlsx"),
        (unmarked, 2, "UTF-16"),
        (b"\x7fELF\x02\x01\x00\xff\xfe\n\x00\n".to_vec(), 2, "not text"),
    ];
    for (content, code, text) in table {
        fs::write(dir.path("orders.csv"), content).unwrap();
        let output = dir.run("order import orders.csv --labels out --dry-run");
        assert_eq!(output.code, code, "{text}: {output:?}");
        assert!(
            output.stderr.contains(text) && output.stderr.contains("hint:"),
            "{text}: {output:?}"
        );
    }
    for name in ["missing.csv", "."] {
        let output = dir.run(&format!("order import {name} --labels out --dry-run"));
        assert_eq!(output.code, 2, "{output:?}");
        assert!(output.stderr.contains("hint:"), "{output:?}");
    }
    let spanish = dir.run("order import missing.csv --labels out --dry-run --lang es").stderr;
    assert!(spanish.contains("no existe"), "{spanish}");
}

#[test]
fn a_malformed_json_document_is_reported_once() {
    let dir = Workdir::new("", "");
    let orders = ["SB-A-000001", "SB-A-000002"].map(order);
    let [one, two] = [json!(orders[0]), json!(orders)]
        .map(|document| serde_json::to_string_pretty(&document).unwrap());
    let import = "order import orders.json --labels out --dry-run -o ndjson";
    let marked = format!("\u{feff}\n{}", one.replace('\n', "\r\n"));
    for (content, count) in [(&one, 1), (&marked, 1), (&two, 2), (&json!(orders).to_string(), 2)] {
        fs::write(dir.path("orders.json"), content).unwrap();
        let output = dir.run(import);
        assert_outcomes(&output, 0, &vec!["valid"; count]);
        assert_eq!(output.lines()[count - 1]["row"], count);
    }
    fs::write(dir.path("orders.json"), two.trim_end_matches(']')).unwrap();
    let output = dir.run(import);
    assert_eq!((output.code, &*output.stdout), (3, &b""[..]), "{output:?}");
    assert_eq!(output.error()["fields"][0]["code"], "MALFORMED_JSON", "{output:?}");
    fs::write(dir.path("orders.json"), "[]").unwrap();
    assert!(dir.run(import).error()["message"].as_str().unwrap().contains("no orders"));
}

#[test]
fn an_unreadable_row_does_not_hide_the_others() {
    let dir = Workdir::new("", "");
    let accent = row("A-2").replace("Luis", "Jos\u{e9}");
    let latin: Vec<u8> = accent.chars().map(|c| u8::try_from(u32::from(c)).unwrap()).collect();
    // If other rows are UTF-8, a row that is not counts as damaged, not as another encoding.
    let many = format!("{},one,too many", row("A-3"));
    let start = format!("{HEADINGS}\n{}\n", row("A-1"));
    let end = format!("\n{many}\n{}\n", row("A-4").replace("Luis", "Jos\u{e9}"));
    let output = check(&dir, [start.as_bytes(), &latin, end.as_bytes()].concat());
    assert_eq!(outcomes(&output), ["valid", "invalid", "invalid", "valid"], "{output:?}");
    let fault = |line: usize| output.lines()[line]["errors"][0].clone();
    assert_eq!(
        (&fault(1)["code"], &fault(1)["column"]),
        (&json!("NOT_UTF8"), &json!("receiver_name"))
    );
    assert_eq!(fault(2)["code"], "TOO_MANY_CELLS");

    let long = format!("{{\"a\":\"{}\"}}", "x".repeat(2 << 20));
    let lines = format!("{long}\nnonsense\n[1]\n{}\n{}", order("SB-A-000001"), json!({}));
    fs::write(dir.path("orders.ndjson"), lines).unwrap();
    let output = dir.run("order import orders.ndjson --labels out --dry-run -o ndjson");
    let expected = ["invalid", "invalid", "invalid", "valid", "invalid"];
    assert_eq!(outcomes(&output), expected, "{output:?}");
    assert_eq!(output.lines()[0]["errors"][0]["code"], "TOO_LONG");
}

#[test]
fn an_unclosed_quote_is_reported_at_its_row() {
    let dir = Workdir::new("", "");
    let open = row("A-2").replace("Luis", "\"Luis");
    for end in ["", "\n", "\n\n"] {
        for line_break in ["\n", "\r\n", "\r"] {
            let content = format!("{HEADINGS}\n{}\n{open}\n{}{end}", row("A-1"), row("A-3"));
            let output = check(&dir, content.replace('\n', line_break));
            assert_eq!(outcomes(&output), ["valid", "invalid"], "{output:?}");
            let line = &output.lines()[1];
            assert_eq!(line["row"], 3, "{line_break:?}{end:?}: {line}");
            assert_eq!(line["errors"][0]["code"], "QUOTE_NOT_CLOSED", "{line}");
        }
    }
}

#[test]
fn a_quote_that_spans_rows_is_reported_with_its_rows() {
    let dir = Workdir::new("", "");
    let (open, close) =
        (row("A-1").replace("Luis", "\"Luis"), row("A-3").replace("Luis", "Luis\""));
    let content = format!("{HEADINGS}\n{open}\n{}\n{close}\n{}\n", row("A-2"), row("A-4"));
    for content in [content.clone(), content.replace('\n', "\r\n")] {
        let output = check(&dir, content);
        assert_eq!(outcomes(&output), ["invalid", "valid"], "{output:?}");
        let errors = output.lines()[0]["errors"].as_array().unwrap().clone();
        let late = errors.iter().find(|error| error["code"] == "CELL_OF_SEVERAL_LINES").unwrap();
        assert!(late["message"].as_str().unwrap().contains("further rows"), "{late}");
        assert!(late["message_es"].as_str().unwrap().contains("parecen más filas"), "{late}");
    }
}

#[test]
fn a_cell_of_several_lines_is_valid() {
    let dir = Workdir::new("", "");
    let noted =
        format!("{HEADINGS},#note\n{},\"ring twice,\nthen wait\"\n{},x\n", row("A-1"), row("A-2"));
    for content in [noted.clone(), noted.replace('\n', "\r\n")] {
        let output = check(&dir, content);
        assert_outcomes(&output, 0, &["valid"; 2]);
    }
    // Now the same row has another fault.
    let output = check(&dir, noted.replace("1.25", "much"));
    assert_eq!(output.lines()[0]["errors"].as_array().unwrap().len(), 1, "{output:?}");
}

#[test]
fn a_cell_that_is_not_a_number_is_reported_by_column() {
    let dir = Workdir::new("", "");
    let headings = format!("{HEADINGS},product_quantity,product_value");
    let cells = |weight: &str, quantity: &str| {
        format!("{},{quantity},5", row("A-1").replace(",1.25,", &format!(",{weight},")))
    };
    for (weight, quantity, column, text) in [
        ("1e9", "1", "weight_kg", "Not a number"),
        ("\"1,250\"", "1", "weight_kg", "may be 1250 or 1.250"),
        ("\"1,250.5\"", "1", "weight_kg", "Not a number"),
        ("1.25", "two", "product_quantity", "Not a number"),
        ("1.25", "2.5", "product_quantity", "whole number"),
        ("0", "1", "weight_kg", "more than 0"),
    ] {
        let content = format!("{headings}\n{}\n", cells(weight, quantity));
        let output = check(&dir, content);
        let faults = output.lines()[0]["errors"].clone();
        let fault = &faults[0];
        assert_eq!(fault["column"], column, "{weight} {quantity}: {faults}");
        let message = fault["message"].as_str().unwrap();
        assert!(message.contains(text) && !message.contains("JSON"), "{message}");
        assert_ne!(fault["message"], fault["message_es"]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unwritable_target_exits_with_2_before_sending() {
    let shop = TestShop::with_rows(1).await;
    shop.write_file("file", "");
    for place in ["file", "file/out", "/proc/nowhere"] {
        let output = shop.run(&format!("order import orders.csv --labels {place}"));
        assert_eq!((output.code, &*output.stdout), (2, &b""[..]), "{place}: {output:?}");
        assert!(!output.stderr.contains("File exists"), "{place}: {output:?}");
    }
    let odd = shop.run("order import orders.csv --labels out --concurrency 0");
    assert_eq!(odd.code, 2, "{odd:?}");
    assert_eq!(shop.server.requests().count(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn orders_in_ndjson_keep_their_idempotency_keys() {
    let shop = TestShop::open().await;
    let mut nameless = order("SB-B-000001");
    nameless.as_object_mut().unwrap().remove("idempotencyKey");
    let mut named = nameless.clone();
    named["externalOrderId"] = json!("ORDER-7");
    named["trackingNumber"] = json!("SB-C-000001");
    let lines = format!("{}\n{nameless}\n{named}\n", order("SB-A-000001"));
    shop.write_file("orders.ndjson", lines);
    let output = shop.run("order import orders.ndjson --labels out -o ndjson");
    assert_outcomes(&output, 10, &["created", "invalid", "created"]);
    let lines = output.lines();
    assert_eq!(lines[0]["idempotencyKey"], "order-SB-A-000001");
    assert_eq!(lines[1]["errors"][0]["field"], "externalOrderId");
    assert_eq!(
        (&lines[2]["reference"], &lines[2]["trackingNumber"]),
        (&json!("ORDER-7"), &json!("SB-C-000001"))
    );
}
