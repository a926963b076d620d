//! `order import`: each valid row of a file becomes one parcel with its label, even if other rows are invalid or
//! something fails along the way.

mod endurance;
mod files;
mod resumed;
pub(crate) mod shops;

use std::{collections::HashMap, fs};

use parcelo::Operation;
use serde_json::Value;

use crate::shop::{RunOutput, TestShop};

const HEADINGS: &str = "reference,sender_name,sender_phone,sender_line1,sender_city,sender_state,\
    sender_zip,sender_country,receiver_name,receiver_phone,receiver_national_id,receiver_id_type,\
    receiver_line1,receiver_city,receiver_province,receiver_zip,receiver_country,weight_kg,\
    declared_value,customs_description,customs_hs_code";

/// Returns a row that is valid without a warning.
fn row(reference: &str) -> String {
    format!(
        "{reference},Ana Ruiz,+13055550100,8400 NW 25th St,Miami,FL,33122,US,Luis Paredes,\
         +593991234567,1714307103,cedula,Av. Amazonas N34-451,Quito,Pichincha,170515,EC,1.25,45.5,\
         Cotton shirts,610910"
    )
}

fn sheet(rows: &[String]) -> String {
    format!("{HEADINGS}\n{}\n", rows.join("\n"))
}

fn rows(count: usize) -> Vec<String> {
    (1..=count).map(|n| row(&format!("A-{n}"))).collect()
}

impl TestShop {
    /// Opens a shop whose `orders.csv` has this many valid rows.
    async fn with_rows(count: usize) -> Self {
        let shop = Self::open().await;
        shop.write_file("orders.csv", sheet(&rows(count)));
        shop
    }

    fn write_file(&self, name: &str, content: impl AsRef<[u8]>) {
        fs::write(self.dir.path(name), content).unwrap();
    }

    /// Imports `orders.csv` into `out`.
    fn import(&self, options: &str) -> RunOutput {
        self.run(&format!("order import orders.csv --labels out {options}"))
    }

    fn results(&self) -> Vec<HashMap<String, String>> {
        records(&self.dir.read("out/orders.csv.results.csv"))
    }

    fn creations(&self) -> usize {
        self.server.requests().of(Operation::CreateOrder).count()
    }

    /// Returns the number of saved labels, after checking that each file is complete.
    fn labels(&self) -> usize {
        let files = fs::read_dir(self.dir.path("out")).unwrap();
        let files = files.map(|file| file.unwrap().path());
        let labels = files.filter(|file| file.extension().is_some_and(|ending| ending == "pdf"));
        labels
            .inspect(|file| {
                let content = fs::read(file).unwrap();
                let end = String::from_utf8_lossy(&content[content.len() - 8..]).into_owned();
                assert!(
                    content.starts_with(b"%PDF-") && end.contains("%%EOF"),
                    "{}",
                    file.display()
                );
            })
            .count()
    }
}

fn records(csv: &[u8]) -> Vec<HashMap<String, String>> {
    csv::Reader::from_reader(csv).deserialize().map(Result::unwrap).collect()
}

fn outcomes(output: &RunOutput) -> Vec<String> {
    output.lines().iter().map(|line| line["outcome"].as_str().unwrap().to_owned()).collect()
}

/// Checks the exit code and the outcome of each row.
#[track_caller]
fn assert_outcomes(output: &RunOutput, code: i32, expected: &[&str]) {
    let found = outcomes(output);
    let found: Vec<_> = found.iter().map(String::as_str).collect();
    assert_eq!((output.code, &*found), (code, expected), "{output:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_becomes_parcels_with_labels_and_results() {
    let shop = TestShop::with_rows(3).await;
    let output = shop.import("");
    assert_eq!(output.code, 0, "{output:?}");
    assert_eq!(output.text(), "Rows     3\nCreated  3\nResults  out/orders.csv.results.csv\n");
    assert_eq!(output.stderr, "3 of 3 rows processed: 3 succeeded, 0 did not\n");
    assert_eq!((shop.creations(), shop.labels()), (3, 3));
    let results = shop.results();
    let found: Vec<_> = results.iter().map(|row| (&*row["row"], &*row["reference"])).collect();
    assert_eq!(found, [("2", "A-1"), ("3", "A-2"), ("4", "A-3")]);
    for row in results {
        let (number, file) = (&row["trackingNumber"], &row["labelFile"]);
        assert_eq!((&*row["outcome"], file), ("created", &format!("out/label-{number}.pdf")));
        assert!(shop.dir.path(file).is_file());
    }
    let listed = shop.run("parcel list -o ndjson").lines();
    assert_eq!(listed.len(), 3);
    shop.server.assert_exactly_once();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_formula_is_written_as_text_and_read_back_unchanged() {
    let shop = TestShop::open().await;
    let references = ["=1+1", "+1", "-1", "@A1", "'=1", "'t-1"];
    shop.write_file("orders.csv", sheet(&references.map(row)));
    assert_eq!(shop.import("").code, 0);
    let written: Vec<_> = shop.results().into_iter().map(|row| row["reference"].clone()).collect();
    // In the file itself, one apostrophe marks the cell as text.
    let expected = ["'=1+1", "'+1", "'-1", "'@A1", "'=1", "'t-1"];
    assert_eq!(written, expected);
    let listed = records(shop.run("parcel list -o csv").text().as_bytes());
    let mut listed: Vec<_> = listed.into_iter().map(|row| row["externalOrderId"].clone()).collect();
    // They were created concurrently.
    let mut sorted = expected;
    listed.sort_unstable();
    sorted.sort_unstable();
    assert_eq!(listed, sorted);

    // Importing the written values again leads to the same orders, and creates nothing.
    let written: Vec<_> = written.iter().map(|reference| row(reference)).collect();
    shop.write_file("orders.csv", sheet(&written));
    let again = shop.run("order import orders.csv --labels again -o ndjson");
    assert_outcomes(&again, 0, &["replayed"; 6]);
    assert_eq!(shop.run("parcel list -o ndjson").lines().len(), 6);
}

#[tokio::test(flavor = "multi_thread")]
async fn valid_rows_are_created_and_invalid_ones_named() {
    let shop = TestShop::open().await;
    let zip = row("A-2").replace("170515", "99");
    let two = row("A-3").replace("1.25", "heavy").replace(",EC,", ",ec,");
    shop.write_file("orders.csv", sheet(&[row("A-1"), zip, two, row("")]));
    let output = shop.import("");
    assert_eq!(output.code, 10, "{output:?}");
    assert_eq!((shop.creations(), shop.labels()), (1, 1));
    assert!(output.stderr.contains("--resume"), "{output:?}");
    let results = shop.results();
    let found: Vec<_> = results
        .iter()
        .map(|row| (&*row["row"], &*row["outcome"], &*row["column"], &*row["suggestion"]))
        .collect();
    let expected = [
        ("2", "created", "", ""),
        ("3", "invalid", "receiver_zip", ""),
        ("4", "invalid", "receiver_country", "EC"),
        ("4", "invalid", "weight_kg", ""),
        ("5", "invalid", "reference", ""),
    ];
    assert_eq!(found, expected);
    for row in &results[1..] {
        assert!(!row["message"].is_empty() && row["message"] != row["message_es"], "{row:?}");
        assert!(output.text().contains(&row["message"]), "{output:?}");
    }

    shop.write_file("orders.csv", sheet(&rows(3)));
    let output = shop.run("order import orders.csv --labels out --resume -o ndjson --lang es");
    assert_eq!((output.code, &*output.stderr), (0, ""), "{output:?}");
    assert_eq!(outcomes(&output), ["done_before", "created", "created"]);
    assert_eq!((shop.creations(), shop.labels()), (3, 3));
}

#[tokio::test(flavor = "multi_thread")]
async fn check_only_and_all_or_nothing_send_nothing() {
    let shop = TestShop::open().await;
    let bad = row("A-2").replace(",EC,", ",XX,");
    for (rows, options, code, words) in [
        (vec![row("A-1"), row("A-2")], "--dry-run", 0, ["valid", "valid"]),
        (vec![row("A-1"), bad.clone()], "--dry-run", 3, ["valid", "invalid"]),
        (vec![row("A-1"), bad.clone()], "--all-or-nothing", 3, ["not_sent", "invalid"]),
        (vec![bad.clone(), bad.replace("A-2", "A-1")], "", 3, ["invalid", "invalid"]),
    ] {
        shop.write_file("orders.csv", sheet(&rows));
        let output = shop.import(&format!("{options} -o ndjson"));
        assert_eq!((output.code, outcomes(&output)), (code, words.map(str::to_owned).to_vec()));
        assert!(code == 0 || output.error()["code"] == "VALIDATION_FAILED", "{output:?}");
        assert!(!shop.dir.path("out/orders.csv.journal").exists());
    }
    assert_eq!(shop.server.requests().count(), 0);
    shop.write_file("orders.csv", sheet(&rows(2)));
    assert_eq!(shop.import("--all-or-nothing").code, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn two_rows_with_a_reference_are_one_order_or_both_invalid() {
    let shop = TestShop::open().await;
    let other = row("B-1").replace("45.5", "46");
    shop.write_file("orders.csv", sheet(&[row("A-1"), row("B-1"), row("A-1"), other.clone()]));
    let output = shop.import("-o ndjson");
    assert_outcomes(&output, 10, &["created", "invalid", "repeated", "invalid"]);
    let messages: Vec<_> = output
        .lines()
        .iter()
        .map(|line| line["errors"][0]["message"].as_str().unwrap_or_default().to_owned())
        .collect();
    assert!(messages[1].starts_with("Row 5 has") && messages[3].starts_with("Row 3 has"));
    assert!(messages[2].contains("row 2"), "{messages:?}");
    assert_eq!(output.lines()[1]["errors"][0]["column"], "reference", "named as in other faults");
    assert_eq!(shop.creations(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn every_format_has_the_same_rows_and_only_text_has_progress() {
    let shop = TestShop::open().await;
    shop.write_file("orders.csv", sheet(&[row("A-1"), row("A-2").replace(",EC,", ",XX,")]));
    let document = shop.import("-o json");
    assert_eq!(document.code, 10);
    assert_eq!(document.error()["code"], "PARTLY_FAILED");
    let document = document.json();
    assert_eq!(document["summary"]["counts"]["created"], 1);
    assert_eq!(document["summary"]["resultsFile"], "out/orders.csv.results.csv");
    let lines = shop.import("--resume -o ndjson").lines();
    assert_eq!((lines.len(), lines[0]["outcome"].as_str()), (2, Some("done_before")));
    let names = |value: &Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(&document["rows"][0]), names(&lines[0]));
    let csv = shop.import("--resume -o csv");
    assert_eq!(csv.stdout, shop.dir.read("out/orders.csv.results.csv"));
    assert!(csv.stderr.contains("2 of 2 rows"), "{csv:?}");
    assert!(!shop.import("--resume --quiet").stderr.contains(" of 2 rows processed"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_label_that_failed_is_reported_and_fetched_on_resume() {
    let shop = TestShop::with_rows(2).await;
    let labels = shop.server.faults();
    labels.on(Operation::DownloadLabel).first(1).error(parcelo::ErrorCode::LabelNotFound);
    let output = shop.import("-f zpl --concurrency 1 -o ndjson");
    assert_outcomes(&output, 10, &["label_missing", "created"]);
    assert!(output.lines()[0]["trackingNumber"].is_string(), "{output:?}");
    let output = shop.import("-f zpl --resume -o ndjson");
    assert_outcomes(&output, 0, &["done_before"; 2]);
    assert_eq!(shop.creations(), 2);
    for line in output.lines() {
        assert!(shop.dir.read(line["labelFile"].as_str().unwrap()).starts_with(b"^XA"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_import_has_columns_for_company_flat_and_customs() {
    let shop = TestShop::open().await;
    let more = "receiver_company,receiver_line2,contents_category,incoterm,product_description,\
        product_quantity,product_value,product_hs_code,product_origin,product_net_weight_kg";
    let cells = "Andina S.A.,Dpto. 402,SALE_OF_GOODS,DAP,Shirt,2,22.75,610910,CO,0.25";
    let wrong = "Andina S.A.,Dpto. 402,SALE_OF_GOODS,DDU,Shirt,2,22.75,610910,Colombia,0.25";
    let file = format!("{HEADINGS},{more}\n{},{cells}\n{},{wrong}\n", row("A-1"), row("A-2"));
    shop.write_file("orders.csv", file);
    let output = shop.import("-f zpl -o ndjson");
    assert_outcomes(&output, 0, &["created"; 2]);
    let results = shop.results();
    let label = shop.dir.read(&results[0]["labelFile"]);
    let label = String::from_utf8(label).unwrap();
    for text in ["Andina S.A.", ", Dpto. 402^FS", "^FDCO^FS"] {
        assert!(label.contains(text), "{text}: {label}");
    }
    let warnings = output.lines()[1]["warnings"].clone();
    let ignored = ["customsInfo.incoterm", "products[0].countryOfOrigin"];
    let fields = warnings.as_array().unwrap().iter().map(|warning| &warning["field"]);
    assert_eq!(fields.collect::<Vec<_>>(), ignored, "{warnings}");
}

#[tokio::test(flavor = "multi_thread")]
async fn merged_labels_are_in_the_order_of_the_rows() {
    let shop = TestShop::open().await;
    let mut some = rows(4);
    some[1] = some[1].replace(",EC,", ",XX,");
    shop.write_file("orders.csv", sheet(&some));
    let first = shop.import("--merge day.zpl");
    assert_eq!(first.code, 10, "{first:?}");
    let numbers = |shop: &TestShop| -> Vec<String> {
        let numbers = shop.results().into_iter().map(|row| row["trackingNumber"].clone());
        numbers.filter(|number| !number.is_empty()).collect()
    };
    let merged = |shop: &TestShop| -> Vec<u8> {
        let each = numbers(shop).into_iter();
        each.flat_map(|number| shop.run(&format!("label get {number} -f zpl -d -")).stdout)
            .collect()
    };
    assert_eq!(numbers(&shop).len(), 3);
    assert!(first.stderr.contains("3 labels in the order of the file: day.zpl"), "{first:?}");
    assert_eq!(shop.dir.read("day.zpl"), merged(&shop));
    // A resumed run also merges the labels of the orders created earlier.
    shop.write_file("orders.csv", sheet(&rows(4)));
    let second = shop.import("--resume --merge day.zpl");
    assert_eq!(second.code, 0, "{second:?}");
    assert_eq!((numbers(&shop).len(), shop.creations()), (4, 4));
    assert_eq!(shop.dir.read("day.zpl"), merged(&shop));
    let refused = shop.import("--merge day.png");
    assert_eq!(refused.code, 2, "{refused:?}");
}
