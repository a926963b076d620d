//! Follows a parcel and prints each event once, until it is delivered. For many parcels use webhooks instead (the
//! example `webhook_receiver`).
//!
//! `PARCELO_API_KEY=… PARCELO_BASE_URL=… cargo run --example track_until_delivered -- NUMBER [SECONDS]`
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "an example shows what it does")]

use std::{env, error::Error, process::ExitCode, time::Duration};

use parcelo::{Client, ParcelStatus, TrackingNumber};

#[tokio::main]
async fn main() -> ExitCode {
    let Err(error) = run().await else { return ExitCode::SUCCESS };
    eprintln!("{error}");
    ExitCode::FAILURE
}

async fn run() -> Result<(), Box<dyn Error>> {
    let client = Client::from_env()?;
    let number = env::args().nth(1).ok_or("usage: track_until_delivered NUMBER [SECONDS]")?;
    let number = TrackingNumber::parse(&number)?;
    let seconds = env::args().nth(2).map_or(Ok(60.0), |seconds| seconds.parse())?;
    let mut printed = 0;
    loop {
        // The client retries a call that fails; an error after that ends the program.
        let record = client.tracking().get(&number).history(true).await?;
        for event in record.history.iter().flatten().flatten().skip(printed) {
            println!("{}  {}  {}", event.timestamp, event.status_name, event.location);
            printed += 1;
        }
        match &record.status {
            ParcelStatus::Delivered => return Ok(()),
            status if status.is_final() => return Err(format!("it ended as {status}").into()),
            _ => tokio::time::sleep(Duration::try_from_secs_f64(seconds)?).await,
        }
    }
}
