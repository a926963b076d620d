//! `parcel list`: pages, all of them, filters; `parcel show`; and `sandbox reset`, after which there are no parcels.

use serde_json::{Value, json};

use crate::{
    fake_servers,
    shop::{TestShop, Workdir, order},
};

/// Returns a shop with five parcels, created a second apart; the fifth has an order id.
async fn shop_with_five_parcels() -> TestShop {
    let shop = TestShop::open().await;
    for i in 1..=5 {
        let mut order = order(&format!("SB-NUMBER-{i:04}"));
        if i == 5 {
            order["externalOrderId"] = json!("shop-5");
        }
        shop.dir.write("new.json", &order);
        assert_eq!(shop.run("order create new.json").code, 0, "{i}");
        shop.server.clock().advance(std::time::Duration::from_secs(1)).await;
    }
    shop
}

fn numbers(list: &Value) -> Vec<String> {
    let parcels = list["parcels"].as_array().unwrap();
    parcels.iter().map(|parcel| parcel["trackingNumber"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_is_newest_first_and_shows_its_position() {
    let shop = shop_with_five_parcels().await;
    let text_output = shop.run("parcel list --limit 2");
    assert_eq!(text_output.code, 0, "{text_output:?}");
    insta::assert_snapshot!(
        "parcels",
        format!("{}---\n{}", text_output.text(), text_output.stderr)
    );

    let page = shop.run("parcel list --limit 2 --page 2 -o json");
    assert_eq!((page.code, &*page.stderr), (0, ""));
    assert_eq!(numbers(&page.json()), ["SB-NUMBER-0003", "SB-NUMBER-0002"]);
    let meta = json!({"page": 2, "limit": 2, "total": 5, "totalPages": 3});
    assert_eq!(page.json()["meta"], meta);
    let default = shop.run("parcel list -o json").json();
    assert_eq!((numbers(&default).len(), &default["meta"]["limit"]), (5, &json!(20)));
    assert_eq!(shop.run("parcel list").stderr, "", "one page is all there is");
    for line in ["parcel list --country CO", "parcel list --country CO --all"] {
        assert!(shop.run(line).stderr.contains("No parcels found"), "{line}");
    }

    let past = shop.run("parcel list --page 9 --lang es");
    assert_eq!((past.code, past.text()), (0, ""));
    assert!(past.stderr.contains("paquetes en total: 5"), "{past:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn all_lists_every_page_in_every_format() {
    let shop = shop_with_five_parcels().await;
    let all = shop.run("parcel list --all --limit 2 -o json");
    assert_eq!((all.code, &all.json()["meta"]), (0, &Value::Null), "{all:?}");
    let expected: Vec<_> = (1..=5).rev().map(|i| format!("SB-NUMBER-{i:04}")).collect();
    assert_eq!(numbers(&all.json()), expected);
    assert_eq!(shop.run("parcel list --all -o json").json(), all.json());
    let lines = shop.run("parcel list --all --limit 1 -o ndjson").lines();
    assert_eq!(json!(lines), all.json()["parcels"]);
    let text_output = shop.run("parcel list --all --limit 2");
    assert_eq!((text_output.text().lines().count(), &*text_output.stderr), (6, ""));

    let csv = shop.run("parcel list --all -o csv");
    let rows: Vec<_> = csv.text().lines().collect();
    let heading = "id,trackingNumber,status,statusName,externalOrderId,customerReference,destinationCountry,labelUrl,manifestId,awbNumber,createdAt,updatedAt,arrival,arrivalDate";
    assert_eq!((rows.len(), rows[0]), (6, heading));
    let newest = ",SB-NUMBER-0005,LABEL_GENERATED,Label generated,shop-5,,EC,http";
    assert!(rows[1].contains(newest), "{csv:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_parcel_that_moves_to_the_next_page_is_listed_once() {
    let body = r#"{"success":true,"data":[{"id":"par_1","trackingNumber":"SB-NUMBER-0001","status":"ORDERED",
        "statusName":"x","destinationCountry":"EC","createdAt":"2026-01-05T08:00:00.000Z",
        "updatedAt":"2026-01-05T08:00:00.000Z"}],"meta":{"requestId":"req_1","page":1,"limit":1,"total":3,"totalPages":3}}"#;
    let dir = Workdir::new(
        TestShop::open().await.key.secret(),
        &fake_servers::start_with_response("200 OK", body).await,
    );
    let all = dir.run("parcel list --all -o json -v");
    assert_eq!((all.code, numbers(&all.json())), (0, vec!["SB-NUMBER-0001".to_owned()]));
    assert_eq!(all.stderr.matches("status 200").count(), 3, "three pages were asked for: {all:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_is_filtered_by_status_and_country() {
    let shop = shop_with_five_parcels().await;
    assert_eq!(shop.run("order void SB-NUMBER-0002").code, 0);
    for (filter, expected) in [
        ("--status VOIDED", vec!["SB-NUMBER-0002"]),
        ("--status voided --all", vec!["SB-NUMBER-0002"]),
        ("--status label-generated --country EC --limit 1", vec!["SB-NUMBER-0005"]),
        ("--country CO", vec![]),
        ("--country CO --all", vec![]),
    ] {
        let output = shop.run(&format!("parcel list {filter} -o json"));
        assert_eq!((output.code, numbers(&output.json())), (0, to_strings(&expected)), "{filter}");
    }
    for (filter, expected) in [
        ("--search shop-5", vec!["SB-NUMBER-0005"]),
        ("--search 0003 --all", vec!["SB-NUMBER-0003"]),
        ("--search sbnumber --status VOIDED", vec!["SB-NUMBER-0002"]),
        ("--reference shop", vec!["SB-NUMBER-0005"]),
        ("--reference 0003", vec![]),
    ] {
        let output = shop.run(&format!("parcel list {filter} -o json"));
        assert_eq!((output.code, numbers(&output.json())), (0, to_strings(&expected)), "{filter}");
    }
    let nothing = shop.run("parcel list --search %_");
    assert_eq!(nothing.code, 3, "{nothing:?}");
    let wrong = shop.run("parcel list --status LOST");
    assert!(wrong.stderr.contains("OUT_FOR_DELIVERY"), "the valid statuses are named: {wrong:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_has_the_parcels_created_from_one_day_to_another() {
    let shop = TestShop::open().await;
    for day in 5..=7 {
        shop.create(&format!("SB-NUMBER-000{day}"));
        shop.server.clock().advance(std::time::Duration::from_secs(86_400)).await;
    }
    for (days, expected) in [
        ("--from 2026-01-06", vec!["SB-NUMBER-0007", "SB-NUMBER-0006"]),
        ("--to 2026-01-06 --all", vec!["SB-NUMBER-0006", "SB-NUMBER-0005"]),
        ("--from 2026-01-06 --to 2026-01-06", vec!["SB-NUMBER-0006"]),
        ("--from 2026-01-07 --to 9999-12-31", vec!["SB-NUMBER-0007"]),
        ("--from 2026-01-08", vec![]),
    ] {
        let output = shop.run(&format!("parcel list {days} -o json"));
        assert_eq!((output.code, numbers(&output.json())), (0, to_strings(&expected)), "{days}");
    }
    for (days, says) in [
        ("--from yesterday", "invalid value 'yesterday' for --from"),
        ("--to 2026-02-30", "invalid value '2026-02-30' for --to"),
        ("--to 2026-1-5", "invalid value '2026-1-5' for --to"),
        ("--from +12026-01-05", "invalid value '+12026-01-05' for --from"),
        ("--from 2026-01-06 --to 2026-01-05", "The date after --to is before"),
    ] {
        let output = shop.run(&format!("parcel list {days}"));
        assert_eq!(output.code, 2, "{days}: {output:?}");
        assert!(output.stderr.contains(says), "{days}: {output:?}");
    }
    let wrong = shop.run("parcel list --from 31/01/2026 --lang es");
    assert!(wrong.stderr.contains("Escriba las fechas como 2026-01-31"), "{wrong:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_parcel_is_shown_by_any_unique_search_text() {
    let shop = shop_with_five_parcels().await;
    for text in ["SB-NUMBER-0005", "sb.number.0005", "shop-5", "0005"] {
        let output = shop.run(&format!("parcel show {text} -o json"));
        assert_eq!(output.code, 0, "{text}: {output:?}");
        let shown = output.json();
        assert_eq!(shown["parcel"]["trackingNumber"], "SB-NUMBER-0005", "{text}");
        assert!(shown["tracking"]["history"].is_array(), "{text}");
    }
    insta::assert_snapshot!("parcel_show", shop.run("parcel show shop-5").text());
    // An exact tracking number takes precedence over numbers that begin with it.
    shop.create("SB-NUMBER-00051");
    let exact = shop.run("parcel show SB-NUMBER-0005 -o json").json();
    assert_eq!(exact["parcel"]["trackingNumber"], "SB-NUMBER-0005");
    let several = shop.run("parcel show SB-NUMBER");
    assert_eq!(several.code, 11, "{several:?}");
    assert!(several.text().contains("SB-NUMBER-0004"), "{several:?}");
    insta::assert_snapshot!("parcel_show_several", several.stderr);
    // It comes before another that is spelled alike.
    shop.create("SB-NUMBER-00-51");
    for number in ["SB-NUMBER-00051", "sb-number-00-51"] {
        let shown = shop.run(&format!("parcel show {number} -o json")).json();
        assert_eq!(shown["parcel"]["trackingNumber"], number.to_uppercase());
    }
    let quoted = format!("\"{}\"", "Q".repeat(100));
    assert_eq!(shop.run(&format!("parcel show {quoted}")).code, 5, "100 characters, and marks");
    let none = shop.run("parcel show SB-UNKNOWN-001 -o json");
    none.assert_error(5, "PARCEL_NOT_FOUND");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_exact_reference_wins_over_longer_ones() {
    let shop = TestShop::open().await;
    let client = shop.server.client(&shop.key);
    let create = async |number: &str, reference: &str| {
        let mut order = order(number);
        order["customerReference"] = json!(reference);
        let order: parcelo::OrderRequest = serde_json::from_value(order).unwrap();
        client.orders().create(&order).await.unwrap();
    };
    create("SB-WHOLE-0001", "PO-1").await;
    for n in 0..101 {
        create(&format!("SB-LONGER-{n:04}"), &format!("PO-1{n}")).await;
    }
    let output = shop.run("parcel show po1 -o json");
    assert_eq!(output.json()["parcel"]["trackingNumber"], "SB-WHOLE-0001", "{output:?}");
    let several = shop.run("parcel show SB-LONGER -o json");
    assert_eq!((several.code, &several.json()["meta"]["total"]), (11, &json!(101)), "{several:?}");
    assert!(several.stderr.contains("101 parcels match"), "{several:?}");
    assert!(several.stderr.contains("Only the newest are listed"), "{several:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_parcel_is_not_shown_while_other_matches_may_exist() {
    let none = r#"{"success":true,"data":[],
        "meta":{"page":1,"limit":100,"total":0,"totalPages":0,"isPartial":true,"requestId":"req_1"}}"#;
    let one = r#"{"success":true,"data":[{"id":"par_1","trackingNumber":"SB-NUMBER-0001",
        "status":"LABEL_GENERATED","statusName":"Label generated","externalOrderId":null,
        "customerReference":null,"destinationCountry":"EC","labelUrl":null,"manifestId":null,
        "awbNumber":null,"arrival":null,"createdAt":"2026-01-10T15:00:00.000Z",
        "updatedAt":"2026-01-10T15:00:00.000Z"}],
        "meta":{"page":1,"limit":100,"total":1,"totalPages":1,"isPartial":true,"requestId":"req_1"}}"#;
    for (body, says) in [(none, "No parcel found so far"), (one, "Matching parcels: at least 1")] {
        let url =
            fake_servers::start_with_response("200 OK\r\ncontent-type: application/json", body)
                .await;
        let dir = Workdir::new(TestShop::open().await.key.secret(), &url);
        let output = dir.run("parcel show ana");
        assert_eq!(output.code, 11, "{output:?}");
        assert!(output.stderr.contains(says), "{output:?}");
        assert!(output.stderr.contains("Not all parcels were searched"), "{output:?}");
        assert_eq!(output.text().contains("SB-NUMBER-0001"), body == one, "{output:?}");
    }
}

fn to_strings(texts: &[&str]) -> Vec<String> {
    texts.iter().map(ToString::to_string).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reset_deletes_everything_only_after_confirmation() {
    let shop = shop_with_five_parcels().await;
    let unsure = shop.run("sandbox reset");
    assert_eq!(unsure.code, 2);
    assert!(unsure.stderr.contains("Add --yes"), "{unsure:?}");
    let typed = shop.dir.run_with("sandbox reset -o json", &[], "yes\n");
    assert_eq!(typed.code, 2, "no confirmation is read from a pipe: {typed:?}");
    assert_eq!(shop.run("parcel list -o json").json()["meta"]["total"], 5);

    let text_output = shop.run("sandbox reset --yes --lang es");
    assert_eq!((text_output.code, &*text_output.stderr), (0, ""));
    assert!(text_output.text().contains("Paquetes borrados"), "{text_output:?}");
    assert_eq!(shop.run("parcel list -o json").json()["meta"]["total"], 0);
    assert_eq!(shop.run("track SB-NUMBER-0001").code, 5);

    shop.create("SB-NUMBER-0001");
    let reset = shop.run("sandbox reset --yes -o json").json();
    assert_eq!((&reset["deleted"]["parcels"], &reset["deleted"]["labels"]), (&json!(1), &json!(1)));
    let csv = shop.run("sandbox reset --yes -o csv");
    let expected = "parcels,labels,manifests,trackingEvents,idempotencyKeys,webhookDeliveries,resetAt\n\
        0,0,0,0,0,0,2026-01-05T08:00:05.000Z\n";
    assert_eq!(csv.text(), expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn numbers_can_be_piped_from_one_command_to_the_next() {
    let shop = TestShop::open().await;
    let numbers = ["SB-PIPE-00001", "SB-PIPE-00002"];
    for number in &numbers {
        shop.create(number);
    }
    let listed = shop.run("parcel list -o numbers");
    assert_eq!((listed.code, listed.text()), (0, "SB-PIPE-00002\nSB-PIPE-00001\n"), "{listed:?}");
    let created = shop.run("track SB-PIPE-00001 -o numbers");
    assert_eq!(created.text(), "SB-PIPE-00001\n");
    // A result without parcels prints no numbers.
    assert_eq!(shop.run("health -o numbers").text(), "");
    let spreadsheet = "trackingNumber\n\"SB-PIPE-00001\"\n\nSB-PIPE-00002\n";
    let by_people = "\u{feff}Número de rastreo\r\nSB-PIPE-00001\r\n\"SB-PIPE-00002\"\r\n";
    for input in [listed.text(), spreadsheet, by_people] {
        let tracked = shop.dir.run_with("track - -o ndjson", &[], input);
        assert_eq!((tracked.code, tracked.lines().len()), (0, 2), "{input}: {tracked:?}");
    }
    let manifest = "manifest submit --awb 176-12345675 -";
    let submitted = shop.dir.run_with(manifest, &[], listed.text());
    assert_eq!(submitted.code, 0, "{submitted:?}");
}
