//! `label get`: real files, in a folder or on standard output.

use serde_json::json;

use crate::shop::Shop;

const PNG: &[u8] = b"\x89PNG\r\n\x1a\n";

async fn shop_with_two() -> Shop {
    let shop = Shop::open().await;
    shop.create("SB-SUCCESS-0001");
    shop.create("SB-SUCCESS-0002");
    shop
}

#[tokio::test(flavor = "multi_thread")]
async fn get_saves_a_real_file_of_each_format() {
    let shop = shop_with_two().await;
    let table: [(&str, &str, &[u8], &[u8]); 4] = [
        ("", "label-SB-SUCCESS-0001.pdf", b"%PDF-", b"%%EOF"),
        ("-f zpl", "label-SB-SUCCESS-0001.zpl", b"^XA", b"^XZ"),
        ("--format png", "label-SB-SUCCESS-0001.png", PNG, b"IEND\xae\x42\x60\x82"),
        ("-f pdf -d out/labels", "out/labels/label-SB-SUCCESS-0001.pdf", b"%PDF-", b"%%EOF"),
    ];
    for (options, file, head, tail) in table {
        let ran = shop.run(&format!("label get SB-SUCCESS-0001 {options}"));
        assert_eq!((ran.code, &*ran.stderr), (0, ""), "{options}");
        assert!(ran.text().contains(file), "{ran:?}");
        let content = shop.desk.read(file);
        assert!(content.starts_with(head), "{file}");
        assert!(content.trim_ascii_end().ends_with(tail), "{file}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_files_are_labels_of_four_by_six_inches_with_the_number_on_them() {
    let shop = shop_with_two().await;
    let png = shop.run("label get SB-SUCCESS-0001 -f png -d -").stdout;
    let side = |at: usize| u32::from_be_bytes(png[at..at + 4].try_into().unwrap());
    assert_eq!((side(16), side(20)), (812, 1218));
    let zpl = shop.run("label get SB-SUCCESS-0001 -f zpl -d -");
    for mark in ["^PW812", "^LL1218", "SB-SUCCESS-0001", "SANDBOX"] {
        assert!(zpl.text().contains(mark), "{mark}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn get_says_what_it_saved_in_every_format() {
    let shop = shop_with_two().await;
    let one = shop.run("label get SB-SUCCESS-0001 -f zpl -o json").json();
    let bytes = shop.desk.read("label-SB-SUCCESS-0001.zpl").len();
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
async fn standard_output_takes_the_file_and_nothing_else() {
    let shop = shop_with_two().await;
    shop.run("label get SB-SUCCESS-0001 -f png");
    let raw = shop.run("label get SB-SUCCESS-0001 -f png -d -");
    assert_eq!((raw.code, &*raw.stderr), (0, ""));
    assert_eq!(raw.stdout, shop.desk.read("label-SB-SUCCESS-0001.png"));
    let zpl = shop.run("label get SB-SUCCESS-0001 SB-SUCCESS-0002 -f zpl --dir -");
    assert_eq!(zpl.text().matches("^XA").count(), 2);
    let pdf = shop.run("label get SB-SUCCESS-0001 SB-SUCCESS-0002 --dir -");
    assert_eq!((pdf.code, &*pdf.stdout), (2, &b""[..]));
}

#[tokio::test(flavor = "multi_thread")]
async fn get_refuses_what_is_not_there_and_places_that_cannot_be() {
    let shop = shop_with_two().await;
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
    let hint = shop.run("label get SB-SUCCESS-0001 -o folder").stderr;
    assert!(hint.contains("--dir"), "{hint}");
}
