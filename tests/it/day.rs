//! A shop's day, from its export of orders to a parcel held by customs, with the command and the server as processes.
//! It checks the e-mails, webhooks and pages that the operator, the carrier and the receivers get.

mod export;
mod office;
mod relay;

use std::{
    collections::{HashMap, HashSet},
    fs,
    path::PathBuf,
};

use parcelo::webhook::{ID, SIGNATURE, TIMESTAMP, Webhook};
use serde_json::Value;
use tokio::sync::mpsc::UnboundedReceiver;

use self::{office::ServerProcess, relay::Relay};
use crate::{
    fake_servers,
    shop::{RunOutput, Workdir},
};

const IMPORT: &str = "order import orders.csv --preset shopify --map map.toml --sender sender.toml";
const AWB: &str = "176-12345675";

/// Orders with invalid rows, each with the column and the code.
const INVALID: [(&str, &str, &str); 4] = [
    (export::SHORTENED_PHONE, "Shipping Phone", "SHORTENED_NUMBER"),
    (export::CANCELLED, "Cancelled at", "MUST_BE_EMPTY"),
    // The country decides which country's number it is.
    (export::COUNTRY_NAME, "Shipping Phone", "INVALID_FORMAT"),
    (export::COUNTRY_NAME, "Shipping Country", "UNKNOWN_VALUE"),
];

fn records(csv: &[u8]) -> Vec<HashMap<String, String>> {
    csv::Reader::from_reader(csv).deserialize().map(Result::unwrap).collect()
}

/// Prepares a shop's folder, with its export, a column map and a sender.
fn prepare_shop(server: &ServerProcess) -> Workdir {
    let create = ["keys", "create", "--environment", "production", "--countries", "*"];
    let key = server.admin_member(&[&create[..], &["--name", "Shop"]].concat(), "key");
    let dir = Workdir::new(&key, server.url("production"));
    fs::write(dir.path("orders.csv"), export::orders(str::to_owned)).unwrap();
    fs::write(dir.path("map.toml"), export::MAP).unwrap();
    fs::write(dir.path("sender.toml"), export::SENDER).unwrap();
    dir
}

/// Imports the export in the morning. Returns the tracking numbers in the order of the file.
fn import(dir: &Workdir) -> Vec<String> {
    let output = dir.run(&format!("{IMPORT} --labels out --merge day.pdf"));
    assert_eq!(output.code, 10, "{output:?}");
    assert!(output.stderr.contains("windows-1252"), "{}", output.stderr);
    let rows = records(&dir.read("out/orders.csv.results.csv"));
    let orders: HashSet<_> = rows.iter().map(|row| &row["row"]).collect();
    assert_eq!(orders.len(), export::ORDERS as usize);
    let wrong: Vec<_> = rows.iter().filter(|row| row["outcome"] != "created").collect();
    let wrong: Vec<_> =
        wrong.iter().map(|row| (&*row["reference"], &*row["column"], &*row["code"])).collect();
    assert_eq!(wrong, INVALID);
    assert!(
        output.text().contains("#1020") && output.text().contains("cancelled"),
        "{}",
        output.text()
    );
    assert!(
        output.text().contains(export::COUNTRY_NAME),
        "invalid rows are shown despite warnings"
    );
    let named = rows.iter().find(|row| row["column"] == "Shipping Country").unwrap();
    assert_eq!(named["suggestion"], "EC");
    let unclassified = rows.iter().find(|row| row["reference"] == export::WITHOUT_HS_CODE).unwrap();
    assert!(unclassified["warnings"].contains("HS"), "{unclassified:?}");
    let numbers = rows.into_iter().map(|row| row["trackingNumber"].clone());
    numbers.filter(|number| !number.is_empty()).collect()
}

fn count_pages(pdf: &[u8]) -> usize {
    pdf.windows(b"/Type/Page/".len()).filter(|bytes| bytes == b"/Type/Page/").count()
}

/// Saves the invoices for customs, one for each parcel.
fn save_invoices(dir: &Workdir, numbers: &[String]) {
    let output = dir.run_with("invoice get - --dir invoices -o csv", &[], &numbers.join("\n"));
    assert_eq!((output.code, &*output.stderr), (0, ""), "{output:?}");
    let saved = records(&output.stdout);
    let saved: Vec<_> = saved.iter().map(|row| row["trackingNumber"].clone()).collect();
    assert_eq!(saved, numbers);
    for number in numbers {
        assert_eq!(count_pages(&dir.read(&format!("invoices/invoice-{number}.pdf"))), 1);
    }
}

/// Checks that the merged file has the label of each parcel once, on a page of its own, in the order of the file.
fn assert_merged(dir: &Workdir, numbers: &[String]) {
    assert_eq!(count_pages(&dir.read("day.pdf")), numbers.len());
    let output = dir.run(&format!("label get {} --merge again.pdf", numbers.join(" ")));
    assert_eq!(output.code, 0, "{output:?}");
    assert!(dir.read("again.pdf") == dir.read("day.pdf"));
    // Labels for a printer are text and contain the tracking number.
    let output = dir.run(&format!("label get {} -f zpl --merge -", numbers[100..].join(" ")));
    let labels = output.text().split("^XA").skip(1).zip(&numbers[100..]);
    assert!(
        labels.filter(|(label, number)| label.contains(*number)).count() == numbers.len() - 100
    );
}

fn submit_manifest(dir: &Workdir, numbers: &[String]) {
    let line = format!("manifest submit - --awb {AWB} --from MIA --to UIO -o json");
    let output = dir.run_with(&line, &[], &numbers.join("\n"));
    assert_eq!((output.code, &*output.stderr), (0, ""), "{output:?}");
    let sent = list_parcels(dir, "--status MANIFEST_SUBMITTED");
    assert_eq!(sent.len(), numbers.len());
}

fn list_parcels(dir: &Workdir, options: &str) -> Vec<HashMap<String, String>> {
    let output = dir.run(&format!("parcel list --all -o csv {options}"));
    assert_eq!(output.code, 0, "{output:?}");
    records(&output.stdout)
}

/// Waits for the webhook about a parcel's new status and returns its event. All signatures must be valid.
async fn status_event(
    events: &mut UnboundedReceiver<Vec<u8>>,
    webhook: &Webhook,
    number: &str,
) -> Value {
    loop {
        let request = events.recv().await.unwrap();
        let text = String::from_utf8(request).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        let header = |name: &str| {
            let line =
                head.lines().find(|line| line.to_lowercase().starts_with(&format!("{name}:")));
            line.unwrap().split_once(':').unwrap().1.trim()
        };
        let headers = [ID, TIMESTAMP, SIGNATURE].map(|name| (name, header(name)));
        webhook.verify(&headers[..], body.as_bytes()).unwrap();
        let event: Value = serde_json::from_str(body).unwrap();
        if event["data"]["trackingNumber"] == number && event["data"]["newStatus"] == "CUSTOMS_HOLD"
        {
            return event;
        }
    }
}

/// Keeps the day's files for programs that are not ours (`tests/oracles/day.py`), if they have a folder.
fn keep_files(dir: &Workdir) {
    let Some(folder) = std::env::var_os("PARCELO_DAY").map(PathBuf::from) else { return };
    fs::create_dir_all(folder.join("invoices")).unwrap();
    fs::write(folder.join("parcels.csv"), dir.run("parcel list --all -o csv").stdout).unwrap();
    fs::copy(dir.path("out/orders.csv.results.csv"), folder.join("results.csv")).unwrap();
    fs::copy(dir.path("day.pdf"), folder.join("day.pdf")).unwrap();
    for invoice in fs::read_dir(dir.path("invoices")).unwrap().map(Result::unwrap) {
        fs::copy(invoice.path(), folder.join("invoices").join(invoice.file_name())).unwrap();
    }
}

/// Exports the parcel list in the evening and imports it: every row leads to an existing order.
fn export_and_import(dir: &Workdir, numbers: &[String]) {
    let rows = list_parcels(dir, "");
    assert_eq!(rows.len(), numbers.len());
    let cells: HashMap<_, _> = rows
        .iter()
        .map(|row| {
            let cell = &row["externalOrderId"];
            (cell.trim_start_matches('\'').to_owned(), cell.clone())
        })
        .collect();
    assert_eq!(cells[export::FORMULA], "'=1040", "spreadsheets do not run it as a formula");
    let cell = |reference: &str| cells.get(reference).map_or(reference, String::as_str).to_owned();
    fs::write(dir.path("orders.csv"), export::orders(cell)).unwrap();
    let again: RunOutput = dir.run(&format!("{IMPORT} --labels again -o json"));
    assert_eq!(again.code, 10, "{again:?}");
    let again = records(&dir.read("again/orders.csv.results.csv"));
    let known = again.iter().filter(|row| row["outcome"] == "replayed");
    let known: Vec<_> = known.map(|row| row["trackingNumber"].clone()).collect();
    assert_eq!(known, numbers);
    assert_eq!(list_parcels(dir, "").len(), numbers.len());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_day_from_export_to_a_parcel_held_by_customs() {
    let relay = Relay::start();
    let server = ServerProcess::open(&relay);
    let (hook, mut events) = fake_servers::start_recording("200 OK").await;
    let set = ["webhooks", "set", "--environment", "production", "--webhooks-allow-private"];
    let secret = server.admin_member(&[&set[..], &["--url", &hook]].concat(), "secret");
    let webhook = Webhook::new([secret.as_str()]).unwrap();
    let create = ["carriers", "create", "--environment", "production", "--name", "Andes Cargo"];
    let carrier = server.admin_member(&create, "key");
    let dir = prepare_shop(&server);

    let numbers = import(&dir);
    assert_eq!(numbers.len(), export::ORDERS as usize - 3);
    assert_merged(&dir, &numbers);
    submit_manifest(&dir, &numbers);
    save_invoices(&dir, &numbers);

    // Noon: the carrier has the parcels, and every receiver gets an e-mail.
    assert_eq!(server.scan(&carrier, "PICKED_UP", &numbers).await, ["APPLIED"]);
    server.make_mails_due();
    let mails = relay.wait_for(numbers.len());
    let first = mails.iter().find(|mail| mail.to == export::email("#1001")).unwrap();
    assert!(first.text.contains(&numbers[0]), "{}", first.text);

    // A receiver opens the tracking page and unsubscribes.
    let site = "https://parcelo.example";
    let page = server.open_link(&format!("/track/{}", first.link(&format!("{site}/track/")))).await;
    assert_eq!(page.status, 200);
    assert!(page.text.contains(&numbers[0]) && page.text.contains("Recolectado"), "{}", page.text);
    let link = first.link(&format!("List-Unsubscribe: <{site}")).to_owned();
    assert!(
        server.open_link(&link).await.text.contains("<form"),
        "opening the link does not unsubscribe"
    );
    assert_eq!(server.unsubscribe(&link).await.status, 200);

    // Customs holds the parcel: the shop is notified by e-mail and by webhook, and the receiver, who has unsubscribed,
    // is not.
    let held = &numbers[..1];
    assert_eq!(server.scan(&carrier, "CUSTOMS_HOLD", held).await, ["APPLIED"]);
    server.make_mails_due();
    let mails = relay.wait_for(numbers.len() + 1);
    let last = mails.last().unwrap();
    assert_eq!(last.to, "ana@shop.example");
    assert!(last.text.contains(&held[0]) && last.text.contains("customs"), "{}", last.text);
    let event = status_event(&mut events, &webhook, &held[0]).await;
    assert_eq!(event["event"], "parcel.status_changed");
    let shown = list_parcels(&dir, "--status CUSTOMS_HOLD");
    let shown: Vec<_> = shown.iter().map(|row| row["trackingNumber"].clone()).collect();
    assert_eq!(shown, held);

    // An impossible report by the carrier is shown to the operator.
    assert!(!server.overview().await.text.contains("Needs attention"));
    let second = &numbers[1..2];
    assert_eq!(server.scan(&carrier, "DELIVERED", second).await, ["REJECTED"]);
    let overview = server.overview().await.text;
    assert!(overview.contains("Needs attention"), "{overview}");
    assert!(overview.contains("/dashboard/exceptions"), "{overview}");

    keep_files(&dir);
    export_and_import(&dir, &numbers);
    // The receiver of the second parcel still gets e-mails; that of the first has got none since.
    for status in ["IN_TRANSIT", "OUT_FOR_DELIVERY"] {
        assert_eq!(server.scan(&carrier, status, second).await, ["APPLIED"]);
    }
    server.make_mails_due();
    let mails = relay.wait_for(numbers.len() + 2);
    assert_eq!(mails.last().unwrap().to, export::email("#1002"));
    let to_first = mails.iter().filter(|mail| mail.to == export::email("#1001")).count();
    assert_eq!((to_first, mails.len()), (1, numbers.len() + 2));
    let log = server.log();
    assert!(!log.contains("@mail.example") && !log.contains("Peña"), "personal data in the log");
}
