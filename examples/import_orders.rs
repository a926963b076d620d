//! Imports a CSV file of orders. The keys are derived from the ids in it, so importing it twice in 24 hours is safe.
//!
//! `PARCELO_API_KEY=… PARCELO_BASE_URL=… cargo run --example import_orders -- examples/orders.csv`
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "an example shows what it does")]

use std::{env, error::Error, process::ExitCode};

use parcelo::{
    Client, CountryCode, IdType, IdempotencyKey, NextStep, OrderRequest, Product, Receiver,
    ReceiverAddress, Sender, SenderAddress,
};

#[tokio::main]
async fn main() -> ExitCode {
    let Err(error) = run().await else { return ExitCode::SUCCESS };
    eprintln!("{error}");
    ExitCode::FAILURE
}

async fn run() -> Result<(), Box<dyn Error>> {
    let client = Client::from_env()?;
    let file = env::args().nth(1).ok_or("usage: import_orders FILE.csv")?;
    let mut orders = Vec::new();
    for (row, line) in (1..).zip(csv::Reader::from_path(file)?.deserialize()) {
        let order = line.map_err(Into::into).and_then(order);
        orders.push(order.map_err(|fault| format!("nothing was sent: row {row}: {fault}"))?);
    }
    let (mut results, mut failed) = (client.orders().create_many(orders).concurrency(8), 0);
    while let Some((row, result)) = results.next().await.map(|(i, it)| (i + 1, it)) {
        match result {
            Ok(it) => println!("row {row}: {} {:?}", it.parcel.tracking_number, it.outcome()),
            Err(error) => {
                failed += 1;
                let advice = match error.next_step() {
                    NextStep::Resend { .. } => "import the file again",
                    NextStep::Settled | NextStep::LookUp { .. } => "see orders().find()",
                    _ => "correct the row or the key",
                };
                eprintln!("row {row}: {error} {advice}");
            }
        }
    }
    if failed == 0 { Ok(()) } else { Err(format!("{failed} failed").into()) }
}

/// Parses a line: id, name, phone, cédula, street, city, province, weight in kg, item, value in USD.
fn order(row: [String; 10]) -> Result<OrderRequest, Box<dyn Error>> {
    let [id, name, phone, cedula, street, city, province, weight, item, value] = row;
    let from = SenderAddress::new("8400 NW 25th St", "Miami", CountryCode::US).with_state("FL");
    let to = ReceiverAddress::new(street, city, CountryCode::EC).with_province(province);
    Ok(OrderRequest::builder()
        .idempotency_key(IdempotencyKey::derive("my-shop", &id))
        .external_order_id(&id)
        .sender(Sender::new("Ana Ruiz", "+13055550100", from))
        .receiver(Receiver::new(name, phone, to).with_national_id(IdType::Cedula, cedula))
        .weight_kg(weight.parse()?)
        .declared_value(value.parse()?)
        .product(Product::new(item, 1, value.parse()?))
        .build()?)
}
