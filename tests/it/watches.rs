//! `track --watch`: a line for each change, or a table that is redrawn, until every parcel has arrived.

use std::{
    io::{BufRead, BufReader},
    process::{ChildStdout, Stdio},
    time::Duration,
};

use parcelo::ParcelStatus;
use serde_json::{Value, json};

use crate::{
    fake_servers,
    shop::{TestShop, Workdir, interrupt},
};

async fn shop_with_two_parcels() -> TestShop {
    let shop = TestShop::open().await;
    shop.create("SB-SUCCESS-0001");
    shop.create("SB-RTS-000001");
    shop
}

/// Longer than any simulated journey; the shop's clock is virtual.
const JOURNEY: Duration = Duration::from_secs(60 * 60);

fn next_line(lines: &mut impl Iterator<Item = std::io::Result<String>>) -> String {
    lines.next().unwrap().unwrap()
}

fn read_lines(stdout: ChildStdout) -> impl Iterator<Item = std::io::Result<String>> {
    BufReader::new(stdout).lines()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watch_shows_each_change_once_until_all_are_delivered() {
    let shop = shop_with_two_parcels().await;
    let line = "track SB-SUCCESS-0001 SB-RTS-000001 --watch --every 1";
    let mut child = shop.dir.start(line, Stdio::piped());
    let mut lines = read_lines(child.stdout.take().unwrap());
    assert_eq!(next_line(&mut lines), "SB-SUCCESS-0001  Label generated");
    assert_eq!(next_line(&mut lines), "SB-RTS-000001  Label generated");
    shop.server.clock().advance(JOURNEY).await;
    assert_eq!(next_line(&mut lines), "SB-SUCCESS-0001  Delivered");
    assert_eq!(next_line(&mut lines), "SB-RTS-000001  Returning to sender (RETURN_TO_SENDER)");
    assert!(lines.next().is_none());
    let output = shop.dir.read_output(child.wait_with_output().unwrap(), line);
    assert_eq!((output.code, &*output.stderr), (0, ""));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watch_ends_with_a_failed_delivery() {
    let shop = TestShop::open().await;
    shop.create("SB-FAIL-000001");
    let number = "SB-FAIL-000001".parse().unwrap();
    shop.server.put_status(&number, ParcelStatus::DeliveryFailed).await.unwrap();
    let line = "track SB-FAIL-000001 --watch --every 1";
    let mut child = shop.dir.start(line, Stdio::piped());
    let mut lines = read_lines(child.stdout.take().unwrap());
    assert_eq!(next_line(&mut lines), "SB-FAIL-000001  Delivery failed");
    assert!(lines.next().is_none());
    assert_eq!(child.wait_with_output().unwrap().status.code(), Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn json_and_csv_have_a_row_for_each_change() {
    let shop = shop_with_two_parcels().await;
    let mut started = Vec::new();
    for format in ["json", "ndjson", "csv"] {
        let line = format!("track SB-SUCCESS-0001 --watch --every 1 --lang es -o {format}");
        let mut child = shop.dir.start(&line, Stdio::piped());
        let mut lines = read_lines(child.stdout.take().unwrap());
        let first = next_line(&mut lines);
        started.push((format, child, lines, first));
    }
    shop.server.clock().advance(JOURNEY).await;
    for (format, child, lines, first) in started {
        let found: Vec<_> = std::iter::once(first).chain(lines.map(Result::unwrap)).collect();
        if format == "csv" {
            let heading = "trackingNumber,status,statusName,estimatedDelivery";
            assert_eq!((found.len(), &*found[0]), (3, heading), "{found:?}");
            assert!(found[2].starts_with("SB-SUCCESS-0001,DELIVERED,Entregado,"), "{found:?}");
        } else {
            let found: Vec<Value> =
                found.iter().map(|line| serde_json::from_str(line).unwrap()).collect();
            let statuses: Vec<_> = found.iter().map(|record| record["status"].clone()).collect();
            assert_eq!(json!(statuses), json!(["LABEL_GENERATED", "DELIVERED"]), "{format}");
        }
        assert_eq!(child.wait_with_output().unwrap().status.code(), Some(0), "{format}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watch_does_not_wait_for_final_or_unknown_parcels() {
    let shop = shop_with_two_parcels().await;
    assert_eq!(shop.run("order void SB-SUCCESS-0001").code, 0);
    let over = shop.run("track SB-SUCCESS-0001 --watch");
    assert_eq!((over.code, over.text()), (0, "SB-SUCCESS-0001  Voided\n"));
    let partly = shop.run("track SB-SUCCESS-0001 SB-UNKNOWN-01 --watch -o json");
    assert_eq!(
        (partly.code, &partly.error()["items"][0]["code"]),
        (10, &json!("PARCEL_NOT_FOUND"))
    );
    assert_eq!(shop.run("track SB-UNKNOWN-01 --watch").code, 5);
    assert_eq!(shop.run("track short --watch").code, 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watch_can_be_interrupted() {
    let shop = shop_with_two_parcels().await;
    let line = "track SB-SUCCESS-0001 --watch --every 3600 -o json";
    let mut child = shop.dir.start(line, Stdio::piped());
    let mut lines = read_lines(child.stdout.take().unwrap());
    assert!(next_line(&mut lines).contains("LABEL_GENERATED"));
    interrupt(&child);
    let output = shop.dir.read_output(child.wait_with_output().unwrap(), line);
    output.assert_error(130, "INTERRUPTED");
    assert_eq!(output.error()["mayHaveExecuted"], false);
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread")]
async fn on_a_terminal_the_table_is_redrawn() {
    let shop = shop_with_two_parcels().await;
    let line = "track SB-SUCCESS-0001 --watch --every 1";
    let output = std::thread::scope(|scope| {
        let watching = scope.spawn(|| shop.dir.run_on_terminal(line, ""));
        tokio::task::block_in_place(|| {
            tokio::runtime::Handle::current().block_on(async {
                let asked = shop.server.requests().of(parcelo::Operation::GetTracking);
                asked.wait_for(1, crate::waiting::LONG).await;
                shop.server.clock().advance(JOURNEY).await;
            });
        });
        watching.join().unwrap()
    });
    assert_eq!(output.code, 0, "{output:?}");
    let text = output.text();
    let again = text.find("\r\u{1b}[2A").unwrap_or_else(|| panic!("{text:?}"));
    assert!(text[..again].contains("Label generated"), "{text:?}");
    assert!(text[again..].contains("Delivered"), "{text:?}");
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread")]
async fn rows_cannot_control_the_terminal() {
    let url = fake_servers::start_with_response(
        "200 OK\r\ncontent-type: application/json",
        "{\"trackingNumber\":\"SB-SUCCESS-0001\",\"status\":\"DELIVERED\",\
         \"statusName\":\"a\\u001b[2Jb\\u202ec\\u009bd\",\
         \"estimatedDelivery\":\"2026-01-20T23:59:59-05:00\"}",
    )
    .await;
    let dir = Workdir::new(TestShop::open().await.key.secret(), &url);
    for line in ["track SB-SUCCESS-0001 -o csv", "track SB-SUCCESS-0001 --watch -o csv"] {
        let output = tokio::task::block_in_place(|| dir.run_on_terminal(line, ""));
        assert_eq!(output.code, 0, "{output:?}");
        let text = output.text();
        assert!(text.contains("a [2Jb c d"), "{line}: {text:?}");
    }
}
