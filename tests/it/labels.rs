//! `label`: real files, in a folder or on standard output; a label's metadata; reprints. Also `invoice`.

use serde_json::json;

use crate::shop::TestShop;

const PNG: &[u8] = b"\x89PNG\r\n\x1a\n";

/// Replaces the label link, whose port and signature are random.
fn without_link(text: &str) -> String {
    let line = |line: &str| line.split("http://").next().unwrap().to_owned() + "\n";
    text.lines().map(line).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn get_saves_a_valid_file_of_each_format() {
    let shop = TestShop::with_two_parcels().await;
    let table: [(&str, &str, &[u8], &[u8]); 4] = [
        ("", "label-SB-SUCCESS-0001.pdf", b"%PDF-", b"%%EOF"),
        ("-f zpl", "label-SB-SUCCESS-0001.zpl", b"^XA", b"^XZ"),
        ("--format png", "label-SB-SUCCESS-0001.png", PNG, b"IEND\xae\x42\x60\x82"),
        ("-f pdf -d out/labels", "out/labels/label-SB-SUCCESS-0001.pdf", b"%PDF-", b"%%EOF"),
    ];
    for (options, file, head, tail) in table {
        let output = shop.run(&format!("label get SB-SUCCESS-0001 {options}"));
        assert_eq!((output.code, &*output.stderr), (0, ""), "{options}");
        assert!(output.text().contains(file), "{output:?}");
        let content = shop.dir.read(file);
        assert!(content.starts_with(head), "{file}");
        assert!(content.trim_ascii_end().ends_with(tail), "{file}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_files_are_four_by_six_inch_labels_with_the_number() {
    let shop = TestShop::with_two_parcels().await;
    let png = shop.run("label get SB-SUCCESS-0001 -f png -d -").stdout;
    let side = |at: usize| u32::from_be_bytes(png[at..at + 4].try_into().unwrap());
    assert_eq!((side(16), side(20)), (812, 1218));
    let zpl = shop.run("label get SB-SUCCESS-0001 -f zpl -d -");
    for mark in ["^PW812", "^LL1218", "SB-SUCCESS-0001", "SANDBOX"] {
        assert!(zpl.text().contains(mark), "{mark}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn get_reports_saved_files_in_every_format() {
    let shop = TestShop::with_two_parcels().await;
    let one = shop.run("label get SB-SUCCESS-0001 -f zpl -o json").json();
    let bytes = shop.dir.read("label-SB-SUCCESS-0001.zpl").len();
    let expected = json!({"trackingNumber": "SB-SUCCESS-0001", "format": "ZPL",
        "file": "./label-SB-SUCCESS-0001.zpl", "bytes": bytes});
    assert_eq!(one, expected);
    let both = "label get SB-SUCCESS-0001 SB-SUCCESS-0002 -f zpl";
    assert_eq!(shop.run(&format!("{both} -o json")).json().as_array().unwrap().len(), 2);
    assert_eq!(shop.run(&format!("{both} -o ndjson")).lines()[0], expected);
    let csv = shop.run(&format!("{both} -o csv"));
    assert_eq!(csv.text().lines().next(), Some("trackingNumber,format,file,bytes"));
    assert_eq!(csv.text().lines().count(), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn standard_output_gets_only_the_file() {
    let shop = TestShop::with_two_parcels().await;
    shop.run("label get SB-SUCCESS-0001 -f png");
    let raw = shop.run("label get SB-SUCCESS-0001 -f png -d -");
    assert_eq!((raw.code, &*raw.stderr), (0, ""));
    assert_eq!(raw.stdout, shop.dir.read("label-SB-SUCCESS-0001.png"));
    let zpl = shop.run("label get SB-SUCCESS-0001 SB-SUCCESS-0002 -f zpl --dir -");
    assert_eq!(zpl.text().matches("^XA").count(), 2);
    let pdf = shop.run("label get SB-SUCCESS-0001 SB-SUCCESS-0002 --dir -");
    assert_eq!((pdf.code, &*pdf.stdout), (2, &b""[..]));
    assert!(pdf.stderr.contains("hint: Add --format zpl"), "{pdf:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn many_labels_are_merged_in_the_order_of_the_numbers() {
    let shop = TestShop::with_two_parcels().await;
    let both = "label get SB-SUCCESS-0002 SB-SUCCESS-0001";
    let output = shop.run(&format!("{both} --merge day.pdf -o json"));
    assert_eq!((output.code, &*output.stderr), (0, ""));
    let bytes = shop.dir.read("day.pdf");
    let expected =
        json!([{"labels": 2, "format": "PDF", "file": "day.pdf", "bytes": bytes.len()}])[0].clone();
    assert_eq!(output.json(), expected);
    let pdf = String::from_utf8_lossy(&bytes);
    assert_eq!(pdf.matches("/Type/Page/").count(), 2);
    assert_eq!(shop.run(&format!("{both} --merge day.zpl")).code, 0);
    let zpl = shop.dir.read("day.zpl");
    let separate = ["SB-SUCCESS-0002", "SB-SUCCESS-0001"]
        .map(|number| shop.run(&format!("label get {number} -f zpl -d -")).stdout);
    assert_eq!(zpl, separate.concat());
    assert_eq!(shop.run(&format!("{both} -f zpl --merge -")).stdout, zpl);
}

#[tokio::test(flavor = "multi_thread")]
async fn labels_can_be_selected_by_manifest() {
    let shop = TestShop::with_two_parcels().await;
    let both = "SB-SUCCESS-0002 SB-SUCCESS-0001";
    let submitted = shop.run(&format!("manifest submit --awb 176-12345675 {both} -o json")).json();
    let id = submitted["manifestId"].as_str().unwrap();
    let merged = shop.run(&format!("label get --manifest {id} --merge flight.zpl"));
    assert_eq!((merged.code, &*merged.stderr), (0, ""));
    let of_numbers = shop.run(&format!("label get {both} -f zpl --merge -")).stdout;
    assert_eq!(shop.dir.read("flight.zpl"), of_numbers);
    assert_eq!(shop.run(&format!("label get --manifest {id} --dir files")).code, 0);
    assert!(shop.dir.path("files/label-SB-SUCCESS-0001.pdf").exists());
    assert_eq!(shop.run("label get --manifest 176-12345675 -f zpl --merge -").stdout, of_numbers);
    for (line, code, words) in [
        (
            "label get --manifest man_01JGXW5T3M0000000000000000 --merge a.pdf".to_owned(),
            5,
            "manifest",
        ),
        ("label get --manifest 176-12345676 --merge a.pdf".to_owned(), 3, "man_"),
        (format!("label get SB-SUCCESS-0001 --manifest {id}"), 2, "cannot be used with"),
        (format!("label get --manifest {id} --dir -"), 2, "ZPL"),
        ("label get".to_owned(), 2, "NUMBER"),
    ] {
        let output = shop.run(&line);
        assert_eq!(output.code, code, "{output:?}");
        assert!(output.stderr.contains(words), "{words}: {output:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_merge_with_a_missing_label_saves_nothing() {
    let shop = TestShop::with_two_parcels().await;
    let output = shop.run("label get SB-SUCCESS-0001 SB-ABSENT-0001 --merge day.pdf");
    assert_eq!((output.code, &*output.stdout), (6, &b""[..]), "{output:?}");
    assert!(output.stderr.contains("SB-ABSENT-0001"), "{output:?}");
    assert!(output.stderr.contains("Remove these numbers"), "{output:?}");
    assert!(!shop.dir.path("day.pdf").exists());
    for line in ["label get A -f png --merge a", "label get A --merge a.png"] {
        let output = shop.run(&line.replace(" A ", " SB-SUCCESS-0001 "));
        assert_eq!(output.code, 2, "{output:?}");
        assert!(output.stderr.contains("a .pdf or .zpl file"), "{output:?}");
    }
    let dry = shop.run("label get SB-SUCCESS-0001 --merge day.zpl --dry-run");
    assert!(dry.text().contains("/api/v1/labels/batch"), "{dry:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn more_than_a_hundred_labels_are_one_file_too() {
    let shop = TestShop::open().await;
    let numbers = shop.server.seed_parcels(201).await;
    let numbers: Vec<_> = numbers.iter().map(ToString::to_string).collect();
    let get = format!("label get {} --merge", numbers.join(" "));
    for (name, mark) in [("day.zpl", "^XA"), ("day.pdf", "/Type/Page/")] {
        let output = shop.run(&format!("{get} {name} -o json"));
        assert_eq!((output.code, &*output.stderr), (0, ""), "{output:?}");
        let file = shop.dir.read(name);
        let saved = &output.json();
        assert_eq!((&saved["labels"], &saved["bytes"]), (&json!(201), &json!(file.len())));
        assert_eq!(String::from_utf8_lossy(&file).matches(mark).count(), 201, "{name}");
        let format = name.rsplit('.').next().unwrap();
        let printed = shop.run(&format!("{get} - --format {format}")).stdout;
        assert!(printed == file, "{name}");
    }
    let last = numbers.last().unwrap();
    let last = shop.run(&format!("label get {last} -f zpl -d -")).stdout;
    assert!(shop.dir.read("day.zpl").ends_with(&last), "in their order");
    // One label is missing, so there is no file.
    assert_eq!(shop.run(&format!("order void {}", numbers[150])).code, 0);
    let output = shop.run(&format!("{get} other.pdf"));
    assert_eq!(output.code, 6, "{output:?}");
    assert!(output.stderr.contains(&numbers[150]), "{output:?}");
    assert!(!shop.dir.path("other.pdf").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn get_refuses_unknown_numbers_and_unwritable_targets() {
    let shop = TestShop::with_two_parcels().await;
    for (line, code) in [
        ("label get SB-UNKNOWN-01", 5),
        ("label get SB-UNKNOWN-01 SB-UNKNOWN-02", 5),
        ("label get SB-SUCCESS-0001 SB-UNKNOWN-01", 10),
        ("label get short", 3),
        ("label get", 2),
        ("label get SB-SUCCESS-0001 -f jpg", 2),
        ("label get SB-SUCCESS-0001 -d order.json", 2),
        ("label get SB-SUCCESS-0001 -o folder", 2),
    ] {
        assert_eq!(shop.run(line).code, code, "{line}");
    }
    for number in ["SB-UNKNOWN-01", "SB-UNKNOWN-01 SB-UNKNOWN-02"] {
        for command in ["label", "invoice"] {
            assert_eq!(shop.run(&format!("{command} get {number} -d new/deep")).code, 5);
            assert!(!shop.dir.path("new").exists(), "{command} {number}");
        }
    }
    assert_eq!(shop.run("label get SB-SUCCESS-0001 SB-UNKNOWN-01 -d new/deep").code, 10);
    assert!(shop.dir.path("new/deep/label-SB-SUCCESS-0001.pdf").exists());
    let hint = shop.run("label get SB-SUCCESS-0001 -o folder").stderr;
    assert!(hint.contains("--dir"), "{hint}");
}

#[tokio::test(flavor = "multi_thread")]
async fn show_describes_a_label_even_after_a_void() {
    let shop = TestShop::with_two_parcels().await;
    let text_output = shop.run("label show SB-SUCCESS-0001");
    assert_eq!((text_output.code, &*text_output.stderr), (0, ""));
    insta::assert_snapshot!("label", without_link(text_output.text()));
    assert!(text_output.text().contains("sig="), "{text_output:?}");
    let label = shop.run("label show SB-SUCCESS-0001 -o json").json();
    assert_eq!((&label["version"], &label["reprintCount"]), (&json!(1), &json!(0)));
    assert!(label["labelId"].as_str().unwrap().starts_with("lbl_"));
    assert_eq!(shop.run("label show SB-SUCCESS-0001 -o ndjson").lines(), [label]);
    for format in ["json", "ndjson", "csv"] {
        let facts = shop.run(&format!("label show SB-SUCCESS-0001 -o {format}"));
        assert!(!facts.text().contains("Luis Paredes"), "{facts:?}");
    }

    assert_eq!(shop.run("order void SB-SUCCESS-0002").code, 0);
    let void = shop.run("label show SB-SUCCESS-0002");
    assert_eq!(void.code, 0);
    assert!(void.text().contains("Voided") && void.stderr.contains("is void"), "{void:?}");
    let csv = shop.run("label show SB-SUCCESS-0002 -o csv");
    let rows: Vec<_> = csv.text().lines().collect();
    let heading = "labelId,trackingNumber,status,version,labelUrl,createdAt,lastReprintedAt,voidedAt,idempotencyKey";
    assert_eq!(rows[0], heading);
    let voided = ",SB-SUCCESS-0002,VOIDED,1,,2026-01-05T08:00:00.000Z,,2026-01-05T08:00:00.000Z,";
    assert!(rows[1].ends_with(voided), "{csv:?}");
    let spanish = shop.run("label show SB-SUCCESS-0002 --lang es");
    assert!(spanish.text().contains("Anulado (VOIDED)"), "{spanish:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reprint_creates_one_marked_version_per_key() {
    let shop = TestShop::with_two_parcels().await;
    let output = shop.run("label reprint SB-SUCCESS-0001 --reason Torn -o json");
    assert_eq!((output.code, &*output.stderr), (0, ""));
    let label = output.json();
    assert_eq!(
        (&label["outcome"], &label["version"], &label["reprintCount"]),
        (&json!("created"), &json!(2), &json!(1))
    );
    let key = label["idempotencyKey"].as_str().unwrap();
    let again = format!("label reprint SB-SUCCESS-0001 --reason Torn --idempotency-key {key}");
    let replayed = shop.run(&format!("{again} -o json")).json();
    assert_eq!((&replayed["outcome"], &replayed["version"]), (&json!("replayed"), &json!(2)));
    let text_output = shop.run(&again);
    assert!(text_output.text().contains(key), "{text_output:?}");
    for note in ["no new version", "parcelo label get SB-SUCCESS-0001"] {
        assert!(text_output.stderr.contains(note), "{text_output:?}");
    }
    let zpl = shop.run("label get SB-SUCCESS-0001 -f zpl -d -");
    assert!(zpl.text().contains("R1"), "{zpl:?}");
    let csv = shop.run("label reprint SB-SUCCESS-0001 --idempotency-key another-1 -o csv");
    assert!(csv.text().lines().nth(1).unwrap().contains(",ACTIVE,3,"), "{csv:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn show_and_reprint_fail_with_the_exit_code_of_the_reason() {
    let shop = TestShop::with_two_parcels().await;
    assert_eq!(shop.run("order void SB-SUCCESS-0002").code, 0);
    let long = "x".repeat(256);
    let table = [
        ("label show SB-UNKNOWN-01".to_owned(), 5, "PARCEL_NOT_FOUND"),
        ("label show short".to_owned(), 3, "VALIDATION_FAILED"),
        ("label reprint SB-UNKNOWN-01".to_owned(), 5, "PARCEL_NOT_FOUND"),
        ("label reprint SB-SUCCESS-0002".to_owned(), 6, "LABEL_VOIDED"),
        ("label reprint short".to_owned(), 3, "VALIDATION_FAILED"),
        (format!("label reprint SB-SUCCESS-0001 --reason {long}"), 3, "VALIDATION_FAILED"),
        ("label reprint SB-SUCCESS-0001 --idempotency-key x".to_owned(), 3, "VALIDATION_FAILED"),
    ];
    for (line, exit, code) in table {
        let output = shop.run(&format!("{line} -o json"));
        output.assert_error(exit, code);
        assert!(output.error()["hint"].is_string(), "{line}: no hint: {output:?}");
    }
    assert_eq!(shop.run("label show SB-SUCCESS-0001 -o json").json()["version"], 1);
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread")]
async fn a_label_is_opened_only_on_a_terminal_by_the_system() {
    use std::os::unix::fs::PermissionsExt;
    let shop = TestShop::with_two_parcels().await;
    let line = "label show SB-SUCCESS-0001 --open";
    let piped = shop.run(line);
    assert_eq!(piped.code, 2);
    assert!(piped.stderr.contains("needs a terminal"), "{piped:?}");

    // A PATH with `script` and its shell, but without xdg-open.
    let bin = shop.dir.path("bin");
    std::fs::create_dir(&bin).unwrap();
    for program in ["script", "sh"] {
        std::os::unix::fs::symlink(format!("/usr/bin/{program}"), bin.join(program)).unwrap();
    }
    let path = [("PATH", bin.to_str().unwrap()), ("TMPDIR", bin.to_str().unwrap())];
    let none = shop.dir.run_on_terminal_with(line, &path, "");
    assert_eq!(none.code, 2);
    assert!(none.text().contains("xdg-open is not installed"), "{none:?}");

    let opener = bin.join("xdg-open");
    std::fs::write(&opener, "#!/bin/sh\n/bin/cp \"$1\" opened.pdf\n").unwrap();
    std::fs::set_permissions(&opener, PermissionsExt::from_mode(0o755)).unwrap();
    let in_ci = shop.dir.run_on_terminal_with(line, &[path[0], path[1], ("CI", "true")], "");
    assert_eq!(in_ci.code, 2, "{in_ci:?}");
    assert!(!shop.dir.path("opened.pdf").exists());
    let output = shop.dir.run_on_terminal_with(line, &path, "");
    assert_eq!(output.code, 0, "{output:?}");
    assert!(output.text().contains("label-SB-SUCCESS-0001.pdf"), "{output:?}");
    assert!(shop.dir.read("opened.pdf").starts_with(b"%PDF-"));
    std::fs::write(&opener, "#!/bin/sh\nexit 3\n").unwrap();
    let failed = shop.dir.run_on_terminal_with(line, &path, "");
    assert!(failed.code == 2 && failed.text().contains("xdg-open failed"), "{failed:?}");
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread")]
async fn an_unsaved_label_is_reported_with_a_reason() {
    let shop = TestShop::open().await;
    shop.run("order create order.json");
    for lang in ["en", "es"] {
        let output = shop.run(&format!("label get SB-SUCCESS-0001 --dir /proc/self --lang {lang}"));
        assert_eq!(output.code, 2, "{output:?}");
        assert!(output.stderr.contains("(os error"), "{output:?}");
    }
}

#[cfg(unix)]
#[tokio::test(flavor = "multi_thread")]
async fn a_label_is_written_to_pipes_and_through_symlinks() {
    use std::{fs, os::unix::fs::FileTypeExt, process::Command};
    let shop = TestShop::open().await;
    let pipe = shop.dir.path("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let reader = std::thread::spawn({
        let pipe = pipe.clone();
        move || fs::read(pipe).unwrap()
    });
    let output = shop.run("order create order.json --label pipe");
    assert_eq!(output.code, 0, "{output:?}");
    assert!(fs::symlink_metadata(&pipe).unwrap().file_type().is_fifo(), "it is still a pipe");
    assert!(reader.join().unwrap().starts_with(b"%PDF"));

    fs::write(shop.dir.path("old.pdf"), "old").unwrap();
    std::os::unix::fs::symlink("old.pdf", shop.dir.path("link.pdf")).unwrap();
    assert_eq!(shop.run("order create order.json --label link.pdf").code, 0);
    assert!(fs::symlink_metadata(shop.dir.path("link.pdf")).unwrap().is_symlink());
    assert!(fs::read(shop.dir.path("old.pdf")).unwrap().starts_with(b"%PDF"));
}

#[tokio::test(flavor = "multi_thread")]
async fn invoices_are_saved_like_labels() {
    let shop = TestShop::with_two_parcels().await;
    let output = shop.run("invoice get SB-SUCCESS-0001 SB-SUCCESS-0002 -d out/papers -o json");
    assert_eq!((output.code, &*output.stderr), (0, ""));
    let file = "out/papers/invoice-SB-SUCCESS-0002.pdf";
    let bytes = shop.dir.read(file);
    let expected = json!({"trackingNumber": "SB-SUCCESS-0002", "format": "PDF", "file": file,
        "bytes": bytes.len()});
    assert_eq!(output.json()[1], expected);
    assert!(bytes.starts_with(b"%PDF-") && bytes.trim_ascii_end().ends_with(b"%%EOF"));
    let raw = shop.run("invoice get SB-SUCCESS-0002 -d -");
    assert_eq!((raw.code, &raw.stdout), (0, &bytes));
    let two = shop.run("invoice get SB-SUCCESS-0001 SB-SUCCESS-0002 -d -");
    assert_eq!((two.code, two.stdout.len()), (2, 0));
    assert!(two.stderr.contains("--dir"), "{two:?}");
    assert_eq!(shop.run("order void SB-SUCCESS-0002").code, 0);
    for (line, code) in [
        ("invoice get SB-UNKNOWN-01", 5),
        ("invoice get SB-SUCCESS-0002", 6),
        ("invoice get SB-SUCCESS-0001 SB-SUCCESS-0002", 10),
        ("invoice get short", 3),
        ("invoice get", 2),
    ] {
        assert_eq!(shop.run(line).code, code, "{line}");
    }
}
