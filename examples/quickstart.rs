//! An order to Ecuador, its label, and its journey to the receiver: `cargo run --example quickstart`.
//! The server is the real one, embedded: no account, no network, and a clock to move.
#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use std::{error::Error, fs, path::Path, time::Duration};

use parcelo::{
    CountryCode, IdType, IdempotencyKey, LabelFormat, OrderRequest, Product, Receiver,
    ReceiverAddress, Sender, SenderAddress, TrackingNumber,
};
use parcelo_server::mock::{Clock, MockServer};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let clock = Clock::frozen("2026-01-05T08:00:00Z");
    let server = MockServer::builder().clock(clock).seed(42).start().await;
    let key = server.key().countries(["EC"]).issue();
    let client = server.client(&key); // in production: Client::from_env()?

    let created = client.orders().create(&order()?).await?;
    let number = &created.parcel.tracking_number;
    println!("{number} is {}", created.parcel.status);

    let folder = Path::new("quickstart-out");
    fs::create_dir_all(folder)?;
    for format in LabelFormat::ALL {
        let file = folder.join("label").with_extension(format.extension());
        let bytes = client.labels().download(number, format).save_to(&file).await?;
        println!("{} has {bytes} bytes", file.display());
    }

    server.clock().advance(Duration::from_secs(25 * 60)).await;
    let tracking = client.tracking().get(number).history(true).await?;
    for event in tracking.history.iter().flatten().flatten() {
        println!("{}  {:<18}  {}", event.timestamp, event.status.code(), event.location);
    }
    println!("{number} is {}", tracking.status);
    Ok(())
}

fn order() -> Result<OrderRequest, Box<dyn Error>> {
    let from = SenderAddress::new("8400 NW 25th St", "Miami", CountryCode::US)
        .with_state("FL")
        .with_zip_code("33122");
    let to = ReceiverAddress::new("Av. Amazonas N34-451", "Quito", CountryCode::EC)
        .with_province("Pichincha")
        .with_zip_code("170515");
    let receiver = Receiver::new("Luis Paredes", "+593991234567", to)
        .with_national_id(IdType::Cedula, "1714307103");
    Ok(OrderRequest::builder()
        .idempotency_key(IdempotencyKey::derive("quickstart", "order 1001"))
        .tracking_number(TrackingNumber::parse("SB-SUCCESS-1001")?)
        .sender(Sender::new("Ana Ruiz", "+13055550100", from))
        .receiver(receiver)
        .weight_kg("1.25".parse()?)
        .declared_value("45.50".parse()?)
        .product(Product::new("Cotton shirt", 2, "22.75".parse()?).with_hs_code("610910"))
        .build()?)
}
