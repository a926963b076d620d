//! Creates one order, saves its label, and handles each kind of error. If you run it twice within 24 hours there is
//! still one parcel, because the key is derived from the order's id.
//!
//! `PARCELO_API_KEY=… PARCELO_BASE_URL=… cargo run --example create_order -- 1001`
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "an example shows what it does")]

use std::{env, error::Error, process::ExitCode};

use parcelo::{
    Client, CountryCode, IdType, IdempotencyKey, LabelFormat, NextStep, OrderRequest, Outcome,
    Product, Receiver, ReceiverAddress, Sender, SenderAddress,
};

#[tokio::main]
async fn main() -> ExitCode {
    let Err(error) = run().await else { return ExitCode::SUCCESS };
    eprintln!("{error}");
    ExitCode::FAILURE
}

async fn run() -> Result<(), Box<dyn Error>> {
    let client = Client::from_env()?;
    let id = env::args().nth(1).ok_or("usage: create_order ID")?;
    let order = order(&id)?; // checked by the server's own rules before anything is sent
    let created =
        client.orders().create(&order).await.inspect_err(|error| match error.next_step() {
            NextStep::Resend { after } => eprintln!("run this again in {} s", after.as_secs()),
            NextStep::Settled | NextStep::LookUp { .. } => eprintln!("see orders().find({id:?})"),
            NextStep::Correct => {
                for fault in error.field_faults() {
                    eprintln!("correct {}: {}", fault.field, fault.message);
                }
            }
            NextStep::Configure => eprintln!("check PARCELO_API_KEY and its rights"),
            _ => eprintln!("ask support"),
        })?;
    let number = &created.parcel.tracking_number;
    match created.outcome() {
        Outcome::Created => println!("{number} is new"),
        Outcome::Replayed => println!("{number} was created before"),
    }
    let label = client.labels().download(number, LabelFormat::Pdf).save_in(".").await?;
    println!("its label is {}", label.display());
    Ok(())
}

fn order(id: &str) -> Result<OrderRequest, Box<dyn Error>> {
    let from = SenderAddress::new("8400 NW 25th St", "Miami", CountryCode::US).with_state("FL");
    let to = ReceiverAddress::new("Av. Amazonas N34-451", "Quito", CountryCode::EC);
    let receiver = Receiver::new("Luis Paredes", "+593991234567", to.with_province("Pichincha"));
    Ok(OrderRequest::builder()
        .idempotency_key(IdempotencyKey::derive("my-shop", id))
        .external_order_id(id)
        .sender(Sender::new("Ana Ruiz", "+13055550100", from))
        .receiver(receiver.with_national_id(IdType::Cedula, "1714307103"))
        .weight_kg("1.25".parse()?)
        .declared_value("45.50".parse()?)
        .product(Product::new("Cotton shirt", 2, "22.75".parse()?).with_hs_code("610910"))
        .build()?)
}
