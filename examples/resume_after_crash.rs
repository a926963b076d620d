//! Ships each order once, even if it is killed and started again: all are saved with their keys before one is sent.
//!
//! `PARCELO_API_KEY=… PARCELO_BASE_URL=… cargo run --example resume_after_crash -- journal.jsonl`
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "an example shows what it does")]
use parcelo::{
    Client, CountryCode, IdType, IdempotencyKey, NextStep, OrderRequest, Receiver, ReceiverAddress,
    Sender, SenderAddress, chrono::Utc, model::Saved,
};
use std::{env, error::Error, fs, io::Write, process::ExitCode};

#[tokio::main]
async fn main() -> ExitCode {
    let Err(error) = run().await else { return ExitCode::SUCCESS };
    eprintln!("{error}");
    ExitCode::FAILURE
}

async fn run() -> Result<(), Box<dyn Error>> {
    let client = Client::from_env()?;
    let journal = env::args().nth(1).ok_or("usage: resume_after_crash FILE")?;
    if !fs::exists(&journal)? {
        save(&journal, &[order("1001")?, order("1002")?, order("1003")?])?;
    }
    for line in fs::read_to_string(&journal)?.lines() {
        let order = serde_json::from_str::<Saved<OrderRequest>>(line)?.restore();
        let created = client.orders().create(&order).await;
        let created = created.inspect_err(|error| match error.next_step() {
            NextStep::Settled | NextStep::LookUp { .. } => eprintln!("see orders().find()"),
            _ => eprintln!("start this again, if that can help"),
        })?;
        println!("{} {:?}", created.parcel.tracking_number, created.outcome());
    }
    Ok(fs::remove_file(journal)?) // all are created: the next run is for new orders
}

/// Saves the journal whole or not at all.
#[allow(clippy::disallowed_methods, reason = "a program may read the clock")]
fn save(journal: &str, orders: &[OrderRequest]) -> Result<(), Box<dyn Error>> {
    let draft = format!("{journal}.draft");
    let mut file = fs::File::create(&draft)?;
    for order in orders {
        writeln!(file, "{}", serde_json::to_string(&Saved::new(order, Utc::now()))?)?;
    }
    file.sync_all()?;
    Ok(fs::rename(draft, journal)?)
}

fn order(id: &str) -> Result<OrderRequest, Box<dyn Error>> {
    let from = SenderAddress::new("8400 NW 25th St", "Miami", CountryCode::US).with_state("FL");
    let to = ReceiverAddress::new("Av. Amazonas N34-451", "Quito", CountryCode::EC);
    let receiver = Receiver::new("Luis Paredes", "+593991234567", to.with_province("Pichincha"));
    Ok(OrderRequest::builder()
        .idempotency_key(IdempotencyKey::random())
        .external_order_id(id)
        .sender(Sender::new("Ana Ruiz", "+13055550100", from))
        .receiver(receiver.with_national_id(IdType::Cedula, "1714307103"))
        .weight_kg("1.25".parse()?)
        .declared_value("45.50".parse()?)
        .build()?)
}
