//! Follows a parcel, telling each event once, until its journey is over. For many parcels let
//! webhooks come instead (the example `webhook_receiver`).
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
    let number = env::args().nth(1).ok_or("say which parcel: track_until_delivered NUMBER")?;
    let number = TrackingNumber::parse(&number)?;
    let seconds = env::args().nth(2).map_or(Ok(60.0), |seconds| seconds.parse())?;
    let mut told = 0;
    loop {
        // One answer that fails is tried again by the client; what fails after that ends the program.
        let record = client.tracking().get(&number).history(true).await?;
        for event in record.history.iter().flatten().flatten().skip(told) {
            println!("{}  {}  {}", event.timestamp, event.status_name, event.location);
            told += 1;
        }
        match &record.status {
            ParcelStatus::Delivered => return Ok(()),
            status if status.is_final() => return Err(format!("it ended as {status}").into()),
            _ => tokio::time::sleep(Duration::try_from_secs_f64(seconds)?).await,
        }
    }
}
