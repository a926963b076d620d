//! `track`: one parcel or several, with and without history, and unknown numbers.

use std::fs;

use serde_json::{Value, json};

use crate::shop::TestShop;

#[tokio::test(flavor = "multi_thread")]
async fn track_shows_the_status_in_every_format() {
    let shop = TestShop::with_two_parcels().await;
    let text_output = shop.run("track SB-SUCCESS-0001 SB-SUCCESS-0002 --history");
    assert_eq!((text_output.code, &*text_output.stderr), (0, ""));
    insta::assert_snapshot!("track", text_output.text());

    let one = shop.run("track SB-SUCCESS-0001 -o json").json();
    assert_eq!(
        (&one["status"], &one["statusName"]),
        (&json!("LABEL_GENERATED"), &json!("Label generated"))
    );
    assert_eq!(one["history"], Value::Null);
    let found = shop.run("track SB-SUCCESS-0001 --history -o json").json();
    assert_eq!(found["history"].as_array().unwrap().len(), 2);

    let several = shop.run("track SB-SUCCESS-0001 SB-SUCCESS-0002 -o json").json();
    assert_eq!(several[1]["trackingNumber"], "SB-SUCCESS-0002");
    let lines = shop.run("track SB-SUCCESS-0001 SB-SUCCESS-0002 -o ndjson").lines();
    assert_eq!(json!(lines), several);

    let csv = shop.run("track SB-SUCCESS-0001 -o csv");
    let expected = "trackingNumber,status,statusName,estimatedDelivery\n\
        SB-SUCCESS-0001,LABEL_GENERATED,Label generated,2026-01-13T23:59:59-05:00\n";
    assert_eq!(csv.text(), expected);
    assert_eq!(shop.run("order void SB-SUCCESS-0002").code, 0);
    let voided = shop.run("track SB-SUCCESS-0002 -o csv");
    assert!(voided.text().ends_with("\nSB-SUCCESS-0002,VOIDED,Voided,\n"), "{voided:?}");
    let events = shop.run("track SB-SUCCESS-0001 --history -o csv");
    assert_eq!(events.text().lines().count(), 3);
    let first = "SB-SUCCESS-0001,1,2026-01-05T08:00:00.000Z,ORDERED,Order created,\"Miami, US\"";
    assert!(events.text().lines().nth(1).unwrap().starts_with(first), "{events:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn many_numbers_come_from_standard_input_and_keep_their_order() {
    let shop = TestShop::with_two_parcels().await;
    let unknown: Vec<_> = (0..150).map(|i| format!("SB-UNKNOWN-{i:03}")).collect();
    let input = format!("SB-SUCCESS-0002\n{}\nSB-SUCCESS-0001\n", unknown.join("\n"));
    let output = shop.dir.run_with("track - --history -o json", &[], &input);
    let found = output.json();
    assert_eq!((output.code, found.as_array().unwrap().len()), (10, 2));
    assert_eq!(found[0]["trackingNumber"], "SB-SUCCESS-0002");
    assert_eq!(found[1]["trackingNumber"], "SB-SUCCESS-0001");
    assert_eq!(found[0]["history"].as_array().unwrap().len(), 2);
    let items = output.error()["items"].clone();
    assert_eq!(items.as_array().unwrap().len(), 150);
    assert_eq!(items[149]["trackingNumber"], "SB-UNKNOWN-149");

    let mixed = shop.dir.run_with("track SB-SUCCESS-0001 - -o json", &[], "SB-SUCCESS-0002");
    assert_eq!((mixed.code, &mixed.json()[1]["trackingNumber"]), (0, &json!("SB-SUCCESS-0002")));
    let one = shop.dir.run_with("track - -o json", &[], "SB-SUCCESS-0001\n");
    assert_eq!(
        one.json()["trackingNumber"],
        "SB-SUCCESS-0001",
        "a single parcel is an object, not an array"
    );
    let none = shop.dir.run_with("track - -o json", &[], "");
    assert_eq!((none.code, &none.error()["fields"][0]["code"]), (3, &json!("REQUIRED")));
}

#[tokio::test(flavor = "multi_thread")]
async fn many_numbers_come_from_files_too() {
    let shop = TestShop::with_two_parcels().await;
    fs::write(shop.dir.path("one.txt"), "trackingNumber\r\nSB-SUCCESS-0002\r\n").unwrap();
    let tracked = shop.run("track one.txt SB-SUCCESS-0001 -o numbers");
    assert_eq!((tracked.code, tracked.text()), (0, "SB-SUCCESS-0002\nSB-SUCCESS-0001\n"));
    let labels = shop.run("label get ./one.txt --merge day.zpl -o json");
    assert_eq!((labels.code, &labels.json()["labels"]), (0, &json!(1)), "{labels:?}");
    // A name that can be a number is one, and a file that does not exist is a wrong number.
    fs::write(shop.dir.path("SB-SUCCESS-0001"), "SB-SUCCESS-0002").unwrap();
    assert_eq!(shop.run("track SB-SUCCESS-0001 -o numbers").text(), "SB-SUCCESS-0001\n");
    shop.run("track absent.txt -o json").assert_error(3, "VALIDATION_FAILED");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_table_instead_of_numbers_is_reported_once() {
    let shop = TestShop::with_two_parcels().await;
    let sent = shop.server.requests().count();
    for format in ["csv", "json", "ndjson"] {
        let table = shop.run(&format!("parcel list -o {format}"));
        for command in ["track -", "label get - -d out", "order void -"] {
            let output = shop.dir.run_with(command, &[], table.text());
            assert_eq!((output.code, output.text()), (2, ""), "{format}: {output:?}");
            assert_eq!(output.stderr.matches("looks like a table").count(), 1, "{output:?}");
            assert!(output.stderr.contains("-o numbers"), "{output:?}");
        }
    }
    assert_eq!(shop.server.requests().count(), sent + 3, "lists only");
}

#[tokio::test(flavor = "multi_thread")]
async fn status_names_are_in_the_requested_language() {
    let shop = TestShop::with_two_parcels().await;
    let output = shop.run("track SB-SUCCESS-0001 --lang es");
    assert!(output.text().contains("Etiqueta generada (LABEL_GENERATED)"), "{output:?}");
    assert!(output.text().contains("Número de rastreo"), "{output:?}");
    let both = shop.run("track SB-SUCCESS-0001 SB-SUCCESS-0002 --lang es");
    assert_eq!(both.text().matches("Etiqueta generada").count(), 2, "{both:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_number_is_not_found_and_an_invalid_one_not_sent() {
    let shop = TestShop::with_two_parcels().await;
    let unknown = shop.run("track SB-UNKNOWN-01 -o json");
    assert_eq!((unknown.code, &*unknown.stdout), (5, &b""[..]));
    assert_eq!(unknown.error()["code"], "PARCEL_NOT_FOUND");
    assert_eq!(unknown.error()["status"], 404);
    assert!(unknown.error()["requestId"].as_str().unwrap().starts_with("req_"));

    let wrong = shop.run("track SB-SUCCESS-0001 short -o json");
    assert_eq!(wrong.code, 3);
    assert_eq!(wrong.error()["fields"][0]["field"], "trackingNumbers[1]");
}

#[tokio::test(flavor = "multi_thread")]
async fn found_parcels_are_shown_and_unknown_ones_named() {
    let shop = TestShop::with_two_parcels().await;
    let output = shop.run("track SB-SUCCESS-0001 SB-UNKNOWN-01 SB-SUCCESS-0002 -o json");
    assert_eq!(output.code, 10);
    assert_eq!(output.json().as_array().unwrap().len(), 2);
    let error = output.error();
    assert_eq!(
        (&error["code"], &error["message"]),
        (&json!("PARTLY_FAILED"), &json!("2 of 3 succeeded; 1 failed."))
    );
    assert_eq!(error["items"][0]["trackingNumber"], "SB-UNKNOWN-01");
    assert_eq!(error["items"][0]["code"], "PARCEL_NOT_FOUND");

    let none = shop.run("track SB-UNKNOWN-01 SB-UNKNOWN-02");
    assert_eq!(none.code, 5);
    assert!(none.stderr.contains("SB-UNKNOWN-02: No parcel"), "{none:?}");
}
