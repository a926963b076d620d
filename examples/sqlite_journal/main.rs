//! Ships each order once, with a journal in a table of `SQLite`, even if it is killed and started again.
//!
//! `PARCELO_API_KEY=… PARCELO_BASE_URL=… cargo run --example sqlite_journal -- orders.db`
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "an example shows what it does")]
mod journal;

use journal::SqliteJournal;
use parcelo::{
    Client, CountryCode, IdType, IdempotencyKey, OrderRequest, Receiver, ReceiverAddress, Sender,
    SenderAddress,
};
use std::{env, error::Error, process::ExitCode};

#[tokio::main]
async fn main() -> ExitCode {
    let Err(error) = run().await else { return ExitCode::SUCCESS };
    eprintln!("{error}");
    ExitCode::FAILURE
}

async fn run() -> Result<(), Box<dyn Error>> {
    let client = Client::from_env()?;
    let path = env::args().nth(1).ok_or("usage: sqlite_journal FILE")?;
    let journal = SqliteJournal::open(path.as_ref())?;
    for (id, resumed) in client.orders().resume(&journal).await? {
        println!("{id} {} resumed", resumed?.tracking_number);
    }
    for id in ["1001", "1002", "1003"] {
        let shipped = client.orders().ship(&order(id)?, &journal).await?;
        let when = if shipped.created.is_some() { "now" } else { "before" };
        println!("{id} {} {when}", shipped.tracking_number);
    }
    Ok(())
}

fn order(id: &str) -> Result<OrderRequest, Box<dyn Error>> {
    let from = SenderAddress::new("8400 NW 25th St", "Miami", CountryCode::US).with_state("FL");
    let to = ReceiverAddress::new("Av. Amazonas N34-451", "Quito", CountryCode::EC);
    let receiver = Receiver::new("Luis Paredes", "+593991234567", to.with_province("Pichincha"));
    Ok(OrderRequest::builder()
        .idempotency_key(IdempotencyKey::random()) // of an order that is known, the journal's counts
        .external_order_id(id)
        .sender(Sender::new("Ana Ruiz", "+13055550100", from))
        .receiver(receiver.with_national_id(IdType::Cedula, "1714307103"))
        .weight_kg("1.25".parse()?)
        .declared_value("45.50".parse()?)
        .build()?)
}
