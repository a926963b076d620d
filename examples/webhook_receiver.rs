//! Receives webhooks: accepts only signed and recent messages, processes each event once, and answers quickly.
//! Parcelo sends an event again until it is answered with 2xx.
//!
//! `PARCELO_WEBHOOK_SECRETS=whsec_… cargo run --example webhook_receiver -- 127.0.0.1:3000`
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "an example shows what it does")]

use std::sync::{Arc, Mutex, PoisonError};
use std::{collections::HashSet, env, error::Error, process::ExitCode};

use axum::{Router, body::Bytes, extract::State, http::HeaderMap, http::StatusCode, routing::post};
use parcelo::{model::EventData, webhook::Webhook};
use tokio::net::TcpListener;

struct Receiver {
    webhook: Webhook,
    /// The ids of processed events. Store yours in your database, in the transaction that processes them.
    processed: Mutex<HashSet<String>>,
}

#[tokio::main]
async fn main() -> ExitCode {
    let Err(error) = run().await else { return ExitCode::SUCCESS };
    eprintln!("{error}");
    ExitCode::FAILURE
}

async fn run() -> Result<(), Box<dyn Error>> {
    // While a secret is rotated there are two, the new and the old one, separated by a comma.
    let secrets = env::var("PARCELO_WEBHOOK_SECRETS").map_err(|_| "set PARCELO_WEBHOOK_SECRETS")?;
    let webhook = Webhook::new(secrets.split(','))?.reject_replays(10_000);
    let receiver = Arc::new(Receiver { webhook, processed: Mutex::default() });
    let address = env::args().nth(1).unwrap_or_else(|| "127.0.0.1:3000".to_owned());
    let listener = TcpListener::bind(address).await?;
    println!("listening on http://{}/", listener.local_addr()?);
    Ok(axum::serve(listener, Router::new().route("/", post(receive)).with_state(receiver)).await?)
}

/// `Bytes` is the unchanged body: parsed and serialised again, it would have another signature.
async fn receive(State(to): State<Arc<Receiver>>, headers: HeaderMap, body: Bytes) -> StatusCode {
    let message = to.webhook.verify(&headers, &body);
    let (message, event) = match message.and_then(|message| Ok((message.event()?, message))) {
        Ok((event, message)) => (message, event),
        Err(error) => {
            eprintln!("refused: {error}");
            return StatusCode::BAD_REQUEST;
        }
    };
    let mut processed = to.processed.lock().unwrap_or_else(PoisonError::into_inner);
    if processed.insert(message.id().to_owned()) {
        match event.data {
            EventData::StatusChanged(it) => println!("{} is {}", it.tracking_number, it.new_status),
            EventData::ParcelCreated(it) => println!("{} is new", it.tracking_number),
            other => println!("nothing to do about {}", other.code()), // also later kinds
        }
    }
    StatusCode::NO_CONTENT
}
