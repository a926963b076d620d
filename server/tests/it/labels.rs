//! Label files, downloaded with an API key or by the signed link in the response to an order, and invoices.

use serde_json::json;

use crate::{
    api::{Api, order, send, with},
    embedded::start_with_key,
    running::TestSetup,
};

#[tokio::test]
async fn each_format_downloads_as_a_file() {
    let (_server, api) = start_with_key().await;
    let number = api.create_parcel(&order("order-0001")).await;
    let table = [
        ("", "application/pdf", "pdf", &b"%PDF-"[..]),
        ("?format=PDF", "application/pdf", "pdf", b"%PDF-"),
        ("?format=png", "image/png", "png", b"\x89PNG"),
        ("?format=Zpl", "text/plain", "zpl", b"^XA"),
    ];
    for (query, kind, extension, magic) in table {
        let path = format!("/api/v1/labels/{number}/download{query}");
        let response = api.get(&path).await;
        assert_eq!(response.status, 200, "{query}: {}", response.text());
        assert_eq!(response.header("content-type"), kind);
        let name = format!("attachment; filename=\"label-{number}.{extension}\"");
        assert_eq!(response.header("content-disposition"), name);
        assert_eq!(response.header("content-length"), response.bytes.len().to_string());
        assert_eq!(response.header("cache-control"), "private, no-store");
        assert!(response.header("etag").len() > 10);
        assert!(response.bytes.starts_with(magic), "{query}");
        let again = api.get(&path).await;
        assert_eq!(again.header("etag"), response.header("etag"));
        assert_eq!(again.bytes, response.bytes);
    }
}

#[tokio::test]
async fn refused_downloads_get_a_json_error() {
    let (server, api) = start_with_key().await;
    let number = api.create_parcel(&order("order-0001")).await;
    let gif = api.get(&format!("/api/v1/labels/{number}/download?format=gif")).await;
    assert_eq!(gif.faults(), ["format UNKNOWN_VALUE"]);
    let stranger = Api::with_key(server.url(), &server.key().account("other").issue());
    for (api, number) in [(&api, "SB-ABSENT-0001"), (&api, "x"), (&stranger, &number)] {
        let response = api.get(&format!("/api/v1/labels/{number}/download")).await;
        assert_eq!(response.refusal(), (404, "PARCEL_NOT_FOUND"), "{number}");
    }
}

#[tokio::test]
async fn the_link_serves_every_format_by_its_signature_alone() {
    let (_server, api) = start_with_key().await;
    let created = api.create(&order("order-0001")).await.json();
    let other = api.create(&order("order-0002")).await.json();
    let link =
        |created: &serde_json::Value| created["parcel"]["labelUrl"].as_str().unwrap().to_owned();
    let (link, other) = (link(&created), link(&other));
    let anyone = Api::new("");
    for extension in ["pdf", "png", "zpl", "PNG"] {
        let file = anyone.get(&link.replace(".pdf?", &format!(".{extension}?"))).await;
        assert_eq!((file.status, file.header("x-robots-tag")), (200, "noindex"), "{extension}");
        assert_eq!(file.header("cache-control"), "private, no-store");
    }
    let signature = |link: &str| link.split_once("sig=").unwrap().1.to_owned();
    for wrong in [
        link.replace("?sig=", "?signature="),
        link.replace(&signature(&link), &signature(&other)),
        link.replace(&signature(&link), &signature(&link)[..21]),
        link.replace(".pdf", ".gif"),
        link.replace(".pdf", ""),
        link.split_once('?').unwrap().0.to_owned(),
    ] {
        assert_eq!(anyone.get(&wrong).await.refusal(), (404, "NOT_FOUND"), "{wrong}");
    }
}

#[tokio::test]
async fn a_cached_label_is_304_and_another_version_is_refused() {
    let (_server, api) = start_with_key().await;
    let number = api.create_parcel(&order("order-0002")).await;
    let metadata = api.get(&format!("/api/v1/labels/{number}")).await.json();
    let link = metadata["data"]["labelUrl"].as_str().unwrap().to_owned();
    let paths =
        [format!("/api/v1/labels/{number}/download"), link, format!("/api/labels/{number}.pdf")];
    for path in &paths {
        let file = api.get(path).await;
        let tag = file.header("etag").to_owned();
        let conditional = |name: &'static str, values: &[String]| {
            let request =
                values.iter().fold(api.request("GET", path), |one, it| one.header(name, it));
            send(request)
        };
        let known = [
            vec![tag.clone()],
            vec![format!("W/{tag}")],
            vec![format!("\"other\", {tag}")],
            vec!["\"other\"".to_owned(), tag.clone()],
            vec!["*".to_owned()],
        ];
        for values in known {
            let response = conditional("if-none-match", &values).await;
            assert_eq!((response.status, response.bytes.len()), (304, 0), "{path} {values:?}");
            assert_eq!(response.header("etag"), tag);
            assert_eq!(response.header("cache-control"), "private, no-store");
        }
        let same = [vec![tag.clone()], vec![format!("\"other\",{tag}")], vec!["*".to_owned()]];
        for values in same {
            let response = conditional("if-match", &values).await;
            assert_eq!(response.bytes, file.bytes, "{path} {values:?}");
        }
        for value in ["\"other\"".to_owned(), format!("W/{tag}"), tag.replace('"', "")] {
            let response = conditional("if-match", std::slice::from_ref(&value)).await;
            assert_eq!(response.status, 412, "{path} {value}");
            assert!(response.text().contains("PRECONDITION_FAILED"), "{}", response.text());
        }
        let unknown = conditional("if-none-match", &["\"other\"".to_owned()]).await;
        assert_eq!((unknown.status, &unknown.bytes), (200, &file.bytes));
    }
}

/// Returns an order with every customs field.
fn customs_order(key: &str) -> serde_json::Value {
    let order =
        with(order(key), "/customsInfo", json!({"incoterm": "DAP", "contentsCategory": "GIFT"}));
    let order = with(order, "/receiver/companyName", json!("Andina de Repuestos S.A."));
    let order = with(order, "/receiver/address/line2", json!("Dpto. 402"));
    let products = json!([{ "description": "Shirt", "quantity": 1, "unitFobValue": 1, "hsCode": "610910",
        "countryOfOrigin": "CO", "unitNetWeightKg": 0.1 }]);
    with(order, "/products", products)
}

#[tokio::test]
async fn an_invoice_downloads_as_the_same_file_every_time() {
    let (_server, api) = start_with_key().await;
    let created = api.create(&customs_order("order-0001")).await;
    assert_eq!(created.status, 201, "{}", created.text());
    let warnings = created.json()["warnings"].to_string();
    assert!(!warnings.contains("UNKNOWN_FIELD"), "{warnings}");
    let number = created.json()["parcel"]["trackingNumber"].as_str().unwrap().to_owned();
    let path = format!("/api/v1/parcels/{number}/invoice");
    let invoice = api.get(&path).await;
    assert_eq!(invoice.status, 200, "{}", invoice.text());
    assert_eq!(invoice.header("content-type"), "application/pdf");
    let name = format!("attachment; filename=\"invoice-{number}.pdf\"");
    assert_eq!(invoice.header("content-disposition"), name);
    assert_eq!(invoice.header("content-length"), invoice.bytes.len().to_string());
    assert_eq!(invoice.header("cache-control"), "private, no-store");
    assert!(invoice.bytes.starts_with(b"%PDF-"));
    assert_eq!(api.get(&path).await.bytes, invoice.bytes);
    let tag = invoice.header("etag");
    let known = send(api.request("GET", &path).header("if-none-match", tag)).await;
    assert_eq!((known.status, known.bytes.len()), (304, 0));
    let other = send(api.request("GET", &path).header("if-match", "\"other\"")).await;
    assert_eq!(other.refusal(), (412, "PRECONDITION_FAILED"));
}

#[tokio::test]
async fn an_invoice_is_refused_whenever_its_label_is() {
    let (server, api) = start_with_key().await;
    let number = api.create_parcel(&customs_order("order-0001")).await;
    let stranger = Api::with_key(server.url(), &server.key().account("other").issue());
    for (api, number) in [(&api, "SB-ABSENT-0001"), (&api, "x"), (&stranger, &number)] {
        let response = api.get(&format!("/api/v1/parcels/{number}/invoice")).await;
        assert_eq!(response.refusal(), (404, "PARCEL_NOT_FOUND"), "{number}");
    }
    let keyless = Api::new(server.url()).get(&format!("/api/v1/parcels/{number}/invoice")).await;
    assert_eq!(keyless.refusal(), (401, "AUTH_MISSING_API_KEY"));
    api.void(&number).await;
    let response = api.get(&format!("/api/v1/parcels/{number}/invoice")).await;
    assert_eq!(response.refusal(), (409, "LABEL_VOIDED"));
}

/// Regression test: the apartment number was once dropped although the order was accepted.
#[tokio::test]
async fn apartment_and_company_of_a_receiver_are_printed() {
    let (_server, api) = start_with_key().await;
    let number = api.create_parcel(&customs_order("order-0001")).await;
    let label = api.get(&format!("/api/v1/labels/{number}/download?format=ZPL")).await;
    for text in ["Andina de Repuestos S.A.", ", Dpto. 402^FS", "ORIG.", "^FDCO^FS"] {
        assert!(label.text().contains(text), "{text}: {}", label.text());
    }
}

const INSTRUCTIONS: &str = "/receiver/address/deliveryInstructions";

#[tokio::test]
async fn text_truncated_on_the_label_is_a_warning() {
    let (_server, api) = start_with_key().await;
    for (key, field, text, cut) in [
        ("order-0001", INSTRUCTIONS, "Ring twice".to_owned(), None),
        ("order-0002", INSTRUCTIONS, "Ring twice. ".repeat(40), Some(INSTRUCTIONS)),
        ("order-0003", "/customerReference", "AMZ-2026-".repeat(5), Some("/customerReference")),
        ("order-0004", "/receiver/fullName", "María ".repeat(20), Some("/receiver/fullName")),
    ] {
        let created = api.create(&with(order(key), field, json!(text))).await;
        assert_eq!(created.status, 201, "{}", created.text());
        let warnings = created.json()["warnings"].as_array().cloned().unwrap_or_default();
        let found = warnings.iter().find(|one| one["code"] == "TEXT_CUT_ON_LABEL");
        let found =
            found.map(|one| format!("/{}", one["field"].as_str().unwrap().replace('.', "/")));
        assert_eq!(found.as_deref(), cut, "{warnings:?}");
    }
}

#[tokio::test]
async fn a_parcel_of_an_older_version_keeps_its_label_layout() {
    let setup = TestSetup::on_file("the test writes into the file");
    let server = setup.start(&[]);
    let key = setup.new_key("sandbox").1;
    let number = server
        .api(&key)
        .create_parcel(&with(order("order-0001"), INSTRUCTIONS, json!("Ring")))
        .await;
    let path = format!("/api/v1/labels/{number}/download?format=ZPL");
    let new = server.api(&key).get(&path).await.text();
    server.stop();
    // An order as the previous version stored it.
    let file = rusqlite::Connection::open(setup.path("parcelo.db")).unwrap();
    let before = "UPDATE parcels SET order_json = json_remove(order_json, '$.labelLayout')";
    assert_eq!(file.execute(before, []).unwrap(), 1);
    drop(file);
    let server = setup.start(&[]);
    let old = server.api(&key).get(&path).await.text();
    let caption = "DELIVERY / ENTREGA";
    assert!(new.contains(caption) && !old.contains(caption) && old.contains("^FDRing^FS"), "{old}");
}
