//! `manifest`: all parcels under an air waybill, or none of them.

use serde_json::json;

use crate::shop::{TestShop, Workdir};

const SUBMIT_BOTH: &str = "manifest submit SB-SUCCESS-0001 SB-SUCCESS-0002 --awb 17612345675 \
    --flight EK213 --departure 2026-01-11 --from MIA --to UIO --reference PO-77";

#[tokio::test(flavor = "multi_thread")]
async fn submit_lists_its_parcels_and_changes_their_status() {
    let shop = TestShop::with_two_parcels().await;
    let output = shop.run(SUBMIT_BOTH);
    assert_eq!((output.code, &*output.stderr), (0, ""));
    let id = output.text().split_whitespace().nth(1).unwrap();
    assert!(id.starts_with("man_"), "{output:?}");
    insta::assert_snapshot!("manifest", output.text().replace(id, "man_…"));
    assert_eq!(shop.run("track SB-SUCCESS-0002 -o json").json()["status"], "MANIFEST_SUBMITTED");
    let again = shop.run(&format!("{SUBMIT_BOTH} --lang es"));
    assert_eq!(again.code, 0);
    assert!(again.stderr.contains("Este manifiesto ya se había enviado"), "{again:?}");
    assert!(again.text().contains("Guía aérea"), "{again:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn submit_and_show_have_the_same_json_and_csv() {
    let shop = TestShop::with_two_parcels().await;
    let output = shop.run(&format!("{SUBMIT_BOTH} -o json"));
    assert_eq!((output.code, &*output.stderr), (0, ""));
    let mut submitted = output.json();
    assert_eq!(submitted["outcome"], "created");
    assert!(submitted["idempotencyKey"].as_str().unwrap().starts_with("idk-"));
    assert_eq!(
        (&submitted["awbNumber"], &submitted["parcelCount"], &submitted["totalWeightKg"]),
        (&json!("176-12345675"), &json!(2), &json!(2.5))
    );
    let id = submitted["manifestId"].as_str().unwrap().to_owned();
    for line in [
        format!("{SUBMIT_BOTH} -o ndjson"),
        SUBMIT_BOTH.replace(" --reference PO-77", " -o ndjson"),
    ] {
        let again = shop.run(&line).lines();
        assert_eq!(
            (&again[0]["outcome"], &again[0]["manifestId"]),
            (&json!("replayed"), &json!(id))
        );
    }

    let shown = shop.run(&format!("manifest show {id} -o json")).json();
    for added in ["outcome", "idempotencyKey", "requestId"] {
        assert!(submitted.as_object_mut().unwrap().remove(added).is_some(), "{added}");
    }
    assert_eq!(shown, submitted);
    let csv = shop.run(&format!("manifest show {id} -o csv"));
    let expected = format!(
        "manifestId,awbNumber,trackingNumber,flightNumber,departureDate,originAirport,destinationAirport,reference,submittedAt\n\
        {id},176-12345675,SB-SUCCESS-0001,EK213,2026-01-11,MIA,UIO,PO-77,2026-01-05T08:00:00.000Z\n\
        {id},176-12345675,SB-SUCCESS-0002,EK213,2026-01-11,MIA,UIO,PO-77,2026-01-05T08:00:00.000Z\n"
    );
    assert_eq!(csv.text(), expected);
    assert!(shop.run(&format!("manifest show {id}")).text().contains("MIA → UIO"));
    for awb in ["176-12345675", "17612345675"] {
        assert_eq!(shop.run(&format!("manifest show {awb} -o json")).json(), shown);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn one_invalid_parcel_is_named_and_nothing_is_submitted() {
    let shop = TestShop::with_two_parcels().await;
    assert_eq!(shop.run("order void SB-SUCCESS-0002").code, 0);
    let line = "manifest submit SB-SUCCESS-0001 SB-SUCCESS-0002 SB-UNKNOWN-01 --awb 176-12345675";
    let output = shop.run(&format!("{line} -o json"));
    assert_eq!((output.code, &*output.stdout), (6, &b""[..]), "{output:?}");
    let error = output.error();
    assert_eq!(
        (&error["code"], &error["fields"]),
        (&json!("MANIFEST_PARCELS_REJECTED"), &json!([]))
    );
    let items: Vec<_> = error["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| (item["trackingNumber"].clone(), item["code"].clone()))
        .collect();
    let expected = json!([
        ["SB-SUCCESS-0002", "PARCEL_NOT_MANIFESTABLE"],
        ["SB-UNKNOWN-01", "PARCEL_NOT_FOUND"]
    ]);
    assert_eq!(json!(items), expected);
    let text_output = shop.run(&format!("{line} --lang es"));
    for text in ["  SB-UNKNOWN-01: No existe", "Quite estos paquetes"] {
        assert!(text_output.stderr.contains(text), "{text_output:?}");
    }
    assert_eq!(shop.run("track SB-SUCCESS-0001 -o json").json()["status"], "LABEL_GENERATED");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_used_air_waybill_is_refused_with_its_manifest() {
    let shop = TestShop::with_two_parcels().await;
    let first = shop.run("manifest submit SB-SUCCESS-0001 --awb 176-12345675 -o json").json();
    let output = shop.run("manifest submit SB-SUCCESS-0002 --awb 176-12345675 -o json");
    let error = output.error();
    assert_eq!((output.code, &error["code"]), (6, &json!("MANIFEST_ALREADY_SUBMITTED")));
    let remedy = format!("parcelo manifest show {}", first["manifestId"].as_str().unwrap());
    assert!(error["hint"].as_str().unwrap().contains(&remedy), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn numbers_come_from_stdin_and_unknown_manifests_are_named() {
    let shop = TestShop::with_two_parcels().await;
    let line = "manifest submit - --awb 176-12345675 -o json";
    let output = shop.dir.run_with(line, &[], "SB-SUCCESS-0001\nSB-SUCCESS-0002\n");
    assert_eq!((output.code, &output.json()["parcelCount"]), (0, &json!(2)), "{output:?}");
    let output = shop.run("manifest show man_01KEBQ5R8T0000000000000000 -o json");
    output.assert_error(5, "MANIFEST_NOT_FOUND");
    assert!(output.error()["hint"].as_str().unwrap().contains("Check the ID"), "{output:?}");
    let output = shop.run("manifest show 176-12345686 -o json");
    output.assert_error(5, "MANIFEST_NOT_FOUND");
    assert!(output.error()["message"].as_str().unwrap().contains("176-12345686"), "{output:?}");
}

#[test]
fn a_manifest_that_breaks_the_rules_is_not_sent() {
    let dir = Workdir::new("", "");
    let table = [
        ("SB-SUCCESS-0001 --awb 176-12345676", "awbNumber"),
        ("SB-SUCCESS-0001 SB-success-0001 --awb 176-12345675", "trackingNumbers[1]"),
        ("SB-SUCCESS-0001 --awb 176-12345675 --flight K1", "flightNumber"),
        ("SB-SUCCESS-0001 --awb 176-12345675 --departure 11/01/2026", "departureDate"),
        ("SB-SUCCESS-0001 --awb 176-12345675 --from Miami", "originAirport"),
        ("SB-SUCCESS-0001 --awb 176-12345675 --to U1O", "destinationAirport"),
    ];
    for (arguments, field) in table {
        let output = dir.run(&format!("manifest submit {arguments} -o json"));
        output.assert_fault(field);
        assert_eq!(output.error()["fields"].as_array().unwrap().len(), 1, "{output:?}");
    }
    for other in ["176-12345676", "SB-SUCCESS-0001"] {
        let output = dir.run(&format!("manifest show {other} -o json"));
        output.assert_fault("manifestId");
    }
}
