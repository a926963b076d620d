//! A program without `async` that creates orders from a list, tracks the parcels and reads their labels:
//! `cargo run --example blocking`. The server is the real one, embedded.
#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use std::{error::Error, io::Read, time::Duration};

use parcelo::{
    Client, CountryCode, IdType, IdempotencyKey, LabelFormat, OrderRequest, Product, Receiver,
    ReceiverAddress, Sender, SenderAddress, TrackingNumber,
    blocking::{Wait, WaitEach},
};
use parcelo_server::mock::MockServer;

fn main() -> Result<(), Box<dyn Error>> {
    let runtime = tokio::runtime::Runtime::new()?; // for the server: the client needs none
    let server = runtime.block_on(MockServer::start());
    let key = server.key().countries(["EC"]).issue();
    // In production: Client::from_env()?
    let client = Client::builder(key).base_url(server.url())?.build()?;

    let rows =
        [("1001", "Luis Paredes"), ("1002", "Rosa Andrade"), ("1003", "José Cando")].map(order);
    let orders = rows.into_iter().collect::<Result<Vec<_>, _>>()?;
    for (index, created) in client.orders().create_many(orders).concurrency(2).wait_each()? {
        println!("order {index} is parcel {}", created?.parcel.tracking_number);
    }

    runtime.block_on(server.clock().advance(Duration::from_secs(25 * 60)));
    for parcel in client.parcels().list().stream().wait_each()? {
        let number = parcel?.tracking_number;
        let record = client.tracking().get(&number).history(true).wait()?;
        let events = record.history.as_ref().map_or(0, Vec::len);
        println!("{number} is {} after {events} events", record.status_name);
        let mut label = client.labels().download(&number, LabelFormat::Zpl).stream().wait()?;
        let mut zpl = String::new();
        label.read_to_string(&mut zpl)?; // or copy it to a printer
        println!("{number} has a label of {} lines", zpl.lines().count());
    }
    Ok(())
}

fn order((id, receiver): (&str, &str)) -> Result<OrderRequest, Box<dyn Error>> {
    let from = SenderAddress::new("8400 NW 25th St", "Miami", CountryCode::US).with_state("FL");
    let to = ReceiverAddress::new("Av. Amazonas N34-451", "Quito", CountryCode::EC);
    let receiver = Receiver::new(receiver, "+593991234567", to.with_province("Pichincha"));
    Ok(OrderRequest::builder()
        .idempotency_key(IdempotencyKey::derive("blocking", id))
        .tracking_number(TrackingNumber::parse(&format!("SB-SUCCESS-{id}"))?)
        .sender(Sender::new("Ana Ruiz", "+13055550100", from))
        .receiver(receiver.with_national_id(IdType::Cedula, "1714307103"))
        .weight_kg("1.25".parse()?)
        .declared_value("45.50".parse()?)
        .product(Product::new("Cotton shirt", 2, "22.75".parse()?).with_hs_code("610910"))
        .build()?)
}
