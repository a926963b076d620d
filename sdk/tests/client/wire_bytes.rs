//! The bytes that each request sends. A journal sends an old order again with a newer SDK, and the service compares its
//! content with what it executed under the same key: a field that is written differently, or a changed default, would be
//! refused as another request. So `wire_bytes.txt` only gets longer.

use std::fmt::Write;

use parcelo::{
    Awb, Client, ContentsCategory, CountryCode, CurrencyCode, CustomsInfo, IdType, IdempotencyKey,
    Incoterm, LabelFormat, ManifestRequest, OrderRequest, ParcelStatus, Product, Receiver,
    ReceiverAddress, ReprintRequest, Sender, SenderAddress, TrackingNumber, VoidManyRequest,
    VoidRequest, model::ManifestId,
};

use crate::scripted_transport::{ScriptedTransport, response};

fn key(text: &str) -> IdempotencyKey {
    IdempotencyKey::parse(text).unwrap()
}

fn number(text: &str) -> TrackingNumber {
    TrackingNumber::parse(text).unwrap()
}

/// Returns an order with what is required, and nothing else.
fn minimal_order() -> OrderRequest {
    let from = SenderAddress::new("8400 NW 25th St", "Puebla", CountryCode::MX);
    let to = ReceiverAddress::new("Av. Amazonas N34-451", "Quito", CountryCode::EC);
    let receiver = Receiver::new("Luis Paredes", "+593991234567", to.with_province("Pichincha"));
    OrderRequest::builder()
        .idempotency_key(key("minimal-0001"))
        .sender(Sender::new("Ana Ruiz", "+13055550100", from))
        .receiver(receiver.with_national_id(IdType::Cedula, "1714307103"))
        .weight_lbs("3".parse().unwrap())
        .declared_value("20".parse().unwrap())
        .build()
        .unwrap()
}

/// Returns an order with every field.
fn full_order() -> OrderRequest {
    let from = SenderAddress::new("8400 NW 25th St", "Miami", CountryCode::US)
        .with_line2("Suite 110")
        .with_state("FL")
        .with_zip_code("33122");
    let sender = Sender::new("Ana Ruiz", "+13055550100", from)
        .with_company_name("Ruiz & Co.")
        .with_email("ana@example.com");
    let to = ReceiverAddress::new("Av. Amazonas N34-451", "Quito", CountryCode::EC)
        .with_line2("Piso 3 «B»")
        .with_province("Pichincha")
        .with_zip_code("170135")
        .with_delivery_instructions("Timbre: \"Peña\"\nDejar en portería");
    let receiver = Receiver::new("José Cando", "+593991234567", to)
        .with_company_name("Cando Hermanos")
        .with_email("jose@example.com")
        .with_national_id(IdType::Cedula, "1714307103");
    let customs = CustomsInfo::new("Cotton shirts")
        .with_hs_code("610910")
        .with_contents_category(ContentsCategory::SaleOfGoods)
        .with_incoterm(Incoterm::Ddp);
    let product = Product::new("Cotton shirt", 2, "22.75".parse().unwrap())
        .with_unit_net_weight_kg("0.25".parse().unwrap())
        .with_country_of_origin(CountryCode::CO)
        .with_hs_code("610910")
        .with_sku("SHIRT-1");
    OrderRequest::builder()
        .idempotency_key(key("full-0001"))
        .tracking_number(number("SB-SUCCESS-0001"))
        .external_order_id("1001")
        .customer_reference("PO 7")
        .sender(sender)
        .receiver(receiver)
        .weight_kg("1.250".parse().unwrap())
        .size_cm("30".parse().unwrap(), "20.5".parse().unwrap(), "10".parse().unwrap())
        .declared_value("45.50".parse().unwrap())
        .currency(CurrencyCode::USD)
        .customs_info(customs)
        .product(product)
        .product(Product::new("Cap", 1, "0".parse().unwrap()))
        .build()
        .unwrap()
}

/// Makes every call with and without what is optional. Their results do not matter.
async fn make_calls(client: &Client) {
    let numbers = [number("SB-SUCCESS-0001"), number("SB-RTS-0001")];
    let one = &numbers[0];
    let orders = client.orders();
    for order in [minimal_order(), full_order()] {
        drop(orders.create(&order).await);
    }
    let void = VoidRequest::new(key("void-0001"), &numbers);
    drop(orders.void(&void).await);
    drop(orders.void(&void.with_reason("Sold out")).await);
    drop(orders.void_many(&VoidManyRequest::new(&key("void-0002"), [one])).await);
    drop(orders.find(" 1001 ").await);

    drop(client.tracking().get(one).await);
    drop(client.tracking().get(one).history(true).await);
    drop(client.tracking().batch(&numbers).await);
    drop(client.tracking().batch(&numbers).history(true).await);

    drop(client.parcels().list().await);
    let (from, to) = ("2026-01-01T00:00:00Z", "2026-02-01T00:00:00.5Z");
    let list = client.parcels().list().page(2).limit(50).country(CountryCode::EC);
    let list = list.status(&ParcelStatus::CustomsHold).search("paredes 0001").reference("PO 7");
    let list = list.created_from(from.parse().unwrap()).created_to(to.parse().unwrap());
    drop(list.external_order_id("1001").await);

    let labels = client.labels();
    drop(labels.download(one, LabelFormat::Pdf).bytes().await);
    drop(labels.batch(&numbers, LabelFormat::Zpl).bytes().await);
    drop(labels.invoice(one).bytes().await);
    drop(labels.metadata(one).await);
    let reprint = ReprintRequest::new(key("reprint-0001"));
    drop(labels.reprint(one, &reprint).await);
    drop(labels.reprint(one, &reprint.with_reason("Label torn")).await);

    let awb = Awb::parse("17612345675").unwrap();
    let manifest = ManifestRequest::new(key("manifest-0001"), awb, &numbers);
    drop(client.manifests().submit(&manifest).await);
    let manifest = manifest.with_flight_number("EK213").with_reference("Monday");
    let manifest = manifest.with_departure_date("2026-01-10".parse().unwrap());
    let manifest = manifest.with_origin_airport("MIA").with_destination_airport("UIO");
    drop(client.manifests().submit(&manifest).await);
    let mut without_key = manifest;
    without_key.idempotency_key = None;
    drop(client.manifests().submit(&without_key).await);
    drop(client.manifests().get(&ManifestId::parse("man_1").unwrap()).await);

    drop(client.health().await);
    drop(client.sandbox().reset().await);
}

#[tokio::test(start_paused = true)]
async fn each_request_sends_the_bytes_that_it_always_sent() {
    let (client, script) = ScriptedTransport::client([response(404, "")]);
    make_calls(&client).await;
    let mut sent = String::new();
    for request in script.sent_requests() {
        let path = request.uri().path_and_query().unwrap();
        writeln!(sent, "{} {path}", request.method()).unwrap();
        if !request.body().is_empty() {
            writeln!(sent, "{}", std::str::from_utf8(request.body()).unwrap()).unwrap();
        }
        sent.push('\n');
    }
    let expected = include_str!("wire_bytes.txt");
    for (sent, expected) in sent.split("\n\n").zip(expected.split("\n\n")) {
        assert_eq!(sent, expected);
    }
    assert_eq!(sent, expected);
}
