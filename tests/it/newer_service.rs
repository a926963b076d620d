//! Responses of a newer version of the service: unknown values are printed unchanged, and an unreadable row is shown as
//! JSON beside the others.

use serde_json::json;

use crate::{
    fake_servers,
    shop::{TestShop, Workdir},
};

async fn dir_with_response(body: &'static str) -> Workdir {
    Workdir::new(
        TestShop::open().await.key.secret(),
        &fake_servers::start_with_response("200 OK\r\nx-request-id: req_1", body).await,
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn unknown_environments_and_countries_are_printed_unchanged() {
    let health = r#"{"success":true,"status":"ok","authenticated":true,"keyName":"shop",
        "allowedCountries":["EC","XK"],"environment":"staging"}"#;
    let dir = dir_with_response(health).await;
    for (line, expected) in [
        ("health", "staging"),
        ("health -o csv", "ok,shop,staging,EC XK"),
        ("health -o json", r#""environment": "staging""#),
    ] {
        let output = dir.run(line);
        assert!(output.code == 0 && output.text().contains(expected), "{line}: {output:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_manifest_with_unknown_values_is_printed_completely() {
    let manifest = r#"{"success":true,"data":{"manifestId":"man_1","awbNumber":"NEW-1","status":"FLOWN",
        "parcelCount":2,"totalWeightKg":1.5,
        "declaredValues":[{"currency":"XYZ","amount":4.5},{"odd":1}],"destinationCountries":["EC","XK"],
        "trackingNumbers":["SB-SUCCESS-0001","NEW/1"],"submittedAt":"2026-01-10T15:05:00.000Z"}}"#;
    let dir = dir_with_response(manifest).await;
    let text_output = dir.run("manifest show man_1");
    for expected in ["NEW-1", "XYZ 4.50", r#"{"odd":1}"#, "EC, XK", "  NEW/1\n"] {
        assert!(
            text_output.code == 0 && text_output.text().contains(expected),
            "{expected}: {text_output:?}"
        );
    }
    let json = dir.run("manifest show man_1 -o json").json();
    assert_eq!(json["trackingNumbers"], json!(["SB-SUCCESS-0001", "NEW/1"]));
    assert_eq!(json["declaredValues"], json!([{"currency": "XYZ", "amount": 4.5}, {"odd": 1}]));
    assert!(dir.run("manifest show man_1 -o csv").text().contains("man_1,NEW-1,NEW/1,"));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unreadable_row_is_named_and_the_others_are_listed() {
    let list = r#"{"success":true,"data":[{"odd":1},{"id":"par_1","trackingNumber":"SB-NUMBER-0001",
        "status":"LOST","statusName":"LOST","destinationCountry":"XK","createdAt":"2026-01-05T08:00:00.000Z",
        "updatedAt":"2026-01-05T08:00:00.000Z"}],"meta":{"page":1,"limit":20,"total":2,"totalPages":1}}"#;
    let dir = dir_with_response(list).await;
    for line in ["parcel list", "parcel list --all", "parcel list -o csv"] {
        let output = dir.run(line);
        assert!(
            output.text().contains("SB-NUMBER-0001") && output.text().contains("XK"),
            "{output:?}"
        );
        assert!(output.code == 10 && output.stderr.contains(r#"{"odd":1}"#), "{line}: {output:?}");
    }
    let json = dir.run("parcel list -o json");
    assert_eq!((json.code, &json.json()["parcels"][0]), (10, &json!({"odd": 1})));
    assert_eq!(json.error()["items"][0]["code"], "UNREADABLE_ANSWER");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_void_names_the_unreadable_row() {
    let voided = r#"{"success":true,"data":{"summary":{"requested":2,"voided":2,"failed":0},"results":[
        {"trackingNumber":"SB-NUMBER-0001","voided":true,"status":"GONE"},{"odd":1}]}}"#;
    let dir = dir_with_response(voided).await;
    let line = "order void SB-NUMBER-0001 SB-NUMBER-0002";
    let text_output = dir.run(line);
    assert!(text_output.code == 10 && text_output.text().contains("GONE"), "{text_output:?}");
    assert!(text_output.stderr.contains(r#"{"odd":1}"#), "{text_output:?}");
    let json = dir.run(&format!("{line} -o json"));
    assert_eq!((json.code, &json.json()["results"][1]), (10, &json!({"odd": 1})));
    let csv = dir.run(&format!("{line} -o csv"));
    assert!(csv.text().contains("UNREADABLE_ANSWER"), "{csv:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unreadable_response_is_reported_as_executed() {
    let dir = dir_with_response(r#"{"success":true,"parcel":{"trackingNumber":"NEW/1"}}"#).await;
    let output = dir.run("order create order.json");
    assert_eq!(output.code, 10, "{output:?}");
    for expected in ["was executed", "do not send it again", r#""trackingNumber":"NEW/1""#] {
        assert!(output.stderr.contains(expected), "{expected}: {output:?}");
    }
    assert_eq!(dir.run("order create order.json -o json").error()["mayHaveExecuted"], true);
}
