//! Journeys of a parcel from a template to delivery, with the command line and the SDK together.

use std::time::Duration;

use parcelo::{Outcome, ParcelStatus, TrackingNumber};
use serde_json::json;

use crate::shop::TestShop;

#[tokio::test(flavor = "multi_thread")]
async fn a_template_becomes_a_delivered_parcel() {
    let shop = TestShop::open().await;
    let mut order = shop.run("order template --country EC").json();
    order["trackingNumber"] = json!("SB-SUCCESS-0077");
    shop.dir.write("order.json", &order);
    assert_eq!(shop.run("order validate order.json").code, 0);

    let created = shop.run("order create order.json --label label.pdf -o json");
    assert_eq!(created.code, 0, "{created:?}");
    assert!(shop.dir.read("label.pdf").starts_with(b"%PDF-"));
    let line = "track SB-SUCCESS-0077 --history -o json";
    assert_eq!(shop.run(line).json()["status"], "LABEL_GENERATED");

    let fired = shop.server.clock().advance(Duration::from_secs(25 * 60)).await;
    assert!(!fired.is_empty());
    let statuses: Vec<_> = shop.run(line).json()["history"]
        .as_array()
        .unwrap()
        .iter()
        .map(|event| event["status"].as_str().unwrap().to_owned())
        .collect();
    let travelled = [
        "ORDERED",
        "LABEL_GENERATED",
        "CUSTOMS_CLEARANCE",
        "IN_TRANSIT",
        "OUT_FOR_DELIVERY",
        "DELIVERED",
    ];
    assert_eq!(statuses, travelled);
    assert!(shop.run("track SB-SUCCESS-0077").text().contains("Delivered"));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_command_line_and_the_sdk_see_the_same_parcel() {
    let shop = TestShop::open().await;
    shop.create("SB-RTS-000001");
    let client = shop.server.client(&shop.key);
    let number = TrackingNumber::parse("sb-rts-000001").unwrap();
    assert_eq!(client.tracking().get(&number).await.unwrap().status, ParcelStatus::LabelGenerated);
    shop.server.clock().advance(Duration::from_secs(60 * 60)).await;
    let record = client.tracking().get(&number).history(true).await.unwrap().into_inner();
    assert_eq!(record.status, ParcelStatus::ReturnToSender);
    let shown = shop.run("track SB-RTS-000001 --history -o json").json();
    assert_eq!(shown, serde_json::to_value(record).unwrap());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_command_line_replays_an_order_created_by_the_sdk() {
    let shop = TestShop::open().await;
    let order: parcelo::OrderRequest =
        serde_json::from_slice(&shop.dir.read("order.json")).unwrap();
    let client = shop.server.client(&shop.key);
    let created = client.orders().create(&order).await.unwrap();
    assert_eq!(created.outcome(), Outcome::Created);
    let again = shop.run("order create order.json -o json").json();
    assert_eq!(again["outcome"], "replayed");
    assert_eq!(again["parcel"]["id"], created.parcel.id.as_str());
}
